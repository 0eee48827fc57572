#include "query/per.h"

#include "analysis/steps/slice.h"
#include "query/window.h"

static const struct per_sums {
	const char *report;
	enum { HOST, DEVICE } of;
	const char *ids;
} sums[] = {
#define SUMS(report, of, ids) {report, of, ids},
#include "query/sums.def"
#undef SUMS
};

/* The ids of the report's columns that are sums; NULL = the report has none. */
static const struct per_sums *sums_of(const struct report *r)
{
	for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
		if (strcmp(sums[i].report, r->name) == 0)
			return &sums[i];
	return NULL;
}

const char *report_sums(const struct report *r)
{
	const struct per_sums *s = sums_of(r);
	return s ? s->ids : NULL;
}

/* Whether all device work is in these steps, and all ops and calls, if the report counts these. */
static bool holds_all(const struct profile *p, const struct window *w, const struct per_sums *s)
{
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (!window_has_gpu(w, p, g))
			return false;
	for (uint32_t i = 0; i < p->span.rows.n && s->of == HOST; i++) {
		enum span_kind k = p->span.kind[i];
		if ((k == SPAN_OP || k == SPAN_CALL) && !window_has(w, p->span.start_ns[i]))
			return false;
	}
	return true;
}

/* How many steps the report's sums cover; 0 and *e when that cannot be said. */
static unsigned count_steps(struct profile *p, const struct report_args *args, const struct per_sums *of, struct err *e)
{
	struct window w;
	struct report_args all = *args;
	bool chosen = args->has_steps;
	if (p->durations_only || analysis_run(p, PASS_STEPS, e) < 0 || p->steps->whole_trace) {
		err_set(e, ERR_DATA, "--per=step: the input has no steps; --key-op=NAME says what marks one");
		return 0;
	}
	if (!chosen) {
		all.has_steps = true;
		all.step_first = INT64_MIN;
		all.step_last = INT64_MAX;
	}
	if (window_of(p, &all, &w, e) < 0)
		return 0;
	if (!chosen && !holds_all(p, &w, of)) {
		const struct steps *s = p->steps;
		err_set(e, ERR_DATA, "--per=step: more than the steps was recorded: choose steps, --steps=%lld..%lld", (long long)s->v[0].number,
		        (long long)s->v[s->n ? s->n - 1 : 0].number);
		return 0;
	}
	return w.steps;
}

static double per_number(const struct column_data *d, size_t row)
{
	return d->col.type == CELL_F64 ? d->cell[row].f : (double)d->cell[row].i;
}

/* Divides a column by `steps`; if `steps` is 0, by the calls of each row. */
static void divide(struct table *t, struct column_data *d, unsigned steps, const double *calls)
{
	for (size_t r = 0; r < t->n_rows; r++) {
		double by = steps ? steps : calls[r], v = per_number(d, r);
		d->set[r] &= by > 0;
		d->cell[r].f = by > 0 ? v / by : 0;
	}
	d->col.type = CELL_F64;
}

static void rename_column(struct table *t, struct column *c, const char *per)
{
	c->also = c->also ? arena_printf(&t->arena, "%s %s", c->id, c->also).p : c->id;
	c->id = arena_printf(&t->arena, "%s_per_%s", c->id, per).p;
	c->help = arena_printf(&t->arena, "%s; per %s", c->help, per).p;
}

static void divide_all(struct table *t, const char *ids, unsigned steps, bool rename)
{
	int c_calls = table_find_column(t, STR("calls"));
	double *calls = arena_alloc(&t->arena, (t->n_rows + 1) * sizeof *calls);
	for (size_t r = 0; r < t->n_rows && c_calls >= 0; r++)
		calls[r] = t->data[c_calls].set[r] ? per_number(&t->data[c_calls], r) : 0;
	for (unsigned c = 0; c < t->n_columns; c++) {
		if (!str_has_word(ids, str_from(t->data[c].col.id)) || (!steps && (int)c == c_calls))
			continue;
		divide(t, &t->data[c], steps, calls);
		if (rename)
			rename_column(t, &t->data[c].col, steps ? "step" : "call");
	}
	const char *title = t->heading ? t->heading : t->title;
	t->heading = steps ? arena_printf(&t->arena, "%s, per step (mean of %u; notes are of all)", title, steps).p
	                   : arena_printf(&t->arena, "%s, per call", title).p;
}

/* Says of how many steps the sums are. */
static void per_together(struct table *t, unsigned steps)
{
	if (steps > 1)
		t->heading = arena_printf(&t->arena, "%s, of %u steps together", t->heading ? t->heading : t->title, steps).p;
}

int report_per(const struct report *r, struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	const struct per_sums *s = sums_of(r);
	bool guess = args->per == REPORT_PER_STEP_IF_RIGHT, by_call = args->per == REPORT_PER_CALL;
	bool any = s && !args->compat && !args->outside && !report_is_per_event(r, args->group_by);
	if (!any && (guess || args->per == REPORT_PER_TOTAL))
		return 0;
	if (args->per == REPORT_PER_TOTAL) {
		struct err unknown;
		per_together(out, count_steps(p, args, s, &unknown));
		return 0;
	}
	if (!any || (by_call && table_find_column(out, STR("calls")) < 0))
		return err_set(e, ERR_USAGE, "--per=%s: report %s has no sums over %s here", by_call ? "call" : "step", r->name, by_call ? "calls" : "steps");
	unsigned steps = by_call ? 0 : count_steps(p, args, s, e);
	if (!by_call && !steps)
		return guess ? 0 : -1;
	if (guess && steps > 1 && p->steps->source == STEPS_PERIOD)
		per_together(out, steps);
	else if (!guess || steps > 1)
		divide_all(out, s->ids, steps, !guess);
	return 0;
}
