#include "detect/detect.h"

#include <assert.h>

#include "analysis/names/names.h"
#include "base/mem.h"
#include "base/search.h"
#include "detect/not_applicable.h"
#include "detect/merge.h"
#include "store/together.h"

static const char *const severity_name[] = {
	[FINDING_INFO] = "info", [FINDING_LOW] = "low", [FINDING_MEDIUM] = "medium", [FINDING_HIGH] = "high",
};

void findings_release(struct findings *f)
{
	for (unsigned i = 0; i < f->n; i++)
		intervals_release(&f->v[i].covers);
	mem_free(f->note);
	mem_free(f->v);
	mem_free(f->missing);
	shared_free(f->shared);
	arena_release(&f->arena);
	*f = (struct findings){0};
}

static const struct detector *detector_of(const struct finding *x)
{
	for (const struct detector *const *d = detector_registry; *d; d++)
		if (strcmp((*d)->id, x->detector) == 0)
			return *d;
	return NULL;
}

/* Whether gains of both may count some of the same time: as the detectors say, or since one tells of idle time that the other is about, too. */
static bool gains_overlap(const struct finding *x, const struct finding *y)
{
	const struct detector *a = detector_of(x), *b = detector_of(y);
	if (a == b)
		return false;
	if (str_has_word(a->shares, str_from(b->id)) || str_has_word(b->shares, str_from(a->id)))
		return true;
	return (a->symptom != SYMPTOM_NONE || b->symptom != SYMPTOM_NONE) && x->has_covers && y->has_covers && merge_common_ns(x, y) > 0;
}

/* Of a part: how much of its time the finding that it is part of has, too, and no more than that one gains. */
static void put_part(const struct findings *f, const struct finding *x, unsigned steps, struct buf *b)
{
	int64_t most = 0;
	bool gains = false;
	for (unsigned i = 0; i < f->n && x->part_of; i++) {
		const struct finding *y = &f->v[i];
		if (strcmp(y->detector, x->part_of) != 0 || y->part_of || !y->has_covers)
			continue;
		int64_t ns = merge_common_ns(y, x) / steps;
		ns = y->has_gain && y->gain_ns_per_step < ns ? y->gain_ns_per_step : ns;
		gains = ns > most ? y->has_gain : gains;
		most = ns > most ? ns : most;
	}
	if (!most)
		return;
	buf_printf(b, "; %s %s ", x->part_of, gains ? "gains up to" : "has");
	put_ns(b, (double)most);
	buf_cstr(b, " of this time, too");
}

/* Names at each gain the other findings whose gains count some of the same time. */
static void name_overlaps(struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct buf more = {0};
	for (unsigned i = 0; i < f->n; i++) {
		struct finding *x = &f->v[i];
		const char *last = x->detector;
		if (!x->has_gain || !x->gain_ns_per_step)
			continue;
		buf_clear(&more);
		put_part(f, x, w->n ? w->n : 1, &more);
		for (unsigned k = 0; k < f->n; k++) {
			const struct finding *y = &f->v[k];
			if (!y->has_gain || !y->gain_ns_per_step || strcmp(y->detector, last) == 0 || !gains_overlap(x, y))
				continue;
			buf_printf(&more, "%s%s", last == x->detector ? "; some or all of it is also in the gain of " : ", ", y->detector);
			last = y->detector;
		}
		if (more.n)
			x->bound = arena_printf(&f->arena, STR_FMT "%.*s", STR_ARG(x->bound), (int)more.n, more.p);
	}
	buf_release(&more);
}

/* Where nothing was found, a note says how busy the GPU is. */
static void tell_nothing(struct findings *f, const struct step_time *w)
{
	struct buf b = {0};
	if (f->n || !w->n || !w->gpus || shared_is_thinned(f))
		return;
	put_lead(w, &b);
	if (w->idle_ns == w->ns)
		buf_printf(&b, " does nothing in the %s: all device work of the recording lies outside.", w->time);
	else
		buf_printf(&b, " works in %.1f %% of the %s: `opscope report kernels` says in which kernels, `roofline` which of them could be faster.",
		           100 - step_time_pct(w, w->idle_ns), w->time);
	findings_note(f, buf_view(&b));
	buf_release(&b);
}

static uint8_t is_launch(struct str name)
{
	return str_has(name, STR("LaunchKernel"));
}

/* Notes launches without any device work: the tracer lost the device work. */
static void tell_lost(const struct profile *p, struct findings *f)
{
	struct name_memo launches = name_memo_new(p, is_launch);
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->span.rows.n && !p->gpu_op.rows.n; i++)
		n += p->span.kind[i] == SPAN_CALL && name_memo_of(&launches, p->span.name[i]);
	if (n)
		findings_note(f, arena_printf(&f->arena, "The recording holds %llu calls that launch kernels, and not one kernel: the tracer lost what the GPU did. Record again; "
		                              "another profiler may have used the GPU at the same time.", (unsigned long long)n));
	name_memo_release(&launches);
}

/* Notes how short a step can become: the last line. */
static void tell_outlook(struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct buf b = {0};
	unsigned told = 0;
	int64_t gain = w->n ? merge_gain_ns(f, w) : 0;
	f->of_window = w->n && w->kind != WINDOW_STEPS;
	if (gain <= 0) {
		tell_nothing(f, w);
		return;
	}
	buf_cstr(&b, w->kind == WINDOW_STEPS ? "Step " : "Time looked at ");
	put_ns(&b, (double)w->ns / w->n);
	buf_cstr(&b, " -> at least ");
	put_ns(&b, (double)(w->ns - gain) / w->n);
	buf_cstr(&b, " if");
	for (unsigned i = 0; i < f->n; i++)
		if (f->v[i].has_gain && f->v[i].gain_ns_per_step > 0)
			buf_printf(&b, "%s %s", told++ ? "," : "", f->v[i].detector);
	buf_printf(&b, " %s mended; time that several findings share counts once.", told == 1 ? "is" : "are");
	findings_note(f, buf_view(&b));
	buf_release(&b);
}

static bool detect_is_chosen(const struct detector *d, const struct detect_args *a)
{
	return a->experts && d->experts ? strcmp(a->experts, d->experts->name) == 0 : !a->experts && !d->experts;
}

/* The detectors that run, and what each of them found. */
struct detect_work {
	const struct profile *p;
	const struct detector **chosen;
	struct findings *found;        /* by place in chosen; NULL: they add to *all, one after the other */
	struct findings *all;
};

static void detect_make(void *work, unsigned job)
{
	const struct detect_work *x = work;
	struct findings *f = x->found ? &x->found[job] : x->all;
	if (x->found)
		*f = (struct findings){.args = x->all->args, .memory_alone = x->all->memory_alone, .shared = x->all->shared};
	f->detector = x->chosen[job];
	if (shared_has(f, f->detector->where))
		f->detector->run(x->p, f);
}

/* Several detectors say that most events were taken out. */
static bool detect_has_note(const struct findings *f, struct str note)
{
	for (unsigned i = 0; i < f->n_notes; i++)
		if (str_eq(f->note[i], note))
			return true;
	return false;
}

/* Puts what it found behind what those before it found. */
static int detect_take(void *work, unsigned job)
{
	const struct detect_work *x = work;
	if (!x->found)
		return 0;
	struct findings *from = &x->found[job], *to = x->all;
	for (unsigned i = 0; i < from->n; i++)
		MEM_PUSH(to->v, to->n, to->cap, from->v[i]);
	for (unsigned i = 0; i < from->n_missing; i++)
		MEM_PUSH(to->missing, to->n_missing, to->cap_missing, from->missing[i]);
	for (unsigned i = 0; i < from->n_notes; i++)
		if (!detect_has_note(to, from->note[i]))
			MEM_PUSH(to->note, to->n_notes, to->cap_notes, from->note[i]);
	to->tells_thinned |= from->tells_thinned;
	arena_adopt(&to->arena, &from->arena);
	mem_free(from->v);
	mem_free(from->missing);
	mem_free(from->note);
	return 0;
}

/* Those of an expert system share what the first of them made, the findings among it (shared_experts). */
static void run_chosen(struct profile *p, struct findings *f, unsigned n)
{
	struct detect_work x = {.p = p, .chosen = NEW_ARRAY(n, const struct detector *), .found = f->args.experts ? NULL : NEW_ARRAY(n, struct findings), .all = f};
	const unsigned threads = f->args.experts ? 1 : together_threads(p);
	unsigned at = 0;
	for (const struct detector *const *d = detector_registry; *d; d++)
		if (detect_is_chosen(*d, &f->args))
			x.chosen[at++] = *d;
	assert(at == n);
	together_run(p, &(struct crew_jobs){.n = n, .context = &x, .make = detect_make, .take = detect_take}, threads);
	mem_free(x.chosen);
	mem_free(x.found);
}

/* Whether a detector before this one is of the same expert system. */
static bool is_named_before(const struct detector *const *d)
{
	for (const struct detector *const *k = detector_registry; k < d; k++)
		if ((*k)->experts == (*d)->experts)
			return true;
	return false;
}

void detect_expert_systems(const char *between, struct buf *out)
{
	size_t before = out->n;
	for (const struct detector *const *d = detector_registry; *d; d++)
		if ((*d)->experts && !is_named_before(d))
			buf_printf(out, "%s%s", out->n > before ? between : "", (*d)->experts->name);
}

int detect_check(const char *experts, struct err *e)
{
	struct buf names = {0};
	for (const struct detector *const *d = detector_registry; *d; d++)
		if (!experts || ((*d)->experts && strcmp((*d)->experts->name, experts) == 0))
			return 0;
	detect_expert_systems(" or ", &names);
	err_set(e, ERR_USAGE, "compat=%s: expected " STR_FMT, experts, STR_ARG(buf_view(&names)));
	buf_release(&names);
	return -1;
}

int detect_run(struct profile *p, const struct detect_args *args, struct findings *f, struct err *e)
{
	unsigned needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS | PASS_OPS, chosen = 0; /* opscope's own detectors look at all of these */
	*f = (struct findings){.args = *args, .memory_alone = p->memory_block.rows.n && !p->span.rows.n && !p->gpu_op.rows.n};
	for (const struct detector *const *d = detector_registry; *d; d++)
		if (detect_is_chosen(*d, args)) {
			needs = (*d)->experts ? (*d)->experts->needs : needs;
			chosen++;
		}
	if (!chosen)
		return detect_check(args->experts, e);
	assert(!p->ops_layers && !p->ops_stacks);
	p->keeps_ops_work = true;
	int passed = analysis_run(p, needs, e);
	p->keeps_ops_work = false;
	f->shared = shared_new(p);
	if (passed < 0) {
		shared_free(f->shared);
		f->shared = NULL;
		return -1;
	}
	run_chosen(p, f, chosen);
	if (!args->experts) {
		merge_findings(f);
		name_overlaps(f);
		tell_outlook(f);
		tell_lost(p, f);
	}
	shared_free(f->shared);
	f->shared = NULL;
	for (unsigned i = 0; i < f->n_missing; i++)
		if (!f->missing[i].remedy)
			f->missing[i].remedy = not_applicable_remedy(p, f->missing[i].why, &f->missing[i].aside);
	return 0;
}

int detect_all(struct profile *p, struct findings *f, struct err *e)
{
	return detect_run(p, &(struct detect_args){0}, f, e);
}

enum { SEVERITY, DETECTOR, PART_OF, PROBLEM, EVIDENCE, ADVICE, DISPROVE, GAIN, BOUND, EVENTS, TIME, SHARE, REPORT, FROM, TO };

static void own_prose(struct table *t, const struct finding *x)
{
	table_set_str_copy(t, EVIDENCE, x->evidence);
	table_set_str_copy(t, ADVICE, x->advice);
	table_set_str_copy(t, DISPROVE, x->disprove);
	if (x->has_gain)
		table_set_str_copy(t, BOUND, x->bound);
}

/* `brief`: a part of another finding shows its problem, and how much of its time is the other one's, alone. */
static void detect_own_row(struct table *t, const struct finding *x, bool brief)
{
	table_row(t);
	table_set_str(t, SEVERITY, str_from(severity_name[x->severity]));
	table_set_str(t, DETECTOR, str_from(x->detector));
	table_set_str_copy(t, PROBLEM, x->problem);
	if (x->has_gain)
		table_set_i64(t, GAIN, x->gain_ns_per_step);
	if (x->part_of)
		table_set_str(t, PART_OF, str_from(x->part_of));
	if (!x->part_of || !brief)
		own_prose(t, x);
	else if (x->has_gain)
		table_set_str_copy(t, BOUND, x->bound);
	if (x->has_events)
		table_set_i64(t, EVENTS, (int64_t)x->events);
	if (x->has_time)
		table_set_i64(t, TIME, x->time_ns);
	if (x->has_share)
		table_set_f64(t, SHARE, x->share_pct);
	if (x->report)
		table_set_str(t, REPORT, str_from(x->report));
	if (x->has_window) {
		table_set_i64(t, FROM, x->from_ns);
		table_set_i64(t, TO, x->to_ns);
	}
}

static void detect_own_table(const struct findings *f, struct table *t)
{
	static const struct column columns[] = {
		{.id = "severity", .title = "Severity", .help = "high, medium, low or info", .type = CELL_STR, .flags = COLUMN_LEVEL},
		{.id = "detector", .title = "Finding", .help = "id of the detector", .type = CELL_STR},
		{.id = "part_of", .title = "Same time as", .help = "the finding that has at least four fifths of the time that this one is about, too, and says more of why, or gains more; the bound says how much of the time; empty: this one stands by itself", .type = CELL_STR, .flags = COLUMN_TITLED},
		{.id = "problem", .title = "Problem", .help = "what is wrong, with the numbers", .type = CELL_STR, .flags = COLUMN_PROSE},
		{.id = "evidence", .title = "Evidence", .help = "what it was measured on", .type = CELL_STR, .flags = COLUMN_PROSE},
		{.id = "advice", .title = "Advice", .help = "what to do", .type = CELL_STR, .flags = COLUMN_PROSE},
		{.id = "disprove", .title = "Wrong if", .help = "what would prove the finding wrong", .type = CELL_STR, .flags = COLUMN_PROSE},
		{.id = "gain_ns_per_step", .title = "Gain per step, at most",
		 .help = "at most this much of a step can be saved; empty when it cannot be bounded. Gains of several findings overlap, as the bound says: they do not add up",
		 .type = CELL_I64, .unit = UNIT_NS},
		{.id = "bound", .title = "Bound", .help = "what the bound of the gain is", .type = CELL_STR, .flags = COLUMN_PROSE},
		{.id = "events", .title = "Events", .help = "events that the finding rests on", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_DETAIL},
		{.id = "time_ns", .title = "Time", .help = "their time in all steps looked at", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL},
		{.id = "share_pct", .title = "Share", .help = "share of the time that the problem speaks of", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL},
		{.id = "report", .title = "Report", .help = "the report that shows what it rests on; empty: the timeline does", .type = CELL_STR, .flags = COLUMN_DETAIL},
		{.id = "from_ns", .title = "From", .help = "where to look first in a timeline: the begin of the longest piece of what the finding is about, or of the step with most of it", .type = CELL_I64, .unit = UNIT_TIME_NS, .flags = COLUMN_DETAIL},
		{.id = "to_ns", .title = "To", .help = "its end", .type = CELL_I64, .unit = UNIT_TIME_NS, .flags = COLUMN_DETAIL},
	};
	table_columns(t, columns, sizeof columns / sizeof *columns);
	if (f->of_window)
		t->data[GAIN].col.title = "Gain, at most";
	for (unsigned i = 0; i < f->n; i++)
		detect_own_row(t, &f->v[i], f->args.brief);
	if (!f->n && f->memory_alone)
		table_note(t, "Detectors look at time, which a memory snapshot does not have; the one that looks at memory, memory-fragmentation, found nothing. `opscope report memory` says who holds memory at the peak, `leaks` what is not freed, and `fragmentation` in what pieces it is.");
	else if (!f->n)
		table_note(t, f->n_missing ? "Nothing found by the detectors that are applicable. `opscope report operators` and `lines` say where the time went." : "Nothing found.");
}

static void quoted_table(const struct findings *f, struct table *t)
{
	static const struct column columns[] = {
		{.id = "problem", .title = "Problem", .help = "in the predecessor's words", .type = CELL_STR, .flags = COLUMN_PROSE},
		{.id = "recommendation", .title = "Recommendation", .help = "in the predecessor's words", .type = CELL_STR, .flags = COLUMN_PROSE},
	};
	table_columns(t, columns, sizeof columns / sizeof *columns);
	for (unsigned i = 0; i < f->n; i++) {
		table_row(t);
		table_set_str_copy(t, 0, f->v[i].problem);
		table_set_str_copy(t, 1, f->v[i].advice);
	}
}

/* One note for each reason, with all detectors that give it and what would make them applicable. */
static void missing_notes(const struct findings *f, struct table *t)
{
	struct buf names = {0};
	for (unsigned i = 0; i < f->n_missing; i++) {
		if (ANY_WHERE(k, 0, i, str_eq(f->missing[k].why, f->missing[i].why)))
			continue;
		buf_clear(&names);
		for (unsigned k = i; k < f->n_missing; k++)
			if (str_eq(f->missing[k].why, f->missing[i].why))
				buf_printf(&names, "%s%s", names.n ? ", " : "", f->missing[k].detector);
		const char *remedy = f->missing[i].remedy, *how = f->missing[i].aside ? "; to find out: " : "; applicable with: ";
		table_note(t, STR_FMT " not applicable: " STR_FMT "%s%s.", STR_ARG(buf_view(&names)), STR_ARG(f->missing[i].why), remedy ? how : "", remedy ? remedy : "");
	}
	buf_release(&names);
}

/* The heading of the findings: an expert system has its own. */
static const char *detect_title_of(const char *experts)
{
	for (const struct detector *const *d = detector_registry; experts && *d; d++)
		if ((*d)->experts && strcmp((*d)->experts->name, experts) == 0)
			return (*d)->experts->title;
	return "Findings";
}

void findings_table(const struct findings *f, struct table *t)
{
	table_init(t, "advise", detect_title_of(f->args.experts));
	if (f->args.experts)
		quoted_table(f, t);
	else
		detect_own_table(f, t);
	t->notes_answer = true;
	for (unsigned i = 0; i < f->n_notes; i++)
		table_note(t, STR_FMT, STR_ARG(f->note[i]));
	if (f->args.brief && !f->args.experts)
		not_applicable_note(f, t);
	else
		missing_notes(f, t);
}
