/* Inside the search for a period: the sequence that is looked at, and what was found in it. */
#ifndef OPSCOPE_ANALYSIS_STEPS_ITERATIONS_PERIOD_H
#define OPSCOPE_ANALYSIS_STEPS_ITERATIONS_PERIOD_H

#include "analysis/steps/iterations.h"
#include "store/profile.h"

struct sequence {
	uint32_t n;
	uint32_t *name;          /* 0 .. names - 1 */
	uint32_t names;
	int64_t *start_ns, *end_ns; /* in order of start */
	uint32_t *call;          /* the API call that launched it, ROW_NONE; of a host range, itself */
	int64_t ns;              /* sum of the lengths */
	int64_t *mark_ns;        /* on the same clock, ascending: what steps have and layers have not; where there are optimizers, these alone */
	uint32_t n_marks;
	uint32_t *string;        /* name -> string id */
	uint8_t *copy_in;        /* by name: a copy from host to device */
	uint32_t track;
	bool device;
};

struct period {
	uint32_t name;           /* of what periods begin with */
	uint32_t anchors;        /* how often it occurs: one more than there are whole periods for certain */
	uint32_t length;         /* of the usual content, in places of the sequence */
	double explained;        /* 0..1: the share of the work, by number and by time, that is usual content */
	double equal;            /* 0..1: the share of the periods that have nine tenths of the usual content in common */
	bool marked;             /* each period has something that steps have and layers have not */
	bool within_call;        /* one call launched several periods */
	bool last_is_whole;      /* behind the last anchor there is as much as in the others */
	uint32_t numbered;       /* so many modules are told apart by number and occur once each */
	uint64_t places_explained;
	int64_t ns_explained;
};

/* Whether a period was found of which it is nearly certain that it is a step. When there is any period, *out and *border (its anchors'
 * places, out->anchors of them; the caller frees) are set also without: for saying what was seen. O(n log n). */
bool period_find(const struct profile *p, const struct sequence *q, struct period *out, uint32_t **border);

/* The sequence of this profile; n = 0 when it has none. */
void sequence_make(const struct profile *p, struct sequence *q);
void sequence_release(struct sequence *q);

#endif
