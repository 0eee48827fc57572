#include "analysis/check.h"

#undef NDEBUG /* assertions are the point of this file */
#include <assert.h>

#include "analysis/steps/steps.h"
#include "analysis/tree/op_instances.h"

/* Spans are sorted by track, then start, then falling duration. A parent therefore has a smaller index. It is on the same track, and each child starts within it. */
static void check_nest(const struct profile *p)
{
	const struct spans *s = &p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t parent = s->parent[i], op = s->op[i];
		assert(s->dur_ns[i] >= 0 && s->track[i] < p->track.rows.n);
		assert(!i || s->track[i] != s->track[i - 1] || s->start_ns[i] > s->start_ns[i - 1] ||
		       (s->start_ns[i] == s->start_ns[i - 1] && s->dur_ns[i] <= s->dur_ns[i - 1]));
		assert(!i || s->track[i] >= s->track[i - 1]);
		assert(op == ROW_NONE || op < s->rows.n);
		if (parent != ROW_NONE)
			assert(parent < i && s->track[parent] == s->track[i] && s->start_ns[i] - s->start_ns[parent] <= s->dur_ns[parent]);
	}
}

static void check_correlate(const struct profile *p)
{
	const struct gpu_ops *g = &p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		assert(g->dur_ns[i] >= 0 && g->launch[i] < p->launch.rows.n);
		assert(g->call[i] == ROW_NONE || p->span.kind[g->call[i]] == SPAN_CALL);
		assert(g->op[i] == ROW_NONE || g->op[i] < p->span.rows.n);
	}
}

static void check_step(const struct step *s)
{
	assert(s->host_start_ns <= s->host_end_ns && s->start_ns <= s->end_ns);
}

static void check_steps(const struct steps *s)
{
	assert(s->n <= s->total);
	for (unsigned i = 0; i < s->total; i++) {
		check_step(&s->v[i]);
		assert(!i || (s->v[i].host_start_ns >= s->v[i - 1].host_start_ns && s->v[i].host_until_ns >= s->v[i - 1].host_until_ns));
	}
	for (unsigned i = 0; i < s->edges; i++)
		check_step(&s->edge[i]);
}

/* Each piece of device work belongs to one instance, which lists it. */
static void check_ops(const struct profile *p)
{
	const struct ops *o = p->ops;
	uint64_t listed = 0;
	for (uint32_t k = 0; k < o->n_instances; k++) {
		const struct op_instance *x = &o->instance[k];
		assert(x->op < o->n_ops && (x->span == ROW_NONE || x->span < p->span.rows.n) && x->overhead_ns >= 0 && x->idle_ns >= 0);
		for (uint32_t i = x->gpu_first; i < x->gpu_first + x->gpu_n; i++)
			assert(o->of_gpu[o->gpu[i]] == k);
		listed += x->gpu_n;
	}
	assert(listed == p->gpu_op.rows.n);
}

void analysis_check(const struct profile *p)
{
	if (p->passes_done & PASS_NEST)
		check_nest(p);
	if (p->passes_done & PASS_CORRELATE)
		check_correlate(p);
	if (p->passes_done & PASS_STEPS)
		check_steps(p->steps);
	if (p->passes_done & PASS_MEMORY)
		for (uint32_t i = 0; i < p->memory.rows.n; i++)
			assert(p->memory.span[i] == ROW_NONE || p->memory.span[i] < p->span.rows.n);
	if (p->passes_done & PASS_OPS)
		check_ops(p);
}
