#include "io/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

enum { MAX_LINKS = 40 }; /* as in Linux */

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

/* Where a chain of links ends at which there is no file yet: realpath does not say. */
static char *follow_links(const char *path)
{
	struct buf at = {0};
	char *now = copy_text(path), link[4096];
	for (int i = 0; i < MAX_LINKS; i++) {
		ssize_t n = readlink(now, link, sizeof link);
		if (n < 0 || n == (ssize_t)sizeof link)
			break;
		if (link[0] != '/')
			put_folder(&at, now);
		buf_put(&at, link, (size_t)n);
		mem_free(now);
		now = take(&at);
	}
	return now;
}

/* The name is short, and not made of the target's, which may be as long as a name can be. */
static char *temp_name(const char *target)
{
	uint64_t word = 0;
	if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
		word = (uint64_t)getpid(); /* O_EXCL sees to the rest */
	struct buf b = {0};
	put_folder(&b, target);
	buf_printf(&b, ".opscope-%016llx", (unsigned long long)word);
	return take(&b);
}

/* Created by open, so that the umask applies as to any new file. */
static int create(struct atomic_file *f)
{
	for (int attempt = 0; attempt < 8; attempt++) {
		mem_free(f->temp);
		f->temp = NULL;
		f->temp = temp_name(f->target);
		f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (f->fd >= 0 || errno != EEXIST)
			break;
	}
	if (f->fd >= 0)
		return 0;
	mem_free(f->temp);
	f->temp = NULL; /* not ours to remove */
	return -1;
}

static void release(struct atomic_file *f)
{
	mem_undo_end(&f->undo);
	mem_free(f->temp);
	mem_free(f->target);
	mem_free(f->path);
	*f = (struct atomic_file){.fd = -1};
}

static void abandon(void *f)
{
	atomic_abort(f);
}

int atomic_begin(struct atomic_file *f, const char *path, struct err *e)
{
	struct stat old;
	bool exists = stat(path, &old) == 0;
	*f = (struct atomic_file){.fd = -1, .path = copy_text(path)};
	sigset_t wait;
	sigemptyset(&wait);
	sigaddset(&wait, SIGINT);
	sigaddset(&wait, SIGTERM);
	sigaddset(&wait, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &wait, &f->mask);
	mem_undo_begin(&f->undo, abandon, f);
	f->target = exists ? realpath(path, NULL) : follow_links(path);
	int rc = 0;
	if (!f->target && errno == ENOMEM)
		mem_fail(0);
	if (!f->target)
		rc = fail(f, "cannot replace", e);
	else if (exists && !S_ISREG(old.st_mode))
		rc = err_set(e, ERR_IO, "%s: not a regular file", path);
	else if (create(f) < 0)
		rc = fail(f, "cannot create", e);
	else if (exists && fchmod(f->fd, old.st_mode & 0777) < 0)
		rc = fail(f, "cannot set permissions", e);
	return rc ? atomic_abort(f) : 0;
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

/* Lets a signal that waited through, as the last thing. */
static void finish(struct atomic_file *f)
{
	sigset_t mask = f->mask;
	release(f);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

int atomic_commit(struct atomic_file *f, struct err *e)
{
	int rc = fsync(f->fd) < 0 ? fail(f, "cannot write", e) : 0;
	int fd = f->fd;
	if (!rc) {
		rc = close(fd) < 0 ? fail(f, "cannot write", e) : 0;
		f->fd = -1;
	}
	if (!rc)
		rc = rename(f->temp, f->target) < 0 ? fail(f, "cannot write", e) : 0;
	if (rc)
		return atomic_abort(f);
	sync_folder(f->target);
	finish(f);
	return 0;
}

int atomic_abort(struct atomic_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->temp)
		unlink(f->temp);
	finish(f);
	return -1;
}
