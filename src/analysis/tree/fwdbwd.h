/* Which forward op a backward op belongs to.
 *
 * By sequence number: a backward op carries the number and the forward thread's id (`Fwd thread id` > 0) of the autograd node
 * that it runs; the forward ops on that thread with the same number made the node, and among them the one that started last
 * (the innermost; the profiler's own rule). The thread id is the profiler's own count, not the trace's: it stands for that
 * thread of the trace to which the flows of its ops lead, or, without flows, on which most of its numbers are found.
 * Without any forward thread id in the input (emit_nvtx under Nsight Systems or nvprof): a backward op is one named as a node
 * ("MmBackward0") with a number. Its own thread stands for that other thread of the process on which most of its numbers are found at
 * an op whose name fits the node's ("aten::mm"). There, and on its own thread, the last op with that number that began before: the one
 * whose name fits, and of two such the later (the second derivative of create_graph=True is made by the backward thread); else the
 * other thread's. Several threads that fit equally well: unlinked, unless its own thread
 * has it and the name fits.
 * By flow: a `fwdbwd` arrow from an op's start to an op's start, where numbers do not decide.
 * Needs PASS_NEST. O(n log n). */
#ifndef OPSCOPE_ANALYSIS_TREE_FWDBWD_H
#define OPSCOPE_ANALYSIS_TREE_FWDBWD_H

#include "base/rankset.h"
#include "store/profile.h"

struct fwdbwd {
	struct rankset linked;/* the backward ops that have a forward op */
	uint32_t *forward;    /* its row, by the place in `linked` */
	uint64_t by_sequence; /* backward ops linked by number and thread */
	uint64_t by_flow;     /* linked by an arrow only */
	uint64_t agree;       /* of by_sequence: an arrow says the same */
	uint64_t differ;      /* of by_sequence: an arrow leads to another op; the number is believed */
	uint64_t unlinked;    /* backward ops with a number, but no forward op in the trace has it (recorded too late) */
	uint64_t ambiguous;   /* of unlinked: several threads fit equally well */
	bool is_kept;         /* store/reuse.h */
};

struct fwdbwd *fwdbwd_new(const struct profile *p);
void fwdbwd_free(struct fwdbwd *f);

/* The forward op (row in span) of a backward op; ROW_NONE for all other spans. */
static inline uint32_t fwdbwd_forward(const struct fwdbwd *f, uint32_t span)
{
	return rankset_has(&f->linked, span) ? f->forward[rankset_place(&f->linked, span)] : ROW_NONE;
}

#endif
