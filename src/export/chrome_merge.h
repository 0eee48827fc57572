/* Events of several ranks in one file: each event's text comes as the export of its rank writes it, and gets the numbers and times of the job.
 *
 * Processes and threads are numbered from 1 over all ranks; what they were called stands in their names. Ids that tie events together (correlation, External id,
 * Sequence number, arrows, Python frames) get numbers that no other rank and no other kind of id has. The number of a GPU becomes that of its rank. Times are
 * on the job's clock. All else stays as it was written. Memory holds the ids of one rank at a time. */
#ifndef OPSCOPE_EXPORT_CHROME_MERGE_H
#define OPSCOPE_EXPORT_CHROME_MERGE_H

#include "analysis/ranks/job.h"
#include "base/hash.h"
#include "base/intern.h"
#include "io/sink.h"

struct chrome_process;

struct chrome_merge {
	struct sink *out;
	struct sink in;               /* where the events of a rank go: chrome_merge_begin */
	bool any;                     /* an event is written already */
	int64_t base_ns;              /* what the file's times are from */
	int64_t lost;                 /* events that could not be read again */
	/* Of the rank that is being written. */
	const struct job *job;
	uint32_t rank;                /* index of job->rank */
	uint32_t order;               /* its place among the ranks of the file */
	struct intern places, ids;
	struct chrome_process *place; /* by id of `places` - 1: processes and threads */
	uint32_t n_places, cap_places;
	struct idmap devices;         /* GPU of the rank -> its number in the file */
	struct arena arena;
	struct buf key;
	int64_t place_base, id_base;  /* numbers given to the ranks before */
	int64_t next_device;          /* for second GPUs of a rank */
};

/* Ids up to `ids` stay free for the caller's own arrows. GPUs beyond the first of a rank are numbered from first_device on. */
void chrome_merge_init(struct chrome_merge *m, struct sink *out, const struct job *j, int64_t base_ns, int64_t ids, int64_t first_device);
void chrome_merge_release(struct chrome_merge *m);

/* The events of this rank follow in m->in, whose profile is p: chrome_put_events. */
void chrome_merge_begin(struct chrome_merge *m, const struct profile *p, uint32_t rank);
/* An end of an arrow at the start of row g of p->gpu_op: phase s, t or f. Between begin and end. */
void chrome_merge_arrow(struct chrome_merge *m, const struct profile *p, uint32_t g, char phase, const char *name, int64_t id);
/* Names the rank's processes and threads. Appends the numbers of the processes to *pids, with commas. */
void chrome_merge_end(struct chrome_merge *m, struct buf *pids);

#endif
