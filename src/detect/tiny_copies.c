#include "detect/copies.h"

/* Up to this a copy takes less on the bus (2 us at 12 GB/s) than the host takes to order it. */
static const int64_t TINY_BYTES = 24 * 1024;
/* Copies a step; fewer are flags and results that a step may well need. */
enum { TOO_MANY = 20, PLACES_TOLD = 3 };
/* Percent of the steps' time that they keep the device from other work. */
static const double TOO_MUCH = 1, SEVERE = 10;

extern const struct detector detector_tiny_copies;

static bool is_tiny(const struct profile *p, uint32_t g)
{
	int64_t bytes = p->launch.bytes[p->gpu_op.launch[g]];
	return bytes > 0 && bytes <= TINY_BYTES && copy_way(profile_str(p, p->gpu_op.name[g])) != COPY_NEITHER;
}

static void report(const struct profile *p, struct findings *f, const struct step_time *w, const struct copies *c)
{
	int64_t ns = c->exposed_ns + c->idle_ns;
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, &detector_tiny_copies, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "%.0f copies a step between host and GPU are of %lld KiB or less and keep the GPU from other work for "
	                          "%.1f %% of the step time", (double)c->n / w->n, (long long)(TINY_BYTES / 1024), pct);
	buf_printf(&evidence, "They move %.1f KiB each on average. Per step: ", (double)c->bytes / (double)c->n / 1024);
	places_text(&c->places, PLACES_TOLD, w->n, true, &evidence);
	x->evidence = finding_text(f, &evidence);
	finding_looks_at_most(x, p, &c->places);
	finding_rests_on(x, w, c->n, ns);
	finding_gain(x, w, ns, "these copies where nothing hides them, and the idle time in their calls");
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	const struct step_time *w = shared_window(f, &detector_tiny_copies);
	struct copies c;
	if (!w)
		return 0;
	copies_measure(p, f, w, is_tiny, &c);
	if (c.n >= (uint64_t)TOO_MANY * w->n && step_time_pct(w, c.exposed_ns + c.idle_ns) >= TOO_MUCH)
		report(p, f, w, &c);
	places_release(&c.places);
	return 0;
}

const struct detector detector_tiny_copies = {
	.id = "tiny-copies",
	.title = "Many tiny copies between host and GPU",
	.why = "A copy costs some 10 us whatever its size; many small ones cost far more than one of the same bytes.",
	.fix = "Make small tensors on the GPU (torch.zeros(..., device=...)), stack values on one side and copy them once, keep scalars as "
	       "Python numbers or as tensors of the GPU.",
	.disprove = "The step takes as long when the values are made on the GPU: then other work of the host sets the pace.",
	.shares = "gpu-starvation pageable-copies",
	.report = "memcpy",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run = run,
};
