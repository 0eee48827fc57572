/* What a report has of --group-by, --compat and the like, and what was asked of it. */
#include "base/buf.h"
#include "report/report.h"

#include <stdlib.h>

/* The number behind the colon of a part; 0 where there is none. False when it is no such number. */
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

static bool listed(const char *const *list, struct str value)
{
	for (; list && *list; list++)
		if (allows(*list, value))
			return true;
	return false;
}

static bool twice(struct str value, struct str part)
{
	struct str rest = value, other;
	unsigned n = 0;
	while (str_split(&rest, ',', &other))
		n += str_eq(report_part_name(other), report_part_name(part));
	return n > 1;
}

/* Sets *wrong to the part that is not in the list, or is there twice. */
static bool combined(const char *const *list, struct str value, struct str *wrong)
{
	struct str rest = value;
	while (str_split(&rest, ',', wrong))
		if (!listed(list, *wrong) || twice(value, *wrong))
			return false;
	return value.n > 0;
}

/* "torch-2.6": the tool and its version as one number; false when the word is nothing of the kind. */
static bool version_of(struct str word, struct str *tool, int64_t *version)
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

/* The word of the list that is the same tool of the nearest version; NULL = none is. */
static const char *nearest_version(const char *const *list, struct str wrong)
{
	struct str tool, other;
	int64_t version, v, least = INT64_MAX;
	const char *found = NULL;
	if (!version_of(wrong, &tool, &version))
		return NULL;
	for (; list && *list; list++)
		if (version_of(str_from(*list), &other, &v) && str_eq(tool, other) && llabs(v - version) < least) {
			least = llabs(v - version);
			found = *list;
		}
	return found;
}

static int refuse(const struct report *r, const char *option, const char *value, struct str wrong, const char *const *list, bool combines,
                  struct err *e)
{
	struct buf words = {0};
	const char *nearest = nearest_version(list, wrong.n ? wrong : str_from(value));
	for (; list && *list; list++)
		buf_printf(&words, "%s%s", words.n ? ", " : "", *list);
	if (!words.n)
		err_set(e, ERR_USAGE, "report %s has no %s", r->name, option);
	else if (combines)
		err_set(e, ERR_USAGE, "%s=%s: '" STR_FMT "': report %s combines, each once: " STR_FMT, option, value, STR_ARG(wrong), r->name,
		        STR_ARG(buf_view(&words)));
	else
		err_set(e, ERR_USAGE, "%s=%s: report %s has: " STR_FMT "%s%s", option, value, r->name, STR_ARG(buf_view(&words)),
		        nearest ? "; the nearest is " : "", nearest ? nearest : "");
	buf_release(&words);
	return -1;
}

int report_check(const struct report *r, const struct report_args *a, struct err *e)
{
	struct str wrong = STR("");
	if (a->group_by) {
		struct str value = str_from(a->group_by);
		if (r->group_combines ? !combined(r->group_by, value, &wrong) : !listed(r->group_by, value))
			return refuse(r, "--group-by", a->group_by, wrong, r->group_by, r->group_combines, e);
	}
	if (a->compat && !listed(r->compat, str_from(a->compat)))
		return refuse(r, "--compat", a->compat, wrong, r->compat, false, e);
	if (a->device && !(r->takes & REPORT_DEVICE))
		return err_set(e, ERR_USAGE, "report %s has no --device: it is always of all devices", r->name);
	if (a->outside && (a->compat || !(r->takes & REPORT_OF_STEPS)))
		return a->compat ? err_set(e, ERR_USAGE, "--steps=outside: not with --compat=%s", a->compat)
		                 : err_set(e, ERR_USAGE, "--steps=outside: report %s cannot show what lies outside the steps: A..B, one step number or all was expected", r->name);
	if (a->top_level && !(r->takes & REPORT_TOP_LEVEL))
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
