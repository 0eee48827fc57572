/* A trace read in parts by several threads is what one thread reads: on traces of the tests, and on made ones with all that may go wrong where parts meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "parts_same.h"

#include "failing_malloc.h"

#include "base/mem.h"
#include "base/threads.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t seed = 7;
static unsigned parts_rnd(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

static void check_text(struct str text, unsigned *joined)
{
	char path[] = "/dev/shm/opscope-parts-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
	close(fd);
	bool same = true;
	for (unsigned threads = 2; same && threads <= 8; threads = threads == 2 ? 3 : threads + 5)
		same = parts_same_file(path, threads, 1, joined);
	if (same)
		unlink(path);
	assert_true(same);
}

/* What events may be; all of it may follow all else. */
enum { WITH_ODD = 1, WITH_RANGES = 2, WITH_DAMAGE = 4, WITH_LONG = 8, WITH_TEXT_IDS = 16, WITH_SPACE = 32 };

static void put_event(struct buf *b, unsigned i, unsigned with)
{
	const char *space = with & WITH_SPACE ? "\n    " : "";
	const unsigned ts = i * 10, tid = parts_rnd(5);
	switch (parts_rnd(12)) {
	case 0:
		buf_printf(b, "{%s\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k%u\", \"pid\": 0, \"tid\": %u, \"ts\": %u, \"dur\": %u, \"args\": {\"correlation\": %u, \"stream\": %u, \"grid\": [%u, 1, 1], \"block\": [64, 1, 1]}}",
		           space, parts_rnd(20), tid, ts, parts_rnd(9), i, tid, parts_rnd(40));
		break;
	case 1:
		buf_printf(b, "{%s\"ph\": \"%c\", \"id\": %u, \"pid\": 1, \"tid\": %u, \"ts\": %u, \"cat\": \"ac2g\", \"name\": \"ac2g\"}", space, "stf"[parts_rnd(3)], parts_rnd(100), tid, ts);
		break;
	case 2:
		buf_printf(b, "{%s\"name\": \"%s\", \"ph\": \"M\", \"ts\": %u, \"pid\": %u, \"tid\": %u, \"args\": {\"%s\": \"text %u\"}}", space,
		           (const char *[]){"process_name", "process_labels", "thread_name", "thread_sort_index", "other"}[parts_rnd(5)], ts, parts_rnd(3), tid,
		           (const char *[]){"name", "labels"}[parts_rnd(2)], parts_rnd(30));
		break;
	case 3:
		buf_printf(b, "{%s\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": %u, \"ts\": %u, \"args\": {\"Addr\": %u, \"Bytes\": %d, \"Total Allocated\": %u}}",
		           space, tid, ts, i, (int)parts_rnd(9) - 4, i);
		break;
	case 4:
		if (with & WITH_RANGES)
			buf_printf(b, "{%s\"ph\": \"%c\", \"cat\": \"c%u\", \"name\": \"r\", \"pid\": 1, \"tid\": %u, \"ts\": %u}", space, "BBE"[parts_rnd(3)], parts_rnd(3), tid, ts);
		else
			buf_printf(b, "{%s\"ph\": \"C\", \"cat\": \"c%u\", \"name\": \"counter\", \"pid\": \"p %u\", \"tid\": 0, \"ts\": %u, \"args\": {\"v%u\": %u}}", space, parts_rnd(50), parts_rnd(3), ts, parts_rnd(4), i);
		break;
	case 5:
		if (with & WITH_ODD)
			buf_cstr(b, (const char *[]){"[{\"ph\": \"X\"},{\"ph\": \"X\"}]", "17", "{}", "{\"ph\": \"X\"}", "{\"ph\": \"X\", \"ts\": \"a\"}", "{\"ph\": \"X\", \"ts\": 1, \"dur\": -1, \"name\": N/A}",
			                             "{\"ph\": \"X\", \"ts\": 1, \"cat\": \"a\\u0041\\q\", \"name\": \"C:\\qq\"}", "{\"ph\": \"X\", \"ts\": 1, \"name\": \"a\tb\",}", "{\"ph\": \"X\", \"ts\": 1, \"name\": \"\\ud800\"},"}[parts_rnd(9)]);
		else
			buf_printf(b, "{%s\"name\": \"z\"}", space);
		break;
	case 6:
		if (with & WITH_DAMAGE && !parts_rnd(6))
			buf_cstr(b, (const char *[]){"{\"ph\": \"X\" \"ts\": 1}", "{\"ph\": \"X\", \"args\": {]}", "}", "{\"ph\": \"X\", \"ts\": 1", "]"}[parts_rnd(parts_rnd(20) ? 4 : 5)]);
		else
			buf_printf(b, "{%s\"ph\": \"%c\", \"ts\": %u, \"pid\": 1, \"tid\": 99}", space, with & WITH_RANGES && !parts_rnd(50) ? 'E' : 'n', ts);
		break;
	case 7:
		if (with & WITH_LONG && !parts_rnd(12)) {
			buf_printf(b, "{%s\"ph\": \"X\", \"cat\": \"python_function\", \"ts\": %u, \"dur\": 1, \"pid\": 1, \"tid\": 2, \"args\": {\"a\": \"C:\\q\", \"text\": \"", space, ts);
			buf_fill(b, 'x', parts_rnd(400000));
			buf_cstr(b, "\"}, \"name\": \"long\"}");
			break;
		}
		/* fall through */
	default:
		buf_printf(b, "{%s\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op%u\", \"pid\": 1, \"tid\": %u, \"ts\": %u.%u, \"dur\": %u, \"args\": {\"External id\": %u, \"Input Dims\": [[%u, %u], []], \"k%u\": \"v%u\", \"list\": [{\"ph\": %u},{\"ph\": 2}]}}",
		           space, parts_rnd(60), tid, ts, parts_rnd(1000), parts_rnd(30), i, parts_rnd(20), parts_rnd(20), parts_rnd(7), parts_rnd(i + 1), parts_rnd(3));
	}
	if (with & WITH_TEXT_IDS && !parts_rnd(300))
		buf_printf(b, ",{%s\"ph\": \"s\", \"id\": \"a%u\", \"pid\": 1, \"tid\": %u, \"ts\": %u, \"name\": \"n\"}", space, parts_rnd(10), tid, ts);
}

static void put_events(struct buf *b, unsigned n, unsigned with)
{
	const char *between = with & WITH_SPACE ? "\n  ,\n  " : parts_rnd(2) ? "," : ",\n";
	for (unsigned i = 0; i < n; i++) {
		buf_cstr(b, i ? between : "");
		put_event(b, i, with);
	}
	if (with & WITH_ODD && parts_rnd(2))
		buf_char(b, ',');
}

static void put_trace(struct buf *b, unsigned n, unsigned with)
{
	const bool array = !parts_rnd(8);
	buf_cstr(b, array ? "[" : parts_rnd(2) ? "{\"schemaVersion\": 1, \"traceEvents\": [" : "{\"distributedInfo\": {\"rank\": 1}, \"traceEvents\": [\n");
	put_events(b, n, with);
	buf_cstr(b, array ? "]" : "], \"traceName\": \"a\\q\"");
	if (!array && with & WITH_ODD) {
		buf_cstr(b, ", \"traceEvents\": [");
		put_events(b, n / 2, with);
		buf_cstr(b, "], \"x\": N/A");
	}
	buf_cstr(b, array ? "" : "}\n");
}

static void test_made_traces(void **state)
{
	(void)state;
	unsigned joined = 0, alone = 0;
	for (unsigned round = 0; round < 120; round++) {
		struct buf b = {0};
		const unsigned with = round % 4 ? parts_rnd(64) : (unsigned)WITH_SPACE * parts_rnd(2), before = joined;
		put_trace(&b, round % 10 ? parts_rnd(400) + 2 : 5000, with);
		check_text(buf_view(&b), &joined);
		alone += joined == before;
		/* Cut anywhere. */
		const size_t cut = parts_rnd((unsigned)b.n);
		check_text((struct str){b.p, cut}, &joined);
		buf_release(&b);
	}
	assert_in_range(joined, 300, 1000000);
	assert_in_range(alone, 0, 60);
}

/* Cut off behind each byte of the last events. */
static void test_cut_at_each_byte(void **state)
{
	(void)state;
	enum { CUTS = 250 };
	struct buf b = {0};
	unsigned joined = 0;
	buf_cstr(&b, "{\"traceEvents\": [");
	put_events(&b, 40, 0);
	buf_cstr(&b, "], \"a\": {\"b\": 1}}");
	for (size_t cut = 0; cut < CUTS; cut++)
		check_text((struct str){b.p, b.n - cut}, &joined);
	buf_release(&b);
}

struct parts_reading {
	const char *path;
	struct profile *p;
	int rc;
};

static void read_by_three(void *context)
{
	struct parts_reading *x = context;
	struct err e;
	x->p = profile_new();
	x->rc = parts_same_read(x->path, 3, 1, x->p, NULL, &e);
}

/* Memory runs out, once or for good, wherever it is asked for: what is read is right, or nothing is; and nothing is lost. */
static void test_memory_runs_out(void **state)
{
	(void)state;
	char path[] = "/dev/shm/opscope-parts-XXXXXX";
	struct buf b = {0};
	struct err e;
	put_trace(&b, 60, WITH_RANGES);
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, b.p, b.n) == (ssize_t)b.n);
	close(fd);
	struct profile *whole = profile_new();
	assert_int_equal(parts_same_read(path, 1, 1, whole, NULL, &e), 0);
	unsigned right = 0, none = 0;
	size_t held = 0;
	for (unsigned long at = 1, done = 0; !done; at++)
		for (int on = 0; on < 2; on++) {
			struct mem_pool pool = {0};
			struct parts_reading x = {.path = path};
			failing_begin(at, on);
			const int rc = mem_try(&pool, read_by_three, &x);
			done = !failing_done;
			failing_end();
			right += rc == 0;
			none += rc < 0;
			assert_true(rc < 0 || (x.rc == 0 && parts_same_profile(whole, x.p)));
			mem_pool_release(&pool);
			held = held ? held : failing_held + 1;
		}
	assert_in_range(none, 100, 10000);
	assert_in_range(right, 50, 10000);
	assert_in_range(failing_held, 0, held + 100000); /* the C library keeps stacks of threads */
	profile_free(whole);
	buf_release(&b);
	unlink(path);
}

/* What a trace without oddities gives: each part is joined. */
static void test_all_parts_are_joined(void **state)
{
	(void)state;
	struct buf b = {0};
	unsigned joined = 0;
	buf_cstr(&b, "{\"traceEvents\": [");
	put_events(&b, 20000, WITH_SPACE);
	buf_cstr(&b, "]}");
	check_text(buf_view(&b), &joined);
	assert_int_equal(joined, 1 + 2 + 7);
	buf_release(&b);
}

/* A range that begins in the first part and ends in the last, others around the borders; and the sums' limit within reach of all parts together. */
static void test_ranges_across_parts(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		struct buf b = {0};
		unsigned joined = 0;
		buf_cstr(&b, "[{\"ph\": \"B\", \"ts\": 0, \"pid\": 1, \"tid\": 1, \"name\": \"all\"}");
		for (unsigned i = 0; i < 3000; i++) {
			if (kind == 2)
				buf_printf(&b, ",{\"ph\": \"X\", \"ts\": %u, \"dur\": 200000000000, \"pid\": 1, \"tid\": 1, \"name\": \"n\"}", i);
			else
				buf_printf(&b, ",{\"ph\": \"%c\", \"ts\": %u, \"pid\": 1, \"tid\": 1, \"name\": \"n\"}", i % 2 ? 'E' : 'B', i);
		}
		buf_cstr(&b, kind ? "]" : ",{\"ph\": \"E\", \"ts\": 90000, \"pid\": 1, \"tid\": 1}]");
		check_text(buf_view(&b), &joined);
		assert_in_range(joined, kind == 2 ? 1 : 10, 10);
		buf_release(&b);
	}
}

static void test_traces_of_the_tests(void **state)
{
	(void)state;
	struct buf text = {0}, path = {0};
	struct err e;
	unsigned joined = 0;
	static const char *const names[] = {"torch214_cpu_resnet.json.gz"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		buf_clear(&path);
		buf_clear(&text);
		buf_printf(&path, "%s/tests/data/%s%c", getenv("OPSCOPE_ROOT"), names[i], 0);
		assert_int_equal(source_read_whole(path.p, 1 << 30, "", &text, &e), 0);
		check_text(buf_view(&text), &joined);
	}
	assert_in_range(joined, 1 + 2 + 7, 1000);
	buf_release(&text);
	buf_release(&path);
}

static void *mask_of_thread(void *context)
{
	pthread_sigmask(SIG_BLOCK, NULL, context);
	return NULL;
}

/* Signals are for threads that know of them; those of a thread's own faults are not held back. The caller's mask stays. */
static void test_threads_take_no_signals(void **state)
{
	(void)state;
	pthread_t thread;
	sigset_t before, inside, after;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	assert_true(threads_start(&thread, mask_of_thread, &inside));
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	pthread_join(thread, NULL);
	for (int i = SIGHUP; i < SIGRTMIN; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
	assert_true(sigismember(&inside, SIGINT) && sigismember(&inside, SIGTERM) && sigismember(&inside, SIGALRM));
	assert_false(sigismember(&inside, SIGSEGV) || sigismember(&inside, SIGBUS) || sigismember(&inside, SIGABRT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_traces),
		cmocka_unit_test(test_cut_at_each_byte),
		cmocka_unit_test(test_memory_runs_out),
		cmocka_unit_test(test_all_parts_are_joined),
		cmocka_unit_test(test_ranges_across_parts),
		cmocka_unit_test(test_threads_take_no_signals),
		cmocka_unit_test(test_traces_of_the_tests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
