#include "analysis/names/names.h"
#include "analysis/steps/roles.h"
#include "detect/parts/shared.h"
#include "op/model_config.h"

#include <stdio.h>

/* Percent of the mean step. */
static const double TOO_MUCH = 5, SEVERE = 20;
enum { PLACES_TOLD = 3 };

/* The longest range of the loader in the steps; ROW_NONE. */
static uint32_t look_at_longest(const struct profile *p, const struct step_time *w, struct finding *x)
{
	uint32_t longest = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (name_is_dataloader(p, p->span.name[i]) && step_time_has(w, p->span.start_ns[i])) {
			finding_looks_at(x, p->span.start_ns[i], span_end(p, i));
			longest = longest == ROW_NONE || p->span.dur_ns[i] > p->span.dur_ns[longest] ? i : longest;
		}
	return longest;
}

/* When the host is in the loader and the GPU has no work. */
static void dataloader_bound_cover(const struct profile *p, const struct step_time *w, struct finding *x)
{
	struct intervals when = {0};
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (name_is_dataloader(p, p->span.name[i]))
			intervals_add(&when, p->span.start_ns[i], span_end(p, i));
	intervals_normalise(&when);
	intervals_intersect(&when, &w->idle, &when);
	finding_covers(x, &when);
	intervals_release(&when);
}

/* Whether that loader has workers already. PyTorch names its ranges by the class of the iterator; a program may have loaders with and without, so that
 * this goes before what it said of the one that it made last. *n = how many, 0 = not known. */
static bool has_workers(const struct profile *p, uint32_t range, int64_t *n)
{
	struct str name = range == ROW_NONE ? STR("") : profile_str(p, p->span.name[range]), said;
	if (!model_config_find(p, "num_workers", &said) || !str_to_i64(said, n) || *n < 0)
		*n = 0;
	return !str_has(name, STR("_SingleProcess")) && (*n || str_has(name, STR("_MultiProcessing")));
}

/* Where the loader has no workers, or the input does not tell, the advice is the general remedy. */
static void advise(const struct profile *p, struct findings *f, struct finding *x, uint32_t range)
{
	char number[48] = "";
	int64_t n;
	if (!has_workers(p, range, &n))
		return;
	if (n)
		snprintf(number, sizeof number, " (num_workers=%lld)", (long long)n);
	x->advice = arena_printf(&f->arena, "The DataLoader has workers already%s, and they are too slow: more of them, as far as there are CPU cores; cheaper transforms; "
	                         "pin_memory, a larger prefetch_factor where single batches are late, persistent_workers=True where epochs are short.", number);
}

/* The function or op of the loader in which the GPU waits longest; NULL: what is recorded inside of the loader's own range does not tell half of the time. */
static const struct place *longest_of_loader(const struct places *t)
{
	const struct place *best = NULL;
	int64_t own_ns = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		if (name_says_dataloader(intern_get(&t->texts, t->v[i].name)))
			own_ns += t->v[i].ns;
		else if (!best || t->v[i].ns > best->ns)
			best = &t->v[i];
	}
	return 2 * own_ns < t->ns ? best : NULL;
}

/* What the loader does while the GPU has no work, as far as that was recorded; where one function has most of it, that is to be mended first. */
static void tell_inside(struct findings *f, const struct step_time *w, struct finding *x)
{
	const struct places *t = &shared_gaps(f)->place[GAP_DATA];
	const struct place *best = longest_of_loader(t);
	struct buf b = {0};
	if (!best)
		return;
	buf_printf(&b, STR_FMT ". %s, while the GPU has no work, the loader is in ", STR_ARG(x->evidence), w->per);
	finding_evidence(x, f, &b, t, PLACES_TOLD, w->n, true);
	if (2 * best->ns < t->ns)
		return;
	struct str name = intern_get(&t->texts, best->name);
	x->advice = arena_printf(&f->arena, "First make " STR_FMT " faster, in which %.0f %% of that time goes: by a faster library or processor class, on the GPU, or once, with "
	                         "the results stored. Then: " STR_FMT, STR_ARG(name), 100.0 * (double)best->ns / (double)t->ns, STR_ARG(x->advice));
}

static void dataloader_bound_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	if (!w->n) {
		findings_missing(f, "no steps were found");
		return;
	}
	if (shared_is_thinned(f)) {
		findings_missing(f, "%s", shared_thinned_why);
		return;
	}
	struct roles *r = roles_new(p, p->steps, &roles_own, NULL, NULL);
	double pct = roles_share_pct(r, ROLE_DATALOADER);
	if (pct > TOO_MUCH) {
		struct finding *x = findings_add(f, pct > SEVERE ? FINDING_HIGH : FINDING_MEDIUM);
		x->problem = arena_printf(&f->arena, "This run has high time cost on input data loading: %.1f %% of the step time is in "
		                          "DataLoader%s", pct, r->has_device ? ", with the GPU idle" : "");
		x->evidence = arena_printf(&f->arena, "DataLoader %.3f ms of a mean step of %.3f ms, over %u step%s",
		                           roles_mean_ns(r, ROLE_DATALOADER) / 1e6, roles_mean_step_ns(r) / 1e6, r->n, r->n == 1 ? "" : "s");
		advise(p, f, x, look_at_longest(p, w, x));
		if (r->has_device && shared_has(f, DETECT_WINDOW))
			tell_inside(f, w, x);
		finding_rests_on(x, w, r->n, r->sum.ns[ROLE_DATALOADER]);
		x->share_pct = pct;
		dataloader_bound_cover(p, w, x);
		finding_gain(x, w, r->sum.ns[ROLE_DATALOADER], "the time in DataLoader without device work");
	}
	roles_free(r);
}

const struct detector detector_dataloader_bound = {
	.id = "dataloader-bound",
	.title = "The GPU waits for the data loader",
	.why = "While the training loop waits for the next batch no work is launched, and the GPU runs dry.",
	.fix = "Set num_workers > 0 on the DataLoader so that batches are made by other processes; then pin_memory, "
	       "prefetch_factor and cheaper transforms.",
	.disprove = "The step takes as long with one batch, made before the loop and used again and again.",
	.shares = "gpu-starvation single-process-dataloader",
	.report = "steps",
	.run = dataloader_bound_run,
};
