#include "query/stated.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"

enum { TABLES_MAX = 64, COLUMNS_MAX = 256 };

struct column_facts {
	uint32_t id;
	bool text, real;
};

struct stated {
	const struct profile *p;
	uint32_t id;                /* of the table's name */
	struct column_facts column[COLUMNS_MAX];
	unsigned n;
	bool too_many;
};

/* Rows list their columns in the same order, so that the next one is mostly the one that is looked for. */
static unsigned find_column(const struct stated *s, uint32_t id, unsigned guess)
{
	for (unsigned k = 0; k < s->n; k++) {
		unsigned c = (guess + k) % s->n;
		if (s->column[c].id == id)
			return c;
	}
	return COLUMNS_MAX;
}

static bool is_real(struct str v)
{
	int64_t i;
	return !str_to_i64(v, &i);
}

static void find_columns(struct stated *s)
{
	const struct stateds *t = &s->p->stated;
	unsigned c = 0;
	for (uint32_t i = 0; i < t->rows.n; i++) {
		if (t->tbl[i] != s->id)
			continue;
		unsigned at = find_column(s, t->col[i], c);
		if (at == COLUMNS_MAX && s->n == COLUMNS_MAX) {
			s->too_many = true;
			continue;
		}
		if (at == COLUMNS_MAX)
			s->column[at = s->n++] = (struct column_facts){.id = t->col[i]};
		c = at + 1;
		s->column[at].text |= t->is_string[i];
		s->column[at].real |= !t->is_string[i] && is_real(profile_str(s->p, t->value[i]));
	}
}

static enum unit stated_unit_of(struct str id)
{
	static const struct { const char *suffix; enum unit unit; } units[] = {
		{"start_ns", UNIT_TIME_NS}, {"stop_ns", UNIT_TIME_NS}, {"_ns", UNIT_NS}, {"_bytes", UNIT_BYTES}, {"_pct", UNIT_PERCENT},
	};
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (str_ends(id, str_from(units[i].suffix)))
			return units[i].unit;
	return UNIT_NONE;
}

/* Words that are written in capitals. */
static void put_capitals(struct str s)
{
	static const char *const words[] = {"tc", "gpu", "cpu", "io", "id"};
	struct str word, rest = s;
	while (str_split(&rest, ' ', &word))
		for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
			if (str_eqc(word, words[w]))
				for (size_t k = 0; k < word.n; k++)
					((char *)(uintptr_t)word.p)[k] = (char)toupper((unsigned char)word.p[k]);
}

/* "total_cpu_time_ns" is "Total CPU time". */
static const char *stated_title_of(struct str id, struct arena *a)
{
	static const char *const units[] = {"_ns", "_bytes", "_pct"};
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (id.n > strlen(units[i]) && str_ends(id, str_from(units[i])))
			id.n -= strlen(units[i]);
	struct str copy = arena_str(a, id);
	char *p = (char *)(uintptr_t)copy.p;
	for (size_t i = 0; i < copy.n; i++)
		p[i] = p[i] == '_' ? ' ' : p[i];
	put_capitals(copy);
	if (copy.n)
		p[0] = (char)toupper((unsigned char)p[0]);
	return copy.p;
}

static struct str kept_id(struct str id, struct arena *a)
{
	struct str copy = arena_str(a, id);
	for (size_t i = 0; i < copy.n; i++)
		if ((unsigned char)copy.p[i] <= ' ' || copy.p[i] == ',')
			((char *)(uintptr_t)copy.p)[i] = '_';
	return copy;
}

static void stated_add_columns(const struct stated *s, struct table *t)
{
	TABLE_COLUMN(t, .id = "aggregation", .title = "Aggregation", .help = "number of the aggregation that the row is part of", .type = CELL_I64);
	for (unsigned c = 0; c < s->n; c++) {
		const struct column_facts *f = &s->column[c];
		struct str id = kept_id(profile_str(s->p, f->id), &t->arena);
		enum cell_type type = f->text ? CELL_STR : f->real ? CELL_F64 : CELL_I64;
		unsigned flags = str_eq(id, STR("problem")) || str_eq(id, STR("recommendation")) ? COLUMN_PROSE : type == CELL_STR && id.n > 4 ? COLUMN_WIDE : 0;
		TABLE_COLUMN(t, .id = id.p, .title = stated_title_of(id, &t->arena), .help = "as the input states it", .type = type,
		             .unit = f->text ? UNIT_NONE : stated_unit_of(id), .flags = flags);
	}
}

static void stated_set_cell(struct table *t, unsigned c, struct str v)
{
	int64_t i = 0;
	switch (t->data[c].col.type) {
	case CELL_I64:
		if (str_to_i64(v, &i))
			table_set_i64(t, c, i);
		break;
	case CELL_F64:
		table_set_f64(t, c, v.n ? strtod(v.p, NULL) : 0);
		break;
	default:
		table_set_str(t, c, v);
	}
}

static void add_rows(const struct stated *s, struct table *t)
{
	const struct stateds *d = &s->p->stated;
	uint32_t before = ROW_NONE;
	unsigned c = 0;
	for (uint32_t i = 0; i < d->rows.n; i++) {
		if (d->tbl[i] != s->id)
			continue;
		if (before == ROW_NONE || d->row[i] != d->row[before] || d->aggregation[i] != d->aggregation[before]) {
			table_row(t);
			if (d->aggregation[i] != ID_NONE)
				table_set_i64(t, 0, d->aggregation[i]);
			c = 0;
		}
		before = i;
		unsigned at = find_column(s, d->col[i], c);
		if (at == COLUMNS_MAX)
			continue;
		stated_set_cell(t, at + 1, profile_str(s->p, d->value[i]));
		c = at + 1;
	}
}

void stated_tables(const struct profile *p, struct table *out)
{
	const struct stateds *t = &p->stated;
	uint32_t seen[TABLES_MAX];
	unsigned n = 0;
	struct stated *s = NEW(struct stated);
	for (uint32_t i = 0; i < t->rows.n; i++) {
		bool known = i && t->tbl[i] == t->tbl[i - 1];
		for (unsigned k = 0; k < n && !known; k++)
			known = seen[k] == t->tbl[i];
		if (known)
			continue;
		if (n == TABLES_MAX) {
			table_note(out, "more than %d tables are stated: the rest is left out", TABLES_MAX);
			break;
		}
		seen[n++] = t->tbl[i];
		*s = (struct stated){.p = p, .id = t->tbl[i]};
		find_columns(s);
		struct str name = kept_id(profile_str(p, s->id), &out->arena);
		struct table *section = table_section(out, name.p, arena_printf(&out->arena, STR_FMT ", as stored", STR_ARG(name)).p);
		section->folded = true;
		stated_add_columns(s, section);
		add_rows(s, section);
		if (s->too_many)
			table_note(section, "columns beyond the first %d are left out", COLUMNS_MAX);
	}
	mem_free(s);
}

const struct table *stated_find(const struct table *t, const char *name)
{
	for (t = t->next; t; t = t->next)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

size_t stated_row(const struct table *t, int64_t aggregation, size_t from)
{
	for (; t && from < t->n_rows; from++)
		if (!table_is_null(t, from, 0) && table_i64(t, from, 0) == aggregation)
			return from;
	return SIZE_MAX;
}
