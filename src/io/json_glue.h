/* The text between two values of an object, learnt. A program writes all its objects alike: behind a time always comes
 * `, "dur": `. What json_member once read is kept, byte for byte, as a state of an automaton, whose edges say which text followed
 * which. One comparison then finds the same text again, in place of white space, comma, key and colon; the state says which key
 * stands there. Text that is not known yet is read by json_member, so that what is accepted, refused and repaired is the
 * same as without: tests/unit/test_json_glue.c and fuzz/fuzz_glue.c compare the two.
 *
 * Learnt is only what json_member read without a repair and without an escape. */
#ifndef OPSCOPE_IO_JSON_GLUE_H
#define OPSCOPE_IO_JSON_GLUE_H

#include "base/arena.h"
#include "io/json_near.h"

/* GLUE_TEXT: the longest text that is learnt, in bytes. GLUE_WAYS: how many texts are learnt to follow one. GLUE_STATES: how many are
 * learnt in all. */
enum { GLUE_TEXT = 64, GLUE_WAYS = 16, GLUE_STATES = 1024 };

struct json_glue_state {
	char text[GLUE_TEXT];
	uint8_t n;                       /* bytes of the text; 0 = a walk begins here */
	uint8_t least;                   /* the least byte that may follow the text: more white space may not */
	uint8_t member;                  /* the caller's; 0 in a new state */
	uint64_t skip;                   /* the mask of those of the first LANES bytes that are not of the text */
	/* NULL = none. */
	struct json_glue_state *next;    /* the first whose text followed the value here */
	struct json_glue_state *again;   /* the first whose text begins with the value here, see json_glue_keep */
	struct json_glue_state *other;   /* the next in the list of `next` or `again` that this one is in */
	struct json_glue_state *inside;  /* where the walk of an object begins that is the value */
	const void *known;         /* the caller's; NULL in a new state */
	struct str key;            /* LANES bytes can be read at key.p; p NULL: the object ends here */
	struct json_value value;   /* with which the text begins; raw.p NULL: with none */
	uint64_t version;          /* of the value: another one when the value changes, never that of another state, never 0 */
};

struct json_glue {
	struct json_glue_state *state; /* GLUE_STATES; [0]: a walk begins; [1]: what was read last is not learnt */
	struct json_glue_state *at;    /* the state of the text read last */
	struct arena keys;             /* owns the keys of states */
	unsigned n;                    /* states in use */
	uint64_t versions;             /* given so far */
};

void json_glue_init(struct json_glue *g);
void json_glue_release(struct json_glue *g);

/* A walk of an outermost object begins. */
static inline void json_glue_begin(struct json_glue *g)
{
	g->at = g->state;
}

/* A walk begins of the object that is the value of the key read last. When it has ended, the walk around it goes on. */
void json_glue_enter(struct json_glue *g);

/* json_member for text that is not known here; learns it. */
const char *json_glue_learn(struct json_glue *g, struct json *j, const char *p, bool *first, struct json_value *key);

/* Whether the text of a state stands at `p`. No text holds a 0 where it ends, so that none reaches into the padding of the window. */
static inline bool json_glue_stands(const struct json_glue_state *s, const char *p)
{
	if ((lanes_equal(lanes_at(s->text), lanes_at(p)) | s->skip) != lanes_up_to(LANES))
		return false;
	return (s->n <= LANES || lanes_same(s->text + LANES, p + LANES, s->n - LANES)) && (unsigned char)p[s->n] >= s->least;
}

/* The first state of the list that begins with `s` whose text stands at `p`; NULL = there is none. */
static inline struct json_glue_state *json_glue_find(struct json_glue_state *s, const char *p)
{
	while (s && !json_glue_stands(s, p))
		s = s->other;
	return s;
}

/* As json_member. *met: the state of the text read, which has the key, and what the caller knows of it; NULL when there is none, and only then is the key in *key. */
static inline const char *json_glue_member(struct json_glue *g, struct json *j, const char *p, bool *first, struct json_value *key, struct json_glue_state **met)
{
	struct json_glue_state *s = json_glue_find(g->at->next, p);
	if (!s) {
		p = json_glue_learn(g, j, p, first, key);
		*met = p && g->at->n ? g->at : NULL;
		return p;
	}
	g->at = s;
	*first = false;
	*met = s;
	return p + s->n;
}

/* Values that seldom change, such as a phase, need not be read again. json_glue_keep keeps the value that was read at `p`, behind
 * state `s`, with the text between `p` and `end`, where json_glue_member has come to. json_glue_again finds both again: the
 * position behind, with *met the state whose value stands here; or NULL, when another text does. */
enum json_glue_kept {
	GLUE_LAST,    /* the last value alone, in place of the one before */
	GLUE_EACH,    /* each value, up to GLUE_WAYS, with what follows it. For a member that says of what kind an object is */
};
void json_glue_keep(struct json_glue *g, struct json_glue_state *s, const char *p, const char *end, const struct json_value *v, enum json_glue_kept kept,
                    struct json_glue_state **met);

static inline const char *json_glue_again(struct json_glue *g, const char *p, struct json_glue_state **met)
{
	struct json_glue_state *s = json_glue_find((*met)->again, p);
	if (!s)
		return NULL;
	*met = g->at = s;
	return p + s->n;
}

#endif
