/* Which traces a path stands for (the plugin's io and consts modules). */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "input/discover.h"
#include "input/input.h"
#include "io/sqldb.h"

static char root[] = "/tmp/opscope-discover-XXXXXX";

static void put_file(const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", root, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_dir(const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0777), 0);
}

#define TRACE "{\"schemaVersion\": 1, \"distributedInfo\": {\n  \"backend\": \"nccl\", \"rank\": 7}, \"traceEvents\": []}"

static int set_up(void **state)
{
	if (!mkdtemp(root))
		return -1;
	make_dir("b");
	make_dir("b/deep");
	make_dir("empty");
	put_file("host_12.1700000000002.pt.trace.json", TRACE);
	put_file("host_12.1700000000001.pt.trace.json", TRACE);
	put_file("host_2.pt.trace.json", "{\"traceEvents\": []}");
	put_file("b/rank-0.Apr_03.1102.pt.trace.json", TRACE);
	put_file("b/deep/other.json", TRACE);
	put_file("b/deep/settings.json", "{\"learning_rate\": 1}");
	put_file("b/deep/notes.txt", "no trace");
	char link[512];
	snprintf(link, sizeof link, "%s/b/deep/loop", root);
	return symlink(root, link);
}

static int tear_down(void **state)
{
	char command[600];
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

static void assert_list(const struct trace_list *l, const char *expected)
{
	struct buf got = {0};
	for (unsigned i = 0; i < l->n; i++)
		buf_printf(&got, STR_FMT "|" STR_FMT "|" STR_FMT "\n", STR_ARG(l->v[i].run), STR_ARG(l->v[i].worker),
		           STR_ARG(l->v[i].span));
	buf_char(&got, 0);
	assert_string_equal(got.p, expected);
	buf_release(&got);
}

static void test_names(void **state)
{
	static const struct { const char *name, *worker, *stamp; } good[] = {
		{"worker0.1623143089861.pt.trace.json", "worker0", "1623143089861"},
		{"worker0.1623143089861.pt.trace.json.gz", "worker0", "1623143089861"},
		{"rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", "rank-0.Apr_03_18_51_38", "1102"},
		{"a.b.pt.trace.json", "a.b", ""},
		{"123.pt.trace.json", "123", ""},
		{".5.pt.trace.json", "", "5"},
	};
	struct str worker, stamp;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_true(discover_parse_name(str_from(good[i].name), &worker, &stamp));
		assert_true(str_eqc(worker, good[i].worker));
		assert_true(str_eqc(stamp, good[i].stamp));
	}
	assert_false(discover_parse_name(STR("trace.json"), &worker, &stamp));
	assert_false(discover_parse_name(STR("a.pt.trace.json.zip"), &worker, &stamp));
	assert_false(discover_parse_name(STR("pt.trace.json"), &worker, &stamp));
}

static void test_directory(void **state)
{
	struct trace_list l = {0};
	struct err e;
	assert_int_equal(discover_add(&l, root, &e), 0);
	discover_finish(&l);
	char expected[600];
	const char *base = root + strlen("/tmp/");
	snprintf(expected, sizeof expected, "b|rank-0.Apr_03|1\nb/deep|other|default\n%s|host_2|default\n%s|host_12|1\n%s|host_12|2\n",
	         base, base, base);
	assert_list(&l, expected);
	assert_non_null(strstr(l.v[3].path.p, "1700000000001"));
	assert_int_equal(l.unreadable, 0);
	discover_select(&l, NULL, "host_12", "2");
	assert_int_equal(l.n, 1);
	assert_non_null(strstr(l.v[0].path.p, "1700000000002"));
	discover_release(&l);
}

/* Links out of the directory are left out where that is wanted: of files, of directories, through a directory beside it whose name begins alike. */
static void test_links_that_lead_out(void **state)
{
	static const struct { const char *from, *to; bool out; } links[] = {
		{"b/deep/in.pt.trace.json", "../../host_2.pt.trace.json", false}, {"b/deep/out.pt.trace.json", "../../../beside/a.pt.trace.json", true},
		{"b/deep/twice.json", "out.pt.trace.json", true},                 {"b/deep/folder", "../../../beside", true},
		{"b/deep/notes.json", "/etc/hostname", false},                    {"b/deep/up", "../../..", true},
	};
	char dir[100], path[600], real[100];
	snprintf(dir, sizeof dir, "%s/inside", root);
	snprintf(path, sizeof path, "mkdir -p '%s' '%s/beside' '%s/insider' && cp -r '%s/b' '%s/host_2.pt.trace.json' '%s' && cp '%s/host_2.pt.trace.json' '%s/beside/a.pt.trace.json'",
	         dir, root, root, root, root, dir, root, root);
	assert_int_equal(system(path), 0);
	for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, links[i].from);
		assert_int_equal(symlink(links[i].to, path), 0);
	}
	snprintf(real, sizeof real, "%s/link", root);
	assert_int_equal(symlink("inside", real), 0); /* as it is given itself, it is followed */
	struct trace_list l = {.stays = true};
	struct err e;
	assert_int_equal(discover_add(&l, real, &e), 0);
	discover_finish(&l);
	assert_list(&l, "b|rank-0.Apr_03|1\nb/deep|in|default\nb/deep|other|default\ninside|host_2|default\n");
	unsigned want = 0;
	for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
		bool found = false;
		snprintf(path, sizeof path, "%s/%s", real, links[i].from);
		for (unsigned k = 0; k < l.n_left_out; k++)
			found |= str_eqc(l.left_out[k], path);
		assert_int_equal(found, links[i].out);
		want += links[i].out;
	}
	assert_int_equal(l.n_left_out, want + 1); /* the copy of b/deep/loop */
	assert_true(discover_lies_in(path, STR("/")));
	assert_false(discover_lies_in("/nothing/there", STR("/")));
	snprintf(path, sizeof path, "%s/insider", root);
	assert_false(discover_lies_in(path, l.v[0].root));
	discover_release(&l);
	l = (struct trace_list){0};
	assert_int_equal(discover_add(&l, real, &e), 0);
	assert_true(l.n > 6);
	assert_int_equal(l.n_left_out, 0);
	discover_release(&l);
	snprintf(path, sizeof path, "rm -r '%s' '%s' '%s/beside' '%s/insider'", dir, real, root, root);
	assert_int_equal(system(path), 0);
}

/* What was found as a file may be a pipe when it is opened: then nobody waits for its writer. */
static void test_pipe(void **state)
{
	char path[100], want[200];
	struct err e = {0};
	struct sqldb d;
	bool stale;
	snprintf(path, sizeof path, "%s/pipe.json", root);
	snprintf(want, sizeof want, "%s: not a regular file, as was expected", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20); /* ends a test that waits */
	assert_int_equal(file_open_regular(path, 0, NULL, &e), -1);
	assert_string_equal(e.msg, want);
	assert_null(input_recognise(path, &e));
	assert_string_equal(e.msg, want);
	e = (struct err){0};
	assert_null(input_open(path, &(struct input_options){.found = true}, &e));
	assert_string_equal(e.msg, want);
	e = (struct err){0};
	assert_int_equal(sqldb_open(&d, path, &stale, &e), -1);
	assert_string_equal(e.msg, want);
	alarm(0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(file_open_regular(path, 0, NULL, &e), -1);
	snprintf(want, sizeof want, "%s: cannot open: No such file or directory", path);
	assert_string_equal(e.msg, want);
	assert_int_equal(file_open_regular(root, 0, NULL, &e), -1);
	snprintf(want, sizeof want, "%s: is a directory, a file was expected", root);
	assert_string_equal(e.msg, want);
}

static void test_rank(void **state)
{
	struct trace_list l = {0};
	struct err e;
	discover_add(&l, root, &e);
	discover_finish(&l);
	discover_select_rank(&l, 2); /* host_2 states no rank, so its name speaks */
	assert_int_equal(l.n, 1);
	assert_true(str_eqc(l.v[0].worker, "host_2"));
	discover_release(&l);

	int64_t rank;
	assert_true(discover_rank_in_head(STR(TRACE), &rank));
	assert_int_equal(rank, 7);
	assert_false(discover_rank_in_head(STR("{\"rank\": 3}"), &rank));
	assert_false(discover_rank_in_head(STR("{\"distributedInfo\": {\"rank\""), &rank));
	assert_true(discover_rank_in_name(STR("rank-31.Apr_03"), &rank));
	assert_int_equal(rank, 31);
	assert_true(discover_rank_in_name(STR("megatron_kineto_4"), &rank));
	assert_int_equal(rank, 4);
	assert_false(discover_rank_in_name(STR("host"), &rank));
	assert_false(discover_rank_in_name(STR("w99999999999999999999"), &rank));
	assert_false(discover_rank_in_name(STR("host-27639-1795864675659749399"), &rank));
}

static void test_single_files_and_errors(void **state)
{
	struct trace_list l = {0};
	struct err e;
	char path[512];
	snprintf(path, sizeof path, "%s/b/deep/settings.json", root);
	assert_int_equal(discover_add(&l, path, &e), 0); /* named by the user: taken as it is */
	assert_int_equal(discover_add(&l, "-", &e), 0);
	assert_int_equal(discover_add(&l, "/no/such/place", &e), -1);
	assert_int_equal(e.code, ERR_IO);
	snprintf(path, sizeof path, "%s/empty", root);
	assert_int_equal(discover_add(&l, path, &e), 0);
	discover_finish(&l);
	assert_list(&l, "|-|default\n|settings|default\n");
	discover_release(&l);
}

static void test_open_errors(void **state)
{
	struct err e;
	char path[512];
	snprintf(path, sizeof path, "%s/b/deep/notes.txt", root);
	assert_null(input_open(path, NULL, &e));
	assert_int_equal(e.code, ERR_FORMAT);
	assert_non_null(strstr(e.msg, "not recognised by its content; known formats: "));
	assert_non_null(strstr(e.msg, "kineto"));
	assert_null(input_open(path, &(struct input_options){.format = "nope"}, &e));
	assert_int_equal(e.code, ERR_USAGE);
	put_file("void", "");
	snprintf(path, sizeof path, "%s/void", root);
	assert_null(input_open(path, NULL, &e));
	assert_non_null(strstr(e.msg, "the file is empty"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_links_that_lead_out),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_rank),
		cmocka_unit_test(test_single_files_and_errors),
		cmocka_unit_test(test_open_errors),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
