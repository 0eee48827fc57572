/* Answers about a timeline, be it of one recording or of the ranks of a job, and the parameters of each. */
#ifndef OPSCOPE_SERVE_API_TIMELINE_ANSWERS_H
#define OPSCOPE_SERVE_API_TIMELINE_ANSWERS_H

#include "serve/endpoint.h"

typedef int timeline_answer_fn(const struct timeline *t, const struct request *r, struct response *out, struct err *e);

timeline_answer_fn timeline_answer_tile, timeline_answer_find, timeline_answer_select, timeline_answer_event;

/* {"first_ns", ..., "tracks":[...: the caller goes on with "],\n\"steps\":[", the steps and "]}". */
void timeline_put_info(struct buf *b, const struct timeline *t);

#define TIMELINE_TILE_PARAMS                                                                                                       \
	{"zoom", "a pixel is 2^zoom ns", NULL, true},                                                                              \
	{"index", "the tile's number from the begin, each being `tile_pixels` of /api/timeline wide", NULL, true},                 \
	{"tracks", "which tracks: numbers and ranges with commas", NULL, false}
#define TIMELINE_FIND_PARAMS                                                                                                       \
	{"text", "a part of the name, whatever the case", NULL, true},                                                             \
	{"from", "list only those that begin at this time or later", NULL, false},                                                 \
	{"limit", "list at most so many (default 500)", NULL, false}
#define TIMELINE_SELECT_PARAMS                                                                                                     \
	WINDOW_PARAMS, {"tracks", "which tracks: numbers and ranges with commas", NULL, false}, TABLE_PARAMS
extern const char *const timeline_event_kinds[];
#define TIMELINE_EVENT_PARAMS                                                                                                      \
	{"kind", "span: a range of the host; gpu: device work", timeline_event_kinds, true}, {"row", "which, as tiles give it", NULL, true}

#endif
