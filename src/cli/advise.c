#include "cli/cli.h"

#include "base/mem.h"
#include "detect/detect.h"

static const char doc[] =
	"Lists what keeps the run from being faster, the worst first: the problem with its numbers, what to do, and how "
	"much it can gain at most.";

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
	struct table_command c = {0};
	cli_parse_table("INPUT...", doc, argc, argv, &c);
	if (!c.args.n)
		cli_usage("advise: an INPUT was expected: a trace, a directory, or - for standard input");
	if (c.trace.report.has_steps || c.trace.report.device)
		cli_usage("advise: --steps and --device are for reports: this is always of the whole trace");
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&c.args, &c.trace, &status);
	if (p)
		status = print_findings(p, &c.output);
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
