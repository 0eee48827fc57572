/* Levels of detail of a lane, and the items of a window. */
#include "analysis/timeline/timeline_levels.h"
#include "base/mem.h"

enum { FEW = 16 }; /* a segment with no more slices, or a level with no more entries, needs no further level */

/* A lane's slices with the columns they are read from. */
struct timeline_levels_view {
	const uint32_t *row;
	uint32_t n;
	const int64_t *start, *dur;
	int64_t zero_ns;
};

static struct timeline_levels_view view_of(const struct timeline *t, const struct timeline_lane *l)
{
	bool device = t->tracks[l->track].device;
	return (struct timeline_levels_view){t->row + l->first, l->n, device ? t->p->gpu_op.start_ns : t->p->span.start_ns,
	                                     device ? t->p->gpu_op.dur_ns : t->p->span.dur_ns, t->first_ns};
}

static int64_t timeline_levels_start_of(const struct timeline_levels_view *v, uint32_t i)
{
	return v->start[v->row[i]];
}

/* Where slice i is drawn to: ends of a lane never decrease. */
static int64_t timeline_levels_end_of(const struct timeline_levels_view *v, uint32_t i)
{
	int64_t end = v->start[v->row[i]] + v->dur[v->row[i]];
	return i + 1 < v->n && timeline_levels_start_of(v, i + 1) < end ? timeline_levels_start_of(v, i + 1) : end;
}

static uint64_t pixel_of(const struct timeline_levels_view *v, int64_t ns, unsigned zoom)
{
	return ((uint64_t)ns - (uint64_t)v->zero_ns) >> zoom;
}

/* Where items of a segment come from: a level's entries or, without one, the slices themselves. */
struct timeline_levels_source {
	struct timeline_levels_view v;
	const struct timeline_entry *e;
	uint32_t n, base;                  /* base: the segment's first slice */
};

/* Slices that are drawn together. */
struct part {
	int64_t start_ns, end_ns, busy_ns, longest_ns;
	uint32_t slice, behind, longest;   /* the slices, and the longest of them */
};

static struct part part_of_slice(const struct timeline_levels_view *v, uint32_t i)
{
	int64_t start = timeline_levels_start_of(v, i), end = timeline_levels_end_of(v, i), ns = end - start;
	return (struct part){start, end, ns, ns, i, i + 1, i};
}

static struct part timeline_levels_part_of(const struct timeline_levels_source *s, uint32_t i)
{
	if (!s->e)
		return part_of_slice(&s->v, s->base + i);
	const struct timeline_entry *e = &s->e[i];
	struct part x = {.start_ns = e->start_ns, .busy_ns = e->busy_ns, .slice = e->slice, .behind = e[1].slice, .longest = e->longest};
	x.longest_ns = e->longest_ns < UINT32_MAX ? e->longest_ns : timeline_levels_end_of(&s->v, e->longest) - timeline_levels_start_of(&s->v, e->longest);
	x.end_ns = e->extent_ns < UINT32_MAX ? e->start_ns + e->extent_ns : timeline_levels_end_of(&s->v, x.behind - 1);
	return x;
}

static uint32_t in_32_bits(int64_t ns)
{
	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static struct timeline_entry entry_of(const struct part *x)
{
	return (struct timeline_entry){x->start_ns, x->busy_ns, x->slice, x->longest, in_32_bits(x->longest_ns), in_32_bits(x->end_ns - x->start_ns)};
}

/* Drawn by itself. */
static bool timeline_levels_is_long(const struct part *x, int64_t pixel_ns)
{
	return x->behind - x->slice == 1 && x->busy_ns >= pixel_ns;
}

/* Adds to *x, which is short, what shares its item at `zoom` from the one at i on. Returns what follows. */
static uint32_t timeline_levels_extend(const struct timeline_levels_source *s, uint32_t i, unsigned zoom, struct part *x)
{
	int64_t pixel_ns = (int64_t)1 << zoom;
	for (uint64_t pixel = pixel_of(&s->v, x->start_ns, zoom); i < s->n; i++) {
		struct part y = timeline_levels_part_of(s, i);
		if (timeline_levels_is_long(&y, pixel_ns) || pixel_of(&s->v, y.start_ns, zoom) != pixel)
			break;
		if (y.longest_ns > x->longest_ns) {
			x->longest_ns = y.longest_ns;
			x->longest = y.longest;
		}
		x->busy_ns += y.busy_ns;
		x->end_ns = y.end_ns;
		x->behind = y.behind;
	}
	return i;
}

/* *x is the one at i with those behind it in the segment that share its item. Returns what follows them. */
static uint32_t merge(const struct timeline_levels_source *s, uint32_t i, unsigned zoom, struct part *x)
{
	*x = timeline_levels_part_of(s, i);
	return timeline_levels_is_long(x, (int64_t)1 << zoom) ? i + 1 : timeline_levels_extend(s, i + 1, zoom, x);
}

/* The zoom at which the denser parts of a segment begin to merge: the width of four slices, where a quarter of the places looked at
 * are denser. */
static unsigned first_zoom(const struct timeline_levels_source *s)
{
	enum { LOOK = 64 };
	unsigned count[64] = {0}, seen = 0, zoom = 0;
	for (unsigned k = 0; k < LOOK; k++) {
		uint32_t i = s->base + k * (s->n - 5) / LOOK;
		uint64_t ns = (uint64_t)timeline_levels_start_of(&s->v, i + 4) - (uint64_t)timeline_levels_start_of(&s->v, i);
		count[63 - __builtin_clzll(ns | 1)]++;
	}
	while (seen + count[zoom] < LOOK / 4)
		seen += count[zoom++];
	return zoom;
}

/* Entries in the making; `n` of them are kept. */
struct pile {
	struct timeline_entry *v;
	uint32_t n, cap;
	struct timeline_level *level;
	uint32_t n_levels, cap_levels;
};

/* Appends the entries of the next level, made of *s, whose last slice is before `behind`; false, and nothing appended, when they are more than half. */
static bool add_level(struct pile *x, const struct timeline_levels_source *s, uint32_t behind, unsigned zoom)
{
	uint32_t begin = x->n, i = 0, most = s->n / 2;
	MEM_GROW(x->v, x->cap, x->n + most + 1);
	struct timeline_levels_source from = *s; /* the pile may have moved */
	if (s->e)
		from.e = x->v + x->level[x->n_levels - 1].first;
	while (i < from.n && x->n - begin < most) {
		struct part k;
		i = merge(&from, i, zoom, &k);
		x->v[x->n++] = entry_of(&k);
	}
	if (i < from.n) {
		x->n = begin;
		return false;
	}
	MEM_PUSH(x->level, x->n_levels, x->cap_levels, (struct timeline_level){begin, x->n - begin, (uint8_t)zoom});
	x->v[x->n++] = (struct timeline_entry){.slice = behind};
	return true;
}

static uint32_t segments_of(uint32_t slices)
{
	return (slices + (1u << TIMELINE_SEGMENT_BITS) - 1) >> TIMELINE_SEGMENT_BITS;
}

/* The slices of a segment. */
static struct timeline_levels_source segment_slices(const struct timeline *t, const struct timeline_lane *l, uint32_t segment)
{
	uint32_t base = segment << TIMELINE_SEGMENT_BITS, most = 1u << TIMELINE_SEGMENT_BITS, rest = l->n - base;
	return (struct timeline_levels_source){.v = view_of(t, l), .n = rest < most ? rest : most, .base = base};
}

static void build_segment(struct timeline_segment *g, struct timeline_levels_source s, struct pile *x)
{
	uint32_t last = s.base + s.n - 1;
	g->first_level = x->n_levels;
	if (s.n <= FEW)
		return;
	uint64_t range = (uint64_t)timeline_levels_end_of(&s.v, last) - (uint64_t)timeline_levels_start_of(&s.v, s.base);
	for (unsigned zoom = first_zoom(&s); zoom <= TIMELINE_ZOOM_MAX && s.n > FEW; zoom++) {
		if (add_level(x, &s, last + 1, zoom)) {
			const struct timeline_level *k = &x->level[x->n_levels - 1];
			s.e = x->v + k->first;
			s.n = k->n;
		}
		if (range >> zoom == 0)
			break;
	}
	g->n_levels = (uint8_t)(x->n_levels - g->first_level);
}

void timeline_build_levels(struct timeline *t)
{
	struct pile x = {0};
	for (uint32_t l = 0; l < t->n_lanes; l++) {
		t->lanes[l].first_segment = t->n_segments;
		t->n_segments += segments_of(t->lanes[l].n);
	}
	t->segments = NEW_ARRAY(t->n_segments, struct timeline_segment);
	for (uint32_t l = 0; l < t->n_lanes; l++)
		for (uint32_t k = 0; k < segments_of(t->lanes[l].n); k++)
			build_segment(&t->segments[t->lanes[l].first_segment + k], segment_slices(t, &t->lanes[l], k), &x);
	t->entries = mem_realloc(x.v, x.n ? x.n : 1, sizeof *x.v);
	t->n_entries = x.n;
	t->levels = mem_realloc(x.level, x.n_levels ? x.n_levels : 1, sizeof *x.level);
	t->n_levels = x.n_levels;
}

/* A place among what a lane is drawn of at a zoom. */
struct timeline_levels_walk {
	const struct timeline *t;
	const struct timeline_lane *l;
	unsigned zoom;
	uint32_t segment, n_segments;
	struct timeline_levels_source s;                   /* of the segment */
	uint32_t i;
};

static void timeline_levels_enter(struct timeline_levels_walk *w, uint32_t segment)
{
	const struct timeline_segment *g = &w->t->segments[w->l->first_segment + segment];
	w->s = segment_slices(w->t, w->l, segment);
	w->segment = segment;
	w->i = 0;
	for (unsigned k = 0; k < g->n_levels && w->t->levels[g->first_level + k].zoom <= w->zoom; k++) {
		w->s.e = w->t->entries + w->t->levels[g->first_level + k].first;
		w->s.n = w->t->levels[g->first_level + k].n;
	}
}

/* To the begin of the next segment, when this one is through; false behind the last. */
static bool go_on(struct timeline_levels_walk *w)
{
	if (w->i < w->s.n)
		return true;
	if (w->segment + 1 == w->n_segments)
		return false;
	timeline_levels_enter(w, w->segment + 1);
	return true;
}

static bool go_back(struct timeline_levels_walk *w)
{
	if (!w->i && !w->segment)
		return false;
	if (!w->i) {
		timeline_levels_enter(w, w->segment - 1);
		w->i = w->s.n;
	}
	w->i--;
	return true;
}

static bool reaches(const struct part *x, int64_t ns)
{
	return x->end_ns > ns || x->start_ns >= ns;
}

/* To the first that ends behind `ns`, or begins there or later; false when there is none. */
static bool timeline_levels_find(struct timeline_levels_walk *w, int64_t ns)
{
	struct timeline_levels_view v = view_of(w->t, w->l);
	uint32_t lo = 0, hi = w->n_segments;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2, behind = (mid + 1) << TIMELINE_SEGMENT_BITS;
		struct part last = part_of_slice(&v, (behind < v.n ? behind : v.n) - 1);
		if (reaches(&last, ns))
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo == w->n_segments)
		return false;
	timeline_levels_enter(w, lo);
	for (hi = w->s.n; w->i < hi;) {
		uint32_t mid = w->i + (hi - w->i) / 2;
		struct part x = timeline_levels_part_of(&w->s, mid);
		if (reaches(&x, ns))
			hi = mid;
		else
			w->i = mid + 1;
	}
	return go_on(w);
}

/* Back to the first of the item that this one belongs to. */
static void to_item_begin(struct timeline_levels_walk *w)
{
	int64_t pixel_ns = (int64_t)1 << w->zoom;
	struct part x = timeline_levels_part_of(&w->s, w->i);
	if (timeline_levels_is_long(&x, pixel_ns))
		return;
	uint64_t pixel = pixel_of(&w->s.v, x.start_ns, w->zoom);
	for (struct timeline_levels_walk before = *w; go_back(&before); *w = before) {
		struct part y = timeline_levels_part_of(&before.s, before.i);
		if (timeline_levels_is_long(&y, pixel_ns) || pixel_of(&w->s.v, y.start_ns, w->zoom) != pixel)
			return;
	}
}

/* The item that begins here, with what other segments have of it; the walk goes behind it. */
static void take_item(struct timeline_levels_walk *w, struct part *x)
{
	w->i = merge(&w->s, w->i, w->zoom, x);
	while (w->i == w->s.n && !timeline_levels_is_long(x, (int64_t)1 << w->zoom) && go_on(w)) {
		w->i = timeline_levels_extend(&w->s, 0, w->zoom, x);
		if (!w->i)
			break;
	}
}

static void timeline_levels_append(struct timeline_items *out, const struct timeline_levels_view *v, const struct part *x)
{
	MEM_PUSH(out->v, out->n, out->cap, (struct timeline_item){x->start_ns, x->end_ns, x->busy_ns, x->behind - x->slice, v->row[x->longest]});
}

void timeline_items_of(const struct timeline *t, uint32_t lane, int64_t from_ns, int64_t to_ns, unsigned zoom, struct timeline_items *out)
{
	struct timeline_levels_walk w = {.t = t, .l = &t->lanes[lane], .zoom = zoom > TIMELINE_ZOOM_MAX ? TIMELINE_ZOOM_MAX : zoom};
	w.n_segments = segments_of(w.l->n);
	if (!timeline_levels_find(&w, from_ns))
		return;
	for (to_item_begin(&w); go_on(&w);) {
		struct part x;
		take_item(&w, &x);
		if (x.start_ns >= to_ns)
			break;
		timeline_levels_append(out, &w.s.v, &x);
	}
}

void timeline_items_release(struct timeline_items *x)
{
	mem_free(x->v);
	*x = (struct timeline_items){0};
}
