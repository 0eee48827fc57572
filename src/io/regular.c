#include "io/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_with(const char *path, int flags, struct err *e)
{
	struct stat st;
	int fd;
	do
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
	while (fd < 0 && errno == EINTR);
	bool known = fd >= 0 && fstat(fd, &st) == 0;
	if (known && S_ISREG(st.st_mode))
		return fd;
	if (!known)
		err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		err_set(e, ERR_IO, "%s: is a directory, a file was expected", path);
	else
		err_set(e, ERR_IO, "%s: not a regular file, as was expected", path);
	if (fd >= 0)
		close(fd);
	return -1;
}

int regular_open(const char *path, struct err *e)
{
	return open_with(path, 0, e);
}

int regular_open_itself(const char *path, struct err *e)
{
	return open_with(path, O_NOFOLLOW, e);
}
