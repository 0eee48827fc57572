#include "analysis/steps/slice.h"

#include "analysis/analysis.h"
#include "analysis/time/interval.h"
#include "analysis/tree/op_instances.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/reuse.h"

#include <assert.h>
#include <sys/param.h>

/* Rows of one table that are in the part, and where each row of the whole is in it. */
struct kept {
	uint32_t *row, n;
	uint32_t *of;            /* row of the whole -> row of the part, ROW_NONE */
};

struct cutter {
	const struct profile *p;
	struct profile *part;
	const struct step_window *w;
	int64_t *root_ns;        /* span -> start of the outermost op around it */
	struct kept span, gpu;
};

static void kept_init(struct kept *k, uint32_t n)
{
	k->row = NEW_ARRAY(n, uint32_t);
	k->of = NEW_ARRAY(n, uint32_t);
	memset(k->of, 0xff, n * sizeof *k->of);
}

static void slice_keep(struct kept *k, uint32_t row)
{
	k->of[row] = k->n;
	k->row[k->n++] = row;
}

static void kept_release(struct kept *k)
{
	mem_free(k->row);
	mem_free(k->of);
}

static bool on_host(const struct cutter *c, int64_t time)
{
	return step_window_has_host(c->w, time);
}

/* Ops around an op stand before it. A call's op may stand behind it where times are coarse: then the call's own start counts. */
static void find_roots(struct cutter *c)
{
	const struct spans *s = &c->p->span;
	c->root_ns = NEW_ARRAY(s->rows.n, int64_t);
	for (uint32_t i = 0; i < s->rows.n; i++)
		c->root_ns[i] = s->op[i] < i ? c->root_ns[s->op[i]] : s->start_ns[i];
}

static bool is_context(const struct cutter *c, uint32_t i)
{
	uint8_t kind = c->p->span.kind[i];
	return (kind == SPAN_PYTHON || kind == SPAN_MARKER) && c->p->span.start_ns[i] < c->w->start_ns && span_end(c->p, i) > c->w->start_ns;
}

static void cut_spans(struct cutter *c)
{
	kept_init(&c->span, c->p->span.rows.n);
	for (uint32_t i = 0; i < c->p->span.rows.n; i++)
		if (c->p->span.kind[i] != SPAN_TRACE && (on_host(c, c->root_ns[i]) || is_context(c, i)))
			slice_keep(&c->span, i);
	rows_select(&c->part->span, &c->p->span, &store_tables[TABLE_span], c->span.row, c->span.n);
}

/* The op instance that it belongs to, where that is known, so that an instance is never divided. */
static uint32_t launcher_of(const struct cutter *c, uint32_t i)
{
	const struct gpu_ops *g = &c->p->gpu_op;
	const struct ops *o = c->p->passes_done & PASS_OPS ? c->p->ops : NULL;
	if (o && o->of_gpu[i] != ROW_NONE && o->instance[o->of_gpu[i]].span != ROW_NONE)
		return o->instance[o->of_gpu[i]].span;
	return g->op[i] != ROW_NONE ? g->op[i] : g->call[i];
}

static void cut_device(struct cutter *c)
{
	const struct gpu_ops *g = &c->p->gpu_op;
	kept_init(&c->gpu, g->rows.n);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t launcher = launcher_of(c, i);
		bool in = launcher != ROW_NONE ? on_host(c, c->root_ns[launcher])
		                               : step_window_has_device(c->w, g->start_ns[i]);
		if (in)
			slice_keep(&c->gpu, i);
	}
	rows_select(&c->part->gpu_op, g, &store_tables[TABLE_gpu_op], c->gpu.row, c->gpu.n);
}

/* Events at one point in time; `end`: behind the window. */
static void cut_points(struct cutter *c, enum store_table_id id, const int64_t *time, int64_t end)
{
	uint32_t n = ((const struct rows *)profile_table(c->p, id))->n, kept = 0, *row = NEW_ARRAY(n, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		if (time[i] >= c->w->start_ns && time[i] < end)
			row[kept++] = i;
	rows_select(profile_table(c->part, id), profile_table(c->p, id), &store_tables[id], row, kept);
	mem_free(row);
}

/* Rows of the table of counts: of each category that with most events, and by category and phase. */
struct count_rows {
	uint32_t *most, n_cats;
	struct idmap of_phase;
	uint64_t *events;        /* in the part, by row */
};

static struct count_rows find_count_rows(const struct counts *n, uint32_t n_cats)
{
	struct count_rows r = {NEW_ARRAY(n_cats, uint32_t), n_cats, {0}, NEW_ARRAY(n->rows.n, uint64_t)};
	memset(r.most, 0xff, n_cats * sizeof *r.most);
	idmap_init(&r.of_phase, 0, (int64_t)n_cats * 256, n->rows.n);
	for (uint32_t i = 0; i < n->rows.n; i++) {
		if (n->cat[i] >= n_cats)
			continue;
		uint32_t *most = &r.most[n->cat[i]];
		*most = *most == ROW_NONE || n->events[i] > n->events[*most] ? i : *most;
		idmap_put(&r.of_phase, (int64_t)n->cat[i] * 256 + n->phase[i], i);
	}
	return r;
}

/* Without phases they are those of the most events of their category. */
static void add_counts(struct count_rows *r, const uint16_t *cat, const uint8_t *phase, uint32_t rows)
{
	for (uint32_t i = 0; i < rows; i++) {
		if (cat[i] >= r->n_cats)
			continue;
		uint32_t row = phase ? idmap_get(&r->of_phase, (int64_t)cat[i] * 256 + phase[i]) : r->most[cat[i]];
		if (row != ROW_NONE)
			r->events[row]++;
	}
}

/* What the part holds, by category and phase: no more than the input's own count, which also counts metadata. */
static void cut_counts(struct cutter *c)
{
	const struct counts *n = &c->p->count;
	const struct profile *part = c->part;
	uint32_t kept = 0, *row = NEW_ARRAY(n->rows.n, uint32_t);
	struct count_rows r = find_count_rows(n, part->cat.rows.n);
	add_counts(&r, part->span.cat, NULL, part->span.rows.n);
	add_counts(&r, part->gpu_op.cat, NULL, part->gpu_op.rows.n);
	add_counts(&r, part->memory.cat, NULL, part->memory.rows.n);
	add_counts(&r, part->flow.cat, part->flow.phase, part->flow.rows.n);
	add_counts(&r, part->mark.cat, part->mark.phase, part->mark.rows.n);
	for (uint32_t i = 0; i < n->rows.n; i++)
		if (r.events[i])
			row[kept++] = i;
	rows_select(&c->part->count, n, &store_tables[TABLE_count], row, kept);
	for (uint32_t i = 0; i < kept; i++)
		c->part->count.events[i] = MIN(n->events[row[i]], r.events[row[i]]);
	idmap_release(&r.of_phase);
	mem_free(r.most);
	mem_free(r.events);
	mem_free(row);
}

static void cut_steps(struct cutter *c, int64_t first, int64_t last)
{
	const struct steps *all = c->p->steps;
	struct steps *s = ARENA_ARRAY(&c->part->arena, 1, struct steps);
	*s = *all;
	s->v = ARENA_ARRAY(&c->part->arena, all->n, struct step);
	s->n = s->edges = s->cut = 0;
	for (unsigned i = 0; i < all->n; i++)
		if (all->v[i].number >= first && all->v[i].number <= last) {
			struct step *x = &s->v[s->n++];
			*x = all->v[i];
			s->cut += x->cut;
			x->span = x->span == ROW_NONE ? ROW_NONE : c->span.of[x->span];
		}
	if (!s->n || s->v[0].start_ns != all->v[0].start_ns)
		memset(&s->before, 0, sizeof s->before);
	s->total = s->n;
	c->part->steps = s;
	c->part->passes_done |= PASS_STEPS;
}

/* Device time of an instance of which not all is in the part. */
static int64_t busy_ns(const struct profile *p, const uint32_t *gpu, uint32_t n)
{
	struct intervals v = {0};
	for (uint32_t i = 0; i < n; i++)
		intervals_add(&v, p->gpu_op.start_ns[gpu[i]], gpu_end(p, gpu[i]));
	intervals_normalise(&v);
	int64_t ns = intervals_length(&v);
	intervals_release(&v);
	return ns;
}

/* The instances in the part, with their device work there. */
static void cut_instances(struct cutter *c, struct ops *o)
{
	const struct ops *all = c->p->ops;
	for (uint32_t i = 0, n_gpu = 0; i < all->n_instances; i++) {
		const struct op_instance *x = &all->instance[i];
		struct op_instance *y = &o->instance[o->n_instances];
		uint32_t span = x->span == ROW_NONE ? ROW_NONE : c->span.of[x->span];
		*y = *x;
		y->span = span;
		y->gpu_first = n_gpu;
		y->gpu_n = 0;
		for (uint32_t k = 0; k < x->gpu_n; k++) {
			uint32_t g = c->gpu.of[all->gpu[x->gpu_first + k]];
			if (g != ROW_NONE)
				o->gpu[n_gpu + y->gpu_n++] = g;
		}
		if (span == ROW_NONE && !y->gpu_n)
			continue;
		if (y->gpu_n < x->gpu_n)
			y->gpu_ns = busy_ns(c->part, o->gpu + n_gpu, y->gpu_n);
		n_gpu += y->gpu_n;
		for (uint32_t k = 0; k < y->gpu_n; k++)
			o->of_gpu[o->gpu[y->gpu_first + k]] = o->n_instances;
		o->op[x->op].instances++;
		if (o->op[x->op].first == ROW_NONE)
			o->op[x->op].first = o->n_instances;
		o->n_instances++;
	}
}

/* Instance of the whole -> instance of the part, by its range. */
static void map_spans(struct cutter *c, struct ops *o)
{
	const struct ops *all = c->p->ops;
	uint32_t *of = NEW_ARRAY(all->n_instances, uint32_t);
	memset(of, 0xff, all->n_instances * sizeof *of);
	for (uint32_t i = 0; i < o->n_instances; i++)
		if (o->instance[i].span != ROW_NONE)
			of[all->of_span[c->span.row[o->instance[i].span]]] = i;
	for (uint32_t s = 0; s < c->span.n; s++) {
		uint32_t was = all->of_span[c->span.row[s]];
		o->of_span[s] = was == ROW_NONE ? ROW_NONE : of[was];
	}
	mem_free(of);
}

/* Ops without an instance in the part are not in it. */
static void drop_unused_ops(struct ops *o)
{
	uint32_t n = 0, *of = NEW_ARRAY(o->n_ops, uint32_t);
	for (uint32_t i = 0; i < o->n_ops; i++) {
		of[i] = o->op[i].instances ? n : ROW_NONE;
		if (o->op[i].instances)
			o->op[n++] = o->op[i];
	}
	for (uint32_t i = 0; i < n; i++)
		o->op[i].forward = o->op[i].forward == ROW_NONE ? ROW_NONE : of[o->op[i].forward];
	for (uint32_t i = 0; i < o->n_instances; i++)
		o->instance[i].op = of[o->instance[i].op];
	o->n_ops = n;
	mem_free(of);
}

static void cut_ops(struct cutter *c)
{
	const struct ops *all = c->p->ops;
	struct arena *a = &c->part->arena;
	struct ops *o = ARENA_ARRAY(a, 1, struct ops);
	*o = (struct ops){.origin = all->origin, .n_ops = all->n_ops};
	o->op = ARENA_ARRAY(a, all->n_ops, struct op);
	o->instance = ARENA_ARRAY(a, all->n_instances + 1, struct op_instance);
	o->of_span = ARENA_ARRAY(a, c->span.n, uint32_t);
	o->of_gpu = ARENA_ARRAY(a, c->gpu.n, uint32_t);
	o->gpu = ARENA_ARRAY(a, c->gpu.n, uint32_t);
	for (uint32_t i = 0; i < all->n_ops; i++) {
		o->op[i] = all->op[i];
		o->op[i].instances = 0;
		o->op[i].first = ROW_NONE;
	}
	cut_instances(c, o);
	map_spans(c, o);
	drop_unused_ops(o);
	c->part->ops = o;
	c->part->passes_done |= PASS_OPS;
}

static struct profile *slice_part_of(const struct profile *p)
{
	struct profile *part = NEW(struct profile);
	*part = (struct profile){.whole = p, .strings = p->strings, .input_path = p->input_path, .format = p->format,
	                         .input_bytes = p->input_bytes, .file_bytes = p->file_bytes, .durations_only = p->durations_only, .left_out = p->left_out,
	                         .zero_is_start = p->zero_is_start, .recorder = p->recorder, .device_joined = p->device_joined, .joined_device = p->joined_device, .reopened = p->reopened, .key_op = p->key_op, .written = p->written,
	                         .user_rules = p->user_rules, .threads = p->threads, .names = p->names, .passes_done = p->passes_done & PASS_NAMES};
	memcpy(part->arg_key, p->arg_key, sizeof part->arg_key);
	part->replay_cat = p->replay_cat;
	for (int t = 0; t < STORE_N_TABLES; t++) {
		const struct store_table *desc = &store_tables[t];
		if (profile_is_cut(t))
			continue;
		*(struct rows *)profile_table(part, t) = *(const struct rows *)profile_table(p, t);
		for (unsigned c = 0; c < desc->n_columns; c++)
			*rows_column(profile_table(part, t), &desc->columns[c]) = *rows_column(profile_table(p, t), &desc->columns[c]);
	}
	reuse_as(p, part);
	return part;
}

static void slice_note_cut(const struct profile *p, const struct step_window *w, int64_t first, int64_t last, int64_t by[CUT_BY])
{
	const int64_t now[CUT_BY] = {w->start_ns, w->end_ns, w->device_start_ns, w->device_end_ns, w->first, w->last, (intptr_t)w->among, w->n_among, first, last, p->passes_done};
	memcpy(by, now, sizeof now);
}

struct profile *slice_of(struct profile *p, const struct step_window *w, int64_t first, int64_t last, struct err *e)
{
	assert(!w->outside);
	int64_t by[CUT_BY];
	slice_note_cut(p, w, first, last, by);
	if (p->reuse && p->slice && memcmp(by, p->slice->cut_by, sizeof by) == 0)
		return p->slice;
	profile_assert_alone(p);
	struct cutter c = {.p = p, .part = slice_part_of(p), .w = w};
	memcpy(c.part->cut_by, by, sizeof by);
	int64_t end = MAX(w->end_ns, w->device_end_ns);
	find_roots(&c);
	cut_spans(&c);
	cut_device(&c);
	cut_points(&c, TABLE_memory, p->memory.time_ns, w->end_ns);
	cut_points(&c, TABLE_mark, p->mark.time_ns, w->end_ns);
	cut_points(&c, TABLE_flow, p->flow.time_ns, end);
	cut_counts(&c);
	int rc = analysis_run(c.part, PASS_NEST | PASS_CORRELATE, e); /* before steps and ops, which build on them */
	if (p->steps)
		cut_steps(&c, first, last);
	if (p->ops && (p->passes_done & PASS_OPS))
		cut_ops(&c);
	mem_free(c.root_ns);
	kept_release(&c.span);
	kept_release(&c.gpu);
	if (p->slice)
		arena_adopt(&p->arena, &p->slice->arena);
	profile_free(p->slice);
	p->slice = c.part;
	return rc < 0 ? NULL : c.part;
}

struct profile *slice_of_steps(struct profile *p, int64_t first, int64_t last, struct err *e)
{
	struct step_window w;
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE | PASS_STEPS, e) < 0 || steps_window(p->steps, first, last, &w, e) < 0)
		return NULL;
	return slice_of(p, &w, first, last, e);
}
