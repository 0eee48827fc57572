/* What the parts of jobgen share (jobgen.c says what it does).
 *
 * The base is the recording of one real rank, on its own clock from the first step on. Its collectives divide it into stretches: stretch g ends where collective g begins,
 * and behind the last stretch there is none. A rank of the job plays the base `rounds` times: between collectives it takes as long as the base and what is
 * planted; in a collective it waits for its group. A rank stands still while it waits, its host too.
 *
 * Times are int64 ns. True time is not the time of any rank's clock: jobgen_clock_of says how far each is off. */
#ifndef OPSCOPE_BENCH_JOBGEN_H
#define OPSCOPE_BENCH_JOBGEN_H

#include "base/buf.h"
#include "base/hash.h"

enum jobgen_slot_kind { SLOT_START, SLOT_LENGTH, SLOT_ID, SLOT_STEP, SLOT_GROUP, SLOT_VALUES };

/* A place in an event's text where each rank writes something of its own. */
struct jobgen_slot {
	uint32_t at, n;          /* within the event's text */
	int64_t value;
	enum jobgen_slot_kind kind;
};

enum jobgen_event_class { EVENT_HOST, EVENT_DEVICE, EVENT_COLLECTIVE };

struct jobgen_event {
	size_t text;             /* offset in base->text */
	uint32_t n;
	uint32_t slot, n_slots;
	uint32_t item;           /* of a collective's kernel, and of its record_param_comms; UINT32_MAX = of none */
	enum jobgen_event_class class;
	int64_t start_ns, end_ns, correlation;
	int64_t stream;
	bool is_call, is_step, is_params, is_autograd;
};

enum jobgen_item_kind {
	ITEM_TENSOR, ITEM_DATA,  /* a collective of the base, of the tensor- or the data-parallel group */
	ITEM_RECEIVE, ITEM_SEND, /* between stages: put in */
};

/* What a rank does with others, in order of the base's time. */
struct jobgen_item {
	enum jobgen_item_kind kind;
	bool syncs;              /* ends on all ranks at one moment */
	bool forward;            /* of a message: to the next stage, and not back */
	int64_t start_ns, quiet_ns, end_ns; /* of the base; between quiet and end nothing but the collective is there */
	int64_t transfer_ns;
	int64_t elements;        /* that move; 0 = the base does not say */
	uint32_t step;           /* of the base, from 0 */
};

struct jobgen_busy {
	int64_t start_ns, end_ns; /* computing, outside collectives */
};

struct jobgen_step {
	uint32_t first, longest, backward; /* stretches: the first, the one that computes longest, and that in the backward; UINT32_MAX = none */
	int64_t compute_ns;
};

struct jobgen_base {
	struct buf text, head;   /* head: the members of the recording that every file has */
	struct buf names;
	struct buf metadata;     /* its events of kind M, each with a comma behind it */
	struct jobgen_event *event;
	struct jobgen_slot *slot;
	struct jobgen_item *item;
	struct jobgen_busy *busy;
	struct jobgen_step *step;
	uint32_t n_events, cap_events, n_slots, cap_slots, n_items, cap_items, n_busy, cap_busy, n_steps, cap_steps;
	int64_t end_ns;
	int64_t most_id, least_id;
	int64_t pid, tid;        /* of the host's main thread */
	int64_t *stretch_compute; /* by stretch: how long it computes */
	int64_t compute_stream;
	struct str kernel, collective; /* names that put-in kernels have */
};

enum jobgen_cause { CAUSE_SLOWER, CAUSE_MORE, CAUSE_COPIES, CAUSE_DATA, CAUSE_GC, CAUSE_HOST, CAUSE_BACKWARD, CAUSES };
extern const char *const jobgen_cause_name[CAUSES];

struct jobgen_late {
	int64_t rank;            /* -1 = another one in each step */
	enum jobgen_cause cause;
	int64_t ns;              /* a step */
	int64_t first, last;     /* steps of the job */
};

enum { JOBGEN_LATES = 64 };

struct jobgen_options {
	const char *base, *folder;
	int64_t tp, dp, pp, n, rounds, collectives, seed;
	int64_t offset_ns, drift_ppb, jitter_ns, end_skew_ns, stacks_pct;
	struct jobgen_late late[JOBGEN_LATES];
	unsigned n_lates;
	double stage[64];        /* by stage: how much longer it computes */
	unsigned n_stages;
	uint8_t *missing, *damaged, *empty, *repeated, *stacks, *old, *months; /* by rank */
	bool gzip, hidden;
};

/* When a rank's clock is where in the base: from one point to the next in proportion, and at a point a leap from before to after. */
struct jobgen_point {
	int64_t base_ns, before_ns, after_ns;
};

struct jobgen_map {
	struct jobgen_point *v;
	uint32_t n, cap;
};

/* What is put into a rank's recording where it is late. */
struct jobgen_insert {
	enum jobgen_cause cause;
	int64_t start_ns, end_ns;
};

/* The job as it was: by rank, round and item. */
struct jobgen_part {
	int64_t arrival_ns, begin_ns, end_ns; /* begin: when the data moves */
};

struct jobgen_play {
	const struct jobgen_options *o;
	const struct jobgen_base *b;
	struct jobgen_part *part;
	int64_t *begin;          /* by rank and round: when it begins */
	int64_t *wait_ns, *kept_ns; /* by rank: what it waited, and what the others waited for it */
};

void jobgen_die(const char *what, const char *of) __attribute__((noreturn));

/* A number in [0, below), the same for the same seed and place. */
static inline int64_t jobgen_chance(const struct jobgen_options *o, uint64_t what, uint64_t a, uint64_t b, int64_t below)
{
	uint64_t key[4] = {(uint64_t)o->seed, what, a, b};
	return below > 0 ? (int64_t)(hash_bytes(key, sizeof key) % (uint64_t)below) : 0;
}

static inline int64_t jobgen_tensor_place(const struct jobgen_options *o, int64_t rank) { return rank % o->tp; }
static inline int64_t jobgen_data_place(const struct jobgen_options *o, int64_t rank) { return rank / o->tp % o->dp; }
static inline int64_t jobgen_stage(const struct jobgen_options *o, int64_t rank) { return rank / o->tp / o->dp; }
static inline int64_t jobgen_rank(const struct jobgen_options *o, int64_t t, int64_t d, int64_t p) { return (p * o->dp + d) * o->tp + t; }
/* Members of the group of an item that the rank is in: *first, *first + *apart, ... */
void jobgen_group(const struct jobgen_options *o, const struct jobgen_item *i, int64_t rank, int64_t *first, int64_t *apart, int64_t *n);
/* Whether the rank takes part in it. */
bool jobgen_takes_part(const struct jobgen_options *o, const struct jobgen_item *i, int64_t rank);

void jobgen_read(struct jobgen_base *b, const struct jobgen_options *o);
void jobgen_release(struct jobgen_base *b);

void jobgen_play(struct jobgen_play *p);
/* Where base time is on true time in one round of a rank. `inserts` has room for JOBGEN_LATES; returns how many there are. */
unsigned jobgen_map_round(const struct jobgen_play *p, int64_t rank, int64_t round, struct jobgen_map *m, struct jobgen_insert *inserts);

/* Offset at the job's beginning, and how much faster the clock runs. */
void jobgen_clock_of(const struct jobgen_options *o, int64_t rank, int64_t *offset_ns, double *drift);
void jobgen_write(const struct jobgen_play *p);

#endif
