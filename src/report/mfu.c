/* FLOPs, achieved rate and MFU of each step and GPU. */
#include "analysis/costs/mfu.h"

#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "base/buf.h"
#include "query/report.h"

enum {
	MFU_STEP, MFU_DEVICE, MFU_TIME, MFU_FLOPS, MFU_TFLOPS, MFU_MFU, MFU_PEAK, MFU_PEAK_NAME, MFU_SOURCE, MFU_KNOWN, MFU_TYPE, MFU_KERNEL, MFU_UNKNOWN, MFU_WHY
};

static const struct section mfu_section = {COLUMNS(
	[MFU_STEP] = {COLUMN(TEXT, "step", "Step", "name of the step; all = all steps together", .flags = COLUMN_ANSWER)},
	[MFU_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal of the device", .flags = COLUMN_ANSWER)},
	[MFU_TIME] = {COLUMN(NS, "time_ns", "Time", "length of the step, idle time included")},
	[MFU_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "of the kernels that this GPU ran for the step, each call of an op once; what is unknown counts 0",
	                      .flags = COLUMN_ANSWER)},
	[MFU_TFLOPS] = {COLUMN(REAL, "tflops_per_s", "TFLOP/s", "achieved: FLOPs / time", .flags = COLUMN_ANSWER, .digits = 3)},
	[MFU_MFU] = {COLUMN(PERCENT, "mfu_pct", "MFU", "achieved / peak; operations that ran twice (recomputation) count twice", .flags = COLUMN_ANSWER)},
	[MFU_PEAK] = {COLUMN(REAL, "peak_tflops_per_s", "Peak TFLOP/s", "dense peak of the type and cores of most FLOPs of products", .digits = 1)},
	[MFU_PEAK_NAME] = {COLUMN(TEXT, "peak_of", "Peak of", "that type and cores")},
	[MFU_SOURCE] = {COLUMN(TEXT, "peak_source", "Source", "publication that the peak was compared with; unverified: with none", .flags = COLUMN_DETAIL)},
	[MFU_KNOWN] = {COLUMN(PERCENT, "known_pct", "FLOPs known", "share of the kernel time (collectives left out) whose FLOPs are known")},
	[MFU_TYPE] = {COLUMN(TEXT, "types", "Types", "of the FLOPs of products, by type and cores")},
	[MFU_KERNEL] = {COLUMN(NS, "kernel_ns", "Kernels", "sum of the durations of kernels, collectives left out", .flags = COLUMN_DETAIL)},
	[MFU_UNKNOWN] = {COLUMN(NS, "products_unknown_ns", "Products unknown", "of the kernels, products or what may be some, whose FLOPs are not known",
	                        .flags = COLUMN_DETAIL)},
	[MFU_WHY] = {COLUMN(TEXT, "why", "Why unknown", "why there is no MFU", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
)};

static struct str step_name(const struct profile *p, const struct mfu *m, const struct mfu_row *r)
{
	if (m->whole)
		return STR("first to last device work");
	return r->step == MFU_ALL ? STR("all") : p->steps->v[r->step].name;
}

static void mfu_put_peak(struct table *t, const struct mfu_row *r)
{
	if (!(r->peak_flops > 0))
		return;
	table_set_f64(t, MFU_PEAK, r->peak_flops / 1e12);
	table_set_str_copy(t, MFU_PEAK_NAME, str_from(r->peak_name));
	table_set_str_copy(t, MFU_SOURCE, gpu_is_verified(r->gpu) ? str_from(r->gpu->source) : STR("unverified"));
}

static void mfu_put_row(struct table *t, const struct profile *p, const struct mfu *m, const struct mfu_row *r, struct buf *b)
{
	table_row(t);
	table_set_str_copy(t, MFU_STEP, step_name(p, m, r));
	if (r->device != INT32_MIN)
		table_set_i64(t, MFU_DEVICE, r->device);
	table_set_i64(t, MFU_TIME, r->ns);
	if (r->flops >= 0 && r->known_ns)
		table_set_i64(t, MFU_FLOPS, r->flops);
	if (!isnan(r->achieved_flops))
		table_set_f64(t, MFU_TFLOPS, r->achieved_flops / 1e12);
	if (!isnan(r->mfu_pct))
		table_set_f64(t, MFU_MFU, r->mfu_pct);
	mfu_put_peak(t, r);
	if (r->kernel_ns)
		table_set_f64(t, MFU_KNOWN, 100.0 * (double)r->known_ns / (double)r->kernel_ns);
	buf_clear(b);
	mfu_types_text(r, b);
	if (b->n)
		table_set_str_copy(t, MFU_TYPE, buf_view(b));
	table_set_i64(t, MFU_KERNEL, r->kernel_ns);
	table_set_i64(t, MFU_UNKNOWN, r->products_unknown_ns);
	if (r->why)
		table_set_str_copy(t, MFU_WHY, str_from(r->why));
}

static void mfu_put_notes(struct table *t, const struct mfu *m)
{
	int64_t flops;
	if (m->inside_flops < 0 || m->outside_flops < 0 || __builtin_add_overflow(m->inside_flops, m->outside_flops, &flops))
		table_note(t, "the FLOPs do not fit 64 bits");
	else if (m->whole)
		table_note(t, "FLOPs of all kernels: %lld; no steps were found, so that the time is that from the first to the last device work", (long long)m->inside_flops);
	else
		table_note(t, "FLOPs of all kernels %lld = in steps %lld + outside %lld", (long long)flops,
		           (long long)m->inside_flops, (long long)m->outside_flops);
	if (m->steps_left_out)
		table_note(t, "the input has too many steps for a row of each: the rows are of all steps together");
}

/* Each distinct reason once; there are as many as analysis/costs/mfu.c has, all of them literals. */
static void mfu_put_reasons(struct table *t, const struct mfu *m)
{
	enum { REASONS = 16 };
	struct { const char *why; uint32_t rows; } v[REASONS];
	unsigned n = 0;
	for (uint32_t i = 0; i < m->n; i++) {
		unsigned k = 0;
		if (!m->v[i].why)
			continue;
		while (k < n && strcmp(v[k].why, m->v[i].why) != 0)
			k++;
		if (k == REASONS)
			continue;
		if (k == n) {
			v[n].why = m->v[i].why;
			v[n++].rows = 0;
		}
		v[k].rows++;
	}
	for (unsigned k = 0; k < n; k++) {
		if (v[k].rows == m->n)
			table_warn(t, "MFU is unknown: %s", v[k].why);
		else
			table_warn(t, "MFU is unknown in %u of %u rows: %s", v[k].rows, m->n, v[k].why);
	}
	t->notes_answer = n > 1; /* of several, text shows all */
}

static int mfu_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct mfu *m = mfu_new(p);
	struct buf b = {0};
	int rc = 0;
	if (!m->n) {
		rc = err_set(e, ERR_DATA, "the input holds no kernels; to record them: %s", recording_how(p, RECORD_DEVICE_WORK));
	} else {
		section_start(&mfu_section, args, 0, out);
		for (uint32_t i = 0; i < m->n; i++)
			mfu_put_row(out, p, m, &m->v[i], &b);
		mfu_put_notes(out, m);
		mfu_put_reasons(out, m);
	}
	buf_release(&b);
	mfu_free(m);
	return rc;
}

const struct report report_mfu = {
	.name = "mfu",
	.title = "FLOPs, achieved rate and MFU",
	.help = "How many floating-point operations each GPU did in each step, which rate that is over the whole step, idle time included, and which "
	        "share of the GPU's peak (MFU, model FLOPs utilisation). The peak is that of the type and cores that do most of the FLOPs "
	        "of products. Unknown where shapes were not recorded for most products, or the GPU's peak is not known: then a note, and column why, say why. "
	        "Recomputed operations count twice.",
	.sections = (const struct section *const[]){&mfu_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.timeline = true,
	.run = mfu_run,
};
