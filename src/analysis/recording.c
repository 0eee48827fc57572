#include "analysis/recording.h"

#include "analysis/analysis.h"

bool recording_extent(const struct profile *p, int64_t *first, int64_t *last)
{
	int64_t from = INT64_MAX, to = INT64_MIN, length;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] == SPAN_TRACE)
			continue;
		from = p->span.start_ns[i] < from ? p->span.start_ns[i] : from;
		to = span_end(p, i) > to ? span_end(p, i) : to;
	}
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		from = p->gpu_op.start_ns[g] < from ? p->gpu_op.start_ns[g] : from;
		to = gpu_end(p, g) > to ? gpu_end(p, g) : to;
	}
	bool any = from <= to && !__builtin_sub_overflow(to, from, &length);
	*first = any ? from : 0;
	*last = any ? to : 0;
	return any;
}

int64_t recording_start(const struct profile *p)
{
	const struct profile *all = p->whole ? p->whole : p;
	int64_t first, last;
	for (uint32_t i = 0; i < all->span.rows.n; i++)
		if (all->span.kind[i] == SPAN_TRACE)
			return all->span.start_ns[i];
	return !all->zero_is_start && recording_extent(all, &first, &last) ? first : 0;
}

/* What torch.profiler was asked for and has not told: a torch without Kineto has no Python frames, and not every program calls modules. */
static bool was_asked_in_vain(const struct profile *p, enum record what)
{
	struct str value;
	bool by_stacks = what == RECORD_STACKS || what == RECORD_MODULES || what == RECORD_LAYERS;
	return by_stacks && profile_meta(p, "with_stack", &value) && (str_eqc(value, "1") || str_eqc(value, "true"));
}

const char *recording_how(const struct profile *p, enum record what)
{
	static const struct { const char *torch, *nvtx, *own; } how[RECORDS] = {
#define RECORD(id, torch, nvtx, own) [RECORD_##id] = {torch, nvtx, own},
#include "analysis/recording.def"
#undef RECORD
	};
	if (str_eqc(p->format, "capture"))
		return how[what].own;
	if (p->recorder == RECORDER_TORCH && was_asked_in_vain(p, what))
		return "opscope.profile(backend=\"opscope\"), or opscope.torch.init() in the program under `opscope record`: with_stack=True, which was set, has told of none";
	return p->recorder == RECORDER_TORCH ? how[what].torch : how[what].nvtx;
}
