/* The recording: when it began and ended; and how to record what an input lacks, in the terms of the tool that made it (recording.def). */
#ifndef OPSCOPE_ANALYSIS_RECORDING_H
#define OPSCOPE_ANALYSIS_RECORDING_H

#include "store/profile.h"

enum record {
#define RECORD(id, ...) RECORD_##id,
#include "analysis/recording.def"
#undef RECORD
	RECORDS
};

/* From the start of the first to the end of the last event of host or device, whatever it is, but for the range by which a profiler
 * says how long it recorded (SPAN_TRACE). This is the length of the whole recording in every report; only predecessors have others. False, and both 0: there is no event, or the
 * times span more than int64 ns hold. */
bool recording_extent(const struct profile *p, int64_t *first_ns, int64_t *last_ns);

/* When the recording began, of a part that of the whole: where the profiler says so (SPAN_TRACE, zero_is_start), else the start of the
 * first event. 0: there is none. torch tells times from there on. O(n). */
int64_t recording_start(const struct profile *p);

/* "profile(record_shapes=True)"; a constant. Another way where that is what was done, and the input lacks it nevertheless. */
const char *recording_how(const struct profile *p, enum record what);

#endif
