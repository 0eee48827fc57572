/* FLOPs by module: the table of torch.utils.flop_counter's FlopCounterMode, from a trace. */
#include "analysis/modules.h"
#include "analysis/op_flops.h"
#include "analysis/recording.h"
#include "base/buf.h"
#include "base/mem.h"
#include "report/window.h"

#include <stdio.h>
#include <stdlib.h>

enum { FORWARD, BACKWARD, PARTS };

/* Of a module; `all` with the modules inside. */
struct figures {
	int64_t self[PARTS], all[PARTS];
	uint64_t unknown;        /* calls, with the modules inside */
};

struct counted {
	const struct profile *p;
	const struct modules *m;
	const struct op_flops *f;
	const struct window *w;
	struct figures *of;      /* one per node */
	int64_t total, optimizer, outside;
	uint64_t unknown, unknown_outside;
	int64_t unknown_ns, all_ns; /* device time, else host time of the outermost ops */
	bool overflow;
};

static void add(struct counted *x, int64_t *to, int64_t v)
{
	x->overflow |= __builtin_add_overflow(*to, v, to);
}

static bool in_window(const struct counted *x, uint32_t span)
{
	return x->p->span.kind[span] == SPAN_OP && window_has(x->w, x->p->span.start_ns[span]);
}

static uint32_t node_of(const struct counted *x, uint32_t span)
{
	return module_tree_live(&x->m->tree, x->m->place[span]);
}

static void count_span(struct counted *x, uint32_t i)
{
	uint32_t node = node_of(x, i);
	enum module_phase phase = (enum module_phase)x->m->phase[i];
	int64_t flops = x->f->flops[i];
	x->unknown += x->f->unknown[i];
	add(x, &x->total, flops);
	if (node != MODULE_NONE) {
		bool forward = phase == PHASE_FORWARD || phase == PHASE_OUTSIDE;
		add(x, &x->of[node].self[forward ? FORWARD : BACKWARD], flops);
		x->of[node].unknown += x->f->unknown[i];
	} else {
		add(x, phase == PHASE_OPTIMIZER ? &x->optimizer : &x->outside, flops);
		x->unknown_outside += x->f->unknown[i];
	}
}

static void count_time(struct counted *x)
{
	const struct profile *p = x->p;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || !window_has_gpu(x->w, p, g))
			continue;
		uint32_t op = p->gpu_op.op[g];
		x->all_ns += p->gpu_op.dur_ns[g];
		x->unknown_ns += op == ROW_NONE || x->f->unknown[op] ? p->gpu_op.dur_ns[g] : 0;
	}
	for (uint32_t i = 0; !p->gpu_op.rows.n && i < p->span.rows.n; i++) {
		uint32_t up = p->span.op[i];
		if (!in_window(x, i))
			continue;
		x->all_ns += up == ROW_NONE ? p->span.dur_ns[i] : 0;
		x->unknown_ns += x->f->unknown[i] && (up == ROW_NONE || !x->f->unknown[up]) ? p->span.dur_ns[i] : 0;
	}
}

/* From the leaves up: `order` has parents first. */
static void count(struct counted *x)
{
	const struct module_tree *t = &x->m->tree;
	x->of = NEW_ARRAY(t->n, struct figures);
	for (uint32_t i = 0; i < x->p->span.rows.n; i++)
		if (in_window(x, i) && (x->f->flops[i] || x->f->unknown[i]))
			count_span(x, i);
	for (uint32_t k = t->n_order; k-- > 0;) {
		struct figures *f = &x->of[t->order[k]];
		uint32_t up = t->v[t->order[k]].parent;
		for (int part = 0; part < PARTS; part++) {
			add(x, &f->all[part], f->self[part]);
			if (up != MODULE_NONE)
				add(x, &x->of[up].all[part], f->all[part]);
		}
		if (up != MODULE_NONE)
			x->of[up].unknown += f->unknown;
	}
	count_time(x);
}

static int64_t sum(const int64_t parts[PARTS]) { return parts[FORWARD] + parts[BACKWARD]; }

enum { C_DEPTH, C_MODULE, C_CALLS, C_FLOPS, C_PCT, C_FORWARD, C_BACKWARD, C_SELF, C_UNKNOWN, N_COLUMNS };
static const struct column columns[N_COLUMNS] = {
	[C_DEPTH] = {"depth", "Depth", "0 = root; rows stand in pre-order", CELL_I64, UNIT_NONE, COLUMN_TREE},
	[C_MODULE] = {"module", "Module", "class and number of the module", CELL_STR, UNIT_NONE, COLUMN_KEY},
	[C_CALLS] = {"calls", "Calls", "how often it was called, recomputation left out", CELL_I64, UNIT_COUNT},
	[C_FLOPS] = {"flops", "FLOPs", "of all its calls, forward and backward, modules inside included; what is unknown counts 0", CELL_I64, UNIT_FLOPS, COLUMN_KEY},
	[C_PCT] = {"flops_pct", "% Total", "of the FLOPs of all ops", CELL_F64, UNIT_PERCENT, COLUMN_KEY},
	[C_FORWARD] = {"forward_flops", "Forward", "the part of the forward pass", CELL_I64, UNIT_FLOPS},
	[C_BACKWARD] = {"backward_flops", "Backward", "the part of the backward pass, recomputation included", CELL_I64, UNIT_FLOPS},
	[C_SELF] = {"self_flops", "Own FLOPs", "without the modules inside", CELL_I64, UNIT_FLOPS},
	[C_UNKNOWN] = {"unknown_ops", "Unknown Ops", "calls of ops inside whose FLOPs are not known, for want of a model or of recorded shapes", CELL_I64, UNIT_COUNT},
};

static void put_row(const struct counted *x, struct table *t, struct str name, int64_t depth, int64_t flops)
{
	table_row(t);
	table_set_i64(t, C_DEPTH, depth);
	table_set_str_copy(t, C_MODULE, name);
	table_set_i64(t, C_FLOPS, flops);
	if (x->total > 0)
		table_set_f64(t, C_PCT, 100.0 * (double)flops / (double)x->total);
}

/* With --steps, modules that these steps did not touch are left out. */
static bool is_idle(const struct counted *x, uint32_t node)
{
	return !x->w->all && !x->m->tree.v[node].calls && !x->of[node].unknown && !sum(x->of[node].all);
}

static void put_modules(const struct counted *x, uint32_t depth, struct table *t)
{
	table_columns(t, columns, N_COLUMNS);
	for (uint32_t k = 0; k < x->m->tree.n_order; k++) {
		uint32_t node = x->m->tree.order[k];
		const struct module_node *n = &x->m->tree.v[node];
		const struct figures *f = &x->of[node];
		if (n->depth >= depth || is_idle(x, node))
			continue;
		put_row(x, t, intern_get(&x->m->tree.names, n->name), n->depth, sum(f->all));
		if (x->m->source != MODULES_TORCHSCRIPT)
			table_set_i64(t, C_CALLS, (int64_t)n->calls);
		table_set_i64(t, C_FORWARD, f->all[FORWARD]);
		table_set_i64(t, C_BACKWARD, f->all[BACKWARD]);
		table_set_i64(t, C_SELF, sum(f->self));
		table_set_i64(t, C_UNKNOWN, (int64_t)f->unknown);
	}
	if (x->optimizer)
		put_row(x, t, STR("(optimizer)"), 0, x->optimizer);
	if (x->outside || x->unknown_outside) {
		put_row(x, t, STR("(outside modules)"), 0, x->outside);
		table_set_i64(t, C_UNKNOWN, (int64_t)x->unknown_outside);
	}
}

static void put_notes(const struct counted *x, struct table *t)
{
	int64_t modules = x->total - x->optimizer - x->outside;
	table_note(t, "FLOPs %lld = modules %lld + optimizer %lld + outside any module %lld; a multiply-add is 2", (long long)x->total, (long long)modules,
	           (long long)x->optimizer, (long long)x->outside);
	if (x->all_ns > 0)
		table_warn(t, "unknown: the FLOPs of %llu calls of ops, with %.2f %% of the %s (%lld of %lld ns); they count 0 here", (unsigned long long)x->unknown,
		           100.0 * (double)x->unknown_ns / (double)x->all_ns, x->p->gpu_op.rows.n ? "kernels' time" : "host time of ops",
		           (long long)x->unknown_ns, (long long)x->all_ns);
}

/* --- torch's table --------------------------------------------------------------------------------------------- */

/* What a module counted by op, with the modules inside. */
struct by_op {
	int64_t flops[OP_FLOPS_TORCH_OPS];
	int64_t first_ns[OP_FLOPS_TORCH_OPS]; /* when the op was first called; INT64_MAX = never */
};

struct torch_row {
	struct str path;
	uint32_t node;
};

struct torch_table {
	const struct counted *x;
	struct by_op *of;        /* one per node, the last one for all ("Global") */
	struct arena arena;
	unsigned suffix;         /* of all numbers: that of the total */
};

static void by_op_add(struct by_op *to, int op, int64_t flops, int64_t at_ns)
{
	to->flops[op] += flops; /* no more than the total, which fits */
	to->first_ns[op] = at_ns < to->first_ns[op] ? at_ns : to->first_ns[op];
}

static void collect(struct torch_table *t)
{
	const struct counted *x = t->x;
	const struct module_tree *tree = &x->m->tree;
	t->of = NEW_ARRAY((size_t)tree->n + 1, struct by_op);
	for (uint32_t i = 0; i <= tree->n; i++)
		for (int op = 0; op < OP_FLOPS_TORCH_OPS; op++)
			t->of[i].first_ns[op] = INT64_MAX;
	for (uint32_t i = 0; i < x->p->span.rows.n; i++) {
		if (!in_window(x, i) || (!x->f->flops[i] && !x->f->unknown[i]))
			continue;
		int op = op_flops_torch_op(profile_str(x->p, x->p->span.name[i]));
		uint32_t node = node_of(x, i);
		by_op_add(&t->of[tree->n], op, x->f->flops[i], x->p->span.start_ns[i]);
		if (node != MODULE_NONE)
			by_op_add(&t->of[node], op, x->f->flops[i], x->p->span.start_ns[i]);
	}
	for (uint32_t k = tree->n_order; k-- > 0;) {
		const struct by_op *from = &t->of[tree->order[k]];
		uint32_t up = tree->v[tree->order[k]].parent;
		for (int op = 0; up != MODULE_NONE && op < OP_FLOPS_TORCH_OPS; op++)
			if (from->first_ns[op] != INT64_MAX)
				by_op_add(&t->of[up], op, from->flops[op], from->first_ns[op]);
	}
}

static const char suffixes[] = {0, 'K', 'M', 'B', 'T'};

/* By the number of digits, so that 1.01 of a unit is 1010 of the one below. */
static unsigned suffix_of(int64_t flops)
{
	char digits[32];
	int n = (snprintf(digits, sizeof digits, "%lld", (long long)flops) - 2) / 3;
	return (unsigned)(n < 0 ? 0 : n > 4 ? 4 : n);
}

static void put_cells(struct torch_table *t, struct table *out, unsigned pad, const char *dash, struct str name, int64_t flops)
{
	static const double unit[] = {1, 1e3, 1e6, 1e9, 1e12};
	table_row(out);
	table_set_fmt(out, 0, "%*s%s" STR_FMT, (int)pad, "", dash, STR_ARG(name));
	table_set_fmt(out, 1, "%.3f%.*s", (double)flops / unit[t->suffix], t->suffix ? 1 : 0, &suffixes[t->suffix]);
	if (t->x->total)
		table_set_fmt(out, 2, "%.2f%%", (double)flops / (double)t->x->total * 100.0);
	else
		table_set_str(out, 2, STR("0%"));
}

static int64_t total_of(const struct by_op *b)
{
	int64_t all = 0;
	for (int op = 0; op < OP_FLOPS_TORCH_OPS; op++)
		all += b->flops[op];
	return all;
}

static bool is_counted(const struct by_op *b)
{
	for (int op = 0; op < OP_FLOPS_TORCH_OPS; op++)
		if (b->first_ns[op] != INT64_MAX)
			return true;
	return false;
}

/* A module, and below it its ops in order of their first calls. */
static void put_module(struct torch_table *t, struct table *out, unsigned pad, struct str name, const struct by_op *b)
{
	bool done[OP_FLOPS_TORCH_OPS] = {0};
	put_cells(t, out, pad, "", name, total_of(b));
	for (;;) {
		int next = -1;
		for (int op = 0; op < OP_FLOPS_TORCH_OPS; op++)
			if (!done[op] && b->first_ns[op] != INT64_MAX && (next < 0 || b->first_ns[op] < b->first_ns[next]))
				next = op;
		if (next < 0)
			return;
		done[next] = true;
		put_cells(t, out, pad, " - ", str_from(op_flops_torch_ops[next]), b->flops[next]);
	}
}

/* Names from the root, with dots; of one nested absurdly deep, only the innermost. */
static struct str path_of(struct torch_table *t, uint32_t node, struct buf *b)
{
	enum { MOST = 100 };
	const struct module_tree *tree = &t->x->m->tree;
	uint32_t up[MOST];
	unsigned n = 0;
	for (; n < MOST && node != MODULE_NONE; node = tree->v[node].parent)
		up[n++] = tree->v[node].name;
	buf_clear(b);
	buf_cstr(b, node != MODULE_NONE ? "..." : "");
	while (n-- > 0) {
		buf_str(b, intern_get(&tree->names, up[n]));
		if (n)
			buf_char(b, '.');
	}
	return arena_str(&t->arena, buf_view(b));
}

static int by_path(const void *a, const void *b)
{
	const struct torch_row *x = a, *y = b;
	int order = str_cmp(x->path, y->path);
	return order ? order : x->node < y->node ? -1 : x->node > y->node;
}

static void put_torch(const struct counted *x, uint32_t depth, struct table *out)
{
	static const struct column torch_columns[] = {
		{"module", "Module", "path of the module, or below it an op", CELL_STR, UNIT_NONE, COLUMN_KEY},
		{"flop", "FLOP", "with modules inside; all with the suffix that fits the total", CELL_STR, UNIT_NONE, COLUMN_KEY},
		{"pct_total", "% Total", "of all FLOPs", CELL_STR, UNIT_NONE, COLUMN_KEY},
	};
	struct torch_table t = {.x = x, .suffix = suffix_of(x->total)};
	const struct module_tree *tree = &x->m->tree;
	struct torch_row *row = NEW_ARRAY_RAW(tree->n_order, struct torch_row);
	struct buf b = {0};
	uint32_t n = 0;
	bool subsumed = false;
	collect(&t);
	for (uint32_t k = 0; k < tree->n_order; k++) {
		uint32_t node = tree->order[k];
		if (tree->v[node].depth >= depth || !is_counted(&t.of[node]))
			continue;
		subsumed |= total_of(&t.of[node]) >= x->total;
		row[n++] = (struct torch_row){path_of(&t, node, &b), node};
	}
	qsort(row, n, sizeof *row, by_path);
	table_columns(out, torch_columns, sizeof torch_columns / sizeof torch_columns[0]);
	bool global = is_counted(&t.of[tree->n]) && !subsumed;
	if (global)
		put_module(&t, out, 0, STR("Global"), &t.of[tree->n]);
	for (uint32_t i = 0; i < n; i++)
		put_module(&t, out, tree->v[row[i].node].depth + global, row[i].path, &t.of[row[i].node]);
	if (!n && !global) {
		table_row(out);
		table_set_str(out, 0, STR("Global"));
		table_set_str(out, 1, STR("0"));
		table_set_str(out, 2, STR("0%"));
	}
	if (x->unknown)
		table_warn(out, "%llu calls of ops that torch counts have no FLOPs here: their shapes were not recorded", (unsigned long long)x->unknown);
	buf_release(&b);
	arena_release(&t.arena);
	mem_free(row);
	mem_free(t.of);
}

static const char *const groupings[] = {"tree", "depth:N", NULL};

static uint32_t depth_of(const struct report_args *args)
{
	int64_t n;
	if (report_groups_by(args, "depth", &n))
		return n > 0 && n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	return args->compat && !args->group_by ? 2 : UINT32_MAX; /* FlopCounterMode's own */
}

static int module_flops_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct counted x = {.p = p, .w = &w};
	struct modules *m = modules_new(p, MODULES_DEFAULT, w.all ? NULL : &w.in);
	if (m->source == MODULES_NONE) {
		modules_free(m);
		return err_set(e, ERR_DATA, "the input holds no modules; to record them: %s", recording_how(p, RECORD_MODULES));
	}
	struct costs *c = costs_new(p, COST_DEFAULT);
	struct op_flops *f = op_flops_new(p, c, m->links, args->compat ? OP_FLOPS_TORCH : OP_FLOPS_DEFAULT);
	int rc = 0;
	x.m = m;
	x.f = f;
	count(&x);
	if (x.overflow) {
		rc = err_set(e, ERR_LIMIT, "the FLOPs of all ops are more than 2^63: shapes that cannot be");
	} else if (args->compat) {
		put_torch(&x, depth_of(args), out);
	} else {
		put_modules(&x, depth_of(args), out);
		put_notes(&x, out);
	}
	mem_free(x.of);
	op_flops_free(f);
	costs_free(c);
	modules_free(m);
	return rc;
}

static const struct report_variant module_flops_variants[] = {
	{.parts = groupings},
	{.compat = "torch", .parts = groupings},
	{0},
};

const struct report report_module_flops = {
	.name = "module-flops",
	.title = "FLOPs by module",
	.asks = ASKS_PART,
	.help = "How many floating-point operations each nn.Module takes, forward and backward, on a GPU or the CPU, by the models of report costs: each "
	        "operation counts once, at the innermost op whose FLOPs are known. Needs modules (with_stack=True) and shapes (record_shapes=True). A note says "
	        "what is unknown. --group-by=depth:N shows N levels. --compat=torch is the table of torch.utils.flop_counter's FlopCounterMode: ops that it has "
	        "a formula for, and no others; modules by class and number, for the trace does not have their attribute names.",
	.variants = module_flops_variants,
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = module_flops_run,
};
