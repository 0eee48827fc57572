/* What a job keeps of one rank: which one it is, how it was recorded, its steps, and its collectives with the times of their kernels. The profile that it
 * was taken from is not needed any more: a rank takes some 100 bytes for each collective, so that a thousand ranks fit where one profile does. */
#ifndef OPSCOPE_ANALYSIS_RANKS_RANK_H
#define OPSCOPE_ANALYSIS_RANKS_RANK_H

#include "analysis/ranks/rank_hang.h"
#include "analysis/ranks/rank_phases.h"
#include "analysis/time/busy.h"
#include "op/comm_kind.h"

#define RANK_UNKNOWN INT64_MIN
#define RANK_EQUAL_PARTS UINT32_MAX

/* A process group, in the words of this rank. Other ranks may give it another name. */
struct rank_group {
	struct str name, about, id;  /* "3"; its description; what names it on all ranks alike ("Comms Id"). "" = not recorded */
	bool is_address;             /* the name is an address in this rank's memory: it tells groups of this rank apart, and nothing else */
	int64_t size;                /* ranks; 0 = not recorded */
	int64_t *member;             /* their numbers, ascending; owned by the rank */
	uint32_t n;                  /* 0 = not recorded, or not all of them */
};

/* What the rank had done up to a moment: the difference of two says what it did between them. */
struct rank_past {
	int64_t compute_ns, copy_ns, talk_ns; /* of the GPU: each a union; talk = collectives */
	int64_t loading_ns, collecting_ns;    /* of the host: in a data loader, in garbage collection */
	uint64_t kernels;                     /* without collectives: begun */
};

/* A collective as this rank ran it. Times are absolute where the recording tells its epoch, on the rank's own clock. */
struct rank_call {
	int64_t start_ns, end_ns;    /* of its kernel, or of the host's range where the host does it */
	int64_t seq;                 /* its number in its group; RANK_UNKNOWN */
	int64_t bytes, wire_bytes;   /* op/comm.c; -1 = not recorded */
	int64_t exposed_ns;          /* while the GPU did nothing else; a moment of several collectives belongs to the one that began first */
	int64_t wait_ns;             /* from its start until the last rank came; -1 = not known. Set by the job */
	struct rank_past before, after; /* up to its start, and up to its end */
	int64_t spent_ns[RANK_N_SPENT]; /* in each phase without its communication: from the start of the rank's first collective to the start of this one */
	uint32_t piece, n_pieces;    /* when exposed_ns was: rank->piece[piece ...] */
	int64_t peer;                /* of a send or receive: the number of the other rank; RANK_UNKNOWN */
	uint32_t sent;               /* of an all-to-all: rank->sent[sent - 1 ...] is what goes to each rank of the group; RANK_EQUAL_PARTS; 0 = not recorded */
	uint32_t group;              /* of rank->group */
	uint32_t row;                /* of the profile's gpu_op: the kernel, for whoever reads the recording again; ROW_NONE = the host does the collective */
	uint32_t stream;             /* by which collectives without a group are told apart: numbered from 0 by first use */
	uint32_t kernel;             /* of rank->texts: the kernel's name up to its parameters */
	uint32_t op;                 /* of rank->texts: the op or range that asked for it; 0 = not recorded */
	uint8_t kind;                /* enum comm_kind */
};

struct rank_step {
	int64_t number;
	int64_t start_ns, end_ns;    /* with the device work that it launched, on the rank's own clock */
	struct busy busy;            /* of the rank's GPU */
	int64_t phase_ns[RANK_N_PHASES]; /* their sum is the step */
};

/* Kinds of tasks: X(id, as a timeline of workers calls it, whether it communicates). */
#define RANK_TASKS(X)                                            \
	X(FORWARD, "forward-compute", false)                     \
	X(BACKWARD, "backward-compute", false)                   \
	X(FORWARD_SEND, "forward-send", true)                    \
	X(FORWARD_RECV, "forward-recv", true)                    \
	X(BACKWARD_SEND, "backward-send", true)                  \
	X(BACKWARD_RECV, "backward-recv", true)                  \
	X(GATHER_PARAMS, "params-all-gather", true)              \
	X(REDUCE_GRADS, "grads-reduce-scatter", true)            \
	X(REDUCE_LAYERNORM, "layernorm-grads-all-reduce", true)  \
	X(REDUCE_EMBEDDING, "embedding-grads-all-reduce", true)  \
	X(CLIP, "optimizer-clip-main-grad", true)                \
	X(OPTIMIZER, "optimizer", false)                         \
	X(COLLECT, "gc", false)

enum rank_task_kind {
#define RANK_TASK_ID_(id, name, talks) RANK_TASK_##id,
	RANK_TASKS(RANK_TASK_ID_)
	RANK_N_TASKS, RANK_TASK_OTHER = RANK_N_TASKS
};

/* A piece of work of a worker in a step: what a timeline of workers has in place of kernels. */
struct rank_task {
	int64_t step;                /* its number */
	int64_t start_ns, end_ns;
	int64_t seq;                 /* its place among those of its kind in the step */
	uint32_t name;               /* of rank->texts */
	uint8_t kind;                /* enum rank_task_kind */
};

/* How the rank was recorded: stacks and memory make a rank slower. */
struct rank_recording {
	bool stacks, memory;
	bool thinned;                /* most events were taken out afterwards (analysis/time/thinned.h) */
};

struct rank {
	struct str path;             /* of the input */
	uint32_t input;              /* its place among the job's inputs; set by who adds the rank */
	int64_t number;              /* RANK_UNKNOWN: the input does not tell */
	int64_t world;               /* ranks of the job; 0 = not stated */
	int32_t device;              /* ordinal of the GPU; INT32_MIN = none worked, or not stated */
	struct str gpu;              /* its name; "" = not stated */
	struct str host;             /* of the machine; "" = not stated */
	uint32_t gpus_seen;          /* GPUs that its process saw; 0 = not stated */
	struct rank_recording recording;
	int64_t epoch_ns;            /* what was added to the input's times */
	bool phases_of_host;         /* no GPU worked: the phases are of the host */
	bool steps_are_window;       /* no steps were found: step[0] is the time of the device work */
	struct rank_step *step;
	uint32_t n_steps;
	struct rank_group *group;
	uint32_t n_groups;
	struct rank_call *call;      /* in order of start */
	uint32_t n_calls;
	bool is_worker;              /* of a timeline of workers: it has tasks, and neither device work nor collectives */
	bool is_interleaved;         /* of a worker: it has several chunks of the model */
	int64_t replica, stage, shard; /* of a worker: its data-parallel, pipeline and tensor-parallel rank */
	struct rank_task *task;      /* by step, then in order of start */
	uint32_t n_tasks;
	struct interval *piece;      /* in which only collectives ran: disjoint, ascending, on the rank's own clock */
	uint32_t n_pieces;
	int64_t *sent;               /* bytes */
	uint32_t n_sent;
	struct rank_hang hang;       /* of a dump of a flight recorder, which has nothing else */
	struct intern texts;         /* names of kernels and ops */
	struct arena arena;
};

/* The ranks whose work a profile holds: one for each GPU that ran collectives, else one for all. */
unsigned rank_count(const struct profile *p);
/* Number i of these; the caller's (rank_free). Needs PASS_NEST, PASS_CORRELATE and PASS_STEPS. O(n log n). */
struct rank *rank_new(const struct profile *p, unsigned i);
void rank_free(struct rank *r);
/* Index of the first step in which a time of the rank's own clock lies; UINT32_MAX = none. */
uint32_t rank_step_at(const struct rank *r, int64_t ns);

#endif
