/* Ranges in which nothing was launched are left out of Nsight Systems databases (LEFT_QUIET): of random ones, nested, overlapping, out of order and damaged, the answers
 * are those of the whole, and what is kept has the ranges around it that it had. */
#include "analysis/analysis.h"
#include "base/buf.h"
#include "base/search.h"
#include "open/trace_open.h"
#include "query/per.h"
#include "query/report.h"
#include "render/render.h"
#include "test.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

enum { QUIET = LEFT_MEMORY | LEFT_MARKS | LEFT_OP_IDS | LEFT_QUIET, TRIALS = 40, GROUPS = 60 };

/* How a database is odd. */
enum odd { ODD_NOT, ODD_OVERLAPS, ODD_ORDER, ODD_EQUAL_STARTS, ODD_GRAPH, ODD_KINDS, ODD_OVERLAPS_AND_ORDER };

static const char *const schema[] = {
	"PRAGMA synchronous=OFF", "BEGIN",
	"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
	"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER)",
	"CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)",
	("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"
	 " demangledName INTEGER, shortName INTEGER)"),
	"INSERT INTO StringIds VALUES(1, 'cudaLaunchKernel_v7000'), (2, 'cudaEventQuery_v3020'), (3, 'void gemm(int)'), (4, 'cudaGraphLaunch_v10000'), (5, 'poll')",
};

struct maker {
	sqlite3 *db;
	uint64_t random;
	int64_t now, gpu, correlation;
	enum odd odd;
	struct late_call {
		int64_t start, end;
		unsigned thread;
	} late[64]; /* calls that come behind all others */
	unsigned n_late;
};

static unsigned maker_below(struct maker *m, unsigned n)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(m->random >> 33) % n;
}

static void maker_sql(struct maker *m, const char *sql) { assert_int_equal(sqlite3_exec(m->db, sql, NULL, NULL, NULL), SQLITE_OK); }

static void maker_put(struct maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void maker_put(struct maker *m, const char *format, ...)
{
	char sql[512];
	va_list args;
	va_start(args, format);
	vsnprintf(sql, sizeof sql, format, args);
	va_end(args);
	maker_sql(m, sql);
}

static long long maker_tid(unsigned thread) { return 1ll << 48 | 77ll << 24 | (77 + thread); }

static void maker_range(struct maker *m, int64_t start, int64_t end, unsigned thread)
{
	static const char *const names[] = {"aten::mm, seq = %u, op_id = 7, sizes = [[4, 8], [8, 2]]", "aten::empty, op_id = %u, sizes = [[], []]", "layer:l%u", "a user''s %u",
	                                    "MmBackward0, seq = %u", "autograd::engine::evaluate_function: MmBackward0", "{''traceMarker'': [''a.py:%u'']}", "aten::t, op_id = %u"};
	char text[128];
	snprintf(text, sizeof text, names[maker_below(m, sizeof names / sizeof names[0])], maker_below(m, 6));
	const unsigned type = m->odd == ODD_KINDS && !maker_below(m, 8) ? 60 : 59;
	if (m->odd == ODD_KINDS && !maker_below(m, 16))
		maker_put(m, "INSERT INTO NVTX_EVENTS VALUES(%lld, NULL, %u, '%s', %lld, 0)", (long long)start, type, text, maker_tid(thread));
	else
		maker_put(m, "INSERT INTO NVTX_EVENTS VALUES(%lld, %lld, %u, '%s', %lld, 0)", (long long)start, (long long)end, type, text, maker_tid(thread));
}

static void maker_call(struct maker *m, int64_t start, int64_t end, unsigned thread)
{
	const bool launches = maker_below(m, 2), graph = m->odd == ODD_GRAPH && !maker_below(m, 20);
	m->correlation++;
	maker_put(m, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(%lld, %lld, 1, %lld, %lld, %d)", (long long)start, (long long)end, maker_tid(thread), (long long)m->correlation,
	          graph ? 4 : launches ? 1 : 2);
	if (!launches)
		return;
	m->gpu = (m->gpu > end ? m->gpu : end) + 5;
	maker_put(m, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(%lld, %lld, 0, 1, 7, %lld, %lld, 3, 3)", (long long)m->gpu, (long long)m->gpu + 20, (long long)m->correlation,
	          1ll << 48 | 77ll << 24);
	m->gpu += 20;
}

/* Ranges and calls between `start` and `end`, in order of start, but for what is odd. */
static void maker_fill(struct maker *m, int64_t start, int64_t end, unsigned thread, unsigned depth)
{
	for (int64_t at = start + (m->odd == ODD_EQUAL_STARTS ? 0 : 1); at + 4 < end;) {
		const int64_t n = 3 + maker_below(m, (unsigned)(end - at)), to = at + n < end ? at + n : end - 1, past = (m->odd == ODD_OVERLAPS && !maker_below(m, 12)) || (m->odd == ODD_OVERLAPS_AND_ORDER && !maker_below(m, 8)) ? 40 : 0;
		const int64_t late = (m->odd == ODD_ORDER && !maker_below(m, 25)) || (m->odd == ODD_OVERLAPS_AND_ORDER && !maker_below(m, 8)) ? 30 : 0;
		if (m->odd == ODD_EQUAL_STARTS && !maker_below(m, 8)) /* kept, without a length, and of what may not be kept it is inside */
			maker_put(m, "INSERT INTO NVTX_EVENTS VALUES(%lld, %lld, 59, 'aten::mm, seq = 3', %lld, 0)", (long long)at, (long long)at, maker_tid(thread));
		if (maker_below(m, 3) && depth < 6) {
			if (late)
				maker_fill(m, at, to, thread, depth + 1);
			maker_range(m, at, to + past, thread);
			if (!late)
				maker_fill(m, at, to, thread, depth + 1);
		} else if (late && m->n_late < sizeof m->late / sizeof m->late[0]) {
			m->late[m->n_late++] = (struct late_call){at, to + past, thread};
		} else {
			maker_call(m, at, to + past, thread);
		}
		at = to + maker_below(m, 3);
	}
}

static void maker_make(const char *path, uint64_t seed, enum odd odd)
{
	struct maker m = {.random = seed, .now = 1000, .odd = odd};
	assert_int_equal(sqlite3_open(path, &m.db), SQLITE_OK);
	for (size_t i = 0; i < sizeof schema / sizeof schema[0]; i++)
		maker_sql(&m, schema[i]);
	/* What is odd in two ways is so in one group: a database is read again because of the first row out of order, which would hide others. */
	for (unsigned g = 0; g < (odd == ODD_OVERLAPS_AND_ORDER ? 1 : GROUPS); g++, m.now += 210) {
		const unsigned thread = maker_below(&m, 2);
		maker_fill(&m, m.now, m.now + 200, thread, 0);
		if (!maker_below(&m, 8))
			maker_put(&m, "INSERT INTO OSRT_API VALUES(%lld, %lld, %lld, 5)", (long long)m.now, (long long)m.now + 200, maker_tid(thread));
	}
	for (unsigned i = 0; i < m.n_late; i++)
		maker_call(&m, m.late[i].start, m.late[i].end, m.late[i].thread);
	maker_sql(&m, "COMMIT");
	sqlite3_close(m.db);
}

static void answer_of(const struct report *r, struct profile *p, struct buf *out)
{
	struct table t;
	struct err e;
	buf_clear(out);
	if (report_run(r, p, &(struct report_args){0}, &t, &e) < 0) {
		buf_cstr(out, e.msg);
		return;
	}
	assert_int_equal(renderer_find(STR("json"))->render(&t, &(struct render_options){0}, out, &e), 0);
	table_release(&t);
}

static uint64_t losses(const struct profile *p)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < p->diags.n; i++)
		n += p->diags.entry[i].count;
	return n;
}

/* Its row in the whole, from `at` on: rows of both are in one order. */
static uint32_t row_in(const struct profile *all, const struct profile *left, uint32_t row, uint32_t at)
{
	const struct spans *a = &all->span, *b = &left->span;
	while (at < a->rows.n && (a->track[at] != b->track[row] || a->start_ns[at] != b->start_ns[row] || a->dur_ns[at] != b->dur_ns[row] || a->name[at] != b->name[row] ||
	                          a->kind[at] != b->kind[row]))
		at++;
	return at;
}

static void compare_ranges(const struct profile *all, const struct profile *left)
{
	uint32_t *place = calloc(left->span.rows.n + 1, sizeof *place);
	for (uint32_t i = 0, at = 0; i < left->span.rows.n; i++) {
		place[i] = at = row_in(all, left, i, at);
		assert_in_range(at, 0, all->span.rows.n - 1);
		const uint32_t up = left->span.parent[i], op = left->span.op[i];
		assert_int_equal(all->span.parent[at], up == ROW_NONE ? ROW_NONE : place[up]);
		assert_int_equal(all->span.op[at], op == ROW_NONE ? ROW_NONE : place[op]);
		at++;
	}
	free(place);
}

static void compare(const char *path, uint32_t *rows_all, uint32_t *rows_left, unsigned *again)
{
	struct err e;
	struct profile *all = trace_open(path, NULL, &e), *left = trace_open(path, &(struct input_options){.ignores = QUIET}, &e);
	struct buf a = {0}, b = {0};
	assert_true(all && left);
	assert_int_equal(losses(all), losses(left));
	assert_int_equal(profile_events(all), profile_events(left));
	assert_int_equal(all->strings.n, left->strings.n);
	*again += !(left->left_out & LEFT_QUIET);
	*rows_all += all->span.rows.n;
	*rows_left += left->span.rows.n;
	for (const struct report *const *r = report_registry; *r; r++) {
		if (!(report_ignores(*r, &(struct report_args){0}) & LEFT_QUIET))
			continue;
		assert_null(report_sums(*r));
		answer_of(*r, all, &a);
		answer_of(*r, left, &b);
		if (!str_eq(buf_view(&a), buf_view(&b)))
			fail_msg("report %s differs:\n" STR_FMT "\n" STR_FMT, (*r)->name, STR_ARG(buf_view(&a)), STR_ARG(buf_view(&b)));
	}
	compare_ranges(all, left);
	assert_int_equal(losses(all), losses(left));
	profile_free(all);
	profile_free(left);
	buf_release(&a);
	buf_release(&b);
}

static void compare_odd(enum odd odd, uint32_t *rows_all, uint32_t *rows_left, unsigned *again)
{
	*rows_all = *rows_left = *again = 0;
	for (unsigned i = 0; i < (odd == ODD_OVERLAPS_AND_ORDER ? TRIALS * GROUPS / 4 : TRIALS); i++) {
		char path[] = "/tmp/opscope-left-quiet-XXXXXX.sqlite";
		const int fd = mkstemps(path, 7);
		assert_true(fd >= 0);
		close(fd);
		maker_make(path, 1000u * odd + i, odd);
		compare(path, rows_all, rows_left, again);
		unlink(path);
	}
}

static void test_random(void **state)
{
	uint32_t all, left;
	unsigned again;
	compare_odd(ODD_NOT, &all, &left, &again);
	assert_int_equal(again, 0);
	assert_in_range(left, all / 4, all * 4 / 5);
	compare_odd(ODD_EQUAL_STARTS, &all, &left, &again);
	compare_odd(ODD_OVERLAPS, &all, &left, &again);
	assert_in_range(left, 1, all - 1);
	compare_odd(ODD_KINDS, &all, &left, &again);
	assert_in_range(left, 1, all - 1);
}

/* What was left out before rows came out of order may be around them; who launches graphs searches all ranges. */
static void test_again(void **state)
{
	uint32_t all, left;
	unsigned again;
	compare_odd(ODD_ORDER, &all, &left, &again);
	assert_in_range(again, TRIALS / 4, TRIALS);
	compare_odd(ODD_OVERLAPS_AND_ORDER, &all, &left, &again);
	assert_in_range(again, TRIALS, TRIALS * GROUPS / 4);
	compare_odd(ODD_GRAPH, &all, &left, &again);
	assert_in_range(again, TRIALS * 3 / 4, TRIALS);
}

/* Steps may be any ranges. */
static void test_steps(void **state)
{
	const struct report *r = report_find(STR("pyprof"));
	assert_int_equal(report_ignores(r, &(struct report_args){0}), QUIET);
	assert_int_equal(report_ignores(r, &(struct report_args){.has_steps = true}), QUIET & ~LEFT_QUIET);
	assert_int_equal(report_ignores(r, &(struct report_args){.compat = "pyprof"}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
