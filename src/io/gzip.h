/* Bytes packed by gzip in one piece, for whoever sends them at once: quick before small. What streams into a file: io/sink. */
#ifndef OPSCOPE_IO_GZIP_H
#define OPSCOPE_IO_GZIP_H

#include "base/str.h"

/* {0} when it would not be shorter, or cannot be done. What it returns is the caller's (mem_free). */
struct str gzip_pack(struct str s);

#endif
