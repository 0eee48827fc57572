/* Reads files and folders in which torch.compile's provenance stands (open/provenance.h). What a file is, its name tells, else its content. */
#ifndef OPSCOPE_OPEN_PROVENANCE_READ_H
#define OPSCOPE_OPEN_PROVENANCE_READ_H

#include "open/provenance.h"

/* Adds what stands at `path`: a log of TORCH_TRACE, a file of tlparse or of TORCH_COMPILE_DEBUG (each plain or gzip), or a folder of such, with those below it. Of logs, what states another
 * rank is left out; rank < 0: nothing is. ERR_IO: the path, or a file below it, cannot be read; ERR_FORMAT: the file is none of these; in a folder it counts as damaged. O(bytes); holds the texts
 * of one compilation at a time. */
int provenance_read(struct provenance *v, const char *path, int64_t rank, struct err *e);

/* The same of a log that is in memory. False: no line of it is one of such a log. */
bool provenance_read_log(struct provenance *v, struct str text, int64_t rank);

#endif
