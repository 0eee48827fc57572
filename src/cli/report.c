#include "cli/cli.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "query/per.h"
#include "render/render.h"
#include "render/text_layout.h"

#include <stdio.h>

enum { KEY_GROUP_BY = 0x200, KEY_COMPAT, KEY_TOP_LEVEL, KEY_FOLLOW, KEY_PER };

struct report_command {
	struct table_command c; /* first: cli_table_option takes this for it */
	int64_t follow_ns;      /* 0 = print once */
	bool has_per;
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "What to report:", 0},
	{"group-by", KEY_GROUP_BY, "WHAT", 0, "rows by WHAT, where the report has a choice (opscope report lists it); A,B where they combine", 0},
	{"top-level", KEY_TOP_LEVEL, NULL, 0, "only what no other event called, where the report has such rows", 0},
	{"per", KEY_PER, "total|step|call", 0, "sums as total, per step or per call (default: as text and HTML per step where nothing else was recorded, else total)", 0},
	{"compat", KEY_COMPAT, "TOOL", 0, "the numbers and names of a predecessor, its known bugs included", 0},
	{"follow", KEY_FOLLOW, "SECONDS", OPTION_ARG_OPTIONAL, "of a run that goes on: again every SECONDS (2) until it ends", 0},
	{0},
};

static error_t cli_report_parse(int key, char *arg, struct argp_state *state)
{
	struct report_command *r = state->input;
	struct table_command *c = &r->c;
	switch (key) {
	case KEY_FOLLOW:
		r->follow_ns = arg ? cli_seconds_ns("--follow", arg, false) : 2000000000;
		return 0;
	case KEY_GROUP_BY:
		c->trace.report.group_by = arg;
		return 0;
	case KEY_TOP_LEVEL:
		c->trace.report.top_level = true;
		return 0;
	case KEY_PER:
		r->has_per = true;
		c->trace.report.per = strcmp(arg, "step") == 0 ? REPORT_PER_STEP : strcmp(arg, "call") == 0 ? REPORT_PER_CALL : REPORT_PER_TOTAL;
		if (!c->trace.report.per && strcmp(arg, "total") != 0)
			cli_usage("--per=%s: total, step or call was expected", arg);
		return 0;
	case KEY_COMPAT:
		c->trace.report.compat = arg;
		return 0;
	default:
		return cli_table_option(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = cli_report_parse,
	.children = table_children,
	.args_doc = "NAME INPUT...\n",
	.doc = "Prints one report about a trace; without a name, lists the reports. `opscope report NAME --help` tells what a report "
	       "shows, its groupings and its columns.",
};

/* What a report offers: report_grouping or report_compat. */
typedef const char *report_words_fn(const struct report *r, unsigned i);

static void cli_report_put_words(struct table *t, unsigned col, const struct report *r, report_words_fn *word, const char *between)
{
	struct buf b = {0};
	for (unsigned i = 0; word(r, i); i++)
		buf_printf(&b, "%s%s", i ? between : "", word(r, i));
	if (b.n)
		table_set_str_copy(t, col, buf_view(&b));
	buf_release(&b);
}

static int put_report_table(const struct output_options *o)
{
	struct table t;
	table_init(&t, "reports", "Reports: opscope report NAME INPUT...");
	TABLE_COLUMN(&t, .id = "name", .title = "Name", .type = CELL_STR, .help = "what to type");
	TABLE_COLUMN(&t, .id = "title", .title = "What it shows", .type = CELL_STR, .help = "its heading");
	TABLE_COLUMN(&t, .id = "group_by", .title = "--group-by", .type = CELL_STR, .help = "choices, the first is the default; + = to be combined, with commas between");
	TABLE_COLUMN(&t, .id = "compat", .title = "--compat", .type = CELL_STR, .help = "predecessors it can reproduce");
	TABLE_COLUMN(&t, .id = "help", .title = "Help", .type = CELL_STR, .flags = COLUMN_DETAIL,
	             .help = "what question it answers and how to read it");
	TABLE_COLUMN(&t, .id = "question", .title = "Question", .type = CELL_STR, .help = "the question that it answers");
	for (const struct report *const *r = report_registry; *r; r++) {
		table_row(&t);
		table_set_str(&t, 0, str_from((*r)->name));
		table_set_str(&t, 1, str_from((*r)->title));
		cli_report_put_words(&t, 2, *r, report_grouping, report_combines(*r) ? " + " : ", ");
		cli_report_put_words(&t, 3, *r, report_compat, ", ");
		table_set_str(&t, 4, str_from((*r)->help));
		table_set_str(&t, 5, str_from(report_question[(*r)->asks]));
	}
	int status = cli_output(&t, o, "");
	table_release(&t);
	return status;
}

/* By question, none of it cut. */
static int list_reports(const struct output_options *o)
{
	bool plain = !o->path && !o->sort && !o->columns && !o->filter && !o->section && o->limit < 0;
	if (!plain || strcmp(cli_renderer(o)->name, "text") != 0)
		return put_report_table(o);
	const char *bold = cli_color(o) ? "\x1b[1m" : "", *end = *bold ? "\x1b[0m" : "";
	for (int q = 0; q < REPORT_N_QUESTIONS; q++) {
		printf("%s%s%s%s\n", q ? "\n" : "", bold, report_question[q], end);
		for (const struct report *const *r = report_registry; *r; r++)
			if ((int)(*r)->asks == q)
				printf("  %-18s %s\n", (*r)->name, (*r)->title);
	}
	puts("\nopscope report NAME INPUT... prints one; opscope report NAME --help tells what\n"
	     "it shows, its groupings and its columns. opscope INPUT is a first look, opscope\n"
	     "advise INPUT says what to do.");
	return EXIT_DONE;
}

/* Appends names of reports, or what else people type for them, and whose they are. */
struct report_words {
	const char **word, **of;
	unsigned n, cap, cap_of;
	struct arena arena;
};

static void cli_report_add_word(struct report_words *w, struct str word, const char *of)
{
	MEM_GROW(w->word, w->cap, w->n + 1);
	MEM_GROW(w->of, w->cap_of, w->n + 1);
	w->word[w->n] = arena_str(&w->arena, word).p;
	w->of[w->n++] = of;
}

/* What the user may have meant; NULL when nothing is near. */
static const char *report_meant(const char *typed)
{
	struct report_words w = {0};
	const char *found = NULL;
	for (const struct report *const *r = report_registry; *r; r++)
		cli_report_add_word(&w, str_from((*r)->name), (*r)->name);
	for (const struct report *const *r = report_registry; *r; r++) {
		struct str rest = str_from((*r)->also ? (*r)->also : ""), one;
		while (rest.n && str_split(&rest, ' ', &one))
			cli_report_add_word(&w, one, (*r)->name);
	}
	const char *near = NULL;
	for (unsigned i = 0; i < w.n && !near; i++)
		near = strcmp(w.word[i], typed) == 0 ? w.word[i] : NULL;
	near = near ? near : nearest_word(typed, w.word, w.n);
	for (unsigned i = 0; i < w.n && near && !found; i++)
		found = w.word[i] == near ? w.of[i] : NULL;
	mem_free(w.word);
	mem_free(w.of);
	arena_release(&w.arena);
	return found;
}

static const struct report *find_or_die(const char *name)
{
	const struct report *r = report_find(str_from(name));
	if (r)
		return r;
	const char *meant = report_meant(name);
	if (meant)
		cli_usage("no report '%s'; did you mean '%s'? (opscope report lists them)", name, meant);
	cli_usage("no report '%s' (opscope report lists them)", name);
}

/* Rows that are printed as they are made. */
struct cli_report_pieces {
	struct cli_stream stream;
	int rc;       /* of cli_stream_put: 0 = more are wanted */
	struct err e;
};

static void cli_report_put_piece(void *context, struct table *piece)
{
	struct cli_report_pieces *x = context;
	if (x->rc == 0)
		x->rc = cli_stream_put(&x->stream, piece, &x->e);
}

/* What report_run came to, of a report of which rows are printed already. */
static int cli_report_end_pieces(struct cli_report_pieces *x, int rc, struct table *t, const struct err *failed)
{
	struct err end;
	if (rc == 0) {
		cli_report_put_piece(x, t);
		table_release(t);
	} else {
		x->e = *failed;
		x->rc = rc;
	}
	if (cli_stream_end(&x->stream, x->rc >= 0, x->rc < 0 ? &end : &x->e) < 0)
		x->rc = -1;
	return x->rc >= 0 ? EXIT_DONE : cli_fail(&x->e, x->e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
}

int cli_report_print_one(const struct report *r, struct table_command *c, struct cli_args *inputs)
{
	int status = EXIT_DONE;
	c->trace.input.ignores = report_ignores(r, &c->trace.report);
	struct profile *p = cli_open_one(inputs, &c->trace, &status);
	if (!p)
		return status;
	struct table t;
	struct err e;
	struct cli_report_pieces pieces = {.stream.options = &c->output};
	const struct report_pieces to = {cli_report_put_piece, &pieces};
	c->output.report = c->trace.report.compat ? NULL : r;
	c->trace.report.row_limit = cli_row_limit(&c->output);
	c->trace.report.pieces = cli_can_stream(&c->output) ? &to : NULL;
	int rc = report_run(r, p, &c->trace.report, &t, &e);
	c->trace.report.pieces = NULL;
	if (pieces.stream.begun)
		status = cli_report_end_pieces(&pieces, rc, &t, &e);
	else if (rc == 0) {
		status = cli_output(&t, &c->output, p->input_path.p);
		table_release(&t);
	} else
		status = cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	profile_free(p);
	return status;
}

static int cli_report_print_report(const struct report *r, struct table_command *c)
{
	struct cli_args inputs = {c->args.v + 1, c->args.n - 1};
	struct trace_list l = {0};
	int status = EXIT_DONE;
	if (cli_discover(&inputs, &c->trace, &l, &status) == 0)
		status = cli_is_job(&l) ? cli_print_job(r, c, &l, NULL) : cli_report_print_one(r, c, &inputs);
	discover_release(&l);
	return status;
}

static void cli_report_put_choices(const char *option, const struct report *r, report_words_fn *word, const char *after)
{
	for (unsigned i = 0; word(r, i); i++)
		i ? printf("|%s", word(r, i)) : printf("  --%s=%s", option, word(r, i));
	if (word(r, 0))
		printf("%s\n", after);
}

static void put_wrapped(struct str text, int indent)
{
	enum { WIDTH = 79 };
	struct str line;
	for (int n = 0; text_wrap(&text, (size_t)(WIDTH - indent), &line); n++)
		printf("%*s" STR_FMT "\n", n ? indent : 0, "", STR_ARG(line));
}

static void put_column(const struct report *r, const struct section_entry *e)
{
	enum { INDENT = 24 };
	const struct column *c = &e->c.column;
	struct buf text = {0}, when = {0};
	section_put_when(r, e, &when);
	buf_printf(&text, "%s [%s] ", c->title, c->unit ? table_unit_name(c->unit) : table_type_name(c->type));
	if (when.n)
		buf_printf(&text, "(" STR_FMT ") ", STR_ARG(buf_view(&when)));
	buf_cstr(&text, c->help);
	printf("  %-*s", INDENT - 2, c->id);
	if (strlen(c->id) + 2 >= INDENT)
		printf("\n%*s", INDENT, "");
	put_wrapped(buf_view(&text), INDENT);
	buf_release(&text);
	buf_release(&when);
}

/* By section, in the order of the report. */
static void put_all_columns(const struct report *r)
{
	unsigned n;
	struct section_entry *list = section_entries(r, &n);
	for (unsigned i = 0; i < n; i++) {
		if (!i || list[i].section != list[i - 1].section)
			printf("\nColumns%s%s:\n", list[i].section ? " of section " : "", list[i].section ? list[i].section : "");
		put_column(r, &list[i]);
	}
	mem_free(list);
}

static int print_report_help(const struct report *r)
{
	printf("Usage: opscope report %s INPUT... [OPTION...]\n%s\n\n", r->name, r->title);
	put_wrapped(str_from(r->help), 0);
	printf("\nOptions (opscope report --help lists those that all reports take):\n");
	cli_report_put_choices("group-by", r, report_grouping, report_combines(r) ? "  (one or more, separated by commas)" : "  (the first unless told otherwise)");
	cli_report_put_choices("compat", r, report_compat, "  the columns and numbers of a predecessor instead");
	if (r->takes & REPORT_DEVICE)
		printf("  --device=N  only GPU N, or cpu\n");
	if (r->takes & REPORT_TOP_LEVEL)
		printf("  --top-level  only what no other event called\n");
	if (report_sums(r))
		printf("  --per=total|step|call  sums in all, per step or per call\n");
	printf("  --steps=A..B  only steps A to B\n");
	put_all_columns(r);
	return EXIT_DONE;
}

/* The report of `report NAME ... --help`; NULL = no help, or help about all, is asked for. */
static const struct report *help_asked(int argc, char **argv)
{
	const struct report *r = NULL;
	bool help = false;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
		if (!r && argv[i][0] != '-')
			r = report_find(str_from(argv[i]));
	}
	return help ? r : NULL;
}

struct follow_work {
	const struct report *report;
	struct table_command *c;
};

static int print_again(void *context)
{
	struct follow_work *w = context;
	struct table_command c = *w->c; /* printing changes it */
	return cli_report_print_report(w->report, &c);
}

static int cli_report_run(int argc, char **argv)
{
	struct report_command rc = {0};
	struct table_command *c = &rc.c;
	const struct report *help = help_asked(argc, argv);
	if (help)
		return print_report_help(help);
	cli_parse(&argp, argc, argv, &rc);
	cli_refuse_overwrite(c->output.path, &c->args);
	int status;
	if (!c->args.n) {
		status = list_reports(&c->output);
	} else {
		const struct report *r = find_or_die(c->args.v[0]);
		struct err e;
		if (report_check(r, &c->trace.report, &e) < 0) /* before a long trace is read */
			cli_usage("%s", e.msg);
		if (c->args.n < 2)
			cli_usage("report %s: an INPUT was expected: a trace, a directory, or - for standard input", r->name);
		if (!rc.has_per && !c->trace.report.compat && cli_renderer(&c->output)->for_people)
			c->trace.report.per = REPORT_PER_STEP_IF_RIGHT;
		bool screen = !c->output.path, text = screen && strcmp(cli_renderer(&c->output)->name, "text") == 0;
		status = rc.follow_ns ? cli_follow(c->args.v + 1, c->args.n - 1, rc.follow_ns, screen, text, print_again, &(struct follow_work){r, c}) : cli_report_print_report(r, c);
	}
	mem_free(c->args.v);
	trace_options_release(&c->trace);
	return status;
}

const struct command command_report = {
	.name = "report",
	.args = "[NAME INPUT...]",
	.help = "one table about a trace; alone, lists the reports",
	.run = cli_report_run,
};
