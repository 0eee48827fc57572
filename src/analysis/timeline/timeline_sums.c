/* Totals of a window by name. */
#include "analysis/timeline/timeline_sums.h"

#include "base/hash.h"
#include "base/mem.h"

#include <sys/param.h>

struct timeline_sums_sums {
	struct timeline_sum *v;
	uint32_t n, cap;
	struct idmap place;    /* name and kind -> v */
};

static struct timeline_sum *timeline_sums_sum_of(struct timeline_sums_sums *s, const struct profile *p, bool device, uint32_t row)
{
	uint32_t name = device ? p->gpu_op.name[row] : p->span.name[row];
	uint8_t kind = device ? p->gpu_op.kind[row] : p->span.kind[row];
	int64_t key = (int64_t)name << 9 | (int64_t)device << 8 | kind;
	uint32_t i = idmap_get(&s->place, key);
	if (i == IDMAP_NONE) {
		i = s->n++;
		MEM_GROW(s->v, s->cap, s->n);
		s->v[i] = (struct timeline_sum){.name = name, .kind = kind, .device = device};
		idmap_put(&s->place, key, i);
	}
	return &s->v[i];
}

/* The time that a range has within another one that is counted, too, is not that one's own. */
static void take_from_around(struct timeline_sums_sums *s, const struct timeline *t, const uint8_t *take, uint32_t row, int64_t from_ns, int64_t to_ns)
{
	const struct profile *p = t->p;
	uint32_t up = p->span.parent[row];
	while (up != ROW_NONE && !take[t->lanes[t->span_lane[up]].track])
		up = p->span.parent[up];
	if (up == ROW_NONE)
		return;
	from_ns = MAX(from_ns, p->span.start_ns[up]);
	to_ns = MIN(to_ns, span_end(p, up));
	if (from_ns < to_ns)
		timeline_sums_sum_of(s, p, false, up)->self_ns -= to_ns - from_ns;
}

static void add_slice(struct timeline_sums_sums *s, const struct timeline *t, const uint8_t *take, bool device, uint32_t row, int64_t from_ns, int64_t to_ns)
{
	const struct profile *p = t->p;
	int64_t start = device ? p->gpu_op.start_ns[row] : p->span.start_ns[row];
	int64_t end = device ? gpu_end(p, row) : span_end(p, row);
	if (start < from_ns && end <= from_ns)
		return;
	struct timeline_sum *x = timeline_sums_sum_of(s, p, device, row);
	from_ns = MAX(from_ns, start);
	to_ns = MIN(to_ns, end);
	x->count++;
	x->total_ns += to_ns - from_ns;
	x->self_ns += to_ns - from_ns;
	if (!device && span_nests(x->kind))
		take_from_around(s, t, take, row, from_ns, to_ns);
}

/* How many slices the window has at most. */
static uint64_t slices_in(const struct timeline *t, const uint8_t *take, int64_t from_ns, int64_t to_ns)
{
	uint64_t n = 0;
	for (uint32_t l = 0; l < t->n_lanes; l++) {
		uint32_t end, begin = take[t->lanes[l].track] ? timeline_slices(t, l, from_ns, to_ns, &end) : 0;
		n += take[t->lanes[l].track] && begin < end ? end - begin : 0;
	}
	return n;
}

uint32_t timeline_sums(const struct timeline *t, const uint8_t *take, int64_t from_ns, int64_t to_ns, struct timeline_sum **out)
{
	struct timeline_sums_sums s = {0};
	uint64_t slices = slices_in(t, take, from_ns, to_ns), names = (uint64_t)t->p->strings.n * (SPAN_KINDS + GPU_KINDS);
	idmap_init(&s.place, 0, (int64_t)t->p->strings.n << 9 | 511, slices < names ? slices : names);
	for (uint32_t l = 0; l < t->n_lanes; l++) {
		uint32_t end;
		if (!take[t->lanes[l].track])
			continue;
		for (uint32_t i = timeline_slices(t, l, from_ns, to_ns, &end); i < end; i++)
			add_slice(&s, t, take, t->tracks[t->lanes[l].track].device, t->row[i], from_ns, to_ns);
	}
	idmap_release(&s.place);
	*out = s.v;
	return s.n;
}
