/* Annotations on streams, and the device work in each annotation. */
#include "analysis/recording.h"
#include "analysis/tree/gpu_ranges.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/report.h"
#include "query/stats.h"

enum gpu_annotations_by { GPU_ANNOTATIONS_BY_RANGE, GPU_ANNOTATIONS_BY_KERNEL };

struct gpu_annotations_key {
	uint32_t range, kernel; /* string ids; range: 0 = work in no annotation */
};

struct gpu_annotations_work {
	uint64_t ops, kernels;
	int64_t ns, kernel_ns;
};

enum { RANGE_NAME, RANGE_STATS, RANGE_OPS = RANGE_STATS + STATS_COLUMNS, RANGE_NS, RANGE_KERNELS, RANGE_KERNEL_NS, RANGE_BUSY };

static const struct section range_section = {.by = BY(GPU_ANNOTATIONS_BY_RANGE), COLUMNS(
	[RANGE_NAME] = {COLUMN(TEXT, "annotation", "Annotation", "text of the annotation", .flags = COLUMN_ANSWER)},
	STATS_COLUMN_LIST(RANGE_STATS),
	[RANGE_OPS] = {COLUMN(COUNT, "gpu_ops", "Device ops", "kernels, copies and sets that start in the annotation, or in annotations inside it", .flags = COLUMN_MINOR)},
	[RANGE_NS] = {COLUMN(NS, "gpu_ns", "Device time", "sum of the durations of this device work", .flags = COLUMN_ANSWER)},
	[RANGE_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "kernels among this device work")},
	[RANGE_KERNEL_NS] = {COLUMN(NS, "kernel_ns", "Kernel time", "sum of the durations of these kernels", .flags = COLUMN_MINOR)},
	[RANGE_BUSY] = {COLUMN(PERCENT, "busy_pct", "Busy %", "device time / time of the annotations", .flags = COLUMN_ANSWER)},
)};

enum { IN_NAME, IN_KERNEL, IN_STATS };

static const struct section in_section = {.by = BY(GPU_ANNOTATIONS_BY_KERNEL), COLUMNS(
	[IN_NAME] = {COLUMN(TEXT, "annotation", "Annotation", "the innermost annotation of the stream in which the work starts; empty = none", .flags = COLUMN_GROUP | COLUMN_ANSWER)},
	[IN_KERNEL] = {COLUMN(TEXT, "name", "Kernel, copy or set", "name of the work", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	STATS_COLUMN_LIST(IN_STATS),
)};

static void add_work(struct gpu_annotations_work *to, const struct gpu_annotations_work *w)
{
	to->ops += w->ops;
	to->kernels += w->kernels;
	to->ns += w->ns;
	to->kernel_ns += w->kernel_ns;
}

/* By row of span: the work in the range and in ranges inside it, whose rows stand behind it. The caller's (mem_free). */
static struct gpu_annotations_work *work_of_ranges(const struct profile *p, const struct gpu_ranges *r)
{
	struct gpu_annotations_work *v = NEW_ARRAY(p->span.rows.n, struct gpu_annotations_work);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		bool kernel = p->gpu_op.kind[g] == GPU_KERNEL;
		int64_t ns = p->gpu_op.dur_ns[g];
		if (r->of_gpu[g] != ROW_NONE)
			add_work(&v[r->of_gpu[g]], &(struct gpu_annotations_work){1, kernel, ns, kernel ? ns : 0});
	}
	for (uint32_t i = p->span.rows.n; i-- > 0;)
		if (r->around[i] != ROW_NONE)
			add_work(&v[r->around[i]], &v[i]);
	return v;
}

static void gpu_annotations_put_ranges(const struct profile *p, const struct gpu_ranges *r, const struct report_args *args, struct table *t)
{
	struct stats s = {0};
	uint32_t *group_of = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_GPU_USER)
			group_of[i] = stats_add(&s, &p->span.name[i], sizeof(uint32_t), p->span.dur_ns[i]);
	stats_finish(&s);
	struct gpu_annotations_work *work = NEW_ARRAY(s.n, struct gpu_annotations_work), *of_range = work_of_ranges(p, r);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_GPU_USER)
			add_work(&work[group_of[i]], &of_range[i]);
	section_start(&range_section, args, 0, t);
	for (uint32_t i = 0; i < s.n; i++) {
		uint32_t name;
		stats_key(&s, i, &name, sizeof name);
		table_row(t);
		table_set_str(t, RANGE_NAME, profile_str(p, name));
		stats_put(t, RANGE_STATS, &s, i);
		table_set_i64(t, RANGE_OPS, (int64_t)work[i].ops);
		table_set_i64(t, RANGE_NS, work[i].ns);
		table_set_i64(t, RANGE_KERNELS, (int64_t)work[i].kernels);
		table_set_i64(t, RANGE_KERNEL_NS, work[i].kernel_ns);
		table_set_f64(t, RANGE_BUSY, percent((double)work[i].ns, (double)s.v[i].total));
	}
	table_note(t, "an annotation on a stream goes from the start of the first to the end of the last work that the annotated code launched on the stream");
	mem_free(of_range);
	mem_free(work);
	mem_free(group_of);
	stats_release(&s);
}

static void gpu_annotations_put_kernels(const struct profile *p, const struct gpu_ranges *r, const struct report_args *args, struct table *t)
{
	struct stats s = {0};
	int64_t in_none = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t range = r->of_gpu[g];
		struct gpu_annotations_key k = {.range = range == ROW_NONE ? 0 : p->span.name[range], .kernel = p->gpu_op.name[g]};
		stats_add(&s, &k, sizeof k, p->gpu_op.dur_ns[g]);
		in_none += range == ROW_NONE ? p->gpu_op.dur_ns[g] : 0;
	}
	stats_finish(&s);
	section_start(&in_section, args, 0, t);
	for (uint32_t i = 0; i < s.n; i++) {
		struct gpu_annotations_key k;
		stats_key(&s, i, &k, sizeof k);
		table_row(t);
		if (k.range)
			table_set_str(t, IN_NAME, profile_str(p, k.range));
		table_set_str(t, IN_KERNEL, profile_str(p, k.kernel));
		stats_put(t, IN_STATS, &s, i);
	}
	table_note(t, "device work %lld ns = in annotations %lld + in none %lld", (long long)s.total, (long long)(s.total - in_none), (long long)in_none);
	stats_release(&s);
}

static int gpu_annotations_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct gpu_ranges r;
	gpu_ranges_find(p, &r);
	if (!r.n)
		return err_set(e, ERR_DATA, "the input holds no annotation on a stream: PyTorch 2.1 and later records annotations of record_function and of steps that have device work. The report `nvtx` has "
		                            "what ranges of the host launched");
	if (args->variant->by == GPU_ANNOTATIONS_BY_RANGE)
		gpu_annotations_put_ranges(p, &r, args, out);
	else
		gpu_annotations_put_kernels(p, &r, args, out);
	gpu_ranges_release(&r);
	return table_sort(out, STR("total_ns"), true, e);
}

static const struct report_variant gpu_annotations_variants[] = {
	{.group_by = "range", .by = GPU_ANNOTATIONS_BY_RANGE},
	{.group_by = "kernel", .by = GPU_ANNOTATIONS_BY_KERNEL},
	{0},
};

const struct report report_gpu_annotations = {
	.name = "gpu-annotations",
	.title = "Annotations on the GPU",
	.asks = ASKS_WHERE,
	.also = "gpu_user_annotation user_annotations annotation",
	.help = "Ranges that the program marked (record_function, steps, DistributedDataParallel, optimizers), as the profiler projects them onto the streams: how long each range took there, and "
	        "for how much of this time its work ran. --group-by=kernel has the kernels, copies and sets in each range.",
	.variants = gpu_annotations_variants,
	.sections = (const struct section *const[]){&range_section, &in_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.timeline = true,
	.run = gpu_annotations_run,
};
