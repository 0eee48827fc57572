/* Memory snapshots of torch (torch.cuda.memory._dump_snapshot): a pickle of plain data with the segments that the allocator has taken from the driver, their blocks, and, where
 * its history was recorded, the last allocations and frees with their stacks (torch/cuda/memory.py; torch/cuda/_memory_viz.py names the fields). It is read as data: nothing in it
 * is run.
 *
 * Allocations (alloc) and frees (free_completed) become the memory events that torch.profiler writes, a failed one (oom) too; what else the trace has (segment_alloc, free_requested,
 * ...) and external annotations become marks. The totals of the allocator are counted back from the end, at which the segments state them. Sizes of the trace are those
 * that were asked for, sizes of blocks those that were given. */
#include "input/input.h"

#include <assert.h>

#include "base/buf.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "io/pickle.h"
#include "store/build.h"

enum {
	MEMORY_SNAPSHOT_BYTES = 1 << 30,
	MEMORY_SNAPSHOT_KEYS = 64,        /* a dict of more is none of ours */
	MEMORY_SNAPSHOT_FRAMES = 1024,    /* of a stack */
	MEMORY_SNAPSHOT_FRAME = 2048,     /* bytes of one */
	MEMORY_SNAPSHOT_STACKS = 1 << 30, /* bytes of all stacks that differ */
	MEMORY_SNAPSHOT_ROW = 16,         /* no entry takes fewer bytes of a pickle */
	MEMORY_SNAPSHOT_DEVICES = 1024,
	MEMORY_SNAPSHOT_SIZE = 58,        /* bits of a size: as BUILD_SUM_BITS */
	MEMORY_SNAPSHOT_CUDA = 1,         /* c10's number of the device type */
};

/* What a device holds at the end, and how far the trace has changed that. */
struct memory_snapshot_device {
	int64_t active, reserved;
	int64_t net, net_reserved;
	bool unknown;              /* the sums say nothing */
};

struct memory_snapshot {
	struct arena arena;
	struct buf bytes;
	const struct py *root;
	const char *why;           /* of a damaged pickle; NULL = sound */
	size_t at;
	struct build b;
	uint32_t rows, most_rows;  /* entries that were read, and how many the bytes can hold */
	struct intern frames, lists, stacks; /* by address of the dict or list in the pickle; by ids of frames */
	uint32_t *frame_text, *list_text, *stack_text; /* of these: ids of strings */
	uint32_t cap_frames, cap_lists, cap_stacks;
	uint64_t stack_bytes;
	struct memory_snapshot_device *device;
	bool has_segments, no_times;
	uint32_t n_entries;
};

/* ---- values of the pickle ---- */

static const struct py *memory_snapshot_get(const struct py *d, const char *key)
{
	return d && d->type == PY_DICT && d->n <= MEMORY_SNAPSHOT_KEYS ? py_get(d, key) : NULL;
}

static struct str memory_snapshot_str(const struct py *d, const char *key)
{
	const struct py *v = memory_snapshot_get(d, key);
	return v && v->type == PY_STR ? v->s : STR("");
}

static int64_t memory_snapshot_i64(const struct py *d, const char *key, int64_t absent)
{
	const struct py *v = memory_snapshot_get(d, key);
	return v && v->type == PY_INT ? v->i : absent;
}

/* A size in bytes; -1 = not stated, or none. */
static int64_t memory_snapshot_size(const struct py *d, const char *key)
{
	int64_t v = memory_snapshot_i64(d, key, -1);
	return v >= 0 && v <= 1ll << MEMORY_SNAPSHOT_SIZE ? v : -1;
}

/* An address is below 2^63 in every process. */
static int64_t memory_snapshot_addr(const struct py *d, const char *key)
{
	int64_t v = memory_snapshot_i64(d, key, ID_NONE);
	return v >= 0 ? v : ID_NONE;
}

static const struct py *memory_snapshot_list(const struct py *d, const char *key)
{
	const struct py *v = d && !key ? d : memory_snapshot_get(d, key);
	return v && (v->type == PY_LIST || v->type == PY_TUPLE) ? v : NULL;
}

/* Whether one more row may be read: a pickle can repeat its lists, so that they have more than its bytes. */
static bool memory_snapshot_row(struct memory_snapshot *m)
{
	if (m->rows < m->most_rows) {
		m->rows++;
		return true;
	}
	diag_add(&m->b.p->diags, "repeated-rows", DIAG_LOSS, -1, "the snapshot repeats more entries than its bytes can hold: the rest is left out");
	return false;
}

static void memory_snapshot_damaged(struct memory_snapshot *m, const char *what)
{
	diag_add(&m->b.p->diags, "damaged-entry", DIAG_LOSS, -1, "%s of the snapshot is not as torch writes it: it is left out", what);
}

/* ---- stacks ---- */

/* A frame of C++, or of C: torch unwinds both. */
static bool memory_snapshot_is_native(struct str file, int64_t line)
{
	static const char *const ends[] = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".o", ".S", ".so", "??"};
	if (line <= 0 || !file.n)
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (str_ends(file, str_from(ends[i])))
			return true;
	return false;
}

/* "file.py(12): function", as torch.profiler writes it; of C++ "<native file.cpp(12)>: function". A ';' would end the frame. */
static uint32_t memory_snapshot_frame_text(struct memory_snapshot *m, const struct py *frame)
{
	struct str file = memory_snapshot_str(frame, "filename"), name = memory_snapshot_str(frame, "name");
	int64_t line = memory_snapshot_i64(frame, "line", 0);
	struct buf b = {0};
	if (!memory_snapshot_is_native(file, line))
		buf_printf(&b, STR_FMT "(%lld): " STR_FMT, STR_ARG(file), (long long)line, STR_ARG(name));
	else if (line > 0)
		buf_printf(&b, "<native " STR_FMT "(%lld)>: " STR_FMT, STR_ARG(file), (long long)line, STR_ARG(name));
	else
		buf_printf(&b, "<native>: " STR_FMT, STR_ARG(name));
	b.n = b.n < MEMORY_SNAPSHOT_FRAME ? b.n : MEMORY_SNAPSHOT_FRAME;
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] == ';')
			b.p[i] = ',';
	uint32_t id = intern_str(&m->b.p->strings, buf_view(&b));
	buf_release(&b);
	return id;
}

static uint32_t memory_snapshot_frame(struct memory_snapshot *m, const struct py *frame)
{
	uint32_t before = m->frames.n, id = intern_put(&m->frames, (const char *)&frame, sizeof frame);
	MEM_GROW(m->frame_text, m->cap_frames, id + 1);
	if (m->frames.n > before)
		m->frame_text[id] = memory_snapshot_frame_text(m, frame);
	return m->frame_text[id];
}

/* The stack of these frames, innermost first; 0 = none. */
static uint32_t memory_snapshot_stack(struct memory_snapshot *m, const uint32_t *frame, uint32_t n)
{
	uint32_t before = m->stacks.n, id = intern_put(&m->stacks, (const char *)frame, n * sizeof *frame);
	struct profile *p = m->b.p;
	struct buf b = {0};
	MEM_GROW(m->stack_text, m->cap_stacks, id + 1);
	if (m->stacks.n == before)
		return n ? m->stack_text[id] : 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			buf_char(&b, ';');
		buf_str(&b, profile_str(p, frame[i]));
	}
	m->stack_text[id] = 0;
	m->stack_bytes += b.n;
	if (m->stack_bytes <= MEMORY_SNAPSHOT_STACKS)
		m->stack_text[id] = intern_str(&p->strings, buf_view(&b));
	else
		diag_add(&p->diags, "too-many-stacks", DIAG_LOSS, -1, "the snapshot's stacks are longer than 1 GB in all: further ones are left out");
	buf_release(&b);
	return m->stack_text[id];
}

static uint32_t memory_snapshot_frames(struct memory_snapshot *m, const struct py *frames)
{
	uint32_t frame[MEMORY_SNAPSHOT_FRAMES], n = 0;
	if (!frames || !frames->n)
		return 0;
	uint32_t before = m->lists.n, id = intern_put(&m->lists, (const char *)&frames->item, sizeof frames->item);
	MEM_GROW(m->list_text, m->cap_lists, id + 1);
	if (m->lists.n == before)
		return m->list_text[id];
	for (uint32_t i = 0; i < frames->n && n < MEMORY_SNAPSHOT_FRAMES; i++)
		if (frames->item[i]->type == PY_DICT)
			frame[n++] = memory_snapshot_frame(m, frames->item[i]);
	return (m->list_text[id] = memory_snapshot_stack(m, frame, n));
}

/* ---- arguments of an entry ---- */

struct memory_snapshot_args {
	struct profile *p;
	struct arg_pair pair[8];
	unsigned n;
};

static void memory_snapshot_put(struct memory_snapshot_args *a, const char *key, uint32_t value, bool is_string)
{
	assert(a->n < sizeof a->pair / sizeof a->pair[0]);
	if (value)
		a->pair[a->n++] = (struct arg_pair){intern_str(&a->p->strings, str_from(key)), value, is_string};
}

static void memory_snapshot_put_i64(struct memory_snapshot_args *a, const char *key, int64_t v)
{
	struct buf b = {0};
	buf_i64(&b, v);
	if (v != ID_NONE)
		memory_snapshot_put(a, key, intern_str(&a->p->strings, buf_view(&b)), false);
	buf_release(&b);
}

/* Stack, stream, and what torch.compile and the user say of it. */
static void memory_snapshot_put_entry(struct memory_snapshot *m, struct memory_snapshot_args *a, const struct py *entry)
{
	struct str compiled = memory_snapshot_str(entry, "compile_context");
	a->p = m->b.p;
	memory_snapshot_put(a, arg_key_text[ARG_CALL_STACK], memory_snapshot_frames(m, memory_snapshot_list(entry, "frames")), true);
	memory_snapshot_put_i64(a, "Stream", memory_snapshot_i64(entry, "stream", ID_NONE));
	if (!str_eq(compiled, STR("N/A")))
		memory_snapshot_put(a, "Compile context", intern_str(&a->p->strings, compiled), true);
	memory_snapshot_put(a, "User metadata", intern_str(&a->p->strings, memory_snapshot_str(entry, "user_metadata")), true);
}

/* ---- segments and blocks ---- */

static struct memory_snapshot_device *memory_snapshot_device(struct memory_snapshot *m, int64_t device)
{
	return device >= 0 && device < MEMORY_SNAPSHOT_DEVICES ? &m->device[device] : NULL;
}

/* A block without `frames` has them in the first entry of its `history`, the newest (torch 2.0 and before); its size as asked for, too. */
static const struct py *memory_snapshot_history(const struct py *block)
{
	const struct py *history = memory_snapshot_list(block, "history");
	return history && history->n ? history->item[0] : NULL;
}

static uint32_t memory_snapshot_stack_args(struct memory_snapshot *m, const struct py *frames)
{
	struct memory_snapshot_args a = {.p = m->b.p};
	memory_snapshot_put(&a, arg_key_text[ARG_CALL_STACK], memory_snapshot_frames(m, frames), true);
	return build_args(&m->b, a.pair, a.n);
}

static bool memory_snapshot_is_allocated(struct str state) { return str_eq(state, STR("active_allocated")); }

/* *at: where the block begins, if it does not say so; goes to its end. */
static void memory_snapshot_put_block(struct memory_snapshot *m, const struct py *block, uint32_t segment, int64_t *at)
{
	const struct py *was = memory_snapshot_history(block), *frames = memory_snapshot_list(block, "frames");
	struct str state = memory_snapshot_str(block, "state");
	struct memory_block_row r = {.segment = (int32_t)segment, .addr = memory_snapshot_addr(block, "address"), .bytes = memory_snapshot_size(block, "size")};
	if (r.bytes < 0 || !state.n) {
		memory_snapshot_damaged(m, "a block");
		*at = ID_NONE;
		return;
	}
	if (r.addr == ID_NONE)
		r.addr = *at;
	if (r.addr == ID_NONE || __builtin_add_overflow(r.addr, r.bytes, at))
		*at = ID_NONE;
	r.requested_bytes = memory_snapshot_size(block, "requested_size");
	if (r.requested_bytes < 0)
		r.requested_bytes = memory_snapshot_size(was, "real_size");
	if (r.requested_bytes < 0 || r.requested_bytes > r.bytes || !str_starts(state, STR("active"))) /* a free block has that of its last use */
		r.requested_bytes = ID_NONE;
	r.state = intern_str(&m->b.p->strings, state);
	r.args = memory_snapshot_stack_args(m, frames && frames->n ? frames : memory_snapshot_list(was, "frames"));
	build_memory_block(&m->b, &r);
}

/* What a segment does not say of itself, its blocks say. */
static void memory_snapshot_sum_blocks(const struct py *blocks, uint32_t most, struct memory_segment_row *r)
{
	int64_t allocated = 0, active = 0, requested = 0;
	for (uint32_t i = 0; i < blocks->n && i < most; i++) {
		const struct py *x = blocks->item[i];
		struct str state = memory_snapshot_str(x, "state");
		int64_t bytes = memory_snapshot_size(x, "size"), asked = memory_snapshot_size(x, "requested_size");
		if (bytes < 0 || !str_starts(state, STR("active")) || bytes > r->total_bytes - active)
			continue;
		if (asked < 0)
			asked = memory_snapshot_size(memory_snapshot_history(x), "real_size");
		active += bytes;
		allocated += memory_snapshot_is_allocated(state) ? bytes : 0;
		requested += asked >= 0 && asked <= bytes ? asked : bytes;
	}
	r->active_bytes = r->active_bytes < 0 ? active : r->active_bytes;
	r->allocated_bytes = r->allocated_bytes < 0 ? allocated : r->allocated_bytes;
	r->requested_bytes = r->requested_bytes < 0 ? requested : r->requested_bytes;
}

/* "(0, 0)" */
static uint32_t memory_snapshot_pool(struct memory_snapshot *m, const struct py *segment)
{
	const struct py *id = memory_snapshot_list(segment, "segment_pool_id");
	struct buf b = {0};
	if (id && id->n == 2 && id->item[0]->type == PY_INT && id->item[1]->type == PY_INT)
		buf_printf(&b, "(%lld, %lld)", (long long)id->item[0]->i, (long long)id->item[1]->i);
	uint32_t text = intern_str(&m->b.p->strings, buf_view(&b));
	buf_release(&b);
	return text;
}

static void memory_snapshot_put_segment(struct memory_snapshot *m, const struct py *segment)
{
	const struct py *blocks = memory_snapshot_list(segment, "blocks"), *expandable = memory_snapshot_get(segment, "is_expandable");
	int64_t device = memory_snapshot_i64(segment, "device", 0);
	struct memory_snapshot_device *d = memory_snapshot_device(m, device);
	struct memory_segment_row r = {
		.addr = memory_snapshot_addr(segment, "address"), .total_bytes = memory_snapshot_size(segment, "total_size"),
		.allocated_bytes = memory_snapshot_size(segment, "allocated_size"), .active_bytes = memory_snapshot_size(segment, "active_size"),
		.requested_bytes = memory_snapshot_size(segment, "requested_size"), .stream = memory_snapshot_i64(segment, "stream", ID_NONE),
		.device = (int32_t)device, .expandable = expandable && expandable->type == PY_BOOL && expandable->i,
	};
	if (r.total_bytes < 0 || !d || !blocks || r.allocated_bytes > r.total_bytes || r.active_bytes > r.total_bytes || r.requested_bytes > r.total_bytes) {
		memory_snapshot_damaged(m, "a segment");
		return;
	}
	memory_snapshot_sum_blocks(blocks, m->most_rows - m->rows, &r);
	r.type = intern_str(&m->b.p->strings, memory_snapshot_str(segment, "segment_type"));
	r.pool = memory_snapshot_pool(m, segment);
	r.args = memory_snapshot_stack_args(m, memory_snapshot_list(segment, "frames"));
	uint32_t row = build_memory_segment(&m->b, &r);
	int64_t at = r.addr;
	if (row == ROW_NONE) {
		m->rows += blocks->n < m->most_rows - m->rows ? blocks->n : m->most_rows - m->rows;
		return;
	}
	d->active += r.active_bytes; /* the sum of all total_bytes is limited */
	d->reserved += r.total_bytes;
	for (uint32_t i = 0; i < blocks->n && memory_snapshot_row(m); i++)
		memory_snapshot_put_block(m, blocks->item[i], row, &at);
}

/* ---- the trace ---- */

/* How an entry changes what is reserved: 1, -1, 0. */
static int memory_snapshot_reserves(struct str action)
{
	if (str_eq(action, STR("segment_alloc")) || str_eq(action, STR("segment_map")))
		return 1;
	return str_eq(action, STR("segment_free")) || str_eq(action, STR("segment_unmap")) ? -1 : 0;
}

/* What it adds to the bytes in blocks. */
static int64_t memory_snapshot_adds(struct str action, int64_t bytes)
{
	if (str_eq(action, STR("alloc")))
		return bytes;
	return str_eq(action, STR("free_completed")) ? -bytes : 0;
}

static void memory_snapshot_sum(int64_t *sum, int64_t v, bool *unknown)
{
	enum { FAR = 60 };
	*sum += v; /* both at most 2^60 */
	if (*sum > 1ll << FAR || *sum < -(1ll << FAR)) {
		*unknown = true;
		*sum = 0;
	}
}

/* What the trace of a device changes in all: by it the totals at its beginning follow from those at its end. */
static void memory_snapshot_sum_trace(const struct memory_snapshot *m, const struct py *trace, struct memory_snapshot_device *d)
{
	for (uint32_t i = 0; i < trace->n && i < m->most_rows - m->rows; i++) {
		struct str action = memory_snapshot_str(trace->item[i], "action");
		int64_t bytes = memory_snapshot_size(trace->item[i], "size");
		if (bytes < 0)
			continue;
		memory_snapshot_sum(&d->net, memory_snapshot_adds(action, bytes), &d->unknown);
		memory_snapshot_sum(&d->net_reserved, bytes * memory_snapshot_reserves(action), &d->unknown);
	}
	d->unknown |= m->why || !m->has_segments;
	d->active -= d->net;
	d->reserved -= d->net_reserved;
	if (!d->unknown && (d->active < 0 || d->reserved < 0)) {
		d->unknown = true;
		diag_add(&m->b.p->diags, "totals-unknown", DIAG_NOTE, -1, "the snapshot's trace allocates more than is held at its end: how much the allocator held meanwhile is not known");
	}
}

/* In ns. Snapshots of torch before 2.2 have no times: their entries stand 1 us apart. */
static int64_t memory_snapshot_time(struct memory_snapshot *m, const struct py *entry)
{
	static const int64_t FAR_US = (1ll << 62) / 1000;
	int64_t us = memory_snapshot_i64(entry, "time_us", INT64_MIN);
	if (us == INT64_MIN) {
		m->no_times = true;
		us = m->n_entries;
	}
	m->n_entries++;
	if (us > -FAR_US && us < FAR_US)
		return us * 1000;
	diag_add(&m->b.p->diags, "bad-time", DIAG_REPAIR, -1, "time_us of an entry is no time: it has no place in time");
	return 0;
}

static void memory_snapshot_put_event(struct memory_snapshot *m, const struct py *entry, uint32_t track, int16_t device, struct memory_snapshot_device *d)
{
	struct profile *p = m->b.p;
	struct str action = memory_snapshot_str(entry, "action");
	int64_t bytes = memory_snapshot_size(entry, "size"), time = memory_snapshot_time(m, entry), addr = memory_snapshot_addr(entry, "addr"), change;
	bool failed = str_eq(action, STR("oom")), event = failed || memory_snapshot_adds(action, 1), known;
	struct memory_snapshot_args a = {0};
	if (bytes < 0 && (event || memory_snapshot_reserves(action))) {
		memory_snapshot_damaged(m, "an entry of the trace");
		return;
	}
	uint16_t cat = build_cat(&m->b, intern_str(&p->strings, action));
	build_count(&m->b, cat, 'i', 1);
	memory_snapshot_put_entry(m, &a, entry);
	change = memory_snapshot_adds(action, bytes);
	d->active += change;
	d->reserved += bytes * memory_snapshot_reserves(action);
	known = !d->unknown && d->active >= 0 && d->reserved >= 0;
	if (event) {
		struct memory_row r = {.time_ns = time, .addr = addr, .bytes = failed ? bytes : change, .total_allocated = known ? d->active : ID_NONE,
		                       .total_reserved = known ? d->reserved : ID_NONE, .track = track, .name = intern_str(&p->strings, failed ? STR("[OutOfMemory]") : STR("[memory]")),
		                       .cat = cat, .device_type = MEMORY_SNAPSHOT_CUDA, .device_id = device, .args = build_args(&m->b, a.pair, a.n)};
		build_memory(&m->b, &r);
		return;
	}
	memory_snapshot_put_i64(&a, "Addr", addr);
	memory_snapshot_put_i64(&a, "Bytes", bytes < 0 ? ID_NONE : bytes);
	memory_snapshot_put_i64(&a, "Device Id", device);
	build_mark(&m->b, time, intern_str(&p->strings, action), track, build_args(&m->b, a.pair, a.n), cat, 'i');
}

static void memory_snapshot_put_trace(struct memory_snapshot *m, const struct py *trace, uint32_t device)
{
	struct memory_snapshot_device *d = memory_snapshot_device(m, device);
	if (!trace->n)
		return;
	if (!d) {
		memory_snapshot_damaged(m, "the trace of a device");
		return;
	}
	struct buf name = {0};
	buf_printf(&name, "device %u", device);
	uint32_t track = build_track(&m->b, STR("allocator"), buf_view(&name));
	buf_release(&name);
	memory_snapshot_sum_trace(m, trace, d);
	for (uint32_t i = 0; i < trace->n && memory_snapshot_row(m); i++) {
		const struct py *entry = trace->item[i];
		if (entry->type == PY_DICT && memory_snapshot_str(entry, "action").n)
			memory_snapshot_put_event(m, entry, track, (int16_t)device, d);
		else
			memory_snapshot_damaged(m, "an entry of the trace");
	}
}

/* ---- annotations ---- */

/* Ranges of the program, by their beginnings and ends: on which thread they were is not written down, and what lies between them was not all recorded. */
static void memory_snapshot_put_annotations(struct memory_snapshot *m, const struct py *list)
{
	struct profile *p = m->b.p;
	if (!list || !list->n)
		return;
	uint32_t track = build_track(&m->b, STR("allocator"), STR("annotations"));
	uint16_t cat = build_cat(&m->b, intern_str(&p->strings, STR("external_annotation")));
	for (uint32_t i = 0; i < list->n && memory_snapshot_row(m); i++) {
		const struct py *x = list->item[i];
		struct memory_snapshot_args a = {.p = p};
		if (x->type != PY_DICT) {
			memory_snapshot_damaged(m, "an annotation");
			continue;
		}
		memory_snapshot_put(&a, "Stage", intern_str(&p->strings, memory_snapshot_str(x, "stage")), true);
		memory_snapshot_put_i64(&a, "Device Id", memory_snapshot_i64(x, "device", ID_NONE));
		build_count(&m->b, cat, 'i', 1);
		build_mark(&m->b, memory_snapshot_time(m, x), intern_str(&p->strings, memory_snapshot_str(x, "name")), track, build_args(&m->b, a.pair, a.n), cat, 'i');
	}
}

/* ---- the whole ---- */

/* Settings as JSON, without those that have parts or a fraction. */
static void memory_snapshot_put_settings(struct memory_snapshot *m)
{
	const struct py *settings = memory_snapshot_get(m->root, "allocator_settings");
	struct profile *p = m->b.p;
	struct buf t = {0};
	if (!settings || settings->type != PY_DICT || settings->n > MEMORY_SNAPSHOT_KEYS)
		return;
	buf_char(&t, '{');
	for (const struct py *x = settings->first; x; x = x->next) {
		if (!x->key || x->key->type != PY_STR || (x->type != PY_STR && x->type != PY_INT && x->type != PY_BOOL))
			continue;
		if (t.n > 1)
			buf_cstr(&t, ", ");
		json_put_string(&t, x->key->s);
		buf_cstr(&t, ": ");
		if (x->type == PY_STR)
			json_put_string(&t, x->s);
		else if (x->type == PY_BOOL)
			buf_cstr(&t, x->i ? "true" : "false");
		else
			buf_i64(&t, x->i);
	}
	buf_char(&t, '}');
	build_meta(&m->b, intern_str(&p->strings, STR("allocator_settings")), intern_str(&p->strings, buf_view(&t)), false);
	buf_release(&t);
}

static void memory_snapshot_release(struct memory_snapshot *m)
{
	intern_release(&m->frames);
	intern_release(&m->lists);
	intern_release(&m->stacks);
	mem_free(m->frame_text);
	mem_free(m->list_text);
	mem_free(m->stack_text);
	mem_free(m->device);
	buf_release(&m->bytes);
	arena_release(&m->arena);
}

static int memory_snapshot_parse(struct memory_snapshot *m, struct source *s, struct err *e)
{
	bool end = false;
	while (!end && m->bytes.n < MEMORY_SNAPSHOT_BYTES)
		buf_str(&m->bytes, source_next(s, (struct str){NULL, 0}, &end));
	m->root = pickle_parse_graph(buf_view(&m->bytes), &m->arena, &m->at, &m->why);
	if (source_error(s))
		m->why = source_error(s);
	if (!end && !m->why)
		m->why = "it is longer than 1 GB";
	bool list = m->root && m->root->type == PY_LIST; /* torch.cuda.memory_snapshot(): segments alone */
	if (!list && !memory_snapshot_list(m->root, "segments") && !memory_snapshot_list(m->root, "device_traces"))
		return err_set(e, ERR_FORMAT, "%s: byte %zu: %s; a memory snapshot of torch was expected", source_path(s), m->at, m->why ? m->why : "neither segments nor device_traces");
	m->has_segments = list || memory_snapshot_list(m->root, "segments");
	return 0;
}

static void memory_snapshot_put_all(struct memory_snapshot *m)
{
	const struct py *segments = memory_snapshot_list(m->root, m->root->type == PY_LIST ? NULL : "segments"), *traces = memory_snapshot_list(m->root, "device_traces");
	struct profile *p = m->b.p;
	if (m->why)
		diag_add(&p->diags, "damaged-pickle", DIAG_LOSS, (int64_t)m->at, "the snapshot is read up to byte %zu: %s", m->at, m->why);
	for (uint32_t i = 0; segments && i < segments->n && memory_snapshot_row(m); i++)
		memory_snapshot_put_segment(m, segments->item[i]);
	for (uint32_t i = 0; traces && i < traces->n && memory_snapshot_row(m); i++)
		if (memory_snapshot_list(traces->item[i], NULL))
			memory_snapshot_put_trace(m, traces->item[i], i);
	memory_snapshot_put_annotations(m, memory_snapshot_list(m->root, "external_annotations"));
	memory_snapshot_put_settings(m);
	if (m->no_times) {
		p->durations_only = true;
		diag_add(&p->diags, "no-times", DIAG_NOTE, -1, "the snapshot's trace has no times, as of torch before 2.2: its entries stand in their order, 1 us apart");
	}
}

static int memory_snapshot_read(struct source *s, struct profile *p, struct err *e)
{
	struct memory_snapshot m = {.device = NEW_ARRAY(MEMORY_SNAPSHOT_DEVICES, struct memory_snapshot_device)};
	intern_init(&m.frames);
	intern_init(&m.lists);
	intern_init(&m.stacks);
	if (memory_snapshot_parse(&m, s, e) < 0) {
		memory_snapshot_release(&m);
		return -1;
	}
	build_init(&m.b, p);
	p->input_bytes = m.bytes.n;
	m.most_rows = (uint32_t)(m.bytes.n / MEMORY_SNAPSHOT_ROW) + 1;
	memory_snapshot_put_all(&m);
	int rc = build_finish(&m.b, e);
	memory_snapshot_release(&m);
	return rc;
}

static int memory_snapshot_sniff(struct str head, const char *path, struct err *e)
{
	(void)path;
	(void)e;
	bool pickle = head.n && ((unsigned char)*head.p == 0x80 || *head.p == '(' || *head.p == '}' || *head.p == ']');
	if (!pickle)
		return 0;
	bool segments = str_has(head, STR("total_size")) && str_has(head, STR("allocated_size"));
	bool traces = str_has(head, STR("device_traces")) || (str_has(head, STR("action")) && str_has(head, STR("addr")));
	return segments || (traces && str_has(head, STR("segments"))) ? 95 : 0;
}

const struct input input_memory_snapshot = {
	.name = "memory-snapshot",
	.help = "Memory snapshots of torch (`torch.cuda.memory._dump_snapshot`): the allocator's segments and blocks, and its allocations and frees with their stacks; the pickle is read "
	        "as data, nothing in it is run",
	.sniff = memory_snapshot_sniff,
	.read = memory_snapshot_read,
	.job_look = "leaks",
};
