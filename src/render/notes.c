#include "render/notes.h"

#include "render/number.h"

/* The length of the whole number that begins at `i` and stands by itself, else 0. "12" does, and so do the digits of "-12"; not those of "1.5", "x12", "12x",
 * "#3" and "3..5". */
static size_t number_at(struct str s, size_t i, int64_t *v)
{
	size_t n = 0;
	size_t sign = i && s.p[i - 1] == '-';
	if (i > sign && !strchr(" (", s.p[i - 1 - sign]))
		return 0;
	while (i + n < s.n && is_digit(s.p[i + n]))
		n++;
	size_t end = i + n;
	bool stops = end == s.n || strchr(" ),;:", s.p[end]) || (s.p[end] == '.' && (end + 1 == s.n || s.p[end + 1] == ' '));
	return n && stops && str_to_i64((struct str){s.p + i, n}, v) ? n : 0;
}

static bool begins(struct str s, size_t i, const char *with)
{
	return i <= s.n && str_starts((struct str){s.p + i, s.n - i}, str_from(with));
}

/* A sum in a note: "N ns = a 1 + b 2 (of it c 3); ..." or "a 1 + b 2 = c 3; c + d 4 = e N ns"; the same of bytes. */
struct render_notes_sum {
	size_t from, end; /* where its parts stand; both 0: there is none */
	int64_t total;    /* N */
	bool bytes;
};

static struct render_notes_sum sum_in(struct str s, struct str unit)
{
	struct render_notes_sum sum = {.bytes = unit.n > 3};
	ptrdiff_t at = str_find(s, unit), equals = str_find(s, STR(" = "));
	size_t first = at < 0 ? 0 : (size_t)at;
	while (first && is_digit(s.p[first - 1]))
		first--;
	if (at < 0 || equals < 0 || !number_at(s, first, &sum.total))
		return (struct render_notes_sum){0};
	if (equals < at) {
		sum.end = first;
	} else if (equals == at + (ptrdiff_t)unit.n) {
		sum.from = sum.end = (size_t)equals + 3;
		while (sum.end < s.n && s.p[sum.end] != ';')
			sum.end++;
	}
	return sum;
}

static struct render_notes_sum render_notes_sum_of(struct str s)
{
	struct render_notes_sum sum = sum_in(s, STR(" ns"));
	return sum.end ? sum : sum_in(s, STR(" bytes"));
}

/* Whether the number that ends at `end` is a part: what follows is no word, of which it would be the count. */
static bool is_part(struct str s, size_t end)
{
	return end == s.n || strchr(";,).", s.p[end]) || begins(s, end, " +") || begins(s, end, " =") || begins(s, end, " (");
}

static const struct {
	const char *name;
	double scale;
	int digits;
} units[] = {{"ns", 1, 0}, {"us", 1e3, 3}, {"ms", 1e6, 3}, {"s", 1e9, 3}};
enum { UNITS = sizeof units / sizeof units[0] };

/* The table's own unit, where the user asked for one, else what suits this duration. */
static unsigned render_notes_unit_of(const struct table *t, int64_t ns)
{
	unsigned u = 0;
	const char *asked = t->n_columns ? t->data[0].col.shown_in : NULL;
	for (unsigned i = 0; asked && i < UNITS; i++)
		if (strcmp(units[i].name, asked) == 0)
			return i;
	while (u + 1 < UNITS && (double)ns >= 999.9995 * units[u].scale)
		u++;
	return u;
}

/* The unit of a sum: not seconds, in which small parts would lose their digits, unless the sum has thousands of seconds. */
static unsigned sum_unit(const struct table *t, int64_t ns)
{
	bool asked = t->n_columns && t->data[0].col.shown_in;
	unsigned u = render_notes_unit_of(t, ns);
	return u + 1 == UNITS && !asked && ns < INT64_C(1000000000000) ? u - 1 : u;
}

/* As cells of the tables. */
static void render_notes_put_bytes(struct buf *out, int64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)bytes;
	unsigned u = 0;
	for (; u < 4 && v >= 1023.95; u++)
		v /= 1024;
	number_fixed(out, v, u ? 1 : 0, true);
	buf_printf(out, " %s", names[u]);
}

static void put_ns(struct buf *out, int64_t ns, unsigned unit)
{
	number_fixed(out, (double)ns / units[unit].scale, ns ? units[unit].digits : 0, true);
}

/* "12 of 34 ns": of the same unit. */
static bool is_of_ns(struct str s, size_t end)
{
	int64_t v;
	size_t n = begins(s, end, " of ") ? number_at(s, end + 4, &v) : 0;
	return n && begins(s, end + 4 + n, " ns");
}

static void render_notes_put_number(struct buf *out, struct str s, size_t i, size_t n, int64_t v)
{
	bool counts = i + n + 1 < s.n && s.p[i + n] == ' ' && s.p[i + n + 1] >= 'a' && s.p[i + n + 1] <= 'z'; /* "RTX 4090" does not */
	if (n >= 5 || (n == 4 && counts))
		number_grouped(out, v);
	else
		buf_put(out, s.p + i, n);
}

void note_put(struct buf *out, const struct table *t, struct str s)
{
	struct render_notes_sum sum = render_notes_sum_of(s);
	unsigned unit = sum_unit(t, sum.total);
	int64_t v;
	for (size_t i = 0; i < s.n;) {
		size_t n = number_at(s, i, &v), end = i + n;
		bool ns = n && begins(s, end, " ns") && (end + 3 == s.n || strchr(" ;,.):=", s.p[end + 3]));
		if (!n) {
			buf_char(out, s.p[i++]);
			continue;
		}
		if (ns || is_of_ns(s, end)) {
			unsigned own = sum.end && v == sum.total ? unit : render_notes_unit_of(t, v);
			put_ns(out, v, own);
			buf_printf(out, " %s", units[own].name);
		} else if (begins(s, end, " bytes") && (end + 6 == s.n || strchr(" ,;.):", s.p[end + 6]))) {
			render_notes_put_bytes(out, v);
			end += 6;
		} else if (sum.end && i >= sum.from && i < sum.end && is_part(s, end)) {
			if (sum.bytes)
				render_notes_put_bytes(out, v);
			else
				put_ns(out, v, unit);
		} else {
			render_notes_put_number(out, s, i, n, v);
		}
		i = end + (ns ? 3 : 0);
	}
}

/* The percentage of a sum that is not explained: its largest part under one of these words; 0 = it has no such part. */
static double unexplained_pct(struct str s)
{
	static const char *const words[] = {"unattributed ", "unknown ", "of no recorded call ", "by none ", "launched by no op ", "outside "};
	struct render_notes_sum sum = render_notes_sum_of(s);
	int64_t part = 0, v;
	for (size_t i = sum.from; sum.from && i < sum.end; i++)
		for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
			if (begins(s, i, words[k]) && s.p[i - 1] == ' ' && number_at(s, i + strlen(words[k]), &v) && v > part)
				part = v;
	return sum.total > 0 ? 100.0 * (double)part / (double)sum.total : 0;
}

unsigned note_first(const struct table *t)
{
	if (t->warnings)
		return (unsigned)__builtin_ctzll(t->warnings);
	for (unsigned i = 0; i < t->n_notes; i++)
		if (unexplained_pct(t->notes[i]) > NOTE_MUCH_PCT)
			return i;
	return 0;
}

void note_put_brief(struct buf *out, const struct table *t)
{
	unsigned more = t->n_notes - 1;
	note_put(out, t, t->notes[note_first(t)]);
	if (more)
		buf_printf(out, " (%u more note%s: --notes=full)", more, more == 1 ? "" : "s");
}
