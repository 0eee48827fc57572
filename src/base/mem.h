/* Heap memory that never comes back NULL: when the system has none left, the process says so and ends with status 1.
 * Sizes are checked for overflow. Zero-sized requests are allowed and give a valid pointer or NULL.
 * Release with mem_free (plain free underneath). */
#ifndef OPSCOPE_BASE_MEM_H
#define OPSCOPE_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *mem_zalloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *mem_realloc(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
void mem_free(void *p);

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
