/* A text in CSV, for those who print CSV of their own. */
#ifndef OPSCOPE_RENDER_CSV_TEXT_H
#define OPSCOPE_RENDER_CSV_TEXT_H

#include "base/buf.h"

/* In quotes, those in it doubled; always valid UTF-8. */
void csv_put_quoted(struct buf *out, struct str s);

#endif
