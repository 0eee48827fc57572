/* An input as /api/state tells of it. */
#ifndef OPSCOPE_SERVE_API_STATE_H
#define OPSCOPE_SERVE_API_STATE_H

#include "base/buf.h"
#include "serve/library.h"

/* Bits of library_entry.marks, without which `lacks` cannot be told: library_options.look(), or a part of it. */
unsigned state_look(const struct profile *p);

/* A JSON object; the entry is held or locked. */
void state_put_entry(struct buf *b, const struct library_entry *x);

#endif
