/* A gate: whether a new run is worse than accepted ones. The difference must exceed the scatter of the accepted runs, and a threshold that the user chooses.
 *
 * Of each metric a run has one number. Of n accepted runs x[0 .. n) with mean m and scatter s (gate_scatter_of; at least 0.1 % of m), and k new runs with mean y,
 *     t = (y - m) / sqrt(s^2 (1/k + 1/n) + v / k)
 * is compared with Student's distribution, one-sided. v is by how much the mean squared standard error of the new runs exceeds that of the accepted ones, 0 or more. Holm's procedure
 * keeps the false alarms of all metrics together below --false-alarms. A run fails where Holm's procedure rejects and the change reaches the threshold as well. The gate is undecided
 * where the change reaches the threshold and could be chance, and with fewer than GATE_FEWEST_RUNS accepted runs.
 *
 * Each metric is also compared with the anchors, the runs that were accepted first: m and n are then theirs, s stays that of the last runs. Suppose that each run is a little worse
 * than the one before: each passes against the last runs, and fails against the anchors in the end. */
#ifndef OPSCOPE_QUERY_GATE_H
#define OPSCOPE_QUERY_GATE_H

#include "query/diff_side.h"
#include "query/gate_file.h"

enum { GATE_FEWEST_RUNS = 3, GATE_RECENT_RUNS = 20 };
enum gate_verdict { GATE_PASS, GATE_FAIL, GATE_UNDECIDED, GATE_VERDICTS };
extern const char *const gate_verdict_name[GATE_VERDICTS]; /* "pass", ... */

/* The metrics of every gate, in the order of its file: step_ns, exposed_comm_ns, idle_ns, kernels, peak_bytes. Behind them stand those of ops, "op:NAME": their device time per step. */
enum { GATE_STEP, GATE_COMM, GATE_IDLE, GATE_KERNELS, GATE_PEAK, GATE_OWN_METRICS };
extern const char *const gate_own_metric[GATE_OWN_METRICS];

/* The block of *f for runs like this one, by its facts and those that the user adds; NULL = there is none. Versions of drivers and libraries do not count: they may be what changed. */
struct gate_block *gate_block_of(struct gate_file *f, const struct diff_side *s, const struct gate_fact *own, unsigned n_own);
/* The same; it is made where there is none, with the metrics of every gate. Ops ("op:NAME") that it does not have yet become metrics of it. NULL and *e, ERR_LIMIT,
 * where these are more than a block can have. */
struct gate_block *gate_block_find_or_add(struct gate_file *f, const struct diff_side *s, const struct gate_fact *own, unsigned n_own, const struct str *op, unsigned n_ops, struct err *e);
/* What keeps the run out of block `b` (NULL = that with the fewest differences), in words: "GPU is Tesla T4, in the gate Tesla V100". */
void gate_put_differences(const struct gate_file *f, const struct gate_block *b, const struct diff_side *s, const struct gate_fact *own, unsigned n_own, struct buf *out);

/* ERR_DATA where the recording has no steps. */
int gate_check_steps(const struct diff_side *s, struct err *e);
/* The numbers of a run for each metric of the block, into v[0 .. b->n_metrics). ERR_DATA where the recording has no steps. */
int gate_measure(const struct diff_side *s, const struct gate_block *b, struct gate_value *v, struct err *e);
/* The run with exactly these values; NULL = none. Two runs never agree in all values: one is a copy of the other. */
const struct gate_run *gate_copy_of(const struct gate_block *b, const struct gate_value *v);

struct gate_ask {
	double false_alarms_pct;   /* of runs that are as the accepted ones, so many fail at most */
	double threshold_pct;      /* a smaller change does not matter */
};

/* A metric of new runs against accepted ones. */
struct gate_judgement {
	unsigned metric;
	bool anchor;             /* against the anchors */
	unsigned n;              /* accepted runs */
	double accepted, value;  /* means */
	double change_pct;       /* of the metric; of exposed communication and idle time, which are parts of it, of the step */
	double fails_from_pct, least_pct; /* where the gate would fail; the change that it would find in 80 of 100 runs. NaN = unknown: too few accepted runs */
	double p;                /* that chance makes such a change; NaN = unknown */
	enum gate_verdict verdict;
};

struct gate_judgements {
	struct gate_judgement v[2 * GATE_METRICS_MAX];
	unsigned n;
	enum gate_verdict verdict; /* fail where one fails, else undecided where one is, or where no metric could be judged */
};

/* Judges the mean of k >= 1 new runs, each with b->n_metrics values. */
struct gate_judgements gate_judge(const struct gate_block *b, const struct gate_value *const *run, unsigned k, const struct gate_ask *ask);

/* Initialises *out: a row for each judgement, and before it a section "decision" with the verdict in a sentence. */
void gate_table(const struct gate_block *b, const struct gate_judgements *j, const struct gate_ask *ask, struct table *out);
/* The verdict in a sentence: "fail: step time 312.1 ms -> 350.9 ms, ...". And that of one judgement, without its verdict. */
void gate_put_decision(const struct gate_block *b, const struct gate_judgements *j, const struct gate_ask *ask, struct buf *out);
void gate_put_judgement(const struct gate_block *b, const struct gate_judgement *j, struct buf *out);

/* Initialises *out: what the file holds, a row for each metric of each block. */
void gate_learnt_table(const struct gate_file *f, const struct gate_ask *ask, struct table *out);

/* The accepted run whose step is nearest to the mean: the one to compare a failed run with. The block has at least one. */
const struct gate_run *gate_typical_run(const struct gate_block *b);

#endif
