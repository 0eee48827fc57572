#include "analysis/costs/recompute.h"

#include "analysis/names/names.h"
#include "base/mem.h"

/* Frames that show activation checkpointing running the forward pass again. */
static uint8_t recompute_is_frame(struct str name)
{
	return str_has(name, STR("torch/utils/checkpoint.py")) &&
	       (str_ends(name, STR(": recompute_fn")) || str_ends(name, STR(": unpack_hook")));
}

/* Parents stand before their children: one pass, however deep the nesting. */
uint8_t *recompute_spans(const struct profile *p)
{
	struct name_memo frames = name_memo_new(p, recompute_is_frame);
	uint8_t *in = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i];
		in[i] = (up < i && in[up]) || (p->span.kind[i] == SPAN_PYTHON && name_memo_of(&frames, p->span.name[i]));
	}
	name_memo_release(&frames);
	return in;
}
