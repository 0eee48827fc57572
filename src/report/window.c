#include "report/window.h"

#include "analysis/steps.h"
#include "report/step_table.h"

#include <sys/param.h>

int window_of(const struct profile *p, const struct report_args *args, struct window *w, struct err *e)
{
	*w = (struct window){.all = !args->has_steps};
	if (w->all)
		return 0;
	const struct steps *steps = steps_by(p->steps, report_is_plugin(args));
	unsigned n = steps_kept(steps, report_is_plugin(args));
	for (unsigned i = 0; i < n; i++) {
		const struct step *s = &steps->v[i];
		if (s->number < args->step_first || s->number > args->step_last)
			continue;
		if (!w->steps++) {
			*w = (struct window){false, s->host_start_ns, s->host_end_ns, s->start_ns, s->end_ns, 1};
			continue;
		}
		w->start_ns = MIN(w->start_ns, s->host_start_ns);
		w->end_ns = MAX(w->end_ns, s->host_end_ns);
		w->device_start_ns = MIN(w->device_start_ns, s->start_ns);
		w->device_end_ns = MAX(w->device_end_ns, s->end_ns);
	}
	if (w->steps)
		return 0;
	if (!n || steps->whole_trace)
		return err_set(e, ERR_DATA, "--steps: the trace has no steps: no ProfilerStep, and nothing else that marks them; "
		               "--key-op=NAME says which op each step calls once, and `opscope info` what would do");
	return err_set(e, ERR_DATA, "--steps=%lld..%lld: the trace has steps %lld to %lld", (long long)args->step_first,
	               (long long)args->step_last, (long long)steps->v[0].number, (long long)steps->v[n - 1].number);
}

bool window_has_gpu(const struct window *w, const struct profile *p, uint32_t g)
{
	if (w->all)
		return true;
	uint32_t launcher = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
	if (launcher != ROW_NONE)
		return window_has(w, p->span.start_ns[launcher]);
	int64_t start = p->gpu_op.start_ns[g];
	return start >= w->device_start_ns && start < w->device_end_ns;
}
