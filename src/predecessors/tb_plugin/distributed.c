#include "predecessors/tb_plugin/distributed.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/saturate.h"
#include "base/sort.h"
#include "io/json.h"
#include "predecessors/tb_plugin/rules.h"

#include <stdlib.h>

/* ---- sizes ---- */

/* Bytes of an element; 0 = the plugin does not know the type. */
static int64_t distributed_element_bytes(struct str type)
{
	static const struct {
		const char *name;
		int64_t bytes;
	} known[] = {{"long int", 8}, {"float", 4}, {"int", 4}, {"c10::Half", 2}, {"c10::BFloat16", 2}, {"unsigned char", 1}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (str_eqc(type, known[i].name))
			return known[i].bytes;
	return 0;
}

/* The product of a list of numbers; 0 where it holds anything else, or comes to more than an int64 holds. */
static int64_t distributed_product(struct json *j, struct str list)
{
	int64_t product = 1, n;
	bool first = true, done = false;
	struct json_value v;
	if (!list.n || list.p[0] != '[')
		return 0;
	for (const char *at = list.p + 1; (at = json_element(j, at, &first, &done)) && !done;) {
		at = json_value(j, at, &v);
		if (!at || v.type != JSON_NUMBER || !json_to_i64(v.raw, &n) || __builtin_mul_overflow(product, n, &product))
			return 0;
	}
	return done ? product : 0;
}

/* Walks the shapes and the types of the inputs beside each other. */
static int64_t distributed_inputs_bytes(struct json *j, const char *shape, const char *type)
{
	int64_t sum = 0, bytes;
	bool first_shape = true, first_type = true, done = false;
	struct json_value s, t;
	for (;;) {
		shape = json_element(j, shape, &first_shape, &done);
		shape = shape && !done ? json_value(j, shape, &s) : NULL;
		type = shape ? json_element(j, type, &first_type, &done) : NULL;
		type = type && !done ? json_value(j, type, &t) : NULL;
		if (!type)
			return sum;
		if (t.type != JSON_STRING || __builtin_mul_overflow(distributed_product(j, s.raw), distributed_element_bytes(t.raw), &bytes) ||
		    __builtin_add_overflow(sum, bytes, &sum))
			return 0;
	}
}

static int64_t distributed_bytes(const struct profile *p, uint32_t span)
{
	struct str shapes, types;
	if (!profile_arg(p, p->span.args[span], ARG_INPUT_DIMS, &shapes) || !profile_arg(p, p->span.args[span], ARG_INPUT_TYPES, &types))
		return 0;
	if (!shapes.n || shapes.p[0] != '[' || !types.n || types.p[0] != '[')
		return 0;
	struct buf padded = {0};
	buf_str(&padded, shapes);
	buf_fill(&padded, 0, JSON_PADDING);
	size_t second = padded.n;
	buf_str(&padded, types);
	buf_fill(&padded, 0, JSON_PADDING);
	struct json j = {.end = padded.p + second + types.n};
	int64_t bytes = distributed_inputs_bytes(&j, padded.p + 1, padded.p + second + 1);
	buf_release(&padded);
	return bytes;
}

/* ---- communications ---- */

struct distributed_work {
	const struct profile *p;
	uint8_t *op;              /* by string: 1 + tb_comm_of; 0 = not asked */
	uint32_t *span;           /* the ops, by the order in which they count */
	uint32_t n, cap;
	bool nccl, gloo;
};

static unsigned distributed_op(struct distributed_work *w, uint32_t span)
{
	const struct spans *s = &w->p->span;
	if (s->kind[span] != SPAN_OP && s->kind[span] != SPAN_USER && s->kind[span] != SPAN_GPU_USER)
		return TB_COMMS;
	uint8_t *known = &w->op[s->name[span]];
	if (!*known)
		*known = (uint8_t)(1 + tb_comm_of(profile_str(w->p, s->name[span])));
	return *known - 1u;
}

static int64_t distributed_id(const struct distributed_work *w, uint32_t i)
{
	return tb_ext_id(span_ext_id(&w->p->span, w->span[i]));
}

/* The file's order is not kept: what stands on a device comes last there, and the rest in order of time. */
static int distributed_by_id(const void *a, const void *b, void *work)
{
	const struct distributed_work *w = work;
	const struct spans *s = &w->p->span;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int64_t id_x = tb_ext_id(span_ext_id(s, x)), id_y = tb_ext_id(span_ext_id(s, y));
	bool device_x = s->kind[x] == SPAN_GPU_USER, device_y = s->kind[y] == SPAN_GPU_USER;
	return COMPARE(id_x, id_y) ?: COMPARE(device_x, device_y) ?: COMPARE(s->start_ns[x], s->start_ns[y]) ?: COMPARE(x, y);
}

static int distributed_by_start(const void *a, const void *b, void *work)
{
	const struct profile *p = ((const struct distributed_work *)work)->p;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return COMPARE(p->span.start_ns[x], p->span.start_ns[y]) ?: COMPARE(span_end(p, y), span_end(p, x)) ?: COMPARE(x, y);
}

/* Ops that are communications, one for each external id, in order of start. */
static void distributed_find_ops(struct distributed_work *w)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		unsigned op = distributed_op(w, i);
		if (op == TB_COMMS)
			continue;
		w->nccl |= op < TB_COMMS_OF_NCCL;
		w->gloo |= op >= TB_COMMS_OF_NCCL;
		MEM_PUSH(w->span, w->n, w->cap, i);
	}
	if (!w->n)
		return;
	qsort_r(w->span, w->n, sizeof *w->span, distributed_by_id, w);
	for (uint32_t i = 0; i < w->n; i++)
		if (i + 1 == w->n || distributed_id(w, i) != distributed_id(w, i + 1))
			w->span[kept++] = w->span[i];
	w->n = kept;
	qsort_r(w->span, w->n, sizeof *w->span, distributed_by_start, w);
}

/* Of each kernel the op whose ranges it adds to, or ROW_NONE: kernels count where NCCL is used. */
static uint32_t *distributed_op_of_kernels(const struct distributed_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct idmap ops;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint32_t *of = mem_filled(g->rows.n, ROW_NONE);
	for (uint32_t i = 0; i < w->n; i++) {
		int64_t id = distributed_id(w, i);
		min = id < min ? id : min;
		max = id > max ? id : max;
	}
	idmap_init(&ops, min, max, w->n);
	for (uint32_t i = 0; i < w->n; i++)
		idmap_put(&ops, distributed_id(w, i), i);
	for (uint32_t k = 0; k < g->rows.n && w->nccl && w->n; k++)
		if (g->kind[k] == GPU_KERNEL)
			of[k] = idmap_get(&ops, tb_ext_id(gpu_ext_id(g, k)));
	idmap_release(&ops);
	return of;
}

static void distributed_work_release(struct distributed_work *w)
{
	mem_free(w->op);
	mem_free(w->span);
}

static int distributed_range_by_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return COMPARE(x->start, y->start) ?: COMPARE(y->end, x->end);
}

static void distributed_put_ranges(const struct distributed_work *w, const uint32_t *of, struct tb_worker *r)
{
	const struct profile *p = w->p;
	r->n_ranges = w->n;
	for (uint32_t i = 0; i < w->n; i++)
		r->comm[i].n_ranges = 1;
	for (uint32_t k = 0; k < p->gpu_op.rows.n; k++)
		if (of[k] != ROW_NONE) {
			r->comm[of[k]].n_ranges++;
			r->n_ranges++;
		}
	r->range = ARENA_ARRAY(&r->arena, r->n_ranges, struct interval);
	r->transfer_ns = ARENA_ARRAY(&r->arena, r->n_ranges, int64_t);
	uint32_t *filled = NEW_ARRAY(w->n, uint32_t);
	for (uint32_t i = 0, at = 0; i < w->n; at += r->comm[i++].n_ranges) {
		r->comm[i].range = at;
		r->range[at + filled[i]++] = (struct interval){r->comm[i].start_ns, r->comm[i].end_ns};
	}
	for (uint32_t k = 0; k < p->gpu_op.rows.n; k++)
		if (of[k] != ROW_NONE)
			r->range[r->comm[of[k]].range + filled[of[k]]++] = (struct interval){p->gpu_op.start_ns[k], gpu_end(p, k)};
	for (uint32_t i = 0; i < w->n; i++)
		qsort(&r->range[r->comm[i].range], r->comm[i].n_ranges, sizeof *r->range, distributed_range_by_start);
	mem_free(filled);
}

static void distributed_put_comms(struct distributed_work *w, struct tb_worker *r)
{
	const struct profile *p = w->p;
	r->n_comms = w->n;
	r->comm = ARENA_ARRAY(&r->arena, w->n, struct tb_comm);
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t s = w->span[i];
		r->comm[i] = (struct tb_comm){.start_ns = p->span.start_ns[s], .end_ns = span_end(p, s), .bytes = distributed_bytes(p, s),
		                              .step = TB_NO_STEP, .op = (uint8_t)distributed_op(w, s)};
	}
	uint32_t *of = distributed_op_of_kernels(w);
	distributed_put_ranges(w, of, r);
	mem_free(of);
}

/* The step in which each lies whole. One behind the last step ends the search, and one that crosses the border of a step is in none. */
static void distributed_put_steps_of_comms(const struct steps *steps, struct tb_worker *r)
{
	for (uint32_t i = 0, s = 0; i < r->n_comms; i++) {
		struct tb_comm *c = &r->comm[i];
		while (s < steps->n && c->start_ns >= steps->v[s].end_ns && !(c->start_ns >= steps->v[s].start_ns && c->end_ns <= steps->v[s].end_ns))
			s++;
		if (s == steps->n)
			return;
		if (c->start_ns >= steps->v[s].start_ns && c->end_ns <= steps->v[s].end_ns)
			c->step = s;
	}
}

/* ---- steps ---- */

static void distributed_put_steps(const struct profile *p, const struct steps *steps, struct tb_worker *r)
{
	struct role_ranges ranges = {0};
	struct intervals comm = {0}, both = {0};
	tb_roles.collect(p, steps, &ranges);
	role_ranges_normalise(&ranges);
	intervals_union(&ranges.device[0][ROLE_COMM], &ranges.host[ROLE_COMM], &comm);
	const struct intervals *compute = ranges.device[0][ROLE_KERNEL].n ? &ranges.device[0][ROLE_KERNEL] : &ranges.host[ROLE_CPU];
	intervals_intersect(compute, &comm, &both);
	r->n_steps = steps->n;
	r->step = ARENA_ARRAY(&r->arena, steps->n, struct tb_worker_step);
	for (uint32_t i = 0; i < steps->n; i++) {
		const struct step *s = &steps->v[i];
		int64_t computes = intervals_length_within(compute, s->start_ns, s->end_ns), communicates = intervals_length_within(&comm, s->start_ns, s->end_ns),
		        overlaps = intervals_length_within(&both, s->start_ns, s->end_ns);
		r->step[i] = (struct tb_worker_step){.name = arena_str(&r->arena, s->name), .number = s->number};
		r->step[i].ns[TB_COMPUTE] = computes - overlaps;
		r->step[i].ns[TB_OVERLAP] = overlaps;
		r->step[i].ns[TB_COMMUNICATE] = communicates - overlaps;
		r->step[i].ns[TB_OTHER] = s->end_ns - s->start_ns + overlaps - computes - communicates;
	}
	intervals_release(&comm);
	intervals_release(&both);
	role_ranges_release(&ranges);
}

/* ---- GPUs ---- */

static int distributed_gpu_by_ordinal(const void *a, const void *b)
{
	const struct tb_gpu *x = a, *y = b;
	return COMPARE(x->ordinal, y->ordinal);
}

static void distributed_put_gpus(const struct profile *p, struct tb_worker *r)
{
	uint8_t *works = NEW_ARRAY(p->device.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->launch.rows.n; i++) {
		uint32_t row = profile_device_row(p, p->launch.device[i]);
		if (row != ROW_NONE)
			works[row] = 1;
	}
	r->describes_gpus = p->device.rows.n > 0;
	r->gpu = ARENA_ARRAY(&r->arena, p->device.rows.n, struct tb_gpu);
	for (uint32_t i = 0; i < p->device.rows.n; i++)
		if (works[i])
			r->gpu[r->n_gpus++] = (struct tb_gpu){profile_device_ordinal(p, i), arena_str(&r->arena, profile_str(p, p->device.name[i])), p->device.memory_bytes[i],
			                                      p->device.cc_major[i], p->device.cc_minor[i]};
	mem_free(works);
	if (r->n_gpus)
		qsort(r->gpu, r->n_gpus, sizeof *r->gpu, distributed_gpu_by_ordinal);
}

/* ---- a worker ---- */

struct tb_worker *tb_worker_new(const struct profile *p, struct str name, int64_t rank)
{
	struct tb_worker *r = NEW(struct tb_worker);
	struct distributed_work w = {.p = p, .op = NEW_ARRAY(p->strings.n, uint8_t)};
	struct arena a = {0};
	const struct steps *steps = tb_steps_of(p, &a);
	r->name = arena_str(&r->arena, name);
	r->rank = rank;
	distributed_find_ops(&w);
	r->two_libraries = w.nccl && w.gloo;
	distributed_put_comms(&w, r);
	distributed_put_steps_of_comms(steps, r);
	distributed_put_steps(p, steps, r);
	distributed_put_gpus(p, r);
	distributed_work_release(&w);
	arena_release(&a);
	return r;
}

void tb_worker_free(struct tb_worker *w)
{
	if (!w)
		return;
	arena_release(&w->arena);
	mem_free(w);
}

uint32_t tb_worker_shape(const struct profile *p)
{
	struct distributed_work w = {.p = p, .op = NEW_ARRAY(p->strings.n, uint8_t)};
	uint32_t shape = 0;
	distributed_find_ops(&w);
	if (w.n && !(w.nccl && w.gloo)) {
		uint32_t *of = distributed_op_of_kernels(&w), *ranges = mem_filled(w.n, 1);
		for (uint32_t k = 0; k < p->gpu_op.rows.n; k++)
			if (of[k] != ROW_NONE)
				ranges[of[k]]++;
		shape = hash_bytes32(ranges, w.n * sizeof *ranges) ?: 1;
		mem_free(of);
		mem_free(ranges);
	}
	distributed_work_release(&w);
	return shape;
}

/* ---- workers together ---- */

static int distributed_check(const struct tb_worker *w, const struct tb_worker *first, struct err *e)
{
	if (w->two_libraries)
		return err_set(e, ERR_DATA, STR_FMT " uses both NCCL and Gloo: the plugin shows no Distributed view then", STR_ARG(w->name));
	if (!w->n_comms)
		return err_set(e, ERR_DATA, STR_FMT " has no communication op that the plugin knows: it shows no Distributed view then", STR_ARG(w->name));
	if (w->n_comms != first->n_comms)
		return err_set(e, ERR_DATA, STR_FMT " has %u communication ops, and " STR_FMT " has %u: the plugin shows no Distributed view then", STR_ARG(w->name), w->n_comms,
		               STR_ARG(first->name), first->n_comms);
	for (uint32_t i = 0; i < w->n_comms; i++)
		if (w->comm[i].n_ranges != first->comm[i].n_ranges)
			return err_set(e, ERR_DATA, "communication op %u of " STR_FMT " has %u kernels, and that of " STR_FMT " has %u: the plugin shows no Distributed view then",
			               i + 1, STR_ARG(w->name), w->comm[i].n_ranges - 1, STR_ARG(first->name), first->comm[i].n_ranges - 1);
	return 0;
}

int tb_distributed_match(struct tb_worker *const *w, uint32_t n, struct err *e)
{
	for (uint32_t k = 0; k < n; k++)
		if (distributed_check(w[k], w[0], e) < 0)
			return -1;
	for (uint32_t j = 0; j < w[0]->n_ranges; j++) {
		int64_t least = INT64_MAX;
		for (uint32_t k = 0; k < n; k++) {
			int64_t ns = w[k]->range[j].end - w[k]->range[j].start;
			least = ns < least ? ns : least;
		}
		for (uint32_t k = 0; k < n; k++)
			w[k]->transfer_ns[j] = least;
	}
	return 0;
}

/* The ranges of one group of communications. */
struct distributed_group {
	struct intervals total, transfer;
};

static void distributed_add(const struct tb_worker *w, const struct tb_comm *c, struct distributed_group *g, struct tb_wait *sum)
{
	sum->calls++;
	add_saturated(&sum->bytes, c->bytes);
	for (uint32_t k = c->range; k < c->range + c->n_ranges; k++) {
		intervals_add(&g->total, w->range[k].start, w->range[k].end);
		intervals_add(&g->transfer, w->range[k].end - w->transfer_ns[k], w->range[k].end);
	}
}

static void distributed_sum(struct distributed_group *g, uint32_t n, struct tb_wait *out)
{
	for (uint32_t i = 0; i < n; i++) {
		intervals_normalise(&g[i].total);
		intervals_normalise(&g[i].transfer);
		out[i].total_ns = intervals_length(&g[i].total);
		out[i].transfer_ns = intervals_length(&g[i].transfer);
		intervals_release(&g[i].total);
		intervals_release(&g[i].transfer);
	}
}

void tb_worker_waits_by_op(const struct tb_worker *w, int64_t first, int64_t last, struct tb_wait *out)
{
	struct distributed_group g[TB_COMMS] = {0};
	bool all = first == INT64_MIN && last == INT64_MAX;
	memset(out, 0, TB_COMMS * sizeof *out);
	for (uint32_t i = 0; i < w->n_comms; i++) {
		const struct tb_comm *c = &w->comm[i];
		bool in = all || (c->step != TB_NO_STEP && w->step[c->step].number >= first && w->step[c->step].number <= last);
		if (in)
			distributed_add(w, c, &g[c->op], &out[c->op]);
	}
	distributed_sum(g, TB_COMMS, out);
}

void tb_worker_waits_by_step(const struct tb_worker *w, struct tb_wait *out)
{
	struct distributed_group *g = NEW_ARRAY((size_t)w->n_steps + 1, struct distributed_group);
	memset(out, 0, ((size_t)w->n_steps + 1) * sizeof *out);
	for (uint32_t i = 0; i < w->n_comms; i++) {
		uint32_t step = w->comm[i].step == TB_NO_STEP ? w->n_steps : w->comm[i].step;
		distributed_add(w, &w->comm[i], &g[step], &out[step]);
	}
	distributed_sum(g, w->n_steps + 1, out);
	mem_free(g);
}
