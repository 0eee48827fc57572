/* Takes apart lines of the texts that Dynamo and Inductor write. Results are slices of the text. Functions return false where a line is of another form. */
#ifndef OPSCOPE_OPEN_PROVENANCE_TEXT_H
#define OPSCOPE_OPEN_PROVENANCE_TEXT_H

#include "base/str.h"

/* A frame: "/a/model.py", 12, "forward". */
struct provenance_frame {
	struct str path, function;
	int64_t line;
};

/* `File "/a/model.py", line 12, in forward`, as Python writes it in a stack trace. */
bool provenance_frame_of_trace(struct str line, struct provenance_frame *out);
/* `# File: /a/model.py:12 in forward, code: x = self.fc1(x)`, as it stands above the nodes of a graph. */
bool provenance_frame_of_comment(struct str line, struct provenance_frame *out);
/* The node that a line of a graph's text defines: "mul" of `mul: "f32[10]" = torch.ops.aten.mul.Tensor(...)`. */
bool provenance_node_of(struct str line, struct str *name);

/* What a line of generated code is. */
enum provenance_code {
	CODE_OTHER,
	CODE_COMMENT,            /* any other comment */
	CODE_SOURCES,            /* "# Topologically Sorted Source Nodes: [add, gelu], Original ATen: [aten.addmm, aten.gelu]": *nodes, *ops = inside the brackets */
	CODE_HANDLES,            /* "# [Provenance debug handles] triton_poi_fused_mul_0:1, extern_kernels.mm:2": *name = the handles */
	CODE_PATH,               /* "# kernel path: /tmp/torchinductor_user/ab/cabc.py": *name = "cabc" */
	CODE_KERNEL,             /* "triton_poi_fused_mul_0 = async_compile.triton(...": *name = the kernel */
	CODE_CALL,               /* "triton_poi_fused_mul_0.run(...", "extern_kernels.mm(...": *name = what is called, without ".run" */
};
/* Sets those of *name, *nodes and *ops that the kind of line has; the others are undefined. */
enum provenance_code provenance_code_of(struct str line, struct str *name, struct str *nodes, struct str *ops);

/* The op that generated code calls, as a trace names it: "extern_kernels.mm" and "aoti_torch_cuda_mm_out" give "mm" in the name space "aten";
 * "torch.ops.a.b.default" gives "b" in "a". *space is "" for a generated kernel. */
void provenance_called_name(struct str called, struct str *space, struct str *name);

/* Cuts the next line off *text, without spaces around it; false at its end. */
bool provenance_line(struct str *text, struct str *line);
/* Cuts the next item of "a, b" off *list; false at its end. Empty items are passed over. */
bool provenance_item(struct str *list, struct str *item);

#endif
