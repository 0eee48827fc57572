/* A segment (opscope/wire.h) of samples of one process, which we write from outside. While the process runs, frames are addresses; at the end they
 * become texts. */
#ifndef OPSCOPE_RECORD_SAMPLE_SEGMENT_H
#define OPSCOPE_RECORD_SAMPLE_SEGMENT_H

#include "base/intern.h"
#include "record/symbols.h"

#include "opscope/wire.h"

#include <sys/types.h>

/* What was mapped as code, and what it is called. */
struct sample_mapping {
	uint64_t start, end, offset;
	uint32_t path;             /* in the sampler's paths */
};

struct sample_segment {
	struct wire_header h;
	struct buf path;           /* of the file; empty until there is a sample */
	struct buf chunk;          /* records not yet written */
	struct buf keep;           /* records that others refer to, not yet written */
	uint32_t texts;            /* numbers given to texts so far */
	struct buf threads;        /* names: tid, text, NUL */
	uint32_t chunks;
	uint64_t begun, begun_sequence; /* of a ring: where the chunk that is not full stands already, 0 = nowhere, and its number */
	size_t flushed;            /* bytes of `chunk` that stand there */
	uint64_t max_bytes;        /* 0 = no bound */
	bool ring;                 /* at the bound the oldest chunk is used again; else samples are left out, and counted */
	bool broken;               /* the file cannot be written to */
};

/* Adds a sample; the first makes the file, in `dir`. */
void sample_segment_add(struct sample_segment *s, const char *dir, pid_t pid, pid_t tid, int64_t time_ns, int64_t period_ns, const uint64_t *frame, uint32_t n);
/* Where code was mapped from, for those who read the segment before its frames are texts. When there was a sample. */
void sample_segment_map(struct sample_segment *s, const struct sample_mapping *m, struct str path);
void sample_segment_thread(struct sample_segment *s, pid_t tid, struct str name);
/* What there is by now reaches the file, for those who read it meanwhile and should this process be killed. */
void sample_segment_flush(struct sample_segment *s);
/* Frames become texts, by what was mapped, in that order. False when the file could not be written. */
bool sample_segment_finish(struct sample_segment *s, struct symbols *symbols, const struct intern *paths, const struct sample_mapping *mapping, unsigned n);
void sample_segment_release(struct sample_segment *s);

#endif
