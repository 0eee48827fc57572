/* Lanes of the timeline: which slice is drawn where. Levels of detail: timeline_levels.c. */
#include "analysis/names/names.h"
#include "analysis/timeline/timeline_levels.h"
#include "analysis/tree/op_graph.h"
#include "base/mem.h"
#include "base/search.h"

#include <sys/param.h>

/* Lanes of one track in the making. */
struct room {
	int64_t *end;   /* per lane: when it is free */
	uint32_t n, cap;
};

/* The first lane that is free at `start`; all being busy, the last of TIMELINE_LANES_MAX is shared. */
static uint32_t room_take(struct room *r, uint32_t lanes_max, int64_t start, int64_t end, uint64_t *too_deep)
{
	uint32_t i = 0;
	while (i < r->n && r->end[i] > start)
		i++;
	if (i == lanes_max) {
		i--;
		++*too_deep;
	}
	if (i == r->n) {
		MEM_PUSH(r->end, r->n, r->cap, end);
	} else if (r->end[i] < end) {
		r->end[i] = end;
	}
	return i;
}

struct lanes_of {
	uint32_t begin, end;          /* rows of the store's track */
	bool python;                  /* of the spans, those that are Python frames; else the others */
	uint32_t n_nested, n_lanes;
	uint32_t slices;
};

bool timeline_is_python(const struct profile *p, uint32_t span)
{
	return p->span.kind[span] == SPAN_PYTHON && !name_is(p, p->span.name[span], NAME_MODULE);
}

/* How many ranges of its own group, Python frames or others, are around it; in beside[row], how many of the other group. */
static uint32_t timeline_depth(const struct timeline *t, uint32_t row, bool python, uint32_t *beside)
{
	uint32_t up = t->p->span.parent[row];
	if (up == ROW_NONE)
		return beside[row] = 0;
	bool same = timeline_is_python(t->p, up) == python;
	beside[row] = same ? beside[up] : t->span_lane[up] + 1;
	return same ? t->span_lane[up] + 1 : beside[up];
}

/* Lanes, counted from 0, of the ranges of one track that nest, each as deep in its group. `beside`: by row, how deep in the other one. */
static void place_nested(struct timeline *t, struct lanes_of *host, struct lanes_of *python, uint32_t *beside)
{
	for (uint32_t i = host->begin; i < host->end; i++) {
		if (!span_nests(t->p->span.kind[i]))
			continue;
		bool frame = timeline_is_python(t->p, i);
		struct lanes_of *x = frame ? python : host;
		uint32_t depth = timeline_depth(t, i, frame, beside);
		if (depth >= TIMELINE_LANES_MAX / 2) {
			depth = TIMELINE_LANES_MAX / 2 - 1;
			t->too_deep++;
		}
		t->span_lane[i] = depth;
		x->n_nested = MAX(x->n_nested, depth + 1);
		x->slices++;
	}
	python->n_lanes = python->n_nested;
}

/* Below them, those that may overlap as they like. */
static void place_others(struct timeline *t, struct room *r, struct lanes_of *x)
{
	const struct spans *s = &t->p->span;
	r->n = 0;
	for (uint32_t i = x->begin; i < x->end; i++) {
		if (span_nests(s->kind[i]))
			continue;
		t->span_lane[i] = x->n_nested + room_take(r, TIMELINE_LANES_MAX / 2, s->start_ns[i], span_end(t->p, i), &t->too_deep);
		x->slices++;
	}
	x->n_lanes = x->n_nested + r->n;
}

static void place_gpu(struct timeline *t, struct room *r, struct lanes_of *x)
{
	r->n = 0;
	for (uint32_t i = x->begin; i < x->end; i++)
		t->gpu_lane[i] = room_take(r, TIMELINE_LANES_MAX, t->p->gpu_op.start_ns[i], gpu_end(t->p, i), &t->too_deep);
	x->n_lanes = r->n;
	x->slices = x->end - x->begin;
}

static int64_t timeline_start_of(const struct timeline *t, bool device, uint32_t row)
{
	return device ? t->p->gpu_op.start_ns[row] : t->p->span.start_ns[row];
}

static int64_t timeline_end_of(const struct timeline *t, bool device, uint32_t row)
{
	return device ? gpu_end(t->p, row) : span_end(t->p, row);
}

/* Slices that overlap lie within a chain of slices, each of which begins before all ends of those before it have passed. */
static void measure_reach(const struct timeline *t, struct timeline_lane *l)
{
	bool device = t->tracks[l->track].device;
	const uint32_t *row = t->row + l->first;
	int64_t last_ns = INT64_MIN;
	uint32_t chain = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		if (timeline_start_of(t, device, row[i]) >= last_ns)
			chain = i;
		last_ns = MAX(last_ns, timeline_end_of(t, device, row[i]));
		l->reach = MAX(l->reach, i - chain);
	}
}

/* Whether a row of the store's track belongs to the lanes. */
static bool timeline_takes(const struct timeline *t, const struct lanes_of *x, bool device, uint32_t row)
{
	return device || timeline_is_python(t->p, row) == x->python;
}

/* Numbers the track's lanes on, and puts the rows under them in order: a counting sort. */
static void add_track(struct timeline *t, uint32_t *caps, const struct lanes_of *x, uint32_t track, bool device, uint32_t *at)
{
	uint32_t *lane_of = device ? t->gpu_lane : t->span_lane, first = t->n_lanes;
	if (!x->slices)
		return;
	MEM_GROW(t->lanes, caps[0], t->n_lanes + x->n_lanes);
	MEM_GROW(t->tracks, caps[1], t->n_tracks + 1);
	t->n_lanes += x->n_lanes;
	for (uint32_t l = first; l < t->n_lanes; l++)
		t->lanes[l] = (struct timeline_lane){.track = t->n_tracks};
	struct timeline_track *k = &t->tracks[t->n_tracks++];
	*k = (struct timeline_track){.track = track, .device = device, .python = x->python, .first_lane = first, .n_lanes = x->n_lanes,
	                             .n_nested = x->n_nested, .slices = x->slices, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	for (uint32_t i = x->begin; i < x->end; i++) {
		if (!timeline_takes(t, x, device, i))
			continue;
		int64_t start = timeline_start_of(t, device, i), end = timeline_end_of(t, device, i);
		k->first_ns = start < k->first_ns ? start : k->first_ns;
		k->last_ns = end > k->last_ns ? end : k->last_ns;
		lane_of[i] += first;
		t->lanes[lane_of[i]].n++;
	}
	for (uint32_t l = first; l < t->n_lanes; l++) {
		t->lanes[l].first = *at;
		*at += t->lanes[l].n;
		t->lanes[l].n = 0;
	}
	for (uint32_t i = x->begin; i < x->end; i++) {
		if (!timeline_takes(t, x, device, i))
			continue;
		struct timeline_lane *l = &t->lanes[lane_of[i]];
		t->row[l->first + l->n++] = i;
	}
	for (uint32_t l = first; l < t->n_lanes; l++)
		measure_reach(t, &t->lanes[l]);
	if (t->n_tracks == 1 || k->first_ns < t->first_ns)
		t->first_ns = k->first_ns;
	if (t->n_tracks == 1 || k->last_ns > t->last_ns)
		t->last_ns = k->last_ns;
}

/* Rows of `track` from `begin` on, which are sorted by track. */
static uint32_t track_end(const uint32_t *track_of, uint32_t n, uint32_t begin, uint32_t track)
{
	while (begin < n && track_of[begin] == track)
		begin++;
	return begin;
}

struct timeline *timeline_new(const struct profile *p)
{
	struct timeline *t = NEW(struct timeline);
	struct room r = {0};
	uint32_t caps[2] = {0}, at = 0, span = 0, gpu = 0, n_span = p->span.rows.n, n_gpu = p->gpu_op.rows.n;
	t->p = p;
	t->row = NEW_ARRAY_RAW((size_t)n_span + n_gpu, uint32_t);
	t->span_lane = NEW_ARRAY_RAW(n_span, uint32_t);
	t->gpu_lane = NEW_ARRAY_RAW(n_gpu, uint32_t);
	uint32_t *beside = NEW_ARRAY_RAW(n_span, uint32_t);
	for (uint32_t k = 0; k < p->track.rows.n; k++) {
		struct lanes_of host = {.begin = span, .end = track_end(p->span.track, n_span, span, k)}, python = host;
		struct lanes_of device = {.begin = gpu, .end = track_end(p->gpu_op.track, n_gpu, gpu, k)};
		python.python = true;
		span = host.end;
		gpu = device.end;
		place_nested(t, &host, &python, beside);
		place_others(t, &r, &host);
		place_gpu(t, &r, &device);
		add_track(t, caps, &host, k, false, &at);
		add_track(t, caps, &python, k, false, &at);
		add_track(t, caps, &device, k, true, &at);
	}
	mem_free(beside);
	mem_free(r.end);
	timeline_build_levels(t);
	sampled_curves_find(p, &t->sampled);
	t->graph = op_graph_source(p) == OP_GRAPH_NONE ? NULL : op_graph_new(p);
	return t;
}

/* The first place from which on slices begin at `ns` or later. */
static uint32_t timeline_place_of(const struct timeline *t, const struct timeline_lane *l, int64_t ns)
{
	bool device = t->tracks[l->track].device;
	return FIRST_WHERE(i, l->first, l->first + l->n, timeline_start_of(t, device, t->row[i]) >= ns);
}

uint32_t timeline_slices(const struct timeline *t, uint32_t lane, int64_t from_ns, int64_t to_ns, uint32_t *end)
{
	const struct timeline_lane *l = &t->lanes[lane];
	bool device = t->tracks[l->track].device;
	uint32_t i = timeline_place_of(t, l, from_ns), back = i - l->first < l->reach + 1 ? i - l->first : l->reach + 1;
	*end = timeline_place_of(t, l, to_ns);
	i -= back;
	while (i < *end && timeline_start_of(t, device, t->row[i]) < from_ns && timeline_end_of(t, device, t->row[i]) <= from_ns)
		i++;
	return i;
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	mem_free(t->tracks);
	mem_free(t->lanes);
	mem_free(t->segments);
	mem_free(t->levels);
	mem_free(t->entries);
	mem_free(t->row);
	mem_free(t->span_lane);
	mem_free(t->gpu_lane);
	sampled_curves_release(&t->sampled);
	op_graph_free(t->graph);
	mem_free(t);
}

size_t timeline_bytes(const struct timeline *t)
{
	const struct sampled_curves *c = &t->sampled;
	const size_t points = c->n ? c->v[c->n - 1].first + c->v[c->n - 1].n : 0;
	return sizeof *t + c->n * sizeof *c->v + points * (sizeof *c->time_ns + sizeof *c->value) + t->n_tracks * sizeof *t->tracks + t->n_lanes * sizeof *t->lanes + t->n_segments * sizeof *t->segments + t->n_levels * sizeof *t->levels +
	       t->n_entries * sizeof *t->entries + 2 * sizeof(uint32_t) * ((size_t)t->p->span.rows.n + t->p->gpu_op.rows.n) + (t->graph ? op_graph_bytes(t->graph) : 0);
}
