#include "detect/shared.h"

#include "detect/dlprof.h"
#include "detect/torch_tidy.h"

struct shared {
	const struct profile *p;
	struct step_time window;
	bool has_window, captures;
	struct gaps *gaps;
	struct dlprof_run *dlprof;
	struct tidy *tidy;
	struct stacks *stacks;
	struct costs *costs;
	struct directions *directions;
	struct kernel_info *kernel; /* by name */
	uint8_t *tensor_core;    /* by name: 0 not asked, else enum tri + 1; then kernel[] is known, too */
};

struct shared *shared_new(const struct profile *p)
{
	struct shared *s = NEW(struct shared);
	s->p = p;
	return s;
}

void shared_free(struct shared *s)
{
	if (!s)
		return;
	intervals_release(&s->window.all);
	intervals_release(&s->window.busy);
	intervals_release(&s->window.idle);
	gaps_free(s->gaps);
	dlprof_run_free(s->dlprof);
	tidy_free(s->tidy);
	stacks_free(s->stacks);
	costs_free(s->costs);
	directions_free(s->directions);
	mem_free(s->kernel);
	mem_free(s->tensor_core);
	mem_free(s);
}

/* The thread of the steps' annotations; where there are none, that which launches most. */
static uint32_t find_main_track(const struct profile *p)
{
	if (p->steps->v[0].span != ROW_NONE && p->span.kind[p->steps->v[0].span] != SPAN_RANGE)
		return p->span.track[p->steps->v[0].span];
	uint32_t *calls = NEW_ARRAY(p->track.rows.n, uint32_t), best = ROW_NONE;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.call[g] == ROW_NONE)
			continue;
		uint32_t t = p->span.track[p->gpu_op.call[g]];
		calls[t]++;
		best = best == ROW_NONE || calls[t] > calls[best] ? t : best;
	}
	mem_free(calls);
	return best;
}

/* Whether a graph is captured in the steps. */
static bool captures(const struct profile *p, const struct step_time *w)
{
	uint8_t *known = NEW_ARRAY(p->strings.n, uint8_t);
	bool any = false;
	for (uint32_t i = 0; i < p->span.rows.n && !any; i++) {
		if (p->span.kind[i] != SPAN_CALL)
			continue;
		uint32_t name = p->span.name[i];
		if (!known[name])
			known[name] = str_has(profile_str(p, name), STR("StreamBeginCapture")) ? 2 : 1;
		any = known[name] == 2 && step_time_has(w, p->span.start_ns[i]);
	}
	mem_free(known);
	return any;
}

const struct step_time *shared_steps(struct findings *f)
{
	struct shared *s = f->shared;
	const struct profile *p = s->p;
	struct step_time *w = &s->window;
	if (s->has_window)
		return w;
	s->has_window = true;
	w->main_track = ROW_NONE;
	if (p->steps->whole_trace || !p->steps->n || p->durations_only)
		return w;
	w->n = p->steps->n;
	for (unsigned i = 0; i < w->n; i++)
		intervals_add(&w->all, p->steps->v[i].start_ns, p->steps->v[i].end_ns);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		intervals_add(&w->busy, p->gpu_op.start_ns[g], gpu_end(p, g));
	intervals_normalise(&w->all);
	intervals_normalise(&w->busy);
	intervals_intersect(&w->busy, &w->all, &w->busy);
	intervals_subtract(&w->all, &w->busy, &w->idle);
	w->ns = intervals_length(&w->all);
	w->idle_ns = intervals_length(&w->idle);
	w->main_track = find_main_track(p);
	s->captures = captures(p, w);
	return w;
}

const struct step_time *shared_window(struct findings *f, const struct detector *d)
{
	const struct shared *s = f->shared;
	const struct profile *p = s->p;
	const struct step_time *w = shared_steps(f);
	const char *why = NULL;
	if (!p->gpu_op.rows.n)
		why = "the input has no device work";
	else if (p->durations_only)
		why = "the input holds durations, but no times";
	else if (s->captures)
		why = "the steps capture a graph: nothing that they launch then runs";
	else if (!w->n || !w->ns)
		why = "no steps were found, and without them start-up is not told from steady work (--key-op=NAME says what marks a step)";
	if (why)
		findings_missing(f, d, "%s", why);
	return why ? NULL : w;
}

const struct gaps *shared_gaps(struct findings *f)
{
	struct shared *s = f->shared;
	if (!s->gaps)
		s->gaps = gaps_new(s->p, shared_stacks(f), &s->window.idle, s->window.main_track);
	return s->gaps;
}

struct dlprof_run **shared_dlprof(struct findings *f)
{
	return &f->shared->dlprof;
}

struct tidy **shared_tidy(struct findings *f)
{
	return &f->shared->tidy;
}

const struct stacks *shared_stacks(struct findings *f)
{
	struct shared *s = f->shared;
	if (!s->stacks)
		s->stacks = stacks_new(s->p);
	return s->stacks;
}

const struct costs *shared_costs(struct findings *f)
{
	struct shared *s = f->shared;
	if (!s->costs)
		s->costs = costs_new(s->p, COST_DEFAULT);
	return s->costs;
}

const struct directions *shared_directions(struct findings *f)
{
	struct shared *s = f->shared;
	if (!s->directions)
		s->directions = directions_new(s->p);
	return s->directions;
}

static void ask_kernel(struct shared *s, uint32_t name)
{
	if (!s->tensor_core) {
		s->kernel = NEW_ARRAY(s->p->strings.n, struct kernel_info);
		s->tensor_core = NEW_ARRAY(s->p->strings.n, uint8_t);
	}
	if (s->tensor_core[name])
		return;
	struct str text = profile_str(s->p, name);
	s->kernel[name] = kernel_classify(text);
	s->tensor_core[name] = (uint8_t)(1 + (kernel_uses_tc_compat(text) ? TRI_YES : s->kernel[name].tensor_core));
}

struct kernel_info shared_kernel(struct findings *f, uint32_t name)
{
	ask_kernel(f->shared, name);
	return f->shared->kernel[name];
}

enum tri shared_tensor_core(struct findings *f, uint32_t name)
{
	ask_kernel(f->shared, name);
	return (enum tri)(f->shared->tensor_core[name] - 1);
}

bool step_time_has(const struct step_time *w, int64_t time_ns)
{
	size_t a = 0, b = w->all.n;
	while (a < b) {
		size_t m = a + (b - a) / 2;
		if (w->all.v[m].end <= time_ns)
			a = m + 1;
		else
			b = m;
	}
	return a < w->all.n && w->all.v[a].start <= time_ns;
}

int64_t step_time_idle_within(const struct step_time *w, int64_t start, int64_t end)
{
	return start < end ? intervals_length_within(&w->idle, start, end) : 0;
}

double step_time_pct(const struct step_time *w, int64_t ns)
{
	return w->ns ? 100.0 * (double)ns / (double)w->ns : 0;
}

void finding_rests_on(struct finding *x, const struct step_time *w, uint64_t events, int64_t ns)
{
	x->has_events = x->has_time = true;
	x->events = events;
	x->time_ns = ns;
	x->has_share = w && w->ns;
	x->share_pct = x->has_share ? step_time_pct(w, ns) : 0;
}

void finding_gain(struct finding *x, const struct step_time *w, int64_t ns, const char *how)
{
	x->has_gain = w->n > 0;
	if (!x->has_gain)
		return;
	x->gain_ns_per_step = (ns < w->ns ? ns : w->ns) / w->n;
	x->bound = str_from(how);
}

void finding_looks_at(struct finding *x, int64_t from_ns, int64_t to_ns)
{
	if (to_ns <= from_ns || (x->has_window && to_ns - from_ns <= x->to_ns - x->from_ns))
		return;
	x->has_window = true;
	x->from_ns = from_ns;
	x->to_ns = to_ns;
}

void finding_looks_at_most(struct finding *x, const struct profile *p, const struct places *t)
{
	if (t->most_span != ROW_NONE)
		finding_looks_at(x, p->span.start_ns[t->most_span], span_end(p, t->most_span));
}

struct str finding_text(struct findings *f, struct buf *b)
{
	struct str s = arena_str(&f->arena, buf_view(b));
	buf_release(b);
	return s;
}
