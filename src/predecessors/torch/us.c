#include "predecessors/torch/us.h"

#include "analysis/recording.h"
#include "base/mem.h"

#include <math.h>

/* A compensated sum (Neumaier). */
struct torch_us_sum_ {
	double high, low;
};

static void torch_us_add(struct torch_us_sum_ *s, double v)
{
	double next = s->high + v;
	s->low += fabs(s->high) >= fabs(v) ? s->high - next + v : v - next + s->high;
	s->high = next;
}

static double torch_us_length(const struct torch_events *t, uint32_t i, int64_t start_ns)
{
	int64_t from, to;
	if (torch_cpu_total(t, i) == 0)
		return 0;
	if (t->rules->whole_us || __builtin_sub_overflow(t->start_ns[i], start_ns, &from) || __builtin_sub_overflow(t->end_ns[i], start_ns, &to))
		return (double)(t->end_ns[i] - t->start_ns[i]) / 1000;
	return (double)to / 1000 - (double)from / 1000;
}

/* By parent; children stand in the order in which torch lists them. */
static struct torch_us_sum_ *sum_children(const struct torch_events *t, int64_t start_ns)
{
	struct torch_us_sum_ *children = NEW_ARRAY(t->n, struct torch_us_sum_);
	for (uint32_t i = 0; i < t->n; i++)
		if (t->parent[i] < t->n)
			torch_us_add(&children[t->parent[i]], torch_us_length(t, i, start_ns));
	return children;
}

void torch_us_sum(struct torch_us *u, const struct key_groups *g)
{
	const struct torch_events *t = g->t;
	int64_t start_ns = recording_start(t->p);
	struct torch_us_sum_ *children = sum_children(t, start_ns);
	*u = (struct torch_us){.v = NEW_ARRAY(g->n, struct torch_us_sums)};
	for (uint32_t i = 0; i < t->n; i++) {
		if (g->group_of[i] == ROW_NONE)
			continue;
		struct torch_us_sums *x = &u->v[g->group_of[i]];
		double total = torch_us_length(t, i, start_ns);
		x->total += total;
		if (t->device_type[i] == TORCH_CPU && !(t->flags[i] & TORCH_ASYNC))
			x->self += total - (children[i].high + children[i].low);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		u->all.self += u->v[i].self;
		u->all.total += u->v[i].total;
	}
	mem_free(children);
}

void torch_us_release(struct torch_us *u)
{
	mem_free(u->v);
}
