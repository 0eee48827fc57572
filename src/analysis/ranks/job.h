/* A job: the ranks of one distributed run, their collectives matched over the ranks, on one clock.
 *
 * Match. Collectives of one process group are one instance on all its ranks. A group is known on all ranks by its id, else by its members and its name,
 * else by its members and the order in which groups with these members are first used; a collective of which no group is recorded belongs to the group of all ranks that have
 * its stream. Instances of a group are numbered: by the sequence number where every collective has one, else in order of start among those of one kind. Kinds
 * must agree. Where ranks have unequal numbers of a kind and no sequence numbers, nothing of that kind is matched.
 *
 * Clocks. A collective that ends on all ranks at one moment (op/comm_kind.h) tells how far clocks are apart. A rank's offset and drift are those that make ends
 * coincide, by medians over the graph of groups (job_align.c). Where ends coincide as they were recorded, clocks stay as they are.
 *
 * An instance is accepted where its ends coincide on that clock. Its numbers are then:
 *   arrival      the latest start: when the last rank came
 *   wait         of a rank: arrival - its start, at most until its end. Device time lost
 *   transfer     median over the ranks of end - arrival, at least 0
 *   shortest     the shortest duration: what others call the latency
 *   start skew   latest start - earliest; end skew = latest end - earliest
 * Sends and receives whose peers are recorded are paired: the n-th of one rank to another in a group with the n-th that the other receives from it, where both have as many.
 * Of kinds that do not end together, and of groups that were not accepted, wait and transfer are unknown. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_H

#include "analysis/ranks/clock_file.h"
#include "analysis/ranks/rank.h"
#include "base/err.h"

/* How the clock of a rank was found. */
enum job_clock {
	JOB_CLOCK_RAW,           /* as recorded: ends coincide so, or nothing tells */
	JOB_CLOCK_ENDS,          /* by the ends of collectives */
	JOB_CLOCK_FILE,          /* as a file states it */
	JOB_CLOCK_UNKNOWN,       /* the ends contradict each other, nothing ties the rank to the others, or the file does not state it */
};

struct job_clocks {
	enum job_clock how;
	bool apart;              /* compared with some ranks, but not with those that make the job's clock: nothing ties them together */
	uint32_t tied;           /* of JOB_CLOCK_ENDS: ranks with the same number are compared with each other, others are not */
	int64_t offset_ns;       /* by which this rank's clock is ahead of the job's at mid_ns */
	double drift;            /* by which it gets ahead further, ns in each ns */
	int64_t mid_ns;
	int64_t residual_ns;     /* median distance of its ends from those of the others, after all */
	uint32_t ends;           /* how many there are */
};

struct job_part {
	uint32_t rank;           /* index into job->rank */
	uint32_t call;           /* of that rank */
	int64_t start_ns, end_ns; /* on the job's clock */
};

struct job_instance {
	struct job_part *part;   /* in order of rank */
	uint32_t n;
	uint32_t group;          /* of job->group */
	uint8_t kind;
	bool coincides;          /* it ended on all its ranks at one moment, as far as clocks tell, whether its kind must or not */
	bool accepted;           /* wait and transfer are known */
	bool paired;             /* a send and its receive. Where clocks tell, wait_ns is what the receiver waited for the sender to come, and transfer_ns is known */
	int64_t seq;             /* as recorded; RANK_UNKNOWN */
	int64_t bytes;           /* the largest of the parts; -1 = not recorded */
	int64_t arrival_ns, transfer_ns, shortest_ns, start_skew_ns, end_skew_ns;
	int64_t wait_ns, exposed_ns; /* sums over the ranks; wait -1 = unknown */
	uint32_t last;           /* index of the rank that came last */
};

/* Why instances of a group were not accepted. */
enum job_refusal { JOB_ACCEPTED, JOB_ONE_RANK, JOB_UNEQUAL, JOB_OTHER_STEPS, JOB_NOT_TOGETHER, JOB_ENDS_APART, JOB_REFUSALS };

/* How it is known what a group divides among its ranks, and why it is not (job_groups.h). */
enum job_told { JOB_TOLD_NOT, JOB_TOLD_SAID, JOB_TOLD_BY_OPS, JOB_TOLD_BY_RANKS };
enum job_untold { JOB_UNTOLD_ALONE, JOB_UNTOLD_RANKS, JOB_UNTOLD_ALL, JOB_UNTOLD_UNEVEN, JOB_UNTOLD_SHARDS, JOB_UNTOLD_LAYOUT, JOB_UNTOLDS };

struct job_group {
	struct str name, about, id; /* of the first rank's; "" = not recorded */
	const int64_t *member;   /* rank numbers, ascending; NULL = not recorded */
	uint32_t n_members;      /* of the group, where recorded, else as many ranks as have it */
	uint32_t n_ranks;        /* of which recordings are here */
	bool alone;              /* it is of one rank, which waits for none */
	uint32_t first, n;       /* its instances, in order */
	uint32_t unmatched;      /* collectives that not all of these ranks have */
	uint32_t n_pairs;        /* of its instances, sends with their receives */
	enum job_refusal refusal;
	int64_t end_skew_ns;     /* median over the instances that should end together */
	uint8_t split;           /* what it divides among its ranks: bits 1 << enum job_split; 0 = unknown */
	uint8_t told, untold;    /* enum job_told: how that is known; enum job_untold: why not */
	uint32_t hosts;          /* on which its ranks are; 0 = unknown */
};

#define JOB_HOST_UNKNOWN UINT32_MAX
/* How the hosts of ranks are known: as recorded, or from how many GPUs each process saw, as ranks are counted host by host. */
enum job_hosts { JOB_HOSTS_UNKNOWN, JOB_HOSTS_RECORDED, JOB_HOSTS_BY_GPUS };

struct job {
	struct rank **rank;      /* by number, those without one last; owned */
	uint32_t n;
	int64_t world;           /* ranks of the job: the largest that an input states or a group has, at least n */
	int64_t missing;         /* of the world, without a recording */
	uint32_t repeated;       /* ranks with a number that an earlier one has: left out of all that follows */
	struct job_clocks *clock; /* by rank */
	struct job_group *group;
	uint32_t n_groups, cap_groups;
	struct job_instance *instance; /* by group, then in order */
	uint32_t n_instances, cap_instances, cap_ranks;
	uint32_t *host;          /* by rank: equal on one host; JOB_HOST_UNKNOWN */
	uint32_t n_hosts;        /* of the ranks that are here; 0 = not all are known */
	enum job_hosts hosts_by;
	struct arena arena;      /* parts */
};

enum job_align { JOB_ALIGN_AUTO, JOB_ALIGN_ENDS, JOB_ALIGN_NONE };

struct job *job_new(void);
void job_free(struct job *j);
/* Takes over the rank. */
void job_add(struct job *j, struct rank *r);
/* The ranks whose work a profile holds (rank_count); `number` is that of one which the input does not number. Needs PASS_NEST, PASS_CORRELATE and PASS_STEPS. */
void job_add_profile(struct job *j, const struct profile *p, int64_t number);
/* Once all ranks are there: identifies them, matches, aligns, and measures. With `clocks` (NULL = none) in place of `align`. ERR_DATA: no rank, or none that `clocks` states. */
int job_finish(struct job *j, enum job_align align, const struct clock_file *clocks, struct err *e);

/* The time of a rank's GPU within steps, in parts that add up to `total`. Collectives that nothing hides are waiting, transfer, or of unknown kind where no
 * wait is known. */
enum job_time_kind { JOB_COMPUTE, JOB_TRANSFER, JOB_WAIT, JOB_EXPOSED_UNKNOWN, JOB_COPY, JOB_IDLE, JOB_TOTAL,
	JOB_TALK, /* all collectives, beside computation or not: no part of the sum */
	JOB_TIME_KINDS };
struct job_times {
	int64_t ns[JOB_TIME_KINDS];
	uint32_t steps;
};
/* Adds number i of this rank's steps. O(log collectives + its collectives). */
void job_times_add_step(const struct job *j, uint32_t rank, uint32_t i, struct job_times *out);
/* Of the steps with numbers first..last of this rank. O(collectives + steps). */
struct job_times job_times_of(const struct job *j, uint32_t rank, int64_t first, int64_t last);

/* A time of a rank's own clock on the job's. */
static inline int64_t job_time(const struct job *j, uint32_t rank, int64_t ns)
{
	const struct job_clocks *c = &j->clock[rank];
	return ns - c->offset_ns - (int64_t)(c->drift * (double)(ns - c->mid_ns));
}

/* The rank's number for a reader; of one without, its place in the list. */
static inline int64_t job_rank_number(const struct job *j, uint32_t rank)
{
	int64_t n = j->rank[rank]->number;
	return n == RANK_UNKNOWN ? (int64_t)rank : n;
}
/* The rank of this number; j->n = it is not here. O(log ranks). */
uint32_t job_rank_of(const struct job *j, int64_t number);
/* Whether the ranks of these numbers, which need not be here, are on one host: 1, 0; -1 = unknown. */
int job_share_host(const struct job *j, int64_t a, int64_t b);
/* Why a group was not accepted, as the end of a sentence: "only one rank of the group is here". "" where it was. */
const char *job_refusal_text(enum job_refusal r);

/* The parts of job_finish. */
void job_match(struct job *j);
void job_clocks_find(struct job *j, enum job_align align, const struct clock_file *clocks);
void job_measure(struct job *j);
void job_find_hosts(struct job *j);
void job_tell_groups(struct job *j);

#endif
