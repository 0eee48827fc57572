#include "report/op_sums.h"

#include "analysis/names.h"
#include "analysis/recording.h"
#include "analysis/slice.h"
#include "base/mem.h"

#include <stdlib.h>

enum tri op_tc_of(const struct profile *p, uint32_t gpu, bool dlprof)
{
	if (p->gpu_op.kind[gpu] != GPU_KERNEL)
		return TRI_NO;
	if (dlprof)
		return name_is(p, p->gpu_op.name[gpu], NAME_TC_LISTED) ? TRI_YES : TRI_NO;
	return gpu_kernel(p, gpu)->tensor_core;
}

static void add_ns(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

static void add_stat(struct op_stat *s, int64_t ns, bool first)
{
	add_ns(&s->total, ns);
	s->min = first || ns < s->min ? ns : s->min;
	s->max = first || ns > s->max ? ns : s->max;
}

void op_sum_add(struct op_sum *s, const struct profile *p, uint32_t k, bool dlprof)
{
	const struct op_instance *x = &p->ops->instance[k];
	bool first = !s->calls++;
	add_stat(&s->time[OP_CPU], x->end_ns - x->start_ns, first);
	add_stat(&s->time[OP_GPU], x->gpu_ns, first);
	add_stat(&s->time[OP_OVERHEAD], x->overhead_ns, first);
	add_stat(&s->time[OP_IDLE], x->idle_ns, first);
	for (uint32_t i = 0; i < x->gpu_n; i++) {
		uint32_t g = p->ops->gpu[x->gpu_first + i];
		int64_t ns = p->gpu_op.dur_ns[g];
		add_ns(&s->work_ns, ns);
		if (p->gpu_op.kind[g] != GPU_KERNEL)
			continue;
		enum tri uses = op_tc_of(p, g, dlprof);
		s->kernels++;
		add_ns(&s->kernel_ns, ns);
		s->tc_kernels += uses == TRI_YES;
		if (uses != TRI_NO)
			add_ns(uses == TRI_YES ? &s->tc_ns : &s->unknown_ns, ns);
	}
}

int op_window(const struct profile *p, const struct report_args *args, struct window *w, struct err *e)
{
	struct step_window s;
	if (!args->has_steps || !report_compat_is(args, "dlprof"))
		return window_of(p, args, w, e);
	if (dlprof_window(p, args->step_first, args->step_last, &s, e) < 0)
		return -1;
	*w = window_from(&s);
	return 0;
}

bool op_in_window(const struct profile *p, uint32_t k, const struct window *w)
{
	const struct op_instance *x = &p->ops->instance[k];
	return x->span == ROW_NONE ? window_has_gpu(w, p, p->ops->gpu[x->gpu_first]) : window_has(w, x->start_ns);
}

/* --- DLProf's tables -------------------------------------------------------------------------------------------- */

static void add_note(void *context, struct str text)
{
	table_note(context, STR_FMT, STR_ARG(text));
}

void op_dlprof_hints(struct table *t, const struct profile *p, const struct window *w, unsigned which)
{
	uint8_t *in = w->all ? NULL : NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t g = 0; in && g < p->gpu_op.rows.n; g++)
		in[g] = op_in_window(p, p->ops->of_gpu[g], w);
	dlprof_hints(p, which, in, add_note, t);
	mem_free(in);
}

unsigned op_dlprof_columns(struct table *t)
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

void op_dlprof_put(struct table *t, unsigned first, const struct op_sum *s)
{
	for (unsigned i = 0; i < OP_TIMES; i++) {
		table_set_i64(t, first + 4 * i, s->time[i].total);
		table_set_f64(t, first + 4 * i + 1, op_stat_mean(s, (enum op_time)i));
		table_set_i64(t, first + 4 * i + 2, s->time[i].min);
		table_set_i64(t, first + 4 * i + 3, s->time[i].max);
	}
}

struct str op_dlprof_direction(const struct op *op)
{
	static const char *const name[DIRECTIONS] = {
		[DIR_FORWARD] = "fprop", [DIR_BACKWARD] = "bprop", [DIR_OPTIMIZER] = "fprop", [DIR_OTHER] = "",
	};
	return str_from(name[op->direction]);
}

static int compare_ids(const void *a, const void *b)
{
	const struct op_dlprof_row *x = a, *y = b;
	return str_cmp(x->names.id, y->names.id);
}

struct op_dlprof_row *op_dlprof_order(const struct profile *p, struct arena *a, uint32_t *n)
{
	const struct ops *o = p->ops;
	struct op_dlprof_row *v = NEW_ARRAY(o->n_ops, struct op_dlprof_row);
	*n = 0;
	for (uint32_t i = 0; i < o->n_ops; i++) {
		if (o->instance[o->op[i].first].span == ROW_NONE)
			continue;
		v[*n].op = i;
		op_dlprof_names(o, p, i, a, &v[(*n)++].names);
	}
	qsort(v, *n, sizeof *v, compare_ids);
	return v;
}

/* --- what all of them say --------------------------------------------------------------------------------------- */

int op_check(const struct profile *p, struct err *e)
{
	if (p->ops->n_instances)
		return 0;
	return err_set(e, ERR_DATA, "the input holds no op, no API call and no device work; to record ops: %s", recording_how(p, RECORD_OPS));
}

void op_note_parts(struct table *t, const struct profile *p, const struct window *w)
{
	const struct ops *o = p->ops;
	int64_t sum[3] = {0}, all = 0, busy = 0;
	for (uint32_t k = 0; k < o->n_instances; k++) {
		const struct op_instance *x = &o->instance[k];
		if (!x->gpu_n || !op_in_window(p, k, w))
			continue;
		int part = x->span == ROW_NONE ? 2 : o->op[x->op].unassociated;
		for (uint32_t i = 0; i < x->gpu_n; i++)
			add_ns(&sum[part], p->gpu_op.dur_ns[o->gpu[x->gpu_first + i]]);
		add_ns(&busy, x->gpu_ns);
	}
	for (int i = 0; i < 3; i++)
		add_ns(&all, sum[i]);
	if (!p->gpu_op.rows.n) {
		table_warn(t, "the trace holds no device work: times are of the host");
		return;
	}
	table_note(t, "device work %lld ns = in ops %lld + of API calls outside ops %lld + of no recorded call %lld (each kernel, copy and "
	           "set by itself)", (long long)all, (long long)sum[0], (long long)sum[1], (long long)sum[2]);
	table_note(t, "GPU times add up to %lld ns: of each call the union of its device work, so that what overlaps within a call counts once",
	           (long long)busy);
}
