/* Whether the ops of a capture may launch kernels of a graph's names. A capture whose calls do not name their kernels may be of another program, and nothing
 * but its ops tells so. */
#ifndef OPSCOPE_ANALYSIS_GRAPH_GRAPH_PLAUSIBLE_H
#define OPSCOPE_ANALYSIS_GRAPH_GRAPH_PLAUSIBLE_H

#include "analysis/graph/graph_captures.h"

/* Classes of ops of the recording that was asked for last; {0} = no recording was asked for. Release with graph_op_classes_release. */
struct graph_op_classes {
	const struct profile *p;
	uint8_t *of_name;        /* by string id: enum op_class + 1; 0 = not looked at */
};

/* `work`: of a launch in *p; its piece k would be made by call k of capture c. Sets never[k] where the op of call k never launches a kernel of such a class,
 * as a copy launches no product. That is known of products, convolutions, attention and norms. False: never[] is set for more than GRAPH_MOST_ODD_PCT of
 * the pieces of which it is known. A few may be wrong, since classes go by names. */
enum { GRAPH_MOST_ODD_PCT = 5 };
bool graph_is_plausible(struct graph_op_classes *x, const struct profile *p, const struct graph_sequence *work, const struct graph_capture *c, uint8_t *never);
void graph_op_classes_release(struct graph_op_classes *x);

#endif
