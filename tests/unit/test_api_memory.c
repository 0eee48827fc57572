/* The C API where memory runs out: each allocation fails in turn, alone and with all that follow. Every call then gives the right answer or
 * OPSCOPE_ERROR_NOMEM, nothing is lost, and the next call that has memory gives the right answer. OPSCOPE_EVERY=N: each Nth allocation;
 * 1 is all of them. */
#include "test.h"

#include "failing_malloc.h"

#include <dirent.h>
#include <opscope/arrow.h>
#include <opscope/opscope.h>
#include <opscope/schedule.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POINTS = 120, JOB_POINTS = 30, ANSWERS = 16, LOST_MAX = 64 };

static char folder[] = "/tmp/opscope-memory-XXXXXX", trace[4096], packed[64], exported[64], ranks[64], rank[2][80];
static unsigned long every;

/* What one round of calls answered; NULL = it had no memory. */
struct answers {
	char *text[ANSWERS];
	unsigned n, failed;
};

/* Answers are compared outside of the program's own memory: made by the round, freed after it. */
static void take(struct answers *a, char *text, const char *what, const char *error)
{
	enum opscope_error code = opscope_error_code();
	if (!text && code != OPSCOPE_ERROR_NOMEM)
		fail_msg("%s: code %d: %s", what, (int)code, error);
	a->failed += !text;
	a->text[a->n++] = text;
}

static char *render(struct opscope_table *t, const char *format, char *error, size_t n)
{
	char *text = t ? opscope_table_render(t, format, NULL, NULL, error, n) : NULL;
	opscope_table_free(t);
	return text;
}

static void ask_table(struct answers *a, struct opscope_table *t, const char *format, const char *what, char *error, size_t n)
{
	if (t)
		opscope_table_sort(t, opscope_column_id(t, 0), 1, error, n);
	if (t && opscope_error_code() == OPSCOPE_ERROR_NOMEM && *error) { /* unsorted: not the answer */
		opscope_table_free(t);
		t = NULL;
	}
	take(a, render(t, format, error, n), what, error);
}

static void ask_arrow(struct answers *a, struct opscope_profile *p, char *error, size_t n)
{
	struct opscope_table *t = opscope_report(p, "operators", NULL, error, n);
	struct ArrowSchema schema;
	struct ArrowArray batch;
	struct ArrowArrayStream stream;
	char *text = NULL;
	if (t && opscope_table_arrow(t, &schema, &batch, error, n) == 0) {
		text = failing_keep(100);
		snprintf(text, 100, "%lld columns of %lld", (long long)schema.n_children, (long long)batch.length);
		schema.release(&schema);
		batch.release(&batch);
	}
	take(a, text, "arrow", error);
	if (t && opscope_table_arrow_stream(t, &stream, error, n) == 0) {
		if (stream.get_schema(&stream, &schema) == 0)
			schema.release(&schema);
		stream.release(&stream);
	}
	opscope_table_free(t);
}

static char *export_to(struct opscope_profile *p, const struct opscope_options *o, char *error, size_t n)
{
	char *notes = NULL;
	if (opscope_export(p, "chrome", exported, o, &notes, error, n) < 0)
		return NULL;
	opscope_text_free(notes);
	notes = failing_keep(100);
	FILE *f = fopen(exported, "r");
	if (f) { /* else stdio had no memory */
		fseek(f, 0, SEEK_END);
		snprintf(notes, 100, "%ld bytes", ftell(f));
		fclose(f);
	}
	return notes;
}

/* An exported file is looked at where there is memory for that. */
static bool is_answer(const char *text, const char *right)
{
	return !text || !*text || strcmp(text, right) == 0;
}

static void ask_trace(struct answers *a, const char *path)
{
	char error[400] = "";
	struct opscope_options *o = opscope_options_new();
	if (o && opscope_options_set(o, "steps", "1..", error, sizeof error) < 0) {
		assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_NOMEM);
		opscope_options_free(o);
		o = NULL;
	}
	struct opscope_profile *p = opscope_open(path, NULL, error, sizeof error);
	if (!p && opscope_error_code() != OPSCOPE_ERROR_NOMEM)
		fail_msg("open: code %d: %s", (int)opscope_error_code(), error);
	if (p && o) {
		*error = 0;
		ask_table(a, opscope_report(p, "operators", NULL, error, sizeof error), "json", "operators", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_report(p, "kernels", o, error, sizeof error), "csv", "kernels", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_report(p, "overview", NULL, error, sizeof error), "text", "overview", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_sql(p, "SELECT name, hex(name), sum(dur_ns), arg(args, 'Input Dims') FROM span GROUP BY name", NULL, error, sizeof error), "csv",
		          "sql", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_sql(p, "SELECT count(*) AS n, (SELECT count(*) FROM steps) AS steps FROM operators_by_shape", NULL, error, sizeof error), "json",
		          "sql over reports", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_advise(p, NULL, error, sizeof error), "html", "advise", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_diff(p, NULL, p, o, NULL, error, sizeof error), "markdown", "diff", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_event_list(p, o, error, sizeof error), "csv", "events", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_timeline(p, NULL, error, sizeof error), "csv", "timeline", error, sizeof error);
		*error = 0;
		ask_arrow(a, p, error, sizeof error);
		*error = 0;
		take(a, export_to(p, NULL, error, sizeof error), "export", error);
		opscope_format(p);
		opscope_problems(p);
	}
	opscope_close(p);
	opscope_options_free(o);
}

static void free_answers(struct answers *a)
{
	for (unsigned i = 0; i < a->n; i++)
		free(a->text[i]);
	*a = (struct answers){0};
}

static unsigned count_files(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void check(const struct answers *got, const struct answers *right, unsigned long at, bool on)
{
	for (unsigned i = 0; i < got->n; i++)
		if (!is_answer(got->text[i], right->text[i]))
			fail_msg("allocation %lu%s: answer %u is wrong: %.300s", at, on ? " and all that follow" : "", i, got->text[i]);
}

/* A job: found, and asked for what ranks give together, for means over them, and for advice. */
static void ask_job(struct answers *a, const char *path)
{
	char error[400] = "";
	struct opscope_job *j = opscope_job_open(path, NULL, error, sizeof error);
	if (!j && opscope_error_code() != OPSCOPE_ERROR_NOMEM)
		fail_msg("open: code %d: %s", (int)opscope_error_code(), error);
	if (j) {
		ask_table(a, opscope_job_report(j, "ranks", NULL, error, sizeof error), "csv", "ranks", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_job_report(j, "kernels", NULL, error, sizeof error), "csv", "kernels", error, sizeof error);
		*error = 0;
		ask_table(a, opscope_job_advise(j, NULL, error, sizeof error), "csv", "advise", error, sizeof error);
	}
	opscope_job_close(j);
}

static void each_allocation_fails(const char *path, unsigned most, void (*ask_all)(struct answers *a, const char *path))
{
	struct answers right = {0}, got = {0};
	sigset_t before, after;
	ask_all(&right, path);
	assert_int_equal(right.failed, 0);
	assert_true(right.n > 2);
	failing_begin(0, false);
	ask_all(&got, path);
	unsigned long n = failing_end(), step = every ? every : 1 + n / most, failed = 0, points = 0;
	free_answers(&got);
	unsigned files = count_files("/proc/self/fd"), beside = count_files(folder);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	size_t held = failing_held;
	for (unsigned long at = 1; at <= n; at += step)
		for (int on = 0; on < 2; on++) {
			failing_begin(at, on);
			ask_all(&got, path);
			failing_end();
			failed += got.failed || got.n == 0;
			points++;
			check(&got, &right, at, on);
			free_answers(&got);
			if (failing_held > held + LOST_MAX)
				fail_msg("allocation %lu%s of %lu: %zu bytes are lost", at, on ? " and all that follow" : "", n, failing_held - held);
			held = failing_held;
			assert_int_equal(count_files("/proc/self/fd"), files);
			assert_int_equal(count_files(folder), beside);
		}
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 32; s++)
		assert_int_equal(sigismember(&before, s), sigismember(&after, s));
	ask_all(&got, path);
	assert_int_equal(got.failed, 0);
	check(&got, &right, 0, false);
	free_answers(&got);
	free_answers(&right);
	print_message("# %lu of %lu points failed, of %lu allocations\n", failed, points, n);
	assert_true(failed > points / 4);
}

static void of_a_json_trace(void **state)
{
	each_allocation_fails(trace, POINTS, ask_trace);
}

static void of_an_opscope_file(void **state)
{
	each_allocation_fails(packed, POINTS, ask_trace);
}

static void of_a_job(void **state)
{
	each_allocation_fails(ranks, JOB_POINTS, ask_job);
}

/* A profile that a call left half done says so, again and again; closing it gives all back. */
static void a_broken_profile_says_so(void **state)
{
	char error[400];
	size_t held = failing_held;
	struct opscope_profile *p = opscope_open(trace, NULL, error, sizeof error);
	assert_non_null(p);
	failing_begin(5, true);
	struct opscope_table *t = opscope_report(p, "operators", NULL, error, sizeof error);
	failing_end();
	assert_null(t);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_NOMEM);
	assert_string_equal(error, "out of memory");
	for (int i = 0; i < 2; i++) {
		assert_null(opscope_report(p, "operators", NULL, error, sizeof error));
		assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_NOMEM);
		assert_non_null(strstr(error, "memory ran out in an earlier call on this trace, which left it half done: open it again"));
	}
	assert_null(opscope_sql(p, "SELECT 1", NULL, error, sizeof error));
	assert_null(opscope_advise(p, NULL, error, sizeof error));
	assert_int_equal(opscope_export(p, "chrome", exported, NULL, NULL, error, sizeof error), -1);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_NOMEM);
	assert_int_equal(opscope_problems(p), 0);
	assert_string_equal(opscope_format(p), "kineto");
	opscope_close(p);
	assert_in_range(failing_held, 0, held + LOST_MAX);
}

/* What was made before belongs to the caller. */
static void a_table_outlives_a_broken_profile(void **state)
{
	char error[400];
	struct opscope_profile *p = opscope_open(trace, NULL, error, sizeof error);
	struct opscope_table *t = opscope_report(p, "operators", NULL, error, sizeof error);
	assert_non_null(t);
	char *before = opscope_table_render(t, "json", NULL, NULL, error, sizeof error);
	failing_begin(20, true);
	struct opscope_table *none = opscope_report(p, "kernels", NULL, error, sizeof error);
	failing_end();
	assert_null(none);
	opscope_close(p);
	char *after = opscope_table_render(t, "json", NULL, NULL, error, sizeof error);
	assert_non_null(before);
	assert_string_equal(before, after);
	opscope_text_free(before);
	opscope_text_free(after);
	opscope_table_free(t);
}

/* A query for which SQLite alone had no memory leaves the profile as it was. */
static void a_failed_query_leaves_the_profile(void **state)
{
	char error[400];
	int refused = 0;
	struct opscope_profile *p = opscope_open(trace, NULL, error, sizeof error);
	opscope_table_free(opscope_sql(p, "SELECT 1", NULL, error, sizeof error));
	failing_begin(0, false);
	opscope_table_free(opscope_sql(p, "SELECT count(*) FROM span", NULL, error, sizeof error));
	unsigned long n = failing_end();
	for (unsigned long at = 1; at <= n; at += 3) {
		failing_begin(at, false);
		struct opscope_table *t = opscope_sql(p, "SELECT count(*) FROM span", NULL, error, sizeof error);
		failing_end();
		if (!t) {
			assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_NOMEM);
		}
		bool sqlite = !t && strncmp(error, "SQL", 3) == 0;
		opscope_table_free(t);
		t = opscope_report(p, "operators", NULL, error, sizeof error);
		refused += t && sqlite;
		if (!t) { /* it was not SQLite's, and so the profile is broken */
			assert_false(sqlite);
			opscope_close(p);
			p = opscope_open(trace, NULL, error, sizeof error);
		}
		opscope_table_free(t);
	}
	opscope_close(p);
#ifdef FAILING_BY_LINKER
	enum { SQLITE_FAILS = 0 }; /* it has memory */
#else
	enum { SQLITE_FAILS = 1 };
#endif
	assert_true(refused >= SQLITE_FAILS);
}

static void steppers_and_trackers(void **state)
{
	struct opscope_schedule_spec s = {.active = 1};
	struct opscope_todo todo;
	char error[400];
	for (unsigned long at = 1; at < 8; at++) {
		size_t held = failing_held;
		failing_begin(at, true);
		struct opscope_tracker *t = opscope_tracker_new();
		struct opscope_stepper *p = t ? opscope_stepper_new(&s, t, error, sizeof error) : NULL;
		if (t && !p)
			assert_string_equal(error, "out of memory");
		if (p) {
			assert_int_equal(opscope_stepper_start(p, &todo), 0);
			assert_int_equal(opscope_stepper_step(p, &todo), 0);
		}
		if (t)
			opscope_tracker_set(t, "optimizer", 3);
		failing_end();
		if (t)
			assert_int_equal(opscope_tracker_increment(t, "optimizer", NULL, NULL, 0) > 0, 1);
		opscope_stepper_free(p);
		opscope_tracker_free(t);
		assert_int_equal(failing_held, held);
	}
}

static int begin(void **state)
{
	char command[8192], whole[4096];
	const char *root = getenv("OPSCOPE_ROOT"), *program = getenv("OPSCOPE"), *asked = getenv("OPSCOPE_EVERY");
	every = asked ? strtoul(asked, NULL, 10) : 0;
	if (!program)
		fprintf(stderr, "OPSCOPE=PROGRAM was expected\n");
	if (!mkdtemp(folder) || !program)
		return -1;
	snprintf(trace, sizeof trace, "%s/tests/data/synthetic/all_categories.json", root ? root : ".");
	snprintf(packed, sizeof packed, "%s/made.opscope", folder);
	snprintf(exported, sizeof exported, "%s/exported.json", folder);
	snprintf(ranks, sizeof ranks, "%s/ranks", folder);
	mkdir(ranks, 0700);
	for (int i = 0; i < 2; i++) {
		snprintf(rank[i], sizeof rank[i], "%s/rank%d.json", ranks, i);
		if (!realpath(trace, whole) || symlink(whole, rank[i]) < 0)
			return -1;
	}
	setenv("OPSCOPE_THREADS", "1", 1); /* so that each round allocates the same in the same order */
	snprintf(command, sizeof command, "'%s' import '%s' -o %s >/dev/null && touch %s", program, trace, packed, exported);
	return system(command);
}

static int end(void **state)
{
	unlink(packed);
	unlink(exported);
	for (int i = 0; i < 2; i++)
		unlink(rank[i]);
	rmdir(ranks);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_json_trace),
		cmocka_unit_test(of_an_opscope_file),
		cmocka_unit_test(of_a_job),
		cmocka_unit_test(a_broken_profile_says_so),
		cmocka_unit_test(a_table_outlives_a_broken_profile),
		cmocka_unit_test(a_failed_query_leaves_the_profile),
		cmocka_unit_test(steppers_and_trackers),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
