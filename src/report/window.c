#include "report/window.h"

#include "analysis/steps.h"

int window_of(const struct profile *p, const struct report_args *args, struct window *w, struct err *e)
{
	*w = (struct window){.all = !args->has_steps};
	if (w->all)
		return 0;
	for (unsigned i = 0; i < p->steps->n; i++) {
		const struct step *s = &p->steps->v[i];
		if (s->number < args->step_first || s->number > args->step_last)
			continue;
		if (!w->steps++ || s->host_start_ns < w->start_ns)
			w->start_ns = s->host_start_ns;
		if (w->steps == 1 || s->host_end_ns > w->end_ns)
			w->end_ns = s->host_end_ns;
	}
	if (w->steps)
		return 0;
	if (!p->steps->n || p->steps->whole_trace)
		return err_set(e, ERR_DATA, "--steps: the trace has no ProfilerStep ranges");
	return err_set(e, ERR_DATA, "--steps=%lld..%lld: the trace has steps %lld to %lld", (long long)args->step_first,
	               (long long)args->step_last, (long long)p->steps->v[0].number,
	               (long long)p->steps->v[p->steps->n - 1].number);
}

int64_t window_gpu_time(const struct profile *p, uint32_t g)
{
	uint32_t span = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
	return span != ROW_NONE ? p->span.start_ns[span] : p->gpu_op.start_ns[g];
}
