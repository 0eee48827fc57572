/* What the reports on FLOPs and bytes have in common: ops with a cost model (analysis/costs/costs.h), grouped, and how near they come to what
 * the GPU can do (gpu/gpus.h). A report of one kind of op is a `struct cost_spec` and a `struct report`.
 *
 * One call of an op is one instance: its time is the sum of the device work (kernels, copies, sets) that
 * its model covers; FLOPs and bytes are counted once.
 * Rates are over the calls whose FLOPs (bytes) are known. Per instance: the least times of analysis/time/bounds.h, `attainable` = the least.
 * A GPU or peak that is not known leaves these empty. Shares of a peak are never capped: beyond 100 % the row says of which. */
#ifndef OPSCOPE_REPORT_PARTS_COST_TABLE_H
#define OPSCOPE_REPORT_PARTS_COST_TABLE_H

#include "analysis/time/bounds.h"
#include "query/window.h"

/* What a row is of, as report_variant.by. A report of one kind of op has rows by shape, and a number for columns of its own. */
enum cost_by { COST_BY_SHAPE, COST_BY_OP, COST_BY_KERNEL, COST_BY_GEMM, COST_BY_CONV, COST_BY_ATTENTION };

struct cost_row {
	uint32_t name;           /* string id: of the op, or of the kernel (COST_BY_KERNEL) */
	uint8_t direction;       /* enum direction */
	uint8_t class;           /* enum op_class */
	const struct cost *cost; /* of one of its instances: of all, COST_BY_SHAPE */
	uint64_t calls;
	int64_t ns, min, max;
	int64_t main_ns;         /* of ns: the main kernels, one a call */
	int64_t flops, flops_ns; /* sum over calls whose FLOPs are known, and their time; COST_UNKNOWN: of none, or beyond 64 bits */
	int64_t bytes, bytes_ns;
	int64_t tc_ns[3];        /* time by enum tri: did the main kernel use Tensor Cores */
	enum tri eligible;       /* could it, by type and shape */
	bool fewer;              /* a convolution, of some calls by Winograd or FFT: fewer operations than are counted */
	double compute_ns, memory_ns, attainable_ns; /* sums */
	int64_t compute_of, memory_of, attainable_of; /* time of the calls they are known of; 0 = of none */
	const struct gpu *gpu;   /* NULL: not known, or several */
	const char *peak_name;   /* "" = not known, or several */
	double peak_flops;       /* FLOP/s; 0 = not known, or several */
	uint32_t first_kernel;   /* its kernels' names: cost_rows.kernel_name[first_kernel ...], most time first */
	uint32_t n_kernel_names;
};

struct cost_rows {
	const struct profile *p;
	struct costs *costs;
	struct cost_row *v;
	uint32_t n, cap;
	uint32_t *kernel_name;   /* string ids */
	struct bounds_gpus gpus;
	/* Device work in the window; the four add up to all_ns. */
	int64_t by_name_ns;      /* of listed_ns: kernels without a model, listed by their names: reports of one class, by shape, by default rules */
	int64_t all_ns, listed_ns, other_ns /* other ops with a model */, unmodelled_ns, unattributed_ns;
};

/* Ops of these classes (bits 1 << enum op_class; 0 = all); `by` one of the first three. */
struct cost_rows *cost_rows_new(const struct profile *p, const struct window *w, uint32_t classes, enum cost_by by, enum cost_rules rules);
void cost_rows_free(struct cost_rows *r);

/* Sums compared with time, percent; NaN = unknown. */
double cost_compute_pct(const struct cost_row *x);
double cost_memory_pct(const struct cost_row *x);
double cost_efficiency_pct(const struct cost_row *x);
/* Yes where any time is on Tensor Cores, else unknown where any is unknown. */
enum tri cost_tc_used(const struct cost_row *x);

struct cost_spec {
	uint32_t classes;          /* of a report of one kind of op, its bit; 0 = all */
	const char *missing;       /* what is said when there is no such op */
	const char *absent;        /* the same where shapes of other ops were recorded; NULL = `missing` */
	const char *sort;          /* column */
};

/* Their columns. */
extern const struct section cost_section;

/* args->variant says by what: .by is an enum cost_by, .rules an enum cost_rules (NULL = opscope's own). */
int cost_report(const struct cost_spec *spec, const struct profile *p, const struct report_args *args, struct table *out, struct err *e);

/* Value of "C" in "N=8,C=3,..."; false when it is not there. */
bool cost_param(struct str params, const char *name, int64_t *value);

#endif
