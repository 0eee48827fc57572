#include "store/reuse.h"

#include "base/mem.h"
#include "store/profile.h"

struct reuse {
	struct reuse_entry {
		const void *what;
		void *result;
		void (*release)(void *result);
	} *v;
	unsigned n, cap;
};

void reuse_begin(struct profile *p)
{
	if (!p->reuse)
		p->reuse = NEW(struct reuse);
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
	for (unsigned i = 0; p->reuse && i < p->reuse->n; i++)
		if (p->reuse->v[i].what == what)
			return p->reuse->v[i].result;
	return NULL;
}

bool reuse_keep(const struct profile *p, const void *what, void *result, void (*release)(void *result))
{
	struct reuse *r = p->reuse;
	if (!r)
		return false;
	MEM_PUSH(r->v, r->n, r->cap, (struct reuse_entry){what, result, release});
	return true;
}
