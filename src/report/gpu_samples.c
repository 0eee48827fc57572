/* What NVML said of the GPUs while the program ran. */
#include "analysis/time/gpu_samples.h"
#include "query/report.h"

static void put_metrics(const struct gpu_samples_list *l, struct table *t)
{
	unsigned device = TABLE_COLUMN(t, .id = "device", .title = "GPU", .help = "ordinal", .type = CELL_I64, .flags = COLUMN_KEY);
	unsigned metric = TABLE_COLUMN(t, .id = "metric", .title = "Metric", .help = "what was sampled", .type = CELL_STR, .flags = COLUMN_KEY);
	unsigned unit = TABLE_COLUMN(t, .id = "unit", .title = "Unit", .help = "of the figures of this row", .type = CELL_STR, .flags = COLUMN_KEY);
	unsigned samples = TABLE_COLUMN(t, .id = "samples", .title = "Samples", .help = "how often it was asked for and told", .type = CELL_I64, .unit = UNIT_COUNT);
	unsigned mean = TABLE_COLUMN(t, .id = "mean", .title = "Mean", .help = "of all samples", .type = CELL_F64, .digits = 1, .flags = COLUMN_KEY);
	unsigned least = TABLE_COLUMN(t, .id = "min", .title = "Min", .help = "lowest sample", .type = CELL_F64, .digits = 1);
	unsigned most = TABLE_COLUMN(t, .id = "max", .title = "Max", .help = "highest sample", .type = CELL_F64, .digits = 1);
	unsigned last = TABLE_COLUMN(t, .id = "last", .title = "Last", .help = "latest sample", .type = CELL_F64, .digits = 1, .flags = COLUMN_MINOR);
	for (uint32_t i = 0; i < l->n; i++)
		for (int m = 0; m < GPU_METRICS; m++) {
			const struct gpu_metric_values *v = &l->v[i].metric[m];
			const struct gpu_metric_info *info = &gpu_metric_info[m];
			if (!v->n)
				continue;
			table_row(t);
			table_set_i64(t, device, l->v[i].device);
			table_set_str(t, metric, str_from(info->title));
			table_set_str(t, unit, str_from(info->unit));
			table_set_i64(t, samples, (int64_t)v->n);
			table_set_f64(t, mean, v->sum / (double)v->n / (double)info->scale);
			table_set_f64(t, least, (double)v->least / (double)info->scale);
			table_set_f64(t, most, (double)v->most / (double)info->scale);
			table_set_f64(t, last, (double)v->last / (double)info->scale);
		}
}

static void gpu_samples_put_reasons(const struct gpu_samples_list *l, struct table *t)
{
	static const char *const class[] = {[GPU_REASON_IDLE] = "idle", [GPU_REASON_CHOSEN] = "setting", [GPU_REASON_POWER] = "power",
	                                    [GPU_REASON_HEAT] = "heat", [GPU_REASON_SLOWDOWN] = "power or heat"};
	TABLE_COLUMN(t, .id = "device", .title = "GPU", .help = "ordinal", .type = CELL_I64, .flags = COLUMN_KEY);
	TABLE_COLUMN(t, .id = "reason", .title = "Reason", .help = "NVML's name for what kept the clocks below the highest", .type = CELL_STR, .flags = COLUMN_KEY);
	TABLE_COLUMN(t, .id = "class", .title = "Class", .help = "idle, setting (chosen by somebody), power, heat", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "samples", .title = "Samples", .help = "in how many samples it held; several can hold at once", .type = CELL_I64, .unit = UNIT_COUNT);
	TABLE_COLUMN(t, .id = "share_pct", .title = "Share", .help = "of the samples of this GPU that tell reasons", .type = CELL_F64, .unit = UNIT_PERCENT);
	TABLE_COLUMN(t, .id = "meaning", .title = "Meaning", .help = "in words", .type = CELL_STR, .flags = COLUMN_WIDE);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct gpu_samples *s = &l->v[i];
		uint64_t known = 0;
		for (const struct gpu_reason *r = gpu_reasons; r->id; r++) {
			known |= UINT64_C(1) << r->bit;
			if (!s->reason[r->bit])
				continue;
			table_row(t);
			table_set_i64(t, 0, s->device);
			table_set_str(t, 1, str_from(r->id));
			table_set_str(t, 2, str_from(class[r->class]));
			table_set_i64(t, 3, (int64_t)s->reason[r->bit]);
			table_set_f64(t, 4, 100.0 * (double)s->reason[r->bit] / (double)s->told);
			table_set_str(t, 5, str_from(r->meaning));
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
	(void)args;
	gpu_samples_measure(p, &l);
	if (!l.n) {
		gpu_samples_release(&l);
		return err_set(e, ERR_DATA, "the input holds no samples of GPUs; `opscope record` takes them where the driver's NVML is there");
	}
	put_metrics(&l, out);
	for (uint32_t i = 0; i < l.n; i++)
		table_note(out, "GPU %d: sampled for %.1f s; all processes on it count", l.v[i].device, (double)(l.v[i].last_ns - l.v[i].first_ns) / 1e9);
	if (l.odd)
		table_note(out, "%llu counters without a device or a number are left out", (unsigned long long)l.odd);
	gpu_samples_put_reasons(&l, table_section(out, "throttle_reasons", "What lowered the clocks"));
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
	.timeline = true,
	.run = gpu_samples_run,
};
