/* Rows, texts, times and tracks, for all tables of a DLProf database. */
#include "input/dldb/dldb.h"

#include <stdio.h>

bool dldb_scan(struct dldb *d, struct sqlscan *s, const char *table, const char *const *columns)
{
	struct err e = {0};
	d->table = table;
	d->row = 0;
	if (!sqldb_has_table(&d->db, table))
		return false;
	intern_str(&d->tables_read, str_from(table));
	if (sqlscan_open(s, &d->db, table, columns, &e) == 0)
		return true;
	diag_add(&d->p->diags, "unreadable-table", DIAG_LOSS, -1, "%s", e.msg);
	return false;
}

bool dldb_next(struct dldb *d, struct sqlscan *s)
{
	bool more = sqlscan_next(s);
	d->row = s->row;
	return more;
}

void dldb_scan_end(struct dldb *d, struct sqlscan *s)
{
	if (s->damaged)
		diag_add(&d->p->diags, "damaged-table", DIAG_LOSS, -1,
		         "table %s is damaged behind row %lld: the rows from there on could not be read", d->table, (long long)s->row);
	sqlscan_close(s);
}

struct dldb_cell dldb_cell(struct dldb *d, const struct sqlscan *s, int column)
{
	const struct sqlpage_value *v = &s->v[column];
	struct dldb_cell c = {.type = v->type};
	if (v->type == SQLPAGE_INT)
		c.i = v->i;
	else if (v->type == SQLPAGE_REAL)
		c.real = v->real;
	else if (v->type != SQLPAGE_NULL)
		c = (struct dldb_cell){.type = SQLPAGE_TEXT, .text = intern_str(&d->p->strings, v->s.p ? v->s : STR(""))};
	return c;
}

void dldb_load(struct dldb *d, struct dldb_rows *r, const char *table, const char *const *columns)
{
	struct sqlscan s;
	int64_t min = INT64_MAX, max = INT64_MIN;
	*r = (struct dldb_rows){0};
	while (columns[r->width])
		r->width++;
	if (dldb_scan(d, &s, table, columns)) {
		while (r->n < ROW_NONE - 1 && dldb_next(d, &s)) {
			int64_t id;
			if (!sqlscan_i64(&s, 0, &id))
				continue;
			if (r->n + 1 > r->cap) {
				r->cap = r->cap ? r->cap + r->cap / 2 : 64;
				r->cell = mem_realloc(r->cell, (size_t)r->cap * r->width, sizeof *r->cell);
			}
			for (unsigned c = 0; c < r->width; c++)
				r->cell[(size_t)r->n * r->width + c] = dldb_cell(d, &s, (int)c);
			r->cell[(size_t)r->n * r->width] = (struct dldb_cell){.type = SQLPAGE_INT, .i = id};
			r->n++;
			min = id < min ? id : min;
			max = id > max ? id : max;
		}
		dldb_scan_end(d, &s);
	}
	idmap_init(&r->at, min, max, r->n);
	for (uint32_t i = 0; i < r->n; i++)
		idmap_put(&r->at, dldb_at(r, i, 0)->i, i);
}

void dldb_rows_release(struct dldb_rows *r)
{
	idmap_release(&r->at);
	mem_free(r->cell);
}

uint32_t dldb_text(struct dldb *d, const struct dldb_cell *c)
{
	char text[40];
	int n = 0;
	if (c->type == SQLPAGE_TEXT)
		return c->text;
	if (c->type == SQLPAGE_INT)
		n = snprintf(text, sizeof text, "%lld", (long long)c->i);
	else if (c->type == SQLPAGE_REAL)
		n = snprintf(text, sizeof text, "%.17g", c->real);
	return intern_put(&d->p->strings, text, (size_t)n);
}

uint32_t dldb_word(struct dldb *d, const struct dldb_cell *id)
{
	enum { DICTIONARY_STRING = 1 };
	uint32_t at = id->type == SQLPAGE_INT ? dldb_find(&d->dictionary, id->i) : ROW_NONE;
	if (at != ROW_NONE)
		return dldb_text(d, dldb_at(&d->dictionary, at, DICTIONARY_STRING));
	if (id->type == SQLPAGE_NULL)
		return 0;
	DLDB_DIAG(d, "missing-string", DIAG_REPAIR, " names a text that the table dictionary does not have: it reads as ?");
	return intern_str(&d->p->strings, STR("?"));
}

int64_t dldb_int(struct dldb *d, const struct sqlscan *s, int column, int64_t absent)
{
	int64_t v;
	if (sqlscan_i64(s, column, &v))
		return v;
	if (!sqlscan_is_null(s, column))
		DLDB_DIAG(d, "wrong-type", DIAG_REPAIR, ": a cell that should be an integer is none: taken as not stated");
	return absent;
}

static bool time_ok(int64_t at_ns)
{
	enum { TOO_FAR = 62 }; /* the distance of any two times fits an int64 */
	return at_ns < 1ll << TOO_FAR && at_ns >= -(1ll << TOO_FAR);
}

bool dldb_times(struct dldb *d, const struct dldb_cell *start, const struct dldb_cell *stop, int64_t *start_ns, int64_t *dur_ns)
{
	if (start->type != SQLPAGE_INT || stop->type != SQLPAGE_INT || !time_ok(start->i) || !time_ok(stop->i)) {
		DLDB_DIAG(d, "no-time", DIAG_LOSS, ": its start or end is no time in ns: it is left out");
		return false;
	}
	*start_ns = start->i;
	*dur_ns = stop->i - start->i;
	if (*dur_ns < 0) {
		DLDB_DIAG(d, "negative-duration", DIAG_REPAIR, " ends %lld ns before it begins: taken as 0", -(long long)*dur_ns);
		*dur_ns = 0;
	}
	return true;
}

uint32_t dldb_thread_track(struct dldb *d, int64_t pid, int64_t tid)
{
	char p[24], t[24];
	int np = snprintf(p, sizeof p, "%lld", (long long)pid), nt = snprintf(t, sizeof t, "%lld", (long long)tid);
	uint32_t track = build_track(&d->b, (struct str){p, (size_t)np}, (struct str){t, (size_t)nt});
	d->p->track.process_labels[track] = intern_str(&d->p->strings, STR("CPU"));
	return track;
}

/* DLProf does not keep streams: all work of a device is on one track, where it may overlap. */
uint32_t dldb_device_track(struct dldb *d, int64_t device)
{
	char dev[24], label[40];
	int nd = snprintf(dev, sizeof dev, "%lld", (long long)device);
	uint32_t before = d->p->track.rows.n;
	uint32_t track = build_track(&d->b, (struct str){dev, (size_t)nd}, STR("-1"));
	if (d->p->track.rows.n == before)
		return track;
	int nl = snprintf(label, sizeof label, "GPU %lld", (long long)device);
	d->p->track.process_labels[track] = intern_put(&d->p->strings, label, (size_t)nl);
	d->p->track.thread_name[track] = intern_str(&d->p->strings, STR("all streams"));
	return track;
}
