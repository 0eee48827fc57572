/* Endpoints: each answers one path.
 *
 * Adding one: a file src/serve/NAME.c that ends in `const struct endpoint endpoint_NAME = {...};` and the word NAME in
 * src/serve/meson.build. Checking of arguments, input, method, turns, caching, gzip and errors are done for it (dispatch.c). */
#ifndef OPSCOPE_SERVE_ENDPOINT_H
#define OPSCOPE_SERVE_ENDPOINT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "serve/library.h"

/* What a client asked. Strings live as long as the request. */
struct request {
	struct str path;              /* decoded, behind the prefix: "/api/report/kernels" */
	struct str rest;              /* of a path that ends in a slash in the endpoint: what follows it; "kernels" */
	struct str body;              /* of a POST */
	const struct request_arg { struct str name, value; } *arg; /* decoded */
	unsigned n_args;
	struct library *library;
	struct shelf *shelf;          /* of jobs; NULL = none (an exported report) */
	struct library_entry *entry;  /* the input that was asked for, loaded; NULL unless the endpoint wants one */
	struct arena *arena;          /* for whatever lives as long as the request */
	bool read_only;
	const char *editor;           /* as in struct serve_options */
	unsigned query_seconds;       /* for the user's own queries */
	bool alone;                   /* answered in a child (child.h): no lock is taken, and nobody else uses the entry */
	bool (*gone)(const void *who);/* whether who asked has hung up meanwhile; NULL = nobody can */
	const void *who;              /* for `gone` */
};

/* What it gets. */
struct response {
	unsigned status;              /* 200 unless set; with an error, from 400 on */
	const char *type;             /* static text; "application/json; charset=utf-8" unless set */
	struct buf body;
	bool packed;                  /* the body is packed by gzip, and goes out so to everybody */
	const char *file_name;        /* the browser shall save it by this name; in the request's arena */
};

struct endpoint_param {
	const char *name, *help;
	const char *const *values;    /* NULL-terminated; NULL = any */
	bool required;
};

enum endpoint_flag {
	ENDPOINT_INPUT = 1,   /* needs `input`: the request waits until it is loaded */
	ENDPOINT_POST = 2,    /* POST, and only from our own pages; else GET and HEAD */
	ENDPOINT_FRESH = 4,   /* the answer may change while the inputs do not: never kept */
	ENDPOINT_LOOSE = 8,   /* unknown arguments are let pass */
	ENDPOINT_SPAN = 16,   /* needs an input as ENDPOINT_INPUT, but by `run`, `worker` and `span` */
	ENDPOINT_RUN = 32,    /* needs `run`: the request waits until all inputs of it have been read once */
	ENDPOINT_TURN = 64,   /* takes its turn with others at the input (library_turn_begin): it runs passes or reports. Not with library_timeline */
};

/* Each has threads of its own, so that what takes long holds up only its like. */
enum endpoint_queue {
	QUEUE_TABLES,         /* reports: a moment, the first time of a long trace seconds */
	QUEUE_QUICK,          /* tiles and lists: milliseconds, and many of them */
	QUEUE_QUERIES,        /* the user's own: who knows. In a child (child.h), which can be ended */
	QUEUE_SUMMARIES,      /* of inputs of which most are not in memory: each reads a file, and few do so at a time */
	QUEUE_WRITES,         /* changes of files, one after the other; the server's end waits for them */
	QUEUES,
};

struct endpoint {
	const char *path;             /* "/api/reports", or "/api/report/" with something behind */
	const char *help;             /* one sentence */
	unsigned flags;
	enum endpoint_queue queue;
	const struct endpoint_param *params; /* ended by a row without name; NULL = none but `input`. Others are refused */
	const struct endpoint *also;  /* another one of the same file; NULL = no more */
	/* It may be left half-way, where there is no memory: what it locks or opens needs a mem_undo.
	 * 0, or -1 and *e: ERR_USAGE becomes 400, ERR_DATA and ERR_LIMIT 422, ERR_NOMEM 503, others 500, unless out->status says it; each with a JSON reason. */
	int (*run)(const struct request *r, struct response *out, struct err *e);
	/* Of QUEUE_QUERIES: in the server itself before each child, holding entry->ask: what is made here stays for the next. NULL = nothing. */
	int (*prepare)(const struct request *r, struct err *e);
	/* At each input that was read, before anybody else has it: bits that are kept in library_entry.marks, beside those of other endpoints. NULL = none. */
	unsigned (*look)(const struct profile *p);
};

extern const struct endpoint *const endpoint_registry[]; /* NULL-terminated, generated */

/* Value of an argument; p is NULL when it was not given. NUL-terminated. */
struct str request_value(const struct request *r, const char *name);
/* As a whole number between min and max; `absent` when not given. ERR_USAGE. */
int request_number(const struct request *r, const char *name, int64_t min, int64_t max, int64_t absent, int64_t *out, struct err *e);

#endif
