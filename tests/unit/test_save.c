/* .opscope files: what was saved is what is loaded; damage is noticed, never believed, never a crash. */
#include "test.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/buf.h"
#include "base/mem.h"
#include "input/input.h"
#include "io/sqlmem.h"
#include "store/build.h"
#include "store/load.h"
#include "store/save.h"

enum { PASSES = PASSES_IN_COLUMNS };

static char folder[] = "/tmp/opscope_save_XXXXXX";

static int make_folder(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	unlink("a.opscope");
	unlink("b.opscope");
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void add_rows(struct build *b, struct profile *p)
{
	uint32_t name = intern_str(&p->strings, STR("aten::mm")), kernel = intern_str(&p->strings, STR("sgemm\0odd"));
	uint16_t cat = build_cat(b, intern_str(&p->strings, STR("cpu_op")));
	uint32_t cpu = build_track(b, STR("12"), STR("34")), gpu = build_track(b, STR("0"), STR("stream 7"));
	struct arg_pair pair = {intern_str(&p->strings, STR("Input Dims")), intern_str(&p->strings, STR("[[2, 3]]")), 0};
	uint32_t args = build_args(b, &pair, 1);
	for (int i = 0; i < 400; i++) {
		struct launch_row launch = launch_none();
		launch.grid_x = i % 3;
		/* Each op is around an annotation, and that around a Python frame and an API call. */
		int64_t dur = i % SPAN_KINDS == SPAN_OP ? 45 : i % SPAN_KINDS == SPAN_USER ? 25 : 5;
		build_span(b, &(struct span_row){.start_ns = i * 10, .dur_ns = dur, .ext_id = i, .link_id = i, .aux_id = -1,
		                                 .name = name, .track = cpu, .args = args, .cat = cat, .kind = i % SPAN_KINDS});
		build_gpu(b, &(struct gpu_row){.start_ns = i * 10, .dur_ns = 7, .ext_id = ID_NONE, .corr_id = i, .name = kernel,
		                               .track = gpu, .launch = build_launch(b, &launch), .cat = cat, .kind = GPU_MEMCPY});
		build_memory(b, &(struct memory_row){.time_ns = i, .addr = 1 << 20, .bytes = -64, .track = cpu, .name = name});
		build_flow(b, i, i, cpu, cat, 's');
		build_mark(b, i, name, cpu, args, cat, 'C');
		build_count(b, cat, 'X', 2);
	}
	build_meta(b, pair.key, pair.value, true);
}

/* A profile with rows in every table, and derived columns as analysis leaves them. */
static struct profile *small_profile(void)
{
	struct profile *p = profile_new();
	struct build b;
	build_init(&b, p);
	add_rows(&b, p);
	assert_int_equal(build_finish(&b, NULL), 0);
	uint32_t device = rows_push(&p->device, &store_tables[TABLE_device]);
	p->device = (struct devices){.rows = p->device.rows, .memory_bytes = p->device.memory_bytes, .id = p->device.id,
		.name = p->device.name, .cc_major = p->device.cc_major, .cc_minor = p->device.cc_minor,
		.sm_count = p->device.sm_count, .max_threads_per_sm = p->device.max_threads_per_sm,
		.warp_size = p->device.warp_size};
	p->device.memory_bytes[device] = 1;
	p->device.id[device] = p->device.cc_major[device] = p->device.cc_minor[device] = 8;
	p->device.sm_count[device] = p->device.max_threads_per_sm[device] = p->device.warp_size[device] = 32;
	p->device.name[device] = 1;
	assert_int_equal(analysis_run(p, PASSES, NULL), 0);
	p->input_path = STR("dir/trace.json");
	p->format = STR("kineto");
	p->input_bytes = 1234567890123;
	p->file_bytes = 99;
	diag_add_n(&p->diags, "truncated-file", DIAG_LOSS, 3, 77, "it ends early");
	diag_add_n(&p->diags, "many", DIAG_LOSS, UINT64_MAX, -1, "more than can be counted");
	diag_add(&p->diags, "odd", DIAG_NOTE, -1, "100%% odd");
	return p;
}

static void assert_same(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->strings.n, b->strings.n);
	for (uint32_t i = 0; i < a->strings.n; i++) {
		assert_true(str_eq(profile_str(a, i), profile_str(b, i)));
		assert_int_equal(intern_find(&b->strings, profile_str(a, i)), i);
	}
	for (int t = 0; t < STORE_N_TABLES; t++) {
		const void *ta = profile_table(a, t), *tb = profile_table(b, t);
		uint32_t n = ((const struct rows *)ta)->n;
		assert_int_equal(n, ((const struct rows *)tb)->n);
		for (unsigned c = 0; c < store_tables[t].n_columns; c++) {
			const struct store_column *col = &store_tables[t].columns[c];
			const void *da = *rows_column(ta, col), *db = *rows_column(tb, col);
			if (n && da)
				assert_memory_equal(da, db, (size_t)n * col->size);
		}
	}
	assert_int_equal(a->diags.n, b->diags.n);
	for (unsigned i = 0; i < a->diags.n; i++) {
		const struct diag_entry *x = &a->diags.entry[i], *y = &b->diags.entry[i];
		assert_true(strcmp(x->kind, y->kind) == 0 && x->level == y->level && x->count == y->count);
		assert_true(x->first_offset == y->first_offset && str_eq(x->message, y->message));
	}
	assert_true(str_eq(a->input_path, b->input_path) && str_eq(a->format, b->format));
	assert_true(a->input_bytes == b->input_bytes && a->file_bytes == b->file_bytes);
}

static int save(const struct profile *p, const char *path, struct err *e)
{
	struct save *s = save_begin(path, 0666, 0, e);
	if (!s)
		return -1;
	if (save_profile(s, p, e)) {
		save_abort(s);
		return -1;
	}
	return save_commit(s, e);
}

static struct profile *saved_small(const char *path)
{
	struct profile *p = small_profile();
	struct err e = {0};
	if (save(p, path, &e))
		fail_msg("%s", e.msg);
	return p;
}

/* The loaded profile, or NULL with *e. */
static struct profile *load(const char *path, struct err *e)
{
	struct profile *p = profile_new();
	*e = (struct err){0};
	if (load_profile(path, p, e) == 0)
		return p;
	assert_int_not_equal(e->code, ERR_NONE);
	assert_true(e->msg[0]);
	profile_free(p);
	return NULL;
}

static void round_trip(void **state)
{
	struct profile *p = saved_small("a.opscope");
	struct err e;
	struct profile *q = load("a.opscope", &e);
	if (!q)
		fail_msg("%s", e.msg);
	assert_same(p, q);
	assert_int_equal(q->passes_done, PASSES);
	profile_free(p);
	profile_free(q);
}

static void round_trip_of_nothing(void **state)
{
	struct profile *p = profile_new();
	struct err e;
	assert_int_equal(save(p, "a.opscope", &e), 0);
	struct profile *q = load("a.opscope", &e);
	if (!q)
		fail_msg("%s", e.msg);
	assert_same(p, q);
	profile_free(p);
	profile_free(q);
}

/* Columns longer than one chunk, and the big pages. */
static void round_trip_of_chunks(void **state)
{
	struct profile *p = profile_new();
	struct build b;
	build_init(&b, p);
	uint32_t track = build_track(&b, STR("1"), STR("2"));
	uint16_t cat = build_cat(&b, 0);
	for (int64_t i = 0; i < 1200000; i++)
		build_flow(&b, i, i * 0x9e3779b97f4a7c15, track, cat, 'f');
	assert_int_equal(build_finish(&b, NULL), 0);
	struct err e;
	struct save *s = save_begin("a.opscope", 0666, 1 << 30, &e);
	assert_non_null(s);
	assert_int_equal(save_profile(s, p, &e), 0);
	assert_int_equal(save_commit(s, &e), 0);
	struct profile *q = load("a.opscope", &e);
	if (!q)
		fail_msg("%s", e.msg);
	assert_same(p, q);
	assert_null(q->span.parent);
	profile_free(p);
	profile_free(q);
}

static void round_trip_of_a_trace(void **state)
{
	const char *root = getenv("OPSCOPE_ROOT");
	char path[4096];
	if (!root)
		skip_because("OPSCOPE_ROOT does not say where the traces are");
	snprintf(path, sizeof path, "%s/tests/data/torch214_cpu_resnet.json.gz", root);
	struct err e;
	struct profile *p = input_open(path, &(struct input_options){0}, &e);
	assert_non_null(p);
	assert_int_equal(save(p, "a.opscope", &e), 0);
	struct profile *q = input_open("a.opscope", &(struct input_options){0}, &e);
	if (!q)
		fail_msg("%s", e.msg);
	assert_same(p, q);
	profile_free(p);
	profile_free(q);
}

static struct buf read_bytes(const char *path)
{
	struct buf b = {0};
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char block[65536];
	for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
		buf_put(&b, block, n);
	fclose(f);
	return b;
}

static void write_bytes(const char *path, const char *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Either it is refused with a reason, or what was hit was not in use, or a fact like the input's name: the columns are right. */
static void damaged_bytes(void **state)
{
	struct profile *p = saved_small("a.opscope");
	struct buf file = read_bytes("a.opscope");
	static const char unused[8];
	unsigned refused = 0, tried = 0;
	for (size_t at = 0; at + sizeof unused < file.n; at += 47) {
		if (memcmp(file.p + at, unused, sizeof unused) == 0) /* the middle of a page */
			continue;
		tried++;
		file.p[at] ^= 0x5a;
		write_bytes("b.opscope", file.p, file.n);
		file.p[at] ^= 0x5a;
		struct err e;
		struct profile *q = load("b.opscope", &e);
		if (!q) {
			refused++;
			continue;
		}
		assert_int_equal(p->span.rows.n, q->span.rows.n);
		assert_memory_equal(p->span.start_ns, q->span.start_ns, p->span.rows.n * sizeof *p->span.start_ns);
		profile_free(q);
	}
	assert_true(refused > tried / 4);
	for (size_t n = 0; n < file.n; n += 997) {
		write_bytes("b.opscope", file.p, n);
		struct err e;
		assert_null(load("b.opscope", &e));
	}
	buf_release(&file);
	profile_free(p);
}

static void sql(const char *path, const char *text)
{
	sqlite3 *db;
	char *why = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, text, NULL, NULL, &why);
	if (why)
		fail_msg("%s", why);
	sqlite3_close(db);
}

/* Changes a good file by SQL and gives the error of loading it; NULL *q when it is refused. */
static struct err after(const char *text, struct profile **q)
{
	profile_free(saved_small("a.opscope"));
	sql("a.opscope", text);
	struct err e;
	*q = load("a.opscope", &e);
	return e;
}

static struct profile *load_without(const char *path, unsigned left_out, struct err *e)
{
	struct profile *p = profile_new();
	p->left_out = left_out;
	if (load_profile(path, p, e) == 0)
		return p;
	profile_free(p);
	return NULL;
}

/* What is left out is told by its size, and all else is as it was. */
static void left_out_is_counted(void **state)
{
	enum { ALL = LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS };
	struct err e;
	struct profile *p = saved_small("a.opscope"), *all = load_without("a.opscope", 0, &e);
	assert_non_null(all);
	assert_int_equal(all->left_bytes + all->left_memory, 0);
	for (unsigned left_out = 1; left_out <= ALL; left_out++) {
		struct profile *left = load_without("a.opscope", left_out, &e);
		assert_non_null(left);
		assert_int_equal(left->flow.rows.n, left_out & LEFT_FLOWS ? 0 : all->flow.rows.n);
		assert_int_equal(left->mark.rows.n, left_out & LEFT_MARKS ? 0 : all->mark.rows.n);
		assert_int_equal(left->memory.rows.n, left_out & LEFT_MEMORY ? 0 : all->memory.rows.n);
		assert_int_equal(left->memory.rows.n + left->left_memory, all->memory.rows.n);
		assert_int_equal(left->span.rows.n, all->span.rows.n);
		assert_int_equal(!left->span.aux_id, !all->span.aux_id || left_out & LEFT_AUX_IDS);
		assert_memory_equal(left->span.parent, all->span.parent, all->span.rows.n * sizeof *all->span.parent);
		assert_int_equal(profile_bytes(left) + left->left_bytes, profile_bytes(all));
		profile_free(left);
	}
	profile_free(all);
	profile_free(p);
}

/* Damage of data that stays packed is noticed all the same. */
static void damage_of_what_is_left_out(void **state)
{
	struct err e;
	profile_free(saved_small("a.opscope"));
	sql("a.opscope", "UPDATE store_chunk SET checksum=checksum+1 WHERE tbl IN ('flow','memory','mark')");
	for (unsigned left_out = 0; left_out <= LEFT_MARKS; left_out++) {
		assert_null(load_without("a.opscope", left_out, &e));
		assert_non_null(strstr(e.msg, "checksum"));
	}
	sql("a.opscope", "UPDATE store_table SET rows=rows*100000 WHERE name='memory'");
	assert_null(load_without("a.opscope", LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS, &e));
}

static void checksum_is_checked(void **state)
{
	struct profile *q;
	struct err e = after("UPDATE store_chunk SET data = zeroblob(length(data)) WHERE tbl='span' AND col='ext_id'", &q);
	assert_null(q);
	assert_int_equal(e.code, ERR_FORMAT);
	assert_non_null(strstr(e.msg, "checksum"));
}

static void newer_version(void **state)
{
	struct profile *q;
	struct err e = after("PRAGMA user_version=4", &q);
	assert_null(q);
	assert_int_equal(e.code, ERR_FORMAT);
	assert_non_null(strstr(e.msg, "newer opscope (file version 4, this opscope reads up to 3)"));
}

static void too_old_version(void **state)
{
	struct profile *q;
	struct err e = after("PRAGMA user_version=0", &q);
	assert_null(q);
	assert_int_equal(e.code, ERR_FORMAT);
	assert_non_null(strstr(e.msg, "file version 0 is too old, this opscope reads 1 to 3"));
}

/* A list of aggregations that no program of ours writes is damage. */
static void hostile_aggregations(void **state)
{
	static const char *const bad[] = {
		"CREATE VIEW aggregations AS WITH RECURSIVE a(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM a) SELECT id FROM a",
		"CREATE TABLE aggregations(id INTEGER PRIMARY KEY, name TEXT)",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER, \"name\" TEXT GENERATED ALWAYS AS (zeroblob(1000000000)))",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER); INSERT INTO aggregations VALUES(-1)",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER); INSERT INTO aggregations VALUES(NULL)",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER); INSERT INTO aggregations VALUES(1),(1)",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER, \"name\" TEXT); INSERT INTO aggregations VALUES(1,zeroblob(5000))",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER, \"steps\" TEXT); INSERT INTO aggregations SELECT value, printf('%.5000c', 'x') FROM json_each('[1,2]')",
		"CREATE TABLE \"aggregations\"(\"id\" INTEGER); WITH RECURSIVE a(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM a LIMIT 1001) INSERT INTO aggregations SELECT i FROM a",
		"CREATE TABLE \"aggregations\"(\"name\" TEXT)",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct profile *q;
		struct err e = after(bad[i], &q);
		assert_null(q);
		assert_int_equal(e.code, ERR_FORMAT);
		assert_non_null(strstr(e.msg, "aggregations"));
	}
}

static void aggregations_are_read(void **state)
{
	struct profile *q;
	after("CREATE TABLE \"aggregations\"(\"id\" INTEGER, \"name\" TEXT, \"later\" REAL);"
	      "INSERT INTO aggregations VALUES(7,'b',1.5); INSERT INTO aggregations VALUES(2,NULL,NULL)", &q);
	assert_non_null(q);
	assert_int_equal(q->n_aggregations, 2);
	assert_true(q->aggregation[0].id == 2 && q->aggregation[1].id == 7);
	assert_true(q->aggregation[0].name.n == 0 && str_eq(q->aggregation[1].name, STR("b")));
	assert_true(q->aggregation[1].wall_ns == ID_NONE && q->aggregation[1].steps.n == 0);
	profile_free(q);
}

static void not_ours(void **state)
{
	struct profile *q;
	struct err e = after("PRAGMA application_id=7", &q);
	assert_null(q);
	assert_non_null(strstr(e.msg, "not one that opscope wrote"));
}

static void old_file_without_a_column(void **state)
{
	struct profile *p = small_profile(), *q;
	void *const gone[] = {&p->launch.registers, &p->span.ext_id, &p->launch.occupancy_pct, &p->memory.device_type, &p->memory.device_id, &p->memory.addr,
	                      &p->memory.bytes, &p->launch.bytes, &p->span.aux_id, &p->device.cc_major, &p->device.sm_count};
	struct err e = {0};
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
		mem_free(*(void **)gone[i]);
		*(void **)gone[i] = NULL;
	}
	assert_int_equal(save(p, "a.opscope", &e), 0);
	q = load("a.opscope", &e);
	assert_non_null(q);
	assert_int_equal(q->launch.registers[0], INT32_MIN);
	assert_true(q->launch.occupancy_pct[0] != q->launch.occupancy_pct[0]);
	assert_true(span_ext_id(&q->span, 3) == ID_NONE);
	assert_int_equal(q->memory.device_type[0], 0);
	assert_int_equal(q->memory.device_id[0], -1);
	assert_true(q->memory.addr[0] == ID_NONE && q->launch.bytes[0] == ID_NONE && q->memory.bytes[0] == 0);
	assert_int_equal(span_aux_id(&q->span, 0), -1);
	assert_int_equal(q->device.cc_major[0], -1);
	assert_int_equal(q->device.sm_count[0], 0);
	assert_int_equal(q->passes_done, PASSES);
	profile_free(p);
	profile_free(q);
}

static void old_file_without_a_derived_column(void **state)
{
	struct profile *p = small_profile(), *q;
	struct err e = {0};
	mem_free(p->span.parent);
	p->span.parent = NULL;
	assert_int_equal(save(p, "a.opscope", &e), 0);
	q = load("a.opscope", &e);
	assert_non_null(q);
	assert_int_equal(q->passes_done, 0);
	assert_null(q->span.op);
	profile_free(p);
	profile_free(q);
}

/* A file cannot hold steps, whatever it says; and part of analysis is none. */
static void marks_of_passes(void **state)
{
	static const struct { const char *change; unsigned expected; } cases[] = {
		{"UPDATE meta SET value=255 WHERE key='passes'", PASSES_IN_COLUMNS},
		{"UPDATE meta SET value=-1 WHERE key='passes'", PASSES_IN_COLUMNS},
		{"UPDATE meta SET value='all' WHERE key='passes'", 0},
		{"UPDATE meta SET value=1 WHERE key='passes'", 0},
		{"DELETE FROM meta WHERE key='passes'", 0},
		{"UPDATE meta SET value=255 WHERE key='passes'; DELETE FROM store_chunk WHERE col='call'", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct profile *q;
		struct err e = after(cases[i].change, &q);
		if (!q)
			fail_msg("%s", e.msg);
		assert_int_equal(q->passes_done, cases[i].expected);
		assert_true(!q->span.op == !cases[i].expected);
		assert_true(q->reopened);
		profile_free(q);
	}
}

/* Marked as done without results: it is done again, with what builds on it. */
static void marks_are_not_believed(void **state)
{
	struct err e;
	struct profile *p = small_profile();
	p->passes_done = ~0u;
	mem_free(p->gpu_op.call);
	p->gpu_op.call = NULL;
	assert_int_equal(analysis_run(p, PASS_STEPS | PASS_CORRELATE, &e), 0);
	assert_non_null(p->gpu_op.call);
	assert_non_null(p->steps);
	mem_free(p->span.parent);
	p->span.parent = NULL;
	assert_int_equal(analysis_run(p, PASS_NEST, &e), 0);
	assert_non_null(p->span.parent);
	assert_false(p->passes_done & (PASS_CORRELATE | PASS_STEPS | PASS_MEMORY));
	profile_free(p);
}

static void hostile_sql(void **state)
{
	static const char *const changes[] = {
		"UPDATE store_table SET rows=4294967290",
		"UPDATE store_table SET rows=-1",
		"UPDATE store_table SET rows=rows-1",
		"UPDATE store_table SET rows=rows+1",
		"UPDATE store_table SET rows='many'",
		"UPDATE store_chunk SET seq=seq+1",
		"UPDATE store_chunk SET size=size*2",
		"UPDATE store_chunk SET data=NULL WHERE tbl='gpu_op'",
		"UPDATE store_chunk SET data=5 WHERE tbl='gpu_op'",
		"UPDATE store_chunk SET data=data||data WHERE tbl='gpu_op'",
		"UPDATE store_chunk SET tbl=NULL",
		"DELETE FROM store_chunk WHERE tbl='strings' AND col='length'",
		"DELETE FROM store_chunk WHERE tbl='strings' AND col='bytes'",
		"DELETE FROM store_table WHERE name='strings'",
		"INSERT INTO store_chunk(tbl,col,seq,size,checksum,data) SELECT tbl,col,1,size,checksum,data FROM store_chunk",
		"UPDATE diag SET level=9",
		"UPDATE diag SET kind=NULL",
		"UPDATE meta SET value=1 WHERE key='byte_order'",
		"DROP TABLE meta",
		"DROP TABLE diag; CREATE VIEW diag AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x FROM c",
	};
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		struct profile *q;
		struct err e = after(changes[i], &q);
		if (q)
			fail_msg("believed: %s", changes[i]);
		assert_int_equal(e.code, ERR_FORMAT);
	}
}

static void refused(const struct profile *p, const char *expected)
{
	struct err e;
	assert_int_equal(save(p, "a.opscope", &e), 0);
	struct profile *q = load("a.opscope", &e);
	if (q)
		fail_msg("believed; expected was: %s", expected);
	assert_int_equal(e.code, ERR_FORMAT);
	if (!strstr(e.msg, expected))
		fail_msg("'%s' is not in '%s'", expected, e.msg);
}

/* Values that carry right checksums but point nowhere. */
static void hostile_values(void **state)
{
	for (int what = 0; what < 16; what++) {
		struct profile *p = small_profile();
		const char *expected = "";
		switch (what) {
		case 0: p->span.name[7] = p->strings.n; expected = "column span.name"; break;
		case 1: p->span.track[7] = 900; expected = "column span.track"; break;
		case 2: p->gpu_op.launch[7] = ROW_NONE; expected = "column gpu_op.launch"; break;
		case 3: p->gpu_op.kind[7] = GPU_KINDS; expected = "column gpu_op.kind"; break;
		case 4: p->span.parent[7] = 400; expected = "column span.parent"; break;
		case 5: p->span.start_ns[7] = INT64_MIN; expected = "column span.start_ns"; break;
		case 6: p->span.dur_ns[7] = -1; expected = "column span.dur_ns"; break;
		case 7: p->arg_set.first[1] = 5; expected = "argument sets"; break;
		case 8: p->gpu_op.start_ns[399] = INT64_MAX / 2; p->gpu_op.dur_ns[399] = INT64_MAX; expected = "beyond all time"; break;
		case 9: p->memory.time_ns[7] = 9; expected = "table memory is not in order"; break;
		case 10: p->span.start_ns[7] = p->span.start_ns[6]; p->span.dur_ns[7]++; expected = "row 7 of table span is not in order"; break;
		case 11: p->gpu_op.start_ns[7] = 0; expected = "table gpu_op is not in order"; break;
		case 12: p->span.dur_ns[7] = 1ll << BUILD_SUM_BITS; expected = "add up to more"; break;
		case 13: p->memory.bytes[7] = INT64_MIN; expected = "add up to more"; break;
		case 14: p->memory.bytes[7] = -(1ll << (BUILD_SUM_BITS - 1)); p->memory.bytes[8] = -p->memory.bytes[7]; expected = "add up to more"; break;
		case 15: p->gpu_op.dur_ns[7] = INT64_MAX / 2; expected = "add up to more"; break;
		}
		refused(p, expected);
		profile_free(p);
	}
}

/* Rows that exist, but are not those that a pass would have found. Row 0 is an op, 1 an annotation in it, 2 a Python frame and 3 an API call in that;
 * row 12 is the next op. */
static void lies(void **state)
{
	static const char *const expected[] = {
		"row 1 of table span: its parent", "row 2 of table span: its parent", "row 3 of table span: its parent", "row 3 of table span: its parent",
		"row 4 of table span: its parent", "row 13 of table span: its parent", "row 14 of table span: its parent", "row 2 of table span: its parent",
		"row 1 of table span: its op", "row 3 of table span: its op", "row 3 of table span: its op", "row 4 of table span: its op",
		"row 3 of table span: its op", "row 3 of table gpu_op: its call", "row 3 of table gpu_op: its call", "row 3 of table gpu_op: its call",
		"row 3 of table gpu_op: its op", "row 5 of table gpu_op: its op", "row 7 of table memory: its op", "row 13 of table memory: its op",
		"row 7 of table memory: its op",
	};
	for (int what = 0; what < (int)(sizeof expected / sizeof expected[0]); what++) {
		struct profile *p = small_profile();
		switch (what) {
		case 0: p->span.parent[1] = ROW_NONE; break; /* one is around it */
		case 1: p->span.parent[2] = 0; break;        /* not the innermost */
		case 2: p->span.parent[3] = 2; break;        /* over by then */
		case 3: p->span.parent[3] = 3; break;
		case 4: p->span.parent[4] = 0; break;        /* of a kind that has none */
		case 5: p->span.parent[13] = 1; break;       /* over, and so is its parent */
		case 6: /* of another thread */
			for (uint32_t i = 14; i < p->span.rows.n; i++)
				p->span.track[i] = 1;
			break;
		case 7: p->span.kind[1] = SPAN_CALL; break;  /* calls have no children */
		case 8: p->span.op[1] = ROW_NONE; break;
		case 9: p->span.op[3] = 1; break;            /* neither around it nor with its id */
		case 10: p->span.op[3] = 15; break;          /* a call */
		case 11: p->span.op[4] = 0; break;
		case 12: p->span.op[3] = 12; p->span.ext_id[12] = p->span.ext_id[3] = 0; break; /* 0 is not an id */
		case 13: p->gpu_op.call[3] = 15; break;
		case 14: p->gpu_op.call[3] = 0; break;
		case 15: p->launch.pid[p->gpu_op.launch[3]] = 99; break;
		case 16: p->gpu_op.op[3] = ROW_NONE; break;
		case 17: p->gpu_op.op[5] = 0; break;
		case 18: p->memory.span[7] = 12; break;      /* begins later */
		case 19: p->memory.span[13] = 1; break;      /* an annotation */
		case 20: p->memory.track[7] = 1; break;
		}
		refused(p, expected[what]);
		profile_free(p);
	}
}

static uint32_t random_below(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 16) % n;
}

/* Few times, ids and threads, so that ranges overlap, end together and share ids. */
static struct profile *random_profile(uint32_t seed)
{
	struct profile *p = profile_new();
	struct build b;
	build_init(&b, p);
	uint32_t track[] = {build_track(&b, STR("1"), STR("2")), build_track(&b, STR("1"), STR("3")), build_track(&b, STR("4"), STR("5"))};
	struct launch_row launch = launch_none();
	build_cat(&b, intern_str(&p->strings, STR("any")));
	for (int i = 0; i < 60; i++) {
		launch.pid = random_below(&seed, 2) ? 1 : ID_NONE;
		build_span(&b, &(struct span_row){
			.start_ns = random_below(&seed, 40), .dur_ns = random_below(&seed, 20), .ext_id = random_below(&seed, 9), .link_id = random_below(&seed, 30), .aux_id = -1,
			.track = track[random_below(&seed, 3)], .kind = (uint8_t)random_below(&seed, SPAN_KINDS)});
		build_gpu(&b, &(struct gpu_row){
			.start_ns = random_below(&seed, 40), .dur_ns = 1, .ext_id = random_below(&seed, 9), .corr_id = random_below(&seed, 30), .track = track[2],
			.launch = build_launch(&b, &launch)});
		build_memory(&b, &(struct memory_row){.time_ns = random_below(&seed, 40), .track = track[random_below(&seed, 3)]});
	}
	assert_int_equal(build_finish(&b, NULL), 0);
	return p;
}

/* However odd the input: what the passes find is believed. */
static void what_passes_find_is_believed(void **state)
{
	for (uint32_t seed = 0; seed < 3000; seed++) {
		struct err e = {0};
		struct profile *p = random_profile(seed);
		assert_int_equal(analysis_run(p, PASSES, &e), 0);
		if (load_check(p, &e) < 0)
			fail_msg("seed %u: %s", seed, e.msg);
		profile_free(p);
	}
}

static void round_trip_of_odd_ones(void **state)
{
	for (uint32_t seed = 0; seed < 40; seed++) {
		struct err e = {0};
		struct profile *p = random_profile(seed);
		assert_int_equal(analysis_run(p, PASSES, &e), 0);
		assert_int_equal(save(p, "a.opscope", &e), 0);
		struct profile *q = load("a.opscope", &e);
		if (!q)
			fail_msg("seed %u: %s", seed, e.msg);
		assert_same(p, q);
		assert_int_equal(q->passes_done, PASSES);
		profile_free(p);
		profile_free(q);
	}
}

/* At the limit, not beyond it. */
static void largest_sums(void **state)
{
	struct profile *p = small_profile();
	p->memory.bytes[7] = (1ll << BUILD_SUM_BITS) - 399 * 64;
	struct err e;
	assert_int_equal(save(p, "a.opscope", &e), 0);
	struct profile *q = load("a.opscope", &e);
	if (!q)
		fail_msg("%s", e.msg);
	profile_free(q);
	p->memory.bytes[7]++;
	assert_int_equal(save(p, "a.opscope", &e), 0);
	assert_null(load("a.opscope", &e));
	profile_free(p);
}

/* Equal hashes would make every look-up walk over all strings. */
static void hostile_hashes(void **state)
{
	struct profile *p = profile_new();
	for (int i = 0; i < 100000; i++) {
		char text[16];
		intern_put(&p->strings, text, (size_t)snprintf(text, sizeof text, "%d", i));
	}
	for (uint32_t i = 0; i < p->strings.n; i++)
		p->strings.entry[i].hash = 1;
	struct err e;
	assert_int_equal(save(p, "a.opscope", &e), 0);
	assert_null(load("a.opscope", &e));
	profile_free(p);
}

static void missing_file(void **state)
{
	struct err e;
	assert_null(load("nothing.opscope", &e));
	assert_int_equal(e.code, ERR_IO);
}

/* A full disk leaves the older file as it was and nothing beside it. */
static void full_disk(void **state)
{
	struct profile *p = saved_small("a.opscope");
	struct buf before = read_bytes("a.opscope");
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, tight;
	getrlimit(RLIMIT_FSIZE, &old);
	for (rlim_t limit = 0; limit < before.n; limit += before.n / 7) {
		tight = (struct rlimit){limit, old.rlim_max};
		setrlimit(RLIMIT_FSIZE, &tight);
		struct err e = {0};
		int rc = save(p, "a.opscope", &e);
		setrlimit(RLIMIT_FSIZE, &old);
		assert_int_equal(rc, -1);
		assert_int_equal(e.code, ERR_IO);
	}
	struct buf now = read_bytes("a.opscope");
	assert_int_equal(now.n, before.n);
	assert_memory_equal(now.p, before.p, now.n);
	assert_int_equal(system("test $(ls -A | wc -l) -le 2"), 0);
	buf_release(&now);
	buf_release(&before);
	profile_free(p);
}

/* What is added is added to the data that it was made from, or not at all. */
static void adding_to_other_data(void **state)
{
	profile_free(saved_small("a.opscope"));
	struct err e;
	struct profile *p = load("a.opscope", &e);
	assert_non_null(p);
	struct save *s = save_add("a.opscope", p, &e);
	if (!s)
		fail_msg("%s", e.msg);
	assert_int_equal(save_next_id(s, 0), 1);
	assert_int_equal(save_next_id(s, 7), 8);
	save_abort(s);
	struct buf before = read_bytes("a.opscope");
	p->content ^= 1;
	assert_null(save_add("a.opscope", p, &e));
	assert_int_equal(e.code, ERR_DATA);
	assert_null(save_add("none.opscope", p, &e));
	assert_int_equal(e.code, ERR_IO);
	struct buf now = read_bytes("a.opscope");
	assert_int_equal(now.n, before.n);
	assert_memory_equal(now.p, before.p, now.n);
	buf_release(&now);
	buf_release(&before);
	profile_free(p);
}

/* Rows of tables whose columns differ from one aggregation to the next; numbers are not given twice. */
static void adding_and_deleting(void **state)
{
	profile_free(saved_small("a.opscope"));
	static const char *const columns[] = {"x", "y", "odd \"name\""};
	for (int64_t i = 1; i <= 4; i++) {
		struct err e;
		struct profile *p = load("a.opscope", &e);
		struct save *s = p ? save_add("a.opscope", p, &e) : NULL;
		if (!s)
			fail_msg("%s", e.msg);
		struct table t;
		struct str none = {"", 0};
		struct aggregation a = {.id = save_next_id(s, 0), .name = none, .created = none, .key_op = STR("k"), .steps = none, .opscope = STR("1")};
		assert_int_equal(a.id, i);
		table_init(&t, "t", "T");
		TABLE_COLUMN(&t, .id = columns[i % 3], .title = "", .type = CELL_I64);
		table_row(&t);
		table_set_i64(&t, 0, 10 * i);
		assert_int_equal(save_table(s, "report_t", &t, a.id, &e), 0);
		assert_int_equal(save_aggregation(s, &a, &e), 0);
		if (i > 1)
			assert_int_equal(save_delete(s, i - 1, &e), 0);
		assert_int_equal(save_delete(s, 99, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		table_release(&t);
		assert_int_equal(save_commit(s, &e), 0);
		profile_free(p);
	}
	struct err e;
	struct profile *p = load("a.opscope", &e);
	assert_int_equal(p->n_aggregations, 1);
	assert_true(p->aggregation[0].id == 4 && str_eq(p->aggregation[0].key_op, STR("k")));
	profile_free(p);
	sqlite3 *db;
	sqlite3_stmt *st;
	assert_int_equal(sqlite3_open("a.opscope", &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT y, x, \"odd \"\"name\"\"\", aggregation FROM report_t", -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int64(st, 0), 40);
	assert_int_equal(sqlite3_column_type(st, 1), SQLITE_NULL);
	assert_int_equal(sqlite3_column_type(st, 2), SQLITE_NULL);
	assert_int_equal(sqlite3_column_int64(st, 3), 4);
	assert_int_equal(sqlite3_step(st), SQLITE_DONE);
	sqlite3_finalize(st);
	sqlite3_close(db);
}

static void odd_names(void **state)
{
	static const char *const names[] = {"file:x?mode=memory", "a%41#b", "with space"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct profile *p = saved_small(names[i]);
		struct err e;
		struct profile *q = load(names[i], &e);
		assert_int_equal(unlink(names[i]), 0);
		if (!q)
			fail_msg("%s", e.msg);
		profile_free(p);
		profile_free(q);
	}
	struct err e;
	assert_null(save_begin("no/such/folder/x.opscope", 0666, 0, &e));
	assert_int_equal(e.code, ERR_IO);
}

/* Closing finalizes what was left half-way once, also the statements that virtual tables made for themselves. */
static void closing_half_way(void **state)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *st[3] = {NULL};
	sqlite3_int64 held = sqlite3_memory_used();
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0); /* so that the allocator sees each free */
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 2), (3, 4)", NULL, NULL, NULL), SQLITE_OK);
	const char *const sql[3] = {"SELECT a FROM t", "SELECT name FROM pragma_table_xinfo('t')", "SELECT x.name, y.name FROM pragma_table_xinfo('t') x, pragma_table_list y"};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sqlite3_prepare_v2(db, sql[i], -1, &st[i], NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(st[i]), SQLITE_ROW);
	}
	sqlmem_close(db);
	assert_int_equal(sqlite3_memory_used(), held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_half_way),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(round_trip_of_nothing),
		cmocka_unit_test(round_trip_of_chunks),
		cmocka_unit_test(round_trip_of_a_trace),
		cmocka_unit_test(round_trip_of_odd_ones),
		cmocka_unit_test(damaged_bytes),
		cmocka_unit_test(checksum_is_checked),
		cmocka_unit_test(left_out_is_counted),
		cmocka_unit_test(damage_of_what_is_left_out),
		cmocka_unit_test(newer_version),
		cmocka_unit_test(too_old_version),
		cmocka_unit_test(hostile_aggregations),
		cmocka_unit_test(aggregations_are_read),
		cmocka_unit_test(not_ours),
		cmocka_unit_test(old_file_without_a_column),
		cmocka_unit_test(old_file_without_a_derived_column),
		cmocka_unit_test(marks_of_passes),
		cmocka_unit_test(marks_are_not_believed),
		cmocka_unit_test(hostile_sql),
		cmocka_unit_test(hostile_values),
		cmocka_unit_test(lies),
		cmocka_unit_test(what_passes_find_is_believed),
		cmocka_unit_test(largest_sums),
		cmocka_unit_test(hostile_hashes),
		cmocka_unit_test(missing_file),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(adding_to_other_data),
		cmocka_unit_test(adding_and_deleting),
		cmocka_unit_test(odd_names),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
