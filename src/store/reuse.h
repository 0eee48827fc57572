/* Results of analysis that several reports share: the op tree, links, directions, layers, ... Without reuse_begin each caller makes and
 * frees its own. Between reuse_begin and reuse_end each is made once and handed out again, and its *_free does nothing; a part of
 * the profile (analysis/steps/slice.h) keeps what is made of it, too. A result may depend on the profile and on `what` alone.
 *
 * Only the thread that called reuse_begin, or reuse_take since, is handed what was kept: others may read the profile meanwhile, and make their own.
 *
 * What is kept takes about as much memory as the profile itself. So it is kept for a while alone: while a profile is imported (query/aggregate.h), for one answer to `advise` (query/advice.h),
 * and in the server while further requests wait for the same input (serve/library.h). */
#ifndef OPSCOPE_STORE_REUSE_H
#define OPSCOPE_STORE_REUSE_H

#include <stdbool.h>

struct profile;
struct reuse;

/* False: it had begun, and who began it ends it. */
bool reuse_begin(struct profile *p);
/* Frees all that was kept; what was handed out is gone. */
void reuse_end(struct profile *p);
/* The steps, or the rows, have changed: frees all that was kept, and goes on keeping. */
void reuse_forget(struct profile *p);
/* Where several threads take turns at a profile: reuse_drop at the end of a turn, so that nobody is handed what was kept, and reuse_take, by the thread whose
 * turn begins. What is kept of a part goes along. Without reuse_begin they do nothing. */
void reuse_take(struct profile *p);
void reuse_drop(struct profile *p);
/* A part begins to keep as the whole does. */
void reuse_as(const struct profile *whole, struct profile *part);

/* The result that was kept under `what`, an address that stands for the function and its rules; NULL = none. */
void *reuse_find(const struct profile *p, const void *what);
/* Keeps the result, which reuse_end or reuse_forget releases. False: nothing is kept now, and the result stays the caller's. */
bool reuse_keep(const struct profile *p, const void *what, void *result, void (*release)(void *result));

#endif
