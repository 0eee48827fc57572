/* What an exported report holds of an input. */
#ifndef OPSCOPE_SERVE_EXPORT_ASKS_H
#define OPSCOPE_SERVE_EXPORT_ASKS_H

#include "serve/endpoint.h"

enum { ASK_ARGS_MAX = 4 };

/* An address with its arguments, `input` aside. */
struct export_ask {
	const char *path;
	struct request_arg arg[ASK_ARGS_MAX]; /* in order of their names */
	unsigned n_args;
	bool otherwise;                       /* only to be asked when there was no answer to the one before */
};

/* Calls see(context, ask) for each; stops when it returns false. `p` is the input's profile. `steps`: reports are of these alone; NULL = of all, and
 * of each aggregation. */
void export_asks(const struct profile *p, const char *steps, bool (*see)(void *context, const struct export_ask *a), void *context);
/* Those that are about no input. */
void export_asks_general(bool (*see)(void *context, const struct export_ask *a), void *context);

/* "report/kernels?group_by=op": by which the index has it, as keyOf in web/src/source_static.ts makes it. */
void export_ask_key(const struct export_ask *a, struct buf *out);

#endif
