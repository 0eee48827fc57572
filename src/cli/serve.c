/* opscope serve [--bind=localhost] [--port=8000] INPUT-or-DIR..., and the same pages as files: --export=OUT */
#include "cli/serve.h"

#include "base/mem.h"
#include "base/search.h"
#include "cli/progress.h"
#include "io/leftovers.h"
#include "query/report.h"
#include "serve/export.h"

#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { KEY_PREFIX = 0x200, KEY_HOST, KEY_READ_ONLY, KEY_MEMORY, KEY_QUERY_TIME, KEY_EXPORT, KEY_FORCE, KEY_STEPS, KEY_LINKS, KEY_EDITOR, KEY_THREADS, PORT = 8000, HOSTS_MAX = 16 };

struct serve_command {
	struct serve_options o;
	struct export_options export;
	struct cli_args args;
	const char *hosts[HOSTS_MAX + 1];
	unsigned n_hosts;
	const char *of_server; /* an option that was given and is about a server alone; NULL = none */
};

static const struct argp_option options[] = {
	{"bind", 'b', "ADDRESS", 0, "listen here (default: localhost, which only this machine reaches)", 0},
	{"port", 'p', "PORT", 0, "listen at this port (default: 8000; 0: any that is free)", 0},
	{"path-prefix", KEY_PREFIX, "/X", 0, "what stands before every path, behind a proxy", 0},
	{"allow-host", KEY_HOST, "NAME", 0, "another name by which this server may be asked; may be given several times", 0},
	{"memory", KEY_MEMORY, "SIZE", 0, "use about SIZE of memory at most: inputs not in use are dropped, the rest of a large one goes to a file: 8G, 500M (default: half of what there is)", 0},
	{"query-time", KEY_QUERY_TIME, "SECONDS", 0, "end SQL queries that take longer (default: 30)", 0},
	{"follow-links", KEY_LINKS, NULL, 0, "in a directory, also links that lead out of it", 0},
	{"read-only", KEY_READ_ONLY, NULL, 0, "write no aggregations into .opscope files either", 0},
	{"editor", KEY_EDITOR, "NAME", 0, "what opens lines of source, where a reader has not chosen: vscode (default), cursor, pycharm, none, or an address with {file} and {line}", 0},
	{"threads", KEY_THREADS, "N", 0, CLI_THREADS_HELP, 0},
	{"export", KEY_EXPORT, "OUT", 0, "start no server: write the pages with their data into the file OUT, if it ends in .html, or into the directory OUT", 0},
	{"force", KEY_FORCE, NULL, 0, "with --export: also into a directory that holds something", 0},
	{"steps", KEY_STEPS, "A..B", 0, "with --export: pages about steps A to B alone", 0},
	{0},
};

static int64_t cli_serve_number(const char *option, const char *arg, int64_t min, int64_t max)
{
	int64_t n;
	if (!str_to_i64(str_from(arg), &n) || n < min || n > max)
		cli_usage("--%s=%s: a whole number from %lld to %lld was expected", option, arg, (long long)min, (long long)max);
	return n;
}

uint16_t cli_port(const char *arg)
{
	return (uint16_t)cli_serve_number("port", arg, 0, 65535);
}

static void check_steps(const char *arg)
{
	struct report_args a = {0};
	struct err e;
	if (report_args_steps(&a, str_from(arg), &e) < 0)
		cli_usage("--%s", e.msg);
}

/* Schemes that run code, show other pages or ask other machines: as web/src/editor.ts refuses them. */
static bool cli_serve_is_refused(struct str scheme)
{
	static const char *const refused[] = {"javascript", "vbscript", "data", "blob", "file", "filesystem", "about", "view-source", "http", "https", "ws", "wss", "ftp", "ftps",
	                                      "chrome", "chrome-extension", "moz-extension", "resource", "jar", "mailto", "tel", "sms", "intent", "search-ms", "shell"};
	return (scheme.n > 3 && strncasecmp(scheme.p, "ms-", 3) == 0) ||
	       ANY_WHERE(i, 0, sizeof refused / sizeof refused[0], scheme.n == strlen(refused[i]) && strncasecmp(scheme.p, refused[i], scheme.n) == 0);
}

/* What stands before "://"; n = 0 where it is none. */
static struct str cli_serve_scheme(const char *address)
{
	size_t n = 0;
	if (isalpha((unsigned char)*address))
		while (isalnum((unsigned char)address[n]) || (address[n] && strchr("+.-", address[n])))
			n++;
	return (struct str){address, strncmp(address + n, "://", 3) == 0 ? n : 0};
}

static bool cli_serve_has_odd(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == 127 || strchr("\"'<>`\\", *text))
			return true;
	return false;
}

static const char *cli_serve_editor(const char *arg)
{
	static const char *const names[] = {"vscode", "cursor", "pycharm", "none"};
	const struct str text = str_from(arg), scheme = cli_serve_scheme(arg);
	if (ANY_WHERE(i, 0, sizeof names / sizeof names[0], str_eqc(text, names[i])))
		return arg;
	if (scheme.n && cli_serve_is_refused(scheme))
		cli_usage("--editor=%s: " STR_FMT ": is no scheme of an editor; an address as 'vscode://file/{file}:{line}' was expected", arg, STR_ARG(scheme));
	if (!scheme.n || cli_serve_has_odd(arg) || !str_has(str_from(arg + scheme.n + 3), STR("{file}")))
		cli_usage("--editor=%s: vscode, cursor, pycharm, none, or an address with {file} and {line}, as in 'vscode://file/{file}:{line}', was expected", arg);
	return arg;
}

static error_t cli_serve_parse(int key, char *arg, struct argp_state *state)
{
	struct serve_command *c = state->input;
	switch (key) {
	case KEY_THREADS:
		cli_set_threads(arg);
		return 0;
	case 'b':
		c->of_server = "--bind";
		c->o.bind = arg;
		return 0;
	case 'p':
		c->of_server = "--port";
		c->o.port = cli_port(arg);
		return 0;
	case KEY_PREFIX:
		c->of_server = "--path-prefix";
		c->o.prefix = arg;
		return 0;
	case KEY_HOST:
		c->of_server = "--allow-host";
		if (c->n_hosts == HOSTS_MAX)
			cli_usage("--allow-host: at most %d are possible", HOSTS_MAX);
		c->hosts[c->n_hosts++] = arg;
		return 0;
	case KEY_MEMORY:
		c->o.memory_bytes = cli_limit_memory(arg);
		return 0;
	case KEY_QUERY_TIME:
		c->of_server = "--query-time";
		c->o.query_seconds = (unsigned)cli_serve_number("query-time", arg, 1, 1000000);
		return 0;
	case KEY_LINKS:
		c->o.follow_links = true;
		return 0;
	case KEY_READ_ONLY:
		c->of_server = "--read-only";
		c->o.read_only = true;
		return 0;
	case KEY_EDITOR:
		c->of_server = "--editor";
		c->o.editor = cli_serve_editor(arg);
		return 0;
	case KEY_EXPORT:
		c->export.out = arg;
		return 0;
	case KEY_FORCE:
		c->export.force = true;
		return 0;
	case KEY_STEPS:
		check_steps(arg);
		c->export.steps = arg;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&c->args, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = cli_serve_parse,
	.args_doc = "INPUT-or-DIR...\n",
	.doc = "Serves the viewer: open the address that it prints in a browser. Several runs are listed first, with step time, MFU and findings of each. Traces of a directory appear as they are written. Ends with Ctrl-C.\v"
	       "--export=OUT writes the same pages as a report that needs no server: one file to attach to a ticket, or a directory.",
};

static void wait_for_end(const sigset_t *ends)
{
	int which;
	sigwait(ends, &which);
	/* Whoever asks twice does not want to wait for a file that is being written either. */
	pthread_sigmask(SIG_UNBLOCK, ends, NULL);
}

static void cli_serve_say_left_out(void *unused, struct str path)
{
	struct err e;
	err_set(&e, ERR_IO, STR_FMT ": left out, since it leads out of its directory; opscope serve --follow-links shows it", STR_ARG(path));
	cli_fail(&e, EXIT_DONE);
}

int cli_serve(const struct serve_options *o)
{
	struct err e;
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	struct server *s = server_start(o, &e);
	if (!s)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	server_left_out(s, cli_serve_say_left_out, NULL);
	printf("%s\n", server_url(s));
	int status = cli_printed() ? EXIT_DONE : EXIT_INPUT; /* a server whose address nobody knows is of no use */
	if (status == EXIT_DONE)
		wait_for_end(&ends);
	if (!server_stop(s)) {
		leftovers_remove();
		_exit(status);
	}
	return status;
}

struct export_news {
	struct progress bar;
	char what[512];      /* the input whose bar that is */
};

static void cli_serve_on_progress(void *context, const char *what, uint64_t done_bytes, uint64_t total_bytes)
{
	struct export_news *n = context;
	if (strncmp(n->what, what, sizeof n->what - 1) != 0) {
		progress_stop(&n->bar);
		snprintf(n->what, sizeof n->what, "%s", what);
		progress_start(&n->bar, n->what);
	}
	progress_update(&n->bar, done_bytes, total_bytes);
}

static void on_failed(void *context, const char *reason)
{
	struct export_news *n = context;
	struct err e;
	progress_stop(&n->bar);
	err_set(&e, ERR_IO, "not in the report: %s", reason);
	cli_fail(&e, EXIT_INPUT);
}

/* Inputs that cannot be read are said, and listed in the report; it is for the others. */
static int export_pages(struct serve_command *c)
{
	struct err e;
	struct export_news news = {0};
	struct export_result made;
	struct export_options *o = &c->export;
	o->paths = c->o.paths;
	o->n_paths = c->o.n_paths;
	o->follow_links = c->o.follow_links;
	o->memory_bytes = c->o.memory_bytes;
	o->progress = cli_serve_on_progress;
	o->failed = on_failed;
	o->context = &news;
	int rc = export_report(o, &made, &e);
	progress_stop(&news.bar);
	if (rc < 0)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	printf("%s: %u input%s, %u answers, %.1f MB\n", o->out, made.inputs - made.failed, made.inputs - made.failed == 1 ? "" : "s", made.answers,
	       (double)made.bytes / 1e6);
	return EXIT_DONE;
}

static int cli_serve_run(int argc, char **argv)
{
	struct serve_command c = {.o.port = PORT};
	cli_parse(&argp, argc, argv, &c);
	if (c.export.force && !c.export.out)
		cli_usage("--force: only together with --export=OUT");
	if (c.export.steps && !c.export.out)
		cli_usage("--steps: only together with --export=OUT; pages of the server have a field for them");
	if (c.export.out && c.of_server)
		cli_usage("%s: not together with --export=OUT, which starts no server", c.of_server);
	if (!c.args.n)
		cli_usage("serve: an INPUT was expected: a trace or a directory");
	c.o.paths = (const char *const *)c.args.v;
	c.o.n_paths = (unsigned)c.args.n;
	c.o.hosts = c.hosts;
	int status = c.export.out ? export_pages(&c) : cli_serve(&c.o);
	mem_free(c.args.v);
	return status;
}

const struct command command_serve = {
	.name = "serve",
	.args = "INPUT-or-DIR...",
	.help = "the viewer, in a browser",
	.run = cli_serve_run,
};
