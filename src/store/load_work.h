/* Within load*.c: an .opscope file that is being read. */
#ifndef OPSCOPE_STORE_LOAD_WORK_H
#define OPSCOPE_STORE_LOAD_WORK_H

#include "store/load.h"

#include <sqlite3.h>

/* A row of store_chunk without its data. */
struct chunk {
	int64_t id, seq, size, checksum, packing, bytes;
	uint32_t table, column; /* of the interner `names` */
};

struct load {
	sqlite3 *db;
	sqlite3_blob *blob;
	struct chunk *chunk;
	uint32_t n_chunks, cap_chunks;
	struct intern names;
	struct buf packed;  /* what the chunk that is read last holds */
	const char *path;
	uint64_t file_bytes;
	int version;
	size_t left_derived; /* bytes of DERIVED columns that were left out */
	bool no_memory;     /* SQLite ran out of memory for a text, which then looks absent */
	struct profile *p;
	struct err *e;
	struct mem_undo undo;
};

/* All set the error and return -1. */
int load_out_of_memory(struct load *l);
int load_damaged(struct load *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int load_sqlite_failed(struct load *l);

/* A text of the current row. */
struct str load_text_of(struct load *l, sqlite3_stmt *st, int column);

/* load_columns.c. On -1 what was read so far stays in load.p, which frees it. */
int load_list_chunks(struct load *l);
int load_read_strings(struct load *l);
/* *derived becomes false where a DERIVED column is missing. */
int load_read_table(struct load *l, enum store_table_id id, bool *derived);

#endif
