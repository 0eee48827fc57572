/* opscope COMMAND ...: finds the command and runs it. Under the name of a command ("pyprof-prof", a link) it is that command. */
#include "cli/cli.h"

#include "cli/share.h"
#include "io/leftovers.h"
#include "io/remote/remote.h"
#include "render/render.h"
#include "render/text_layout.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct command *find_command(const char *name)
{
	for (const struct command *const *c = command_registry; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

static const char *command_name(unsigned i)
{
	return command_registry[i]->name;
}

static int cli_main_fail_unknown(const char *name)
{
	unsigned n = 0;
	while (command_registry[n])
		n++;
	struct err e;
	const char *near = cli_nearest(name, command_name, n);
	if (report_find(str_from(name)))
		err_set(&e, ERR_USAGE, "no command '%s'; did you mean 'report %s'? (opscope --help lists them)", name, name);
	else if (near)
		err_set(&e, ERR_USAGE, "no command '%s'; did you mean '%s'? (opscope --help lists them)", name, near);
	else
		err_set(&e, ERR_USAGE, "no command and no file '%s' (opscope --help lists the commands)", name);
	return cli_fail(&e, EXIT_USAGE);
}

/* Columns for the names of each list. */
enum { COMMAND_COLUMNS = 36, INPUT_COLUMNS = 15, REPORT_COLUMNS = 18, FORMAT_COLUMNS = 8 };

/* In the width of the terminal. */
static void cli_main_put_text(const char *text)
{
	struct str rest = str_from(text), line;
	unsigned width = cli_terminal_width();
	while (text_wrap(&rest, width ? width : rest.n + 1, &line))
		printf(STR_FMT "\n", STR_ARG(line));
}

/* A name, and behind it what it is, folded into the width of the terminal, where there is one. `room`: columns for names; a longer one has a line
 * of its own. */
static void cli_main_put_item(const char *name, size_t room, const char *help)
{
	enum { LEAST = 20 }; /* columns: in a narrower place the help is not folded */
	unsigned width = cli_terminal_width();
	size_t at = room + 3;
	struct str rest = str_from(help), line;
	bool own_line = strlen(name) > room && width;
	printf("  %-*s", (int)room, name);
	for (bool first = true; width > at + LEAST && text_wrap(&rest, width - at, &line); first = false) {
		if (!first || own_line)
			printf("\n%*s", (int)at - 1, "");
		printf(" " STR_FMT, STR_ARG(line));
	}
	if (rest.n)
		printf(" " STR_FMT, STR_ARG(rest));
	putchar('\n');
}

static int print_help(void)
{
	puts("opscope tells where the GPU time of a deep-learning run went.\n\nUsage: opscope COMMAND ...\n   or: opscope [OPTION...] INPUT...    a first look, as opscope look\n");
	for (const struct command *const *c = command_registry; *c; c++) {
		char usage[80];
		snprintf(usage, sizeof usage, "%s %s", (*c)->name, (*c)->args);
		cli_main_put_item(usage, COMMAND_COLUMNS, (*c)->help);
	}
	cli_main_put_item("help [COMMAND]", COMMAND_COLUMNS, "this text, or that of a command");
	putchar('\n');
	cli_main_put_text("An INPUT is a file, recognised by its content, a directory of traces, or - for standard input:");
	for (const struct input *const *i = input_registry; *i; i++)
		cli_main_put_item((*i)->name, INPUT_COLUMNS, (*i)->help);
	puts("\nReports, for opscope report NAME INPUT:");
	for (const struct report *const *r = report_registry; *r; r++)
		cli_main_put_item((*r)->name, REPORT_COLUMNS, (*r)->title);
	puts("\nOutput formats, for --format:");
	for (const struct renderer *const *r = renderer_registry; *r; r++)
		cli_main_put_item((*r)->name, FORMAT_COLUMNS, (*r)->help);
	putchar('\n');
	cli_main_put_text("Exit status: 0 done, 1 the input could not be read, or lacks what was asked for, 2 wrong usage, 3 a finding that --fail-on names.");
	return EXIT_DONE;
}

static int help_for(const char *name)
{
	const struct command *c = find_command(name);
	if (!c)
		return cli_main_fail_unknown(name);
	char help[] = "--help";
	char *argv[] = {(char *)(uintptr_t)c->name, help, NULL};
	return c->run(2, argv);
}

/* The command that the program was called as; NULL = opscope itself. */
static const struct command *called_as(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return path ? find_command(slash ? slash + 1 : path) : NULL;
}

/* `opscope FILE`: whatever is there to be read, also where reading it will fail. */
static bool cli_main_is_input(const char *name)
{
	return strcmp(name, "-") == 0 || remote_is(name) || access(name, F_OK) == 0 || !discover_is_absent(errno);
}

static int cli_main_look(int argc, char **argv)
{
	char name[] = "look";
	argv[0] = name;
	return find_command(name)->run(argc, argv);
}

/* `opscope --width=80 FILE` is a first look. Options of a command go behind its name, which is the first word that is no option. */
static int options_first(int argc, char **argv)
{
	int at = 2;
	while (at < argc && argv[at][0] == '-' && argv[at][1])
		at++;
	if (at < argc && !cli_main_is_input(argv[at]) && find_command(argv[at])) {
		struct err e;
		err_set(&e, ERR_USAGE, "%s: options go behind the command: opscope %s ... %s", argv[1], argv[at], argv[1]);
		return cli_fail(&e, EXIT_USAGE);
	}
	return cli_main_look(argc, argv);
}

/* Help and lists go through stdio, argp's by its own exit: a full disk must not pass for success. */
static void finish_stdout(void)
{
	if (!cli_printed())
		_exit(EXIT_INPUT);
}

static void nothing(int signal)
{
}

/* What it stands for is an error of the write. Caught, not ignored: a program that is started has then what was there before us. */
static void only_an_error(int signal)
{
	struct sigaction now, quiet = {.sa_handler = nothing, .sa_flags = SA_RESTART};
	if (sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		sigaction(signal, &quiet, NULL);
}

int main(int argc, char **argv)
{
	atexit(finish_stdout);
	cli_share_begin(&argc, &argv);
	leftovers_end_on_signals();
	only_an_error(SIGPIPE); /* a closed pipe is seen as EPIPE, and is quiet */
	only_an_error(SIGXFSZ); /* a file size limit is an error like a full disk */
	const struct command *self = called_as(argc ? argv[0] : NULL);
	if (self) {
		argv[0] = (char *)(uintptr_t)self->name;
		return self->run(argc, argv);
	}
	if (argc < 2) {
		struct err e;
		err_set(&e, ERR_USAGE, "a command or an input was expected; opscope --help lists the commands");
		return cli_fail(&e, EXIT_USAGE);
	}
	const char *name = argv[1];
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("opscope " OPSCOPE_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return argc > 2 ? help_for(argv[2]) : print_help();
	const struct command *c = find_command(name);
	if (c)
		return c->run(argc - 1, argv + 1);
	if (name[0] == '-' && name[1])
		return options_first(argc, argv);
	return cli_main_is_input(name) ? cli_main_look(argc, argv) : cli_main_fail_unknown(name);
}
