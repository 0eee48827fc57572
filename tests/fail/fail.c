/* LD_PRELOAD library: the Nth call of a class fails, or the Nth and all later ones. For programs without sanitizers, which have an allocator of their own.
 *
 *   FAIL_AT=malloc:12:once  CLASS:N:once or CLASS:N:from, and :ERRNO behind it (ENOSPC, EIO; each class has its usual one), or :short for read and write: the call
 *                           is done with half of the bytes, which is no failure; :cut for read: the file loses half of its bytes before it, and the read is done.
 *                           N = 0: calls are counted alone.
 *   FAIL_UNDER=DIR:FILE     full paths: classes that concern files count calls on these, and on what lies under folders, alone. write counts standard output, too.
 *   FAIL_STATE=FILE         a file of 48 bytes, mapped by every process: struct state. It can be read and written while the program runs, and outlives it.
 *   FAIL_WAIT=1             nothing counts before someone sets state.armed; FAIL_WAIT=read: before the first read of what FAIL_UNDER names. Without it counting begins
 *                           with main(), after loader and constructors
 *
 * Classes: malloc (also calloc, realloc, aligned_alloc, ...), open, read, write, close, fsync, rename, truncate, mmap (of files), stat (also access, realpath,
 * readlink), thread (pthread_create, fork, posix_spawn).
 *
 * glibc asks its own strdup, getline, fopen, opendir, scandir, realpath and qsort for memory through the names that are replaced here: these count as allocations
 * without being replaced; the loader's own do not. Its reads and writes do not go through such names: fopen, fread, fgets, getline, opendir, readdir and scandir are replaced for their
 * files' sake. What stdio writes is not seen (a test has it written to /dev/full).
 *
 * Nothing here allocates: the allocator is reached by its internal names, the other functions are looked up before anything is counted. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define LENGTH(a) (sizeof(a) / sizeof *(a))

enum kind { C_NONE, C_MALLOC, C_OPEN, C_READ, C_WRITE, C_CLOSE, C_FSYNC, C_RENAME, C_TRUNCATE, C_MMAP, C_STAT, C_THREAD, CLASSES };

static const struct {
	const char *name;
	int usual;
} classes[CLASSES] = {
	[C_MALLOC] = {"malloc", ENOMEM}, [C_OPEN] = {"open", EIO},         [C_READ] = {"read", EIO}, [C_WRITE] = {"write", ENOSPC}, [C_CLOSE] = {"close", EIO},
	[C_FSYNC] = {"fsync", EIO},      [C_RENAME] = {"rename", EIO},     [C_MMAP] = {"mmap", ENODEV}, [C_STAT] = {"stat", EIO},
	[C_TRUNCATE] = {"truncate", ENOSPC}, [C_THREAD] = {"thread", EAGAIN},
};

static const struct {
	const char *name;
	int number;
} errors[] = {{"ENOMEM", ENOMEM}, {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EACCES", EACCES}, {"ENOENT", ENOENT}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE},
              {"EAGAIN", EAGAIN}, {"ENODEV", ENODEV}, {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG},   {"EROFS", EROFS},   {"ESTALE", ESTALE}};

struct state {
	uint64_t armed;     /* not 0: calls count */
	uint64_t at;        /* N */
	uint64_t from;      /* not 0: every call from the Nth on fails */
	uint64_t count;     /* calls so far */
	uint64_t delivered; /* those that failed */
	uint64_t main_pid;
};

enum { SHORT = -1, CUT = -2, MAX_FOLDERS = 8 };

static struct state own_state;          /* where there is no FAIL_STATE */
static struct state *state = &own_state;
static enum kind chosen;
static int error;
static bool read_arms;
static struct {
	const char *path;
	size_t n;
} folder[MAX_FOLDERS];
static unsigned n_folders;

/* Counts a call of the chosen class; whether it has to fail, errno is then set. */
static bool due(void)
{
	if (!__atomic_load_n(&state->armed, __ATOMIC_ACQUIRE))
		return false;
	uint64_t at = __atomic_load_n(&state->at, __ATOMIC_RELAXED), now = __atomic_add_fetch(&state->count, 1, __ATOMIC_RELAXED);
	if (!at || now < at || (now > at && !__atomic_load_n(&state->from, __ATOMIC_RELAXED)))
		return false;
	__atomic_add_fetch(&state->delivered, 1, __ATOMIC_RELAXED);
	if (error > 0)
		errno = error;
	return true;
}

static bool under(const char *path)
{
	for (unsigned i = 0; i < n_folders; i++)
		if (strncmp(path, folder[i].path, folder[i].n) == 0 && (path[folder[i].n] == '/' || !path[folder[i].n]))
			return true;
	return false;
}

static bool fd_under(int fd)
{
	char link[32], path[PATH_MAX];
	int kept = errno;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	long n = syscall(SYS_readlink, link, path, sizeof path - 1);
	errno = kept;
	if (n <= 0)
		return false;
	path[n] = 0;
	return under(path);
}

/* A relative path counts as it is written, behind the folder that it starts from. */
static bool path_under(int dir, const char *path)
{
	char from[32] = "/proc/self/cwd", full[2 * PATH_MAX];
	if (path[0] == '/')
		return under(path);
	if (dir != AT_FDCWD)
		snprintf(from, sizeof from, "/proc/self/fd/%d", dir);
	int kept = errno;
	long n = syscall(SYS_readlink, from, full, PATH_MAX);
	errno = kept;
	if (n <= 0)
		return false;
	snprintf(full + n, sizeof full - (size_t)n, "/%s", path);
	return under(full);
}

static bool cut(int fd)
{
	char link[32];
	struct stat s;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* it may be open for reading alone */
	return fstat(fd, &s) == 0 && truncate(link, s.st_size / 2) == 0;
}

static bool fd_fails(enum kind c, int fd)
{
	if (c == C_READ && read_arms && fd_under(fd))
		__atomic_store_n(&state->armed, 1, __ATOMIC_RELEASE);
	return chosen == c && (fd_under(fd) || (c == C_WRITE && fd == STDOUT_FILENO)) && due() && !(error == CUT && cut(fd));
}

static bool path_fails(enum kind c, const char *path)
{
	return chosen == c && path && path_under(AT_FDCWD, path) && due();
}

/* ---- settings ---- */

static void wrong(const char *setting)
{
	fprintf(stderr, "fail.so: %s: FAIL_AT is CLASS:N:once|from[:ERRNO|:short|:cut]\n", setting);
	_exit(125);
}

static enum kind kind_named(const char *name)
{
	for (unsigned i = 1; i < CLASSES; i++)
		if (strcmp(classes[i].name, name) == 0)
			return i;
	return C_NONE;
}

static int error_named(const char *name, enum kind c)
{
	if (strcmp(name, "short") == 0)
		return c == C_READ || c == C_WRITE ? SHORT : 0;
	if (strcmp(name, "cut") == 0)
		return c == C_READ ? CUT : 0;
	for (unsigned i = 0; i < LENGTH(errors); i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].number;
	return 0;
}

/* What stands in a shared state already is another process's, or the test's. */
static void read_setting(const char *text, bool shared)
{
	char name[16], often[8], why[16] = "";
	unsigned long long at;
	if (sscanf(text, "%15[^:]:%llu:%7[^:]:%15s", name, &at, often, why) < 3)
		wrong(text);
	bool from = strcmp(often, "from") == 0;
	enum kind c = kind_named(name);
	error = !c ? 0 : *why ? error_named(why, c) : classes[c].usual;
	if (!error || (!from && strcmp(often, "once") != 0))
		wrong(text);
	chosen = c;
	if (!shared) {
		state->at = at;
		state->from = from;
	}
}

static void read_folders(const char *list)
{
	for (const char *p = list; p && *p && n_folders < MAX_FOLDERS;) {
		size_t n = strcspn(p, ":");
		folder[n_folders].path = p;
		folder[n_folders++].n = n;
		p += n + (p[n] == ':');
	}
}

/* True when another process has mapped the file before. */
static bool map_state(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	void *p = fd < 0 ? MAP_FAILED : (void *)syscall(SYS_mmap, NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (p == MAP_FAILED) {
		fprintf(stderr, "fail.so: FAIL_STATE=%s: %s\n", path, strerror(errno));
		_exit(125);
	}
	state = p;
	return state->main_pid != 0;
}

static uintptr_t loader_from, loader_to;

static void find_loader(void)
{
	const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)getauxval(AT_BASE);
	if (!e)
		return;
	const ElfW(Phdr) *h = (const ElfW(Phdr) *)(const void *)((const char *)e + e->e_phoff);
	loader_from = (uintptr_t)e;
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (h[i].p_type == PT_LOAD)
			loader_to = loader_from + h[i].p_vaddr + h[i].p_memsz;
}

static void find_real(void);

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAIL_AT"), *file = getenv("FAIL_STATE"), *wait = getenv("FAIL_WAIT");
	find_real();
	find_loader();
	if (!at)
		return;
	bool later = file && map_state(file);
	read_arms = wait && strcmp(wait, "read") == 0;
	read_setting(at, later || (wait && !read_arms));
	read_folders(getenv("FAIL_UNDER"));
	if (!later)
		state->main_pid = (uint64_t)getpid();
}

/* ---- the allocator: glibc's own names of it ---- */

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

/* The loader ends the program when it gets no memory for thread-local data of a library: nothing that a program could do about it. */
static bool from_loader(const void *caller)
{
	return (uintptr_t)caller >= loader_from && (uintptr_t)caller < loader_to;
}

#define memory_fails() (chosen == C_MALLOC && !from_loader(__builtin_return_address(0)) && due())

EXPORT void *malloc(size_t n)
{
	return memory_fails() ? NULL : __libc_malloc(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
	return memory_fails() ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t n)
{
	return memory_fails() ? NULL : __libc_realloc(p, n);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return memory_fails() ? NULL : __libc_realloc(p, bytes);
}

EXPORT void *memalign(size_t alignment, size_t n)
{
	return memory_fails() ? NULL : __libc_memalign(alignment, n);
}

EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
	return memory_fails() ? NULL : __libc_memalign(alignment, n);
}

EXPORT int posix_memalign(void **p, size_t alignment, size_t n)
{
	int kept = errno;
	void *got = memory_fails() ? NULL : __libc_memalign(alignment, n);
	errno = kept; /* it is the result that says why */
	if (!got)
		return ENOMEM;
	*p = got;
	return 0;
}

/* ---- everything else: found once, before anything counts ---- */

#define REPLACED(X) \
	X(open) X(open64) X(openat) X(openat64) X(fopen) X(fopen64) X(opendir) X(scandir) X(scandir64) \
	X(read) X(pread) X(pread64) X(readv) X(fread) X(fgets) X(getline) X(__getdelim) X(readdir) X(readdir64) \
	X(write) X(pwrite) X(pwrite64) X(writev) X(copy_file_range) X(close) X(fsync) X(fdatasync) X(rename) X(ftruncate) X(ftruncate64) \
	X(mmap) X(mmap64) X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64) X(access) X(realpath) X(readlink) \
	X(pthread_create) X(fork) X(posix_spawn) X(posix_spawnp)

extern ssize_t __getdelim(char **line, size_t *room, int end, FILE *f);
#define POINTER(name) static void *real_##name;
REPLACED(POINTER)

/* Other libraries' constructors may call before ours runs. */
static void *found(void **slot, const char *name)
{
	if (!*slot)
		*slot = dlsym(RTLD_NEXT, name);
	return *slot;
}
#define REAL(name) ((__typeof__(name) *)found(&real_##name, #name))

static void find_real(void)
{
#define FIND(name) (void)REAL(name);
	REPLACED(FIND)
}

#define OPEN(name) \
	EXPORT int name(const char *path, int flags, ...) \
	{ \
		va_list more; \
		va_start(more, flags); \
		mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0; \
		va_end(more); \
		return path_fails(C_OPEN, path) ? -1 : REAL(name)(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
	EXPORT int name(int dir, const char *path, int flags, ...) \
	{ \
		va_list more; \
		va_start(more, flags); \
		mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0; \
		va_end(more); \
		return chosen == C_OPEN && path_under(dir, path) && due() ? -1 : REAL(name)(dir, path, flags, mode); \
	}
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name) \
	EXPORT FILE *name(const char *path, const char *mode) \
	{ \
		return path_fails(C_OPEN, path) ? NULL : REAL(name)(path, mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

EXPORT DIR *opendir(const char *path)
{
	return path_fails(C_OPEN, path) ? NULL : REAL(opendir)(path);
}

#define SCANDIR(name, entry) \
	EXPORT int name(const char *path, struct entry ***list, int (*wanted)(const struct entry *), \
	                int (*compare)(const struct entry **, const struct entry **)) \
	{ \
		return path_fails(C_OPEN, path) ? -1 : REAL(name)(path, list, wanted, compare); \
	}
SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

/* Half of the bytes, but at least one, where a short answer is due instead of an error. */
static size_t shortened(size_t n)
{
	return n > 1 ? n / 2 : n;
}

/* An answer for a call that is due, `whole` one for any other. */
#define TRANSFER(c, fd, shorter, whole) (!fd_fails(c, fd) ? (whole) : error == SHORT ? (shorter) : -1)

EXPORT ssize_t read(int fd, void *p, size_t n)
{
	return TRANSFER(C_READ, fd, REAL(read)(fd, p, shortened(n)), REAL(read)(fd, p, n));
}

EXPORT ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	return TRANSFER(C_READ, fd, REAL(pread)(fd, p, shortened(n), at), REAL(pread)(fd, p, n, at));
}

EXPORT ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
	return TRANSFER(C_READ, fd, REAL(pread64)(fd, p, shortened(n), at), REAL(pread64)(fd, p, n, at));
}

EXPORT ssize_t readv(int fd, const struct iovec *v, int n)
{
	return TRANSFER(C_READ, fd, REAL(readv)(fd, v, n > 1 ? n / 2 : n), REAL(readv)(fd, v, n));
}

EXPORT ssize_t write(int fd, const void *p, size_t n)
{
	return TRANSFER(C_WRITE, fd, REAL(write)(fd, p, shortened(n)), REAL(write)(fd, p, n));
}

EXPORT ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return TRANSFER(C_WRITE, fd, REAL(pwrite)(fd, p, shortened(n), at), REAL(pwrite)(fd, p, n, at));
}

EXPORT ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	return TRANSFER(C_WRITE, fd, REAL(pwrite64)(fd, p, shortened(n), at), REAL(pwrite64)(fd, p, n, at));
}

EXPORT ssize_t writev(int fd, const struct iovec *v, int n)
{
	return TRANSFER(C_WRITE, fd, REAL(writev)(fd, v, n > 1 ? n / 2 : n), REAL(writev)(fd, v, n));
}

EXPORT ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags)
{
	return TRANSFER(C_WRITE, to, REAL(copy_file_range)(from, from_at, to, to_at, shortened(n), flags), REAL(copy_file_range)(from, from_at, to, to_at, n, flags));
}

/* Reading that stdio does by itself has no short answers: a stream asks again. */
static bool stream_fails(FILE *f)
{
	enum { GLIBC_ERR_SEEN = 0x20 }; /* what ferror looks at */
	if (error == SHORT || !fd_fails(C_READ, fileno(f)))
		return false;
	f->_flags |= GLIBC_ERR_SEEN;
	return true;
}

EXPORT size_t fread(void *p, size_t size, size_t n, FILE *f)
{
	return stream_fails(f) ? 0 : REAL(fread)(p, size, n, f);
}

EXPORT char *fgets(char *p, int n, FILE *f)
{
	return stream_fails(f) ? NULL : REAL(fgets)(p, n, f);
}

EXPORT ssize_t getline(char **line, size_t *room, FILE *f)
{
	return stream_fails(f) ? -1 : REAL(getline)(line, room, f);
}

EXPORT ssize_t __getdelim(char **line, size_t *room, int end, FILE *f)
{
	return stream_fails(f) ? -1 : REAL(__getdelim)(line, room, end, f);
}

EXPORT struct dirent *readdir(DIR *d)
{
	return error != SHORT && fd_fails(C_READ, dirfd(d)) ? NULL : REAL(readdir)(d);
}

EXPORT struct dirent64 *readdir64(DIR *d)
{
	return error != SHORT && fd_fails(C_READ, dirfd(d)) ? NULL : REAL(readdir64)(d);
}

/* The descriptor is closed all the same, as in Linux. */
EXPORT int close(int fd)
{
	bool fails = fd_fails(C_CLOSE, fd);
	int why = errno, rc = REAL(close)(fd);
	if (!fails)
		return rc;
	errno = why;
	return -1;
}

#define OF_FD(c, result, name, parameters, arguments) \
	EXPORT result name parameters \
	{ \
		return fd_fails(c, fd) ? -1 : REAL(name) arguments; \
	}
OF_FD(C_FSYNC, int, fsync, (int fd), (fd))
OF_FD(C_FSYNC, int, fdatasync, (int fd), (fd))
OF_FD(C_TRUNCATE, int, ftruncate, (int fd, off_t n), (fd, n))
OF_FD(C_TRUNCATE, int, ftruncate64, (int fd, off64_t n), (fd, n))
OF_FD(C_STAT, int, fstat, (int fd, struct stat *s), (fd, s))
OF_FD(C_STAT, int, fstat64, (int fd, struct stat64 *s), (fd, s))

#define OF_PATH(c, result, failed, name, parameters, arguments) \
	EXPORT result name parameters \
	{ \
		return path_fails(c, path) ? (failed) : REAL(name) arguments; \
	}
OF_PATH(C_RENAME, int, -1, rename, (const char *path, const char *to), (path, to))
OF_PATH(C_STAT, int, -1, stat, (const char *path, struct stat *s), (path, s))
OF_PATH(C_STAT, int, -1, stat64, (const char *path, struct stat64 *s), (path, s))
OF_PATH(C_STAT, int, -1, lstat, (const char *path, struct stat *s), (path, s))
OF_PATH(C_STAT, int, -1, lstat64, (const char *path, struct stat64 *s), (path, s))
OF_PATH(C_STAT, int, -1, access, (const char *path, int how), (path, how))
OF_PATH(C_STAT, char *, NULL, realpath, (const char *path, char *real), (path, real))
OF_PATH(C_STAT, ssize_t, -1, readlink, (const char *path, char *link, size_t n), (path, link, n))

#define FSTATAT(name, type) \
	EXPORT int name(int dir, const char *path, struct type *s, int flags) \
	{ \
		return chosen == C_STAT && path_under(dir, path) && due() ? -1 : REAL(name)(dir, path, s, flags); \
	}
FSTATAT(fstatat, stat)
FSTATAT(fstatat64, stat64)

#define MMAP(name, offset) \
	EXPORT void *name(void *p, size_t n, int prot, int flags, int fd, offset at) \
	{ \
		return fd >= 0 && fd_fails(C_MMAP, fd) ? MAP_FAILED : REAL(name)(p, n, prot, flags, fd, at); \
	}
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
	return chosen == C_THREAD && due() ? error : REAL(pthread_create)(t, a, run, arg);
}

EXPORT pid_t fork(void)
{
	return chosen == C_THREAD && due() ? -1 : REAL(fork)();
}

#define SPAWN(name) \
	EXPORT int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *a, char *const argv[], char *const env[]) \
	{ \
		return chosen == C_THREAD && due() ? error : REAL(name)(pid, path, f, a, argv, env); \
	}
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

/* ---- counting begins with main() ---- */

typedef int main_fn(int argc, char **argv, char **env);
static main_fn *real_main;

static int main_counted(int argc, char **argv, char **env)
{
	if (chosen && !getenv("FAIL_WAIT"))
		__atomic_store_n(&state->armed, 1, __ATOMIC_RELEASE);
	return real_main(argc, argv, env);
}

typedef int start_fn(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*loader_fini)(void), void *stack_end);
EXPORT start_fn __libc_start_main;

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	real_main = main;
	start_fn *start = (start_fn *)dlsym(RTLD_NEXT, "__libc_start_main");
	return start(main_counted, argc, argv, init, fini, loader_fini, stack_end);
}
