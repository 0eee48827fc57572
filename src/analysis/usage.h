/* What each moment of a window was used for, as DLProf's summary divides it: the first that was active, in the order of enum usage_kind.
 * Built on demand; needs PASS_STEPS; for DLProf's rules PASS_OPS. All parts sum to the window. O(n log n), whatever the number of windows.
 *
 *   tc            kernels that use Tensor Cores
 *   non_tc        kernels that do not
 *   unknown       kernels whose name does not tell (never by DLProf's rules)
 *   memory        copies and sets
 *   dataloader    ranges of data loaders: of torch.profiler, emit_nvtx, and DLProf's own
 *   io            calls of the C library and the system that read or write files, where OS calls were recorded
 *   cpu           ops, ranges of the user's and API calls: by the default rules those of host_use.h, as the roles of steps; by DLProf's ops
 *                 and API calls alone
 *   other         nothing of these
 * Several GPUs: each GPU has its own kernels and copies, and all have the host's ranges; times are averages over the GPUs. */
#ifndef OPSCOPE_ANALYSIS_USAGE_H
#define OPSCOPE_ANALYSIS_USAGE_H

#include "store/profile.h"

enum usage_kind { USAGE_TC, USAGE_KERNEL, USAGE_UNKNOWN, USAGE_MEMORY, USAGE_DATALOADER, USAGE_IO, USAGE_CPU, USAGE_OTHER, USAGES };
extern const char *const usage_title[USAGES]; /* "Tensor Core Kernel", "Non-Tensor Core Kernel", ... */
extern const char *const usage_id[USAGES];    /* "tc", "non_tc", ... */

enum usage_rules {
	USAGE_DEFAULT,  /* kernels.def; GPUs that did something */
	USAGE_DLPROF,   /* a kernel uses Tensor Cores by its list of names; I/O is fread and fwrite; all visible GPUs, used or not, but those of other
	                 * ranks (analysis/job.h) */
};

struct usage {
	double ns[USAGES];        /* averages over GPUs; whole numbers with one GPU */
	double kernel_busy_ns;    /* union of kernels: DLProf's GPU utilization is this / window */
	double device_busy_ns;    /* union of kernels, copies and sets: its utilization per iteration */
	int64_t window_ns;
	unsigned gpus;            /* averaged over; 0 = the input has none, and all is the host's */
};

/* [start_ns, end_ns) */
void usage_measure(const struct profile *p, int64_t start_ns, int64_t end_ns, enum usage_rules rules, struct usage *out);
/* n windows, each by itself. */
void usage_measure_all(const struct profile *p, const int64_t *start_ns, const int64_t *end_ns, unsigned n, enum usage_rules rules,
                       struct usage *out);

#endif
