/* A progress bar on stderr for long reads, only when it is a terminal: share, rate, time left. */
#ifndef OPSCOPE_CLI_PROGRESS_H
#define OPSCOPE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;    /* the file's name */
	int64_t start_ns, drawn_ns;
	bool terminal, drawn;
};

void progress_start(struct progress *p, const char *what);
/* A source_progress_fn: context is the struct progress. Draws at most ten times a second, and not in the first third of a
 * second. */
void progress_update(void *context, uint64_t done_bytes, uint64_t total_bytes);
/* Wipes the bar. */
void progress_stop(struct progress *p);

#endif
