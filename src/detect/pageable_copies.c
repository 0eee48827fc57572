#include "detect/parts/copies.h"

/* Percent of the steps' time that such copies, or the host in their calls, keep the device from other work. */
static const double TOO_MUCH = 1, SEVERE = 10;
/* Smaller copies tell latency, not the rate of the bus. */
enum { PLACES_TOLD = 2, RATE_LEAST_BYTES = 1 << 20 };

static bool is_pageable(const struct profile *p, uint32_t g)
{
	struct str name = profile_str(p, p->gpu_op.name[g]);
	return copy_way(name) != COPY_NEITHER && copy_is_pageable(name) == TRI_YES;
}

/* How many copies between host and device do not tell whether their memory is pageable. */
static uint64_t pageable_copies_count_unknown(const struct profile *p, const struct step_time *w)
{
	uint64_t n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		struct str name = profile_str(p, p->gpu_op.name[g]);
		n += p->gpu_op.kind[g] == GPU_MEMCPY && step_time_has(w, p->gpu_op.start_ns[g]) && copy_way(name) != COPY_NEITHER &&
		     copy_is_pageable(name) == TRI_UNKNOWN;
	}
	return n;
}

static void pageable_copies_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct copies *c)
{
	int64_t ns = c->exposed_ns + c->idle_ns;
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "Copies from or to pageable host memory keep the GPU from other work for %.1f %% of the %s", pct, w->time);
	buf_printf(&evidence, "%s: %.*f copies of %.2f MiB together; ", w->per, c->n % w->n ? 1 : 0, (double)c->n / w->n, (double)c->bytes / w->n / (1 << 20));
	put_ns(&evidence, (double)c->exposed_ns / w->n);
	buf_cstr(&evidence, " of copying that nothing hides, and ");
	put_ns(&evidence, (double)c->idle_ns / w->n);
	buf_cstr(&evidence, " without device work while the host is in their calls: ");
	places_text(&c->places, PLACES_TOLD, w->n, true, &evidence);
	if (c->bytes >= RATE_LEAST_BYTES && c->device_ns)
		buf_printf(&evidence, ". They run at %.1f GB/s", (double)c->bytes / (double)c->device_ns);
	buf_printf(&evidence, ". Kernels run beside copies and sets in %.1f %% of the time in which the GPU works", copies_overlap_pct(p, w));
	x->evidence = finding_text(f, &evidence);
	finding_looks_at_most(x, p, &c->places);
	finding_measured(x, w, c->n, ns, &c->when, "these copies where nothing hides them, and the idle time in their calls");
}

static void pageable_copies_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct copies c;
	copies_measure(p, f, w, is_pageable, &c);
	if (step_time_pct(w, c.exposed_ns + c.idle_ns) >= TOO_MUCH)
		pageable_copies_report(p, f, w, &c);
	else if (!c.n && pageable_copies_count_unknown(p, w))
		findings_missing(f, "the input does not tell pageable from pinned memory");
	copies_release(&c);
}

const struct detector detector_pageable_copies = {
	.id = "pageable-copies",
	.title = "Copies from or to pageable host memory",
	.why = "A copy of pageable memory goes through a staging buffer, at less than half the speed, and the host waits for it, whether "
	       "non_blocking or not.",
	.fix = "Use DataLoader(pin_memory=True), or tensor.pin_memory() once, and .to(device, non_blocking=True), so that copies run beside "
	       "kernels.",
	.disprove = "With pinned memory the step is no shorter: then the copy waits for the data, or nothing is there to hide it.",
	.shares = "gpu-starvation",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = pageable_copies_run,
};
