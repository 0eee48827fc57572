/* What torch.compile leaves on the host: the ranges and frames of a compiled region and of the wrapper that Inductor writes. */
#ifndef OPSCOPE_DETECT_COMPILED_H
#define OPSCOPE_DETECT_COMPILED_H

#include "base/str.h"

/* A range in which compiled code runs: "Torch-Compiled Region: 0/0", "CompiledFunction", "## Call CompiledFxGraph ... ##". */
static inline bool compiled_is_region(struct str name)
{
	return str_starts(name, STR("Torch-Compiled Region")) || str_starts(name, STR("CompiledFunction")) ||
	       str_starts(name, STR("## Call CompiledFxGraph"));
}

/* A frame of the wrapper that Inductor wrote ("/tmp/torchinductor_user/ab/cabc.py(12): call"), or of what runs it. */
static inline bool compiled_is_wrapper(struct str name)
{
	return str_has(name, STR("/torchinductor_")) || str_has(name, STR("torch/_inductor/"));
}

/* The guards before it, or Dynamo's own frames. Its eval_frame.py stands around everything that runs in or beside compiled code. */
static inline bool compiled_is_guard(struct str name)
{
	return str_eqc(name, "TorchDynamo Cache Lookup") || (str_has(name, STR("torch/_dynamo/")) && !str_has(name, STR("eval_frame.py")));
}

/* Compilation itself. */
static inline bool compiled_is_compiler(struct str name)
{
	return str_has(name, STR("torch/_dynamo/convert_frame.py(")) || str_has(name, STR("_compile.compile_inner")) ||
	       str_has(name, STR("torch/_inductor/codecache.py("));
}

#endif
