/* One cause, one finding: which findings tell of the same cause, in which order findings stand, and how short a step becomes when all causes are mended.
 *
 * Each finding may say which of the window's time it is about (finding_covers). A finding is part of another one when at least four fifths of its time is
 * time of the other one, too, and
 *   - it is a symptom ("the GPU is idle"), and the other one says more of the cause (enum detector_symptom), and has most of its time of all that do;
 *   - or both have the same symptom, and the other finding gains at least as much.
 * A symptom that is no such part stands by itself, but behind the cause that has most of its time, where all causes together have half of it. */
#ifndef OPSCOPE_DETECT_MERGE_H
#define OPSCOPE_DETECT_MERGE_H

#include "detect/parts/shared.h"

/* Sets part_of and puts the findings in order: by gain, then those without a gain by severity; a part stands behind the finding that it is part of,
 * a symptom behind the cause that explains most of it.
 * O(n^2 + time covered). */
void merge_findings(struct findings *f);

/* Puts each finding that is part of another behind the first one of that detector, and leaves the order else. Findings of several recordings together may lack it: they then stand by
 * themselves. O(n^2). */
void merge_put_parts_behind(struct findings *f);

/* The ns that both findings are about; both must have `covers`. */
int64_t merge_common_ns(const struct finding *x, const struct finding *y);

/* An upper bound of what all findings gain together, parts of others included, ns over the whole window: each gains no more than its own bound, and each
 * moment of the window is gained once (a maximum flow from findings to moments). 0: nothing, or there are more than can be counted (64). */
int64_t merge_gain_ns(const struct findings *f, const struct step_time *w);

#endif
