#include "analysis/time/gpu_metrics.h"
#include "detect/detect.h"

static unsigned devices_used(const struct profile *p)
{
	struct gpu_metrics_list l;
	unsigned n = 0;
	gpu_metrics_measure(p, p->steps, &gpu_metrics_own, NULL, NULL, NULL, &l);
	for (unsigned i = 0; i < l.n; i++)
		n += l.v[i].kernels + l.v[i].copies + l.v[i].sets + l.v[i].outside > 0;
	gpu_metrics_release(&l);
	return n;
}

static void data_parallel_run(const struct profile *p, struct findings *f)
{
	uint32_t name = intern_find(&p->strings, STR("DataParallel.forward"));
	uint64_t calls = 0;
	for (uint32_t i = 0; name != INTERN_NONE && i < p->span.rows.n; i++)
		calls += p->span.name[i] == name;
	unsigned used = calls ? devices_used(p) : 0;
	if (used > 1) {
		struct finding *x = findings_add(f, FINDING_MEDIUM);
		x->problem = arena_printf(&f->arena, "The model runs on %u GPUs by DataParallel", used);
		x->evidence = arena_printf(&f->arena, "%llu calls of DataParallel.forward", (unsigned long long)calls);
		x->has_events = true;
		x->events = calls;
	}
}

const struct detector detector_data_parallel = {
	.id = "data-parallel",
	.title = "DataParallel on several GPUs",
	.why = "DataParallel drives all GPUs from one process and copies the model in every step.",
	.fix = "Use torch.nn.parallel.DistributedDataParallel, one process per GPU; it is faster even on one machine.",
	.disprove = "The calls of DataParallel.forward are of a model whose replicas are all on one GPU.",
	.report = "devices",
	.run = data_parallel_run,
};
