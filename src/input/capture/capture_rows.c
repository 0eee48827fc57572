/* Which record becomes what, and those that become one row. */
#include "base/search.h"
#include "input/capture/capture.h"

#include <inttypes.h>
#include <stdio.h>

static void capture_rows_damaged(struct capture *c, const char *what)
{
	diag_add(&c->p->diags, "damaged-record", DIAG_LOSS, c->offset, "%s: %s", c->name, what);
}

/* ---- kept records ---- */

static void capture_rows_string(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_string *s = (const struct wire_string *)h;
	if (s->bytes > bytes - sizeof *s || s->bytes > WIRE_MAX_STRING || !h->id) {
		capture_rows_damaged(c, "a text that is longer than its record, or has no number");
		return;
	}
	struct str text = arena_str(&c->bytes, (struct str){(const char *)(s + 1), s->bytes});
	MEM_GROW(c->text, c->cap_texts, c->n_texts + 1);
	c->text[c->n_texts] = (struct capture_text){.s = text, .cut = h->flags & WIRE_CUT};
	idmap_put(&c->text_at, h->id, c->n_texts++);
	if (h->flags & WIRE_CUT) {
		c->n_cut++;
		capture_text_cut(c);
	}
}

static void capture_rows_thread_name(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	idmap_put(h->flags & WIRE_BY_SYSTEM ? &c->system_name : &c->thread_name, ((const struct wire_thread_name *)h)->thread, capture_string(c, h->id));
}

static void domain(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	static const char *const api[] = {"nvtx", "itt", "opscope"};
	const struct wire_domain *d = (const struct wire_domain *)h;
	if (!h->id || h->id >= CAPTURE_DOMAINS) {
		capture_rows_damaged(c, "a domain with a number that there cannot be");
		return;
	}
	struct capture_domain *to = &c->domain[h->id];
	struct str name = capture_text(c, d->name);
	to->name = name.n ? capture_string(c, d->name) : intern_str(&c->p->strings, str_from(api[h->flags < 3 ? h->flags : 0]));
	to->cat = build_cat(&c->b, to->name);
}

static void category(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_category *k = (const struct wire_category *)h;
	int64_t key[2] = {k->domain, h->id};
	uint32_t at = intern_put(&c->categories, (const char *)key, sizeof key);
	MEM_GROW(c->category_name, c->cap_categories, at + 1);
	c->category_name[at] = capture_string(c, k->name);
}

/* How the clocks moved against each other since the record before, or since the beginning. */
static void capture_rows_anchor(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_anchor now = ((const struct wire_anchor_record *)h)->anchor, before = c->anchor, *first = &c->file->h.first;
	int64_t wall, ran, moved, after;
	if (__builtin_sub_overflow(now.realtime_ns, before.realtime_ns, &wall) || __builtin_sub_overflow(now.monotonic_raw_ns, before.monotonic_raw_ns, &ran) ||
	    __builtin_sub_overflow(wall, ran, &moved) || __builtin_sub_overflow(now.monotonic_raw_ns, first->monotonic_raw_ns, &after) || moved == INT64_MIN ||
	    ran < 0)
		return;
	c->anchor = now;
	if ((moved < 0 ? -moved : moved) > ran / 2000 + WIRE_CLOCK_STEP)
		diag_add(&c->p->diags, "clock-moved", DIAG_REPAIR, c->offset,
		         "%s: the machine's clock was set while it recorded: %" PRId64 " ns away from a steady one after %" PRId64 " ns; times across that moment are wrong by it",
		         c->name, moved, after);
}

static void process_switch(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	static const char *const why[] = {"", "--range", "--steps", "cudaProfilerStart/Stop", "--delay", "--duration", "a pause", "--steps"};
	if (h->id && h->id < sizeof why / sizeof why[0])
		diag_add(&c->p->diags, "recorded-in-part", DIAG_NOTE, -1, "only a part of the run was wanted and recorded, by %s", why[h->id]);
	if (h->flags & 1)
		return;
	MEM_GROW(c->off, c->cap_off, c->n_off + 1);
	int64_t at = ((const struct wire_switch *)h)->time_ns;
	uint32_t i = c->n_off++;
	for (; i && c->off[i - 1].time_ns > at && i + 8 > c->n_off; i--) /* two threads may have written theirs in the other order */
		c->off[i] = c->off[i - 1];
	c->off[i] = (struct capture_off){at, h->id};
}

static void mapping(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_mapping *m = (const struct wire_mapping *)h;
	MEM_PUSH(c->mapping, c->n_mappings, c->cap_mappings, *m);
}

/* ---- events ---- */

static void thread_switch(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	int64_t at = ((const struct wire_switch *)h)->time_ns;
	if (h->flags & 1)
		return;
	if (at)
		capture_close_all(c, at, h->id);
	else
		capture_close_later(c);
}

static void counter(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_counter *k = (const struct wire_counter *)h;
	struct arg_pair pair[2];
	unsigned n = 1;
	char text[40];
	double d;
	int64_t at;
	if (!capture_time(c, k->time_ns, &at))
		return;
	memcpy(&d, &k->value, 8);
	bool finite = d == d && d - d == 0;
	if (h->flags == WIRE_F64)
		snprintf(text, sizeof text, "%.17g", d);
	else
		snprintf(text, sizeof text, h->flags == WIRE_U64 ? "%" PRIu64 : "%" PRId64, k->value);
	pair[0] = (struct arg_pair){intern_str(&c->p->strings, str_from(arg_key_text[ARG_COUNTER_VALUE])), intern_str(&c->p->strings, str_from(text)), h->flags == WIRE_F64 && !finite};
	if (k->unit)
		pair[n++] = (struct arg_pair){intern_str(&c->p->strings, STR("unit")), capture_string(c, k->unit), 1};
	uint16_t cat = k->domain && k->domain < CAPTURE_DOMAINS && c->domain[k->domain].name ? c->domain[k->domain].cat : capture_cat(c, "counter");
	build_count(&c->b, cat, 'C', 1);
	build_mark(&c->b, at, capture_string(c, h->id), capture_track(c, c->thread.tid, false), build_args(&c->b, pair, n), cat, 'C');
}

static void capture_rows_memory(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_memory *m = (const struct wire_memory *)h;
	struct memory_row r = {.addr = m->address, .bytes = m->bytes, .total_allocated = m->allocated, .total_reserved = m->reserved,
	                       .name = intern_str(&c->p->strings, STR("[memory]")), .cat = capture_cat(c, "memory"), .device_type = m->device_type,
	                       .device_id = m->device_id};
	build_count(&c->b, r.cat, 'i', 1);
	if (!capture_time(c, m->time_ns, &r.time_ns))
		return;
	r.track = capture_track(c, c->thread.tid, false);
	build_memory(&c->b, &r);
}

/* "library.so+0x1234", or the address itself where no library is known to be there. */
static void frame(struct capture *c, struct buf *to, uint64_t f)
{
	if (f & WIRE_FRAME_TEXT) {
		buf_str(to, capture_text(c, (uint32_t)f));
		return;
	}
	uint32_t from = FIRST_WHERE(i, 0, c->n_mappings, c->mapping[i].start > f); /* sorted by start */
	const struct wire_mapping *m = from ? &c->mapping[from - 1] : NULL;
	struct str path = m && f < m->end ? capture_text(c, m->head.id) : (struct str){0};
	while (path.n && memchr(path.p, '/', path.n)) {
		const char *slash = memchr(path.p, '/', path.n);
		path.n -= (size_t)(slash + 1 - path.p);
		path.p = slash + 1;
	}
	if (path.n)
		buf_printf(to, STR_FMT "+0x%" PRIx64, STR_ARG(path), m->offset + (f - m->start));
	else
		buf_printf(to, "0x%" PRIx64, f);
}

static void cpu_sample(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_cpu_sample *s = (const struct wire_cpu_sample *)h;
	uint32_t n = s->frames;
	uint64_t f;
	int64_t at;
	if (n > WIRE_MAX_FRAMES || n > (bytes - sizeof *s) / 8) {
		capture_rows_damaged(c, "a stack with more frames than its record holds");
		return;
	}
	if (!capture_time(c, s->time_ns, &at))
		return;
	c->samples++;
	if (h->flags & WIRE_CUT)
		diag_add(&c->p->diags, "stack-cut", DIAG_NOTE, c->offset,
		         "%s: the outermost callers of a stack are missing: there were more than %d, or the next one lay outside of all code", c->name, WIRE_MAX_FRAMES);
	enum { STACK_MOST = 1 << 20, STACK_SHORT = 4096 };
	struct buf *b = &c->scratch;
	size_t innermost = 0, most = c->room ? STACK_MOST : STACK_SHORT;
	buf_clear(b);
	for (uint32_t i = 0; i < n; i++) {
		if (b->n > most) {
			diag_add(&c->p->diags, "stack-out-of-proportion", DIAG_LOSS, c->offset, "%s: a stack whose frames have very long texts: its outer ones are left out", c->name);
			break;
		}
		if (i)
			buf_char(b, ';');
		memcpy(&f, (const char *)(s + 1) + 8 * (size_t)i, 8);
		frame(c, b, f);
		innermost = i ? innermost : b->n;
	}
	char period[16];
	snprintf(period, sizeof period, "%u", s->period_us);
	uint32_t name = capture_made(c, (struct str){n ? b->p : "", innermost});
	struct arg_pair pair[2] = {{intern_str(&c->p->strings, str_from(arg_key_text[ARG_CALL_STACK])), capture_made(c, (struct str){n ? b->p : "", b->n}), 1},
	                           {intern_str(&c->p->strings, str_from(arg_key_text[ARG_SAMPLE_PERIOD])), intern_str(&c->p->strings, str_from(period)), 0}};
	uint16_t cat = capture_cat(c, "cpu_sample");
	build_count(&c->b, cat, 'P', 1);
	build_mark(&c->b, at, name, capture_track(c, h->id, false), build_args(&c->b, pair, 2), cat, 'P');
}

/* By type: the least length, and what to do with it. */
#define ROW(type, structure, does) [type] = {sizeof(struct structure), does}
static const struct handler {
	uint32_t bytes;
	capture_handler *does;
} kept[WIRE_TYPES] = {
	ROW(WIRE_STRING, wire_string, capture_rows_string),
	ROW(WIRE_META, wire_meta, capture_meta),
	ROW(WIRE_NOTE, wire_note, capture_note),
	ROW(WIRE_THREAD_NAME, wire_thread_name, capture_rows_thread_name),
	ROW(WIRE_DOMAIN, wire_domain, domain),
	ROW(WIRE_CATEGORY, wire_category, category),
	ROW(WIRE_RESOURCE, wire_resource, capture_resource),
	ROW(WIRE_ANCHOR, wire_anchor_record, capture_rows_anchor),
	ROW(WIRE_SWITCH, wire_switch, process_switch),
	ROW(WIRE_DEVICE, wire_device, capture_device),
	ROW(WIRE_CONTEXT, wire_context, capture_context),
	ROW(WIRE_STREAM, wire_stream, capture_stream),
	ROW(WIRE_MAPPING, wire_mapping, mapping),
}, events[WIRE_TYPES] = {
	ROW(WIRE_SWITCH, wire_switch, thread_switch),
	ROW(WIRE_PUSH, wire_range, capture_range),
	ROW(WIRE_POP, wire_pop, capture_pop),
	ROW(WIRE_START, wire_range, capture_range),
	ROW(WIRE_END, wire_end, capture_end),
	ROW(WIRE_MARK, wire_range, capture_range),
	ROW(WIRE_COUNTER, wire_counter, counter),
	ROW(WIRE_STEP, wire_step, capture_step),
	ROW(WIRE_MEMORY, wire_memory, capture_rows_memory),
	ROW(WIRE_ARG, wire_arg, capture_arg_record),
	ROW(WIRE_KERNEL, wire_kernel, capture_kernel),
	ROW(WIRE_COPY, wire_copy, capture_copy),
	ROW(WIRE_SET, wire_set, capture_set),
	ROW(WIRE_API, wire_api_call, capture_api),
	ROW(WIRE_SYNC, wire_sync, capture_sync),
	ROW(WIRE_CUDA_EVENT, wire_cuda_event, capture_cuda_event),
	ROW(WIRE_OVERHEAD, wire_overhead, capture_overhead),
	ROW(WIRE_GRAPH, wire_graph, capture_graph),
	ROW(WIRE_GRAPH_NODE, wire_graph_node, capture_graph_node),
	ROW(WIRE_DEVICE_MEMORY, wire_device_memory, capture_device_memory),
	ROW(WIRE_GPU_SAMPLE, wire_gpu_sample, capture_gpu_sample),
	ROW(WIRE_CPU_SAMPLE, wire_cpu_sample, cpu_sample),
};

static void capture_rows_handle(struct capture *c, const struct handler *table, const struct wire_head *h, uint32_t bytes)
{
	const struct handler *r = h->type < WIRE_TYPES ? &table[h->type] : NULL;
	if (!r || !r->does) {
		diag_add(&c->p->diags, "unknown-record", DIAG_NOTE, c->offset, "%s: a record of type %u, which this program does not know: skipped", c->name, h->type);
		return;
	}
	if (bytes < r->bytes) {
		capture_rows_damaged(c, "a record that is too short for its type");
		return;
	}
	r->does(c, h, bytes);
}

void capture_kept(struct capture *c, const struct wire_head *h, uint32_t bytes) { capture_rows_handle(c, kept, h, bytes); }
void capture_event(struct capture *c, const struct wire_head *h, uint32_t bytes) { capture_rows_handle(c, events, h, bytes); }
