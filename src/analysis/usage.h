/* What each moment of a window was used for, as DLProf's summary divides it: the first that was active, in this order. Built on demand;
 * needs PASS_OPS. O(n log n). All parts sum to the window.
 *
 *   tensor-core   kernels that use Tensor Cores
 *   kernel        all other kernels
 *   memory        copies and sets
 *   dataloader    ranges of data loaders
 *   io            fread, fwrite and their kin, in OS ranges
 *   cpu           op ranges and API calls
 *   other         nothing of these
 * Several GPUs: each GPU's own kernels and copies take part; durations are averages over all visible GPUs, used or not. */
#ifndef OPSCOPE_ANALYSIS_USAGE_H
#define OPSCOPE_ANALYSIS_USAGE_H

#include "analysis/op_instances.h"

enum usage_kind { USAGE_TC, USAGE_KERNEL, USAGE_MEMORY, USAGE_DATALOADER, USAGE_IO, USAGE_CPU, USAGE_OTHER, USAGES };
extern const char *const usage_title[USAGES]; /* "Tensor Core Kernel", "Non-Tensor Core Kernel", "Memory", ... */
extern const char *const usage_id[USAGES];    /* "tc", "non_tc", "memory", ... */

struct usage {
	double ns[USAGES];        /* averages over GPUs; whole numbers with one GPU */
	double kernel_busy_ns;    /* union of kernels: DLProf's GPU utilization is this / window */
	double device_busy_ns;    /* union of kernels, copies and sets: its utilization per iteration */
	int64_t window_ns;
	unsigned gpus;
};

/* tc_compat: DLProf's test of a kernel's name (kernel_uses_tc_compat) instead of kernels.def. */
void usage_measure(const struct profile *p, int64_t start_ns, int64_t end_ns, bool tc_compat, struct usage *out);
/* n windows, ascending and disjoint, in one pass. */
void usage_measure_all(const struct profile *p, const int64_t *start_ns, const int64_t *end_ns, unsigned n, bool tc_compat,
                       struct usage *out);

#endif
