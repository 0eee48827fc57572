/* What PyProf prints of a kernel besides its times: parameters, FLOPs, bytes and Tensor Core use, by the formulas of its
 * `prof` stage (NVIDIA/PyProf 3.x and its predecessor PyProf2), mistakes included. This is what --compat shows; right numbers
 * come from op/cost.h.
 *
 * Where PyProf ended with a failed assertion, the answer is a reason instead: the caller prints such a row as PyProf prints
 * unsupported ones and says how many there are. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_OP_PYPROF_H
#define OPSCOPE_PREDECESSORS_PYPROF_OP_PYPROF_H

#include "base/arena.h"
#include "base/buf.h"
#include "predecessors/pyprof/op/marker.h"

enum pyprof_rules { PYPROF_3, PYPROF_2 };

/* A number as Python has it: its division makes floats, which print with a point. */
struct pyprof_num {
	int64_t i;
	double f;
	bool is_float;
};

/* What the formulas know of a kernel. */
struct pyprof_call {
	enum pyprof_rules rules;
	const struct pyprof_marker *marker; /* the outermost argument marker around the launch, or around its forward kernel's */
	struct str mod, op;                 /* the record's first module and op: these choose the class of the formula */
	struct str kernel;                  /* short name, blanks replaced by '_' */
	bool backward;
	int64_t sub;                        /* which of the op's kernels, from 0 */
	int32_t grid[3];
};

struct pyprof_model {
	struct pyprof_num flops, bytes;
	struct buf params;  /* "M=4,N=6,K=5,fp32,"; the caller releases it; what it held before is overwritten */
	struct str op;      /* as the class reports it ("bias" for the bias kernels of linear); borrowed */
	char tc;            /* '1' used, '0' eligible but not used, '-' not applicable */
	const char *why;    /* PyProf would have ended here: the condition that did not hold; NULL = the numbers above are good */
	bool overflow;      /* internal: a product left 64 bits */
};

/* 0, or -1 with out->why, and everything else unset. Needs a marker. */
int pyprof_model_of(const struct pyprof_call *c, struct pyprof_model *out);

/* As Python's str(): "140000.0", "1e+16", "42". */
void pyprof_num_put(struct buf *out, struct pyprof_num v);
/* As Python's "%d": truncated. */
int64_t pyprof_num_int(struct pyprof_num v);

/* The short name of a kernel: before '<', without "void ", "at::", "cuda::", "native::", "(anonymous namespace)::", before '('. */
void pyprof_short_name(struct buf *out, struct str long_name);

#endif
