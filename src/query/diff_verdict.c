#include "query/diff_verdict.h"

#include "base/round.h"
#include "detect/parts/gaps.h"
#include "query/diff_label.h"
#include "query/diff_noise.h"

#include <assert.h>
#include <math.h>

/* Two runs of one program differ by so much, percent, where nothing tells how steps scatter. */
static const double DIFF_UNTOLD_PCT = 2;
/* Terms that the verdict names: until they make up so much of the difference, percent, and no more than so many. */
static const double DIFF_TOLD_PCT = 95;
enum { DIFF_TERMS_TOLD = 5, DIFF_UNCLEAR_TOLD = 2 };
/* Where the steps do not differ: the terms named that do, by so much of A's step at least, percent. */
enum { DIFF_CLEAR_TOLD = 3, DIFF_CLEAR_PCT = 2 };
/* A worker that computes longer than so many percent of what the median one does is told where one side alone has one. */
enum { DIFF_SLOWEST_PCT = 130 };
/* From this share of all differences on, percent, it is said what time without work, or communication, may come from. */
enum { DIFF_MUCH_PCT = 30 };

enum { VERDICT_TEXT, VERDICT_A, VERDICT_B, VERDICT_DELTA, VERDICT_PCT, VERDICT_HALF, VERDICT_LEAST, VERDICT_MATCHED, VERDICT_STEPS_A, VERDICT_STEPS_B, VERDICT_PATH_A, VERDICT_PATH_B };
static const struct column diff_verdict_columns[] = {
	[VERDICT_TEXT] = {.id = "verdict", .title = "Verdict", .type = CELL_STR, .flags = COLUMN_ANSWER | COLUMN_PROSE | COLUMN_WIDE, .help = "whether B is slower, by how much, and what that is made of"},
	[VERDICT_A] = {.id = "a_step_ns", .title = "Step of A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "mean"},
	[VERDICT_B] = {.id = "b_step_ns", .title = "Step of B", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "mean"},
	[VERDICT_DELTA] = {.id = "delta_ns", .title = "B - A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "the sum of all rows"},
	[VERDICT_PCT] = {.id = "delta_pct", .title = "B - A %", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL, .help = "of A's step"},
	[VERDICT_HALF] = {.id = "half_ns", .title = "+-", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "half the 95 % interval of B - A, by how the steps scatter; empty = fewer than 2 steps"},
	[VERDICT_LEAST] = {.id = "least_ns", .title = "Least seen", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL, .help = "the least difference that so many steps would show in 80 of 100 pairs"},
	[VERDICT_MATCHED] = {.id = "matched_pct", .title = "Matched", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_DETAIL, .help = "of the time of computation, on the side where it is less: ops that the other side has too, by type and pass, and at the same path or about as often; empty = compiled regions or graphs of one side do not tell their ops"},
	[VERDICT_STEPS_A] = {.id = "a_steps", .title = "Steps of A", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_DETAIL, .help = "that the numbers are of"},
	[VERDICT_STEPS_B] = {.id = "b_steps", .title = "Steps of B", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_DETAIL, .help = "that the numbers are of"},
	[VERDICT_PATH_A] = {.id = "a_path", .title = "A", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_PATH, .help = "the recording; of a job its folder"},
	[VERDICT_PATH_B] = {.id = "b_path", .title = "B", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_PATH, .help = "the same"},
};

void diff_put_time(double ns, bool sign, struct buf *b)
{
	double size = fabs(ns);
	const char *unit = size >= 1e9 ? "s" : size >= 1e6 ? "ms" : size >= 1e3 ? "us" : "ns";
	double by = size >= 1e9 ? 1e9 : size >= 1e6 ? 1e6 : size >= 1e3 ? 1e3 : 1;
	buf_printf(b, sign ? "%+.*f %s" : "%.*f %s", by > 1 ? 1 : 0, ns / by, unit);
}

static void diff_put_term(const struct diff *d, const struct diff_row *r, struct buf *b)
{
	struct str name = diff_shown(d, r), direction = intern_get(&d->texts, r->direction);
	diff_put_time(r->delta_ns, true, b);
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

/* Terms that make up most of the difference, told after `lead` and ", ", clear ones or unclear ones. Returns their sum. */
static double diff_put_terms_that(const struct diff *d, bool unclear, double delta, unsigned most, const char *lead, unsigned *n, struct buf *b)
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
		buf_cstr(b, *n ? ", " : lead);
		diff_put_term(d, r, b);
		told += r->delta_ns;
		++*n;
	}
	return told;
}

/* Of which what is not told is how much. `lead`: what stands before the first. */
static void diff_put_terms(const struct diff *d, double delta, const char *lead, struct buf *b)
{
	unsigned n = 0, n_unclear = 0;
	struct buf unclear = {0};
	const double told = diff_put_terms_that(d, false, delta, DIFF_TERMS_TOLD, lead, &n, b), unsure = diff_put_terms_that(d, true, delta, DIFF_UNCLEAR_TOLD, " (", &n_unclear, &unclear);
	if (n_unclear) {
		buf_cstr(b, n ? ", " : lead);
		diff_put_time(unsure, true, b);
		buf_printf(b, " in %s that %u and %u steps cannot tell from noise" STR_FMT ")", n_unclear == 1 ? "a term" : "terms", d->side[0]->n_steps, d->side[1]->n_steps, STR_ARG(buf_view(&unclear)));
	}
	if (n + n_unclear && n + n_unclear < d->n && fabs(delta - told - unsure) >= 1) {
		buf_cstr(b, ", ");
		diff_put_time(delta - told - unsure, true, b);
		buf_cstr(b, " other");
	}
	buf_release(&unclear);
}

/* What is known to have changed though the steps are not. */
static void diff_put_clear(const struct diff *d, double a, struct buf *b)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < d->n && n < DIFF_CLEAR_TOLD && fabs(d->row[i].delta_ns) * 100 >= DIFF_CLEAR_PCT * a; i++) {
		const struct diff_row *r = &d->row[i];
		if (!r->half_known || diff_is_unclear(r))
			continue;
		buf_cstr(b, n++ ? ", " : "; within it ");
		diff_put_term(d, r, b);
	}
}

/* The time with work that is not communication, of a step. */
static double diff_work_ns(const struct diff *d, int side)
{
	double ns = 0;
	for (uint32_t i = 0; i < d->n; i++)
		ns += d->row[i].kind == DIFF_COMPUTE ? diff_row_ns(d, &d->row[i], side) : 0;
	return ns;
}

static void diff_put_work(const struct diff *d, struct buf *b)
{
	buf_printf(b, "; of it %s ", d->side[0]->workers ? "computation" : "kernels");
	diff_put_time(diff_work_ns(d, 0), false, b);
	buf_cstr(b, " -> ");
	diff_put_time(diff_work_ns(d, 1), false, b);
}

/* The worker of one side that all others wait for: means over the workers do not tell it. */
static void diff_put_slowest(const struct diff *d, const struct diff_causes *causes, struct buf *b)
{
	for (int s = 0; s < 2; s++)
		if (causes->slowest[s])
			buf_printf(b, "; in %s " STR_FMT, s ? "B" : "A", STR_ARG(d->side[s]->slowest));
}

/* "B is 12.4 % slower", or that no one can tell. Returns whether there is a difference to be taken apart. */
static bool diff_put_lead(const struct diff *d, const struct diff_noise *noise, bool stacks, double a, double delta, struct buf *b)
{
	const double pct = percent(delta, a);
	const bool none = noise->known ? fabs(delta) <= noise->half_ns : fabs(pct) < DIFF_UNTOLD_PCT;
	const char *as = stacks ? " (as recorded, with call stacks that slow the host)" : "";
	if (!d->side[0]->has_steps || !d->side[1]->has_steps) {
		buf_cstr(b, "Unknown whether B is slower at the same work, because ");
		buf_printf(b, "%s: recorded time ", d->side[0]->has_steps ? "B has no steps" : d->side[1]->has_steps ? "A has no steps" : "neither has steps");
		return true;
	}
	if (!none && !noise->known) {
		buf_printf(b, "B's step is %.1f %% %s%s; unknown whether that is more than steps scatter, because %s 1 step: step ", fabs(pct), delta > 0 ? "longer" : "shorter", as,
		           d->side[0]->n_steps > 1 ? "B has" : d->side[1]->n_steps > 1 ? "A has" : "each has");
	} else if (!none) {
		if (delta > a)
			buf_printf(b, "B takes %.1f times as long%s: step ", (a + delta) / a, as);
		else
			buf_printf(b, "B is %.1f %% %s%s: step ", fabs(pct), delta > 0 ? "slower" : "faster", as);
	} else if (noise->known) {
		buf_printf(b, "No difference that %u and %u steps can show", d->side[0]->n_steps, d->side[1]->n_steps);
		if (noise->least_ns > 0) {
			buf_cstr(b, " (from ");
			diff_put_time(noise->least_ns, false, b);
			buf_printf(b, ", %.1f %%, on it would be seen)", percent(noise->least_ns, a));
		}
		buf_cstr(b, ": step ");
	} else {
		buf_printf(b, "No difference beyond what two runs of one program show (%.0f %%; 1 step tells nothing of how steps scatter): step ", DIFF_UNTOLD_PCT);
	}
	return !none;
}

/* Returns whether it takes a difference apart. */
static bool diff_put_verdict(const struct diff *d, const struct diff_noise *noise, const struct diff_causes *causes, struct buf *b)
{
	const double a = diff_step_ns(d->side[0]), delta = diff_step_ns(d->side[1]) - a;
	const bool differ = diff_put_lead(d, noise, causes->stacks, a, delta, b);
	diff_put_time(a, false, b);
	buf_cstr(b, " -> ");
	diff_put_time(a + delta, false, b);
	buf_cstr(b, ", ");
	diff_put_time(delta, true, b);
	if (noise->known && noise->half_ns > 0) {
		buf_cstr(b, " +- ");
		diff_put_time(noise->half_ns, false, b);
	}
	if (d->side[0]->gpus)
		diff_put_work(d, b);
	if (differ) {
		diff_put_slowest(d, causes, b);
		/* the terms are of the step, not of what was said of kernels or of a worker */
		diff_put_terms(d, delta, d->side[0]->gpus || causes->slowest[0] || causes->slowest[1] ? "; the difference: " : ": ", b);
	} else {
		diff_put_clear(d, a, b);
	}
	return differ;
}

/* Time without work, but while the host loads data or waits for the device: both take as long without stacks. */
static bool diff_is_slowed_by_stacks(const struct diff *d, const struct diff_row *r)
{
	const struct str name = intern_get(&d->texts, r->name);
	return r->kind == DIFF_IDLE && !str_eqc(name, gap_cause_text[GAP_DATA]) && !str_eqc(name, gap_cause_text[GAP_SYNC]);
}

static struct diff_causes diff_causes_of(const struct diff *d)
{
	double idle = 0, comm = 0, all = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		const double size = fabs(d->row[i].delta_ns);
		all += size;
		idle += diff_is_slowed_by_stacks(d, &d->row[i]) ? size : 0;
		comm += diff_may_wait(&d->row[i]) ? size : 0;
	}
	const struct diff_side *a = d->side[0], *b = d->side[1];
	const bool slow[] = {a->slowest_pct > DIFF_SLOWEST_PCT, b->slowest_pct > DIFF_SLOWEST_PCT};
	return (struct diff_causes){
		.stacks = a->gpus && (diff_side_has_lines(a) || diff_side_has_lines(b)) && idle * 100 >= DIFF_MUCH_PCT * all,
		.ranks = !a->workers && !(a->waits_told && b->waits_told) && comm * 100 >= DIFF_MUCH_PCT * all,
		.slowest = {slow[0] && !slow[1], slow[1] && !slow[0]},
	};
}

struct diff_causes diff_verdict_add(const struct diff *terms, const struct diff_matched *m, struct table *out)
{
	const struct diff_side *a = terms->side[0], *b = terms->side[1];
	struct buf text = {0};
	struct diff_noise noise = a->has_steps && b->has_steps ? diff_noise_of(a->step_ns, a->n_steps, b->step_ns, b->n_steps) : (struct diff_noise){0};
	struct table *t = table_section(out, "verdict", "Verdict");
	t->lead = true;
	assert(terms->by == DIFF_BY_TERM);
	struct diff_causes causes = diff_causes_of(terms);
	if (!diff_put_verdict(terms, &noise, &causes, &text))
		causes = (struct diff_causes){0};
	causes.stacks &= a->has_steps && b->has_steps; /* else it claims none */
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
	if (m->regions[0] == m->regions[1])
		table_set_f64(t, VERDICT_MATCHED, m->pct);
	table_set_i64(t, VERDICT_STEPS_A, a->n_steps);
	table_set_i64(t, VERDICT_STEPS_B, b->n_steps);
	table_set_str_copy(t, VERDICT_PATH_A, diff_side_place(a));
	table_set_str_copy(t, VERDICT_PATH_B, diff_side_place(b));
	buf_release(&text);
	return causes;
}
