/* Reads files and folders of torch.compile's provenance (open/provenance.h). The name of a file tells what is in it; else its content does. */
#ifndef OPSCOPE_OPEN_PROVENANCE_READ_H
#define OPSCOPE_OPEN_PROVENANCE_READ_H

#include "open/provenance.h"

/* Adds what stands at `path`: a log of TORCH_TRACE, a file of tlparse or of TORCH_COMPILE_DEBUG (each plain or gzip), or a folder of such files with the folders
 * below it. Lines of logs that state another rank are left out (rank < 0: none are). ERR_IO: the path, or a file below it, cannot be read. ERR_FORMAT: the file is
 * none of these; in a folder it counts as damaged instead. O(bytes). Memory: the texts of the compilations that are under way. */
int provenance_read(struct provenance *v, const char *path, int64_t rank, struct err *e);

/* The same of a log in memory. False: it has no line of such a log. */
bool provenance_read_log(struct provenance *v, struct str text, int64_t rank);

#endif
