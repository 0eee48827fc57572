#include "analysis/tree/torch_events_work.h"
#include "base/mem.h"

struct torch_events *torch_events_new(const struct profile *p, const struct torch_rules *r, unsigned want)
{
	profile_assert_kept(p, LEFT_MEMORY | LEFT_AUX_IDS | LEFT_FRAMES);
	struct torch_events *t = NEW(struct torch_events);
	struct torch_work w = {.t = t, .p = p};
	t->p = p;
	t->rules = r;
	t->shapes_known = profile_has_arg(p, ARG_INPUT_DIMS);
	t->memory_known = p->memory.rows.n > 0;
	intern_init(&t->keys);
	w.key_of_name = NEW_ARRAY(p->strings.n, uint32_t);
	w.run_by_name = NEW_ARRAY(p->strings.n, uint32_t);
	if (r->name)
		torch_events_of_version(&w);
	else
		torch_events_own(&w);
	mem_free(w.v);
	mem_free(w.key_of_name);
	mem_free(w.run_by_name);
	mem_free(w.order);
	mem_free(w.place);
	if (want & TORCH_STACKS)
		torch_put_stacks(t);
	if (want & TORCH_FLOPS)
		torch_put_flops(t);
	return t;
}

void torch_events_free(struct torch_events *t)
{
	if (!t)
		return;
	mem_free(t->kind);
	mem_free(t->row);
	mem_free(t->key);
	mem_free(t->flags);
	mem_free(t->device_type);
	mem_free(t->node_id);
	mem_free(t->parent);
	mem_free(t->track);
	mem_free(t->start_ns);
	mem_free(t->end_ns);
	mem_free(t->cpu_self);
	mem_free(t->dev_total);
	mem_free(t->dev_self);
	mem_free(t->cpu_mem);
	mem_free(t->cpu_mem_self);
	mem_free(t->dev_mem);
	mem_free(t->dev_mem_self);
	mem_free(t->flops);
	mem_free(t->kernel_first);
	mem_free(t->kernel);
	intern_release(&t->keys);
	stacks_free(t->stacks);
	mem_free(t->stack);
	mem_free(t);
}
