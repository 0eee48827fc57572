#include "io/sqlpage.h"

#include "base/buf.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEADER_BYTES = 100,
	LEAF = 0x0d, INTERIOR = 0x05,
	DEPTH_MAX = 20,          /* SQLite's own limit */
	AHEAD_BYTES = 64 << 10,  /* pages that follow each other are read that many bytes at once, unless they are bigger */
	COLUMNS_MAX = 32767,     /* SQLite's own limit */
	TEXT_MAX = 1 << 30,      /* SQLite's own limit, about */
	FORM_HEAD = 48,          /* bytes of a record's header, at most, whose form is kept */
	FORM_CELLS = 24,         /* values, at most, of a form */
	FORM_VALUES = 64,        /* values of a form are among the first so many */
	FORMS = 128,             /* a power of two */
	FORMS_SHIFT = 57,        /* the upper bits of a hash tell the place among them */
	PADDING = FORM_HEAD,     /* readable bytes behind each page and payload: headers are loaded whole, integers eight bytes at a time */
};

/* Where the values of a record lie follows from its header, and few headers of a table are different: each is read once, and found
 * again by its bytes. All that a header says has been checked then, but for whether the record is as long. */
struct form {
	uint64_t head[FORM_HEAD / 8]; /* the header, which begins with its own length, then zeros to the end of the word; head[0] = 0: free */
	uint64_t last_word;           /* the bits of its last word that are of the header */
	uint64_t given;               /* bit k: value k is set */
	uint32_t bytes, n;            /* of a record, at least; wanted values that are set */
	uint32_t words, next;         /* of head; the place of the form that came after it */
	struct form_cell {
		uint16_t at, n;       /* first byte, from that of the record, and how many */
		uint8_t value;
		uint8_t type;         /* enum sqlpage_type */
		uint8_t stated;       /* an integer without bytes: what it is */
		uint8_t shift;        /* of a number: bits of the eight bytes there that are of what follows */
	} cell[FORM_CELLS];
};

/* Pages read at once. The pages of a table lie one after the other, or mixed with those of others when tables grew together:
 * each page that follows the last ones doubles how many are read, any other makes it one again. */
struct ahead {
	uint32_t first, n;
	uint8_t *data;
};

struct sqlpage_level {
	uint32_t page, cell, n_cells; /* an interior page and its next child; child n_cells is the right-most one */
	uint8_t *data;
};

struct sqlpage {
	int fd;
	bool damaged, done, shorter;
	int error;               /* errno of the read that failed */
	uint32_t page_bytes, usable, n_pages, visited;
	int64_t last_rowid;      /* of the row before, if `begun` */
	bool begun;
	uint32_t ahead_pages;
	struct ahead tree, overflow;
	struct sqlpage_level level[DEPTH_MAX];
	int depth;
	const uint8_t *leaf;     /* in `tree` */
	uint32_t leaf_head, cell, n_cells;
	int *wanted;             /* column of the record -> first of the values that want it, -1 = none */
	int *also;               /* value -> the next one that wants the same column, -1 = none */
	int n_record, n_values, rowid_value;
	int *set, n_set;         /* the values that the current row has set, if by its header; each column sets its own, so n_values at most */
	uint64_t given;          /* those that it has set by its form */
	struct sqlpage_value *value;
	struct form *form;       /* FORMS */
	uint32_t last_form;      /* the place of the one of the row before that had one */
	struct buf payload;      /* of a row that spills over several pages */
};

static uint32_t u16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t u32(const uint8_t *p) { return u16(p) << 16 | u16(p + 2); }

/* A varint in [p, end); NULL when it does not fit. */
static const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	if (p < end && *p < 0x80) {
		*v = *p;
		return p + 1;
	}
	if (end - p >= 3 && (p[1] < 0x80 || p[2] < 0x80)) { /* of two or three bytes, as most lengths and row ids */
		bool two = p[1] < 0x80;
		uint64_t x = (uint64_t)(*p & 0x7f) << 7 | (p[1] & 0x7f);
		*v = two ? x : x << 7 | p[2];
		return p + (two ? 2 : 3);
	}
	uint64_t x = 0;
	for (int i = 0; i < 9; i++) {
		if (p >= end)
			return NULL;
		if (i == 8) {
			*v = x << 8 | *p;
			return p + 1;
		}
		x = x << 7 | (*p & 0x7f);
		if (*p++ < 0x80)
			break;
	}
	*v = x;
	return p;
}

/* Fewer bytes than n at the end of the file, or with an error, which is kept. */
static uint32_t read_fully(struct sqlpage *s, uint8_t *to, uint32_t n, uint64_t at)
{
	uint32_t got = 0;
	while (got < n) {
		ssize_t r = pread(s->fd, to + got, n - got, (off_t)(at + got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			s->error = errno;
		if (r <= 0)
			break;
		got += (uint32_t)r;
	}
	return got;
}

/* The bytes of page `number` (from 1), valid until the next call with the same `a`; NULL when it is not in the file. */
static const uint8_t *page_get(struct sqlpage *s, struct ahead *a, uint32_t number)
{
	if (!number || number > s->n_pages)
		return NULL;
	if (number < a->first || number - a->first >= a->n) {
		uint32_t end = a->first + a->n, n = 1;
		if (a->n && number >= end && number - end < 2) /* a page of the level above may lie between */
			n = 2 * a->n < s->ahead_pages ? 2 * a->n : s->ahead_pages;
		if (!a->data)
			a->data = mem_zalloc((size_t)s->ahead_pages * s->page_bytes + PADDING, 1);
		a->first = number;
		a->n = read_fully(s, a->data, n * s->page_bytes, (uint64_t)(number - 1) * s->page_bytes) / s->page_bytes;
		s->shorter = !a->n && !s->error;
		if (!a->n || s->error)
			return NULL;
	}
	return a->data + (size_t)(number - a->first) * s->page_bytes;
}

static void sqlpage_fail(struct sqlpage *s)
{
	s->damaged = s->done = true;
}

/* Page 1 begins with the file's header. */
static uint32_t header_at(uint32_t page) { return page == 1 ? HEADER_BYTES : 0; }

/* Goes down from `page` to the left-most leaf under it. */
static bool descend(struct sqlpage *s, uint32_t page)
{
	for (;;) {
		const uint8_t *p = page_get(s, &s->tree, page);
		if (!p || ++s->visited > s->n_pages)
			return false;
		uint32_t h = header_at(page), n_cells = u16(p + h + 3);
		if (p[h] == LEAF && h + 8 + 2 * n_cells <= s->usable) {
			s->leaf = p;
			s->leaf_head = h;
			s->n_cells = n_cells;
			s->cell = 0;
			return true;
		}
		if (p[h] != INTERIOR || s->depth >= DEPTH_MAX || h + 12 + 2 * n_cells > s->usable)
			return false;
		struct sqlpage_level *l = &s->level[s->depth++];
		*l = (struct sqlpage_level){page, 0, n_cells, l->data ? l->data : mem_alloc(s->page_bytes, 1)};
		memcpy(l->data, p, s->page_bytes);
		uint32_t cell = n_cells ? u16(p + h + 12) : 0;
		if (n_cells && cell + 4 > s->usable)
			return false;
		page = n_cells ? u32(p + cell) : u32(p + h + 8);
	}
}

/* The leaf after the current one; false at the end of the table, or with `damaged`. */
static bool next_leaf(struct sqlpage *s)
{
	while (s->depth) {
		struct sqlpage_level *l = &s->level[s->depth - 1];
		if (l->cell >= l->n_cells) {
			s->depth--;
			continue;
		}
		l->cell++;
		const uint8_t *p = l->data;
		uint32_t h = header_at(l->page), child = 0;
		if (l->cell == l->n_cells) {
			child = u32(p + h + 8);
		} else {
			uint32_t cell = u16(p + h + 12 + 2 * l->cell);
			child = cell + 4 <= s->usable ? u32(p + cell) : 0;
		}
		if (child && descend(s, child))
			return true;
		sqlpage_fail(s);
		return false;
	}
	s->done = true;
	return false;
}

/* Collects a payload of n bytes that spills over, `local` of them at `p`; NULL when the chain is broken. */
static const uint8_t *sqlpage_gather(struct sqlpage *s, const uint8_t *p, uint32_t local, uint64_t n)
{
	static const char padding[PADDING];
	if (n > TEXT_MAX || n > (uint64_t)s->n_pages * s->page_bytes)
		return NULL;
	uint32_t next = u32(p + local);
	s->payload.n = 0;
	buf_put(&s->payload, (const char *)p, local);
	while (s->payload.n < n) {
		const uint8_t *page = page_get(s, &s->overflow, next);
		if (!page || ++s->visited > s->n_pages)
			return NULL;
		uint64_t left = n - s->payload.n, here = left < s->usable - 4 ? left : s->usable - 4;
		next = u32(page);
		buf_put(&s->payload, (const char *)page + 4, here);
	}
	buf_put(&s->payload, padding, PADDING);
	return (const uint8_t *)s->payload.p;
}

static const uint8_t int_bytes[] = {0, 1, 2, 3, 4, 6, 8};

/* The integer of n bytes, 1 to 8, at p. */
static int64_t big_endian(const uint8_t *p, unsigned n)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return (int64_t)__builtin_bswap64(v) >> (64 - 8 * n);
}

/* Bytes of a value of this serial type. */
static uint64_t serial_bytes(uint64_t type)
{
	if (type < sizeof int_bytes)
		return int_bytes[type];
	return type == 7 ? 8 : type < 12 ? 0 : (type - 12) / 2;
}

static void decode(struct sqlpage_value *v, uint64_t type, const uint8_t *p, uint64_t n)
{
	if (type == 0) { /* NULL, in more bytes than it takes */
		v->type = SQLPAGE_NULL;
	} else if (type < sizeof int_bytes) {
		v->type = SQLPAGE_INT;
		v->i = big_endian(p, (unsigned)n);
	} else if (type == 7) {
		int64_t bits = big_endian(p, 8);
		v->type = SQLPAGE_REAL;
		memcpy(&v->real, &bits, sizeof bits);
	} else if (type < 10) {
		v->type = SQLPAGE_INT;
		v->i = (int64_t)type - 8;
	} else if (type >= 12) {
		v->type = type & 1 ? SQLPAGE_TEXT : SQLPAGE_BLOB;
		v->s = (struct str){(const char *)p, n};
	}
}

/* Values of the row before become NULL again: those that were set, of many that hardly ever are. But for those of `next`, which are set again. */
static void sqlpage_forget_row(struct sqlpage *s, uint64_t next)
{
	for (int i = 0; i < s->n_set; i++)
		s->value[s->set[i]].type = SQLPAGE_NULL;
	for (uint64_t left = s->given & ~next; left; left &= left - 1)
		s->value[__builtin_ctzll(left)].type = SQLPAGE_NULL;
	s->n_set = 0;
	s->given = next;
}

/* Where the form of a record of n bytes at p is kept, if it is; the bytes of its header go to `head`. NULL: of such headers no form is kept. */
static struct form *sqlpage_form_at(const struct sqlpage *s, const uint8_t *p, uint64_t n, uint64_t head[FORM_HEAD / 8])
{
	static const uint8_t keep[2 * FORM_HEAD] = {
#define EIGHT_BYTES 255, 255, 255, 255, 255, 255, 255, 255
		EIGHT_BYTES, EIGHT_BYTES, EIGHT_BYTES, EIGHT_BYTES, EIGHT_BYTES, EIGHT_BYTES
#undef EIGHT_BYTES
	};
	if (!n || !p[0] || p[0] > FORM_HEAD || p[0] > n)
		return NULL;
	uint64_t hash = 0;
	for (int i = 0; 8 * i < p[0]; i++) {
		uint64_t bytes, mask;
		memcpy(&bytes, p + 8 * i, sizeof bytes);
		memcpy(&mask, keep + FORM_HEAD - p[0] + 8 * i, sizeof mask);
		head[i] = bytes & mask;
		hash = 31 * hash + head[i];
	}
	return &s->form[hash * 0x9e3779b97f4a7c15u >> FORMS_SHIFT];
}

static bool sqlpage_form_is(const struct form *f, const uint64_t head[FORM_HEAD / 8], uint8_t head_bytes)
{
	if (f->head[0] != head[0]) /* its first byte is the length of both */
		return false;
	for (int i = 1; 8 * i < head_bytes; i++)
		if (f->head[i] != head[i])
			return false;
	return true;
}

static void sqlpage_form_add(struct form *f, int k, const struct sqlpage_value *v, uint64_t at, uint64_t n)
{
	if (f->n < FORM_CELLS && k < FORM_VALUES && at + n <= UINT16_MAX) {
		f->cell[f->n] = (struct form_cell){(uint16_t)at, (uint16_t)n, (uint8_t)k, (uint8_t)v->type, v->type == SQLPAGE_INT && !n ? (uint8_t)v->i : 0,
		                                       n && n <= 8 ? (uint8_t)(64 - 8 * n) : 0};
		f->given |= UINT64_C(1) << k;
	} else {
		f->n = FORM_CELLS;
	}
	f->n++;
}

static void sqlpage_read_by_form(struct sqlpage *s, const struct form *f, const uint8_t *p)
{
	struct sqlpage_value *value = s->value;
	const struct form_cell *c = f->cell, *end = c + f->n;
	sqlpage_forget_row(s, f->given);
	for (; c < end; c++) {
		struct sqlpage_value *v = &value[c->value];
		unsigned type = c->type, n = c->n;
		const uint8_t *bytes = p + c->at;
		uint64_t eight;
		v->type = type;
		if (type >= SQLPAGE_TEXT) {
			v->s = (struct str){(const char *)bytes, n};
			continue;
		}
		memcpy(&eight, bytes, sizeof eight); /* of a real number the bits */
		v->i = n ? (int64_t)__builtin_bswap64(eight) >> c->shift : c->stated;
	}
}

/* The wanted values of a record of n bytes by its header, and its form for the next one; *f may be NULL. */
static bool sqlpage_read_by_header(struct sqlpage *s, const uint8_t *p, uint64_t n, struct form *f)
{
	struct form unkept;
	const uint8_t *end = p + n, *head = p;
	uint64_t head_bytes;
	sqlpage_forget_row(s, 0);
	f = f ? f : &unkept;
	f->given = f->n = 0;
	f->head[0] = 0;
	head = varint(head, end, &head_bytes);
	if (!head || head_bytes > n)
		return false;
	const uint8_t *head_end = p + head_bytes, *data = head_end;
	for (int column = 0; head < head_end && column < s->n_record; column++) {
		uint64_t type = *head;
		if (type == 0) { /* NULL, as most cells of wide tables: eight at a time */
			uint64_t eight;
			memcpy(&eight, head, sizeof eight);
			bool all = !eight && head + 8 <= head_end;
			head += all ? 8 : 1;
			column += all ? 7 : 0;
			continue;
		}
		head = varint(head, head_end, &type);
		if (!head)
			return false;
		uint64_t bytes = serial_bytes(type);
		if (bytes > (uint64_t)(end - data))
			return false;
		for (int k = s->wanted[column]; k >= 0; k = s->also[k]) {
			decode(&s->value[k], type, data, bytes);
			s->set[s->n_set++] = k;
			sqlpage_form_add(f, k, &s->value[k], (uint64_t)(data - p), bytes);
		}
		data += bytes;
	}
	if (data - p > UINT16_MAX)
		f->n = FORM_CELLS + 1;
	f->bytes = (uint32_t)(data - p);
	return true;
}

/* Rows come in the order in which others came before: the form that then came next, if the record has its header. */
static const struct form *sqlpage_form_next(const struct sqlpage *s, const uint8_t *p, uint64_t n)
{
	const struct form *f = &s->form[s->form[s->last_form].next];
	uint32_t i = 0;
	uint64_t word;
	if (!f->head[0] || f->bytes > n)
		return NULL;
	for (; i + 1 < f->words; i++) {
		memcpy(&word, p + 8 * i, sizeof word);
		if (word != f->head[i])
			return NULL;
	}
	memcpy(&word, p + 8 * i, sizeof word);
	return (word & f->last_word) == f->head[i] ? f : NULL;
}

static void sqlpage_form_keep(struct form *f, const uint64_t head[FORM_HEAD / 8], uint8_t head_bytes)
{
	const unsigned over = head_bytes % 8u;
	memcpy(f->head, head, sizeof f->head);
	f->words = (head_bytes + 7u) / 8;
	f->last_word = over ? (UINT64_C(1) << 8 * over) - 1 : UINT64_MAX;
}

/* By its form, if that is kept, else by its header. */
static bool sqlpage_read_values(struct sqlpage *s, const uint8_t *p, uint64_t n)
{
	uint64_t head[FORM_HEAD / 8];
	struct form *f = sqlpage_form_at(s, p, n, head);
	if (!f)
		return sqlpage_read_by_header(s, p, n, NULL);
	const bool is_kept = sqlpage_form_is(f, head, p[0]);
	if (is_kept && f->bytes <= n)
		sqlpage_read_by_form(s, f, p);
	else if (!sqlpage_read_by_header(s, p, n, f))
		return false;
	else if (f->n <= FORM_CELLS)
		sqlpage_form_keep(f, head, p[0]);
	const uint32_t place = (uint32_t)(f - s->form);
	s->form[s->last_form].next = place;
	s->last_form = place;
	return true;
}

/* The wanted values of a record of n bytes. Columns that the record lacks stay NULL. */
static bool sqlpage_read_record(struct sqlpage *s, const uint8_t *p, uint64_t n, int64_t rowid)
{
	const struct form *next = sqlpage_form_next(s, p, n);
	if (next) {
		sqlpage_read_by_form(s, next, p);
		s->last_form = (uint32_t)(next - s->form);
	} else if (!sqlpage_read_values(s, p, n)) {
		return false;
	}
	if (s->rowid_value >= 0)
		s->value[s->rowid_value] = (struct sqlpage_value){.type = SQLPAGE_INT, .i = rowid};
	return true;
}

/* The same of a varint in a page, behind which there are more bytes: mostly of two bytes, or three or four. */
static inline const uint8_t *page_varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	uint64_t x = p[0] & 0x7fu;
	int n = 1;
	for (; n < 4 && p[n - 1] >= 0x80; n++)
		x = x << 7 | (p[n] & 0x7fu);
	if (p[n - 1] >= 0x80 || n > end - p)
		return varint(p, end, v);
	*v = x;
	return p + n;
}

static bool read_cell(struct sqlpage *s, const uint8_t *page, uint32_t cell)
{
	const uint8_t *end = page + s->usable, *p = page + cell;
	uint64_t n, rowid;
	if (cell >= s->usable || !(p = page_varint(p, end, &n)) || !(p = page_varint(p, end, &rowid)))
		return false;
	if ((int64_t)rowid <= s->last_rowid && s->begun) /* a page that several pages name, or one of another place */
		return false;
	s->last_rowid = (int64_t)rowid;
	s->begun = true;
	uint32_t max_local = s->usable - 35;
	if (n <= max_local)
		return n <= (uint64_t)(end - p) && sqlpage_read_record(s, p, n, (int64_t)rowid);
	uint32_t min_local = (s->usable - 12) * 32 / 255 - 23;
	uint64_t k = min_local + (n - min_local) % (s->usable - 4);
	uint32_t local = k <= max_local ? (uint32_t)k : min_local;
	if (local + 4 > (uint64_t)(end - p))
		return false;
	p = sqlpage_gather(s, p, local, n);
	return p && sqlpage_read_record(s, p, n, (int64_t)rowid);
}

const struct sqlpage_value *sqlpage_next(struct sqlpage *s)
{
	while (!s->done && s->cell >= s->n_cells)
		if (!next_leaf(s))
			return NULL;
	if (s->done)
		return NULL;
	if (read_cell(s, s->leaf, u16(s->leaf + s->leaf_head + 8 + 2 * s->cell))) {
		s->cell++;
		return s->value;
	}
	sqlpage_fail(s);
	return NULL;
}

bool sqlpage_damaged(const struct sqlpage *s)
{
	return s->damaged;
}

const char *sqlpage_failed(const struct sqlpage *s)
{
	return s->error ? strerror(s->error) : s->shorter ? "the file has become shorter meanwhile" : NULL;
}

/* Fills in what the file's header says; false when this reader does not take such files. */
static bool sqlpage_read_header(struct sqlpage *s)
{
	uint8_t h[HEADER_BYTES];
	struct stat st;
	if (fstat(s->fd, &st) || !S_ISREG(st.st_mode) || read_fully(s, h, sizeof h, 0) != sizeof h)
		return false;
	uint32_t page = u16(h + 16) == 1 ? 65536 : u16(h + 16), reserved = h[20];
	if (memcmp(h, "SQLite format 3", 16) != 0 || page < 512 || (page & (page - 1)) || u32(h + 56) != 1 || page - reserved < 480)
		return false;
	uint64_t pages = (uint64_t)st.st_size / page;
	s->page_bytes = page;
	s->usable = page - reserved;
	s->n_pages = pages > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)pages;
	s->ahead_pages = page > AHEAD_BYTES ? 1 : AHEAD_BYTES / page;
	return true;
}

/* Which values want which column of a record. */
static bool plan_columns(struct sqlpage *s, const int *column, int n, int rowid_column)
{
	s->n_values = n;
	s->value = NEW_ARRAY(n ? n : 1, struct sqlpage_value);
	s->also = NEW_ARRAY(n ? n : 1, int);
	s->set = NEW_ARRAY(n ? n : 1, int);
	for (int k = 0; k < n; k++) {
		if (column[k] >= COLUMNS_MAX)
			return false;
		s->n_record = column[k] >= s->n_record ? column[k] + 1 : s->n_record;
	}
	s->wanted = NEW_ARRAY(s->n_record ? s->n_record : 1, int);
	for (int c = 0; c < s->n_record; c++)
		s->wanted[c] = -1;
	for (int k = n - 1; k >= 0; k--) {
		s->also[k] = -1;
		if (column[k] < 0)
			continue;
		if (column[k] == rowid_column) {
			if (s->rowid_value >= 0)
				return false;
			s->rowid_value = k;
			continue;
		}
		s->also[k] = s->wanted[column[k]];
		s->wanted[column[k]] = k;
	}
	return true;
}

struct sqlpage *sqlpage_open(int fd, uint32_t root, const int *column, int n_columns, int rowid_column)
{
	struct sqlpage *s = NEW(struct sqlpage);
	s->fd = fd;
	s->rowid_value = -1;
	s->form = NEW_ARRAY(FORMS, struct form);
	if (!plan_columns(s, column, n_columns, rowid_column) || !sqlpage_read_header(s)) {
		sqlpage_close(s);
		return NULL;
	}
	if (!descend(s, root))
		sqlpage_fail(s);
	return s;
}

void sqlpage_close(struct sqlpage *s)
{
	for (int i = 0; i < DEPTH_MAX; i++)
		mem_free(s->level[i].data);
	mem_free(s->tree.data);
	mem_free(s->overflow.data);
	buf_release(&s->payload);
	mem_free(s->wanted);
	mem_free(s->also);
	mem_free(s->set);
	mem_free(s->value);
	mem_free(s->form);
	mem_free(s);
}
