#include "detect/detect.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

static const char *const severity_name[] = {
	[FINDING_INFO] = "info", [FINDING_LOW] = "low", [FINDING_MEDIUM] = "medium", [FINDING_HIGH] = "high",
};

struct finding *findings_add(struct findings *f, const struct detector *d, enum finding_severity s)
{
	MEM_GROW(f->v, f->cap, f->n + 1);
	f->v[f->n] = (struct finding){
		.detector = d->id, .severity = s, .problem = STR(""), .evidence = STR(""), .advice = str_from(d->fix),
	};
	return &f->v[f->n++];
}

void findings_missing(struct findings *f, const struct detector *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	MEM_GROW(f->missing, f->cap_missing, f->n_missing + 1);
	f->missing[f->n_missing++] = (struct not_looked){d->id, arena_str(&f->arena, str_from(text))};
}

void findings_release(struct findings *f)
{
	mem_free(f->v);
	mem_free(f->missing);
	arena_release(&f->arena);
	*f = (struct findings){0};
}

static bool ranks_before(const struct finding *a, const struct finding *b)
{
	if (a->severity != b->severity)
		return a->severity > b->severity;
	return (a->has_gain ? a->gain_ns_per_step : -1) > (b->has_gain ? b->gain_ns_per_step : -1);
}

/* Insertion sort: stable, and there are few. */
static void sort_findings(struct findings *f)
{
	for (unsigned i = 1; i < f->n; i++) {
		struct finding x = f->v[i];
		unsigned k = i;
		for (; k > 0 && ranks_before(&x, &f->v[k - 1]); k--)
			f->v[k] = f->v[k - 1];
		f->v[k] = x;
	}
}

int detect_all(struct profile *p, struct findings *f, struct err *e)
{
	unsigned needs = 0;
	*f = (struct findings){0};
	for (const struct detector *const *d = detector_registry; *d; d++)
		needs |= (*d)->needs;
	if (analysis_run(p, needs, e) < 0)
		return -1;
	for (const struct detector *const *d = detector_registry; *d; d++)
		if ((*d)->run(p, f, e) < 0) {
			err_prefix(e, "%s", (*d)->id);
			findings_release(f);
			return -1;
		}
	sort_findings(f);
	return 0;
}

void findings_table(const struct findings *f, struct table *t)
{
	static const struct column columns[] = {
		{"severity", "Severity", "high, medium, low or info", CELL_STR},
		{"detector", "Finding", "id of the detector", CELL_STR},
		{"problem", "Problem", "what is wrong, with the numbers", CELL_STR, UNIT_NONE, COLUMN_PROSE},
		{"evidence", "Evidence", "what it was measured on", CELL_STR, UNIT_NONE, COLUMN_PROSE},
		{"advice", "Advice", "what to do", CELL_STR, UNIT_NONE, COLUMN_PROSE},
		{"gain_ns_per_step", "Gain per step, at most",
		 "at most this much of a step can be saved; empty when it cannot be bounded", CELL_I64, UNIT_NS},
	};
	table_init(t, "advise", "Findings");
	table_columns(t, columns, sizeof columns / sizeof *columns);
	for (unsigned i = 0; i < f->n; i++) {
		const struct finding *x = &f->v[i];
		table_row(t);
		table_set_str(t, 0, str_from(severity_name[x->severity]));
		table_set_str(t, 1, str_from(x->detector));
		table_set_str_copy(t, 2, x->problem);
		table_set_str_copy(t, 3, x->evidence);
		table_set_str_copy(t, 4, x->advice);
		if (x->has_gain)
			table_set_i64(t, 5, x->gain_ns_per_step);
	}
	if (!f->n)
		table_note(t, "Nothing found.");
	for (unsigned i = 0; i < f->n_missing; i++)
		table_note(t, "%s could not look: " STR_FMT ".", f->missing[i].detector, STR_ARG(f->missing[i].why));
}
