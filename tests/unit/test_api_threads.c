/* The C API from several threads at once, and with NULL where it must not be. ./test also runs it under ThreadSanitizer. */
#include "test.h"

#include <opscope/opscope.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 3 };

/* Whose analysis finds something odd: annotations that overlap in part, work without a call. */
static const char *const traces[] = {"partial_overlap", "two_steps_overlap", "all_categories"};

static struct opscope_profile *open_trace(const char *name)
{
	const char *root = getenv("OPSCOPE_ROOT");
	char path[4096], error[256];
	snprintf(path, sizeof path, "%s/tests/data/synthetic/%s.json", root ? root : ".", name);
	struct opscope_profile *p = opscope_open(path, NULL, error, sizeof error);
	if (!p)
		fail_msg("%s", error);
	return p;
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
	assert_null(opscope_table_render(NULL, "csv", NULL, NULL, error, sizeof error));
	assert_int_equal(opscope_export(p, NULL, NULL, NULL, NULL, error, sizeof error), -1);
	assert_non_null(strstr(error, "NULL"));
	opscope_text_free(NULL);
	opscope_options_free(NULL);
	opscope_table_free(NULL);
	opscope_close(NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_and_facts),
		cmocka_unit_test(problems_beyond_the_last),
		cmocka_unit_test(null_is_an_error),
		cmocka_unit_test(error_codes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
