/* Folders that are made with those above them. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"

static char place[] = "/tmp/opscope_folder_XXXXXX";

static int make_place(void **state)
{
	umask(022);
	return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int empty_place(void **state)
{
	return system("find . -mindepth 1 -delete");
}

static int remove_place(void **state)
{
	return chdir("/") || rmdir(place) ? -1 : 0;
}

static unsigned mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777u;
}

static void test_the_last_folder_has_the_mode(void **state)
{
	static const char *const paths[] = {"a/b", "a/b/", "a/b//", "a//b", "./a/b/"};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		struct err e = {0};
		assert_int_equal(folder_make(paths[i], 0700, &e), 0);
		assert_int_equal(mode_of("a"), 0755);
		assert_int_equal(mode_of("a/b"), 0700);
		assert_int_equal(empty_place(NULL), 0);
	}
}

static void test_a_folder_that_is_there_keeps_its_mode(void **state)
{
	struct err e = {0};
	assert_int_equal(mkdir("a", 0750), 0);
	assert_int_equal(folder_make("a/", 0700, &e), 0);
	assert_int_equal(mode_of("a"), 0750);
	assert_int_equal(folder_make("/", 0700, &e), 0);
}

static void test_a_file_in_the_way(void **state)
{
	struct err e = {0};
	assert_int_equal(system("touch a"), 0);
	assert_int_equal(folder_make("a/b", 0700, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_string_equal(e.msg, "cannot make a: it is no folder");
}

static void test_names(void **state)
{
	struct folder f;
	unsigned n = 0;
	assert_int_equal(system("touch one two"), 0);
	assert_true(folder_open(&f, "."));
	for (const char *name; (name = folder_next(&f));)
		n += strcmp(name, "one") == 0 || strcmp(name, "two") == 0;
	assert_int_equal(n, 2);
	assert_int_equal(f.error, 0);
	folder_close(&f);
	assert_false(folder_open(&f, "absent"));
	assert_int_equal(f.error, ENOENT);
	assert_null(folder_next(&f));
	folder_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_the_last_folder_has_the_mode, empty_place),
		cmocka_unit_test_teardown(test_a_folder_that_is_there_keeps_its_mode, empty_place),
		cmocka_unit_test_teardown(test_a_file_in_the_way, empty_place),
		cmocka_unit_test_teardown(test_names, empty_place),
	};
	return cmocka_run_group_tests(tests, make_place, remove_place);
}
