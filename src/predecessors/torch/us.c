#include "predecessors/torch/us.h"

#include "analysis/recording.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

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

static double torch_us_value(const struct torch_us_sum_ *s)
{
	return s->high + s->low;
}

static double torch_us_between(const struct torch_events *t, int64_t from, int64_t to, int64_t start_ns)
{
	int64_t a, b;
	if (from == to)
		return 0;
	if (t->rules->whole_us || __builtin_sub_overflow(from, start_ns, &a) || __builtin_sub_overflow(to, start_ns, &b))
		return (double)(to - from) / 1000;
	return (double)b / 1000 - (double)a / 1000;
}

/* What the direct children of each event have, in the order in which torch lists them. */
struct torch_us_children {
	struct torch_us_sum_ host, device;
};

static double torch_us_kernels(const struct torch_events *t, uint32_t i, int64_t start_ns)
{
	struct torch_us_sum_ sum = {0};
	for (uint32_t k = t->kernel_first[i]; k < t->kernel_first[i + 1]; k++) {
		int64_t from = torch_kernel_start(t, t->kernel[k]);
		torch_us_add(&sum, torch_us_between(t, from, from + torch_kernel_ns(t, t->kernel[k]), start_ns));
	}
	return torch_us_value(&sum);
}

/* By event: of device work its length, of others what they launched and what their children did. Children stand behind their parents. */
static double *torch_us_devices(const struct torch_events *t, struct torch_us_children *children, int64_t start_ns)
{
	double *device = NEW_ARRAY_RAW(t->n, double);
	uint32_t *first = NEW_ARRAY_RAW(t->n, uint32_t), *next = NEW_ARRAY_RAW(t->n, uint32_t);
	memset(first, 0xff, t->n * sizeof *first);
	for (uint32_t i = t->n; i-- > 0;) {
		for (uint32_t k = first[i]; k != ROW_NONE; k = next[k])
			torch_us_add(&children[i].device, device[k]);
		device[i] = t->device_type[i] != TORCH_CPU ? torch_us_between(t, t->start_ns[i], t->end_ns[i], start_ns)
		                                           : torch_us_kernels(t, i, start_ns) + torch_us_value(&children[i].device);
		if (t->parent[i] >= i)
			continue;
		next[i] = first[t->parent[i]];
		first[t->parent[i]] = i;
	}
	mem_free(first);
	mem_free(next);
	return device;
}

void torch_us_sum(struct torch_us *u, const struct key_groups *g)
{
	const struct torch_events *t = g->t;
	int64_t start_ns = recording_start(t->p);
	struct torch_us_children *children = NEW_ARRAY(t->n, struct torch_us_children);
	double *device = torch_us_devices(t, children, start_ns);
	*u = (struct torch_us){.v = NEW_ARRAY(g->n, struct torch_us_sums)};
	for (uint32_t i = 0; i < t->n; i++)
		if (t->parent[i] < t->n)
			torch_us_add(&children[t->parent[i]].host, torch_us_between(t, t->start_ns[i], t->end_ns[i], start_ns));
	for (uint32_t i = 0; i < t->n; i++) {
		if (g->group_of[i] == ROW_NONE)
			continue;
		struct torch_us_sums *x = &u->v[g->group_of[i]];
		bool cpu = t->device_type[i] == TORCH_CPU;
		double total = cpu ? torch_us_between(t, t->start_ns[i], t->end_ns[i], start_ns) : 0;
		x->total += total;
		if (cpu && !(t->flags[i] & TORCH_ASYNC))
			x->self += total - torch_us_value(&children[i].host);
		x->dev_total += device[i];
		x->dev_self += device[i] - torch_us_value(&children[i].device);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		u->all.self += u->v[i].self;
		u->all.total += u->v[i].total;
		u->all.dev_self += u->v[i].dev_self;
		u->all.dev_total += u->v[i].dev_total;
		if (g->v[i].id.device_type != TORCH_CPU && !g->v[i].id.annotation)
			u->device += u->v[i].dev_self;
	}
	mem_free(children);
	mem_free(device);
}

void torch_us_release(struct torch_us *u)
{
	mem_free(u->v);
}
