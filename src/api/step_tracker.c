#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "opscope/schedule.h"

/* There are a handful of requesters: a list is searched faster than a map. */
struct requester {
	char *name;
	int64_t count;
};

struct opscope_tracker {
	pthread_mutex_t lock;
	struct requester *requester;
	size_t n, cap;
	int64_t current;
};

static void make_tracker(void *tracker)
{
	*(struct opscope_tracker **)tracker = NEW(struct opscope_tracker);
}

struct opscope_tracker *opscope_tracker_new(void)
{
	struct opscope_tracker *t = NULL;
	if (mem_try(NULL, make_tracker, &t) == 0)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void opscope_tracker_free(struct opscope_tracker *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		mem_free(t->requester[i].name);
	mem_free(t->requester);
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}

static struct requester *step_tracker_find(const struct opscope_tracker *t, const char *name)
{
	return ELEMENT_WHERE(i, t->requester, t->n, strcmp(t->requester[i].name, name) == 0);
}

struct adding {
	struct opscope_tracker *t;
	const char *name;
};

static void add_requester(void *adding)
{
	struct adding *a = adding;
	struct opscope_tracker *t = a->t;
	size_t size = strlen(a->name) + 1;
	MEM_GROW(t->requester, t->cap, t->n + 1);
	t->requester[t->n].name = memcpy(mem_alloc(size, 1), a->name, size);
	t->n++;
}

/* NULL: there is no memory for a new one. */
static struct requester *set_count(struct opscope_tracker *t, const char *name, int64_t count)
{
	struct requester *r = step_tracker_find(t, name);
	if (!r && mem_try(NULL, add_requester, &(struct adding){t, name}) == 0)
		r = &t->requester[t->n - 1];
	if (r)
		r->count = count;
	return r;
}

void opscope_tracker_init(struct opscope_tracker *t, const char *name)
{
	pthread_mutex_lock(&t->lock);
	set_count(t, name, t->current);
	pthread_mutex_unlock(&t->lock);
}

void opscope_tracker_set(struct opscope_tracker *t, const char *name, int64_t count)
{
	pthread_mutex_lock(&t->lock);
	set_count(t, name, count);
	pthread_mutex_unlock(&t->lock);
}

int opscope_tracker_erase(struct opscope_tracker *t, const char *name)
{
	pthread_mutex_lock(&t->lock);
	struct requester *r = step_tracker_find(t, name);
	if (r) {
		mem_free(r->name);
		*r = t->requester[--t->n];
	}
	pthread_mutex_unlock(&t->lock);
	return r != NULL;
}

/* The largest count, when it is above the global step, becomes that. */
static int64_t step_tracker_advance(struct opscope_tracker *t, char *warning, size_t size)
{
	int64_t largest = t->current;
	for (size_t i = 0; i < t->n; i++)
		if (t->requester[i].count > largest)
			largest = t->requester[i].count;
	int64_t by = largest - t->current; /* the global step is never negative */
	if (by > 1 && warning && size)
		snprintf(warning, size, "the global step went from %" PRId64 " to %" PRId64 ": more than 1 at once", t->current, largest);
	t->current = largest;
	return by;
}

int64_t opscope_tracker_increment(struct opscope_tracker *t, const char *name, int64_t *kineto_steps, char *warning,
                                  size_t warning_size)
{
	int64_t by = 0, now = -1;
	if (warning && warning_size)
		*warning = 0;
	pthread_mutex_lock(&t->lock);
	struct requester *r = step_tracker_find(t, name);
	if (!r)
		r = set_count(t, name, t->current);
	if (r && r->count < INT64_MAX) {
		r->count++;
		by = step_tracker_advance(t, warning, warning_size);
		now = t->current;
	}
	pthread_mutex_unlock(&t->lock);
	if (kineto_steps)
		*kineto_steps = by;
	return now;
}

int64_t opscope_tracker_current(struct opscope_tracker *t)
{
	pthread_mutex_lock(&t->lock);
	int64_t now = t->current;
	pthread_mutex_unlock(&t->lock);
	return now;
}

int64_t opscope_tracker_count(struct opscope_tracker *t, const char *name)
{
	pthread_mutex_lock(&t->lock);
	const struct requester *r = step_tracker_find(t, name);
	int64_t count = r ? r->count : -1;
	pthread_mutex_unlock(&t->lock);
	return count;
}
