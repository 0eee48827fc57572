/* Steps (iterations), by the rules of B-14: each `ProfilerStep#N` on the host, moved and stretched to cover the device work
 * that it launched; without any, one step "0" from the first to the last host event. */
#ifndef OPSCOPE_ANALYSIS_STEPS_H
#define OPSCOPE_ANALYSIS_STEPS_H

#include "base/str.h"

struct step {
	struct str name;         /* "5" of ProfilerStep#5; borrowed from the profile */
	int64_t number;          /* 5; running index when the name is no number */
	int64_t host_start_ns, host_end_ns; /* of the annotation */
	int64_t start_ns, end_ns;           /* with device work */
	uint32_t device_ops;     /* device events that its API calls launched */
	uint32_t span;           /* the annotation; ROW_NONE for the whole-trace step */
};

struct steps {
	struct step *v;          /* in order of time; the ones that count */
	unsigned n;
	unsigned dropped_tail;   /* steps left out at the end because their device work is missing or cut (B-14) */
	unsigned seen;           /* ProfilerStep annotations in the input */
	bool whole_trace;        /* no ProfilerStep: v[0] covers everything */
};

#endif
