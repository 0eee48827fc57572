#include "store/written.h"

#include "base/mem.h"

struct written *written_new(void)
{
	struct written *w = NEW(struct written);
	intern_init(&w->forms);
	return w;
}

void written_free(struct written *w)
{
	if (!w)
		return;
	intern_release(&w->forms);
	buf_release(&w->stream);
	mem_free(w);
}

size_t written_bytes(const struct written *w)
{
	return w ? sizeof *w + intern_bytes(&w->forms) + w->stream.cap : 0;
}

/* 7 bits a byte, the lowest first. */
static char *written_put_number(char *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (char)(v | 0x80);
	*p++ = (char)v;
	return p;
}

static uint64_t get_number(const struct buf *b, size_t *at)
{
	uint64_t v = 0;
	for (unsigned shift = 0; *at < b->n && shift < 64; shift += 7) {
		unsigned char c = (unsigned char)b->p[(*at)++];
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			break;
	}
	return v;
}

/* Small differences of either sign become small numbers; differences wrap. */
static uint64_t written_fold(uint64_t v)
{
	return v << 1 ^ (0 - (v >> 63));
}

static uint64_t unfold(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

void written_add(struct written *w, struct str form, const struct written_value *v, unsigned n, bool always)
{
	enum { NUMBER_MAX = 10 };
	char bytes[2 * NUMBER_MAX + WRITTEN_VALUES * (NUMBER_MAX + 1)], *p = bytes;
	p = written_put_number(p, (uint64_t)intern_str(&w->forms, form) << 1 | always);
	p = written_put_number(p, n);
	for (unsigned i = 0; i < n; i++) {
		p = written_put_number(p, written_fold((uint64_t)v[i].digits - (uint64_t)w->last[i]));
		*p++ = (char)v[i].decimals;
		w->last[i] = v[i].digits;
	}
	buf_put(&w->stream, bytes, (size_t)(p - bytes));
	w->n++;
}

bool written_next(struct written_reader *r, struct written_event *ev)
{
	const struct buf *b = &r->w->stream;
	if (r->at >= b->n)
		return false;
	uint64_t head = get_number(b, &r->at);
	ev->form = intern_get(&r->w->forms, (uint32_t)(head >> 1));
	ev->always = head & 1;
	ev->n = (unsigned)get_number(b, &r->at);
	for (unsigned i = 0; i < ev->n; i++) {
		r->last[i] = (int64_t)((uint64_t)r->last[i] + unfold(get_number(b, &r->at)));
		ev->value[i] = (struct written_value){r->last[i], (uint8_t)b->p[r->at++]};
	}
	return true;
}
