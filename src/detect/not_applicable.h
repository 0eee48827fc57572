/* Detectors that are not applicable, in one line that names what would make most of them so (not_applicable.def). */
#ifndef OPSCOPE_DETECT_NOT_APPLICABLE_H
#define OPSCOPE_DETECT_NOT_APPLICABLE_H

#include "detect/detect.h"

/* What to record, or to say, for this reason, by the tool that made the input; a constant; NULL = nothing that is known. *aside: said by
 * `advise --all` only, since no recording option brings it. */
const char *not_applicable_remedy(const struct profile *p, struct str why, bool *aside);

/* Where most of opscope's own detectors are not applicable: how many, and the reason that most of them have; in the arena. n == 0: most are. */
struct str not_applicable_mostly(const struct findings *f, struct arena *a);

/* The line, as a note; none where all detectors are applicable. */
void not_applicable_note(const struct findings *f, struct table *t);

#endif
