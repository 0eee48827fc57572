#include "serve/series.h"

#include "base/json_text.h"
#include "base/mem.h"

struct series series_begin(struct buf *b, const char *name, bool differences)
{
	buf_printf(b, "\"%s\":[", name);
	return (struct series){.b = b, .differences = differences};
}

void series_add(struct series *s, int64_t v)
{
	if (s->any)
		buf_char(s->b, ',');
	buf_i64(s->b, s->differences ? v - s->last : v);
	s->last = v;
	s->any = true;
}

void series_end(struct series *s)
{
	buf_char(s->b, ']');
}

void texts_begin(struct texts *t, const struct profile *p)
{
	*t = (struct texts){.p = p, .place = NEW_ARRAY(p->strings.n + 1, uint32_t)};
}

uint32_t texts_number(struct texts *t, uint32_t id)
{
	if (!t->place[id]) {
		MEM_PUSH(t->id, t->n, t->cap, id);
		t->place[id] = t->n;
	}
	return t->place[id] - 1;
}

void texts_put(const struct texts *t, struct buf *b, const char *name)
{
	buf_printf(b, "\"%s\":[", name);
	for (uint32_t i = 0; i < t->n; i++) {
		buf_cstr(b, i ? "," : "");
		json_put_string(b, profile_str(t->p, t->id[i]));
	}
	buf_char(b, ']');
}

void texts_release(struct texts *t)
{
	mem_free(t->place);
	mem_free(t->id);
}

void series_words(struct buf *b, const char *name, const char *const *words, unsigned n)
{
	buf_printf(b, "\"%s\":[", name);
	for (unsigned i = 0; i < n; i++) {
		buf_cstr(b, i ? "," : "");
		json_put_string(b, str_from(words[i]));
	}
	buf_char(b, ']');
}
