/* Finds recordings of the capture of graphs, which another recording replays. Inference servers write one for each rank
 * ("graph_capture_rank_0.17737.pt.trace.json.gz"), or one for each rank and batch ("bs_32_rank0.json.gz"). */
#ifndef OPSCOPE_OPEN_CAPTURES_H
#define OPSCOPE_OPEN_CAPTURES_H

#include "base/arena.h"
#include "input/input.h"

struct capture_files {
	struct str *path;        /* NUL-terminated, in order of their names; in the arena */
	unsigned n, cap;
	bool itself;             /* the trace itself was among them, and is left out */
};

/* The files that may hold captures for the trace at `path`. They are those of the folder DISCOVER_CAPTURES beside the trace; or, if `given` is not NULL, the file
 * or the files of the folder `given`. A file is left out
 * - if its name states another rank than `rank`, the trace's (< 0: not known);
 * - if its name states a batch that no step pads to. batch[0..n_batches-1]: the batches of the steps, ascending; n_batches 0: not known. A step pads to the least
 *   batch of a file that is not smaller.
 * The caller frees out->path (mem_free). ERR_IO: the folder is there and cannot be read; `given` is not there; or the folder `given` holds no trace. */
int captures_find(struct capture_files *out, struct arena *a, const char *path, const char *given, int64_t rank, const int64_t *batch, unsigned n_batches, struct err *e);

#endif
