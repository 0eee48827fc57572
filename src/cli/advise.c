#include "cli/cli.h"

#include "base/mem.h"
#include "detect/detect.h"

struct advise_command {
	struct cli_args inputs;
	struct trace_options trace;
	struct output_options output;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct advise_command *c = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->trace;
		state->child_inputs[1] = &c->output;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&c->inputs, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&trace_argp, 0, NULL, 1}, {&output_argp, 0, NULL, 2}, {0}};
static const struct argp argp = {
	.parser = parse,
	.children = children,
	.args_doc = "INPUT...",
	.doc = "Lists what keeps the run from being faster, the worst first: the problem with its numbers, what to do, and how "
	       "much it can gain at most.",
};

static int print_findings(struct profile *p, const struct output_options *o)
{
	struct findings f = {0};
	struct err e;
	int status;
	if (detect_all(p, &f, &e) == 0) {
		struct table t;
		findings_table(&f, &t);
		status = cli_output(&t, o, p->input_path.p);
		table_release(&t);
	} else {
		status = cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	}
	findings_release(&f);
	return status;
}

static int run(int argc, char **argv)
{
	struct advise_command c = {0};
	cli_parse(&argp, argc, argv, &c);
	if (!c.inputs.n)
		cli_usage("advise: an INPUT was expected: a trace, a directory, or - for standard input");
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&c.inputs, &c.trace, &status);
	if (p)
		status = print_findings(p, &c.output);
	profile_free(p);
	mem_free(c.inputs.v);
	return status;
}

const struct command command_advise = {
	.name = "advise",
	.args = "INPUT...",
	.help = "findings: problem, evidence, what to do, expected gain",
	.run = run,
};
