/* Writing an .opscope file: one SQLite 3 database that holds a whole profile, so that opening it needs neither parsing nor
 * analysis, and beside it tables of plain rows that any SQLite tool can read.
 *
 *   application_id   "OPSC"; user_version: SAVE_VERSION, raised when an older reader could misread the file
 *   meta             key, value: opscope, input, format, input_bytes, file_bytes, passes, byte_order
 *   diag             what was odd about the input (base/diag.h), as rows
 *   store_table      name, rows
 *   store_chunk      tbl, col, seq, size, checksum (XXH3 of data), data: the elements of a column as they stand in
 *                    memory, SAVE_CHUNK bytes a piece; the interner's strings are tbl "strings"
 *   anything else    tables added with save_table: for people, never read back
 *
 * Life cycle: save_begin, save_profile, save_table..., then save_commit or save_abort. The file appears under its name only
 * in save_commit, complete and on the disk; until then it is a temporary file beside it. */
#ifndef OPSCOPE_STORE_SAVE_H
#define OPSCOPE_STORE_SAVE_H

#include "base/err.h"
#include "base/table.h"
#include "store/profile.h"

enum {
	SAVE_APPLICATION_ID = 0x4f505343, /* "OPSC" */
	SAVE_VERSION = 1,
	SAVE_CHUNK = 4 << 20,
};
#define SAVE_STRINGS "strings"        /* its columns: length, hash, bytes */

struct save;

/* `big`: expected bytes of the file, which choose the page size; 0 = small. NULL and *e on failure. */
struct save *save_begin(const char *path, uint64_t big, struct err *e);

/* With what analysis has put into columns; other passes are left to whoever opens the file. */
int save_profile(struct save *s, const struct profile *p, struct err *e);

/* The table as rows under `name`: integers, reals and text by its columns' types, null where it has no value. */
int save_table(struct save *s, const char *name, const struct table *t, struct err *e);

/* Either ends the life of *s. After a failed commit nothing is left at all, and an older file stands as it was. */
int save_commit(struct save *s, struct err *e);
void save_abort(struct save *s);

#endif
