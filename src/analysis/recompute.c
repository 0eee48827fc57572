#include "analysis/recompute.h"

#include "base/mem.h"

/* Frames that show activation checkpointing running the forward pass again. */
static bool recompute_is_frame(struct str name)
{
	return str_has(name, STR("torch/utils/checkpoint.py")) &&
	       (str_ends(name, STR(": recompute_fn")) || str_ends(name, STR(": unpack_hook")));
}

/* Parents stand before their children: one pass, however deep the nesting. */
uint8_t *recompute_spans(const struct profile *p)
{
	uint8_t *frame = NEW_ARRAY(p->strings.n, uint8_t), *in = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i], name = p->span.name[i];
		in[i] = up < i && in[up];
		if (in[i] || p->span.kind[i] != SPAN_PYTHON)
			continue;
		if (!frame[name]) /* asked once per name */
			frame[name] = recompute_is_frame(profile_str(p, name)) ? 2 : 1;
		in[i] = frame[name] == 2;
	}
	mem_free(frame);
	return in;
}
