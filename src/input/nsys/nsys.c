/* Nsight Systems SQLite exports, 2020.3 to 2026.2: `nsys export --type sqlite`, or the .sqlite that `nsys profile --stats` and
 * `nsys stats` leave behind. */
#include "input/nsys/nsys.h"

#include "base/search.h"
#include "input/input.h"

#include <strings.h>

static bool open_table(struct nsys *n, struct sqlscan *s, const struct nsys_table *t)
{
	const char *name = nsys_find_table(n, t->name);
	struct err e = {0};
	if (!name)
		return false;
	intern_str(&n->tables_read, str_from(name));
	if (sqlscan_open(s, &n->db, name, t->columns, &e) == 0)
		return true;
	diag_add(&n->p->diags, "unreadable-table", DIAG_LOSS, -1, "%s", e.msg);
	return false;
}

static void close_table(struct nsys *n, struct sqlscan *s, const struct nsys_table *t)
{
	if (t->phase)
		build_count(&n->b, nsys_cat(n, s->table), (uint8_t)t->phase, (uint64_t)s->row);
	if (s->damaged)
		diag_add(&n->p->diags, "damaged-table", DIAG_LOSS, -1,
		         "table %s is damaged behind row %lld: the rows from there on could not be read", s->table, (long long)s->row);
	sqlscan_close(s);
}

void nsys_read_tables(struct nsys *n, const struct nsys_table *t)
{
	for (const struct nsys_table *r = t; r->name; r++) {
		const char *name = r->reserve ? nsys_find_table(n, r->name) : NULL;
		if (name)
			r->reserve(n, sqldb_max_rowid(&n->db, name));
	}
	for (; t->name; t++) {
		struct sqlscan s;
		if (!open_table(n, &s, t))
			continue;
		n->table = s.table;
		while (sqlscan_next(&s)) {
			n->row = s.row;
			t->row(n, &s);
		}
		close_table(n, &s, t);
	}
}

struct nsys_cursor {
	struct sqlscan scan;
	const struct nsys_table *table;
	int64_t start; /* of the current row */
	bool open;
};

static bool nsys_advance(struct nsys *n, struct nsys_cursor *c)
{
	if (!sqlscan_next(&c->scan)) {
		close_table(n, &c->scan, c->table);
		c->open = false;
		return false;
	}
	sqlscan_i64(&c->scan, 0, &c->start);
	return true;
}

/* Host tables are each stored by time, more or less; read together they come in the order in which the profile wants them. */
void nsys_read_merged(struct nsys *n, const struct nsys_table *t)
{
	int n_cursors = 0, most = 0;
	while (t[most].name)
		most++;
	struct nsys_cursor *cursor = NEW_ARRAY(most, struct nsys_cursor);
	for (; t->name; t++) {
		struct nsys_cursor *c = &cursor[n_cursors];
		if (!open_table(n, &c->scan, t))
			continue;
		if (t->reserve)
			t->reserve(n, sqldb_max_rowid(&n->db, c->scan.table));
		c->table = t;
		c->open = true;
		if (nsys_advance(n, c))
			n_cursors++;
	}
	for (;;) {
		struct nsys_cursor *first = NULL;
		int64_t next = INT64_MAX; /* the start of the best row in the other tables */
		for (int i = 0; i < n_cursors; i++) {
			struct nsys_cursor *c = &cursor[i];
			if (!c->open)
				continue;
			if (!first || c->start < first->start) {
				next = first ? first->start : INT64_MAX;
				first = c;
			} else if (c->start < next) {
				next = c->start;
			}
		}
		if (!first)
			break;
		n->table = first->scan.table;
		do {
			n->row = first->scan.row;
			first->table->row(n, &first->scan);
		} while (nsys_advance(n, first) && first->start < next);
		if (n->again)
			break;
	}
	for (int i = 0; i < n_cursors; i++)
		if (cursor[i].open)
			sqlscan_close(&cursor[i].scan);
	mem_free(cursor);
}

static void nsys_keep_name(void *context, const char *table)
{
	struct nsys *n = context;
	buf_cstr(&n->tables, table);
	buf_char(&n->tables, 0);
}

/* Tables that are only there to explain numbers, or that hold what other tables refer to. */
static bool is_lookup(const char *table)
{
	static const char *const prefix[] = {"ENUM_", "TARGET_INFO_", "ANALYSIS_", "META_DATA_", "NVTX_PAYLOAD_", "_", "StringIds",
	                                     "UnwindMethodType", "ProcessStreams"};
	return ANY_WHERE(i, 0, sizeof prefix / sizeof prefix[0], strncasecmp(table, prefix[i], strlen(prefix[i])) == 0);
}

/* Counts what is not read, so that nothing is missing without a word. */
static void nsys_count_rest(struct nsys *n)
{
	struct buf list = {0};
	uint64_t rows = 0;
	for (const char *t = n->tables.p, *end = t + n->tables.n; t && t < end; t += strlen(t) + 1) {
		if (is_lookup(t) || intern_find(&n->tables_read, str_from(t)) != INTERN_NONE)
			continue;
		int64_t count = sqldb_count(&n->db, t);
		if (count < 0)
			diag_add(&n->p->diags, "damaged-table", DIAG_LOSS, -1, "table %s is damaged: its rows cannot be counted", t);
		if (count <= 0)
			continue;
		build_count(&n->b, nsys_cat(n, t), '-', (uint64_t)count);
		rows += (uint64_t)count;
		if (list.n < 600)
			buf_printf(&list, "%s%s (%lld)", list.n ? ", " : "", t, (long long)count);
	}
	if (rows)
		diag_add_n(&n->p->diags, "not-read", DIAG_NOTE, rows, -1, "rows of tables that opscope does not use: " STR_FMT,
		           STR_ARG(buf_view(&list)));
	buf_release(&list);
}

/* An empty capture is told what it lacks and how to record it. */
static void nsys_note_missing(struct nsys *n)
{
	bool kernels = n->p->gpu_op.rows.n > 0, calls = nsys_find_table(n, "CUPTI_ACTIVITY_KIND_RUNTIME") != NULL;
	bool nvtx = nsys_find_table(n, "NVTX_EVENTS") != NULL;
	if (!kernels)
		diag_add(&n->p->diags, "no-gpu-work", DIAG_NOTE, -1,
		         "the capture holds no kernels and no copies%s%s: record with `nsys profile --trace=cuda,nvtx,osrt` while the "
		         "program works on the GPU, and look at what nsys itself said",
		         calls ? "" : ", no CUDA API calls", nvtx ? "" : ", no NVTX ranges");
	else if (!nvtx)
		diag_add(&n->p->diags, "no-nvtx", DIAG_NOTE, -1,
		         "the capture holds no NVTX ranges, so kernels cannot be told apart by op or layer: record with `nsys profile "
		         "--trace=cuda,nvtx` and, for PyTorch, inside torch.autograd.profiler.emit_nvtx(record_shapes=True)");
}

static void nsys_init(struct nsys *n, struct profile *p)
{
	n->p = p;
	n->last_ns = INT64_MIN;
	build_init(&n->b, p);
	n->markers = markers_new(&n->b);
	intern_init(&n->tables_read);
	intern_init(&n->streams);
	intern_init(&n->stream_names);
	intern_init(&n->devices_of);
	intern_init(&n->contexts);
	idmap_init(&n->device_row, 1, 0, 16);
	idmap_init(&n->thread_name, 1, 0, 1024);
	idmap_init(&n->process_name, 1, 0, 1024);
}

static int nsys_finish(struct nsys *n, struct err *e)
{
	nsys_quiet_finish(n);
	nsys_close_open(n);
	nsys_name_tracks(n);
	nsys_flush_counts(n);
	nsys_count_rest(n);
	nsys_note_missing(n);
	nsys_nvtx_release(n);
	markers_free(n->markers);
	string_table_release(&n->strings);
	intern_release(&n->tables_read);
	intern_release(&n->streams);
	intern_release(&n->stream_names);
	intern_release(&n->devices_of);
	intern_release(&n->contexts);
	idmap_release(&n->device_row);
	idmap_release(&n->thread_name);
	idmap_release(&n->process_name);
	buf_release(&n->tables);
	mem_free(n->stream_track);
	mem_free(n->stream_owner);
	mem_free(n->gpu_id);
	mem_free(n->context_device);
	mem_free(n->seen);
	mem_free(n->open);
	n->p->input_bytes = n->db.file_bytes;
	int rc = build_finish(&n->b, e);
	return sqldb_close(&n->db, e) < 0 ? -1 : n->again ? INPUT_READ_AGAIN : rc;
}

static int nsys_read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s);
	if (strcmp(path, "-") == 0)
		return err_set(e, ERR_USAGE, "an Nsight Systems database cannot be read from a pipe: give its name");
	if (source_is_compressed(s))
		return err_set(e, ERR_FORMAT, "%s: an Nsight Systems database that was compressed: unpack it first", path);
	struct nsys *n = NEW(struct nsys);
	bool stale;
	if (sqldb_open(&n->db, path, &stale, e) < 0) {
		mem_free(n);
		return -1;
	}
	nsys_init(n, p);
	p->zero_is_start = true;
	p->recorder = RECORDER_NVIDIA;
	if (stale)
		diag_add(&p->diags, "unfinished-database", DIAG_LOSS, -1,
		         "a journal lies beside the file: it is still being written, or was not closed, and the newest rows may be missing");
	if (sqldb_each_table(&n->db, nsys_keep_name, n) < 0)
		diag_add(&p->diags, "damaged-table", DIAG_LOSS, -1, "the list of tables is damaged");
	sqldb_tell_views(&n->db, &p->diags);
	nsys_strings_load(n);
	nsys_read_tables(n, nsys_info_tables);
	nsys_read_tables(n, nsys_gpu_tables);
	nsys_read_tables(n, nsys_metric_tables);
	nsys_metrics_finish(n);
	nsys_quiet_begin(n);
	nsys_read_merged(n, nsys_host_tables);
	int rc = nsys_finish(n, e);
	mem_free(n);
	return rc;
}

/* By the names of the tables; where the schema is too damaged to be read, by those that stand in the first bytes. */
static int nsys_sniff(struct str head, const char *path, struct err *e)
{
	static const char *const own[] = {"EXPORT_META_DATA", "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME", NULL};
	static const char *const with_strings[] = {"TARGET_INFO_", "CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "ThreadNames",
	                                           "ProcessStreams", "OSRT_API", NULL};
	if (!str_starts(head, (struct str){"SQLite format 3", 16}))
		return 0;
	struct buf list = {0};
	int rc = path ? sqldb_list(path, &list, e) : 1;
	struct str names = rc == 0 ? buf_view(&list) : head;
	bool yes = str_has_any_nocase(names, own) || (str_has_nocase(names, STR("StringIds")) && str_has_any_nocase(names, with_strings));
	buf_release(&list);
	return rc < 0 ? -1 : yes ? 95 : 0;
}

const struct input input_nsys = {
	.name = "nsys",
	.help = "Nsight Systems databases: SQLite exports of nsys 2020.3 and later, with the GPU metrics that nsys samples",
	.sniff = nsys_sniff,
	.read = nsys_read_file,
	.leaves_out = LEFT_MARKS | LEFT_OP_IDS | LEFT_QUIET,
};
