#include "cli/cli.h"

#include "analysis/slice.h"
#include "base/mem.h"
#include "detect/detect.h"

static const char doc[] =
	"Lists what keeps the run from being faster, the worst first: the problem with its numbers, what to do, and how "
	"much it can gain at most.";

/* The profile itself, or the part that --steps chooses. NULL and *e. */
static struct profile *chosen_part(struct profile *p, const struct report_args *args, struct err *e)
{
	if (steps_choose(p, args->key_op, e) < 0)
		return NULL;
	return args->has_steps ? slice_of_steps(p, args->step_first, args->step_last, e) : p;
}

static int print_findings(struct profile *p, const struct report_args *args, const struct output_options *o)
{
	struct findings f = {0};
	struct err e;
	int status;
	struct profile *part = chosen_part(p, args, &e);
	if (part && detect_all(part, &f, &e) == 0) {
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
	if (c.trace.report.device)
		cli_usage("advise: --device is for reports: this is always of all devices");
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
