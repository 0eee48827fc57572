/* Recurrent layers: one GEMM for each weight matrix [g H, in] of a layer and direction, with one row of the batch at each step:
 *   FLOPs = 2 (steps * batch) (sum of the sizes of all weight matrices); the gates' own arithmetic is not counted
 *   bytes = input, weights, states read; outputs and states written
 * Backward: input and weight gradient are two products of the same size. */
#include "op/cost_call.h"

struct rnn {
	int64_t rows, weights, parameters, hidden, states;
	unsigned matrices;
};

static void add_tensor(const struct cost_call *c, const struct op_tensor *t, int64_t width, struct rnn *r)
{
	const int64_t *d = op_dims(&c->args, t);
	r->parameters = cost_add(r->parameters, t->elements);
	if (t->rank != 2)
		return;
	/* The first matrix takes the input; the hidden size is the width of the second. */
	if (r->matrices == 0 && d[1] != width)
		r->weights = COST_UNKNOWN;
	if (r->matrices == 1)
		r->hidden = d[1];
	r->weights = r->weights < 0 ? r->weights : cost_add(r->weights, t->elements);
	r->matrices++;
}

/* Parameters: matrices and vectors behind the input; states have three dimensions, or stand before the matrices in a cell. */
static void rnn_collect(const struct cost_call *c, int64_t width, struct rnn *r)
{
	bool cell = str_has(c->name, STR("_cell"));
	for (unsigned i = 1; i < c->args.n; i++) {
		const struct op_arg *x = &c->args.arg[i];
		bool state = (cell && i == 1) || (x->kind == OP_ARG_LIST && c->args.tensor[x->tensor].rank == 3);
		for (uint32_t k = 0; x->kind != OP_ARG_NONE && k < x->n_tensors; k++) {
			const struct op_tensor *t = &c->args.tensor[x->tensor + k];
			if (state || t->rank == 3 || (str_has(c->name, STR("mkldnn")) && i >= 5))
				r->states = cost_add(r->states, t->elements);
			else
				add_tensor(c, t, width, r);
		}
	}
}

/* lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, ...); packed: (data, batch_sizes, hx, ...). */
static int64_t directions_of(const struct cost_call *c)
{
	const struct op_tensor *second = op_arg_tensor(&c->args, 1);
	bool both, packed = second && second->rank == 1;
	return op_arg_bool(&c->args, packed ? 8 : 7, &both) && both ? 2 : 1;
}

void cost_rnn(struct cost_call *c)
{
	const struct op_tensor *in = op_arg_tensor(&c->args, 0);
	enum dtype t = op_arg(&c->args, 0)->dtype;
	struct rnn r = {0};
	c->out->formula = STR("2*rows*weights");
	c->out->dtype = t;
	c->out->tc_eligible = cost_tc_eligible(t);
	if (!in || in->rank < 2) {
		cost_unknown(c, "the shape of the input was not recorded");
		return;
	}
	int64_t width = op_dims(&c->args, in)[in->rank - 1];
	r.rows = width ? in->elements / width : 0;
	rnn_collect(c, width, &r);
	if (r.matrices < 2 || r.weights < 0) {
		cost_unknown(c, "the shapes of the weights were not recorded, or do not fit the input");
		return;
	}
	c->out->params = arena_printf(c->arena, "rows=%lld,in=%lld,H=%lld,matrices=%u,%s", (long long)r.rows, (long long)width,
	                              (long long)r.hidden, r.matrices, dtype_short(t));
	cost_set_flops(c, cost_mul(cost_mul(cost_mul(2, r.rows), r.weights), cost_complex_factor(t)));
	int64_t read = cost_add(cost_add(in->elements, r.parameters), r.states);
	int64_t written = cost_add(cost_mul(cost_mul(r.rows, r.hidden), directions_of(c)), r.states);
	cost_set_bytes(c, cost_bytes_of(read, t), cost_bytes_of(written, t), "the type of the input was not recorded");
	if (c->direction == COST_BACKWARD)
		cost_double(c);
}
