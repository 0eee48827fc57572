#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int file_open_regular(const char *path, int flags, struct stat *st, struct err *e)
{
	struct stat own;
	int fd;
	st = st ? st : &own;
	do
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
	while (fd < 0 && errno == EINTR);
	bool known = fd >= 0 && fstat(fd, st) == 0;
	if (known && S_ISREG(st->st_mode))
		return fd;
	if (!known)
		err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
	else if (S_ISDIR(st->st_mode))
		err_set(e, ERR_IO, "%s: is a directory, a file was expected", path);
	else
		err_set(e, ERR_IO, "%s: not a regular file, as was expected", path);
	if (fd >= 0)
		close(fd);
	return -1;
}

int file_read_all(const char *path, size_t most, struct buf *out, struct err *e)
{
	enum { PIECE = 4096 };
	FILE *f = fopen(path, "re");
	if (!f && errno == ENOMEM)
		mem_fail(0);
	if (!f)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	const size_t first = out->n;
	size_t got;
	while (out->n - first <= most && (got = fread(buf_room(out, PIECE), 1, PIECE, f)) > 0)
		out->n += got;
	if (out->n - first > most + 1)
		out->n = first + most + 1;
	const int rc = ferror(f) ? err_set(e, ERR_IO, "%s: %s", path, strerror(errno)) : 0;
	fclose(f);
	return rc;
}
