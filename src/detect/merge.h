/* One cause, one finding: which findings tell of the same cause, in which order findings stand, and how short a step becomes when all causes are mended.
 *
 * Each finding may say which of the window's time it is about (finding_covers). A finding is part of another one when
 *   - it is a symptom ("the GPU is idle"), and findings that say more of the cause (enum detector_symptom) explain at least half of its time: it is part
 *     of the finding that has most of this time;
 *   - or both have the same symptom, at least four fifths of its time is time of the other finding, and the other finding gains at least as much. */
#ifndef OPSCOPE_DETECT_MERGE_H
#define OPSCOPE_DETECT_MERGE_H

#include "detect/parts/shared.h"

/* Sets part_of and puts the findings in order: by gain, then those without a gain by severity; a part stands behind the finding that it is part of.
 * O(n^2 + time covered). */
void merge_findings(struct findings *f);

/* Puts each finding that is part of another behind the first one of that detector, and leaves the order else. Findings of several recordings together may lack it: they then stand by
 * themselves. O(n^2). */
void merge_put_parts_behind(struct findings *f);

/* An upper bound of what all findings that stand by themselves gain together, ns over the whole window: each gains no more than its own bound, and each
 * moment of the window is gained once (a maximum flow from findings to moments). 0: nothing, or there are more than can be counted (64). */
int64_t merge_gain_ns(const struct findings *f, const struct step_time *w);

#endif
