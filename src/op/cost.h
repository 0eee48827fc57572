/* What an op should take: FLOPs, bytes moved, and whether Tensor Cores could do it, from its name, shapes, dtypes and
 * parameters. Formulas are rows of rules.def (a pattern of operand dimensions and two expressions, evaluated in checked int64)
 * or code where a row cannot say it (conv.c, attention.c, rnn.c, ...). Unknown is an answer of its own, with a reason.
 *
 * FLOPs count a multiply-add as 2, as torch.utils.flop_counter does; biases, alpha and beta are not counted; of complex types, real
 * operations count (8 for a multiply-add, where torch's counter says 2). Bytes are what an ideal kernel reads and writes once. Others count in other ways: struct cost_rules. */
#ifndef OPSCOPE_OP_COST_H
#define OPSCOPE_OP_COST_H

#include "base/arena.h"
#include "op/dtype.h"
#include "op/kernels.h"
#include "op/user_rules.h"

#define COST_UNKNOWN (-1)

enum cost_direction { COST_FORWARD, COST_BACKWARD, COST_DIRECTIONS };
/* By whose conventions an op is counted: op/cost_rules.h. cost_own are opscope's. */
struct cost_rules;
extern const struct cost_rules cost_own;

/* What an inference server says of the batch that it computes: sums over its requests. 0 or less = not stated. */
struct op_batch {
	int64_t pairs;        /* queries x keys */
	int64_t keys;         /* tokens that queries look at */
	int64_t decode_pairs, decode_keys; /* of these, of the requests that decode */
};

/* What the trace says of one call of an op. Texts as Kineto writes them (JSON); {0} = not recorded. */
struct op_facts {
	struct str name;      /* "aten::addmm", or a PyProf marker's "torch.nn.functional.linear" */
	struct str dims;      /* Input Dims:      [[4,5],[5,6],[]] ; a tensor list is one deeper */
	struct str types;     /* Input type:      ["float","float","Scalar"]; what is no tensor must not be called by a type's name */
	struct str concrete;  /* Concrete Inputs: ["","","1"] */
	struct str strides;   /* Input Strides */
	struct str names;     /* Input names (PyProf markers): ["","","bias"] */
	struct str linked;    /* Input Dims of a linked op, where values were not recorded: of a convolution those of the node of its backward, whose
	                       * first tensor is the gradient of the result; of its weight's gradient those of the op around, which has the weight */
	/* Collectives: as in the kernel's or record_param_comms' args; -1 / {0} = not stated. */
	struct str collective, comm_dtype;
	int64_t in_elements, out_elements, group_size;
	int64_t message_bytes; /* as NCCL was called with, in place of elements and type; 0 or less = not stated */
	struct op_batch batch;
	/* Arguments of ops inside, for a rule that asks for them (COST_ASKS_INNER): the op that chooses the experts of the tokens, and the two that look at the
	 * experts' weights. {0} = there is no such op, or it is not clear which one it is. */
	struct op_inner {
		struct str dims, types, concrete;
	} routing, up, down;
};

enum op_class {
	OP_UNKNOWN, OP_GEMM, OP_CONV, OP_ATTENTION, OP_RNN, OP_NORM, OP_SOFTMAX, OP_ELEMENTWISE, OP_REDUCE, OP_LOSS, OP_POOL,
	OP_EMBEDDING, OP_COPY, OP_FILL, OP_RANDOM, OP_SORT, OP_OPTIMIZER, OP_COMM, OP_FFT, OP_INTERPOLATE, OP_VIEW, OP_OTHER,
	OP_CLASSES
};
extern const char *const op_class_name[OP_CLASSES];

struct cost {
	int64_t flops, bytes;    /* of one call, all parts; COST_UNKNOWN */
	int64_t bytes_least;     /* the fewest that any call of these shapes moves: less than `bytes` if values in tensors choose the weights, else the same */
	int64_t bytes_read, bytes_written; /* of bytes, where the rule tells them apart; else COST_UNKNOWN */
	int64_t message_bytes;   /* collectives: the size of the message as nccl-tests counts it; else COST_UNKNOWN */
	int64_t wire_bytes;      /* collectives: bytes that a rank sends over the wire (bus bandwidth = this / time); else COST_UNKNOWN */
	enum op_class class;
	int parts;               /* 1 or more; equal parts that kernels of their own may do: 2 for the backward of GEMM and convolution (input
	                          * and weight gradient), else 1. flops and bytes are of all parts */
	bool apart;              /* ops inside it do other work than what is counted here, even ops of the same class: both count */
	bool uneven;             /* two parts of different size; `first` is the one that runs first */
	struct {
		int64_t flops, bytes, bytes_least;
	} first;
	enum tri tc_eligible;    /* by op, dtype and shape: could its main kernel use Tensor Cores */
	enum dtype dtype;        /* of the operands that decide; DTYPE_UNKNOWN */
	/* GEMM: C[b][m][n] = A[b][m][k] B[b][k][n]; also what a convolution amounts to. 0 = not a GEMM. */
	int64_t b, m, n, k;
	struct str params;       /* "M=4,N=6,K=5,fp32"; convolution: "N=..,C=..,H=..,W=..,K=..,P=..,Q=..,R=..,S=.., ..."; in the arena */
	struct str formula;      /* with names: "2*m*n*k"; {0} for code */
	struct str why;          /* why flops or bytes are unknown; {0} when both are known */
	bool causal;             /* attention with a causal mask: flops counts all pairs; flops_causal only those below the diagonal */
	int64_t flops_causal;    /* COST_UNKNOWN unless causal */
};

/* What a rule asks for beside the arguments of the op: nothing, facts->batch, or facts->routing, up and down. */
enum cost_asks { COST_ASKS_NOTHING, COST_ASKS_BATCH, COST_ASKS_INNER };
enum cost_asks cost_asks(struct str op_name, const struct cost_rules *rules, enum cost_direction d, const struct user_rules *user);

/* The cost of one call, by the user's rules (NULL = none), then by *rules, then by rules.def. Never fails: what cannot be computed is COST_UNKNOWN with the reason.
 * Allocates texts in `a`; `formula` may be the user's. */
void cost_of(const struct op_facts *f, const struct cost_rules *rules, enum cost_direction d, const struct user_rules *user, struct arena *a, struct cost *out);

#endif
