/* Recordings of the capture of graphs that another recording replays. Inference servers write one for each rank ("graph_capture_rank_0.17737.pt.trace.json.gz"), or for each rank and batch ("bs_32_rank0.json.gz"). */
#ifndef OPSCOPE_OPEN_CAPTURES_H
#define OPSCOPE_OPEN_CAPTURES_H

#include "base/arena.h"
#include "input/input.h"

struct capture_files {
	struct str *path;        /* NUL-terminated, in order of their names; in the arena */
	unsigned n, cap;
	bool itself;             /* the trace stands among them, and was left out */
};

/* The files that may hold captures for the trace at `path`: those of the folder DISCOVER_CAPTURES beside it; or `given`, a file or a folder. Left out are files whose name states another rank than the
 * trace's (rank < 0: not known), and, of files whose name states a batch, all but the least batch that is not smaller than one of batch[0..n_batches-1], which ascend, where these are known. ERR_IO: the folder, or `given`,
 * is there and cannot be read, or `given` holds no file that may be a trace. */
int captures_find(struct capture_files *out, struct arena *a, const char *path, const char *given, int64_t rank, const int64_t *batch, unsigned n_batches, struct err *e);

#endif
