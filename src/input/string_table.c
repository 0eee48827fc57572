#include "input/string_table.h"

#include "base/mem.h"

static void string_table_read(struct string_table *t, struct sqlscan *s, int64_t **ids)
{
	uint32_t cap = 0;
	while (t->n < STRING_CELL_NO_ID - 1 && sqlscan_next(s)) {
		int64_t id;
		struct str text = sqlscan_str(s, 1);
		if (!sqlscan_i64(s, 0, &id))
			continue;
		MEM_GROW(*ids, cap, t->n + 1);
		MEM_GROW(t->v, t->cap, t->n + 1);
		(*ids)[t->n] = id;
		text = arena_str(&t->bytes, text.p ? text : STR(""));
		t->v[t->n++] = (struct string_cell){text.p, (uint32_t)text.n, STRING_CELL_NO_ID};
	}
}

void string_table_load(struct string_table *t, struct sqldb *db, const char *table, const char *const *columns, struct diags *d)
{
	struct sqlscan s;
	struct err e;
	int64_t min = INT64_MAX, max = INT64_MIN, *ids = NULL;
	if (table && sqlscan_open(&s, db, table, columns, &e) < 0) {
		diag_add(d, "unreadable-table", DIAG_LOSS, -1, "%s", e.msg);
	} else if (table) {
		string_table_read(t, &s, &ids);
		if (s.damaged)
			diag_add(d, "damaged-table", DIAG_LOSS, -1, "table %s is damaged behind row %lld: names from there on are lost", table, (long long)s.row);
		sqlscan_close(&s);
	}
	for (uint32_t i = 0; i < t->n; i++) {
		min = ids[i] < min ? ids[i] : min;
		max = ids[i] > max ? ids[i] : max;
	}
	idmap_init(&t->at, min, max, t->n);
	for (uint32_t i = 0; i < t->n; i++)
		idmap_put(&t->at, ids[i], i);
	mem_free(ids);
}

void string_table_release(struct string_table *t)
{
	idmap_release(&t->at);
	arena_release(&t->bytes);
	mem_free(t->v);
}

struct string_cell *string_table_find(const struct string_table *t, int64_t id)
{
	uint32_t at = idmap_get(&t->at, id);
	return at == IDMAP_NONE ? NULL : &t->v[at];
}

uint32_t string_cell_intern(struct string_cell *s, struct intern *strings)
{
	if (s->id == STRING_CELL_NO_ID)
		s->id = intern_put(strings, s->p, s->n);
	return s->id;
}
