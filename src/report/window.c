#include "report/window.h"

#include "analysis/slice.h"
#include "report/step_table.h"

int window_of(const struct profile *p, const struct report_args *args, struct window *w, struct err *e)
{
	struct step_window s;
	*w = (struct window){.all = !args->has_steps};
	if (w->all)
		return 0;
	if (report_compat_is(args, "dlprof") ? dlprof_window(p, args->step_first, args->step_last, &s, e)
	                                     : steps_window(p->steps, report_is_plugin(args), args->step_first, args->step_last, &s, e))
		return -1;
	*w = (struct window){false, s.start_ns, s.end_ns, s.device_start_ns, s.device_end_ns, s.steps};
	return 0;
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
