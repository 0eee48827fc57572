/* The table of torch.utils.flop_counter's FlopCounterMode, from a trace. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "predecessors/torch/reports.h"
#include "report/parts/module_flops.h"

#include <stdio.h>
#include <stdlib.h>

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
	const struct module_flops *x;
	struct by_op *of;        /* one per node, the last one for all ("Global") */
	struct arena arena;
	unsigned suffix;         /* of all numbers: that of the total */
};

static void by_op_add(struct by_op *to, int op, int64_t flops, int64_t at_ns)
{
	to->flops[op] += flops; /* no more than the total, which fits */
	to->first_ns[op] = at_ns < to->first_ns[op] ? at_ns : to->first_ns[op];
}

static void torch_module_flops_collect(struct torch_table *t)
{
	const struct module_flops *x = t->x;
	const struct module_tree *tree = &x->m->tree;
	t->of = NEW_ARRAY((size_t)tree->n + 1, struct by_op);
	for (uint32_t i = 0; i <= tree->n; i++)
		for (int op = 0; op < OP_FLOPS_TORCH_OPS; op++)
			t->of[i].first_ns[op] = INT64_MAX;
	for (uint32_t i = 0; i < x->p->span.rows.n; i++) {
		if (!module_flops_has(x, i) || (!x->f->flops[i] && !x->f->unknown[i]))
			continue;
		int op = op_flops_torch_op(profile_str(x->p, x->p->span.name[i]));
		uint32_t node = module_flops_node(x, i);
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
static unsigned torch_module_flops_suffix_of(int64_t flops)
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

static bool torch_module_flops_is_counted(const struct by_op *b)
{
	return ANY_WHERE(op, 0, OP_FLOPS_TORCH_OPS, b->first_ns[op] != INT64_MAX);
}

/* A module, and below it its ops in order of their first calls. */
static void torch_module_flops_put_module(struct torch_table *t, struct table *out, unsigned pad, struct str name, const struct by_op *b)
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
	return str_cmp(x->path, y->path) ?: COMPARE(x->node, y->node);
}

static void torch_module_flops_put_torch(const struct module_flops *x, uint32_t depth, struct table *out)
{
	static const struct column torch_columns[] = {
		{.id = "module", .title = "Module", .help = "path of the module, or below it an op", .type = CELL_STR, .flags = COLUMN_ANSWER},
		{.id = "flop", .title = "FLOP", .help = "with modules inside; all with the suffix that fits the total", .type = CELL_STR, .flags = COLUMN_ANSWER},
		{.id = "pct_total", .title = "% Total", .help = "of all FLOPs", .type = CELL_STR, .flags = COLUMN_ANSWER},
	};
	struct torch_table t = {.x = x, .suffix = torch_module_flops_suffix_of(x->total)};
	const struct module_tree *tree = &x->m->tree;
	struct torch_row *row = NEW_ARRAY_RAW(tree->n_order, struct torch_row);
	struct buf b = {0};
	uint32_t n = 0;
	bool subsumed = false;
	torch_module_flops_collect(&t);
	for (uint32_t k = 0; k < tree->n_order; k++) {
		uint32_t node = tree->order[k];
		if (tree->v[node].depth >= depth || !torch_module_flops_is_counted(&t.of[node]))
			continue;
		subsumed |= total_of(&t.of[node]) >= x->total;
		row[n++] = (struct torch_row){path_of(&t, node, &b), node};
	}
	qsort(row, n, sizeof *row, by_path);
	table_columns(out, torch_columns, sizeof torch_columns / sizeof torch_columns[0]);
	bool global = torch_module_flops_is_counted(&t.of[tree->n]) && !subsumed;
	if (global)
		torch_module_flops_put_module(&t, out, 0, STR("Global"), &t.of[tree->n]);
	for (uint32_t i = 0; i < n; i++)
		torch_module_flops_put_module(&t, out, tree->v[row[i].node].depth + global, row[i].path, &t.of[row[i].node]);
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

int torch_module_flops(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	enum { DEPTH = 2 }; /* FlopCounterMode's own */
	struct module_flops *x = module_flops_new(p, args, OP_FLOPS_TORCH, e);
	if (!x)
		return -1;
	torch_module_flops_put_torch(x, module_flops_depth(args, args->group_by ? UINT32_MAX : DEPTH), out);
	module_flops_free(x);
	return 0;
}
