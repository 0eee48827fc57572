/* What was odd about an input: kind, how often, where first. Never printed by library code and never fatal; `opscope
 * info` lists them, and the CLI prints a line on stderr when something was lost or repaired. */
#ifndef OPSCOPE_BASE_DIAG_H
#define OPSCOPE_BASE_DIAG_H

#include "base/arena.h"

enum diag_level {
	DIAG_NOTE,    /* harmless, but worth knowing */
	DIAG_REPAIR,  /* the input was wrong in a known way and was read all the same */
	DIAG_LOSS,    /* something in the input could not be used */
};

struct diag_entry {
	const char *kind;      /* stable id, kebab case: "truncated-file" */
	enum diag_level level;
	int64_t count;         /* from 1 up; at INT64_MAX it stays: damaged inputs state any number */
	int64_t first_offset;  /* byte offset in the (uncompressed) input, or -1 */
	struct str message;    /* the first occurrence, as a sentence without a full stop */
};

struct diags {
	struct diag_entry *entry;
	unsigned n, cap;
	struct arena arena;
};

/* Counts one occurrence; the message is formatted only for the first of its kind. */
void diag_add(struct diags *d, const char *kind, enum diag_level level, int64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Counts `n` at once. */
void diag_add_n(struct diags *d, const char *kind, enum diag_level level, uint64_t n, int64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
/* Adds what `from` counted behind it: kinds that *to has keep their first occurrence. */
void diags_join(struct diags *to, const struct diags *from);
uint64_t diag_count(const struct diags *d, const char *kind);
void diags_release(struct diags *d);

#endif
