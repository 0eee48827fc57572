#include "serve/job.h"

#include "base/mem.h"

#include <pthread.h>

struct jobs {
	pthread_mutex_t lock;
	pthread_cond_t any;
	struct serve_task *first, **last;
	unsigned waiting, most, n_threads;
	bool stopping;
	pthread_t thread[64];
};

static void *work(void *context)
{
	struct jobs *q = context;
	pthread_mutex_lock(&q->lock);
	for (;;) {
		struct serve_task *j = q->first;
		if (!j && q->stopping)
			break;
		if (!j) {
			pthread_cond_wait(&q->any, &q->lock);
			continue;
		}
		q->first = j->next;
		if (!q->first)
			q->last = &q->first;
		q->waiting--;
		pthread_mutex_unlock(&q->lock);
		j->run(j);
		pthread_mutex_lock(&q->lock);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

struct jobs *jobs_start(unsigned threads, unsigned most)
{
	struct jobs *q = NEW(struct jobs);
	q->last = &q->first;
	q->most = most;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->any, NULL);
	while (q->n_threads < threads && q->n_threads < sizeof q->thread / sizeof q->thread[0] &&
	       pthread_create(&q->thread[q->n_threads], NULL, work, q) == 0)
		q->n_threads++;
	if (q->n_threads)
		return q;
	jobs_free(q);
	return NULL;
}

bool jobs_add(struct jobs *q, struct serve_task *j)
{
	pthread_mutex_lock(&q->lock);
	bool fits = q->waiting < q->most && !q->stopping;
	if (fits) {
		q->waiting++;
		j->next = NULL;
		*q->last = j;
		q->last = &j->next;
		pthread_cond_signal(&q->any);
	}
	pthread_mutex_unlock(&q->lock);
	return fits;
}

bool jobs_stop(struct jobs *q, const struct timespec *until)
{
	if (!q)
		return true;
	pthread_mutex_lock(&q->lock);
	q->stopping = true;
	pthread_cond_broadcast(&q->any);
	pthread_mutex_unlock(&q->lock);
	for (; q->n_threads; q->n_threads--)
		if (until ? pthread_timedjoin_np(q->thread[q->n_threads - 1], NULL, until) : pthread_join(q->thread[q->n_threads - 1], NULL))
			return false;
	return true;
}

void jobs_free(struct jobs *q)
{
	if (!q)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->any);
	mem_free(q);
}
