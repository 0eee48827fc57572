/* A growable byte buffer: the one way to build text or bytes of unknown length. {0} is a valid empty buffer. */
#ifndef OPSCOPE_BASE_BUF_H
#define OPSCOPE_BASE_BUF_H

#include "base/str.h"

struct buf {
	char *p;
	size_t n, cap;
};

void buf_put(struct buf *b, const void *p, size_t n);
static inline void buf_str(struct buf *b, struct str s) { buf_put(b, s.p, s.n); }
static inline void buf_cstr(struct buf *b, const char *s) { buf_put(b, s, strlen(s)); }
/* Sees to room for n more bytes. */
void buf_grow(struct buf *b, size_t n);
/* Where n more bytes can be written; the writer adds to b->n what it wrote. */
static inline char *buf_room(struct buf *b, size_t n)
{
	if (b->cap - b->n < n)
		buf_grow(b, n);
	return b->p + b->n;
}
static inline void buf_char(struct buf *b, char c)
{
	*buf_room(b, 1) = c;
	b->n++;
}
/* Puts a NUL behind the text, which does not count: for those who want b->p. */
static inline void buf_end_text(struct buf *b) { *buf_room(b, 1) = 0; }
void buf_fill(struct buf *b, char c, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_i64(struct buf *b, int64_t v);
enum { I64_DIGITS = 20 };        /* with the sign */
/* Writes v in decimal, I64_DIGITS bytes at most, and returns where it ends. For where numbers are all there is. */
char *i64_write(char *at, int64_t v);
void buf_clear(struct buf *b);   /* keeps the memory */
void buf_release(struct buf *b);
static inline struct str buf_view(const struct buf *b) { return (struct str){b->p, b->n}; }

#endif
