/* Jobs: the ranks of one run. Nothing of a job changes once it is open, so that threads need no turns: each question reads the recordings anew. */
#include "api/api.h"

#include "base/mem.h"
#include "base/threads.h"
#include "detect/detect.h"
#include "input/discover.h"
#include "io/remote/remote.h"
#include "open/job_list.h"
#include "query/diff_job.h"
#include "query/job_advice.h"
#include "query/job_each.h"
#include "query/job_file.h"
#include "store/load_job.h"

struct opscope_job {
	struct str path;           /* as it was given */
	struct trace_list list;
	bool kept;                 /* list.v[0] is a file that keeps the job */
	unsigned n;                /* recordings */
	const char **recording;    /* their paths */
	int64_t *rank;
	struct opscope_options o;  /* how they are read; its strings are in the arena */
	struct arena arena;
};

/* ---- opening ---- */

struct api_job_opening {
	const char *path;
	const struct opscope_options *o;
	struct opscope_job *made;
	struct err e;
};

static const char *api_job_copy(struct opscope_job *j, const char *text)
{
	return text ? arena_str(&j->arena, str_from(text)).p : NULL;
}

static void api_job_copy_options(struct opscope_job *j, const struct opscope_options *o)
{
	j->o.input = (struct input_options){.as_written = o->input.as_written, .threads = o->input.threads};
	j->o.input.format = api_job_copy(j, o->input.format);
	j->o.input.capture = api_job_copy(j, o->input.capture);
	j->o.input.provenance = api_job_copy(j, o->input.provenance);
	j->o.input.execution_trace = api_job_copy(j, o->input.execution_trace);
	j->o.input.counters = api_job_copy(j, o->input.counters);
	j->o.gpu = api_job_copy(j, o->gpu);
	j->o.rules = api_job_copy(j, o->rules);
	j->o.kernel_rules = api_job_copy(j, o->kernel_rules);
}

static void api_job_make_room(struct opscope_job *j, unsigned n)
{
	j->n = n;
	j->recording = ARENA_ARRAY(&j->arena, n, const char *);
	j->rank = ARENA_ARRAY(&j->arena, n, int64_t);
}

static int api_job_take_kept(struct opscope_job *j, struct err *e)
{
	if (j->o.gpu || j->o.rules || j->o.kernel_rules)
		return err_set(e, ERR_USAGE, "it keeps no recordings, and gpu, rules and kernel-rules change what is read of them: the folder of the ranks was expected");
	struct job_file *f = job_file_open(j->list.v[0].path.p, e);
	if (!f)
		return -1;
	struct job_inputs in = job_file_inputs(f);
	api_job_make_room(j, in.n);
	for (unsigned i = 0; i < in.n; i++) {
		j->recording[i] = api_job_copy(j, in.path(in.context, i));
		j->rank[i] = in.rank(in.context, i);
	}
	job_file_close(f);
	return 0;
}

static void api_job_take_list(struct opscope_job *j)
{
	api_job_make_room(j, j->list.n);
	for (unsigned i = 0; i < j->n; i++) {
		j->recording[i] = j->list.v[i].path.p;
		j->rank[i] = j->list.v[i].rank;
	}
}

static int api_job_find(struct opscope_job *j, const struct opscope_options *o, struct err *e)
{
	if (discover_add(&j->list, j->path.p, e) < 0)
		return -1;
	discover_finish(&j->list);
	int kept = j->list.n == 1 ? load_job_look(j->list.v[0].path.p, e) : 0;
	if (kept < 0)
		return -1;
	j->kept = kept;
	if (o)
		discover_select(&j->list, o->run, o->worker, o->span);
	if (j->kept && j->list.n)
		return api_job_take_kept(j, e);
	if (!job_list_is(&j->list))
		return err_set(e, ERR_DATA, "no job of several ranks");
	api_job_take_list(j);
	return 0;
}

static void api_job_free(struct opscope_job *j)
{
	discover_release(&j->list);
	arena_release(&j->arena);
	mem_free(j);
}

static void api_job_open(void *opening)
{
	struct api_job_opening *x = opening;
	struct opscope_job *j = NEW(struct opscope_job);
	j->path = arena_str(&j->arena, str_from(remote_name(x->path)));
	if (x->o)
		api_job_copy_options(j, x->o);
	if (api_job_find(j, x->o, &x->e) == 0)
		x->made = j;
	else
		api_job_free(j);
}

struct opscope_job *opscope_job_open(const char *path, const struct opscope_options *o, char *error, size_t error_size)
{
	struct api_job_opening x = {.path = path, .o = o};
	struct mem_pool blocks = {0};
	if (!path)
		err_set(&x.e, ERR_USAGE, "opscope_job_open: a path was expected, not NULL");
	else if (o && o->rank)
		err_set(&x.e, ERR_USAGE, "%s: rank=%s is about one recording: opscope_open takes it", path, o->rank);
	else if (api_try(&blocks, api_job_open, &x, &x.e) < 0 || x.e.code)
		err_prefix(&x.e, "%s", path);
	mem_pool_drop(&blocks);
	if (!x.e.code)
		return x.made;
	api_error(&x.e, error, error_size);
	return NULL;
}

void opscope_job_close(struct opscope_job *j)
{
	if (j)
		api_job_free(j);
}

unsigned opscope_job_recordings(const struct opscope_job *j)
{
	return j->n;
}

const char *opscope_job_path(const struct opscope_job *j, unsigned i)
{
	return i < j->n ? j->recording[i] : NULL;
}

int64_t opscope_job_rank(const struct opscope_job *j, unsigned i)
{
	return i < j->n ? j->rank[i] : -1;
}

int opscope_job_is_kept(const struct opscope_job *j)
{
	return j->kept;
}

/* ---- asking ---- */

struct api_job_asking {
	const struct opscope_job *j;
	const struct opscope_options *o;
	struct report_args args;
	const struct report *report; /* NULL = advice */
	uint64_t done_bytes, all_bytes;
	struct opscope_table *made;
	struct err e;
};

static struct profile *api_job_read(void *asking, unsigned i, struct err *e)
{
	const struct opscope_job *j = ((const struct api_job_asking *)asking)->j;
	return api_open_found(&j->list.v[i], &j->o, e);
}

static const char *api_job_path_of(void *asking, unsigned i)
{
	return ((const struct api_job_asking *)asking)->j->recording[i];
}

static int64_t api_job_rank_of(void *asking, unsigned i)
{
	return ((const struct api_job_asking *)asking)->j->rank[i];
}

/* Recording i was opened: called on the thread that asks. */
static void api_job_opened(void *asking, unsigned i)
{
	struct api_job_asking *a = asking;
	a->done_bytes += source_size_of(a->j->recording[i]);
	if (a->o && a->o->input.progress)
		a->o->input.progress(a->o->input.progress_context, a->done_bytes, a->all_bytes);
}

static struct job_inputs api_job_inputs(struct api_job_asking *a)
{
	for (unsigned i = 0; i < a->j->n; i++)
		a->all_bytes += source_size_of(a->j->recording[i]);
	return (struct job_inputs){.n = a->j->n, .open = api_job_read, .open_quietly = api_job_read, .opened = api_job_opened, .threads = threads_wanted(a->j->o.input.threads),
	                           .path = api_job_path_of, .rank = api_job_rank_of, .context = a};
}

static int api_job_answer(struct api_job_asking *a, const struct job_inputs *in, struct table *t)
{
	const bool each = a->o && a->o->rank;
	return a->report ? job_report_run(a->report, in, each, &a->args, t, &a->e) : job_advice_run(in, &a->args, t, &a->e);
}

static void api_job_run(void *asking)
{
	struct api_job_asking *a = asking;
	struct job_file *f = a->j->kept ? job_file_open(a->j->list.v[0].path.p, &a->e) : NULL;
	struct table t;
	if (a->j->kept && !f)
		return;
	struct job_inputs in = f ? job_file_inputs(f) : api_job_inputs(a);
	if (api_job_answer(a, &in, &t) == 0) {
		job_list_warn(&a->j->list, &t);
		a->made = api_finish_table(&t, a->args.compat ? NULL : a->report, a->j->path, a->o, &a->e);
	}
	job_file_close(f);
	api_disown_table(a->made);
}

static struct opscope_table *api_job_ask(struct api_job_asking *a, char *error, size_t error_size)
{
	struct mem_pool blocks = {0};
	if (!a->e.code && api_try(&blocks, api_job_run, a, &a->e) < 0)
		a->made = NULL;
	mem_pool_drop(&blocks);
	if (!a->made)
		api_error(&a->e, error, error_size);
	return a->made;
}

struct opscope_table *opscope_job_report(struct opscope_job *j, const char *name, const struct opscope_options *o, char *error, size_t error_size)
{
	struct api_job_asking a = {.j = j, .o = o, .args = o ? o->report : (struct report_args){0}};
	a.report = j && name ? report_find(str_from(name)) : NULL;
	if (!j || !name)
		err_set(&a.e, ERR_USAGE, "opscope_job_report: a job and a name were expected, not NULL");
	else if (!a.report)
		err_set(&a.e, ERR_USAGE, "no report '%s'", name);
	else if (o && o->rank && api_number(o->rank) >= 0)
		err_set(&a.e, ERR_USAGE, "%s: rank=%s is about one recording: it is to be opened by itself; rank=all has rows of each", name, o->rank);
	else
		report_check(a.report, &a.args, &a.e);
	return api_job_ask(&a, error, error_size);
}

struct opscope_table *opscope_job_advise(struct opscope_job *j, const struct opscope_options *o, char *error, size_t error_size)
{
	struct api_job_asking a = {.j = j, .o = o, .args = o ? o->report : (struct report_args){0}};
	if (!j)
		err_set(&a.e, ERR_USAGE, "opscope_job_advise: a job was expected, not NULL");
	else if (a.args.device || a.args.compat || (o && o->rank))
		err_set(&a.e, ERR_USAGE, "advise: device, compat and rank are for one recording: this is of all ranks");
	return api_job_ask(&a, error, error_size);
}

/* ---- two jobs ---- */

struct api_job_comparing {
	struct api_job_asking side[2];
	const struct opscope_options *o;
	struct opscope_table *made;
	struct err e;
};

/* NULL and *e. */
static struct diff_side *api_job_side(struct api_job_asking *a, struct err *e)
{
	struct job_file *f = a->j->kept ? job_file_open(a->j->list.v[0].path.p, e) : NULL;
	if (a->j->kept && !f)
		return NULL;
	struct job_inputs in = f ? job_file_inputs(f) : api_job_inputs(a);
	struct diff_side *side = diff_job_read(&in, &a->args, e);
	job_file_close(f);
	return side;
}

static void api_job_compare(void *comparing)
{
	struct api_job_comparing *x = comparing;
	const struct diff_ask ask = x->o ? x->o->diff : (struct diff_ask){0};
	struct diff_side *a = api_job_side(&x->side[0], &x->e), *b = a ? api_job_side(&x->side[1], &x->e) : NULL;
	struct table t;
	if (b && diff_table(a, b, &ask, &t, &x->e) == 0)
		x->made = api_finish_table(&t, NULL, x->side[1].j->path, x->o, &x->e);
	diff_side_free(a);
	diff_side_free(b);
	api_disown_table(x->made);
}

struct opscope_table *opscope_job_diff(struct opscope_job *a, const struct opscope_options *of_a, struct opscope_job *b, const struct opscope_options *of_b, const struct opscope_options *o,
                                       char *error, size_t error_size)
{
	const struct opscope_options *of[] = {of_a, of_b};
	struct opscope_job *j[] = {a, b};
	struct api_job_comparing x = {.o = o};
	struct mem_pool blocks = {0};
	for (int i = 0; i < 2; i++) {
		x.side[i] = (struct api_job_asking){.j = j[i], .o = of[i], .args = of[i] ? of[i]->report : (struct report_args){0}};
		if (!x.side[i].args.device && o)
			x.side[i].args.device = o->report.device;
	}
	if (!a || !b)
		err_set(&x.e, ERR_USAGE, "opscope_job_diff: two jobs were expected, not NULL");
	else if (api_try(&blocks, api_job_compare, &x, &x.e) < 0)
		x.made = NULL;
	mem_pool_drop(&blocks);
	if (!x.made)
		api_error(&x.e, error, error_size);
	return x.made;
}
