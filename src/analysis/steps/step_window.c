#include "analysis/steps/slice.h"

#include <sys/param.h>

int steps_window(const struct steps *s, int64_t first, int64_t last, struct step_window *w, struct err *e)
{
	unsigned n = s->n;
	*w = (struct step_window){.among = s, .n_among = n, .first = first, .last = last};
	if ((!n || s->whole_trace) && s->key.n)
		return err_set(e, ERR_DATA, "--steps: the trace has no steps: " STR_FMT, STR_ARG(s->how));
	if (!n || s->whole_trace)
		return err_set(e, ERR_DATA, "--steps: the trace has no steps: no ProfilerStep, and nothing else that marks them; "
		               "--key-op=NAME says which op each step calls once, and `opscope info` what would do");
	for (unsigned i = 0; i < n; i++) {
		const struct step *x = &s->v[i];
		if (x->number < first || x->number > last)
			continue;
		if (!w->steps++) {
			w->start_ns = x->host_start_ns;
			w->end_ns = x->host_end_ns;
			w->device_start_ns = x->start_ns;
			w->device_end_ns = x->end_ns;
			continue;
		}
		w->start_ns = MIN(w->start_ns, x->host_start_ns);
		w->end_ns = MAX(w->end_ns, x->host_end_ns);
		w->device_start_ns = MIN(w->device_start_ns, x->start_ns);
		w->device_end_ns = MAX(w->device_end_ns, x->end_ns);
	}
	if (w->steps)
		return 0;
	if (first == STEP_OUTSIDE && last == STEP_OUTSIDE)
		return err_set(e, ERR_USAGE, "--steps=outside: what lies outside the steps can be shown by reports of ops, kernels, calls and copies alone: A..B, one step number or all was expected");
	return err_set(e, ERR_DATA, "%s: the trace has steps %lld to %lld", steps_range_text(first, last).s, (long long)s->v[0].number, (long long)s->v[n - 1].number);
}

bool step_window_is(const struct step_window *a, const struct step_window *b)
{
	return a->among == b->among && a->n_among == b->n_among && a->first == b->first && a->last == b->last && a->start_ns == b->start_ns && a->end_ns == b->end_ns &&
	       a->device_start_ns == b->device_start_ns && a->device_end_ns == b->device_end_ns && a->steps == b->steps && a->outside == b->outside;
}

bool step_window_has_host(const struct step_window *w, int64_t time)
{
	bool in = time >= w->start_ns && time < w->end_ns && (!w->among || steps_have_host(w->among, w->n_among, w->first, w->last, time));
	return in != w->outside;
}

bool step_window_has_device(const struct step_window *w, int64_t time)
{
	bool in = time >= w->device_start_ns && time < w->device_end_ns && (!w->among || steps_have_device(w->among, w->n_among, w->first, w->last, time));
	return in != w->outside;
}
