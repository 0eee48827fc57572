/* Databases of NVIDIA DLProf 1.3 to 1.8 (dlprof_dldb.sqlite). */
#include "input/dldb/dldb.h"

#include "input/input.h"

#include <stdio.h>

static void dldb_count_rest(void *context, const char *table)
{
	struct dldb *d = context;
	static const char *const used[] = {"metric", "node_time_metrics", "kernel_time_metrics", "category_summary", "dictionary"};
	if (intern_find(&d->tables_read, str_from(table)) != INTERN_NONE)
		return;
	for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
		if (strcmp(used[i], table) == 0)
			return;
	int64_t n = sqldb_count(&d->db, table);
	if (n < 0)
		diag_add(&d->p->diags, "damaged-table", DIAG_LOSS, -1, "table %s is damaged: its rows cannot be counted", table);
	if (n <= 0)
		return;
	build_count(&d->b, build_cat(&d->b, intern_str(&d->p->strings, str_from(table))), '-', (uint64_t)n);
	diag_add_n(&d->p->diags, "not-read", DIAG_NOTE, (uint64_t)n, -1, "rows of tables that opscope does not use: %s is the first", table);
}

static void dldb_init(struct dldb *d, struct profile *p)
{
	d->p = p;
	d->domain = ID_NONE;
	build_init(&d->b, p);
	intern_init(&d->tables_read);
	intern_init(&d->calls);
	intern_init(&d->work_seen);
}

static int dldb_finish(struct dldb *d, struct err *e)
{
	if (sqldb_each_table(&d->db, dldb_count_rest, d) < 0)
		diag_add(&d->p->diags, "damaged-table", DIAG_LOSS, -1, "the list of tables is damaged");
	if (!d->p->gpu_op.rows.n)
		diag_add(&d->p->diags, "no-gpu-work", DIAG_NOTE, -1, "the database holds no kernels and no copies");
	dldb_rows_release(&d->dictionary);
	dldb_rows_release(&d->ops);
	dldb_rows_release(&d->instances);
	dldb_rows_release(&d->grid);
	intern_release(&d->tables_read);
	intern_release(&d->calls);
	intern_release(&d->work_seen);
	mem_free(d->op);
	mem_free(d->by_op);
	mem_free(d->called);
	d->p->input_bytes = d->db.file_bytes;
	d->p->zero_is_start = true;
	d->p->recorder = RECORDER_NVIDIA;
	rows_trim(&d->p->stated, &store_tables[TABLE_stated]);
	int rc = build_finish(&d->b, e);
	return sqldb_close(&d->db, e) < 0 ? -1 : rc;
}

/* "1.8.0" -> 1008; -1 = none. Versions of one major number are read up to the newest there was. */
static int version_number(struct str s)
{
	int v[2] = {0, 0};
	struct str part;
	for (int i = 0; i < 2 && str_split(&s, '.', &part); i++) {
		int64_t n;
		if (!str_to_i64(part, &n) || n < 0 || n > 999)
			return -1;
		v[i] = (int)n;
	}
	return v[0] * 1000 + v[1];
}

enum { OLDEST = 1003, NEWEST = 1008 };

/* Versions before 1.3 do not state theirs. */
static int check_version(struct dldb *d, const char *path, struct err *e)
{
	static const char *const columns[] = {"current_version", NULL};
	struct sqlscan s;
	char text[32] = "";
	if (sqldb_has_table(&d->db, "db_version") && sqlscan_open(&s, &d->db, "db_version", columns, NULL) == 0) {
		if (sqlscan_next(&s)) {
			struct str v = sqlscan_str(&s, 0);
			snprintf(text, sizeof text, "%.*s", (int)(v.n < 20 ? v.n : 20), v.n ? v.p : "");
		}
		sqlscan_close(&s);
	}
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	int version = version_number(str_from(text));
	if (!sqldb_has_table(&d->db, "db_version") || (*text && version >= 0 && version < OLDEST))
		return err_set(e, ERR_FORMAT, "%s: a database of DLProf %s, which is too old: 1.3 to 1.8 can be read; give the database of Nsight Systems "
		               "that it was made from", path, *text ? text : "1.0 to 1.2");
	if (version < OLDEST || version > NEWEST)
		diag_add(&d->p->diags, "unknown-version", DIAG_NOTE, -1, "the database says that its version is '%s'; known are 1.3 to 1.8: it is read by "
		         "the names of its columns", text);
	if (!sqldb_has_table(&d->db, "read_only_ops"))
		return err_set(e, ERR_FORMAT, "%s: a DLProf database without the table read_only_ops", path);
	return 0;
}

static int read_open(struct dldb *d, struct profile *p, bool stale, const char *path, struct err *e)
{
	static const char *const dictionary_columns[] = {"id", "string", NULL};
	d->p = p;
	if (check_version(d, path, e) < 0) {
		int rc = sqldb_close(&d->db, e);
		return rc < 0 ? rc : -1;
	}
	dldb_init(d, p);
	if (stale)
		diag_add(&p->diags, "unfinished-database", DIAG_LOSS, -1,
		         "a journal lies beside the file: it is still being written, or was not closed, and the newest rows may be missing");
	dldb_load(d, &d->dictionary, "dictionary", dictionary_columns);
	dldb_read_run(d);
	dldb_read_stated(d);
	return dldb_finish(d, e);
}

static int dldb_read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s);
	bool stale;
	if (strcmp(path, "-") == 0)
		return err_set(e, ERR_USAGE, "a DLProf database cannot be read from a pipe: give its name");
	if (source_is_compressed(s))
		return err_set(e, ERR_FORMAT, "%s: a DLProf database that was compressed: unpack it first", path);
	struct dldb *d = NEW(struct dldb);
	int rc = sqldb_open(&d->db, path, &stale, e);
	if (!rc)
		rc = read_open(d, p, stale, path, e);
	mem_free(d);
	return rc;
}

/* Several of the tables that only DLProf has, of all its versions. */
static bool is_dldb(struct str tables)
{
	static const char *const own[] = {"read_only_ops", "read_only_op_instances", "op_nodes", "model_summary", "iteration_key",
	                                  "kernel_summaries", "expert_systems_feedback", "op_type_metrics"};
	int n = 0;
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		n += str_has(tables, str_from(own[i]));
	return n >= 3;
}

/* By the names of the tables; where the schema is too damaged to be read, by those that stand in the first bytes. */
static int dldb_sniff(struct str head, const char *path, struct err *e)
{
	struct buf list = {0};
	if (!str_starts(head, (struct str){"SQLite format 3", 16}))
		return 0;
	int rc = path ? sqldb_list(path, &list, e) : 1;
	bool yes = is_dldb(rc == 0 ? buf_view(&list) : head);
	buf_release(&list);
	return rc < 0 ? -1 : yes ? 90 : 0;
}

const struct input input_dldb = {
	.name = "dldb",
	.help = "Databases of NVIDIA DLProf 1.3 to 1.8 (dlprof_dldb.sqlite), with the aggregations that they hold",
	.sniff = dldb_sniff,
	.read = dldb_read_file,
};
