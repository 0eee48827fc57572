/* What torch.compile wrote down about the kernels that it generated: which ops, nodes and lines of the program each call of a kernel came from. It is in the structured log of
 * TORCH_TRACE, in what tlparse makes of that log, and in the folders of TORCH_COMPILE_DEBUG.
 *
 * The calls are those of the code that Inductor wrote for a graph. A kernel may be called several times in a graph, and kernels of different graphs may have one name. */
#ifndef OPSCOPE_OPEN_PROVENANCE_H
#define OPSCOPE_OPEN_PROVENANCE_H

#include "base/arena.h"
#include "base/err.h"

/* A call of a kernel, generated or called, in the code of a graph. Lists are joined by ", "; "" = not known. */
struct provenance_call {
	struct str kernel;       /* as a trace names it: "triton_poi_fused_mul_0", or the op "aten::mm" */
	int64_t number;          /* calls of a graph in their order, from 0 up; -1 = all calls of the kernel in the graph are told together */
	struct str ops;          /* ops of the program, before they were decomposed: "addmm, gelu" */
	struct str nodes;        /* nodes of the graph that Dynamo traced: "linear, gelu" */
	struct str lines;        /* innermost lines of the program's own, in order of file, function and line: "model.py(12,13): forward + norm.py(7): forward" */
	struct str stack;        /* frames as in torch.profiler's "Call stack", innermost first; of several lines, `lines` called from what they have in common */
};

/* A kernel that a graph's code defines. */
struct provenance_kernel {
	struct str kernel;
	struct str hash;         /* of its source: the name of the file that the kernel is compiled from; "" = not stated */
};

struct provenance_graph {
	struct str key;          /* hash of the graph, as in "## Call CompiledFxGraph fabc ##"; "" = not stated */
	struct str compile_id;   /* "0/1", as in "Torch-Compiled Region: 0/1"; "" = not stated */
	bool has_code;           /* then `kernel` has all kernels of the graph */
	struct provenance_call *call;
	struct provenance_kernel *kernel;
	uint32_t n_calls, cap_calls, n_kernels, cap_kernels;
};

/* What the compiler said of a graph break or of a compilation of a frame that it had compiled before. */
struct provenance_said {
	bool recompiles;         /* else a graph break */
	struct str frame;        /* "0/1"; "" = not stated */
	struct str place;        /* of a graph break: "/a/model.py:12"; "" = not stated */
	struct str reason;       /* a line */
};

struct provenance {
	struct arena arena;      /* of all text */
	struct provenance_graph *graph;
	struct provenance_said *said;
	uint32_t n, cap, n_said, cap_said;
	uint64_t damaged;        /* parts that could not be read */
};

/* The parts of what is written about one graph, in the order in which it is written. */
enum provenance_part {
	PROVENANCE_PRE,          /* text of the graph that Dynamo traced: may come in several pieces, and serves all graphs of the compilation */
	PROVENANCE_POST,         /* text of the graph from which code is made */
	PROVENANCE_CODE,         /* the code */
	PROVENANCE_NODES,        /* JSON: kernel -> nodes, and nodes of one graph -> those of the other */
	PROVENANCE_STACKS,       /* JSON: kernel -> stack traces */
	PROVENANCE_KEY,          /* JSON with the graph's hash */
	PROVENANCE_PARTS,
	/* What is of no graph. */
	PROVENANCE_BREAK = PROVENANCE_PARTS, /* text */
	PROVENANCE_RECOMPILE,    /* a reason, or JSON: a list of reasons */
	PROVENANCE_NONE,         /* anything else */
};

/* Adds a graph, unless the texts tell nothing of kernels. text[]: p == NULL = there is none; those of JSON have JSON_PADDING zero bytes behind them. */
void provenance_add(struct provenance *v, const struct str text[PROVENANCE_PARTS], struct str compile_id);
/* Adds what a text of PROVENANCE_BREAK or PROVENANCE_RECOMPILE says, JSON_PADDING zero bytes behind it; PROVENANCE_MOST_SAID at most. */
enum { PROVENANCE_MOST_SAID = 10000 };
void provenance_say(struct provenance *v, enum provenance_part part, struct str text, struct str compile_id);
void provenance_release(struct provenance *v);

#endif
