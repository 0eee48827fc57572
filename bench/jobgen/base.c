/* Reads the base: one rank's Kineto trace. */
#include "jobgen.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "io/json.h"

enum { MEMBERS = 64, BACKWARD_APART_NS = 20000000 }; /* what lies farther apart in the backward is of two steps */

static void base_read_all(struct buf *text, const char *path)
{
	gzFile f = gzopen(path, "rb");
	if (!f)
		jobgen_die("cannot open", path);
	char block[1 << 16];
	int n;
	while ((n = gzread(f, block, sizeof block)) > 0)
		buf_put(text, block, (size_t)n);
	gzclose(f);
	if (n < 0)
		jobgen_die("damaged gzip", path);
	buf_fill(text, 0, JSON_PADDING);
	text->n -= JSON_PADDING;
}

static void base_put_value(struct buf *out, const struct json_value *v)
{
	if (v->type == JSON_OBJECT || v->type == JSON_ARRAY)
		json_one_line(v->raw, out);
	else if (v->type == JSON_STRING)
		buf_printf(out, "\"" STR_FMT "\"", STR_ARG(v->raw));
	else
		buf_str(out, v->raw);
}

/* An event as it is read: its members, and those of its args. */
struct base_members {
	struct { struct json_value key, value; } v[MEMBERS];
	unsigned n;
};

static void base_read_members(struct json *j, const char *object, struct base_members *m)
{
	bool first = true;
	m->n = 0;
	for (const char *at = object + 1; at && m->n < MEMBERS && (at = json_member(j, at, &first, &m->v[m->n].key)) && m->v[m->n].key.raw.p; m->n++)
		at = json_value(j, at, &m->v[m->n].value);
	if (j->status != JSON_OK)
		jobgen_die("not an event of a trace", "");
}

static struct str base_member(const struct base_members *m, const char *key)
{
	for (unsigned i = 0; i < m->n; i++)
		if (str_eqc(m->v[i].key.raw, key))
			return m->v[i].value.raw;
	return (struct str){0};
}

static int64_t base_number(const struct base_members *m, const char *key, int digits, int64_t without)
{
	int64_t v;
	struct str raw = base_member(m, key);
	return raw.n && json_to_scaled(raw, digits, &v) ? v : without;
}

static bool base_is_id(struct str key)
{
	static const char *const ids[] = {"id", "correlation", "Ev Idx", "External id", "external id", "Python id", "Python parent id", "python_caller_id", "Record function id",
		                          "Sequence number", "wait_on_cuda_event_record_corr_id"};
	return STR_IN(key, ids);
}

/* What the job's own groups say in its place. */
static bool base_is_of_group(struct str key)
{
	static const char *const own[] = {"Group size", "Process Group Name", "Process Group Description", "Process Group Ranks", "Rank", "Src Rank", "Dst Rank", "Seq", "Comms Id"};
	return STR_IN(key, own);
}

static void base_slot(struct jobgen_base *b, struct jobgen_event *e, size_t begin, enum jobgen_slot_kind kind, int64_t value)
{
	uint32_t at = (uint32_t)(begin - e->text);
	MEM_PUSH(b->slot, b->n_slots, b->cap_slots, (struct jobgen_slot){at, (uint32_t)(b->text.n - begin), value, kind});
	e->n_slots++;
}

/* Key and value of one member, with the slots that it has. */
static void base_put_member(struct jobgen_base *b, struct jobgen_event *e, const struct json_value *key, const struct json_value *v, bool in_args)
{
	static const char step[] = "ProfilerStep#";
	int64_t number;
	buf_printf(&b->text, "\"" STR_FMT "\": ", STR_ARG(key->raw));
	size_t begin = b->text.n;
	bool is_step = !in_args && e->is_step && str_eqc(key->raw, "name");
	if (is_step) {
		buf_cstr(&b->text, "\"");
		buf_cstr(&b->text, step);
		begin = b->text.n;
		buf_str(&b->text, (struct str){v->raw.p + sizeof step - 1, v->raw.n - (sizeof step - 1)});
	} else {
		base_put_value(&b->text, v);
	}
	if (!in_args && str_eqc(key->raw, "ts"))
		base_slot(b, e, begin, SLOT_START, 0);
	else if (!in_args && str_eqc(key->raw, "dur"))
		base_slot(b, e, begin, SLOT_LENGTH, 0);
	else if (is_step)
		base_slot(b, e, begin, SLOT_STEP, strtoll(v->raw.p + sizeof step - 1, NULL, 10));
	else if (in_args && e->is_params && str_eqc(key->raw, "Concrete Inputs"))
		base_slot(b, e, begin, SLOT_VALUES, 0);
	else if (base_is_id(key->raw) && v->type == JSON_NUMBER && json_to_i64(v->raw, &number) && number > 0)
		base_slot(b, e, begin, SLOT_ID, number);
	if (is_step)
		buf_char(&b->text, '"');
}

static void base_put_args(struct jobgen_base *b, struct jobgen_event *e, const struct base_members *args)
{
	bool any = false;
	buf_cstr(&b->text, "\"args\": {");
	for (unsigned i = 0; i < args->n; i++) {
		if (base_is_of_group(args->v[i].key.raw))
			continue;
		buf_cstr(&b->text, any ? ", " : "");
		base_put_member(b, e, &args->v[i].key, &args->v[i].value, true);
		any = true;
	}
	if (e->class == EVENT_COLLECTIVE)
		base_slot(b, e, b->text.n, SLOT_GROUP, 0);
	buf_char(&b->text, '}');
}

static void base_put_event(struct jobgen_base *b, struct jobgen_event *e, const struct base_members *m, const struct base_members *args)
{
	e->text = b->text.n;
	e->slot = b->n_slots;
	buf_char(&b->text, '{');
	for (unsigned i = 0; i < m->n; i++) {
		buf_cstr(&b->text, i ? ", " : "");
		if (str_eqc(m->v[i].key.raw, "args") && m->v[i].value.type == JSON_OBJECT)
			base_put_args(b, e, args);
		else
			base_put_member(b, e, &m->v[i].key, &m->v[i].value, false);
	}
	buf_char(&b->text, '}');
	e->n = (uint32_t)(b->text.n - e->text);
}

static void base_read_event(struct jobgen_base *b, struct json *j, const char *at)
{
	struct base_members m, args = {.n = 0};
	base_read_members(j, at, &m);
	struct str ph = base_member(&m, "ph"), cat = base_member(&m, "cat"), name = base_member(&m, "name");
	for (unsigned i = 0; i < m.n; i++)
		if (str_eqc(m.v[i].key.raw, "args") && m.v[i].value.type == JSON_OBJECT)
			base_read_members(j, m.v[i].value.raw.p, &args);
	bool ranges = str_eqc(ph, "X");
	if ((!ranges && !str_eqc(ph, "s") && !str_eqc(ph, "f")) || str_eqc(cat, "Trace"))
		return;
	struct jobgen_event e = {.item = UINT32_MAX, .start_ns = base_number(&m, "ts", 3, 0)};
	bool device = ranges && (str_eqc(cat, "kernel") || str_eqc(cat, "gpu_memcpy") || str_eqc(cat, "gpu_memset"));
	e.end_ns = e.start_ns + base_number(&m, "dur", 3, 0);
	e.class = !device ? EVENT_HOST : str_eqc(cat, "kernel") && str_has_nocase(name, STR("nccl")) ? EVENT_COLLECTIVE : EVENT_DEVICE;
	e.is_call = ranges && (str_starts(cat, STR("cuda_")));
	e.is_step = ranges && str_eqc(cat, "user_annotation") && str_starts(name, STR("ProfilerStep#"));
	e.is_params = ranges && str_eqc(name, "record_param_comms");
	e.is_autograd = ranges && str_starts(name, STR("autograd::engine"));
	e.correlation = ranges ? base_number(&args, "correlation", 0, -1) : base_number(&m, "id", 0, -1);
	e.stream = base_number(&args, "stream", 0, 0);
	if (e.is_step && !b->tid) {
		b->pid = base_number(&m, "pid", 0, 1);
		b->tid = base_number(&m, "tid", 0, 1);
	}
	base_put_event(b, &e, &m, &args);
	if (e.class == EVENT_DEVICE && str_eqc(cat, "kernel") && !b->kernel.n) {
		b->kernel = name;
		b->compute_stream = e.stream;
	}
	if (e.class == EVENT_COLLECTIVE && !b->collective.n)
		b->collective = name;
	MEM_PUSH(b->event, b->n_events, b->cap_events, e);
}

static void base_read_events(struct jobgen_base *b, struct json *j, const char *at)
{
	bool first = true, done = false;
	struct json_value v;
	for (at++; at && (at = json_element(j, at, &first, &done)) && !done;) {
		const char *event = at;
		at = json_value(j, at, &v);
		if (!at || v.type != JSON_OBJECT)
			break;
		struct str ph = {0};
		struct base_members m;
		base_read_members(j, event, &m);
		ph = base_member(&m, "ph");
		if (str_eqc(ph, "M")) {
			json_one_line(v.raw, &b->metadata);
			buf_cstr(&b->metadata, ",\n");
		} else {
			base_read_event(b, j, event);
		}
	}
	if (!at)
		jobgen_die("the trace ends inside an event", "");
}

/* Members of the head that each file has of its own. */
static bool base_is_own_head(struct str key)
{
	static const char *const own[] = {"distributedInfo", "traceName", "baseTimeNanoseconds", "with_stack", "schemaVersion", "traceEvents"};
	return STR_IN(key, own);
}

static void base_parse(struct jobgen_base *b, struct buf *text, const char *path)
{
	struct json j = {.end = text->p + text->n};
	struct json_value key, v;
	bool first = true;
	const char *at = json_space(text->p);
	if (*at != '{')
		jobgen_die("not an object with traceEvents", path);
	for (at++; at && (at = json_member(&j, at, &first, &key)) && key.raw.p;) {
		const char *value = at;
		at = json_value(&j, at, &v);
		if (at && str_eqc(key.raw, "traceEvents") && v.type == JSON_ARRAY)
			base_read_events(b, &j, value);
		if (!at || base_is_own_head(key.raw))
			continue;
		buf_printf(&b->head, "\"" STR_FMT "\": ", STR_ARG(key.raw));
		base_put_value(&b->head, &v);
		buf_cstr(&b->head, ",\n");
	}
	if (!at)
		jobgen_die("not JSON", path);
}

static int base_by_start(const void *a, const void *b)
{
	const struct jobgen_event *x = a, *y = b;
	return COMPARE(x->start_ns, y->start_ns) ?: COMPARE(x->text, y->text);
}

/* From the first step on, and up to the launch of collective `most` (0 = all): what is left, in order of start. Work whose launch is cut goes with it. */
static void base_cut(struct jobgen_base *b, int64_t most)
{
	int64_t begin = INT64_MAX, cut = INT64_MAX, seen = 0;
	struct idmap calls;
	qsort(b->event, b->n_events, sizeof *b->event, base_by_start);
	for (uint32_t i = 0; i < b->n_events; i++)
		begin = b->event[i].is_step && b->event[i].start_ns < begin ? b->event[i].start_ns : begin;
	idmap_init(&calls, INT32_MIN, INT32_MAX, b->n_events);
	for (uint32_t i = 0; i < b->n_events; i++)
		if (b->event[i].is_call && b->event[i].start_ns >= begin)
			idmap_put(&calls, b->event[i].correlation, i);
	for (uint32_t i = 0; i < b->n_events && most; i++) {
		uint32_t call = b->event[i].class == EVENT_COLLECTIVE ? idmap_get(&calls, b->event[i].correlation) : IDMAP_NONE;
		if (call != IDMAP_NONE && seen++ == most)
			cut = b->event[call].start_ns;
	}
	uint32_t n = 0;
	for (uint32_t i = 0; i < b->n_events; i++) {
		struct jobgen_event e = b->event[i];
		uint32_t call = e.class == EVENT_HOST ? IDMAP_NONE : idmap_get(&calls, e.correlation);
		int64_t asked = call != IDMAP_NONE ? b->event[call].start_ns : e.start_ns;
		if (asked < begin || asked >= cut || (e.class != EVENT_HOST && call == IDMAP_NONE))
			continue;
		e.end_ns = e.class == EVENT_HOST && e.end_ns > cut ? cut : e.end_ns;
		e.start_ns -= begin;
		e.end_ns -= begin;
		b->n_steps += e.is_step;
		b->event[n++] = e;
	}
	idmap_release(&calls);
	b->n_events = n;
	qsort(b->event, n, sizeof *b->event, base_by_start);
}

static void base_find_ids(struct jobgen_base *b)
{
	b->least_id = INT64_MAX;
	for (uint32_t i = 0; i < b->n_events; i++) {
		const struct jobgen_event *e = &b->event[i];
		b->end_ns = e->end_ns > b->end_ns ? e->end_ns : b->end_ns;
		for (uint32_t s = e->slot; s < e->slot + e->n_slots; s++) {
			if (b->slot[s].kind != SLOT_ID)
				continue;
			b->most_id = b->slot[s].value > b->most_id ? b->slot[s].value : b->most_id;
			b->least_id = b->slot[s].value < b->least_id ? b->slot[s].value : b->least_id;
		}
	}
	b->end_ns += 1000;
}

static bool base_syncs(struct str text)
{
	static const char *const not[] = {"broadcast", "sendrecv", "ncclkernel_reduce_", "ncclkerneldevice_reduce_", "ncclDevKernel_Reduce_", NULL};
	return !str_has_any_nocase(text, not);
}

/* The collectives, in order. One that begins during another cuts that one short. */
static void base_list_items(struct jobgen_base *b)
{
	uint32_t steps = 0;
	for (uint32_t i = 0; i < b->n_events; i++) {
		struct jobgen_event *e = &b->event[i];
		steps += e->is_step;
		if (e->class != EVENT_COLLECTIVE)
			continue;
		e->item = b->n_items;
		if (b->n_items && b->item[b->n_items - 1].end_ns > e->start_ns)
			b->item[b->n_items - 1].end_ns = e->start_ns;
		struct jobgen_item x = {.syncs = base_syncs((struct str){b->text.p + e->text, e->n}), .start_ns = e->start_ns, .end_ns = e->end_ns, .quiet_ns = e->start_ns,
		                        .step = steps ? steps - 1 : 0};
		MEM_PUSH(b->item, b->n_items, b->cap_items, x);
	}
}

/* What else the device does during each collective sets how much of it can be left out: the base waited, too. */
static void base_find_transfers(struct jobgen_base *b)
{
	int64_t *length = NEW_ARRAY(b->n_items, int64_t);
	for (uint32_t i = 0, at = 0; i < b->n_events; i++) {
		const struct jobgen_event *e = &b->event[i];
		for (; at < b->n_items && b->item[at].end_ns <= e->start_ns; at++)
			;
		for (uint32_t k = at; e->class == EVENT_DEVICE && k < b->n_items && b->item[k].start_ns < e->end_ns; k++) {
			int64_t end = e->end_ns < b->item[k].end_ns ? e->end_ns : b->item[k].end_ns;
			b->item[k].quiet_ns = end > b->item[k].quiet_ns ? end : b->item[k].quiet_ns;
		}
	}
	for (uint32_t i = 0; i < b->n_items; i++)
		length[i] = b->item[i].end_ns - b->item[i].start_ns;
	int64_t usual = sort_median_i64(length, b->n_items);
	for (uint32_t i = 0; i < b->n_items; i++) {
		struct jobgen_item *x = &b->item[i];
		int64_t all = x->end_ns - x->start_ns, least = x->quiet_ns - x->start_ns, most = usual > least ? usual : least;
		x->transfer_ns = all < most ? all : most;
	}
	mem_free(length);
}

/* A message of a step, put before item `before`, when the item before that one is over. */
static void base_put_message(struct jobgen_base *b, uint32_t before, int64_t at, uint32_t step, enum jobgen_item_kind kind, bool forward)
{
	struct jobgen_item x = {.kind = kind, .forward = forward, .start_ns = at, .quiet_ns = at, .end_ns = at, .transfer_ns = 50000, .elements = 1 << 19, .step = step};
	MEM_GROW(b->item, b->cap_items, b->n_items + 1);
	memmove(b->item + before + 1, b->item + before, (b->n_items - before) * sizeof *b->item);
	b->item[before] = x;
	b->n_items++;
	for (uint32_t i = 0; i < b->n_events; i++)
		if (b->event[i].item != UINT32_MAX && b->event[i].item >= before)
			b->event[i].item++;
}

/* Which group each collective is of: the last eighth of a step, of the data-parallel one. With stages, messages lie before the first, in the middle, and behind the last
 * tensor-parallel collective of a step. */
static void base_share_items(struct jobgen_base *b, const struct jobgen_options *o)
{
	for (uint32_t to = b->n_items, from; to; to = from) {
		for (from = to - 1; from && b->item[from - 1].step == b->item[to - 1].step; from--)
			;
		uint32_t n = to - from, data = o->tp == 1 ? n : o->dp > 1 ? (n + 7) / 8 : 0, step = b->item[from].step;
		for (uint32_t i = from; i < to; i++)
			b->item[i].kind = i >= to - data ? ITEM_DATA : ITEM_TENSOR;
		if (o->pp == 1)
			continue;
		uint32_t behind = o->tp == 1 ? to - 1 : to - data, middle = (from + behind) / 2;
		base_put_message(b, behind, behind > from ? b->item[behind - 1].end_ns : b->item[from].start_ns - 1, step, ITEM_SEND, false);
		base_put_message(b, middle, middle > from ? b->item[middle - 1].end_ns : b->item[from].start_ns - 2, step, ITEM_RECEIVE, false);
		base_put_message(b, middle, middle > from ? b->item[middle - 1].end_ns : b->item[from].start_ns - 3, step, ITEM_SEND, true);
		int64_t begin = 0;
		for (uint32_t i = 0, seen = 0; i < b->n_events && seen <= step; i++)
			if (b->event[i].is_step && seen++ == step)
				begin = b->event[i].start_ns + 1;
		base_put_message(b, from, begin, step, ITEM_RECEIVE, true);
	}
}

/* The elements of the first input in the text of an event: the product of the innermost list after "Input Dims"; 0 = it has none. */
static int64_t base_elements(struct str text)
{
	ptrdiff_t at = str_find(text, STR("\"Input Dims\": "));
	if (at < 0)
		return 0;
	int64_t all = 1, seen = 0;
	for (const char *p = text.p + at + 14, *end = text.p + text.n; p < end && *p != ']'; p++) {
		if (!is_digit(*p))
			continue;
		char *behind;
		all *= strtoll(p, &behind, 10);
		p = behind - 1;
		seen++;
	}
	return seen ? all : 0;
}

/* The op of each collective: the last record_param_comms that began before its kernel. */
static void base_find_params(struct jobgen_base *b)
{
	uint32_t params = UINT32_MAX;
	for (uint32_t i = 0; i < b->n_events; i++) {
		if (b->event[i].is_params)
			params = i;
		if (b->event[i].class != EVENT_COLLECTIVE || params == UINT32_MAX)
			continue;
		b->event[params].item = b->event[i].item;
		b->item[b->event[i].item].elements = base_elements((struct str){b->text.p + b->event[params].text, b->event[params].n});
	}
}

static void base_find_busy(struct jobgen_base *b)
{
	b->stretch_compute = NEW_ARRAY(b->n_items + 1, int64_t);
	uint32_t g = 0;
	for (uint32_t i = 0; i < b->n_events; i++) {
		const struct jobgen_event *e = &b->event[i];
		while (g < b->n_items && e->start_ns >= b->item[g].start_ns)
			g++;
		int64_t from = g ? b->item[g - 1].end_ns : 0, to = g < b->n_items ? b->item[g].start_ns : b->end_ns;
		int64_t start = e->start_ns > from ? e->start_ns : from, end = e->end_ns < to ? e->end_ns : to;
		if (b->n_busy && start < b->busy[b->n_busy - 1].end_ns)
			start = b->busy[b->n_busy - 1].end_ns;
		if (e->class != EVENT_DEVICE || end <= start)
			continue;
		MEM_PUSH(b->busy, b->n_busy, b->cap_busy, (struct jobgen_busy){start, end});
		b->stretch_compute[g] += end - start;
	}
}

/* The steps, and which of their stretches can be made late: those with a collective behind them for which the others wait. */
static void base_find_steps(struct jobgen_base *b)
{
	int64_t backward_from = 0, backward_to = INT64_MIN;
	b->step = NEW_ARRAY(b->n_steps + 1, struct jobgen_step);
	for (uint32_t s = 0; s <= b->n_steps; s++)
		b->step[s] = (struct jobgen_step){UINT32_MAX, UINT32_MAX, UINT32_MAX, 0};
	for (uint32_t g = 0, event = 0; g < b->n_items; g++) {
		struct jobgen_step *s = &b->step[b->item[g].step];
		for (; event < b->n_events && b->event[event].start_ns <= b->item[g].start_ns; event++) {
			const struct jobgen_event *e = &b->event[event];
			if (!e->is_autograd)
				continue;
			backward_from = e->start_ns > backward_to + BACKWARD_APART_NS ? e->start_ns : backward_from;
			backward_to = e->end_ns > backward_to ? e->end_ns : backward_to;
		}
		s->compute_ns += b->stretch_compute[g];
		if (!b->item[g].syncs)
			continue;
		s->first = s->first == UINT32_MAX ? g : s->first;
		s->longest = s->longest == UINT32_MAX || b->stretch_compute[g] > b->stretch_compute[s->longest] ? g : s->longest;
		bool within = backward_to > 0 && b->item[g].start_ns >= backward_from && b->item[g].start_ns <= backward_to + BACKWARD_APART_NS;
		if (within && (s->backward == UINT32_MAX || b->stretch_compute[g] > b->stretch_compute[s->backward]))
			s->backward = g;
	}
}

void jobgen_read(struct jobgen_base *b, const struct jobgen_options *o)
{
	struct buf text = {0};
	base_read_all(&text, o->base);
	base_parse(b, &text, o->base);
	size_t n = b->kernel.n; /* the text goes */
	buf_str(&b->names, b->kernel);
	buf_str(&b->names, b->collective);
	b->kernel.p = b->names.p;
	b->collective.p = b->names.p + n;
	buf_release(&text);
	base_cut(b, o->collectives);
	base_find_ids(b);
	base_list_items(b);
	if (!b->n_items || !b->n_steps)
		jobgen_die("no ProfilerStep with an NCCL kernel in", o->base);
	base_find_transfers(b);
	base_share_items(b, o);
	base_find_params(b);
	base_find_busy(b);
	base_find_steps(b);
}

void jobgen_release(struct jobgen_base *b)
{
	buf_release(&b->text);
	buf_release(&b->head);
	buf_release(&b->metadata);
	buf_release(&b->names);
	mem_free(b->event);
	mem_free(b->slot);
	mem_free(b->item);
	mem_free(b->busy);
	mem_free(b->step);
	mem_free(b->stretch_compute);
}
