#include "io/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/follow.h"
#include "io/left.h"
#include "io/leftovers.h"

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

static int atomic_fail(const struct atomic_file *f, const char *what, struct err *e)
{
	return err_set(e, ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

static char *copy_text(const char *text)
{
	struct buf b = {0};
	buf_cstr(&b, text);
	return follow_take(&b);
}

static char *atomic_folder_of(const char *target)
{
	struct buf b = {0};
	follow_put_folder(&b, target);
	return follow_take(&b);
}

static void block_signals(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

/* Creates the file and lists it among the leftovers while signals are blocked, then locks it. False with errno, see left_lock; the file is then gone. */
static bool make_temp(struct atomic_file *f, mode_t mode)
{
	sigset_t before;
	block_signals(&before);
	f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int why = errno;
	if (f->fd >= 0)
		f->leftover = leftover_add(f->temp);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	if (f->fd < 0)
		return false;
	if (left_lock(f->fd, f->temp))
		return true;
	why = errno;
	unlink(f->temp);
	leftover_drop(f->leftover);
	f->leftover = LEFTOVER_NONE;
	close(f->fd);
	f->fd = -1;
	errno = why;
	return false;
}

/* Created by open, so that the umask applies as to any new file. The name is short, and not made of the target's, which may be as long as a name can be. */
static int atomic_create(struct atomic_file *f, const char *folder, mode_t mode)
{
	for (int attempt = 0; attempt < 8; attempt++) {
		mem_free(f->temp);
		f->temp = NULL; /* not ours to remove */
		f->temp = left_name(folder);
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

static void atomic_release(struct atomic_file *f)
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

static void atomic_abandon(void *f)
{
	atomic_abort(f);
}

/* A file for a target that is a file, or not there. */
static int begin_file(struct atomic_file *f, const struct stat *old, mode_t mode, struct err *e)
{
	enum { OWNER_ALONE = 0600 };
	char *folder = atomic_folder_of(f->target);
	left_remove(folder);
	int rc = atomic_create(f, folder, old ? OWNER_ALONE : mode) < 0 ? atomic_fail(f, "cannot create", e) : 0;
	mem_free(folder);
	return rc == 0 && old && take_over(f, old) < 0 ? atomic_fail(f, "cannot set permissions", e) : rc;
}

/* `any`: also what is no file. */
static int atomic_begin_(struct atomic_file *f, const char *path, mode_t mode, bool any, struct err *e)
{
	struct stat old;
	int rc = -1;
	*f = (struct atomic_file){.fd = -1, .leftover = LEFTOVER_NONE};
	mem_undo_begin(&f->undo, atomic_abandon, f);
	f->path = copy_text(path);
	enum followed found = follow_links(path, &f->target, &old, e);
	if (found == FOLLOWED_NOTHING || found == FOLLOWED_FILE)
		rc = begin_file(f, found == FOLLOWED_FILE ? &old : NULL, mode, e);
	else if (found != FOLLOWED_FAILED && any)
		rc = (f->fd = follow_open(f->target, &old)) < 0 ? atomic_fail(f, "cannot write", e) : 0;
	else if (found != FOLLOWED_FAILED)
		err_set(e, ERR_IO, "%s: not a regular file", path);
	return rc < 0 ? atomic_abort(f) : 0;
}

int atomic_begin_as(struct atomic_file *f, const char *path, mode_t mode, struct err *e)
{
	return atomic_begin_(f, path, mode, false, e);
}

enum { AS_UMASK_SAYS = 0666 };

int atomic_begin(struct atomic_file *f, const char *path, struct err *e)
{
	return atomic_begin_(f, path, AS_UMASK_SAYS, false, e);
}

int atomic_begin_any(struct atomic_file *f, const char *path, struct err *e)
{
	return atomic_begin_(f, path, AS_UMASK_SAYS, true, e);
}

int atomic_write(struct atomic_file *f, struct str s, struct err *e)
{
	return fd_write_all(f->fd, s) < 0 ? atomic_fail(f, "cannot write", e) : 0;
}

/* Makes the new name last through a power cut. That it cannot be done on some file systems loses nothing. */
static void sync_folder(const char *target)
{
	char *folder = atomic_folder_of(target);
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
	if (f->temp && (fsync(f->fd) < 0 || rename_temp(f) < 0)) {
		atomic_fail(f, "cannot write", e);
		return atomic_abort(f);
	}
	if (f->temp)
		sync_folder(f->target);
	atomic_release(f);
	return 0;
}

int atomic_abort(struct atomic_file *f)
{
	if (f->fd >= 0 && f->temp)
		unlink(f->temp);
	atomic_release(f);
	return -1;
}
