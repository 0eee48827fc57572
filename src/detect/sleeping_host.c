#include "analysis/names/names.h"
#include "detect/parts/shared.h"

/* Percent of the window's time. */
static const double TOO_MUCH = 5, SEVERE = 20;
enum { PLACES_TOLD = 3 };

static uint8_t sleeps(struct str name)
{
	static const char *const names[] = {"<built-in function sleep>", "nanosleep", "clock_nanosleep", "usleep", "sleep"};
	return STR_IN(name, names);
}

/* Ranges of the threads that launch: others may sleep as they like. */
static uint8_t *find_launching(const struct profile *p, const struct step_time *w)
{
	uint8_t *launches = NEW_ARRAY(p->track.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.call[g] != ROW_NONE)
			launches[p->span.track[p->gpu_op.call[g]]] = 1;
	if (w->main_track != ROW_NONE)
		launches[w->main_track] = 1;
	return launches;
}

static void find_sleep(const struct profile *p, struct findings *f, const struct step_time *w, struct intervals *when, struct places *places)
{
	struct name_memo sleep = name_memo_new(p, sleeps);
	uint8_t *launches = find_launching(p, w);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t name = p->span.name[i];
		int64_t ns = name_memo_of(&sleep, name) && launches[p->span.track[i]] ? step_time_idle_within(w, p->span.start_ns[i], span_end(p, i)) : 0;
		if (!ns)
			continue;
		intervals_add(when, p->span.start_ns[i], span_end(p, i));
		places_add(places, shared_stacks(f), profile_str(p, name), i, 1, ns);
	}
	intervals_normalise(when);
	intervals_intersect(when, &w->idle, when);
	name_memo_release(&sleep);
	mem_free(launches);
}

/* A pause in a step is lost in each; one between first and last device work of a recording without steps may stand between two parts of the program. */
static void sleeping_host_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct intervals *when, const struct places *places)
{
	bool steps = w->kind == WINDOW_STEPS;
	int64_t ns = intervals_length(when);
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, !steps ? FINDING_INFO : pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The program sleeps, and the GPU has no work meanwhile: %.1f %% of the %s", pct, w->time);
	buf_printf(&evidence, "%s: ", w->per);
	places_text(places, PLACES_TOLD, w->n, true, &evidence);
	if (!steps)
		buf_cstr(&evidence, ". No steps were found: the pause may stand between two parts of the program, so that its end gains nothing");
	x->evidence = finding_text(f, &evidence);
	finding_looks_at_most(x, p, places);
	finding_rests_on(x, w, places->events, ns);
	finding_covers(x, when);
	if (steps)
		finding_gain(x, w, ns, "the time without work of the GPU while the program sleeps");
}

static void sleeping_host_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct intervals when = {0};
	struct places places = {0};
	find_sleep(p, f, w, &when, &places);
	if (step_time_pct(w, intervals_length(&when)) >= TOO_MUCH)
		sleeping_host_report(p, f, w, &when, &places);
	intervals_release(&when);
	places_release(&places);
}

const struct detector detector_sleeping_host = {
	.id = "sleeping-host",
	.title = "The program sleeps while the GPU waits",
	.why = "A thread that launches work and sleeps launches nothing: the GPU runs dry.",
	.fix = "Take the sleep out of the loop, or wait for what it waits for (an event, a queue) in another thread.",
	.disprove = "The pause was made on purpose, to set two parts of a measurement apart.",
	.shares = "gpu-starvation",
	.where = DETECT_WINDOW,
	.run = sleeping_host_run,
};
