/* Nsight Compute measures counters in a run of its own. This finds the launch of a trace that each measured launch is, and gives the counters to that
 * kernel as arguments (analysis/costs/counters.h). */
#ifndef OPSCOPE_OPEN_COUNTERS_JOIN_H
#define OPSCOPE_OPEN_COUNTERS_JOIN_H

#include "open/ncu.h"
#include "store/profile.h"

/* Two launches are of one kernel if its base name (counters_base_name), its grid and its block agree. The device must agree, too, where both the trace and the
 * counters tell of several.
 *
 * By order: each measured kernel was launched as often as it was measured. Then its k-th launch has the counters of its k-th measurement.
 *
 * By rows, where these numbers differ: a row of launches in the trace and a row of measured launches are alike if they are of the same kernels in the same order.
 * Launches of kernels that were never measured do not break a row. A launch has the counters of its counterpart if the row has COUNTERS_ROW launches or more, of
 * COUNTERS_KERNELS kernels or more. Several measured rows may be alike: the longest is taken; of equally long ones the first behind the row that was taken
 * last, else the first. So all steps of a trace get the counters of one measured step.
 *
 * O(launches). ERR_DATA: no launch of the trace can be told to be a measured one. */
enum { COUNTERS_ROW = 8, COUNTERS_KERNELS = 3 };
int counters_join(struct profile *p, const struct ncu *n, const char *path, struct err *e);

/* The name without return type, name spaces, template arguments and parameters, which ncu writes in other ways than a trace: "gemm" of
 * "void ns::gemm<float, 4>(float*)". */
struct str counters_base_name(struct str kernel);

#endif
