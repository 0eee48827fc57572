/* What the mutators of databases share: an SQLite database in memory, with functions for its statements that are the same for the same seed. */
#ifndef OPSCOPE_FUZZ_MUTATE_DATABASE_H
#define OPSCOPE_FUZZ_MUTATE_DATABASE_H

#include "mutate.h"

#include <sqlite3.h>

enum { DATABASE_PIECE = 64 << 10 }; /* longer values are left as they are */

/* With random() from *random_state, which must outlive the connection, and mutate(value). NULL = the bytes are no database. */
sqlite3 *database_open(const uint8_t *data, size_t size, uint64_t *random_state);

/* Puts the database into data[0 .. max_size) where it fits, else leaves the `size` bytes there; returns the size. */
size_t database_close(sqlite3 *db, uint8_t *data, size_t size, size_t max_size);

#endif
