#include "render/text_room.h"

#include "base/mem.h"

#include <sys/param.h>

/* Text is not cut below this many cells, nor the first text column, which names the row, below MIN_NAME or a third of the
 * terminal; sentences that answer need MIN_HINT. */
enum { MIN_WIDE = 12, MIN_TEXT = 16, MIN_STACK = 32, MIN_HINT = 24, MIN_NAME = 40 };

/* Where several texts are the key of the rows, each may be cut to its part of so much of the terminal: measures need the rest. */
enum { KEYS_PERCENT = 60 };

/* In the order in which columns get room. */
enum render_text_room_rank { RANK_MUST, RANK_KEY, RANK_PLAIN, RANK_MINOR, RANK_ZERO, RANK_CONSTANT, RANK_EMPTY, RANKS };

/* What room a column is given: all that it wants; what it needs for its rows to be told apart; the least. */
enum room { ROOM_WHOLE, ROOM_DISTINCT, ROOM_LEAST, ROOMS };

/* The column that names the rows and so must stay: the first text that is not the same in all, preferably a COLUMN_ANSWER. */
static unsigned name_column(const struct text_layout *l, const struct table *t)
{
	unsigned best = 0;
	int most = -1;
	for (unsigned i = 0; i < l->n_all; i++) {
		const struct text_column *c = &l->v[i];
		const struct column *col = &t->data[c->col].col;
		int telling = col->type != CELL_STR ? 0 : c->constant || c->empty ? 1 : col->flags & COLUMN_ANSWER ? 3 : 2;
		if (telling > most) {
			most = telling;
			best = i;
		}
	}
	return best;
}

static enum render_text_room_rank render_text_room_rank_of(const struct text_column *c, unsigned flags, bool name)
{
	bool tells = !c->empty && !c->constant;
	if (name || (flags & COLUMN_ASKED) || ((flags & COLUMN_GROUP) && tells))
		return RANK_MUST;
	if (c->empty)
		return RANK_EMPTY;
	if (c->zero)
		return RANK_ZERO;
	if (c->constant)
		return RANK_CONSTANT;
	return flags & COLUMN_ANSWER ? RANK_KEY : flags & COLUMN_MINOR ? RANK_MINOR : RANK_PLAIN;
}

static size_t least_width(const struct text_column *c, const struct column *col, size_t width)
{
	size_t whole = MAX(c->body, c->word);
	if (col->type != CELL_STR)
		return whole;
	size_t least = col->flags & COLUMN_WIDE ? MIN_WIDE : MIN_TEXT;
	if (c->key)
		least = MIN(MIN_NAME, width / 3);
	else if (c->stack)
		least = MIN_STACK;
	else if ((col->flags & COLUMN_WIDE) && (col->flags & (COLUMN_ANSWER | COLUMN_GROUP)))
		least = MIN(MIN_HINT, width / 4);
	if (c->key_part)
		least = MIN(least, MAX(c->key_part, MIN_WIDE));
	return MIN(whole, MAX(least, 1));
}

static size_t room_of(const struct text_column *c, const struct table *t, size_t width, enum room room)
{
	const struct column *col = &t->data[c->col].col;
	size_t whole = MAX(c->body, c->word);
	if (col->type != CELL_STR)
		return whole;
	if (room == ROOM_WHOLE)
		return MIN(whole, width);
	return room == ROOM_DISTINCT ? c->distinct : least_width(c, col, width);
}

static bool render_text_room_fits(const struct text_layout *l, const struct table *t, size_t width, enum room room)
{
	size_t sum = 0;
	for (unsigned i = 0; i < l->n_all; i++)
		if (l->v[i].shown)
			sum += room_of(&l->v[i], t, width, room) + (sum ? TEXT_GAP : 0);
	return sum <= width;
}

/* Gives each column room while there is some, the most important first; where one is left out, narrower ones after it need
 * not be, except those that show nothing. */
static void choose_shown(struct text_layout *l, const struct table *t, size_t width)
{
	static const enum room rooms[RANKS] = {
		[RANK_MUST] = ROOM_LEAST, [RANK_KEY] = ROOM_LEAST, [RANK_PLAIN] = ROOM_DISTINCT, [RANK_MINOR] = ROOM_DISTINCT,
		[RANK_ZERO] = ROOM_WHOLE, [RANK_CONSTANT] = ROOM_WHOLE, [RANK_EMPTY] = ROOM_WHOLE,
	};
	unsigned name = name_column(l, t);
	bool all = true;
	for (enum render_text_room_rank rank = RANK_MUST; rank < RANKS; rank++)
		for (unsigned i = 0; i < l->n_all; i++) {
			struct text_column *c = &l->v[i];
			if (render_text_room_rank_of(c, t->data[c->col].col.flags, i == name) != rank)
				continue;
			c->shown = true;
			c->shown = rank == RANK_MUST || (render_text_room_fits(l, t, width, rooms[rank]) && (all || rank != RANK_EMPTY));
			all &= c->shown;
		}
}

/* Those shown first, each part in the order it had. */
static void move_shown_first(struct text_layout *l)
{
	struct text_column *v = NEW_ARRAY(l->n_all, struct text_column);
	unsigned n = 0;
	for (int shown = 1; shown >= 0; shown--) {
		for (unsigned i = 0; i < l->n_all; i++)
			if (l->v[i].shown == shown)
				v[n++] = l->v[i];
		if (shown)
			l->n = n;
	}
	mem_free(l->v);
	l->v = v;
}

/* Takes cells from the widest columns first until the table fits or nothing more can be taken. */
static void shrink(struct text_layout *l, const struct table *t, size_t width, enum room room)
{
	size_t total = TEXT_GAP * (l->n - 1);
	for (unsigned i = 0; i < l->n; i++)
		total += l->v[i].width;
	while (total > width) {
		struct text_column *widest = NULL;
		for (unsigned i = 0; i < l->n; i++)
			if (l->v[i].width > room_of(&l->v[i], t, width, room) && (!widest || l->v[i].width > widest->width))
				widest = &l->v[i];
		if (!widest)
			return;
		widest->width--;
		total--;
	}
}

/* The name may take two fifths of the terminal for the sake of rows that look different, a path two thirds, short names of kernels half of it, other
 * text a third.
 * A key that fits two fifths whole (the sizes of a product) is not cut for the sake of measures that are no key. */
static size_t distinct_width(const struct text_column *c, const struct column *col, size_t width)
{
	size_t whole = MAX(c->body, c->word), least = least_width(c, col, width);
	if (c->short_names)
		return MAX(least, MIN(whole, width / 2));
	if ((col->flags & COLUMN_WIDE) && (col->flags & COLUMN_ANSWER) && whole <= width * 2 / 5)
		return whole;
	size_t part = !c->key ? width / 3 : col->flags & COLUMN_PATH ? width * 2 / 3 : width * 2 / 5, most = MAX(least, MIN(whole, part));
	return c->can_share ? text_alike_width(&c->alike, least, most) : least;
}

/* Sets key_part where more than one text is part of the key. */
static void share_among_keys(struct text_layout *l, const struct table *t, size_t width)
{
	unsigned name = name_column(l, t), n = 0;
	for (int set = 0; set <= (n > 1); set++)
		for (unsigned i = 0; i < l->n_all; i++) {
			struct text_column *c = &l->v[i];
			const struct column *col = &t->data[c->col].col;
			if (col->type != CELL_STR || (i != name && !(col->flags & COLUMN_GROUP)) || render_text_room_rank_of(c, col->flags, i == name) != RANK_MUST)
				continue;
			if (set)
				c->key_part = width * KEYS_PERCENT / 100 / n;
			else
				n++;
		}
}

void text_room_find(struct text_layout *l, const struct table *t, size_t width)
{
	if (!l->n_all)
		return;
	share_among_keys(l, t, width);
	for (unsigned i = 0; i < l->n_all; i++) {
		struct text_column *c = &l->v[i];
		if (t->data[c->col].col.type != CELL_STR)
			continue;
		c->width = MIN(c->width, width); /* one huge cell must not make the loop of shrink long */
		c->distinct = distinct_width(c, &t->data[c->col].col, width);
	}
	choose_shown(l, t, width);
	move_shown_first(l);
	for (enum room room = ROOM_WHOLE; room < ROOMS; room++)
		shrink(l, t, width, room);
}
