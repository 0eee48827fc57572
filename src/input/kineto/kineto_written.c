/* One event as it was written: its text, made valid where it was not, with numbers taken out. */
#include "base/mem.h"
#include "input/kineto/kineto_event.h"
#include "io/json_valid.h"
#include "store/written.h"

struct copier {
	struct kineto *k;
	struct json j;
	struct buf *out;
	struct buf *scratch;
	struct written_value *value;
	unsigned n;
};

/* "123" or "-12.50", whose digits fit an int64, without leading zeros: so that it can be written back as it was. */
static bool kineto_written_read_number(struct str raw, struct written_value *v)
{
	const char *p = raw.p, *end = raw.p + raw.n;
	bool negative = p < end && *p == '-';
	p += negative;
	if (p >= end || end - p > 20 || *p < '0' || *p > '9' || (*p == '0' && p + 1 < end && p[1] != '.'))
		return false;
	int64_t digits = 0;
	bool overflow = false;
	const char *point = NULL;
	for (; p < end; p++) {
		if (*p == '.' && !point)
			point = p;
		else if (*p >= '0' && *p <= '9')
			overflow |= __builtin_mul_overflow(digits, 10, &digits) || __builtin_add_overflow(digits, *p - '0', &digits);
		else
			return false;
	}
	ptrdiff_t decimals = point ? end - point - 1 : 0;
	if (overflow || (point && !decimals) || decimals > 9 || (negative && !digits))
		return false;
	*v = (struct written_value){negative ? -digits : digits, (uint8_t)decimals};
	return true;
}

static bool kineto_written_take_number(struct copier *c, struct str raw)
{
	if (c->n == WRITTEN_VALUES || !kineto_written_read_number(raw, &c->value[c->n]))
		return false;
	buf_char(c->out, c->value[c->n++].decimals ? WRITTEN_DECIMAL : WRITTEN_WHOLE);
	return true;
}

/* The same few shapes and lists come again and again. */
static void put_container(struct copier *c, struct str raw)
{
	enum { MEMO_MAX = 4096 };
	struct kineto *k = c->k;
	if (raw.n > MEMO_MAX) {
		json_put_valid(c->out, raw, c->scratch);
		return;
	}
	uint32_t id = intern_str(&k->values, raw);
	while (k->n_value_texts <= id)
		MEM_PUSH(k->value_text, k->n_value_texts, k->cap_value_texts, (struct str){NULL, 0});
	if (!k->value_text[id].p) {
		size_t before = c->out->n;
		json_put_valid(c->out, raw, c->scratch);
		k->value_text[id] = arena_str(&k->value_arena, (struct str){c->out->p + before, c->out->n - before});
		return;
	}
	buf_str(c->out, k->value_text[id]);
}

static void kineto_written_put_value(struct copier *c, const struct json_value *v)
{
	switch (v->type) {
	case JSON_STRING:
		buf_char(c->out, '"');
		if (v->escaped || !kineto_written_take_number(c, v->raw)) {
			c->out->n--;
			json_put_raw(c->out, v->raw, c->scratch);
			break;
		}
		buf_char(c->out, '"');
		break;
	case JSON_NUMBER:
		if (!kineto_written_take_number(c, v->raw))
			json_put_valid(c->out, v->raw, c->scratch);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		put_container(c, v->raw);
		break;
	default:
		json_put_valid(c->out, v->raw, c->scratch);
	}
}

/* The members of the object at p, and of the objects in it down to `depth` more levels; behind it, or NULL. */
static const char *put_object(struct copier *c, const char *p, int depth, bool *is_metadata)
{
	bool first = true;
	char separator = '{';
	struct json_value key, v;
	for (p++; (p = json_member(&c->j, p, &first, &key)) && key.raw.p; separator = ',') {
		buf_char(c->out, separator);
		json_put_raw(c->out, key.raw, c->scratch);
		buf_char(c->out, ':');
		if (*p == '{' && depth) {
			p = put_object(c, p, depth - 1, is_metadata);
		} else if ((p = json_value(&c->j, p, &v))) {
			*is_metadata |= str_eq(key.raw, STR("ph")) && str_eq(v.raw, STR("M"));
			kineto_written_put_value(c, &v);
		}
		if (!p)
			return NULL;
	}
	if (separator == '{')
		buf_char(c->out, '{');
	buf_char(c->out, '}');
	return p;
}

void kineto_keep_written(struct kineto *k, struct str text)
{
	struct written_value value[WRITTEN_VALUES];
	struct copier c = {.k = k, .j = {.end = text.p + text.n}, .out = &k->form, .scratch = &k->scratch, .value = value};
	bool is_metadata = false;
	buf_clear(&k->form);
	put_object(&c, text.p, 1, &is_metadata);
	written_add(k->p->written, buf_view(&k->form), value, c.n, is_metadata);
}

void kineto_written_init(struct kineto *k)
{
	k->p->written = written_new();
	intern_init(&k->values);
}

void kineto_written_release(struct kineto *k)
{
	buf_release(&k->form);
	if (!k->p->written)
		return;
	intern_release(&k->values);
	mem_free(k->value_text);
	arena_release(&k->value_arena);
}
