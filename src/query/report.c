#include "query/report.h"

#include "analysis/names/short_names.h"
#include "analysis/ranks/job_hang.h"
#include "analysis/ranks/rank_place.h"
#include "base/buf.h"
#include "base/search.h"
#include "query/outside.h"
#include "query/per.h"
#include "query/predecessor.h"
#include "query/stated.h"
#include "query/window.h"
#include "store/reuse.h"

#include <assert.h>
#include <stdio.h>

const char *const report_question[] = {
#define REPORT_QUESTION_(id, question) question,
	REPORT_QUESTIONS(REPORT_QUESTION_)
};

int report_args_steps(struct report_args *a, struct str text, struct err *e)
{
	struct str first = text, last = text;
	ptrdiff_t dots = str_find(text, STR(".."));
	if (dots >= 0) {
		first = (struct str){text.p, (size_t)dots};
		last = (struct str){text.p + dots + 2, text.n - (size_t)dots - 2};
	}
	int64_t from = INT64_MIN, to = INT64_MAX;
	bool ok = (first.n || last.n) && (!first.n || str_to_i64(first, &from)) && (!last.n || str_to_i64(last, &to));
	if (!ok || from > to || to == STEP_OUTSIDE)
		return err_set(e, ERR_USAGE, "steps=" STR_FMT ": A..B with A <= B, or one step number, was expected", STR_ARG(text));
	a->has_steps = true;
	a->step_first = from;
	a->step_last = to;
	return 0;
}

int report_args_population(struct report_args *a, struct str text, struct err *e)
{
	struct report_args chosen = *a;
	chosen.all_steps = str_eqc(text, "all");
	chosen.outside = chosen.has_steps = str_eqc(text, "outside");
	chosen.step_first = chosen.step_last = chosen.outside ? STEP_OUTSIDE : 0;
	if (chosen.all_steps || chosen.outside || report_args_steps(&chosen, text, e) == 0) {
		*a = chosen;
		return 0;
	}
	return err_set(e, ERR_USAGE, "steps=" STR_FMT ": A..B with A <= B, one step number, all (what lies outside the steps counts, too) or outside was expected", STR_ARG(text));
}

/* The predecessor whose tables have the aggregation; NULL. Also gives the key op and iterations that it was made with. */
static const struct predecessor *find_stated(const struct profile *p, int64_t id, struct report_args *out)
{
	struct table tables;
	const struct predecessor *const *by = predecessor_registry;
	table_init(&tables, "", "");
	stated_tables(p, &tables);
	while (*by && !((*by)->stated && (*by)->stated->args(&tables, id, out)))
		by++;
	table_release(&tables);
	return *by;
}

static int of_stated(const struct profile *p, int64_t id, struct report_args *out, struct err *e)
{
	const struct predecessor *by = find_stated(p, id, out);
	if (!by)
		return err_set(e, ERR_USAGE, "--aggregation=%lld: the input has no such aggregation; `opscope report aggregations` lists them", (long long)id);
	if (out->has_steps && !report_compat_is(out, by->name))
		return err_set(e, ERR_DATA, "--aggregation=%lld: it is of %s's iterations %lld to %lld, which are cut by other rules than steps: use --compat=%s, "
		               "or --steps and --key-op", (long long)id, by->title, (long long)out->step_first, (long long)out->step_last, by->name);
	return 0;
}

int report_args_chosen(const struct profile *p, const struct report_args *in, struct report_args *out, struct err *e)
{
	*out = *in;
	if (!in->aggregation)
		return 0;
	if (in->has_steps || in->key_op)
		return err_set(e, ERR_USAGE, "--aggregation=%lld has a key op and steps of its own: --key-op and --steps go without it", (long long)in->aggregation);
	out->aggregation = 0;
	for (unsigned i = 0; i < p->n_aggregations; i++) {
		const struct aggregation *a = &p->aggregation[i];
		if (a->id != in->aggregation)
			continue;
		out->key_op = a->key_op.n ? a->key_op.p : NULL;
		return a->steps.n ? report_args_steps(out, a->steps, e) : 0;
	}
	return of_stated(p, in->aggregation, out, e);
}

const struct report *report_find(struct str name)
{
	for (const struct report *const *r = report_registry; *r; r++)
		if (str_eqc(name, (*r)->name))
			return *r;
	return NULL;
}

/* The ids of columns say what they hold: the times of host ranges are made up where an input holds durations of device work
 * only. */
static void forget_host_times(struct table *t)
{
	bool any = false;
	for (struct table *s = t; s; s = s->next)
		for (unsigned c = 0; c < s->n_columns; c++) {
			const struct column *col = &s->data[c].col;
			if ((col->unit != UNIT_NS && col->unit != UNIT_PERCENT) || !strstr(col->id, "host"))
				continue;
			any = true;
			for (size_t i = 0; i < s->n_rows; i++)
				s->data[c].set[i] = 0;
		}
	if (any)
		table_warn(t, "host times are unknown: this input holds the durations of kernels only");
}

/* Sets the key op that the args name, and runs the passes that the report needs. */
static int report_choose_steps(struct profile *p, const struct report_args *args, unsigned needs, struct err *e)
{
	bool other = !str_eq(p->key_op, str_from(args->key_op ? args->key_op : ""));
	if (other && steps_choose(p, args->key_op, e) < 0)
		return -1;
	return analysis_run(p, needs | (args->has_steps ? PASS_STEPS : 0), e);
}

/* The profile that a report sees which knows nothing of steps. */
static struct profile *report_part_of(struct profile *p, const struct report_args *args, unsigned needs, struct err *e)
{
	struct window shown;
	if (p->durations_only) {
		err_set(e, ERR_DATA, "--steps: this input holds durations but no times, so that there are no steps");
		return NULL;
	}
	if (args->outside) {
		err_set(e, ERR_USAGE, "--steps=outside: what lies outside the steps can be shown by reports of ops, kernels, calls and copies alone: A..B, one step number or all was expected");
		return NULL;
	}
	if (window_of(p, args, &shown, e) < 0)
		return NULL;
	struct profile *part = slice_of(p, &shown.in, args->step_first, args->step_last, e);
	return part && analysis_run(part, needs, e) == 0 ? part : NULL;
}

struct profile *report_part(struct profile *p, const struct report_args *args, unsigned needs, struct err *e)
{
	if (report_choose_steps(p, args, needs, e) < 0)
		return NULL;
	return args->has_steps ? report_part_of(p, args, needs, e) : p;
}

static void note_part(const struct profile *whole, const struct profile *part, const struct report_args *args, struct table *t)
{
	char range[64];
	bool from = args->step_first != INT64_MIN, to = args->step_last != INT64_MAX;
	int n = from ? snprintf(range, sizeof range, "%lld", (long long)args->step_first) : 0;
	if (args->step_first != args->step_last)
		snprintf(range + n, sizeof range - (size_t)n, to ? "..%lld" : "..", (long long)args->step_last);
	table_note(t, "--steps=%s: %u of %u host ranges, %u of %u device operations. Device work belongs to the step that launched it.",
	           range, part->span.rows.n, whole->span.rows.n, part->gpu_op.rows.n, whole->gpu_op.rows.n);
}

/* The short form of a name, or of several names with "; " between them. */
static struct str short_form(const struct short_names *names, struct str full, struct arena *a)
{
	struct buf b = {0};
	for (bool more = true; more;) {
		ptrdiff_t end = str_find(full, STR("; "));
		struct str one = {full.p, end < 0 ? full.n : (size_t)end};
		more = end >= 0;
		buf_str(&b, short_names_find(names, one));
		buf_cstr(&b, more ? "; " : "");
		full = more ? (struct str){full.p + end + 2, full.n - (size_t)end - 2} : full;
	}
	struct str copy = b.n ? arena_str(a, buf_view(&b)) : STR("");
	buf_release(&b);
	return copy;
}

/* Adds a column of short names beside each column of full names of kernels. */
static void add_short_names(const struct profile *p, struct table *t)
{
	struct short_names *names = NULL;
	for (; t; t = t->next)
		for (unsigned c = 0; c < t->n_columns; c++) {
			if (!(t->data[c].col.flags & COLUMN_KERNEL))
				continue;
			if (!names)
				names = short_names_new(p);
			struct column added = section_short_name(&t->data[c].col);
			unsigned at = table_column(t, &added);
			for (size_t r = 0; r < t->n_rows; r++) {
				if (!t->data[c].set[r])
					continue;
				t->data[at].set[r] = 1;
				t->data[at].cell[r].s = short_form(names, table_str(t, r, c), &t->arena);
			}
			break;
		}
	short_names_free(names);
}

/* Notes what the recording itself cost and lost, where the input says so: this concerns every number. */
static void note_recording(const struct profile *p, struct table *t)
{
	uint32_t key = intern_find(&p->strings, STR("recording:note"));
	for (uint32_t i = 0; i < p->meta.rows.n && key != INTERN_NONE; i++)
		if (p->meta.key[i] == key) {
			struct str note = profile_str(p, p->meta.value[i]);
			table_warn(t, STR_FMT, STR_ARG(note));
		}
}

/* Whether a report that takes REPORT_OF_STEPS is of the steps though the user did not ask for steps; sets args to these steps. */
static bool is_of_steps(struct profile *p, struct report_args *args, struct err *e)
{
	if (args->has_steps || args->all_steps || args->compat || p->durations_only || p->whole)
		return false;
	if (analysis_run(p, PASS_STEPS, e) < 0 || p->steps->whole_trace || !p->steps->n)
		return false;
	args->has_steps = true;
	args->step_first = INT64_MIN;
	args->step_last = INT64_MAX;
	return true;
}

/* The chosen part of the file holds nothing of what the report is about. Where the file does, the error says how to see it; else it is that of the whole
 * file. */
static int fail_of_steps(const struct report *r, struct profile *p, const struct report_args *of_steps, struct table *out, struct err *e)
{
	struct report_args args = *of_steps;
	struct err of_file;
	struct window w;
	if (window_of(p, of_steps, &w, &of_file) < 0) /* there are no such steps: *e says so */
		return -1;
	args.has_steps = args.outside = false;
	args.per = REPORT_PER_TOTAL;
	args.all_steps = true;
	if (report_run(r, p, &args, out, &of_file) < 0) {
		*e = of_file;
		return -1;
	}
	table_release(out);
	if (of_steps->outside)
		return err_set(e, ERR_DATA, "report %s: outside the steps there is nothing for it", r->name);
	if (of_steps->step_first != INT64_MIN || of_steps->step_last != INT64_MAX)
		return err_set(e, ERR_DATA, "report %s: %s holds nothing for it", r->name, steps_range_text(of_steps->step_first, of_steps->step_last).s);
	return err_set(e, ERR_DATA, "report %s: the steps hold nothing for it%s%s; --steps=all: what lies outside them counts, too", r->name, r->none_in_steps ? ": " : "",
	               r->none_in_steps ? r->none_in_steps : "");
}

#ifdef OPSCOPE_CHECK
/* Whether the declared sections have all columns of opscope's own tables. Sections of a report about the file come from the input. */
static bool is_declared(const struct report *r, const struct table *main)
{
	struct section_entry found;
	for (const struct table *t = main; t; t = r->takes & REPORT_FILE ? NULL : t->next)
		for (unsigned c = 0; c < t->n_columns; c++)
			if (!section_find(r, t == main ? NULL : t->name, str_from(t->data[c].col.id), &found))
				return false;
	return true;
}
#endif

int report_run_job(const struct report *r, const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	if (!(r->takes & REPORT_WORKERS) && ANY_WHERE(i, 0, j->n, j->rank[i]->is_worker))
		return err_set(e, ERR_DATA, "report %s: this is a timeline of workers, which states tasks and neither device work nor collectives: `slowdown` says what slow workers cost, `pipeline` what the "
		               "stages do", r->name);
	int rc = r->run_job(j, args, out, e);
	return rc < 0 && job_is_hang(j) ? job_hang_refuse(e) : rc;
}

static const char own_job_kept[] = "own job";

static void own_job_release(void *result)
{
	job_free(result);
}

/* Of the ranks that one profile holds. */
static int report_run_own_job(const struct report *r, const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	const bool usual = args->align == JOB_ALIGN_AUTO && !args->clocks;
	struct job *kept = usual ? reuse_find(p, own_job_kept) : NULL, *j = kept ? kept : job_new();
	int rc = 0;
	if (!kept) {
		job_add_profile(j, p, RANK_UNKNOWN);
		rc = job_finish(j, (enum job_align)args->align, args->clocks, e);
	}
	if (!kept && usual && rc < 0)
		reuse_give_up(p, own_job_kept);
	else if (!kept && usual && reuse_keep(p, own_job_kept, j, own_job_release, NULL))
		kept = j;
	rc = rc < 0 ? rc : report_run_job(r, j, args, out, e);
	if (!kept)
		job_free(j);
	return rc;
}

/* Of a single recording. */
static int report_gather_one(const struct report_gather *g, const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	void *gathered = g->start(args);
	struct rank_place place = rank_place_of(p);
	g->add(gathered, p, place.is_rank ? place.rank : 0);
	int rc = g->finish(gathered, out, e);
	g->end(gathered);
	return rc;
}

int report_fill(const struct report *r, const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	const struct report_variant *v = args->variant;
	report_run_fn *run = v->run ? v->run : r->run;
	int rc = v->gather ? report_gather_one(v->gather, p, args, out, e) : run ? run(p, args, out, e) : report_run_own_job(r, p, args, out, e);
	table_drop_left_out(out);
#ifdef OPSCOPE_CHECK
	assert(rc < 0 || args->compat || is_declared(r, out));
#endif
	return rc;
}

/* What is done to the tables of a report behind run(). */
static void report_finish_tables(const struct profile *p, const struct report_args *args, struct table *t)
{
	if (p->durations_only)
		forget_host_times(t);
	note_recording(p, t);
	if (!args->compat)
		add_short_names(p, t);
}

struct report_drain {
	struct table_drain drain;
	const struct profile *p;
	const struct report_args *args;
	const struct report_pieces *to;
};

static void report_put_piece(void *context, const struct table *rows)
{
	const struct report_drain *d = context;
	struct table piece;
	table_copy(&piece, rows);
	table_drop_left_out(&piece);
	report_finish_tables(d->p, d->args, &piece);
	d->to->put(d->to->context, &piece);
	table_release(&piece);
}

/* The rest of report_run, with the arguments chosen. by_default: it is of the steps though the user did not ask for steps. */
static int report_run_chosen(const struct report *r, struct profile *p, struct report_args *args, bool by_default, struct table *out, struct err *e)
{
	const unsigned needs = r->needs | args->variant->needs, takes = r->takes | args->variant->takes;
	const struct profile *whole = NULL;
	struct profile *all = p;
	struct report_args of_part = *args;
	if (args->has_steps && !(takes & REPORT_STEPS)) {
		of_part.has_steps = false;
		whole = p;
		p = report_part_of(p, args, needs, e);
		if (!p)
			return -1;
	}
	struct report_drain drain = {{report_put_piece, &drain, {0}}, p, args, args->pieces};
	args->pieces = of_part.pieces = NULL;
	table_init(out, r->name, r->title);
	if (drain.to && (takes & REPORT_LIMIT) && !(takes & REPORT_SORTED) && args->per == REPORT_PER_TOTAL)
		out->drain = &drain.drain;
	int rc = report_fill(r, p, &of_part, out, e);
	table_end_drain(out);
	if (rc < 0) {
		table_release(out);
		bool empty = args->has_steps && (takes & REPORT_OF_STEPS) && !args->compat && e && e->code == ERR_DATA;
		return empty ? fail_of_steps(r, whole ? (struct profile *)whole : p, args, out, e) : -1;
	}
	bool outside = by_default && outside_note(whole ? whole : p, args, out);
	if (!by_default && whole)
		note_part(whole, p, args, out);
	report_finish_tables(p, args, out);
	if (outside)
		outside_sums(r, all, args, out);
	if (report_per(r, all, args, out, e) < 0) {
		table_release(out);
		return -1;
	}
	return 0;
}

int report_run(const struct report *r, struct profile *p, const struct report_args *asked, struct table *out,
               struct err *e)
{
	struct report_args chosen, *args = &chosen;
	if (report_args_chosen(p, asked, args, e) < 0)
		return -1;
	if (report_check(r, args, e) < 0)
		return -1;
	assert(!(p->left_out & ~report_ignores(r, args)));
	args->variant = report_variant_of(r, args, NULL);
	unsigned needs = r->needs | args->variant->needs, takes = r->takes | args->variant->takes;
	if (r->timeline && p->durations_only)
		return err_set(e, ERR_DATA, "report %s: this input holds durations but no times, which idle time, overlap and steps "
		               "need: give the database or trace that it was made from", r->name);
	if (report_choose_steps(p, args, needs, e) < 0)
		return -1;
	const bool by_default = (takes & REPORT_OF_STEPS) && is_of_steps(p, args, e);
	/* What the steps and what lies outside them are told from, such as the op tree, is made once. */
	const bool began = by_default && outside_is_summed(r, args) && reuse_begin(p);
	const int rc = report_run_chosen(r, p, args, by_default, out, e);
	if (began)
		reuse_end(p);
	return rc;
}
