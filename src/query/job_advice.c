#include "query/job_advice.h"

#include "analysis/ranks/job_blame.h"
#include "analysis/ranks/job_hang.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "detect/merge.h"
#include "query/job_advice_links.h"
#include "query/job_each.h"
#include "query/job_read.h"

#include <stdlib.h>

/* Percent of the mean step that the ranks wait, or transfer. */
static const double JOB_ADVICE_MUCH_PCT = 5, JOB_ADVICE_SEVERE_PCT = 15;
/* A rank is the one that the others wait for where it has so much of all waiting, percent. */
static const double JOB_ADVICE_ONE_PCT = 40;
enum { JOB_ADVICE_NAMED = 6 };

static const char *const job_advice_fix[JOB_N_CAUSES] = {
	[JOB_CAUSE_SLOWER] = "Look at that GPU: its clocks, temperature and power limit (nvidia-smi -q -d PERFORMANCE), other programs on it, and its place in the machine. Run the same work on another GPU.",
	[JOB_CAUSE_MORE_WORK] = "Give the ranks equal work: lengths of sequences, experts, layers of a stage, the last and uneven batch.",
	[JOB_CAUSE_COPIES] = "Look at what that rank copies: `opscope report memcpy DIR --rank=N`.",
	[JOB_CAUSE_DATA] = "Give that rank's data loader more workers, or its files a faster place: `opscope advise --rank=N`.",
	[JOB_CAUSE_GC] = "Collect garbage on all ranks at the same time: gc.disable(), and gc.collect() every so many steps.",
	[JOB_CAUSE_HOST] = ("Look at what that rank's host does while its GPU has nothing to do, beside a rank that waits: `opscope report operators DIR --rank=N --sort=host_self_ns`. A slow or busy "
	                   "processor, hooks, logging, checkpoints and a profiler that records more on that rank are usual."),
	[JOB_CAUSE_RECORDING] = "Record all ranks with the same options, without stacks and memory, and look again: that rank's host was busy recording.",
	[JOB_CAUSE_UNKNOWN] = "Compare what the ranks do before these collectives: `opscope report stragglers`, `opscope report ranks`.",
};

/* A detector's finding over the ranks. */
struct job_advice_joined {
	const char *detector;
	uint32_t at;              /* in the findings of the job */
	struct buf ranks;
	uint32_t n;
};

struct job_advice_work {
	const struct job_inputs *in;
	const struct report_args *asked;
	struct findings f;
	struct job_advice_joined *joined;
	uint32_t n, cap;
	struct job *j;
	struct table failed;      /* notes of recordings that failed */
	uint32_t ranks;
	struct err first;
};

/* The copy's texts are of the findings of the job. */
static void job_advice_keep(struct findings *f, struct finding *to, const struct finding *from)
{
	*to = *from;
	to->problem = arena_str(&f->arena, from->problem);
	to->evidence = arena_str(&f->arena, from->evidence);
	to->advice = arena_str(&f->arena, from->advice);
	to->disprove = arena_str(&f->arena, from->disprove);
	to->bound = arena_str(&f->arena, from->bound);
	to->covers = (struct intervals){0};
	to->has_covers = false;
	to->has_window = false; /* of one rank's clock */
}

static bool job_advice_is_worse(const struct finding *a, const struct finding *b)
{
	int64_t x = a->has_gain ? a->gain_ns_per_step : 0, y = b->has_gain ? b->gain_ns_per_step : 0;
	return x != y ? x > y : a->severity > b->severity;
}

static struct job_advice_joined *job_advice_of(struct job_advice_work *w, const char *detector)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->joined[i].detector == detector)
			return &w->joined[i];
	return NULL;
}

static void job_advice_join(struct job_advice_work *w, const struct finding *x, int64_t rank)
{
	struct findings *f = &w->f;
	struct job_advice_joined *k = job_advice_of(w, x->detector);
	if (!k) {
		MEM_PUSH(w->joined, w->n, w->cap, (struct job_advice_joined){.detector = x->detector, .at = f->n});
		MEM_GROW(f->v, f->cap, f->n + 1);
		job_advice_keep(f, &f->v[f->n++], x);
		k = &w->joined[w->n - 1];
	} else if (job_advice_is_worse(x, &f->v[k->at])) {
		job_advice_keep(f, &f->v[k->at], x);
	}
	if (k->n < JOB_ADVICE_NAMED)
		buf_printf(&k->ranks, "%s%lld", k->n ? ", " : "", (long long)rank);
	else if (k->n == JOB_ADVICE_NAMED)
		buf_cstr(&k->ranks, ", ...");
	k->n++;
}

/* One recording: its ranks for the job, and its findings. */
static void *job_advice_take(const void *context, const struct job_inputs *in, unsigned i)
{
	return job_read_of(in, i, &(struct job_ask){.args = ((const struct job_advice_work *)context)->asked, .findings = true});
}

static void job_advice_put(void *context, unsigned i, void *made)
{
	struct job_advice_work *w = context;
	struct job_read *x = made;
	if (x->failed.code) {
		w->first = w->failed.n_notes ? w->first : x->failed;
		table_note(&w->failed, "%s is left out: %s", w->in->path(w->in->context, i), x->failed.msg);
	} else {
		const int64_t rank = x->ranks->rank[0]->number;
		job_read_take_ranks(x, w->j);
		for (unsigned k = 0; k < x->findings.n; k++)
			job_advice_join(w, &x->findings.v[k], rank);
		w->f.of_window |= x->findings.of_window;
		w->ranks++;
	}
	job_read_free(x);
}

struct job_advice_means {
	double step_ns, wait_ns, transfer_ns; /* per step, mean over the ranks; exposed */
	double most_wait_ns;                  /* per step, of the rank that waits longest */
	int64_t all_wait_ns, all_transfer_ns;
	uint64_t steps;                       /* of all ranks */
	bool known;                           /* nothing exposed is unknown */
};

static struct job_advice_means job_advice_mean(const struct job *j)
{
	struct job_advice_means m = {.known = j->n > 1};
	uint32_t n = 0;
	for (uint32_t r = 0; r < j->n; r++) {
		struct job_times t = job_times_of(j, r, INT64_MIN, INT64_MAX);
		if (!t.steps)
			continue;
		n++;
		m.steps += t.steps;
		m.step_ns += (double)t.ns[JOB_TOTAL] / t.steps;
		double wait_ns = (double)t.ns[JOB_WAIT] / t.steps;
		m.wait_ns += wait_ns;
		m.most_wait_ns = wait_ns > m.most_wait_ns ? wait_ns : m.most_wait_ns;
		m.transfer_ns += (double)t.ns[JOB_TRANSFER] / t.steps;
		m.all_wait_ns += t.ns[JOB_WAIT];
		m.all_transfer_ns += t.ns[JOB_TRANSFER];
		m.known &= t.ns[JOB_EXPOSED_UNKNOWN] <= (t.ns[JOB_WAIT] + t.ns[JOB_TRANSFER]) / 10;
	}
	m.step_ns /= n ? n : 1;
	m.wait_ns /= n ? n : 1;
	m.transfer_ns /= n ? n : 1;
	m.known &= m.wait_ns + m.transfer_ns > 0;
	return m;
}

static enum finding_severity job_advice_severity(double pct)
{
	return pct > JOB_ADVICE_SEVERE_PCT ? FINDING_HIGH : FINDING_MEDIUM;
}

static void job_advice_put_rank(const struct job *j, uint32_t r, const struct job_blame *b, int64_t all, struct buf *out)
{
	unsigned cause = 0;
	for (unsigned c = 1; c < JOB_N_CAUSES; c++)
		cause = b->ns[c] > b->ns[cause] ? c : cause;
	buf_printf(out, "rank %lld: %.1f %% of the waiting, last to %llu collectives, mostly for: %s", (long long)job_rank_number(j, r), percent((double)b->total_ns, (double)all),
	           (unsigned long long)b->last, job_cause_name[cause]);
}

/* The remedy with the rank's number in place of N. */
static struct str job_advice_text(struct arena *a, const char *fix, int64_t rank)
{
	struct buf b = {0};
	struct str rest = str_from(fix);
	for (ptrdiff_t at; (at = str_find(rest, STR("--rank=N"))) >= 0;) {
		size_t cut = (size_t)at + STR("--rank=").n;
		buf_str(&b, (struct str){rest.p, cut});
		buf_printf(&b, "%lld", (long long)rank);
		rest = (struct str){rest.p + cut + 1, rest.n - cut - 1};
	}
	buf_str(&b, rest);
	struct str text = arena_str(a, buf_view(&b));
	buf_release(&b);
	return text;
}

/* The rank that the others waited for longest, and how long they waited for any. */
static uint32_t job_advice_worst(const struct job *j, const struct job_blame *blame, int64_t *all)
{
	uint32_t worst = 0;
	*all = 0;
	for (uint32_t r = 0; r < j->n; r++) {
		*all += blame[r].total_ns;
		worst = blame[r].total_ns > blame[worst].total_ns ? r : worst;
	}
	return worst;
}

static const struct detector job_advice_straggler = {.id = "straggler", .report = "stragglers",
	.disprove = "The clocks of the ranks are misread: `opscope report ranks` has their offsets and what is left of them; or one rank was recorded with more options than the others.",
	.fix = ""};
static const struct detector job_advice_transfer = {.id = "communication-bound", .report = "collectives",
	.disprove = "`opscope report collectives --group-by=instance` shows that ranks of which no recording is here come last.",
	.fix = "Begin collectives sooner, beside computation that does not need their result; join small messages; send 16 bits; keep groups that talk most on the fastest links."};

static struct finding *job_advice_add(struct job_advice_work *w, const struct detector *d, double pct, double ns_per_step)
{
	w->f.detector = d;
	struct finding *x = findings_add(&w->f, job_advice_severity(pct));
	x->has_share = x->has_gain = x->has_time = true;
	x->share_pct = pct;
	x->gain_ns_per_step = (int64_t)ns_per_step;
	return x;
}

static void job_advice_add_straggler(struct job_advice_work *w, const struct job_advice_means *m)
{
	const struct job *j = w->j;
	double pct = percent(m->wait_ns, m->step_ns);
	if (pct <= JOB_ADVICE_MUCH_PCT)
		return;
	struct job_blame *blame = job_blame_find(j);
	int64_t all;
	uint32_t worst = job_advice_worst(j, blame, &all), second = worst ? 0 : 1;
	if (all <= 0) {
		mem_free(blame);
		return;
	}
	for (uint32_t r = 0; r < j->n; r++)
		second = r != worst && blame[r].total_ns > blame[second].total_ns ? r : second;
	bool one = percent((double)blame[worst].total_ns, (double)all) >= JOB_ADVICE_ONE_PCT;
	unsigned cause = 0;
	for (unsigned c = 1; c < JOB_N_CAUSES; c++)
		cause = blame[worst].ns[c] > blame[worst].ns[cause] ? c : cause;
	/* To mend the first alone would leave the step as long as the second makes it. */
	const bool two = one && cause != JOB_CAUSE_RECORDING && j->n > 2 && blame[second].total_ns >= blame[worst].total_ns / 2;
	struct finding *x = job_advice_add(w, &job_advice_straggler, pct, m->most_wait_ns);
	struct buf b = {0};
	x->time_ns = m->all_wait_ns;
	/* Without its recording it may be as fast as the others. */
	x->severity = one && cause == JOB_CAUSE_RECORDING ? FINDING_LOW : x->severity;
	const char *recorded = cause == JOB_CAUSE_RECORDING ? ", which was recorded with more than the others" : "";
	x->problem = two ? arena_printf(&w->f.arena, "Ranks wait %.1f %% of their steps for others, most of it for ranks %lld and %lld", pct, (long long)job_rank_number(j, worst),
	                                (long long)job_rank_number(j, second))
	           : one ? arena_printf(&w->f.arena, "Ranks wait %.1f %% of their steps for others, most of it for rank %lld%s", pct, (long long)job_rank_number(j, worst), recorded)
	                 : arena_printf(&w->f.arena, "Ranks wait %.1f %% of their steps for others, in turns", pct);
	buf_printf(&b, "Per step: %.3f ms of %.3f ms, mean over %u ranks; ", m->wait_ns / 1e6, m->step_ns / 1e6, j->n);
	job_advice_put_rank(j, worst, &blame[worst], all, &b);
	if (j->n > 2 && blame[second].total_ns) {
		buf_cstr(&b, "; ");
		job_advice_put_rank(j, second, &blame[second], all, &b);
	}
	x->evidence = arena_str(&w->f.arena, buf_view(&b));
	x->advice = job_advice_text(&w->f.arena, job_advice_fix[one ? cause : JOB_CAUSE_UNKNOWN], job_rank_number(j, worst));
	if (two)
		x->advice = arena_printf(&w->f.arena, STR_FMT " The same for rank %lld: as long as one of the two is late, the others wait for it.", STR_ARG(x->advice),
		                         (long long)job_rank_number(j, second));
	x->bound = STR("the time in which collectives alone ran and the last rank had not come, of the rank that waits longest: its own work remains");
	buf_release(&b);
	mem_free(blame);
}

static void job_advice_add_transfer(struct job_advice_work *w, const struct job_advice_means *m)
{
	double pct = percent(m->transfer_ns, m->step_ns);
	if (pct <= 2 * JOB_ADVICE_MUCH_PCT)
		return;
	struct finding *x = job_advice_add(w, &job_advice_transfer, pct, m->transfer_ns);
	x->time_ns = m->all_transfer_ns;
	x->problem = arena_printf(&w->f.arena, "%.1f %% of the steps are transfer between ranks that no computation hides", pct);
	x->evidence = arena_printf(&w->f.arena, "Per step: %.3f ms of %.3f ms, mean over %u ranks, counted from when the last rank had come", m->transfer_ns / 1e6, m->step_ns / 1e6, w->j->n);
	x->bound = STR("the time in which collectives alone ran on a rank and all ranks had come, mean over the ranks");
}

/* Where waiting is known over the ranks, what one rank says of its communication is known better. */
static void job_advice_drop_communication(struct findings *f)
{
	unsigned n = 0;
	for (unsigned i = 0; i < f->n; i++)
		if (strcmp(f->v[i].detector, "communication-bound") != 0)
			f->v[n++] = f->v[i];
	f->n = n;
}

static void job_advice_name_ranks(struct job_advice_work *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct finding *x = &w->f.v[w->joined[i].at];
		struct str ranks = buf_view(&w->joined[i].ranks);
		x->evidence = w->joined[i].n == w->ranks ? arena_printf(&w->f.arena, "On all %u ranks; the largest: " STR_FMT, w->ranks, STR_ARG(x->evidence))
		                                         : arena_printf(&w->f.arena, "On rank%s " STR_FMT " of %u; the largest: " STR_FMT, w->joined[i].n == 1 ? "" : "s", STR_ARG(ranks), w->ranks,
		                                                        STR_ARG(x->evidence));
	}
}

static int job_advice_by_gain(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int64_t p = x->has_gain ? x->gain_ns_per_step : -1, q = y->has_gain ? y->gain_ns_per_step : -1;
	return COMPARE(q, p) ?: COMPARE(y->severity, x->severity) ?: strcmp(x->detector, y->detector);
}

static void job_advice_put_thinned(const struct job *j, struct table *out)
{
	uint32_t n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		n += j->rank[r]->recording.thinned;
	if (n)
		table_warn(out, "most events were taken out of %u of %u recordings: nothing is said of idle time there", n, j->n);
}

static int job_advice_finish(struct job_advice_work *w, struct table *out, struct err *e)
{
	if (!w->ranks) {
		*e = w->first;
		return -1;
	}
	if (job_finish(w->j, (enum job_align)w->asked->align, w->asked->clocks, e) < 0)
		return -1;
	if (job_is_hang(w->j))
		return job_hang_refuse(e);
	struct job_advice_means m = job_advice_mean(w->j);
	job_advice_name_ranks(w);
	if (m.known) {
		job_advice_drop_communication(&w->f);
		job_advice_add_straggler(w, &m);
		job_advice_add_transfer(w, &m);
		job_advice_add_links(&w->f, w->j, m.step_ns, m.steps);
	}
	if (w->f.n)
		qsort(w->f.v, w->f.n, sizeof *w->f.v, job_advice_by_gain);
	merge_put_parts_behind(&w->f);
	findings_table(&w->f, out);
	job_advice_put_thinned(w->j, out);
	for (unsigned i = 0; i < w->failed.n_notes; i++)
		table_warn(out, STR_FMT, STR_ARG(w->failed.notes[i]));
	table_note(out, "findings of %u recordings; --rank=N has those of one rank with all its reasons", w->ranks);
	if (!m.known)
		table_note(out, "waiting for other ranks is not told from transfer: `opscope report collectives` says why");
	return 0;
}

int job_advice_run(const struct job_inputs *in, const struct report_args *asked, struct table *out, struct err *e)
{
	struct job_advice_work w = {.in = in, .asked = asked, .j = job_new()};
	table_init(&w.failed, "failed", "");
	job_each(in, &(struct job_each){job_advice_take, job_advice_put, &w});
	int rc = job_advice_finish(&w, out, e);
	table_release(&w.failed);
	for (uint32_t i = 0; i < w.n; i++)
		buf_release(&w.joined[i].ranks);
	mem_free(w.joined);
	findings_release(&w.f);
	job_free(w.j);
	return rc;
}
