/* Jobs that were asked about: what is kept of the ranks of a run (analysis/ranks/job.h), until a file of the run changes. The recordings come from the library one after
 * the other, so that memory holds no more of them than the library may keep. */
#ifndef OPSCOPE_SERVE_SHELF_H
#define OPSCOPE_SERVE_SHELF_H

#include "analysis/ranks/job_lines.h"
#include "base/table.h"
#include "serve/endpoint.h"

struct shelf;
struct shelf *shelf_new(void);
/* All holds must have ended. */
void shelf_free(struct shelf *s); /* NULL does nothing */

/* Recordings of a run that are not in its job. */
struct shelf_left_out {
	struct str text;         /* "NAME is left out: ..." */
};

struct shelf_job {
	const struct job *job;
	const struct job_lines *lines; /* shelf_hold_lines */
	struct library_entry *const *entry; /* by rank.input */
	const struct shelf_left_out *left_out;
	uint32_t n_left_out;
	int64_t other_world;     /* a size that another recording states; 0 = none contradicts job->world */
};

/* The job of r's argument `run`, for as long as the hold lasts. */
struct shelf_hold {
	const struct shelf_job *it;
	struct shelf *shelf;
	struct mem_undo undo;
};
/* Before the request allocates anything: turns at the inputs take what it has. Reads the recordings unless the job is there; who asks for it meanwhile waits. -1: ERR_DATA where the run is no job of several ranks, ERR_NOMEM, ERR_LIMIT. */
int shelf_hold_begin(struct shelf_hold *h, const struct request *r, struct err *e);
/* The same with the device work of the ranks that r's argument `ranks` names, all without it. ERR_LIMIT where that is too much. */
int shelf_hold_lines(struct shelf_hold *h, const struct request *r, struct err *e);
void shelf_hold_end(struct shelf_hold *h);

/* What holds of every table about the job: what of the run is not in it. */
void shelf_put_notes(const struct shelf_job *k, struct table *t);

/* The run whose job an endpoint is about. */
#define SHELF_PARAM {"run", "the run whose inputs are the ranks of a job (default: the files that were given by themselves)", NULL, false}

#endif
