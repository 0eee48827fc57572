#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

/* O_NONBLOCK: a FIFO would be waited for. */
int file_open_regular(const char *path, int flags, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
	if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}
