/* SQLite databases of nvprof (`nvprof -o FILE`) and the NVIDIA Visual Profiler, CUDA 7 to 12: versions 8 to 18. */
#include "input/nvprof/nvprof.h"

#include "input/input.h"

#include <stdio.h>

static void nvprof_read_table(struct nvprof *n, const struct nvprof_table *t)
{
	struct sqlscan s;
	struct err e = {0};
	char name[64];
	bool own = strcmp(t->name, "Version") == 0;
	snprintf(name, sizeof name, "%s%s", own ? "" : "CUPTI_ACTIVITY_KIND_", t->name);
	if (!sqldb_has_table(&n->db, name))
		return;
	intern_str(&n->tables_read, str_from(sqldb_table_name(&n->db, name)));
	if (sqlscan_open(&s, &n->db, name, t->columns, &e) < 0) {
		diag_add(&n->p->diags, "unreadable-table", DIAG_LOSS, -1, "%s", e.msg);
		return;
	}
	n->table = t;
	n->cat = build_cat(&n->b, intern_str(&n->p->strings, str_from(t->cat ? t->cat : "nvtx")));
	while (sqlscan_next(&s)) {
		n->row = s.row;
		t->row(n, &s);
	}
	if (t->cat && s.row)
		build_count(&n->b, n->cat, (uint8_t)t->phase, (uint64_t)s.row);
	if (s.damaged)
		diag_add(&n->p->diags, "damaged-table", DIAG_LOSS, -1,
		         "table %s is damaged behind row %lld: the rows from there on could not be read", name, (long long)s.row);
	sqlscan_close(&s);
}

static void read_tables(struct nvprof *n, const struct nvprof_table *t)
{
	for (; t->name; t++)
		nvprof_read_table(n, t);
}

struct nvprof_rest {
	struct nvprof *n;
	struct buf list;
	uint64_t rows;
};

/* Counts what is not read, so that nothing is missing without a word. */
static void nvprof_count_rest(void *context, const char *table)
{
	struct nvprof_rest *r = context;
	struct nvprof *n = r->n;
	if (intern_find(&n->tables_read, str_from(table)) != INTERN_NONE)
		return;
	int64_t count = sqldb_count(&n->db, table);
	if (count < 0)
		diag_add(&n->p->diags, "damaged-table", DIAG_LOSS, -1, "table %s is damaged: its rows cannot be counted", table);
	if (count <= 0)
		return;
	build_count(&n->b, build_cat(&n->b, intern_str(&n->p->strings, str_from(table))), '-', (uint64_t)count);
	r->rows += (uint64_t)count;
	if (r->list.n < 600)
		buf_printf(&r->list, "%s%s (%lld)", r->list.n ? ", " : "", table, (long long)count);
}

static void note_rest(struct nvprof *n)
{
	struct nvprof_rest r = {.n = n};
	if (sqldb_each_table(&n->db, nvprof_count_rest, &r) < 0)
		diag_add(&n->p->diags, "damaged-table", DIAG_LOSS, -1, "the list of tables is damaged");
	if (r.rows)
		diag_add_n(&n->p->diags, "not-read", DIAG_NOTE, r.rows, -1, "rows of tables that opscope does not use: " STR_FMT,
		           STR_ARG(buf_view(&r.list)));
	buf_release(&r.list);
}

/* An empty capture is told what it lacks and how to record it. */
static void nvprof_note_missing(struct nvprof *n)
{
	if (!n->p->gpu_op.rows.n)
		diag_add(&n->p->diags, "no-gpu-work", DIAG_NOTE, -1,
		         "the capture holds no kernels and no copies: record while the program works on the GPU, without "
		         "`--profile-from-start off` or with cudaProfilerStart() in the program, and without `--analysis-metrics`");
	else if (!n->any_ranges)
		diag_add(&n->p->diags, "no-nvtx", DIAG_NOTE, -1,
		         "the capture holds no NVTX ranges, so kernels cannot be told apart by op or layer: for PyTorch, record inside "
		         "torch.autograd.profiler.emit_nvtx(record_shapes=True)");
}

/* Names and labels of the CPU's tracks. */
static void nvprof_name_processes(struct nvprof *n)
{
	struct tracks *t = &n->p->track;
	uint32_t cpu = intern_str(&n->p->strings, STR("CPU"));
	for (uint32_t i = 0; i < t->rows.n; i++) {
		uint32_t name = t->process_labels[i] == cpu ? idmap_get(&n->process_name, t->pid[i]) : IDMAP_NONE;
		if (name != IDMAP_NONE)
			t->process_name[i] = name;
	}
}

/* Rows of device work do not say whose it is; where all calls and ranges are of one process, so is the work. */
static void set_launch_pid(struct nvprof *n)
{
	const struct tracks *t = &n->p->track;
	struct launches *l = &n->p->launch;
	uint32_t cpu = intern_str(&n->p->strings, STR("CPU"));
	int64_t pid = ID_NONE;
	for (uint32_t i = 0; i < t->rows.n; i++) {
		if (t->process_labels[i] != cpu || t->pid[i] == pid)
			continue;
		if (pid != ID_NONE)
			return;
		pid = t->pid[i];
	}
	for (uint32_t i = 0; i < l->rows.n; i++)
		l->pid[i] = pid;
}

static void nvprof_init(struct nvprof *n, struct profile *p)
{
	n->p = p;
	n->last_ns = INT64_MIN;
	build_init(&n->b, p);
	n->markers = markers_new(&n->b);
	intern_init(&n->tables_read);
	idmap_init(&n->context_device, 1, 0, 16);
	idmap_init(&n->stream_device, 1, 0, 64);
	idmap_init(&n->device_row, 1, 0, 16);
	idmap_init(&n->process_name, 1, 0, 16);
	idmap_init(&n->open, 1, 0, 1024);
}

static int nvprof_finish(struct nvprof *n, struct err *e)
{
	nvprof_name_processes(n);
	set_launch_pid(n);
	note_rest(n);
	nvprof_note_missing(n);
	markers_free(n->markers);
	nvprof_strings_release(n);
	intern_release(&n->tables_read);
	idmap_release(&n->context_device);
	idmap_release(&n->stream_device);
	idmap_release(&n->device_row);
	idmap_release(&n->process_name);
	idmap_release(&n->open);
	mem_free(n->early);
	n->p->input_bytes = n->db.file_bytes;
	int rc = build_finish(&n->b, e);
	return sqldb_close(&n->db, e) < 0 ? -1 : rc;
}

/* The Visual Profiler gives its files one ending, whatever they hold. */
static bool is_session(struct str head) { return str_starts(head, STR("<?xml")); }

static int nvprof_refuse(const struct nvprof *n, const char *path, struct err *e)
{
	if (sqldb_has_table(&n->db, "profStringTable") || sqldb_has_table(&n->db, "collLibrary"))
		return err_set(e, ERR_FORMAT, "%s: a CPU profile of pgprof: it holds samples of the CPU, and no work of a GPU", path);
	if (!sqldb_has_table(&n->db, "StringTable"))
		return err_set(e, ERR_FORMAT, "%s: a database without the table StringTable: not one of nvprof", path);
	return 0;
}

static int nvprof_read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s);
	if (is_session(source_peek(s)))
		return err_set(e, ERR_FORMAT, "%s: a session of the Visual Profiler, in XML: it only says what to record; the recording is a database beside it, "
		               "or made by `nvprof -o FILE`", path);
	if (strcmp(path, "-") == 0)
		return err_set(e, ERR_USAGE, "an nvprof database cannot be read from a pipe: give its name");
	if (source_is_compressed(s))
		return err_set(e, ERR_FORMAT, "%s: an nvprof database that was compressed: unpack it first", path);
	struct nvprof *n = NEW(struct nvprof);
	bool stale;
	if (sqldb_open(&n->db, path, &stale, e) < 0) {
		mem_free(n);
		return -1;
	}
	if (nvprof_refuse(n, path, e) < 0) {
		int rc = sqldb_close(&n->db, e);
		mem_free(n);
		return rc < 0 ? rc : -1;
	}
	nvprof_init(n, p);
	p->recorder = RECORDER_NVIDIA;
	if (stale)
		diag_add(&p->diags, "unfinished-database", DIAG_LOSS, -1,
		         "a journal lies beside the file: it is still being written, or was not closed, and the newest rows may be missing");
	sqldb_tell_views(&n->db, &p->diags);
	nvprof_strings_load(n);
	read_tables(n, nvprof_info_tables);
	read_tables(n, nvprof_gpu_tables);
	read_tables(n, nvprof_host_tables);
	n->table = nvprof_host_tables; /* what the ranges that are closed now were read from */
	nvprof_markers_finish(n);
	int rc = nvprof_finish(n, e);
	mem_free(n);
	return rc;
}

static bool is_nvprof(struct str tables)
{
	if (str_has_nocase(tables, STR("profStringTable")) || str_has_nocase(tables, STR("collLibrary")))
		return true;
	return str_has_nocase(tables, STR("StringTable")) && str_has_nocase(tables, STR("CUPTI_ACTIVITY_KIND_"));
}

/* By the names of the tables; where the schema is too damaged to be read, by those that stand in the first bytes. */
static int nvprof_sniff(struct str head, const char *path, struct err *e)
{
	struct buf list = {0};
	struct str name = str_from(path);
	if (is_session(head))
		return str_has(head, STR("nvvp")) || str_has(head, STR("viper")) || (name.n && str_ends(name, STR(".nvvp"))) ? 60 : 0;
	if (!str_starts(head, (struct str){"SQLite format 3", 16}))
		return 0;
	int rc = path ? sqldb_list(path, &list, e) : 1;
	bool yes = is_nvprof(rc == 0 ? buf_view(&list) : head);
	buf_release(&list);
	return rc < 0 ? -1 : yes ? 90 : 0;
}

const struct input input_nvprof = {
	.name = "nvprof",
	.help = "Databases of nvprof and the NVIDIA Visual Profiler: SQLite, versions 8 to 18 (CUDA 7 to 12)",
	.sniff = nvprof_sniff,
	.read = nvprof_read_file,
};
