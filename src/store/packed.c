#include "store/packed.h"

#include "base/mem.h"

#include <assert.h>

enum packed_by {
	PACKED_BY_NOTHING,
	PACKED_BY_BEFORE,    /* the value before, of the class, that is not none */
	PACKED_BY_LIKE,      /* like[row] */
	PACKED_BY_AT,        /* like[at[row]]; 0 where at[row] is no row */
	PACKED_BY_SUM,       /* the value before, and like[row] */
	PACKED_BYS,
};

enum { PACKED_BY_MASK = 7, PACKED_HAS_NONE = 8, PACKED_HAS_APART = 16, PACKED_HAS_SCALE = 32, PACKED_FLAGS = 63 };
_Static_assert(PACKED_BYS <= PACKED_BY_MASK + 1, "a stream has three bits for its prediction");
enum { PACKED_WORD = 64, PACKED_VARINT_MOST = 10 };

/* Carried from block to block, for each stream: its last value; and its best prediction, which the writer searches again every SEARCH_EACH blocks. */
struct packed_last {
	uint64_t value;
	bool is_known;       /* `by` is */
	enum packed_by by;
};

struct packed_state {
	struct packed_last whole, of[PACKED_CLASSES];
};

/* The rows of one stream: first + row[i], or first + i where there is no `row`. */
struct packed_rows {
	uint32_t first;
	unsigned n;
	const uint16_t *row;
};

static uint32_t packed_row(const struct packed_rows *r, unsigned i)
{
	return r->first + (r->row ? r->row[i] : i);
}

static uint64_t packed_fold(uint64_t v)
{
	return v << 1 ^ (0 - (v >> 63));
}

static uint64_t packed_unfold(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static unsigned packed_width(uint64_t v)
{
	return v ? PACKED_WORD - (unsigned)__builtin_clzll(v) : 0;
}

static size_t packed_bytes(unsigned n, unsigned width)
{
	return ((size_t)n * width + 7) / 8;
}

static uint64_t packed_mask(unsigned width)
{
	return width < PACKED_WORD ? ((uint64_t)1 << width) - 1 : UINT64_MAX;
}

static bool packed_needs(enum packed_by by, const struct packed_column *c)
{
	return (by < PACKED_BY_LIKE || c->like) && (by != PACKED_BY_AT || c->at);
}

/* What like and at guess for a row. */
static uint64_t packed_guess(const struct packed_column *c, enum packed_by by, uint32_t row)
{
	if (by == PACKED_BY_LIKE || by == PACKED_BY_SUM)
		return (uint64_t)c->like[row];
	if (by == PACKED_BY_AT)
		return c->at[row] < c->n ? (uint64_t)c->like[c->at[row]] : 0;
	return 0;
}

static struct packed_rows packed_rows_of(const struct packed_split *split, uint32_t first, unsigned k)
{
	return (struct packed_rows){first, split->start[k + 1] - split->start[k], split->place + split->start[k]};
}

/* From both ends at once: a counter that goes up row after row is waited for at each, and these are two. */
static void packed_split_block(const uint8_t *of, unsigned rows, struct packed_split *s)
{
	const unsigned half = rows / 2, last = rows - 1;
	unsigned low[PACKED_CLASSES] = {0}, high[PACKED_CLASSES] = {0}, sum = 0;
	for (unsigned i = 0; i < half; i++) {
		low[of[i] % PACKED_CLASSES]++;
		high[of[last - i] % PACKED_CLASSES]++;
	}
	low[of[half] % PACKED_CLASSES] += rows % 2;
	for (unsigned k = 0; k < PACKED_CLASSES; k++) {
		s->start[k] = (uint16_t)sum;
		sum += low[k] + high[k];
		low[k] = s->start[k];
		high[k] = sum;
	}
	s->start[PACKED_CLASSES] = (uint16_t)sum;
	for (unsigned i = 0; i < half; i++) {
		s->place[low[of[i] % PACKED_CLASSES]++] = (uint16_t)i;
		s->place[--high[of[last - i] % PACKED_CLASSES]] = (uint16_t)(last - i);
	}
	if (rows % 2)
		s->place[low[of[half] % PACKED_CLASSES]] = (uint16_t)half;
}

struct packed_split *packed_split(const uint8_t *klass, uint32_t n)
{
	const uint32_t blocks = n / PACKED_BLOCK + (n % PACKED_BLOCK != 0);
	struct packed_split *all = NEW_ARRAY_RAW(blocks, struct packed_split);
	for (uint32_t b = 0; b < blocks; b++) {
		const bool whole = b + 1 < blocks || n % PACKED_BLOCK == 0;
		packed_split_block(klass + (size_t)b * PACKED_BLOCK, whole ? PACKED_BLOCK : n % PACKED_BLOCK, &all[b]);
	}
	return all;
}

/* A stream as it is written. */
struct packed_stream {
	enum packed_by by;
	bool has_none;
	unsigned width, wide, n_apart; /* wide: bits of those apart */
	uint64_t base, scale;
	uint64_t bits;                 /* sum of the codes' widths, to compare predictions */
	uint64_t code[PACKED_BLOCK];
};

/* Whether the rows are whole blocks, as far as the column has them. */
static bool packed_is_whole(const struct packed_column *c, uint32_t first, uint32_t n)
{
	return first % PACKED_BLOCK == 0 && (n % PACKED_BLOCK == 0 || !c->split || first + n == c->n);
}

/* ---- writing ---- */

#define PACKED_LOAD(T)                                                                                 \
	do {                                                                                           \
		const T *from = (const T *)c->data + r->first;                                         \
		for (unsigned i = 0; i < r->n; i++)                                                    \
			v[i] = (uint64_t)(int64_t)from[r->row ? r->row[i] : i];                        \
	} while (0)

static void packed_load(const struct packed_column *c, const struct packed_rows *r, uint64_t *v)
{
	switch (c->size) {
	case 1: PACKED_LOAD(int8_t); break;
	case 2: PACKED_LOAD(int16_t); break;
	case 4: PACKED_LOAD(int32_t); break;
	default: PACKED_LOAD(int64_t); break;
	}
}

static void packed_put_number(struct buf *out, uint64_t v)
{
	uint8_t *p = (uint8_t *)buf_room(out, PACKED_VARINT_MOST), *at = p;
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	out->n += (size_t)(at - p);
}

static void packed_put_word(uint8_t *to, uint64_t v)
{
	for (unsigned i = 0; i < sizeof v; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

static void packed_put_bits(struct buf *out, const uint64_t *v, unsigned n, unsigned width)
{
	size_t bytes = packed_bytes(n, width);
	uint8_t *p = (uint8_t *)buf_room(out, bytes + PACKED_PADDING);
	uint64_t word = 0, mask = packed_mask(width);
	unsigned used = 0;
	for (unsigned i = 0; width && i < n; i++) {
		uint64_t code = v[i] & mask;
		word |= code << used;
		used += width;
		if (used < PACKED_WORD)
			continue;
		packed_put_word(p, word);
		p += sizeof word;
		used -= PACKED_WORD;
		word = used ? code >> (width - used) : 0;
	}
	packed_put_word(p, word);
	out->n += bytes;
}

/* What is left of the values v by a prediction; none where v is. */
static void packed_left(const struct packed_column *c, const struct packed_rows *r, const uint64_t *v, enum packed_by by, bool has_none, uint64_t last, uint64_t *left)
{
	const uint64_t none = (uint64_t)c->none;
	if (by == PACKED_BY_NOTHING) {
		memcpy(left, v, r->n * sizeof *v);
	} else if (by == PACKED_BY_BEFORE && !has_none) {
		left[0] = v[0] - last;
		for (unsigned i = 1; i < r->n; i++)
			left[i] = v[i] - v[i - 1];
	} else {
		for (unsigned i = 0; i < r->n; i++) {
			if (has_none && v[i] == none)
				continue;
			left[i] = v[i] - packed_guess(c, by, packed_row(r, i));
			if (by == PACKED_BY_BEFORE || by == PACKED_BY_SUM)
				left[i] -= last;
			last = v[i];
		}
	}
}

/* Codes by one prediction. The scale is a power of two, or that times 125: what multiples of 512 bytes, of 32 ns and of microseconds need. False where none
 * cannot be told from all that is left. */
static bool packed_try(const struct packed_column *c, const struct packed_rows *r, const uint64_t *v, enum packed_by by, bool has_none, uint64_t last, struct packed_stream *s)
{
	enum { ODD = 125 };
	const uint64_t none = (uint64_t)c->none, inverse = 0x1cac083126e978d5; /* 125 times this is 1 */
	int64_t least = INT64_MAX, most = INT64_MIN;
	uint64_t any = 0;
	bool by_odd = true;
	s->by = by;
	s->has_none = has_none;
	packed_left(c, r, v, by, has_none, last, s->code);
	for (unsigned i = 0; i < r->n; i++) {
		if (has_none && v[i] == none)
			continue;
		least = (int64_t)s->code[i] < least ? (int64_t)s->code[i] : least;
		most = (int64_t)s->code[i] > most ? (int64_t)s->code[i] : most;
	}
	if (least > most) /* all are none */
		least = most = 0;
	if (has_none && (uint64_t)most - (uint64_t)least == UINT64_MAX)
		return false;
	s->base = (uint64_t)least;
	for (unsigned i = 0; i < r->n; i++) {
		uint64_t code = has_none && v[i] == none ? 0 : s->code[i] - s->base;
		any |= code;
		by_odd &= code * inverse <= UINT64_MAX / ODD;
		s->code[i] = code;
	}
	unsigned zeros = any ? (unsigned)__builtin_ctzll(any) : 0;
	by_odd &= any != 0;
	s->scale = ((uint64_t)1 << zeros) * (by_odd ? ODD : 1);
	if (s->scale > 1)
		for (unsigned i = 0; i < r->n; i++)
			s->code[i] = (s->code[i] >> zeros) * (by_odd ? inverse : 1);
	s->bits = 0;
	for (unsigned i = 0; i < r->n; i++) {
		s->code[i] += has_none && v[i] != none;
		s->bits += packed_width(s->code[i]);
	}
	return true;
}

/* The width with which all codes take the fewest bytes. */
static void packed_choose_width(struct packed_stream *s, unsigned n)
{
	enum { HEAD = 3, PLACE = 2 }; /* bytes: how many are apart (at most PACKED_BLOCK) and their width; the place of each */
	unsigned of_width[PACKED_WORD + 1] = {0}, apart = 0, widest = 0;
	for (unsigned i = 0; i < n; i++)
		of_width[packed_width(s->code[i])]++;
	for (unsigned w = 0; w <= PACKED_WORD; w++)
		widest = of_width[w] ? w : widest;
	s->width = s->wide = widest;
	s->n_apart = 0;
	size_t least = packed_bytes(n, widest);
	for (unsigned w = widest; w-- > 0;) {
		apart += of_width[w + 1];
		size_t bytes = packed_bytes(n, w) + HEAD + PLACE * (size_t)apart + packed_bytes(apart, widest);
		if (bytes < least) {
			least = bytes;
			s->width = w;
			s->n_apart = apart;
		}
	}
}

static void packed_put_stream(const struct packed_stream *s, unsigned n, struct buf *out)
{
	buf_char(out, (char)(s->by | (s->has_none ? PACKED_HAS_NONE : 0) | (s->n_apart ? PACKED_HAS_APART : 0) | (s->scale > 1 ? PACKED_HAS_SCALE : 0)));
	buf_char(out, (char)s->width);
	packed_put_number(out, packed_fold(s->base));
	if (s->scale > 1)
		packed_put_number(out, s->scale);
	if (s->n_apart) {
		uint64_t apart[PACKED_BLOCK];
		unsigned n_apart = 0;
		packed_put_number(out, s->n_apart);
		buf_char(out, (char)s->wide);
		for (unsigned i = 0; i < n; i++)
			if (packed_width(s->code[i]) > s->width) {
				buf_char(out, (char)(i & 0xff));
				buf_char(out, (char)(i >> 8));
				apart[n_apart++] = s->code[i];
			}
		assert(n_apart == s->n_apart);
		packed_put_bits(out, apart, n_apart, s->wide);
	}
	packed_put_bits(out, s->code, n, s->width);
}

/* Appends the stream as its best prediction makes it, and moves *last on. `search`: all predictions are tried. */
static void packed_put_rows(const struct packed_column *c, const struct packed_rows *r, bool search, struct packed_last *last, struct buf *out)
{
	struct packed_stream s[2];
	uint64_t v[PACKED_BLOCK];
	int best = -1;
	bool some_none = false;
	packed_load(c, r, v);
	for (unsigned i = 0; i < r->n; i++)
		some_none |= v[i] == (uint64_t)c->none;
	for (enum packed_by by = 0; by < PACKED_BYS; by++) {
		int to = best == 0;
		if (!packed_needs(by, c) || (best >= 0 && s[best].bits == 0) || (!search && last->is_known && by != last->by))
			continue;
		if (!(some_none && packed_try(c, r, v, by, true, last->value, &s[to])))
			packed_try(c, r, v, by, false, last->value, &s[to]);
		if (best < 0 || s[to].bits < s[best].bits)
			best = to;
	}
	packed_choose_width(&s[best], r->n);
	packed_put_stream(&s[best], r->n, out);
	last->by = s[best].by;
	last->is_known = true;
	for (unsigned i = r->n; i-- > 0;)
		if (!s[best].has_none || v[i] != (uint64_t)c->none) {
			last->value = v[i];
			break;
		}
}

static void packed_put_classes(const struct packed_column *c, const struct packed_split *split, uint32_t first, bool search, struct packed_state *state, struct buf *out)
{
	buf_char(out, 1);
	for (unsigned k = 0; k < PACKED_CLASSES; k++) {
		const struct packed_rows r = packed_rows_of(split, first, k);
		if (r.n)
			packed_put_rows(c, &r, search, &state->of[k], out);
	}
}

/* Whether the rows are of several classes. */
static bool packed_is_mixed(const struct packed_split *split, unsigned n)
{
	for (unsigned k = 0; k < PACKED_CLASSES; k++)
		if (split->start[k + 1] - split->start[k] == (int)n)
			return false;
	return true;
}

void packed_put(const struct packed_column *c, uint32_t first, uint32_t n, struct buf *out)
{
	enum { SEARCH_EACH = 8 }; /* a search does the work of all predictions, any other block that of one */
	struct packed_state state = {0};
	struct buf parts = {0};
	bool by_class = false;
	assert(packed_is_whole(c, first, n));
	packed_put_number(out, n);
	for (uint32_t done = 0; done < n; done += PACKED_BLOCK) {
		const struct packed_rows r = {first + done, n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK, NULL};
		const struct packed_split *split = c->split ? &c->split[r.first / PACKED_BLOCK] : NULL;
		const bool search = done / PACKED_BLOCK % SEARCH_EACH == 0, mixed = split && packed_is_mixed(split, r.n);
		const size_t was = out->n;
		struct packed_state after = state;
		if (search || !by_class || !mixed) {
			buf_char(out, 0);
			packed_put_rows(c, &r, search, &state.whole, out);
		}
		if (!mixed || (search && out->n - was <= PACKED_LEAST) || !(search || by_class))
			continue;
		buf_clear(&parts);
		packed_put_classes(c, split, r.first, search, &after, &parts);
		by_class = !search || parts.n < out->n - was;
		if (by_class) {
			out->n = was;
			buf_put(out, parts.p, parts.n);
			state = after;
		}
	}
	buf_release(&parts);
}

/* ---- reading ---- */

struct packed_reader {
	const uint8_t *p, *end;
};

static bool packed_take_number(struct packed_reader *r, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; r->p < r->end && shift < PACKED_WORD; shift += 7) {
		uint8_t byte = *r->p++;
		*v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static uint64_t packed_word(const uint8_t *p, size_t bit)
{
	uint64_t word;
	memcpy(&word, p + bit / 8, sizeof word);
	return word >> (bit & 7);
}

/* `OF` values from each word that is read. */
#define PACKED_UNPACK(OF)                                                                              \
	do {                                                                                           \
		for (; i + (OF) <= n; i += (OF), bit += (OF) * (size_t)width) {                        \
			uint64_t word = packed_word(p, bit);                                           \
			for (unsigned k = 0; k < (OF); k++, word >>= width)                            \
				v[i + k] = word & mask;                                                \
		}                                                                                      \
	} while (0)

/* The bytes must be there; PACKED_PADDING more can be read. */
static void packed_unpack(const uint8_t *p, uint64_t *v, unsigned n, unsigned width)
{
	enum { WHOLE = 57 }; /* bits that a word has, wherever it begins in a byte */
	const uint64_t mask = packed_mask(width);
	size_t bit = 0;
	unsigned i = 0;
	if (!width) {
		memset(v, 0, n * sizeof *v);
		return;
	}
	if (8 * width <= WHOLE)
		PACKED_UNPACK(8);
	else if (4 * width <= WHOLE)
		PACKED_UNPACK(4);
	else if (2 * width <= WHOLE)
		PACKED_UNPACK(2);
	for (; i < n; i++, bit += width) {
		uint64_t word = packed_word(p, bit);
		if (width > WHOLE && bit & 7)
			word |= (uint64_t)p[bit / 8 + sizeof word] << (PACKED_WORD - (bit & 7));
		v[i] = word & mask;
	}
}

/* Those apart, into their places among v[0..n-1]. `places` and `bits`: where they stand. */
static bool packed_take_apart(const uint8_t *places, const uint8_t *bits, unsigned n_apart, unsigned wide, uint64_t *v, unsigned n)
{
	uint64_t apart[PACKED_BLOCK];
	packed_unpack(bits, apart, n_apart, wide);
	for (unsigned i = 0; i < n_apart; i++) {
		unsigned place = places[2 * i] | (unsigned)places[2 * i + 1] << 8;
		if (place >= n)
			return false;
		v[place] = apart[i];
	}
	return true;
}

/* A stream's head. */
static bool packed_take_head(struct packed_reader *r, struct packed_stream *s, unsigned n)
{
	if (r->end - r->p < 2 || *r->p > PACKED_FLAGS || r->p[1] > PACKED_WORD)
		return false;
	uint8_t flags = *r->p++;
	uint64_t base, n_apart = 0;
	s->by = flags & PACKED_BY_MASK;
	s->has_none = flags & PACKED_HAS_NONE;
	s->width = *r->p++;
	s->scale = 1;
	s->wide = 0;
	if (!packed_take_number(r, &base) || (flags & PACKED_HAS_SCALE && !packed_take_number(r, &s->scale)))
		return false;
	s->base = packed_unfold(base);
	if (flags & PACKED_HAS_APART) {
		if (!packed_take_number(r, &n_apart) || n_apart > n || r->p == r->end || *r->p > PACKED_WORD)
			return false;
		s->wide = *r->p++;
	}
	s->n_apart = (unsigned)n_apart;
	return true;
}

/* Its n codes. */
static bool packed_take_codes(struct packed_reader *r, struct packed_stream *s, unsigned n)
{
	const size_t places = 2 * (size_t)s->n_apart, apart = packed_bytes(s->n_apart, s->wide), bytes = packed_bytes(n, s->width);
	if ((size_t)(r->end - r->p) < places + apart + bytes)
		return false;
	const uint8_t *p = r->p;
	r->p += places + apart + bytes;
	packed_unpack(p + places + apart, s->code, n, s->width);
	return packed_take_apart(p, p + places, s->n_apart, s->wide, s->code, n);
}

/* Makes values of the codes. */
static void packed_decode(const struct packed_column *c, struct packed_stream *s, const struct packed_rows *r, struct packed_last *last)
{
	const uint64_t none = (uint64_t)c->none, base = s->base, scale = s->scale;
	const unsigned n = r->n;
	uint64_t *v = s->code, before = last->value;
	if (s->has_none) {
		for (unsigned i = 0; i < n; i++) {
			if (!v[i]) {
				v[i] = none;
				continue;
			}
			uint64_t left = (v[i] - 1) * scale + base + packed_guess(c, s->by, packed_row(r, i));
			before = v[i] = s->by == PACKED_BY_BEFORE || s->by == PACKED_BY_SUM ? left + before : left;
		}
		last->value = before;
		return;
	}
	if (s->by == PACKED_BY_BEFORE) {
		for (unsigned i = 0; i < n; i++)
			v[i] = before += v[i] * scale + base;
	} else {
		if (scale != 1)
			for (unsigned i = 0; i < n; i++)
				v[i] *= scale;
		for (unsigned i = 0; i < n; i++)
			v[i] += base;
		if (s->by == PACKED_BY_LIKE || s->by == PACKED_BY_AT)
			for (unsigned i = 0; i < n; i++)
				v[i] += packed_guess(c, s->by, packed_row(r, i));
		else if (s->by == PACKED_BY_SUM)
			for (unsigned i = 0; i < n; i++)
				v[i] = before += v[i] + packed_guess(c, s->by, packed_row(r, i));
	}
	last->value = v[n - 1];
}

#define PACKED_STORE(T)                                                                                \
	do {                                                                                           \
		T *to = (T *)c->data + r->first, same = (T)v[0];                                       \
		if (alike && !row)                                                                     \
			for (unsigned i = 0; i < n; i++)                                               \
				to[i] = same;                                                          \
		else if (!row)                                                                         \
			for (unsigned i = 0; i < n; i++)                                               \
				to[i] = (T)v[i];                                                       \
		else if (alike)                                                                        \
			for (unsigned i = 0; i < n; i++)                                               \
				to[row[i]] = same;                                                     \
		else                                                                                   \
			for (unsigned i = 0; i < n; i++)                                               \
				to[row[i]] = (T)v[i];                                                  \
	} while (0)

/* `alike`: all rows have the value v[0]. */
static void packed_store(const struct packed_column *c, const uint64_t *v, bool alike, const struct packed_rows *r)
{
	const uint16_t *row = r->row;
	const unsigned n = r->n;
	switch (c->size) {
	case 1: PACKED_STORE(uint8_t); break;
	case 2: PACKED_STORE(uint16_t); break;
	case 4: PACKED_STORE(uint32_t); break;
	default: PACKED_STORE(uint64_t); break;
	}
}

static bool packed_take_rows(const struct packed_column *c, struct packed_reader *from, const struct packed_rows *r, struct packed_last *last)
{
	struct packed_stream s;
	if (!packed_take_head(from, &s, r->n) || s.by >= PACKED_BYS || !packed_needs(s.by, c))
		return false;
	if (s.by == PACKED_BY_NOTHING && !s.width && !s.n_apart) {
		s.code[0] = s.has_none ? (uint64_t)c->none : s.base;
		if (!s.has_none)
			last->value = s.base;
		packed_store(c, s.code, true, r);
		return true;
	}
	if (!packed_take_codes(from, &s, r->n))
		return false;
	packed_decode(c, &s, r, last);
	packed_store(c, s.code, false, r);
	return true;
}

bool packed_says_rows(struct str bytes, uint64_t *rows)
{
	struct packed_reader from = {.p = (const uint8_t *)bytes.p, .end = (const uint8_t *)bytes.p + bytes.n};
	return packed_take_number(&from, rows);
}

bool packed_take(const struct packed_column *c, uint32_t first, uint32_t n, struct str bytes)
{
	struct packed_state state = {0};
	struct packed_reader from = {.p = (const uint8_t *)bytes.p, .end = (const uint8_t *)bytes.p + bytes.n};
	uint64_t rows;
	if (!packed_is_whole(c, first, n) || !packed_take_number(&from, &rows) || rows != n)
		return false;
	for (uint32_t done = 0; done < n; done += PACKED_BLOCK) {
		const struct packed_rows whole = {first + done, n - done < PACKED_BLOCK ? n - done : PACKED_BLOCK, NULL};
		if (from.p == from.end || *from.p > (c->split ? 1 : 0))
			return false;
		if (!*from.p++) {
			if (!packed_take_rows(c, &from, &whole, &state.whole))
				return false;
			continue;
		}
		for (unsigned k = 0; k < PACKED_CLASSES; k++) {
			const struct packed_rows r = packed_rows_of(&c->split[whole.first / PACKED_BLOCK], whole.first, k);
			if (r.n && !packed_take_rows(c, &from, &r, &state.of[k]))
				return false;
		}
	}
	return from.p == from.end;
}
