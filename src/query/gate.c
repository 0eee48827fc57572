#include "query/gate.h"

#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "base/utf8.h"
#include "query/diff_noise.h"
#include "query/gate_stats.h"
#include "query/gate_values.h"

#include <assert.h>
#include <math.h>

const char *const gate_verdict_name[GATE_VERDICTS] = {[GATE_PASS] = "pass", [GATE_FAIL] = "fail", [GATE_UNDECIDED] = "undecided"};
const char *const gate_own_metric[GATE_OWN_METRICS] = {
	[GATE_STEP] = "step_ns", [GATE_COMM] = "exposed_comm_ns", [GATE_IDLE] = "idle_ns", [GATE_KERNELS] = "kernels", [GATE_PEAK] = "peak_bytes",
};

/* Runs that agree better than this, percent, are taken to scatter so much: counts of kernels do not scatter at all. */
static const double GATE_LEAST_SCATTER_PCT = 0.1;
/* "Would find in 80 of 100 runs." */
static const double GATE_MISSED = 0.2;

/* ---- machines and configurations ---- */

static bool gate_has_fact(const struct gate_fact *fact, unsigned n, struct str name)
{
	return ANY_WHERE(i, 0, n, str_eq(fact[i].name, name));
}

/* The value as the file holds it. A name that is there already stays what it was. Returns how many there are then. */
static unsigned gate_add_fact(struct gate_fact *fact, unsigned n, struct str name, struct str value, struct arena *arena)
{
	struct buf safe = {0};
	if (n == GATE_FACTS_MAX || gate_has_fact(fact, n, name))
		return n;
	utf8_put_safe(&safe, value);
	fact[n] = (struct gate_fact){name, arena_str(arena, buf_view(&safe))};
	buf_release(&safe);
	return n + 1;
}

/* What the user states goes before what the recording does. */
static unsigned gate_facts(const struct diff_side *s, const struct gate_fact *own, unsigned n_own, struct gate_fact *out, struct arena *arena)
{
	unsigned n = 0;
	struct buf gpus = {0};
	for (unsigned i = 0; i < n_own; i++)
		n = gate_add_fact(out, n, own[i].name, own[i].value, arena);
	for (unsigned i = 0; i < s->n_facts; i++)
		if (!s->fact[i].version)
			n = gate_add_fact(out, n, str_from(s->fact[i].name), s->fact[i].value, arena);
	buf_printf(&gpus, "%u", s->gpus);
	n = gate_add_fact(out, n, STR("GPUs"), buf_view(&gpus), arena);
	buf_release(&gpus);
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
			const bool told = side && gate_has_fact(fact, n, of[i].name); /* by the first round */
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

struct gate_block *gate_block_find_or_add(struct gate_file *f, const struct diff_side *s, const struct gate_fact *own, unsigned n_own, const struct str *op, unsigned n_ops, struct err *e)
{
	struct gate_block *b = gate_block_of(f, s, own, n_own);
	for (unsigned i = 0; b && i < n_ops; i++) /* runs that were accepted before do not have it */
		if (gate_block_metric(b, op[i]) == b->n_metrics && gate_file_add_metric(f, b, op[i], e) < 0)
			return NULL;
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

void gate_put_differences(const struct gate_file *f, const struct gate_block *b, const struct diff_side *s, const struct gate_fact *own, unsigned n_own, struct buf *out)
{
	struct arena arena = {0};
	struct gate_fact fact[GATE_FACTS_MAX];
	const unsigned n = gate_facts(s, own, n_own, fact, &arena);
	const struct gate_block *best = b;
	for (unsigned i = 0; i < f->n_blocks && !b; i++)
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

int gate_check_steps(const struct diff_side *s, struct err *e)
{
	if (s->has_steps)
		return 0;
	return err_set(e, ERR_DATA, STR_FMT ": no steps were found, so runs of it cannot be compared (--key-op=NAME says what marks a step)", STR_ARG(s->path));
}

int gate_measure(const struct diff_side *s, const struct gate_block *b, struct gate_value *v, struct err *e)
{
	if (gate_check_steps(s, e) < 0)
		return -1;
	const double steps = (double)s->n_steps * (s->gpus ? s->gpus : 1);
	double *step_ns = NEW_ARRAY_RAW(s->n_steps, double);
	for (unsigned i = 0; i < s->n_steps; i++)
		step_ns[i] = (double)s->step_ns[i];
	for (unsigned m = 0; m < b->n_metrics; m++) {
		struct str metric = b->metric[m];
		v[m] = (struct gate_value){.value = NAN};
		if (str_eqc(metric, gate_own_metric[GATE_STEP]))
			v[m] = (struct gate_value){gate_middle(step_ns, s->n_steps), diff_noise_error(s->step_ns, s->n_steps)};
		else if (str_eqc(metric, gate_own_metric[GATE_COMM]) && s->gpus)
			v[m].value = gate_kind_ns(s, DIFF_COMM, steps) + gate_kind_ns(s, DIFF_WAIT, steps);
		else if (str_eqc(metric, gate_own_metric[GATE_IDLE]) && s->gpus)
			v[m].value = gate_kind_ns(s, DIFF_IDLE, steps);
		else if (str_eqc(metric, gate_own_metric[GATE_KERNELS]) && s->gpus)
			v[m].value = gate_kernels(s, steps);
		else if (str_eqc(metric, gate_own_metric[GATE_PEAK]) && s->peak_bytes >= 0)
			v[m].value = (double)s->peak_bytes;
		else if (str_skip(&metric, GATE_OP))
			v[m].value = gate_op_ns(s, metric, steps);
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

bool gate_is_part_of_step(const struct gate_block *b, unsigned metric)
{
	return str_eqc(b->metric[metric], gate_own_metric[GATE_COMM]) || str_eqc(b->metric[metric], gate_own_metric[GATE_IDLE]);
}

unsigned gate_first_run(const struct gate_block *b)
{
	for (unsigned i = 0; i < b->n_runs; i++)
		if (b->run[i].anchor)
			return i;
	return 0;
}

unsigned gate_values_of(const struct gate_block *b, unsigned metric, bool anchor, double *v, double *error_square)
{
	unsigned n = 0, first = gate_first_run(b);
	if (!anchor && b->n_runs - first > GATE_RECENT_RUNS)
		first = b->n_runs - GATE_RECENT_RUNS;
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
	bool enough;             /* accepted runs, to be certain of anything */
};

static struct gate_test gate_test(const struct gate_block *b, const struct gate_value *const *run, unsigned k, struct gate_judgement *j)
{
	struct gate_test test = {0};
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), *recent = NEW_ARRAY_RAW(b->n_runs + 1, double), error, recent_error, new_error = 0;
	j->n = gate_values_of(b, j->metric, j->anchor, v, &error);
	const unsigned n_recent = gate_values_of(b, j->metric, false, recent, &recent_error);
	j->accepted = gate_mean(v, j->n);
	j->value = 0;
	for (unsigned i = 0; i < k; i++) {
		j->value += run[i][j->metric].value / k;
		new_error += run[i][j->metric].error * run[i][j->metric].error / k;
	}
	test.base = j->accepted;
	if (gate_is_part_of_step(b, j->metric)) {
		double ignored, *step = NEW_ARRAY_RAW(b->n_runs + 1, double);
		const unsigned n = gate_values_of(b, gate_block_metric(b, str_from(gate_own_metric[GATE_STEP])), j->anchor, step, &ignored);
		test.base = gate_mean(step, n);
		mem_free(step);
	}
	test.enough = n_recent >= GATE_FEWEST_RUNS;
	if (j->n && n_recent >= 2) {
		const struct gate_scatter s = gate_scatter_of(recent, n_recent);
		const double sd = fmax(s.sd, test.base * GATE_LEAST_SCATTER_PCT / 100), own_variance = fmax(new_error - recent_error, 0) / k;
		test.df = s.df;
		test.spread = sqrt(sd * sd * (1.0 / k + 1.0 / j->n) + own_variance);
		test.t = test.spread > 0 ? (j->value - j->accepted) / test.spread : 0;
	}
	mem_free(v);
	mem_free(recent);
	return test;
}

/* Whether all have the metric, and not all have 0 of it: what is not there is no test that could fail. */
static bool gate_can_test(const struct gate_block *b, unsigned metric, bool anchor, const struct gate_value *const *run, unsigned k)
{
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	const unsigned n = gate_values_of(b, metric, anchor, v, &error);
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
			if (!gate_can_test(b, m, anchor, run, k))
				continue;
			struct gate_judgement *j = &all.v[all.n];
			*j = (struct gate_judgement){.metric = m, .anchor = anchor};
			test[all.n] = gate_test(b, run, k, j);
			p[all.n] = test[all.n].df > 0 ? gate_t_above(test[all.n].t, test[all.n].df) : 1;
			all.n++;
		}
	gate_holm(p, all.n, ask->false_alarms_pct / 100, rejected);
	all.verdict = all.n ? GATE_PASS : GATE_UNDECIDED;
	for (unsigned i = 0; i < all.n; i++) {
		struct gate_judgement *j = &all.v[i];
		const struct gate_test *x = &test[i];
		j->change_pct = percent(j->value - j->accepted, x->base);
		j->p = x->df > 0 ? p[i] : NAN;
		j->fails_from_pct = j->least_pct = NAN;
		if (x->df > 0) {
			j->fails_from_pct = fmax(ask->threshold_pct, percent(gate_t_of(ask->false_alarms_pct / 100 / all.n, x->df) * x->spread, x->base));
			j->least_pct = j->fails_from_pct + percent(gate_t_of(GATE_MISSED, x->df) * x->spread, x->base);
		}
		const bool matters = x->base > 0 ? j->change_pct >= ask->threshold_pct : j->value > j->accepted;
		j->verdict = x->enough && rejected[i] && matters ? GATE_FAIL : matters || !x->enough ? GATE_UNDECIDED : GATE_PASS;
		if (j->verdict == GATE_FAIL || (j->verdict == GATE_UNDECIDED && all.verdict == GATE_PASS))
			all.verdict = j->verdict;
	}
	return all;
}

const struct gate_run *gate_typical_run(const struct gate_block *b)
{
	double *v = NEW_ARRAY_RAW(b->n_runs + 1, double), error;
	const unsigned step = gate_block_metric(b, str_from(gate_own_metric[GATE_STEP]));
	const double mean = gate_mean(v, gate_values_of(b, step, false, v, &error));
	const struct gate_run *best = &b->run[b->n_runs - 1];
	for (unsigned i = 0; i < b->n_runs; i++)
		if (fabs(b->run[i].v[step].value - mean) < fabs(best->v[step].value - mean))
			best = &b->run[i];
	mem_free(v);
	return best;
}
