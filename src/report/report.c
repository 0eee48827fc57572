#include "report/report.h"

#include <stdio.h>

int report_args_steps(struct report_args *a, struct str text, struct err *e)
{
	struct str first = text, last = text;
	ptrdiff_t dots = str_find(text, STR(".."));
	if (dots >= 0) {
		first = (struct str){text.p, (size_t)dots};
		last = (struct str){text.p + dots + 2, text.n - (size_t)dots - 2};
	}
	int64_t from = INT64_MIN, to = INT64_MAX;
	bool ok = (first.n || last.n) && (!first.n || str_to_i64(first, &from)) && (!last.n || str_to_i64(last, &to));
	if (!ok || from > to)
		return err_set(e, ERR_USAGE, "steps=" STR_FMT ": A..B with A <= B, or one step number, was expected", STR_ARG(text));
	a->has_steps = true;
	a->step_first = from;
	a->step_last = to;
	return 0;
}

const struct report *report_find(struct str name)
{
	for (const struct report *const *r = report_registry; *r; r++)
		if (str_eqc(name, (*r)->name))
			return *r;
	return NULL;
}

/* Is `value` in the list? If not, says what is. */
static int check_choice(const struct report *r, const char *option, const char *value, const char *const *list,
                        struct err *e)
{
	char choices[256] = "";
	size_t n = 0;
	for (; list && *list; list++) {
		if (strcmp(*list, value) == 0)
			return 0;
		int w = snprintf(choices + n, sizeof choices - n, "%s%s", n ? ", " : "", *list);
		n = w > 0 && n + (size_t)w < sizeof choices ? n + (size_t)w : n;
	}
	if (!n)
		return err_set(e, ERR_USAGE, "report %s has no %s", r->name, option);
	return err_set(e, ERR_USAGE, "report %s: %s=%s: expected one of %s", r->name, option, value, choices);
}

/* The ids of columns say what they hold: the times of host ranges are made up where an input holds durations of device work
 * only. */
static void forget_host_times(struct table *t)
{
	bool any = false;
	for (struct table *s = t; s; s = s->next)
		for (unsigned c = 0; c < s->n_columns; c++) {
			const struct column *col = &s->data[c].col;
			if ((col->unit != UNIT_NS && col->unit != UNIT_PERCENT) || !strstr(col->id, "host"))
				continue;
			any = true;
			for (size_t i = 0; i < s->n_rows; i++)
				s->data[c].set[i] = 0;
		}
	if (any)
		table_note(t, "host times are unknown: this input holds the durations of kernels only");
}

int report_run(const struct report *r, struct profile *p, const struct report_args *args, struct table *out,
               struct err *e)
{
	if (args->group_by && check_choice(r, "--group-by", args->group_by, r->group_by, e) < 0)
		return -1;
	if (args->compat && check_choice(r, "--compat", args->compat, r->compat, e) < 0)
		return -1;
	if (args->has_steps && !(r->takes & REPORT_STEPS))
		return err_set(e, ERR_USAGE, "report %s has no --steps: it is always of the whole trace", r->name);
	if (args->device && !(r->takes & REPORT_DEVICE))
		return err_set(e, ERR_USAGE, "report %s has no --device: it is always of all devices", r->name);
	if (r->timeline && p->durations_only)
		return err_set(e, ERR_DATA, "report %s: this input holds durations but no times, which idle time, overlap and steps "
		               "need: give the database or trace that it was made from", r->name);
	if (analysis_run(p, r->needs | (args->has_steps ? PASS_STEPS : 0), e) < 0)
		return -1;
	table_init(out, r->name, r->title);
	if (r->run(p, args, out, e) < 0) {
		table_release(out);
		return -1;
	}
	if (p->durations_only)
		forget_host_times(out);
	return 0;
}
