/* By how much the rows of a comparison differ from step to step, which tells a change from noise.
 *
 * A side keeps the time of each part in each step (diff_side.part_step_ns). A row's time in a step is the sum of its parts, as a mean over the GPUs. Whether the means of
 * A and B differ is Welch's t, as of whole steps (query/diff_noise.h). */
#ifndef OPSCOPE_QUERY_DIFF_SCATTER_H
#define OPSCOPE_QUERY_DIFF_SCATTER_H

#include "query/diff_side.h"

/* Counts `ns` of the part in the step. Nothing is kept of recordings without steps, with one step, or where parts x steps, or rows x steps, are more than DIFF_SCATTER_CELLS. */
enum { DIFF_SCATTER_CELLS = 1 << 23 };
void diff_scatter_count(struct diff_side *s, uint32_t part, unsigned step, int64_t ns);
/* Keeps nothing. */
void diff_scatter_drop(struct diff_side *s);
/* All parts were counted: those that were not have no time in any step. Nothing is kept where the times do not add up: of steps that overlap, the host's would count twice. */
void diff_scatter_end(struct diff_side *s);
/* Whether the times of all parts and steps add up to the side's at most, in size: then any of them can be summed. */
bool diff_scatter_adds_up(const struct diff_side *s);

/* The times of rows: a list of one number a step, for each row and side. Lists are numbered by the caller, from 0 on, the same for both sides. */
struct diff_scatter {
	bool known;              /* both sides keep the times of parts */
	unsigned n_steps[2], gpus[2];
	int64_t *ns[2];          /* [list * n_steps + step] */
	size_t n[2], cap[2];
};

void diff_scatter_init(struct diff_scatter *x, const struct diff_side *a, const struct diff_side *b);
void diff_scatter_release(struct diff_scatter *x);
/* Adds a part of side 0 or 1 to a list. */
void diff_scatter_add(struct diff_scatter *x, int side, uint32_t list, const struct diff_side *s, uint32_t part);
/* Adds a list to another one. */
void diff_scatter_sum(struct diff_scatter *x, int side, uint32_t to, uint32_t from);
/* Half the 95 % interval of B - A in *half_ns; false = unknown. */
bool diff_scatter_half(const struct diff_scatter *x, uint32_t list_a, uint32_t list_b, double *half_ns);

#endif
