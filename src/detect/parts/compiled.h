/* What torch.compile leaves on the host: the ranges and frames of a compiled region and of the wrapper that Inductor writes. */
#ifndef OPSCOPE_DETECT_PARTS_COMPILED_H
#define OPSCOPE_DETECT_PARTS_COMPILED_H

#include "base/str.h"
#include "op/inductor_name.h"

/* A range in which compiled code runs: "Torch-Compiled Region: 0/0", "CompiledFunction", "## Call CompiledFxGraph ... ##". */
static inline bool compiled_is_region(struct str name)
{
	return str_starts(name, STR("Torch-Compiled Region")) || str_starts(name, STR("CompiledFunction")) ||
	       inductor_is_graph_range(name);
}

/* A frame of the wrapper that Inductor wrote ("/tmp/torchinductor_user/ab/cabc.py(12): call"), or of what runs it; not of the threads that serve the
 * compiler's processes ("torch/_inductor/compile_worker/subproc_pool.py(191): _read_thread"), which wait as long as the program runs. */
static inline bool compiled_is_wrapper(struct str name)
{
	return str_has(name, STR("/torchinductor_")) || (str_has(name, STR("torch/_inductor/")) && !str_has(name, STR("torch/_inductor/compile_worker/")));
}

/* The guards before it, or Dynamo's own frames. Its eval_frame.py stands around everything that runs in or beside compiled code. */
static inline bool compiled_is_guard(struct str name)
{
	return str_eqc(name, "TorchDynamo Cache Lookup") || (str_has(name, STR("torch/_dynamo/")) && !str_has(name, STR("eval_frame.py")));
}

/* The range of a frame that runs as compiled, from torch 2.1 on; in one that Dynamo had to leave, the rest of the frame runs as another one inside it. */
static inline bool compiled_is_frame(struct str name)
{
	return str_starts(name, STR("Torch-Compiled Region"));
}

/* What runs a graph, of whichever backend: the ranges of AOTAutograd and Inductor, and the frames of AOTAutograd. */
static inline bool compiled_is_graph(struct str name)
{
	return str_eqc(name, "CompiledFunction") || inductor_is_graph_range(name) || str_starts(name, STR("torch/_functorch/"));
}

/* Before torch 2.6, code that is in the cache runs through frames of this file, too. */
static inline bool compiled_runs_from_cache(struct str name)
{
	return str_ends(name, STR(": __call__")) || str_ends(name, STR("run_from_cache")) || str_ends(name, STR(": get_current_callable"));
}

/* Compilation itself: frames of the compiler, and the ranges that it puts around its phases: "_compile.compile_inner (dynamo_timed)", in later versions
 * "entire_frame_compile". */
static inline uint8_t compiled_is_compiler(struct str name)
{
	return str_has(name, STR("torch/_dynamo/convert_frame.py(")) || str_has(name, STR("_compile.compile_inner")) ||
	       str_ends(name, STR(" (dynamo_timed)")) || str_eqc(name, "entire_frame_compile") || str_eqc(name, "entire_backward_compile") ||
	       (str_has(name, STR("torch/_inductor/codecache.py(")) && !compiled_runs_from_cache(name));
}

/* The number behind the last '/' of "Torch-Compiled Region: 0/1" is not 0: the frame was compiled before, for other inputs. */
static inline bool compiled_is_again(struct str name)
{
	size_t at = name.n;
	while (at && name.p[at - 1] != '/')
		at--;
	return str_starts(name, STR("Torch-Compiled Region: ")) && at && at < name.n && name.p[at] != '0';
}

#endif
