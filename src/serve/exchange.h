/* One request on its way through the server: from http.c, which speaks the protocol, to dispatch.c, which finds the answer. */
#ifndef OPSCOPE_SERVE_EXCHANGE_H
#define OPSCOPE_SERVE_EXCHANGE_H

#include "serve/answers.h"
#include "serve/endpoint.h"
#include "serve/job.h"

struct exchange {
	struct serve_task job;
	struct library_waiter waiter;
	struct dispatcher *to;
	const struct endpoint *endpoint;
	struct request request;
	struct arena arena;              /* owns the texts of the request */
	struct buf key;                  /* what its answer is kept by */
	bool post;
	bool packs;                      /* the client takes gzip */
	struct answer *answer;           /* when it is done */
	void (*done)(struct exchange *x);/* called once, on any thread, after `answer` was set */
};

/* What is shared by all requests. */
struct dispatcher {
	struct library *library;
	struct shelf *shelf;
	struct answers *answers;
	struct jobs *jobs[QUEUES];
	bool read_only;
	const char *editor;
	unsigned query_seconds;
};

/* Sees to it that x->answer gets set, at once or later. True when it is there already, and then x->done is not called. */
bool dispatch(struct dispatcher *d, struct exchange *x);

/* The answer to a GET, at once, outside of any mem_try: r->path, arg, library, arena and, held, entry are there. It is the caller's
 * (answer_free). */
struct answer *dispatch_now(struct request *r);

/* {"error": "..."} with this status; answer_no_memory where there is none for it. */
struct answer *answer_error(unsigned status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
