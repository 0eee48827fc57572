/* Tells of which launch of a trace the counters are that Nsight Compute measured in another run of the program, and gives them to the kernel as arguments (analysis/costs/counters.h). */
#ifndef OPSCOPE_OPEN_COUNTERS_JOIN_H
#define OPSCOPE_OPEN_COUNTERS_JOIN_H

#include "open/ncu.h"
#include "store/profile.h"

/* Launches are compared by the kernel's name without return type, name spaces, template and other arguments, which ncu writes otherwise than a trace, by grid and by block; where both tell of several devices, by device.
 *
 * Where each kernel that was measured was launched as often in the trace, the k-th launch is the k-th one. Else only some launches were measured, or other ones: a launch has the counters of a measured one if both stand in rows
 * of COUNTERS_ROW or more launches, of three kernels or more, that are alike; launches of kernels that were not measured do not break a row. Of several such rows the longest, else the next after the row before, else the first. So all
 * steps of a trace have the counters of a measured step. O(launches). ERR_DATA: none can be told. */
enum { COUNTERS_ROW = 8, COUNTERS_KERNELS = 3 };
int counters_join(struct profile *p, const struct ncu *n, const char *path, struct err *e);

/* "gemm" of "void ns::gemm<float, 4>(float*)". */
struct str counters_base_name(struct str kernel);

#endif
