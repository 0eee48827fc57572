#include "store/reuse.h"

#include "base/mem.h"
#include "store/profile.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

/* More kinds of results than there are. Of a fixed number, so that nothing is allocated under the lock. */
enum { REUSE_MOST = 64 };

struct reuse_entry {
	const void *what;             /* NULL = the entry is free */
	void *result;                 /* NULL = it is being made */
	void (*release)(void *result);
	unsigned place;               /* results in the order in which they were there */
	const struct reuse_maker *maker;
	struct mem_undo undo;         /* while it is being made */
	struct reuse *reuse;
};

struct reuse {
	struct reuse *whole;          /* whose lock it has: that of the whole profile */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct reuse_entry v[REUSE_MOST];
	unsigned n_made;
};

/* A thread: its address stands for it. */
static _Thread_local struct reuse_maker {
	const struct reuse_entry *waits; /* under the lock */
	const void *joined;              /* the thread that it is handed the results of; NULL = its own */
} reuse_self;

const void *reuse_thread(void)
{
	return reuse_self.joined ? reuse_self.joined : &reuse_self;
}

void reuse_join(const void *thread)
{
	reuse_self.joined = thread;
}

/* What the thread may use; NULL for threads that the profile is not handed to. */
static struct reuse *reuse_own(const struct profile *p)
{
	return p->reuse && atomic_load_explicit(&p->reuse_owner, memory_order_relaxed) == reuse_thread() ? p->reuse : NULL;
}

static bool reuse_start(struct profile *p, struct reuse *whole)
{
	if (p->reuse)
		return false;
	struct reuse *r = NEW(struct reuse);
	r->whole = whole ? whole : r;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	p->reuse = r;
	reuse_take(p);
	return true;
}

bool reuse_begin(struct profile *p)
{
	return reuse_start(p, NULL);
}

static void reuse_hand_to(struct profile *p, const void *owner)
{
	for (; p && p->reuse; p = p->slice)
		atomic_store_explicit(&p->reuse_owner, owner, memory_order_relaxed);
}

void reuse_take(struct profile *p)
{
	reuse_hand_to(p, reuse_thread());
}

void reuse_drop(struct profile *p)
{
	reuse_hand_to(p, NULL);
}

/* The newest result; NULL = there is none left. */
static struct reuse_entry *reuse_newest(struct reuse *r)
{
	struct reuse_entry *newest = NULL;
	for (unsigned i = 0; i < REUSE_MOST; i++)
		if (r->v[i].what && (!newest || r->v[i].place > newest->place))
			newest = &r->v[i];
	return newest;
}

/* The last first: what was made from another was there after it. */
static void reuse_release_all(struct reuse *r)
{
	for (struct reuse_entry *e; (e = reuse_newest(r));) {
		assert(e->result);
		void *result = e->result;
		e->what = NULL;
		e->release(result);
	}
}

void reuse_end(struct profile *p)
{
	if (!p->reuse)
		return;
	if (p->slice)
		reuse_end(p->slice);
	reuse_release_all(p->reuse);
	pthread_cond_destroy(&p->reuse->changed);
	pthread_mutex_destroy(&p->reuse->lock);
	mem_free(p->reuse);
	p->reuse = NULL;
	atomic_store_explicit(&p->reuse_owner, NULL, memory_order_relaxed);
}

void reuse_forget(struct profile *p)
{
	if (p->reuse)
		reuse_release_all(p->reuse);
}

void reuse_as(const struct profile *whole, struct profile *part)
{
	if (whole->reuse)
		reuse_start(part, whole->reuse->whole);
}

/* The entry of `what`; of NULL a free one. NULL = there is none. */
static struct reuse_entry *reuse_entry_of(struct reuse *r, const void *what)
{
	for (unsigned i = 0; i < REUSE_MOST; i++)
		if (r->v[i].what == what)
			return &r->v[i];
	return NULL;
}

static void reuse_abandon(void *entry)
{
	struct reuse_entry *e = entry;
	struct reuse *whole = e->reuse->whole;
	pthread_mutex_lock(&whole->lock);
	e->what = NULL;
	pthread_cond_broadcast(&whole->changed);
	pthread_mutex_unlock(&whole->lock);
}

/* Under the lock: whether nobody waits, over any number of threads, for what this one is making. */
static bool reuse_will_come(const struct reuse_entry *e)
{
	for (; e && !e->result; e = e->maker->waits)
		if (e->maker == &reuse_self)
			return false;
	return true;
}

/* Under the lock. */
static struct reuse_entry *reuse_wait(struct reuse *r, const void *what)
{
	struct reuse_entry *e;
	while ((e = reuse_entry_of(r, what)) && !e->result) {
		assert(reuse_will_come(e));
		reuse_self.waits = e;
		pthread_cond_wait(&r->whole->changed, &r->whole->lock);
		reuse_self.waits = NULL;
	}
	return e;
}

void *reuse_find(const struct profile *p, const void *what)
{
	struct reuse *r = reuse_own(p);
	if (!r)
		return NULL;
	pthread_mutex_lock(&r->whole->lock);
	struct reuse_entry *e = reuse_wait(r, what), *made = e ? NULL : reuse_entry_of(r, NULL);
	void *result = e ? e->result : NULL;
	if (made) {
		*made = (struct reuse_entry){.what = what, .maker = &reuse_self, .reuse = r};
		mem_undo_begin(&made->undo, reuse_abandon, made);
	}
	pthread_mutex_unlock(&r->whole->lock);
	return result;
}

void *reuse_look(const struct profile *p, const void *what)
{
	struct reuse *r = reuse_own(p);
	if (!r)
		return NULL;
	pthread_mutex_lock(&r->whole->lock);
	const struct reuse_entry *e = reuse_entry_of(r, what);
	void *result = e ? e->result : NULL;
	pthread_mutex_unlock(&r->whole->lock);
	return result;
}

bool reuse_keep(const struct profile *p, const void *what, void *result, void (*release)(void *result), bool *is_kept)
{
	struct reuse *r = reuse_own(p);
	if (!r)
		return false;
	pthread_mutex_lock(&r->whole->lock);
	struct reuse_entry *e = reuse_entry_of(r, what);
	const bool claimed = e && !e->result && e->maker == &reuse_self;
	e = e ? claimed ? e : NULL : reuse_entry_of(r, NULL);
	if (e) {
		if (claimed)
			mem_undo_end(&e->undo);
		if (is_kept)
			*is_kept = true;
		*e = (struct reuse_entry){.what = what, .result = result, .release = release, .place = ++r->n_made, .reuse = r};
		pthread_cond_broadcast(&r->whole->changed);
	}
	pthread_mutex_unlock(&r->whole->lock);
	return e;
}

void reuse_give_up(const struct profile *p, const void *what)
{
	struct reuse *r = reuse_own(p);
	if (!r)
		return;
	pthread_mutex_lock(&r->whole->lock);
	struct reuse_entry *e = reuse_entry_of(r, what);
	const bool claimed = e && !e->result && e->maker == &reuse_self;
	pthread_mutex_unlock(&r->whole->lock);
	if (!claimed)
		return;
	mem_undo_end(&e->undo);
	reuse_abandon(e);
}
