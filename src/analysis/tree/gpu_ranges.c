#include "analysis/tree/gpu_ranges.h"

#include "analysis/analysis.h"
#include "base/mem.h"

struct gpu_ranges_walk {
	const struct profile *p;
	uint32_t *stack, n;
};

/* Takes away what has ended, and returns the innermost range that is left. */
static uint32_t innermost_at(struct gpu_ranges_walk *w, int64_t time_ns)
{
	while (w->n && span_end(w->p, w->stack[w->n - 1]) <= time_ns)
		w->n--;
	return w->n ? w->stack[w->n - 1] : ROW_NONE;
}

/* Rows of span and of gpu_op are sorted by track, then start; of equal starts the longer range comes first. */
void gpu_ranges_find(const struct profile *p, struct gpu_ranges *out)
{
	const struct spans *s = &p->span;
	const struct gpu_ops *g = &p->gpu_op;
	*out = (struct gpu_ranges){0};
	for (uint32_t i = 0; i < s->rows.n; i++)
		out->n += s->kind[i] == SPAN_GPU_USER;
	if (!out->n)
		return;
	struct gpu_ranges_walk w = {.p = p, .stack = NEW_ARRAY_RAW(out->n, uint32_t)};
	out->of_gpu = NEW_ARRAY_RAW(g->rows.n, uint32_t);
	out->around = NEW_ARRAY_RAW(s->rows.n, uint32_t);
	for (uint32_t i = 0; i < s->rows.n; i++)
		out->around[i] = ROW_NONE;
	uint32_t range = 0, track = ROW_NONE;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->track[i] != track)
			w.n = 0;
		track = g->track[i];
		while (range < s->rows.n && (s->track[range] < track || (s->track[range] == track && s->start_ns[range] <= g->start_ns[i]))) {
			if (s->track[range] == track && s->kind[range] == SPAN_GPU_USER) {
				uint32_t around = innermost_at(&w, s->start_ns[range]);
				out->around[range] = around != ROW_NONE && span_end(p, range) <= span_end(p, around) ? around : ROW_NONE;
				w.stack[w.n++] = range;
			}
			range++;
		}
		out->of_gpu[i] = innermost_at(&w, g->start_ns[i]);
	}
	mem_free(w.stack);
}

void gpu_ranges_release(struct gpu_ranges *r)
{
	mem_free(r->of_gpu);
	mem_free(r->around);
}
