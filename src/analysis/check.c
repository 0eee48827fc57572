#include "analysis/check.h"

#undef NDEBUG /* assertions are the point of this file */
#include <assert.h>

#include "analysis/steps/steps.h"
#include "analysis/tree/op_instances.h"
#include "store/load.h"

/* Rows and the columns that passes have added are as the loader asks of a file: else one made of this profile would not open. */
static void check_columns(const struct profile *p)
{
	struct err e;
	assert(load_check(p, &e) == 0);
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
	check_columns(p);
	if (p->passes_done & PASS_STEPS)
		check_steps(p->steps);
	if (p->passes_done & PASS_OPS)
		check_ops(p);
}
