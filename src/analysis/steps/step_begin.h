/* Where the first step begins on the device. A step cannot have begun there before the work of the time before it had ended.
 *
 * Of work that was recorded, steps.c sees to that. A recording that begins with a step lacks the work before it, where the profiler follows only work that is launched while it runs. That such work was there shows where
 * the first work waited: it was launched, more was launched behind it, and no work of any GPU was recorded before it, though the GPU began it only STEP_WAIT_LEAST_NS or more after its call had ended, and after more than
 * STEP_WAIT_TIMES the longest time for which an idle GPU let work wait later on. A GPU without work begins what is launched within microseconds, and the later waits tell how many. */
#ifndef OPSCOPE_ANALYSIS_STEPS_STEP_BEGIN_H
#define OPSCOPE_ANALYSIS_STEPS_STEP_BEGIN_H

#include "analysis/steps/steps.h"

enum { STEP_WAIT_LEAST_NS = 100000, STEP_WAIT_TIMES = 10 };

/* Moves the begin of the first step to its first work where the rule says so, and fills steps->before. Needs PASS_CORRELATE. O(device work x log). */
void step_begin_settle(const struct profile *p, struct steps *s);

#endif
