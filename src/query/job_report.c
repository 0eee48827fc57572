#include "query/job_report.h"

#include "analysis/ranks/job.h"
#include "analysis/ranks/rank_place.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "query/job_each.h"
#include "query/job_read.h"

/* What is added up for one cell. */
struct job_report_cell {
	double sum;
	uint32_t n;
};

/* A row of the joined table: its key, and of each column the sum over ranks. */
struct job_report_row {
	union cell *key;          /* by column; of those that are keys */
	uint8_t *has_key;
	struct job_report_cell *cell;
	uint32_t ranks;
	double least, most;       /* of the lead */
	int64_t most_rank;
	uint32_t last_rank;       /* that added to the row: one rank may have several rows of one key */
};

/* One table, joined over the ranks. */
struct job_report_join {
	struct column *column;
	bool *is_key, *is_left_out;
	unsigned n_columns;
	unsigned lead;            /* the first duration, if possible one that answers (COLUMN_ANSWER); n_columns = there is none */
	struct intern keys;
	struct job_report_row *row;
	uint32_t n, cap;
	struct arena arena;
};

struct job_report_work {
	const struct report *r;
	const struct job_inputs *in;
	const struct report_args *args;
	struct table *out;
	struct table *tables;     /* of the ranks that have one, in order */
	int64_t *rank;            /* of each */
	uint32_t n;
	int64_t world;            /* ranks of the job, as the recordings say; 0 = they do not */
	int64_t other_world;      /* what another recording says; 0 = none contradicts */
	unsigned repeated;        /* recordings of a rank that another one is of */
	unsigned failed;
	struct err first;         /* the first failure */
};

/* Notes what a recording says of its job. */
static void job_report_see_world(struct job_report_work *w, int64_t world)
{
	if (world && w->world && world != w->world)
		w->other_world = world < w->world ? world : w->world;
	w->world = world > w->world ? world : w->world;
}

/* Why the numbers may not be those of one job. */
static void job_report_put_doubts(struct job_report_work *w)
{
	if (w->other_world)
		table_warn(w->out, "recordings state jobs of %lld and of %lld ranks: they are not of one job, and numbers over both mean nothing", (long long)w->other_world,
		           (long long)w->world);
	if (w->repeated)
		table_warn(w->out, "%u recording%s of a rank that another recording is of, too: the first by name counts", w->repeated, w->repeated == 1 ? "" : "s");
}

/* "8 ranks", "6 of 8 ranks". */
static struct str job_report_count(const struct job_report_work *w, uint32_t n)
{
	struct arena *a = &w->out->arena;
	return w->world > n ? arena_printf(a, "%u of %lld ranks", n, (long long)w->world) : arena_printf(a, "%u rank%s", n, n == 1 ? "" : "s");
}

static void job_report_failed(struct job_report_work *w, unsigned i, const struct err *e)
{
	if (!w->failed++)
		w->first = *e;
	table_warn(w->out, "%s is left out: %s", w->in->path(w->in->context, i), e->msg);
}

/* ---- reports with run_job ---- */

struct job_report_together {
	struct job_report_work *w;
	struct job_ask ask;
	struct job *j;
};

static void *job_report_take_ranks(const void *context, const struct job_inputs *in, unsigned i)
{
	return job_read_of(in, i, &((const struct job_report_together *)context)->ask);
}

static void job_report_put_ranks(void *context, unsigned i, void *made)
{
	struct job_report_together *t = context;
	struct job_read *x = made;
	if (x->failed.code) {
		job_report_failed(t->w, i, &x->failed);
	} else {
		job_report_see_world(t->w, x->world);
		job_read_take_ranks(x, t->j);
	}
	job_read_free(x);
}

static int job_report_together(struct job_report_work *w, struct err *e)
{
	struct job *j = job_new();
	/* A report that does not choose the steps itself is of a part of the recording (report_run). */
	const struct job_ask ask = {.args = w->args, .needs = w->r->needs | w->args->variant->needs,
	                            .part = w->args->has_steps && !((w->r->takes | w->args->variant->takes) & REPORT_STEPS)};
	struct job_report_together t = {w, ask, j};
	job_each(w->in, &(struct job_each){job_report_take_ranks, job_report_put_ranks, &t});
	int rc = j->n ? job_finish(j, (enum job_align)w->args->align, w->args->clocks, e) : (*e = w->first, -1);
	rc = rc < 0 ? rc : report_run_job(w->r, j, w->args, w->out, e);
	table_drop_left_out(w->out);
	job_report_put_doubts(w);
	job_free(j);
	return rc;
}

/* ---- reports that take one recording after the other ---- */

static int64_t job_report_rank_of(struct job_report_work *w, const struct profile *p, unsigned i)
{
	struct rank_place place = rank_place_of(p);
	job_report_see_world(w, place.world);
	return place.is_rank ? place.rank : w->in->rank(w->in->context, i);
}

static int job_report_gather(struct job_report_work *w, struct err *e)
{
	const struct report_gather *g = w->args->variant->gather;
	unsigned needs = w->r->needs | w->args->variant->needs;
	void *gathered = g->start(w->args);
	w->rank = NEW_ARRAY(w->in->n, int64_t);
	for (unsigned i = 0; i < w->in->n; i++) {
		struct err why;
		struct profile *p = w->in->open(w->in->context, i, &why);
		int64_t rank = p ? job_report_rank_of(w, p, i) : 0;
		if (p && ANY_WHERE(k, 0, w->n, w->rank[k] == rank)) {
			w->repeated++;
		} else if (p && analysis_run(p, needs, &why) == 0) {
			g->add(gathered, p, rank);
			w->rank[w->n++] = rank;
		} else {
			job_report_failed(w, i, &why);
		}
		profile_free(p);
	}
	int rc = w->n ? g->finish(gathered, w->out, e) : (*e = w->first, -1);
	job_report_put_doubts(w);
	if (w->world > w->n)
		table_warn(w->out, STR_FMT " are here: numbers are of these", STR_ARG(job_report_count(w, w->n)));
	g->end(gathered);
	mem_free(w->rank);
	return rc;
}

/* ---- reports of one recording: their tables joined ---- */

static bool job_report_is_measure(const struct column *c)
{
	return c->type == CELL_F64 || (c->type == CELL_I64 && c->unit != UNIT_NONE && c->unit != UNIT_TIME_NS && !(c->flags & (COLUMN_GROUP | COLUMN_TREE)));
}

static bool job_report_same_number(const struct table *a, size_t row, const struct table *b, size_t other, unsigned c)
{
	if (table_is_null(a, row, c) || table_is_null(b, other, c))
		return table_is_null(a, row, c) == table_is_null(b, other, c);
	return table_i64(a, row, c) == table_i64(b, other, c);
}

/* Whether a number only says which rank it is, as the ordinal of its GPU: one value in each table, and not the same in all. */
static bool job_report_is_of_rank(const struct table *const *tables, uint32_t n, unsigned c)
{
	bool differs = false;
	if (tables[0]->data[c].col.type != CELL_I64)
		return false;
	const struct table *first = NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct table *t = tables[i];
		if (!t->n_rows)
			continue;
		for (size_t r = 1; r < t->n_rows; r++)
			if (!job_report_same_number(t, 0, t, r, c))
				return false;
		differs |= first && !job_report_same_number(first, 0, t, 0, c);
		first = first ? first : t;
	}
	return differs;
}

static void job_report_start_join(struct job_report_join *x, const struct table *const *tables, uint32_t n)
{
	const struct table *t = tables[0];
	x->n_columns = t->n_columns;
	x->column = NEW_ARRAY(t->n_columns, struct column);
	x->is_key = NEW_ARRAY(t->n_columns, bool);
	x->is_left_out = NEW_ARRAY(t->n_columns, bool);
	x->lead = t->n_columns;
	intern_init(&x->keys);
	for (unsigned c = 0; c < t->n_columns; c++) {
		x->column[c] = t->data[c].col;
		bool measure = job_report_is_measure(&x->column[c]);
		x->is_left_out[c] = x->column[c].unit == UNIT_TIME_NS || (!measure && job_report_is_of_rank(tables, n, c));
		x->is_key[c] = !measure && !x->is_left_out[c];
		bool duration = measure && x->column[c].unit == UNIT_NS;
		if (duration && (x->lead == t->n_columns || (!(x->column[x->lead].flags & COLUMN_ANSWER) && (x->column[c].flags & COLUMN_ANSWER))))
			x->lead = c;
	}
}

static void job_report_put_key(const struct job_report_join *x, const struct table *t, size_t row, struct buf *key)
{
	buf_clear(key);
	buf_cstr(key, "row\n"); /* no key is empty */
	for (unsigned c = 0; c < x->n_columns; c++) {
		if (!x->is_key[c])
			continue;
		bool null = table_is_null(t, row, c);
		if (null)
			buf_cstr(key, "-");
		else if (x->column[c].type == CELL_STR)
			buf_printf(key, "%zu:" STR_FMT, table_str(t, row, c).n, STR_ARG(table_str(t, row, c)));
		else
			buf_printf(key, "%lld", (long long)table_i64(t, row, c));
		buf_cstr(key, "\n");
	}
}

static struct job_report_row *job_report_row_of(struct job_report_join *x, const struct table *t, size_t row, struct buf *key)
{
	job_report_put_key(x, t, row, key);
	uint32_t before = x->keys.n, at = intern_str(&x->keys, buf_view(key)) - 1;
	if (x->keys.n == before)
		return &x->row[at];
	struct job_report_row new = {.key = ARENA_ARRAY(&x->arena, x->n_columns, union cell), .has_key = ARENA_ARRAY(&x->arena, x->n_columns, uint8_t),
	                             .cell = ARENA_ARRAY(&x->arena, x->n_columns, struct job_report_cell), .last_rank = UINT32_MAX};
	for (unsigned c = 0; c < x->n_columns; c++) {
		new.has_key[c] = x->is_key[c] && !table_is_null(t, row, c);
		if (!new.has_key[c])
			continue;
		new.key[c] = t->data[c].cell[row];
		if (x->column[c].type == CELL_STR)
			new.key[c].s = arena_str(&x->arena, table_str(t, row, c));
	}
	MEM_PUSH(x->row, x->n, x->cap, new);
	return &x->row[at];
}

/* The rows of one rank, the rank being number `i` of the job. */
static void job_report_add_table(struct job_report_join *x, const struct table *t, uint32_t i, int64_t rank)
{
	struct buf key = {0};
	for (size_t r = 0; r < t->n_rows; r++) {
		struct job_report_row *row = job_report_row_of(x, t, r, &key);
		row->ranks += row->last_rank != i;
		row->last_rank = i;
		for (unsigned c = 0; c < x->n_columns; c++) {
			if (x->is_key[c] || x->is_left_out[c] || table_is_null(t, r, c))
				continue;
			double v = table_f64(t, r, c);
			row->cell[c].sum += v;
			row->cell[c].n++;
			if (c != x->lead)
				continue;
			row->least = row->cell[c].n == 1 || v < row->least ? v : row->least;
			if (row->cell[c].n == 1 || v > row->most) {
				row->most = v;
				row->most_rank = rank;
			}
		}
	}
	buf_release(&key);
}

static void job_report_put_row(const struct job_report_join *x, const struct job_report_row *row, const unsigned *at, const unsigned *added, struct table *t)
{
	table_row(t);
	for (unsigned c = 0; c < x->n_columns; c++) {
		if (x->is_left_out[c])
			continue;
		if (row->has_key[c] && x->column[c].type == CELL_STR)
			table_set_str_copy(t, at[c], row->key[c].s);
		else if (row->has_key[c] && x->column[c].type == CELL_BOOL)
			table_set_bool(t, at[c], row->key[c].i);
		else if (row->has_key[c])
			table_set_i64(t, at[c], row->key[c].i);
		else if (!x->is_key[c] && row->cell[c].n)
			table_set_f64(t, at[c], row->cell[c].sum / row->cell[c].n);
	}
	table_set_i64(t, added[0], row->ranks);
	if (x->lead == x->n_columns || !row->cell[x->lead].n)
		return;
	table_set_i64(t, added[1], (int64_t)row->least);
	table_set_i64(t, added[2], (int64_t)row->most);
	table_set_i64(t, added[3], row->most_rank);
}

static void job_report_put_join(const struct job_report_join *x, struct table *t)
{
	unsigned *at = NEW_ARRAY(x->n_columns, unsigned), added[4] = {0};
	for (unsigned c = 0; c < x->n_columns; c++) {
		if (x->is_left_out[c])
			continue;
		struct column column = x->column[c];
		if (!x->is_key[c])
			column.type = CELL_F64;
		at[c] = table_column(t, &column);
		if (c != x->lead)
			continue;
		added[1] = TABLE_COLUMN(t, .id = "rank_min_ns", .title = "Least", .help = "of the rank that has least", .type = CELL_I64, .unit = UNIT_NS);
		added[2] = TABLE_COLUMN(t, .id = "rank_max_ns", .title = "Most", .help = "of the rank that has most", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_ANSWER);
		added[3] = TABLE_COLUMN(t, .id = "max_rank", .title = "Rank of most", .help = "the rank that has most", .type = CELL_I64, .flags = COLUMN_ANSWER);
	}
	added[0] = TABLE_COLUMN(t, .id = "ranks_with", .title = "On ranks", .help = "how many ranks have the row: other numbers are means over these", .type = CELL_I64,
	                        .unit = UNIT_COUNT, .flags = COLUMN_MINOR);
	for (uint32_t i = 0; i < x->n; i++)
		job_report_put_row(x, &x->row[i], at, added, t);
	mem_free(at);
}

static bool job_report_is_tree(const struct table *t)
{
	for (unsigned c = 0; c < t->n_columns; c++)
		if (t->data[c].col.flags & COLUMN_TREE)
			return true;
	return false;
}

/* Tables that have other columns than the first are of other recording options, and cannot be joined with it. */
static bool job_report_has_columns_of(const struct table *t, const struct table *first)
{
	bool same = t->n_columns == first->n_columns;
	for (unsigned c = 0; same && c < t->n_columns; c++)
		same = strcmp(t->data[c].col.id, first->data[c].col.id) == 0;
	return same;
}

/* Why the report has no mean over ranks; NULL = it may have one. */
static const char *job_report_no_mean(const struct report *r, const struct report_args *args)
{
	if (args->compat)
		return "a predecessor's numbers are of one recording";
	return report_is_per_event(r, args->group_by) ? "it has a row for each event" : NULL;
}

static int job_report_refuse_mean(const struct report *r, const char *why, struct err *e)
{
	return err_set(e, ERR_USAGE, "report %s: %s, and there is no mean over ranks: choose one with --rank=N, or --rank=all", r->name, why);
}

/* Whether the rows of every table are in order of a column, largest first. */
static bool job_report_descends(const struct table *const *tables, uint32_t n, unsigned c)
{
	for (uint32_t i = 0; i < n; i++)
		for (size_t r = 1; r < tables[i]->n_rows; r++) {
			bool set = !table_is_null(tables[i], r, c), before = !table_is_null(tables[i], r - 1, c);
			if (set && (!before || table_f64(tables[i], r, c) > table_f64(tables[i], r - 1, c)))
				return false;
		}
	return true;
}

/* Joins the tables of n ranks, which have the same columns. Rows come in the order of the first rank, unless all ranks have the largest first: the means
 * of these have, too. */
static int job_report_join_tables(struct job_report_work *w, const struct table *const *tables, const int64_t *rank, uint32_t n, struct err *e)
{
	struct job_report_join x = {0};
	job_report_start_join(&x, tables, n);
	for (uint32_t i = 0; i < n; i++)
		job_report_add_table(&x, tables[i], i, rank[i]);
	job_report_put_join(&x, w->out);
	int rc = 0;
	if (x.lead < x.n_columns && job_report_descends(tables, n, x.lead))
		rc = table_sort(w->out, str_from(x.column[x.lead].id), true, e);
	table_note(w->out, "numbers are means over " STR_FMT "; --rank=all shows each, --rank=N one with all its sections and notes", STR_ARG(job_report_count(w, n)));
	mem_free(x.column);
	mem_free(x.is_key);
	mem_free(x.is_left_out);
	mem_free(x.row);
	intern_release(&x.keys);
	arena_release(&x.arena);
	return rc;
}

static int job_report_join_means(struct job_report_work *w, struct err *e)
{
	const struct table **tables = NEW_ARRAY(w->n, const struct table *);
	int64_t *rank = NEW_ARRAY(w->n, int64_t);
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		if (!job_report_has_columns_of(&w->tables[i], &w->tables[0])) {
			table_warn(w->out, "rank %lld is left out: its recording has other columns than that of rank %lld; --rank=%lld shows it", (long long)w->rank[i], (long long)w->rank[0],
			           (long long)w->rank[i]);
			continue;
		}
		tables[n] = &w->tables[i];
		rank[n++] = w->rank[i];
	}
	int rc = job_report_is_tree(tables[0]) ? job_report_refuse_mean(w->r, "its rows are a tree", e) : job_report_join_tables(w, tables, rank, n, e);
	mem_free(tables);
	mem_free(rank);
	return rc;
}

/* The cell of one table in another with the same column. */
static void job_report_copy_cell(const struct table *from, size_t row, unsigned c, struct table *to, unsigned at)
{
	if (table_is_null(from, row, c))
		return;
	switch (from->data[c].col.type) {
	case CELL_STR:
		table_set_str_copy(to, at, table_str(from, row, c));
		break;
	case CELL_F64:
		table_set_f64(to, at, table_f64(from, row, c));
		break;
	case CELL_BOOL:
		table_set_bool(to, at, table_i64(from, row, c));
		break;
	case CELL_I64:
		table_set_i64(to, at, table_i64(from, row, c));
		break;
	}
}

static void job_report_list_each(struct job_report_work *w)
{
	struct table *out = w->out;
	unsigned rank = TABLE_COLUMN(out, .id = "rank", .title = "Rank", .help = "number in the job", .type = CELL_I64, .flags = COLUMN_ANSWER | COLUMN_GROUP);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct table *t = &w->tables[i];
		unsigned *at = NEW_ARRAY(t->n_columns, unsigned);
		for (unsigned c = 0; c < t->n_columns; c++) {
			int found = table_find_column(out, str_from(t->data[c].col.id));
			at[c] = found >= 0 ? (unsigned)found : table_column(out, &t->data[c].col);
		}
		for (size_t r = 0; r < t->n_rows; r++) {
			table_row(out);
			table_set_i64(out, rank, w->rank[i]);
			for (unsigned c = 0; c < t->n_columns; c++)
				if (out->data[at[c]].col.type == t->data[c].col.type)
					job_report_copy_cell(t, r, c, out, at[c]);
		}
		mem_free(at);
	}
	table_note(out, STR_FMT ", one below the other; --rank=N shows one with all its sections and notes", STR_ARG(job_report_count(w, w->n)));
}

/* Strings of a table may be those of its profile, which is freed: the copy has its own. */
static void job_report_keep(struct table *t)
{
	for (unsigned c = 0; c < t->n_columns; c++)
		for (size_t r = 0; r < t->n_rows && t->data[c].col.type == CELL_STR; r++)
			if (t->data[c].set[r])
				t->data[c].cell[r].s = arena_str(&t->arena, t->data[c].cell[r].s);
}

/* The table of one recording. */
struct job_report_table {
	struct rank_place place;
	struct table table;
	struct err failed;       /* ERR_NONE: it has one */
};

static void *job_report_take_table(const void *context, const struct job_inputs *in, unsigned i)
{
	const struct job_report_work *w = context;
	struct job_report_table *made = NEW(struct job_report_table);
	struct err e = {0};
	struct profile *p = in->open(in->context, i, &e);
	if (p)
		made->place = rank_place_of(p);
	if (!p || report_run(w->r, p, w->args, &made->table, &e) < 0)
		made->failed = e;
	else
		job_report_keep(&made->table);
	profile_free(p);
	return made;
}

static void job_report_put_table(void *context, unsigned i, void *made)
{
	struct job_report_work *w = context;
	struct job_report_table *from = made;
	int64_t rank = from->place.is_rank ? from->place.rank : w->in->rank(w->in->context, i);
	job_report_see_world(w, from->place.world);
	if (from->failed.code) {
		job_report_failed(w, i, &from->failed);
	} else if (ANY_WHERE(k, 0, w->n, w->rank[k] == rank)) {
		w->repeated++;
		table_release(&from->table);
	} else {
		w->tables[w->n] = from->table;
		w->rank[w->n++] = rank;
	}
	mem_free(from);
}

static int job_report_one_by_one(struct job_report_work *w, bool each, struct err *e)
{
	w->tables = NEW_ARRAY(w->in->n, struct table);
	w->rank = NEW_ARRAY(w->in->n, int64_t);
	job_each(w->in, &(struct job_each){job_report_take_table, job_report_put_table, w});
	job_report_put_doubts(w);
	int rc = 0;
	if (!w->n) {
		*e = w->first;
		rc = -1;
	} else if (each) {
		job_report_list_each(w);
	} else {
		rc = job_report_join_means(w, e);
	}
	for (uint32_t i = 0; i < w->n; i++)
		table_release(&w->tables[i]);
	mem_free(w->tables);
	mem_free(w->rank);
	return rc;
}

int job_report_run(const struct report *r, const struct job_inputs *in, bool each, const struct report_args *args, struct table *out, struct err *e)
{
	struct report_args chosen = *args;
	if (report_check(r, args, e) < 0)
		return -1;
	chosen.variant = report_variant_of(r, args, NULL);
	chosen.per = args->per == REPORT_PER_STEP_IF_RIGHT ? REPORT_PER_TOTAL : args->per;
	const char *no_mean = r->run_job || each ? NULL : job_report_no_mean(r, &chosen);
	if (in->kept && !r->run_job)
		return err_set(e, ERR_USAGE, "%s holds what reports of all ranks together need, and not the recordings, which report %s is about: give the folder with these", in->kept, r->name);
	if (no_mean)
		return job_report_refuse_mean(r, no_mean, e);
	struct job_report_work w = {.r = r, .in = in, .args = &chosen, .out = out};
	table_init(out, r->name, r->title);
	int rc = chosen.variant->gather ? job_report_gather(&w, e) : r->run_job ? job_report_together(&w, e) : job_report_one_by_one(&w, each, e);
	if (rc < 0)
		table_release(out);
	return rc;
}

int job_report_of(const struct report *r, const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	struct report_args chosen = *args;
	if (report_check(r, args, e) < 0)
		return -1;
	chosen.variant = report_variant_of(r, args, NULL);
	if (args->has_steps && !((r->takes | chosen.variant->takes) & REPORT_STEPS))
		return err_set(e, ERR_USAGE, "report %s takes no steps of a job that was read already", r->name);
	table_init(out, r->name, r->title);
	int rc = r->run_job(j, &chosen, out, e);
	table_drop_left_out(out);
	if (rc < 0)
		table_release(out);
	return rc;
}
