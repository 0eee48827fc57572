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

static uint64_t pixel_of(const struct view *v, uint32_t i, unsigned zoom)
{
	return ((uint64_t)start_of(v, i) - (uint64_t)v->zero_ns) >> zoom;
}

/* Where items come from: a level's entries or, without one, the slices themselves. */
struct source {
	struct view v;
	const struct timeline_entry *e;
	uint32_t n;
};

static struct timeline_entry entry_of(const struct source *s, uint32_t i)
{
	if (s->e)
		return s->e[i];
	return (struct timeline_entry){i, i, i < s->n ? end_of(&s->v, i) - start_of(&s->v, i) : 0};
}

static uint32_t slice_of(const struct source *s, uint32_t i)
{
	return s->e ? s->e[i].slice : i;
}

static int64_t drawn_ns(const struct view *v, uint32_t i)
{
	return end_of(v, i) - start_of(v, i);
}

/* Merges entry *i and those behind it that share its item at `zoom`; *i moves behind them. */
static struct timeline_entry merge(const struct source *s, uint32_t *i, unsigned zoom)
{
	struct timeline_entry x = entry_of(s, *i);
	int64_t pixel_ns = (int64_t)1 << zoom;
	uint32_t next = slice_of(s, ++*i);
	if (next - x.slice == 1 && x.busy_ns >= pixel_ns)
		return x;
	uint64_t pixel = pixel_of(&s->v, x.slice, zoom);
	int64_t longest_ns = drawn_ns(&s->v, x.longest);
	while (*i < s->n) {
		struct timeline_entry y = entry_of(s, *i);
		next = slice_of(s, *i + 1);
		if ((next - y.slice == 1 && y.busy_ns >= pixel_ns) || pixel_of(&s->v, y.slice, zoom) != pixel)
			break;
		int64_t ns = drawn_ns(&s->v, y.longest);
		if (ns > longest_ns) {
			longest_ns = ns;
			x.longest = y.longest;
		}
		x.busy_ns += y.busy_ns;
		++*i;
	}
	return x;
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
	while (i < from.n && x->n - begin < most)
		x->v[x->n++] = merge(&from, &i, zoom);
	if (i < from.n) {
		x->n = begin;
		return false;
	}
	MEM_GROW(x->level, x->cap_levels, x->n_levels + 1);
	x->level[x->n_levels++] = (struct timeline_level){begin, x->n - begin, (uint8_t)zoom};
	x->v[x->n++] = (struct timeline_entry){from.v.n, from.v.n, 0};
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

/* The first entry that ends behind `ns`, or begins there or later. */
static uint32_t find(const struct source *s, int64_t ns)
{
	uint32_t lo = 0, hi = s->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2, last = slice_of(s, mid + 1) - 1;
		if (end_of(&s->v, last) > ns || start_of(&s->v, last) >= ns)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Back to the first entry of the item that entry i belongs to. */
static uint32_t item_begin(const struct source *s, uint32_t i, unsigned zoom)
{
	int64_t pixel_ns = (int64_t)1 << zoom;
	if (i >= s->n)
		return i;
	struct timeline_entry x = entry_of(s, i);
	if (slice_of(s, i + 1) - x.slice == 1 && x.busy_ns >= pixel_ns)
		return i;
	uint64_t pixel = pixel_of(&s->v, x.slice, zoom);
	while (i > 0) {
		struct timeline_entry y = entry_of(s, i - 1);
		if ((x.slice - y.slice == 1 && y.busy_ns >= pixel_ns) || pixel_of(&s->v, y.slice, zoom) != pixel)
			break;
		x = y;
		i--;
	}
	return i;
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
	uint32_t i = item_begin(&s, find(&s, from_ns), zoom);
	while (i < s.n && start_of(&s.v, slice_of(&s, i)) < to_ns) {
		struct timeline_entry x = merge(&s, &i, zoom);
		uint32_t behind = slice_of(&s, i);
		MEM_GROW(out->v, out->cap, out->n + 1);
		out->v[out->n++] = (struct timeline_item){start_of(&s.v, x.slice), end_of(&s.v, behind - 1), x.busy_ns, behind - x.slice,
		                                          s.v.row[x.longest]};
	}
}

void timeline_items_release(struct timeline_items *x)
{
	mem_free(x->v);
	*x = (struct timeline_items){0};
}
