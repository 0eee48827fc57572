/* dlprofviewer [-b ADDR] [-p PORT] DB: DLProf Viewer's command line for the viewer. */
#include "cli/serve.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct viewer_command {
	struct serve_options o;
	struct cli_args args;
};

static const struct argp_option options[] = {
	{"bind", 'b', "ADDRESS", 0, "listen here (default: localhost, which only this machine reaches)", 0},
	{"port", 'p', "PORT", 0, "listen at this port (default: 8000; 0: any that is free)", 0},
	{"version", 'V', NULL, 0, "print the version and end", 0},
	{0},
};

static error_t cli_viewer_parse(int key, char *arg, struct argp_state *state)
{
	struct viewer_command *c = state->input;
	switch (key) {
	case 'b':
		c->o.bind = arg;
		return 0;
	case 'p':
		c->o.port = cli_port(arg);
		return 0;
	case 'V':
		puts("dlprofviewer of opscope " OPSCOPE_VERSION);
		exit(EXIT_DONE);
	case ARGP_KEY_ARG:
		cli_args_add(&c->args, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = cli_viewer_parse,
	.args_doc = "DATABASE",
	.doc = "Serves the viewer for one database: what `dlprof` wrote (dlprof_dldb.opscope), a database of DLProf itself (dlprof_dldb.sqlite), or any other "
	       "input of opscope. `opscope serve` is the same with more options.",
};

static int cli_viewer_run(int argc, char **argv)
{
	struct viewer_command c = {.o.port = 8000};
	cli_parse(&argp, argc, argv, &c);
	if (c.args.n != 1)
		cli_usage("dlprofviewer: one DATABASE was expected, dlprof_dldb.opscope or dlprof_dldb.sqlite");
	c.o.paths = (const char *const *)c.args.v;
	c.o.n_paths = 1;
	int status = cli_serve(&c.o);
	mem_free(c.args.v);
	return status;
}

const struct command command_dlprofviewer = {
	.name = "dlprofviewer",
	.args = "DATABASE",
	.help = "the viewer as DLProf Viewer was called",
	.run = cli_viewer_run,
};
