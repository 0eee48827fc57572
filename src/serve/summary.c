#include "serve/summary.h"

#include "base/json_text.h"
#include "detect/not_applicable.h"
#include "query/advice.h"
#include "query/report.h"
#include "serve/problems.h"

#include <math.h>

/* ---- cells of tables ---- */

static bool summary_has(const struct table *t, size_t row, const char *id, unsigned *column)
{
	int c = t && row < t->n_rows ? table_find_column(t, str_from(id)) : -1;
	*column = (unsigned)c;
	return c >= 0 && !table_is_null(t, row, (unsigned)c);
}

static double summary_number(const struct table *t, size_t row, const char *id)
{
	unsigned c;
	return summary_has(t, row, id, &c) ? table_f64(t, row, c) : (double)NAN;
}

/* The text is copied. n == 0: there is none. */
static struct str summary_text(const struct table *t, size_t row, const char *id, struct arena *a)
{
	unsigned c;
	return summary_has(t, row, id, &c) ? arena_str(a, table_str(t, row, c)) : STR("");
}

static const struct table *summary_section(const struct table *t, const char *name)
{
	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	return t;
}

/* ---- the step and the GPUs ---- */

/* The GPU of a row; INT64_MIN = it is of no GPU in particular. */
static int64_t summary_device(const struct table *t, size_t row)
{
	double device = summary_number(t, row, "device");
	return isnan(device) ? INT64_MIN : (int64_t)device;
}

static void summary_put_gpus(struct summary *s, const struct table *devices, struct arena *a)
{
	s->n_gpus = devices ? (unsigned)devices->n_rows : 0;
	s->gpu = ARENA_ARRAY(a, s->n_gpus, struct summary_gpu);
	for (unsigned i = 0; i < s->n_gpus; i++)
		s->gpu[i] = (struct summary_gpu){summary_device(devices, i), summary_text(devices, i, "name", a), summary_number(devices, i, "busy_pct"), (double)NAN, (double)NAN, STR("")};
}

static void summary_take_overview(struct summary *s, const struct table *t, struct arena *a)
{
	struct str note = t->n_notes ? arena_str(a, t->notes[0]) : STR("");
	/* Without steps the first row is the time that was looked at, which is no step. */
	if (t->n_rows && str_eqc(summary_text(t, 0, "role", a), "Average Step Time")) {
		s->step_ns.value = summary_number(t, 0, "mean_ns");
		s->step_note = note;
	} else {
		s->step_ns.why = note;
	}
	summary_put_gpus(s, summary_section(t, "devices"), a);
	if (!s->n_gpus)
		s->busy_pct.why = STR("no kernel ran on a GPU");
}

static double summary_mean_busy(const struct summary *s)
{
	double sum = 0;
	for (unsigned i = 0; i < s->n_gpus; i++)
		sum += s->gpu[i].busy_pct;
	return s->n_gpus ? sum / s->n_gpus : (double)NAN;
}

/* The rows of a GPU end with that of all its steps. */
static void summary_take_mfu(struct summary *s, const struct table *t, struct arena *a)
{
	double sum = 0;
	unsigned n = 0;
	for (size_t i = 0; i < t->n_rows; i++) {
		int64_t device = summary_device(t, i);
		if (i + 1 < t->n_rows && summary_device(t, i + 1) == device)
			continue;
		double mfu = summary_number(t, i, "mfu_pct");
		for (unsigned k = 0; k < s->n_gpus; k++)
			if (s->gpu[k].device == device) {
				s->gpu[k].mfu_pct = mfu;
				s->gpu[k].peak_tflops_per_s = summary_number(t, i, "peak_tflops_per_s");
				s->gpu[k].peak_of = summary_text(t, i, "peak_of", a);
			}
		if (isnan(mfu) && !s->mfu_pct.why.n)
			s->mfu_pct.why = summary_text(t, i, "why", a);
		sum += mfu;
		n++;
	}
	s->mfu_pct.value = n ? sum / n : (double)NAN;
}

/* ---- one input ---- */

void summary_set_findings(struct summary *s, struct arena *a, const struct table *t, const struct err *why)
{
	s->findings = t ? (int64_t)t->n_rows : -1;
	if (!t)
		s->findings_why = arena_str(a, str_from(why->msg));
	s->severity = summary_text(t, 0, "severity", a);
	s->problem = summary_text(t, 0, "problem", a);
	struct buf others = {0};
	for (size_t i = 1; t && i < t->n_rows; i++) {
		struct str problem = summary_text(t, i, "problem", a);
		buf_printf(&others, "%s" STR_FMT, others.n ? "\n" : "", STR_ARG(problem));
	}
	s->others = arena_str(a, buf_view(&others));
	buf_release(&others);
}

/* Where hardly any detector could look, that none found anything says nothing. */
static void summary_take_findings(struct summary *s, struct profile *p, struct arena *a)
{
	struct findings f = {0};
	struct table t;
	struct err e;
	if (advice_findings(p, &(struct report_args){0}, &f, &e) < 0) {
		summary_set_findings(s, a, NULL, &e);
		return;
	}
	findings_table(&f, &t);
	summary_set_findings(s, a, &t, &e);
	struct str why = f.n ? STR("") : not_applicable_mostly(&f, a);
	if (why.n) {
		s->findings = -1;
		s->findings_why = why;
	}
	table_release(&t);
	findings_release(&f);
}

static void summary_doubt(struct summary_figure *x, struct arena *a)
{
	if (isnan(x->value) && x->why.n)
		x->why = arena_printf(a, STR_FMT "; the input could not be read wholly", STR_ARG(x->why));
}

/* What is not in a part of the input may be in the rest. */
static void summary_take_losses(struct summary *s, const struct profile *p, struct arena *a)
{
	struct buf b = {0};
	problems_put(&p->diags, DIAG_LOSS, &b);
	s->losses = arena_str(a, buf_view(&b));
	buf_release(&b);
	if (!s->losses.n)
		return;
	if (!s->n_gpus)
		s->busy_pct.why = STR("no work of a GPU is in what could be read of the input");
	summary_doubt(&s->step_ns, a);
	summary_doubt(&s->mfu_pct, a);
	if (s->findings < 0)
		s->findings_why = arena_printf(a, STR_FMT "; the input could not be read wholly", STR_ARG(s->findings_why));
}

void summary_of(struct profile *p, struct arena *a, struct summary *out)
{
	const struct report_args args = {0};
	struct table t;
	struct err e;
	*out = (struct summary){.format = arena_str(a, p->format), .step_ns = {.value = (double)NAN}, .busy_pct = {.value = (double)NAN}, .mfu_pct = {.value = (double)NAN}};
	if (report_run(report_find(STR("overview")), p, &args, &t, &e) == 0) {
		summary_take_overview(out, &t, a);
		table_release(&t);
	} else {
		out->step_ns.why = out->busy_pct.why = arena_str(a, str_from(e.msg));
	}
	out->busy_pct.value = summary_mean_busy(out);
	if (report_run(report_find(STR("mfu")), p, &args, &t, &e) == 0) {
		summary_take_mfu(out, &t, a);
		table_release(&t);
	} else {
		out->mfu_pct.why = arena_str(a, str_from(e.msg));
	}
	summary_take_findings(out, p, a);
	summary_take_losses(out, p, a);
}

/* ---- a job ---- */

/* Adds one rank's figure to the sum; the reason of the first that lacks it stays. */
static void summary_add(struct summary_figure *sum, unsigned *n, const struct summary_figure *x)
{
	if (isnan(x->value)) {
		sum->why = sum->why.n ? sum->why : x->why;
		return;
	}
	sum->value = (*n ? sum->value : 0) + x->value;
	++*n;
}

void summary_of_ranks(const struct summary *rank, unsigned n, struct arena *a, struct summary *out)
{
	unsigned steps = 0, busy = 0, mfu = 0, gpus = 0;
	*out = (struct summary){.ranks = n, .step_ns = {.value = (double)NAN}, .busy_pct = {.value = (double)NAN}, .mfu_pct = {.value = (double)NAN}};
	for (unsigned i = 0; i < n; i++) {
		summary_add(&out->step_ns, &steps, &rank[i].step_ns);
		summary_add(&out->busy_pct, &busy, &rank[i].busy_pct);
		summary_add(&out->mfu_pct, &mfu, &rank[i].mfu_pct);
		gpus += rank[i].n_gpus;
	}
	out->step_ns.value /= steps;
	out->busy_pct.value /= busy;
	out->mfu_pct.value /= mfu;
	out->format = n ? rank[0].format : STR("");
	out->step_note = !steps ? STR("") : arena_printf(a, "Mean over %u rank%s, and over the steps of each.", steps, steps == 1 ? "" : "s");
	out->gpu = ARENA_ARRAY(a, gpus, struct summary_gpu);
	struct buf losses = {0};
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < rank[i].n_gpus; k++)
			out->gpu[out->n_gpus++] = rank[i].gpu[k];
		if (rank[i].losses.n)
			buf_printf(&losses, "%s" STR_FMT, losses.n ? "," : "", STR_ARG(rank[i].losses));
	}
	out->losses = arena_str(a, buf_view(&losses));
	buf_release(&losses);
}

/* ---- as JSON ---- */

/* With a comma behind it. */
static void summary_put_number(struct buf *out, const char *name, double v)
{
	if (isnan(v))
		buf_printf(out, "\"%s\":null,", name);
	else
		buf_printf(out, "\"%s\":%.17g,", name, v);
}

static void summary_put_figure(struct buf *out, const char *name, const char *why_name, const struct summary_figure *x)
{
	summary_put_number(out, name, x->value);
	if (x->why.n) {
		json_put_text(out, why_name, x->why);
		buf_char(out, ',');
	}
}

void summary_put(const struct summary *s, struct buf *out)
{
	buf_char(out, '{');
	json_put_text(out, "format", s->format);
	buf_char(out, ',');
	summary_put_figure(out, "step_ns", "step_why", &s->step_ns);
	json_put_text(out, "step_note", s->step_note);
	buf_char(out, ',');
	summary_put_figure(out, "busy_pct", "busy_why", &s->busy_pct);
	summary_put_figure(out, "mfu_pct", "mfu_why", &s->mfu_pct);
	buf_cstr(out, "\"gpus\":[");
	for (unsigned i = 0; i < s->n_gpus; i++) {
		const struct summary_gpu *g = &s->gpu[i];
		buf_printf(out, "%s{\"device\":%lld,", i ? "," : "", (long long)g->device);
		summary_put_number(out, "busy_pct", g->busy_pct);
		summary_put_number(out, "mfu_pct", g->mfu_pct);
		summary_put_number(out, "peak_tflops_per_s", g->peak_tflops_per_s);
		JSON_PUT_TEXTS(out, {"name", g->name}, {"peak_of", g->peak_of});
		buf_char(out, '}');
	}
	buf_cstr(out, "],");
	if (s->findings >= 0) {
		json_put_number(out, "findings", s->findings);
	} else {
		buf_cstr(out, "\"findings\":null,");
		json_put_text(out, "findings_why", s->findings_why);
	}
	buf_char(out, ',');
	JSON_PUT_TEXTS(out, {"severity", s->severity}, {"problem", s->problem}, {"others", s->others});
	buf_printf(out, ",\"losses\":[" STR_FMT "]", STR_ARG(s->losses));
	if (s->ranks || s->left_out)
		buf_printf(out, ",\"ranks\":%u,\"left_out\":%u", s->ranks, s->left_out);
	buf_cstr(out, "}\n");
}
