/* Writing an .opscope file: one SQLite 3 database that holds a whole profile, so that opening it needs neither parsing nor
 * analysis, and beside it tables of plain rows that any SQLite tool can read.
 *
 *   application_id   "OPSC"; user_version: SAVE_VERSION, raised when an older reader could misread the file
 *   meta             key, value: opscope, input, format, input_bytes, file_bytes, passes, byte_order
 *   diag             what was odd about the input (base/diag.h), as rows
 *   store_table      name, rows
 *   store_chunk      tbl, col, seq, size, checksum (XXH3 of data), data, packing: the elements of a column, which take SAVE_CHUNK bytes
 *                    of memory a piece, but for the last; `packing` (enum save_packing) says how data holds them. The interner's strings
 *                    are tbl "strings"
 *   aggregations     a row for each aggregation (store/aggregation.h)
 *   report_*         tables added with save_table: for people and SQL tools, never read back. Their last column, `aggregation`, says
 *                    which aggregation a row is of; a column that only other aggregations have is null.
 *
 * Versions. user_version is the version of the file; meta has version_original (of the file when it was made; absent in version 1),
 * opscope (the program that made it) and opscope_current (that last wrote to it). A program reads SAVE_VERSION_OLDEST to
 * SAVE_VERSION, older ones as they are; adding to an older file raises it to SAVE_VERSION. All others are refused.
 *   1: report tables had no column aggregation, and there was no table aggregations: all is of aggregation 1
 *   2: store_chunk had no column packing: all is SAVE_AS_IT_IS
 *
 * Size. An aggregation adds its report tables alone: reports with a row for each event are not kept, and no table with more rows than
 * SAVE_ROWS_MAX. There are at most AGGREGATIONS_MAX; what a deleted one took is used again by the next.
 *
 * Life cycle: save_begin, save_profile, or save_add; then save_table..., save_delete; then save_commit or save_abort. A new file, and an
 * older one with what was added, appears under its name only in save_commit, complete and on the disk; until then it is a temporary
 * file beside it, and what was there stands as it was. */
#ifndef OPSCOPE_STORE_SAVE_H
#define OPSCOPE_STORE_SAVE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/table.h"
#include "store/profile.h"

enum {
	SAVE_APPLICATION_ID = 0x4f505343, /* "OPSC" */
	SAVE_VERSION = 3,
	SAVE_VERSION_OLDEST = 1,
	SAVE_VERSION_LIST = 2,        /* since when there is a list of aggregations */
	SAVE_VERSION_PACKED = 3,      /* since when chunks are packed */
	SAVE_CHUNK = 4 << 20,
	SAVE_ROWS_MAX = 100000,
};
#define SAVE_STRINGS "strings"        /* its columns: length, hash, bytes */

/* How the data of a chunk holds its elements. */
enum save_packing {
	SAVE_AS_IT_IS,   /* as they stand in memory */
	SAVE_PACKED,     /* store/packed.h, with the helpers of store/guess.def */
	SAVE_CODED,      /* the same, of the codes that stand for the values: store/guess.h. All chunks of a column or none */
	SAVE_DEFLATED,   /* bytes, by zlib */
};

struct save;

/* `mode`: the most permissions that a new file may have. `big`: bytes of the profile in memory, which choose the page size; 0 = few. NULL and *e on
 * failure. */
struct save *save_begin(const char *path, mode_t mode, uint64_t big, struct err *e);

/* To add aggregations to an .opscope file, or take some away. Waits for whoever else does so. `p` was loaded from this file; ERR_DATA when
 * other data has taken its place. ERR_FORMAT when the file is damaged, or of a version that is not read. NULL and *e. */
struct save *save_add(const char *path, const struct profile *p, struct err *e);

/* With what analysis has put into columns; other passes are left to whoever opens the file. */
int save_profile(struct save *s, const struct profile *p, struct err *e);

/* The table as rows under `name`: integers, reals and text by its columns' types, null where it has no value. `aggregation`: which one
 * they are of; ID_NONE: the table has no such column. */
int save_table(struct save *s, const char *name, const struct table *t, int64_t aggregation, struct err *e);

/* The number for the next aggregation, above `least`. */
int64_t save_next_id(const struct save *s, int64_t least);
/* Its row. ERR_LIMIT when there are too many. */
int save_aggregation(struct save *s, const struct aggregation *a, struct err *e);
/* The number of one that `like->opscope` made of the same key op, steps and rules; 0 = there is none. */
int save_find_aggregation(struct save *s, const struct aggregation *like, int64_t *id, struct err *e);
/* Takes away an aggregation and all its rows. ERR_USAGE when there is none of this number. */
int save_delete(struct save *s, int64_t id, struct err *e);

/* Either ends the life of *s. After a failed commit nothing is left at all, and an older file stands as it was. */
int save_commit(struct save *s, struct err *e);
void save_abort(struct save *s);

#endif
