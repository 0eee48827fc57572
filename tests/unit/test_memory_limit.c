/* Control groups bound the memory that there is: those of the process and those that these are in, of both versions. */
#include "test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/memory_limit.h"

static char root[] = "/tmp/opscope_memory_XXXXXX";

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
	char command[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static int remove_root(void **state)
{
	(void)state;
	run("rm -r %s", root);
	return 0;
}

/* The groups of this process, as the kernel names them. */
static void begin(const char *groups)
{
	run("rm -rf %s/* && mkdir -p %s/proc/self && printf '%s' >%s/proc/self/cgroup", root, root, groups, root);
}

static void put(const char *folder, const char *file, const char *text)
{
	run("mkdir -p %s/sys/fs/cgroup/%s && echo %s >%s/sys/fs/cgroup/%s/%s", root, folder, text, root, folder, file);
}

static uint64_t machine(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void test_no_groups(void **state)
{
	(void)state;
	begin("");
	assert_int_equal(memory_limit(root), machine());
	assert_true(memory_limit("") > 0 && memory_limit("") <= machine());
	begin("0::/a\\n");
	assert_int_equal(memory_limit(root), machine());
}

static void test_version_2(void **state)
{
	(void)state;
	begin("0::/job/step\\n");
	put("", "memory.max", "max");
	put("job/step", "memory.max", "max");
	assert_int_equal(memory_limit(root), machine());
	put("job/step", "memory.max", "3000000");
	assert_int_equal(memory_limit(root), 3000000);
	put("job", "memory.max", "2000000"); /* what holds for a group holds for those in it */
	assert_int_equal(memory_limit(root), 2000000);
}

static void test_version_1(void **state)
{
	(void)state;
	begin("9:name=systemd:/\\n4:cpu,memory:/job\\n0::/\\n");
	put("memory", "memory.limit_in_bytes", "9223372036854771712"); /* its word for "no limit" */
	assert_int_equal(memory_limit(root), machine());
	put("memory/job", "memory.limit_in_bytes", "4000000");
	assert_int_equal(memory_limit(root), 4000000);
	put("unified", "memory.max", "1000000"); /* both at once */
	assert_int_equal(memory_limit(root), 1000000);
}

/* The path is the one outside the container, where only its own group is to be seen. */
static void test_in_a_container(void **state)
{
	(void)state;
	begin("0::/docker/0123456789abcdef\\n");
	put("", "memory.max", "5000000");
	assert_int_equal(memory_limit(root), 5000000);
}

static void test_nonsense(void **state)
{
	(void)state;
	begin("memory\\n:\\n4:memory\\n::\\n0::relative\\n");
	put("", "memory.max", "lots");
	put("memory", "memory.limit_in_bytes", "-5");
	assert_int_equal(memory_limit(root), machine());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_groups),
		cmocka_unit_test(test_version_2),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_in_a_container),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
