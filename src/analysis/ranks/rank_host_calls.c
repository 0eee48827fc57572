#include "analysis/ranks/rank_host_calls.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "base/mem.h"

static bool rank_host_calls_is_named(const struct profile *p, uint32_t span)
{
	uint8_t kind = p->span.kind[span];
	return (kind == SPAN_OP || kind == SPAN_USER) && name_is(p, p->span.name[span], NAME_COMM_BY_HOST);
}

bool rank_host_calls_has(const struct profile *p, uint32_t span)
{
	uint32_t up = p->span.parent[span];
	return rank_host_calls_is_named(p, span) && !(up != ROW_NONE && rank_host_calls_is_named(p, up));
}

struct sort_item *rank_host_calls_list(const struct profile *p, struct intervals *talking, uint32_t *n)
{
	struct sort_item *v = NULL;
	uint32_t cap = 0;
	*n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!rank_host_calls_has(p, i))
			continue;
		intervals_add(talking, p->span.start_ns[i], span_end(p, i));
		struct sort_item item = {sort_key_i64(p->span.start_ns[i]), i, 0};
		MEM_PUSH(v, *n, cap, item);
	}
	sort_items(v, *n);
	return v;
}
