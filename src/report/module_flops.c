/* FLOPs by module, forward and backward. */
#include "report/parts/module_flops.h"

static int64_t module_flops_sum(const int64_t parts[MODULE_PARTS]) { return parts[MODULE_FORWARD] + parts[MODULE_BACKWARD]; }

enum {
	MODULE_FLOPS_DEPTH, MODULE_FLOPS_MODULE, MODULE_FLOPS_CALLS, MODULE_FLOPS_FLOPS, MODULE_FLOPS_PCT, MODULE_FLOPS_FORWARD, MODULE_FLOPS_BACKWARD, MODULE_FLOPS_SELF,
	MODULE_FLOPS_UNKNOWN
};
static const struct section module_flops_section = {COLUMNS(
	[MODULE_FLOPS_DEPTH] = {COLUMN(NUMBER, "depth", "Depth", "0 = root; rows stand in pre-order", .flags = COLUMN_TREE)},
	[MODULE_FLOPS_MODULE] = {COLUMN(TEXT, "module", "Module", "class and number of the module", .flags = COLUMN_ANSWER)},
	[MODULE_FLOPS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it was called, recomputation left out")},
	[MODULE_FLOPS_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "of all its calls, forward and backward, modules inside included; what is unknown counts 0",
	                               .flags = COLUMN_ANSWER)},
	[MODULE_FLOPS_PCT] = {COLUMN(PERCENT, "flops_pct", "% Total", "of the FLOPs of all ops", .flags = COLUMN_ANSWER)},
	[MODULE_FLOPS_FORWARD] = {COLUMN(FLOPS, "forward_flops", "Forward", "the part of the forward pass")},
	[MODULE_FLOPS_BACKWARD] = {COLUMN(FLOPS, "backward_flops", "Backward", "the part of the backward pass, recomputation included")},
	[MODULE_FLOPS_SELF] = {COLUMN(FLOPS, "self_flops", "Own FLOPs", "without the modules inside")},
	[MODULE_FLOPS_UNKNOWN] = {COLUMN(COUNT, "unknown_ops", "Unknown Ops", "calls of ops inside whose FLOPs are not known, for want of a model or of recorded "
	                                 "shapes")},
)};

static void module_flops_put_row(const struct module_flops *x, struct table *t, struct str name, int64_t depth, int64_t flops)
{
	table_row(t);
	table_set_i64(t, MODULE_FLOPS_DEPTH, depth);
	table_set_str_copy(t, MODULE_FLOPS_MODULE, name);
	table_set_i64(t, MODULE_FLOPS_FLOPS, flops);
	if (x->total > 0)
		table_set_f64(t, MODULE_FLOPS_PCT, 100.0 * (double)flops / (double)x->total);
}

/* With --steps, modules that did not run in these steps are left out. */
static bool module_flops_is_idle(const struct module_flops *x, uint32_t node)
{
	return !x->w.all && !x->m->tree.v[node].calls && !x->of[node].unknown && !module_flops_sum(x->of[node].all);
}

static void put_modules(const struct module_flops *x, uint32_t depth, struct table *t)
{
	for (uint32_t k = 0; k < x->m->tree.n_order; k++) {
		uint32_t node = x->m->tree.order[k];
		const struct module_node *n = &x->m->tree.v[node];
		const struct module_figures *f = &x->of[node];
		if (n->depth >= depth || module_flops_is_idle(x, node))
			continue;
		module_flops_put_row(x, t, intern_get(&x->m->tree.names, n->name), n->depth, module_flops_sum(f->all));
		if (x->m->source != MODULES_TORCHSCRIPT)
			table_set_i64(t, MODULE_FLOPS_CALLS, (int64_t)n->calls);
		table_set_i64(t, MODULE_FLOPS_FORWARD, f->all[MODULE_FORWARD]);
		table_set_i64(t, MODULE_FLOPS_BACKWARD, f->all[MODULE_BACKWARD]);
		table_set_i64(t, MODULE_FLOPS_SELF, module_flops_sum(f->self));
		table_set_i64(t, MODULE_FLOPS_UNKNOWN, (int64_t)f->unknown);
	}
	if (x->optimizer)
		module_flops_put_row(x, t, STR("(optimizer)"), 0, x->optimizer);
	if (x->outside || x->unknown_outside) {
		module_flops_put_row(x, t, STR("(outside modules)"), 0, x->outside);
		table_set_i64(t, MODULE_FLOPS_UNKNOWN, (int64_t)x->unknown_outside);
	}
}

static void module_flops_put_notes(const struct module_flops *x, struct table *t)
{
	int64_t modules = x->total - x->optimizer - x->outside;
	table_note(t, "FLOPs %lld = modules %lld + optimizer %lld + outside any module %lld; a multiply-add is 2", (long long)x->total, (long long)modules,
	           (long long)x->optimizer, (long long)x->outside);
	if (x->all_ns > 0)
		table_warn(t, "unknown: the FLOPs of %llu calls of ops, with %.2f %% of the %s (%lld of %lld ns); they count 0 here", (unsigned long long)x->unknown,
		           100.0 * (double)x->unknown_ns / (double)x->all_ns, x->p->gpu_op.rows.n ? "kernels' time" : "host time of ops",
		           (long long)x->unknown_ns, (long long)x->all_ns);
}

static const char *const groupings[] = {"tree", "depth:N", NULL};

static int module_flops_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct module_flops *x = module_flops_new(p, args, OP_FLOPS_DEFAULT, e);
	if (!x)
		return -1;
	section_start(&module_flops_section, args, 0, out);
	put_modules(x, module_flops_depth(args, UINT32_MAX), out);
	module_flops_put_notes(x, out);
	module_flops_free(x);
	return 0;
}

static const struct report_variant module_flops_variants[] = {
	{.parts = groupings},
	{0},
};

const struct report report_module_flops = {
	.name = "module-flops",
	.title = "FLOPs by module",
	.asks = ASKS_PART,
	.help = "How many floating-point operations each nn.Module takes, forward and backward, on a GPU or the CPU, by the models of report costs: each "
	        "operation counts once, at the innermost op whose FLOPs are known. Needs modules (with_stack=True) and shapes (record_shapes=True). A note says "
	        "what is unknown. --group-by=depth:N shows N levels.",
	.variants = module_flops_variants,
	.sections = (const struct section *const[]){&module_flops_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = module_flops_run,
};
