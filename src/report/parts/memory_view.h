/* Memory events of one device in a window, and what tables show of them: sums by operator, the curve of the totals, the peaks of all devices. */
#ifndef OPSCOPE_REPORT_PARTS_MEMORY_VIEW_H
#define OPSCOPE_REPORT_PARTS_MEMORY_VIEW_H

#include "analysis/tree/optree.h"
#include "query/window.h"

struct memory_view {
	const struct profile *p;
	struct window w;
	int device;
	int64_t start_ns;        /* first moment of the trace */
	uint32_t *row, n;        /* memory rows of the device in the window, in order of time */
	uint64_t without_address, without_totals, out_of_memory;
	/* The sum of the rows, the part of it outside all operators, and how many rows are outside. */
	int64_t net, net_outside;
	uint64_t outside;
};

/* Chooses the device. The caller sets v->w, and then selects. ERR_DATA when there are no memory events, ERR_USAGE for another device. */
int memory_view_init(struct memory_view *v, const struct profile *p, const struct report_args *args, struct err *e);
void memory_view_select(struct memory_view *v);
void memory_view_release(struct memory_view *v);

enum memory_metric { MEMORY_INCREASE, MEMORY_ALLOCATIONS, MEMORY_ALLOCATED, MEMORY_METRICS };

struct memory_op {
	uint32_t name;           /* string id */
	uint64_t calls;
	int64_t self[MEMORY_METRICS], total[MEMORY_METRICS];
	bool touched;            /* an event on the device lies in a call of it, or in an op inside the call */
};

/* The operators of the window by name, in order of first appearance; sets what v says of rows outside operators. The array is the caller's (mem_free). */
uint32_t memory_view_ops(struct memory_view *v, const struct optree *t, struct memory_op **out);

/* The points of a curve before sampling. */
struct memory_curve {
	int64_t *time_ns, *bytes;
	uint32_t *row, n;
	bool at_least;           /* sums of the trace's own changes: no totals were recorded */
};

/* Takes the points from the recorded totals. */
void memory_curve_init(struct memory_curve *c, const struct memory_view *v);
void memory_curve_release(struct memory_curve *c);

/* Adds a row to *t: the time of point `at` with the values of point `values_of`. */
typedef void memory_curve_put_fn(const struct memory_view *v, struct table *t, const struct memory_curve *c, uint32_t at, uint32_t values_of);
/* Puts the curve of steps, thinned, and the notes about it. */
void memory_curve_put(const struct memory_view *v, const struct memory_curve *c, struct table *t, memory_curve_put_fn *put);

/* Appends the section of peaks, of all devices. */
extern const struct section memory_peaks_section;
struct table *memory_view_put_peaks(const struct memory_view *v, const struct report_args *args, struct table *out);
/* Adds the notes of the main table. */
void memory_view_put_notes(const struct memory_view *v, struct table *out);

#endif
