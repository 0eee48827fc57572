#include "analysis/steps/steps.h"

#include "analysis/analysis.h"
#include "analysis/recording.h"
#include "analysis/steps/iterations.h"
#include "analysis/steps/serving_steps.h"
#include "analysis/steps/step_begin.h"
#include "analysis/time/interval.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "store/torch_names.h"

#include <stdio.h>
#include <sys/param.h>

const char *const step_source_name[STEP_SOURCES] = {
	[STEPS_NONE] = "none",   [STEPS_GIVEN] = "given",         [STEPS_PROFILER] = "profiler",
	[STEPS_NAMED] = "named", [STEPS_OPTIMIZER] = "optimizer", [STEPS_PERIOD] = "period",
};

/* What is known of a step while it is being placed. */
struct draft {
	struct step step;
	int64_t latest_host_end;          /* of this and all earlier steps */
	bool partial;                     /* before the first or after the last border */
	int64_t device_first, device_last; /* of the device work it launched; first > last: none */
};

struct drafts {
	struct draft *v;
	unsigned n, cap;
	unsigned last;                    /* the answer of step_first_open before */
};

static void draft_add(struct drafts *d, struct str name, int64_t start, int64_t end, uint32_t span)
{
	MEM_PUSH(d->v, d->n, d->cap, (struct draft){
		.step = {.name = name, .host_start_ns = start, .host_end_ns = end, .start_ns = start, .end_ns = end, .span = span},
		.device_first = INT64_MAX, .device_last = INT64_MIN,
	});
}

static void collect_annotations(const struct profile *p, struct drafts *d)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_USER && p->span.kind[i] != SPAN_OP)
			continue;
		struct str number = profile_str(p, p->span.name[i]);
		if (!str_skip(&number, STR(TORCH_STEP)))
			continue;
		draft_add(d, number, p->span.start_ns[i], span_end(p, i), i);
	}
}

static void sort_by_time(struct drafts *d)
{
	struct sort_item *item = NEW_ARRAY(d->n, struct sort_item);
	struct draft *sorted = NEW_ARRAY(d->n, struct draft);
	for (unsigned i = 0; i < d->n; i++)
		item[i] = (struct sort_item){sort_key_i64(d->v[i].step.start_ns), i, 0};
	sort_items(item, d->n);
	int64_t latest = INT64_MIN;
	for (unsigned i = 0; i < d->n; i++) {
		sorted[i] = d->v[item[i].row];
		latest = MAX(latest, sorted[i].step.host_end_ns);
		sorted[i].latest_host_end = latest;
		if (!str_to_i64(sorted[i].step.name, &sorted[i].step.number))
			sorted[i].step.number = i; /* the name of a ProfilerStep# with no number */
	}
	mem_free(item);
	mem_free(d->v);
	d->v = sorted;
	d->cap = d->n;
}

struct steps_extent {
	int64_t first, last;
};

static void steps_extend(struct steps_extent *x, int64_t start, int64_t end)
{
	x->first = MIN(x->first, start);
	x->last = MAX(x->last, end);
}

/* From the first to the last op; of whatever else there is when there are no ops. */
static struct steps_extent extent_of_ops(const struct profile *p)
{
	struct steps_extent ops = {INT64_MAX, INT64_MIN}, host = ops, device = ops;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		bool op = p->span.kind[i] == SPAN_OP ||
		          (p->span.kind[i] == SPAN_PYTHON && str_eq(profile_cat(p, p->span.cat[i]), STR("python")));
		if (op)
			steps_extend(&ops, p->span.start_ns[i], span_end(p, i));
		if (p->span.kind[i] != SPAN_TRACE)
			steps_extend(&host, p->span.start_ns[i], span_end(p, i));
	}
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		steps_extend(&device, p->gpu_op.start_ns[i], gpu_end(p, i));
	return ops.first <= ops.last ? ops : host.first <= host.last ? host : device;
}

/* The first step that has not ended at this time. Calls come in order of time, mostly, so that the answer is that of the call before. */
static unsigned step_first_open(struct drafts *d, int64_t time)
{
	const unsigned i = d->last;
	if ((i == d->n || d->v[i].latest_host_end > time) && (!i || d->v[i - 1].latest_host_end <= time)) /* latest_host_end never falls: there is one such i */
		return i;
	return d->last = FIRST_WHERE(k, 0, d->n, d->v[k].latest_host_end > time);
}

/* The step that wholly contains the API call; NULL when it stands outside or crosses a border. */
static struct draft *step_around(struct drafts *d, int64_t start, int64_t end)
{
	const unsigned lo = step_first_open(d, start);
	if (lo == d->n || d->v[lo].step.host_start_ns > start || d->v[lo].step.host_end_ns < end)
		return NULL;
	return &d->v[lo];
}

static struct draft *step_of_gpu_op(const struct profile *p, struct drafts *d, uint32_t g)
{
	uint32_t call = p->gpu_op.call[g];
	return call == ROW_NONE ? NULL : step_around(d, p->span.start_ns[call], span_end(p, call));
}

/* Device work launched in each step. Returns whether there is any. */
static bool match_device_work(const struct profile *p, struct drafts *d)
{
	bool any = false;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		struct draft *s = step_of_gpu_op(p, d, g);
		if (!s)
			continue;
		any = true;
		s->step.device_ops++;
		s->device_first = MIN(s->device_first, p->gpu_op.start_ns[g]);
		s->device_last = MAX(s->device_last, gpu_end(p, g));
	}
	return any;
}

/* Where the work of the time before the first step ends on the device: the first step cannot have begun earlier. */
static int64_t end_before_first(const struct profile *p, struct drafts *d)
{
	int64_t end = d->v[0].step.host_start_ns;
	if (!d->v[0].step.device_ops)
		return end;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (gpu_end(p, g) < d->v[0].device_first && gpu_end(p, g) > end && !step_of_gpu_op(p, d, g))
			end = gpu_end(p, g);
	return end;
}

static void stretch_to_device(const struct profile *p, struct drafts *d)
{
	int64_t previous = end_before_first(p, d);
	for (unsigned i = 0; i < d->n; i++) {
		struct step *s = &d->v[i].step;
		s->start_ns = MAX(s->start_ns, previous);
		if (s->device_ops && d->v[i].device_last > s->end_ns)
			s->end_ns = d->v[i].device_last;
		s->end_ns = MAX(s->end_ns, s->start_ns);
		previous = s->end_ns;
	}
}

/* For each name, how many calls have it, and how many of these have device work with their correlation id. */
struct steps_launchers {
	uint32_t *calls, *with_work;
	struct idset work; /* correlation ids of device work */
};

static void launchers_init(struct steps_launchers *l, const struct profile *p)
{
	const struct gpu_ops *g = &p->gpu_op;
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->corr_id[i] == ID_NONE)
			continue;
		min = g->corr_id[i] < min ? g->corr_id[i] : min;
		max = g->corr_id[i] > max ? g->corr_id[i] : max;
	}
	idset_init(&l->work, min, max, g->rows.n);
	for (uint32_t i = 0; i < g->rows.n; i++)
		if (g->corr_id[i] != ID_NONE)
			idset_put(&l->work, g->corr_id[i]);
	l->calls = NEW_ARRAY(p->strings.n, uint32_t);
	l->with_work = NEW_ARRAY(p->strings.n, uint32_t);
}

static void launchers_release(struct steps_launchers *l)
{
	idset_release(&l->work);
	mem_free(l->calls);
	mem_free(l->with_work);
}

static bool steps_has_work(const struct steps_launchers *l, const struct profile *p, uint32_t call)
{
	return p->span.link_id[call] != ID_NONE && idset_has(&l->work, p->span.link_id[call]);
}

static bool steps_launches(const struct steps_launchers *l, uint32_t name)
{
	return l->with_work[name] && l->with_work[name] >= l->calls[name] / 4;
}

static void count_launches(const struct profile *p, struct drafts *d)
{
	const struct spans *s = &p->span;
	struct steps_launchers l;
	launchers_init(&l, p);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL)
			continue;
		l.calls[s->name[i]]++;
		l.with_work[s->name[i]] += steps_has_work(&l, p, i);
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL || !steps_launches(&l, s->name[i]))
			continue;
		struct draft *step = step_around(d, s->start_ns[i], span_end(p, i));
		if (!step)
			continue;
		step->step.launches++;
		step->step.launches_lost += !steps_has_work(&l, p, i);
	}
	launchers_release(&l);
}

/* How many steps there are up to the last one with device work; all when none has. */
static unsigned count_with_work(const struct drafts *d)
{
	unsigned last = d->n;
	while (last > 0 && !d->v[last - 1].step.device_ops)
		last--;
	return last ? last : d->n;
}

/* When every step lacks work, the end of the recording is not the reason, and no step is left out for it. */
static unsigned count_kept(const struct drafts *d)
{
	unsigned with_work = count_with_work(d), last = with_work;
	while (last > 0 && d->v[last - 1].step.launches_lost > d->v[last - 1].step.launches / 5.0)
		last--;
	return last ? last : with_work;
}

static unsigned count_kept_by_share(const struct drafts *d, double least_share)
{
	unsigned last = count_with_work(d);
	if (last > 1 && d->v[last - 2].step.device_ops * least_share > d->v[last - 1].step.device_ops)
		last--;
	return last;
}

static void find_cut(const struct profile *p, struct drafts *d, struct steps *s)
{
	for (unsigned i = 0; profile_has_arg(p, ARG_NOT_TO_END) && i < d->n; i++) {
		struct step *x = &d->v[i].step;
		x->cut = x->span != ROW_NONE && profile_arg_id(p, p->span.args[x->span], ARG_NOT_TO_END);
		s->cut += x->cut;
	}
}

/* Takes those that are no whole step aside; cut ones stay where there are no others. */
static void set_aside(struct drafts *d, struct steps *s, struct arena *a)
{
	unsigned n = 0, partial = 0;
	for (unsigned i = 0; i < d->n; i++)
		partial += d->v[i].partial;
	bool some_whole = s->cut + partial < d->n;
	s->edge = ARENA_ARRAY(a, partial + (some_whole ? s->cut : 0), struct step);
	for (unsigned i = 0; i < d->n; i++)
		if (d->v[i].partial || (d->v[i].step.cut && some_whole))
			s->edge[s->edges++] = d->v[i].step;
		else
			d->v[n++] = d->v[i];
	d->n = n;
}

/* Places the drafts, and takes those that are no whole step aside. The window is not moved: it is one of device work. least_share: steps_of_profiler. */
static void finish_steps(const struct profile *p, struct drafts *d, struct steps *s, double least_share, struct arena *a)
{
	sort_by_time(d);
	bool work = d->n && match_device_work(p, d);
	if (work) {
		if (s->window == WINDOW_STEPS)
			stretch_to_device(p, d);
		count_launches(p, d);
	}
	find_cut(p, d, s);
	set_aside(d, s, a);
	unsigned n = d->n;
	s->n = s->total = n;
	if (work && n)
		s->n = least_share > 0 ? count_kept_by_share(d, least_share) : count_kept(d);
	s->v = ARENA_ARRAY(a, n, struct step);
	for (unsigned i = 0; i < n; i++) {
		int64_t before = i ? s->v[i - 1].host_until_ns : INT64_MIN;
		s->v[i] = d->v[i].step;
		s->v[i].host_until_ns = s->v[i].host_end_ns > before ? s->v[i].host_end_ns : before;
	}
	mem_free(d->v);
}

struct steps *steps_of_profiler(const struct profile *p, double least_share, struct arena *a)
{
	struct drafts d = {0};
	struct steps *s = ARENA_ARRAY(a, 1, struct steps);
	collect_annotations(p, &d);
	s->calls = d.n;
	s->whole_trace = d.n == 0;
	if (s->whole_trace) {
		struct steps_extent x = extent_of_ops(p);
		if (x.first <= x.last)
			draft_add(&d, STR("0"), x.first, x.last, ROW_NONE);
	} else {
		s->source = STEPS_PROFILER;
		s->key = STR(TORCH_STEP);
		s->certainty = 1;
		s->how = arena_printf(a, "Steps are the ranges `ProfilerStep#` (%u).", d.n);
	}
	finish_steps(p, &d, s, least_share, a);
	return s;
}

/* The window, and when the host began it. */
struct steps_window_ {
	int64_t start, end, host_start;
};

/* From the first to the last device work. False when there is none. */
static bool device_window(const struct profile *p, struct steps_window_ *w)
{
	const struct gpu_ops *g = &p->gpu_op;
	*w = (struct steps_window_){INT64_MAX, INT64_MIN, INT64_MAX};
	for (uint32_t i = 0; i < g->rows.n; i++) {
		int64_t begun = g->call[i] == ROW_NONE ? g->start_ns[i] : p->span.start_ns[g->call[i]];
		w->start = g->start_ns[i] < w->start ? g->start_ns[i] : w->start;
		w->end = gpu_end(p, i) > w->end ? gpu_end(p, i) : w->end;
		w->host_start = begun < w->host_start ? begun : w->host_start;
	}
	return w->start < w->end;
}

/* The share of all device time, of every stream, that the repeats must hold to stand for it. */
static const double REPEATS_HOLD = 0.95;

static bool repeats_hold_most(const struct profile *p, const struct iterations *seen)
{
	int64_t all = 0, in = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t start = p->gpu_op.start_ns[g], ns = p->gpu_op.dur_ns[g];
		all += ns;
		in += start >= seen->repeat_start_ns && start < seen->repeat_end_ns ? ns : 0;
	}
	return (double)in >= REPEATS_HOLD * (double)all;
}

static enum steps_window_kind choose_window(const struct profile *p, const struct iterations *seen, struct steps_window_ *w)
{
	if (!device_window(p, w))
		return WINDOW_RECORDING;
	if (!seen->repeats || seen->repeat_end_ns <= seen->repeat_start_ns || !repeats_hold_most(p, seen))
		return WINDOW_DEVICE;
	*w = (struct steps_window_){seen->repeat_start_ns, seen->repeat_end_ns, seen->repeat_host_ns};
	return WINDOW_REPEATS;
}

static void add_edge(struct steps *s, int64_t start, int64_t end)
{
	if (start < end)
		s->edge[s->edges++] = (struct step){.name = STR("0"), .host_start_ns = start, .host_end_ns = end, .start_ns = start, .end_ns = end, .span = ROW_NONE};
}

/* Device work that begins in the window. What is launched before the window counts: the first kernel's launch always is. */
static uint32_t device_ops_in(const struct profile *p, const struct steps_window_ *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		n += p->gpu_op.start_ns[i] >= w->start && p->gpu_op.start_ns[i] < w->end;
	return n;
}

/* No step was found: the window is one, and what the recording holds before and after it stands apart. */
static struct steps *steps_of_window(struct profile *p, const struct iterations *seen, struct str key, uint32_t calls)
{
	struct drafts d = {0};
	struct steps_window_ w = {0};
	int64_t first, last;
	struct steps *s = ARENA_ARRAY(&p->arena, 1, struct steps);
	*s = (struct steps){.key = key, .calls = calls, .whole_trace = true};
	if (!recording_extent(p, &first, &last)) {
		finish_steps(p, &d, s, 0, &p->arena);
		s->window = WINDOW_RECORDING;
		return s;
	}
	s->window = choose_window(p, seen, &w);
	s->repeats = s->window == WINDOW_REPEATS ? seen->repeats : 0;
	if (s->window == WINDOW_RECORDING)
		w = (struct steps_window_){first, last, first};
	draft_add(&d, STR("0"), w.start, w.end, ROW_NONE);
	finish_steps(p, &d, s, 0, &p->arena);
	s->v[0].host_start_ns = w.host_start < w.start ? w.host_start : w.start;
	s->v[0].device_ops = device_ops_in(p, &w);
	s->edge = ARENA_ARRAY(&p->arena, 2, struct step);
	add_edge(s, first, w.start);
	add_edge(s, w.end, last);
	return s;
}

static struct steps *steps_of_iterations(struct profile *p, enum step_source source, const struct iterations *it)
{
	struct drafts d = {0};
	struct steps *s = ARENA_ARRAY(&p->arena, 1, struct steps);
	*s = (struct steps){.source = source, .key = it->key, .calls = it->calls, .certainty = it->certainty, .how = it->how};
	for (uint32_t i = 0; i < it->n; i++) {
		draft_add(&d, it->v[i].name, it->v[i].start_ns, it->v[i].end_ns, it->v[i].span);
		d.v[i].partial = it->v[i].partial;
	}
	finish_steps(p, &d, s, 0, &p->arena);
	return s;
}

/* Names of kernels can be longer than a page. */
enum { NAME_SHOWN = 60 };

static struct str steps_cut_name(struct str s)
{
	return (struct str){s.p, s.n > NAME_SHOWN ? NAME_SHOWN : s.n};
}

void steps_put_candidates(struct profile *p, struct buf *b)
{
	enum { SHOWN = 3 };
	struct key_candidate *c;
	unsigned n = key_candidates(p, 0, true, SHOWN, &p->arena, &c);
	for (unsigned i = 0; i < n; i++)
		buf_printf(b, "%s`" STR_FMT "%s` (%u calls)", i ? ", " : "", STR_ARG(steps_cut_name(c[i].name)),
		           c[i].name.n > NAME_SHOWN ? "..." : "", c[i].calls);
}

static void put_window(const struct steps *s, struct buf *b)
{
	double ms = s->n ? (double)(s->v[0].end_ns - s->v[0].start_ns) / 1e6 : 0;
	if (s->window == WINDOW_REPEATS)
		buf_printf(b, "The figures are of the %.3f ms in which a pattern of device work repeats. ", ms);
	else if (s->window == WINDOW_DEVICE)
		buf_printf(b, "The figures are of the %.3f ms from the first to the last device work. ", ms);
	else
		buf_cstr(b, "The figures are of the whole recording. ");
}

/* What stands in place of steps, why, and what to do about it. */
static void explain_none(struct profile *p, struct steps *s, const struct iterations *seen)
{
	struct buf b = {0};
	struct key_candidate *would_do;
	if (s->key.n)
		buf_printf(&b, "`" STR_FMT "` (%u call%s) does not make a whole step. ", STR_ARG(s->key), s->calls, s->calls == 1 ? "" : "s");
	else
		buf_cstr(&b, "No steps were found: the trace has neither ProfilerStep nor another mark of steps. ");
	put_window(s, &b);
	if (seen->how.n)
		buf_printf(&b, STR_FMT " ", STR_ARG(seen->how));
	if (seen->layers)
		buf_printf(&b, "An op that is called about %u times is called once a layer, and tells no steps. ", seen->calls);
	if (!seen->layers && key_candidates(p, seen->calls, true, 1, &p->arena, &would_do))
		buf_cstr(&b, "--key-op=NAME takes an op that each step, and not each layer, calls once, if you know one; `opscope report steps` lists ops that repeat.");
	else
		buf_cstr(&b, "Call prof.step() after each iteration, or put a range around it.");
	s->how = arena_str(&p->arena, buf_view(&b));
	buf_release(&b);
}

/* The finders in order; the first that finds a whole step. */
static struct steps *search(struct profile *p)
{
	static const struct {
		enum step_source source;
		bool (*find)(const struct profile *p, struct arena *a, struct iterations *it);
	} finders[] = {{STEPS_NAMED, iterations_named}, {STEPS_OPTIMIZER, iterations_optimizer}, {STEPS_PERIOD, iterations_period}};
	struct iterations it = {0};
	for (size_t i = 0; i < sizeof finders / sizeof finders[0]; i++) {
		it = (struct iterations){0};
		bool found = finders[i].find(p, &p->arena, &it);
		struct steps *s = found ? steps_of_iterations(p, finders[i].source, &it) : NULL;
		iterations_release(&it);
		if (found)
			return s;
	}
	struct steps *s = steps_of_window(p, &it, (struct str){0}, 0); /* `it` is of the last, which says what pattern it saw */
	explain_none(p, s, &it);
	return s;
}

/* An op that was given is taken, and what speaks against it is said. */
static bool seem_layers(struct profile *p, struct iterations *it)
{
	struct iterations seen = {0};
	const bool layers = !iterations_period(p, &p->arena, &seen) && seen.layers && it->calls >= seen.calls / 2;
	if (layers) {
		struct buf b = {0};
		buf_printf(&b, STR_FMT " Perhaps these are layers, not steps: a pattern of device work repeats %u times, once for each of modules that differ in their number alone.",
		           STR_ARG(it->how), seen.calls);
		it->how = arena_str(&p->arena, buf_view(&b));
		it->certainty = 0;
		buf_release(&b);
	}
	iterations_release(&seen);
	return layers;
}

static struct steps *steps_of_key(struct profile *p)
{
	struct iterations it = {0};
	bool found = iterations_of_key(p, p->key_op, &p->arena, &it);
	const bool doubtful = found && seem_layers(p, &it);
	struct steps *s = found ? steps_of_iterations(p, STEPS_GIVEN, &it) : NULL;
	if (found)
		s->doubtful = doubtful;
	iterations_release(&it);
	if (found)
		return s;
	s = steps_of_window(p, &(struct iterations){0}, it.key, it.calls);
	explain_none(p, s, &(struct iterations){0});
	return s;
}

/* The first of n steps that ends on the host behind `time`: no step before it holds that time, and if this one has not begun, none behind it does. */
static unsigned first_open(const struct steps *s, unsigned n, int64_t time)
{
	static _Thread_local unsigned last; /* who asks goes through rows in order of time: mostly the answer is that of the row before */
	const unsigned i = last;
	if (i < n && s->v[i].host_until_ns > time && (!i || s->v[i - 1].host_until_ns <= time)) /* host_until_ns never falls: there is one such i */
		return i;
	return last = FIRST_WHERE(k, 0, n, s->v[k].host_until_ns > time);
}

static bool steps_is_numbered(const struct step *x, int64_t first, int64_t last)
{
	return x->number >= first && x->number <= last;
}

bool steps_have_host(const struct steps *s, unsigned n, int64_t first, int64_t last, int64_t time)
{
	unsigned i = first_open(s, n, time);
	return i < n && s->v[i].host_start_ns <= time && steps_is_numbered(&s->v[i], first, last);
}

bool steps_have_device(const struct steps *s, unsigned n, int64_t first, int64_t last, int64_t time)
{
	unsigned i = FIRST_WHERE(k, 0, n, s->v[k].end_ns > time);
	return i < n && s->v[i].start_ns <= time && steps_is_numbered(&s->v[i], first, last);
}

void steps_intervals(const struct profile *p, int64_t first, int64_t last, struct intervals *out)
{
	const struct steps *s = p->steps;
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].number >= first && s->v[i].number <= last)
			intervals_add(out, s->v[i].start_ns, s->v[i].end_ns);
	intervals_normalise(out);
}

struct steps_text steps_range_text(int64_t first, int64_t last)
{
	struct steps_text t;
	int n = snprintf(t.s, sizeof t.s, "--steps=");
	if (first == STEP_OUTSIDE && last == STEP_OUTSIDE) {
		snprintf(t.s + n, sizeof t.s - (size_t)n, "outside");
		return t;
	}
	if (first != INT64_MIN)
		n += snprintf(t.s + n, sizeof t.s - (size_t)n, "%lld", (long long)first);
	n += snprintf(t.s + n, sizeof t.s - (size_t)n, "..");
	if (last != INT64_MAX)
		snprintf(t.s + n, sizeof t.s - (size_t)n, "%lld", (long long)last);
	return t;
}

int pass_steps(struct profile *p, struct err *e)
{
	struct steps *s = p->key_op.n ? steps_of_key(p) : steps_of_profiler(p, 0, &p->arena);
	if (!p->key_op.n && p->durations_only)
		s->how = STR("The input holds durations but no times, so that there are no steps.");
	p->steps = p->key_op.n || s->source == STEPS_PROFILER || p->durations_only ? s : search(p);
	step_begin_settle(p, p->steps);
	serving_of_steps(p, p->steps);
	return 0;
}
