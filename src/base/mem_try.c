/* Calls that may be abandoned, and the blocks that they had allocated by then. */
#include "base/mem.h"

#include "base/mem_own.h"
#include "base/spill.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct mem_block {
	void *p;
	struct mem_block *next_in_bucket;
	struct mem_block *next, **at; /* in its pool */
};

struct guard {
	struct guard *around;
	struct mem_pool *pool;        /* NULL = blocks are not noted */
	unsigned depth;               /* from 1 on */
	jmp_buf back;
};

static __thread struct guard *innermost;
static __thread struct mem_undo *newest_undo;

/* --- all blocks of all pools, by address --- */

enum { BUCKETS_FIRST = 1 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and of all pools; nothing is waited for under it */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct mem_block *first_buckets[BUCKETS_FIRST], **bucket = first_buckets;
static size_t n_buckets = BUCKETS_FIRST;
static size_t n_blocks;          /* written under the lock, read by whoever frees: its own blocks are counted by then */

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void drop_lock(void)
{
	pthread_mutex_unlock(&lock);
}

/* A forked child has the list whole. */
static void mem_try_set_handlers(void)
{
	pthread_atfork(take_lock, drop_lock, drop_lock);
}

static size_t bucket_of(const void *p)
{
	return (size_t)(((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (n_buckets - 1);
}

/* Longer chains where there is no memory for more of them. */
static void add_buckets(void)
{
	size_t n = n_buckets * 2, old_n = n_buckets;
	struct mem_block **old = bucket, **fresh = calloc(n, sizeof *fresh);
	if (!fresh)
		return;
	bucket = fresh;
	n_buckets = n;
	for (size_t i = 0; i < old_n; i++)
		for (struct mem_block *b = old[i], *next; b; b = next) {
			struct mem_block **to = &bucket[bucket_of(b->p)];
			next = b->next_in_bucket;
			b->next_in_bucket = *to;
			*to = b;
		}
	if (old != first_buckets)
		free(old);
}

static void mem_try_count(size_t n)
{
	__atomic_store_n(&n_blocks, n, __ATOMIC_RELAXED);
}

static void put_in_bucket(struct mem_block *b, void *p)
{
	if (n_blocks >= n_buckets)
		add_buckets();
	struct mem_block **to = &bucket[bucket_of(p)];
	b->p = p;
	b->next_in_bucket = *to;
	*to = b;
	mem_try_count(n_blocks + 1);
}

static struct mem_block *take_from_bucket(const void *p)
{
	struct mem_block **at = &bucket[bucket_of(p)], *b;
	while ((b = *at) && b->p != p)
		at = &b->next_in_bucket;
	if (b) {
		*at = b->next_in_bucket;
		mem_try_count(n_blocks - 1);
	}
	return b;
}

static void mem_try_join(struct mem_pool *pool, struct mem_block *b)
{
	b->next = pool->newest;
	b->at = &pool->newest;
	if (b->next)
		b->next->at = &b->next;
	pool->newest = b;
}

static void mem_try_part(struct mem_block *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
}

static bool any_blocks(void)
{
	return __atomic_load_n(&n_blocks, __ATOMIC_RELAXED) != 0;
}

bool mem_note(void *p)
{
	if (!innermost || !innermost->pool)
		return true;
	struct mem_block *b = malloc(sizeof *b);
	if (!b)
		return false;
	take_lock();
	mem_try_join(innermost->pool, b);
	put_in_bucket(b, p);
	drop_lock();
	return true;
}

struct mem_block *mem_unnote(void *p)
{
	if (!any_blocks())
		return NULL;
	take_lock();
	struct mem_block *b = take_from_bucket(p);
	drop_lock();
	return b;
}

void mem_note_again(struct mem_block *b, void *p)
{
	if (!b)
		return;
	take_lock();
	put_in_bucket(b, p);
	drop_lock();
}

void mem_forget(void *p)
{
	if (!p || !any_blocks())
		return;
	take_lock();
	struct mem_block *b = take_from_bucket(p);
	if (b)
		mem_try_part(b);
	drop_lock();
	free(b);
}

void mem_disown(void *p)
{
	mem_forget(p);
}

/* --- pools --- */

static void empty(struct mem_pool *pool, bool with_blocks)
{
	take_lock();
	struct mem_block *all = pool->newest;
	pool->newest = NULL;
	for (struct mem_block *b = all; b; b = b->next)
		take_from_bucket(b->p);
	drop_lock();
	for (struct mem_block *b = all, *next; b; b = next) {
		next = b->next;
		if (with_blocks)
			spill_release(b->p);
		free(b);
	}
}

void mem_pool_release(struct mem_pool *pool)
{
	empty(pool, true);
}

void mem_pool_drop(struct mem_pool *pool)
{
	empty(pool, false);
}

void mem_pool_move(struct mem_pool *to, struct mem_pool *from)
{
	if (to == from)
		return;
	take_lock();
	struct mem_block *b = from->newest, *last = b;
	while (last && last->next)
		last = last->next;
	if (b) {
		from->newest = NULL;
		last->next = to->newest;
		if (last->next)
			last->next->at = &last->next;
		to->newest = b;
		b->at = &to->newest;
	}
	drop_lock();
}

void mem_keep(struct mem_pool *pool)
{
	if (innermost && innermost->pool)
		mem_pool_move(pool, innermost->pool);
}

bool mem_is_noted(void)
{
	return innermost && innermost->pool;
}

void mem_adopt(struct mem_pool *pool)
{
	if (mem_is_noted())
		mem_pool_move(innermost->pool, pool);
	else
		mem_pool_drop(pool);
}

/* --- calls --- */

void mem_undo_begin(struct mem_undo *u, void (*run)(void *context), void *context)
{
	*u = (struct mem_undo){.run = run, .context = context};
	if (!innermost)
		return;
	u->depth = innermost->depth;
	u->older = newest_undo;
	u->at = &newest_undo;
	if (u->older)
		u->older->at = &u->older;
	newest_undo = u;
}

void mem_undo_end(struct mem_undo *u)
{
	if (!u->at)
		return;
	*u->at = u->older;
	if (u->older)
		u->older->at = u->at;
	u->at = NULL;
}

static void undo(unsigned depth)
{
	for (struct mem_undo *u; (u = newest_undo) && u->depth >= depth;) {
		mem_undo_end(u);
		u->run(u->context);
	}
}

/* What is still there after the call is the business of the one around it; of nobody's, where there is none. */
static void hand_on_undos(unsigned depth)
{
	for (struct mem_undo *u = newest_undo, *older; u && u->depth >= depth; u = older) {
		older = u->older;
		u->depth = depth - 1;
		if (depth == 1)
			mem_undo_end(u);
	}
}

int mem_try(struct mem_pool *pool, void (*run)(void *context), void *context)
{
	struct guard g = {.around = innermost, .pool = pool ? pool : innermost ? innermost->pool : NULL, .depth = innermost ? innermost->depth + 1 : 1};
	pthread_once(&once, mem_try_set_handlers);
	if (_setjmp(g.back))
		return -1;
	innermost = &g;
	run(context);
	innermost = g.around;
	hand_on_undos(g.depth);
	return 0;
}

void mem_fail(size_t bytes)
{
	struct guard *g = innermost;
	if (!g) {
		if (spill_full())
			fprintf(stderr, "opscope: out of memory: the disk of %s is full; --memory keeps the rest of the trace there (%zu bytes more were needed). Set TMPDIR to a larger disk\n", spill_full(), bytes);
		else if (bytes)
			fprintf(stderr, "opscope: out of memory (%zu bytes more were needed)\n", bytes);
		else
			fprintf(stderr, "opscope: out of memory\n");
		exit(1);
	}
	undo(g->depth);
	innermost = g->around;
	_longjmp(g->back, 1);
}
