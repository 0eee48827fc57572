/* The C API from several threads at once, in forked children, among signals, and with NULL where it must not be. ./test also runs it under ThreadSanitizer. */
#include "test.h"

#include <opscope/arrow.h>
#include <opscope/opscope.h>
#include <opscope/schedule.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3 };

/* Whose analysis finds something odd: annotations that overlap in part, work without a call. */
static const char *const traces[] = {"partial_overlap", "two_steps_overlap", "all_categories"};

static const char *path_of(const char *name)
{
	static char path[4096];
	const char *root = getenv("OPSCOPE_ROOT");
	snprintf(path, sizeof path, "%s/tests/data/%s", root ? root : ".", name);
	return path;
}

static struct opscope_profile *open_file(const char *path)
{
	char error[256];
	struct opscope_profile *p = opscope_open(path, NULL, error, sizeof error);
	if (!p)
		fail_msg("%s", error);
	return p;
}

static struct opscope_profile *open_trace(const char *name)
{
	char file[256];
	snprintf(file, sizeof file, "synthetic/%s.json", name);
	return open_file(path_of(file));
}

static void *read_facts(void *arg)
{
	const struct opscope_profile *p = arg;
	size_t bytes = 0;
	for (int round = 0; round < 200 * ROUNDS; round++)
		for (unsigned i = 0; i < opscope_problems(p); i++)
			bytes += strlen(opscope_problem_text(p, i)) + opscope_problem_count(p, i) +
			         (size_t)opscope_problem_severity(p, i);
	return (void *)(opscope_events(p) && *opscope_format(p) ? bytes + 1 : 0);
}

static void *run_reports(void *arg)
{
	size_t made = 0;
	for (int round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < opscope_reports(); i++) {
			struct opscope_table *t = opscope_report(arg, opscope_report_name(i), NULL, NULL, 0);
			made += t != NULL;
			opscope_table_free(t);
		}
	struct opscope_table *t = opscope_sql(arg, "SELECT count(*) FROM span", NULL, NULL, 0);
	made += t != NULL;
	opscope_table_free(t);
	t = opscope_advise(arg, NULL, NULL, 0);
	made += t != NULL;
	opscope_table_free(t);
	return (void *)made;
}

static void reports_and_facts(void **state)
{
	for (size_t k = 0; k < sizeof traces / sizeof traces[0]; k++) {
		struct opscope_profile *p = open_trace(traces[k]);
		pthread_t thread[THREADS];
		void *result;
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, i % 2 ? read_facts : run_reports, p), 0);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(thread[i], &result), 0);
			assert_non_null(result);
		}
		opscope_close(p);
	}
}

static void problems_beyond_the_last(void **state)
{
	struct opscope_profile *p = open_trace("partial_overlap");
	unsigned n = opscope_problems(p);
	assert_null(opscope_problem_text(p, n));
	assert_null(opscope_problem_text(p, (unsigned)-1));
	assert_int_equal(opscope_problem_count(p, n), 0);
	assert_int_equal(opscope_problem_severity(p, n), -1);
	opscope_close(p);
}

static void null_is_an_error(void **state)
{
	struct opscope_profile *p = open_trace("partial_overlap");
	struct opscope_options *o = opscope_options_new();
	char error[256] = "";
	assert_int_equal(opscope_options_set(NULL, "device", "0", error, sizeof error), -1);
	assert_non_null(strstr(error, "NULL"));
	assert_int_equal(opscope_options_set(o, NULL, "0", NULL, 0), -1);
	assert_int_equal(opscope_options_set(o, "device", NULL, NULL, 0), -1);
	assert_null(opscope_open(NULL, o, error, sizeof error));
	assert_null(opscope_report(NULL, "operators", NULL, error, sizeof error));
	assert_null(opscope_report(p, NULL, NULL, error, sizeof error));
	assert_null(opscope_sql(NULL, "SELECT 1", NULL, error, sizeof error));
	assert_null(opscope_sql(p, NULL, NULL, error, sizeof error));
	assert_null(opscope_advise(NULL, NULL, error, sizeof error));
	assert_null(opscope_diff(p, NULL, NULL, NULL, NULL, error, sizeof error));
	assert_null(opscope_diff(NULL, NULL, p, NULL, NULL, error, sizeof error));
	assert_null(opscope_event_list(NULL, NULL, error, sizeof error));
	assert_null(opscope_timeline(NULL, NULL, error, sizeof error));
	assert_null(opscope_job_open(NULL, NULL, error, sizeof error));
	assert_null(opscope_job_report(NULL, "ranks", NULL, error, sizeof error));
	assert_null(opscope_job_advise(NULL, NULL, error, sizeof error));
	assert_null(opscope_job_diff(NULL, NULL, NULL, NULL, NULL, error, sizeof error));
	assert_null(opscope_table_render(NULL, "csv", NULL, NULL, error, sizeof error));
	assert_int_equal(opscope_export(p, NULL, NULL, NULL, NULL, error, sizeof error), -1);
	assert_non_null(strstr(error, "NULL"));
	opscope_text_free(NULL);
	opscope_options_free(NULL);
	opscope_table_free(NULL);
	opscope_close(NULL);
	opscope_job_close(NULL);
	opscope_options_progress(NULL, NULL, NULL);
	opscope_options_free(o);
	opscope_close(p);
}

static void *code_of_another_thread(void *arg)
{
	int *code = arg;
	code[0] = (int)opscope_error_code();
	opscope_open("/no/such/file", NULL, NULL, 0);
	code[1] = (int)opscope_error_code();
	return NULL;
}

static void *ask_ranks(void *job)
{
	struct opscope_table *t = opscope_job_report(job, "ranks", NULL, NULL, 0);
	char *text = t ? opscope_table_render(t, "csv", NULL, NULL, NULL, 0) : NULL;
	opscope_table_free(t);
	return text;
}

/* A folder with two ranks, asked by several threads at once. */
static void a_job(void **state)
{
	char folder[] = "/tmp/opscope-job-XXXXXX", file[2][64], error[256], *text[THREADS];
	pthread_t thread[THREADS];
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 2; i++) {
		snprintf(file[i], sizeof file[i], "%s/rank%d.json", folder, i);
		assert_int_equal(symlink(path_of("synthetic/communication.json"), file[i]), 0);
	}
	struct opscope_job *j = opscope_job_open(folder, NULL, error, sizeof error);
	assert_non_null(j);
	assert_int_equal(opscope_job_recordings(j), 2);
	assert_string_equal(opscope_job_path(j, 1), file[1]);
	assert_int_equal(opscope_job_rank(j, 1), 1);
	assert_null(opscope_job_path(j, 2));
	assert_int_equal(opscope_job_rank(j, 2), -1);
	assert_int_equal(opscope_job_is_kept(j), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_ranks, j), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], (void **)&text[i]), 0);
		assert_non_null(text[i]);
		assert_string_equal(text[i], text[0]);
	}
	for (int i = 0; i < THREADS; i++)
		opscope_text_free(text[i]);
	opscope_job_close(j);
	assert_null(opscope_job_open(file[0], NULL, error, sizeof error));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_LACKS);
	assert_null(opscope_job_open("/no/such/folder", NULL, error, sizeof error));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_IO);
	for (int i = 0; i < 2; i++)
		unlink(file[i]);
	rmdir(folder);
}

/* What kind of error it was, of the thread that made it, also where no text was asked for. */
static void error_codes(void **state)
{
	struct opscope_profile *p = open_trace("partial_overlap");
	struct opscope_options *o = opscope_options_new();
	pthread_t thread;
	int code[2];
	assert_null(opscope_report(p, "gemm", NULL, NULL, 0));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_LACKS);
	opscope_table_free(opscope_report(p, "operators", NULL, NULL, 0));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_LACKS);
	assert_int_equal(pthread_create(&thread, NULL, code_of_another_thread, code), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(code[0], OPSCOPE_NO_ERROR);
	assert_int_equal(code[1], OPSCOPE_ERROR_IO);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_LACKS);
	assert_null(opscope_report(p, "no-such", NULL, NULL, 0));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_USAGE);
	assert_int_equal(opscope_export(p, "chrome", "/no/such/folder/x", NULL, NULL, NULL, 0), -1);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_IO);
	assert_int_equal(opscope_options_set(o, "limit", "x", NULL, 0), -1);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_USAGE);
	assert_null(opscope_open("/proc/self/exe", NULL, NULL, 0));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_FORMAT);
	opscope_options_free(o);
	opscope_close(p);
}

/* opscope_error_code says which calls it tells of. */
static void calls_without_a_code(void **state)
{
	const struct opscope_schedule_spec bad = {.wait = -1, .active = 1};
	struct opscope_profile *p = open_trace("partial_overlap");
	struct opscope_table *t = opscope_report(p, "operators", NULL, NULL, 0);
	struct opscope_todo todo;
	assert_null(opscope_open("/no/such/file", NULL, NULL, 0));
	assert_int_equal(opscope_column_find(t, "no-such"), -1);
	assert_int_equal(opscope_schedule(&bad, 0, NULL, 0), -1);
	assert_int_equal(opscope_schedule_check(&bad, NULL, 0), -1);
	assert_null(opscope_stepper_new(&bad, NULL, NULL, 0));
	struct opscope_stepper *stepper = opscope_stepper_new(NULL, NULL, NULL, 0);
	assert_int_equal(opscope_stepper_stop(stepper, &todo), -1);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_IO);
	struct ArrowArrayStream stream;
	assert_int_equal(opscope_table_arrow_stream(NULL, &stream, NULL, 0), -1);
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_USAGE);
	opscope_stepper_free(stepper);
	opscope_table_free(t);
	opscope_close(p);
}

struct pipe_export {
	struct opscope_profile *p;
	const char *path;
};

static void *export_into_pipe(void *arg)
{
	const struct pipe_export *x = arg;
	return (void *)(intptr_t)opscope_export(x->p, "chrome", x->path, NULL, NULL, NULL, 0);
}

/* 0 where all is as it should be; a child that waits for ever is ended by the alarm. */
static int ask_in_child(struct opscope_profile *busy, struct opscope_profile *idle)
{
	char error[256] = "";
	alarm(60);
	struct opscope_table *t = opscope_report(idle, "operators", NULL, NULL, 0);
	if (!t)
		return 1;
	if (opscope_report(busy, "operators", NULL, error, sizeof error) || !strstr(error, "when the process forked: open it again"))
		return 2;
	if (opscope_error_code() != OPSCOPE_ERROR_USAGE || opscope_problems(busy) != 0)
		return 3;
	if (opscope_sql(busy, "SELECT 1", NULL, NULL, 0) || opscope_advise(busy, NULL, NULL, 0) ||
	    opscope_export(busy, "chrome", "/dev/null", NULL, NULL, NULL, 0) == 0)
		return 4;
	opscope_table_free(t);
	opscope_close(busy);
	opscope_close(idle);
	return 0;
}

/* Another thread is at the profile while the process forks: it writes into a pipe that nobody empties. */
static void forked_child(void **state)
{
	struct opscope_profile *p = open_file(path_of("torch214_cpu_resnet.json.gz")), *idle = open_trace("partial_overlap");
	int ends[2], status;
	char path[64], bytes[1 << 16];
	void *result;
	pthread_t thread;
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
	struct pipe_export x = {p, path};
	assert_int_equal(pthread_create(&thread, NULL, export_into_pipe, &x), 0);
	assert_int_equal(read(ends[0], bytes, 1), 1);
	close(ends[1]);
	pid_t child = fork();
	if (child == 0)
		_exit(ask_in_child(p, idle));
	while (read(ends[0], bytes, sizeof bytes) > 0)
		;
	close(ends[0]);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	opscope_table_free(opscope_report(p, "operators", NULL, NULL, 0));
	opscope_close(idle);
	opscope_close(p);
}

/* Under whatever name. */
static void export_onto_the_input(void **state)
{
	char folder[] = "/tmp/opscope-api-XXXXXX", file[64], link[64], text[4096], error[256];
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/a.json", folder);
	snprintf(link, sizeof link, "%s/b.json", folder);
	FILE *in = fopen(path_of("synthetic/partial_overlap.json"), "rb"), *out = fopen(file, "wb");
	assert_true(in && out);
	for (size_t n; (n = fread(text, 1, sizeof text, in)) > 0;)
		assert_int_equal(fwrite(text, 1, n, out), n);
	fclose(in);
	fclose(out);
	assert_int_equal(symlink(file, link), 0);
	struct stat before, after;
	assert_int_equal(stat(file, &before), 0);
	struct opscope_profile *p = open_file(link);
	assert_int_equal(opscope_export(p, "chrome", file, NULL, NULL, error, sizeof error), -1);
	assert_non_null(strstr(error, "a.json: the trace was read from this file"));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_USAGE);
	assert_int_equal(stat(file, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
	opscope_close(p);
	unlink(link);
	unlink(file);
	rmdir(folder);
}

static void on_signal(int number)
{
}

static _Atomic int opened;

static void *open_pipe(void *arg)
{
	struct opscope_profile *p = opscope_open(arg, NULL, NULL, 0);
	opened = 1;
	return p;
}

/* Signals come while a pipe with a name waits for its writer. */
static void open_goes_on_after_signals(void **state)
{
	char folder[] = "/tmp/opscope-api-XXXXXX", path[64], text[1 << 16];
	struct sigaction action = {.sa_handler = on_signal}, before; /* without SA_RESTART */
	pthread_t thread;
	void *p;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, open_pipe, path), 0);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
		usleep(2000);
	}
	int fd = open(path, O_WRONLY | O_NONBLOCK); /* fails where nobody is there to read any more */
	while (fd < 0 && errno == ENXIO && !opened) {
		usleep(1000);
		fd = open(path, O_WRONLY | O_NONBLOCK);
	}
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	FILE *in = fopen(path_of("synthetic/partial_overlap.json"), "rb");
	assert_non_null(in);
	for (size_t n; (n = fread(text, 1, sizeof text, in)) > 0;)
		assert_int_equal(write(fd, text, n), n);
	fclose(in);
	close(fd);
	assert_int_equal(pthread_join(thread, &p), 0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_non_null(p);
	opscope_close(p);
	unlink(path);
	rmdir(folder);
}

static void write_rules(char *path, const char *text)
{
	strcpy(path, "/tmp/opscope_rules_XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* With these rules; the options and the files are gone when it is asked. */
static struct opscope_profile *open_with_rules(const char *costs, const char *kernels)
{
	char error[256], path[2][40];
	struct opscope_options *o = opscope_options_new();
	write_rules(path[0], costs);
	write_rules(path[1], kernels);
	assert_int_equal(opscope_options_set(o, "rules", path[0], error, sizeof error), 0);
	assert_int_equal(opscope_options_set(o, "kernel-rules", path[1], error, sizeof error), 0);
	struct opscope_profile *p = opscope_open(path_of("synthetic/all_categories.json"), o, error, sizeof error);
	if (!p)
		fail_msg("%s", error);
	opscope_options_free(o);
	unlink(path[0]);
	unlink(path[1]);
	return p;
}

/* The answer of a query with one cell. */
static void answer_is(struct opscope_profile *p, const char *query, const char *want)
{
	char error[256];
	struct opscope_table *t = opscope_sql(p, query, NULL, error, sizeof error);
	if (!t)
		fail_msg("%s: %s", query, error);
	assert_int_equal(opscope_table_rows(t), 1);
	assert_string_equal(opscope_table_text(t, 0, 0), want);
	opscope_table_free(t);
}

static void rules_are_of_a_profile(void **state)
{
	static const char kernel[] = "SELECT class || ' ' || tensor_cores FROM kernels", op[] = "SELECT class || ' ' || coalesce(flops, '?') FROM costs";
	struct opscope_profile *none = open_file(path_of("synthetic/all_categories.json"));
	struct opscope_profile *one = open_with_rules("RULE(OTHER, \"aten::nll_loss_backward\", \"?,mn,?\", \"m*n\", \"1\", \"1\")", "KERNEL(\"nll_back\", NORM, NO)");
	struct opscope_profile *other = open_with_rules("RULE(SORT, \"aten::nll_loss_backward\", \"?,mn,?\", \"3\", \"1\", \"1\")", "KERNEL(\"nll_back\", GEMM, YES)");
	for (int i = 0; i < 2; i++) {
		answer_is(none, kernel, "unknown unknown");
		answer_is(other, kernel, "gemm yes");
		answer_is(one, kernel, "norm no");
		answer_is(other, op, "sort 3");
		answer_is(none, op, "loss ?");
		answer_is(one, op, "other 32000");
	}
	opscope_close(one);
	answer_is(other, kernel, "gemm yes");
	opscope_close(other);
	opscope_close(none);
}

static void broken_rules(void **state)
{
	char path[40], error[256];
	struct opscope_options *o = opscope_options_new();
	write_rules(path, "\nKERNEL(all)\n");
	assert_int_equal(opscope_options_set(o, "kernel-rules", path, error, sizeof error), 0);
	assert_null(opscope_open(path_of("synthetic/all_categories.json"), o, error, sizeof error));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_FORMAT);
	assert_non_null(strstr(error, ":2: KERNEL("));
	unlink(path);
	assert_null(opscope_open(path_of("synthetic/all_categories.json"), o, error, sizeof error));
	assert_int_equal(opscope_error_code(), OPSCOPE_ERROR_IO);
	opscope_options_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_and_facts),
		cmocka_unit_test(problems_beyond_the_last),
		cmocka_unit_test(null_is_an_error),
		cmocka_unit_test(a_job),
		cmocka_unit_test(error_codes),
		cmocka_unit_test(calls_without_a_code),
		cmocka_unit_test(forked_child),
		cmocka_unit_test(export_onto_the_input),
		cmocka_unit_test(rules_are_of_a_profile),
		cmocka_unit_test(broken_rules),
		cmocka_unit_test(open_goes_on_after_signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
