/* A run in a few figures, for a list of many: found once for each content of its files, and kept when the recordings are not. */
#include "analysis/ranks/rank.h"
#include "base/mem.h"
#include "input/discover.h"
#include "query/job_advice.h"
#include "query/job_file.h"
#include "serve/shelf.h"
#include "serve/summary.h"
#include "store/load_job.h"

#include <math.h>

struct summary_asked {
	const struct request *r;
	struct library_entry **entry; /* of one input, or of all of a run */
	unsigned n, cap;
	struct summary *rank;    /* of the recordings of a job that were read */
	unsigned n_ranks;
	struct arena texts;      /* owns those, and what is said of them */
	struct buf *out;
	struct err *e;
	int rc;
};

static int serve_summary_stop(const struct request *r, struct err *e)
{
	if (library_ends(r->library) || (r->gone && r->gone(r->who)))
		return err_set(e, ERR_LIMIT, "nobody waits for the answer any more");
	return 0;
}

static uint64_t serve_summary_content(const struct request *r, struct library_entry *x)
{
	library_renew(r->library, x);
	return library_content(r->library, x);
}

/* Keeps the text of an input, unless the file has become another while it was read. */
static void serve_summary_keep(const struct request *r, struct library_entry *x, uint64_t content, struct str text)
{
	if (serve_summary_content(r, x) == content)
		library_note_put(r->library, x, NOTE_SUMMARY, content, text);
}

/* ---- one input ---- */

/* Of an input that the library holds, or is about to hold. What is allocated in a turn belongs to the profile, so that the texts are released before the visit ends. */
static int serve_summary_of_held(struct summary_asked *k, struct library_entry *x)
{
	struct library_visit v;
	struct library_turn turn;
	struct summary s;
	if (library_visit_begin(&v, k->r->library, x, k->e) < 0)
		return -1;
	int rc = library_turn_begin(&turn, x, k->e);
	if (rc == 0) {
		summary_of(x->profile, &k->texts, &s);
		library_turn_end(&turn);
		summary_put(&s, k->out);
		arena_release(&k->texts);
	}
	library_visit_end(&v);
	return rc;
}

static int serve_summary_of_file(struct summary_asked *k, struct library_entry *x)
{
	struct summary s;
	struct err why;
	struct profile *p = library_read_apart(k->r->library, x, &why);
	if (!p)
		return err_set(k->e, why.code == ERR_NOMEM ? ERR_LIMIT : ERR_DATA, "%s", why.msg);
	summary_of(p, &k->texts, &s);
	profile_free(p);
	summary_put(&s, k->out);
	arena_release(&k->texts);
	return 0;
}

static void serve_summary_find(void *asked)
{
	struct summary_asked *k = asked;
	struct library_entry *x = k->entry[0];
	uint64_t content = serve_summary_content(k->r, x);
	k->rc = library_is_wanted(k->r->library, x) ? serve_summary_of_held(k, x) : serve_summary_of_file(k, x);
	if (k->rc == 0)
		serve_summary_keep(k->r, x, content, buf_view(k->out));
}

/* ---- the ranks of a job ---- */

/* A recording is read once, both for its own row and for that of the job. */
static struct profile *serve_summary_open(void *asked, unsigned i, struct err *e)
{
	struct summary_asked *k = asked;
	struct library_entry *x = k->entry[i];
	if (serve_summary_stop(k->r, e) < 0)
		return NULL;
	uint64_t content = serve_summary_content(k->r, x);
	struct profile *p = library_read_apart(k->r->library, x, e);
	if (!p)
		return NULL;
	struct summary *s = &k->rank[k->n_ranks++];
	summary_of(p, &k->texts, s);
	struct buf text = {0};
	summary_put(s, &text);
	serve_summary_keep(k->r, x, content, buf_view(&text));
	buf_release(&text);
	return p;
}

static const char *serve_summary_path(void *asked, unsigned i)
{
	return ((struct summary_asked *)asked)->entry[i]->path.p;
}

static int64_t serve_summary_rank(void *asked, unsigned i)
{
	const struct library_entry *x = ((struct summary_asked *)asked)->entry[i];
	int64_t number;
	return discover_rank_for_certain(&(struct trace_file){.path = x->path, .run = x->run, .worker = x->worker, .span = x->span}, &number) ? number : RANK_UNKNOWN;
}

static void serve_summary_advise(const struct job_inputs *in, struct arena *a, struct summary *s)
{
	struct table t;
	struct err e;
	bool advised = job_advice_run(in, &(struct report_args){0}, &t, &e) == 0;
	summary_set_findings(s, a, advised ? &t : NULL, &e);
	if (advised)
		table_release(&t);
}

/* Nothing found about a job of whose ranks none could be looked at is nothing known. */
static void serve_summary_doubt_findings(const struct summary_asked *k, struct summary *found)
{
	for (unsigned i = 0; i < k->n_ranks; i++)
		if (k->rank[i].findings >= 0)
			return;
	if (found->findings || !k->n_ranks)
		return;
	found->findings = -1;
	found->findings_why = k->rank[0].findings_why;
}

static void serve_summary_find_job(void *asked)
{
	struct summary_asked *k = asked;
	struct summary s, found = {0};
	const struct job_inputs in = {.n = k->n, .open = serve_summary_open, .path = serve_summary_path, .rank = serve_summary_rank, .context = k};
	k->rank = ARENA_ARRAY(&k->texts, k->n, struct summary);
	serve_summary_advise(&in, &k->texts, &found);
	serve_summary_doubt_findings(k, &found);
	k->rc = serve_summary_stop(k->r, k->e);
	summary_of_ranks(k->rank, k->n_ranks, &k->texts, &s);
	s.left_out = k->n - k->n_ranks;
	s.findings = found.findings;
	s.findings_why = found.findings_why;
	s.severity = found.severity;
	s.problem = found.problem;
	s.others = found.others;
	summary_put(&s, k->out);
	arena_release(&k->texts);
}

/* The mean step of the ranks, as the report of them has it. */
static void serve_summary_take_ranks(struct summary *s, const struct table *t)
{
	int step = table_find_column(t, STR("step_ns"));
	double sum = 0;
	unsigned n = 0;
	for (size_t i = 0; i < t->n_rows && step >= 0; i++) {
		if (table_is_null(t, i, (unsigned)step))
			continue;
		sum += table_f64(t, i, (unsigned)step);
		n++;
	}
	s->ranks = (unsigned)t->n_rows;
	s->step_ns.value = n ? sum / n : (double)NAN;
}

/* A job's own file has what reports of all ranks need, and no recordings. */
static void serve_summary_find_kept(void *asked)
{
	struct summary_asked *k = asked;
	struct summary s;
	struct table t;
	struct err why;
	struct job_file *f = job_file_open(k->entry[0]->path.p, k->e);
	k->rc = f ? 0 : -1;
	if (!f)
		return;
	struct job_inputs in = job_file_inputs(f);
	summary_of_ranks(NULL, 0, &k->texts, &s);
	s.format = STR("opscope-job");
	s.busy_pct.why = s.mfu_pct.why = STR("the file of a job keeps no recordings");
	if (job_report_run(report_find(STR("ranks")), &in, false, &(struct report_args){0}, &t, &why) == 0) {
		serve_summary_take_ranks(&s, &t);
		table_release(&t);
	} else {
		s.step_ns.why = arena_str(&k->texts, str_from(why.msg));
	}
	serve_summary_advise(&in, &k->texts, &s);
	s.left_out = in.n > s.ranks ? in.n - s.ranks : 0;
	job_file_close(f);
	summary_put(&s, k->out);
	arena_release(&k->texts);
}

/* ---- asking ---- */

static void serve_summary_see(void *context, const struct library_entry *x)
{
	struct summary_asked *k = context;
	if (!x->absent && str_eq(x->run, request_value(k->r, "run")))
		MEM_PUSH(k->entry, k->n, k->cap, (struct library_entry *)(uintptr_t)x);
}

/* Beside recordings, a job's own file is a copy of these. */
static void serve_summary_drop_copies(struct summary_asked *k)
{
	unsigned n = 0;
	for (unsigned i = 0; i < k->n; i++)
		if (!load_job_is(k->entry[i]->path.p))
			k->entry[n++] = k->entry[i];
	k->n = n;
}

static int serve_summary_choose(struct summary_asked *k, struct response *out)
{
	struct str of = request_value(k->r, "of"), run = request_value(k->r, "run");
	if (of.p && run.p)
		return err_set(k->e, ERR_USAGE, "either 'of', an input, or 'run' was expected, not both");
	if (!of.p) {
		library_look(k->r->library, serve_summary_see, k);
		serve_summary_drop_copies(k);
	} else {
		struct library_entry *x = library_find(k->r->library, of);
		if (x)
			MEM_PUSH(k->entry, k->n, k->cap, x);
	}
	if (k->n)
		return 0;
	out->status = 404;
	return err_set(k->e, ERR_USAGE, "no %s '" STR_FMT "'; /api/runs lists them", of.p ? "input" : "run", STR_ARG(of.p ? of : run));
}

static int serve_summary_compute(struct summary_asked *k, void (*find)(void *asked), enum library_note note, uint64_t contents)
{
	struct mem_pool blocks = {0};
	if (library_note_get(k->r->library, k->entry[0], note, contents, k->out))
		return 0;
	if (serve_summary_stop(k->r, k->e) < 0)
		return -1;
	/* ERR_LIMIT, not ERR_NOMEM: asking again at once would read the file again, and fail again. */
	if (mem_try(&blocks, find, k) < 0) {
		*k->out = (struct buf){0};
		k->rc = err_set(k->e, ERR_LIMIT, STR_FMT ": there was no memory to read it beside what is in memory", STR_ARG(k->entry[0]->path));
		mem_pool_release(&blocks);
	}
	mem_pool_drop(&blocks);
	return k->rc;
}

static int serve_summary_run(const struct request *r, struct response *out, struct err *e)
{
	struct summary_asked k = {.r = r, .out = &out->body, .e = e};
	int rc = serve_summary_choose(&k, out);
	struct str run = request_value(r, "run");
	if (rc == 0 && !request_value(r, "of").p) {
		uint64_t contents = library_run_content(r->library, run);
		rc = serve_summary_compute(&k, serve_summary_find_job, NOTE_JOB_SUMMARY, contents);
		if (rc == 0 && library_run_content(r->library, run) == contents)
			library_note_put(r->library, k.entry[0], NOTE_JOB_SUMMARY, contents, buf_view(&out->body));
	} else if (rc == 0) {
		bool kept = load_job_is(k.entry[0]->path.p);
		uint64_t content = serve_summary_content(r, k.entry[0]);
		rc = serve_summary_compute(&k, kept ? serve_summary_find_kept : serve_summary_find, NOTE_SUMMARY, content);
	}
	mem_free(k.entry);
	return rc;
}

static const struct endpoint_param params[] = {
	{"of", "an input, as /api/state names it in \"input\"; without it, the figures are of the job of `run`", NULL, false},
	SHELF_PARAM,
	{0},
};

const struct endpoint endpoint_summary = {
	.path = "/api/summary",
	.help = "a row of the start page: the mean step, how busy the GPUs were, MFU and its peak, and the findings. The numbers are those of the reports overview and mfu and of `opscope advise`; a job has the means over its ranks. "
	        "What is not known is null, and the reason stands beside it; findings are not known where most detectors could not look. `losses`: what of the input could not be used",
	.flags = ENDPOINT_FRESH,
	.queue = QUEUE_SUMMARIES,
	.params = params,
	.run = serve_summary_run,
};
