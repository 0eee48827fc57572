/* Provenance of compiled code: which ops, nodes and lines of the program each call of a kernel came from. torch.compile writes it into the structured log of
 * TORCH_TRACE and into the folders of TORCH_COMPILE_DEBUG; tlparse makes folders of such a log.
 *
 * Inductor writes the code of a graph, and this code calls kernels and ops. It may call a kernel several times. Kernels of different graphs may have one name. */
#ifndef OPSCOPE_OPEN_PROVENANCE_H
#define OPSCOPE_OPEN_PROVENANCE_H

#include "base/arena.h"
#include "base/err.h"

/* A call of a generated kernel or of an op in the code of a graph. Lists are joined by ", "; "" = not known. */
struct provenance_call {
	struct str kernel;       /* as a trace names it: "triton_poi_fused_mul_0", or the op "aten::mm" */
	int64_t number;          /* place among the calls of the graph, from 0 on; -1 = this stands for all calls of the kernel in the graph */
	struct str ops;          /* ATen ops of the program, before Inductor decomposed them: "addmm, gelu" */
	struct str nodes;        /* nodes of the graph that Dynamo traced: "linear, gelu" */
	struct str lines;        /* innermost lines of the user's own code, by file, function and line: "model.py(12,13): forward + norm.py(7): forward" */
	struct str stack;        /* frames as in torch.profiler's "Call stack", innermost first. Of several lines: `lines`, then the frames that all have in common */
};

/* A kernel that a graph's code defines. */
struct provenance_kernel {
	struct str kernel;
	struct str hash;         /* of its code, by the name of its file, "cabc" of ".../cabc.py"; "" = not stated */
};

struct provenance_graph {
	struct str key;          /* hash of the graph, as in "## Call CompiledFxGraph fabc ##"; "" = not stated */
	struct str compile_id;   /* "0/1", as in "Torch-Compiled Region: 0/1"; "" = not stated */
	bool has_code;           /* the text of the code was there, and `kernel` has all kernels of the graph */
	struct provenance_call *call;
	struct provenance_kernel *kernel;
	uint32_t n_calls, cap_calls, n_kernels, cap_kernels;
};

/* Why the compiler left a graph (graph break), or compiled a frame again. */
struct provenance_said {
	bool recompiles;         /* else a graph break */
	struct str frame;        /* compile id, "0/1"; "" = not stated */
	struct str place;        /* of a graph break: "/a/model.py:12"; "" = not stated */
	struct str reason;       /* one line, in the compiler's words */
};

/* {0} = empty. Release with provenance_release. */
struct provenance {
	struct arena arena;      /* holds all text */
	struct provenance_graph *graph;
	struct provenance_said *said;
	uint32_t n, cap, n_said, cap_said;
	uint64_t damaged;        /* texts and files that could not be read, or not wholly */
};

/* Texts about one graph, in the order in which torch writes them; then texts about no graph. */
enum provenance_part {
	PROVENANCE_PRE,          /* the graph that Dynamo traced ("pre-grad"). It may come in several pieces, and serves all graphs of the compilation */
	PROVENANCE_POST,         /* the graph that Inductor makes code of ("post-grad") */
	PROVENANCE_CODE,         /* the code */
	PROVENANCE_NODES,        /* JSON: kernel -> post-grad nodes, post-grad node -> pre-grad nodes */
	PROVENANCE_STACKS,       /* JSON: kernel -> stack traces */
	PROVENANCE_KEY,          /* JSON with the graph's hash */
	PROVENANCE_PARTS,
	PROVENANCE_BREAK = PROVENANCE_PARTS, /* text: why Dynamo left its graph */
	PROVENANCE_RECOMPILE,    /* text: a reason; or JSON: a list of reasons */
	PROVENANCE_NONE,         /* anything else */
};

/* Adds a graph, unless its texts tell nothing of kernels. text[part].n == 0: there is no such text. Behind texts of JSON stand JSON_PADDING zero bytes. O(bytes). */
void provenance_add(struct provenance *v, const struct str text[PROVENANCE_PARTS], struct str compile_id);
/* Adds what a text of PROVENANCE_BREAK or PROVENANCE_RECOMPILE says. JSON_PADDING zero bytes stand behind it. Beyond PROVENANCE_MOST_SAID, more than anyone
 * reads, further texts are left out. */
enum { PROVENANCE_MOST_SAID = 10000 };
void provenance_say(struct provenance *v, enum provenance_part part, struct str text, struct str compile_id);
void provenance_release(struct provenance *v);

#endif
