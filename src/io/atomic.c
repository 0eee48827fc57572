#include "io/atomic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/leftovers.h"

enum { MAX_LINKS = 40 }; /* as in Linux */
#define TEMP_START ".opscope-"
enum { TEMP_DIGITS = 16 };

int fd_write_all(int fd, struct str s)
{
	while (s.n) {
		ssize_t n = write(fd, s.p, s.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		s.p += n;
		s.n -= (size_t)n;
	}
	return 0;
}

static int fail(const struct atomic_file *f, const char *what, struct err *e)
{
	return err_set(e, ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

static char *take(struct buf *b)
{
	char *copy = mem_alloc(b->n + 1, 1);
	if (b->n)
		memcpy(copy, b->p, b->n);
	copy[b->n] = 0;
	buf_release(b);
	return copy;
}

/* The folder of a path with its last '/'; "./" when it names none. */
static void put_folder(struct buf *b, const char *path)
{
	const char *slash = strrchr(path, '/');
	if (slash)
		buf_put(b, path, (size_t)(slash - path) + 1);
	else
		buf_cstr(b, "./");
}

static char *copy_text(const char *text)
{
	struct buf b = {0};
	buf_cstr(&b, text);
	return take(&b);
}

/* A folder where everyone may write and only the owner of a file may remove it: /tmp. What another user has put there, for us to find, is not touched, as by the
 * kernel with protected_symlinks and protected_regular. */
static bool may_touch(const char *path, uid_t owner)
{
	struct buf b = {0};
	struct stat st;
	put_folder(&b, path);
	char *folder = take(&b);
	bool shared = stat(folder, &st) == 0 && (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH);
	mem_free(folder);
	return !shared || owner == geteuid() || owner == st.st_uid;
}

/* Follows the links at the end of f->target. 1: there is a file, *old; 0: not yet; -1: *e. */
static int follow_links(struct atomic_file *f, struct stat *old, struct err *e)
{
	char link[4096];
	for (int i = 0; i < MAX_LINKS; i++) {
		if (lstat(f->target, old) < 0)
			return errno == ENOENT ? 0 : fail(f, "cannot look at it", e);
		if (!may_touch(f->target, old->st_uid))
			return err_set(e, ERR_IO, "%s: a %s of another user, in a folder where everyone may write: it is not %s", f->path,
			               S_ISLNK(old->st_mode) ? "link" : "file", S_ISLNK(old->st_mode) ? "followed" : "replaced");
		if (!S_ISLNK(old->st_mode))
			return S_ISREG(old->st_mode) ? 1 : err_set(e, ERR_IO, "%s: not a regular file", f->path);
		ssize_t n = readlink(f->target, link, sizeof link);
		if (n < 0 || n == (ssize_t)sizeof link)
			return fail(f, "cannot follow the link", e);
		struct buf at = {0};
		if (link[0] != '/')
			put_folder(&at, f->target);
		buf_put(&at, link, (size_t)n);
		char *next = take(&at);
		mem_free(f->target);
		f->target = next;
	}
	errno = ELOOP;
	return fail(f, "cannot follow the link", e);
}

/* --- what earlier processes left ---------------------------------------------------------------------------------------- */

static bool is_temp_name(const char *name)
{
	size_t n = sizeof TEMP_START - 1;
	return strncmp(name, TEMP_START, n) == 0 && strspn(name + n, "0123456789abcdef") == TEMP_DIGITS && !name[n + TEMP_DIGITS];
}

/* A file system of this machine alone, so that a lock says whether a process writes to the file. On other file systems, locks may hold on one machine alone. */
static bool is_local(int folder)
{
	static const __fsword_t known[] = {0xef53 /* ext */, 0x58465342 /* XFS */, 0x9123683e /* Btrfs */, 0x01021994 /* tmpfs */, 0x794c7630 /* overlay */, 0xf2f52010 /* F2FS */};
	struct statfs fs;
	bool local = false;
	for (size_t i = 0; fstatfs(folder, &fs) == 0 && !local && i < sizeof known / sizeof known[0]; i++)
		local = fs.f_type == known[i];
	return local;
}

static bool is_same(int folder, const char *name, const struct stat *file)
{
	struct stat st;
	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Whoever writes such a file holds its lock; one that can be locked has lost its writer. */
static void remove_if_left(int folder, const char *name, bool local)
{
	enum { DAY_S = 24 * 60 * 60 };
	struct stat st;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (!local && time(NULL) - st.st_mtime < DAY_S))
		return;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same(folder, name, &st))
		unlinkat(folder, name, 0);
	close(fd);
}

/* Beside `target`. Of a very large folder only a part is looked at. */
static void remove_left(const char *target)
{
	enum { LOOK_AT_MOST = 20000 };
	struct buf b = {0};
	put_folder(&b, target);
	char *folder = take(&b);
	DIR *d = opendir(folder);
	bool local = d && is_local(dirfd(d));
	const struct dirent *entry;
	for (int i = 0; d && i < LOOK_AT_MOST && (entry = readdir(d)); i++)
		if (is_temp_name(entry->d_name))
			remove_if_left(dirfd(d), entry->d_name, local);
	if (d)
		closedir(d);
	mem_free(folder);
}

/* --- the file ------------------------------------------------------------------------------------------------------------- */

/* The name is short, and not made of the target's, which may be as long as a name can be. */
static char *temp_name(const char *target)
{
	uint64_t word = 0;
	if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
		word = (uint64_t)getpid(); /* O_EXCL sees to the rest */
	struct buf b = {0};
	put_folder(&b, target);
	buf_printf(&b, TEMP_START "%016llx", (unsigned long long)word);
	return take(&b);
}

static void block_signals(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

/* Creates the file and lists it among the leftovers while signals are blocked, then locks it. False when another process, cleaning up, locked or removed
 * the new file first; the file is then gone. */
static bool make_temp(struct atomic_file *f, mode_t mode)
{
	sigset_t before;
	struct stat st;
	block_signals(&before);
	f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int why = errno;
	if (f->fd >= 0)
		f->leftover = leftover_add(f->temp);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	if (f->fd < 0)
		return false;
	bool taken = flock(f->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; /* where there are no locks, nobody cleans up */
	if (!taken && (fstat(f->fd, &st) < 0 || st.st_nlink))
		return true;
	unlink(f->temp);
	leftover_drop(f->leftover);
	f->leftover = LEFTOVER_NONE;
	close(f->fd);
	f->fd = -1;
	errno = EEXIST;
	return false;
}

/* Created by open, so that the umask applies as to any new file. */
static int create(struct atomic_file *f, mode_t mode)
{
	for (int attempt = 0; attempt < 8; attempt++) {
		mem_free(f->temp);
		f->temp = NULL; /* not ours to remove */
		f->temp = temp_name(f->target);
		if (make_temp(f, mode))
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -1;
}

/* Gives the new file the owner, group and mode of the old one. When the old group cannot be given, the new file's group gets only what others had. */
static int take_over(struct atomic_file *f, const struct stat *old)
{
	struct stat st;
	mode_t mode = old->st_mode & 0777;
	if (fstat(f->fd, &st) < 0)
		return -1;
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) && fchown(f->fd, old->st_uid, old->st_gid) < 0 &&
	    fchown(f->fd, (uid_t)-1, old->st_gid) < 0 && st.st_gid != old->st_gid)
		mode &= (mode & 0007) << 3 | 0707;
	return fchmod(f->fd, mode);
}

static void release(struct atomic_file *f)
{
	mem_undo_end(&f->undo);
	leftover_drop(f->leftover);
	if (f->fd >= 0)
		close(f->fd);
	mem_free(f->temp);
	mem_free(f->target);
	mem_free(f->path);
	*f = (struct atomic_file){.fd = -1, .leftover = LEFTOVER_NONE};
}

static void abandon(void *f)
{
	atomic_abort(f);
}

int atomic_begin_as(struct atomic_file *f, const char *path, mode_t mode, struct err *e)
{
	enum { OWNER_ALONE = 0600 };
	struct stat old;
	*f = (struct atomic_file){.fd = -1, .leftover = LEFTOVER_NONE};
	mem_undo_begin(&f->undo, abandon, f);
	f->path = copy_text(path);
	f->target = copy_text(path);
	int exists = follow_links(f, &old, e), rc = exists < 0 ? -1 : 0;
	if (rc == 0) {
		remove_left(f->target);
		rc = create(f, exists ? OWNER_ALONE : mode) < 0 ? fail(f, "cannot create", e) : 0;
	}
	if (rc == 0 && exists && take_over(f, &old) < 0)
		rc = fail(f, "cannot set permissions", e);
	return rc < 0 ? atomic_abort(f) : 0;
}

int atomic_begin(struct atomic_file *f, const char *path, struct err *e)
{
	enum { AS_UMASK_SAYS = 0666 };
	return atomic_begin_as(f, path, AS_UMASK_SAYS, e);
}

int atomic_write(struct atomic_file *f, struct str s, struct err *e)
{
	return fd_write_all(f->fd, s) < 0 ? fail(f, "cannot write", e) : 0;
}

/* Makes the new name last through a power cut. That it cannot be done on some file systems loses nothing. */
static void sync_folder(const char *target)
{
	struct buf b = {0};
	put_folder(&b, target);
	char *folder = take(&b);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	mem_free(folder);
}

/* Signals wait for as long as it takes to say that the file is no unfinished one any more. */
static int rename_temp(struct atomic_file *f)
{
	sigset_t before;
	block_signals(&before);
	int rc = rename(f->temp, f->target), why = errno;
	if (rc == 0) {
		leftover_drop(f->leftover);
		f->leftover = LEFTOVER_NONE;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return rc;
}

int atomic_commit(struct atomic_file *f, struct err *e)
{
	if (fsync(f->fd) < 0 || rename_temp(f) < 0) {
		fail(f, "cannot write", e);
		return atomic_abort(f);
	}
	sync_folder(f->target);
	release(f);
	return 0;
}

int atomic_abort(struct atomic_file *f)
{
	if (f->fd >= 0)
		unlink(f->temp);
	release(f);
	return -1;
}
