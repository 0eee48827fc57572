/* Mutators of files, by what they are. Each changes data[0 .. size), which has room for max_size bytes, by `seed` and returns the new size. */
#ifndef OPSCOPE_FUZZ_MUTATE_H
#define OPSCOPE_FUZZ_MUTATE_H

#include "target.h"

typedef size_t mutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

mutator mutate_json;    /* JSON, and the Python literals of a PyProf .dict: values, members, events */
mutator mutate_opscope; /* an .opscope file: columns, with checksums that are right again */
mutator mutate_pages;   /* any other SQLite database: rows, or bytes of one page */

/* Puts a value of one JSON text into another, as `out`; 0 = nothing to put. */
size_t cross_json(struct str into, struct str from, uint8_t *out, size_t max_size, unsigned seed);

#endif
