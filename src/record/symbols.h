/* Names for addresses of code: of functions in the files that a process had mapped, and of code that it made itself and named in /tmp/perf-PID.map
 * (python -X perf, node, JIT compilers). */
#ifndef OPSCOPE_RECORD_SYMBOLS_H
#define OPSCOPE_RECORD_SYMBOLS_H

#include "base/buf.h"
#include "base/intern.h"

struct elf;

/* Files, each read once. {0} is not valid: symbols_init. */
struct symbols {
	struct intern paths;
	struct elf **file;        /* by id of the path; NULL = not looked at, or none */
	bool *looked;
	unsigned cap;
};
void symbols_init(struct symbols *s);
void symbols_release(struct symbols *s);

/* Code that a process made. */
struct perf_map {
	struct perf_map_entry {
		uint64_t start, end;
		struct str name;
	} *v;                     /* by start */
	unsigned n, cap;
	struct arena arena;
};
/* An absent file gives an empty map, and so does one that is not a regular file, is a link, is longer than 256 MiB, or belongs neither to the caller nor to
 * root: anyone can put a file of that name into /tmp. */
void perf_map_read(struct perf_map *m, const char *path);
/* Empty when there is none. */
struct str perf_map_name(const struct perf_map *m, uint64_t address);
void perf_map_release(struct perf_map *m);

/* Appends "function (file)", or "?? (file)" where the function is not known. `path` is what was mapped, empty = nothing; `offset` is in it. */
void symbols_name(struct symbols *s, const struct perf_map *m, struct str path, uint64_t offset, uint64_t address, struct buf *out);

#endif
