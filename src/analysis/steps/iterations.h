/* Finding iterations: the calls of a key op, what they cut the time into, and what would do as a key op. */
#ifndef OPSCOPE_ANALYSIS_STEPS_ITERATIONS_H
#define OPSCOPE_ANALYSIS_STEPS_ITERATIONS_H

#include "analysis/steps/steps.h"
#include "base/arena.h"

/* Calls of one op or range, in order of start. Of calls inside one another on a thread only the outermost counts. */
struct key_calls {
	int64_t *start_ns, *end_ns;
	uint32_t *span;          /* ROW_NONE for device work whose call is not known */
	uint32_t *gpu;           /* 0 .. gpus-1: the GPU that its work went to, else that of its thread or process */
	uint32_t n, cap, gpus;
	struct str name;         /* of the op; digits are "#" where calls differ in them only ("Step # to #") */
};
void key_calls_release(struct key_calls *k);

/* By the exact name of a range, op (p->ops: name or id, any case) or kernel; else by the end of a name, if only one name ends so.
 * `key` may have "#" for any number. False: none, or several names end so. Of p->ops only where PASS_OPS was done. */
bool key_calls_find(const struct profile *p, struct str key, struct key_calls *out);
/* Calls of those names whose entry in `wanted` (by string id) is not 0; `name` is for out->name. */
void key_calls_of_names(const struct profile *p, const uint8_t *wanted, struct str name, struct key_calls *out);

bool key_calls_even(const struct key_calls *k); /* whether all GPUs have as many */

/* The points in time at which an iteration ends, ascending: with the same number of calls on every GPU, number i is the latest of the i-th
 * calls' ends (`ends`), or the earliest of their starts; else every call makes one. *n of them; the caller frees. */
int64_t *key_borders(const struct key_calls *k, bool ends, uint32_t *n);

/* Names that would do as a key op: outermost ranges that are called several times; with `even`, only those whose calls make steps of about the same
 * length. Those called as often as most others stand first,
 * of these the one that is called first. */
struct key_candidate {
	struct str name;
	uint32_t calls;
	int64_t first_ns;        /* start of its first call */
};
/* At most `max` into *a; the result is their number. `expected`: calls to look for, 0 = as often as most. */
unsigned key_candidates(const struct profile *p, uint32_t expected, bool even, unsigned max, struct arena *a, struct key_candidate **out);

/* What a finder found. */
struct iteration {
	int64_t start_ns, end_ns, number;
	struct str name;
	uint32_t span;
	bool partial;            /* before the first or after the last border */
};
struct iterations {
	struct iteration *v;     /* in order of time */
	uint32_t n, cap;
	struct str key, how;     /* in the arena */
	uint32_t calls;
	double certainty;
	bool layers;             /* the pattern repeats by layers of a step: an op that is called as often tells no steps */
	/* Of a pattern that repeats, whether or not the repeats are steps: from the begin of the first to the end of the last whole one, on the device;
	 * host_start_ns: when the host began the first. repeats = 0: no pattern was found. */
	int64_t repeat_start_ns, repeat_end_ns, repeat_host_ns;
	uint32_t repeats;
};
void iterations_release(struct iterations *it);

/* Each returns whether there is at least one whole iteration; else it->how may say what was seen. Strings go into *a. */
bool iterations_of_key(const struct profile *p, struct str key, struct arena *a, struct iterations *it);
bool iterations_named(const struct profile *p, struct arena *a, struct iterations *it);
bool iterations_optimizer(const struct profile *p, struct arena *a, struct iterations *it);
bool iterations_period(const struct profile *p, struct arena *a, struct iterations *it);

/* From the first to the last op, range, API call or device work: what the program asked for, without the calls of the operating system and
 * what the profiler adds (see recording_extent). False when there is none. */
bool work_extent(const struct profile *p, int64_t *first_ns, int64_t *last_ns);

#endif
