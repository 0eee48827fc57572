/* Processes that descend from one, from /proc. */
#ifndef OPSCOPE_RECORD_PROC_H
#define OPSCOPE_RECORD_PROC_H

#include <stdbool.h>
#include <sys/types.h>

/* Calls `see` for each living descendant of `root` (not itself, no zombies) with the path of its program, "" where that may not be read. False when /proc cannot be read: nothing is known then. */
bool proc_descendants(pid_t root, void (*see)(void *context, pid_t pid, const char *program), void *context);

#endif
