/* opscope export FORMAT INPUT -o FILE */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/mem.h"
#include "export/export.h"
#include "io/atomic.h"
#include "query/job_report.h"

#include <ctype.h>
#include <unistd.h>

enum { KEY_GZIP = 0x200, KEY_OF_FORMAT = 0x400 };

struct export_command {
	const struct export_format *format;  /* whose options are among those of the command line; NULL = none was named */
	struct cli_args args;
	struct trace_options trace;
	const char *path;
	const char *value[EXPORT_OPTIONS_MAX];
	bool gzip;
};

static const struct argp_option general[] = {
	{NULL, 0, NULL, 0, "Where to:", 0},
	{NULL, 'o', "FILE", 0, "write to FILE, as gzip when it ends in .gz (default: standard output)", 0},
	{"gzip", KEY_GZIP, NULL, 0, "gzip whatever the name", 0},
	{0},
};

static error_t cli_export_parse(int key, char *arg, struct argp_state *state)
{
	struct export_command *c = state->input;
	struct err e;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->trace;
		return 0;
	case 'o':
		c->path = cli_output_path(arg);
		return 0;
	case KEY_GZIP:
		c->gzip = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&c->args, arg);
		return 0;
	default:
		if (key < KEY_OF_FORMAT || key >= KEY_OF_FORMAT + EXPORT_OPTIONS_MAX)
			return ARGP_ERR_UNKNOWN;
		c->value[key - KEY_OF_FORMAT] = arg ? arg : "";
		if (arg && export_check_value(c->format, &c->format->options[key - KEY_OF_FORMAT], arg, &e) < 0)
			cli_usage("%s", e.msg);
		return 0;
	}
}

/* The first word that is no option and no option's value, as far as it is a format: its options are to be known before the line is
 * parsed. */
static const struct export_format *format_named(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct export_format *f = strcmp(argv[i - 1], "-o") == 0 ? NULL : export_find(str_from(argv[i]));
		if (f)
			return f;
	}
	return NULL;
}

/* The options of the command and of the format, with a heading each; the texts go into *a. */
static void cli_export_list_options(const struct export_format *f, struct argp_option *list, struct arena *a)
{
	unsigned n = 0, k = 0;
	if (f && f->options) {
		struct buf help = {0};
		list[n++] = (struct argp_option){.doc = arena_printf(a, "Of the format %s:", f->name).p};
		for (; f->options[k].name; k++) {
			const struct export_option *o = &f->options[k];
			buf_clear(&help);
			export_help(o, &help);
			list[n++] = (struct argp_option){.name = o->name, .key = KEY_OF_FORMAT + (int)k, .arg = o->arg, .doc = arena_str(a, buf_view(&help)).p};
		}
		buf_release(&help);
	}
	for (k = 0; general[k].name || general[k].key || general[k].doc; k++)
		list[n++] = general[k];
	list[n] = (struct argp_option){0};
}

static void parse_line(struct export_command *c, int argc, char **argv)
{
	static const struct argp_child children[] = {{&trace_argp, 0, NULL, 1}, {0}};
	struct argp_option list[EXPORT_OPTIONS_MAX + sizeof general / sizeof *general + 1];
	struct arena texts = {0};
	struct buf doc = {0};
	c->format = format_named(argc, argv);
	cli_export_list_options(c->format, list, &texts);
	if (c->format) {
		buf_printf(&doc, "%s. %s", c->format->title, c->format->help);
		doc.p[0] = (char)toupper((unsigned char)doc.p[0]);
	}
	if (!c->format)
		buf_cstr(&doc, "Writes a trace as a file that other programs read; without a format, lists the formats. `opscope export FORMAT "
		               "--help` tells what a format holds, and its options. A file appears whole or not at all.");
	buf_char(&doc, 0);
	const struct argp argp = {.options = list, .parser = cli_export_parse, .children = children, .args_doc = "FORMAT INPUT [-o FILE]\n", .doc = doc.p};
	cli_parse(&argp, argc, argv, c);
	buf_release(&doc);
	arena_release(&texts);
}

static const char *format_name(unsigned i)
{
	return export_registry[i]->name;
}

static void cli_export_fail_unknown(const char *name)
{
	struct buf list = {0};
	unsigned n = 0;
	for (; export_registry[n]; n++)
		buf_printf(&list, "%s%s", n ? ", " : "", export_registry[n]->name);
	const char *near = cli_nearest(name, format_name, n);
	cli_usage("export: no format '%s'%s%s%shere are: " STR_FMT, name, near ? ", did you mean '" : "", near ? near : "",
	          near ? "'? T" : "; t", STR_ARG(buf_view(&list)));
}

static int list_formats(void)
{
	struct table t;
	table_init(&t, "exports", "Formats: opscope export FORMAT INPUT -o FILE");
	TABLE_COLUMN(&t, .id = "name", .title = "Name", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "what to type");
	TABLE_COLUMN(&t, .id = "title", .title = "What it is", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "what the file is");
	TABLE_COLUMN(&t, .id = "options", .title = "Options", .type = CELL_STR, .help = "options of its own");
	struct buf options = {0};
	for (const struct export_format *const *f = export_registry; *f; f++) {
		buf_clear(&options);
		for (const struct export_option *o = (*f)->options; o && o->name; o++)
			buf_printf(&options, "%s--%s", options.n ? " " : "", o->name);
		table_row(&t);
		table_set_str(&t, 0, str_from((*f)->name));
		table_set_str(&t, 1, str_from((*f)->title));
		if (options.n)
			table_set_str_copy(&t, 2, buf_view(&options));
	}
	int status = cli_output(&t, &(struct output_options){.limit = 0}, "");
	buf_release(&options);
	table_release(&t);
	return status;
}

/* What is exported: a recording, or the ranks of a job. */
struct export_what {
	struct profile *p;             /* NULL = a job */
	const struct trace_list *ranks;
};

static int cli_export_write_job(const struct export_command *c, const struct trace_list *ranks, struct sink *s, struct diags *notes, struct err *e)
{
	for (const struct export_option *o = c->format->options; o && o->name; o++)
		if (c->value[o - c->format->options])
			return err_set(e, ERR_USAGE, "--%s is of one recording, and this is a job of several: --rank=N chooses one", o->name);
	struct trace_options look = c->trace;
	look.input.as_written = false;
	struct cli_job first = {ranks, &look}, second = {ranks, &c->trace};
	struct job_inputs look_in, in;
	cli_job_inputs(&first, &look_in);
	cli_job_inputs(&second, &in);
	const struct export_ranks x = {&look_in, &in, &c->trace.report, s, notes};
	return c->format->write_job(&x, e);
}

/* The format's text into `fd`. */
static int cli_export_write_to(const struct export_command *c, const struct export_what *what, int fd, const char *name, struct diags *notes, struct err *e)
{
	struct sink s;
	sink_init(&s, fd, c->gzip);
	int rc = what->p ? export_run(c->format, what->p, &c->trace.report, c->value, &s, notes, e) : cli_export_write_job(c, what->ranks, &s, notes, e);
	if (sink_finish(&s) < 0 && rc == 0)
		rc = err_set(e, ERR_IO, "%s: cannot write: %s", name, strerror(s.error));
	return rc;
}

static int cli_export_write_file(const struct export_command *c, const struct export_what *what, struct diags *notes, struct err *e)
{
	struct atomic_file f;
	if (!c->path || cli_is_stdout(c->path))
		return cli_export_write_to(c, what, STDOUT_FILENO, "standard output", notes, e);
	if (atomic_begin_any(&f, c->path, e))
		return -1;
	return cli_export_write_to(c, what, f.fd, c->path, notes, e) < 0 ? atomic_abort(&f) : atomic_commit(&f, e);
}

static void cli_export_print_notes(const struct diags *notes)
{
	for (unsigned i = 0; i < notes->n; i++) {
		struct err e;
		err_set(&e, ERR_NONE, STR_FMT, STR_ARG(notes->entry[i].message));
		cli_fail(&e, 0);
	}
}

static int cli_export_write(struct export_command *c, const struct export_what *what)
{
	struct err e;
	struct diags notes = {0};
	int status = EXIT_DONE;
	if (cli_export_write_file(c, what, &notes, &e) < 0)
		status = cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	else
		cli_export_print_notes(&notes);
	diags_release(&notes);
	return status;
}

static int cli_export_one(struct export_command *c, const struct cli_args *inputs)
{
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(inputs, &c->trace, &status);
	if (p)
		status = cli_export_write(c, &(struct export_what){.p = p});
	profile_free(p);
	return status;
}

static int cli_export_input(struct export_command *c)
{
	int status = EXIT_DONE;
	struct trace_list l = {0};
	struct cli_args inputs = {c->args.v + 1, c->args.n - 1};
	c->trace.input.as_written = c->format->as_written;
	if (!c->format->write_job)
		return cli_export_one(c, &inputs);
	if (cli_discover(&inputs, &c->trace, &l, &status) == 0)
		status = cli_is_job(&l) && !cli_is_job_file(&l) ? cli_export_write(c, &(struct export_what){.ranks = &l}) : cli_export_one(c, &inputs);
	discover_release(&l);
	return status;
}

static void check_line(struct export_command *c)
{
	if (!export_find(str_from(c->args.v[0])))
		cli_export_fail_unknown(c->args.v[0]);
	if (export_find(str_from(c->args.v[0])) != c->format)
		cli_usage("export: the FORMAT was expected first: opscope export FORMAT INPUT -o FILE");
	if (c->args.n < 2)
		cli_usage("export %s: an INPUT was expected: a trace, a directory, or - for standard input", c->format->name);
	struct cli_args inputs = {c->args.v + 1, c->args.n - 1};
	cli_refuse_overwrite(c->path, &inputs);
	c->gzip |= c->path && str_ends(str_from(c->path), STR(".gz"));
	bool to_terminal = !c->path || cli_is_stdout(c->path);
	if (to_terminal && (c->gzip || (c->format->takes & EXPORT_BINARY)) && isatty(STDOUT_FILENO))
		cli_usage("export %s: a terminal does not show this: give -o FILE", c->format->name);
}

static int cli_export_run(int argc, char **argv)
{
	struct export_command c = {0};
	parse_line(&c, argc, argv);
	int status;
	if (!c.args.n) {
		status = list_formats();
	} else {
		check_line(&c);
		status = cli_export_input(&c);
	}
	mem_free(c.args.v);
	trace_options_release(&c.trace);
	return status;
}

const struct command command_export = {
	.name = "export",
	.args = "[FORMAT INPUT -o FILE]",
	.help = "a file for other programs; alone, lists the formats",
	.run = cli_export_run,
};
