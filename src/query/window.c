#include "query/window.h"

#include "query/predecessor.h"

int window_of(const struct profile *p, const struct report_args *args, struct window *w, struct err *e)
{
	struct step_window s;
	*w = (struct window){.all = !args->has_steps};
	if (w->all)
		return 0;
	int64_t first = args->outside ? INT64_MIN : args->step_first, last = args->outside ? INT64_MAX : args->step_last;
	const struct predecessor *by = predecessor_find(args->compat);
	if (by && by->window ? by->window(p, first, last, &s, e) : steps_window(p->steps, first, last, &s, e))
		return -1;
	s.outside = args->outside;
	*w = window_from(&s);
	return 0;
}

struct window window_from(const struct step_window *in)
{
	return (struct window){false, in->start_ns, in->end_ns, in->device_start_ns, in->device_end_ns, in->steps, *in};
}

bool window_has_gpu(const struct window *w, const struct profile *p, uint32_t g)
{
	if (w->all)
		return true;
	uint32_t launcher = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
	if (launcher != ROW_NONE)
		return window_has(w, p->span.start_ns[launcher]);
	return step_window_has_device(&w->in, p->gpu_op.start_ns[g]);
}
