/* The timeline: every range and every piece of device work on lanes, drawn at any zoom in time proportional to what is drawn,
 * not to what there is. Nothing is left out: what is shorter than a pixel is merged with its neighbours of that pixel, and says
 * how many it stands for and how much of the time they were busy.
 *
 * Lanes. Ranges that nest stand at their depth (span.parent); those of other kinds, and device work, on the first lane that is
 * free. The Python frames of a thread, as deep as they are, have lanes of their own, so that they can be left out; frames of modules stand with the ops. A lane's slices are in order of start; where one goes on beyond the start of the next (a partial overlap), it is drawn
 * up to there.
 *
 * Levels. Zoom s means pixels of 2^s ns, counted from first_ns. At zoom s a slice of 2^s ns or more is drawn by itself; shorter
 * ones that begin in the same pixel, with no longer one between them, are one item. Items of zoom s can be merged into those of
 * any higher zoom, so few levels are kept, each at most half of the one below: less than 32 bytes for each slice in all. Each segment of
 * a lane, some thousand slices, has levels of its own, so that a dense stretch is merged however sparse the rest of the lane is. */
#ifndef OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_H
#define OPSCOPE_ANALYSIS_TIMELINE_TIMELINE_H

#include "analysis/analysis.h"
#include "analysis/costs/sampled.h"

enum { TIMELINE_LANES_MAX = 512, TIMELINE_ZOOM_MAX = 62 };

/* The lanes of one thread or stream. Ops and other ranges, Python frames and device work of a track of the store are one of these each. */
struct timeline_track {
	uint32_t track;               /* row of profile->track */
	bool device;                  /* rows are of gpu_op; else of span */
	bool python;                  /* its Python frames */
	uint32_t first_lane, n_lanes;
	uint32_t n_nested;            /* the first of these lanes are by depth, the others by room */
	uint32_t slices;
	int64_t first_ns, last_ns;    /* first start, last end */
};

struct timeline_lane {
	uint32_t track;               /* of timeline->tracks */
	uint32_t first, n;            /* slices: timeline->row[first .. first + n - 1] */
	uint32_t first_segment;
	uint32_t reach;               /* of two overlapping slices, the places are no further apart than this */
};

struct timeline_segment;
struct timeline_level;
struct timeline_entry;

struct timeline {
	const struct profile *p;
	uint32_t n_tracks, n_lanes, n_segments, n_levels, n_entries;
	struct timeline_track *tracks;   /* in the order of the store's tracks: host, Python, device */
	struct timeline_lane *lanes;
	struct timeline_segment *segments;
	struct timeline_level *levels;
	struct timeline_entry *entries;
	uint32_t *row;                   /* of span or gpu_op, lane by lane */
	uint32_t *span_lane, *gpu_lane;  /* of each row, its lane */
	int64_t first_ns, last_ns;       /* first start and last end of all; 0, 0 when there is nothing */
	struct sampled_curves sampled;   /* of the GPUs */
	struct op_graph *graph;          /* analysis/tree/op_graph.h; NULL = the recording does not state it */
	uint64_t too_deep;               /* rows beyond TIMELINE_LANES_MAX lanes of their track, which share its last lane */
};

/* Whether a range stands on a track of Python frames. Needs PASS_NAMES. */
bool timeline_is_python(const struct profile *p, uint32_t span);

/* Needs PASS_NEST. O(n log lanes). Free with timeline_free. */
struct timeline *timeline_new(const struct profile *p);
void timeline_free(struct timeline *t);

struct timeline_item {
	int64_t start_ns, end_ns;
	int64_t busy_ns;   /* what its slices cover of that */
	uint32_t count;    /* slices it stands for */
	uint32_t row;      /* the slice, or the longest of them, the first of equals */
};

struct timeline_items {
	struct timeline_item *v;
	size_t n, cap;
};

/* Appends the items of one lane that lie in [from_ns, to_ns) or reach into it, in order, at zoom 0..TIMELINE_ZOOM_MAX. Items of
 * neighbouring windows are the same where they overlap, so that windows can be kept and put together if their borders are pixels'.
 * At most about two for each pixel. O(items + log n). */
void timeline_items_of(const struct timeline *t, uint32_t lane, int64_t from_ns, int64_t to_ns, unsigned zoom, struct timeline_items *out);
void timeline_items_release(struct timeline_items *x);

/* Places in timeline->row: from the one returned up to *end are all of the lane's slices that overlap [from_ns, to_ns) or begin in it,
 * in order of start; where slices overlap each other, some may be among them that do not. O(log n). */
uint32_t timeline_slices(const struct timeline *t, uint32_t lane, int64_t from_ns, int64_t to_ns, uint32_t *end);

/* Bytes held. */
size_t timeline_bytes(const struct timeline *t);

#endif
