#include <stdlib.h>

#include "analysis/names/names.h"
#include "base/search.h"
#include "base/sort.h"
#include "detect/parts/compiled.h"
#include "detect/parts/shared.h"

/* A step is too long from so many times the median of the other steps on. */
static const double TOO_LONG = 1.25;
/* A cause is told if it has this share of the time beyond the median. Any step but the first is told only with a cause. */
static const double TELLS = 0.3;
/* The median of fewer steps says nothing. */
enum { FEWEST = 3, STEPS_TOLD = 3 };

/* A launch takes microseconds; one that finds the queue full takes longer, but no longer than the kernels before it. */
static const int64_t LOADING_LAUNCH_NS = 1000 * 1000;

enum cause { ALLOCATING, LOADING, LAUNCHING, PROFILING, COMPILING, NEW_KERNELS, CAUSES };

static const char *const cause_text[CAUSES] = {
	[ALLOCATING] = "in calls that allocate or free memory", [LOADING] = "in loading kernels",
	[LAUNCHING] = "in launches of a millisecond or more, as the first of a kernel takes, which loads it", [PROFILING] = "in the profiler itself",
	[COMPILING] = "in torch.compile's compiler",
	[NEW_KERNELS] = "in kernels that no other step runs (a search for algorithms, a warm-up)",
};

struct first_iteration_sums {
	int64_t ns[CAUSES];
};

static enum cause first_iteration_cause_of(const struct profile *p, uint32_t span, const struct name_memo *compilers)
{
	if (name_memo_of(compilers, p->span.name[span]) && p->span.kind[span] != SPAN_GPU_USER)
		return COMPILING;
	enum host_kind k = name_host_kind(p, p->span.name[span]);
	if (k == HOST_LOAD)
		return LOADING;
	if (p->span.kind[span] == SPAN_CALL && k == HOST_ALLOC)
		return ALLOCATING;
	if (p->span.kind[span] == SPAN_CALL && p->span.dur_ns[span] >= LOADING_LAUNCH_NS && str_has(profile_str(p, p->span.name[span]), STR("LaunchKernel")))
		return LAUNCHING;
	return p->span.kind[span] == SPAN_OVERHEAD ? PROFILING : CAUSES;
}

/* Counts each moment of a thread once for a cause: cudaMalloc holds the cuMemCreate that it calls. */
static void first_iteration_add_host(const struct profile *p, struct first_iteration_sums *v)
{
	struct name_memo compilers = name_memo_new(p, compiled_is_compiler);
	int64_t done[CAUSES]; /* until when the cause's time on this thread is counted */
	for (uint32_t i = 0; i < p->span.rows.n; i++) { /* by thread, then start */
		for (unsigned k = 0; k < CAUSES && (i == 0 || p->span.track[i] != p->span.track[i - 1]); k++)
			done[k] = INT64_MIN;
		enum cause c = first_iteration_cause_of(p, i, &compilers);
		uint32_t step = c != CAUSES ? shared_step_at(p->steps, p->span.start_ns[i]) : ROW_NONE;
		if (step == ROW_NONE)
			continue;
		int64_t start = p->span.start_ns[i] > done[c] ? p->span.start_ns[i] : done[c], end = span_end(p, i);
		v[step].ns[c] += start < end ? end - start : 0;
		done[c] = end > done[c] ? end : done[c];
	}
	name_memo_release(&compilers);
}

/* The step that launched the device work; where its call is not known, the step in which the work began. */
static uint32_t first_iteration_step_of(const struct profile *p, uint32_t g)
{
	uint32_t call = p->gpu_op.call[g];
	return shared_step_at(p->steps, call != ROW_NONE ? p->span.start_ns[call] : p->gpu_op.start_ns[g]);
}

/* Adds the time of kernels whose name runs in one step alone. */
static void first_iteration_add_kernels(const struct profile *p, struct first_iteration_sums *v)
{
	enum { NOWHERE, SEVERAL = UINT32_MAX };
	uint32_t *in = NEW_ARRAY(p->strings.n, uint32_t), *step = NEW_ARRAY(p->gpu_op.rows.n, uint32_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t *x = &in[p->gpu_op.name[g]];
		step[g] = p->gpu_op.kind[g] == GPU_KERNEL ? first_iteration_step_of(p, g) : ROW_NONE;
		if (step[g] != ROW_NONE)
			*x = *x == NOWHERE || *x == step[g] + 1 ? step[g] + 1 : SEVERAL;
	}
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (step[g] != ROW_NONE && in[p->gpu_op.name[g]] == step[g] + 1)
			v[step[g]].ns[NEW_KERNELS] += p->gpu_op.dur_ns[g];
	mem_free(in);
	mem_free(step);
}

/* A figure of each step, by step, and sorted. */
struct figure {
	int64_t *v, *sorted;
};

/* The median of the figure over all steps but one. */
static int64_t median_without(const struct figure *x, uint32_t n, uint32_t without)
{
	uint32_t at = FIRST_WHERE(i, 0, n, x->sorted[i] >= x->v[without]);
	uint32_t lower = (n - 2) / 2, upper = (n - 1) / 2; /* of the n - 1 that are left */
	return (x->sorted[lower + (lower >= at)] + x->sorted[upper + (upper >= at)]) / 2;
}

enum { BUSY = CAUSES, LENGTH, FIGURES };

struct first_iteration_work {
	const struct profile *p;
	const struct step_time *w;
	struct first_iteration_sums *sum;
	struct figure figure[FIGURES]; /* by cause, then the time that the GPU works, then the length */
};

static int64_t figure_of(const struct first_iteration_work *x, uint32_t step, unsigned k)
{
	const struct step *s = &x->p->steps->v[step];
	if (k == LENGTH)
		return s->end_ns - s->start_ns;
	return k == BUSY ? intervals_length_within(&x->w->busy, s->start_ns, s->end_ns) : x->sum[step].ns[k];
}

static void make_figures(struct first_iteration_work *x)
{
	uint32_t n = x->p->steps->n;
	for (unsigned k = 0; k < FIGURES; k++) {
		struct figure *f = &x->figure[k];
		*f = (struct figure){NEW_ARRAY(n, int64_t), NEW_ARRAY(n, int64_t)};
		for (uint32_t i = 0; i < n; i++)
			f->v[i] = f->sorted[i] = figure_of(x, i, k);
		sort_i64(f->sorted, n);
	}
}

/* How much more of the figure this step has than is usual. */
static int64_t more_of(const struct first_iteration_work *x, uint32_t step, unsigned k)
{
	return x->figure[k].v[step] - median_without(&x->figure[k], x->p->steps->n, step);
}

/* The cause with most time beyond what is usual, and in *ns this time; CAUSES: no cause has enough of it. */
static enum cause main_cause(const struct first_iteration_work *x, uint32_t step, int64_t beyond, int64_t *ns)
{
	enum cause best = CAUSES;
	*ns = 0;
	for (unsigned c = 0; c < CAUSES; c++) {
		int64_t more = more_of(x, step, c);
		if ((double)more >= TELLS * (double)beyond && more > *ns) {
			*ns = more;
			best = (enum cause)c;
		}
	}
	return best;
}

/* Whether the step is far longer than the others, and not because the GPU has more of the same work in it. */
static bool first_iteration_is_long(const struct first_iteration_work *x, uint32_t step)
{
	int64_t ns, beyond = more_of(x, step, LENGTH), work = more_of(x, step, BUSY) - more_of(x, step, NEW_KERNELS);
	int64_t median = x->figure[LENGTH].v[step] - beyond;
	if (median <= 0 || (double)beyond < (TOO_LONG - 1) * (double)median || 2 * work > beyond)
		return false;
	return step == 0 || main_cause(x, step, beyond, &ns) != CAUSES;
}

/* The step, other than this one, whose length is nearest the median. */
static uint32_t usual_step(const struct first_iteration_work *x, uint32_t step)
{
	const int64_t *ns = x->figure[LENGTH].v, median = ns[step] - more_of(x, step, LENGTH);
	uint32_t best = ROW_NONE;
	for (uint32_t i = 0; i < x->p->steps->n; i++)
		if (i != step && (best == ROW_NONE || llabs(ns[i] - median) < llabs(ns[best] - median)))
			best = i;
	return best;
}

/* Time of the thread that runs the steps, by name of range (string id): own time of the ranges (self), and their whole time (whole), in which a range inside
 * another one of the same name does not count again. All times are those of this step less those of the usual step. */
struct first_iteration_names {
	int64_t *self, *whole, *until;
};

/* Adds the ranges of a step, times `sign`. Ranges are sorted by start. */
static void names_add(const struct first_iteration_work *x, uint32_t step, int sign, struct first_iteration_names *t)
{
	const struct spans *v = &x->p->span;
	const struct step *s = &x->p->steps->v[step];
	for (uint32_t i = 0; i < v->rows.n; i++) {
		if (v->track[i] != x->w->main_track || v->start_ns[i] < s->host_start_ns || v->start_ns[i] >= s->host_end_ns || i == s->span)
			continue;
		uint32_t name = v->name[i], up = v->parent[i] != s->span || s->span == ROW_NONE ? v->parent[i] : v->parent[s->span];
		int64_t start = v->start_ns[i], end = span_end(x->p, i);
		end = end < s->host_end_ns ? end : s->host_end_ns;
		t->self[name] += sign * (end - start);
		if (up != ROW_NONE && v->start_ns[up] >= s->host_start_ns)
			t->self[v->name[up]] -= sign * (end - start);
		start = start > t->until[name] ? start : t->until[name];
		t->whole[name] += start < end ? sign * (end - start) : 0;
		t->until[name] = end > t->until[name] ? end : t->until[name];
	}
}

/* The named range of the program or its libraries with most own time; ROW_NONE: no range has TELLS of the time. */
static uint32_t most_self(const struct profile *p, const struct first_iteration_names *t, int64_t beyond)
{
	uint32_t best = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if ((p->span.kind[i] == SPAN_PYTHON || p->span.kind[i] == SPAN_OP) && (double)t->self[p->span.name[i]] >= TELLS * (double)beyond &&
		    (best == ROW_NONE || t->self[p->span.name[i]] > t->self[p->span.name[best]]))
			best = i;
	return best;
}

/* The innermost range that holds at least half of the time: of all such ranges the one with least time; ROW_NONE. */
static uint32_t innermost_half(const struct profile *p, const struct first_iteration_names *t, int64_t beyond)
{
	uint32_t best = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if ((p->span.kind[i] == SPAN_PYTHON || p->span.kind[i] == SPAN_OP || p->span.kind[i] == SPAN_USER) && 2 * t->whole[p->span.name[i]] >= beyond &&
		    (best == ROW_NONE || t->whole[p->span.name[i]] < t->whole[p->span.name[best]]))
			best = i;
	return best;
}

/* Where no call tells the cause, names the function, op or range that does, by comparison with the step whose length is nearest the median. */
static void first_iteration_put_function(const struct first_iteration_work *x, uint32_t step, int64_t beyond, struct buf *out)
{
	const struct profile *p = x->p;
	uint32_t usual = usual_step(x, step);
	struct first_iteration_names t = {NEW_ARRAY(p->strings.n, int64_t), NEW_ARRAY(p->strings.n, int64_t), NEW_ARRAY(p->strings.n, int64_t)};
	if (x->w->main_track != ROW_NONE) {
		names_add(x, step < usual ? step : usual, step < usual ? 1 : -1, &t);
		names_add(x, step < usual ? usual : step, step < usual ? -1 : 1, &t);
	}
	uint32_t self = most_self(p, &t, beyond), at = self != ROW_NONE ? self : innermost_half(p, &t, beyond);
	buf_cstr(out, "no call tells the cause");
	if (at != ROW_NONE) {
		int64_t ns = self != ROW_NONE ? t.self[p->span.name[at]] : t.whole[p->span.name[at]];
		buf_cstr(out, ", but ");
		put_ns(out, (double)(ns < beyond ? ns : beyond));
		buf_printf(out, self != ROW_NONE ? " are in " STR_FMT " itself, outside of what it calls" : " are in " STR_FMT ", with all that it calls",
		           STR_ARG(profile_str(p, p->span.name[at])));
		buf_printf(out, " (compared with step %lld)", (long long)p->steps->v[usual].number);
	}
	mem_free(t.self);
	mem_free(t.whole);
	mem_free(t.until);
}

static void put_step(const struct first_iteration_work *x, uint32_t step, struct buf *out)
{
	int64_t ns, beyond = more_of(x, step, LENGTH), all = x->figure[LENGTH].v[step], median = all - beyond;
	enum cause c = main_cause(x, step, beyond, &ns);
	buf_printf(out, "Step %lld takes ", (long long)x->p->steps->v[step].number);
	put_ns(out, (double)all);
	buf_printf(out, ", %.1f times the median of the others (", (double)all / (double)median);
	put_ns(out, (double)median);
	buf_cstr(out, "); of what is more, ");
	if (c != CAUSES) {
		put_ns(out, (double)(ns < beyond ? ns : beyond));
		buf_printf(out, " are %s", cause_text[c]);
	} else {
		first_iteration_put_function(x, step, beyond, out);
	}
	buf_cstr(out, "; the GPU works for ");
	put_ns(out, (double)x->figure[BUSY].v[step]);
	buf_cstr(out, " in it, usually ");
	put_ns(out, (double)(x->figure[BUSY].v[step] - more_of(x, step, BUSY)));
}

/* Says what the mean is without the long steps, which is the figure to compare. There is no gain. */
static void first_iteration_report(const struct first_iteration_work *x, struct findings *f, const uint8_t *is, uint64_t n, int64_t rest_ns, struct buf *evidence)
{
	const struct steps *s = x->p->steps;
	struct buf problem = {0};
	struct finding *d = findings_add(f, FINDING_INFO);
	uint32_t last = 0;
	int64_t ns = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (is[i]) {
			finding_looks_at(d, s->v[i].start_ns, s->v[i].end_ns);
			ns += x->figure[LENGTH].v[i];
			last = i;
		}
	buf_printf(&problem, "%llu of %u steps %s far longer than the others: a mean step of ", (unsigned long long)n, s->n, n == 1 ? "is" : "are");
	put_ns(&problem, (double)(ns + rest_ns) / s->n);
	buf_cstr(&problem, " is ");
	put_ns(&problem, (double)rest_ns / (double)(s->n - n));
	buf_printf(&problem, " without %s", n == 1 ? "it" : "them");
	d->problem = finding_text(f, &problem);
	d->evidence = finding_text(f, evidence);
	if (n == 1 && last == 0)
		d->advice = arena_printf(&f->arena, "Leave it out (--steps=%lld..), and record with schedule(wait=1, warmup=1, ...), so that start-up is over when "
		                         "recording begins.", (long long)s->v[1].number);
	finding_rests_on(d, x->w, n, ns);
}

/* The longest of the long steps, longest first; of equal steps the earlier one first. */
struct longest {
	uint32_t step[STEPS_TOLD];
	unsigned n;
};

static void longest_add(const struct first_iteration_work *x, struct longest *t, uint32_t step)
{
	const int64_t *ns = x->figure[LENGTH].v;
	unsigned at = t->n;
	if (at == STEPS_TOLD && ns[step] <= ns[t->step[at - 1]])
		return;
	if (at == STEPS_TOLD)
		at--;
	else
		t->n++;
	for (; at && ns[step] > ns[t->step[at - 1]]; at--)
		t->step[at] = t->step[at - 1];
	t->step[at] = step;
}

static void first_iteration_look(const struct first_iteration_work *x, struct findings *f)
{
	const struct steps *s = x->p->steps;
	uint8_t *is = NEW_ARRAY(s->n, uint8_t);
	struct longest told = {.n = 0};
	struct buf evidence = {0};
	uint64_t n = 0;
	int64_t rest_ns = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		is[i] = first_iteration_is_long(x, i);
		rest_ns += is[i] ? 0 : x->figure[LENGTH].v[i];
		if (!is[i])
			continue;
		longest_add(x, &told, i);
		n++;
	}
	for (unsigned i = 0; i < told.n; i++) {
		buf_cstr(&evidence, i ? ". " : "");
		put_step(x, told.step[i], &evidence);
	}
	if (n > told.n)
		buf_printf(&evidence, "; and %llu more", (unsigned long long)(n - told.n));
	if (n && n < s->n)
		first_iteration_report(x, f, is, n, rest_ns, &evidence);
	else
		buf_release(&evidence);
	mem_free(is);
}

static void first_iteration_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	if (w->kind != WINDOW_STEPS || p->steps->n < FEWEST)
		return;
	struct first_iteration_work x = {.p = p, .w = w, .sum = NEW_ARRAY(p->steps->n, struct first_iteration_sums)};
	first_iteration_add_host(p, x.sum);
	first_iteration_add_kernels(p, x.sum);
	make_figures(&x);
	first_iteration_look(&x, f);
	mem_free(x.sum);
	for (unsigned k = 0; k < FIGURES; k++) {
		mem_free(x.figure[k].v);
		mem_free(x.figure[k].sorted);
	}
}

const struct detector detector_first_iteration = {
	.id = "first-iteration",
	.title = "Steps that are far longer than the others",
	.why = "The first step allocates memory, loads kernels and libraries, searches for algorithms and compiles; figures of a window that holds it are not those of "
	       "steady work.",
	.fix = "Leave these steps out (--steps=A..B); record with schedule(wait, warmup, active), so that start-up is over when recording begins.",
	.disprove = "Steps of this length come again and again in a longer recording: then they belong to the work.",
	.report = "steps",
	.where = DETECT_WINDOW,
	.run = first_iteration_run,
};
