/* Files and folders that are unfinished, and must not outlive the process: whatever of them is listed is removed when the process ends by
 * exit(), as without memory, and, in a program that asks for it, by a signal. What ends in another way (SIGKILL, a power cut) leaves them. */
#ifndef OPSCOPE_IO_LEFTOVERS_H
#define OPSCOPE_IO_LEFTOVERS_H

#include <stdbool.h>

enum { LEFTOVER_NONE = -1 };

/* Lists a path that was just made. Returns the number for leftover_drop, or LEFTOVER_NONE when the list is full or the path too long. The caller blocks
 * signals from before it makes the path until this returns: otherwise a signal could leave the path behind. */
int leftover_add(const char *path);
/* Takes a path off the list: it was removed, or is finished and stays. */
void leftover_drop(int number);

/* Removes all that is listed, folders behind files. May be called from a signal handler. */
void leftovers_remove(void);

/* For a program, not for a library in another's process: signals that end the process by default remove what is listed first. */
void leftovers_end_on_signals(void);
/* Whether that was asked for. */
bool leftovers_see_signals(void);

#endif
