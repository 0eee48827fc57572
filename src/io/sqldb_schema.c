/* The tables of a database, from one pass over its schema: a file may have many thousands. */
#include "io/sqldb_schema.h"

#include "base/mem.h"

#include <math.h>

/* Into c->folded. */
static void sqldb_schema_fold(struct sqldb_schema *c, struct str name)
{
	buf_clear(&c->folded);
	for (size_t i = 0; i < name.n; i++)
		buf_char(&c->folded, (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] | 0x20 : name.p[i]));
}

/* The place of a name among the tables; INTERN_NONE. */
static uint32_t sqldb_schema_place_of(struct sqldb_schema *c, const char *table)
{
	sqldb_schema_fold(c, str_from(table));
	return intern_find(&c->folded_names, buf_view(&c->folded));
}

static void sqldb_schema_add_table(struct sqldb_schema *c, struct str name, int64_t root)
{
	sqldb_schema_fold(c, name);
	uint32_t at = intern_str(&c->folded_names, buf_view(&c->folded));
	if (at < c->n) /* of two tables with one name, in a damaged file, the first */
		return;
	MEM_GROW(c->table, c->cap, at + 1);
	memset(&c->table[c->n], 0, (at + 1 - c->n) * sizeof *c->table);
	c->table[at] = (struct sqldb_table){(size_t)c->names.n, root};
	c->n = at + 1;
	buf_str(&c->names, name);
	buf_char(&c->names, 0);
}

static void sqldb_schema_add_view(struct sqldb_schema *c, struct str name)
{
	enum { SHOWN_BYTES = 300 };
	if (c->views.n < SHOWN_BYTES)
		buf_printf(&c->views, "%s" STR_FMT, c->views.n ? ", " : "", STR_ARG(name));
}

void sqldb_schema_read(struct sqldb *d)
{
	struct sqldb_schema *c = d->schema = NEW(struct sqldb_schema);
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(d->db, "SELECT name, rootpage, type FROM sqlite_master WHERE type='table' OR type='view'", -1, &st, NULL);
	intern_init(&c->folded_names);
	sqldb_schema_add_table(c, STR(""), 0); /* id 0 is the empty name's */
	while (st && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct str name = str_from(sqldb_text(d, st, 0, NULL));
		if (!name.p)
			continue;
		if (sqlite3_column_int64(st, 1) > 0)
			sqldb_schema_add_table(c, name, sqlite3_column_int64(st, 1));
		else
			sqldb_schema_add_view(c, name);
	}
	sqldb_failed(d, rc, NULL);
	sqlite3_finalize(st);
	c->damaged = rc != SQLITE_DONE;
	buf_char(&c->views, 0);
}

void sqldb_schema_free(struct sqldb_schema *c)
{
	if (!c)
		return;
	intern_release(&c->folded_names);
	buf_release(&c->folded);
	buf_release(&c->names);
	buf_release(&c->views);
	mem_free(c->table);
	mem_free(c);
}

int64_t sqldb_root_page(const struct sqldb *d, const char *table)
{
	uint32_t at = d->schema ? sqldb_schema_place_of(d->schema, table) : INTERN_NONE;
	return at == INTERN_NONE ? 0 : d->schema->table[at].root;
}

bool sqldb_has_table(const struct sqldb *d, const char *table)
{
	return sqldb_root_page(d, table) > 0;
}

const char *sqldb_table_name(const struct sqldb *d, const char *table)
{
	uint32_t at = sqldb_schema_place_of(d->schema, table);
	return at == INTERN_NONE ? table : d->schema->names.p + d->schema->table[at].name;
}

int sqldb_each_table(const struct sqldb *d, void (*fn)(void *context, const char *table), void *context)
{
	const struct sqldb_schema *c = d->schema;
	for (uint32_t i = 1; i < c->n; i++) {
		const char *name = c->names.p + c->table[i].name;
		if (sqlite3_strnicmp(name, "sqlite_", 7) != 0)
			fn(context, name);
	}
	return c->damaged ? -1 : 0;
}

void sqldb_tell_views(const struct sqldb *d, struct diags *to)
{
	if (*d->schema->views.p)
		diag_add(to, "views", DIAG_LOSS, -1, "views are not read, as reading one runs what a stranger wrote; make them tables "
		         "(CREATE TABLE ... AS SELECT ...): %s", d->schema->views.p);
}

bool sqlvalue_i64(const struct sqlpage_value *v, int64_t *i)
{
	static const double exact = 9007199254740992.0; /* 2^53: beyond, a double may stand for another integer than was meant */
	*i = 0;
	if (v->type == SQLPAGE_TEXT)
		return str_to_i64(v->s, i);
	bool is = v->type == SQLPAGE_INT || (v->type == SQLPAGE_REAL && fabs(v->real) <= exact && v->real == (double)(int64_t)v->real);
	if (is)
		*i = v->type == SQLPAGE_INT ? v->i : (int64_t)v->real;
	return is;
}
