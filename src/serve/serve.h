/* The viewer's server: answers HTTP with the tables, tiles and pages of the inputs that it was given, and with nothing else.
 *
 * One thread does all reading and writing of sockets, so that a slow client holds up nobody; `threads` others compute answers. It
 * reads the inputs and, for /api/aggregate alone, writes aggregations into those that are .opscope files. */
#ifndef OPSCOPE_SERVE_SERVE_H
#define OPSCOPE_SERVE_SERVE_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct serve_options {
	const char *bind;            /* address or name to listen on; NULL = localhost */
	uint16_t port;               /* 0 = any that is free */
	const char *prefix;          /* "/x": what stands before every path; NULL or "" = nothing */
	const char *const *hosts;    /* further names that a request's Host may have; NULL-terminated or NULL */
	const char *const *paths;    /* inputs: files and directories */
	unsigned n_paths;
	unsigned threads;            /* 0 = one a core, two at least */
	uint64_t memory_bytes;       /* profiles beyond this are let go, the least used first; 0 = half of memory_limit() */
	unsigned query_seconds;      /* that an SQL query may take; 0 = 30 */
	const char *editor;          /* what opens lines of source where a reader has chosen nothing: a name or a pattern (web/src/editor.ts); NULL = the pages' own */
	bool read_only;              /* no aggregation is written either */
	bool follow_links;           /* in directories also those that lead out of them */
};

struct server;

/* Starts answering. ERR_IO when the address cannot be bound or an input not be read, ERR_USAGE for a bad prefix. Everything in *o
 * is copied. */
struct server *server_start(const struct serve_options *o, struct err *e);

uint16_t server_port(const struct server *s);
/* "http://localhost:8000/x/" */
const char *server_url(const struct server *s);

/* Calls see(context, path) for each link that is left out since it leads out of its directory. */
void server_left_out(struct server *s, void (*see)(void *context, struct str path), void *context);

/* Gives answers in progress a second, and what is being written its time. False when something that cannot be interrupted still runs, such as
 * the reading of a long trace: then the process is to end at once, by _exit. */
bool server_stop(struct server *s);

#endif
