/* Names that Inductor, the compiler of torch.compile, gives to the Triton kernels it generates: triton_<kind>_fused_<ops>_<number>, and in older versions
 * behind it a signature, "_0d1d2d". Names of the ranges in which it runs a graph. */
#ifndef OPSCOPE_OP_INDUCTOR_NAME_H
#define OPSCOPE_OP_INDUCTOR_NAME_H

#include "base/str.h"

#include <stdbool.h>

enum inductor_kind {
	INDUCTOR_UNKNOWN,     /* Inductor's, as "triton__0d1d2de"; its kind is not in its name */
	INDUCTOR_POINTWISE,
	INDUCTOR_REDUCTION,   /* in a loop */
	INDUCTOR_PERSISTENT,  /* a reduction whose rows fit a program */
	INDUCTOR_TEMPLATE,    /* of a product, a convolution or attention, with ops before and behind */
	INDUCTOR_FOREACH,     /* several small ones side by side */
	INDUCTOR_SCAN,
	INDUCTOR_KINDS,
};
extern const char *const inductor_kind_name[INDUCTOR_KINDS];

struct inductor_name {
	enum inductor_kind kind;
	struct str name;      /* without the signature */
	struct str ops;       /* "add_mul_tanh"; "" = it names none. Both are slices of the text */
};

/* False: the text is no such name. */
bool inductor_name_parse(struct str text, struct inductor_name *out);

/* The begin of the name of a range in which a graph's code runs: "## Call CompiledFxGraph fabc ##". */
#define INDUCTOR_GRAPH_RANGE "## Call CompiledFxGraph"
static inline bool inductor_is_graph_range(struct str name) { return str_starts(name, STR(INDUCTOR_GRAPH_RANGE)); }
/* The hash of the graph in such a name, "fabc"; a slice of it. */
struct str inductor_graph_key(struct str range);

/* An op that a name names. */
struct inductor_op {
	struct str name;      /* a slice of `ops` */
	bool known;           /* whether `name` is an op; if not, it is another part of the kernel's name */
};

/* Inductor names no more by default (torch._inductor.config.kernel_name_max_ops). */
enum { INDUCTOR_MOST_OPS = 10 };

/* Names with more pieces between '_' are not taken apart. */
enum { INDUCTOR_OPS_MAX = 64 };

/* The ops of inductor_name.ops, in order; returns how many. Both the ops and the words of an op are joined by '_': the ops are told apart by `known`, which
 * says whether a word is the name of an op, and by the order of the alphabet, in which Inductor writes them. *ambiguous: there are several ways; the one of
 * fewest ops is taken. */
unsigned inductor_ops(struct str ops, bool (*known)(const void *of, struct str word), const void *of, struct inductor_op out[INDUCTOR_OPS_MAX], bool *ambiguous);

#endif
