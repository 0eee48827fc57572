/* One side of a comparison: the time of a recording's steps, taken apart. A recording becomes its side and is freed, so that two long ones are never held at once.
 *
 * Each moment of a GPU's steps belongs to one part, by the first of these that holds at this moment:
 *   compute   kernels and memsets that are no collectives run; several share the moment equally, so that parts add up and work side by side is not counted twice
 *   comm      collectives run: those that no computation hides
 *   wait      of these, in which the last rank had not come yet, as far as the other ranks tell (query/diff_wait.h)
 *   copy      only copies run
 *   idle      the GPU does nothing: by what the host did meanwhile (detect/parts/gaps.h)
 * So the parts add up to the steps exactly, to the nanosecond. Of several GPUs the sums are kept, and `gpus` divides them.
 *
 * The op of a kernel that was launched outside of all ops is the kernel itself, by name, since the call that launched it says nothing of the program. Kernels of a graph belong to its launch.
 *
 * A timeline of workers, which has no device work either, has workers in place of GPUs (query/diff_workers.h). Of any other recording without device work the moments are those of the thread that runs the steps (host). They belong to the op, which is the outermost range of a framework's op, else to the
 * innermost range or frame. */
#ifndef OPSCOPE_QUERY_DIFF_SIDE_H
#define OPSCOPE_QUERY_DIFF_SIDE_H

#include "analysis/steps/steps.h"
#include "base/intern.h"
#include "query/report.h"

/* A moment of a GPU belongs to the first of the first three that runs: they stand in this order. Waiting stands last, since the side of one recording has none yet (query/diff_side_pack.c). */
enum diff_kind { DIFF_COMPUTE, DIFF_COMM, DIFF_COPY, DIFF_IDLE, DIFF_HOST, DIFF_WAIT, DIFF_KINDS };
extern const char *const diff_kind_name[DIFF_KINDS]; /* "compute", ... */

/* What makes two pieces of work of a recording the same part. Texts are ids in `texts` of the side; 0 = none. */
struct diff_key {
	uint32_t name;           /* the op with its path; of idle time the cause */
	uint32_t type;           /* the op alone */
	uint32_t shapes;         /* of its inputs, where recorded */
	uint32_t kernel;         /* its full name, since short ones differ between recordings; of a copy its kind; 0 = of the host */
	uint32_t around;         /* of a Python frame the range around it (diff_side_outside_ranges: none); 0 = of all else */
	uint32_t line;           /* of the user's Python that called it; of the backward pass, that called the forward pass; 0 = not recorded */
	uint32_t waited_for;     /* of waiting: "rank 3"; 0 = of other time */
	uint8_t kind;            /* enum diff_kind */
	uint8_t direction;       /* enum direction; of idle time 0 */
	uint16_t zero;           /* keys are compared as bytes, so that there is no padding */
};

struct diff_part {
	struct diff_key key;
	uint64_t calls;          /* kernels, copies; calls of a range of the host; 0 of idle time */
	int64_t ns;              /* of the time of all steps */
	int64_t wait_unknown_ns; /* of collectives: so much of ns is of calls of which no waiting is known */
	int64_t maybe_wait_ns;   /* of collectives: so much of ns may be waiting, too; at least wait_unknown_ns */
	uint32_t short_kernel;   /* the kernel's short name, to be shown; 0 = as key.kernel */
};

/* A time in which collectives ran on a GPU, perhaps copies, and no computation: the share that one of the collectives has of it. */
struct diff_exposed {
	int64_t start_ns, end_ns; /* on the clock of its recording */
	int64_t share_ns;        /* of the part's time */
	uint32_t part;           /* of side->part */
	uint32_t row;            /* of the recording's gpu_op */
	uint32_t input;          /* of a job: the recording's place among those that were joined */
};

enum { DIFF_FACT_GPU, DIFF_FACT_RANKS, DIFF_FACT_RECORDER, DIFF_FACTS_OWN }; /* the first ones */
/* A fact about the recording that should be equal on both sides. */
struct diff_fact {
	const char *name;        /* "GPU" */
	struct str value;        /* "" = not stated */
	bool version;            /* of a driver or a library: what may be what changed, and no other configuration */
};

struct diff_side {
	struct intern texts;
	struct arena arena;
	struct str path;
	struct diff_part *part;
	uint32_t n_parts, cap_parts;
	struct intern keys;      /* the bytes of a part's key; its id is the part's number + 1 */
	struct diff_exposed *exposed;
	uint32_t n_exposed, cap_exposed;
	bool waits_told;         /* waiting was told from transfer, as far as the ranks tell */
	const char *untold_why;  /* why most of what is left was not; NULL = nothing is left */
	int64_t missing;         /* ranks of the job that are not here */
	unsigned n_recordings;   /* that were joined: of a job as many as files, each of one rank or more; else 1 */
	int64_t *step_ns;        /* the length of each step, in order of time; of a job until diff_side_join_end the sum over its ranks, then the mean */
	unsigned n_steps;        /* at least 1 */
	int64_t *part_step_ns;   /* [part * n_steps + step], of the part's time: of GPUs the work and the idle times that begin in the step, of the host what lies in it; sums over the GPUs
	                          * (query/diff_scatter.h) */
	uint32_t n_part_steps, cap_part_steps; /* parts x steps; 0 = not kept */
	bool scatter_dropped;    /* it cannot be kept */
	unsigned warm_up;        /* steps at the beginning that were left out, since they took much longer than the others */
	bool has_steps;          /* false: no steps were found, and the whole `window` counts as one */
	enum steps_window_kind window;
	unsigned gpus;           /* that worked; 0 = the parts are of the host */
	int64_t total_ns;        /* of all parts: the length of the steps, times the number of GPUs */
	int64_t peak_bytes;      /* the most memory that a GPU (of a recording of the host: the host) held while recording; -1 = not recorded */
	bool workers;            /* of a timeline of workers, which stand in place of GPUs */
	struct str slowest;      /* which worker computes much longer than most, and how long; "" = none */
	unsigned slowest_pct;    /* its computation, of that of the median worker; 0 = none */
	bool frames;             /* some parts are of Python frames */
	bool thinned;            /* most events were taken out of the recording */
	struct diff_fact *fact;
	unsigned n_facts;        /* the same ones, in the same order, on every side */
};

/* Takes the steps that *args choose, else all that count but the warm-up. The passes run on *p, which may be freed afterwards. NULL and *e: ERR_USAGE where
 * there are no such steps, ERR_DATA where the recording has no times. The caller's (diff_side_free). */
struct diff_side *diff_side_new(struct profile *p, const struct report_args *args, struct err *e);
void diff_side_free(struct diff_side *s);
/* A step at the beginning that takes so many times the median is warm-up. */
#define DIFF_WARM_UP 1.3
/* How many of the n steps at the beginning, of which this is the length, are warm-up. */
unsigned diff_side_warm_up(const int64_t *ns, unsigned n);
/* Adds calls and ns to the part of this key, which is made where there is none. The pointer holds until the next call. */
struct diff_part *diff_side_add(struct diff_side *s, const struct diff_key *key, uint64_t calls, int64_t ns);
/* What the sums of a side are divided by: its steps, times its GPUs. */
double diff_side_per(const struct diff_side *s);
/* Whether shapes of inputs, or lines of the user's Python, were recorded. */
bool diff_side_has_shapes(const struct diff_side *s);
bool diff_side_has_lines(const struct diff_side *s);
/* What it was recorded in: a file, of a job its folder. A part of its path. */
struct str diff_side_place(const struct diff_side *s);
/* The facts of a side, by their values. False: a side has more or fewer than n. The texts must live as long as the side. */
bool diff_side_set_facts(struct diff_side *s, const struct str *value, unsigned n);
/* Adds the side of one more recording to that of the job's first ones; *rank is read, and not kept. -1 and *e, ERR_DATA, and *job is of no more use: its steps are others in number, it is of GPUs
 * and the job of the host, or both together are longer than 64 bits hold. diff_side_join_end after the last one makes means of sums. */
int diff_side_join(struct diff_side *job, const struct diff_side *rank, struct err *e);
void diff_side_join_end(struct diff_side *job);
/* The name of the idle time of a host that is in no range. */
struct str diff_side_outside_ranges(void);
/* The side outlives the mem_try that it was made in (mem_disown). */
void diff_side_disown(const struct diff_side *s);

#endif
