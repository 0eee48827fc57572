/* Execution traces of torch (ExecutionTraceObserver; "schema": 1.0.1, 1.0.2-chakra, 1.1.x) have the ops of a process, without times: each op with its arguments, tensors
 * by their ids. An execution trace that was written while a Kineto trace was recorded adds the arguments that torch.profiler was not asked to record. */
#ifndef OPSCOPE_OPEN_EXECUTION_TRACE_H
#define OPSCOPE_OPEN_EXECUTION_TRACE_H

#include "store/profile.h"

/* Gives the ops and annotations of *p the arguments that they lack and that the execution trace at `path` states. No pass may have run.
 *
 *   "Input Dims", "Input type", "Input Strides", "Concrete Inputs"    as torch.profiler writes them
 *   "Output Dims", "Output type"                                      the same for the outputs
 *   "Op schema"                                                       the op's schema in torch
 *   "Input Tensors", "Output Tensors"                                 [id of the tensor, id of its storage]
 *   "Input Storages", "Output Storages"                               [id of the storage, bytes up to the end of the tensor, device]
 *
 * `path` is a file, an address, or a folder: of a folder, the first file by name that is of a process in *p.
 *
 * Ops are paired by "Record function id" where the recording has it (profile.keeps_function_ids); else by their order, as External ids and the ids of nodes both count up
 * in the order of the ops. The names of each pair must agree. Ops whose id several ops or nodes have are not paired, and are counted ("execution-trace-ambiguous").
 * -1 and *e: ERR_IO or ERR_FORMAT where the file is no execution trace, ERR_LIMIT where it has more than 1 GiB, ERR_DATA where it is of another run. */
int execution_trace_join(struct profile *p, const char *path, struct err *e);

#endif
