#include "cli/cli.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/gate_ci.h"
#include "cli/side.h"
#include "io/atomic.h"
#include "query/diff.h"
#include "query/diff_job.h"
#include "query/gate.h"
#include "render/render.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GATE_KEY_BASELINE = 0x200, GATE_KEY_OP, GATE_KEY_KEY, GATE_KEY_ALARMS, GATE_KEY_THRESHOLD, GATE_KEY_AGAINST, GATE_KEY_JUNIT, GATE_KEY_GITHUB, GATE_KEY_ANCHOR };
enum { GATE_FILE_BYTES = 16 << 20 };

struct gate_command {
	struct table_command c;       /* first: cli_table_option takes this for it; args: learn or check, and the runs */
	struct gate_ask ask;
	const char *baseline, *against, *junit, *out;
	bool github, anchor;
	bool *anchored;               /* by block: its anchors of before are none any more */
	struct buf failed;            /* of learn: runs that fail against those of the baseline, a line each */
	struct gate_fact own[GATE_FACTS_MAX];
	unsigned n_own;
	struct buf op_text[GATE_METRICS_MAX];
	struct str op[GATE_METRICS_MAX];
	unsigned n_ops;
	struct gate_file file;
	struct diff_side **side;      /* by run */
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "The gate:", 0},
	{NULL, 'o', "FILE", 0, "learn: keep what was learned in FILE; check: write to FILE, whose suffix .txt, .csv, .json, .html or .md chooses the format", 0},
	{"baseline", GATE_KEY_BASELINE, "FILE", 0, "what was learned: check compares with it, learn adds to it", 0},
	{"op", GATE_KEY_OP, "NAME", 0, "learn the device time of this op, too (aten::conv2d); can be given several times", 0},
	{"key", GATE_KEY_KEY, "NAME=VALUE", 0, "a fact of the configuration that recordings do not state (machine=runner7, batch=32): runs are compared with those that have the same facts", 0},
	{"false-alarms", GATE_KEY_ALARMS, "PCT", 0, "at most this share of runs that are like the accepted ones fails (default: 1)", 0},
	{"threshold", GATE_KEY_THRESHOLD, "PCT", 0, "a smaller change does not matter, however certain (default: 2)", 0},
	{"anchor", GATE_KEY_ANCHOR, NULL, 0, "learn: these runs are the anchors from now on, after a change that was meant", 0},
	{"against", GATE_KEY_AGAINST, "RUN", 0, "check: the accepted run that a failed one is taken apart against (default: the one nearest to their mean, if its recording is still there)", 0},
	{"junit", GATE_KEY_JUNIT, "FILE", 0, "check: write the verdicts as JUnit XML, too", 0},
	{"github", GATE_KEY_GITHUB, NULL, 0, "check: print annotations for GitHub, and append the tables to the file that $GITHUB_STEP_SUMMARY names", 0},
	{0},
};

/* ---- the command line ---- */

static double cli_gate_pct(const char *option, const char *text, double most)
{
	char *end;
	const double v = strtod(text, &end);
	static const double LEAST = 1e-6;
	if (!*text || *end || !(v >= LEAST && v <= most))
		cli_usage("gate: --%s=%s: a number of percent from %g to %g was expected", option, text, LEAST, most);
	return v;
}

static bool cli_gate_is_word(const char *s)
{
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c < 0x20)
			return false;
	return *s && !strstr(s, " +- ");
}

static void cli_gate_add_op(struct gate_command *g, const char *name)
{
	if (!cli_gate_is_word(name) || g->n_ops == GATE_METRICS_MAX - GATE_OWN_METRICS)
		cli_usage("gate: --op=%s: the name of an op was expected, at most %d of them", name, GATE_METRICS_MAX - GATE_OWN_METRICS);
	struct buf *b = &g->op_text[g->n_ops];
	buf_printf(b, "op:%s", name);
	g->op[g->n_ops] = buf_view(b);
	for (unsigned i = 0; i < g->n_ops; i++)
		if (str_eq(g->op[i], g->op[g->n_ops])) {
			buf_release(b);
			return;
		}
	g->n_ops++;
}

static void cli_gate_add_key(struct gate_command *g, char *text)
{
	const char *equals = strchr(text, '=');
	const struct str name = {text, equals ? (size_t)(equals - text) : 0};
	if (!name.n || !equals[1] || str_eqc(name, "steps") || str_eqc(name, "key op") || !cli_gate_is_word(text) || memchr(name.p, ':', name.n) || g->n_own == GATE_FACTS_MAX / 2)
		cli_usage("gate: --key=%s: NAME=VALUE was expected, without a colon in NAME, which is not steps or key op, at most %d of them", text, GATE_FACTS_MAX / 2);
	for (unsigned i = 0; i < g->n_own; i++)
		if (str_eq(g->own[i].name, name))
			cli_usage("gate: --key=%s: another value of the same name was given", text);
	g->own[g->n_own++] = (struct gate_fact){name, str_from(equals + 1)};
}

static error_t cli_gate_parse(int key, char *arg, struct argp_state *state)
{
	struct gate_command *g = state->input;
	switch (key) {
	case 'o': g->out = cli_output_path(arg); return 0;
	case GATE_KEY_BASELINE: g->baseline = arg; return 0;
	case GATE_KEY_OP: cli_gate_add_op(g, arg); return 0;
	case GATE_KEY_KEY: cli_gate_add_key(g, arg); return 0;
	case GATE_KEY_ALARMS: g->ask.false_alarms_pct = cli_gate_pct("false-alarms", arg, 50); return 0;
	case GATE_KEY_THRESHOLD: g->ask.threshold_pct = cli_gate_pct("threshold", arg, 1000); return 0;
	case GATE_KEY_ANCHOR: g->anchor = true; return 0;
	case GATE_KEY_AGAINST: g->against = arg; return 0;
	case GATE_KEY_JUNIT: g->junit = cli_output_path(arg); return 0;
	case GATE_KEY_GITHUB: g->github = true; return 0;
	default: return cli_table_option(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = cli_gate_parse,
	.children = table_children,
	.args_doc = "learn RUN...\ncheck RUN...",
	.doc = "`gate learn RUN... -o gate.txt` learns from accepted runs, named in order of time, how runs scatter. `gate check RUN --baseline=gate.txt` says whether a new run is worse, by more than "
	       "this scatter and by more than the threshold. Status of check: 0 pass, 3 fail, 4 undecided, 1 an input cannot be read or has no steps, 2 wrong usage.",
};

/* ---- reading ---- */

static int cli_gate_read_file(struct gate_command *g)
{
	struct err e;
	struct buf text = {0};
	if (file_read_all(g->baseline, GATE_FILE_BYTES, &text, &e) < 0 || gate_file_read(buf_view(&text), g->baseline, &g->file, &e) < 0) {
		buf_release(&text);
		return cli_fail(&e, EXIT_INPUT);
	}
	if (text.n > GATE_FILE_BYTES) {
		err_set(&e, ERR_LIMIT, "%s: more than %d MiB; what gate learn wrote was expected", g->baseline, GATE_FILE_BYTES >> 20);
		buf_release(&text);
		return cli_fail(&e, EXIT_INPUT);
	}
	buf_release(&text);
	return EXIT_DONE;
}

static struct diff_side *cli_gate_read(struct gate_command *g, char *path, int *status)
{
	return cli_side_read(&(struct cli_args){&path, 1}, &g->c.trace, status);
}

/* ---- learn ---- */

/* Notes a run that `check` would fail against the runs learned before: it is learned, as it was asked for, but not in silence. */
static void cli_gate_tell_failed(struct gate_command *g, const struct diff_side *s, const struct gate_block *b, const struct gate_value *v)
{
	const struct gate_judgements j = gate_judge(b, &v, 1, &g->ask);
	if (j.verdict != GATE_FAIL)
		return;
	buf_printf(&g->failed, STR_FMT " is learned although it would not have passed: ", STR_ARG(s->path));
	gate_put_decision(b, &j, &g->ask, &g->failed);
	buf_cstr(&g->failed, ". --anchor says that the change was meant\n");
}

static int cli_gate_add_run(struct gate_command *g, const struct diff_side *s, unsigned n_old, struct err *e)
{
	struct gate_block *b = gate_block_find_or_add(&g->file, s, g->own, g->n_own, g->op, g->n_ops, e);
	if (!b)
		return -1;
	const unsigned number = (unsigned)(b - g->file.block);
	struct gate_value v[GATE_METRICS_MAX];
	if (gate_measure(s, b, v, e) < 0)
		return -1;
	const struct gate_run *copy = gate_copy_of(b, v);
	if (copy)
		return err_set(e, ERR_DATA, STR_FMT ": all values are those of " STR_FMT ": one is a copy of the other, which tells nothing of how runs scatter", STR_ARG(s->path), STR_ARG(copy->path));
	if (number < n_old && b->n_runs && !g->anchor)
		cli_gate_tell_failed(g, s, b, v);
	if (g->anchor && !g->anchored[number])
		for (unsigned i = 0; i < b->n_runs; i++)
			b->run[i].anchor = false;
	g->anchored[number] = true;
	const bool anchor = g->anchor || number >= n_old;
	struct gate_run *r = gate_file_add_run(&g->file, b, s->path, anchor);
	memcpy(r->v, v, b->n_metrics * sizeof *v);
	return 0;
}

static int cli_gate_learn(struct gate_command *g)
{
	struct err e;
	int status = EXIT_DONE;
	const unsigned n_old = g->file.n_blocks;
	g->anchored = NEW_ARRAY(n_old + (unsigned)g->c.args.n, bool);
	for (int i = 1; i < g->c.args.n; i++) {
		struct diff_side *s = cli_gate_read(g, g->c.args.v[i], &status);
		if (!s)
			return status;
		const int rc = cli_gate_add_run(g, s, n_old, &e);
		diff_side_free(s);
		if (rc < 0)
			return cli_fail(&e, EXIT_INPUT);
	}
	struct buf text = {0};
	struct table t;
	struct atomic_file f;
	gate_file_put(&g->file, &text);
	const int rc = atomic_begin_any(&f, g->out, &e) < 0 ? -1 : atomic_write(&f, buf_view(&text), &e) ? atomic_abort(&f) : atomic_commit(&f, &e);
	buf_release(&text);
	if (rc < 0)
		return cli_fail(&e, EXIT_INPUT);
	gate_learnt_table(&g->file, &g->ask, &t);
	struct str failed = g->failed.n ? buf_view(&g->failed) : STR(""), line;
	while (str_split(&failed, '\n', &line))
		if (line.n)
			table_warn(&t, STR_FMT, STR_ARG(line));
	status = cli_output(&t, &g->c.output, g->out);
	table_release(&t);
	return status;
}

/* ---- check ---- */

/* Takes the failed run apart: the terms of its difference become sections of *t. A note says so where there is nothing to compare it with. */
static void cli_gate_attach_diff(struct gate_command *g, const struct gate_block *b, struct table *t)
{
	struct err e = {0};
	struct buf said = {0}, path = {0};
	const struct gate_run *r = gate_typical_run(b);
	buf_str(&path, g->against ? str_from(g->against) : r->path);
	buf_end_text(&path);
	struct profile *p = cli_read_quietly(path.p, &g->c.trace, &said, &e);
	struct diff_side *s = p ? diff_job_of_recording(p, &g->c.trace.report, &e) : NULL;
	struct table *diff = NEW(struct table);
	struct gate_value v[GATE_METRICS_MAX];
	const bool other = s && !g->against && gate_measure(s, b, v, &e) == 0 && gate_copy_of(b, v) != r;
	if (other)
		err_set(&e, ERR_DATA, "%s is no longer the run that was learned", path.p);
	if (s && !other && diff_table(s, g->side[0], &(struct diff_ask){0}, diff, &e) == 0) {
		diff->name = "diff";
		table_release(diff->next); /* the verdict by steps, which say less than the runs do */
		mem_free(diff->next);
		diff->next = NULL;
		diff->title = "What changed from an accepted run (A) to this one (B)";
		struct table **end = &t->next;
		while (*end)
			end = &(*end)->next;
		*end = diff;
		diff = NULL;
	} else {
		table_note(t, "what changed is not taken apart: %s (--against=RUN names an accepted run)", e.msg);
	}
	mem_free(diff);
	diff_side_free(s);
	profile_free(p);
	buf_release(&said);
	buf_release(&path);
}

static int cli_gate_report(struct gate_command *g, const struct gate_block *b, const struct gate_judgements *j, struct table *t)
{
	struct err e;
	if (g->junit && gate_ci_write_junit(g->junit, b, j, g->side[0]->path, &e) < 0)
		return cli_fail(&e, EXIT_INPUT);
	if (g->github && gate_ci_tell_github(b, j, t, &e) < 0)
		return cli_fail(&e, EXIT_INPUT);
	return cli_output(t, &g->c.output, g->side[0]->path.p);
}

/* The run is not of block `b` (NULL = of any that has runs). */
static int cli_gate_tell_other(struct gate_command *g, const struct diff_side *s, const struct gate_block *b)
{
	struct err e;
	struct buf why = {0};
	gate_put_differences(&g->file, b, s, g->own, g->n_own, &why);
	err_set(&e, ERR_DATA, STR_FMT ": undecided, because %s: " STR_FMT, STR_ARG(s->path), b ? "the runs are of several configurations" : "no run of this configuration was accepted",
	        STR_ARG(why.n ? buf_view(&why) : STR("its runs were taken out of the file")));
	buf_release(&why);
	const int status = cli_fail(&e, EXIT_UNDECIDED);
	if (g->github)
		gate_ci_warn_github(e.msg);
	return g->junit && gate_ci_write_undecided(g->junit, s->path, e.msg, &e) < 0 ? cli_fail(&e, EXIT_INPUT) : status;
}

static int cli_gate_judge(struct gate_command *g, int n)
{
	static const int status_of[GATE_VERDICTS] = {[GATE_PASS] = EXIT_DONE, [GATE_FAIL] = EXIT_FINDING, [GATE_UNDECIDED] = EXIT_UNDECIDED};
	struct err e;
	struct table t;
	const struct gate_value **run = NEW_ARRAY((size_t)n, const struct gate_value *);
	struct gate_block *b = NULL;
	int status = EXIT_DONE;
	for (int i = 0; i < n && status == EXIT_DONE; i++) {
		struct gate_value *v = NEW_ARRAY(GATE_METRICS_MAX, struct gate_value);
		struct gate_block *of = gate_block_of(&g->file, g->side[i], g->own, g->n_own);
		run[i] = v;
		if (gate_check_steps(g->side[i], &e) < 0) {
			status = cli_fail(&e, EXIT_INPUT);
			break;
		}
		if (of && of->n_runs && (!b || b == of)) {
			if (gate_measure(g->side[i], of, v, &e) < 0)
				status = cli_fail(&e, EXIT_INPUT);
		} else {
			status = cli_gate_tell_other(g, g->side[i], of && of->n_runs ? b : NULL);
		}
		b = of;
	}
	if (status == EXIT_DONE) {
		const struct gate_judgements j = gate_judge(b, run, (unsigned)n, &g->ask);
		gate_table(b, &j, &g->ask, &t);
		if (j.verdict == GATE_FAIL)
			cli_gate_attach_diff(g, b, &t);
		const int printed = cli_gate_report(g, b, &j, &t);
		status = printed ? printed : status_of[j.verdict];
		table_release(&t);
	}
	for (int i = 0; i < n; i++)
		mem_free((void *)(uintptr_t)run[i]);
	mem_free(run);
	return status;
}

static int cli_gate_check(struct gate_command *g)
{
	const int n = g->c.args.n - 1;
	int status = EXIT_DONE;
	g->side = NEW_ARRAY((size_t)n, struct diff_side *);
	for (int i = 0; i < n && status == EXIT_DONE; i++)
		g->side[i] = cli_gate_read(g, g->c.args.v[i + 1], &status);
	if (status == EXIT_DONE)
		status = cli_gate_judge(g, n);
	for (int i = 0; i < n; i++)
		diff_side_free(g->side[i]);
	mem_free(g->side);
	return status;
}

/* The path of a file that need not be there yet, without links and dots on the way to it. */
static const char *cli_gate_plain(const char *path, char to[PATH_MAX])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], whole[PATH_MAX];
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	if (!realpath(folder, whole) || (size_t)snprintf(to, PATH_MAX, "%s/%s", whole, name) >= PATH_MAX)
		return path;
	return to;
}

/* No output replaces an input; `learn` may replace what it adds to. */
static void cli_gate_refuse_overwrite(const struct gate_command *g, bool learn)
{
	struct cli_args inputs = {0};
	for (int i = 1; i < g->c.args.n; i++)
		cli_args_add(&inputs, g->c.args.v[i]);
	if (g->baseline && !learn)
		cli_args_add(&inputs, (char *)(uintptr_t)g->baseline);
	if (g->against)
		cli_args_add(&inputs, (char *)(uintptr_t)g->against);
	cli_refuse_overwrite(g->out, &inputs);
	cli_refuse_overwrite(g->junit, &inputs);
	mem_free(inputs.v);
	char a[PATH_MAX], b[PATH_MAX];
	if (g->out && g->junit && strcmp(cli_gate_plain(g->out, a), cli_gate_plain(g->junit, b)) == 0)
		cli_usage("gate check: --junit and -o: two files were expected");
}

/* The form of the tables of `check`. */
static void cli_gate_choose_output(struct gate_command *g)
{
	g->c.output.path = g->out;
	const struct renderer *r = cli_renderer(&g->c.output);
	if (!r)
		cli_usage("-o %s: a name that ends in .txt, .csv, .json, .html or .md was expected; --format chooses a format for any name", g->out);
	if (g->github && !g->out && !r->for_people)
		cli_usage("gate check: --github prints lines of its own: -o FILE was expected for %s", r->name);
}

/* Runs of other steps are of another configuration. */
static void cli_gate_add_choice(struct gate_command *g)
{
	const struct report_args *r = &g->c.trace.report;
	if (r->has_steps) {
		const struct steps_text text = steps_range_text(r->step_first, r->step_last);
		g->own[g->n_own++] = (struct gate_fact){STR("steps"), arena_str(&g->c.trace.arena, str_from(text.s + strlen("--steps=")))};
	}
	if (r->all_steps)
		g->own[g->n_own++] = (struct gate_fact){STR("steps"), STR("all")};
	if (r->key_op)
		g->own[g->n_own++] = (struct gate_fact){STR("key op"), str_from(r->key_op)};
}

static int cli_gate_run(int argc, char **argv)
{
	struct gate_command g = {.ask = {.false_alarms_pct = 1, .threshold_pct = 2}};
	cli_parse(&argp, argc, argv, &g);
	const bool learn = g.c.args.n && strcmp(g.c.args.v[0], "learn") == 0;
	if (!learn && !(g.c.args.n && strcmp(g.c.args.v[0], "check") == 0))
		cli_usage("gate: learn or check was expected%s%s", g.c.args.n ? ", not " : "", g.c.args.n ? g.c.args.v[0] : "");
	if (g.c.args.n < 2)
		cli_usage("gate %s: at least one RUN was expected", g.c.args.v[0]);
	if (g.c.trace.report.device)
		cli_usage("gate: --device is for reports: this is always of all devices");
	if (learn && !g.out)
		cli_usage("gate learn: -o FILE was expected, for what is learned");
	if (!learn && !g.baseline)
		cli_usage("gate check: --baseline=FILE was expected, as gate learn wrote it");
	if (learn && (g.against || g.junit || g.github))
		cli_usage("gate learn: --against, --junit and --github are for gate check");
	if (!learn && (g.n_ops || g.anchor))
		cli_usage("gate check: --op and --anchor are for gate learn");
	cli_gate_refuse_overwrite(&g, learn);
	if (!learn)
		cli_gate_choose_output(&g);
	cli_gate_add_choice(&g);
	int status = g.baseline ? cli_gate_read_file(&g) : EXIT_DONE;
	if (status == EXIT_DONE)
		status = learn ? cli_gate_learn(&g) : cli_gate_check(&g);
	gate_file_release(&g.file);
	mem_free(g.anchored);
	buf_release(&g.failed);
	for (unsigned i = 0; i < g.n_ops; i++)
		buf_release(&g.op_text[i]);
	mem_free(g.c.args.v);
	trace_options_release(&g.c.trace);
	return status;
}

const struct command command_gate = {
	.name = "gate",
	.args = "learn|check RUN...",
	.help = "whether a run is worse than accepted ones, beyond their scatter: for CI",
	.run = cli_gate_run,
};
