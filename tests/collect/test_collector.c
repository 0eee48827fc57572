/* The collector as a part of this program, so that the sanitizers see into it: several threads that say the same and other things, switch
 * collecting on and off, and fork; and, in a process of its own, captures that begin and end while they talk. The segments are walked record by record by the rules of wire.h. The clocks are the test's, where it sets them. */
#include "cupti.h"
#include "segment.h"
#include "opscope/capture.h"
#include "opscope/trace_table.h"
#include "nvtx_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

opscope_trace_get_fn opscope_trace_get;
opscope_capture_start_fn opscope_capture_start;
opscope_capture_stop_fn opscope_capture_stop;
int InitializeInjectionNvtx2(const void *(*exported)(uint32_t));

enum { THREADS = 4, ROUNDS = 3000, CHILD_ROUNDS = 50 };
static const struct opscope_trace_table *t;
static char dir[64];
static pthread_barrier_t barrier;

static void say(int round, int who)
{
	char text[64];
	snprintf(text, sizeof text, round % 3 ? "text %d" : "text %d of all", round);
	uint32_t domain = t->domain(round % 2 ? "one" : "two");
	t->push(0, 0, text);
	t->push(domain, t->name("named"), NULL);
	t->arg_i64(domain, "who", who);
	t->arg_name(domain, t->name("what"), WIRE_ARG_TEXT, t->name("a text"));
	t->arg_i64s(domain, t->name("numbers"), (const int64_t[]){who, -1}, 2);
	t->counter_f64(0, "counter", NULL, round);
	t->pop(domain);
	t->pop(0);
	t->end(0, t->start(0, 0, "range"));
}

static void *talk(void *who)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ROUNDS; i++)
		say(i, (int)(intptr_t)who);
	return NULL;
}

static void *toggle(void *unused)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 200; i++)
		t->collect(i % 2);
	t->collect(1);
	return unused;
}

static void run(void *(*a)(void *), int n_a, void *(*b)(void *), int n_b)
{
	pthread_t thread[16];
	pthread_barrier_init(&barrier, NULL, (unsigned)(n_a + n_b));
	for (int i = 0; i < n_a + n_b; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, i < n_a ? a : b, (void *)(intptr_t)i), 0);
	for (int i = 0; i < n_a + n_b; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* How many records of each type there are; every one is whole. */
struct counts {
	uint64_t of[256], segments, lost, ended, cut, helper_ns;
};

static void count_chunk(struct counts *c, const struct wire_chunk *w)
{
	for (uint32_t at = 0; at < w->committed;) {
		const struct wire_head *h = (const struct wire_head *)((const char *)(w + 1) + at);
		assert_true(h->words > 0 && at + h->words * 8u <= w->committed);
		assert_true(h->type < WIRE_TYPES);
		c->of[h->type]++;
		c->cut += h->type == WIRE_STRING && h->flags & WIRE_CUT;
		at += h->words * 8u;
	}
}

static void count_segment(struct counts *c, const char *name)
{
	char path[512];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	const char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	const struct wire_header *h = (const struct wire_header *)p;
	assert_memory_equal(h->magic, WIRE_MAGIC, 8);
	assert_true(h->used_bytes <= (uint64_t)st.st_size);
	for (int i = 0; i < WIRE_LOSSES; i++)
		c->lost += h->lost[i];
	c->segments++;
	c->ended += h->state == WIRE_ENDED;
	c->helper_ns += h->helper_ns;
	for (uint64_t at = WIRE_BLOCK; at < h->used_bytes;) {
		const struct wire_chunk *w = (const struct wire_chunk *)(p + at);
		assert_int_equal(w->magic, WIRE_CHUNK_MAGIC);
		assert_int_equal(w->offset, at);
		assert_true(w->sequence > 0);
		count_chunk(c, w);
		at += (uint64_t)w->grains * WIRE_GRAIN;
	}
	munmap((void *)(uintptr_t)p, (size_t)st.st_size);
	close(fd);
}

static struct counts count(void)
{
	struct counts c = {0};
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".seg"))
			count_segment(&c, e->d_name);
	closedir(d);
	return c;
}

static uint64_t lost(enum wire_loss why) { return segment_header()->lost[why]; }

static void threads(void **state)
{
	struct counts before = count();
	run(talk, THREADS, NULL, 0);
	struct counts after = count();
	assert_int_equal(after.of[WIRE_PUSH] - before.of[WIRE_PUSH], 2 * THREADS * ROUNDS);
	assert_int_equal(after.of[WIRE_POP] - before.of[WIRE_POP], 2 * THREADS * ROUNDS);
	assert_int_equal(after.of[WIRE_ARG] - before.of[WIRE_ARG], 3 * THREADS * ROUNDS);
	assert_int_equal(after.of[WIRE_COUNTER] - before.of[WIRE_COUNTER], THREADS * ROUNDS);
	assert_int_equal(after.of[WIRE_START] - before.of[WIRE_START], THREADS * ROUNDS);
	assert_int_equal(after.of[WIRE_END] - before.of[WIRE_END], THREADS * ROUNDS);
	assert_int_equal(after.of[WIRE_DOMAIN], 2);
	assert_int_equal(after.lost, 0);
	/* Each text once: "named", "who", "counter", "range", the two domains, those of the rounds, and what is said of the process. */
	assert_in_range(after.of[WIRE_STRING], 6 + ROUNDS, 6 + ROUNDS + 100);
}

/* Whoever switches last leaves what holds: collecting is on in the end. */
static void switches(void **state)
{
	run(talk, 2, toggle, 2);
	struct counts before = count();
	say(1, 0);
	struct counts after = count();
	assert_int_equal(after.of[WIRE_PUSH] - before.of[WIRE_PUSH], 2);
	assert_int_equal(after.lost, 0);
}

/* A kind that was noted is known without a lock, so that whoever says it with each call never waits. */
static void notes(void **state)
{
	enum { SAID = 20, FEW_PAUSES = 1000 }; /* a wait for the lock is a thousand pauses and more */
	struct rusage before, after;
	struct counts had = count();
	note("of-a-test", false, "once", NULL);
	assert_true(slow_lock(true));
	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < SAID; i++)
		note("of-a-test", false, "again", NULL);
	getrusage(RUSAGE_THREAD, &after);
	slow_unlock();
	assert_true(after.ru_nvcsw - before.ru_nvcsw < FEW_PAUSES);
	assert_int_equal(count().of[WIRE_NOTE] - had.of[WIRE_NOTE], 1);
	t->note("of-the-program", "what the program says", 1);
	t->note("of-the-program", "what the program says again", 1);
	t->note(NULL, "of no kind", 0);
	t->note("of-a-test", "again", 0);
	assert_int_equal(count().of[WIRE_NOTE] - had.of[WIRE_NOTE], 2);
}

/* So many kinds that there is no room for: those that were said are said no more, and the others are counted. */
static void many_notes(void **state)
{
	enum { KINDS = 300 };
	char kind[32];
	struct counts had = count();
	uint64_t lost_before = lost(WIRE_LOST_STRINGS);
	for (int again = 0; again < 2; again++)
		for (int i = 0; i < KINDS; i++) {
			snprintf(kind, sizeof kind, "kind-%d", i);
			t->note(kind, "one of many", 0);
		}
	uint64_t written = count().of[WIRE_NOTE] - had.of[WIRE_NOTE];
	assert_in_range(written, 1, KINDS - 1);
	assert_int_equal(lost(WIRE_LOST_STRINGS) - lost_before, 2 * (KINDS - written));
	segment_header()->lost[WIRE_LOST_STRINGS] = lost_before;
}

/* A signal handler that names things while its own thread has the lock cannot get it: it does not wait, and what it said is counted. */
static void handlers(void **state)
{
	enum { FEW_PAUSES = 1000 };
	struct rusage before, after;
	struct wire_meta m = {.head = writer_head(WIRE_META, 0, t->name("named"), sizeof m), .value = t->name("named")};
	struct counts had = count();
	assert_true(slow_lock(true));
	getrusage(RUSAGE_THREAD, &before);
	assert_int_equal(t->name("only in a handler"), 0);
	assert_int_equal(t->domain("only in a handler"), 0);
	assert_false(keep(&m, sizeof m, false));
	note("only-in-a-handler", false, "said", NULL);
	t->push(0, 0, "pushed in a handler"); /* its text stands in it */
	t->pop(0);
	getrusage(RUSAGE_THREAD, &after);
	slow_unlock();
	assert_true(after.ru_nvcsw - before.ru_nvcsw < FEW_PAUSES);
	struct counts now = count();
	assert_int_equal(now.of[WIRE_PUSH] - had.of[WIRE_PUSH], 1);
	assert_int_equal(lost(WIRE_LOST_NESTED), 4);
	assert_int_equal(now.lost - had.lost, 4);
	segment_header()->lost[WIRE_LOST_NESTED] = 0;
	assert_true(t->name("only in a handler") > 0);
	assert_true(t->domain("only in a handler") > 0);
}

/* NVTX's table of functions, of which the library fills what there is. */
static void *core[CORE_SIZE];

static int table_of(int module, void ****table, unsigned *size)
{
	static void **at[CORE_SIZE];
	for (int i = 1; i < CORE_SIZE; i++)
		at[i] = &core[i];
	*table = at;
	*size = CORE_SIZE;
	return module == MODULE_CORE;
}

static const void *exported(uint32_t id)
{
	static const struct { size_t size; int (*table)(int, void ****, unsigned *); } callbacks = {sizeof callbacks, table_of};
	return id == TABLE_CALLBACKS ? &callbacks : NULL;
}

/* Wide texts of lengths around those at which they are converted in another place, or cut. */
static void wide_texts(void **state)
{
	static const size_t length[] = {0, 1, 255, 256, 257, 2000, WIRE_MAX_STRING / 2, WIRE_MAX_STRING / 2 + 1, 3 * WIRE_MAX_STRING};
	enum { N = sizeof length / sizeof length[0] };
	static wchar_t text[3 * WIRE_MAX_STRING + 1];
	struct counts before = count();
	assert_true(InitializeInjectionNvtx2(exported));
	for (int i = 0; i < N; i++) {
		wmemset(text, L'\u00e4', length[i]); /* two bytes each */
		text[length[i]] = 0;
		assert_int_equal(((int (*)(const wchar_t *))(uintptr_t)core[CORE_PUSH_W])(text), 0);
		assert_int_equal(((int (*)(void))(uintptr_t)core[CORE_POP])(), 0);
	}
	struct counts after = count();
	assert_int_equal(after.of[WIRE_PUSH] - before.of[WIRE_PUSH], N);
	assert_int_equal(after.of[WIRE_STRING] - before.of[WIRE_STRING], N - 2); /* none of no length, one for the two longest */
	assert_int_equal(after.cut - before.cut, 1);
	assert_int_equal(after.lost, 0);
}

static void *fork_one(void *unused)
{
	pthread_barrier_wait(&barrier);
	pid_t child = fork();
	if (!child) {
		for (int i = 0; i < CHILD_ROUNDS; i++)
			say(i, 99);
		_exit(0);
	}
	int status = 1;
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
	return unused;
}

static void forks(void **state)
{
	struct counts before = count();
	run(talk, 2, fork_one, 1);
	struct counts after = count();
	assert_int_equal(after.segments, before.segments + 1);
	assert_int_equal(after.of[WIRE_PUSH] - before.of[WIRE_PUSH], 2 * (2 * ROUNDS + CHILD_ROUNDS));
	assert_int_equal(after.lost, 0);
}

/* The clock's next reading is another one. */
static int64_t tick_over(void)
{
	int64_t was = now_ns(), now;
	while ((now = now_ns()) == was)
		;
	return now;
}

/* Work of a GPU is told long after it happened: whether it was wanted is known however often collecting was switched since, or it is counted. */
static void wanted_in_the_past(void **state)
{
	enum { SWITCHES = 4000, MORE = 1 << 16 };
	static int64_t on_ns[SWITCHES], off_ns[SWITCHES];
	int64_t begin_ns = tick_over();
	for (int i = 0; i < SWITCHES; i++) {
		on_ns[i] = tick_over();
		tick_over();
		t->collect(0);
		off_ns[i] = tick_over();
		tick_over();
		t->collect(1);
	}
	for (int i = 0; i < SWITCHES; i++) {
		assert_true(control_wanted(on_ns[i]));
		assert_false(control_wanted(off_ns[i]));
	}
	assert_true(control_wanted(now_ns()));
	assert_int_equal(lost(WIRE_LOST_WINDOW), 0);
	for (int i = 0; i < MORE; i++)
		t->collect(i % 2);
	assert_true(control_wanted(now_ns()));
	assert_false(control_wanted(begin_ns));
	assert_false(control_wanted(off_ns[10]));
	assert_int_equal(lost(WIRE_LOST_WINDOW), 2);
	segment_header()->lost[WIRE_LOST_WINDOW] = 0;
}

/* ---- CUPTI's buffers ---- */

static int records_left;
static bool breaks;

static int next_record(uint8_t *buffer, size_t valid, uint8_t **record)
{
	struct cupti_api call = {.threadId = 77};
	call.kind = CUPTI_RUNTIME; /* a part of a union with it */
	if (!records_left--)
		return CUPTI_LIMIT_REACHED;
	memcpy(buffer, &call, sizeof call);
	*record = breaks ? buffer + valid : buffer;
	return CUPTI_OK;
}

static void buffers(void **state)
{
	static uint8_t buffer[256];
	cupti.call.ActivityGetNextRecord = next_record;
	struct counts before = count();
	records_left = 5;
	cupti_take_records(buffer, sizeof buffer);
	assert_int_equal(count().of[WIRE_API] - before.of[WIRE_API], 5);
	struct writer *w = writer_enter(); /* of a thread that is being interrupted */
	records_left = 5;
	cupti_take_records(buffer, sizeof buffer);
	writer_leave(w);
	assert_int_equal(lost(WIRE_LOST_THREADS), 5);
	assert_int_equal(count().of[WIRE_NOTE], before.of[WIRE_NOTE]);
	records_left = 5;
	breaks = true;
	cupti_take_records(buffer, sizeof buffer);
	assert_int_equal(count().of[WIRE_NOTE], before.of[WIRE_NOTE] + 1);
	segment_header()->lost[WIRE_LOST_THREADS] = segment_header()->lost[WIRE_LOST_NESTED] = 0;
}

/* ---- clocks ---- */

/* What is added to the clocks, moment by moment. */
static struct { int64_t wall_s, wall_ns, steady_s; } shift[64];
static _Atomic int moment;
static _Atomic int64_t helper_s; /* CPU time that the library's own thread has had; 0 = what the system says */

int __real_clock_gettime(clockid_t clock, struct timespec *to);
int __wrap_clock_gettime(clockid_t clock, struct timespec *to);
int __wrap_clock_gettime(clockid_t clock, struct timespec *to)
{
	int rc = __real_clock_gettime(clock, to), now = moment;
	if (clock == CLOCK_REALTIME) {
		int64_t ns = to->tv_nsec + shift[now].wall_ns;
		to->tv_sec += shift[now].wall_s + ns / 1000000000;
		to->tv_nsec = ns % 1000000000;
	} else if (clock == CLOCK_MONOTONIC_RAW) {
		to->tv_sec += shift[now].steady_s;
	} else if (clock < 0 && helper_s) { /* of a thread */
		*to = (struct timespec){.tv_sec = helper_s};
	}
	return rc;
}

static void pass(int64_t seconds, int64_t away_ns)
{
	shift[moment + 1] = shift[moment];
	shift[moment + 1].wall_s += seconds;
	shift[moment + 1].wall_ns += away_ns;
	shift[moment + 1].steady_s += seconds;
	moment++;
	segment_anchor();
}

/* How many there are since then, when there are so many: the library's own thread may be about to write one. */
static uint64_t anchors_since(const struct counts *before, uint64_t least)
{
	uint64_t n = 0;
	for (int i = 0; i < 6000 && (n = count().of[WIRE_ANCHOR] - before->of[WIRE_ANCHOR]) < least; i++)
		usleep(10000);
	return n;
}

/* A clock that is made to follow another one drifts from the steady one by more and more; that is not that it was set. */
static void clocks(void **state)
{
	struct counts before = count();
	for (int i = 0; i < 20; i++)
		pass(60, 10000000); /* 166 in a million */
	assert_int_equal(anchors_since(&before, 0), 0);
	pass(3600, 0);
	pass(10, -3000000000);
	assert_int_equal(anchors_since(&before, 2), 2);
	pass(10, 5000000000);
	uint64_t both = anchors_since(&before, 3); /* 4 where the library's own thread looked between the two */
	assert_in_range(both, 3, 4);
	pid_t child = fork();
	if (!child) { /* begins anew */
		say(0, 1);
		pass(60, 10000000);
		_exit(0);
	}
	int status = 1;
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
	assert_int_equal(anchors_since(&before, 0), both);
}

/* ---- no room for texts ---- */

static void no_room(void **state)
{
	enum { MORE_THAN_FIT = 1 << 18 };
	char text[32];
	struct counts before = count();
	t->counter_i64(0, NULL, NULL, 1);
	t->counter_i64(0, "", NULL, 1);
	assert_int_equal(count().of[WIRE_COUNTER] - before.of[WIRE_COUNTER], 2);
	assert_int_equal(count().lost, before.lost);
	for (int i = 0; i < MORE_THAN_FIT; i++) {
		snprintf(text, sizeof text, "one of many: %d", i);
		t->name(text);
	}
	before = count();
	t->counter_i64(0, "a new one", NULL, 1);
	t->counter_f64(0, "counter", "a new unit", 1);
	t->step("a new step", 1);
	struct counts after = count();
	assert_int_equal(after.of[WIRE_COUNTER] - before.of[WIRE_COUNTER], 1);
	assert_int_equal(after.of[WIRE_STEP] - before.of[WIRE_STEP], 1);
	assert_int_equal(after.lost - before.lost, 3);
}

/* ---- captures of its own: in a child that was forked before the library began ---- */

static int own_status;
static _Atomic bool own_over;

static void *talk_on(void *who)
{
	for (int i = 0; !own_over; i++)
		say(i % ROUNDS, (int)(intptr_t)who);
	return NULL;
}

/* Each is whole, and has what its own thread said, and the time that the library's thread took meanwhile; a ring of another size is the third of each three. */
static void captures(void)
{
	enum { CAPTURES = 24, TALKERS = 2 };
	pthread_t thread[TALKERS];
	uint64_t helper_ns = 0;
	for (int i = 0; i < CAPTURES; i++) {
		const struct opscope_capture_options o = {.bytes = sizeof o, .dir = dir, .ring = i % 3 == 2, .max_bytes = i % 3 == 2 ? (2 + i % 2) << 20 : 0};
		struct counts before = count();
		helper_s = 100 * (i + 1);
		assert_int_equal(opscope_capture_start(&o), 0);
		assert_int_equal(opscope_capture_start(&o), -EALREADY);
		assert_non_null(opscope_trace_get(OPSCOPE_TRACE_VERSION));
		if (i == 0)
			t = opscope_trace_get(OPSCOPE_TRACE_VERSION); /* the same ever after */
		for (int k = 0; i == 0 && k < TALKERS; k++)
			assert_int_equal(pthread_create(&thread[k], NULL, talk_on, (void *)(intptr_t)k), 0);
		t->step("step", i);
		say(i, -1);
		helper_s++;
		assert_int_equal(opscope_capture_stop(), 0);
		assert_int_equal(opscope_capture_stop(), -ESRCH);
		assert_int_equal(t->wanted(), 0);
		struct counts after = count();
		assert_int_equal(after.segments - before.segments, 1);
		assert_int_equal(after.ended - before.ended, 1);
		if (helper_ns) /* since the thread is there */
			assert_int_equal(after.helper_ns - before.helper_ns, 1000000000);
		helper_ns = after.helper_ns - before.helper_ns;
		if (!o.ring)
			assert_true(after.of[WIRE_STEP] - before.of[WIRE_STEP] == 1 && after.of[WIRE_PUSH] - before.of[WIRE_PUSH] >= 2);
	}
	own_over = true;
	for (int k = 0; k < TALKERS; k++)
		pthread_join(thread[k], NULL);
}

static void own_captures(void **state) { assert_int_equal(own_status, 0); }

static int finish(void **state);

/* Its status. */
static int in_child(void (*f)(void))
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		strcpy(dir, "/tmp/opscope-collector-XXXXXX");
		if (!mkdtemp(dir))
			_exit(1);
		f();
		_exit(finish(NULL) != 0);
	}
	waitpid(child, &status, 0);
	return status;
}

static int start(void **state)
{
	own_status = in_child(captures);
	strcpy(dir, "/tmp/opscope-collector-XXXXXX");
	if (!mkdtemp(dir) || setenv("OPSCOPE_DIR", dir, 1))
		return -1;
	t = opscope_trace_get(OPSCOPE_TRACE_VERSION);
	return t ? 0 : -1;
}

static int finish(void **state)
{
	DIR *d = opendir(dir);
	char path[512];
	for (struct dirent *e; d && (e = readdir(d));)
		if (strstr(e->d_name, ".seg")) {
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
			unlink(path);
		}
	if (d)
		closedir(d);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(threads), cmocka_unit_test(switches), cmocka_unit_test(notes), cmocka_unit_test(handlers), cmocka_unit_test(wide_texts), cmocka_unit_test(forks),
	                                   cmocka_unit_test(wanted_in_the_past), cmocka_unit_test(buffers), cmocka_unit_test(clocks), cmocka_unit_test(many_notes),
	                                   cmocka_unit_test(no_room), cmocka_unit_test(own_captures)};
	return cmocka_run_group_tests(tests, start, finish);
}
