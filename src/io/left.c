#include "io/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "io/follow.h"

#define NAME_START ".opscope-"
enum { NAME_DIGITS = 16, ATTEMPTS = 8 };

char *left_name(const char *folder)
{
	uint64_t word = 0;
	if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
		word = (uint64_t)getpid(); /* whoever makes it sees that it is not there */
	struct buf b = {0};
	buf_printf(&b, "%s" NAME_START "%016llx", folder, (unsigned long long)word);
	return follow_take(&b);
}

static bool is_left_name(const char *name)
{
	size_t n = sizeof NAME_START - 1;
	return strncmp(name, NAME_START, n) == 0 && strspn(name + n, "0123456789abcdef") == NAME_DIGITS && !name[n + NAME_DIGITS];
}

static bool left_is_same(int folder, const char *name, const struct stat *file)
{
	struct stat st;
	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

bool left_lock(int fd, const char *path)
{
	struct stat st;
	bool taken = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; /* where there are no locks, nobody cleans up */
	if (!taken && (lstat(path, &st) == 0 || errno != ENOENT))
		return true;
	errno = EEXIST;
	return false;
}

/* A file system of this machine alone, so that a lock says whether a process writes to the file. On other file systems, locks may hold on one machine alone. */
static bool is_local(int folder)
{
	static const __fsword_t known[] = {0xef53 /* ext */, 0x58465342 /* XFS */, 0x9123683e /* Btrfs */, 0x01021994 /* tmpfs */, 0x794c7630 /* overlay */, 0xf2f52010 /* F2FS */};
	struct statfs fs;
	return fstatfs(folder, &fs) == 0 && ANY_WHERE(i, 0, sizeof known / sizeof known[0], fs.f_type == known[i]);
}

/* Files of ours alone lie in it, as opscope made it; everything else is not for us to remove. */
static bool holds_files_alone(DIR *d)
{
	struct stat st;
	const struct dirent *entry;
	bool alone = true;
	while (alone && (entry = readdir(d)))
		alone = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		        (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid());
	return alone;
}

/* unlinkat removes no folder, and a link itself. */
static void empty_folder(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	if (!d && copy >= 0)
		close(copy);
	if (d && holds_files_alone(d)) {
		rewinddir(d);
		while ((entry = readdir(d)))
			unlinkat(copy, entry->d_name, 0);
	}
	if (d)
		closedir(d);
}

/* Whoever writes to it holds its lock; what can be locked has lost its writer. NFS locks only what is open for writing (EBADF): there a day must do. */
static bool has_no_writer(int fd, bool local)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0 || (!local && errno == EBADF);
}

static void remove_if_left(int folder, const char *name, bool local)
{
	enum { DAY_S = 24 * 60 * 60 };
	struct stat st;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) || st.st_uid != geteuid() ||
	    (!local && time(NULL) - st.st_mtime < DAY_S))
		return;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && has_no_writer(fd, local) && left_is_same(folder, name, &st)) {
		if (S_ISDIR(st.st_mode))
			empty_folder(fd);
		unlinkat(folder, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
	close(fd);
}

void left_remove(const char *folder)
{
	enum { LOOK_AT_MOST = 20000 };
	DIR *d = opendir(folder);
	bool local = d && is_local(dirfd(d));
	const struct dirent *entry;
	for (int i = 0; d && i < LOOK_AT_MOST && (entry = readdir(d)); i++)
		if (is_left_name(entry->d_name))
			remove_if_left(dirfd(d), entry->d_name, local);
	if (d)
		closedir(d);
}

static int make_locked(const char *path)
{
	if (mkdir(path, 0700) < 0)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && left_lock(fd, path))
		return fd;
	int why = fd < 0 && errno == ENOENT ? EEXIST : errno; /* removed by who cleaned up */
	if (fd >= 0)
		close(fd);
	rmdir(path);
	errno = why;
	return -1;
}

int left_make_folder(const char *folder, char **path)
{
	int fd = -1;
	left_remove(folder);
	errno = EEXIST;
	for (int i = 0; i < ATTEMPTS && fd < 0 && errno == EEXIST; i++) {
		*path = left_name(folder);
		fd = make_locked(*path);
		int why = errno;
		if (fd < 0) {
			mem_free(*path);
			*path = NULL;
		}
		errno = why;
	}
	return fd;
}
