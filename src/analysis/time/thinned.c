#include "analysis/time/thinned.h"

#include "base/mem.h"
#include "base/sort.h"

/* Fewer say nothing. */
enum { FEWEST = 500 };
/* From one number to the next, in the median: in full recordings 1 for ops, and 1 to 12 for calls. */
enum { RARE_OPS = 3, RARE_CALLS = 24 };

/* The median difference of neighbours. Spends v. */
static uint64_t median_step(struct sort_item *v, uint32_t n)
{
	if (n < FEWEST)
		return 0;
	sort_items(v, n);
	for (uint32_t i = 0; i + 1 < n; i++)
		v[i].key = v[i + 1].key - v[i].key;
	sort_items(v, n - 1);
	return v[(n - 1) / 2].key;
}

static uint64_t thinned_step_of(const struct profile *p, uint8_t kind)
{
	uint32_t n = 0;
	struct sort_item *v = NEW_ARRAY_RAW(p->span.rows.n, struct sort_item);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		int64_t id = kind == SPAN_CALL ? p->span.link_id[i] : span_ext_id(&p->span, i);
		if (p->span.kind[i] == kind && id > 0)
			v[n++] = (struct sort_item){(uint64_t)id, i, 0};
	}
	uint64_t step = median_step(v, n);
	mem_free(v);
	return step;
}

struct thinned thinned_of(const struct profile *p)
{
	struct thinned t = {.ops = thinned_step_of(p, SPAN_OP)};
	if (t.ops >= RARE_OPS)
		t.calls = thinned_step_of(p, SPAN_CALL);
	return t;
}

bool thinned_is(const struct thinned *t)
{
	return t->ops >= RARE_OPS && t->calls >= RARE_CALLS;
}
