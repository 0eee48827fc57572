/* A fast forward scan over one ordinary table of an SQLite file: the file format read directly (https://www.sqlite.org/fileformat.html),
 * for tables of many million short rows, where most of the library's time goes into its interpreter. Several times as fast.
 * Only what it is sure of: UTF-8 databases, rowid tables, no columns that a reader must compute. For all else sqlpage_open says no,
 * and the caller uses the library. io/sqldb.h decides; nothing else uses this.
 *
 * Never trusts the file: every page number, length and offset is checked, no more pages are visited than there are, and row ids
 * must ascend, so that no row comes twice. The first thing that does not fit ends the scan with `damaged`; the rows before it are
 * good. The file is read, not mapped: a read that fails, and a file that shrinks meanwhile, end the scan with `failed` too. */
#ifndef OPSCOPE_IO_SQLPAGE_H
#define OPSCOPE_IO_SQLPAGE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum sqlpage_type { SQLPAGE_NULL, SQLPAGE_INT, SQLPAGE_REAL, SQLPAGE_TEXT, SQLPAGE_BLOB };

struct sqlpage_value {
	enum sqlpage_type type;
	union {
		int64_t i;
		double real;
		struct str s;
	};
};

struct sqlpage;

/* `fd` stays the caller's and open. `root`: the table's root page. `column[k]`: place among the table's columns of the k-th
 * wanted value, -1 = reads as NULL; `rowid_column`: the place of the INTEGER PRIMARY KEY, -1 = none. NULL when the file is
 * not one that this reader takes. */
struct sqlpage *sqlpage_open(int fd, uint32_t root, const int *column, int n_columns, int rowid_column);
/* The next row: its values, valid until the next call; NULL at the end, then look at sqlpage_damaged. */
const struct sqlpage_value *sqlpage_next(struct sqlpage *s);
bool sqlpage_damaged(const struct sqlpage *s);
/* In words, which read failed or found a file that has become shorter; NULL = none did, what is damaged lies so in the file. */
const char *sqlpage_failed(const struct sqlpage *s);
void sqlpage_close(struct sqlpage *s);

#endif
