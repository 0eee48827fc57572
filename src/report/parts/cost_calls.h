/* The calls of ops by their costs: each distinct (op, shapes, types, values) once. Shared by the tables of costs. */
#ifndef OPSCOPE_REPORT_PARTS_COST_CALLS_H
#define OPSCOPE_REPORT_PARTS_COST_CALLS_H

#include "analysis/costs/costs.h"
#include "query/report.h"

struct cost_call {
	uint64_t calls;
	uint32_t span;         /* the first of these calls, of those that launched work if any did; ROW_NONE = the cost is of no op */
	bool launched;         /* it launched work */
	int64_t gpu_ns;        /* time of the device work whose innermost op with a model is one of these calls */
};

struct cost_calls {
	const struct profile *p;
	struct costs *costs;
	struct cost_call *v;   /* by index of costs->cost */
	uint32_t n, cap;
	int64_t device_ns;     /* time of all device work, whatever launched it */
};

/* Counts the calls of the whole profile. Free with cost_calls_free. NULL and ERR_DATA when the profile has no framework ops. */
struct cost_calls *cost_calls_new(const struct profile *p, const struct cost_rules *rules, struct err *e);
void cost_calls_free(struct cost_calls *r);

#endif
