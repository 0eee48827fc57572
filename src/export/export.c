#include "export/export.h"

#include "analysis/steps/steps.h"

const struct export_format *export_find(struct str name)
{
	for (const struct export_format *const *f = export_registry; *f; f++)
		if (str_eqc(name, (*f)->name))
			return *f;
	return NULL;
}

static void export_put_values(const struct export_option *o, struct buf *out)
{
	for (unsigned i = 0; o->values && o->values[i]; i++)
		buf_printf(out, "%s%s", i ? ", " : "", o->values[i]);
}

void export_help(const struct export_option *o, struct buf *out)
{
	static const char mark[] = "{values}";
	const char *at = strstr(o->help, mark);
	if (!at) {
		buf_cstr(out, o->help);
		return;
	}
	buf_str(out, (struct str){o->help, (size_t)(at - o->help)});
	export_put_values(o, out);
	buf_cstr(out, at + sizeof mark - 1);
}

int export_check_value(const struct export_format *f, const struct export_option *o, const char *value, struct err *e)
{
	struct buf list = {0};
	for (unsigned i = 0; o->values && o->values[i]; i++)
		if (strcmp(o->values[i], value) == 0)
			return 0;
	if (!o->values)
		return 0;
	export_put_values(o, &list);
	err_set(e, ERR_USAGE, "--%s=%s: export %s has: " STR_FMT, o->name, value, f->name, STR_ARG(buf_view(&list)));
	buf_release(&list);
	return -1;
}

/* A range may reach beyond the steps that there are; the file then does not have all that was asked for. */
static void note_absent_steps(const struct profile *p, const struct report_args *args, struct diags *notes)
{
	const struct steps *s = args->has_steps ? p->steps : NULL;
	unsigned n = s ? s->n : 0;
	if (!n)
		return;
	int64_t from = s->v[0].number, to = s->v[n - 1].number;
	if ((args->step_first != INT64_MIN && args->step_first < from) || (args->step_last != INT64_MAX && args->step_last > to))
		diag_add(notes, "absent-steps", DIAG_NOTE, -1, "%s: the trace has steps %lld to %lld: those of them are written", steps_range_text(args->step_first, args->step_last).s,
		         (long long)from, (long long)to);
}

int export_run(const struct export_format *f, struct profile *p, const struct report_args *asked, const char *const *value,
               struct sink *out, struct diags *notes, struct err *e)
{
	struct report_args args;
	const char *values[EXPORT_OPTIONS_MAX] = {NULL};
	if (report_args_chosen(p, asked, &args, e) < 0)
		return -1;
	if (args.device && !(f->takes & EXPORT_DEVICE))
		return err_set(e, ERR_USAGE, "export %s has no --device: it is always of all devices", f->name);
	if (f->timeline && p->durations_only)
		return err_set(e, ERR_DATA, "export %s: this input holds durations but no times: give the database or trace that it was made from", f->name);
	for (unsigned i = 0; f->options && f->options[i].name; i++) {
		const struct export_option *o = &f->options[i];
		values[i] = value && value[i] ? value[i] : o->values && !o->optional ? o->values[0] : NULL;
		if (values[i] && export_check_value(f, o, values[i], e) < 0)
			return -1;
	}
	struct profile *part = report_part(p, &args, f->needs, e);
	if (!part)
		return -1;
	note_absent_steps(p, &args, notes);
	args.has_steps = false;
	const struct export_run x = {part, &args, values, out, notes};
	return f->write(&x, e);
}
