/* The short names of a profile's kernels, one for each, distinct: the same in all reports and findings, of all steps. */
#ifndef OPSCOPE_ANALYSIS_NAMES_SHORT_NAMES_H
#define OPSCOPE_ANALYSIS_NAMES_SHORT_NAMES_H

#include "store/profile.h"

struct short_names;

/* Of all kernels of the recording, those of a part (analysis/steps/slice.h) too. Freed by short_names_free. */
struct short_names *short_names_new(const struct profile *p);
void short_names_free(struct short_names *s);

/* Of the name with this string id; what is the name of no kernel stays as it is. Valid as long as *s and the profile. */
struct str short_names_get(const struct short_names *s, uint32_t name);
/* The same for its text. */
struct str short_names_find(const struct short_names *s, struct str name);

#endif
