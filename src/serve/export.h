/* The viewer as files: the same pages with the answers that they ask for, to be opened without a server.
 *
 * What a report holds is listed in export_asks.c. Answers are those of the endpoints, byte for byte: several stand in one block, a JSON
 * array packed by gzip and written as base64, so that no text of a trace is read as part of the page. The index, a block itself, says where
 * each answer is, or why there is none (web/src/source_static.ts reads it). */
#ifndef OPSCOPE_SERVE_EXPORT_H
#define OPSCOPE_SERVE_EXPORT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct export_options {
	const char *const *paths;    /* inputs: files and directories */
	unsigned n_paths;
	const char *out;             /* "x.html": one file; anything else, and whatever is a directory: a directory */
	bool force;                  /* into a directory that holds something */
	const char *steps;           /* "A..B": all pages are about these alone; NULL = about all. The timeline is whole */
	bool follow_links;           /* in directories also those that lead out of them */
	uint64_t memory_bytes;       /* profiles beyond this are let go; 0 = half of memory_limit() */
	/* An input is being read: `what` is its path. May be NULL. */
	void (*progress)(void *context, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	/* An input that cannot be read, or that a link out of its directory would be, and why. May be NULL. */
	void (*failed)(void *context, const char *reason);
	void *context;
};

struct export_result {
	unsigned inputs, failed;     /* in the report, and of them those that cannot be read */
	unsigned answers;
	uint64_t bytes;              /* written */
};

/* ERR_USAGE for an `out` that must not be written to, ERR_IO when it cannot be or no input can be read, ERR_LIMIT without the viewer's pages.
 * What stood at `out` is then as it was. */
int export_report(const struct export_options *o, struct export_result *result, struct err *e);

#endif
