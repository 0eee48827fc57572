/* Ops as a person counts them, each call of them ("instance"), and which instance every API call and every piece of device work
 * belongs to. Built by PASS_OPS, kept in profile->ops and owned by the profile; needs PASS_NEST and PASS_CORRELATE. O(n log n).
 *
 * An instance is the outermost framework op of its thread: an argument marker of PyProf or DLProf, a range of emit_nvtx, an op of a Kineto
 * trace (of a backward node, the engine's range around it), a node or layer of TensorFlow, TensorRT or XLA. Ranges inside it are
 * folded into it. Annotations, steps, optimizer ranges, calls of a whole network (ExecutionContext::enqueue) and Python frames are no ops:
 * they make the path. Where the input states ops (a DLProf database: spans with "op_id", "op_name", "op_type", "direction",
 * "tc_support", "stack"), those.
 *
 * What belongs to an instance: the API calls inside it or with its external id, and the device work that these launched. Where the
 * backward pass has no ranges, calls of threads without ops belong to the marker of backward() that goes on meanwhile. An API call outside
 * every op is an instance itself: its op is "unassociated_" + the call, outside the tree of groups. Device work whose call
 * was not recorded is an instance of the op "unattributed", without a range, so that the parts add up.
 *
 * Example: in "layer1" a thread is in aten::linear from 0 to 90 us, inside which aten::addmm calls cudaLaunchKernel (10 to 16 us) for a kernel
 * of 40 us. That is one instance of the op "/layer1/linear", type "linear": cpu 90, gpu 40, overhead 84, idle 0. aten::addmm is folded into it.
 * A second call with other input shapes is an instance of another op of the same name.
 *
 * Name: a path and the op, "/Net/layer1/conv2d": from DLProf's function stacks ("<module>" is "module", "<lambda>" "lambda"; the
 * recorder numbers callers' lines, "relu(2)"), else from layers (analysis/tree/layers.h), else from the annotations around it, without those
 * that count iterations. Where PyProf's call stacks tell several lines at one place apart, the second is "relu(2)".
 * Type: the op alone ("conv2d" of "aten::conv2d"). A backward op linked to its forward op (fwdbwd.h) has the name, the type and
 * the shapes of that; one that is not is of type "backward".
 *
 * What makes two instances the same op (independent of iterations): equal name, direction and input
 * shapes; of calls outside ops, the call and the op before it on its thread. An op's id is its type in capitals, '_' and a running number
 * of that type, in order of first start.
 *
 * Times of an instance:
 *   cpu       length of the range (of an unassociated call, of the call)
 *   gpu       length of the union of the kernels, copies and sets that it launched; of each GPU by itself, added up
 *   overhead  cpu - sum of the durations of its API calls; calls within calls count once; never below 0
 *   idle      (end of its last device work - start of its first) - gpu; of each GPU by itself, added up */
#ifndef OPSCOPE_ANALYSIS_TREE_OP_INSTANCES_H
#define OPSCOPE_ANALYSIS_TREE_OP_INSTANCES_H

#include "analysis/tree/direction.h"
#include "base/arena.h"
#include "op/kernels.h"

enum op_origin {
	OPS_NONE,        /* no op in the input: only unassociated calls */
	OPS_MARKERS,     /* PyProf's or DLProf's argument markers */
	OPS_AUTOGRAD,    /* emit_nvtx ranges */
	OPS_KINETO,
	OPS_LIBRARY,     /* NVTX ranges of a framework or library: TensorFlow, TensorRT, XLA, ... */
	OPS_STATED,      /* the input holds a finished assignment: a DLProf database */
};

struct op {
	struct str id, name, type; /* "CONV2D_1", "/module/.../conv2d", "conv2d" */
	struct str data_type;      /* of its inputs, "float32"; several are joined by ", "; "" = not recorded */
	struct str stack;          /* "file:line", outermost first, separated by line feeds; "" = not recorded */
	uint32_t path_n;           /* how much of the name is its path, with the last '/'; 0 = outside the tree of groups */
	uint8_t direction;         /* enum direction; DIR_OTHER for unassociated calls */
	bool unassociated;
	bool tc_eligible;          /* could use Tensor Cores, by its type: convolutions and the GEMM family */
	bool tc_inside;            /* or by that of an op inside it: an autograd function, a whole attention; or because one of its kernels
	                            * uses them. Of calls outside ops never: what they ran is not told */
	uint32_t instances;
	uint32_t first;            /* its first instance */
	uint32_t forward;          /* of a linked backward op: its forward op, whose name, type and shapes it has; ROW_NONE */
};

struct op_instance {
	uint32_t op;
	uint32_t span;             /* the range; the call of an unassociated one; ROW_NONE for "unattributed" */
	int64_t start_ns, end_ns;  /* on the host */
	int64_t gpu_ns, overhead_ns, idle_ns;
	int64_t api_ns;            /* of its API calls, calls within calls once */
	uint32_t gpu_first, gpu_n; /* its device work: ops->gpu[gpu_first .. + gpu_n - 1], by start */
};

struct ops {
	enum op_origin origin;
	struct op *op;             /* in order of id: by type, then number */
	uint32_t n_ops;
	struct op_instance *instance; /* in order of start on the host */
	uint32_t n_instances;
	uint32_t *of_span;         /* span -> instance: the range itself, all inside it, API calls; ROW_NONE */
	uint32_t *of_gpu;          /* gpu_op -> instance; never ROW_NONE */
	uint32_t *gpu;             /* gpu_op rows grouped by instance */
};

/* Texts of one instance: data types, "<N:32, C:3, H:32, W:32>; <K:6, C:3, R:3, S:3>; <6>" (letters only for
 * convolutions and linear layers), parameters, output shapes "<N:32, K:6, P:30, Q:30>"; "" where not recorded or not to be told. In `a`. */
struct op_shapes {
	struct str data_types, inputs, parameters, outputs;
	bool assumed;              /* outputs: strides and padding were not recorded, and are taken to be 1 and 0 */
};
void op_instance_shapes(const struct ops *o, const struct profile *p, uint32_t instance, struct arena *a, struct op_shapes *out);

#endif
