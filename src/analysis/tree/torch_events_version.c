/* Events by the rules of a version of torch (torch/autograd/profiler.py, profiler_util.py). */
#include "analysis/memory/memory.h"
#include "analysis/tree/torch_events_work.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"

struct version_work {
	struct torch_work *w;
	struct torch_events *t;
	const struct profile *p;
	uint32_t *n_children;
	uint32_t *into;        /* event -> the parent that took its place; ROW_NONE = it is there */
	uint32_t *kernels_of;  /* event -> the event whose kernels it has; itself at first */
	uint32_t *item, *of;   /* kernels and the event that launched each */
	uint32_t n_items;
};

static bool torch_events_version_is_event(const struct version_work *c, uint8_t kind)
{
	switch (kind) {
	case SPAN_OP:
	case SPAN_USER:
	case SPAN_CALL:
	case SPAN_GPU_USER:
	case SPAN_OVERHEAD:
	case SPAN_SYNC:
	case SPAN_RANGE:
		return true;
	case SPAN_PYTHON:
		return c->t->rules->python_events;
	}
	return false;
}

static int64_t base_ns(const struct profile *p)
{
	struct str text;
	int64_t v;
	return profile_meta(p, "baseTimeNanoseconds", &text) && str_to_i64(text, &v) && v > 0 && v < INT64_MAX / 4 ? v : 0;
}

static int64_t floor_us(int64_t ns)
{
	int64_t rest = ns % 1000;
	return ns - (rest < 0 ? rest + 1000 : rest);
}

static void whole_us(struct torch_candidate *v)
{
	int64_t dur = floor_us(v->end_ns - v->start_ns);
	v->start_ns = floor_us(v->start_ns);
	v->end_ns = v->start_ns + dur;
}

/* Kineto writes the shadow of an annotation 1 ns longer at both ends than torch has it. Traces in whole microseconds are older. */
static void trim_shadow(struct torch_candidate *v)
{
	if (v->end_ns - v->start_ns < 2 || (v->start_ns % 1000 == 0 && v->end_ns % 1000 == 0))
		return;
	v->start_ns++;
	v->end_ns--;
}

static void torch_events_version_add_events(struct version_work *c)
{
	const struct profile *p = c->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!torch_events_version_is_event(c, p->span.kind[i]) || span_is_replay(p, i))
			continue;
		uint32_t key = torch_key(c->w, p->span.name[i]);
		if (key == TORCH_KEY_DROPPED) {
			c->t->dropped_names++;
			continue;
		}
		struct torch_candidate *v = &c->w->v[torch_add_span(c->w, i, key)];
		if (p->span.kind[i] == SPAN_GPU_USER)
			trim_shadow(v);
	}
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		torch_add_gpu(c->w, i);
}

/* Candidates from `first` on, where the rules have it so. */
static void round_times(struct version_work *c, uint32_t first)
{
	for (uint32_t i = first; c->t->rules->whole_us && i < c->w->n; i++)
		whole_us(&c->w->v[i]);
}

/* The sums of all allocations before each, host and device. */
struct prefix {
	int64_t *sum[2];
	uint32_t n;
	uint32_t *row;
	int64_t *time;
};

static void prefix_make(const struct version_work *c, struct prefix *x)
{
	const struct memories *m = &c->p->memory;
	x->row = NEW_ARRAY_RAW(m->rows.n, uint32_t);
	x->time = NEW_ARRAY_RAW(m->rows.n, int64_t);
	for (int d = 0; d < 2; d++)
		x->sum[d] = NEW_ARRAY((size_t)m->rows.n + 1, int64_t);
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (!memory_is_event(c->p, i))
			continue;
		enum torch_side side = torch_memory_side(c->t, i);
		uint32_t k = x->n++;
		x->row[k] = i;
		x->time[k] = c->t->rules->whole_us ? floor_us(m->time_ns[i]) : m->time_ns[i];
		for (int d = 0; d < 2; d++) /* wraps as unsigned, so that differences stay right */
			x->sum[d][k + 1] = (int64_t)((uint64_t)x->sum[d][k] + (uint64_t)((int)side == d ? m->bytes[i] : 0));
	}
}

static void prefix_release(struct prefix *x)
{
	mem_free(x->row);
	mem_free(x->time);
	mem_free(x->sum[0]);
	mem_free(x->sum[1]);
}

/* How many of the times are < limit. `near`: a count that is probably close; one event's is close to that of the one before. */
static uint32_t count_before(const struct prefix *x, int64_t limit, uint32_t near)
{
	uint32_t lo = near, hi = near, step = 1;
	for (; hi < x->n && x->time[hi] < limit; step *= 2) {
		lo = hi + 1;
		hi = step < x->n - hi ? hi + step : x->n;
	}
	for (; lo > 0 && x->time[lo - 1] >= limit; step *= 2) {
		hi = lo - 1;
		lo = step < lo ? lo - step : 0;
	}
	return FIRST_WHERE(i, lo, hi, x->time[i] >= limit);
}

/* A time that went through microseconds in a double and back, as an int64. */
static int64_t through_us(int64_t ns, int64_t base)
{
	double us = (double)((long double)(ns + base) / 1000.0L);
	return (int64_t)(us * 1000.0) - base;
}

/* Allocations by time alone, both ends included; those inside no event become events. */
static void add_memory(struct version_work *c, struct prefix *x, uint32_t **range)
{
	int64_t base = base_ns(c->p);
	uint32_t n = c->w->n;
	*range = NEW_ARRAY(2 * (size_t)n, uint32_t);
	uint32_t *used = NEW_ARRAY((size_t)x->n + 1, uint32_t), first = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct torch_candidate *v = &c->w->v[i];
		if (v->device_type != TORCH_CPU)
			continue;
		int64_t lo = v->start_ns, hi = v->end_ns;
		if (c->t->rules->memory_float_us) {
			lo = through_us(lo, base);
			hi = through_us(hi, base);
		}
		first = count_before(x, lo, first);
		uint32_t end = count_before(x, hi + 1, first);
		if (first >= end)
			continue;
		(*range)[2 * i] = first;
		(*range)[2 * i + 1] = end;
		used[first]++;
		used[end]--;
	}
	uint32_t open = 0;
	for (uint32_t k = 0; k < x->n; k++) {
		open += used[k];
		if (!open)
			torch_add_memory(c->w, x->row[k]);
	}
	for (uint32_t i = 0; i < c->p->memory.rows.n; i++)
		if (!memory_is_event(c->p, i))
			torch_add_memory(c->w, i);
	mem_free(used);
}

static void torch_events_version_put_memory(struct version_work *c, const struct prefix *x, const uint32_t *range, uint32_t n)
{
	struct torch_events *t = c->t;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = c->w->place[k];
		t->cpu_mem[i] = (int64_t)((uint64_t)x->sum[0][range[2 * k + 1]] - (uint64_t)x->sum[0][range[2 * k]]);
		t->dev_mem[i] = (int64_t)((uint64_t)x->sum[1][range[2 * k + 1]] - (uint64_t)x->sum[1][range[2 * k]]);
	}
	for (uint32_t i = 0; i < t->n; i++) {
		enum torch_side side = t->kind[i] == TORCH_MEMORY ? torch_memory_side(t, t->row[i]) : TORCH_NEITHER;
		if (side != TORCH_NEITHER)
			*(side == TORCH_DEVICE ? &t->dev_mem[i] : &t->cpu_mem[i]) = t->p->memory.bytes[t->row[i]];
	}
}

static bool is_frontend(const struct version_work *c, uint32_t i)
{
	if (c->t->kind[i] != TORCH_SPAN || (c->t->flags[i] & TORCH_ASYNC))
		return false;
	uint8_t kind = c->p->span.kind[c->t->row[i]];
	return kind == SPAN_OP || kind == SPAN_USER;
}

/* Ids are the correlation ids of ops and annotations; device work and API calls carry that of what made them: kernels go to that
 * event, API calls to its thread. */
static void link_launches(struct version_work *c)
{
	struct torch_events *t = c->t;
	const struct spans *s = &c->p->span;
	struct idmap ops;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint64_t n = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		int64_t id = is_frontend(c, i) ? span_ext_id(s, t->row[i]) : ID_NONE;
		if (id <= 0)
			continue;
		min = id < min ? id : min;
		max = id > max ? id : max;
		n++;
	}
	idmap_init(&ops, min, max, n);
	for (uint32_t i = t->n; i-- > 0;) /* the first of several with one id */
		if (is_frontend(c, i) && span_ext_id(s, t->row[i]) > 0)
			idmap_put(&ops, span_ext_id(s, t->row[i]), i);
	c->item = NEW_ARRAY_RAW(t->n, uint32_t);
	c->of = NEW_ARRAY_RAW(t->n, uint32_t);
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->kind[i] == TORCH_MEMORY || is_frontend(c, i))
			continue;
		bool gpu = t->kind[i] == TORCH_GPU;
		int64_t id = gpu ? gpu_ext_id(&c->p->gpu_op, t->row[i]) : span_ext_id(s, t->row[i]);
		uint32_t op = id > 0 ? idmap_get(&ops, id) : ROW_NONE;
		if (!gpu && (s->kind[t->row[i]] == SPAN_PYTHON || s->kind[t->row[i]] == SPAN_GPU_USER))
			continue; /* that is its Python id; no link, but its own number */
		if (t->device_type[i] != TORCH_CPU) {
			c->item[c->n_items] = gpu ? t->row[i] : t->row[i] + c->p->gpu_op.rows.n;
			c->of[c->n_items++] = op;
		} else if (op != ROW_NONE) {
			t->track[i] = t->track[op];
		}
	}
	idmap_release(&ops);
}

/* Kineto gives overheads no thread; torch has them on its first one. */
static void place_overheads(struct version_work *c)
{
	struct torch_events *t = c->t;
	uint32_t first = FIRST_WHERE(i, 0, t->n, is_frontend(c, i));
	for (uint32_t i = 0; c->t->rules->overheads_inside && first < t->n && i < t->n; i++)
		if (t->kind[i] == TORCH_SPAN && c->p->span.kind[t->row[i]] == SPAN_OVERHEAD)
			t->track[i] = t->track[first];
}

/* Parents, by a stack for each thread: a range is in the innermost one that it fits into; those that it overlaps partially are
 * over for good. */
static void nest(struct version_work *c)
{
	struct torch_events *t = c->t;
	uint32_t *top = NEW_ARRAY_RAW(c->p->track.rows.n, uint32_t), *below = NEW_ARRAY_RAW(t->n, uint32_t);
	memset(top, 0xff, c->p->track.rows.n * sizeof *top);
	for (uint32_t i = 0; i < t->n; i++) {
		t->parent[i] = ROW_NONE;
		if (t->device_type[i] != TORCH_CPU || (t->flags[i] & TORCH_ASYNC) || t->track[i] >= c->p->track.rows.n)
			continue;
		uint32_t at = top[t->track[i]];
		while (at != ROW_NONE && (t->start_ns[i] >= t->end_ns[at] || t->end_ns[i] > t->end_ns[at]))
			at = below[at];
		t->parent[i] = at;
		if (at != ROW_NONE)
			c->n_children[at]++;
		below[i] = at;
		top[t->track[i]] = i;
	}
	mem_free(top);
	mem_free(below);
}

static uint32_t there(const struct version_work *c, uint32_t i)
{
	return i != ROW_NONE && c->into[i] != ROW_NONE ? c->into[i] : i;
}

/* Parents stand before their children: one pass is enough. */
static void torch_events_version_fold(struct version_work *c)
{
	struct torch_events *t = c->t;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t up = t->parent[i] = there(c, t->parent[i]);
		c->into[i] = ROW_NONE;
		c->kernels_of[i] = i;
		if (up == ROW_NONE || t->key[up] != t->key[i] || c->n_children[up] != 1)
			continue;
		c->n_children[up] = c->n_children[i];
		c->kernels_of[up] = i;
		c->into[i] = up;
		t->folded++;
	}
}

static void torch_events_version_sum_up(struct version_work *c)
{
	struct torch_events *t = c->t;
	for (uint32_t k = 0; k < c->n_items; k++) {
		uint32_t owner = c->of[k], up = there(c, owner);
		if (owner == ROW_NONE)
			continue;
		c->of[k] = c->kernels_of[up] == owner ? up : ROW_NONE; /* else the kernels of a child took their place */
		if (c->of[k] != ROW_NONE)
			t->dev_self[up] += torch_kernel_ns(t, c->item[k]);
	}
	for (uint32_t i = 0; i < t->n; i++) {
		bool cpu = t->device_type[i] == TORCH_CPU;
		if (!cpu)
			t->dev_self[i] = t->end_ns[i] - t->start_ns[i];
		t->dev_total[i] = t->dev_self[i];
		t->cpu_self[i] = cpu && !(t->flags[i] & TORCH_ASYNC) ? t->end_ns[i] - t->start_ns[i] : 0;
	}
	for (uint32_t i = 0; t->memory_known && i < t->n; i++) {
		bool own = t->device_type[i] == TORCH_CPU && !(t->flags[i] & TORCH_ASYNC);
		t->cpu_mem_self[i] = own ? t->cpu_mem[i] : 0;
		t->dev_mem_self[i] = own ? t->dev_mem[i] : 0;
	}
	for (uint32_t i = t->n; i-- > 0;) {
		uint32_t up = t->parent[i];
		if (up == ROW_NONE || c->into[i] != ROW_NONE)
			continue;
		t->cpu_self[up] -= t->end_ns[i] - t->start_ns[i];
		t->dev_total[up] += t->dev_total[i];
		if (!t->memory_known)
			continue;
		t->cpu_mem_self[up] = (int64_t)((uint64_t)t->cpu_mem_self[up] - (uint64_t)t->cpu_mem[i]);
		t->dev_mem_self[up] = (int64_t)((uint64_t)t->dev_mem_self[up] - (uint64_t)t->dev_mem[i]);
	}
}

/* Takes the folded events out of all columns. */
static void torch_events_version_compact(struct version_work *c)
{
	struct torch_events *t = c->t;
	uint32_t *now = NEW_ARRAY_RAW(t->n, uint32_t), n = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		if (c->into[i] != ROW_NONE)
			continue;
		uint32_t k = now[i] = n++;
		t->kind[k] = t->kind[i];
		t->row[k] = t->row[i];
		t->key[k] = t->key[i];
		t->flags[k] = t->flags[i];
		t->device_type[k] = t->device_type[i];
		t->parent[k] = t->parent[i] == ROW_NONE ? ROW_NONE : now[t->parent[i]];
		t->track[k] = t->track[i];
		t->start_ns[k] = t->start_ns[i];
		t->end_ns[k] = t->end_ns[i];
		t->cpu_self[k] = t->cpu_self[i];
		t->dev_total[k] = t->dev_total[i];
		t->dev_self[k] = t->dev_self[i];
		if (t->node_id)
			t->node_id[k] = t->node_id[i];
		if (!t->memory_known)
			continue;
		t->cpu_mem[k] = t->cpu_mem[i];
		t->dev_mem[k] = t->dev_mem[i];
		t->cpu_mem_self[k] = t->cpu_mem_self[i];
		t->dev_mem_self[k] = t->dev_mem_self[i];
	}
	t->n = n;
	for (uint32_t k = 0; k < c->n_items; k++)
		c->of[k] = c->of[k] == ROW_NONE ? ROW_NONE : now[c->of[k]];
	mem_free(now);
}

void torch_events_of_version(struct torch_work *w)
{
	struct version_work c = {.w = w, .t = w->t, .p = w->p};
	struct prefix x = {0};
	uint32_t *range = NULL;
	torch_events_version_add_events(&c);
	round_times(&c, 0);
	uint32_t n = w->n;
	if (w->t->memory_known) {
		prefix_make(&c, &x);
		add_memory(&c, &x, &range);
		round_times(&c, n);
	}
	torch_sort(w);
	if (w->t->memory_known)
		torch_events_version_put_memory(&c, &x, range, n);
	prefix_release(&x);
	mem_free(range);
	n = w->t->n;
	c.n_children = NEW_ARRAY(n, uint32_t);
	c.into = NEW_ARRAY_RAW(n, uint32_t);
	c.kernels_of = NEW_ARRAY_RAW(n, uint32_t);
	link_launches(&c);
	place_overheads(&c);
	nest(&c);
	torch_events_version_fold(&c);
	torch_events_version_sum_up(&c);
	torch_events_version_compact(&c);
	torch_put_kernels(w->t, c.item, c.of, c.n_items);
	mem_free(c.n_children);
	mem_free(c.into);
	mem_free(c.kernels_of);
	mem_free(c.item);
	mem_free(c.of);
}
