/* Times as the doubles of microseconds that torch 2 adds up, rounding and all: where a mean lies half way between two
 * numbers of three decimals, these decide how it is printed. From the start of the recording on ((start - recording) / 1000), as
 * torch/autograd/profiler.py makes them; the children of an event are added with Python's compensated sum (since 3.12), everything else
 * one after the other. Rules of whole microseconds are exact. O(n). */
#ifndef OPSCOPE_PREDECESSORS_TORCH_US_H
#define OPSCOPE_PREDECESSORS_TORCH_US_H

#include "report/parts/key_groups.h"

struct torch_us_sums {
	double self, total;         /* on the host */
	double dev_self, dev_total; /* on the device */
};

struct torch_us {
	struct torch_us_sums *v;  /* by group */
	struct torch_us_sums all; /* of all groups */
	double device;            /* of device work, without shadows of annotations */
};

void torch_us_sum(struct torch_us *u, const struct key_groups *g);
void torch_us_release(struct torch_us *u);

#endif
