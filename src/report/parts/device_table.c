#include "report/parts/device_table.h"

#include <math.h>

#include "analysis/costs/mfu.h"
#include "analysis/time/gpu_metrics.h"
#include "base/buf.h"
#include "base/round.h"

enum {
	DEVICE_ORDINAL, DEVICE_NAME, DEVICE_MEMORY, DEVICE_CAPABILITY, DEVICE_SMS, DEVICE_BUSY_PCT, DEVICE_UTILIZATION, DEVICE_SM_EFFICIENCY, DEVICE_OCCUPANCY, DEVICE_TFLOPS,
	DEVICE_MFU, DEVICE_TC, DEVICE_TC_UNKNOWN, DEVICE_KERNELS, DEVICE_COPIES, DEVICE_SETS, DEVICE_KERNEL_TIME, DEVICE_KERNEL_BUSY, DEVICE_BUSY, DEVICE_IDLE, DEVICE_COLUMNS
};

static const struct section_column device_columns[DEVICE_COLUMNS] = {
	[DEVICE_ORDINAL] = {COLUMN(NUMBER, "device", "Device", "ordinal")},
	[DEVICE_NAME] = {COLUMN(TEXT, "name", "Name", "product name, as the input states it")},
	[DEVICE_MEMORY] = {COLUMN(BYTES, "memory_bytes", "Memory", "global memory", .flags = COLUMN_MINOR)},
	[DEVICE_CAPABILITY] = {COLUMN(TEXT, "compute_capability", "CC", "compute capability (AMD: the gfx version's first two parts)", .flags = COLUMN_MINOR)},
	[DEVICE_SMS] = {COLUMN(NUMBER, "sm_count", "SMs", "streaming multiprocessors or compute units", .flags = COLUMN_DETAIL)},
	[DEVICE_BUSY_PCT] = {COLUMN(PERCENT, "busy_pct", "GPU busy", "time with any device work, copies and sets included / time of the steps", .flags = COLUMN_ANSWER)},
	[DEVICE_UTILIZATION] = {COLUMN(PERCENT, "gpu_utilization_pct", "Kernel busy", "GPU utilization: time with at least one kernel running / time of the steps",
	                               .flags = COLUMN_ANSWER)},
	[DEVICE_SM_EFFICIENCY] = {COLUMN(PERCENT, "sm_efficiency_pct", "SM eff", "sum of blocks / SMs of the running kernels, at most 1, averaged over the time of the "
	                                 "steps", .flags = COLUMN_ANSWER)},
	[DEVICE_OCCUPANCY] = {COLUMN(PERCENT, "achieved_occupancy_pct", "Occupancy", "estimated achieved occupancy: as the trace states it, else computed from the "
	                             "launch and the limits of an SM; mean over kernels, weighted by duration within the steps", .flags = COLUMN_ANSWER)},
	[DEVICE_TFLOPS] = {COLUMN(REAL, "tflops_per_s", "TFLOP/s", "achieved: FLOPs of the steps / their time, as in `mfu`; empty = no FLOPs are known", .digits = 1)},
	[DEVICE_MFU] = {COLUMN(PERCENT, "mfu_pct", "MFU", "achieved FLOP/s / the GPU's peak, as in `mfu`, which says why it is empty", .flags = COLUMN_ANSWER)},
	[DEVICE_TC] = {COLUMN(PERCENT, "tc_time_pct", "TC time", "time of the steps in kernels that are known to use Tensor Cores / in kernels", .flags = COLUMN_ANSWER)},
	[DEVICE_TC_UNKNOWN] = {COLUMN(PERCENT, "tc_unknown_pct", "TC unknown", "time of the steps in kernels of which it is not known / in kernels")},
	[DEVICE_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "kernels that ran during the steps; whole CUDA graphs are not counted")},
	[DEVICE_COPIES] = {COLUMN(COUNT, "copies", "Copies", "memory copies that ran during the steps", .flags = COLUMN_DETAIL)},
	[DEVICE_SETS] = {COLUMN(COUNT, "sets", "Sets", "memory sets that ran during the steps", .flags = COLUMN_DETAIL)},
	[DEVICE_KERNEL_TIME] = {COLUMN(NS, "kernel_ns", "Kernel time", "sum of kernel durations, cut at the start and end of the steps", .flags = COLUMN_DETAIL)},
	[DEVICE_KERNEL_BUSY] = {COLUMN(NS, "kernel_busy_ns", "Kernels busy", "time of the steps with at least one kernel running", .flags = COLUMN_DETAIL)},
	[DEVICE_BUSY] = {COLUMN(NS, "busy_ns", "Busy", "time of the steps with any device work")},
	[DEVICE_IDLE] = {COLUMN(NS, "idle_ns", "Idle", "time of the steps without device work")},
};
const struct section device_section = {.columns = device_columns, .n = DEVICE_COLUMNS};
const struct section device_summary_section = {.name = "devices", .title = "GPU summary", .columns = device_columns, .n = DEVICE_COLUMNS};

/* What a device achieved in the steps chosen; NAN = not known. */
struct achieved {
	double flops_per_s, mfu_pct;
};

static bool device_table_is_chosen(const struct profile *p, const struct mfu *m, const struct mfu_row *r, const struct report_args *args)
{
	if (m->whole)
		return true;
	int64_t number = r->step == MFU_ALL ? 0 : p->steps->v[r->step].number;
	return args->has_steps ? r->step != MFU_ALL && number >= args->step_first && number <= args->step_last : r->step == MFU_ALL;
}

/* Means over time; unknown where the figure of any step is unknown. The caller asks for devices in order of ordinal, in which the rows of *m stand; *row is
 * where the rows of this device begin, and moves behind them. */
static struct achieved achieved_on(const struct profile *p, const struct mfu *m, int32_t device, const struct report_args *args, uint32_t *row)
{
	struct achieved sum = {0};
	double ns = 0;
	while (m && *row < m->n && m->v[*row].device < device)
		++*row;
	for (; m && *row < m->n && m->v[*row].device == device; ++*row) {
		const struct mfu_row *r = &m->v[*row];
		if (!device_table_is_chosen(p, m, r, args))
			continue;
		sum.flops_per_s += r->incomplete ? NAN : r->achieved_flops * (double)r->ns;
		sum.mfu_pct += r->mfu_pct * (double)r->ns;
		ns += (double)r->ns;
	}
	return ns > 0 ? (struct achieved){sum.flops_per_s / ns, sum.mfu_pct / ns} : (struct achieved){NAN, NAN};
}

/* Notes each reason once, with the GPUs that it concerns. */
static void note_unknown_mfu(const struct profile *p, const struct mfu *m, const struct report_args *args, struct table *t)
{
	struct buf gpus = {0};
	for (uint32_t i = 0; m && i < m->n; i++) {
		const char *why = m->v[i].why;
		bool told = !why || !device_table_is_chosen(p, m, &m->v[i], args);
		for (uint32_t k = 0; k < i && !told; k++)
			told = m->v[k].why && strcmp(m->v[k].why, why) == 0 && device_table_is_chosen(p, m, &m->v[k], args);
		if (told)
			continue;
		buf_clear(&gpus);
		for (uint32_t k = i, last = i; k < m->n; k++) {
			if (!m->v[k].why || strcmp(m->v[k].why, why) != 0 || !device_table_is_chosen(p, m, &m->v[k], args) || (k > i && m->v[k].device == m->v[last].device))
				continue;
			buf_printf(&gpus, "%s%d", gpus.n ? ", " : "", m->v[k].device);
			last = k;
		}
		if (m->v[i].device == INT32_MIN)
			table_note(t, "MFU is unknown: %s.", why);
		else
			table_note(t, "MFU of GPU " STR_FMT " is unknown: %s.", STR_ARG(buf_view(&gpus)), why);
	}
	buf_release(&gpus);
}

void device_table_set_capability(const struct profile *p, uint32_t row, struct table *t, unsigned col)
{
	if (p->device.cc_major[row] >= 0 && p->device.cc_minor[row] >= 0)
		table_set_fmt(t, col, "%d.%d", p->device.cc_major[row], p->device.cc_minor[row]);
}

static void device_table_describe(const struct profile *p, uint32_t row, struct table *t)
{
	struct str name = profile_str(p, p->device.name[row]);
	if (name.n)
		table_set_str(t, DEVICE_NAME, name);
	if (p->device.memory_bytes[row] > 0)
		table_set_i64(t, DEVICE_MEMORY, p->device.memory_bytes[row]);
	device_table_set_capability(p, row, t, DEVICE_CAPABILITY);
	if (p->device.sm_count[row] > 0)
		table_set_i64(t, DEVICE_SMS, p->device.sm_count[row]);
}

static void device_table_own_row(const struct profile *p, const struct gpu_metrics *m, struct achieved f, int64_t span, struct table *t)
{
	table_row(t);
	table_set_i64(t, DEVICE_ORDINAL, m->device);
	if (m->row != ROW_NONE)
		device_table_describe(p, m->row, t);
	table_set_f64(t, DEVICE_BUSY_PCT, percent((double)m->busy_ns, (double)span));
	table_set_f64(t, DEVICE_UTILIZATION, m->utilization * 100);
	table_set_f64(t, DEVICE_SM_EFFICIENCY, m->sm_efficiency * 100);
	table_set_f64(t, DEVICE_OCCUPANCY, m->occupancy_pct);
	table_set_f64(t, DEVICE_TFLOPS, f.flops_per_s / 1e12);
	table_set_f64(t, DEVICE_MFU, f.mfu_pct);
	table_set_f64(t, DEVICE_TC, m->tc_ratio * 100);
	table_set_f64(t, DEVICE_TC_UNKNOWN, percent((double)m->tc_unknown_ns, (double)m->kernel_ns));
	table_set_i64(t, DEVICE_KERNELS, (int64_t)(m->kernels - m->graphs));
	table_set_i64(t, DEVICE_COPIES, (int64_t)m->copies);
	table_set_i64(t, DEVICE_SETS, (int64_t)m->sets);
	table_set_i64(t, DEVICE_KERNEL_TIME, m->kernel_ns);
	table_set_i64(t, DEVICE_KERNEL_BUSY, m->kernel_busy_ns);
	table_set_i64(t, DEVICE_BUSY, m->busy_ns);
	table_set_i64(t, DEVICE_IDLE, span - m->busy_ns);
}

/* Notes a figure that is known only for a part of the kernel time. */
static void note_known(const struct gpu_metrics *m, const char *what, int64_t known_ns, const char *then, struct table *t)
{
	if (known_ns > 0 && known_ns < m->kernel_ns)
		table_note(t, "Device %d: %s known for %lld of %lld ns of kernels%s.", m->device, what, (long long)known_ns,
		           (long long)m->kernel_ns, then);
}

static void note_sm_efficiency(const struct gpu_metrics *m, struct table *t)
{
	if (isnan(m->sm_efficiency) && m->blocks_known_ns == 0)
		table_note(t, "Device %d: SM efficiency is unknown, the trace states neither blocks per SM nor the number of SMs.",
		           m->device);
	note_known(m, "blocks per SM are", m->blocks_known_ns,
	           isnan(m->sm_efficiency) ? ", too few for an SM efficiency" : "; SM efficiency counts the others as 0: a lower bound", t);
}

static void note_occupancy(const struct gpu_metrics *m, struct table *t)
{
	if (isnan(m->occupancy_pct) && m->occupancy_known_ns == 0)
		table_note(t, "Device %d: occupancy is unknown: within the steps the trace states neither occupancy nor, of a GPU whose limits are known, what the launches take.",
		           m->device);
	note_known(m, "occupancy is", m->occupancy_known_ns, isnan(m->occupancy_pct) ? ", too few for a mean" : "", t);
}

static void add_notes(const struct gpu_metrics *m, struct table *t)
{
	if (m->bad_values)
		table_warn(t, "Device %d: %llu zero or negative values of blocks per SM or occupancy in the trace were taken as not stated.",
		           m->device, (unsigned long long)m->bad_values);
	if (m->trace_kernels) {
		note_sm_efficiency(m, t);
		note_occupancy(m, t);
	}
	if (m->tc_unknown_ns)
		table_note(t, "Device %d: of %lld ns of kernels, %lld ns use Tensor Cores, of %lld ns it is unknown.", m->device,
		           (long long)m->kernel_ns, (long long)m->tc_ns, (long long)m->tc_unknown_ns);
	if (m->graphs)
		table_note(t, "Device %d: %llu CUDA graph%s ran as a whole, without a record of the kernels: they are time of kernels, and are not counted among them.",
		           m->device, (unsigned long long)m->graphs, m->graphs == 1 ? "" : "s");
	if (m->outside)
		table_warn(t, "Device %d: %llu of the trace\'s kernels, copies and sets outside the steps: not counted.", m->device,
		           (unsigned long long)m->outside);
}

void device_table(const struct profile *p, const struct report_args *args, bool only_used, struct table *t)
{
	struct gpu_metrics_list l;
	struct mfu *mfu = p->durations_only ? NULL : mfu_new(p);
	uint32_t mfu_row = 0;
	gpu_metrics_measure(p, p->steps, &gpu_metrics_own, NULL, args->has_steps ? &args->step_first : NULL, args->has_steps ? &args->step_last : NULL, &l);
	for (unsigned i = 0; i < l.n; i++) {
		if (only_used && !l.v[i].trace_kernels)
			continue;
		device_table_own_row(p, &l.v[i], achieved_on(p, mfu, l.v[i].device, args, &mfu_row), l.span_ns, t);
		add_notes(&l.v[i], t);
	}
	if (p->device_joined)
		table_note(t, "Device %d is the one that the input describes as device %d: only one is described, and only one works.", p->joined_device, p->device.id[0]);
	const bool has_steps = p->steps && !p->steps->whole_trace;
	table_note(t, "%s %lld ns; busy and idle sum to it.", has_steps ? "Measured during the steps:" : "No steps were found; measured during", (long long)l.span_ns);
	note_unknown_mfu(p, mfu, args, t);
	mfu_free(mfu);
	gpu_metrics_release(&l);
}
