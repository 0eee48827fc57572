#include "input/kineto/kineto_event.h"

static struct kineto_key *key_find(struct kineto *k, struct str name)
{
	unsigned at = key_slot(name);
	while (k->key[at].name.p && !(k->key[at].name.n == name.n && same_text(k->key[at].name.p, name.p, name.n)))
		at = (at + 1) & (KEY_SLOTS - 1);
	return &k->key[at];
}

/* A copy of a key's name that 8 bytes can be read from. */
static struct str key_text(struct kineto *k, struct str name)
{
	char *p = arena_alloc(&k->names_arena, name.n + 8);
	memcpy(p, name.p, name.n);
	return (struct str){p, name.n};
}

static bool kineto_args_is_whole(enum arg_field f)
{
	return f < FIELD_DROP && f != FIELD_GRID && f != FIELD_BLOCK && f != FIELD_BLOCKS_PER_SM && f != FIELD_WARPS_PER_SM && f != FIELD_OCCUPANCY;
}

static void key_add(struct kineto *k, const char *text, enum arg_field field, unsigned kinds)
{
	char padded[64] = {0};
	memcpy(padded, text, strlen(text));
	uint32_t id = intern_str(&k->p->strings, str_from(text));
	struct kineto_key *key = key_find(k, (struct str){padded, strlen(text)});
	*key = (struct kineto_key){key_text(k, str_from(text)), id, (uint16_t)kinds, (uint8_t)field, kineto_args_is_whole(field)};
	k->n_keys++;
}

void kineto_args_init(struct kineto *k)
{
#define ARG(text, field, kinds) key_add(k, text, FIELD_##field, kinds);
#define ALIAS(text, field, kinds) ARG(text, field, kinds)
#define DROP(text, kinds) \
	if (!k->p->keeps_function_ids || !str_eqc(STR(text), arg_key_text[ARG_FUNCTION_ID])) \
		key_add(k, text, FIELD_DROP, kinds);
#include "input/kineto/kineto_args.def"
#undef ARG
#undef ALIAS
#undef DROP
}

/* The key's entry; names not seen before are entered, as long as there is room. *spare serves when there is none. */
static const struct kineto_key *key_get(struct kineto *k, struct str name, struct kineto_key *spare)
{
	struct kineto_key *key = name.n ? key_find(k, name) : spare;
	if (key != spare && key->name.p)
		return key;
	uint32_t id = intern_str(&k->p->strings, name);
	if (key == spare || k->n_keys >= KEY_SLOTS / 2) {
		*spare = (struct kineto_key){name, id, 0, FIELD_TEXT, false};
		return spare;
	}
	k->n_keys++;
	*key = (struct kineto_key){key_text(k, name), id, 0, FIELD_TEXT, false};
	return key;
}

static bool read_triple(struct str raw, int32_t v[3])
{
	const char *p = raw.p + 1, *end = raw.p + raw.n;
	if (raw.n < 2 || raw.p[0] != '[')
		return false;
	for (int i = 0; i < 3; i++) {
		while (p < end && ((unsigned char)*p <= ' ' || *p == ','))
			p++;
		int64_t x = 0;
		const char *digits = p;
		while (p < end && *p >= '0' && *p <= '9' && x < INT32_MAX)
			x = x * 10 + (*p++ - '0');
		if (p == digits || x > INT32_MAX)
			return false;
		v[i] = (int32_t)x;
	}
	return true;
}

/* Stores an argument in its field; false when the value is not of the field's kind: it is then kept as text. */
static bool set_field(struct event *ev, enum arg_field f, const struct json_value *v)
{
	if (f == FIELD_DROP || v->type == JSON_NULL)
		return true;
	bool ok;
	switch (f) {
	case FIELD_GRID:
		ok = v->type == JSON_ARRAY && read_triple(v->raw, ev->grid);
		break;
	case FIELD_BLOCK:
		ok = v->type == JSON_ARRAY && read_triple(v->raw, ev->block);
		break;
	case FIELD_BLOCKS_PER_SM:
	case FIELD_WARPS_PER_SM:
	case FIELD_OCCUPANCY:
		ok = json_to_f64(v->raw, &ev->real[f]);
		break;
	default:
		ok = (v->type == JSON_NUMBER || v->type == JSON_STRING) && json_to_i64(v->raw, &ev->num[f]);
	}
	if (ok)
		ev->fields |= 1ull << f;
	return ok;
}

/* An argument that is no field. */
static void kineto_args_keep(struct kineto *k, struct event *ev, const struct kineto_key *key, uint32_t value, bool is_string)
{
	if (ev->ph == 'M' && (key->id == k->id_name || key->id == k->id_labels))
		ev->meta_name = value;
	if (ev->n_pairs == MAX_ARGS) {
		diag_add(&k->p->diags, "too-many-args", DIAG_LOSS, k->offset, "an event has more than %d arguments", MAX_ARGS);
		return;
	}
	k->pair[ev->n_pairs++] = (struct arg_pair){key->id, value, is_string};
}

/* Where a value is kept. Events of one name mostly have the same shapes and types, above all when the argument before is the same, too. */
static inline struct kineto_value_slot *kineto_args_value_slot_of(struct kineto *k, const struct event *ev, const struct json_glue_state *met)
{
	uint64_t h = (uint64_t)(met - k->glue.state) << 40 ^ ev->name_mark ^ (ev->n_pairs ? k->pair[ev->n_pairs - 1].value : 0);
	return &k->value[h * 0x9e3779b97f4a7c15u >> 32 & (VALUE_SLOTS - 1)];
}

/* The position behind the value at `p`, if it is the one of the slot; else NULL. The bytes alone decide: an array or object ends where it ended before,
 * and a string without a back-slash at the next quote. */
static inline const char *kineto_args_value_again(const struct kineto *k, const struct kineto_value_slot *slot, const char *p)
{
	if (!slot->n || k->j.end - p < (ptrdiff_t)slot->n + 2 || (slot->is_string && (p[0] != '"' || p[slot->n + 1] != '"')))
		return NULL;
	return lanes_same_within(slot->text, p + slot->is_string, slot->n) ? p + slot->n + 2 * slot->is_string : NULL;
}

/* The object of arguments at p. Kinds decide which arguments are fields. */
const char *kineto_args(struct kineto *k, const char *p, struct event *ev, unsigned kind)
{
	ev->args_read = true;
	if (*p != '{')
		return json_skip(&k->j, p);
	bool first = true;
	p++;
	ev->name_mark = ev->name.n ? kineto_mark_of(ev->name) : 0;
	json_glue_enter(&k->glue);
	for (;;) {
		struct json_value name, v;
		struct json_glue_state *met;
		p = json_glue_member(&k->glue, &k->j, p, &first, &name, &met);
		if (met)
			name.raw = met->key;
		if (!p || !name.raw.p)
			return p;
		const char *value = p;
		const struct kineto_key *known = met ? met->known : NULL;
		struct kineto_value_slot unused = {0}, *slot = &unused;
		if (known && known->whole && (known->kinds & kind)) {
			if ((p = json_near_whole(&k->j, value, &ev->num[known->field]))) {
				ev->fields |= 1ull << known->field;
				continue;
			}
		} else if (known && (known->kinds & kind) && (known->field == FIELD_GRID || known->field == FIELD_BLOCK)) {
			if ((p = json_near_triple(&k->j, value, known->field == FIELD_GRID ? ev->grid : ev->block))) {
				ev->fields |= 1ull << known->field;
				continue;
			}
		} else if (known && !(known->kinds & kind)) {
			slot = kineto_args_value_slot_of(k, ev, met);
			if ((p = kineto_args_value_again(k, slot, value))) {
				kineto_args_keep(k, ev, known, slot->id, slot->is_string);
				continue;
			}
		}
		p = json_near_value(&k->j, value, &v);
		if (!p)
			return NULL;
		struct kineto_key spare;
		const struct kineto_key *key = known ? known : key_get(k, name.raw, &spare);
		if (met && key != &spare)
			met->known = key;
		if ((key->kinds & kind) && set_field(ev, key->field, &v))
			continue;
		kineto_args_keep(k, ev, key, kineto_intern_kept(k, &v, slot), v.type == JSON_STRING);
	}
}
