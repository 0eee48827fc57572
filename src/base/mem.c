#include "base/mem.h"

#include "base/mem_own.h"
#include "base/spill.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/param.h>

static size_t mem_product(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		mem_fail((size_t)-1);
	return bytes;
}

enum { MEM_BIG_PAGE = 2 << 20 };

/* A block that begins where a big page does: what malloc keeps of it then lies in the page before. Big pages are asked for where the block
 * has the whole of one, so that it takes no more memory than by small ones. */
static void *mem_fresh_big(size_t bytes)
{
	void *p;
	if (posix_memalign(&p, MEM_BIG_PAGE, bytes))
		return NULL;
	madvise(p, bytes / MEM_BIG_PAGE * MEM_BIG_PAGE, MADV_HUGEPAGE); /* where the system has none, nothing is lost */
	return p;
}

/* A mapping of which only a part is marked grows by being copied. */
static bool mem_is_fresh_big(const void *p, size_t bytes)
{
	return bytes >= MEM_BIG_PAGE && (uintptr_t)p % MEM_BIG_PAGE == 0;
}

/* Columns of millions of rows are met page by page, and each first meeting costs about as much as filling the page: big
 * pages make that a five-hundredth. Of a block that grew, or is zero without being met, the whole is asked for. */
static void *with_big_pages(void *p, size_t bytes)
{
	enum { PAGE = 4096, WORTH_IT = 8 << 20 };
	if (p && bytes >= WORTH_IT) {
		uintptr_t from = (uintptr_t)p & ~(uintptr_t)(PAGE - 1), to = ((uintptr_t)p + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	}
	return p;
}

/* A fresh block in memory, or NULL. */
static void *mem_fresh_plain(size_t bytes, bool zero)
{
	const size_t least = bytes ? bytes : 1;
	void *p = zero ? with_big_pages(calloc(least, 1), bytes) : bytes >= MEM_BIG_PAGE ? mem_fresh_big(bytes) : malloc(least);
	if (p)
		spill_note(malloc_usable_size(p));
	return p;
}

/* A fresh block, or NULL. */
static void *mem_fresh(size_t bytes, bool zero)
{
	void *p = NULL;
	const bool due = spill_is_due(0, bytes);
	if (due)
		p = spill_new(bytes, zero);
	return p || (due && spill_is_strict()) ? p : mem_fresh_plain(bytes, zero);
}

static void *mem_give(size_t bytes, bool zero)
{
	void *p = mem_fresh(bytes, zero);
	if (!p || !mem_note(p)) {
		spill_release(p);
		mem_fail(bytes);
	}
	return p;
}

void *mem_alloc(size_t n, size_t size)
{
	return mem_give(mem_product(n, size), false);
}

void *mem_zalloc(size_t n, size_t size)
{
	return mem_give(mem_product(n, size), true);
}

uint32_t *mem_filled(size_t n, uint32_t value)
{
	uint32_t *v = NEW_ARRAY_RAW(n, uint32_t);
	for (size_t i = 0; i < n; i++)
		v[i] = value;
	return v;
}

/* Another block with what is in p, which had so many bytes; NULL, and p as before. */
static void *mem_move(void *p, size_t had, void *fresh, size_t bytes)
{
	if (fresh) {
		memcpy(fresh, p, MIN(had, bytes));
		spill_release(p);
	}
	return fresh;
}

static void *mem_resize_plain(void *p, size_t bytes)
{
	const size_t had = malloc_usable_size(p);
	if (bytes > had && mem_is_fresh_big(p, had))
		return mem_move(p, had, mem_fresh_plain(bytes, false), bytes);
	void *larger = realloc(p, bytes ? bytes : 1);
	if (larger) {
		spill_forget(had);
		spill_note(malloc_usable_size(larger));
	}
	return with_big_pages(larger, bytes);
}

/* NULL, and the block as before. */
static void *mem_resize(void *p, size_t bytes)
{
	const size_t spilled = spill_bytes(p), had = spilled ? spilled : malloc_usable_size(p);
	void *larger = spilled ? spill_resize(p, bytes) : NULL;
	if (!spilled && spill_is_due(had, bytes))
		larger = mem_move(p, had, spill_new(bytes, false), bytes);
	else if (!spilled)
		return mem_resize_plain(p, bytes);
	return larger || spill_is_strict() ? larger : mem_move(p, had, mem_fresh_plain(bytes, false), bytes);
}

void *mem_realloc(void *p, size_t n, size_t size)
{
	size_t bytes = mem_product(n, size);
	if (!p)
		return mem_give(bytes, false);
	/* Unnoted first: once the old address is free, another thread may be given it. */
	struct mem_block *noted = mem_unnote(p);
	void *larger = mem_resize(p, bytes);
	mem_note_again(noted, larger ? larger : p);
	if (!larger)
		mem_fail(bytes);
	return larger;
}

void mem_free(void *p)
{
	mem_forget(p);
	spill_release(p);
}
