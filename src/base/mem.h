/* Heap memory that never comes back NULL. When the system has none left, the innermost mem_try of the thread comes back -1; where there is none,
 * as in the program's own commands, the process says so and ends with status 1.
 * Sizes are checked for overflow. Zero-sized requests are allowed and give a valid pointer or NULL.
 * Release with mem_free (plain free underneath). */
#ifndef OPSCOPE_BASE_MEM_H
#define OPSCOPE_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *mem_alloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *mem_zalloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *mem_realloc(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void mem_free(void *p);

/* What is done where somebody else's allocation failed, as a library's: there is no going on from here. 0 = how much it was is not known. */
void mem_fail(size_t bytes) __attribute__((noreturn));

/* Blocks that were allocated for one purpose and are still there. {0} = none. It must stay where it is while it holds any. */
struct mem_pool {
	struct mem_block *newest;
};

/* Runs run(context). 0, or -1 when memory ran out: then the call was left where it stood, by longjmp, and what it was changing is half done.
 * What was allocated stands in *pool, also after 0, until it is freed; the caller decides what becomes of it. After -1 the sound thing is
 * mem_pool_release, once nothing points into it. NULL: the pool of the mem_try around this one; without one, the abandoned blocks are lost.
 * Blocks that were there before stay what they are, however often they are resized. */
int mem_try(struct mem_pool *pool, void (*run)(void *context), void *context);

void mem_pool_release(struct mem_pool *pool);                          /* frees all of them */
void mem_pool_move(struct mem_pool *to, struct mem_pool *from);        /* two pools, or twice the same */
void mem_pool_drop(struct mem_pool *pool);                             /* they are their holders' alone, and the pool is empty */
void mem_disown(void *p);                                              /* this one is its holder's alone; NULL is let pass */
/* What the thread's innermost mem_try has allocated so far goes to *pool: it has become part of something that outlives the call. */
void mem_keep(struct mem_pool *pool);

/* What is to be done when the mem_try around it fails, before its stack is left: unlock, close, join. The newest first. The functions must not
 * allocate. A struct mem_undo lies where the thing itself does, and ends with it, on the same thread; without a mem_try nothing is done. */
struct mem_undo {
	struct mem_undo *older, **at;
	unsigned depth;
	void (*run)(void *context);
	void *context;
};
void mem_undo_begin(struct mem_undo *u, void (*run)(void *context), void *context);
void mem_undo_end(struct mem_undo *u); /* also of one that never began, if it is {0} */

#define NEW(T) ((T *)mem_zalloc(1, sizeof(T)))
#define NEW_ARRAY(n, T) ((T *)mem_zalloc((n), sizeof(T)))
#define NEW_ARRAY_RAW(n, T) ((T *)mem_alloc((n), sizeof(T)))

/* Grows the array `p` of `cap` elements so that it holds `need`; doubling, so pushes are O(1) on average. */
#define MEM_GROW(p, cap, need)                                                                         \
	do {                                                                                           \
		if ((need) > (cap)) {                                                                  \
			size_t mem_cap_ = (cap) ? (size_t)(cap) + (size_t)(cap) / 2 : 16;              \
			if (mem_cap_ < (size_t)(need))                                                 \
				mem_cap_ = (size_t)(need);                                             \
			(p) = mem_realloc((p), mem_cap_, sizeof *(p));                                 \
			(cap) = (__typeof__(cap))mem_cap_;                                             \
		}                                                                                      \
	} while (0)

#endif
