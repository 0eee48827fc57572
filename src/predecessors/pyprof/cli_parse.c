/* PyProf's `python -m pyprof.parse FILE`: one Python dictionary a kernel on standard output. */
#include "analysis/analysis.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "predecessors/pyprof/cli_common.h"
#include "predecessors/pyprof/dict.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

struct cli_parse_options {
	struct cli_args args;
	const char *compat;
};

enum { KEY_COMPAT = 0x200 };

static const struct argp_option option_list[] = {
	{"compat", KEY_COMPAT, "pyprof|pyprof2|opscope", 0, "pyprof (default), pyprof2, or opscope: right sequence numbers, sub ids and ops of any version", 0},
	{0},
};

static error_t cli_parse_option(int key, char *arg, struct argp_state *state)
{
	struct cli_parse_options *o = state->input;
	switch (key) {
	case KEY_COMPAT:
		o->compat = arg;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&o->args, arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = option_list,
	.parser = cli_parse_option,
	.args_doc = "FILE",
	.doc = "Prints a Python dictionary for every kernel, as PyProf's parse did, for FILE.dict: "
	       "name, duration, markers, sequence numbers, direction, op, launch.",
};

static int print_records(const struct pyprof_records *r)
{
	int status = EXIT_DONE, rc = 0;
	struct buf b = {0};
	struct arena scratch = {0};
	for (uint32_t i = 0; rc == 0 && i < r->n; i++) {
		struct pyprof_record x;
		pyprof_record_get(r, i, UINT_MAX, &scratch, &x);
		pyprof_dict_put(&b, &x);
		if (i % 256 == 255)
			arena_release(&scratch);
		rc = pyprof_flush(&b, false, &status);
	}
	if (rc == 0)
		pyprof_flush(&b, true, &status);
	arena_release(&scratch);
	buf_release(&b);
	return status;
}

static int parse_profile(struct profile *p, enum pyprof_record_rules rules)
{
	struct err e;
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE, &e) < 0)
		return cli_fail(&e, EXIT_INPUT);
	struct pyprof_records *r = pyprof_records_new(p, rules);
	int status = EXIT_DONE;
	pyprof_warn(p, r);
	if (r->n) {
		fprintf(stderr, "Found %u kernels. Getting info for each kernel.\n", r->n);
		status = print_records(r);
	} else {
		fputs("Found 0 kernels. Exiting.\n", stderr);
	}
	pyprof_records_free(r);
	return status;
}

static int cli_parse_run(int argc, char **argv)
{
	static const struct pyprof_compat choices[] = {
		{"pyprof", PYPROF_RECORDS_3}, {"pyprof2", PYPROF_RECORDS_2}, {"opscope", PYPROF_RECORDS_DEFAULT}};
	struct cli_parse_options o = {.compat = "pyprof"};
	cli_parse(&argp, argc, argv, &o);
	enum pyprof_record_rules rules = pyprof_compat_of(argv[0], o.compat, choices, sizeof choices / sizeof choices[0]);
	if (o.args.n != 1)
		cli_usage("%s: one FILE was expected: a database of nsys or nvprof", argv[0]);
	const char *path = o.args.v[0];
	if (strcmp(path, "-") != 0 && access(path, F_OK) < 0 && discover_is_absent(errno))
		cli_usage("%s: No such file '%s'.", argv[0], path);
	const struct trace_options trace = {0};
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&o.args, &trace, &status);
	if (p)
		status = parse_profile(p, rules);
	profile_free(p);
	mem_free(o.args.v);
	return status;
}

const struct command command_pyprof_parse = {
	.name = "pyprof-parse",
	.args = "FILE",
	.help = "PyProf's parse: a Python dictionary a kernel",
	.run = cli_parse_run,
};
