#include "query/job_each.h"

#include "base/mem.h"
#include "base/threads.h"
#include "io/source.h"

#include <pthread.h>

/* What recordings may take together while they are read, by the sizes of their files; one is always read. A packed file unfolds to a recording of several times its size. */
static const int64_t JOB_EACH_BYTES = 512 << 20;
enum { JOB_EACH_PACKED = 5 };

/* What became of one recording. */
struct job_each_result {
	void *made;
	bool done;
};

struct job_each_work {
	const struct job_inputs *in;
	const struct job_each *each;
	struct job_inputs quiet;   /* the same, opened without a word */
	struct job_each_result *result;
	pthread_mutex_t lock;      /* of all below */
	pthread_cond_t less;       /* a recording was read */
	unsigned next, put;        /* the first that nobody reads yet, and that was not put */
	int64_t bytes;             /* of those that are being read */
	unsigned reading;
	bool failed;               /* memory ran out */
	pthread_t thread[THREADS_MOST];
	unsigned n_threads;
	unsigned share;            /* how many threads may read one recording; 0 = all, since one is read after the other */
};

/* One thread's turn. */
struct job_each_turn {
	struct job_each_work *w;
	unsigned i;
};

static int64_t job_each_size(const struct job_inputs *in, unsigned i)
{
	const char *path = in->path(in->context, i);
	const uint64_t bytes = source_size_of(path);
	return bytes > (uint64_t)JOB_EACH_BYTES ? JOB_EACH_BYTES : (int64_t)bytes * (str_ends(str_from(path), STR(".gz")) ? JOB_EACH_PACKED : 1);
}

static void job_each_one(void *context)
{
	struct job_each_turn *turn = context;
	struct job_each_work *w = turn->w;
	w->result[turn->i].made = w->each->take(w->each->context, &w->quiet, turn->i);
}

/* Takes the next recording; false where there is none. The lock is held. */
static bool job_each_begin(struct job_each_work *w, unsigned *i, int64_t *bytes)
{
	for (;;) {
		if (w->failed || w->next == w->in->n)
			return false;
		*bytes = job_each_size(w->in, w->next);
		if (!w->reading || w->bytes + *bytes <= JOB_EACH_BYTES)
			break;
		pthread_cond_wait(&w->less, &w->lock);
	}
	*i = w->next++;
	w->bytes += *bytes;
	w->reading++;
	return true;
}

/* Reads the next recording; false where there is none. The lock is held, but not while it is read. */
static bool job_each_next(struct job_each_work *w)
{
	struct job_each_turn turn = {.w = w};
	int64_t bytes;
	if (!job_each_begin(w, &turn.i, &bytes))
		return false;
	pthread_mutex_unlock(&w->lock);
	const unsigned before = threads_limit(w->share);
	bool out_of_memory = mem_try(NULL, job_each_one, &turn) < 0;
	threads_limit(before);
	pthread_mutex_lock(&w->lock);
	w->failed |= out_of_memory;
	w->result[turn.i].done = true;
	w->bytes -= bytes;
	w->reading--;
	pthread_cond_broadcast(&w->less);
	return true;
}

static void *job_each_run(void *context)
{
	struct job_each_work *w = context;
	pthread_mutex_lock(&w->lock);
	while (job_each_next(w))
		;
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Hands on what is there, up to the first that is not. The lock is held, but not while a result is put. */
static void job_each_put(struct job_each_work *w)
{
	while (!w->failed && w->put < w->in->n && w->result[w->put].done) {
		pthread_mutex_unlock(&w->lock);
		if (w->in->opened)
			w->in->opened(w->in->context, w->put);
		w->each->put(w->each->context, w->put, w->result[w->put].made);
		pthread_mutex_lock(&w->lock);
		w->put++;
	}
}

static void job_each_join(void *context)
{
	struct job_each_work *w = context;
	pthread_mutex_lock(&w->lock);
	w->next = w->in->n;
	pthread_mutex_unlock(&w->lock);
	for (; w->n_threads; w->n_threads--)
		pthread_join(w->thread[w->n_threads - 1], NULL);
}

void job_each(const struct job_inputs *in, const struct job_each *each)
{
	struct job_each_work w = {.in = in, .each = each, .quiet = *in, .result = NEW_ARRAY(in->n, struct job_each_result)};
	struct mem_undo undo = {0};
	w.quiet.open = in->open_quietly ? in->open_quietly : in->open;
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.less, NULL);
	unsigned most = !in->open_quietly || in->read ? 1 : in->threads < THREADS_MOST ? in->threads : THREADS_MOST;
	w.share = most > 1 ? (most > in->n ? most / in->n : 1) : 0;
	while (w.n_threads + 1 < most && w.n_threads + 1 < in->n && pthread_create(&w.thread[w.n_threads], NULL, job_each_run, &w) == 0)
		w.n_threads++;
	mem_undo_begin(&undo, job_each_join, &w);
	pthread_mutex_lock(&w.lock);
	while (job_each_next(&w))
		job_each_put(&w);
	while (!w.failed && w.put < in->n) { /* others are at the last ones */
		while (!w.failed && !w.result[w.put].done)
			pthread_cond_wait(&w.less, &w.lock);
		job_each_put(&w);
	}
	bool failed = w.failed;
	pthread_mutex_unlock(&w.lock);
	mem_undo_end(&undo);
	job_each_join(&w);
	pthread_cond_destroy(&w.less);
	pthread_mutex_destroy(&w.lock);
	mem_free(w.result);
	if (failed)
		mem_fail(0);
}
