/* Maps of made code are read where they can be trusted, and never waited for. */
#include "test.h"

#include "record/symbols.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/opscope-perf-map-XXXXXX", map[64], other[64];

static int make_folder(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(map, sizeof map, "%s/perf-1.map", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	return 0;
}

static int remove_folder(void **state)
{
	unlink(map);
	unlink(other);
	return rmdir(folder);
}

static void write_to(const char *path)
{
	static const char text[] = "1000 20 py::f:a.py\nnonsense\n2000 0 empty\n3000 10 g\n";
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	close(fd);
}

/* How many entries the map at `map` has. */
static unsigned entries(void)
{
	struct perf_map m;
	perf_map_read(&m, map);
	unsigned n = m.n;
	perf_map_release(&m);
	return n;
}

static void test_own(void **state)
{
	struct perf_map m;
	write_to(map);
	perf_map_read(&m, map);
	assert_int_equal(m.n, 2);
	assert_str_equal(perf_map_name(&m, 0x101f), "py::f:a.py");
	assert_str_equal(perf_map_name(&m, 0x3000), "g");
	assert_int_equal(perf_map_name(&m, 0x1020).n, 0);
	perf_map_release(&m);
}

static void test_not_there(void **state)
{
	unlink(map);
	assert_int_equal(entries(), 0);
}

/* Without a writer, whoever opens a FIFO waits. */
static void test_fifo(void **state)
{
	unlink(map);
	assert_int_equal(mkfifo(map, 0600), 0);
	alarm(10);
	assert_int_equal(entries(), 0);
	alarm(0);
}

static void test_link(void **state)
{
	unlink(map);
	write_to(other);
	assert_int_equal(symlink(other, map), 0);
	assert_int_equal(entries(), 0);
	unlink(map);
	assert_int_equal(symlink("/dev/zero", map), 0);
	assert_int_equal(entries(), 0);
}

static void test_too_long(void **state)
{
	write_to(map);
	assert_int_equal(truncate(map, ((off_t)256 << 20) + 1), 0);
	assert_int_equal(entries(), 0);
}

static void test_of_another_user(void **state)
{
	write_to(map);
	if (chown(map, 12345, (gid_t)-1) < 0)
		skip_because("only root can give a file away");
	assert_int_equal(entries(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),     cmocka_unit_test(test_not_there), cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_link), cmocka_unit_test(test_too_long),  cmocka_unit_test(test_of_another_user),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
