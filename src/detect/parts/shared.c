#include "detect/parts/shared.h"

#include "analysis/names/names.h"
#include "analysis/time/thinned.h"
#include "base/search.h"
#include "detect/parts/attention_chains.h"
#include "detect/parts/kernel_grids.h"

#include <pthread.h>

/* Steps by a key op that are less certain than this do not count as steps: the time from the first to the last of them is one window. */
static const double LEAST_CERTAIN = 0.8;

/* What is made when the first detector asks. */
enum shared_what { SHARED_WINDOW, SHARED_THINNED, SHARED_GAPS, SHARED_ATTENTIONS, SHARED_STACKS, SHARED_LAYERS, SHARED_COSTS, SHARED_DIRECTIONS, SHARED_BESIDE, SHARED_N };

struct shared {
	const struct profile *p;
	struct shared_experts experts;
	pthread_mutex_t lock;          /* of the thread that makes something, which may ask for more */
	void *made[SHARED_N];          /* NULL = not made yet; written under the lock, and then constant */
};

struct shared_window {
	struct step_time t;
	bool captures;                 /* all steps capture a graph */
};

struct shared *shared_new(struct profile *p)
{
	struct shared *s = NEW(struct shared);
	pthread_mutexattr_t recursive;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	s->p = p;
	s->made[SHARED_LAYERS] = p->ops_layers;
	s->made[SHARED_STACKS] = p->ops_stacks;
	p->ops_layers = NULL;
	p->ops_stacks = NULL;
	return s;
}

static void window_free(struct shared_window *x)
{
	struct step_time *w = x ? &x->t : NULL;
	for (unsigned i = 0; w && i < w->gpus; i++) {
		intervals_release(&w->gpu[i].busy);
		intervals_release(&w->gpu[i].idle);
	}
	if (w) {
		mem_free(w->gpu);
		intervals_release(&w->all);
	}
	mem_free(x);
}

void shared_free(struct shared *s)
{
	if (!s)
		return;
	window_free(s->made[SHARED_WINDOW]);
	mem_free(s->made[SHARED_THINNED]);
	gaps_free(s->made[SHARED_GAPS]);
	if (s->experts.state)
		s->experts.release(s->experts.state);
	attentions_free(s->made[SHARED_ATTENTIONS]);
	stacks_free(s->made[SHARED_STACKS]);
	layers_free(s->made[SHARED_LAYERS]);
	costs_free(s->made[SHARED_COSTS]);
	directions_free(s->made[SHARED_DIRECTIONS]);
	mem_free(s->made[SHARED_BESIDE]);
	pthread_mutex_destroy(&s->lock);
	mem_free(s);
}

uint32_t steps_main_track(const struct profile *p)
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

static uint8_t begins_capture(struct str name)
{
	return str_has(name, STR("StreamBeginCapture"));
}

/* Whether the call begins to capture a graph. */
static bool shared_is_capture(const struct name_memo *captures, uint32_t span)
{
	const struct profile *p = captures->p;
	return p->span.kind[span] == SPAN_CALL && name_memo_of(captures, p->span.name[span]);
}

/* The last step that had begun on the host by then; -1 = none. */
static int64_t step_begun(const struct steps *st, int64_t time_ns)
{
	unsigned lo = FIRST_WHERE(i, 0, st->n, st->v[i].host_start_ns > time_ns);
	return (int64_t)lo - 1;
}

uint32_t shared_step_at(const struct steps *s, int64_t t)
{
	uint32_t a = FIRST_WHERE(i, 0, s->n, s->v[i].host_end_ns > t);
	return a < s->n && s->v[a].host_start_ns <= t ? a : ROW_NONE;
}

/* Whether a graph is captured in this time. */
static bool captures_in(const struct profile *p, int64_t start_ns, int64_t end_ns)
{
	struct name_memo calls = name_memo_new(p, begins_capture);
	bool any = ANY_WHERE(i, 0, p->span.rows.n,
	                     shared_is_capture(&calls, i) && p->span.start_ns[i] >= start_ns && p->span.start_ns[i] < end_ns);
	name_memo_release(&calls);
	return any;
}

/* Marks the steps in which a graph is captured: what they launch does not run. Returns how many steps it marked. */
static unsigned find_captures(const struct profile *p, uint8_t *captures)
{
	struct name_memo calls = name_memo_new(p, begins_capture);
	unsigned n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		int64_t at = shared_is_capture(&calls, i) ? step_begun(p->steps, p->span.start_ns[i]) : -1;
		if (at < 0 || captures[at] || p->span.start_ns[i] >= p->steps->v[at].host_end_ns)
			continue;
		captures[at] = 1;
		n++;
	}
	name_memo_release(&calls);
	return n;
}

/* Finds the time to look at; false: there is none. */
static bool choose_time(const struct profile *p, struct step_time *w, bool *all_capture)
{
	const struct steps *s = p->steps;
	if (!s->n || p->durations_only || s->window == WINDOW_RECORDING)
		return false;
	bool uneven = s->source == STEPS_GIVEN && s->certainty < LEAST_CERTAIN;
	w->kind = uneven ? WINDOW_DEVICE : s->window;
	if (uneven)
		intervals_add(&w->all, s->v[0].start_ns, s->v[s->n - 1].end_ns);
	uint8_t *captures = NEW_ARRAY(s->n, uint8_t);
	unsigned left_out = w->kind == WINDOW_STEPS ? find_captures(p, captures) : 0;
	for (unsigned i = 0; i < s->n && !uneven; i++)
		if (!captures[i] || left_out == s->n)
			intervals_add(&w->all, s->v[i].start_ns, s->v[i].end_ns);
	mem_free(captures);
	intervals_normalise(&w->all);
	w->n = uneven ? 1 : left_out == s->n ? s->n : s->n - left_out;
	*all_capture = w->kind == WINDOW_STEPS ? left_out && left_out == s->n : captures_in(p, s->v[0].host_start_ns, s->v[s->n - 1].end_ns);
	w->ns = intervals_length(&w->all);
	return w->ns > 0;
}

/* Sets each GPU's times. */
static void collect_gpus(struct shared *s, struct step_time *w)
{
	const struct profile *p = s->p;
	struct gpus gpus;
	gpus_find(p, &gpus);
	struct intervals *compute = NEW_ARRAY(gpus.n, struct intervals);
	w->gpu = NEW_ARRAY(gpus.n, struct gpu_time);
	w->gpus = gpus.n;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t i = gpus_of(&gpus, p, g);
		if (i == GPUS_NONE)
			continue;
		intervals_add(&w->gpu[i].busy, p->gpu_op.start_ns[g], gpu_end(p, g));
		if (p->gpu_op.kind[g] != GPU_KERNEL || !name_is(p, p->gpu_op.name[g], NAME_COMM_KERNEL))
			intervals_add(&compute[i], p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	for (uint32_t i = 0; i < gpus.n; i++) {
		struct gpu_time *t = &w->gpu[i];
		t->device = gpus.device[i];
		intervals_normalise(&t->busy);
		intervals_intersect(&t->busy, &w->all, &t->busy);
		intervals_subtract(&w->all, &t->busy, &t->idle);
		t->idle_ns = intervals_length(&t->idle);
		intervals_normalise(&compute[i]);
		intervals_intersect(&compute[i], &w->all, &compute[i]);
		t->compute_ns = intervals_length(&compute[i]);
		intervals_release(&compute[i]);
	}
	mem_free(compute);
	gpus_release(&gpus);
}

/* GPUs that compute less than this share of what the GPU with most computes are idle because they have less work (uneven-gpus says so). */
static const double LEAD_COMPUTES = 0.8;

static void choose_lead(struct step_time *w)
{
	int64_t most = 0;
	for (unsigned i = 0; i < w->gpus; i++)
		most = w->gpu[i].compute_ns > most ? w->gpu[i].compute_ns : most;
	w->lead = w->gpus;
	for (unsigned i = 0; i < w->gpus; i++)
		if ((double)w->gpu[i].compute_ns >= LEAD_COMPUTES * (double)most && (w->lead == w->gpus || w->gpu[i].idle_ns > w->gpu[w->lead].idle_ns))
			w->lead = i;
	if (w->lead < w->gpus) {
		w->busy = w->gpu[w->lead].busy;
		w->idle = w->gpu[w->lead].idle;
		w->idle_ns = w->gpu[w->lead].idle_ns;
	} else {
		w->idle = w->all;
		w->idle_ns = w->ns;
	}
}

static void *shared_make_window(struct findings *f)
{
	static const char *const time[] = {
		[WINDOW_STEPS] = "step time", [WINDOW_REPEATS] = "time in which the pattern of device work repeats",
		[WINDOW_DEVICE] = "time from the first to the last device work", [WINDOW_RECORDING] = "recorded time",
	};
	struct shared *s = f->shared;
	struct shared_window *x = NEW(struct shared_window);
	struct step_time *w = &x->t;
	w->main_track = ROW_NONE;
	if (!choose_time(s->p, w, &x->captures))
		return x;
	w->time = time[w->kind];
	w->per = w->kind == WINDOW_STEPS ? "Per step" : "In this time";
	w->a_step = w->kind == WINDOW_STEPS ? " a step" : "";
	collect_gpus(s, w);
	choose_lead(w);
	w->main_track = steps_main_track(s->p);
	return x;
}

static void *shared_make_thinned(struct findings *f)
{
	struct thinned *t = NEW(struct thinned);
	*t = thinned_of(f->shared->p);
	return t;
}

static void *shared_make_gaps(struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	return gaps_new(f->shared->p, shared_stacks(f), &w->idle, w->gpu[w->lead].device, w->main_track, NULL, 0);
}

static void *shared_make_attentions(struct findings *f)
{
	return attentions_new(f->shared->p, f);
}

static void *shared_make_stacks(struct findings *f)
{
	return stacks_new_linked(f->shared->p, shared_directions(f)->links);
}

static void *shared_make_layers(struct findings *f)
{
	return layers_new(f->shared->p);
}

static void *shared_make_costs(struct findings *f)
{
	return costs_new_linked(f->shared->p, &cost_own, shared_directions(f)->links);
}

static void *shared_make_directions(struct findings *f)
{
	return directions_new(f->shared->p);
}

static void *shared_make_beside(struct findings *f)
{
	return kernels_beside(f->shared->p);
}

static void shared_unlock(void *shared)
{
	pthread_mutex_unlock(&((struct shared *)shared)->lock);
}

static void *shared_make(struct findings *f, enum shared_what what)
{
	static void *(*const make[SHARED_N])(struct findings *f) = {
		[SHARED_WINDOW] = shared_make_window, [SHARED_THINNED] = shared_make_thinned, [SHARED_GAPS] = shared_make_gaps, [SHARED_ATTENTIONS] = shared_make_attentions,
		[SHARED_STACKS] = shared_make_stacks, [SHARED_LAYERS] = shared_make_layers, [SHARED_COSTS] = shared_make_costs, [SHARED_DIRECTIONS] = shared_make_directions,
		[SHARED_BESIDE] = shared_make_beside,
	};
	struct shared *s = f->shared;
	struct mem_undo undo;
	pthread_mutex_lock(&s->lock);
	mem_undo_begin(&undo, shared_unlock, s);
	void *made = s->made[what] ? s->made[what] : make[what](f);
	__atomic_store_n(&s->made[what], made, __ATOMIC_RELEASE);
	mem_undo_end(&undo);
	shared_unlock(s);
	return made;
}

/* What is there, or else is made now: by whoever asks first. */
static inline void *shared_of(struct findings *f, enum shared_what what)
{
	void *made = __atomic_load_n(&f->shared->made[what], __ATOMIC_ACQUIRE);
	return made ? made : shared_make(f, what);
}

const struct step_time *shared_steps(struct findings *f)
{
	return &((const struct shared_window *)shared_of(f, SHARED_WINDOW))->t;
}

static bool shared_any_busy(const struct step_time *w)
{
	return ANY_WHERE(i, 0, w->gpus, w->gpu[i].busy.n);
}

const char shared_thinned_why[] = "most events were taken out of this recording (the numbers of its ops and calls say so): its gaps are not those of the run";

bool shared_is_thinned(struct findings *f)
{
	const struct thinned *t = shared_of(f, SHARED_THINNED);
	if (thinned_is(t) && !f->tells_thinned)
		findings_note(f, arena_printf(&f->arena, "Most events were taken out of this recording: from one op to the next the profiler's numbers go up by %llu in the median, "
		              "from one API call to the next by %llu. Its gaps are not those of the run, and nothing is said of them.",
		              (unsigned long long)t->ops, (unsigned long long)t->calls));
	f->tells_thinned = thinned_is(t);
	return f->tells_thinned;
}

bool shared_has(struct findings *f, enum detector_where where)
{
	const struct shared *s = f->shared;
	const struct step_time *w = where >= DETECT_WINDOW ? shared_steps(f) : NULL;
	const char *why = NULL;
	if (where >= DETECT_DEVICE_WORK && !s->p->gpu_op.rows.n)
		why = "the input has no device work";
	else if (where >= DETECT_DEVICE_TIMES && s->p->durations_only)
		why = "the input holds durations, but no times";
	else if (w && ((const struct shared_window *)shared_of(f, SHARED_WINDOW))->captures)
		why = "the steps capture a graph: nothing that they launch then runs";
	else if (w && shared_is_thinned(f))
		why = shared_thinned_why;
	else if (w && (!w->n || !w->ns || !shared_any_busy(w)))
		why = "no device work of any length lies in the time looked at";
	if (why)
		findings_missing(f, "%s", why);
	return !why;
}

const struct gaps *shared_gaps(struct findings *f)
{
	return shared_of(f, SHARED_GAPS);
}

struct shared_experts *shared_experts(struct findings *f)
{
	return &f->shared->experts;
}

const struct attentions *shared_attentions(struct findings *f)
{
	return shared_of(f, SHARED_ATTENTIONS);
}

const struct stacks *shared_stacks(struct findings *f)
{
	return shared_of(f, SHARED_STACKS);
}

const struct costs *shared_costs(struct findings *f)
{
	return shared_of(f, SHARED_COSTS);
}

const uint8_t *shared_beside(struct findings *f)
{
	return shared_of(f, SHARED_BESIDE);
}

const struct layers *shared_layers(struct findings *f)
{
	return shared_of(f, SHARED_LAYERS);
}

const struct directions *shared_directions(struct findings *f)
{
	const struct layers *l = __atomic_load_n(&f->shared->made[SHARED_LAYERS], __ATOMIC_ACQUIRE);
	return l && l->dir ? l->dir : shared_of(f, SHARED_DIRECTIONS);
}

bool step_time_has(const struct step_time *w, int64_t time_ns)
{
	size_t a = FIRST_WHERE(i, 0, w->all.n, w->all.v[i].end > time_ns);
	return a < w->all.n && w->all.v[a].start <= time_ns;
}

int64_t step_time_idle_within(const struct step_time *w, int64_t start, int64_t end)
{
	return start < end ? intervals_length_within(&w->idle, start, end) : 0;
}

void put_lead(const struct step_time *w, struct buf *b)
{
	if (w->gpus > 1 && w->gpu[w->lead].device != INT32_MIN)
		buf_printf(b, "GPU %d", w->gpu[w->lead].device);
	else
		buf_cstr(b, "The GPU");
}

void put_idle_of_gpus(const struct step_time *w, struct buf *b)
{
	enum { TOLD = 8 };
	int64_t sum = 0;
	if (w->gpus < 2)
		return;
	buf_cstr(b, " (");
	for (unsigned i = 0; i < w->gpus; i++) {
		sum += w->gpu[i].idle_ns;
		if (i >= TOLD)
			continue;
		buf_printf(b, "%sGPU %d ", i ? ", " : "", w->gpu[i].device);
		put_ns(b, (double)w->gpu[i].idle_ns / w->n);
	}
	buf_cstr(b, w->gpus > TOLD ? ", ...; mean of all " : "; mean ");
	put_ns(b, (double)sum / w->gpus / w->n);
	buf_char(b, ')');
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

void finding_share(struct finding *x, uint64_t events, int64_t ns, double pct)
{
	finding_rests_on(x, NULL, events, ns);
	x->has_share = true;
	x->share_pct = pct;
}

void finding_gain(struct finding *x, const struct step_time *w, int64_t ns, const char *how)
{
	x->has_gain = w->n > 0;
	if (!x->has_gain)
		return;
	x->gain_ns_per_step = (ns < w->ns ? ns : w->ns) / w->n;
	x->bound = str_from(how);
}

void finding_covers(struct finding *x, const struct intervals *when)
{
	intervals_union(when, &(struct intervals){0}, &x->covers);
	x->has_covers = true;
}

void finding_measured(struct finding *x, const struct step_time *w, uint64_t events, int64_t ns, const struct intervals *when, const char *how)
{
	finding_rests_on(x, w, events, ns);
	finding_covers(x, when);
	finding_gain(x, w, ns, how);
}

void finding_covers_within(struct finding *x, const struct step_time *w, const struct intervals *when)
{
	intervals_intersect(when, &w->all, &x->covers);
	x->has_covers = w->n > 0;
}

void finding_covers_work(struct finding *x, const struct step_time *w, struct intervals *when)
{
	intervals_normalise(when);
	finding_covers_within(x, w, when);
	intervals_release(when);
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
	if (t->most_ns)
		finding_looks_at(x, p->span.start_ns[t->most_span], span_end(p, t->most_span));
}

struct str finding_text(struct findings *f, struct buf *b)
{
	struct str s = arena_str(&f->arena, buf_view(b));
	buf_release(b);
	return s;
}

void finding_evidence(struct finding *x, struct findings *f, struct buf *b, const struct places *t, unsigned max, unsigned steps, bool counts)
{
	places_text(t, max, steps, counts, b);
	x->evidence = finding_text(f, b);
}
