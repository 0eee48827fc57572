/* What holds behind each pass, as assertions. Part of builds with -Dcheck=true alone: the sanitized tests and the fuzzers. */
#ifndef OPSCOPE_ANALYSIS_CHECK_H
#define OPSCOPE_ANALYSIS_CHECK_H

#include "store/profile.h"

/* Ends the process where the profile is not as the passes of passes_done promise. O(n). */
void analysis_check(const struct profile *p);

#endif
