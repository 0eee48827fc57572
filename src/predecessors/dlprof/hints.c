#include "predecessors/dlprof/hints.h"

#include "analysis/names/names.h"
#include "analysis/ranks/rank_place.h"
#include "analysis/recording.h"
#include "analysis/tree/op_instances.h"
#include "base/mem.h"

bool dlprof_is_half(struct str t)
{
	return str_has(t, STR("float16")) || str_has(t, STR("bfloat16")) || str_has(t, STR("fp16")) || str_has(t, STR("half")) || str_has(t, STR("Half"));
}

static bool is_newer(const struct profile *p, uint32_t name)
{
	return name_kernel(p, name)->tensor_core == TRI_YES && !name_is(p, name, NAME_TC_LISTED);
}

static void say_kernels(const struct profile *p, const uint8_t *in, struct buf *b)
{
	int64_t newer = 0, all = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || (in && !in[g]))
			continue;
		all += p->gpu_op.dur_ns[g];
		if (is_newer(p, p->gpu_op.name[g]))
			newer += p->gpu_op.dur_ns[g];
	}
	if (newer)
		buf_printf(b, "%lld ns (%.1f %%) of kernel time are in kernels newer than DLProf's list that do use Tensor Cores; "
		           "`opscope report tensor-cores` counts them.", (long long)newer, 100.0 * (double)newer / (double)all);
}

static void say_types(const struct profile *p, struct buf *b)
{
	unsigned eligible = 0, untyped = 0;
	bool half = false;
	for (uint32_t i = 0; i < p->ops->n_ops; i++) {
		const struct op *op = &p->ops->op[i];
		if (!op->tc_eligible || !op->instances)
			continue;
		eligible++;
		untyped += !op->data_type.n;
		half |= dlprof_is_half(op->data_type);
	}
	if (untyped && !half)
		buf_printf(b, "Of %u of the %u op%s that could use Tensor Cores no data types were recorded: whether none uses FP16 is not known. "
		           "To record them: %s.", untyped, eligible, eligible == 1 ? "" : "s", recording_how(p, RECORD_SHAPES));
}

void dlprof_hints(const struct profile *p, unsigned which, const uint8_t *in, void (*put)(void *, struct str), void *context)
{
	for (unsigned hint = 1; hint <= HINT_TYPES; hint <<= 1) {
		struct buf b = {0};
		if (!(which & hint))
			continue;
		if (hint == HINT_GPUS)
			rank_put_foreign_gpus(p, &b);
		else if (hint == HINT_KERNELS)
			say_kernels(p, in, &b);
		else
			say_types(p, &b);
		if (b.n)
			put(context, buf_view(&b));
		buf_release(&b);
	}
}
