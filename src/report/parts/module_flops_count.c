#include "report/parts/module_flops.h"

#include "analysis/recording.h"
#include "base/mem.h"

static void module_flops_count_add(struct module_flops *x, int64_t *to, int64_t v)
{
	x->overflow |= __builtin_add_overflow(*to, v, to);
}

static void count_span(struct module_flops *x, uint32_t i)
{
	uint32_t node = module_flops_node(x, i);
	enum module_phase phase = (enum module_phase)x->m->phase[i];
	int64_t flops = x->f->flops[i];
	x->unknown += x->f->unknown[i];
	module_flops_count_add(x, &x->total, flops);
	if (node != MODULE_NONE) {
		bool forward = phase == PHASE_FORWARD || phase == PHASE_OUTSIDE;
		module_flops_count_add(x, &x->of[node].self[forward ? MODULE_FORWARD : MODULE_BACKWARD], flops);
		x->of[node].unknown += x->f->unknown[i];
	} else {
		module_flops_count_add(x, phase == PHASE_OPTIMIZER ? &x->optimizer : &x->outside, flops);
		x->unknown_outside += x->f->unknown[i];
	}
}

static void count_time(struct module_flops *x)
{
	const struct profile *p = x->p;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || !window_has_gpu(&x->w, p, g))
			continue;
		uint32_t op = p->gpu_op.op[g];
		x->all_ns += p->gpu_op.dur_ns[g];
		x->unknown_ns += op == ROW_NONE || x->f->unknown[op] ? p->gpu_op.dur_ns[g] : 0;
	}
	for (uint32_t i = 0; !p->gpu_op.rows.n && i < p->span.rows.n; i++) {
		uint32_t up = p->span.op[i];
		if (!module_flops_has(x, i))
			continue;
		x->all_ns += up == ROW_NONE ? p->span.dur_ns[i] : 0;
		x->unknown_ns += x->f->unknown[i] && (up == ROW_NONE || !x->f->unknown[up]) ? p->span.dur_ns[i] : 0;
	}
}

/* From the leaves up: `order` has parents first. */
static void module_flops_count_count(struct module_flops *x)
{
	const struct module_tree *t = &x->m->tree;
	x->of = NEW_ARRAY(t->n, struct module_figures);
	for (uint32_t i = 0; i < x->p->span.rows.n; i++)
		if (module_flops_has(x, i) && (x->f->flops[i] || x->f->unknown[i]))
			count_span(x, i);
	for (uint32_t k = t->n_order; k-- > 0;) {
		struct module_figures *f = &x->of[t->order[k]];
		uint32_t up = t->v[t->order[k]].parent;
		for (int part = 0; part < MODULE_PARTS; part++) {
			module_flops_count_add(x, &f->all[part], f->self[part]);
			if (up != MODULE_NONE)
				module_flops_count_add(x, &x->of[up].all[part], f->all[part]);
		}
		if (up != MODULE_NONE)
			x->of[up].unknown += f->unknown;
	}
	count_time(x);
}

struct module_flops *module_flops_new(const struct profile *p, const struct report_args *args, enum op_flops_rules rules, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return NULL;
	struct modules *m = modules_new(p, &modules_own, w.all ? NULL : &w.in);
	if (m->source == MODULES_NONE) {
		modules_free(m);
		err_set(e, ERR_DATA, "the input holds no modules; to record them: %s", recording_how(p, RECORD_MODULES));
		return NULL;
	}
	struct costs *c = costs_new(p, &cost_own);
	struct module_flops *x = NEW(struct module_flops);
	*x = (struct module_flops){.p = p, .w = w, .m = m, .f = op_flops_new(p, c, m->links, rules)};
	costs_free(c);
	module_flops_count_count(x);
	if (!x->overflow)
		return x;
	err_set(e, ERR_LIMIT, "the FLOPs of all ops are more than 2^63: shapes that cannot be");
	module_flops_free(x);
	return NULL;
}

void module_flops_free(struct module_flops *x)
{
	mem_free(x->of);
	op_flops_free(x->f);
	modules_free(x->m);
	mem_free(x);
}

uint32_t module_flops_depth(const struct report_args *args, uint32_t otherwise)
{
	int64_t n;
	if (!report_groups_by(args, "depth", &n))
		return otherwise;
	return n > 0 && n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}
