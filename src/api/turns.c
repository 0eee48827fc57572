/* Threads take turns at a profile. A forked child has one thread only: a profile that another was at stays half done in it for ever. */
#include "api/api.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handlers = PTHREAD_ONCE_INIT;
static struct opscope_profile *all; /* under all_lock, which is never held for long */

static void before_fork(void)
{
	pthread_mutex_lock(&all_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&all_lock);
}

static void turns_in_child(void)
{
	for (struct opscope_profile *p = all; p; p = p->next) {
		if (pthread_mutex_trylock(&p->lock) == 0)
			pthread_mutex_unlock(&p->lock);
		else
			p->lost = true;
		pthread_mutex_init(&p->lock, NULL);
	}
	after_fork();
}

static void turns_set_handlers(void)
{
	pthread_atfork(before_fork, after_fork, turns_in_child);
}

void api_turns_begin(struct opscope_profile *p)
{
	pthread_once(&handlers, turns_set_handlers);
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_lock(&all_lock);
	p->next = all;
	p->at = &all;
	if (all)
		all->at = &p->next;
	all = p;
	pthread_mutex_unlock(&all_lock);
}

void api_turns_end(struct opscope_profile *p)
{
	pthread_mutex_lock(&all_lock);
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	pthread_mutex_unlock(&all_lock);
	pthread_mutex_destroy(&p->lock);
}

int api_enter(struct opscope_profile *p, struct err *e)
{
	if (p->lost)
		return err_set(e, ERR_USAGE, STR_FMT ": another thread was at this trace when the process forked: open it again here", STR_ARG(p->p->input_path));
	pthread_mutex_lock(&p->lock);
	if (profile_check(p->p, e) == 0)
		return 0;
	pthread_mutex_unlock(&p->lock);
	return -1;
}

void api_leave(struct opscope_profile *p)
{
	pthread_mutex_unlock(&p->lock);
}

int api_try(struct mem_pool *pool, void (*run)(void *context), void *context, struct err *e)
{
	if (mem_try(pool, run, context) == 0)
		return 0;
	mem_pool_release(pool);
	return err_nomem(e);
}

int api_try_with(struct opscope_profile *p, void (*run)(void *context), void *context, struct err *e)
{
	struct mem_pool blocks = {0};
	if (api_enter(p, e) < 0)
		return -1;
	if (mem_try(&blocks, run, context) < 0)
		p->p->broken = true;
	int rc = p->p->broken ? err_nomem(e) : 0; /* also from within a query, which SQLite then ends */
	if (rc == 0)
		mem_pool_move(&p->p->blocks, &blocks);
	else
		mem_pool_release(&blocks);
	api_leave(p);
	return rc;
}
