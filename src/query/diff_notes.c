#include "query/diff_notes.h"

#include "base/mem.h"
#include "query/diff_label.h"
#include "query/diff_wait.h"

#include <math.h>
#include <stdlib.h>

/* Kernels of the same name take the same multiple of time throughout where so much of their time, percent, lies within 2 % of the median ratio. */
static const double DIFF_ALIKE_PCT = 80;

bool diff_facts_differ(const struct diff_side *a, const struct diff_side *b, unsigned i)
{
	return a->fact[i].value.n && b->fact[i].value.n && !str_eq(a->fact[i].value, b->fact[i].value);
}

void diff_put_facts(const struct diff_side *a, const struct diff_side *b, struct buf *out)
{
	for (unsigned i = 0; i < a->n_facts; i++)
		if (diff_facts_differ(a, b, i))
			buf_printf(out, "%s%s " STR_FMT " -> " STR_FMT, out->n ? "; " : "", a->fact[i].name, STR_ARG(a->fact[i].value), STR_ARG(b->fact[i].value));
}

struct diff_ratio {
	double ratio, ns;
};

static int diff_by_ratio(const void *a, const void *b)
{
	double x = ((const struct diff_ratio *)a)->ratio, y = ((const struct diff_ratio *)b)->ratio;
	return (x > y) - (x < y);
}

/* Kernels of equal names that all take the same multiple of time: then it is the clock, or the GPU. */
static void diff_note_clock(const struct diff_matched *m, struct table *t)
{
	struct diff d;
	uint32_t n = 0;
	double all = 0, before = 0, alike = 0, median = 1, longest = 0;
	diff_rows_init(&d, m, DIFF_BY_KERNEL);
	struct diff_ratio *v = NEW_ARRAY(d.n + 1, struct diff_ratio);
	for (uint32_t i = 0; i < d.n; i++) {
		const struct diff_row *r = &d.row[i];
		if (r->kind != DIFF_COMPUTE || r->name_in_a || diff_has_other_shapes(r) || !r->of[0].calls || !r->of[1].calls || !r->of[0].ns)
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

/* slowest_told: the verdict names the worker that computes longest. */
static void diff_note_side(const struct diff_side *s, const char *which, bool slowest_told, struct table *t)
{
	static const char *const window[] = {
		[WINDOW_STEPS] = "its steps", [WINDOW_REPEATS] = "the time in which a pattern of device work repeats", [WINDOW_DEVICE] = "the time from the first to the last device work",
		[WINDOW_RECORDING] = "all of the recording",
	};
	if (!s->has_steps)
		table_warn(t, "%s has no steps: %s counts as one, which holds as much work as happened to be recorded (--key-op=NAME says what marks a step)", which, window[s->window]);
	if (s->warm_up)
		table_note(t, "%s: the first %u step%s took over %.1f times the median and %s left out", which, s->warm_up, s->warm_up == 1 ? "" : "s", DIFF_WARM_UP, s->warm_up == 1 ? "is" : "are");
	if (slowest_told)
		table_note(t, "%s: `opscope report slowdown` tells what each worker costs the step", which);
	else if (s->slowest.n)
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

static void diff_note_causes(const struct diff_causes *causes, struct table *t)
{
	if (causes->stacks)
		table_warn(t, "much of the difference is time without work, and call stacks were recorded, which slow the host: recordings without stacks, shapes and modules tell whether the program differs so");
	if (causes->ranks)
		table_warn(t, "much of the difference is communication, which lasts until the last rank has come: `opscope diff` of the folders with all ranks of both jobs tells waiting from transfer");
}

void diff_notes_add(const struct diff_matched *m, const struct diff_causes *causes, enum diff_by by, struct table *t)
{
	const struct diff_side *a = m->align->side[0], *b = m->align->side[1];
	struct buf facts = {0};
	diff_note_causes(causes, t);
	diff_put_facts(a, b, &facts);
	if (facts.n)
		table_warn(t, "the recordings differ in: " STR_FMT, STR_ARG(buf_view(&facts)));
	buf_release(&facts);
	if (m->pct < DIFF_LEAST_MATCHED)
		table_warn(t, "only %.0f %% of the time of computation is in ops that both have", m->pct);
	if (!m->paths)
		table_warn(t, "most ops are in other modules in A than in B, or one side does not tell the modules (with_stack, with_modules): ops stand together by type");
	if (diff_side_has_shapes(a) != diff_side_has_shapes(b))
		table_warn(t, "%s has no shapes (record_shapes): whether they differ is unknown", diff_side_has_shapes(a) ? "B" : "A");
	diff_note_regions(a, "A", b, by, t);
	diff_note_regions(b, "B", a, by, t);
	diff_note_side(a, "A", causes->slowest[0], t);
	diff_note_side(b, "B", causes->slowest[1], t);
	diff_wait_notes(a, b, t);
	if (a->gpus && b->gpus && !a->workers)
		diff_note_clock(m, t);
	if (a->gpus != b->gpus)
		table_warn(t, "A has %u %s, B %u: numbers are means over these", a->gpus, a->workers ? "workers" : "GPUs", b->gpus);
	table_note(t, "rows%s add up to the step: each moment belongs to %s", by == DIFF_BY_TREE ? " of depth 0" : "",
	           a->gpus ? "what runs then, shared equally where several kernels run; communication and copies count where no computation hides them"
	                   : "the innermost op, else the innermost range, of the thread that runs the steps");
	table_note(t, "A: " STR_FMT ", %u step%s; B: " STR_FMT ", %u step%s", STR_ARG(a->path), a->n_steps, a->n_steps == 1 ? "" : "s", STR_ARG(b->path), b->n_steps, b->n_steps == 1 ? "" : "s");
}
