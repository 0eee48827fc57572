#include "io/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

enum { MAX_LINKS = 40 }; /* as in Linux */

char *follow_take(struct buf *b)
{
	char *copy = mem_alloc(b->n + 1, 1);
	if (b->n)
		memcpy(copy, b->p, b->n);
	copy[b->n] = 0;
	buf_release(b);
	return copy;
}

void follow_put_folder(struct buf *b, const char *path)
{
	const char *slash = strrchr(path, '/');
	if (slash)
		buf_put(b, path, (size_t)(slash - path) + 1);
	else
		buf_cstr(b, "./");
}

bool follow_may_touch(const char *path, uid_t owner)
{
	struct buf b = {0};
	struct stat st;
	follow_put_folder(&b, path);
	char *folder = follow_take(&b);
	bool shared = stat(folder, &st) == 0 && (st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH);
	mem_free(folder);
	return !shared || owner == geteuid() || owner == st.st_uid;
}

static int follow_fail(const char *path, const char *what, struct err *e)
{
	return err_set(e, ERR_IO, "%s: %s: %s", path, what, strerror(errno));
}

static int follow_refuse(const char *path, mode_t mode, struct err *e)
{
	const char *kind = S_ISLNK(mode) ? "link" : S_ISREG(mode) ? "file" : "pipe or device", *not = S_ISLNK(mode) ? "followed" : S_ISREG(mode) ? "replaced" : "written to";
	return err_set(e, ERR_IO, "%s: a %s of another user, in a folder where everyone may write: it is not %s", path, kind, not);
}

/* A link in /proc to a pipe or device: the kernel makes it, and its text may be no path. */
static bool is_descriptor(const char *link, struct stat *st)
{
	struct buf b = {0};
	struct stat to;
	struct statfs fs;
	follow_put_folder(&b, link);
	char *folder = follow_take(&b);
	bool found = statfs(folder, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC && stat(link, &to) == 0 && !S_ISREG(to.st_mode) && !S_ISDIR(to.st_mode);
	mem_free(folder);
	if (found)
		*st = to;
	return found;
}

static enum followed follow_kind_of(mode_t mode)
{
	return S_ISREG(mode) ? FOLLOWED_FILE : S_ISDIR(mode) ? FOLLOWED_DIRECTORY : FOLLOWED_OTHER;
}

/* Where the link `*at` leads; false with errno. */
static bool follow_step(char **at)
{
	char link[4096];
	ssize_t n = readlink(*at, link, sizeof link);
	if (n < 0 || n == (ssize_t)sizeof link)
		return false;
	struct buf next = {0};
	if (link[0] != '/')
		follow_put_folder(&next, *at);
	buf_put(&next, link, (size_t)n);
	mem_free(*at);
	*at = NULL;
	*at = follow_take(&next);
	return true;
}

static enum followed walk(const char *path, char **at, struct stat *st, struct err *e)
{
	for (int i = 0; i < MAX_LINKS; i++) {
		if (lstat(*at, st) < 0)
			return errno == ENOENT ? FOLLOWED_NOTHING : follow_fail(path, "cannot look at it", e);
		if (!S_ISDIR(st->st_mode) && !follow_may_touch(*at, st->st_uid))
			return follow_refuse(path, st->st_mode, e);
		if (!S_ISLNK(st->st_mode) || is_descriptor(*at, st))
			return follow_kind_of(st->st_mode);
		if (!follow_step(at))
			return follow_fail(path, "cannot follow the link", e);
	}
	errno = ELOOP;
	return follow_fail(path, "cannot follow the link", e);
}

enum followed follow_links(const char *path, char **end, struct stat *st, struct err *e)
{
	struct buf b = {0};
	buf_cstr(&b, path);
	*end = NULL;
	char *at = follow_take(&b);
	enum followed found = walk(path, &at, st, e);
	if (found == FOLLOWED_FAILED)
		mem_free(at);
	else
		*end = at;
	return found;
}

int follow_open(const char *end, const struct stat *st)
{
	struct stat now;
	bool descriptor = lstat(end, &now) == 0 && S_ISLNK(now.st_mode) && is_descriptor(end, &now);
	int fd = open(end, O_WRONLY | O_NOCTTY | O_CLOEXEC | (descriptor ? 0 : O_NOFOLLOW));
	if (fd < 0 || (fstat(fd, &now) == 0 && now.st_uid == st->st_uid && (now.st_mode & S_IFMT) == (st->st_mode & S_IFMT)))
		return fd;
	close(fd);
	errno = EAGAIN;
	return -1;
}
