#include "query/stats.h"

#include "base/mem.h"
#include "base/round.h"

#include <math.h>

/* Values come in the order in which others came before: the group that then came next is tried first. */
static uint32_t stats_group_of(struct stats *s, const void *key, size_t key_size)
{
	const uint32_t next = s->n ? s->v[s->last].next : 0;
	if (intern_is_key(&s->keys, next + 1, key, key_size))
		return next;
	const uint32_t at = intern_put_key(&s->keys, key, key_size) - 1;
	if (at >= s->n) {
		MEM_GROW(s->v, s->cap, at + 1);
		s->v[at] = (struct stats_group){.min = INT64_MAX, .max = INT64_MIN};
		s->n = at + 1;
	}
	s->v[s->last].next = at;
	return at;
}

uint32_t stats_add(struct stats *s, const void *key, size_t key_size, int64_t value)
{
	if (!s->started) {
		intern_init(&s->keys);
		s->started = true;
	}
	const uint32_t at = s->last = stats_group_of(s, key, key_size);
	struct stats_group *g = &s->v[at];
	g->calls++;
	g->total += value;
	g->min = value < g->min ? value : g->min;
	g->max = value > g->max ? value : g->max;
	s->total += value;
	MEM_GROW(s->value, s->cap_values, s->n_values + 1);
	MEM_GROW(s->group_of, s->cap_of, s->n_values + 1);
	s->value[s->n_values] = value;
	s->group_of[s->n_values++] = at;
	return at;
}

void stats_finish(struct stats *s)
{
	uint64_t *at = NEW_ARRAY_RAW(s->n, uint64_t), next = 0;
	for (uint32_t g = 0; g < s->n; g++) {
		at[g] = s->v[g].first = next;
		next += s->v[g].calls;
	}
	int64_t *dealt = NEW_ARRAY_RAW(s->n_values, int64_t);
	for (uint64_t i = 0; i < s->n_values; i++)
		dealt[at[s->group_of[i]]++] = s->value[i];
	mem_free(s->value);
	mem_free(s->group_of);
	mem_free(at);
	s->value = dealt;
	s->group_of = NULL;
}

void stats_release(struct stats *s)
{
	if (s->started)
		intern_release(&s->keys);
	mem_free(s->v);
	mem_free(s->value);
	mem_free(s->group_of);
	*s = (struct stats){0};
}

static inline void swap(int64_t *a, int64_t *b)
{
	int64_t t = *a;
	*a = *b;
	*b = t;
}

/* Puts the k-th smallest at v[k], smaller or equal ones before it. The pivot is the middle one, of three; the range shrinks from
 * both sides also where all values are equal. */
static int64_t select_kth(int64_t *v, uint64_t n, uint64_t k)
{
	uint64_t lo = 0, hi = n - 1;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2, i = lo, j = hi;
		if (v[mid] < v[lo])
			swap(&v[mid], &v[lo]);
		if (v[hi] < v[lo])
			swap(&v[hi], &v[lo]);
		if (v[hi] < v[mid])
			swap(&v[hi], &v[mid]);
		int64_t pivot = v[mid];
		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&v[i++], &v[j--]);
		}
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return v[k];
}

int64_t stats_kth(struct stats *s, uint32_t group, uint64_t k)
{
	return select_kth(s->value + s->v[group].first, s->v[group].calls, k);
}

int64_t stats_percentile(struct stats *s, uint32_t group, double percent)
{
	uint64_t n = s->v[group].calls;
	double rank = ceil(percent / 100 * (double)n);
	return stats_kth(s, group, rank < 1 ? 0 : rank >= (double)n ? n - 1 : (uint64_t)rank - 1);
}

double stats_median(struct stats *s, uint32_t group)
{
	uint64_t n = s->v[group].calls;
	int64_t *v = s->value + s->v[group].first, high = select_kth(v, n, n / 2), low = high;
	if (n % 2 == 0) {
		low = v[0];
		for (uint64_t i = 1; i < n / 2; i++)
			low = v[i] > low ? v[i] : low;
	}
	return (double)low / 2 + (double)high / 2;
}

double stats_stddev(const struct stats *s, uint32_t group)
{
	const struct stats_group *g = &s->v[group];
	double mean = stats_mean(s, group), sum = 0;
	if (g->calls < 2)
		return 0;
	for (uint64_t i = 0; i < g->calls; i++) {
		double d = (double)s->value[g->first + i] - mean;
		sum += d * d;
	}
	return sqrt(sum / (double)(g->calls - 1));
}

void stats_put(struct table *t, unsigned c, struct stats *s, uint32_t group)
{
	const struct stats_group *g = &s->v[group];
	table_set_i64(t, c++, (int64_t)g->calls);
	table_set_i64(t, c++, g->total);
	table_set_f64(t, c++, percent((double)g->total, (double)s->total));
	table_set_f64(t, c++, stats_mean(s, group));
	table_set_f64(t, c++, stats_median(s, group));
	table_set_i64(t, c++, g->min);
	table_set_i64(t, c++, g->max);
	table_set_f64(t, c++, stats_stddev(s, group));
}
