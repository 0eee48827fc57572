#include "detect/host_names.h"

enum match { MATCH_IS, MATCH_STARTS, MATCH_ENDS, MATCH_HAS };

static const struct row {
	enum host_kind kind;
	enum match match;
	struct str text;
} rows[] = {
#define HOST_NAME(kind, match, text) {HOST_##kind, MATCH_##match, {(text), sizeof(text) - 1}},
#include "detect/host_names.def"
#undef HOST_NAME
};

static bool matches(const struct row *r, struct str name)
{
	switch (r->match) {
	case MATCH_IS: return str_eq(name, r->text);
	case MATCH_STARTS: return str_starts(name, r->text);
	case MATCH_ENDS: return str_ends(name, r->text);
	default: return str_has(name, r->text);
	}
}

enum host_kind host_kind_of(struct str name)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (matches(&rows[i], name))
			return rows[i].kind;
	return HOST_PLAIN;
}
