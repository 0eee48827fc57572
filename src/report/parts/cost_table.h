/* What the reports on FLOPs and bytes have in common: ops with a cost model (analysis/costs/costs.h), grouped, and how near they come to what
 * the GPU can do (gpu/gpus.h). A report of one kind of op is a `struct cost_spec` and a `struct report`.
 *
 * A call of an op is an instance. The time of an instance is the sum of the device work (kernels, copies, sets) that the op's model covers; its FLOPs
 * and bytes count once. Calls done by copy engines, which no peak bounds, have rows of their own. Rates are over the calls whose FLOPs (bytes) are known. `attainable` is the least time of an instance at the GPU's peaks
 * (analysis/time/bounds.h), unknown where the GPU or the peak is. Shares of a peak are never capped: a row beyond 100 % names the peak. */
#ifndef OPSCOPE_REPORT_PARTS_COST_TABLE_H
#define OPSCOPE_REPORT_PARTS_COST_TABLE_H

#include "analysis/costs/counters.h"
#include "analysis/costs/sampled.h"
#include "analysis/time/bounds.h"
#include "base/spread.h"
#include "query/window.h"

/* What a row adds up (report_variant.by). A report of one kind of op has a row for each shape, and a number of its own for the columns that it alone has. */
enum cost_by { COST_BY_SHAPE, COST_BY_OP, COST_BY_KERNEL, COST_BY_GEMM, COST_BY_CONV, COST_BY_ATTENTION };

struct cost_row {
	uint32_t name;           /* string id: of the op, or of the kernel (COST_BY_KERNEL) */
	uint8_t direction;       /* enum direction */
	uint8_t class;           /* enum op_class */
	const struct cost *cost; /* of one of its instances; COST_BY_SHAPE: of each of them */
	uint64_t calls;
	int64_t ns, min, max;
	struct spread call_ns, tflops, gbs; /* of its calls: time; TFLOP/s and GB/s of those whose FLOPs (bytes) are known and that took time */
	int64_t main_ns;         /* the part of ns in main kernels, one for each call */
	int64_t small_ns;        /* the part of main_ns in kernels of too few blocks for any peak (bounds_is_small) */
	int64_t flops, flops_ns; /* sum over the calls whose FLOPs are known, and the time of these calls; COST_UNKNOWN: no call's are known, or the sum is beyond 64 bits */
	int64_t bytes, bytes_ns;
	int64_t tc_ns[3];        /* by enum tri: time of the calls whose main kernel used Tensor Cores, did not, or may have */
	enum tri eligible;       /* whether type and shape allow Tensor Cores */
	bool copies;             /* by the copy engines, whose speed is the link's: no peak bounds them. A call with kernels that take longer is none */
	bool measured_only;      /* of work without a model, of which counters or samples tell the traffic: nothing else is known */
	bool fewer;              /* a convolution, some calls of which ran by Winograd or FFT, with fewer operations than are counted */
	double compute_ns, memory_ns, attainable_ns; /* sums */
	double even_ns;          /* of calls with bytes_least below bytes: what they would take by bytes; 0 = there are none */
	int64_t compute_of, memory_of, attainable_of; /* time of the calls for which the sum above is known; 0 = none */
	const struct gpu *gpu;   /* NULL: not known, or several */
	const char *peak_name;   /* "" = not known, or several */
	double peak_flops;       /* FLOP/s; 0 = not known, or several */
	struct cost_measured {   /* over the calls of which each kernel has the hardware counter, which took `ns` */
		double sum;
		int64_t ns;
		uint64_t calls;
		double both, model;      /* measured and modelled, over those of these calls whose model is known */
	} dram, tensor;          /* bytes of device memory; FLOPs of Tensor Cores */
	struct cost_measured sampled; /* the same of samples of the GPU: bytes of device memory, by its peak bandwidth */
	uint32_t first_kernel;   /* its kernels' names: cost_rows.kernel_name[first_kernel ...], most time first */
	uint32_t n_kernel_names;
};

struct cost_rows {
	const struct profile *p;
	struct costs *costs;
	struct cost_row *v;
	uint32_t n, cap;
	uint32_t *kernel_name;   /* string ids */
	bool counters, samples;  /* some work has hardware counters; samples of its GPU */
	struct bounds_gpus gpus;
	/* Device work in the window; the four add up to all_ns. */
	int64_t by_name_ns;      /* the part of listed_ns in kernels without a model, which reports of one class list by name (by shape, by default rules) */
	int64_t all_ns, listed_ns, other_ns /* other ops with a model */, unmodelled_ns, unattributed_ns;
	int64_t measured_ns;     /* the part of the last two in rows that are measured_only */
};

/* Rows of the ops of these classes (bits 1 << enum op_class; 0 = all, and ops without a model whose traffic with the memory was measured). `by` is one of the first three. */
struct cost_rows *cost_rows_new(const struct profile *p, const struct window *w, uint32_t classes, enum cost_by by, const struct cost_rules *rules);
void cost_rows_free(struct cost_rows *r);

/* FLOP/s and bytes/s in percent of the peaks, and attainable in percent of actual time; NaN = unknown. */
double cost_compute_pct(const struct cost_row *x);
double cost_memory_pct(const struct cost_row *x);
double cost_efficiency_pct(const struct cost_row *x);
/* Yes if any main kernel used Tensor Cores, else unknown if any may have. */
enum tri cost_tc_used(const struct cost_row *x);

struct cost_spec {
	uint32_t classes;          /* the bit of the kind of op that the report is about; 0 = all kinds */
	const char *missing;       /* said when there is no such op */
	const char *absent;        /* said instead where shapes of other ops were recorded; NULL = `missing` */
	const char *sort;          /* id of the column by which rows are sorted */
};

/* The columns of these reports. */
extern const struct section cost_section;

/* run() of these reports. args->variant: .by is an enum cost_by, .rules is a struct cost_rules (NULL = cost_own). */
int cost_report(const struct cost_spec *spec, const struct profile *p, const struct report_args *args, struct table *out, struct err *e);

/* The number that follows "NAME=" in the parameters of a cost (struct cost, params): with the name "C", 3 in "N=8,C=3,H=224". False when the parameters
 * do not have the name. */
bool cost_params_number(struct str params, const char *name, int64_t *value);

#endif
