/* perf_event_open: stacks of a process and of all that it starts, at a rate of the time that they run. */
#ifndef OPSCOPE_RECORD_SAMPLE_RING_H
#define OPSCOPE_RECORD_SAMPLE_RING_H

#include "base/buf.h"
#include "base/err.h"

#include <linux/perf_event.h>
#include <sys/types.h>

struct sample_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t bytes;            /* of the mapping */
};

struct sample_rings {
	struct sample_ring *v;   /* one a CPU */
	unsigned n, cap;
};

/* One record, as the kernel wrote it. */
struct sample_record {
	uint64_t time_ns;        /* CLOCK_REALTIME */
	size_t at;               /* of its perf_event_header in the buffer */
};

/* Sampling begins when `pid` calls exec. -1 and the reason when the system does not allow it, or there is no such thing. */
int sample_rings_open(struct sample_rings *r, pid_t pid, int64_t hz, struct err *e);
/* Takes what is there: appends the bytes to *bytes, and where they are to *list (n, cap: an array that grows). */
void sample_rings_take(struct sample_rings *r, struct buf *bytes, struct sample_record **list, unsigned *n, unsigned *cap);
void sample_rings_close(struct sample_rings *r);

/* A sample's parts; stacks have the innermost frame first, and addresses of the kernel are left out. */
struct sample {
	uint32_t pid, tid;
	uint64_t period_ns;
	const uint64_t *frame;
	uint32_t n;
};
bool sample_parse(const struct perf_event_header *h, struct sample *s);

#endif
