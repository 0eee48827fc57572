#include "io/json_glue.h"

#include "base/mem.h"

#include <assert.h>

/* What was read last is not learnt. */
static struct json_glue_state *glue_lost(const struct json_glue *g)
{
	return &g->state[1];
}

void json_glue_init(struct json_glue *g)
{
	*g = (struct json_glue){.state = NEW_ARRAY(GLUE_STATES, struct json_glue_state), .n = 2};
	json_glue_begin(g);
}

void json_glue_release(struct json_glue *g)
{
	mem_free(g->state);
	arena_release(&g->keys);
	*g = (struct json_glue){0};
}

/* A new state, or glue_lost when there is no room. */
static struct json_glue_state *glue_state(struct json_glue *g)
{
	return g->n < GLUE_STATES ? &g->state[g->n++] : glue_lost(g);
}

void json_glue_enter(struct json_glue *g)
{
	struct json_glue_state *s = g->at;
	if (s != glue_lost(g) && !s->inside)
		s->inside = glue_state(g);
	g->at = s == glue_lost(g) ? s : s->inside;
}

/* A copy of the key that LANES bytes can be read from. */
static struct str glue_key(struct json_glue *g, struct str key)
{
	char *copy = arena_alloc(&g->keys, key.n + LANES);
	memcpy(copy, key.p, key.n);
	return (struct str){copy, key.n};
}

/* The end of the list that begins at *way, where the next state is entered, and in *n how many are in it. */
static struct json_glue_state **list_end(struct json_glue_state **way, unsigned *n)
{
	for (*n = 0; *way; ++*n)
		way = &(*way)->other;
	return way;
}

static void glue_text(struct json_glue_state *s, const char *text, size_t n)
{
	memcpy(s->text, text, n);
	s->n = (uint8_t)n;
	s->skip = n < LANES ? lanes_up_to(LANES) & ~lanes_up_to((unsigned)n) : 0;
}

static void glue_leads_to(struct json_glue_state *s, struct str key)
{
	s->key = key;
	s->least = key.p ? ' ' + 1 : 0;
}

const char *json_glue_learn(struct json_glue *g, struct json *j, const char *p, bool *first, struct json_value *key)
{
	const char *text = p;
	unsigned repairs = j->repairs, n_ways;
	j->repairs = 0;
	p = json_member(j, p, first, key);
	bool plain = p && !j->repairs && p <= j->end && p - text <= GLUE_TEXT && !(key->raw.p && key->escaped);
	j->repairs |= repairs;
	struct json_glue_state **way = list_end(&g->at->next, &n_ways);
	struct json_glue_state *s = plain && g->at != glue_lost(g) && n_ways < GLUE_WAYS ? glue_state(g) : glue_lost(g);
	g->at = s;
	if (s == glue_lost(g))
		return p;
	assert(p > text && p[-1]);
	glue_text(s, text, (size_t)(p - text));
	glue_leads_to(s, key->raw.p ? glue_key(g, key->raw) : (struct str){NULL, 0});
	*way = s;
	return p;
}

void json_glue_keep(struct json_glue *g, struct json_glue_state *s, const char *p, const char *end, const struct json_value *v, enum json_glue_kept kept,
                    struct json_glue_state **met)
{
	bool plain = (v->type == JSON_STRING && !v->escaped) || v->type == JSON_NUMBER;
	size_t n = (size_t)(end - p);
	if (!g->at->n || !plain || n > GLUE_TEXT)
		return;
	unsigned n_ways;
	struct json_glue_state **way = list_end(&s->again, &n_ways), *c = s->again;
	if (kept == GLUE_EACH || !c) {
		c = n_ways < GLUE_WAYS ? glue_state(g) : glue_lost(g);
		if (c == glue_lost(g))
			return;
		*way = c;
	}
	struct str key = g->at->key;
	/* The texts that followed another value may follow this one, too. What the caller knows of the key stays only where the key does. */
	if (c->key.p != key.p) {
		glue_leads_to(c, key);
		c->member = 0;
		c->known = NULL;
	}
	assert(v->raw.p >= p && v->raw.p + v->raw.n <= end && end[-1]);
	glue_text(c, p, n);
	c->value = (struct json_value){v->type, false, {c->text + (v->raw.p - p), v->raw.n}};
	c->version = ++g->versions;
	*met = g->at = c;
}
