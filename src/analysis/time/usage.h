/* What each moment of a window was used for: the first use of enum usage_kind that was active.
 * Built on demand; needs PASS_STEPS, and what its rules need. All parts sum to the window. O(n log n), whatever the number of windows.
 *
 *   tc            kernels that use Tensor Cores
 *   non_tc        kernels that do not
 *   unknown       kernels whose name does not tell
 *   memory        copies and sets
 *   dataloader    ranges of data loaders: of torch.profiler, emit_nvtx, and a recorder's own
 *   io            calls of the C library and the system that read or write files, where OS calls were recorded
 *   cpu           ops, ranges of the user's and API calls: those of host_use.h, as the roles of steps
 *   other         nothing of these
 * Several GPUs: each GPU has its own kernels and copies, and all have the host's ranges; times are averages over the GPUs. */
#ifndef OPSCOPE_ANALYSIS_TIME_USAGE_H
#define OPSCOPE_ANALYSIS_TIME_USAGE_H

#include "analysis/time/interval.h"
#include "store/profile.h"

enum usage_kind { USAGE_TC, USAGE_KERNEL, USAGE_UNKNOWN, USAGE_MEMORY, USAGE_DATALOADER, USAGE_IO, USAGE_CPU, USAGE_OTHER, USAGES };
extern const char *const usage_title[USAGES]; /* "Tensor Core Kernel", "Non-Tensor Core Kernel", ... */
extern const char *const usage_id[USAGES];    /* "tc", "non_tc", ... */

/* What differs where a predecessor's numbers are asked for. */
struct usage_rules {
	bool listed_kernels;     /* a kernel uses Tensor Cores if it is on the predecessors' list (op/kernels.h), else it does not */
	bool visible_gpus;       /* averages are over all visible GPUs, used or not, but those of other ranks (analysis/ranks/rank_place.h); else over those that did something */
	/* Adds to host[USAGE_DATALOADER .. USAGE_CPU] when the host did what, in place of host_use.h; NULL = host_use.h. */
	void (*add_host)(const struct profile *p, struct intervals *host);
};

struct usage {
	double ns[USAGES];        /* averages over GPUs; whole numbers with one GPU */
	double kernel_busy_ns;    /* union of kernels */
	double device_busy_ns;    /* union of kernels, copies and sets */
	int64_t window_ns;
	unsigned gpus;            /* averaged over; 0 = the input has none, and all is the host's */
};

/* [start_ns, end_ns); rules: NULL = opscope's own. */
void usage_measure(const struct profile *p, int64_t start_ns, int64_t end_ns, const struct usage_rules *rules, struct usage *out);
/* n windows, each by itself. */
void usage_measure_all(const struct profile *p, const int64_t *start_ns, const int64_t *end_ns, unsigned n, const struct usage_rules *rules,
                       struct usage *out);

#endif
