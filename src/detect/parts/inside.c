#include "detect/parts/inside.h"

#include "analysis/names/names.h"

uint8_t *inside_new(const struct profile *p, inside_class *class, inside_mark *mark)
{
	uint8_t *out = NEW_ARRAY(p->span.rows.n, uint8_t);
	struct name_memo classes = name_memo_new(p, class);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t parent = p->span.parent[i];
		uint8_t around = parent != ROW_NONE ? out[parent] : 0;
		if (p->span.kind[i] == SPAN_GPU_USER) /* when its work ran, not when the host was in it */
			continue;
		uint8_t own = name_memo_of(&classes, p->span.name[i]);
		out[i] = mark ? mark(around, own) : own ? own : around;
	}
	name_memo_release(&classes);
	return out;
}

struct inside_cost inside_cost_of(const struct profile *p, const struct step_time *w, const uint8_t *mark, uint8_t wanted)
{
	struct inside_cost c = {0};
	struct intervals device = {0}, host = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (inside_of_gpu(p, mark, g) != wanted || !step_time_has(w, p->gpu_op.start_ns[g]))
			continue;
		c.works++;
		intervals_add(&device, p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t parent = p->span.parent[i];
		if (mark[i] == wanted && (parent == ROW_NONE || mark[parent] != wanted))
			intervals_add(&host, p->span.start_ns[i], span_end(p, i));
	}
	intervals_normalise(&device);
	intervals_intersect(&device, &w->all, &device);
	intervals_normalise(&host);
	intervals_intersect(&host, &w->idle, &host);
	c.device_ns = intervals_length(&device);
	c.idle_ns = intervals_length(&host);
	intervals_union(&device, &host, &c.when);
	intervals_release(&device);
	intervals_release(&host);
	return c;
}

void inside_cost_release(struct inside_cost *c)
{
	intervals_release(&c->when);
}
