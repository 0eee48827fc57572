#include "query/gate.h"

#include "base/mem.h"
#include "base/round.h"
#include "query/diff_noise.h"
#include "query/gate_stats.h"

#include <assert.h>
#include <math.h>

const char *const gate_verdict_name[GATE_VERDICTS] = {[GATE_PASS] = "pass", [GATE_FAIL] = "fail", [GATE_UNDECIDED] = "undecided"};
const char *const gate_own_metric[GATE_OWN_METRICS] = {
	[GATE_STEP] = "step_ns", [GATE_COMM] = "exposed_comm_ns", [GATE_IDLE] = "idle_ns", [GATE_KERNELS] = "kernels", [GATE_PEAK] = "peak_bytes",
};
#define GATE_OP STR("op:")

/* Runs that agree better than this, percent, are taken to scatter so much: counts of kernels do not scatter at all. */
static const double GATE_LEAST_SCATTER_PCT = 0.1;
/* A trend of accepted runs is told where chance makes it less often than this. */
static const double GATE_TREND_P = 0.01;
/* "Would find in 80 of 100 runs." */
static const double GATE_MISSED = 0.2;

/* ---- machines and configurations ---- */

static unsigned gate_facts(const struct diff_side *s, const struct gate_fact *own, unsigned n_own, struct gate_fact *out, struct arena *arena)
{
	unsigned n = 0;
	for (unsigned i = 0; i < s->n_facts && n < GATE_FACTS_MAX; i++)
		if (!s->fact[i].version)
			out[n++] = (struct gate_fact){str_from(s->fact[i].name), s->fact[i].value};
	if (n < GATE_FACTS_MAX) {
		struct buf gpus = {0};
		buf_printf(&gpus, "%u", s->gpus);
		out[n++] = (struct gate_fact){STR("GPUs"), arena_str(arena, buf_view(&gpus))};
		buf_release(&gpus);
	}
	for (unsigned i = 0; i < n_own && n < GATE_FACTS_MAX; i++)
		out[n++] = own[i];
	return n;
}

/* "" where the block does not state it: then the input did not either. */
static struct str gate_fact_value(const struct gate_fact *fact, unsigned n, struct str name)
{
	for (unsigned i = 0; i < n; i++)
		if (str_eq(fact[i].name, name))
			return fact[i].value;
	return STR("");
}

/* How many facts differ; says which, where `out` is given. */
static unsigned gate_differences(const struct gate_block *b, const struct gate_fact *fact, unsigned n, struct buf *out)
{
	unsigned differences = 0;
	for (unsigned side = 0; side < 2; side++) {
		const struct gate_fact *of = side ? b->fact : fact, *other = side ? fact : b->fact;
		const unsigned n_of = side ? b->n_facts : n, n_other = side ? n : b->n_facts;
		for (unsigned i = 0; i < n_of; i++) {
			const struct str there = gate_fact_value(other, n_other, of[i].name);
			const bool told = side && gate_fact_value(fact, n, of[i].name).n; /* by the first round */
			if (str_eq(there, of[i].value) || told)
				continue;
			const struct str mine = side ? there : of[i].value, learnt = side ? of[i].value : there;
			if (out)
				buf_printf(out, "%s" STR_FMT " is " STR_FMT ", in the gate " STR_FMT, out->n ? "; " : "", STR_ARG(of[i].name), STR_ARG(mine.n ? mine : STR("not stated")),
				           STR_ARG(learnt.n ? learnt : STR("not stated")));
			differences++;
		}
	}
	return differences;
}

struct gate_block *gate_block_of(struct gate_file *f, const struct diff_side *s, const struct gate_fact *own, unsigned n_own)
{
	struct gate_fact fact[GATE_FACTS_MAX];
	const unsigned n = gate_facts(s, own, n_own, fact, &f->arena);
	for (unsigned i = 0; i < f->n_blocks; i++)
		if (!gate_differences(&f->block[i], fact, n, NULL))
			return &f->block[i];
	return NULL;
}

struct gate_block *gate_block_made(struct gate_file *f, const struct diff_side *s, const struct gate_fact *own, unsigned n_own, const struct str *op, unsigned n_ops)
{
	struct gate_block *b = gate_block_of(f, s, own, n_own);
	if (b)
		return b;
	struct gate_fact fact[GATE_FACTS_MAX], stated[GATE_FACTS_MAX];
	struct str metric[GATE_METRICS_MAX];
	const unsigned n = gate_facts(s, own, n_own, fact, &f->arena);
	unsigned n_stated = 0, n_metrics = 0;
	for (unsigned i = 0; i < n; i++)
		if (fact[i].value.n)
			stated[n_stated++] = fact[i];
	for (unsigned i = 0; i < GATE_OWN_METRICS; i++)
		metric[n_metrics++] = str_from(gate_own_metric[i]);
	for (unsigned i = 0; i < n_ops && n_metrics < GATE_METRICS_MAX; i++)
		metric[n_metrics++] = op[i];
	return gate_file_add_block(f, stated, n_stated, metric, n_metrics);
}

void gate_put_differences(const struct gate_file *f, const struct diff_side *s, const struct gate_fact *own, unsigned n_own, struct buf *out)
{
	struct arena arena = {0};
	struct gate_fact fact[GATE_FACTS_MAX];
	const unsigned n = gate_facts(s, own, n_own, fact, &arena);
	const struct gate_block *best = NULL;
	for (unsigned i = 0; i < f->n_blocks; i++)
		if (!best || gate_differences(&f->block[i], fact, n, NULL) < gate_differences(best, fact, n, NULL))
			best = &f->block[i];
	if (best)
		gate_differences(best, fact, n, out);
	else
		buf_cstr(out, "the gate has learned no run");
	arena_release(&arena);
}

/* ---- what a run says ---- */

/* Device time per step of the ops of a type, whose name may stand with its library: "aten::conv2d". NaN = there are none. */
static double gate_op_ns(const struct diff_side *s, struct str op, double steps)
{
	const ptrdiff_t colons = str_find(op, STR("::"));
	const struct str bare = colons >= 0 ? (struct str){op.p + colons + 2, op.n - (size_t)colons - 2} : op;
	double ns = 0;
	bool found = false;
	for (uint32_t i = 0; i < s->n_parts; i++) {
		const struct diff_part *x = &s->part[i];
		const struct str type = intern_get(&s->texts, x->key.type);
		if (x->key.kind == DIFF_IDLE || !(str_eq(type, op) || str_eq(type, bare)))
			continue;
		ns += (double)x->ns / steps;
		found = true;
	}
	return found ? ns : NAN;
}

static double gate_kind_ns(const struct diff_side *s, enum diff_kind kind, double steps)
{
	double ns = 0;
	for (uint32_t i = 0; i < s->n_parts; i++)
		ns += s->part[i].key.kind == kind ? (double)s->part[i].ns / steps : 0;
	return ns;
}

static double gate_kernels(const struct diff_side *s, double steps)
{
	double n = 0;
	for (uint32_t i = 0; i < s->n_parts; i++)
		n += s->part[i].key.kind == DIFF_COMPUTE || s->part[i].key.kind == DIFF_COMM ? (double)s->part[i].calls / steps : 0;
	return n;
}

int gate_measure(const struct diff_side *s, const struct gate_block *b, struct gate_value *v, struct err *e)
{
	if (!s->has_steps)
		return err_set(e, ERR_DATA, STR_FMT ": no steps were found, so runs of it cannot be compared (--key-op=NAME says what marks a step)", STR_ARG(s->path));
	const double steps = (double)s->n_steps * (s->gpus ? s->gpus : 1);
	double *step_ns = NEW_ARRAY_RAW(s->n_steps, double);
	for (unsigned i = 0; i < s->n_steps; i++)
		step_ns[i] = (double)s->step_ns[i];
	for (unsigned m = 0; m < b->n_metrics; m++) {
		struct str op = b->metric[m];
		v[m] = (struct gate_value){.value = NAN};
		if (str_eqc(op, gate_own_metric[GATE_STEP]))
			v[m] = (struct gate_value){gate_middle(step_ns, s->n_steps), diff_noise_error(s->step_ns, s->n_steps)};
		else if (str_eqc(op, gate_own_metric[GATE_COMM]) && s->gpus)
			v[m].value = gate_kind_ns(s, DIFF_COMM, steps);
		else if (str_eqc(op, gate_own_metric[GATE_IDLE]) && s->gpus)
			v[m].value = gate_kind_ns(s, DIFF_IDLE, steps);
		else if (str_eqc(op, gate_own_metric[GATE_KERNELS]) && s->gpus)
			v[m].value = gate_kernels(s, steps);
		else if (str_eqc(op, gate_own_metric[GATE_PEAK]) && s->peak_bytes >= 0)
			v[m].value = (double)s->peak_bytes;
		else if (str_skip(&op, GATE_OP))
			v[m].value = gate_op_ns(s, op, steps);
	}
	mem_free(step_ns);
	return 0;
}

const struct gate_run *gate_copy_of(const struct gate_block *b, const struct gate_value *v)
{
	for (unsigned i = 0; i < b->n_runs; i++) {
		bool same = true;
		for (unsigned m = 0; m < b->n_metrics && same; m++) {
			const struct gate_value *x = &b->run[i].v[m];
			/* the file keeps 15 digits */
			same = isnan(v[m].value) == isnan(x->value) && (isnan(x->value) || fabs(v[m].value - x->value) <= 1e-12 * fabs(x->value)) && fabs(v[m].error - x->error) <= 1e-9 * x->error;
		}
		if (same)
			return &b->run[i];
	}
	return NULL;
}

/* ---- judging ---- */

static bool gate_is_part_of_step(const struct gate_block *b, unsigned metric)
{
	return str_eqc(b->metric[metric], gate_own_metric[GATE_COMM]) || str_eqc(b->metric[metric], gate_own_metric[GATE_IDLE]);
}

/* The values that the last runs, or the anchors, have of a metric, in order of time. Returns how many. */
static unsigned gate_take(const struct gate_block *b, unsigned metric, bool anchor, double *v, double *error_square)
{
	unsigned n = 0, first = b->n_runs > GATE_RECENT_RUNS && !anchor ? b->n_runs - GATE_RECENT_RUNS : 0;
	*error_square = 0;
	for (unsigned i = first; i < b->n_runs; i++) {
		const struct gate_value *x = &b->run[i].v[metric];
		if ((anchor && !b->run[i].anchor) || isnan(x->value))
			continue;
		*error_square += x->error * x->error;
		v[n++] = x->value;
	}
	*error_square /= n ? n : 1;
	return n;
}

/* All that a judgement needs of a metric, and its t. */
struct gate_test {
	double t, df, spread;    /* of the difference, in units of the metric; df 0 = too few runs */
	double base;             /* 100 % of a change */
};

static struct gate_test gate_test(const struct gate_block *b, const struct gate_value *const *run, unsigned k, struct gate_judgement *j)
{
	struct gate_test test = {0};
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), *recent = NEW_ARRAY_RAW(b->n_runs + 1, double), error, recent_error, new_error = 0;
	j->n = gate_take(b, j->metric, j->anchor, v, &error);
	const unsigned n_recent = gate_take(b, j->metric, false, recent, &recent_error);
	j->accepted = gate_mean(v, j->n);
	j->value = 0;
	for (unsigned i = 0; i < k; i++) {
		j->value += run[i][j->metric].value / k;
		new_error += run[i][j->metric].error * run[i][j->metric].error / k;
	}
	test.base = j->accepted;
	if (gate_is_part_of_step(b, j->metric)) {
		double ignored, *step = NEW_ARRAY_RAW(b->n_runs + 1, double);
		const unsigned n = gate_take(b, gate_block_metric(b, str_from(gate_own_metric[GATE_STEP])), j->anchor, step, &ignored);
		test.base = gate_mean(step, n);
		mem_free(step);
	}
	if (j->n && n_recent >= 2) {
		const struct gate_scatter s = gate_scatter_of(recent, n_recent);
		const double sd = fmax(s.sd, test.base * GATE_LEAST_SCATTER_PCT / 100), more = fmax(new_error - recent_error, 0) / k;
		test.df = s.df;
		test.spread = sqrt(sd * sd * (1.0 / k + 1.0 / j->n) + more);
		test.t = test.spread > 0 ? (j->value - j->accepted) / test.spread : 0;
	}
	mem_free(v);
	mem_free(recent);
	return test;
}

/* Whether all have the metric, and not all have 0 of it: what is not there is no test that could fail. */
static bool gate_is_there(const struct gate_block *b, unsigned metric, bool anchor, const struct gate_value *const *run, unsigned k)
{
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	const unsigned n = gate_take(b, metric, anchor, v, &error);
	bool known = n > 0, any = false;
	for (unsigned i = 0; i < n; i++)
		any |= v[i] != 0;
	for (unsigned i = 0; i < k; i++) {
		known &= !isnan(run[i][metric].value);
		any |= run[i][metric].value != 0;
	}
	mem_free(v);
	return known && any;
}

struct gate_judgements gate_judge(const struct gate_block *b, const struct gate_value *const *run, unsigned k, const struct gate_ask *ask)
{
	struct gate_judgements all = {0};
	struct gate_test test[2 * GATE_METRICS_MAX];
	double p[2 * GATE_METRICS_MAX] = {0};
	bool rejected[2 * GATE_METRICS_MAX], creeps = false;
	for (unsigned i = 0; i < b->n_runs; i++)
		creeps |= !b->run[i].anchor;
	for (unsigned m = 0; m < b->n_metrics; m++)
		for (unsigned anchor = 0; anchor <= creeps; anchor++) {
			if (!gate_is_there(b, m, anchor, run, k))
				continue;
			struct gate_judgement *j = &all.v[all.n];
			*j = (struct gate_judgement){.metric = m, .anchor = anchor};
			test[all.n] = gate_test(b, run, k, j);
			p[all.n] = test[all.n].df > 0 ? gate_t_above(test[all.n].t, test[all.n].df) : 1;
			all.n++;
		}
	gate_holm(p, all.n, ask->false_alarms_pct / 100, rejected);
	for (unsigned i = 0; i < all.n; i++) {
		struct gate_judgement *j = &all.v[i];
		const struct gate_test *x = &test[i];
		const bool enough = x->df > 0 && j->n >= (j->anchor ? 1 : GATE_FEWEST_RUNS);
		j->change_pct = percent(j->value - j->accepted, x->base);
		j->p = x->df > 0 ? p[i] : NAN;
		j->fails_from_pct = j->least_pct = NAN;
		if (x->df > 0) {
			j->fails_from_pct = fmax(ask->threshold_pct, percent(gate_t_of(ask->false_alarms_pct / 100 / all.n, x->df) * x->spread, x->base));
			j->least_pct = j->fails_from_pct + percent(gate_t_of(GATE_MISSED, x->df) * x->spread, x->base);
		}
		const bool matters = x->base > 0 ? j->change_pct >= ask->threshold_pct : j->value > j->accepted;
		j->verdict = enough && rejected[i] && matters ? GATE_FAIL : matters || !enough ? GATE_UNDECIDED : GATE_PASS;
		if (j->verdict == GATE_FAIL || (j->verdict == GATE_UNDECIDED && all.verdict == GATE_PASS))
			all.verdict = j->verdict;
	}
	return all;
}

const struct gate_run *gate_typical_run(const struct gate_block *b)
{
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	const unsigned step = gate_block_metric(b, str_from(gate_own_metric[GATE_STEP]));
	const double mean = gate_mean(v, gate_take(b, step, false, v, &error));
	const struct gate_run *best = &b->run[b->n_runs - 1];
	for (unsigned i = 0; i < b->n_runs; i++)
		if (fabs(b->run[i].v[step].value - mean) < fabs(best->v[step].value - mean))
			best = &b->run[i];
	mem_free(v);
	return best;
}

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
	else if (j->verdict == GATE_FAIL)
		buf_printf(out, "; fails from +%.1f %%", j->fails_from_pct);
	else if (j->verdict == GATE_UNDECIDED && !isnan(j->fails_from_pct))
		buf_printf(out, ", which accepted runs may differ by, too: from +%.1f %% on they do not", j->fails_from_pct);
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
				buf_printf(out, ", one of %.1f %% would not: more accepted runs, or longer ones, show less", ask->threshold_pct);
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
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	for (unsigned m = 0; m < b->n_metrics; m++) {
		unsigned n = 0;
		for (unsigned i = 0; i < b->n_runs; i++)
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
	(void)error;
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
	table_note(out, "a run fails where it differs by more than accepted runs do, with %g %% false alarms over all metrics together (Student's t by run, Holm), and by at least %g %%",
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
	[LEARNT_RUNS] = {.id = "runs", .title = "Runs", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_ANSWER, .help = "accepted runs that have it"},
	[LEARNT_ANCHORS] = {.id = "anchors", .title = "Anchors", .type = CELL_I64, .unit = UNIT_COUNT, .help = "of these, the ones that were accepted first"},
	[LEARNT_MEAN] = {.id = "mean", .title = "Mean", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "of the last 20 accepted runs"},
	[LEARNT_SCATTER] = {.id = "scatter_pct", .title = "Scatter", .type = CELL_F64, .unit = UNIT_PERCENT, .help = "how far one run is from the next: the standard deviation, of the mean"},
	[LEARNT_LEAST] = {.id = "least_pct", .title = "Least seen", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_ANSWER, .help = "the change that the gate finds in 80 of 100 runs; unknown with fewer than 3"},
	[LEARNT_ID] = {.id = "id", .title = "Id", .type = CELL_STR, .flags = COLUMN_DETAIL, .help = "the metric as the file calls it, with its unit"},
	[LEARNT_VALUE] = {.id = "value", .title = "Value", .type = CELL_F64, .flags = COLUMN_DETAIL, .help = "Mean as a number, in the unit of Id"},
};

static void gate_put_learnt(const struct gate_block *b, struct str configuration, const struct gate_ask *ask, struct table *out)
{
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	for (unsigned m = 0; m < b->n_metrics; m++) {
		const unsigned n = gate_take(b, m, false, v, &error);
		if (!n)
			continue;
		struct gate_value *same = NEW_ARRAY(b->n_metrics, struct gate_value);
		const struct gate_value *const one = same;
		for (unsigned i = 0; i < b->n_metrics; i++)
			same[i].value = gate_take(b, i, false, v, &error) ? gate_mean(v, gate_take(b, i, false, v, &error)) : NAN;
		const struct gate_judgements all = gate_judge(b, &one, 1, ask);
		table_row(out);
		table_set_str_copy(out, LEARNT_CONFIGURATION, configuration);
		gate_set_title(out, LEARNT_METRIC, b->metric[m]);
		table_set_str_copy(out, LEARNT_ID, b->metric[m]);
		table_set_i64(out, LEARNT_RUNS, n);
		table_set_f64(out, LEARNT_VALUE, same[m].value);
		gate_set_value(out, LEARNT_MEAN, b->metric[m], same[m].value);
		for (unsigned i = 0; i < all.n; i++)
			if (all.v[i].metric == m && !all.v[i].anchor && n >= GATE_FEWEST_RUNS)
				table_set_f64(out, LEARNT_LEAST, all.v[i].least_pct);
		gate_take(b, m, false, v, &error);
		if (n >= 2)
			table_set_f64(out, LEARNT_SCATTER, percent(gate_scatter_of(v, n).sd, same[m].value));
		table_set_i64(out, LEARNT_ANCHORS, gate_take(b, m, true, v, &error));
		mem_free(same);
	}
	mem_free(v);
	gate_note_trends(b, out);
	if (b->n_runs < GATE_FEWEST_RUNS)
		table_warn(out, "%u accepted run%s: until there are %d, every check is undecided", b->n_runs, b->n_runs == 1 ? "" : "s", GATE_FEWEST_RUNS);
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
