/* Files that appear whole or not at all: full disks, links, permissions. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/atomic.h"

static char folder[] = "/tmp/opscope_atomic_XXXXXX";

static int make_folder(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int empty_folder(void **state)
{
	return system("find . -mindepth 1 -delete");
}

static int remove_folder(void **state)
{
	return empty_folder(state) || chdir("/") || rmdir(folder) ? -1 : 0;
}

static int put(const char *path, const char *text, struct err *e)
{
	struct atomic_file f;
	*e = (struct err){0};
	if (atomic_begin(&f, path, e))
		return -1;
	return atomic_write(&f, str_from(text), e) ? atomic_abort(&f) : atomic_commit(&f, e);
}

static void assert_holds(const char *path, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	got[fread(got, 1, sizeof got - 1, f)] = 0;
	fclose(f);
	assert_string_equal(got, text);
}

static void assert_files(int n)
{
	char command[64];
	snprintf(command, sizeof command, "test $(find . -mindepth 1 | wc -l) -eq %d", n);
	assert_int_equal(system(command), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static void new_and_replaced(void **state)
{
	struct err e;
	mode_t old = umask(027);
	assert_int_equal(put("a", "one", &e), 0);
	umask(old);
	assert_holds("a", "one");
	assert_int_equal(mode_of("a") & 0777, 0640);
	assert_int_equal(chmod("a", 0604), 0);
	assert_int_equal(put("a", "two", &e), 0);
	assert_holds("a", "two");
	assert_int_equal(mode_of("a") & 0777, 0604);
	assert_files(1);
}

static void aborted(void **state)
{
	struct err e;
	struct atomic_file f;
	assert_int_equal(put("a", "one", &e), 0);
	assert_int_equal(atomic_begin(&f, "a", &e), 0);
	assert_non_null(strchr(f.temp, '/'));
	assert_int_equal(atomic_write(&f, STR("two"), &e), 0);
	assert_files(2);
	assert_int_equal(atomic_abort(&f), -1);
	assert_holds("a", "one");
	assert_files(1);
}

static void links(void **state)
{
	struct err e;
	assert_int_equal(mkdir("d", 0777), 0);
	assert_int_equal(put("d/file", "one", &e), 0);
	assert_int_equal(symlink("file", "d/near"), 0);
	assert_int_equal(symlink("d/near", "far"), 0);
	assert_int_equal(put("far", "two", &e), 0);
	assert_true(S_ISLNK(mode_of("far")) && S_ISLNK(mode_of("d/near")) && S_ISREG(mode_of("d/file")));
	assert_holds("d/file", "two");
	assert_files(4);
	/* Where a link points may not be there yet. */
	assert_int_equal(unlink("d/file"), 0);
	assert_int_equal(put("far", "three", &e), 0);
	assert_true(S_ISLNK(mode_of("far")) && S_ISLNK(mode_of("d/near")) && S_ISREG(mode_of("d/file")));
	assert_holds("far", "three");
	assert_files(4);
}

static void links_in_a_circle(void **state)
{
	struct err e;
	assert_int_equal(symlink("b", "a"), 0);
	assert_int_equal(symlink("a", "b"), 0);
	put("a", "one", &e); /* a link of the circle may be replaced or not: it ends */
}

static void full_disk(void **state)
{
	static char text[] = "longer than the limit";
	struct err e;
	struct rlimit old, tight;
	assert_int_equal(put("a", "one", &e), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	for (rlim_t limit = 0; limit < sizeof text - 1; limit += 4) {
		tight = (struct rlimit){limit, old.rlim_max};
		setrlimit(RLIMIT_FSIZE, &tight);
		int replaced = put("a", text, &e), created = put("b", text, &e);
		setrlimit(RLIMIT_FSIZE, &old);
		assert_true(replaced == -1 && created == -1);
		assert_int_equal(e.code, ERR_IO);
		assert_non_null(strstr(e.msg, "b: cannot write: File too large"));
		assert_holds("a", "one");
		assert_files(1);
	}
}

static void refused(void **state)
{
	struct err e;
	assert_int_equal(mkdir("d", 0777), 0);
	assert_int_equal(put("d", "one", &e), -1);
	assert_non_null(strstr(e.msg, "d: not a regular file"));
	assert_int_equal(put("no/such/folder", "one", &e), -1);
	assert_non_null(strstr(e.msg, "no/such/folder: cannot create: No such file"));
	assert_int_equal(put("/dev/null", "one", &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_files(1);
}

/* The name of the temporary file does not grow with that of the target. */
static void longest_name(void **state)
{
	struct err e;
	char name[256];
	memset(name, 'x', 255);
	name[255] = 0;
	assert_int_equal(put(name, "one", &e), 0);
	assert_holds(name, "one");
	assert_files(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(new_and_replaced, empty_folder),
		cmocka_unit_test_teardown(aborted, empty_folder),
		cmocka_unit_test_teardown(links, empty_folder),
		cmocka_unit_test_teardown(links_in_a_circle, empty_folder),
		cmocka_unit_test_teardown(full_disk, empty_folder),
		cmocka_unit_test_teardown(refused, empty_folder),
		cmocka_unit_test_teardown(longest_name, empty_folder),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
