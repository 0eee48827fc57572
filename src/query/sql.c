#include "query/sql.h"

#include <assert.h>
#include <limits.h>
#include <sqlite3.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/sqlmem.h"
#include "query/advice.h"
#include "query/catalog.h"
#include "query/sql_functions.h"
#include "query/sql_result.h"
#include "store/vtab.h"

/* A table of the catalog, run at most once. */
struct lazy_report {
	struct sql *sql;
	const struct catalog_entry *entry;
	struct table table;
	bool done, sections_added;
};

struct sql {
	sqlite3 *db;
	struct profile *p;
	struct report_args args;
	struct catalog catalog;
	struct lazy_report *report; /* one per catalog entry */
	struct table findings, tables, columns;
	bool found, described;      /* the first of these is made; the other two are */
	bool lacks;                 /* the query is refused for what the input does not hold */
	struct err missing;         /* why the report that a missing table would be part of does not run */
	struct sql_limits limits;
	int64_t end_ns;             /* of the query that runs; 0 = any */
	sqlite3_int64 used_before;  /* bytes of SQLite when it began */
	const char *exceeded;       /* why it was ended */
	uint64_t result_bytes;      /* of its result so far */
	struct arena arena;
	struct mem_undo undo;
};

static const char views[] =
	"CREATE VIEW ops_raw AS SELECT s.rowid AS id, s.name, s.start_ns, s.dur_ns, t.pid, t.tid, t.thread_name, s.parent,"
	" s.op AS parent_op, s.ext_id AS external_id, s.link_id AS sequence_number, arg(s.args, 'Input Dims') AS input_dims,"
	" arg(s.args, 'Input type') AS input_types, arg(s.args, 'Call stack') AS call_stack"
	" FROM span s JOIN track t ON t.rowid = s.track WHERE s.kind = 'op';"
	"CREATE VIEW kernels_raw AS SELECT g.rowid AS id, g.name, g.start_ns, g.dur_ns, l.device, l.stream, l.context,"
	" l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z, l.registers, l.shared_bytes, l.blocks_per_sm,"
	" l.warps_per_sm, l.occupancy_pct, l.graph_id, l.graph_node_id, g.corr_id AS correlation, g.op AS op_id,"
	" o.name AS op, g.call AS call_id, c.name AS call, c.start_ns AS call_start_ns"
	" FROM gpu_op g JOIN launch l ON l.rowid = g.launch LEFT JOIN span o ON o.rowid = g.op"
	" LEFT JOIN span c ON c.rowid = g.call WHERE g.kind = 'kernel';";

static const struct { const char *name, *help; } view_help[] = {
	{"ops_raw", "view: framework ops with thread, shapes and call stack"},
	{"kernels_raw", "view: kernels with launch, API call and op"},
};

/* Reads, functions that touch nothing outside, and the PRAGMAs that describe tables. */
static int authorize(void *unused, int action, const char *a, const char *b, const char *c, const char *d)
{
	static const char *const pragmas[] = {"table_info", "table_xinfo", "table_list", "function_list", NULL};
	switch (action) {
	case SQLITE_SELECT: case SQLITE_READ: case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_UPDATE: /* asked when a virtual table declares itself, never done; a query that would is refused by prepare */
		return strcmp(a, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return strcasecmp(b, "load_extension") == 0 || strcasecmp(b, "fts3_tokenizer") == 0 ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		for (const char *const *p = pragmas; *p; p++)
			if (strcasecmp(a, *p) == 0)
				return SQLITE_OK;
		return SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static int sql_enter(const struct sql *s, struct mem_undo *u, struct err *e)
{
	if (profile_check(s->p, e) < 0 || (s->limits.enter && s->limits.enter(s->limits.context, e) < 0))
		return -1;
	mem_undo_begin(u, profile_break, s->p);
	return 0;
}

static void sql_leave(const struct sql *s, struct mem_undo *u)
{
	mem_undo_end(u);
	if (s->limits.leave)
		s->limits.leave(s->limits.context);
}

static const struct table *sql_run_report(void *arg, struct err *e)
{
	struct lazy_report *l = arg;
	struct mem_undo u;
	if (!l->done) {
		struct report_args args = l->sql->args;
		args.group_by = l->entry->group_by;
		if (sql_enter(l->sql, &u, e) < 0)
			return NULL;
		l->done = report_run(l->entry->report, l->sql->p, &args, &l->table, e) == 0;
		sql_leave(l->sql, &u);
		if (!l->done) {
			l->sql->lacks = e->code == ERR_DATA;
			return NULL;
		}
	}
	return &l->table;
}

static const struct table *sql_find(void *arg, struct err *e)
{
	struct sql *s = arg;
	struct mem_undo u;
	if (!s->found) {
		if (sql_enter(s, &u, e) < 0)
			return NULL;
		s->found = advice_table(s->p, &s->args, &s->findings, e) == 0;
		sql_leave(s, &u);
	}
	return s->found ? &s->findings : NULL;
}

static const struct table *given(void *table, struct err *e)
{
	return table;
}

static bool is_store_table(const char *name)
{
	for (int t = 0; t < STORE_N_TABLES; t++)
		if (strcasecmp(name, store_tables[t].name) == 0)
			return true;
	return false;
}

/* Under "report_NAME", and under NAME where that is free. */
static int sql_add_table(struct sql *s, const char *name, const char *section, const struct table *(*make)(void *, struct err *),
                         void *arg, struct err *e)
{
	for (int with_prefix = 0; with_prefix < 2; with_prefix++) {
		struct vtab_lazy *l = ARENA_ARRAY(&s->arena, 1, struct vtab_lazy);
		l->name = catalog_name(&s->arena, with_prefix ? "report" : NULL, name, section);
		l->make = make;
		l->arg = arg;
		if ((with_prefix || !is_store_table(l->name)) && vtab_add_table(s->db, l, e))
			return -1;
	}
	return 0;
}

static int add_reports(struct sql *s, struct err *e)
{
	catalog_init(&s->catalog);
	s->report = NEW_ARRAY(s->catalog.n, struct lazy_report);
	for (unsigned i = 0; i < s->catalog.n; i++) {
		s->report[i] = (struct lazy_report){.sql = s, .entry = &s->catalog.v[i]};
		if (sql_add_table(s, s->catalog.v[i].name, NULL, sql_run_report, &s->report[i], e))
			return -1;
	}
	return sql_add_table(s, "findings", NULL, sql_find, s, e);
}

/* The sections of a report are known only when it has run, so they are added when a query asks for a table that is not
 * there and has the report's name in front. True when there is anything new; else s->missing may say why not. */
static bool add_sections(struct sql *s, const char *missing)
{
	bool any = false;
	if (strncasecmp(missing, "report_", 7) == 0)
		missing += 7;
	for (unsigned i = 0; i < s->catalog.n; i++) {
		struct lazy_report *l = &s->report[i];
		size_t n = strlen(l->entry->name);
		if (strncasecmp(missing, l->entry->name, n) != 0 || missing[n] != '_' || l->sections_added ||
		    !sql_run_report(l, &s->missing))
			continue;
		l->sections_added = true;
		for (struct table *t = l->table.next; t; t = t->next)
			any |= sql_add_table(s, l->entry->name, t->name, given, t, NULL) == 0;
	}
	return any;
}

static void sql_describe(struct table *t, const char *name, const char *kind, const char *help)
{
	table_row(t);
	table_set_str(t, 0, str_from(name));
	table_set_str(t, 1, str_from(kind));
	table_set_str(t, 2, str_from(help));
}

static void describe_store(struct sql *s)
{
	for (int t = 0; t < STORE_N_TABLES; t++) {
		const struct store_table *d = &store_tables[t];
		sql_describe(&s->tables, d->name, "store", d->help);
		for (unsigned c = 0; c < d->n_columns; c++)
			sql_describe(&s->columns, d->name, d->columns[c].name, d->columns[c].help);
	}
}

/* One table of a report; `name` as it can be used. */
static void describe_table(struct sql *s, const char *name, const char *kind, const struct table *t)
{
	sql_describe(&s->tables, name, kind, t->title);
	for (unsigned c = 0; c < t->n_columns; c++) {
		const struct column *col = &t->data[c].col;
		sql_describe(&s->columns, name, col->id, col->help ? col->help : col->title);
	}
}

static const char *usable_name(struct sql *s, const char *name, const char *section)
{
	const char *plain = catalog_name(&s->arena, NULL, name, section);
	return is_store_table(plain) ? catalog_name(&s->arena, "report", name, section) : plain;
}

/* The report with its sections, or why it is not there. */
static void describe_report(struct sql *s, struct lazy_report *l)
{
	const char *name = usable_name(s, l->entry->name, NULL);
	struct err why;
	if (!sql_run_report(l, &why)) {
		sql_describe(&s->tables, name, "report",
		             arena_printf(&s->arena, "%s (not there: %s)", l->entry->report->title, why.msg).p);
		return;
	}
	for (const struct table *t = &l->table; t; t = t->next)
		describe_table(s, t == &l->table ? name : usable_name(s, l->entry->name, t->name),
		               t == &l->table ? "report" : "section", t);
}

static int describe_all(struct sql *s, struct err *e)
{
	if (s->described)
		return 0;
	if (!sql_find(s, e))
		return -1;
	describe_store(s);
	for (size_t i = 0; i < sizeof view_help / sizeof view_help[0]; i++)
		sql_describe(&s->tables, view_help[i].name, "view", view_help[i].help);
	for (unsigned i = 0; i < s->catalog.n; i++)
		describe_report(s, &s->report[i]);
	describe_table(s, "findings", "report", &s->findings);
	s->described = true;
	return 0;
}

static const struct table *list_tables(void *arg, struct err *e)
{
	struct sql *s = arg;
	return describe_all(s, e) ? NULL : &s->tables;
}

static const struct table *list_columns(void *arg, struct err *e)
{
	struct sql *s = arg;
	return describe_all(s, e) ? NULL : &s->columns;
}

static int add_descriptions(struct sql *s, struct err *e)
{
	table_init(&s->tables, "opscope_tables", "Tables");
	TABLE_COLUMN(&s->tables, "name", "Name", "what to write after FROM", CELL_STR);
	TABLE_COLUMN(&s->tables, "kind", "Kind", "store, view, report, or section of a report", CELL_STR);
	TABLE_COLUMN(&s->tables, "help", "Help", "what its rows are", CELL_STR, .flags = COLUMN_WIDE);
	table_init(&s->columns, "opscope_columns", "Columns of the store and of the reports");
	TABLE_COLUMN(&s->columns, "table_name", "Table", "table", CELL_STR);
	TABLE_COLUMN(&s->columns, "name", "Column", "column", CELL_STR);
	TABLE_COLUMN(&s->columns, "help", "Help", "what it holds", CELL_STR, .flags = COLUMN_WIDE);
	struct vtab_lazy *l = ARENA_ARRAY(&s->arena, 2, struct vtab_lazy);
	l[0] = (struct vtab_lazy){s->tables.name, list_tables, s};
	l[1] = (struct vtab_lazy){s->columns.name, list_columns, s};
	return vtab_add_table(s->db, &l[0], e) || vtab_add_table(s->db, &l[1], e) ? -1 : 0;
}

/* arg(set, key): NULL when the set has no such argument. */
static void sql_arg(sqlite3_context *x, int n, sqlite3_value **v)
{
	const struct profile *p = sqlite3_user_data(x);
	const char *key = (const char *)sqlite3_value_text(v[1]);
	int64_t set = sqlite3_value_int64(v[0]);
	if (!key && sqlite3_value_type(v[1]) != SQLITE_NULL)
		sqlite3_result_error_nomem(x);
	if (!key || sqlite3_value_type(v[0]) != SQLITE_INTEGER || set < 0 || set >= p->arg_set.rows.n)
		return;
	struct str value;
	if (profile_arg_named(p, (uint32_t)set, (struct str){key, (size_t)sqlite3_value_bytes(v[1])}, &value))
		vtab_result_text(x, value);
}

/* LIKE and GLOB compare each byte of the text with the whole pattern at worst: 1 to 2 ms a byte of the pattern in a text of 1 MB. Queries compare names
 * with each other, too, and names of kernels with 5 KB occur. */
enum { PATTERN_MAX = 8192 };
static int sql_fail(struct sql *s, struct err *e)
{
	bool memory = !s->db || (sqlite3_errcode(s->db) & 0xff) == SQLITE_NOMEM;
	return err_set(e, memory ? ERR_NOMEM : ERR_LIMIT, "SQLite: %s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static int sql_set_up(struct sql *s, struct err *e)
{
	if (sqlite3_open_v2(":memory:", &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		return sql_fail(s, e);
	if (vtab_add_store(s->db, s->p, e) || add_reports(s, e) || add_descriptions(s, e))
		return -1;
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	if (sqlite3_create_function_v2(s->db, "arg", 2, flags, s->p, sql_arg, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(s->db, views, NULL, NULL, NULL) != SQLITE_OK || sql_functions_add(s->db) != SQLITE_OK)
		return sql_fail(s, e);
	sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(s->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_set_authorizer(s->db, authorize, NULL);
	return 0;
}

static void sql_abandon(void *sql)
{
	sqlmem_close(((struct sql *)sql)->db);
}

struct sql *sql_open(struct profile *p, const struct report_args *args, struct err *e)
{
	if (analysis_run(p, UINT_MAX, e))
		return NULL;
	struct sql *s = NEW(struct sql);
	s->p = p;
	if (report_args_chosen(p, args, &s->args, e)) {
		mem_free(s);
		return NULL;
	}
	s->args.compat = NULL;
	mem_undo_begin(&s->undo, sql_abandon, s);
	if (sql_set_up(s, e)) {
		sql_close(s);
		return NULL;
	}
	return s;
}

void sql_close(struct sql *s)
{
	if (!s)
		return;
	mem_undo_end(&s->undo);
	sqlite3_close(s->db);
	for (unsigned i = 0; i < s->catalog.n; i++)
		if (s->report[i].done)
			table_release(&s->report[i].table);
	mem_free(s->report);
	if (s->found)
		table_release(&s->findings);
	table_release(&s->tables);
	table_release(&s->columns);
	catalog_release(&s->catalog);
	arena_release(&s->arena);
	mem_free(s);
}

/* "no such table: main.memory_curve" names memory_curve. */
static const char *missing_table(const char *message)
{
	static const char start[] = "no such table: ";
	if (strncmp(message, start, sizeof start - 1) != 0)
		return NULL;
	message += sizeof start - 1;
	return strncmp(message, "main.", 5) == 0 ? message + 5 : message;
}

/* Appends "; NAME has: its columns" when there is such a table. */
static void put_columns_of(struct sql *s, struct str name, struct buf *out)
{
	sqlite3_stmt *st = NULL;
	struct buf text = {0};
	buf_printf(&text, "PRAGMA table_info(\"" STR_FMT "\")", STR_ARG(name));
	if (sqlite3_prepare_v2(s->db, text.p, (int)text.n, &st, NULL) == SQLITE_OK)
		for (unsigned n = 0; sqlite3_step(st) == SQLITE_ROW; n++) {
			if (!n)
				buf_printf(out, "; " STR_FMT " has: ", STR_ARG(name));
			buf_printf(out, "%s%s", n ? ", " : "", (const char *)sqlite3_column_text(st, 1));
		}
	sqlite3_finalize(st);
	buf_release(&text);
}

/* Of every table that the query names behind FROM or JOIN. */
static void sql_put_columns(struct sql *s, struct str query, struct buf *out)
{
	static const char blanks[] = " \t\r\n,()\"'`[];";
	bool table = false;
	for (size_t at = 0; at < query.n;) {
		size_t end = at;
		while (end < query.n && !strchr(blanks, query.p[end]))
			end++;
		struct str word = {query.p + at, end - at};
		at = end + (end == at);
		if (!word.n)
			continue;
		if (table)
			put_columns_of(s, word, out);
		table = word.n == 4 && (strncasecmp(word.p, "from", 4) == 0 || strncasecmp(word.p, "join", 4) == 0);
	}
}

static int refuse_column(struct sql *s, struct str query, struct err *e)
{
	struct buf text = {0};
	buf_printf(&text, "SQL: %s", sqlite3_errmsg(s->db));
	sql_put_columns(s, query, &text);
	err_set(e, ERR_USAGE, STR_FMT, STR_ARG(buf_view(&text)));
	buf_release(&text);
	return -1;
}

static int sql_refuse(struct sql *s, struct err *e)
{
	if (s->exceeded)
		return err_set(e, ERR_LIMIT, "SQL: the query was ended: %s", s->exceeded);
	int code = sqlite3_errcode(s->db) & 0xff;
	if (code == SQLITE_NOMEM || s->missing.code == ERR_NOMEM)
		return err_nomem(e), err_prefix(e, "SQL");
	const char *hint = code == SQLITE_AUTH ? ": only SELECT is possible" : "";
	const char *message = sqlite3_errmsg(s->db);
	if (missing_table(message) && s->missing.code)
		return err_set(e, ERR_USAGE, "SQL: %s: %s", message, s->missing.msg);
	if (missing_table(message))
		hint = "; SELECT * FROM opscope_tables lists those that there are";
	int at = sqlite3_error_offset(s->db);
	if (s->lacks)
		return err_set(e, ERR_DATA, "SQL: %s", message);
	if (at >= 0)
		return err_set(e, ERR_USAGE, "SQL: %s (byte %d of the query)%s", message, at, hint);
	return err_set(e, ERR_USAGE, "SQL: %s%s", message, hint);
}

/* Whether nothing but semicolons, blanks and comments stands there. */
static bool sql_is_empty(struct sql *s, struct str text)
{
	while (text.n) {
		sqlite3_stmt *st = NULL;
		const char *rest = text.p;
		int rc = sqlite3_prepare_v2(s->db, text.p, (int)text.n, &st, &rest);
		sqlite3_finalize(st);
		if (rc != SQLITE_OK || st || rest == text.p) /* no step further: a NUL */
			return false;
		text = (struct str){rest, text.n - (size_t)(rest - text.p)};
	}
	return true;
}

static sqlite3_stmt *sql_prepare(struct sql *s, struct str query, struct err *e)
{
	sqlite3_stmt *st = NULL;
	const char *rest = NULL;
	if (query.n > INT_MAX) {
		err_set(e, ERR_USAGE, "SQL: the query is too long");
		return NULL;
	}
	s->missing = (struct err){0};
	s->lacks = false;
	while (sqlite3_prepare_v2(s->db, query.p, (int)query.n, &st, &rest) != SQLITE_OK) {
		bool memory = (sqlite3_errcode(s->db) & 0xff) == SQLITE_NOMEM;
		const char *name = memory ? NULL : missing_table(sqlite3_errmsg(s->db));
		struct buf copy = {0};
		buf_cstr(&copy, name ? name : "");
		buf_char(&copy, 0);
		bool again = name && add_sections(s, copy.p);
		buf_release(&copy);
		if (again)
			continue;
		/* For its message, where the reports that were run left another. */
		if (name && sqlite3_prepare_v2(s->db, query.p, (int)query.n, &st, &rest) == SQLITE_OK)
			break;
		if (strncmp(sqlite3_errmsg(s->db), "no such column", 14) == 0)
			refuse_column(s, query, e);
		else
			sql_refuse(s, e);
		return NULL;
	}
	size_t used = (size_t)(rest - query.p);
	if (!st || !sql_is_empty(s, (struct str){rest, query.n - used}) || !sqlite3_stmt_readonly(st) || !sqlite3_column_count(st)) {
		err_set(e, ERR_USAGE, "SQL: one SELECT statement was expected");
		sqlite3_finalize(st);
		return NULL;
	}
	return st;
}

static int64_t sql_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Other queries of the process are counted in SQLite's. */
static uint64_t held_bytes(const struct sql *s)
{
	sqlite3_int64 used = sqlite3_memory_used();
	return (used > s->used_before ? (uint64_t)(used - s->used_before) : 0) + s->result_bytes;
}

/* SQLite asks this now and then; 1 ends the query. */
static int check_limits(void *context)
{
	struct sql *s = context;
	const struct sql_limits *l = &s->limits;
	if (s->end_ns && sql_now_ns() > s->end_ns)
		s->exceeded = "it took too long";
	else if (l->bytes && held_bytes(s) > l->bytes)
		s->exceeded = "it took too much memory";
	else if (l->stop && l->stop(l->context))
		s->exceeded = "nobody waits for it any more";
	return s->exceeded != NULL;
}

void sql_limit(struct sql *s, const struct sql_limits *l)
{
	enum { STEPS = 1000 }; /* of SQLite's machine: less than a millisecond, but where one copies long text */
	enum { VALUE_MAX = 1 << 20 }; /* bytes that a query makes; text that the tables hold may be longer (vtab_result_text) */
	s->limits = *l;
	if (l->time_ns) /* what one instruction does with a value is done soon */
		sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	if (l->bytes) { /* or what is sorted would fill the disk */
		sqlite3_set_authorizer(s->db, NULL, NULL);
		sqlite3_exec(s->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
		sqlite3_set_authorizer(s->db, authorize, NULL);
	}
	sqlite3_progress_handler(s->db, STEPS, check_limits, s);
}

/* Of its result; false: too much. */
static bool note_result(void *context, uint64_t bytes)
{
	struct sql *s = context;
	s->result_bytes = bytes;
	if (s->limits.bytes && held_bytes(s) > s->limits.bytes)
		s->exceeded = "its result is too long";
	return !s->exceeded;
}

static sqlite3_stmt *sql_begin(struct sql *s, struct str query, struct err *e)
{
	s->exceeded = NULL;
	s->end_ns = s->limits.time_ns ? sql_now_ns() + s->limits.time_ns : 0;
	s->used_before = sqlite3_memory_used();
	s->result_bytes = 0;
	return sql_prepare(s, query, e);
}

/* Ends the statement, whose rows ended with `rc`. */
static int sql_end(struct sql *s, sqlite3_stmt *st, int rc, struct err *e)
{
	if (rc == SQLITE_TOOBIG && !s->exceeded)
		s->exceeded = sqlite3_errcode(s->db) == SQLITE_TOOBIG ? "a value is too long" : "its result is too long";
	if (rc == SQLITE_NOMEM && s->limits.bytes && !s->exceeded)
		s->exceeded = "it took too much memory";
	if (rc == SQLITE_NOMEM && !s->exceeded)
		err_nomem(e), err_prefix(e, "SQL");
	else if (rc != SQLITE_DONE)
		sql_refuse(s, e);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : -1;
}

int sql_run(struct sql *s, struct str query, struct table *out, struct err *e)
{
	sqlite3_stmt *st = sql_begin(s, query, e);
	if (!st)
		return -1;
	table_init(out, "sql", "Query result");
	int rc = sql_end(s, st, sql_result(st, note_result, s, out), e);
	if (rc < 0)
		table_release(out);
	return rc;
}

struct sql_taker {
	int (*take)(void *context, struct table *piece, struct err *e);
	void *context;
	struct err *e;
};

static int sql_take(void *context, struct table *piece)
{
	struct sql_taker *x = context;
	return x->take(x->context, piece, x->e);
}

int sql_run_pieces(struct sql *s, struct str query, int (*take)(void *context, struct table *piece, struct err *e), void *context, struct err *e)
{
	assert(!s->limits.bytes && !s->limits.time_ns);
	struct sql_taker x = {take, context, e};
	sqlite3_stmt *st = sql_begin(s, query, e);
	if (!st)
		return -1;
	int rc = sql_result_pieces(st, sql_take, &x);
	if (rc != SQLITE_ABORT && rc != SQLITE_MISMATCH)
		return sql_end(s, st, rc, e);
	sqlite3_finalize(st);
	return rc == SQLITE_ABORT ? -1 : err_set(e, ERR_USAGE, "SQL: the query gives other values each time it runs: --format=json takes what it gives once");
}
