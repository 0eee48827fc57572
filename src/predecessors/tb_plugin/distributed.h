/* The Distributed view (communication.py, event_parser.py, loader.py and run_generator.py of the plugin): what it keeps of each worker, and what the
 * workers tell together.
 *
 * An op with one of ten names (tb_comm_of) is a communication; of several with one external id only the last one counts. Its ranges are that of the op and, where
 * NCCL is used, those of the kernels with its external id. Communications of a worker are in order of start, then the longer first. The i-th of one worker is the
 * i-th of all others, whatever their names, groups and clocks. The transfer of its j-th range is the shortest j-th range of all workers: each worker
 * transfers so long at the end of its own range, and synchronizes before that. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_DISTRIBUTED_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_DISTRIBUTED_H

#include "analysis/time/interval.h"
#include "base/arena.h"
#include "base/err.h"
#include "store/profile.h"

enum tb_part { TB_COMPUTE, TB_OVERLAP, TB_COMMUNICATE, TB_OTHER, TB_PARTS };

struct tb_worker_step {
	struct str name;         /* "3" of ProfilerStep#3; "0" of a trace without steps */
	int64_t number;
	int64_t ns[TB_PARTS];    /* computation without overlap, overlap, communication without overlap, and what is left of the step */
};

struct tb_comm {
	int64_t start_ns, end_ns; /* of the op */
	int64_t bytes;           /* of its inputs; 0 for a type whose size the plugin does not know */
	uint32_t range, n_ranges; /* of worker->range, in order of start */
	uint32_t step;           /* of worker->step; TB_NO_STEP = in none */
	uint8_t op;              /* tb_comm_name */
};
#define TB_NO_STEP UINT32_MAX

struct tb_gpu {
	int32_t ordinal;
	struct str name;         /* "" = not stated */
	int64_t memory_bytes;    /* 0 = not stated */
	int32_t cc_major, cc_minor; /* -1 = not stated */
};

struct tb_worker {
	struct str name;
	int64_t rank;            /* or its place in the list */
	struct tb_worker_step *step;
	uint32_t n_steps;
	struct tb_comm *comm;
	uint32_t n_comms;
	struct interval *range;
	int64_t *transfer_ns;    /* of each range; by tb_distributed_match */
	uint32_t n_ranges;
	struct tb_gpu *gpu;      /* those that worked and are described, in order of ordinal */
	uint32_t n_gpus;
	bool describes_gpus;     /* the input describes any */
	bool two_libraries;      /* NCCL and Gloo: the plugin shows no view then */
	struct arena arena;
};

/* Needs PASS_NEST and PASS_CORRELATE. The caller's (tb_worker_free). O(n log n). */
struct tb_worker *tb_worker_new(const struct profile *p, struct str name, int64_t rank);
void tb_worker_free(struct tb_worker *w);

/* Which communications there are, before any pass: equal on all workers that the plugin shows together. 0 = none, or of two libraries. */
uint32_t tb_worker_shape(const struct profile *p);

/* Sets transfer_ns of n >= 1 workers. ERR_DATA, with the reason, where the plugin shows no view of these. O(ranges). */
int tb_distributed_match(struct tb_worker *const *w, uint32_t n, struct err *e);

/* What ranges of a worker cover, and when they transfer: each a union. */
struct tb_wait {
	uint64_t calls;
	int64_t bytes, total_ns, transfer_ns;
};
/* Of its communications in steps with numbers first..last, by tb_comm_name: out[TB_COMMS]. With INT64_MIN..INT64_MAX also of those in no step. */
void tb_worker_waits_by_op(const struct tb_worker *w, int64_t first, int64_t last, struct tb_wait *out);
/* By step: out[n_steps + 1], the last of those in none. */
void tb_worker_waits_by_step(const struct tb_worker *w, struct tb_wait *out);

#endif
