/* Where long text goes: a file, pipe or device, optionally packed as gzip on the way, in blocks, so that memory stays bounded.
 *
 *   struct sink s;
 *   sink_init(&s, fd, gzip);
 *   for (...) {
 *           buf_printf(&s.buf, ...);       any of the buf_* functions
 *           if (sink_room(&s) < 0)         a disk is full, a reader has gone
 *                   break;
 *   }
 *   rc = sink_finish(&s);                  -1 when anything could not be written: s.error is the errno
 *
 * Same bytes in, same bytes out: the head of the gzip stream holds no time and no name. */
#ifndef OPSCOPE_IO_SINK_H
#define OPSCOPE_IO_SINK_H

#include "base/buf.h"

enum { SINK_BLOCK = 256 << 10 };

struct sink_packer;

struct sink {
	struct buf buf;              /* what is not yet written: append to it */
	struct sink_packer *packer;  /* NULL = plain */
	int fd;                      /* not closed */
	int error;                   /* errno of the first failure; nothing is written after it */
	int (*take)(void *context, struct buf *text); /* gets each block in place of a file; errno, 0 = all is well. NULL = there is a file */
	void *context;
};

void sink_init(struct sink *s, int fd, bool gzip);
/* A sink whose blocks go to a function: whoever calls sink_room between two pieces of text never has a piece in two blocks. The function may add to the buf, which
 * is emptied behind it. */
void sink_init_take(struct sink *s, int (*take)(void *context, struct buf *text), void *context);
int sink_flush(struct sink *s);

/* Writes when a block has gathered. -1 after a failure: go on to sink_finish. */
static inline int sink_room(struct sink *s)
{
	return s->buf.n < SINK_BLOCK ? 0 : sink_flush(s);
}

/* Writes the rest and frees what *s holds. */
int sink_finish(struct sink *s);

#endif
