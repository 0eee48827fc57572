/* Which values of --group-by, --compat and the like a report has, and which of its rows the user chose. */
#include "base/buf.h"
#include "query/predecessor.h"

#include <stdlib.h>

/* The number behind the colon of a part; 0 where the part has no colon. False when the text there is not a number. */
static bool part_number(struct str part, int64_t *n)
{
	ptrdiff_t colon = str_find(part, STR(":"));
	*n = 0;
	if (colon < 0)
		return true;
	struct str digits = {part.p + colon + 1, part.n - (size_t)colon - 1};
	return str_to_i64(digits, n) && *n > 0;
}

struct str report_part_name(struct str part)
{
	ptrdiff_t colon = str_find(part, STR(":"));
	return colon < 0 ? part : (struct str){part.p, (size_t)colon};
}

/* Whether `word` of a list, "shape" or "stack:N", allows `part`: "shape"; "stack" or "stack:5". */
static bool allows(const char *word, struct str part)
{
	int64_t n;
	struct str name = report_part_name(str_from(word));
	bool number = name.n < strlen(word);
	return str_eq(name, report_part_name(part)) && part_number(part, &n) && (number || name.n == part.n);
}

/* The row of a report that lists no rows of its own. */
static const struct report_variant choice_own_row = {0};

static bool choice_is_end(const struct report_variant *v)
{
	return !v->report && !v->compat && !v->group_by && !v->parts && !v->run;
}

static bool choice_is_of(const struct report_variant *v, const char *compat)
{
	return compat && v->compat ? strcmp(v->compat, compat) == 0 : compat == v->compat;
}

const struct predecessor *predecessor_find(const char *name)
{
	for (const struct predecessor *const *by = predecessor_registry; name && *by; by++)
		if ((*by)->name && strcmp((*by)->name, name) == 0)
			return *by;
	return NULL;
}

/* Goes over the rows of a report: the rows that wings add, then the report's own. */
struct choice_rows {
	const struct report *report;
	const struct report_variant *at;          /* NULL: behind the last */
	const struct predecessor *const *wing;    /* the next wing */
	bool own;                                 /* the report's own rows have begun */
};

/* The first row of the report, from rows->at on. */
static void choice_settle(struct choice_rows *rows)
{
	for (;;) {
		if (rows->at && !choice_is_end(rows->at) && (!rows->at->report || strcmp(rows->at->report, rows->report->name) == 0))
			return;
		if (rows->at && !choice_is_end(rows->at))
			rows->at++;
		else if (*rows->wing)
			rows->at = (*rows->wing++)->variants;
		else if (!rows->own) {
			rows->at = rows->report->variants;
			rows->own = true;
		} else {
			break;
		}
	}
	rows->at = NULL;
}

static struct choice_rows choice_rows_of(const struct report *r)
{
	struct choice_rows rows = {.report = r, .wing = predecessor_registry};
	choice_settle(&rows);
	return rows;
}

static void choice_next(struct choice_rows *rows)
{
	rows->at++;
	choice_settle(rows);
}

/* The i-th grouping of these numbers. A list of parts names the groupings of the rows beside it, too. */
static const char *choice_grouping(const struct report *r, const char *compat, unsigned i)
{
	for (struct choice_rows rows = choice_rows_of(r); rows.at; choice_next(&rows)) {
		const struct report_variant *v = rows.at;
		if (!choice_is_of(v, compat))
			continue;
		for (unsigned k = 0; v->parts; k++)
			if (k == i || !v->parts[k])
				return v->parts[k];
		if (v->group_by && !i--)
			return v->group_by;
	}
	return NULL;
}

const char *report_grouping(const struct report *r, unsigned i)
{
	return choice_grouping(r, NULL, i);
}

bool report_combines(const struct report *r)
{
	for (struct choice_rows rows = choice_rows_of(r); rows.at; choice_next(&rows))
		if (!rows.at->compat && rows.at->parts)
			return true;
	return false;
}

const char *report_compat(const struct report *r, unsigned i)
{
	const char *last = NULL;
	for (struct choice_rows rows = choice_rows_of(r); rows.at; choice_next(&rows)) {
		const char *compat = rows.at->compat;
		if (!compat || (last && strcmp(compat, last) == 0))
			continue;
		if (!i--)
			return compat;
		last = compat;
	}
	return NULL;
}

static bool twice(struct str value, struct str part)
{
	struct str rest = value, other;
	unsigned n = 0;
	while (str_split(&rest, ',', &other))
		n += str_eq(report_part_name(other), report_part_name(part));
	return n > 1;
}

static bool choice_listed(const char *const *list, struct str value)
{
	for (; *list; list++)
		if (allows(*list, value))
			return true;
	return false;
}

/* Whether the list has each part of the value, and the value has each part once; else *wrong is the first part for which this is false. */
static bool combined(const char *const *list, struct str value, struct str *wrong)
{
	struct str rest = value;
	while (str_split(&rest, ',', wrong))
		if (!choice_listed(list, *wrong) || twice(value, *wrong))
			return false;
	return value.n > 0;
}

/* Takes "torch-2.6" apart: the tool, and its version as one number. False when the word has no version. */
static bool choice_version_of(struct str word, struct str *tool, int64_t *version)
{
	ptrdiff_t dash = str_find(word, STR("-")), dot = str_find(word, STR("."));
	int64_t major, minor;
	if (dash < 0 || dot < dash)
		return false;
	*tool = (struct str){word.p, (size_t)dash};
	if (!str_to_i64((struct str){word.p + dash + 1, (size_t)(dot - dash - 1)}, &major) ||
	    !str_to_i64((struct str){word.p + dot + 1, word.n - (size_t)dot - 1}, &minor))
		return false;
	*version = major * 1000 + minor;
	return major >= 0 && major < 1000 && minor >= 0 && minor < 1000;
}

/* The predecessor of the report that is the same tool in the nearest version; NULL = the report has no version of the tool. */
static const char *nearest_version(const struct report *r, struct str wrong)
{
	struct str tool, other;
	int64_t version, v, least = INT64_MAX;
	const char *found = NULL, *compat;
	if (!choice_version_of(wrong, &tool, &version))
		return NULL;
	for (unsigned i = 0; (compat = report_compat(r, i)); i++)
		if (choice_version_of(str_from(compat), &other, &v) && str_eq(tool, other) && llabs(v - version) < least) {
			least = llabs(v - version);
			found = compat;
		}
	return found;
}

static void choice_put_word(struct buf *b, const char *word)
{
	buf_printf(b, "%s%s", b->n ? ", " : "", word);
}

static const struct report_variant *refuse_compat(const struct report *r, const char *compat, struct err *e)
{
	struct buf words = {0};
	const char *nearest = nearest_version(r, str_from(compat)), *word;
	for (unsigned i = 0; (word = report_compat(r, i)); i++)
		choice_put_word(&words, word);
	if (words.n)
		err_set(e, ERR_USAGE, "--compat=%s: report %s has: " STR_FMT "%s%s", compat, r->name, STR_ARG(buf_view(&words)), nearest ? "; the nearest is " : "",
		        nearest ? nearest : "");
	else
		err_set(e, ERR_USAGE, "report %s has no --compat", r->name);
	buf_release(&words);
	return NULL;
}

/* `wrong` is the part of the value that cannot be combined; empty where groupings do not combine. */
static const struct report_variant *refuse_grouping(const struct report *r, const struct report_args *a, struct str wrong, struct err *e)
{
	struct buf words = {0};
	const char *word;
	for (unsigned i = 0; (word = choice_grouping(r, a->compat, i)); i++)
		choice_put_word(&words, word);
	struct str has = buf_view(&words);
	if (a->compat && !a->group_by)
		err_set(e, ERR_USAGE, "report %s: --compat=%s goes with --group-by: " STR_FMT, r->name, a->compat, STR_ARG(has));
	else if (a->compat)
		err_set(e, ERR_USAGE, "report %s: --compat=%s has no --group-by=%s%s" STR_FMT, r->name, a->compat, a->group_by, has.n ? "; it has: " : "", STR_ARG(has));
	else if (!has.n)
		err_set(e, ERR_USAGE, "report %s has no --group-by", r->name);
	else if (wrong.n)
		err_set(e, ERR_USAGE, "--group-by=%s: '" STR_FMT "': report %s combines, each once: " STR_FMT, a->group_by, STR_ARG(wrong), r->name, STR_ARG(has));
	else
		err_set(e, ERR_USAGE, "--group-by=%s: report %s has: " STR_FMT, a->group_by, r->name, STR_ARG(has));
	buf_release(&words);
	return NULL;
}

/* Whether this value of --group-by chooses the row. */
static bool choice_fits(const struct report_variant *v, struct str value, struct str *wrong)
{
	return v->parts ? combined(v->parts, value, wrong) : v->group_by && allows(v->group_by, value);
}

/* Whether the row is the default, for a user who does not say --group-by. */
static bool choice_is_default(const struct report *r, const struct report_variant *v)
{
	const char *first = report_grouping(r, 0);
	return !v->group_by || (first && strcmp(v->group_by, first) == 0);
}

const struct report_variant *report_variant_of(const struct report *r, const struct report_args *a, struct err *e)
{
	const struct report_variant *found = NULL;
	struct str wrong = STR("");
	bool any = false;
	for (struct choice_rows rows = choice_rows_of(r); rows.at; choice_next(&rows)) {
		const struct report_variant *v = rows.at;
		if (!choice_is_of(v, a->compat))
			continue;
		any = true;
		bool fits = a->group_by ? choice_fits(v, str_from(a->group_by), &wrong) : choice_is_default(r, v);
		if (fits && (!found || !v->parts)) /* a row for one grouping goes before the list of parts */
			found = v;
	}
	if (!any && !a->compat && !a->group_by)
		return &choice_own_row;
	if (!any && a->compat)
		return refuse_compat(r, a->compat, e);
	return found ? found : refuse_grouping(r, a, wrong, e);
}

unsigned report_ignores(const struct report *r, const struct report_args *a)
{
	const bool looks_at_all = a->compat || a->key_op || a->aggregation; /* the search for a key op does, too: steps_choose */
	const struct report_variant *v = looks_at_all ? NULL : report_variant_of(r, a, NULL);
	const unsigned ignores = v ? r->ignores | v->ignores : 0;
	/* Steps may be any ranges, and what is outside of them is counted. */
	return a->has_steps ? ignores & ~(unsigned)LEFT_QUIET : ignores;
}

bool report_is_per_event(const struct report *r, const char *group_by)
{
	const struct report_variant *v = report_variant_of(r, &(struct report_args){.group_by = group_by}, NULL);
	return v && ((r->takes | v->takes) & REPORT_LIMIT);
}

int report_check(const struct report *r, const struct report_args *a, struct err *e)
{
	const struct report_variant *v = report_variant_of(r, a, e);
	if (!v)
		return -1;
	unsigned takes = r->takes | v->takes;
	if (a->device && !(takes & REPORT_DEVICE))
		return err_set(e, ERR_USAGE, "report %s has no --device: it is always of all devices", r->name);
	if (a->outside && (a->compat || !(takes & REPORT_OF_STEPS)))
		return a->compat ? err_set(e, ERR_USAGE, "--steps=outside: not with --compat=%s", a->compat)
		                 : err_set(e, ERR_USAGE, "--steps=outside: report %s cannot show what lies outside the steps: A..B, one step number or all was expected", r->name);
	if (a->top_level && !(takes & REPORT_TOP_LEVEL))
		return err_set(e, ERR_USAGE, "report %s has no --top-level: its rows are not calls that lie in each other", r->name);
	return 0;
}

bool report_groups_by(const struct report_args *a, const char *part, int64_t *n)
{
	struct str rest = str_from(a->group_by ? a->group_by : ""), word;
	while (str_split(&rest, ',', &word))
		if (str_eqc(report_part_name(word), part)) {
			if (n)
				part_number(word, n);
			return true;
		}
	return false;
}
