#include "cli/cli.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "detect/detect.h"
#include "query/advice.h"
#include "render/render.h"

enum { KEY_COMPAT = 0x200, KEY_ALL, KEY_FAIL_ON };

struct advise_command {
	struct table_command c; /* first: cli_table_option takes this for it */
	const char *fail_on;    /* NULL = findings are no failure */
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "What to look for:", 0},
	{"compat", KEY_COMPAT, "TOOL", 0, "the findings of a predecessor's expert system, in its words: ", 0},
	{"all", KEY_ALL, NULL, 0, "list each detector that is not applicable, with the reason, as text, too", 0},
	{"fail-on", KEY_FAIL_ON, "high|medium|low", 0, "status 3 when there is a finding of this severity or a higher one", 0},
	{0},
};

/* -1 = nothing of these. */
static int severity_rank(struct str severity)
{
	static const char *const names[] = {"info", "low", "medium", "high"};
	for (int i = 0; i < 4; i++)
		if (str_eqc(severity, names[i]))
			return i;
	return -1;
}

static error_t cli_advise_parse(int key, char *arg, struct argp_state *state)
{
	struct advise_command *a = state->input;
	struct table_command *c = &a->c;
	switch (key) {
	case KEY_COMPAT: c->trace.report.compat = arg; return 0;
	case KEY_ALL: c->trace.report.brief = false; return 0;
	case KEY_FAIL_ON:
		if (severity_rank(str_from(arg)) <= 0)
			cli_usage("advise: --fail-on=%s: high, medium or low was expected", arg);
		a->fail_on = arg;
		return 0;
	default: return cli_table_option(key, arg, state);
	}
}

/* argp frees what is not its own text. */
static char *add_predecessors(int key, const char *text, void *input)
{
	struct buf b = {0};
	if (key != KEY_COMPAT)
		return (char *)(uintptr_t)text;
	buf_cstr(&b, text);
	detect_expert_systems(", ", &b);
	char *help = strndup(b.p, b.n);
	buf_release(&b);
	return help;
}

static const struct argp argp = {
	.options = options,
	.parser = cli_advise_parse,
	.help_filter = add_predecessors,
	.children = table_children,
	.args_doc = "INPUT...",
	.doc = "Lists what keeps the run from being faster, the worst first: the problem with its numbers, what to do, how much it can gain at "
	       "most, and what would prove the finding wrong.",
};

/* Before rows are filtered and cut. */
static bool has_severe(const struct table *t, const char *fail_on)
{
	int col = table_find_column(t, STR("severity"));
	return fail_on && col >= 0 && ANY_WHERE(r, 0, t->n_rows, severity_rank(table_str(t, r, (unsigned)col)) >= severity_rank(str_from(fail_on)));
}

static int cli_advise_print_findings(struct profile *p, const struct report_args *asked, const struct output_options *o, const char *fail_on)
{
	struct err e;
	struct table t;
	if (advice_table(p, asked, &t, &e) < 0)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	bool severe = has_severe(&t, fail_on);
	int status = cli_output(&t, o, p->input_path.p);
	table_release(&t);
	return status == EXIT_DONE && severe ? EXIT_FINDING : status;
}

static int cli_advise_print_one(struct table_command *c, const char *fail_on)
{
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&c->args, &c->trace, &status);
	if (p)
		status = cli_advise_print_findings(p, &c->trace.report, &c->output, fail_on);
	profile_free(p);
	return status;
}

static int cli_advise_run(int argc, char **argv)
{
	struct err e;
	struct advise_command a = {.c.trace.report.brief = true};
	cli_parse(&argp, argc, argv, &a);
	struct table_command c = a.c;
	c.output.trace = &c.trace;
	cli_refuse_overwrite(c.output.path, &c.args);
	if (!c.args.n)
		cli_usage("advise: an INPUT was expected: a trace, a directory, or - for standard input");
	if (c.trace.report.device)
		cli_usage("advise: --device is for reports: this is always of all devices");
	if (detect_check(c.trace.report.compat, &e) < 0)
		cli_usage("advise: --%s", e.msg);
	if (a.fail_on && c.trace.report.compat)
		cli_usage("advise: --fail-on is for opscope's own findings: a predecessor's have no severity");
	c.trace.report.brief &= cli_renderer(&c.output) == renderer_find(STR("text"));
	int status = EXIT_DONE;
	struct trace_list l = {0};
	if (cli_discover(&c.args, &c.trace, &l, &status) == 0)
		status = !c.trace.report.compat && cli_is_job(&l) ? cli_print_job_findings(&c, &l, has_severe, a.fail_on) : cli_advise_print_one(&c, a.fail_on);
	discover_release(&l);
	mem_free(c.args.v);
	trace_options_release(&c.trace);
	return status;
}

const struct command command_advise = {
	.name = "advise",
	.args = "INPUT...",
	.help = "findings: problem, evidence, what to do, expected gain",
	.run = cli_advise_run,
};
