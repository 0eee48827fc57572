/* Times in answers about the timeline: ns since timeline->first_ns, so that they are exact in a browser's numbers. */
#ifndef OPSCOPE_SERVE_API_TIMELINE_TIMES_H
#define OPSCOPE_SERVE_API_TIMELINE_TIMES_H

#include "base/json_text.h"
#include "serve/endpoint.h"

enum {
	TIMELINE_TILE_BITS = 10,
	TIMELINE_TILE_PIXELS = 1 << TIMELINE_TILE_BITS,
	TIMELINE_TILE_ZOOM_MAX = 42, /* pixels of more than an hour */
};
#define TIMELINE_NS_MAX (INT64_C(1) << 53)

/* "3,7-9": numbers below `n` into marks[0..n-1]; no value: all. ERR_USAGE. */
int timeline_take(const struct request *r, const char *name, uint32_t n, uint8_t *marks, struct err *e);

/* What an item's slices take of its time; of a single one all that it takes, also where the next begins before its end and it is drawn up to there. */
static inline int64_t timeline_busy_ns(const struct profile *p, bool device, const struct timeline_item *k)
{
	return k->count > 1 ? k->busy_ns : device ? p->gpu_op.dur_ns[k->row] : p->span.dur_ns[k->row];
}

/* {"kind","row","lane","track","start","dur","name","category"} of one row. */
void timeline_put_row(struct buf *b, const struct timeline *t, bool device, uint32_t row);

/* A launch configuration: what is stated of it, by name. */
void timeline_put_launch(struct buf *b, const struct profile *p, uint32_t launch);

/* The window that these choose, all by default. */
#define WINDOW_PARAMS                                                                                                              \
	{"from", "the window's begin (default: the first event's)", NULL, false}, {"to", "the window's end (default: the last event's)", NULL, false}
int timeline_window(const struct request *r, const struct timeline *t, int64_t *from_ns, int64_t *to_ns, struct err *e);

#endif
