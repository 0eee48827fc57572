/* Files and folders that are unfinished, and must not outlive the process: whatever of them is listed is removed when the process ends by
 * exit(), as without memory, and, in a program that asks for it, by a signal. What ends in another way (SIGKILL, a power cut) leaves them. */
#ifndef OPSCOPE_IO_LEFTOVERS_H
#define OPSCOPE_IO_LEFTOVERS_H

#include <stdbool.h>

enum { LEFTOVER_NONE = -1 };

/* Lists a path that was just made: what is given to leftover_drop; LEFTOVER_NONE when the list is full or the path too long for it.
 * A signal that comes before it is listed finds it not: the caller blocks them for so long. */
int leftover_add(const char *path);
/* It has been removed, or is finished and stays. */
void leftover_drop(int number);

/* Removes all that is listed, folders behind files. May be called from a signal handler. */
void leftovers_remove(void);

/* For a program, not for a library in another's process: signals that end the process by default remove what is listed first. */
void leftovers_end_on_signals(void);
/* Whether that was asked for. */
bool leftovers_see_signals(void);

#endif
