#include "detect/parts/inside.h"

/* Percent of the steps' time that the loop spends making batches while no device has work. */
static const double TOO_MUCH = 1, SEVERE = 10;

enum { OUTSIDE, LOADER };

static uint8_t single_process_dataloader_class_of(struct str name)
{
	return str_has(name, STR("_SingleProcessDataLoaderIter.__next__")) ? LOADER : OUTSIDE;
}

static void single_process_dataloader_report(const struct profile *p, struct findings *f, const struct step_time *w, const uint8_t *mark, const struct inside_cost *c)
{
	struct places t = {0};
	struct buf evidence = {0};
	double pct = step_time_pct(w, c->idle_ns);
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		bool outermost = p->span.parent[i] == ROW_NONE || mark[p->span.parent[i]] != LOADER;
		if (mark[i] == LOADER && outermost && step_time_has(w, p->span.start_ns[i]))
			places_add(&t, shared_stacks(f), profile_str(p, p->span.name[i]), i, 1, p->span.dur_ns[i]);
	}
	x->problem = arena_printf(&f->arena, "Batches are made in the training process itself, and the GPU has no work meanwhile for %.1f %% of the %s",
	                          pct, w->time);
	buf_printf(&evidence, "%s: ", w->per);
	finding_evidence(x, f, &evidence, &t, 2, w->n, true);
	finding_looks_at_most(x, p, &t);
	finding_measured(x, w, t.events, c->idle_ns, &c->when, "time without device work while the host is in the loader");
	places_release(&t);
}

static void single_process_dataloader_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	uint8_t *mark = inside_new(p, single_process_dataloader_class_of, NULL);
	struct inside_cost c = inside_cost_of(p, w, mark, LOADER);
	if (step_time_pct(w, c.idle_ns) >= TOO_MUCH)
		single_process_dataloader_report(p, f, w, mark, &c);
	inside_cost_release(&c);
	mem_free(mark);
}

const struct detector detector_single_process_dataloader = {
	.id = "single-process-dataloader",
	.title = "The data loader runs in the training process",
	.why = "With num_workers=0 the loop that launches GPU work also makes the batches, one after the other.",
	.fix = "Set num_workers to some CPU cores per GPU, persistent_workers=True and pin_memory=True.",
	.disprove = "The batch is made in no time (data in memory already), and workers only add copying: the step is longer with them.",
	.shares = "gpu-starvation",
	.report = "steps",
	.where = DETECT_WINDOW,
	.run = single_process_dataloader_run,
};
