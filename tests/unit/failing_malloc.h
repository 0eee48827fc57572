/* malloc that fails when it is told to, and counts. One file of a program includes this.
 *
 * In the whole program with its libraries, by glibc's own names for what is behind; or, where that is a sanitizer's (FAILING_BY_LINKER), for what is
 * linked with --wrap=malloc --wrap=calloc --wrap=realloc, and without a count of what is held. */
#ifndef OPSCOPE_TESTS_UNIT_FAILING_MALLOC_H
#define OPSCOPE_TESTS_UNIT_FAILING_MALLOC_H

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#ifdef FAILING_BY_LINKER
#define OWN(function) __wrap_##function
#define BEHIND(function) __real_##function
#else
#define OWN(function) function
#define BEHIND(function) __libc_##function
#endif

void *BEHIND(malloc)(size_t n);
void *BEHIND(calloc)(size_t n, size_t size);
void *BEHIND(realloc)(void *p, size_t n);
/* Libraries see them too. */
#pragma GCC visibility push(default)
void *OWN(malloc)(size_t n);
void *OWN(calloc)(size_t n, size_t size);
void *OWN(realloc)(void *p, size_t n);
#pragma GCC visibility pop

/* Allocations since failing_begin, and which of them fails: number `failing_at`, and with `failing_on` all that follow. 0 = none. */
static atomic_ulong failing_count, failing_at;
static atomic_bool failing_on, failing_done;
static atomic_size_t failing_held; /* bytes that are allocated now; by the linker, 0 */

static bool fails(void)
{
	unsigned long at = failing_at, n = ++failing_count;
	if (!at || n < at || (n > at && !failing_on))
		return false;
	failing_done = true;
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
#ifndef FAILING_BY_LINKER
	failing_held += p ? malloc_usable_size(p) : 0;
#endif
	return p;
}

void *OWN(malloc)(size_t n)
{
	return fails() ? NULL : counted(BEHIND(malloc)(n));
}

void *OWN(calloc)(size_t n, size_t size)
{
	return fails() ? NULL : counted(BEHIND(calloc)(n, size));
}

void *OWN(realloc)(void *p, size_t n)
{
	if (fails())
		return NULL;
#ifdef FAILING_BY_LINKER
	return BEHIND(realloc)(p, n);
#else
	size_t before = p ? malloc_usable_size(p) : 0;
	void *q = counted(BEHIND(realloc)(p, n));
	failing_held -= q || !n ? before : 0;
	return q;
#endif
}

#ifndef FAILING_BY_LINKER
void __libc_free(void *p);

__attribute__((visibility("default"))) void free(void *p)
{
	failing_held -= p ? malloc_usable_size(p) : 0;
	__libc_free(p);
}
#endif

/* Allocated all the same, and counted: for what a test keeps. */
static inline char *failing_keep(size_t n)
{
	return counted(BEHIND(calloc)(1, n));
}

static inline void failing_begin(unsigned long at, bool on)
{
	failing_done = false;
	failing_count = 0;
	failing_on = on;
	failing_at = at;
}

/* How many were asked for. */
static inline unsigned long failing_end(void)
{
	unsigned long n = failing_count;
	failing_at = 0;
	failing_on = false;
	return n;
}

#endif
