#include "predecessors/dlprof/op_table.h"

#include "base/mem.h"

const struct op_rules dlprof_op_rules = {
	.listed_kernels = true, .by_type = true, .recorded_calls = true, .function_names = true, .call_per_launch = true,
};

static void dlprof_op_table_add_note(void *context, struct str text)
{
	table_note(context, STR_FMT, STR_ARG(text));
}

void dlprof_table_hints(struct table *t, const struct profile *p, const struct window *w, unsigned which)
{
	uint8_t *in = w->all ? NULL : NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t g = 0; in && g < p->gpu_op.rows.n; g++)
		in[g] = op_in_window(p, p->ops->of_gpu[g], w);
	dlprof_hints(p, which, in, dlprof_op_table_add_note, t);
	mem_free(in);
}

unsigned dlprof_time_columns(struct table *t)
{
#define TIME(id, title, what) \
	{"total_" id "_time_ns", "Total " title " (ns)", "Total " what, CELL_I64, UNIT_NONE, 0, 0}, \
	{"avg_" id "_time_ns", "Avg. " title " (ns)", "Mean " what, CELL_F64, UNIT_NONE, 0, 1}, \
	{"min_" id "_time_ns", "Min " title " (ns)", "Smallest " what, CELL_I64, UNIT_NONE, 0, 0}, \
	{"max_" id "_time_ns", "Max " title " (ns)", "Largest " what, CELL_I64, UNIT_NONE, 0, 0}
	static const struct column columns[] = {
		TIME("cpu", "CPU Time", "length of the op's range on the host."),
		TIME("gpu", "GPU Time", "length of the union of its device work."),
		TIME("cpu_overhead", "CPU Overhead", "host time that is not in API calls."),
		TIME("gpu_idle", "GPU Idle", "time between its first and last device work in which it ran none."),
	};
#undef TIME
	unsigned first = t->n_columns;
	for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
		table_column(t, &columns[i]);
	return first;
}

void dlprof_put_times(struct table *t, unsigned first, const struct op_sum *s)
{
	for (unsigned i = 0; i < OP_TIMES; i++) {
		table_set_i64(t, first + 4 * i, s->time[i].total);
		table_set_f64(t, first + 4 * i + 1, op_stat_mean(s, (enum op_time)i));
		table_set_i64(t, first + 4 * i + 2, s->time[i].min);
		table_set_i64(t, first + 4 * i + 3, s->time[i].max);
	}
}
