/* DLProf's op type report. */
#include "base/intern.h"
#include "base/mem.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"

#include <stdlib.h>

struct dlprof_op_types_type_row {
	struct str type;
	uint32_t ops;
	struct op_sum sum;
};

struct dlprof_op_types_types {
	const struct profile *p;
	struct dlprof_op_types_type_row *v;  /* v[0] is of ops without a type, if there are any */
	uint32_t n;
	uint32_t *of_op;         /* op -> its type */
	bool *seen;              /* op: counted in `ops` */
	struct arena texts;
};

static void dlprof_op_types_find_types(struct dlprof_op_types_types *x)
{
	struct intern keys;
	intern_init(&keys);
	for (uint32_t i = 0; i < x->p->ops->n_ops; i++) {
		struct dlprof_op_names names;
		dlprof_op_names(x->p->ops, x->p, i, &x->texts, &names);
		x->of_op[i] = intern_str(&keys, names.type);
		x->v[x->of_op[i]].type = names.type;
	}
	x->n = keys.n;
	intern_release(&keys);
}

static void dlprof_op_types_sum_types(struct dlprof_op_types_types *x, const struct window *w, struct op_tc *tc)
{
	const struct ops *o = x->p->ops;
	for (uint32_t k = 0; k < o->n_instances; k++) {
		if (o->instance[k].span == ROW_NONE || !op_in_window(x->p, k, w))
			continue;
		uint32_t op = o->instance[k].op;
		struct dlprof_op_types_type_row *r = &x->v[x->of_op[op]];
		r->ops += !x->seen[op];
		x->seen[op] = true;
		op_sum_add(&r->sum, x->p, k, tc);
	}
}

static int by_type(const void *a, const void *b)
{
	return str_cmp(((const struct dlprof_op_types_type_row *)a)->type, ((const struct dlprof_op_types_type_row *)b)->type);
}

static void types_table(struct dlprof_op_types_types *x, struct table *t)
{
	TABLE_COLUMN(t, .id = "op_type", .title = "Op Type", .help = "The op alone.", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "no_ops", .title = "# Ops", .help = "Ops of that type.", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "no_calls", .title = "# Calls", .help = "How often they ran.", .type = CELL_I64);
	unsigned first = dlprof_time_columns(t);
	qsort(x->v, x->n, sizeof *x->v, by_type);
	for (uint32_t i = 0; i < x->n; i++) {
		if (!x->v[i].sum.calls)
			continue;
		table_row(t);
		table_set_str_copy(t, 0, x->v[i].type);
		table_set_i64(t, 1, x->v[i].ops);
		table_set_i64(t, 2, (int64_t)x->v[i].sum.calls);
		dlprof_put_times(t, first, &x->v[i].sum);
	}
}

int dlprof_op_types(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct window w;
	if (op_check(p, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	uint32_t n = p->ops->n_ops;
	struct dlprof_op_types_types x = {.p = p, .v = NEW_ARRAY(n + 1, struct dlprof_op_types_type_row), .of_op = NEW_ARRAY(n, uint32_t), .seen = NEW_ARRAY(n, bool)};
	struct op_tc *tc = op_tc_new(p, true);
	dlprof_op_types_find_types(&x);
	dlprof_op_types_sum_types(&x, &w, tc);
	types_table(&x, t);
	arena_release(&x.texts);
	mem_free(x.v);
	mem_free(x.of_op);
	mem_free(x.seen);
	op_tc_free(tc);
	return 0;
}
