#include "analysis/tree/generated.h"

bool generated_kernel_of(const struct profile *p, uint32_t g, struct generated_kernel *out)
{
	uint32_t op = p->gpu_op.op[g];
	*out = (struct generated_kernel){.is_inductors = true, .op = op};
	if (p->gpu_op.kind[g] != GPU_KERNEL)
		return false;
	if (op != ROW_NONE && inductor_name_parse(profile_str(p, p->span.name[op]), &out->name))
		return true;
	bool has_file = op != ROW_NONE && profile_arg_id(p, p->span.args[op], ARG_KERNEL_FILE);
	out->op = has_file ? op : ROW_NONE;
	out->is_inductors = inductor_name_parse(profile_str(p, p->gpu_op.name[g]), &out->name);
	return out->is_inductors || has_file;
}
