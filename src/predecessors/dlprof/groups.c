/* DLProf's group report. */
#include "base/mem.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"
#include "report/parts/group_tree.h"

#include <stdlib.h>

struct dlprof_groups_named {
	struct str name;
	uint32_t group;
};

static int dlprof_groups_by_name(const void *a, const void *b)
{
	return str_cmp(((const struct dlprof_groups_named *)a)->name, ((const struct dlprof_groups_named *)b)->name);
}

static void dlprof_groups_put_times(struct table *t, unsigned first, const struct group *g)
{
	struct op_sum s = {.calls = g->iterations};
	memcpy(s.time, g->time, sizeof s.time);
	dlprof_put_times(t, first, &s);
}

static void groups_table(const struct group_tree *tree, struct table *t)
{
	struct dlprof_groups_named *v = NEW_ARRAY(tree->n, struct dlprof_groups_named);
	for (uint32_t g = 0; g < tree->n; g++)
		v[g] = (struct dlprof_groups_named){op_name_brackets(tree->v[g].name, &t->arena), g};
	qsort(v, tree->n, sizeof *v, dlprof_groups_by_name);
	TABLE_COLUMN(t, .id = "name", .title = "Name", .help = "The path that its ops have in common.", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "num_calls_aggregated", .title = "Num Calls Aggregated", .help = "Calls of ops in it.", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "num_tc_eligible_ops", .title = "Num TC Eligible Ops", .help = "Ops in it that could use Tensor Cores.", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "num_ops_using_tc", .title = "Num Ops Using TC", .help = "Ops in it that do.", .type = CELL_I64);
	unsigned first = dlprof_time_columns(t);
	for (uint32_t i = 0; i < tree->n; i++) {
		const struct group *g = &tree->v[v[i].group];
		if (!g->calls)
			continue;
		table_row(t);
		table_set_str(t, 0, v[i].name);
		table_set_i64(t, 1, (int64_t)g->calls);
		table_set_i64(t, 2, g->eligible);
		table_set_i64(t, 3, g->using_tc);
		dlprof_groups_put_times(t, first, g);
	}
	mem_free(v);
}

/* The iterations that the window has; all of the time where it has none. */
static struct dlprof_iterations dlprof_groups_cut(const struct profile *p, const struct window *w)
{
	struct dlprof_iterations d;
	uint32_t n = 0;
	dlprof_iterations_of(p, p->key_op, &d);
	for (uint32_t i = 0; i < d.n; i++) {
		if (!window_has(w, d.start_ns[i]))
			continue;
		d.start_ns[n] = d.start_ns[i];
		d.stop_ns[n++] = d.stop_ns[i] < INT64_MAX ? d.stop_ns[i] + 1 : INT64_MAX;
	}
	if (!n) {
		d.start_ns[0] = INT64_MIN;
		d.stop_ns[0] = INT64_MAX;
		n = 1;
	}
	d.n = n;
	return d;
}

int dlprof_groups(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	struct group_tree tree;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct dlprof_iterations d = dlprof_groups_cut(p, &w);
	group_tree_init(&tree, p, false);
	group_tree_measure(&tree, p, &w, &(struct group_iterations){d.start_ns, d.stop_ns, d.n}, &dlprof_op_rules);
	groups_table(&tree, t);
	dlprof_table_hints(t, p, &w, HINT_KERNELS);
	group_tree_release(&tree);
	dlprof_iterations_release(&d);
	return 0;
}
