#include "base/mem.h"
#include "base/round.h"
#include "query/gate.h"
#include "query/gate_stats.h"
#include "query/gate_values.h"

#include <math.h>

/* A trend of accepted runs is told where chance makes it less often than this. */
static const double GATE_TREND_P = 0.01;

/* ---- in words ---- */

static const char *gate_title(struct str metric)
{
	static const char *const title[GATE_OWN_METRICS] = {
		[GATE_STEP] = "step time", [GATE_COMM] = "exposed communication", [GATE_IDLE] = "time without device work", [GATE_KERNELS] = "kernels per step", [GATE_PEAK] = "peak memory",
	};
	for (unsigned i = 0; i < GATE_OWN_METRICS; i++)
		if (str_eqc(metric, gate_own_metric[i]))
			return title[i];
	return NULL;
}

static void gate_put_title(struct str metric, struct buf *out)
{
	const char *title = gate_title(metric);
	if (title)
		buf_cstr(out, title);
	else if (str_skip(&metric, GATE_OP))
		buf_printf(out, "device time of " STR_FMT, STR_ARG(metric));
	else
		buf_str(out, metric);
}

static void gate_put_value(struct str metric, double v, struct buf *out)
{
	static const struct { double from; const char *unit; } ns[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {0, "ns"}}, bytes[] = {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {0, "B"}};
	const bool is_bytes = str_eqc(metric, gate_own_metric[GATE_PEAK]);
	if (str_eqc(metric, gate_own_metric[GATE_KERNELS])) {
		buf_printf(out, "%.*f", v == floor(v) ? 0 : 1, v);
		return;
	}
	for (unsigned i = 0;; i++) {
		const double from = is_bytes ? bytes[i].from : ns[i].from;
		if (v < from)
			continue;
		buf_printf(out, "%.*f %s", from > 0 ? 1 : 0, v / (from > 0 ? from : 1), is_bytes ? bytes[i].unit : ns[i].unit);
		return;
	}
}

static const char *gate_of_what(const struct gate_block *b, unsigned metric)
{
	return gate_is_part_of_step(b, metric) ? " % of the step" : " %";
}

void gate_put_judgement(const struct gate_block *b, const struct gate_judgement *j, struct buf *out)
{
	gate_put_title(b->metric[j->metric], out);
	buf_char(out, ' ');
	gate_put_value(b->metric[j->metric], j->accepted, out);
	buf_cstr(out, " -> ");
	gate_put_value(b->metric[j->metric], j->value, out);
	buf_printf(out, " (%+.1f%s%s", j->change_pct, gate_of_what(b, j->metric), j->anchor ? " against the anchors" : "");
	if (j->n < GATE_FEWEST_RUNS && !j->anchor)
		buf_printf(out, "; %u accepted run%s, at least %d are needed", j->n, j->n == 1 ? "" : "s", GATE_FEWEST_RUNS);
	else if (j->verdict == GATE_FAIL && j->change_pct >= j->fails_from_pct)
		buf_printf(out, "; fails from +%.1f %%", j->fails_from_pct);
	else if (j->verdict == GATE_FAIL)
		buf_cstr(out, "; fails beside a worse one");
	else if (j->verdict == GATE_UNDECIDED && !isnan(j->fails_from_pct))
		buf_printf(out, "; accepted runs may differ as much, over all metrics: a change fails from +%.1f %% on. Check several runs together, or learn more", j->fails_from_pct);
	buf_char(out, ')');
}

void gate_put_decision(const struct gate_block *b, const struct gate_judgements *j, const struct gate_ask *ask, struct buf *out)
{
	unsigned told = 0;
	buf_printf(out, "%s: ", gate_verdict_name[j->verdict]);
	for (unsigned i = 0; i < j->n && j->verdict != GATE_PASS; i++)
		if (j->v[i].verdict == j->verdict) {
			buf_cstr(out, told++ ? "; " : "");
			gate_put_judgement(b, &j->v[i], out);
		}
	for (unsigned i = 0; i < j->n && j->verdict == GATE_PASS; i++)
		if (str_eqc(b->metric[j->v[i].metric], gate_own_metric[GATE_STEP]) && !j->v[i].anchor) {
			gate_put_judgement(b, &j->v[i], out);
			buf_printf(out, "; a change of %.1f %% would have been seen", j->v[i].least_pct);
			if (j->v[i].least_pct >= 2 * ask->threshold_pct)
				buf_printf(out, ", one of %.1f %% would not: learn more runs, or longer ones", ask->threshold_pct);
		}
}

/* ---- tables ---- */

enum { GATE_COL_METRIC, GATE_COL_VERDICT, GATE_COL_AGAINST, GATE_COL_ACCEPTED, GATE_COL_THIS, GATE_COL_CHANGE, GATE_COL_FAILS, GATE_COL_LEAST, GATE_COL_P, GATE_COL_RUNS, GATE_COL_ID,
       GATE_COL_ACCEPTED_VALUE, GATE_COL_VALUE };
static const struct column gate_columns[] = {
	[GATE_COL_METRIC] = {.id = "metric", .title = "Metric", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "what is compared"},
	[GATE_COL_VERDICT] = {.id = "verdict", .title = "Verdict", .type = CELL_STR, .flags = COLUMN_ANSWER,
		.help = "fail: more than accepted runs differ, and more than the threshold; undecided: more than the threshold, which may be chance, or too few accepted runs; pass: else"},
	[GATE_COL_AGAINST] = {.id = "against", .title = "Against", .type = CELL_STR, .help = "the last accepted runs, or the anchors, which were accepted first"},
	[GATE_COL_ACCEPTED] = {.id = "accepted", .title = "Accepted", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "the mean of these runs"},
	[GATE_COL_THIS] = {.id = "this", .title = "This", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "the mean of the runs that are checked"},
	[GATE_COL_CHANGE] = {.id = "change_pct", .title = "Change", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_ANSWER,
		.help = "of the accepted mean; of exposed communication and of time without device work: of the accepted step"},
	[GATE_COL_FAILS] = {.id = "fails_from_pct", .title = "Fails from", .type = CELL_F64, .unit = UNIT_PERCENT, .help = "the change from which on the gate fails, were this the only one"},
	[GATE_COL_LEAST] = {.id = "least_pct", .title = "Least seen", .type = CELL_F64, .unit = UNIT_PERCENT, .help = "the change that the gate finds in 80 of 100 runs"},
	[GATE_COL_P] = {.id = "p", .title = "By chance", .type = CELL_F64, .unit = UNIT_NONE, .digits = 4, .help = "the probability of so large a change between runs that are alike (Student's t, one-sided)"},
	[GATE_COL_RUNS] = {.id = "runs", .title = "Runs", .type = CELL_I64, .unit = UNIT_COUNT, .help = "accepted runs that the mean is of"},
	[GATE_COL_ID] = {.id = "id", .title = "Id", .type = CELL_STR, .flags = COLUMN_DETAIL, .help = "the metric as the file calls it, with its unit"},
	[GATE_COL_ACCEPTED_VALUE] = {.id = "accepted_value", .title = "Accepted value", .type = CELL_F64, .flags = COLUMN_DETAIL, .help = "Accepted as a number, in the unit of Id"},
	[GATE_COL_VALUE] = {.id = "value", .title = "Value", .type = CELL_F64, .flags = COLUMN_DETAIL, .help = "This as a number, in the unit of Id"},
};
static const struct column gate_decision_columns[] = {
	{.id = "decision", .title = "Decision", .type = CELL_STR, .flags = COLUMN_ANSWER | COLUMN_PROSE | COLUMN_WIDE, .help = "the verdict and its reason"},
	{.id = "verdict", .title = "Verdict", .type = CELL_STR, .flags = COLUMN_DETAIL, .help = "pass, fail or undecided"},
};

static void gate_set_value(struct table *t, unsigned col, struct str metric, double v)
{
	struct buf text = {0};
	gate_put_value(metric, v, &text);
	table_set_str_copy(t, col, buf_view(&text));
	buf_release(&text);
}

static void gate_set_title(struct table *t, unsigned col, struct str metric)
{
	struct buf text = {0};
	gate_put_title(metric, &text);
	table_set_str_copy(t, col, buf_view(&text));
	buf_release(&text);
}

/* What the accepted runs themselves do over time. */
static void gate_note_trends(const struct gate_block *b, struct table *t)
{
	enum { ENDS = 3 };
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double);
	for (unsigned m = 0; m < b->n_metrics; m++) {
		unsigned n = 0;
		for (unsigned i = gate_first_run(b); i < b->n_runs; i++)
			if (!isnan(b->run[i].v[m].value))
				v[n++] = b->run[i].v[m].value;
		if (gate_trend(v, n) > GATE_TREND_P)
			continue;
		const double from = gate_mean(v, ENDS), to = gate_mean(v + n - ENDS, ENDS);
		struct buf text = {0};
		gate_put_title(b->metric[m], &text);
		table_warn(t, "accepted runs drift: %.*s %s by %.1f %% over %u runs", (int)text.n, text.p, to > from ? "rises" : "falls", fabs(percent(to - from, from)), n);
		buf_release(&text);
	}
	mem_free(v);
}

void gate_table(const struct gate_block *b, const struct gate_judgements *all, const struct gate_ask *ask, struct table *out)
{
	table_init(out, "gate", "The run against accepted runs");
	table_columns(out, gate_columns, sizeof gate_columns / sizeof *gate_columns);
	for (unsigned i = 0; i < all->n; i++) {
		const struct gate_judgement *j = &all->v[i];
		const struct str metric = b->metric[j->metric];
		table_row(out);
		gate_set_title(out, GATE_COL_METRIC, metric);
		table_set_str(out, GATE_COL_VERDICT, str_from(gate_verdict_name[j->verdict]));
		table_set_str(out, GATE_COL_AGAINST, j->anchor ? STR("anchors") : STR("accepted runs"));
		gate_set_value(out, GATE_COL_ACCEPTED, metric, j->accepted);
		gate_set_value(out, GATE_COL_THIS, metric, j->value);
		table_set_f64(out, GATE_COL_CHANGE, j->change_pct);
		table_set_f64(out, GATE_COL_FAILS, j->fails_from_pct);
		table_set_f64(out, GATE_COL_LEAST, j->least_pct);
		table_set_f64(out, GATE_COL_P, j->p);
		table_set_i64(out, GATE_COL_RUNS, j->n);
		table_set_str(out, GATE_COL_ID, metric);
		table_set_f64(out, GATE_COL_ACCEPTED_VALUE, j->accepted);
		table_set_f64(out, GATE_COL_VALUE, j->value);
	}
	gate_note_trends(b, out);
	table_note(out, "a run fails where it is worse by more than accepted runs differ, with %g %% false alarms over all metrics together (Student's t by run, Holm), and by at least %g %%; less time, memory or kernels "
	           "always pass",
	           ask->false_alarms_pct, ask->threshold_pct);
	struct table *decision = table_section(out, "decision", "Decision");
	struct buf text = {0};
	decision->lead = true;
	table_columns(decision, gate_decision_columns, 2);
	table_row(decision);
	gate_put_decision(b, all, ask, &text);
	table_set_str_copy(decision, 0, buf_view(&text));
	table_set_str(decision, 1, str_from(gate_verdict_name[all->verdict]));
	buf_release(&text);
}

enum { LEARNT_CONFIGURATION, LEARNT_METRIC, LEARNT_RUNS, LEARNT_ANCHORS, LEARNT_MEAN, LEARNT_SCATTER, LEARNT_LEAST, LEARNT_ID, LEARNT_VALUE };
static const struct column gate_learnt_columns[] = {
	[LEARNT_CONFIGURATION] = {.id = "configuration", .title = "Configuration", .type = CELL_STR, .flags = COLUMN_GROUP, .help = "machine and configuration: each is judged by itself"},
	[LEARNT_METRIC] = {.id = "metric", .title = "Metric", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "what is compared"},
	[LEARNT_RUNS] = {.id = "runs", .title = "Runs", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_ANSWER, .help = "the last accepted runs that have it, 20 at most"},
	[LEARNT_ANCHORS] = {.id = "anchors", .title = "Anchors", .type = CELL_I64, .unit = UNIT_COUNT, .help = "runs that were accepted first, or made the anchors"},
	[LEARNT_MEAN] = {.id = "mean", .title = "Mean", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "of the last 20 accepted runs"},
	[LEARNT_SCATTER] = {.id = "scatter_pct", .title = "Scatter", .type = CELL_F64, .unit = UNIT_PERCENT, .help = "how far one run is from the next: the standard deviation, of the mean"},
	[LEARNT_LEAST] = {.id = "least_pct", .title = "Least seen", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_ANSWER, .help = "the change that the gate finds in 80 of 100 runs; unknown with fewer than 3"},
	[LEARNT_ID] = {.id = "id", .title = "Id", .type = CELL_STR, .flags = COLUMN_DETAIL, .help = "the metric as the file calls it, with its unit"},
	[LEARNT_VALUE] = {.id = "value", .title = "Value", .type = CELL_F64, .flags = COLUMN_DETAIL, .help = "Mean as a number, in the unit of Id"},
};

/* The means of the accepted runs, as if they were a run. The caller's (mem_free). */
static struct gate_value *gate_means_of(const struct gate_block *b)
{
	struct gate_value *mean = NEW_ARRAY(b->n_metrics, struct gate_value);
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	for (unsigned m = 0; m < b->n_metrics; m++) {
		const unsigned n = gate_values_of(b, m, false, v, &error);
		mean[m].value = n ? gate_mean(v, n) : NAN;
	}
	mem_free(v);
	return mean;
}

static void gate_put_learnt(const struct gate_block *b, struct str configuration, const struct gate_ask *ask, struct table *out)
{
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	struct gate_value *mean = gate_means_of(b);
	const struct gate_value *const run = mean;
	const struct gate_judgements all = gate_judge(b, &run, 1, ask);
	for (unsigned m = 0; m < b->n_metrics; m++) {
		const unsigned n_anchors = gate_values_of(b, m, true, v, &error), n = gate_values_of(b, m, false, v, &error);
		struct str op = b->metric[m];
		if (!n && str_skip(&op, GATE_OP))
			table_warn(out, "no run has the op " STR_FMT ", so that the gate never judges it", STR_ARG(op));
		if (!n)
			continue;
		table_row(out);
		table_set_str_copy(out, LEARNT_CONFIGURATION, configuration);
		gate_set_title(out, LEARNT_METRIC, b->metric[m]);
		table_set_str_copy(out, LEARNT_ID, b->metric[m]);
		table_set_i64(out, LEARNT_RUNS, n);
		table_set_i64(out, LEARNT_ANCHORS, n_anchors);
		table_set_f64(out, LEARNT_VALUE, mean[m].value);
		gate_set_value(out, LEARNT_MEAN, b->metric[m], mean[m].value);
		for (unsigned i = 0; i < all.n; i++)
			if (all.v[i].metric == m && !all.v[i].anchor && n >= GATE_FEWEST_RUNS)
				table_set_f64(out, LEARNT_LEAST, all.v[i].least_pct);
		if (n >= 2)
			table_set_f64(out, LEARNT_SCATTER, percent(gate_scatter_of(v, n).sd, mean[m].value));
	}
	mem_free(mean);
	mem_free(v);
	gate_note_trends(b, out);
	if (b->n_runs < GATE_FEWEST_RUNS)
		table_warn(out, "%u accepted run%s (" STR_FMT "): until there are %d, every check is undecided", b->n_runs, b->n_runs == 1 ? "" : "s", STR_ARG(configuration), GATE_FEWEST_RUNS);
}

void gate_learnt_table(const struct gate_file *f, const struct gate_ask *ask, struct table *out)
{
	table_init(out, "gate", "What the gate has learned");
	table_columns(out, gate_learnt_columns, sizeof gate_learnt_columns / sizeof *gate_learnt_columns);
	for (unsigned i = 0; i < f->n_blocks; i++) {
		struct buf text = {0};
		for (unsigned k = 0; k < f->block[i].n_facts; k++)
			buf_printf(&text, "%s" STR_FMT " " STR_FMT, k ? ", " : "", STR_ARG(f->block[i].fact[k].name), STR_ARG(f->block[i].fact[k].value));
		gate_put_learnt(&f->block[i], buf_view(&text), ask, out);
		buf_release(&text);
	}
}
