#include "cli/cli.h"

#include "base/mem.h"
#include "query/sql.h"

static const char doc[] =
	"Answers a SQL query (SQLite's dialect) over the events of a trace and over every report.\v"
	"SELECT * FROM opscope_tables lists the tables: those of the store (span, gpu_op, ...), the views ops and "
	"kernels_raw, every report with its sections, and findings. SELECT * FROM opscope_columns explains their columns; "
	"PRAGMA table_info(NAME) lists those of any table. References are row numbers: JOIN span s ON s.rowid = gpu_op.op. "
	"arg(args, 'Input Dims') gives an argument of an event.";

static int sql_put(void *stream, struct table *piece, struct err *e)
{
	return cli_stream_put(stream, piece, e);
}

/* Piece by piece: a result may be longer than the memory. */
static int query_pieces(struct sql *s, const struct table_command *c, const char *text)
{
	struct err e = {0}, end;
	struct cli_stream stream = {.options = &c->output};
	int rc = sql_run_pieces(s, str_from(text), sql_put, &stream, &e);
	if (cli_stream_end(&stream, rc == 0, rc ? &end : &e) < 0)
		rc = -1;
	return rc == 0 ? EXIT_DONE : cli_fail(&e, e.code == ERR_NOMEM || e.code == ERR_IO ? EXIT_INPUT : EXIT_USAGE);
}

static int query(struct profile *p, const struct table_command *c, const char *text)
{
	struct err e;
	struct table t;
	struct sql *s = sql_open(p, &c->trace.report, &e);
	if (!s)
		return cli_fail(&e, EXIT_INPUT);
	int status;
	if (cli_can_stream(&c->output)) {
		status = query_pieces(s, c, text);
	} else if (sql_run(s, str_from(text), &t, &e) == 0) {
		status = cli_output(&t, &c->output, p->input_path.p);
		table_release(&t);
	} else {
		status = cli_fail(&e, e.code == ERR_NOMEM ? EXIT_INPUT : EXIT_USAGE);
	}
	sql_close(s);
	return status;
}

static int cli_sql_run(int argc, char **argv)
{
	struct table_command c = {0};
	cli_parse_table("INPUT... \"SELECT ...\"", doc, argc, argv, &c);
	if (c.args.n < 2)
		cli_usage("sql: an INPUT and a query were expected: opscope sql INPUT \"SELECT ...\"");
	int status = EXIT_DONE;
	struct cli_args inputs = {c.args.v, c.args.n - 1};
	struct profile *p = cli_open_one(&inputs, &c.trace, &status);
	if (p)
		status = query(p, &c, c.args.v[c.args.n - 1]);
	profile_free(p);
	mem_free(c.args.v);
	trace_options_release(&c.trace);
	return status;
}

const struct command command_sql = {
	.name = "sql",
	.args = "INPUT... \"SELECT ...\"",
	.help = "SQL over the events and over every report",
	.run = cli_sql_run,
};
