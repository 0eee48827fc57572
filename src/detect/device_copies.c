#include "detect/parts/copies.h"
#include "detect/parts/inside.h"

/* Percent of the steps' time in which the GPU does nothing but such copies; copies a step. */
static const double TOO_MUCH = 2, SEVERE = 10;
enum { FEWEST = 10, PLACES_TOLD = 3 };

static bool is_within_device(const struct profile *p, uint32_t g)
{
	struct str name = profile_str(p, p->gpu_op.name[g]);
	return str_has(name, STR("DtoD")) || str_has(name, STR("DeviceToDevice")) || str_has(name, STR("Device-to-Device"));
}

static uint8_t device_copies_class_of(struct str name)
{
	return str_ends(name, STR("ddp.reducer::copy_bucket_to_grad"));
}

/* The copies from DistributedDataParallel's buckets to gradients, among those that copies_measure takes; as many go the other way. */
static uint64_t count_buckets(const struct profile *p, const struct step_time *w)
{
	uint8_t *mark = inside_new(p, device_copies_class_of, NULL);
	uint64_t n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		n += p->gpu_op.kind[g] == GPU_MEMCPY && copies_on_lead(p, w, g) && is_within_device(p, g) && step_time_has(w, p->gpu_op.start_ns[g]) &&
		     inside_of_gpu(p, mark, g);
	mem_free(mark);
	return n;
}

static void device_copies_report(const struct profile *p, struct findings *f, const struct step_time *w, struct copies *c)
{
	double pct = step_time_pct(w, c->exposed_ns);
	uint64_t buckets = count_buckets(p, w);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "In %.1f %% of the %s the GPU does nothing but copy within its own memory", pct, w->time);
	buf_printf(&evidence, "%s: ", w->per);
	put_mean(&evidence, (double)c->n / w->n);
	buf_cstr(&evidence, " copies of ");
	put_ns(&evidence, (double)c->device_ns / (double)c->n);
	buf_cstr(&evidence, " on average, with the idle time in their calls: ");
	places_text(&c->places, PLACES_TOLD, w->n, true, &evidence);
	if (buckets) {
		buf_cstr(&evidence, ". ");
		put_mean(&evidence, (double)buckets / w->n);
		buf_cstr(&evidence, " of them move gradients out of the buckets of DistributedDataParallel");
	}
	x->evidence = finding_text(f, &evidence);
	if (4 * buckets >= c->n)
		x->advice = STR("Let gradients be views of the buckets: DistributedDataParallel(..., gradient_as_bucket_view=True); then neither way is copied.");
	intervals_intersect(&c->when, &w->busy, &c->when);
	finding_looks_at_most(x, p, &c->places);
	finding_measured(x, w, c->n, c->exposed_ns, &c->when, "these copies where nothing hides them");
}

static void device_copies_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct copies c;
	copies_measure(p, f, w, is_within_device, &c);
	if (c.n >= (uint64_t)FEWEST * w->n && step_time_pct(w, c.exposed_ns) >= TOO_MUCH)
		device_copies_report(p, f, w, &c);
	copies_release(&c);
}

const struct detector detector_device_copies = {
	.id = "device-copies",
	.title = "Copies within the memory of a GPU",
	.why = "A copy within the device's memory reads and writes each byte once and computes nothing; between kernels it also costs a launch.",
	.fix = "Avoid what copies: contiguous(), clone() and cat() of what could be a view or be written in place (out=), and tensors in another memory format than the "
	       "next op wants.",
	.disprove = "The copies are needed: what they make is changed while the original is still used.",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = device_copies_run,
};
