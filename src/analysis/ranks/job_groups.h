/* How the process groups of a job divide the work among their ranks, and on how many hosts they are.
 *
 * said     the description of a group, or its name, has a word for it: "TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp_shard", "tp:0"
 * by ops   the ops that ask for its collectives belong to one kind: DistributedDataParallel, Megatron's regions, ...
 * by ranks a guess, where neither of these tells: by which ranks are together, and what they exchange. Frameworks count ranks along tensors first, then along data, and along
 *          the stages of a pipeline last. So
 *            PP   the ranks are as far apart as the job allows, send and receive and do nothing else, and are in other groups, too
 *            EP   the ranks are not all of the job, and exchange all-to-alls of unequal parts
 *            TP, DP   exactly two layouts are left: n neighbours are TP, and ranks that are n apart are DP. Unknown where the neighbours gather and scatter without
 *                 all-reduces and the others only reduce: shards and replicas of data parallelism look the same
 * Everything else is unknown: one group of all ranks may be of any kind. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_GROUPS_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_GROUPS_H

#include "analysis/ranks/job.h"
#include "base/buf.h"

#define JOB_SPLITS(X) X(DATA, "DP") X(TENSOR, "TP") X(PIPELINE, "PP") X(CONTEXT, "CP") X(EXPERT, "EP")

enum job_split {
#define JOB_SPLIT_ID_(id, name) JOB_SPLIT_##id,
	JOB_SPLITS(JOB_SPLIT_ID_)
	JOB_N_SPLITS
};

/* The description, else the name; "" where neither says anything. */
struct str job_group_name(const struct job_group *g);
/* "dp (ranks 0-3)", "communicator 134294 (2 ranks)", "3 (ranks 0, 4)", "ranks 0-7", "8 ranks", "2 of 64 ranks". */
void job_put_group(const struct job_group *g, struct buf *b);
/* As bits 1 << enum job_split; 0 = the text does not say. */
unsigned job_split_said(struct str text);
unsigned job_split_of_op(struct str op);
/* "TP", "DP+CP"; nothing of 0. */
void job_put_split(unsigned split, struct buf *b);
/* "said", "ops", "ranks (guess)"; "" = unknown. */
const char *job_told_text(enum job_told t);
/* Why the kind of a group is unknown, as the end of a sentence. */
const char *job_untold_text(enum job_untold u);

#endif
