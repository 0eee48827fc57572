#include "input/kineto/kineto_reader.h"

#include "base/mem.h"
#include "base/search.h"

void kineto_note_repairs(struct kineto *k, unsigned repairs)
{
	struct diags *d = &k->p->diags;
	if (repairs & JSON_REPAIR_CONTROL)
		diag_add(d, "control-character", DIAG_REPAIR, k->offset, "a string holds a raw control character");
	if (repairs & JSON_REPAIR_ESCAPE)
		diag_add(d, "bad-escape", DIAG_REPAIR, k->offset,
		         "a string holds back-slashes that are no JSON escapes (a Windows path?): they were kept as they are");
	if (repairs & JSON_REPAIR_BARE)
		diag_add(d, "bare-word", DIAG_REPAIR, k->offset, "a value is a bare word such as N/A or NaN: it was taken as text");
	if (repairs & JSON_REPAIR_COMMA)
		diag_add(d, "extra-comma", DIAG_REPAIR, k->offset, "a comma stands before a closing bracket");
	if (repairs & JSON_REPAIR_UTF16)
		diag_add(d, "bad-surrogate", DIAG_REPAIR, k->offset, "a \\u escape is half of a pair: it reads as U+FFFD");
}

bool kineto_has_control(struct str s)
{
	return ANY_WHERE(i, 0, s.n, (unsigned char)s.p[i] < ' ');
}

/* As intern_str among the profile's strings. A text that was met not long ago needs no hash of all its bytes. */
static uint32_t kineto_text_intern(struct kineto *k, struct str raw)
{
	if (raw.n < 8 || raw.n > UINT32_MAX)
		return intern_str(&k->p->strings, raw);
	struct kineto_text_slot *slot = &k->text[kineto_mark_of(raw) * 0x9e3779b97f4a7c15u >> 32 & (TEXT_SLOTS - 1)];
	if (slot->n == raw.n && lanes_same_within(slot->text, raw.p, raw.n))
		return slot->id;
	uint32_t id = intern_str(&k->p->strings, raw);
	struct str kept = intern_get(&k->p->strings, id);
	*slot = (struct kineto_text_slot){kept.p, (uint32_t)kept.n, id};
	return id;
}

uint32_t kineto_intern_raw(struct kineto *k, struct str raw, bool escaped)
{
	struct intern *t = &k->p->strings;
	if (escaped) {
		unsigned repairs = 0;
		buf_clear(&k->scratch);
		json_unescape(raw, &k->scratch, &repairs);
		if (repairs)
			kineto_note_repairs(k, repairs);
		return intern_put(t, k->scratch.p, k->scratch.n);
	}
	uint32_t before = t->n;
	uint32_t id = kineto_text_intern(k, raw);
	if (t->n > before && kineto_has_control(raw)) {
		kineto_cannot_join(k); /* noted once of each string */
		kineto_note_repairs(k, JSON_REPAIR_CONTROL);
	}
	return id;
}

/* The same few texts come again and again, so each is brought onto one line once. *kept: the text as it is written. */
static uint32_t kineto_text_intern_one_line(struct kineto *k, struct str raw, struct str *kept)
{
	uint32_t before = k->long_forms.n, at = intern_str(&k->long_forms, raw);
	*kept = intern_get(&k->long_forms, at);
	if (k->long_forms.n == before)
		return k->short_forms[at];
	buf_clear(&k->scratch);
	json_one_line(raw, &k->scratch);
	MEM_GROW(k->short_forms, k->cap_short_forms, at + 1);
	return k->short_forms[at] = intern_put(&k->p->strings, k->scratch.p, k->scratch.n);
}

uint32_t kineto_intern_kept(struct kineto *k, const struct json_value *v, struct kineto_value_slot *slot)
{
	enum { SHORTEST = 8 };
	const bool container = v->type == JSON_ARRAY || v->type == JSON_OBJECT, string = v->type == JSON_STRING;
	struct str kept;
	uint32_t id;
	if (container && memchr(v->raw.p, '\n', v->raw.n)) {
		id = kineto_text_intern_one_line(k, v->raw, &kept);
	} else {
		id = string ? kineto_intern_raw(k, v->raw, v->escaped) : container ? kineto_text_intern(k, v->raw) : intern_str(&k->p->strings, v->raw);
		kept = intern_get(&k->p->strings, id);
	}
	if ((container || (string && !v->escaped)) && kept.n == v->raw.n && kept.n >= SHORTEST)
		*slot = (struct kineto_value_slot){kept.p, (uint32_t)kept.n, id, string};
	return id;
}

uint32_t kineto_intern(struct kineto *k, const struct json_value *v)
{
	struct kineto_value_slot unused;
	return kineto_intern_kept(k, v, &unused);
}

bool kineto_looks_like_event(const char *begin, const char *p)
{
	static const char *const keys[] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "s", "bp"};
	const char *before = p;
	while (before > begin && (unsigned char)before[-1] <= ' ')
		before--;
	if (before == begin || (before[-1] != ',' && before[-1] != '[' && before[-1] != '}'))
		return false;
	p = json_space(p + 1);
	if (*p != '"')
		return false;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		size_t n = strlen(keys[i]);
		if (memcmp(p + 1, keys[i], n) == 0 && p[n + 1] == '"')
			return true;
	}
	return false;
}
