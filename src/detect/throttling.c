#include "analysis/time/gpu_samples.h"
#include "detect/parts/shared.h"

/* Percent of the samples in which the GPU is slowed down: less than OFTEN is not told. A single sample is chance. */
static const double OFTEN = 5, MOSTLY = 50;
enum { SAMPLES_MIN = 2 };

static double throttling_share(const struct gpu_samples *s, uint64_t n) { return 100.0 * (double)n / (double)s->told; }

static void put_clocks(struct buf *b, const struct gpu_samples *s)
{
	if (s->slowed.n)
		buf_printf(b, "; SM clock %.0f MHz then", s->slowed.sum / (double)s->slowed.n);
	if (s->slowed.n && s->free.n)
		buf_printf(b, ", %.0f MHz while nothing held it back", s->free.sum / (double)s->free.n);
	if (s->metric[GPU_TEMPERATURE].n)
		buf_printf(b, "; up to %lld C", (long long)s->metric[GPU_TEMPERATURE].most);
	if (s->metric[GPU_POWER].n)
		buf_printf(b, ", up to %lld W", (long long)(s->metric[GPU_POWER].most / 1000));
}

static void throttling_report(struct findings *f, const struct gpu_samples *s, uint64_t n, enum finding_severity severity, const char *by, const char *advice)
{
	struct buf evidence = {0};
	struct finding *x = findings_add(f, severity);
	x->problem = arena_printf(&f->arena, "GPU %d is slowed down by %s in %.0f %% of the samples", s->device, by, throttling_share(s, n));
	buf_printf(&evidence, "%llu of %llu samples by NVML:", (unsigned long long)n, (unsigned long long)s->told);
	for (const struct gpu_reason *r = gpu_reasons; r->id; r++)
		if (s->reason[r->bit] && r->class != GPU_REASON_IDLE && r->class != GPU_REASON_CHOSEN)
			buf_printf(&evidence, " %s %llu", r->id, (unsigned long long)s->reason[r->bit]);
	put_clocks(&evidence, s);
	x->evidence = finding_text(f, &evidence);
	x->advice = arena_printf(&f->arena, "%s", advice);
	x->has_events = true;
	x->events = n;
	x->has_share = true;
	x->share_pct = throttling_share(s, n);
}

static void throttling_look(struct findings *f, const struct gpu_samples *s)
{
	uint64_t heat = s->class[GPU_REASON_HEAT], power = s->class[GPU_REASON_POWER], either = s->class[GPU_REASON_SLOWDOWN];
	if (heat >= SAMPLES_MIN && throttling_share(s, heat) >= OFTEN)
		throttling_report(f, s, heat, throttling_share(s, heat) >= MOSTLY ? FINDING_HIGH : FINDING_MEDIUM, "heat",
		                  "See to its cooling: air flow, fans, the temperature of the room, its neighbours; until then a lower power limit wastes less.");
	if (power >= SAMPLES_MIN && throttling_share(s, power) >= OFTEN)
		throttling_report(f, s, power, s->reason[7] >= SAMPLES_MIN ? FINDING_MEDIUM : FINDING_LOW, "its power limit",
		                  "Raise the limit where it is below the GPU's own (nvidia-smi -q -d POWER), and look at the power supply if the hardware brakes; at the "
		                  "GPU's own limit this is as fast as it goes, and only less work or a cheaper data type helps.");
	if (!heat && !power && either >= SAMPLES_MIN && throttling_share(s, either) >= OFTEN)
		throttling_report(f, s, either, FINDING_MEDIUM, "its hardware", "Look at its temperature and its power supply (nvidia-smi -q -d PERFORMANCE).");
}

static void throttling_run(const struct profile *p, struct findings *f)
{
	struct gpu_samples_list l;
	bool told = false;
	gpu_samples_measure(p, &l);
	for (uint32_t i = 0; i < l.n; i++) {
		told |= l.v[i].told >= SAMPLES_MIN;
		if (l.v[i].told >= SAMPLES_MIN)
			throttling_look(f, &l.v[i]);
	}
	if (!p->gpu_op.rows.n && !l.n)
		findings_missing(f, "the input has no device work");
	else if (!l.n)
		findings_missing(f, "the input has no samples of the GPUs' clocks");
	else if (!told)
		findings_missing(f, "fewer than %d samples tell what lowers the GPUs' clocks", SAMPLES_MIN);
	gpu_samples_release(&l);
}

const struct detector detector_throttling = {
	.id = "throttling",
	.title = "The GPU lowers its clocks",
	.why = "All kernels take longer by as much as the clock is lower, and not on all GPUs of a job alike: the others wait for the slowest.",
	.fix = "See to cooling and power supply, and to the power limit that is set.",
	.disprove = "With the clocks locked at the lower value (nvidia-smi -lgc) the steps take as long as now.",
	.run = throttling_run,
};
