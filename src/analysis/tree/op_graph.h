/* Which op made an input of which, where the recording says so. Built on demand and freed by its user; needs PASS_NEST. O(n log n).
 *
 *   by ranges    emit_nvtx(record_shapes=True) writes the id of each op, and for each input the op that made it and which of its outputs it is
 *   by calls     the markers of DLProf and opscope.torch (capture_input_ops=True) number calls, and name those that made the inputs
 *   by tensors   an execution trace has the tensors of each op: an input was made by the op that ended last with this tensor, of the same storage,
 *                among its outputs
 *
 * All three tell tensors apart by the address of torch's object. A tensor that no op made can have the address of one that is gone; ranges and calls
 * then name the op that made the tensor that is gone. Where shapes show that, `from` is ROW_NONE. A list of tensors, as torch::cat takes one, counts tensor by tensor. */
#ifndef OPSCOPE_ANALYSIS_TREE_OP_GRAPH_H
#define OPSCOPE_ANALYSIS_TREE_OP_GRAPH_H

#include "store/profile.h"

enum op_graph_source { OP_GRAPH_NONE, OP_GRAPH_RANGES, OP_GRAPH_CALLS, OP_GRAPH_TENSORS };

/* An input of an op. */
struct op_edge {
	uint32_t to;        /* the op, a row of span */
	uint32_t from;      /* the op that made it, ended before `to` began; ROW_NONE = it is not in the recording, or not believed */
	int64_t from_id;    /* its id as stated */
	int32_t input;      /* place among the inputs of `to`, from 0; by calls, among those that are tensors */
	int32_t output;     /* place among the outputs of `from`; -1 = not stated */
	struct str shape;   /* "[4, 512]"; "" = not known */
	bool passed_on;     /* the op around `to` has the same input */
};

struct op_graph {
	enum op_graph_source source;
	uint32_t spans;          /* of the profile */
	uint32_t ops;            /* that state their inputs */
	uint64_t unknown;        /* tensors among the inputs of which the maker is not stated; without those of no dimension, which look like numbers */
	uint64_t outside;        /* edges whose maker is not in the recording */
	uint64_t not_believed;   /* of these: an op has the stated id, but ended after `to` began, or several ops have it, or its output has another shape */
	struct op_edge *edge;    /* by `to`, then by input */
	uint32_t n, cap;
	uint32_t *first;         /* edges into span i: first[i] .. first[i + 1] - 1 */
	uint32_t *out;           /* numbers of edges by `from`, then by `to`: of those out of span i, out[out_first[i]] .. out[out_first[i + 1] - 1] */
	uint32_t *out_first;
};

/* What the recording has; cheap. */
enum op_graph_source op_graph_source(const struct profile *p);
/* Without edges where the recording states none. */
struct op_graph *op_graph_new(const struct profile *p);
void op_graph_free(struct op_graph *g);
/* Bytes held. */
size_t op_graph_bytes(const struct op_graph *g);

/* The id by which others name the op; false = it has none. */
bool op_graph_id(const struct profile *p, enum op_graph_source source, uint32_t span, int64_t *id);

#endif
