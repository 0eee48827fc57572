/* The arguments of one call of an op, from the texts that Kineto writes: shapes, types, values, strides. */
#ifndef OPSCOPE_OP_OP_ARGS_H
#define OPSCOPE_OP_OP_ARGS_H

#include "op/cost.h"

enum op_arg_kind {
	OP_ARG_NONE,    /* no tensor: a scalar, a list of numbers, None, or nothing that was recorded */
	OP_ARG_TENSOR,
	OP_ARG_LIST,    /* of tensors */
	OP_ARG_HIDDEN,  /* a list of tensors whose shapes were not recorded */
};

struct op_tensor {
	uint32_t dim, rank;  /* sizes: args->dim[dim .. dim + rank - 1] */
	int64_t elements;    /* -1: does not fit 64 bits */
};

struct op_arg {
	enum op_arg_kind kind;
	uint32_t tensor, n_tensors; /* args->tensor[...]; one for OP_ARG_TENSOR */
	enum dtype dtype;           /* of a tensor or of all in a list; DTYPE_UNKNOWN */
	struct str type, concrete, name; /* as recorded; slices of the facts */
};

struct op_args {
	struct op_arg *arg;
	struct op_tensor *tensor;
	int64_t *dim;
	unsigned n, n_tensors, n_dims;
	unsigned cap, cap_tensors, cap_dims;
	bool has_dims, has_types, has_concrete;
};

/* -1 with a reason in why[160] when a text is not what Kineto writes. op_args_release in any case. */
int op_args_parse(struct op_args *a, const struct op_facts *f, char why[160]);
void op_args_release(struct op_args *a);

/* Argument i; one of kind OP_ARG_NONE beyond the last. */
const struct op_arg *op_arg(const struct op_args *a, int64_t i);
/* The one tensor of an argument; NULL when it is none. */
const struct op_tensor *op_arg_tensor(const struct op_args *a, int64_t i);
static inline const int64_t *op_dims(const struct op_args *a, const struct op_tensor *t) { return a->dim + t->dim; }

/* Values. False when argument i has none of that form. */
bool op_arg_int(const struct op_args *a, int64_t i, int64_t *v);
bool op_arg_bool(const struct op_args *a, int64_t i, bool *v);
/* A list of integers "[3, 3]" or a single one; n <= max. */
bool op_arg_ints(const struct op_args *a, int64_t i, int64_t *v, unsigned max, unsigned *n);
bool op_arg_bools(const struct op_args *a, int64_t i, bool *v, unsigned max, unsigned *n);

/* The argument called `name` (PyProf markers), -1 = none. */
int op_arg_named(const struct op_args *a, const char *name);

#endif
