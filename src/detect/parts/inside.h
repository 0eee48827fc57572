/* Marks ranges and device work by the names of the ranges around them. */
#ifndef OPSCOPE_DETECT_PARTS_INSIDE_H
#define OPSCOPE_DETECT_PARTS_INSIDE_H

#include "detect/parts/shared.h"

/* The class of a range by its own name, 0 = of no interest; asked once per name. */
typedef uint8_t inside_class(struct str name);
/* The mark of a range from that of the range around it (0 at the top) and its own class. */
typedef uint8_t inside_mark(uint8_t around, uint8_t own);

/* One mark a span; `mark` NULL: the own class, else that of what is around. The caller frees it. Needs PASS_NEST. */
uint8_t *inside_new(const struct profile *p, inside_class *class, inside_mark *mark);

/* The mark of what launched device work: of its API call, else of its op; 0 where neither is known. */
static inline uint8_t inside_of_gpu(const struct profile *p, const uint8_t *mark, uint32_t g)
{
	uint32_t at = p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
	return at != ROW_NONE ? mark[at] : 0;
}

/* What marked ranges take of the steps: device time of the work launched in them (concurrent work once), and the time without device work
 * while the host is in the outermost of them. */
struct inside_cost {
	int64_t device_ns, idle_ns;
	uint64_t works;          /* pieces of device work */
	struct intervals when;   /* device time and idle time together, for finding_covers */
};
/* Release with inside_cost_release. */
struct inside_cost inside_cost_of(const struct profile *p, const struct step_time *w, const uint8_t *mark, uint8_t wanted);
void inside_cost_release(struct inside_cost *c);

#endif
