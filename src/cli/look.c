#include "cli/cli.h"

#include "analysis/ranks/rank.h"
#include "analysis/ranks/rank_place.h"
#include "analysis/ranks/rank_workers.h"
#include "base/mem.h"
#include "query/advice.h"

enum { FINDINGS_SHOWN = 3 };

/* The first findings that stand by themselves, and how many more there are. The first note says how short a step can become. */
static void cli_look_keep_first(struct table *t, const char *path)
{
	uint8_t *keep = NEW_ARRAY(t->n_rows, uint8_t);
	int part_of = table_find_column(t, STR("part_of"));
	size_t shown = 0, more = 0;
	for (size_t i = 0; i < t->n_rows; i++) {
		bool part = part_of >= 0 && t->data[part_of].set[i];
		keep[i] = !part && shown < FINDINGS_SHOWN;
		shown += keep[i];
		more += !keep[i];
	}
	table_keep(t, keep);
	mem_free(keep);
	if (!more)
		return;
	t->n_notes = t->n_notes > 0;
	t->warnings = 0;
	table_note(t, "%zu more finding%s, and what could not be looked for: opscope advise %s", more, more == 1 ? "" : "s", path);
}

/* Behind the overview's own sections; the one that has a row for each step is told on request alone. */
static void cli_look_append(struct table *overview, struct table *findings)
{
	struct table **end = &overview->next;
	for (; *end; end = &(*end)->next)
		(*end)->folded |= strcmp((*end)->name, "steps") == 0;
	*end = findings;
}

/* Both tables as one answer; where there is no overview, why, under the findings. `path` is for further commands: an .opscope file states that of its trace. */
static int print_look(struct profile *p, struct table_command *c, const char *path)
{
	struct table overview, *findings = NEW(struct table);
	struct err e, why;
	struct report_args args = c->trace.report;
	args.brief = true;
	bool shown = report_run(report_find(STR("overview")), p, &args, &overview, &why) == 0;
	if ((!shown && why.code == ERR_USAGE) || advice_table(p, &args, findings, &e) < 0) {
		if (shown)
			table_release(&overview);
		mem_free(findings);
		const struct err *first = shown ? &e : &why;
		return cli_fail(first, first->code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	}
	cli_look_keep_first(findings, path);
	if (!shown)
		table_note(findings, "no overview: %s", why.msg);
	else
		cli_look_append(&overview, findings);
	unsigned ranks = rank_count(p);
	if (rank_workers_count(p))
		table_note(findings, "this is a timeline of %u workers: `opscope report slowdown %s` says what slow ones cost, `opscope report pipeline %s` what the stages do", ranks, path,
		           path);
	else if (rank_place_of(p).is_merged)
		table_note(findings, "ranks of a job were merged into this trace, for viewers: steps, shares and findings are of all of them at once; the recordings of the ranks tell them apart");
	if (!rank_workers_count(p) && ranks > 1)
		table_note(findings, "%u GPUs ran collectives, each a rank of a job: `opscope report ranks %s` says how much of these is waiting", ranks, path);
	int status = cli_output(shown ? &overview : findings, &c->output, p->input_path.p);
	table_release(shown ? &overview : findings);
	if (!shown)
		mem_free(findings);
	return status;
}

/* Files that are no recordings have a report of their own for this. NULL = they are recordings. */
static const struct report *cli_look_own(const struct trace_list *l)
{
	struct err e;
	const struct input *i = l->n && !str_eqc(l->v[0].path, "-") ? input_recognise(l->v[0].path.p, &e) : NULL;
	return i && i->job_look ? report_find(str_from(i->job_look)) : NULL;
}

static int cli_look_run(int argc, char **argv)
{
	struct table_command c = {0};
	struct trace_list l = {0};
	int status = EXIT_DONE;
	cli_parse_table("INPUT...",
	                "A first look at a trace: where the time of its steps went, and the three first findings; at a job of many ranks: what each rank did, and who "
	                "waited. `opscope INPUT` is the same.", argc, argv, &c);
	if (!c.args.n)
		cli_usage("look: an INPUT was expected: a trace, a directory, or - for standard input");
	bool found = cli_discover(&c.args, &c.trace, &l, &status) == 0;
	const struct report *own = found ? cli_look_own(&l) : NULL;
	if (own && own->run && l.n == 1) {
		status = cli_report_print_one(own, &c, &c.args);
	} else if (own && (l.n == 1 || cli_is_job(&l))) {
		status = cli_print_job(own, &c, &l, NULL);
	} else if (found && cli_is_job(&l)) {
		status = cli_print_job(report_find(STR("ranks")), &c, &l, "`opscope advise`: what to do about it. `opscope report stragglers`: why a rank came late. --rank=N: a first look at one rank");
	} else if (found && l.n > 1) {
		status = cli_list_traces(&l, "Several traces: give the path of one, or choose it by --run, --worker, --span or --rank.", &c.output, c.args.v[0]);
	} else if (found) {
		struct profile *p = cli_read(l.v[0].path.p, &c.trace, &status);
		if (p)
			status = print_look(p, &c, l.v[0].path.p);
		profile_free(p);
	}
	discover_release(&l);
	mem_free(c.args.v);
	trace_options_release(&c.trace);
	return status;
}

const struct command command_look = {
	.name = "look",
	.args = "INPUT...",
	.help = "a first look: where the time went, and three findings",
	.run = cli_look_run,
};
