#include "analysis/tree/sources.h"

const char *const source_match_name[SOURCE_MATCHES] = {
	[SOURCE_NONE] = "none", [SOURCE_AMBIGUOUS] = "ambiguous", [SOURCE_BY_NAME] = "name",
	[SOURCE_BY_CODE] = "code", [SOURCE_BY_GRAPH] = "graph",   [SOURCE_ALL_CALLS] = "all calls",
};

struct sources sources_of(const struct profile *p, uint32_t set)
{
	struct sources s = {{"", 0}, {"", 0}, {"", 0}, SOURCE_NONE};
	struct str match;
	if (!set || !profile_arg(p, set, ARG_SOURCE_MATCH, &match))
		return s;
	for (unsigned i = 0; i < SOURCE_MATCHES; i++)
		if (str_eqc(match, source_match_name[i]))
			s.match = (enum source_match)i;
	(void)profile_arg(p, set, ARG_SOURCE_OPS, &s.ops);
	(void)profile_arg(p, set, ARG_SOURCE_NODES, &s.nodes);
	(void)profile_arg(p, set, ARG_SOURCE_LINES, &s.lines);
	return s;
}
