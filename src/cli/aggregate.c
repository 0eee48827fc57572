#include "cli/cli.h"

#include "base/mem.h"
#include "base/now.h"
#include "io/remote/remote.h"
#include "query/aggregate.h"

enum { KEY_NAME = 0x300, KEY_LIST, KEY_DELETE };

struct aggregate_command {
	struct table_command table;
	const char *name, *delete;
	bool list;
};

static error_t cli_aggregate_parse(int key, char *arg, struct argp_state *state)
{
	struct aggregate_command *c = state->input;
	switch (key) {
	case KEY_NAME: c->name = arg; return 0;
	case KEY_LIST: c->list = true; return 0;
	case KEY_DELETE: c->delete = arg; return 0;
	default:
		return cli_table_option(key, arg, state);
	}
}

static const struct argp_option options[] = {
	{"name", KEY_NAME, "TEXT", 0, "what to call it", 0},
	{"list", KEY_LIST, NULL, 0, "only list the aggregations of the file", 0},
	{"delete", KEY_DELETE, "N", 0, "take away aggregation N; the next one uses its room", 0},
	{0},
};
static const struct argp argp = {
	.options = options,
	.parser = cli_aggregate_parse,
	.children = table_children,
	.args_doc = "FILE.opscope",
	.doc = "Makes all reports and findings again, by another key op (--key-op) or of some steps (--steps), and keeps them in the file beside "
	       "those that it has: another aggregation. The original trace is not needed. Any report shows one with --aggregation=N. "
	       "Prints the list of aggregations.",
};

/* The file's own name, and a file of ours: nothing else can be added to. */
static const char *check_file(const struct aggregate_command *c, int *status)
{
	struct err e = {0};
	if (c->table.args.n != 1)
		cli_usage("aggregate: one file made by `opscope import` was expected");
	const char *path = c->table.args.v[0];
	const bool local = strcmp(path, "-") != 0 && !remote_is(path);
	const struct input *is = local ? input_recognise(path, &e) : NULL;
	if (is && strcmp(is->name, "opscope") == 0)
		return path;
	if (remote_is(path))
		err_set(&e, ERR_USAGE, "%s: nothing is written to an address: copy the file here", path);
	if (!e.code)
		err_set(&e, ERR_FORMAT, "%s: no file made by opscope: `opscope import %s -o FILE.opscope` makes one", path, path);
	*status = cli_fail(&e, EXIT_INPUT);
	return NULL;
}

static int print_list(const char *path, const struct aggregate_command *c)
{
	int status = EXIT_DONE;
	struct table t;
	struct err e;
	struct profile *p = cli_read(path, &c->table.trace, &status);
	if (!p)
		return status;
	if (report_run(report_find(STR("aggregations")), p, &(struct report_args){0}, &t, &e) == 0) {
		struct output_options o = c->table.output;
		o.section = o.section ? o.section : "aggregations";
		status = cli_output(&t, &o, p->input_path.p);
		table_release(&t);
	} else {
		status = cli_fail(&e, EXIT_INPUT);
	}
	profile_free(p);
	return status;
}

static void tell_same(const char *path, const struct aggregation *same)
{
	struct buf b = {0};
	struct err e;
	aggregate_describe(same, &b);
	err_set(&e, ERR_NONE, "%s: this is aggregation " STR_FMT ": nothing was added", path, STR_ARG(buf_view(&b)));
	cli_fail(&e, EXIT_DONE);
	buf_release(&b);
}

static int change(const char *path, const struct aggregate_command *c)
{
	int status = EXIT_DONE;
	int64_t id = 0;
	char now[NOW_BYTES], rules[CLI_RULES_BYTES];
	struct err e;
	if (c->delete && (!str_to_i64(str_from(c->delete), &id) || id <= 0))
		cli_usage("aggregate: --delete=%s: the number of an aggregation was expected", c->delete);
	struct profile *p = cli_read(path, &c->table.trace, &status);
	if (!p)
		return status;
	struct aggregate_spec spec = {.name = str_from(c->name ? c->name : ""), .created = now_text(now), .args = c->table.trace.report,
	                              .rules = cli_rules(&c->table.trace, true, rules)};
	const struct aggregation *same = NULL;
	int rc = c->delete ? aggregate_delete(p, path, id, &e) : aggregate_once(p, path, &spec, &same, NULL, &e);
	if (same)
		tell_same(path, same);
	profile_free(p);
	return rc ? cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT) : EXIT_DONE;
}

static int cli_aggregate_run(int argc, char **argv)
{
	struct aggregate_command c = {0};
	cli_parse(&argp, argc, argv, &c);
	const struct report_args *a = &c.table.trace.report;
	if (a->device)
		cli_usage("aggregate: --device is for reports: this is always of all devices");
	if (a->aggregation)
		cli_usage("aggregate: --aggregation is for reports; choose with --key-op and --steps");
	if ((c.delete || c.list) && (a->has_steps || a->key_op || c.name || (c.delete && c.list)))
		cli_usage("aggregate: --%s stands alone", c.delete ? "delete" : "list");
	cli_refuse_overwrite(c.table.output.path, &c.table.args);
	int status = EXIT_DONE;
	const char *path = check_file(&c, &status);
	if (path && !c.list)
		status = change(path, &c);
	if (path && status == EXIT_DONE)
		status = print_list(path, &c);
	mem_free(c.table.args.v);
	trace_options_release(&c.table.trace);
	return status;
}

const struct command command_aggregate = {
	.name = "aggregate",
	.args = "FILE.opscope",
	.help = "add all reports of other steps, or by another key op, to a file made by import",
	.run = cli_aggregate_run,
};
