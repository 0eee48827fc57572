#include "api/api.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/spill.h"
#include "base/threads.h"
#include "export/export.h"

#include <stddef.h>
#include <stdio.h>

/* Of a thread, as errno is: functions whose arguments are part of the binary interface cannot return it otherwise. */
static __thread enum opscope_error newest_error;

enum opscope_error opscope_error_code(void)
{
	return newest_error;
}

int api_error(const struct err *e, char *error, size_t size)
{
	static const enum opscope_error codes[] = {
		[ERR_NONE] = OPSCOPE_ERROR_USAGE, [ERR_IO] = OPSCOPE_ERROR_IO, [ERR_FORMAT] = OPSCOPE_ERROR_FORMAT, [ERR_USAGE] = OPSCOPE_ERROR_USAGE,
		[ERR_DATA] = OPSCOPE_ERROR_LACKS, [ERR_LIMIT] = OPSCOPE_ERROR_LIMIT, [ERR_NOMEM] = OPSCOPE_ERROR_NOMEM,
	};
	newest_error = codes[e->code];
	if (error && size)
		snprintf(error, size, "%s", e->msg);
	return -1;
}

int64_t api_number(const char *value)
{
	int64_t n;
	return value && str_to_i64(str_from(value), &n) ? n : -1;
}

typedef int setter(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e);

static int options_set_text(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	*(const char **)field = value;
	return 0;
}

static int set_flag(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return err_set(e, ERR_USAGE, "%s=%s: 0 or 1 was expected", name, value);
	*(bool *)field = *value == '1';
	return 0;
}

static int options_set_number(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (api_number(value) < 0)
		return err_set(e, ERR_USAGE, "%s=%s: a number from 0 on was expected", name, value);
	return options_set_text(o, field, name, value, e);
}

static int options_set_rank(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (api_number(value) < 0 && strcmp(value, "all") != 0)
		return err_set(e, ERR_USAGE, "rank=%s: a number from 0 on, or all, was expected", value);
	return options_set_text(o, field, name, value, e);
}

static int set_aggregation(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (api_number(value) < 1)
		return err_set(e, ERR_USAGE, "aggregation=%s: a number from 1 on was expected", value);
	*(int64_t *)field = api_number(value);
	return 0;
}

static int options_set_steps(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	return report_args_population(field, str_from(value), e);
}

static int set_per(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (strcmp(value, "total") != 0 && strcmp(value, "step") != 0 && strcmp(value, "call") != 0)
		return err_set(e, ERR_USAGE, "per=%s: total, step or call was expected", value);
	o->report.per = *value == 't' ? REPORT_PER_TOTAL : *value == 's' ? REPORT_PER_STEP : REPORT_PER_CALL;
	return 0;
}

static int set_by(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	return diff_by_of(str_from(value), &o->diff.by, e);
}

static int set_names(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (strcmp(value, "short") != 0 && strcmp(value, "full") != 0)
		return err_set(e, ERR_USAGE, "names=%s: short or full was expected", value);
	o->names = *value == 's' ? NAMES_SHORT : NAMES_FULL;
	return 0;
}

static int set_notes(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	if (strcmp(value, "brief") != 0 && strcmp(value, "full") != 0)
		return err_set(e, ERR_USAGE, "notes=%s: brief or full was expected", value);
	o->notes = *value == 'b' ? NOTES_BRIEF : NOTES_FULL;
	return 0;
}

static int options_set_threads(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	const int64_t n = api_number(value);
	if (n < 1)
		return err_set(e, ERR_USAGE, "threads=%s: a number from 1 on was expected", value);
	*(unsigned *)field = n < THREADS_MOST ? (unsigned)n : THREADS_MOST;
	return 0;
}

/* Of the whole process, and at once: an option has no later time at which memory would still be there to be limited. */
static int options_limit_memory(struct opscope_options *o, void *field, const char *name, const char *value, struct err *e)
{
	uint64_t bytes;
	if (!size_read(str_from(value), &bytes))
		return err_set(e, ERR_USAGE, "memory=%s: " SIZE_EXPECTED, value);
	return spill_limit(bytes, e) < 0 ? err_prefix(e, "memory=%s cannot be kept", value) : 0;
}

#define FIELD(member) offsetof(struct opscope_options, member)
static const struct {
	const char *name;
	setter *set;
	size_t field;
} known[] = {
	{"input-format", options_set_text, FIELD(input.format)},
	{"capture", options_set_text, FIELD(input.capture)},
	{"provenance", options_set_text, FIELD(input.provenance)},
	{"execution-trace", options_set_text, FIELD(input.execution_trace)},
	{"counters", options_set_text, FIELD(input.counters)},
	{"as-written", set_flag, FIELD(input.as_written)},
	{"run", options_set_text, FIELD(run)},
	{"worker", options_set_text, FIELD(worker)},
	{"span", options_set_text, FIELD(span)},
	{"rank", options_set_rank, FIELD(rank)},
	{"gpu", options_set_text, FIELD(gpu)},
	{"rules", options_set_text, FIELD(rules)},
	{"kernel-rules", options_set_text, FIELD(kernel_rules)},
	{"threads", options_set_threads, FIELD(input.threads)},
	{"memory", options_limit_memory, 0},
	{"group-by", options_set_text, FIELD(report.group_by)},
	{"compat", options_set_text, FIELD(report.compat)},
	{"per", set_per, FIELD(report)},
	{"top-level", set_flag, FIELD(report.top_level)},
	{"steps", options_set_steps, FIELD(report)},
	{"key-op", options_set_text, FIELD(report.key_op)},
	{"aggregation", set_aggregation, FIELD(report.aggregation)},
	{"device", options_set_text, FIELD(report.device)},
	{"by", set_by, FIELD(diff)},
	{"force", set_flag, FIELD(diff.force)},
	{"sort", options_set_text, FIELD(arrange.sort)},
	{"filter", options_set_text, FIELD(arrange.filter)},
	{"columns", options_set_text, FIELD(arrange.columns)},
	{"limit", options_set_number, FIELD(limit)},
	{"title", options_set_text, FIELD(arrange.title)},
	{"time-unit", options_set_text, FIELD(arrange.time_unit)},
	{"max-width", options_set_text, FIELD(arrange.max_width)},
	{"names", set_names, FIELD(names)},
	{"notes", set_notes, FIELD(notes)},
	{"width", options_set_number, FIELD(width)},
	{"input", options_set_text, FIELD(input_name)},
	{"fragment", set_flag, FIELD(fragment)},
};
enum { N_KNOWN = sizeof known / sizeof *known };

/* Whether some export format has it: which one is asked for is not known yet. */
static bool of_export(const char *name)
{
	for (const struct export_format *const *f = export_registry; *f; f++)
		for (const struct export_option *x = (*f)->options; x && x->name; x++)
			if (strcmp(x->name, name) == 0)
				return true;
	return false;
}

static int unknown_option(const char *name, struct err *e)
{
	struct buf list = {0};
	for (unsigned i = 0; i < N_KNOWN; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", known[i].name);
	err_set(e, ERR_USAGE, "no option '%s'; there are: " STR_FMT ", and those of export formats", name, STR_ARG(buf_view(&list)));
	buf_release(&list);
	return -1;
}

static int set_option(struct opscope_options *o, const char *name, const char *value, struct err *e)
{
	const char *copy = arena_str(&o->arena, str_from(value)).p;
	if (of_export(name)) {
		struct api_option *own = ARENA_ARRAY(&o->arena, 1, struct api_option);
		*own = (struct api_option){arena_str(&o->arena, str_from(name)).p, copy, o->own};
		o->own = own;
	}
	for (unsigned i = 0; i < N_KNOWN; i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].set(o, (char *)o + known[i].field, name, copy, e);
	return of_export(name) ? 0 : unknown_option(name, e);
}

static void make_options(void *options)
{
	*(struct opscope_options **)options = NEW(struct opscope_options);
}

struct opscope_options *opscope_options_new(void)
{
	struct opscope_options *o = NULL;
	mem_try(NULL, make_options, &o);
	return o;
}

struct setting {
	struct opscope_options *o;
	const char *name, *value;
	struct err *e;
	int rc;
};

static void set_it(void *setting)
{
	struct setting *s = setting;
	s->rc = set_option(s->o, s->name, s->value, s->e);
}

int opscope_options_set(struct opscope_options *o, const char *name, const char *value, char *error, size_t error_size)
{
	struct err e = {0};
	if (!o || !name || !value) {
		err_set(&e, ERR_USAGE, "opscope_options_set: options, a name and a value were expected, not NULL");
		return api_error(&e, error, error_size);
	}
	struct setting s = {o, name, value, &e, 0};
	if (mem_try(NULL, set_it, &s) < 0)
		s.rc = err_nomem(&e);
	return s.rc < 0 ? api_error(&e, error, error_size) : 0;
}

void opscope_options_progress(struct opscope_options *o, void (*told)(void *context, uint64_t done_bytes, uint64_t total_bytes), void *context)
{
	if (!o)
		return;
	o->input.progress = told;
	o->input.progress_context = context;
}

void opscope_options_free(struct opscope_options *o)
{
	if (!o)
		return;
	arena_release(&o->arena);
	mem_free(o);
}
