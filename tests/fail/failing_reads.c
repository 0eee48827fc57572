/* For LD_PRELOAD: reads of one file, or allocations, fail as a bad disk and a full memory make them fail.
 *
 *   FAIL_FILE    whose reads are counted and fail
 *   FAIL_READ    which of them fails, from 1: with EIO, or as FAIL_KIND says: "short" gives a part of what was asked for; "all" makes all from this one on fail;
 *                "shorten" cuts off half of the file before it, and reads
 *   FAIL_ALLOC   which allocation fails, counted from the first read of FAIL_FILE on; FAIL_KIND "all" as above
 *   FAIL_COUNTS  a file that is given "READS ALLOCATIONS" at the end */
#undef _FILE_OFFSET_BITS /* pread and pread64 are both defined here */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *p, size_t n);

static struct stat file;
static long fail_read, fail_alloc, reads, allocations;
static int is_short, is_all, is_cut, begun, is_read;

static long number(const char *name)
{
	const char *text = getenv(name);
	return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL_FILE"), *kind = getenv("FAIL_KIND");
	if (!path || stat(path, &file) < 0)
		file.st_ino = 0;
	is_short = kind && strcmp(kind, "short") == 0;
	is_cut = kind && strcmp(kind, "shorten") == 0;
	is_all = kind && strcmp(kind, "all") == 0;
	fail_read = number("FAIL_READ");
	fail_alloc = number("FAIL_ALLOC");
	begun = 1;
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAIL_COUNTS");
	begun = 0;
	FILE *f = path ? fopen(path, "w") : NULL;
	if (f) {
		fprintf(f, "%ld %ld\n", __atomic_load_n(&reads, __ATOMIC_RELAXED), __atomic_load_n(&allocations, __ATOMIC_RELAXED));
		fclose(f);
	}
}

#pragma GCC visibility push(default)

static int is_hit(long *count, long which)
{
	long at = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	return which && (at == which || (is_all && at > which));
}

/* Whether this read of `fd` fails; a short one is given *n fewer bytes. */
static int fails(int fd, size_t *n)
{
	struct stat st;
	if (!begun || !file.st_ino || fstat(fd, &st) < 0 || st.st_ino != file.st_ino || st.st_dev != file.st_dev)
		return 0;
	is_read = 1;
	if (!is_hit(&reads, fail_read))
		return 0;
	if (is_cut && truncate(getenv("FAIL_FILE"), st.st_size / 2) == 0)
		return 0;
	if (is_short && *n > 1) {
		*n /= 2;
		return 0;
	}
	errno = EIO;
	return !is_short;
}

ssize_t read(int fd, void *to, size_t n)
{
	return fails(fd, &n) ? -1 : syscall(SYS_read, fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	return fails(fd, &n) ? -1 : syscall(SYS_pread64, fd, to, n, at);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
	return fails(fd, &n) ? -1 : syscall(SYS_pread64, fd, to, n, at);
}

static int no_memory(void)
{
	if (!begun || !is_read || !is_hit(&allocations, fail_alloc))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t n) { return no_memory() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return no_memory() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return no_memory() ? NULL : __libc_realloc(p, n); }
