#include "detect/parts/places.h"

#include "base/mem.h"
#include "base/search.h"

void places_release(struct places *t)
{
	mem_free(t->v);
	intern_release(&t->keys);
	intern_release(&t->texts);
	*t = (struct places){0};
}

void places_add(struct places *t, const struct stacks *s, struct str name, uint32_t span, uint64_t events, int64_t ns)
{
	if (!t->n) {
		intern_init(&t->keys);
		intern_init(&t->texts);
	}
	uint32_t line = s && span != ROW_NONE ? intern_str(&t->texts, stacks_user_line(s, stacks_of(s, span))) : 0;
	uint32_t key[2] = {intern_str(&t->texts, name), line}, id = intern_put_key(&t->keys, key, sizeof key);
	if (id > t->n) { /* key 0 is the empty string, so place i has key i + 1 */
		MEM_GROW(t->v, t->cap, id);
		t->v[t->n++] = (struct place){.name = key[0], .line = line};
	}
	t->v[id - 1].events += events;
	t->v[id - 1].ns += ns;
	t->events += events;
	t->ns += ns;
	if (span != ROW_NONE && ns > t->most_ns) {
		t->most_span = span;
		t->most_ns = ns;
	}
}

void put_mean(struct buf *out, double n)
{
	uint64_t tenths = (uint64_t)(n * 10 + 0.5);
	if (tenths == 0 && n > 0)
		buf_printf(out, "%.1g", n);
	else if (tenths % 10)
		buf_printf(out, "%.1f", n);
	else
		buf_printf(out, "%llu", (unsigned long long)(tenths / 10));
}

void put_ns(struct buf *out, double ns)
{
	if (ns < 1e6)
		buf_printf(out, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		buf_printf(out, "%.3f ms", ns / 1e6);
	else
		buf_printf(out, "%.3f s", ns / 1e9);
}

static bool before(const struct place *a, const struct place *b)
{
	return a->ns != b->ns ? a->ns > b->ns : a->events > b->events;
}

/* The best place that is not taken; of equals, the first. */
static uint32_t next_best(const struct places *t, const uint32_t *taken, unsigned n_taken)
{
	uint32_t best = ROW_NONE;
	for (uint32_t i = 0; i < t->n; i++) {
		bool is_taken = ANY_WHERE(k, 0, n_taken, taken[k] == i);
		if (!is_taken && (best == ROW_NONE || before(&t->v[i], &t->v[best])))
			best = i;
	}
	return best;
}

static void places_put_place(const struct places *t, const struct place *x, unsigned steps, bool counts, struct buf *out)
{
	enum { LONGEST = 80 };
	struct str name = intern_get(&t->texts, x->name), line = intern_get(&t->texts, x->line);
	bool is_line = str_eq(line, name);
	if (name.n > LONGEST)
		for (name.n = LONGEST; name.n && ((unsigned char)name.p[name.n] & 0xC0) == 0x80;) /* not inside a character of UTF-8 */
			name.n--;
	buf_printf(out, STR_FMT, STR_ARG(name));
	if (line.n && !is_line)
		buf_printf(out, " at " STR_FMT, STR_ARG(line));
	if (!x->ns && !counts)
		return;
	buf_cstr(out, " (");
	if (x->ns)
		put_ns(out, (double)x->ns / steps);
	if (counts) {
		buf_cstr(out, x->ns ? ", " : "");
		put_mean(out, (double)x->events / steps);
		buf_cstr(out, x->events == steps ? " time" : " times");
	}
	buf_char(out, ')');
}

void places_text(const struct places *t, unsigned max, unsigned steps, bool counts, struct buf *out)
{
	uint32_t taken[8];
	unsigned n = 0;
	max = max < 8 ? max : 8;
	steps = steps ? steps : 1;
	for (; n < max && n < t->n; n++) {
		taken[n] = next_best(t, taken, n);
		if (n)
			buf_cstr(out, "; ");
		places_put_place(t, &t->v[taken[n]], steps, counts, out);
	}
	if (n < t->n)
		buf_printf(out, "; and %u more", t->n - n);
}
