#include "input/kineto/kineto_event.h"

#include "base/mem.h"
#include "store/torch_names.h"

#include <stdio.h>

/* Device work of a category that holds copies, too: its name tells. */
enum { GPU_BY_NAME = GPU_KINDS };

/* Categories, lower case. A name that ends in '*' is a prefix, one that begins with it a suffix. The first match holds. */
static const struct category {
	const char *name;
	enum event_kind kind;
	int sub;
} categories[] = {
	{"cpu_op", ON_OP, SPAN_OP},
	{"operator", ON_OP, SPAN_OP},
	{"async_op", ON_OP, SPAN_RANGE}, /* as opscope.profile calls ops that end on another thread */
	{"user_annotation", ON_USER, SPAN_USER},
	{"gpu_user_annotation", ON_USER, SPAN_GPU_USER},
	{"python_function", ON_PYTHON, SPAN_PYTHON},
	{"python", ON_PYTHON, SPAN_PYTHON},
	{"kernel", ON_GPU, GPU_KERNEL},
	{"concurrent_kernel", ON_GPU, GPU_KERNEL},
	{"mtia_ccp_events", ON_GPU, GPU_BY_NAME},
	{"hpu_op", ON_GPU, GPU_KERNEL},
	{"gpu_memcpy", ON_GPU, GPU_MEMCPY},
	{"memcpy", ON_GPU, GPU_MEMCPY},
	{"gpu_memset", ON_GPU, GPU_MEMSET},
	{"memset", ON_GPU, GPU_MEMSET},
	{"runtime", ON_CALL, SPAN_CALL},
	{"driver", ON_CALL, SPAN_CALL},
	{"*_runtime", ON_CALL, SPAN_CALL},
	{"*_driver", ON_CALL, SPAN_CALL},
	{"*_sync", ON_SYNC, SPAN_SYNC},
	{"overhead", ON_OTHER, SPAN_OVERHEAD},
	{"trace", ON_OTHER, SPAN_TRACE},
	/* What opscope's own chrome export calls ranges for which Kineto has no category. */
	{"nvtx_marker", ON_OTHER, SPAN_MARKER},
	{"nvtx_range", ON_OTHER, SPAN_RANGE},
	{"osrt", ON_OTHER, SPAN_OS},
	{"*", ON_OTHER, SPAN_OTHER},
};

void kineto_event_init(struct kineto *k)
{
	kineto_args_init(k);
	json_glue_init(&k->glue);
	k->id_memory = intern_str(&k->p->strings, STR("[memory]"));
	k->id_oom = intern_str(&k->p->strings, STR("[OutOfMemory]"));
	k->id_name = intern_str(&k->p->strings, STR("name"));
	k->id_labels = intern_str(&k->p->strings, STR("labels"));
	k->last_ns = INT64_MIN;
	intern_init(&k->long_forms);
	MEM_GROW(k->short_forms, k->cap_short_forms, 1);
	k->short_forms[0] = 0;
}

static bool cat_matches(const char *pattern, const char *text)
{
	size_t n = strlen(text), m = strlen(pattern);
	if (pattern[0] == '*')
		return n + 1 >= m && memcmp(text + n - (m - 1), pattern + 1, m - 1) == 0;
	return n == m && memcmp(text, pattern, n) == 0;
}

static const struct cat_slot *cat_fill(struct kineto *k, struct cat_slot *slot, struct str text, bool escaped)
{
	char lower[sizeof slot->text + 1] = {0};
	for (size_t i = 0; i < text.n && i < sizeof slot->text; i++)
		lower[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] + 32 : text.p[i]);
	const struct category *c = categories;
	while (text.n > sizeof slot->text ? strcmp(c->name, "*") != 0 : !cat_matches(c->name, lower))
		c++;
	memset(k->known_cat, 0, sizeof k->known_cat); /* the slot may have been another category's */
	slot->used = text.n <= sizeof slot->text;
	slot->n = (uint8_t)(slot->used ? text.n : 0);
	if (slot->n)
		memcpy(slot->text, text.p, text.n);
	if (escaped)
		kineto_cannot_join(k); /* what is noted depends on the slots */
	slot->cat = build_cat(&k->b, kineto_intern_raw(k, text, escaped));
	slot->kind = (uint8_t)c->kind;
	slot->sub = (uint8_t)c->sub;
	return slot;
}

/* The category of an event, from its `cat` text; unknown ones are kept under their own name. */
static const struct cat_slot *category_of(struct kineto *k, struct event *ev)
{
	if (ev->category)
		return ev->category;
	struct kineto_known_cat *known = &k->known_cat[ev->cat_version % VERSION_SLOTS];
	if (ev->cat_version && ev->cat_version == known->version)
		return ev->category = known->slot;
	struct str text = ev->cat;
	unsigned at = text.n ? key_slot(text) % CAT_SLOTS : 0;
	struct cat_slot *slot = &k->cat[at];
	if (slot->used && slot->n == text.n && (!text.n || same_text(slot->text, text.p, text.n))) {
		*known = (struct kineto_known_cat){ev->cat_version, slot};
		return ev->category = slot;
	}
	ev->category_copy = *cat_fill(k, slot, text, ev->cat_escaped);
	return ev->category = &ev->category_copy;
}

/* The legacy array form of torch has no categories: the process says what an event is. Its times are from the start of the recording. */
static enum event_kind kineto_event_kind_of(struct kineto *k, struct event *ev, int *sub)
{
	if (!ev->has_cat && str_eq(ev->pid, STR("CPU functions"))) {
		*sub = SPAN_OP;
		k->p->zero_is_start = true;
		return ON_OP;
	}
	if (!ev->has_cat && str_eq(ev->pid, STR("CUDA functions"))) {
		*sub = GPU_KERNEL;
		return ON_GPU;
	}
	const struct cat_slot *c = category_of(k, ev);
	*sub = c->sub;
	if (c->kind == ON_GPU && c->sub == GPU_BY_NAME) /* "dma_request" is how MTIA copies */
		*sub = str_starts(ev->name, STR("dma")) ? GPU_MEMCPY : GPU_KERNEL;
	return c->kind;
}

static bool is_memory(const struct event *ev)
{
	return (ev->ph == 'i' || ev->ph == 'I') &&
	       (str_eq(ev->name, STR("[memory]")) || str_eq(ev->name, STR("[OutOfMemory]")));
}

static unsigned args_kind(struct kineto *k, struct event *ev)
{
	int sub;
	if (is_memory(ev))
		return ON_MEMORY;
	return ev->ph == 'X' || ev->ph == 'B' ? kineto_event_kind_of(k, ev, &sub) : 0;
}

static uint32_t track_by_text(struct kineto *k, const struct event *ev)
{
	struct str pid = ev->pid, tid = ev->tid;
	struct track_slot *slot = NULL;
	if (pid.n && tid.n && pid.n <= sizeof slot->pid && tid.n <= sizeof slot->tid) {
		slot = &k->track[(key_slot(pid) * 31 + key_slot(tid)) % TRACK_SLOTS];
		if (slot->pid_n == pid.n && slot->tid_n == tid.n && same_text(slot->pid, pid.p, pid.n) &&
		    same_text(slot->tid, tid.p, tid.n))
			return slot->track;
	}
	uint32_t track = build_track(&k->b, pid, tid);
	if (slot) {
		memcpy(slot->pid, pid.p, pid.n);
		memcpy(slot->tid, tid.p, tid.n);
		slot->pid_n = (uint8_t)pid.n;
		slot->tid_n = (uint8_t)tid.n;
		slot->track = track;
	}
	return track;
}

static uint32_t track_of(struct kineto *k, const struct event *ev)
{
	struct kineto_known_track *known = &k->known_track[(ev->pid_version + 2 * ev->tid_version) % VERSION_SLOTS];
	const bool versions = ev->pid_version && ev->tid_version;
	if (versions && ev->pid_version == known->pid_version && ev->tid_version == known->tid_version)
		return known->track;
	const uint32_t track = track_by_text(k, ev);
	if (versions)
		*known = (struct kineto_known_track){ev->pid_version, ev->tid_version, track};
	return track;
}

static uint32_t kineto_event_launch_of(struct kineto *k, const struct event *ev)
{
	struct launch_row r = launch_none();
	int64_t device = NUM(ev, DEVICE, INT32_MIN);
	if (!HAS(ev, DEVICE) && !str_to_i64(ev->pid, &device))
		device = INT32_MIN;
	r.device = device >= INT32_MIN && device <= INT32_MAX ? (int32_t)device : INT32_MIN;
	r.bytes = NUM(ev, BYTES, ID_NONE);
	r.context = NUM(ev, CONTEXT, ID_NONE);
	r.stream = NUM(ev, STREAM, ID_NONE);
	r.graph_id = NUM(ev, GRAPH_ID, ID_NONE);
	r.graph_node_id = NUM(ev, GRAPH_NODE_ID, ID_NONE);
	if (HAS(ev, BLOCKS_PER_SM))
		r.blocks_per_sm = ev->real[FIELD_BLOCKS_PER_SM];
	if (HAS(ev, WARPS_PER_SM))
		r.warps_per_sm = ev->real[FIELD_WARPS_PER_SM];
	if (HAS(ev, OCCUPANCY))
		r.occupancy_pct = ev->real[FIELD_OCCUPANCY];
	if (HAS(ev, GRID))
		r.grid_x = ev->grid[0], r.grid_y = ev->grid[1], r.grid_z = ev->grid[2];
	if (HAS(ev, BLOCK))
		r.block_x = ev->block[0], r.block_y = ev->block[1], r.block_z = ev->block[2];
	int64_t regs = NUM(ev, REGISTERS, INT32_MIN), shared = NUM(ev, SHARED, INT32_MIN);
	r.registers = regs >= 0 && regs <= INT32_MAX ? (int32_t)regs : INT32_MIN;
	r.shared_bytes = shared >= 0 && shared <= INT32_MAX ? (int32_t)shared : INT32_MIN;
	return build_launch(&k->b, &r);
}

static int32_t kineto_event_small(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : -1;
}

static int16_t small16(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX ? (int16_t)v : -1;
}

static uint32_t store_span(struct kineto *k, struct event *ev, enum event_kind kind, int sub, int64_t ts, int64_t dur)
{
	struct span_row r = {
		.start_ns = ts, .dur_ns = dur, .ext_id = NUM(ev, EXT_ID, ID_NONE), .link_id = ID_NONE, .aux_id = -1,
		.name = kineto_intern_raw(k, ev->name, ev->name_escaped), .track = track_of(k, ev),
		.args = build_args(&k->b, k->pair, ev->n_pairs), .cat = category_of(k, ev)->cat, .kind = (uint8_t)sub,
	};
	if (kind == ON_CALL || kind == ON_SYNC) {
		r.link_id = NUM(ev, CORR, ID_NONE);
		r.aux_id = kineto_event_small(NUM(ev, API_ID, -1));
	} else if (kind == ON_PYTHON) {
		r.ext_id = NUM(ev, PYTHON_ID, ID_NONE);
		r.link_id = NUM(ev, PYTHON_PARENT, ID_NONE);
		r.aux_id = kineto_event_small(NUM(ev, PYTHON_MODULE, -1));
	} else {
		r.link_id = NUM(ev, SEQ, ID_NONE);
		r.aux_id = kineto_event_small(NUM(ev, FWD_TID, -1));
	}
	if (sub == SPAN_OP && str_starts(ev->name, STR(TORCH_STEP)))
		r.kind = SPAN_USER; /* the 2021 format files it under Operator */
	return build_span(&k->b, &r);
}

static void store_gpu(struct kineto *k, struct event *ev, int sub, int64_t ts, int64_t dur)
{
	struct gpu_row r = {
		.start_ns = ts, .dur_ns = dur, .ext_id = NUM(ev, EXT_ID, ID_NONE), .corr_id = NUM(ev, CORR, ID_NONE),
		.name = kineto_intern_raw(k, ev->name, ev->name_escaped), .track = track_of(k, ev), .launch = kineto_event_launch_of(k, ev),
		.args = build_args(&k->b, k->pair, ev->n_pairs), .cat = category_of(k, ev)->cat, .kind = (uint8_t)sub,
	};
	build_gpu(&k->b, &r);
}

static void store_memory(struct kineto *k, const struct event *ev, uint16_t cat, int64_t ts)
{
	struct memory_row r = {
		.time_ns = ts, .addr = NUM(ev, MEM_ADDR, ID_NONE), .bytes = NUM(ev, MEM_BYTES, 0),
		.total_allocated = NUM(ev, MEM_ALLOCATED, ID_NONE), .total_reserved = NUM(ev, MEM_RESERVED, ID_NONE),
		.track = track_of(k, ev), .name = ev->name.p[1] == 'm' ? k->id_memory : k->id_oom, .cat = cat,
		.device_type = small16(NUM(ev, MEM_DEVICE_TYPE, 0)), .device_id = small16(NUM(ev, MEM_DEVICE_ID, -1)),
	};
	build_memory(&k->b, &r);
}

void kineto_event_open(struct kineto *k, uint32_t track, uint32_t span)
{
	uint32_t cap = k->n_open_top;
	MEM_GROW(k->open_top, cap, track + 1);
	while (k->n_open_top < cap)
		k->open_top[k->n_open_top++] = ROW_NONE;
	MEM_GROW(k->open, k->cap_open, k->n_open + 1);
	k->open[k->n_open] = (struct open_range){span, k->open_top[track]};
	k->open_top[track] = k->n_open++;
}

static void kineto_event_close_range(struct kineto *k, uint32_t span, int64_t end)
{
	int64_t dur = end - k->p->span.start_ns[span];
	build_span_dur(&k->b, span, dur > 0 ? dur : 0);
}

void kineto_event_end(struct kineto *k, uint32_t track, int64_t ts)
{
	const bool is_open = track < k->n_open_top && k->open_top[track] != ROW_NONE;
	if (!is_open && k->is_part) {
		MEM_PUSH(k->ends, k->n_ends, k->cap_ends, (struct open_end){ts, track});
		return;
	}
	if (!is_open) {
		diag_add(&k->p->diags, "end-without-begin", DIAG_LOSS, k->offset, "an E event has no B event before it on its thread");
		return;
	}
	struct open_range *o = &k->open[k->open_top[track]];
	k->open_top[track] = o->below;
	kineto_event_close_range(k, o->span, ts);
	o->span = ROW_NONE;
}

static void store_metadata(struct kineto *k, struct event *ev, uint16_t cat, int64_t ts)
{
	struct str what = ev->name;
	if (ev->meta_name && (str_eq(what, STR("process_name")) || str_eq(what, STR("process_labels")))) {
		MEM_PUSH(k->names, k->n_names, k->cap_names, (struct process_name){
			.pid_text = intern_str(&k->p->strings, ev->pid), .text = ev->meta_name,
			.is_label = str_eq(what, STR("process_labels"))});
	} else if (ev->meta_name && str_eq(what, STR("thread_name"))) {
		uint32_t track = track_of(k, ev);
		k->p->track.thread_name[track] = ev->meta_name;
	} else if (!str_eq(what, STR("process_sort_index")) && !str_eq(what, STR("thread_sort_index"))) {
		build_mark(&k->b, ts, kineto_intern_raw(k, what, ev->name_escaped), track_of(k, ev),
		           build_args(&k->b, k->pair, ev->n_pairs), cat, 'M');
	}
}

/* A time in ns from text in us, unless *ns is `known`; false, with a diagnostic, when it is none or cannot be held. */
static bool read_time(struct kineto *k, struct str raw, bool known, const char *what, int64_t *ns)
{
	if ((known || (raw.n && json_to_scaled(raw, 3, ns))) && *ns <= INT64_MAX / 2 && *ns >= INT64_MIN / 2)
		return true;
	diag_add(&k->p->diags, "bad-time", DIAG_LOSS, k->offset, "an event's %s is %s%.*s: the event cannot be placed in time",
	         what, raw.n ? "not a time in us: " : "missing", (int)(raw.n < 40 ? raw.n : 40), raw.n ? raw.p : "");
	return false;
}

static int64_t kineto_event_flow_id(struct kineto *k, const struct event *ev)
{
	int64_t v;
	if (ev->id_known)
		return ev->id_number;
	if (str_to_i64(ev->id, &v))
		return v;
	if (!ev->id.n)
		return ID_NONE;
	kineto_cannot_join(k);
	return -2 - (int64_t)intern_str(&k->p->strings, ev->id); /* text ids: apart from the numbers */
}

static void store_complete(struct kineto *k, struct event *ev, int64_t ts)
{
	int64_t dur = ev->dur_known ? ev->dur_ns : 0;
	if (ev->ph != 'X')
		dur = 0;
	else if (ev->dur.n && !read_time(k, ev->dur, ev->dur_known, "dur", &dur))
		return;
	if (dur < 0) {
		diag_add(&k->p->diags, "negative-duration", DIAG_REPAIR, k->offset, "an event lasts less than nothing (%.*s us): taken as 0",
		         (int)(ev->dur.n < 40 ? ev->dur.n : 40), ev->dur.p);
		dur = 0;
	}
	if (ts + dur > k->last_ns)
		k->last_ns = ts + dur;
	int sub;
	enum event_kind kind = kineto_event_kind_of(k, ev, &sub);
	if (kind == ON_GPU) {
		store_gpu(k, ev, sub, ts, dur);
		return;
	}
	uint32_t span = store_span(k, ev, kind, sub, ts, dur);
	if (ev->ph == 'B' && span != ROW_NONE)
		kineto_event_open(k, k->p->span.track[span], span);
}

static void store_event(struct kineto *k, struct event *ev)
{
	uint16_t cat = category_of(k, ev)->cat;
	build_count(&k->b, cat, (uint8_t)(ev->ph ? ev->ph : '?'), 1);
	k->n_events++;
	k->n_like += ev->ph || ev->ts.n;
	int64_t ts = ev->ts_known ? ev->ts_ns : 0;
	bool timed = ev->ph != 'M' || ev->ts.n;
	if (timed && !read_time(k, ev->ts, ev->ts_known, "ts", &ts))
		return;
	switch (ev->ph) {
	case 'X':
	case 'B':
		store_complete(k, ev, ts);
		break;
	case 'E':
		kineto_event_end(k, track_of(k, ev), ts);
		break;
	case 's':
	case 't':
	case 'f':
		build_flow(&k->b, ts, kineto_event_flow_id(k, ev), track_of(k, ev), cat, (uint8_t)ev->ph);
		break;
	case 'M':
		store_metadata(k, ev, cat, ts);
		break;
	default:
		if (!ev->ph)
			diag_add(&k->p->diags, "no-phase", DIAG_REPAIR, k->offset, "an event has no ph: kept as an instant");
		if (is_memory(ev))
			store_memory(k, ev, cat, ts);
		else
			build_mark(&k->b, ts, kineto_intern_raw(k, ev->name, ev->name_escaped), track_of(k, ev),
			           build_args(&k->b, k->pair, ev->n_pairs), cat, (uint8_t)(ev->ph ? ev->ph : '?'));
	}
}

/* Members of an event. Those from MEMBER_CAT on mostly have the value that the event before has; of these, "cat" and "ph" say of what kind
 * the event is, so that what follows each of their values is learnt (GLUE_EACH). */
enum member { MEMBER_UNKNOWN, MEMBER_OTHER, MEMBER_ARGS, MEMBER_DUR, MEMBER_ID, MEMBER_NAME, MEMBER_TS, MEMBER_CAT, MEMBER_PH, MEMBER_PID, MEMBER_TID };

static enum member member_of(struct str key)
{
	static const struct {
		struct str text;
		enum member member;
	} members[] = {
		{STR("args"), MEMBER_ARGS}, {STR("cat"), MEMBER_CAT}, {STR("dur"), MEMBER_DUR}, {STR("id"), MEMBER_ID}, {STR("name"), MEMBER_NAME},
		{STR("ph"), MEMBER_PH}, {STR("pid"), MEMBER_PID}, {STR("tid"), MEMBER_TID}, {STR("ts"), MEMBER_TS},
	};
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		if (str_eq(key, members[i].text))
			return members[i].member;
	return MEMBER_OTHER;
}

/* The value of a member that mostly has the one that the event before has; `version` of json_glue_state, 0 when there is none. */
static inline void kineto_event_take_seldom_changing(struct event *ev, enum member member, const struct json_value *v, uint64_t version)
{
	switch (member) {
	case MEMBER_CAT:
		if (v->type == JSON_STRING) {
			ev->cat = v->raw;
			ev->cat_escaped = v->escaped;
			ev->has_cat = true;
			ev->cat_version = version;
			ev->category = NULL;
		}
		break;
	case MEMBER_PH:
		ev->ph = v->raw.n ? v->raw.p[0] : 0;
		break;
	case MEMBER_PID:
		ev->pid = v->raw;
		ev->pid_version = version;
		break;
	case MEMBER_TID:
		ev->tid = v->raw;
		ev->tid_version = version;
		break;
	default:
		break;
	}
}

/* A member's value. The arguments are not read here. */
static void kineto_event_take_member(struct event *ev, enum member member, const struct json_value *v)
{
	switch (member) {
	case MEMBER_ARGS:
		ev->args = v->raw; /* read when the category is known */
		break;
	case MEMBER_DUR:
		ev->dur = v->raw;
		ev->dur_known = false;
		break;
	case MEMBER_ID:
		ev->id = v->raw;
		ev->id_known = false;
		break;
	case MEMBER_TS:
		ev->ts = v->raw;
		ev->ts_known = false;
		break;
	case MEMBER_NAME:
		ev->name = v->raw;
		ev->name_escaped = v->escaped;
		ev->has_name = true;
		break;
	default:
		kineto_event_take_seldom_changing(ev, member, v, 0);
		break;
	}
}

/* Reads the value at `p` of a member that is a number or a name, and takes it, at once. NULL, and nothing is taken, when it is another member, or
 * json_near_value must read it. */
static inline const char *kineto_event_read_at_once(struct kineto *k, const char *p, struct event *ev, enum member member)
{
	const char *end = NULL;
	unsigned n;
	switch (member) {
	case MEMBER_NAME:
		if (*p == '"' && (end = json_near_string(p + 1, k->j.end, &n))) {
			ev->name = (struct str){p + 1, n};
			ev->name_escaped = false;
			ev->has_name = true;
		}
		break;
	case MEMBER_TS:
		if ((end = json_near_thousandths(&k->j, p, &ev->ts_ns))) {
			ev->ts_known = true;
			ev->ts = (struct str){p, (size_t)(end - p)};
		}
		break;
	case MEMBER_DUR:
		if ((end = json_near_thousandths(&k->j, p, &ev->dur_ns))) {
			ev->dur_known = true;
			ev->dur = (struct str){p, (size_t)(end - p)};
		}
		break;
	case MEMBER_ID:
		if ((end = json_near_whole(&k->j, p, &ev->id_number))) {
			ev->id_known = true;
			ev->id = (struct str){p, (size_t)(end - p)};
		}
		break;
	default:
		break;
	}
	return end;
}

static void note_first_key(struct kineto *k, struct str key)
{
	enum { TOLD = 3 };
	size_t n = strlen(k->first_keys), room = sizeof k->first_keys - n;
	if (k->n_first_keys++ < TOLD && key.n < room / 2 && !kineto_has_control(key))
		snprintf(k->first_keys + n, room, "%s\"" STR_FMT "\"", n ? ", " : "", STR_ARG(key));
}

/* The member of a key, which is looked up once for each state. */
static inline enum member kineto_event_member_at(struct json_glue_state *met, const struct json_value *key)
{
	if (!met)
		return member_of(key->raw);
	if (met->member == MEMBER_UNKNOWN)
		met->member = (uint8_t)member_of(met->key);
	return (enum member)met->member;
}

/* Reads the value at `p`, of the key that was read last, and the key behind it: as json_glue_member gives them. */
static inline const char *read_member(struct kineto *k, const char *p, struct event *ev, bool *first, struct json_value *key, struct json_glue_state **met)
{
	struct json_glue_state *of = *met;
	const enum member member = kineto_event_member_at(of, key);
	const bool seldom_changes = of && member >= MEMBER_CAT;
	const char *value = p;
	struct json_value v;
	if (seldom_changes && (p = json_glue_again(&k->glue, value, met))) {
		kineto_event_take_seldom_changing(ev, member, &(*met)->value, (*met)->version);
		return p;
	}
	if (member == MEMBER_ARGS && ev->ph && (ev->has_cat || ev->ph != 'X') && ev->has_name) {
		p = kineto_args(k, value, ev, args_kind(k, ev));
	} else if (!(p = kineto_event_read_at_once(k, value, ev, member)) && (p = json_near_value(&k->j, value, &v))) {
		kineto_event_take_member(ev, member, &v);
	}
	if (p)
		p = json_glue_member(&k->glue, &k->j, p, first, key, met);
	if (p && seldom_changes)
		json_glue_keep(&k->glue, of, value, p, &v, member <= MEMBER_PH ? GLUE_EACH : GLUE_LAST, met);
	return p;
}

/* Text by text: an instruction that clears all at once is slow to begin, and so is one that copies what two have just written. */
static inline void kineto_event_clear(struct event *ev)
{
	enum { TEXT = sizeof(struct str), BEHIND_TEXTS = offsetof(struct event, args) + TEXT, REST = offsetof(struct event, ts_ns) - BEHIND_TEXTS };
	memset(&ev->name, 0, TEXT);
	memset(&ev->cat, 0, TEXT);
	memset(&ev->pid, 0, TEXT);
	memset(&ev->tid, 0, TEXT);
	memset(&ev->ts, 0, TEXT);
	memset(&ev->dur, 0, TEXT);
	memset(&ev->id, 0, TEXT);
	memset(&ev->args, 0, TEXT);
	memset((char *)ev + BEHIND_TEXTS, 0, REST);
}

const char *kineto_event(struct kineto *k, const char *p)
{
	struct event ev;
	kineto_event_clear(&ev);
	bool first = true;
	const bool first_of_all = !k->n_events;
	const char *text = p++;
	struct json_value key;
	struct json_glue_state *met;
	json_glue_begin(&k->glue);
	p = json_glue_member(&k->glue, &k->j, p, &first, &key, &met);
	while (p && (met ? met->key.p : key.raw.p)) {
		if (first_of_all)
			note_first_key(k, met ? met->key : key.raw);
		p = read_member(k, p, &ev, &first, &key, &met);
	}
	if (!p)
		return NULL;
	if (ev.args.p && !ev.args_read && !kineto_args(k, ev.args.p, &ev, args_kind(k, &ev)))
		return NULL;
	store_event(k, &ev);
	if (k->p->written)
		kineto_keep_written(k, (struct str){text, (size_t)(p - text)});
	if (k->j.repairs) {
		kineto_note_repairs(k, k->j.repairs);
		k->j.repairs = 0;
	}
	return p;
}

/* Gives every track the name, or the label, that its process was given last. */
static void kineto_event_name_processes(struct kineto *k, bool labels, uint32_t *column)
{
	struct idmap by_pid;
	idmap_init(&by_pid, 1, 0, k->n_names);
	for (unsigned n = 0; n < k->n_names; n++)
		if (k->names[n].is_label == labels)
			idmap_put(&by_pid, k->names[n].pid_text, k->names[n].text);
	for (uint32_t t = 0; t < k->p->track.rows.n; t++) {
		uint32_t text = idmap_get(&by_pid, k->p->track.pid_text[t]);
		if (text != IDMAP_NONE)
			column[t] = text;
	}
	idmap_release(&by_pid);
}

void kineto_event_finish(struct kineto *k)
{
	struct profile *p = k->p;
	for (uint32_t i = 0; i < k->n_open; i++) {
		if (k->open[i].span == ROW_NONE)
			continue;
		kineto_event_close_range(k, k->open[i].span, k->last_ns);
		diag_add(&p->diags, "begin-without-end", DIAG_REPAIR, -1, "a B event has no E event: its range ends with the trace");
	}
	kineto_event_name_processes(k, false, p->track.process_name);
	kineto_event_name_processes(k, true, p->track.process_labels);
	kineto_event_release(k);
}

void kineto_event_release(struct kineto *k)
{
	mem_free(k->open);
	mem_free(k->open_top);
	mem_free(k->ends);
	mem_free(k->names);
	buf_release(&k->scratch);
	kineto_written_release(k);
	intern_release(&k->long_forms);
	mem_free(k->short_forms);
	arena_release(&k->names_arena);
	json_glue_release(&k->glue);
}
