/* Detectors that could not look, in one line that names what would let most of them (could_not_look.def). */
#ifndef OPSCOPE_DETECT_COULD_NOT_LOOK_H
#define OPSCOPE_DETECT_COULD_NOT_LOOK_H

#include "detect/detect.h"

/* What to record, or to say, for this reason, by the tool that made the input; a constant; NULL = nothing that is known. *aside: said by
 * `advise --all` only, since no recording option brings it. */
const char *could_not_look_remedy(const struct profile *p, struct str why, bool *aside);

/* The line, as a note; none where all could look. */
void could_not_look_note(const struct findings *f, struct table *t);

#endif
