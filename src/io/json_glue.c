#include "io/json_glue.h"

#include "base/mem.h"

#include <assert.h>

enum { GLUE_BEGIN = 0, GLUE_LOST = 1 };

void json_glue_init(struct json_glue *g)
{
	*g = (struct json_glue){.state = NEW_ARRAY(GLUE_STATES, struct json_glue_state), .n = 2};
}

void json_glue_release(struct json_glue *g)
{
	mem_free(g->state);
	arena_release(&g->keys);
	*g = (struct json_glue){0};
}

/* A new state, or GLUE_LOST when there is no room. */
static uint16_t glue_state(struct json_glue *g)
{
	return g->n < GLUE_STATES ? (uint16_t)g->n++ : GLUE_LOST;
}

void json_glue_enter(struct json_glue *g)
{
	struct json_glue_state *s = &g->state[g->at];
	if (g->at != GLUE_LOST && !s->inside)
		s->inside = glue_state(g);
	g->at = g->at == GLUE_LOST ? GLUE_LOST : s->inside;
}

/* A copy of the key that LANES bytes can be read from. */
static struct str glue_key(struct json_glue *g, struct str key)
{
	char *copy = arena_alloc(&g->keys, key.n + LANES);
	memcpy(copy, key.p, key.n);
	return (struct str){copy, key.n};
}

/* The end of the list that begins at *way, where the next state is entered, and in *n how many are in it. */
static uint16_t *list_end(struct json_glue *g, uint16_t *way, unsigned *n)
{
	for (*n = 0; *way; ++*n)
		way = &g->state[*way].other;
	return way;
}

const char *json_glue_learn(struct json_glue *g, struct json *j, const char *p, bool *first, struct json_value *key)
{
	const char *text = p;
	unsigned repairs = j->repairs, n_ways;
	j->repairs = 0;
	p = json_member(j, p, first, key);
	bool plain = p && !j->repairs && p <= j->end && p - text <= GLUE_TEXT && !(key->raw.p && key->escaped);
	j->repairs |= repairs;
	uint16_t *way = list_end(g, &g->state[g->at].next, &n_ways);
	uint16_t learnt = plain && g->at != GLUE_LOST && n_ways < GLUE_WAYS ? glue_state(g) : GLUE_LOST;
	g->at = learnt;
	if (learnt == GLUE_LOST)
		return p;
	assert(p > text && p[-1]);
	struct json_glue_state *s = &g->state[learnt];
	s->n = (uint8_t)(p - text);
	memcpy(s->text, text, s->n);
	s->key = key->raw.p ? glue_key(g, key->raw) : (struct str){NULL, 0};
	*way = learnt;
	return p;
}

void json_glue_keep(struct json_glue *g, struct json_glue_state *s, const char *p, const char *end, const struct json_value *v, enum json_glue_kept kept,
                    struct json_glue_state **met)
{
	bool plain = (v->type == JSON_STRING && !v->escaped) || v->type == JSON_NUMBER;
	size_t n = (size_t)(end - p);
	if (g->at <= GLUE_LOST || !plain || n > GLUE_TEXT)
		return;
	unsigned n_ways;
	uint16_t *way = list_end(g, &s->again, &n_ways), at = s->again;
	if (kept == GLUE_EACH || !at) {
		at = n_ways < GLUE_WAYS ? glue_state(g) : GLUE_LOST;
		if (at == GLUE_LOST)
			return;
		*way = at;
	}
	struct json_glue_state *c = &g->state[at];
	struct str key = g->state[g->at].key;
	/* The texts that followed another value may follow this one, too. What the caller knows of the key stays only where the key does. */
	if (c->key.p != key.p) {
		c->key = key;
		c->member = 0;
		c->known = NULL;
	}
	assert(v->raw.p >= p && v->raw.p + v->raw.n <= end && end[-1]);
	memcpy(c->text, p, n);
	c->n = (uint8_t)n;
	c->value = (struct json_value){v->type, false, {c->text + (v->raw.p - p), v->raw.n}};
	c->version = ++g->versions;
	g->at = at;
	*met = c;
}
