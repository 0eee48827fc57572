/* The system, as system calls: where glibc 2.17 has no function, where a newer version of one would tie the library to a newer glibc, and where the
 * function is a point at which a thread may be cancelled (pthread_cancel), which would leave a lock locked. */
#ifndef OPSCOPE_COLLECT_SYS_H
#define OPSCOPE_COLLECT_SYS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A variable of the environment; NULL = not set, or the process has more rights than its caller (set-user-id, file capabilities), who chose the
 * environment. As secure_getenv, which is not in every C library. */
static inline const char *sys_environment(const char *name) { return getauxval(AT_SECURE) ? NULL : getenv(name); }

static inline uint32_t sys_tid(void) { return (uint32_t)syscall(SYS_gettid); }
static inline int sys_open(const char *path, int flags, int mode) { return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode); }
static inline void sys_close(int fd) { syscall(SYS_close, fd); }
static inline int sys_allocate(int fd, int mode, int64_t from, int64_t n) { return (int)syscall(SYS_fallocate, fd, mode, from, n); }
static inline long sys_write_at(int fd, const void *p, size_t n, int64_t at) { return syscall(SYS_pwrite64, fd, p, n, at); }
static inline void sys_sleep(long ns) { syscall(SYS_nanosleep, &(struct timespec){0, ns}, NULL); }

/* Commands of membarrier: a full barrier in all threads of the process, and being ready for that. */
enum { SYS_BARRIER = 1 << 3, SYS_BARRIER_READY = 1 << 4 };

/* Until *at is no longer `was`, or the time is over. */
static inline void sys_wait(_Atomic uint32_t *at, uint32_t was, int64_t ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, was, &t, 0, 0);
}

static inline void sys_wake(_Atomic uint32_t *at)
{
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* Whole of a small file; 0 = not there. */
static inline size_t sys_read_file(const char *path, char *to, size_t room)
{
	int fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return 0;
	size_t n = 0;
	for (long got; n < room && (got = syscall(SYS_read, fd, to + n, room - n)) > 0;)
		n += (size_t)got;
	sys_close(fd);
	return n;
}

/* The digits at `s`, and where they end; as much as fits. Not strtol: newer headers give that another name. */
static inline int64_t sys_number(const char *s, const char **end)
{
	int64_t v = 0;
	for (; *s >= '0' && *s <= '9'; s++)
		v = v > (INT64_MAX - 9) / 10 ? INT64_MAX : v * 10 + (*s - '0');
	*end = s;
	return v;
}

/* In decimal, NUL-terminated, in `room`; where it begins. */
enum { SYS_DIGITS = 24 };
static inline char *sys_digits(char room[SYS_DIGITS], uint64_t v)
{
	char *d = room + SYS_DIGITS - 1;
	*d = 0;
	do {
		*--d = (char)('0' + v % 10);
	} while (v /= 10);
	return d;
}

/* So many of the addresses that the program may have (RLIMIT_AS) are left to it. */
static inline size_t sys_fair(size_t bytes)
{
	struct rlimit r;
	bool few = getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY && bytes > r.rlim_cur / 16;
	return few ? (size_t)(r.rlim_cur / 16) : bytes;
}

/* Memory of our own, zeros; NULL = none. All of it counts against what the program may have (RLIMIT_DATA, vm.overcommit_memory=2), used or not. */
static inline void *sys_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Addresses for what may become large; NULL = none. In a program that keeps all it has in memory (mlockall) they are made of a small mapping that is not
 * kept: none of them count against what it may keep there. */
enum { SYS_PIECE = 1 << 16 };
static inline void *sys_addresses(size_t bytes, int how, int fd)
{
	void *p = mmap(NULL, SYS_PIECE, PROT_NONE, how | MAP_NORESERVE, fd, 0), *all = MAP_FAILED;
	if (p == MAP_FAILED)
		return NULL;
	munlock(p, SYS_PIECE);
	if ((all = mremap(p, SYS_PIECE, bytes, MREMAP_MAYMOVE)) == MAP_FAILED)
		munmap(p, SYS_PIECE);
	return all == MAP_FAILED ? NULL : all;
}

/* For memory, zeros, as far as sys_ready says, and only that counts. */
static inline size_t sys_whole(size_t bytes) { return (bytes + SYS_PIECE - 1) / SYS_PIECE * SYS_PIECE; }
static inline void *sys_reserve(size_t bytes) { return sys_addresses(sys_whole(bytes), MAP_PRIVATE | MAP_ANONYMOUS, -1); }
static inline void sys_release(void *base, size_t bytes) { munmap(base, sys_whole(bytes)); }

/* The first `need` bytes of what was reserved can be used; *have is how many can be, 0 at first. More comes by the page, or SYS_PIECE where `much`. False:
 * there is no memory. */
static inline bool sys_ready(void *base, size_t *have, size_t need, bool much)
{
	if (need <= *have)
		return true;
	size_t unit = much ? SYS_PIECE : (size_t)sysconf(_SC_PAGESIZE), upto = (need + unit - 1) / unit * unit; /* no page is larger than SYS_PIECE */
	if (mprotect((char *)base + *have, upto - *have, PROT_READ | PROT_WRITE) < 0)
		return false;
	*have = upto;
	return true;
}

#endif
