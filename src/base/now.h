/* The time as text. */
#ifndef OPSCOPE_BASE_NOW_H
#define OPSCOPE_BASE_NOW_H

#include "base/str.h"

/* "2026-01-31T12:00:00Z" (that of SOURCE_DATE_EPOCH where it is set), in `text`. */
enum { NOW_BYTES = 40 };
struct str now_text(char text[NOW_BYTES]);

/* CLOCK_REALTIME. */
int64_t now_realtime_ns(void);

#endif
