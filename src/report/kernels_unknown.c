/* Kernels that the rules do not know, hottest first: what a rule would be worth. */
#include "base/mem.h"
#include "base/round.h"
#include "op/kernels.h"
#include "report/window.h"

#include <math.h>

enum { NAMED_OPS = 3 }; /* that many of the ops that launched a kernel are named */

struct group {
	uint64_t calls;
	int64_t ns;
	uint32_t op[NAMED_OPS], n_ops; /* string ids; n_ops may exceed NAMED_OPS by one: there are more */
	bool seen;
};

static void add_op(struct group *x, uint32_t op)
{
	for (uint32_t i = 0; i < x->n_ops && i < NAMED_OPS; i++)
		if (x->op[i] == op)
			return;
	if (x->n_ops < NAMED_OPS)
		x->op[x->n_ops] = op;
	if (x->n_ops <= NAMED_OPS)
		x->n_ops++;
}

/* By string id of the name. */
static struct group *collect(const struct profile *p, const struct window *w, int64_t *all_ns)
{
	struct group *v = NEW_ARRAY(p->strings.n, struct group);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (p->gpu_op.kind[i] != GPU_KERNEL || !window_has_gpu(w, p, i))
			continue;
		struct group *x = &v[p->gpu_op.name[i]];
		x->seen = true;
		x->calls++;
		x->ns += p->gpu_op.dur_ns[i];
		*all_ns += p->gpu_op.dur_ns[i];
		if (p->gpu_op.op[i] != ROW_NONE)
			add_op(x, p->span.name[p->gpu_op.op[i]]);
	}
	return v;
}

static void put_ops(struct table *out, unsigned col, const struct profile *p, const struct group *x)
{
	struct str s[NAMED_OPS] = {{"", 0}, {"", 0}, {"", 0}};
	for (uint32_t i = 0; i < x->n_ops && i < NAMED_OPS; i++)
		s[i] = profile_str(p, x->op[i]);
	if (x->n_ops)
		table_set_fmt(out, col, STR_FMT "%s" STR_FMT "%s" STR_FMT "%s", STR_ARG(s[0]), x->n_ops > 1 ? ", " : "", STR_ARG(s[1]),
		              x->n_ops > 2 ? ", " : "", STR_ARG(s[2]), x->n_ops > NAMED_OPS ? ", ..." : "");
}

static int kernels_unknown_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	enum { C_NAME, C_UNKNOWN, C_CLASS, C_OPS, C_CALLS, C_TOTAL, C_SHARE, N_COLUMNS };
	static const struct column columns[N_COLUMNS] = {
		[C_NAME] = {"name", "Kernel", "name of the kernel", CELL_STR, UNIT_NONE, COLUMN_WIDE},
		[C_UNKNOWN] = {"unknown", "Unknown", "what no rule tells: class, Tensor Cores, or both", CELL_STR},
		[C_CLASS] = {"class", "Class", "what it does, by its name", CELL_STR},
		[C_OPS] = {"operators", "Operators", "ops that launched it, the first three; empty = none known", CELL_STR, UNIT_NONE, COLUMN_WIDE},
		[C_CALLS] = {"calls", "Calls", "how often it ran", CELL_I64, UNIT_COUNT},
		[C_TOTAL] = {"total_ns", "Total", "sum of its durations", CELL_I64, UNIT_NS},
		[C_SHARE] = {"total_pct", "Total %", "total / time of all kernels, known or not", CELL_F64, UNIT_PERCENT},
	};
	int64_t all = 0, no_class = 0, no_tc = 0;
	struct group *v = collect(p, &w, &all);
	table_columns(out, columns, N_COLUMNS);
	bool any = false;
	for (uint32_t id = 0; id < p->strings.n; id++) {
		const struct group *x = &v[id];
		any |= x->seen;
		if (!x->seen)
			continue;
		struct kernel_info k = kernel_classify(profile_str(p, id));
		bool class = k.class == KERNEL_UNKNOWN, tc = k.tensor_core == TRI_UNKNOWN;
		no_class += class ? x->ns : 0;
		no_tc += tc ? x->ns : 0;
		if (!class && !tc)
			continue;
		table_row(out);
		table_set_str(out, C_NAME, profile_str(p, id));
		table_set_str(out, C_UNKNOWN, class && tc ? STR("class, Tensor Cores") : class ? STR("class") : STR("Tensor Cores"));
		table_set_str(out, C_CLASS, str_from(kernel_class_name[k.class]));
		put_ops(out, C_OPS, p, x);
		table_set_i64(out, C_CALLS, (int64_t)x->calls);
		table_set_i64(out, C_TOTAL, x->ns);
		table_set_f64(out, C_SHARE, percent((double)x->ns, (double)all));
	}
	mem_free(v);
	if (!any)
		return w.all ? err_set(e, ERR_DATA, "the input holds no kernels") : err_set(e, ERR_DATA, "no kernel is of those steps");
	table_note(out, "kernels %lld ns = of a known class %lld + unknown %lld", (long long)all, (long long)(all - no_class),
	           (long long)no_class);
	table_note(out, "kernels %lld ns = Tensor Core use known by the name %lld + unknown %lld", (long long)all, (long long)(all - no_tc),
	           (long long)no_tc);
	if (out->n_rows)
		table_note(out, "a rule is a line in src/op/kernels.def: KERNEL(\"part of the name\", CLASS, YES, NO or UNKNOWN); the first that "
		           "matches holds");
	return table_sort(out, STR("total_ns"), true, e);
}

const struct report report_kernels_unknown = {
	.name = "kernels-unknown",
	.title = "Kernels that no rule knows",
	.help = "Kernels whose class, or whose use of Tensor Cores, cannot be told from their name, with the time at stake and the ops that "
	        "launched them. The notes say which share of the kernel time is known. An empty table: all are.",
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = kernels_unknown_run,
};
