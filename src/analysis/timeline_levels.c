/* Levels of detail of a lane, and the items of a window. */
#include "analysis/timeline_levels.h"
#include "base/mem.h"

enum { FEW = 64 }; /* a lane with no more slices, or a level with no more entries, needs no further level */

/* A lane's slices with the columns they are read from. */
struct view {
	const uint32_t *row;
	uint32_t n;
	const int64_t *start, *dur;
	int64_t zero_ns;
};

static struct view view_of(const struct timeline *t, const struct timeline_lane *l)
{
	bool device = t->tracks[l->track].device;
	return (struct view){t->row + l->first, l->n, device ? t->p->gpu_op.start_ns : t->p->span.start_ns,
	                     device ? t->p->gpu_op.dur_ns : t->p->span.dur_ns, t->first_ns};
}

static int64_t start_of(const struct view *v, uint32_t i)
{
	return v->start[v->row[i]];
}

/* Where slice i is drawn to: ends of a lane never decrease. */
static int64_t end_of(const struct view *v, uint32_t i)
{
	int64_t end = v->start[v->row[i]] + v->dur[v->row[i]];
	return i + 1 < v->n && start_of(v, i + 1) < end ? start_of(v, i + 1) : end;
}

static uint64_t pixel_of(const struct view *v, int64_t ns, unsigned zoom)
{
	return ((uint64_t)ns - (uint64_t)v->zero_ns) >> zoom;
}

/* Where items come from: a level's entries or, without one, the slices themselves. */
struct source {
	struct view v;
	const struct timeline_entry *e;
	uint32_t n;
};

/* Slices that are drawn together. */
struct part {
	int64_t start_ns, end_ns, busy_ns, longest_ns;
	uint32_t slice, behind, longest;   /* the slices, and the longest of them */
};

static struct part part_of_slice(const struct view *v, uint32_t i)
{
	int64_t start = start_of(v, i), end = end_of(v, i), ns = end - start;
	return (struct part){start, end, ns, ns, i, i + 1, i};
}

static struct part part_of(const struct source *s, uint32_t i)
{
	if (!s->e)
		return part_of_slice(&s->v, i);
	const struct timeline_entry *e = &s->e[i];
	struct part x = {.start_ns = e->start_ns, .busy_ns = e->busy_ns, .slice = e->slice, .behind = e[1].slice, .longest = e->longest};
	x.longest_ns = e->longest_ns < UINT32_MAX ? e->longest_ns : end_of(&s->v, e->longest) - start_of(&s->v, e->longest);
	x.end_ns = e->extent_ns < UINT32_MAX ? e->start_ns + e->extent_ns : end_of(&s->v, x.behind - 1);
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
static bool is_long(const struct part *x, int64_t pixel_ns)
{
	return x->behind - x->slice == 1 && x->busy_ns >= pixel_ns;
}

/* *x is merged of the one at i and those behind it that share its item at `zoom`. Returns what follows them. */
static uint32_t merge(const struct source *s, uint32_t i, unsigned zoom, struct part *x)
{
	int64_t pixel_ns = (int64_t)1 << zoom;
	*x = part_of(s, i++);
	if (is_long(x, pixel_ns))
		return i;
	for (uint64_t pixel = pixel_of(&s->v, x->start_ns, zoom); i < s->n; i++) {
		struct part y = part_of(s, i);
		if (is_long(&y, pixel_ns) || pixel_of(&s->v, y.start_ns, zoom) != pixel)
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

/* The zoom at which the denser parts of a lane begin to merge: the width of four slices, where a quarter of the places looked at
 * are denser. */
static unsigned first_zoom(const struct view *v)
{
	enum { LOOK = 64 };
	unsigned count[64] = {0}, seen = 0, zoom = 0;
	for (unsigned k = 0; k < LOOK; k++) {
		uint32_t i = (uint32_t)((uint64_t)k * (v->n - 5) / LOOK);
		uint64_t ns = (uint64_t)start_of(v, i + 4) - (uint64_t)start_of(v, i);
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

/* Appends the entries of the next level, made of *s; false, and nothing appended, when they are more than half. */
static bool add_level(struct pile *x, const struct source *s, unsigned zoom)
{
	uint32_t begin = x->n, i = 0, most = s->n / 2;
	MEM_GROW(x->v, x->cap, x->n + most + 1);
	struct source from = *s; /* the pile may have moved */
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
	MEM_GROW(x->level, x->cap_levels, x->n_levels + 1);
	x->level[x->n_levels++] = (struct timeline_level){begin, x->n - begin, (uint8_t)zoom};
	x->v[x->n++] = (struct timeline_entry){.slice = from.v.n};
	return true;
}

static void build_lane(struct timeline *t, struct timeline_lane *l, struct pile *x)
{
	struct source s = {.v = view_of(t, l), .n = l->n};
	l->first_level = x->n_levels;
	if (l->n <= FEW)
		return;
	uint64_t range = (uint64_t)end_of(&s.v, l->n - 1) - (uint64_t)start_of(&s.v, 0);
	for (unsigned zoom = first_zoom(&s.v); zoom <= TIMELINE_ZOOM_MAX && s.n > FEW; zoom++) {
		if (add_level(x, &s, zoom)) {
			const struct timeline_level *k = &x->level[x->n_levels - 1];
			s.e = x->v + k->first;
			s.n = k->n;
		}
		if (range >> zoom == 0)
			break;
	}
	l->n_levels = (uint8_t)(x->n_levels - l->first_level);
}

void timeline_build_levels(struct timeline *t)
{
	struct pile x = {0};
	for (uint32_t l = 0; l < t->n_lanes; l++)
		build_lane(t, &t->lanes[l], &x);
	t->entries = mem_realloc(x.v, x.n ? x.n : 1, sizeof *x.v);
	t->n_entries = x.n;
	t->levels = mem_realloc(x.level, x.n_levels ? x.n_levels : 1, sizeof *x.level);
	t->n_levels = x.n_levels;
}

/* The first that ends behind `ns`, or begins there or later. */
static uint32_t find(const struct source *s, int64_t ns)
{
	uint32_t lo = 0, hi = s->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		struct part x = part_of(s, mid);
		if (x.end_ns > ns || x.start_ns >= ns)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Back to the first of the item that the one at i belongs to. */
static uint32_t item_begin(const struct source *s, uint32_t i, unsigned zoom)
{
	int64_t pixel_ns = (int64_t)1 << zoom;
	if (i >= s->n)
		return i;
	struct part x = part_of(s, i);
	if (is_long(&x, pixel_ns))
		return i;
	for (uint64_t pixel = pixel_of(&s->v, x.start_ns, zoom); i > 0; i--) {
		struct part y = part_of(s, i - 1);
		if (is_long(&y, pixel_ns) || pixel_of(&s->v, y.start_ns, zoom) != pixel)
			break;
	}
	return i;
}

static void append(struct timeline_items *out, const struct source *s, const struct part *x)
{
	MEM_GROW(out->v, out->cap, out->n + 1);
	out->v[out->n++] = (struct timeline_item){x->start_ns, x->end_ns, x->busy_ns, x->behind - x->slice, s->v.row[x->longest]};
}

void timeline_items_of(const struct timeline *t, uint32_t lane, int64_t from_ns, int64_t to_ns, unsigned zoom, struct timeline_items *out)
{
	const struct timeline_lane *l = &t->lanes[lane];
	struct source s = {.v = view_of(t, l), .n = l->n};
	zoom = zoom > TIMELINE_ZOOM_MAX ? TIMELINE_ZOOM_MAX : zoom;
	for (unsigned k = 0; k < l->n_levels && t->levels[l->first_level + k].zoom <= zoom; k++) {
		s.e = t->entries + t->levels[l->first_level + k].first;
		s.n = t->levels[l->first_level + k].n;
	}
	for (uint32_t i = item_begin(&s, find(&s, from_ns), zoom); i < s.n;) {
		struct part x;
		i = merge(&s, i, zoom, &x);
		if (x.start_ns >= to_ns)
			break;
		append(out, &s, &x);
	}
}

void timeline_items_release(struct timeline_items *x)
{
	mem_free(x->v);
	*x = (struct timeline_items){0};
}
