/* Whether ops may launch kernels of these names: calls that do not name their kernels say nothing else against the capture of another program. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_PLAUSIBLE_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_PLAUSIBLE_H

#include "analysis/graph/graph_captures.h"

/* The classes of ops, of the recording that was asked for last. {0} = none was. */
struct graph_op_classes {
	const struct profile *p;
	uint8_t *of_name;        /* by string id: enum op_class + 1; 0 = not looked at */
};

/* Of the work of a launch of *p, whose piece k was made by call k of the capture. never[k]: its op launches no such kernels, as a copy launches no product; only of kernels of products, attention and norms that is known.
 * False: so it is of more than GRAPH_MOST_ODD_PCT of these. */
enum { GRAPH_MOST_ODD_PCT = 5 };
bool graph_is_plausible(struct graph_op_classes *x, const struct profile *p, const struct graph_sequence *work, const struct graph_capture *c, uint8_t *never);
void graph_op_classes_release(struct graph_op_classes *x);

#endif
