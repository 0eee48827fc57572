/* Steps (iterations), by the rules of the plugin's event_parser.py: each `ProfilerStep#N` on the host, moved and
 * stretched to cover the device work that it launched; without any, one step "0" from the first to the last host event.
 *
 * Steps at the end do not count when the recording holds no, or not all, device work of them. By the default rules that
 * needs evidence: a step launched no device work while an earlier one did, or more than a fifth of its launching calls
 * have no device work with their correlation id. A call launches when of the calls of its name in the trace at least a
 * quarter have device work. The plugin's rule: no device work, or under 0.8 times that of the step before, which also
 * leaves out a whole step that is shorter than the others (the last of a gradient accumulation). */
#ifndef OPSCOPE_ANALYSIS_STEPS_H
#define OPSCOPE_ANALYSIS_STEPS_H

#include "base/str.h"

struct step {
	struct str name;         /* "5" of ProfilerStep#5; borrowed from the profile */
	int64_t number;          /* 5; running index when the name is no number */
	int64_t host_start_ns, host_end_ns; /* of the annotation */
	int64_t start_ns, end_ns;           /* with device work */
	uint32_t device_ops;     /* device events that its API calls launched */
	uint32_t launches;       /* launching calls in it */
	uint32_t launches_lost;  /* of these, without device work */
	uint32_t span;           /* the annotation; ROW_NONE for the whole-trace step */
};

struct steps {
	struct step *v;          /* in order of time, all `total` */
	unsigned n;              /* how many count */
	unsigned n_plugin;       /* how many count by the plugin's rule */
	unsigned total;
	unsigned seen;           /* ProfilerStep annotations in the input */
	bool whole_trace;        /* no ProfilerStep: v[0] covers everything */
};

/* How many of s->v count. */
static inline unsigned steps_kept(const struct steps *s, bool plugin) { return plugin ? s->n_plugin : s->n; }

#endif
