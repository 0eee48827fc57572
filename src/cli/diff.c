#include "cli/cli.h"

#include "base/buf.h"
#include "base/mem.h"
#include "cli/side.h"
#include "io/remote/remote.h"
#include "query/diff.h"

#include <assert.h>
#include <string.h>

enum { KEY_BY = 0x200, KEY_FORCE };

struct diff_command {
	struct table_command c; /* first: cli_table_option takes this for it */
	struct diff_ask ask;
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "What to compare:", 0},
	{"by", KEY_BY, "term|module|tree|op|kernel|line", 0, "a row for each term (default: ops of one type and path, layers together), module, op, kernel, or line (functions of your Python, with the line that is recorded of them); tree: the modules of both runs side by side, with their ops", 0},
	{"force", KEY_FORCE, NULL, 0, "compare runs that have little in common, too", 0},
	{0},
};

static error_t cli_diff_parse(int key, char *arg, struct argp_state *state)
{
	struct diff_command *d = state->input;
	struct err e;
	switch (key) {
	case KEY_BY:
		if (diff_by_of(str_from(arg), &d->ask.by, &e) < 0)
			cli_usage("diff: --%s", e.msg);
		return 0;
	case KEY_FORCE: d->ask.force = true; return 0;
	default: return cli_table_option(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = cli_diff_parse,
	.children = table_children,
	.args_doc = "A [OPTION...] B [OPTION...]",
	.doc = "What changed from run A to run B: by how much a step is longer or shorter, and the terms that add up to this. Options behind A are of A alone, "
	       "all others of both: `opscope diff run.json --steps=5 run.json --steps=6`.",
};

/* The command line of one side: `path`, what stands before both paths, then what stands behind them, then, of A, what stands between them; what comes later counts. */
static struct diff_command cli_diff_side(char **argv, int argc, int a, int b, bool is_b)
{
	struct diff_command d = {0};
	char **own = NEW_ARRAY((size_t)argc + 1, char *);
	int n = 0;
	own[n++] = argv[0];
	for (int i = 1; i < a; i++)
		own[n++] = argv[i];
	for (int i = b + 1; i < argc; i++)
		own[n++] = argv[i];
	for (int i = a + 1; i < b && !is_b; i++)
		own[n++] = argv[i];
	own[n++] = argv[is_b ? b : a];
	cli_parse(&argp, n, own, &d);
	mem_free(own);
	return d;
}

/* Where from `i` on the word stands that cli_args_add was given for `path`. */
static int cli_diff_place(char **argv, int argc, int i, const char *path)
{
	while (i < argc && remote_name(argv[i]) != path)
		i++;
	assert(i < argc);
	return i;
}

static int cli_diff_print(const struct diff_side *a, const struct diff_side *b, struct diff_command *d)
{
	struct err e;
	struct table t;
	if (diff_table(a, b, &d->ask, &t, &e) < 0)
		return cli_fail(&e, EXIT_INPUT);
	int status = cli_output(&t, &d->c.output, a->path.p);
	table_release(&t);
	return status;
}

static void cli_diff_release(struct diff_command *d)
{
	mem_free(d->c.args.v);
	trace_options_release(&d->c.trace);
}

static int cli_diff_run(int argc, char **argv)
{
	struct diff_command whole = {0}, side[2];
	struct diff_side *of[2] = {0};
	int status = EXIT_DONE, at[2];
	char **given = NEW_ARRAY((size_t)argc + 1, char *); /* parsing moves the arguments behind the options */
	memcpy(given, argv, (size_t)argc * sizeof *argv);
	cli_parse(&argp, argc, argv, &whole);
	if (whole.c.args.n != 2)
		cli_usage("diff: two inputs were expected, A and B, and %d %s given", whole.c.args.n, whole.c.args.n == 1 ? "was" : "were");
	cli_refuse_overwrite(whole.c.output.path, &whole.c.args);
	at[0] = cli_diff_place(given, argc, 1, whole.c.args.v[0]);
	at[1] = cli_diff_place(given, argc, at[0] + 1, whole.c.args.v[1]);
	for (int i = 0; i < 2; i++)
		side[i] = cli_diff_side(given, argc, at[0], at[1], i == 1);
	for (int i = 0; i < 2 && status == EXIT_DONE; i++)
		of[i] = cli_side_read(&side[i].c.args, &side[i].c.trace, &status);
	if (status == EXIT_DONE)
		status = cli_diff_print(of[0], of[1], &whole);
	for (int i = 0; i < 2; i++) {
		diff_side_free(of[i]);
		cli_diff_release(&side[i]);
	}
	cli_diff_release(&whole);
	mem_free(given);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.args = "A B",
	.help = "what changed between two runs: a sum of terms that ends at the difference",
	.run = cli_diff_run,
};
