/* How to record what an input lacks, in the terms of the tool that made it: rows of recording.def. */
#ifndef OPSCOPE_ANALYSIS_RECORDING_H
#define OPSCOPE_ANALYSIS_RECORDING_H

#include "store/profile.h"

enum record {
#define RECORD(id, ...) RECORD_##id,
#include "analysis/recording.def"
#undef RECORD
	RECORDS
};

/* "profile(record_shapes=True)"; a constant. */
const char *recording_how(const struct profile *p, enum record what);

#endif
