/* The calls of ops, by what they should cost: each distinct (op, shapes, types, values) once. Shared by the tables of costs. */
#ifndef OPSCOPE_REPORT_PARTS_COST_CALLS_H
#define OPSCOPE_REPORT_PARTS_COST_CALLS_H

#include "analysis/costs/costs.h"
#include "query/report.h"

struct cost_call {
	uint64_t calls;
	int64_t gpu_ns;        /* of the device work that these calls are the innermost model of */
};

struct cost_calls {
	const struct profile *p;
	struct costs *costs;
	struct cost_call *v;   /* by index of costs->cost */
	uint32_t n, cap;
	int64_t device_ns;     /* of all device work, whatever launched it */
};

/* Of the whole profile. Free with cost_calls_free. NULL and ERR_DATA when the profile has no framework ops. */
struct cost_calls *cost_calls_new(const struct profile *p, enum cost_rules rules, struct err *e);
void cost_calls_free(struct cost_calls *r);

#endif
