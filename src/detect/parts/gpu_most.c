#include "detect/parts/gpu_most.h"

void gpu_most_init(struct gpu_most *m, const struct profile *p)
{
	*m = (struct gpu_most){0};
	gpus_find(p, &m->gpus);
	m->of = NEW_ARRAY(m->gpus.n, struct gpu_saving);
}

void gpu_most_release(struct gpu_most *m)
{
	for (uint32_t i = 0; i < m->gpus.n; i++)
		intervals_release(&m->of[i].when);
	mem_free(m->of);
	gpus_release(&m->gpus);
}

void gpu_most_add_range(struct gpu_most *m, const struct profile *p, uint32_t row, int64_t start_ns, int64_t end_ns, int64_t ns)
{
	uint32_t gpu = gpus_of(&m->gpus, p, row);
	if (gpu == GPUS_NONE)
		return;
	struct gpu_saving *x = &m->of[gpu];
	x->ns += ns;
	intervals_add(&x->when, start_ns, end_ns);
}

void gpu_most_add(struct gpu_most *m, const struct profile *p, uint32_t row, int64_t ns)
{
	gpu_most_add_range(m, p, row, p->gpu_op.start_ns[row], gpu_end(p, row), ns);
}

void gpu_most_choose(struct gpu_most *m, const struct step_time *w)
{
	int64_t most_ns = 0;
	m->most = 0;
	m->ns = 0;
	for (uint32_t i = 0; i < m->gpus.n; i++) {
		struct gpu_saving *x = &m->of[i];
		intervals_normalise(&x->when);
		if (w->n)
			intervals_intersect(&x->when, &w->all, &x->when);
		int64_t ns = intervals_length(&x->when), saved = x->ns < ns ? x->ns : ns;
		if (saved < m->ns || (saved == m->ns && ns <= most_ns))
			continue;
		m->most = i;
		m->ns = saved;
		most_ns = ns;
	}
}

void finding_covers_most(struct finding *x, const struct step_time *w, const struct gpu_most *m)
{
	if (m->gpus.n)
		finding_covers_within(x, w, &m->of[m->most].when);
}

void finding_gains_most(struct finding *x, struct findings *f, const struct step_time *w, const struct gpu_most *m, const char *how)
{
	finding_covers_most(x, w, m);
	finding_gain(x, w, m->ns, how);
	if (!x->has_gain || m->gpus.n < 2)
		return;
	int32_t device = m->gpus.device[m->most];
	if (device == INT32_MIN)
		x->bound = arena_printf(&f->arena, "of the one GPU that has most of it: %s", how);
	else
		x->bound = arena_printf(&f->arena, "of GPU %d, which has most of it: %s", device, how);
}
