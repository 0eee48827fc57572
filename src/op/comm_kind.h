/* The kinds of collectives, by what a profiler calls them. */
#ifndef OPSCOPE_OP_COMM_KIND_H
#define OPSCOPE_OP_COMM_KIND_H

#include "base/str.h"

/* X(id, name, whether it ends on all ranks at one moment: no rank can be done before the last one has come). */
#define COMM_KINDS(X)                                                                                              \
	X(ALL_REDUCE, "all_reduce", true) X(ALL_GATHER, "all_gather", true) X(REDUCE_SCATTER, "reduce_scatter", true)                 \
	X(ALL_TO_ALL, "all_to_all", true) X(GATHER, "gather", false) X(SCATTER, "scatter", false)                                     \
	X(BROADCAST, "broadcast", false) X(REDUCE, "reduce", false) X(SEND_RECV, "send_recv", false)                                  \
	X(SEND, "send", false) X(RECV, "recv", false) X(BARRIER, "barrier", true)                                                     \
	X(DISPATCH, "dispatch", false) X(COMBINE, "combine", false) X(COALESCED, "coalesced", false)

enum comm_kind {
#define COMM_KIND_ID_(id, name, together) COMM_##id,
	COMM_KINDS(COMM_KIND_ID_)
	COMM_N_KINDS, COMM_UNKNOWN = COMM_N_KINDS
};

/* "all_reduce"; "" of COMM_UNKNOWN. */
const char *comm_kind_name(enum comm_kind k);
bool comm_kind_ends_together(enum comm_kind k);
/* Of the name of a collective, an op or a kernel: "_allgather_base", "c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f16_RING_LL(...)".
 * COMM_UNKNOWN. A kernel "SendRecv" is COMM_SEND_RECV: NCCL runs it for sends, receives and all-to-alls. Dispatch and combine send tokens to the ranks of their experts and
 * back. Coalesced is a group of operations that one kernel runs, of any kinds. Algorithm and protocol in a kernel's name (RING, LL) are not looked at: NCCL names a kernel after one of those that it may run. */
enum comm_kind comm_kind_of(struct str name);

/* What a rank sends of a collective of that size over so many ranks, by nccl-tests' formulas (op/comm.c). -1 = not known. */
int64_t comm_wire_bytes(enum comm_kind kind, int64_t bytes, int64_t ranks);

#endif
