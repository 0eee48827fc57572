/* A part of a profile in time, itself a profile: so that what knows nothing of steps can be asked about some of them.
 *
 * Host ranges are in it when the outermost op around them, else they themselves, start in the window; device work with the op or call that
 * launched it, and where none is known, when it starts in the window as the device sees it; allocations, marks and flows by their
 * time. Python frames and markers that were open when the window began are kept: they say whose callees the rest are. A part has
 * the strings, threads, devices and facts of the whole, which must outlive it; steps and ops are those of the whole, with their numbers
 * and ids. O(n). */
#ifndef OPSCOPE_ANALYSIS_STEPS_SLICE_H
#define OPSCOPE_ANALYSIS_STEPS_SLICE_H

#include "analysis/steps/steps.h"
#include "store/profile.h"

/* Half open. With `among`, only what is in one of its first n_among steps with numbers first..last: times between steps are in none, so that parts
 * add up to the whole. */
struct step_window {
	const struct steps *among; /* NULL = all of the times below */
	unsigned n_among;
	int64_t first, last;
	int64_t start_ns, end_ns;               /* on the host */
	int64_t device_start_ns, device_end_ns; /* moved and stretched to the device work */
	unsigned steps;                         /* how many steps it covers */
	bool outside;                           /* what is not in these times or steps is in it, and only that; not for slice_of */
};

/* The steps with numbers first..last. ERR_DATA when there is none. */
int steps_window(const struct steps *s, int64_t first, int64_t last, struct step_window *w, struct err *e);

/* The part of *p that is in the window, with the steps numbered first..last and what p->ops holds of it (give PASS_OPS before if
 * that is wanted). *p keeps the part until it is asked for another one or freed; text that was made with it lives as long as *p.
 * Needs PASS_NEST and PASS_CORRELATE, and PASS_STEPS if the part is to have steps. NULL and *e. */
struct profile *slice_of(struct profile *p, const struct step_window *w, int64_t first, int64_t last, struct err *e);

/* All of that: the part with steps first..last (inclusive). NULL and *e. */
struct profile *slice_of_steps(struct profile *p, int64_t first, int64_t last, struct err *e);

bool step_window_has_host(const struct step_window *w, int64_t time_ns);
bool step_window_is(const struct step_window *a, const struct step_window *b); /* the same one */
bool step_window_has_device(const struct step_window *w, int64_t time_ns);

#endif
