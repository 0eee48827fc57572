#include "analysis/ranks/job_files.h"

#include <stdlib.h>

#include "analysis/ranks/rank_place.h"
#include "base/arena.h"
#include "base/folder.h"
#include "base/mem.h"
#include "base/sort.h"

enum { RANKS_MAX = 1 << 20, NAMED = 3 };

struct other {
	int64_t rank;
	struct str name;
};

/* The next run of digits of s from *at on, which moves behind it; false when there is none. */
static bool next_number(struct str s, size_t *at, struct str *digits)
{
	size_t i = *at;
	while (i < s.n && !is_digit(s.p[i]))
		i++;
	size_t k = i;
	while (k < s.n && is_digit(s.p[k]))
		k++;
	*digits = (struct str){s.p + i, k - i};
	*at = k;
	return k > i;
}

/* Whether "rank", and then at most a '-', '_' or '=', stands before. */
static bool follows_rank(struct str s, const char *at)
{
	struct str before = {s.p, (size_t)(at - s.p)};
	if (before.n && (at[-1] == '-' || at[-1] == '_' || at[-1] == '='))
		before.n--;
	return str_ends(before, STR("rank"));
}

/* Which of the numbers in the name is the rank; -1 = it does not tell. */
static int place_of_rank(struct str name, int64_t rank)
{
	struct str digits;
	int64_t n;
	int place = -1, equal = 0, i = 0;
	for (size_t at = 0; next_number(name, &at, &digits); i++) {
		bool same = str_to_i64(digits, &n) && n == rank;
		if (follows_rank(name, digits.p))
			return same ? i : -1;
		if (same) {
			equal++;
			place = i;
		}
	}
	return equal == 1 ? place : -1;
}

/* Whether the names differ in nothing but their numbers; *rank is the one at `place` of b. */
static bool is_alike(struct str a, struct str b, int place, int64_t *rank)
{
	size_t i = 0, k = 0;
	struct str x, y;
	int n = 0;
	for (;; n++) {
		size_t from_a = i, from_b = k;
		bool more_a = next_number(a, &i, &x), more_b = next_number(b, &k, &y);
		struct str text_a = {a.p + from_a, (size_t)(x.p - a.p) - from_a}, text_b = {b.p + from_b, (size_t)(y.p - b.p) - from_b};
		if (more_a != more_b || !str_eq(text_a, text_b))
			return false;
		if (!more_a)
			return n > place;
		if (n == place && !str_to_i64(y, rank))
			return false;
	}
}

static int by_rank_and_name(const void *a, const void *b)
{
	const struct other *x = a, *y = b;
	return COMPARE(x->rank, y->rank) ?: str_cmp(x->name, y->name);
}

static unsigned keep_ranks(struct other *v, unsigned n)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < n; i++)
		if (!kept || v[kept - 1].rank != v[i].rank)
			v[kept++] = v[i];
	return kept;
}

static void job_files_put_range(const struct other *v, unsigned n, struct buf *out)
{
	buf_str(out, v[0].name);
	if (n > 1)
		buf_printf(out, " to " STR_FMT, STR_ARG(v[n - 1].name));
}

/* Many as two ranges, of the ranks below `rank` and of those above it. */
static void job_files_put_names(const struct other *v, unsigned n, int64_t rank, struct buf *out)
{
	unsigned below = 0;
	while (below < n && v[below].rank < rank)
		below++;
	if (n > NAMED) {
		if (below)
			job_files_put_range(v, below, out);
		if (below && below < n)
			buf_cstr(out, " and ");
		if (below < n)
			job_files_put_range(v + below, n - below, out);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		buf_printf(out, "%s" STR_FMT, i ? ", " : "", STR_ARG(v[i].name));
}

unsigned job_files_of_others(const struct profile *p, struct buf *names)
{
	struct rank_place place = rank_place_of(p);
	struct str path = p->input_path, name = path;
	while (name.n && memchr(name.p, '/', name.n)) {
		name.p++;
		name.n--;
	}
	int number = place.is_rank ? place_of_rank(name, place.rank) : -1;
	struct arena a = {0};
	struct str folder = arena_printf(&a, STR_FMT, STR_ARG(((struct str){path.p, path.n - name.n})));
	struct folder f = {0};
	if (number >= 0)
		folder_open(&f, folder.n ? folder.p : ".");
	struct other *v = NULL;
	unsigned n = 0, cap = 0;
	int64_t rank = 0;
	for (const char *other; (other = folder_next(&f));) {
		struct str file = str_from(other);
		if (!is_alike(name, file, number, &rank) || rank == place.rank || rank >= (place.world ? place.world : RANKS_MAX))
			continue;
		MEM_PUSH(v, n, cap, (struct other){rank, arena_str(&a, file)});
	}
	folder_close(&f);
	if (n)
		qsort(v, n, sizeof *v, by_rank_and_name);
	n = keep_ranks(v, n);
	job_files_put_names(v, n, place.rank, names);
	mem_free(v);
	arena_release(&a);
	return n;
}
