#include "query/job_file.h"

#include "base/mem.h"
#include "query/job_each.h"
#include "query/job_read.h"
#include "store/load_job.h"
#include "store/save_job.h"

struct job_file {
	struct load_job *l;
	unsigned *chosen;        /* n pieces of l */
	unsigned n;
	char *path;
};

static const struct report_args job_file_args;
static const struct job_ask job_file_ask = {.args = &job_file_args, .findings = true, .side = true};

/* ---- writing ---- */

static int job_file_save_piece(struct save *s, const struct job_inputs *in, unsigned i, const struct job_read *x, struct err *e)
{
	struct buf b = {0};
	job_read_pack(x, &b);
	int rc = save_job_piece(s, str_from(in->path(in->context, i)), in->rank(in->context, i), buf_view(&b), e);
	buf_release(&b);
	return rc;
}

struct job_file_saving {
	struct save *s;
	const struct job_inputs *in;
	void (*warn)(const char *recording, const struct err *why);
	unsigned failed;
	int rc;
	struct err *e;
};

/* Whether the recording may be read another time: a file without it would be taken for the job's. */
static bool job_file_may_be_whole(const struct err *failed)
{
	return failed->code == ERR_IO || failed->code == ERR_NOMEM || failed->code == ERR_LIMIT;
}

static void *job_file_take(const void *context, const struct job_inputs *in, unsigned i)
{
	return job_read_of(in, i, &job_file_ask);
}

static void job_file_put(void *context, unsigned i, void *made)
{
	struct job_file_saving *w = context;
	struct job_read *x = made;
	if (w->rc == 0) {
		if (x->failed.code && !w->failed++)
			*w->e = x->failed;
		if (job_file_may_be_whole(&x->failed)) {
			*w->e = x->failed;
			w->rc = -1;
		} else {
			if (x->failed.code && w->warn)
				w->warn(w->in->path(w->in->context, i), &x->failed);
			w->rc = w->failed == w->in->n ? -1 : job_file_save_piece(w->s, w->in, i, x, w->e);
		}
	}
	job_read_free(x);
}

int job_file_save(const struct job_inputs *in, const char *path, mode_t mode, struct str input, void (*warn)(const char *recording, const struct err *why), struct err *e)
{
	struct save *s = save_job_begin(path, mode, input, e);
	struct job_file_saving w = {.s = s, .in = in, .warn = warn, .rc = s ? 0 : -1, .e = e};
	if (s)
		job_each(in, &(struct job_each){job_file_take, job_file_put, &w});
	int rc = w.rc;
	if (rc == 0)
		return save_commit(s, e);
	if (s)
		save_abort(s);
	return -1;
}

void job_file_read_all(const struct job_inputs *in)
{
	for (unsigned i = 0; i < in->n; i++)
		job_read_free(job_read_of(in, i, &job_file_ask));
}

/* ---- reading ---- */

struct job_file *job_file_open(const char *path, struct err *e)
{
	struct load_job *l = load_job_open(path, e);
	if (!l)
		return NULL;
	struct job_file *f = NEW(struct job_file);
	f->l = l;
	f->n = l->n;
	f->chosen = NEW_ARRAY(l->n, unsigned);
	for (unsigned i = 0; i < l->n; i++)
		f->chosen[i] = i;
	f->path = memcpy(NEW_ARRAY_RAW(strlen(path) + 1, char), path, strlen(path) + 1);
	return f;
}

void job_file_close(struct job_file *f)
{
	if (!f)
		return;
	load_job_close(f->l);
	mem_free(f->chosen);
	mem_free(f->path);
	mem_free(f);
}

unsigned job_file_choose(struct job_file *f, bool (*wants)(const void *context, int64_t rank), const void *context)
{
	unsigned n = 0;
	for (unsigned i = 0; i < f->n; i++)
		if (wants(context, f->l->piece[f->chosen[i]].rank))
			f->chosen[n++] = f->chosen[i];
	return f->n = n;
}

static const struct load_job_piece *job_file_piece(const struct job_file *f, unsigned i)
{
	return &f->l->piece[f->chosen[i]];
}

static const char *job_file_path(void *context, unsigned i)
{
	return job_file_piece(context, i)->recording;
}

static int64_t job_file_rank(void *context, unsigned i)
{
	return job_file_piece(context, i)->rank;
}

static struct profile *job_file_no_profile(void *context, unsigned i, struct err *e)
{
	err_set(e, ERR_USAGE, "%s keeps no recordings: give the folder of the ranks", ((const struct job_file *)context)->path);
	return NULL;
}

/* Findings and sides that are kept are of all steps, and ranks of all that was recorded. */
static bool job_file_answers(const struct job_ask *ask)
{
	const struct report_args *a = ask->args;
	return !ask->part && !((ask->findings || ask->side) && (a->has_steps || a->key_op || a->aggregation || a->compat || (ask->side && a->device)));
}

static struct job_read *job_file_read(void *context, unsigned i, const struct job_ask *ask)
{
	const struct job_file *f = context;
	struct job_read *x = NULL;
	struct str bytes;
	struct err e = {0};
	if (!job_file_answers(ask))
		err_set(&e, ERR_USAGE, "%s keeps no recordings, and answers this only of all steps and GPUs: give the folder of the ranks for a part of them", f->path);
	else if (load_job_bytes(f->l, f->chosen[i], &bytes, &e) == 0 && !(x = job_read_unpack(bytes, &e)))
		err_prefix(&e, "%s: rank %lld", f->path, (long long)job_file_piece(f, i)->rank);
	if (!x) {
		x = NEW(struct job_read);
		x->failed = e;
	}
	return x;
}

struct job_inputs job_file_inputs(struct job_file *f)
{
	return (struct job_inputs){.n = f->n, .open = job_file_no_profile, .path = job_file_path, .rank = job_file_rank, .read = job_file_read, .kept = f->path, .context = f};
}
