/* Which kernels could use Tensor Cores: one answer for the report tensor-cores and the detector no-tensor-cores. */
#ifndef OPSCOPE_ANALYSIS_COSTS_TC_USE_H
#define OPSCOPE_ANALYSIS_COSTS_TC_USE_H

#include "analysis/tree/optree.h"

/* gpu_op row -> 1: a kernel that could use Tensor Cores, or does. Needs PASS_OPS; *t follows the default rules. These are
 *   - kernels that an eligible op (optree's tc_eligible) without an eligible op inside launched;
 *   - products by their names that an op of an eligible type holds (op_instances.h: a marker, a whole LSTM), and, if no op inside it is eligible, its
 *     kernels whose name tells nothing;
 *   - kernels of ops that do use them.
 * Collectives never are. An op that merely holds an eligible one gives nothing else: a compiled function holds all-reduces, too. The array is the
 * caller's (mem_free). */
uint8_t *tc_could_use(const struct profile *p, const struct optree *t);

#endif
