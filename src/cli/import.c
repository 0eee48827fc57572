#include "cli/cli.h"

#include "base/mem.h"
#include "base/now.h"
#include "query/aggregate.h"
#include "store/load.h"

#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN = 5 };

struct import_command {
	struct cli_args inputs;
	struct trace_options trace;
	const char *path;
	bool force;
};

static error_t cli_import_parse(int key, char *arg, struct argp_state *state)
{
	struct import_command *c = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->trace;
		return 0;
	case 'o':
		c->path = cli_output_path(arg);
		return 0;
	case 'f':
		c->force = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&c->inputs, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{NULL, 'o', "FILE", 0, "the file to write, by custom named NAME.opscope", 0},
	{"force", 'f', NULL, 0, "replace FILE even when that loses aggregations that were asked for", 0},
	{0},
};
static const struct argp_child children[] = {{&trace_argp, 0, NULL, 1}, {0}};
static const struct argp argp = {
	.options = options,
	.parser = cli_import_parse,
	.children = children,
	.args_doc = "INPUT... -o FILE",
	.doc = "Reads and analyses a trace once and keeps the result in a file that opens many times faster: an INPUT like "
	       "any other. It is an SQLite database, with every report, and the findings of `advise`, as tables of plain rows "
	       "beside the data: the first aggregation, to which `opscope aggregate` adds others. The ranks of a job, given as a folder or as several files, become one file: it keeps "
	       "what reports of all ranks together and `advise` need, and not the recordings themselves.",
};

/* What import cannot make again: aggregations that someone asked for. False, and *status, when FILE holds some, or cannot be read, and they are not to be lost. */
static bool may_replace(const struct import_command *c, int *status)
{
	struct stat st;
	/* A pipe or device holds nothing to be lost, and looking into it would wait for ever. */
	bool look = !c->force && stat(c->path, &st) == 0 && S_ISREG(st.st_mode);
	struct buf lost = {0};
	struct err e = {0};
	const struct input *is = look ? input_recognise(c->path, &e) : NULL;
	unsigned n = 0;
	if (e.code) {
		*status = cli_fail(&e, EXIT_INPUT);
		return false;
	}
	if (!is || strcmp(is->name, "opscope") != 0)
		return true;
	struct profile *p = profile_new();
	int rc = load_aggregation_list(c->path, p, &e);
	bool unread = rc < 0 && (e.code == ERR_IO || e.code == ERR_NOMEM);
	if (unread)
		*status = cli_fail(&e, EXIT_INPUT);
	for (unsigned i = 0; rc == 0 && i < p->n_aggregations; i++) {
		const struct aggregation *a = &p->aggregation[i];
		if (!a->key_op.n && !a->steps.n && !a->name.n)
			continue;
		if (n++ < SHOWN) {
			buf_cstr(&lost, n > 1 ? ", " : "");
			aggregate_describe(a, &lost);
		}
	}
	if (n) {
		err_set(&e, ERR_DATA, "%s holds %s that would be lost: " STR_FMT "%s; --force replaces the file, another name for -o keeps it", c->path,
		        n == 1 ? "an aggregation" : "aggregations", STR_ARG(buf_view(&lost)), n > SHOWN ? ", ..." : "");
		*status = cli_fail(&e, EXIT_INPUT);
	}
	profile_free(p);
	buf_release(&lost);
	return !n && !unread;
}

static int cli_import_one(struct import_command *c)
{
	int status = EXIT_DONE;
	char now[NOW_BYTES], rules[CLI_RULES_BYTES];
	struct profile *p = cli_open_one(&c->inputs, &c->trace, &status);
	struct aggregate_spec spec = {.name = {"", 0}, .created = now_text(now), .rules = cli_rules(&c->trace, false, rules)};
	struct err e;
	if (p && aggregate_import(p, c->path, &spec, &e))
		status = cli_fail(&e, EXIT_INPUT);
	profile_free(p);
	return status;
}

static int cli_import_run(int argc, char **argv)
{
	struct import_command c = {0};
	cli_parse(&argp, argc, argv, &c);
	if (!c.inputs.n)
		cli_usage("import: an INPUT was expected: a trace, a directory, or - for standard input");
	if (!c.path)
		cli_usage("import: -o FILE was expected: where to write");
	if (cli_is_stdout(c.path))
		cli_usage("import: -o %s: a file was expected, a .opscope file cannot go to standard output", c.path);
	cli_refuse_overwrite(c.path, &c.inputs);
	if (c.trace.report.has_steps || c.trace.report.device || c.trace.report.key_op || c.trace.report.aggregation)
		cli_usage("import: the whole trace is kept; choose steps, their key op and devices when reporting from %s, or with opscope aggregate", c.path);
	int status = EXIT_DONE;
	struct trace_list l = {0};
	if (may_replace(&c, &status) && cli_discover(&c.inputs, &c.trace, &l, &status) == 0)
		status = cli_is_job(&l) ? cli_import_job(&l, &c.trace, c.path, c.inputs.v[0]) : cli_import_one(&c);
	discover_release(&l);
	mem_free(c.inputs.v);
	trace_options_release(&c.trace);
	return status;
}

const struct command command_import = {
	.name = "import",
	.args = "INPUT... -o FILE.opscope",
	.help = "parse and analyse once; the result is an INPUT that opens many times faster",
	.run = cli_import_run,
};
