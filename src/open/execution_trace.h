/* Execution traces of torch (ExecutionTraceObserver; "schema": 1.0.1, 1.0.2-chakra, 1.1.x): the ops of a process with their arguments, tensors by their ids, without times. One
 * that was written while a Kineto trace was recorded tells of its ops what the profiler was not asked for. */
#ifndef OPSCOPE_OPEN_EXECUTION_TRACE_H
#define OPSCOPE_OPEN_EXECUTION_TRACE_H

#include "store/profile.h"

/* Gives the ops and annotations of *p the arguments that the trace at `path` states and they lack, in the words of torch.profiler ("Input Dims", "Input type",
 * "Concrete Inputs", "Input Strides"), and the ids of tensors and storages ("Input Tensors", "Output Tensors"), the storages that these lie in ("Input Storages", "Output Storages"), output shapes and types, and the op's schema. `path` may be an address, or a folder: that of the
 * process in *p is taken. No pass may have run.
 *
 * Ops are paired by "Record function id", where the recording has it (profile.keeps_function_ids), and else by their order, in which External ids and the ids of nodes both
 * count: then all names must agree. -1 and *e: ERR_IO or ERR_FORMAT where it is no such trace, ERR_DATA where it is of another run. */
int execution_trace_join(struct profile *p, const char *path, struct err *e);

#endif
