#include "detect/parts/gpu_most.h"
#include "detect/parts/kernel_grids.h"

/* Percent of the device time (without collectives) for which SMs had no block; of the steps' time that can go: less is not told, and for the
 * severity. */
static const double TOO_MUCH = 10, LEAST = 1, LITTLE = 3, SEVERE = 15;
enum { PLACES_TOLD = 3 };

struct few_blocks_measured {
	struct places places;
	struct gpu_most most;    /* time that they lose */
	int64_t device_ns, lost_ns;
	bool no_sms, no_grid;    /* the SMs of a kernel's device are not stated; the grid of a launch is not */
};

static void few_blocks_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct few_blocks_measured *m)
{
	const uint8_t *beside = shared_beside(f);
	struct buf text = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t launch = p->gpu_op.launch[g], name = p->gpu_op.name[g];
		int64_t ns = p->gpu_op.dur_ns[g];
		if ((w->n && !step_time_has(w, p->gpu_op.start_ns[g])) || kernel_waits(p, name))
			continue;
		m->device_ns += ns;
		if (p->gpu_op.kind[g] != GPU_KERNEL || launch == ROW_NONE || ns < KERNEL_SHORTEST_NS)
			continue;
		int sms = launch_sms(p, launch);
		double blocks = launch_blocks(p, launch);
		m->no_sms |= sms <= 0;
		m->no_grid |= blocks <= 0;
		if (beside[g] || sms <= 0 || blocks <= 0 || blocks >= sms)
			continue;
		buf_clear(&text);
		struct str kernel = kernel_function_name(profile_str(p, name));
		buf_printf(&text, "%.0f %s for %d SMs: " STR_FMT, blocks, blocks == 1 ? "block" : "blocks", sms, STR_ARG(kernel));
		places_add(&m->places, shared_stacks(f), buf_view(&text), p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g], 1, ns);
		int64_t lost = (int64_t)((double)ns * (1 - blocks / sms));
		m->lost_ns += lost;
		gpu_most_add(&m->most, p, g, lost);
	}
	gpu_most_choose(&m->most, w);
	buf_release(&text);
}

static void few_blocks_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct few_blocks_measured *m)
{
	double pct = 100.0 * (double)m->lost_ns / (double)m->device_ns, of_steps = w->n ? step_time_pct(w, m->most.ns) : 0;
	struct buf b = {0};
	struct finding *x = findings_add(f, of_steps >= SEVERE ? FINDING_MEDIUM : of_steps >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "Kernels with fewer blocks than the GPU has SMs leave SMs without work for %.1f %% of the device time (without "
	                          "collectives)", pct);
	buf_cstr(&b, w->n > 1 ? "Per step, alone on the GPU: " : "Alone on the GPU: ");
	finding_evidence(x, f, &b, &m->places, PLACES_TOLD, w->n, true);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	finding_gains_most(x, f, w, &m->most, "time of these kernels x (1 - blocks / SMs), as if their work spread over all SMs");
}

static void few_blocks_run(const struct profile *p, struct findings *f)
{
	struct few_blocks_measured m = {0};
	const struct step_time *w = shared_steps(f);
	gpu_most_init(&m.most, p);
	few_blocks_measure(p, f, w, &m);
	bool counts = !w->n || step_time_pct(w, m.most.ns) >= LEAST;
	if (counts && m.device_ns && 100.0 * (double)m.lost_ns >= TOO_MUCH * (double)m.device_ns)
		few_blocks_report(p, f, w, &m);
	else if (!m.places.n && (m.no_sms || m.no_grid))
		findings_missing(f, m.no_sms ? "the input does not say how many SMs the GPUs have" : "the input does not state the kernels' grids");
	places_release(&m.places);
	gpu_most_release(&m.most);
}

const struct detector detector_few_blocks = {
	.id = "few-blocks",
	.title = "Kernels too small for the GPU",
	.why = "A block runs on one SM: a kernel of fewer blocks than there are SMs leaves the others without work, however long it takes.",
	.fix = "Give each launch more work (a larger batch, several tensors at once), split long sums over more blocks, or run such kernels on streams beside "
	       "each other. Kernels of your own: more, smaller blocks.",
	.disprove = "With twice the batch these kernels take twice as long; or they run beside those of another process.",
	.shares = "no-tensor-cores tf32-off unfused-elementwise unfused-attention unaligned-gemm recomputation unfused-optimizer launch-bound conv-bias",
	.report = "kernels",
	.where = DETECT_DEVICE_TIMES,
	.run = few_blocks_run,
};
