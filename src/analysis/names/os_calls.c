#include "analysis/names/os_calls.h"

#define KIND_NAME(id, name, waits) name,
#define KIND_WAITS(id, name, waits) waits,
const char *const os_call_kind_name[OS_CALL_KINDS_N] = {OS_CALL_KINDS(KIND_NAME)};
const bool os_call_waits[OS_CALL_KINDS_N] = {OS_CALL_KINDS(KIND_WAITS)};

enum os_calls_match { MATCH_IS, MATCH_STARTS };

static const struct os_calls_row {
	enum os_call_kind kind;
	enum os_calls_match match;
	struct str text;
} rows[] = {
#define OS_CALL(kind, match, text) {OS_CALL_##kind, MATCH_##match, {(text), sizeof(text) - 1}},
#include "analysis/names/os_calls.def"
#undef OS_CALL
};

enum os_call_kind os_call_kind_of(struct str name)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].match == MATCH_IS ? str_eq(name, rows[i].text) : str_starts(name, rows[i].text))
			return rows[i].kind;
	return OS_CALL_OTHER;
}
