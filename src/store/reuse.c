#include "store/reuse.h"

#include "base/mem.h"
#include "store/profile.h"

#include <stdatomic.h>

struct reuse {
	struct reuse_entry {
		const void *what;
		void *result;
		void (*release)(void *result);
	} *v;
	unsigned n, cap;
};

static _Thread_local char reuse_thread; /* its address stands for the thread */

/* What the thread may use; NULL for any other than the one that began. */
static struct reuse *reuse_own(const struct profile *p)
{
	return atomic_load_explicit(&p->reuse_owner, memory_order_relaxed) == &reuse_thread ? p->reuse : NULL;
}

bool reuse_begin(struct profile *p)
{
	if (p->reuse)
		return false;
	p->reuse = NEW(struct reuse);
	reuse_take(p);
	return true;
}

static void reuse_hand_to(struct profile *p, const void *owner)
{
	for (; p && p->reuse; p = p->slice)
		atomic_store_explicit(&p->reuse_owner, owner, memory_order_relaxed);
}

void reuse_take(struct profile *p)
{
	reuse_hand_to(p, &reuse_thread);
}

void reuse_drop(struct profile *p)
{
	reuse_hand_to(p, NULL);
}

/* The last first: what was made from another was made after it. */
static void reuse_release_all(struct reuse *r)
{
	while (r->n) {
		struct reuse_entry e = r->v[--r->n];
		e.release(e.result);
	}
}

void reuse_end(struct profile *p)
{
	if (!p->reuse)
		return;
	if (p->slice)
		reuse_end(p->slice);
	reuse_release_all(p->reuse);
	mem_free(p->reuse->v);
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
		reuse_begin(part);
}

void *reuse_find(const struct profile *p, const void *what)
{
	const struct reuse *r = reuse_own(p);
	for (unsigned i = 0; r && i < r->n; i++)
		if (r->v[i].what == what)
			return r->v[i].result;
	return NULL;
}

bool reuse_keep(const struct profile *p, const void *what, void *result, void (*release)(void *result))
{
	struct reuse *r = reuse_own(p);
	if (!r)
		return false;
	MEM_PUSH(r->v, r->n, r->cap, (struct reuse_entry){what, result, release});
	return true;
}
