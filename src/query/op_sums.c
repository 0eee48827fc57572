#include "query/op_sums.h"

#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/recording.h"
#include "analysis/tree/modules.h"
#include "base/mem.h"

struct op_tc {
	const struct profile *p;
	bool listed;
};

struct op_tc *op_tc_new(const struct profile *p, bool listed)
{
	struct op_tc *t = NEW(struct op_tc);
	*t = (struct op_tc){p, listed};
	return t;
}

void op_tc_free(struct op_tc *t)
{
	mem_free(t);
}

enum tri op_tc_of(struct op_tc *t, uint32_t gpu)
{
	if (t->p->gpu_op.kind[gpu] != GPU_KERNEL)
		return TRI_NO;
	if (t->listed)
		return name_is(t->p, t->p->gpu_op.name[gpu], NAME_TC_LISTED) ? TRI_YES : TRI_NO;
	return gpu_tensor_core(t->p, gpu);
}

static void op_sums_add_ns(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

static void add_stat(struct op_stat *s, int64_t ns, bool first)
{
	op_sums_add_ns(&s->total, ns);
	s->min = first || ns < s->min ? ns : s->min;
	s->max = first || ns > s->max ? ns : s->max;
}

void op_sum_add(struct op_sum *s, const struct profile *p, uint32_t k, struct op_tc *t)
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
		op_sums_add_ns(&s->work_ns, ns);
		if (p->gpu_op.kind[g] != GPU_KERNEL)
			continue;
		enum tri uses = op_tc_of(t, g);
		s->kernels++;
		op_sums_add_ns(&s->kernel_ns, ns);
		s->tc_kernels += uses == TRI_YES;
		if (uses != TRI_NO)
			op_sums_add_ns(uses == TRI_YES ? &s->tc_ns : &s->unknown_ns, ns);
	}
}

bool op_in_window(const struct profile *p, uint32_t k, const struct window *w)
{
	const struct op_instance *x = &p->ops->instance[k];
	return x->span == ROW_NONE ? window_has_gpu(w, p, p->ops->gpu[x->gpu_first]) : window_has(w, x->start_ns);
}

int op_check(const struct profile *p, struct err *e)
{
	if (p->ops->n_instances)
		return 0;
	return err_set(e, ERR_DATA, "the input holds no op, no API call and no device work; to record ops: %s", recording_how(p, RECORD_OPS));
}

/* What counts for a backward op and is none of its own work: gradients that are added up over ranks, launched by a hook where AccumulateGrad ran, and modules that
 * activation checkpointing runs again. */
static void op_sums_note_backward(struct table *t, const struct profile *p, const struct window *w)
{
	const struct ops *o = p->ops;
	struct modules *m = NULL;
	int64_t again = 0, gradients = 0;
	for (uint32_t k = 0; k < o->n_instances; k++) {
		const struct op_instance *x = &o->instance[k];
		if (o->op[x->op].direction != DIR_BACKWARD || x->span == ROW_NONE || !op_in_window(p, k, w))
			continue;
		bool accumulates = name_autograd(p, p->span.name[x->span]) == AUTOGRAD_ACCUMULATE;
		for (uint32_t i = 0; i < x->gpu_n; i++) {
			uint32_t g = o->gpu[x->gpu_first + i], from = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
			m = m ? m : modules_new(p, &modules_own, NULL);
			if (accumulates && name_is(p, p->gpu_op.name[g], NAME_COMM_KERNEL))
				op_sums_add_ns(&gradients, p->gpu_op.dur_ns[g]);
			else if (m->phase && from != ROW_NONE && m->phase[from] == PHASE_RECOMPUTE)
				op_sums_add_ns(&again, p->gpu_op.dur_ns[g]);
		}
	}
	modules_free(m);
	if (gradients)
		table_warn(t, "%lld ns of device work are gradient collectives: they count for AccumulateGrad, which launched them", (long long)gradients);
	if (again)
		table_warn(t, "%lld ns of device work are modules that ran again (activation checkpointing): they count for the backward op that ran them, and so do their Tensor "
		           "Cores", (long long)again);
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
			op_sums_add_ns(&sum[part], p->gpu_op.dur_ns[o->gpu[x->gpu_first + i]]);
		op_sums_add_ns(&busy, x->gpu_ns);
	}
	for (int i = 0; i < 3; i++)
		op_sums_add_ns(&all, sum[i]);
	if (!p->gpu_op.rows.n) {
		table_warn(t, "the trace holds no device work: times are of the host");
		return;
	}
	table_note(t, "device work %lld ns = in ops %lld + of API calls outside ops %lld + of no recorded call %lld (each kernel, copy and "
	           "set by itself)", (long long)all, (long long)sum[0], (long long)sum[1], (long long)sum[2]);
	table_note(t, "GPU times add up to %lld ns: of each call the union of its device work, so that what overlaps within a call counts once",
	           (long long)busy);
	op_sums_note_backward(t, p, w);
}
