#include "query/diff.h"

#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "query/diff_noise.h"
#include "query/diff_rows.h"
#include "query/diff_wait.h"

#include <math.h>
#include <stdlib.h>

static const char *const diff_by_name[DIFF_BYS] = {
	[DIFF_BY_TERM] = "term", [DIFF_BY_MODULE] = "module", [DIFF_BY_TREE] = "tree", [DIFF_BY_OP] = "op", [DIFF_BY_KERNEL] = "kernel", [DIFF_BY_LINE] = "line",
};

int diff_by_of(struct str name, enum diff_by *by, struct err *e)
{
	struct buf names = {0};
	for (unsigned i = 0; i < DIFF_BYS; i++) {
		if (str_eqc(name, diff_by_name[i])) {
			*by = (enum diff_by)i;
			buf_release(&names);
			return 0;
		}
		buf_printf(&names, "%s%s", i == 0 ? "" : i + 1 < DIFF_BYS ? ", " : " or ", diff_by_name[i]);
	}
	err_set(e, ERR_USAGE, "by=" STR_FMT ": " STR_FMT " was expected", STR_ARG(name), STR_ARG(buf_view(&names)));
	buf_release(&names);
	return -1;
}

/* Two runs of one program differ by so much, percent, where nothing tells how steps scatter. */
static const double DIFF_UNTOLD_PCT = 2;
/* Percent by which a call's time, or the number of calls, must differ to be named. */
static const double DIFF_NAMED_PCT = 2, DIFF_CALLS_PCT = 1;
/* Terms that the verdict names: until they make up so much of the difference, percent, and no more than so many. */
static const double DIFF_TOLD_PCT = 95;
enum { DIFF_TERMS_TOLD = 5, DIFF_UNCLEAR_TOLD = 2 };
/* Kernels of the same name take the same multiple of time throughout where so much of their time, percent, lies within 2 % of the median ratio. */
static const double DIFF_ALIKE_PCT = 80;
/* From this share of all differences on, percent, a note says what time without work, or communication, may come from. */
static const double DIFF_MUCH_PCT = 30;
/* Where all differences together are less of A's step, percent, no note tells what they may come from. */
static const double DIFF_NOTED_PCT = 1;

enum {
	DIFF_KIND, DIFF_DEPTH, DIFF_NAME, DIFF_DIRECTION, DIFF_SHAPES, DIFF_A, DIFF_B, DIFF_DELTA, DIFF_HALF, DIFF_SHARE, DIFF_LABEL, DIFF_CALLS_A, DIFF_CALLS_B, DIFF_EACH_A, DIFF_EACH_B, DIFF_OF_CALLS, DIFF_OF_EACH,
	DIFF_NAME_A, DIFF_SHAPES_A, DIFF_FULL_NAME,
};
static const struct column diff_columns[] = {
	[DIFF_KIND] = {.id = "kind", .title = "Kind", .type = CELL_STR, .flags = COLUMN_MINOR, .help = "what the time is: compute, comm (collectives that no computation hides), wait (of these, until the last rank came, as far as the ranks of a job tell), copy (nothing else runs), idle (by what the host did meanwhile), or host, of a recording without device work or with --device=cpu"},
	[DIFF_DEPTH] = {.id = "depth", .title = "Depth", .type = CELL_I64, .flags = COLUMN_TREE, .help = "in the tree; 0 = root; rows stand in pre-order, and a module's numbers hold those of the rows below it"},
	[DIFF_NAME] = {.id = "name", .title = "Name", .type = CELL_STR, .flags = COLUMN_ANSWER | COLUMN_GROUP | COLUMN_WIDE, .help = "term: ops of one type and path, layers together (* is a number); module: their path alone; tree: a module or an op of the one above it; op; kernel; or function of Python with its recorded line"},
	[DIFF_DIRECTION] = {.id = "direction", .title = "Pass", .type = CELL_STR, .flags = COLUMN_GROUP, .help = "forward, backward or optimizer; empty = none of these"},
	[DIFF_SHAPES] = {.id = "shapes", .title = "Shapes", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_GROUP, .help = "of the op's inputs, where recorded"},
	[DIFF_A] = {.id = "a_ns", .title = "A", .type = CELL_F64, .unit = UNIT_NS, .help = "of a step of A, mean; moments in which several kernels run are shared equally, so that rows add up to the step"},
	[DIFF_B] = {.id = "b_ns", .title = "B", .type = CELL_F64, .unit = UNIT_NS, .help = "the same of B"},
	[DIFF_DELTA] = {.id = "delta_ns", .title = "B - A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_ANSWER, .help = "the differences of all rows add up to the difference of the steps"},
	[DIFF_HALF] = {.id = "half_ns", .title = "+-", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "half the 95 % interval of B - A, by how the row scatters from step to step; empty = fewer than 2 steps, or the time of single steps is unknown"},
	[DIFF_SHARE] = {.id = "step_pct", .title = "Of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_MINOR, .help = "B - A as a share of A's step"},
	[DIFF_LABEL] = {.id = "label", .title = "Because", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "new, gone, as a region (a compiled region or a graph, which does not tell its ops, stands beside the ops of its pass), other kernels, other shapes, more calls, fewer calls, slower, faster, same (within 2 %), or unclear (single steps of one run differ by as much); of idle time and waiting more or less; of collectives longer or shorter, with their waiting for other ranks where that is not told apart"},
	[DIFF_CALLS_A] = {.id = "a_calls", .title = "Calls A", .type = CELL_F64, .unit = UNIT_COUNT, .flags = COLUMN_MINOR, .help = "kernels or copies of a step, mean; of host rows calls"},
	[DIFF_CALLS_B] = {.id = "b_calls", .title = "Calls B", .type = CELL_F64, .unit = UNIT_COUNT, .flags = COLUMN_MINOR, .help = "the same of B"},
	[DIFF_EACH_A] = {.id = "a_each_ns", .title = "Each A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "time of a call, mean"},
	[DIFF_EACH_B] = {.id = "b_each_ns", .title = "Each B", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "the same of B"},
	[DIFF_OF_CALLS] = {.id = "by_calls_ns", .title = "By calls", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "the part of B - A that comes from more or fewer calls: their number's difference times the mean of both times"},
	[DIFF_OF_EACH] = {.id = "by_each_ns", .title = "By time", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "the rest: the difference of a call's time, times the mean of both numbers"},
	[DIFF_NAME_A] = {.id = "a_name", .title = "Name in A", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_WIDE, .help = "where it differs"},
	[DIFF_SHAPES_A] = {.id = "a_shapes", .title = "Shapes in A", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_WIDE, .help = "where they differ"},
	[DIFF_FULL_NAME] = {.id = "full_name", .title = "Full name", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_WIDE, .help = "of a kernel whose name is shortened"},
};

enum { VERDICT_TEXT, VERDICT_A, VERDICT_B, VERDICT_DELTA, VERDICT_PCT, VERDICT_HALF, VERDICT_LEAST, VERDICT_MATCHED, VERDICT_STEPS_A, VERDICT_STEPS_B };
static const struct column diff_verdict_columns[] = {
	[VERDICT_TEXT] = {.id = "verdict", .title = "Verdict", .type = CELL_STR, .flags = COLUMN_ANSWER | COLUMN_PROSE | COLUMN_WIDE, .help = "whether B is slower, by how much, and what that is made of"},
	[VERDICT_A] = {.id = "a_step_ns", .title = "Step of A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "mean"},
	[VERDICT_B] = {.id = "b_step_ns", .title = "Step of B", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "mean"},
	[VERDICT_DELTA] = {.id = "delta_ns", .title = "B - A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "the sum of all rows"},
	[VERDICT_PCT] = {.id = "delta_pct", .title = "B - A %", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL, .help = "of A's step"},
	[VERDICT_HALF] = {.id = "half_ns", .title = "+-", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "half the 95 % interval of B - A, by how the steps scatter; empty = fewer than 2 steps"},
	[VERDICT_LEAST] = {.id = "least_ns", .title = "Least seen", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "the least difference that so many steps would show in 80 of 100 pairs"},
	[VERDICT_MATCHED] = {.id = "matched_pct", .title = "Matched", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL, .help = "of the time of computation, on the side where it is less: ops whose type and pass the other side has too; empty = compiled regions or graphs do not tell their ops"},
	[VERDICT_STEPS_A] = {.id = "a_steps", .title = "Steps of A", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_DETAIL, .help = "that the numbers are of"},
	[VERDICT_STEPS_B] = {.id = "b_steps", .title = "Steps of B", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_DETAIL, .help = "that the numbers are of"},
};

/* ---- what a row says ---- */

static bool diff_has_other_shapes(const struct diff_row *r)
{
	return r->of[0].shapes && r->of[1].shapes && r->of[0].shapes != r->of[1].shapes;
}

static struct str diff_shown(const struct diff *d, const struct diff_row *r)
{
	return intern_get(&d->texts, r->shown ? r->shown : r->name);
}

/* Whether a row is of kernels or calls, which can be counted. */
static bool diff_has_calls(const struct diff_row *r)
{
	return r->kind != DIFF_IDLE && r->kind != DIFF_WAIT;
}

/* Collectives whose waiting is unknown: of 1 % or more of their time. */
static bool diff_may_wait(const struct diff_row *r)
{
	return r->kind == DIFF_COMM && r->of[0].mixed_ns + r->of[1].mixed_ns > (r->of[0].ns + r->of[1].ns) / 100;
}

/* Its change is within what it scatters from step to step. */
static bool diff_is_unclear(const struct diff_row *r)
{
	return r->half_known && fabs(r->delta_ns) <= r->half_ns;
}

static const char *diff_label(const struct diff *d, const struct diff_row *r)
{
	double a = diff_row_ns(d, r, 0), b = diff_row_ns(d, r, 1), calls_a = diff_row_calls(d, r, 0), calls_b = diff_row_calls(d, r, 1);
	const bool has_calls = diff_has_calls(r);
	if (r->regions_of)
		return "as a region";
	if (!has_calls && diff_is_unclear(r))
		return "unclear";
	if (!diff_row_is_on(r, 0) && r->kind != DIFF_WAIT)
		return "new";
	if (!diff_row_is_on(r, 1) && r->kind != DIFF_WAIT)
		return "gone";
	if (fabs(b - a) * 100 <= DIFF_NAMED_PCT * a && (!has_calls || fabs(calls_b - calls_a) * 100 <= DIFF_CALLS_PCT * calls_a))
		return "same";
	const bool kernels_differ = d->by != DIFF_BY_KERNEL && r->of[0].kernels != r->of[1].kernels;
	/* Modules and lines have several ops: one more, and the set of their shapes is another. */
	if (has_calls && diff_has_other_shapes(r) && (diff_is_by_op(d) || !kernels_differ))
		return "other shapes";
	if (has_calls && kernels_differ)
		return "other kernels";
	if (has_calls && fabs(calls_b - calls_a) * 100 > DIFF_CALLS_PCT * calls_a)
		return calls_b > calls_a ? "more calls" : "fewer calls";
	if (diff_is_unclear(r))
		return "unclear";
	if (r->kind == DIFF_COMM)
		return diff_may_wait(r) ? b > a ? "longer, or waiting" : "shorter, or less waiting" : b > a ? "longer" : "shorter";
	return has_calls ? b > a ? "slower" : "faster" : b > a ? "more" : "less";
}

static void diff_put_calls(const struct diff *d, const struct diff_row *r, struct table *t)
{
	double calls[2] = {diff_row_calls(d, r, 0), diff_row_calls(d, r, 1)}, each[2] = {0};
	for (int s = 0; s < 2; s++) {
		table_set_f64(t, DIFF_CALLS_A + (unsigned)s, calls[s]);
		each[s] = calls[s] > 0 ? diff_row_ns(d, r, s) / calls[s] : 0;
		if (calls[s] > 0)
			table_set_f64(t, DIFF_EACH_A + (unsigned)s, each[s]);
	}
	if (calls[0] <= 0 || calls[1] <= 0)
		return;
	double by_calls = (calls[1] - calls[0]) * (each[0] + each[1]) / 2;
	table_set_f64(t, DIFF_OF_CALLS, by_calls);
	table_set_f64(t, DIFF_OF_EACH, r->delta_ns - by_calls);
}

static bool diff_is_other(const struct diff *d, const struct diff_row *r)
{
	return r->delta_ns || r->other_name || diff_row_calls(d, r, 0) < diff_row_calls(d, r, 1) || diff_row_calls(d, r, 0) > diff_row_calls(d, r, 1) || r->of[0].kernels != r->of[1].kernels || diff_has_other_shapes(r);
}

static void diff_put_row(const struct diff *d, const struct diff_row *r, struct table *t)
{
	table_row(t);
	table_set_str(t, DIFF_KIND, str_from(diff_kind_name[r->kind]));
	table_set_i64(t, DIFF_DEPTH, r->depth);
	table_set_str_copy(t, DIFF_NAME, diff_shown(d, r));
	if (r->direction)
		table_set_str_copy(t, DIFF_DIRECTION, intern_get(&d->texts, r->direction));
	if (r->shapes)
		table_set_str_copy(t, DIFF_SHAPES, intern_get(&d->texts, r->shapes));
	if (r->other_name)
		table_set_str_copy(t, DIFF_NAME_A, intern_get(&d->texts, r->other_name));
	if (r->other_shapes)
		table_set_str_copy(t, DIFF_SHAPES_A, intern_get(&d->texts, r->other_shapes));
	if (r->shown)
		table_set_str_copy(t, DIFF_FULL_NAME, intern_get(&d->texts, r->name));
	table_set_f64(t, DIFF_A, diff_row_ns(d, r, 0));
	table_set_f64(t, DIFF_B, diff_row_ns(d, r, 1));
	table_set_f64(t, DIFF_DELTA, r->delta_ns);
	if (r->half_known)
		table_set_f64(t, DIFF_HALF, r->half_ns);
	table_set_f64(t, DIFF_SHARE, percent(r->delta_ns, diff_step_ns(d->side[0])));
	table_set_str(t, DIFF_LABEL, str_from(diff_label(d, r)));
	if (diff_has_calls(r))
		diff_put_calls(d, r, t);
}

/* ---- can they be compared? ---- */

static bool diff_facts_differ(const struct diff_side *a, const struct diff_side *b, unsigned i)
{
	return a->fact[i].value.n && b->fact[i].value.n && !str_eq(a->fact[i].value, b->fact[i].value);
}

static void diff_put_facts(const struct diff_side *a, const struct diff_side *b, struct buf *out)
{
	for (unsigned i = 0; i < a->n_facts; i++)
		if (diff_facts_differ(a, b, i))
			buf_printf(out, "%s%s " STR_FMT " -> " STR_FMT, out->n ? "; " : "", a->fact[i].name, STR_ARG(a->fact[i].value), STR_ARG(b->fact[i].value));
}

static int diff_refuse(const struct diff_side *a, const struct diff_side *b, double matched_pct, struct err *e)
{
	struct buf facts = {0};
	diff_put_facts(a, b, &facts);
	err_set(e, ERR_DATA, "only %.0f %% of the time is in ops that both have: these are not two runs of one program (--force compares them anyway)%s" STR_FMT, matched_pct,
	        facts.n ? "; what differs: " : "", STR_ARG(buf_view(&facts)));
	buf_release(&facts);
	return -1;
}

/* ---- the verdict ---- */

static void diff_put_ms(double ns, bool sign, struct buf *b)
{
	double size = fabs(ns);
	const char *unit = size >= 1e9 ? "s" : size >= 1e6 ? "ms" : size >= 1e3 ? "us" : "ns";
	double by = size >= 1e9 ? 1e9 : size >= 1e6 ? 1e6 : size >= 1e3 ? 1e3 : 1;
	buf_printf(b, sign ? "%+.*f %s" : "%.*f %s", by > 1 ? 1 : 0, ns / by, unit);
}

static void diff_put_term(const struct diff *d, const struct diff_row *r, struct buf *b)
{
	struct str name = diff_shown(d, r), direction = intern_get(&d->texts, r->direction);
	diff_put_ms(r->delta_ns, true, b);
	buf_printf(b, " %s" STR_FMT, r->kind == DIFF_IDLE ? "without work: " : r->kind == DIFF_COMM ? "exposed communication: " : r->kind == DIFF_COPY ? "exposed copies: " : "", STR_ARG(name));
	if (direction.n)
		buf_printf(b, " " STR_FMT, STR_ARG(direction));
	if (diff_has_calls(r) && !diff_is_unclear(r))
		buf_printf(b, " (%s)", diff_label(d, r));
}

/* Under a twentieth of the difference. */
static bool diff_is_small(const struct diff_row *r, double delta)
{
	return fabs(r->delta_ns) * 20 <= fabs(delta);
}

/* Terms that make up most of the difference, told after ": " and ", ", clear ones or unclear ones. Returns their sum. */
static double diff_put_terms_that(const struct diff *d, bool unclear, double delta, unsigned most, unsigned *n, struct buf *b)
{
	double told = 0;
	bool passed = false; /* a greater one was of the other kind */
	for (uint32_t i = 0; i < d->n && *n < most && d->row[i].delta_ns; i++) {
		const struct diff_row *r = &d->row[i];
		if (diff_is_small(r, delta) && (unclear || passed || fabs(delta - told) * 100 <= (100 - DIFF_TOLD_PCT) * fabs(delta)))
			break;
		if (diff_is_unclear(r) != unclear) {
			passed = true;
			continue;
		}
		if (*n || unclear)
			buf_cstr(b, *n ? ", " : " (");
		else
			buf_cstr(b, ": ");
		diff_put_term(d, r, b);
		told += r->delta_ns;
		++*n;
	}
	return told;
}

/* Of which what is not told is how much. */
static void diff_put_terms(const struct diff *d, double delta, struct buf *b)
{
	unsigned n = 0, n_unclear = 0;
	struct buf unclear = {0};
	const double told = diff_put_terms_that(d, false, delta, DIFF_TERMS_TOLD, &n, b), scattered = diff_put_terms_that(d, true, delta, DIFF_UNCLEAR_TOLD, &n_unclear, &unclear);
	if (n_unclear) {
		buf_cstr(b, n ? ", " : ": ");
		diff_put_ms(scattered, true, b);
		buf_printf(b, " in %s that scatter%s as much from step to step" STR_FMT ")", n_unclear == 1 ? "a term" : "terms", n_unclear == 1 ? "s" : "", STR_ARG(buf_view(&unclear)));
	}
	if (n + n_unclear && n + n_unclear < d->n && fabs(delta - told - scattered) >= 1) {
		buf_cstr(b, ", ");
		diff_put_ms(delta - told - scattered, true, b);
		buf_cstr(b, " other");
	}
	buf_release(&unclear);
}

/* The time with work that is not communication, of a step. */
static double diff_work_ns(const struct diff *d, int side)
{
	double ns = 0;
	for (uint32_t i = 0; i < d->n; i++)
		ns += d->row[i].kind == DIFF_COMPUTE ? diff_row_ns(d, &d->row[i], side) : 0;
	return ns;
}

/* "B is 12.4 % slower", or that no one can tell. Returns whether there is a difference to be taken apart. */
static bool diff_put_lead(const struct diff *d, const struct diff_noise *noise, double a, double delta, struct buf *b)
{
	double pct = percent(delta, a);
	bool none = noise->known ? fabs(delta) <= noise->half_ns : fabs(pct) < DIFF_UNTOLD_PCT;
	if (!d->side[0]->has_steps || !d->side[1]->has_steps) {
		buf_cstr(b, "Unknown whether B is slower at the same work, because ");
		buf_printf(b, "%s: recorded time ", d->side[0]->has_steps ? "B has no steps" : d->side[1]->has_steps ? "A has no steps" : "neither has steps");
		return true;
	}
	if (!none && !noise->known) {
		buf_printf(b, "B's step is %.1f %% %s; unknown whether that is more than steps scatter, because %s 1 step: step ", fabs(pct), delta > 0 ? "longer" : "shorter",
		           d->side[0]->n_steps > 1 ? "B has" : d->side[1]->n_steps > 1 ? "A has" : "each has");
	} else if (!none) {
		if (delta > a)
			buf_printf(b, "B takes %.1f times as long: step ", (a + delta) / a);
		else
			buf_printf(b, "B is %.1f %% %s: step ", fabs(pct), delta > 0 ? "slower" : "faster");
	} else if (noise->known) {
		buf_printf(b, "No difference that %u and %u steps can show", d->side[0]->n_steps, d->side[1]->n_steps);
		if (noise->least_ns > 0) {
			buf_cstr(b, " (from ");
			diff_put_ms(noise->least_ns, false, b);
			buf_printf(b, ", %.1f %%, on it would be seen)", percent(noise->least_ns, a));
		}
		buf_cstr(b, ": step ");
	} else {
		buf_printf(b, "No difference beyond what two runs of one program show (%.0f %%; 1 step tells nothing of how steps scatter): step ", DIFF_UNTOLD_PCT);
	}
	return !none;
}

static void diff_put_verdict(const struct diff *d, const struct diff_noise *noise, struct buf *b)
{
	double a = diff_step_ns(d->side[0]), delta = diff_step_ns(d->side[1]) - a;
	bool differ = diff_put_lead(d, noise, a, delta, b);
	diff_put_ms(a, false, b);
	buf_cstr(b, " -> ");
	diff_put_ms(a + delta, false, b);
	buf_cstr(b, ", ");
	diff_put_ms(delta, true, b);
	if (noise->known && noise->half_ns > 0) {
		buf_cstr(b, " +- ");
		diff_put_ms(noise->half_ns, false, b);
	}
	if (differ) {
		diff_put_terms(d, delta, b);
	} else if (d->side[0]->gpus) {
		buf_cstr(b, "; of it kernels ");
		diff_put_ms(diff_work_ns(d, 0), false, b);
		buf_cstr(b, " -> ");
		diff_put_ms(diff_work_ns(d, 1), false, b);
	}
}

static void diff_add_verdict(const struct diff_align *x, double matched_pct, struct table *out)
{
	const struct diff_side *a = x->side[0], *b = x->side[1];
	struct diff terms;
	struct buf text = {0};
	struct diff_noise noise = a->has_steps && b->has_steps ? diff_noise_of(a->step_ns, a->n_steps, b->step_ns, b->n_steps) : (struct diff_noise){0};
	struct table *t = table_section(out, "verdict", "Verdict");
	t->lead = true;
	diff_rows_init(&terms, x, DIFF_BY_TERM);
	diff_put_verdict(&terms, &noise, &text);
	diff_rows_release(&terms);
	table_columns(t, diff_verdict_columns, sizeof diff_verdict_columns / sizeof *diff_verdict_columns);
	table_row(t);
	table_set_str_copy(t, VERDICT_TEXT, buf_view(&text));
	table_set_f64(t, VERDICT_A, diff_step_ns(a));
	table_set_f64(t, VERDICT_B, diff_step_ns(b));
	table_set_f64(t, VERDICT_DELTA, diff_step_ns(b) - diff_step_ns(a));
	table_set_f64(t, VERDICT_PCT, percent(diff_step_ns(b) - diff_step_ns(a), diff_step_ns(a)));
	if (noise.known) {
		table_set_f64(t, VERDICT_HALF, noise.half_ns);
		table_set_f64(t, VERDICT_LEAST, noise.least_ns);
	}
	if ((diff_region_pct(a) > 0) == (diff_region_pct(b) > 0))
		table_set_f64(t, VERDICT_MATCHED, matched_pct);
	table_set_i64(t, VERDICT_STEPS_A, a->n_steps);
	table_set_i64(t, VERDICT_STEPS_B, b->n_steps);
	buf_release(&text);
}

/* ---- notes ---- */

struct diff_ratio {
	double ratio, ns;
};

static int diff_by_ratio(const void *a, const void *b)
{
	double x = ((const struct diff_ratio *)a)->ratio, y = ((const struct diff_ratio *)b)->ratio;
	return (x > y) - (x < y);
}

/* Kernels of equal names that all take the same multiple of time: then it is the clock, or the GPU. */
static void diff_note_clock(const struct diff_align *x, struct table *t)
{
	struct diff d;
	uint32_t n = 0;
	double all = 0, before = 0, alike = 0, median = 1, longest = 0;
	diff_rows_init(&d, x, DIFF_BY_KERNEL);
	struct diff_ratio *v = NEW_ARRAY(d.n + 1, struct diff_ratio);
	for (uint32_t i = 0; i < d.n; i++) {
		const struct diff_row *r = &d.row[i];
		if (r->kind != DIFF_COMPUTE || r->other_name || diff_has_other_shapes(r) || !r->of[0].calls || !r->of[1].calls || !r->of[0].ns)
			continue;
		v[n] = (struct diff_ratio){diff_row_ns(&d, r, 1) / diff_row_calls(&d, r, 1) / (diff_row_ns(&d, r, 0) / diff_row_calls(&d, r, 0)), diff_row_ns(&d, r, 0)};
		longest = v[n].ns > longest ? v[n].ns : longest;
		all += v[n++].ns;
	}
	qsort(v, n, sizeof *v, diff_by_ratio);
	for (uint32_t i = 0; i < n && before <= all / 2; i++) {
		median = v[i].ratio;
		before += v[i].ns;
	}
	for (uint32_t i = 0; i < n; i++)
		alike += fabs(v[i].ratio / median - 1) * 100 <= DIFF_NAMED_PCT ? v[i].ns : 0;
	/* Of the longest kernel alone, it may be the kernel: the others must take that multiple, too. */
	if (n > 2 && fabs(median - 1) * 100 > DIFF_NAMED_PCT && (alike - longest) * 100 >= DIFF_ALIKE_PCT * (all - longest))
		table_warn(t, "kernels of the same name and shapes take %.2f times as long in B, nearly all of them: the GPU's clock, its power limit, or another GPU", median);
	mem_free(v);
	diff_rows_release(&d);
}

static void diff_note_side(const struct diff_side *s, const char *which, struct table *t)
{
	static const char *const window[] = {
		[WINDOW_STEPS] = "its steps", [WINDOW_REPEATS] = "the time in which a pattern of device work repeats", [WINDOW_DEVICE] = "the time from the first to the last device work",
		[WINDOW_RECORDING] = "all of the recording",
	};
	if (!s->has_steps)
		table_warn(t, "%s has no steps: %s counts as one, which holds as much work as happened to be recorded (--key-op=NAME says what marks a step)", which, window[s->window]);
	if (s->warm_up)
		table_note(t, "%s: the first %u step%s took over 1.3 times the median and %s left out", which, s->warm_up, s->warm_up == 1 ? "" : "s", s->warm_up == 1 ? "is" : "are");
	if (s->slowest.n)
		table_warn(t, "%s: " STR_FMT " (`opscope report slowdown` tells what each worker costs the step)", which, STR_ARG(s->slowest));
	if (s->thinned)
		table_warn(t, "%s: most events were taken out of the recording; what it lacks counts as time without work", which);
}

/* Of the side that alone has regions. */
static void diff_note_regions(const struct diff_side *s, const char *which, const struct diff_side *other, enum diff_by by, struct table *t)
{
	double pct = diff_region_pct(s);
	if (pct > 0 && diff_region_pct(other) <= 0)
		table_warn(t, "%.0f %% of %s's time with work is in compiled regions or graphs, which do not tell their ops%s", pct, which,
		           by != DIFF_BY_TERM && by != DIFF_BY_OP ? "" : ": they stand beside the ops of their pass that the other side alone has");
}

/* What recording itself may have made of the difference, and what a rank alone does not tell. */
static void diff_note_causes(const struct diff_side *a, const struct diff_side *b, const struct diff *d, struct table *t)
{
	double idle = 0, comm = 0, all = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->row[i].depth) /* the row of its module holds it */
			continue;
		all += fabs(d->row[i].delta_ns);
		idle += d->row[i].kind == DIFF_IDLE ? fabs(d->row[i].delta_ns) : 0;
		comm += diff_may_wait(&d->row[i]) ? fabs(d->row[i].delta_ns) : 0;
	}
	if (all * 100 < DIFF_NOTED_PCT * diff_step_ns(a))
		return;
	const bool stacks = ANY_WHERE(i, 0, a->n_parts, a->part[i].key.line != 0) || ANY_WHERE(i, 0, b->n_parts, b->part[i].key.line != 0);
	if (a->gpus && stacks && idle * 100 >= DIFF_MUCH_PCT * all)
		table_warn(t, "much of the difference is time without work, and call stacks were recorded, which slow the host: recordings without stacks, shapes and modules tell whether the program differs so");
	if (comm * 100 >= DIFF_MUCH_PCT * all)
		table_warn(t, "much of the difference is communication, which lasts until the last rank has come: `opscope report stragglers` of all ranks tells waiting from transfer");
}

static void diff_put_notes(const struct diff_align *x, enum diff_by by, double matched_pct, struct table *t)
{
	const struct diff_side *a = x->side[0], *b = x->side[1];
	struct buf facts = {0};
	diff_put_facts(a, b, &facts);
	if (facts.n)
		table_warn(t, "the recordings differ in: " STR_FMT, STR_ARG(buf_view(&facts)));
	buf_release(&facts);
	if (matched_pct < DIFF_LEAST_MATCHED)
		table_warn(t, "only %.0f %% of the time is in ops that both have", matched_pct);
	if (!diff_know_paths(x))
		table_warn(t, "most ops are in other modules in A than in B, or one side does not tell the modules (with_stack, with_modules): ops stand together by type");
	if (diff_has_shapes(a) != diff_has_shapes(b))
		table_warn(t, "%s has no shapes (record_shapes): whether they differ is unknown", diff_has_shapes(a) ? "B" : "A");
	diff_note_regions(a, "A", b, by, t);
	diff_note_regions(b, "B", a, by, t);
	diff_note_side(a, "A", t);
	diff_note_side(b, "B", t);
	diff_wait_notes(a, b, t);
	if (a->gpus && b->gpus)
		diff_note_clock(x, t);
	if (a->gpus != b->gpus)
		table_warn(t, "A has %u GPUs, B %u: numbers are means over the GPUs", a->gpus, b->gpus);
	table_note(t, "rows%s add up to the step: each moment belongs to %s", by == DIFF_BY_TREE ? " of depth 0" : "",
	           a->gpus ? "what runs then, shared equally where several kernels run; communication and copies count where no computation hides them"
	                   : "the innermost op, else the innermost range, of the thread that runs the steps");
	table_note(t, "A: " STR_FMT ", %u step%s; B: " STR_FMT ", %u step%s", STR_ARG(a->path), a->n_steps, a->n_steps == 1 ? "" : "s", STR_ARG(b->path), b->n_steps, b->n_steps == 1 ? "" : "s");
}

/* The side as it would be without Python frames: their time belongs to the ranges around them. Its parts are the caller's (mem_free). */
static struct diff_side diff_without_frames(const struct diff_side *s)
{
	struct diff_side plain = *s;
	plain.part = NEW_ARRAY_RAW(s->n_parts, struct diff_part);
	for (uint32_t i = 0; i < s->n_parts; i++) {
		struct diff_part *x = &plain.part[i];
		*x = s->part[i];
		if (!x->key.around)
			continue;
		x->key.name = x->key.type = x->key.around;
		x->key.around = 0;
		x->calls = 0;
		if (str_eq(intern_get(&s->texts, x->key.name), diff_side_outside_ranges()))
			x->key.kind = DIFF_IDLE;
	}
	return plain;
}

/* ERR_DATA where one side does not know what rows shall be by. */
static int diff_lacks(const struct diff_align *x, enum diff_by by, struct err *e)
{
	for (unsigned s = 0; s < 2 && by == DIFF_BY_LINE; s++)
		if (!ANY_WHERE(i, 0, x->side[s]->n_parts, x->side[s]->part[i].key.line != 0))
			return err_set(e, ERR_DATA, "%s has no call stacks, so that its lines of Python are unknown: record both with stacks (with_stack)", s ? "B" : "A");
	if ((by == DIFF_BY_MODULE || by == DIFF_BY_TREE) && !diff_know_paths(x))
		return err_set(e, ERR_DATA, "most ops are in other modules in A than in B, or one side does not tell the modules: record both with stacks (with_stack) or modules (with_modules)");
	return 0;
}

/* What is around a row that is put is put. */
static void diff_mark_parents(struct diff *d)
{
	for (uint32_t i = d->n; i-- > 0;)
		if (d->row[i].parent != ROW_NONE && (d->row[i].other_below || diff_is_other(d, &d->row[i])))
			d->row[d->row[i].parent].other_below = true;
}

/* ERR_DATA where they are not of one program, or not of the same part of it. */
static int diff_are_unlike(const struct diff_side *a, const struct diff_side *b, double matched_pct, struct err *e)
{
	if (matched_pct < DIFF_LEAST_MATCHED)
		return diff_refuse(a, b, matched_pct, e);
	if (a->n_ranks != b->n_ranks)
		return err_set(e, ERR_DATA, "A is %u rank%s of a job, B %u: --rank chooses the same ones (--force compares them anyway)", a->n_ranks, a->n_ranks == 1 ? "" : "s", b->n_ranks);
	if (diff_facts_differ(a, b, DIFF_FACT_RANKS))
		return err_set(e, ERR_DATA, "the job of A has " STR_FMT " ranks, that of B " STR_FMT ": a rank does another part of the work (--force compares them anyway)",
		               STR_ARG(a->fact[DIFF_FACT_RANKS].value), STR_ARG(b->fact[DIFF_FACT_RANKS].value));
	return 0;
}

static int diff_aligned_table(const struct diff_align *x, const struct diff_ask *ask, struct table *out, struct err *e)
{
	const double matched_pct = diff_matched_pct(x, false);
	unsigned equal = 0;
	struct diff d;
	if (!ask->force && diff_are_unlike(x->side[0], x->side[1], matched_pct, e) < 0)
		return -1;
	if (diff_lacks(x, ask->by, e) < 0)
		return -1;
	table_init(out, "diff", "What changed from A to B");
	table_columns(out, diff_columns, sizeof diff_columns / sizeof *diff_columns);
	diff_rows_init(&d, x, ask->by);
	diff_mark_parents(&d);
	for (uint32_t i = 0; i < d.n; i++)
		if (d.row[i].other_below || diff_is_other(&d, &d.row[i]))
			diff_put_row(&d, &d.row[i], out);
		else
			equal++;
	if (equal)
		table_note(out, "%u row%s that %s the same time and calls in both %s left out", equal, equal == 1 ? "" : "s", equal == 1 ? "has" : "have", equal == 1 ? "is" : "are");
	diff_note_causes(x->side[0], x->side[1], &d, out);
	diff_rows_release(&d);
	if (ask->by != DIFF_BY_OP) {
		table_leave_out(out, DIFF_SHAPES);
		table_leave_out(out, DIFF_SHAPES_A);
	}
	if (ask->by == DIFF_BY_KERNEL || ask->by == DIFF_BY_TREE)
		table_leave_out(out, DIFF_DIRECTION);
	if (ask->by != DIFF_BY_TREE)
		table_leave_out(out, DIFF_DEPTH);
	table_drop_left_out(out);
	diff_add_verdict(x, matched_pct, out);
	diff_put_notes(x, ask->by, matched_pct, out);
	return 0;
}

static int diff_table_of(const struct diff_side *a, const struct diff_side *b, const struct diff_ask *ask, struct table *out, struct err *e)
{
	struct diff_align x;
	if (!a->gpus != !b->gpus)
		return err_set(e, ERR_DATA, "%s has device work, the other recording has none: only times of the host and of the host, or of GPUs and of GPUs, can be compared (--device=cpu compares the hosts)", a->gpus ? "A" : "B");
	diff_align_init(&x, a, b);
	const int rc = diff_aligned_table(&x, ask, out, e);
	diff_align_release(&x);
	return rc;
}

int diff_table(const struct diff_side *a, const struct diff_side *b, const struct diff_ask *ask, struct table *out, struct err *e)
{
	if (a->frames == b->frames)
		return diff_table_of(a, b, ask, out, e);
	const struct diff_side plain = diff_without_frames(a->frames ? a : b);
	const int rc = a->frames ? diff_table_of(&plain, b, ask, out, e) : diff_table_of(a, &plain, ask, out, e);
	if (rc == 0)
		table_note(out, "%s alone has Python frames (with_stack): their time belongs to the ranges around them here", a->frames ? "A" : "B");
	mem_free(plain.part);
	return rc;
}
