/* DLProf's command: profiles a program or takes a profile, and writes DLProf's reports. All reports of one run share the profile and its
 * passes. */
#include "predecessors/dlprof/cli_dlprof.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"
#include "predecessors/dlprof/experts/experts.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"

enum { ITERATIONS_SHOWN = 10, CANDIDATES_SHOWN = 5 };

/* --- the console ------------------------------------------------------------------------------------------------ */

const char *dlprof_report_path(struct dlprof_options *o, const struct dlprof_report *r, enum dlprof_format f)
{
	return dlprof_path(o, STR_FMT "_%s.%s", STR_ARG(o->base_name), r->suffix, dlprof_format_name[f]);
}

static const char *model_path(struct dlprof_options *o)
{
	return dlprof_path(o, STR_FMT "_model_data.json", STR_ARG(o->base_name));
}

/* --- before anything is done ------------------------------------------------------------------------------------ */

static int cli_dlprof_make_folder(struct dlprof_options *o, struct err *e)
{
	if (!*o->output_path)
		o->output_path = ".";
	return folder_make(o->output_path, 0777, e) < 0 ? err_prefix(e, "dlprof: --output_path") : 0;
}

/* The profile that is read is kept, --force or not: it cannot be made again from a report. */
static int check_free(const struct dlprof_options *o, const char *path, struct err *e)
{
	struct stat out, in;
	if (stat(path, &out) < 0)
		return 0;
	if (o->database && stat(o->database, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return err_set(e, ERR_IO, "dlprof: %s is the input: --base_name=NAME chooses another name, --output_path=DIR another folder", path);
	if (o->force)
		return 0;
	return err_set(e, ERR_IO, "dlprof: %s is there already: --force=true replaces it, --base_name=NAME chooses another name", path);
}

/* Nothing is overwritten without --force, and that is said before the long part. */
static int check_files(struct dlprof_options *o, struct err *e)
{
	for (int i = 0; i < DLPROF_REPORTS; i++)
		for (int f = 0; f < DLPROF_FORMATS; f++)
			if ((o->reports & 1u << i) && (o->formats & 1u << f) &&
			    check_free(o, dlprof_report_path(o, &dlprof_reports[i], (enum dlprof_format)f), e) < 0)
				return -1;
	return o->dump_model ? check_free(o, model_path(o), e) : 0;
}

/* --- iterations ------------------------------------------------------------------------------------------------- */

static void tell_key_missing(const struct dlprof_options *o, const struct profile *p)
{
	struct arena a = {0};
	struct key_candidate *c;
	struct buf b = {0};
	unsigned n = key_candidates(p, 0, false, CANDIDATES_SHOWN, &a, &c);
	for (unsigned i = 0; i < n; i++)
		buf_printf(&b, "%s\"" STR_FMT "\" (%u calls)", i ? ", " : "", STR_ARG(c[i].name), c[i].calls);
	dlprof_say(o, DLPROF_MINIMAL, "Warning: key_op \"%s\" was not found: all is one iteration%s%.*s", o->key_op,
	           n ? "; what is called several times: " : "", (int)b.n, b.n ? b.p : "");
	buf_release(&b);
	arena_release(&a);
}

/* The iterations to aggregate go into *args. */
static int choose_iterations(const struct dlprof_options *o, const struct profile *p, struct report_args *args, struct err *e)
{
	struct dlprof_iterations d;
	struct buf b = {0};
	dlprof_iterations_of(p, p->key_op, &d);
	int64_t most = (int64_t)d.n - 1, first = o->has_start ? o->iter_start : 0;
	int64_t last = o->has_stop && o->iter_stop < most ? o->iter_stop : most;
	int64_t zero_ns = dlprof_zero_ns(p);
	struct str key = d.calls ? d.key : STR("");
	for (uint32_t i = 0; i < d.n && i < ITERATIONS_SHOWN; i++)
		buf_printf(&b, "%s%lld", i ? ", " : "", (long long)(d.stop_ns[i] - zero_ns));
	if (o->key_op && !d.calls)
		tell_key_missing(o, p);
	dlprof_say(o, DLPROF_MINIMAL, "Found %u iteration%s using key_op \"" STR_FMT "\"", d.n, d.n == 1 ? "" : "s", STR_ARG(key));
	if (o->verbosity >= DLPROF_NORMAL)
		printf("Iterations: [" STR_FMT "%s]\n", STR_ARG(buf_view(&b)), d.n > ITERATIONS_SHOWN ? ", ..." : "");
	buf_release(&b);
	int rc = 0;
	if (first > most)
		rc = err_set(e, ERR_DATA, "dlprof: --iter_start=%lld: iterations 0 to %lld were found", (long long)first, (long long)most);
	if (rc == 0 && o->verbosity >= DLPROF_NORMAL)
		printf("Aggregating data over %lld iteration%s: iteration %lld start (%lld ns) to iteration %lld end (%lld ns)\n\n",
		       (long long)(last - first + 1), last == first ? "" : "s", (long long)first, (long long)(d.start_ns[first] - zero_ns), (long long)last,
		       (long long)(d.stop_ns[last] - zero_ns));
	args->has_steps = o->has_start || o->has_stop;
	if (rc == 0 && args->has_steps && d.n == 1)
		dlprof_say(o, DLPROF_MINIMAL, "Warning: no key op divides this recording: iteration 0 is all of it; --key_op=NAME says what each iteration "
		           "calls once");
	args->step_first = first;
	args->step_last = last;
	dlprof_iterations_release(&d);
	return rc;
}

/* --- reports ---------------------------------------------------------------------------------------------------- */

static void cli_dlprof_print_findings(const struct dlprof_options *o, const struct table *t)
{
	static const char *const title[] = {"Problem detected:", "Recommended change:"};
	dlprof_say(o, DLPROF_NORMAL, "Writing expert_systems report to (stdout)");
	printf("Expert Systems Feedback: %zu issue%s detected\n", t->n_rows, t->n_rows == 1 ? "" : "s");
	for (size_t r = 0; r < t->n_rows; r++)
		for (unsigned c = 0; c < 2; c++) {
			struct buf b = {0};
			struct str rest = table_str(t, r, c), line;
			printf("%s%s\n", c ? "" : "\n", title[c]);
			while (str_split(&rest, '\n', &line)) {
				buf_clear(&b);
				buf_printf(&b, "  " STR_FMT, STR_ARG(line));
				dlprof_put_safe(&b);
			}
			buf_release(&b);
		}
	putchar('\n');
}

/* Shapes, which DLProf's detailed report has of TensorFlow's ops; rows stand in the order of dlprof_op_order. */
static void add_shapes(const struct profile *p, struct table *t)
{
	uint32_t n;
	unsigned at = TABLE_COLUMN(t, .id = "input_shapes", .title = "Input Shapes", .help = "of the first call", .type = CELL_STR);
	struct dlprof_op_row *order = dlprof_op_order(p, &t->arena, &n);
	uint32_t i = 0;
	for (size_t r = 0; r < t->n_rows; r++) {
		struct op_shapes s;
		while (i < n && !str_eq(order[i].names.id, table_str(t, r, 0)))
			i++;
		if (i == n)
			break;
		op_instance_shapes(p->ops, p, p->ops->op[order[i].op].first, &t->arena, &s);
		t->data[at].cell[r].s = s.inputs;
		t->data[at].set[r] = 1;
	}
	mem_free(order);
}

/* The columns that reports have of this framework: only PyTorch's have directions and stacks. */
static int fit_mode(const struct dlprof_options *o, const struct dlprof_report *r, const struct profile *p, struct table *t, struct err *e)
{
	bool tensorflow = o->mode == DLPROF_TENSORFLOW1 || o->mode == DLPROF_TENSORFLOW2, detail = r == &dlprof_reports[DLPROF_DETAIL];
	if ((!tensorflow && o->mode != DLPROF_TENSORRT) || r == &dlprof_reports[DLPROF_SUMMARY])
		return 0;
	struct buf b = {0};
	if (tensorflow && detail && o->detailed)
		add_shapes(p, t);
	for (unsigned c = 0; c < t->n_columns; c++) {
		const char *id = t->data[c].col.id;
		if (strcmp(id, "direction") != 0 && strcmp(id, "stack_trace") != 0 && (!detail || o->detailed || strcmp(id, "data_type") != 0))
			buf_printf(&b, "%s%s", b.n ? "," : "", id);
	}
	int rc = table_select(t, buf_view(&b), e);
	buf_release(&b);
	return rc;
}

static int cli_dlprof_make_table(const struct dlprof_options *o, const struct dlprof_report *r, struct profile *p, const struct report_args *base,
                                 struct table *t, struct err *e)
{
	struct report_args args = *base;
	int rc = 0;
	if (o->mode == DLPROF_SIMPLE) {
		table_init(t, r->key, r->title);
		if (*r->title)
			rc = dlprof_simple_kernels(p, t, e);
		else
			dlprof_simple_summary(p, t);
	} else if (!r->report) {
		return dlprof_findings(p, base, t, e);
	} else {
		args.group_by = r->group_by;
		if (report_run(report_find(str_from(r->report)), p, &args, t, e) < 0)
			return -1;
		rc = fit_mode(o, r, p, t, e);
	}
	if (rc < 0)
		table_release(t);
	return rc;
}

static void tell_notes(const struct dlprof_options *o, const struct table *t)
{
	for (; t; t = t->next)
		for (unsigned i = 0; i < t->n_notes; i++)
			dlprof_say(o, DLPROF_DETAILED, "  " STR_FMT, STR_ARG(t->notes[i]));
}

/* One report in all its formats. Findings are printed as well, asked for or not. */
static int write_report(struct dlprof_options *o, int i, struct profile *p, const struct report_args *args, struct err *e)
{
	const struct dlprof_report *r = &dlprof_reports[i];
	struct table t;
	int rc = 0;
	if (cli_dlprof_make_table(o, r, p, args, &t, e) < 0)
		return err_prefix(e, "dlprof: report %s", r->key);
	if (i == DLPROF_EXPERT && o->verbosity >= DLPROF_NORMAL)
		cli_dlprof_print_findings(o, &t);
	for (int f = 0; f < DLPROF_FORMATS && rc == 0; f++) {
		if (!(o->reports & 1u << i) || !(o->formats & 1u << f))
			continue;
		const char *path = dlprof_report_path(o, r, (enum dlprof_format)f);
		dlprof_say(o, DLPROF_NORMAL, "Writing %s report to %s", r->key, path);
		rc = dlprof_write(&t, r, (enum dlprof_format)f, o->profile_name, path, e);
	}
	tell_notes(o, &t);
	table_release(&t);
	return rc;
}

/* A report that the profile has nothing for is no reason to give up the others. */
static int write_reports(struct dlprof_options *o, struct profile *p, const struct report_args *args, const struct dlprof_plan *plan)
{
	unsigned wanted = o->reports | (o->mode != DLPROF_SIMPLE && o->verbosity >= DLPROF_NORMAL ? 1u << DLPROF_EXPERT : 0);
	int status = EXIT_DONE;
	struct err e;
	for (int i = 0; i < DLPROF_REPORTS; i++)
		if ((wanted & 1u << i) && write_report(o, i, p, args, &e) < 0) {
			status = cli_fail(&e, EXIT_INPUT);
			if (e.code != ERR_DATA)
				return status;
		}
	if (o->mode != DLPROF_SIMPLE && dlprof_write_database(o, p, args, plan, &e) < 0)
		status = cli_fail(&e, EXIT_INPUT);
	if (o->dump_model) {
		dlprof_say(o, DLPROF_NORMAL, "Writing model data to %s", model_path(o));
		if (dlprof_dump_model(p, model_path(o), &e) < 0)
			status = cli_fail(&e, EXIT_INPUT);
	}
	return status;
}

static int analyse(struct dlprof_options *o, struct profile *p, struct report_args *args, struct err *e)
{
	bool simple = o->mode == DLPROF_SIMPLE;
	if (p->durations_only)
		return err_set(e, ERR_DATA, STR_FMT ": this input holds durations but no times, which DLProf's reports need: give the database "
		               "that it was made from", STR_ARG(p->input_path));
	*args = (struct report_args){.compat = "dlprof", .key_op = o->key_op};
	dlprof_say(o, DLPROF_NORMAL, "Correlating ops with API calls and kernels");
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE | (simple ? 0 : PASS_OPS), e) < 0 || (!simple && dlprof_set_key(p, o->key_op, e) < 0))
		return -1;
	return simple ? 0 : choose_iterations(o, p, args, e);
}

/* What mode simple knows of the whole. */
static void tell_simple(const struct dlprof_options *o, const struct profile *p)
{
	struct table t;
	table_init(&t, "summary", "");
	dlprof_simple_summary(p, &t);
	for (unsigned c = 0; c < t.next->n_columns; c++)
		dlprof_say(o, DLPROF_MINIMAL, "%s: %lld", t.next->data[c].col.title, (long long)table_i64(t.next, 0, c));
	table_release(&t);
}

static void say_hint(void *context, struct str text)
{
	dlprof_say(context, DLPROF_NORMAL, "Note: " STR_FMT, STR_ARG(text));
}

/* Where DLProf's numbers mislead, which its files cannot say. */
static void tell_hints(struct dlprof_options *o, const struct profile *p, const struct report_args *args)
{
	struct table t;
	struct window w;
	struct err e;
	if (o->mode == DLPROF_SIMPLE) {
		dlprof_hints(p, HINT_GPUS | HINT_KERNELS, NULL, say_hint, o);
		return;
	}
	table_init(&t, "", "");
	if (window_of(p, args, &w, &e) == 0)
		dlprof_table_hints(&t, p, &w, HINT_ALL);
	for (unsigned i = 0; i < t.n_notes; i++)
		say_hint(o, t.notes[i]);
	table_release(&t);
}

/* What stands behind the options is a program; with --database none is run. */
static void tell_not_run(const struct dlprof_options *o)
{
	struct buf b = {0};
	for (int i = 0; i < o->app_n; i++)
		buf_printf(&b, " %s", o->app[i]);
	dlprof_say(o, DLPROF_MINIMAL, "Warning: with --database nothing is run: what follows the options was not looked at:%.*s", (int)(b.n < 1000 ? b.n : 1000),
	           b.p);
	buf_release(&b);
}

static int cli_dlprof_aggregate(struct dlprof_options *o, const char *path)
{
	const struct trace_options trace = {.by_path = true};
	struct report_args args;
	struct dlprof_plan plan = {0};
	int status = EXIT_DONE;
	struct err e;
	if (o->database && o->app_n)
		tell_not_run(o);
	dlprof_say(o, DLPROF_NORMAL, "Reading %s", path);
	struct profile *p = cli_open(path, &trace, &status);
	if (!p)
		return status;
	if (analyse(o, p, &args, &e) < 0 || (o->mode != DLPROF_SIMPLE && dlprof_plan_database(o, p, path, &args, &plan, &e) < 0)) {
		status = cli_fail(&e, EXIT_INPUT);
	} else {
		dlprof_say(o, DLPROF_NORMAL, "Aggregating profile data");
		if (o->mode == DLPROF_SIMPLE)
			tell_simple(o, p);
		tell_hints(o, p, &args);
		status = write_reports(o, p, &args, &plan);
	}
	profile_free(p);
	return status;
}

static int cli_dlprof_run(int argc, char **argv)
{
	struct dlprof_options o;
	struct err e;
	int status = EXIT_DONE, nsys_status = EXIT_DONE;
	dlprof_parse(argc, argv, &o);
	if (cli_dlprof_make_folder(&o, &e) < 0 || check_files(&o, &e) < 0) {
		status = cli_fail(&e, EXIT_INPUT);
	} else {
		const char *path = o.database ? o.database : dlprof_run(&o, &nsys_status);
		status = path ? cli_dlprof_aggregate(&o, path) : nsys_status;
		status = nsys_status ? nsys_status : status;
	}
	arena_release(&o.arena);
	return status;
}

const struct command command_dlprof = {
	.name = "dlprof",
	.args = "--database=FILE | PROGRAM...",
	.help = "DLProf's command: its reports, its files, its findings",
	.run = cli_dlprof_run,
};
