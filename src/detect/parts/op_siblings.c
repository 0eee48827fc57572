#include "detect/parts/op_siblings.h"

void op_siblings_init(struct op_siblings *s, const struct profile *p)
{
	uint32_t n = p->span.rows.n, *last_of_track = mem_filled(p->track.rows.n, ROW_NONE);
	s->before = NEW_ARRAY_RAW(n, uint32_t);
	s->last_child = NEW_ARRAY_RAW(n, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		s->before[i] = s->last_child[i] = ROW_NONE;
	for (uint32_t i = 0; i < n; i++) {
		if (p->span.kind[i] != SPAN_OP)
			continue;
		uint32_t around = p->span.op[i];
		uint32_t *last = around != ROW_NONE ? &s->last_child[around] : &last_of_track[p->span.track[i]];
		s->before[i] = *last;
		*last = i;
	}
	mem_free(last_of_track);
}

void op_siblings_release(struct op_siblings *s)
{
	mem_free(s->before);
	mem_free(s->last_child);
}

uint32_t op_last_leaf(const struct op_siblings *s, uint32_t span)
{
	while (s->last_child[span] != ROW_NONE)
		span = s->last_child[span];
	return span;
}
