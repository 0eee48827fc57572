/* A database of DLProf that is being written: its tables under their names, their rows with ids from 1, their texts in the table dictionary. */
#ifndef OPSCOPE_PREDECESSORS_DLPROF_DLDB_FILE_H
#define OPSCOPE_PREDECESSORS_DLPROF_DLDB_FILE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/intern.h"
#include "store/save.h"

enum dldb_file_table {
#define DLDB_TABLE(name, columns) DLDB_##name,
#include "predecessors/dlprof/dldb_tables.def"
#undef DLDB_TABLE
	DLDB_TABLES
};

struct dldb_file {
	struct save *save;
	sqlite3_stmt *insert[DLDB_TABLES];
	struct intern words;       /* dictionary: id of the table - 1 */
	bool failed;               /* *e says why; what is put from then on is dropped */
	struct err *e;
};

/* A new file, which appears under `path` with dldb_file_end alone. ERR_IO. */
int dldb_file_begin(struct dldb_file *f, const char *path, mode_t mode, struct err *e);
int dldb_file_end(struct dldb_file *f);

/* Appends a row; its id. A letter of `form` a column behind `id`: i = int64_t, n = int64_t of which ID_NONE is null, f = double, s = struct str, w = struct str of which the
 * column has the id in the dictionary, 0 = null (no argument). Texts whose p is NULL are null. Reals have six decimals, as DLProf's. */
int64_t dldb_file_put(struct dldb_file *f, enum dldb_file_table table, const char *form, ...);
/* The id of a text in the dictionary. */
int64_t dldb_file_word(struct dldb_file *f, struct str text);

#endif
