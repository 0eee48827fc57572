/* Within record/ask*.c: the connection to a process that listens, and the lines that it says (opscope/ask.h). */
#ifndef OPSCOPE_RECORD_ASK_TALK_H
#define OPSCOPE_RECORD_ASK_TALK_H

#include "base/str.h"
#include "record/ask.h"

#include <poll.h>

#define ASK_NO_ANSWER "does not answer within 5 s: it is stopped, or hangs"

/* Connects p to the socket `name` in the folder. 0 and p->fd == -1: too many others wait for the process, to be tried again. -1 with errno: there is nobody to
 * ask; the socket of a process that was killed is removed. */
int ask_join(struct ask_process *p, int folder, const char *name);
/* The process that a socket's name states; -1 = none. */
pid_t ask_named(const char *name);
/* Ends the connection. */
void ask_drop(struct ask_process *p);
/* Ends the connection, and releases what p holds. */
void ask_forget(struct ask_process *p);

/* Adds what the process has said to p->heard; false: it will say nothing more. */
bool ask_hear(struct ask_process *p);
/* Moves the first line of p->heard to *line, without its end, NUL-terminated; false = there is no whole line. */
bool ask_take_line(struct ask_process *p, struct buf *line);
/* Takes `key` and a number, up to a blank, off *s. */
bool ask_number(struct str *s, struct str key, int64_t *v);

/* Whether p is waited for and has not greeted. */
bool ask_is_silent(const struct ask_process *p);
/* Hears whether a silent process greets, and connects to it where that is yet to be done; false: it says something else, or is gone. *line is overwritten. */
bool ask_meet(struct ask_process *p, struct buf *line);
/* Waits until any process says something, 0.1 s at most. `p` has room for g->n + 1. */
void ask_poll(const struct ask_group *g, struct pollfd *p);

#endif
