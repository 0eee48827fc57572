#include "render/text_alike.h"

#include "base/hash.h"
#include "base/mem.h"
#include "render/text_cut.h"
#include "render/text_layout.h"

#define ELLIPSIS "\xe2\x80\xa6" /* U+2026 */

enum { MAX_PIECES = 64 };

/* Takes the next piece, with what ends it, off *rest. */
static bool next_piece(struct str *rest, struct str *piece)
{
	if (!rest->n)
		return false;
	size_t n = 0;
	while (n < rest->n && !strchr(",;/.", rest->p[n]))
		n++;
	n += n < rest->n;
	*piece = (struct str){rest->p, n};
	rest->p += n;
	rest->n -= n;
	return true;
}

/* At most `max`, which is enough to know that there are more. */
static unsigned render_text_alike_split(struct str text, struct str *piece, unsigned max)
{
	unsigned n = 0;
	while (n < max && next_piece(&text, &piece[n]))
		n++;
	return n;
}

static uint64_t lowest(unsigned n)
{
	return n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX;
}

static void add_sample(struct text_alike *a, struct str text)
{
	if (a->n_sample == ALIKE_SAMPLE)
		return;
	for (unsigned i = 0; i < a->n_sample; i++)
		if (str_eq(a->sample[i], text))
			return;
	if (!a->sample)
		a->sample = ARENA_ARRAY(&a->arena, ALIKE_SAMPLE, struct str);
	a->sample[a->n_sample++] = arena_str(&a->arena, text);
}

/* Narrows what is shared to what this text has too. */
static void render_text_alike_compare(struct text_alike *a, const struct str *piece, unsigned n)
{
	struct str first[MAX_PIECES + 1];
	unsigned m = render_text_alike_split(buf_view(&a->first), first, MAX_PIECES + 1), both = m < n ? m : n, back = 0;
	uint64_t same = 0;
	for (unsigned i = 0; i < both && i < MAX_PIECES; i++)
		same |= (uint64_t)str_eq(first[i], piece[i]) << i;
	a->even &= m == n;
	a->differ |= m != n || same != lowest(n);
	a->front &= same;
	if (!a->even)
		a->front &= lowest((unsigned)__builtin_ctzll(~a->front | (uint64_t)1 << 63));
	while (back < both && str_eq(first[m - 1 - back], piece[n - 1 - back]))
		back++;
	a->n_back = back < a->n_back ? back : a->n_back;
	a->n_pieces = both < a->n_pieces ? both : a->n_pieces;
}

void text_alike_init(struct text_alike *a, bool path)
{
	*a = (struct text_alike){.path = path, .even = true};
}

void text_alike_add(struct text_alike *a, struct str text)
{
	struct str piece[MAX_PIECES + 1];
	unsigned n = render_text_alike_split(text, piece, MAX_PIECES + 1);
	add_sample(a, text);
	if (n < 2)
		return;
	if (n > MAX_PIECES) { /* nothing is known to be shared with so long a text */
		a->any = true;
		a->front = a->n_back = 0;
	} else if (!a->any) {
		a->any = true;
		a->front = lowest(n);
		a->n_back = a->n_pieces = n;
		buf_str(&a->first, text);
	} else if (a->front || a->n_back) {
		render_text_alike_compare(a, piece, n);
	}
}

void text_alike_release(struct text_alike *a)
{
	buf_release(&a->first);
	arena_release(&a->arena);
}

/* Is piece `i` of `n` one that all share? */
static bool is_shared(const struct text_alike *a, unsigned i, unsigned n)
{
	if (i < MAX_PIECES && (a->front >> i & 1))
		return true;
	return !a->even && n - i <= a->n_back && n - i < a->n_pieces;
}

/* Appends the pieces that are shared, or those that are not, runs of the others as one ellipsis. */
static void put_pieces(const struct text_alike *a, struct str text, bool shared, struct buf *out)
{
	struct str piece[MAX_PIECES + 1];
	unsigned n = render_text_alike_split(text, piece, MAX_PIECES + 1);
	bool gap = false;
	if (n < 2 || n > MAX_PIECES) {
		buf_str(out, text);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		bool there = is_shared(a, i, n) == shared;
		if (there)
			buf_str(out, piece[i]);
		else if (!gap)
			buf_cstr(out, ELLIPSIS);
		gap = !there;
	}
}

void text_alike_put_shared(const struct text_alike *a, struct buf *out)
{
	put_pieces(a, buf_view(&a->first), true, out);
}

void text_alike_put(const struct text_alike *a, enum text_how how, struct str text, size_t width, struct buf *out)
{
	static const unsigned head[TEXT_HOWS] = {
		[TEXT_HEAD] = TEXT_CUT_HEAD, [TEXT_SHARED_HEAD] = TEXT_CUT_HEAD, [TEXT_TAIL] = 25, [TEXT_SHARED_TAIL] = 25,
	};
	struct buf shorter = {0};
	if (how >= TEXT_SHARED_HEAD) {
		put_pieces(a, text, false, &shorter);
		text = buf_view(&shorter);
	}
	text_put_cut_at(out, text, head[how], width);
	buf_release(&shorter);
}

static unsigned count_distinct(const struct text_alike *a, enum text_how how, size_t width)
{
	uint64_t seen[ALIKE_SAMPLE];
	unsigned n = 0;
	struct buf out = {0};
	for (unsigned i = 0; i < a->n_sample; i++) {
		buf_clear(&out);
		text_alike_put(a, how, a->sample[i], width, &out);
		uint64_t hash = hash_bytes(out.p, out.n);
		unsigned k = 0;
		while (k < n && seen[k] != hash)
			k++;
		if (k == n)
			seen[n++] = hash;
	}
	buf_release(&out);
	return n;
}

/* Of the sample, when what is shared is left out. */
static size_t widest_unshared(const struct text_alike *a)
{
	size_t widest = 0;
	struct buf out = {0};
	for (unsigned i = 0; i < a->n_sample; i++) {
		buf_clear(&out);
		put_pieces(a, a->sample[i], false, &out);
		size_t cells = text_width(buf_view(&out));
		widest = cells > widest ? cells : widest;
	}
	buf_release(&out);
	return widest;
}

size_t text_alike_widest(const struct text_alike *a)
{
	return a->n_sample < ALIKE_SAMPLE ? widest_unshared(a) : 0;
}

enum text_how text_alike_choose(const struct text_alike *a, size_t width, unsigned *n)
{
	enum { TRIED = 4 };
	static const enum text_how orders[2][TRIED] = {
		{TEXT_HEAD, TEXT_TAIL, TEXT_SHARED_HEAD, TEXT_SHARED_TAIL},
		{TEXT_END, TEXT_SHARED_END, TEXT_SHARED_HEAD, TEXT_HEAD},
	};
	bool shares = a->differ && (a->front || (!a->even && a->n_back));
	enum text_how best = orders[a->path][0];
	if (shares && !a->path && widest_unshared(a) <= width) {
		*n = count_distinct(a, TEXT_SHARED_HEAD, width);
		if (*n == a->n_sample)
			return TEXT_SHARED_HEAD;
	}
	*n = 0;
	for (unsigned i = 0; i < TRIED && *n < a->n_sample; i++) {
		enum text_how how = orders[a->path][i];
		if (how >= TEXT_SHARED_HEAD && !shares)
			continue;
		unsigned distinct = count_distinct(a, how, width);
		if (distinct > *n) {
			*n = distinct;
			best = how;
		}
	}
	return best;
}

size_t text_alike_width(const struct text_alike *a, size_t from, size_t to)
{
	size_t best = from;
	unsigned most = 0;
	for (size_t width = from; width <= to && most < a->n_sample; width++) {
		unsigned n;
		text_alike_choose(a, width, &n);
		if (n > most) {
			most = n;
			best = width;
		}
	}
	return best;
}
