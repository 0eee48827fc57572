#include "cli/cli.h"

#include "base/mem.h"
#include "detect/detect.h"
#include "render/render.h"
#include "report/advice.h"

enum { KEY_COMPAT = 0x200, KEY_ALL };

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "What to look for:", 0},
	{"compat", KEY_COMPAT, "TOOL", 0, "the findings of a predecessor's expert system, in its words: dlprof, torch", 0},
	{"all", KEY_ALL, NULL, 0, "as text, too: all detectors that could not look by name, not only how many", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct table_command *c = state->input;
	switch (key) {
	case KEY_COMPAT: c->trace.report.compat = arg; return 0;
	case KEY_ALL: c->trace.report.brief = false; return 0;
	default: return cli_table_option(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = table_children,
	.args_doc = "INPUT...",
	.doc = "Lists what keeps the run from being faster, the worst first: the problem with its numbers, what to do, how much it can gain at "
	       "most, and what would prove the finding wrong.",
};

static int print_findings(struct profile *p, const struct report_args *asked, const struct output_options *o)
{
	struct err e;
	struct table t;
	if (advice_table(p, asked, &t, &e) < 0)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	int status = cli_output(&t, o, p->input_path.p);
	table_release(&t);
	return status;
}

static int run(int argc, char **argv)
{
	struct table_command c = {.trace.report.brief = true};
	cli_parse(&argp, argc, argv, &c);
	cli_refuse_overwrite(c.output.path, &c.args);
	if (!c.args.n)
		cli_usage("advise: an INPUT was expected: a trace, a directory, or - for standard input");
	if (c.trace.report.device)
		cli_usage("advise: --device is for reports: this is always of all devices");
	if (c.trace.report.compat && !detect_has(c.trace.report.compat))
		cli_usage("advise: --compat=%s: expected dlprof or torch", c.trace.report.compat);
	c.trace.report.brief &= cli_renderer(&c.output) == renderer_find(STR("text"));
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&c.args, &c.trace, &status);
	if (p)
		status = print_findings(p, &c.trace.report, &c.output);
	profile_free(p);
	mem_free(c.args.v);
	return status;
}

const struct command command_advise = {
	.name = "advise",
	.args = "INPUT...",
	.help = "findings: problem, evidence, what to do, expected gain",
	.run = run,
};
