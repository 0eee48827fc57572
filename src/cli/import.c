#include "cli/cli.h"

#include <limits.h>

#include "analysis/analysis.h"
#include "base/mem.h"
#include "detect/detect.h"
#include "report/catalog.h"
#include "store/save.h"

struct import_command {
	struct cli_args inputs;
	struct trace_options trace;
	const char *path;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct import_command *c = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->trace;
		return 0;
	case 'o':
		c->path = arg;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&c->inputs, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{NULL, 'o', "FILE", 0, "the file to write, by custom named NAME.opscope", 0},
	{0},
};
static const struct argp_child children[] = {{&trace_argp, 0, NULL, 1}, {0}};
static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "INPUT... -o FILE",
	.doc = "Reads and analyses a trace once and keeps the result in a file that opens many times faster: an INPUT like "
	       "any other. It is an SQLite database, with every report, and the findings of `advise`, as tables of plain rows "
	       "beside the data.",
};

/* What describes the report tables, themselves tables of the file. */
struct about {
	struct table columns, notes, missing;
};

static void about_init(struct about *a)
{
	static const char *const columns[] = {"table_name", "id", "title", "type", "unit", "help"};
	table_init(&a->columns, "report_columns", "Columns of the report tables");
	for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
		TABLE_COLUMN(&a->columns, .id = columns[i], .title = columns[i], .type = CELL_STR);
	table_init(&a->notes, "report_notes", "Notes under the report tables");
	TABLE_COLUMN(&a->notes, .id = "table_name", .title = "Table", .type = CELL_STR);
	TABLE_COLUMN(&a->notes, .id = "note", .title = "Note", .type = CELL_STR);
	table_init(&a->missing, "report_missing", "Reports for which the trace has no data");
	TABLE_COLUMN(&a->missing, .id = "name", .title = "Name", .type = CELL_STR);
	TABLE_COLUMN(&a->missing, .id = "reason", .title = "Reason", .type = CELL_STR);
}

static int about_save(struct about *a, struct save *s, struct err *e)
{
	struct table *const tables[] = {&a->columns, &a->notes, &a->missing};
	int rc = 0;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		rc = rc ? rc : save_table(s, tables[i]->name, tables[i], e);
		table_release(tables[i]);
	}
	return rc;
}

static void about_table(struct about *a, const char *name, const struct table *t)
{
	for (unsigned c = 0; c < t->n_columns; c++) {
		const struct column *col = &t->data[c].col;
		const char *const texts[] = {name,      col->id, col->title, table_type_name(col->type), table_unit_name(col->unit),
		                             col->help};
		table_row(&a->columns);
		for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++)
			table_set_str_copy(&a->columns, i, str_from(texts[i]));
	}
	for (unsigned i = 0; i < t->n_notes; i++) {
		table_row(&a->notes);
		table_set_str_copy(&a->notes, 0, str_from(name));
		table_set_str_copy(&a->notes, 1, t->notes[i]);
	}
}

/* A report with a row for each event is no aggregation: it would make the file as large as its input again. */
static int run_report(const struct report *r, struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	if (report_is_per_event(r, args->group_by))
		return err_set(e, ERR_DATA, "one row an event: made when asked for (opscope report %s, opscope sql)", r->name);
	return report_run(r, p, args, t, e);
}

static int save_report(struct save *s, struct profile *p, const struct catalog_entry *c, struct about *a, struct err *e)
{
	struct report_args args = {.group_by = c->group_by};
	struct table t;
	if (run_report(c->report, p, &args, &t, e)) {
		if (e->code != ERR_DATA)
			return -1;
		table_row(&a->missing);
		table_set_str_copy(&a->missing, 0, str_from(catalog_name(&a->missing.arena, "report", c->name, NULL)));
		table_set_str_copy(&a->missing, 1, str_from(e->msg));
		return 0;
	}
	int rc = 0;
	for (struct table *part = &t; !rc && part; part = part->next) {
		const char *name = catalog_name(&a->columns.arena, "report", c->name, part == &t ? NULL : part->name);
		rc = save_table(s, name, part, e);
		about_table(a, name, part);
	}
	table_release(&t);
	return rc;
}

static int save_findings(struct save *s, struct profile *p, struct about *a, struct err *e)
{
	struct findings f;
	struct table t;
	if (detect_all(p, &f, e))
		return -1;
	findings_table(&f, &t);
	findings_release(&f);
	int rc = save_table(s, "report_findings", &t, e);
	about_table(a, "report_findings", &t);
	table_release(&t);
	return rc;
}

static int save_reports(struct save *s, struct profile *p, struct err *e)
{
	struct catalog catalog;
	struct about about;
	catalog_init(&catalog);
	about_init(&about);
	int rc = 0;
	for (unsigned i = 0; !rc && i < catalog.n; i++)
		rc = save_report(s, p, &catalog.v[i], &about, e);
	if (!rc)
		rc = save_findings(s, p, &about, e);
	struct err ignored;
	if (about_save(&about, s, rc ? &ignored : e))
		rc = -1;
	catalog_release(&catalog);
	return rc;
}

static int save_all(struct profile *p, const char *path, struct err *e)
{
	if (analysis_run(p, UINT_MAX, e))
		return -1;
	struct save *s = save_begin(path, profile_bytes(p), e);
	if (!s)
		return -1;
	if (save_profile(s, p, e) || save_reports(s, p, e)) {
		save_abort(s);
		return -1;
	}
	return save_commit(s, e);
}

static int run(int argc, char **argv)
{
	struct import_command c = {0};
	cli_parse(&argp, argc, argv, &c);
	if (!c.inputs.n)
		cli_usage("import: an INPUT was expected: a trace, a directory, or - for standard input");
	if (!c.path)
		cli_usage("import: -o FILE was expected: where to write");
	if (strcmp(c.path, "-") == 0)
		cli_usage("import: -o -: a file was expected, a .opscope file cannot go to standard output");
	cli_refuse_overwrite(c.path, &c.inputs);
	if (c.trace.report.has_steps || c.trace.report.device || c.trace.report.key_op)
		cli_usage("import: the whole trace is kept; choose steps, their key op and devices when reporting from %s", c.path);
	int status = EXIT_DONE;
	struct profile *p = cli_open_one(&c.inputs, &c.trace, &status);
	struct err e;
	if (p && save_all(p, c.path, &e))
		status = cli_fail(&e, EXIT_INPUT);
	profile_free(p);
	mem_free(c.inputs.v);
	return status;
}

const struct command command_import = {
	.name = "import",
	.args = "INPUT... -o FILE.opscope",
	.help = "parse and analyse once; the result is an INPUT that opens many times faster",
	.run = run,
};
