#include "analysis/time/interval.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/param.h>

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

void intervals_add(struct intervals *s, int64_t start, int64_t end)
{
	if (end <= start)
		return;
	struct interval *last = s->n ? &s->v[s->n - 1] : NULL;
	if (last && start >= last->start && start <= last->end) { /* nested events come right after what is around them */
		last->end = MAX(last->end, end);
		return;
	}
	MEM_PUSH(s->v, s->n, s->cap, (struct interval){start, end});
}

void intervals_release(struct intervals *s)
{
	mem_free(s->v);
	*s = (struct intervals){0};
}

static int compare_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return COMPARE(x->start, y->start);
}

/* By radix where row numbers fit 32 bits, which is always so for events of one profile. */
static void interval_sort_by_start(struct intervals *s)
{
	if (s->n >= UINT32_MAX) {
		qsort(s->v, s->n, sizeof *s->v, compare_start);
		return;
	}
	struct sort_item *item = NEW_ARRAY_RAW(s->n, struct sort_item);
	struct interval *sorted = NEW_ARRAY_RAW(s->n, struct interval);
	for (uint32_t i = 0; i < s->n; i++)
		item[i] = (struct sort_item){sort_key_i64(s->v[i].start), i, 0};
	sort_items(item, (uint32_t)s->n);
	for (size_t i = 0; i < s->n; i++)
		sorted[i] = s->v[item[i].row];
	mem_free(item);
	mem_free(s->v);
	s->v = sorted;
	s->cap = s->n;
}

void intervals_normalise(struct intervals *s)
{
	bool sorted = true;
	for (size_t i = 1; i < s->n && sorted; i++)
		sorted = s->v[i - 1].start <= s->v[i].start;
	if (!sorted)
		interval_sort_by_start(s);
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (n && s->v[i].start <= s->v[n - 1].end) {
			s->v[n - 1].end = MAX(s->v[n - 1].end, s->v[i].end);
		} else {
			s->v[n++] = s->v[i];
		}
	}
	s->n = n;
}

void intervals_union(const struct intervals *a, const struct intervals *b, struct intervals *out)
{
	struct intervals r = {0};
	size_t i = 0, j = 0;
	while (i < a->n || j < b->n) {
		bool from_a = j == b->n || (i < a->n && a->v[i].start <= b->v[j].start);
		struct interval x = from_a ? a->v[i++] : b->v[j++];
		if (r.n && x.start <= r.v[r.n - 1].end) {
			r.v[r.n - 1].end = MAX(r.v[r.n - 1].end, x.end);
		} else {
			intervals_add(&r, x.start, x.end);
		}
	}
	intervals_release(out);
	*out = r;
}

void intervals_intersect(const struct intervals *a, const struct intervals *b, struct intervals *out)
{
	struct intervals r = {0};
	size_t i = 0, j = 0;
	while (i < a->n && j < b->n) {
		struct interval x = a->v[i], y = b->v[j];
		intervals_add(&r, x.start > y.start ? x.start : y.start, x.end < y.end ? x.end : y.end);
		if (x.end < y.end)
			i++;
		else
			j++;
	}
	intervals_release(out);
	*out = r;
}

void intervals_subtract(const struct intervals *a, const struct intervals *b, struct intervals *out)
{
	struct intervals r = {0};
	size_t j = 0;
	for (size_t i = 0; i < a->n; i++) {
		int64_t from = a->v[i].start, end = a->v[i].end;
		while (j < b->n && b->v[j].end <= from)
			j++;
		for (; j < b->n && b->v[j].start < end; j++) {
			intervals_add(&r, from, b->v[j].start);
			from = MAX(from, b->v[j].end);
			if (from >= end)
				break; /* b->v[j] may reach into the next range of a */
		}
		intervals_add(&r, from, end);
	}
	intervals_release(out);
	*out = r;
}

int64_t intervals_length(const struct intervals *s)
{
	int64_t sum = 0;
	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i].end - s->v[i].start;
	return sum;
}

int64_t intervals_length_within(const struct intervals *s, int64_t start, int64_t end)
{
	size_t lo = FIRST_WHERE(i, 0, s->n, s->v[i].end > start);
	int64_t sum = 0;
	for (; lo < s->n && s->v[lo].start < end; lo++) {
		int64_t from = s->v[lo].start > start ? s->v[lo].start : start;
		int64_t to = s->v[lo].end < end ? s->v[lo].end : end;
		if (to > from)
			sum += to - from;
	}
	return sum;
}
