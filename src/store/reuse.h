/* Results of analysis that several reports share: the op tree, links, directions, layers, ... Without reuse_begin each caller makes and
 * frees its own. Between reuse_begin and reuse_end each is made once and handed out again, and its *_free does nothing; a part of
 * the profile (analysis/steps/slice.h) keeps what is made of it, too. A result may depend on the profile and on `what` alone.
 *
 * What was kept is handed to its owner, the thread that called reuse_begin or, later, reuse_take, and to threads that joined it (reuse_join). Other threads may
 * read the profile meanwhile, and make their own. Whoever of these threads asks first for a result makes it, and the others wait until it is there. A result may be made of other
 * results, but not of itself: so there is always one thread that waits for nobody.
 *
 * What is kept takes up to three times the memory of the profile itself. So it is kept for a while alone: while a profile is imported (query/aggregate.h), for one answer to `advise`
 * (query/advice.h) or one report of the steps (query/report.c), and in the server while further requests wait for the same input (serve/library.h). */
#ifndef OPSCOPE_STORE_REUSE_H
#define OPSCOPE_STORE_REUSE_H

#include <stdbool.h>

struct profile;
struct reuse;

/* False: it had begun, and who began it ends it. */
bool reuse_begin(struct profile *p);
/* Frees all that was kept; what was handed out is gone. */
void reuse_end(struct profile *p);
/* The steps, or the rows, have changed: frees all that was kept, and goes on keeping. Nobody may be making anything. */
void reuse_forget(struct profile *p);
/* Where several threads take turns at a profile: reuse_drop at the end of a turn, so that nobody is handed what was kept, and reuse_take, by the thread whose
 * turn begins. What is kept of a part goes along. Without reuse_begin they do nothing. */
void reuse_take(struct profile *p);
void reuse_drop(struct profile *p);
/* A part begins to keep as the whole does. */
void reuse_as(const struct profile *whole, struct profile *part);

/* The calling thread, for reuse_join. */
const void *reuse_thread(void);
/* The calling thread is handed what that one is. NULL: only its own again. */
void reuse_join(const void *thread);

/* The result that was kept under `what`, an address that stands for the function and its rules. NULL = none: the caller makes it, and calls reuse_keep or
 * reuse_give_up, as others may be waiting. */
void *reuse_find(const struct profile *p, const void *what);
/* The same where the caller does not make it: NULL = it is not there now. */
void *reuse_look(const struct profile *p, const void *what);
/* Keeps the result, which reuse_end or reuse_forget releases. False: nothing is kept now, or somebody else made it, and the result stays the caller's. *is_kept
 * (may be NULL) is set before others see the result. */
bool reuse_keep(const struct profile *p, const void *what, void *result, void (*release)(void *result), bool *is_kept);
/* The result could not be made: who waits tries it. */
void reuse_give_up(const struct profile *p, const void *what);

#endif
