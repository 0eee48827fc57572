#include "store/guess.h"

#include "base/mem.h"

enum {
	GUESS_LEFT_MOST = 64,  /* of GUESS_PARENT: a code below counts levels to pop from the last range; 64: no parent; 64 + n: the parent is n rows before */
	GUESS_AWAY = 2,        /* of the others: 0 is the guess, and any other row is 2 more; so ROW_NONE is 1 */
};

static const struct guess guess_rows[] = {
#define GUESS_OFFSET_(structname, column) GUESS_OFFSET_2_(structname, column)
#define GUESS_OFFSET_2_(structname, column) offsetof(struct structname, column)
#define NO rows
#define GUESS(table, structname, column, turn, klass, like, at, how) \
	{TABLE_##table, GUESS_OFFSET_(structname, column), turn, GUESS_OFFSET_(structname, klass), \
	 GUESS_OFFSET_(structname, like), GUESS_OFFSET_(structname, at), GUESS_##how},
#include "store/guess.def"
#undef GUESS
#undef NO
};

/* Helpers have the types of struct packed_column, or are NO: struct rows, which stands first in each table. */
#define NO rows
#define GUESS_IS_(structname, column, type) GUESS_IS_2_(structname, column, type)
#define GUESS_IS_2_(structname, column, type) _Generic(((struct structname *)0)->column, type *: true, struct rows: true, default: false)
#define GUESS(table, structname, column, turn, klass, like, at, how) \
	_Static_assert(GUESS_IS_(structname, klass, uint8_t), "a class of " #table "." #column " is uint8_t"); \
	_Static_assert(GUESS_IS_(structname, like, int64_t), "what " #table "." #column " is like is int64_t"); \
	_Static_assert(GUESS_IS_(structname, at, uint32_t), "rows of what " #table "." #column " is like are uint32_t");
#include "store/guess.def"
#undef GUESS
#undef NO

struct guess guess_of(enum store_table_id table, const struct store_column *c)
{
	for (size_t i = 0; i < sizeof guess_rows / sizeof *guess_rows; i++)
		if (guess_rows[i].table == table && guess_rows[i].column == c->offset)
			return guess_rows[i];
	return (struct guess){.table = table, .column = c->offset, .turn = 1};
}

static const void *guess_helper(const struct profile *p, const struct guess *g, size_t offset)
{
	return offset ? *(void **)((char *)profile_table(p, g->table) + offset) : NULL;
}

void guess_classes_release(struct guess_classes *k)
{
	mem_free(k->split);
	*k = (struct guess_classes){0};
}

struct packed_column guess_column(const struct profile *p, const struct guess *g, const struct store_column *c, void *data, uint32_t n, struct guess_classes *k)
{
	struct packed_column out = {.data = data, .size = c->size, .none = -1, .n = n};
	if (c->size == sizeof(int64_t))
		out.none = ID_NONE;
	else if (c->type == ST_I32_NONE)
		out.none = INT32_MIN;
	const uint8_t *klass = guess_helper(p, g, g->klass);
	if (klass && klass != k->klass) {
		guess_classes_release(k);
		*k = (struct guess_classes){klass, packed_split(klass, n)};
	}
	out.split = klass ? k->split : NULL;
	out.like = guess_helper(p, g, g->like);
	out.at = guess_helper(p, g, g->at);
	return out;
}

/* ---- the parent: how many ranges were left since the row before ---- */

static uint32_t *guess_parent_codes(const uint8_t *kind, const uint32_t *parent, uint32_t n)
{
	uint32_t *code = NEW_ARRAY_RAW(n, uint32_t), open = ROW_NONE;
	for (uint32_t i = 0; i < n; i++) {
		bool nests = span_nests(kind[i]);
		uint32_t at = nests ? open : ROW_NONE, left = 0;
		if (parent[i] != ROW_NONE && (parent[i] >= i || i - parent[i] > UINT32_MAX - GUESS_LEFT_MOST)) {
			mem_free(code);
			return NULL;
		}
		for (; at != parent[i] && at != ROW_NONE && left < GUESS_LEFT_MOST; left++)
			at = parent[at];
		if (at == parent[i] && left < GUESS_LEFT_MOST)
			code[i] = left;
		else
			code[i] = GUESS_LEFT_MOST + (parent[i] == ROW_NONE ? 0 : i - parent[i]);
		open = nests ? i : open;
	}
	return code;
}

static bool guess_parents(const uint8_t *kind, uint32_t *parent, uint32_t n)
{
	uint32_t open = ROW_NONE;
	for (uint32_t i = 0; i < n; i++) {
		bool nests = span_nests(kind[i]);
		uint32_t at = nests ? open : ROW_NONE, left = parent[i];
		if (left >= GUESS_LEFT_MOST) {
			left -= GUESS_LEFT_MOST;
			if (left > i)
				return false;
			at = left ? i - left : ROW_NONE;
		} else {
			for (; left && at != ROW_NONE; left--)
				at = parent[at]; /* before it, so the loop ends */
		}
		parent[i] = at;
		open = nests ? i : open;
	}
	return true;
}

/* ---- ops: where they are not what is guessed ---- */

static uint32_t guess_nearest_op(const uint32_t *parent, const uint8_t *kind, const uint32_t *op, uint32_t i)
{
	const uint32_t around = parent[i];
	if (around >= i) /* none; no other stands behind */
		return ROW_NONE;
	return kind[around] == SPAN_OP ? around : op[around];
}

static uint32_t guess_launcher(const struct profile *p, uint32_t i)
{
	uint32_t call = p->gpu_op.call[i];
	return call < p->span.rows.n ? p->span.op[call] : ROW_NONE;
}

bool guess_has_helpers(const struct profile *p, const struct guess *g)
{
	switch (g->how) {
	case GUESS_PARENT: return p->span.kind;
	case GUESS_OP: return p->span.kind && p->span.parent;
	case GUESS_LAUNCHER: return p->span.op && p->gpu_op.call;
	case GUESS_VALUES: break;
	}
	return false;
}

uint32_t *guess_codes(const struct profile *p, const struct guess *g, const uint32_t *data, uint32_t n)
{
	if (!guess_has_helpers(p, g))
		return NULL;
	if (g->how == GUESS_PARENT)
		return guess_parent_codes(p->span.kind, data, n);
	uint32_t *code = NEW_ARRAY_RAW(n, uint32_t);
	bool all = true;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t guess = g->how == GUESS_OP ? guess_nearest_op(p->span.parent, p->span.kind, data, i) : guess_launcher(p, i);
		code[i] = data[i] == guess ? 0 : data[i] + GUESS_AWAY;
		all &= data[i] == guess || code[i] != 0;
	}
	if (all)
		return code;
	mem_free(code);
	return NULL;
}

static void guess_ops(const struct spans *s, uint32_t *op, uint32_t n)
{
	const uint32_t *parent = s->parent;
	const uint8_t *kind = s->kind;
	for (uint32_t i = 0; i < n; i++)
		op[i] = op[i] ? op[i] - GUESS_AWAY : guess_nearest_op(parent, kind, op, i);
}

bool guess_values(const struct profile *p, const struct guess *g, uint32_t *data, uint32_t n)
{
	if (g->how == GUESS_PARENT)
		return guess_parents(p->span.kind, data, n);
	if (g->how == GUESS_OP)
		guess_ops(&p->span, data, n);
	else
		for (uint32_t i = 0; i < n; i++)
			data[i] = data[i] ? data[i] - GUESS_AWAY : guess_launcher(p, i);
	return true;
}
