/* How much memory there is for this process. */
#ifndef OPSCOPE_IO_MEMORY_LIMIT_H
#define OPSCOPE_IO_MEMORY_LIMIT_H

#include <stdint.h>

/* Bytes: the machine's memory, or less where control groups (of a container, of a job on a cluster; versions 1 and 2) allow less. `root` stands before
 * the paths that are looked at: "". 0 = not known. */
uint64_t memory_limit(const char *root);

#endif
