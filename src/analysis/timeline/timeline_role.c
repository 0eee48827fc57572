#include "analysis/timeline/timeline_role.h"

#include "analysis/names/names.h"

enum host_role {
#define HOST_ROLE_ID_(id, word) HOST_ROLE_##id,
	TIMELINE_HOST_ROLES(HOST_ROLE_ID_)
#undef HOST_ROLE_ID_
};

static const char *const timeline_host_role_word[] = {
#define HOST_ROLE_WORD_(id, word) word,
	TIMELINE_HOST_ROLES(HOST_ROLE_WORD_)
#undef HOST_ROLE_WORD_
};

/* By what the name says, whatever the kind of the range; HOST_ROLE_OTHER = nothing. */
static enum host_role timeline_role_of_name(const struct profile *p, uint32_t name)
{
	switch (name_host_kind(p, name)) {
	case HOST_DATA: return HOST_ROLE_DATA;
	case HOST_SYNC:
	case HOST_SYNC_COPY: return HOST_ROLE_SYNC;
	case HOST_ALLOC: return HOST_ROLE_ALLOC;
	default: break;
	}
	if (name_is(p, name, NAME_STEP))
		return HOST_ROLE_STEP;
	if (name_is(p, name, NAME_MODULE | NAME_MODULE_ANNOTATED | NAME_MODULE_LIGHTNING))
		return HOST_ROLE_MODULE;
	return name_is(p, name, NAME_COMM) ? HOST_ROLE_COMM : HOST_ROLE_OTHER;
}

static enum host_role timeline_role_of_kind(uint8_t kind)
{
	switch ((enum span_kind)kind) {
	case SPAN_OP: return HOST_ROLE_OP;
	case SPAN_PYTHON: return HOST_ROLE_PYTHON;
	case SPAN_CALL: return HOST_ROLE_CALL;
	case SPAN_SYNC: return HOST_ROLE_SYNC;
	case SPAN_OVERHEAD: return HOST_ROLE_OVERHEAD;
	case SPAN_OS: return HOST_ROLE_OS;
	case SPAN_USER:
	case SPAN_GPU_USER:
	case SPAN_MARKER:
	case SPAN_RANGE: return HOST_ROLE_ANNOTATION;
	default: return HOST_ROLE_OTHER;
	}
}

const char *timeline_role(const struct profile *p, bool device, uint32_t row)
{
	if (device && p->gpu_op.kind[row] != GPU_KERNEL)
		return gpu_kind_name[p->gpu_op.kind[row]];
	if (device)
		return kernel_class_name[gpu_kernel(p, row)->class];
	enum host_role by_name = timeline_role_of_name(p, p->span.name[row]);
	return timeline_host_role_word[by_name != HOST_ROLE_OTHER ? by_name : timeline_role_of_kind(p->span.kind[row])];
}
