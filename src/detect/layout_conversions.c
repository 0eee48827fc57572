#include "analysis/names/names.h"
#include "detect/parts/gpu_most.h"

/* Percent of the time of kernels (without collectives) in conversions; percent of the steps' time for the severity. */
static const double TOO_MUCH = 5, LITTLE = 3, SEVERE = 15;
enum { PLACES_TOLD = 4 };

/* What a name says. Kernels that convert between layouts or between types, as its arguments have it (cuDNN's convertTensor_kernel), are none of these. */
enum layout_conversions_name { NAME_OTHER, NAME_TO_NHWC, NAME_TO_NCHW };

struct layout_conversions_measured {
	struct places places;
	struct gpu_most most;    /* their time */
	int64_t kernel_ns;       /* of all kernels but collectives */
	uint64_t kernels[NAME_TO_NCHW + 1]; /* by enum layout_conversions_name, of convolutions */
	bool unattributed;       /* such a kernel ran, and its op is not known */
};

/* cuDNN's kernels, which it launches around a convolution that computes in the other layout. */
static uint8_t layout_conversions_of(struct str name)
{
	return str_has(name, STR("nchwToNhwcKernel")) ? NAME_TO_NHWC : str_has(name, STR("nhwcToNchwKernel")) ? NAME_TO_NCHW : NAME_OTHER;
}

static bool layout_conversions_is_conv(struct str op)
{
	return str_has(op, STR("conv")) && !str_has(op, STR("convert"));
}

static void layout_conversions_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct layout_conversions_measured *m)
{
	struct name_memo names = name_memo_new(p, layout_conversions_of);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || (w->n && !step_time_has(w, p->gpu_op.start_ns[g])) || gpu_kernel(p, g)->class == KERNEL_COMM)
			continue;
		m->kernel_ns += p->gpu_op.dur_ns[g];
		uint8_t way = name_memo_of(&names, p->gpu_op.name[g]);
		uint32_t op = p->gpu_op.op[g];
		m->unattributed |= way != NAME_OTHER && op == ROW_NONE;
		if (way == NAME_OTHER || op == ROW_NONE || !layout_conversions_is_conv(profile_str(p, p->span.name[op])))
			continue;
		m->kernels[way]++;
		places_add(&m->places, shared_stacks(f), profile_str(p, p->span.name[op]), op, 1, p->gpu_op.dur_ns[g]);
		gpu_most_add(&m->most, p, g, p->gpu_op.dur_ns[g]);
	}
	gpu_most_choose(&m->most, w);
	name_memo_release(&names);
}

static void layout_conversions_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct layout_conversions_measured *m)
{
	double pct = 100.0 * (double)m->places.ns / (double)m->kernel_ns, of_steps = w->n ? step_time_pct(w, m->most.ns) : 0;
	unsigned steps = w->n ? w->n : 1;
	struct buf b = {0};
	struct finding *x = findings_add(f, of_steps >= SEVERE ? FINDING_MEDIUM : of_steps >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the time of kernels (without collectives) goes to those that only change the memory layout of the tensors of "
	                          "convolutions, from NCHW to NHWC or back", pct);
	if (w->n)
		buf_printf(&b, "%.1f %% of the %s: ", of_steps, w->time);
	put_mean(&b, (double)m->kernels[NAME_TO_NHWC] / steps);
	buf_printf(&b, " kernels%s to NHWC, ", w->n ? w->a_step : "");
	put_mean(&b, (double)m->kernels[NAME_TO_NCHW] / steps);
	buf_cstr(&b, " back to NCHW, in: ");
	finding_evidence(x, f, &b, &m->places, PLACES_TOLD, w->n, true);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	finding_gains_most(x, f, w, &m->most, "all the time of these conversions");
}

static void layout_conversions_run(const struct profile *p, struct findings *f)
{
	struct layout_conversions_measured m = {0};
	const struct step_time *w = shared_steps(f);
	gpu_most_init(&m.most, p);
	layout_conversions_measure(p, f, w, &m);
	if (m.kernel_ns && 100.0 * (double)m.places.ns >= TOO_MUCH * (double)m.kernel_ns)
		layout_conversions_report(p, f, w, &m);
	else if (m.unattributed)
		findings_missing(f, "no kernel can be attributed to an operator");
	places_release(&m.places);
	gpu_most_release(&m.most);
}

const struct detector detector_layout_conversions = {
	.id = "layout-conversions",
	.title = "Convolutions change the memory layout of their tensors",
	.why = "cuDNN's fast convolutions compute in NHWC; around each whose tensors lie in NCHW, it turns inputs, weights and results around, which reads and writes all of them and computes nothing.",
	.fix = "Keep model and inputs in channels_last: model = model.to(memory_format=torch.channels_last), images = images.to(memory_format=torch.channels_last), once before "
	       "the loop and once for each batch; ops between the convolutions must keep that layout (no view() or custom kernel that makes tensors contiguous).",
	.disprove = "The step takes as long in channels_last: an op of the model turns the tensors back, or the convolutions that cuDNN then chooses are slower.",
	.shares = "far-from-roofline few-blocks low-occupancy recomputation no-tensor-cores tf32-off cudnn-benchmark",
	.report = "kernels",
	.where = DETECT_DEVICE_WORK,
	.run = layout_conversions_run,
};
