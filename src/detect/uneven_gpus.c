#include "analysis/time/busy.h"
#include "detect/parts/shared.h"

/* Percent by which the computing time of the least loaded device is below that of the most loaded one. A tenth comes from the data; no
 * guide gives a figure. */
static const double TOO_UNEVEN = 20, SEVERE = 40;
/* Percent of the steps' time that the most loaded device computes: below, no device does much. */
static const double LEAST_BUSY = 10;
enum { DEVICES_MAX = 64 };

struct uneven_gpus_load {
	int32_t device;
	int64_t ns;
};

/* Devices with kernels, and in of[] which each kernel is on: index + 1; 0 = none. */
static unsigned uneven_gpus_find_devices(const struct profile *p, struct uneven_gpus_load *v, uint8_t *of)
{
	unsigned n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int32_t device = p->launch.device[p->gpu_op.launch[g]];
		unsigned i = 0;
		if (p->gpu_op.kind[g] != GPU_KERNEL)
			continue;
		while (i < n && v[i].device != device)
			i++;
		if (i == n && n == DEVICES_MAX)
			continue;
		if (i == n)
			v[n++] = (struct uneven_gpus_load){device, 0};
		of[g] = (uint8_t)(i + 1);
	}
	return n;
}

static void uneven_gpus_report(struct findings *f, const struct step_time *w, const struct uneven_gpus_load *v, unsigned n, const struct uneven_gpus_load *most, const struct uneven_gpus_load *least)
{
	int64_t sum = 0;
	double pct = 100.0 * (double)(most->ns - least->ns) / (double)most->ns;
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "GPU %d computes %.0f %% less than GPU %d", least->device, pct, most->device);
	buf_cstr(&evidence, "Computing time a step, without communication:");
	for (unsigned i = 0; i < n; i++) {
		buf_printf(&evidence, "%s GPU %d ", i ? "," : "", v[i].device);
		put_ns(&evidence, (double)v[i].ns / w->n);
		sum += v[i].ns;
	}
	x->evidence = finding_text(f, &evidence);
	finding_rests_on(x, w, n, most->ns - least->ns);
	finding_gain(x, w, most->ns - sum / n, "computing time of the most loaded GPU - the mean of all");
}

static void uneven_gpus_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct uneven_gpus_load *v = NEW_ARRAY(DEVICES_MAX, struct uneven_gpus_load), *most = v, *least = v;
	uint8_t *of = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	unsigned n = uneven_gpus_find_devices(p, v, of);
	for (unsigned i = 0; n > 1 && i < n; i++) {
		struct busy b;
		busy_measure(p, of, (uint8_t)(i + 1), &w->all, &b);
		v[i].ns = b.ns[BUSY_COMPUTE];
		most = v[i].ns > most->ns ? &v[i] : most;
		least = v[i].ns < least->ns ? &v[i] : least;
	}
	if (n > 1 && step_time_pct(w, most->ns) >= LEAST_BUSY && 100.0 * (double)(most->ns - least->ns) >= TOO_UNEVEN * (double)most->ns)
		uneven_gpus_report(f, w, v, n, most, least);
	mem_free(of);
	mem_free(v);
}

const struct detector detector_uneven_gpus = {
	.id = "uneven-gpus",
	.title = "Some GPUs compute much less than others",
	.why = "All wait for the one with most work, in collectives or at the end of the step.",
	.fix = "Give each GPU the same work: batches of equal length, stages of equal cost, nothing that only one rank does.",
	.disprove = "The GPUs run different parts of a pipeline that overlap over several steps, so that none waits.",
	.report = "devices",
	.where = DETECT_WINDOW,
	.run = uneven_gpus_run,
};
