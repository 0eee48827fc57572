#include "target.h"

#include <stdlib.h>
#include <unistd.h>

void target_file_make(struct target_file *f, const uint8_t *data, size_t size)
{
	static const char name[] = "/dev/shm/opscope-fuzz-XXXXXX";
	memcpy(f->path, name, sizeof name);
	int fd = mkstemp(f->path);
	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	close(fd);
}

void target_file_remove(const struct target_file *f)
{
	unlink(f->path);
}

struct profile *target_open(const char *format, const uint8_t *data, size_t size, bool as_written)
{
	struct target_file f;
	struct err e = {0};
	target_file_make(&f, data, size);
	struct profile *p = trace_open(f.path, &(struct input_options){.format = format, .as_written = as_written}, &e);
	target_file_remove(&f);
	if (!p && !e.msg[0])
		abort();
	return p;
}
