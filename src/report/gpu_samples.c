/* What NVML said of the GPUs while the program ran. */
#include "analysis/costs/sampled.h"
#include "analysis/time/gpu_samples.h"
#include "query/report.h"

enum {
	GPU_SAMPLES_DEVICE, GPU_SAMPLES_METRIC, GPU_SAMPLES_UNIT, GPU_SAMPLES_N, GPU_SAMPLES_MEAN, GPU_SAMPLES_MIN, GPU_SAMPLES_MAX, GPU_SAMPLES_LAST
};

static const struct section gpu_samples_section = {COLUMNS(
	[GPU_SAMPLES_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_ANSWER)},
	[GPU_SAMPLES_METRIC] = {COLUMN(TEXT, "metric", "Metric", "what was sampled", .flags = COLUMN_ANSWER)},
	[GPU_SAMPLES_UNIT] = {COLUMN(TEXT, "unit", "Unit", "of the figures of this row", .flags = COLUMN_ANSWER)},
	[GPU_SAMPLES_N] = {COLUMN(COUNT, "samples", "Samples", "how often it was asked for and told")},
	[GPU_SAMPLES_MEAN] = {COLUMN(REAL, "mean", "Mean", "of all samples", .digits = 1, .flags = COLUMN_ANSWER)},
	[GPU_SAMPLES_MIN] = {COLUMN(REAL, "min", "Min", "lowest sample", .digits = 1)},
	[GPU_SAMPLES_MAX] = {COLUMN(REAL, "max", "Max", "highest sample", .digits = 1)},
	[GPU_SAMPLES_LAST] = {COLUMN(REAL, "last", "Last", "latest sample", .digits = 1, .flags = COLUMN_MINOR)},
)};

static void gpu_samples_put(const struct gpu_samples_list *l, const struct report_args *args, struct table *t)
{
	section_start(&gpu_samples_section, args, 0, t);
	for (uint32_t i = 0; i < l->n; i++)
		for (int m = 0; m < GPU_METRICS; m++) {
			const struct gpu_metric_values *v = &l->v[i].metric[m];
			const struct gpu_metric_info *info = &gpu_metric_info[m];
			if (!v->n)
				continue;
			table_row(t);
			table_set_i64(t, GPU_SAMPLES_DEVICE, l->v[i].device);
			table_set_str(t, GPU_SAMPLES_METRIC, str_from(info->title));
			table_set_str(t, GPU_SAMPLES_UNIT, str_from(info->unit));
			table_set_i64(t, GPU_SAMPLES_N, (int64_t)v->n);
			table_set_f64(t, GPU_SAMPLES_MEAN, v->sum / (double)v->n / (double)info->scale);
			table_set_f64(t, GPU_SAMPLES_MIN, (double)v->least / (double)info->scale);
			table_set_f64(t, GPU_SAMPLES_MAX, (double)v->most / (double)info->scale);
			table_set_f64(t, GPU_SAMPLES_LAST, (double)v->last / (double)info->scale);
		}
}

enum { REASONS_DEVICE, REASONS_ID, REASONS_CLASS, REASONS_N, REASONS_SHARE, REASONS_MEANING };

static const struct section reasons_section = {.name = "throttle_reasons", .title = "What lowered the clocks", COLUMNS(
	[REASONS_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_ANSWER)},
	[REASONS_ID] = {COLUMN(TEXT, "reason", "Reason", "NVML's name for what kept the clocks below the highest", .flags = COLUMN_ANSWER)},
	[REASONS_CLASS] = {COLUMN(TEXT, "class", "Class", "idle, setting (chosen by somebody), power, heat")},
	[REASONS_N] = {COLUMN(COUNT, "samples", "Samples", "in how many samples it held; several can hold at once")},
	[REASONS_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of the samples of this GPU that tell reasons")},
	[REASONS_MEANING] = {COLUMN(TEXT, "meaning", "Meaning", "in words", .flags = COLUMN_WIDE)},
)};

static void reasons_put(const struct gpu_samples_list *l, const struct report_args *args, struct table *out)
{
	static const char *const class[] = {[GPU_REASON_IDLE] = "idle", [GPU_REASON_CHOSEN] = "setting", [GPU_REASON_POWER] = "power",
	                                    [GPU_REASON_HEAT] = "heat", [GPU_REASON_SLOWDOWN] = "power or heat"};
	struct table *t = section_add(&reasons_section, args, 0, out);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct gpu_samples *s = &l->v[i];
		uint64_t known = 0;
		for (const struct gpu_reason *r = gpu_reasons; r->id; r++) {
			known |= UINT64_C(1) << r->bit;
			if (!s->reason[r->bit])
				continue;
			table_row(t);
			table_set_i64(t, REASONS_DEVICE, s->device);
			table_set_str(t, REASONS_ID, str_from(r->id));
			table_set_str(t, REASONS_CLASS, str_from(class[r->class]));
			table_set_i64(t, REASONS_N, (int64_t)s->reason[r->bit]);
			table_set_f64(t, REASONS_SHARE, 100.0 * (double)s->reason[r->bit] / (double)s->told);
			table_set_str(t, REASONS_MEANING, str_from(r->meaning));
		}
		for (unsigned bit = 0; bit < GPU_REASON_BITS; bit++)
			if (!(known >> bit & 1) && s->reason[bit])
				table_note(t, "GPU %d: %llu samples with reason bit %u, which is not known here", s->device,
				           (unsigned long long)s->reason[bit], bit);
		if (s->told)
			table_note(t, "GPU %d: %llu samples tell reasons", s->device, (unsigned long long)s->told);
		else
			table_note(t, "GPU %d: NVML does not tell what lowers its clocks", s->device);
	}
}

static int gpu_samples_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct gpu_samples_list l;
	gpu_samples_measure(p, &l);
	if (!l.n) {
		gpu_samples_release(&l);
		if (sampled_anything(p))
			return err_set(e, ERR_DATA, "the input holds no samples by NVML; `gpu-timeline` has the metrics that nsys sampled");
		return err_set(e, ERR_DATA, "the input holds no samples of GPUs; `opscope record` takes them where the driver's NVML is there");
	}
	gpu_samples_put(&l, args, out);
	for (uint32_t i = 0; i < l.n; i++)
		table_note(out, "GPU %d: sampled for %.1f s; all processes on it count", l.v[i].device, (double)(l.v[i].last_ns - l.v[i].first_ns) / 1e9);
	if (l.odd)
		table_note(out, "%llu counters without a device or a number are left out", (unsigned long long)l.odd);
	reasons_put(&l, args, out);
	gpu_samples_release(&l);
	return 0;
}

const struct report report_gpu_samples = {
	.name = "gpu-samples",
	.title = "GPU clocks, power, temperature and memory while it ran",
	.asks = ASKS_INPUT,
	.help = "What the driver's NVML said of each GPU, once a second: how busy it was, how much of its memory was used, its clocks, power and "
	        "temperature, and in a second table what kept the clocks below the highest. GPU utilization is NVML's: the share of the time in "
	        "which any kernel ran, however small. All processes on the GPU count, not only the recorded one.",
	.sections = (const struct section *const[]){&gpu_samples_section, &reasons_section, NULL},
	.timeline = true,
	.run = gpu_samples_run,
};
