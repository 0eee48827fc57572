/* UTF-8 that may be anything: decoding that never fails and never reads beyond the string. */
#ifndef OPSCOPE_BASE_UTF8_H
#define OPSCOPE_BASE_UTF8_H

#include "base/buf.h"

#define UTF8_BAD UINT32_MAX

/* The code point at s.p[at] (at < s.n) and, as the result, its length in bytes. Overlong forms, surrogates, values beyond
 * U+10FFFF and cut sequences give UTF8_BAD and length 1. */
unsigned utf8_next(struct str s, size_t at, uint32_t *code);

/* Whether all of it is UTF-8. */
bool utf8_valid(struct str s);

/* How many terminal cells it takes: 0 for combining marks, 2 for wide East Asian characters and emoji, else 1. */
unsigned utf8_width(uint32_t code);

/* Whether it can change what a terminal or a reader sees elsewhere: control characters (C0, DEL, C1), line separators,
 * direction overrides, zero-width characters, and UTF8_BAD. */
bool utf8_is_unsafe(uint32_t code);

/* Appends s with each UTF8_BAD byte replaced by U+FFFD. */
void utf8_put_valid(struct buf *out, struct str s);

/* Appends s as it may be shown: unsafe characters as \n, \t, \x1b, \u202e. Backslashes stay as they are, so this is for
 * reading, not for getting the bytes back. */
void utf8_put_safe(struct buf *out, struct str s);

#endif
