/* Clocks of the ranks of a job as a file states them: measured by other means, or kept from an earlier look at the same job.
 *
 * The file is CSV. The first line names the columns: `rank` and `offset_ns`, and `drift_ppm` where drifts are known; other columns are passed over, so that
 * `report ranks --format=csv` is such a file. Lines that begin with '#' are comments. An empty offset_ns says that the rank's clock is unknown. */
#ifndef OPSCOPE_ANALYSIS_RANKS_CLOCK_FILE_H
#define OPSCOPE_ANALYSIS_RANKS_CLOCK_FILE_H

#include "base/arena.h"
#include "base/err.h"

struct clock_of_rank {
	int64_t rank;
	bool is_known;           /* offset and drift are stated */
	int64_t offset_ns;       /* by which this rank's clock is ahead of the job's at the middle of its collectives */
	double drift;            /* by which it gets ahead further, ns in each ns (ppm / 1e6) */
};

struct clock_file {
	const char *path;
	struct clock_of_rank *v; /* by rank, ascending */
	uint32_t n;
};

/* Reads it into the arena. NULL and *e where the file cannot be read (ERR_IO) or is not such a file (ERR_FORMAT, with the line), or a rank stands there twice. */
struct clock_file *clock_file_read(const char *path, struct arena *a, struct err *e);
/* NULL = the file does not state the rank. */
const struct clock_of_rank *clock_file_find(const struct clock_file *f, int64_t rank);

#endif
