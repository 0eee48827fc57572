/* Where an exported report goes: one file, or a directory with index.html and the blocks as scripts, since a page from a disk may load those
 * and nothing else. Either appears whole or not at all; in a directory that was there, index.html comes last. */
#ifndef OPSCOPE_SERVE_EXPORT_WRITE_H
#define OPSCOPE_SERVE_EXPORT_WRITE_H

#include "base/err.h"
#include "serve/export_pack.h"

#include <stdbool.h>

struct stat;

/* Whether `out` means a directory. ERR_USAGE when that holds something and `force` is not set; ERR_IO when nothing can be created there;
 * ERR_LIMIT when this opscope has no pages. To be asked before the work is begun. */
int export_check(const char *out, bool force, bool *directory, struct err *e);

/* "data-0123456789abcdef.js" of a block. */
void export_block_name(const struct export_block *k, struct buf *out);

/* Whether a report at `out` takes the place of this file, or removes it. */
bool export_replaces(const char *out, bool directory, const struct stat *file);

/* `index`: a block's text. *bytes: how much was written. */
int export_write(const char *out, bool directory, const struct export_pack *x, struct str index, uint64_t *bytes, struct err *e);

#endif
