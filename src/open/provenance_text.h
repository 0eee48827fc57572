/* Lines of the texts that Dynamo and Inductor write, taken apart. Slices of the text come back. */
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
/* The node that a line of a graph's text defines: `mul: "f32[10]" = torch.ops.aten.mul.Tensor(...)`. False: it defines none. */
bool provenance_node_of(struct str line, struct str *name);

/* What a line of generated code is. */
enum provenance_code {
	CODE_OTHER,
	CODE_COMMENT,            /* which says nothing of the following */
	CODE_SOURCES,            /* "# Topologically Sorted Source Nodes: [add, gelu], Original ATen: [aten.addmm, aten.gelu]": nodes and ops get what is in the brackets */
	CODE_HANDLES,            /* "# [Provenance debug handles] triton_poi_fused_mul_0:1": name gets the handles, which ", " separates */
	CODE_PATH,               /* "# kernel path: /tmp/torchinductor_user/ab/cabc.py": name gets "cabc" */
	CODE_KERNEL,             /* "triton_poi_fused_mul_0 = async_compile.triton(...": name gets that of the kernel */
	CODE_CALL,               /* "triton_poi_fused_mul_0.run(...", "extern_kernels.mm(...": name gets what is called */
};
enum provenance_code provenance_code_of(struct str line, struct str *name, struct str *nodes, struct str *ops);

/* The name that a trace has for what generated code calls: "extern_kernels.mm" and "aoti_torch_cuda_mm_out" are "mm" of "aten", "torch.ops.a.b.default" is "b" of "a"; *space is "" for a
 * generated kernel. */
void provenance_called_name(struct str called, struct str *space, struct str *name);

/* Cuts the next line off *text; false at its end. */
bool provenance_line(struct str *text, struct str *line);
/* Cuts the next item of "a, b" off *list; false at its end. */
bool provenance_item(struct str *list, struct str *item);

#endif
