#include "analysis/cycles.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/sort.h"

static bool step_number(const struct profile *p, uint32_t span, int64_t *number)
{
	static const char prefix[] = "ProfilerStep#";
	if (p->span.kind[span] != SPAN_USER && p->span.kind[span] != SPAN_OP)
		return false;
	struct str s = profile_str(p, p->span.name[span]);
	if (!str_starts(s, STR(prefix)))
		return false;
	return str_to_i64((struct str){s.p + sizeof prefix - 1, s.n - (sizeof prefix - 1)}, number) && *number >= 0;
}

void cycles_find(const struct profile *p, struct cycles *c)
{
	struct sort_item *v = NULL;
	uint32_t n = 0, cap = 0, cap_cycles = 0;
	int64_t number;
	*c = (struct cycles){0};
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!step_number(p, i, &number))
			continue;
		MEM_GROW(v, cap, n + 1);
		v[n++] = (struct sort_item){.key = sort_key_i64(p->span.start_ns[i]), .row = i};
	}
	if (n)
		sort_items(v, n);
	for (uint32_t i = 0; i < n; i++) {
		struct cycle *last = c->n ? &c->v[c->n - 1] : NULL;
		step_number(p, v[i].row, &number);
		/* Threads and processes have each step. */
		if (!last || number < last->step_last || number - last->step_last > 1) {
			MEM_GROW(c->v, cap_cycles, c->n + 1);
			last = &c->v[c->n++];
			*last = (struct cycle){p->span.start_ns[v[i].row], INT64_MIN, number, number};
		}
		last->step_last = number;
		int64_t end = span_end(p, v[i].row);
		last->end_ns = end > last->end_ns ? end : last->end_ns;
	}
	mem_free(v);
}

void cycles_release(struct cycles *c)
{
	mem_free(c->v);
	*c = (struct cycles){0};
}

uint32_t cycle_at(const struct cycles *c, int64_t time_ns)
{
	uint32_t lo = 0, hi = c->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->v[mid].start_ns <= time_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}
