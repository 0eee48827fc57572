/* What the text of an NVTX range says, for all inputs that carry NVTX (nsys, nvprof, PyProf .dict). Texts are parsed as data,
 * never evaluated. Damaged ones are kept as plain text and counted in p->diags ("damaged-marker").
 *
 *   emit_nvtx (torch.autograd.profiler), all generations: "name", "name, seq = N", "..., op_id = K", "..., sizes = [[..],..]",
 *     "..., input_op_ids = [...]" in any order    -> SPAN_OP, name = "name", link_id = N,
 *                                                    op_id = K, input_ops = "[...]",
 *                                                    args "Input Dims" (JSON, as Kineto writes it) when sizes are there
 *   PyProf / DLProf argument marker {'mod': M, 'op': O, 'args': [...]}
 *                                                 -> SPAN_OP, name = "M.O", args as Kineto's: "Input Dims", "Input type"
 *                                                    (Kineto's dtype names), "Concrete Inputs", and "Input names" (keyword, or
 *                                                    "" for positional); further "Module" = M, "Op" = O, "marker" = the raw
 *                                                    text, "callid", "input_callids" where present (DLProf); a list of
 *                                                    tensors, 'shapes' and 'dtypes' (opscope.torch), as Kineto's; the op
 *                                                    "__getattr__" is a SPAN_MARKER
 *   trace marker {'traceMarker': [...]}           -> SPAN_MARKER, name = raw text; "Call stack" = frames innermost first
 *                                                    joined by ';', "funcStack" where present
 *   module marker {'mod': M, 'strRepr': R}        -> SPAN_MARKER, name = raw text; "Module", "strRepr"
 *   {"model_config": {...}}                       -> SPAN_MARKER, name = raw text; "model_config"
 *   "layer:NAME"                                  -> SPAN_USER, name = raw text, "Layer" = NAME
 *   ranges of a framework's or library's domain (TensorRT, NCCL, cuDNN, cuBLAS, JAX/XLA "TSL", CCCL, ...; the list is
 *   nvtx_domains.def)                             -> SPAN_OP, or SPAN_USER where the row says so
 *   TensorFlow's nodes                            -> SPAN_OP, see marker_node.h
 *   lower-case C++-like scope of a framework ("aten::", "c10d::", "torch::", ...) without fields -> SPAN_OP
 *   anything else                                 -> SPAN_USER, name = raw text
 *
 * Equal texts are parsed once. Texts with unique numbers (seq, op_id) are not interned as a whole: only their name, sizes. */
#ifndef OPSCOPE_INPUT_MARKER_H
#define OPSCOPE_INPUT_MARKER_H

#include "store/build.h"

struct markers;

struct markers *markers_new(struct build *b);
void markers_free(struct markers *m);

/* What marker_read found out about a text; the rest of the span is the caller's. */
struct marker {
	int64_t link_id;  /* sequence number; ID_NONE = none */
	int64_t op_id;    /* 0 = none */
	uint32_t input_ops; /* input_op_ids as written; 0 = none */
	uint32_t name, args;
	uint8_t kind;     /* enum span_kind */
	bool is_node;     /* of TensorFlow, which starts and ends ranges where others push and pop: what one thread started and ended is its op */
};

/* `domain` is the NVTX domain's name, {0} = the default one. `where` is the row of the input, for diagnostics. */
struct marker marker_read(struct markers *m, struct str text, struct str domain, int64_t where);

#endif
