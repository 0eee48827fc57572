/* Heap memory. No function here returns NULL for a lack of memory. When the system has no memory left, the thread's innermost mem_try returns -1. A thread
 * outside any mem_try, as in the program's own commands, prints an error and ends the process with status 1. Sizes are checked for overflow.
 * A request for 0 bytes gives a valid pointer from mem_alloc and mem_zalloc. Release with mem_free: where memory has a limit, large blocks
 * lie in a file (base/spill.h). */
#ifndef OPSCOPE_BASE_MEM_H
#define OPSCOPE_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void *mem_alloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *mem_zalloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *mem_realloc(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void mem_free(void *p);

/* Reports that an allocation failed elsewhere, as inside a library: leaves the innermost mem_try, or ends the process. `bytes`: how many were asked for;
 * 0 = not known. */
void mem_fail(size_t bytes) __attribute__((noreturn));

/* Blocks that were allocated for one purpose and are still there. {0} = none. It must stay where it is while it holds any. */
struct mem_pool {
	struct mem_block *newest;
};

/* Runs run(context). 0; or -1 when memory ran out. A longjmp has then left run() where it stood, and what run() was changing is half done.
 * *pool lists the blocks that run() allocated and did not free, after 0 as after -1. The caller decides about these blocks. After -1, release the
 * pool once nothing points into it. pool == NULL: the blocks go to the pool of the enclosing mem_try; without one, the blocks of an abandoned call
 * are lost. A block that was there before the call stays out of the pool, also when the call resizes the block. */
int mem_try(struct mem_pool *pool, void (*run)(void *context), void *context);

void mem_pool_release(struct mem_pool *pool);                          /* frees all of them */
void mem_pool_move(struct mem_pool *to, struct mem_pool *from);        /* two pools, or twice the same */
void mem_pool_drop(struct mem_pool *pool);                             /* empties the pool and keeps the blocks; their holders free them */
void mem_disown(void *p);                                              /* takes one block out of its pool; its holder frees it. NULL does nothing */
/* Moves what the thread's innermost mem_try has allocated so far to *pool, for something that outlives the call. */
void mem_keep(struct mem_pool *pool);
/* Whether what the thread allocates goes to a pool; and the blocks of *pool, which another thread allocated for this one, are as if this one had. */
bool mem_is_noted(void);
void mem_adopt(struct mem_pool *pool);

/* A function that the enclosing mem_try calls when it fails, before the stack is left: to unlock, close or join. The newest is called first. The
 * function must not allocate. A struct mem_undo lives as long as the thing that it undoes, and begins and ends on one thread. Outside a mem_try it
 * does nothing. */
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

/* A new array of this value. */
uint32_t *mem_filled(size_t n, uint32_t value);

/* Grows the array `p` of `cap` elements to hold at least `need`: by half, so that a push takes O(1) on average. */
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

/* The same; new elements are zero. */
#define MEM_GROW_ZERO(p, cap, need)                                                                    \
	do {                                                                                           \
		const size_t mem_had_ = (size_t)(cap);                                                 \
		MEM_GROW(p, cap, need);                                                                \
		if ((size_t)(cap) > mem_had_)                                                          \
			memset((p) + mem_had_, 0, ((size_t)(cap) - mem_had_) * sizeof *(p));           \
	} while (0)

/* Puts a value behind the `n` elements of such an array, and counts it. The value may be a compound literal. */
#define MEM_PUSH(p, n, cap, ...)                                                                       \
	do {                                                                                           \
		MEM_GROW(p, cap, (n) + 1);                                                             \
		(p)[(n)++] = __VA_ARGS__;                                                              \
	} while (0)

#endif
