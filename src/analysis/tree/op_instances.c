#include "analysis/tree/op_instances_work.h"

static void op_instances_work_init(struct ops_work *w)
{
	intern_init(&w->contexts);
	intern_init(&w->texts);
	intern_init(&w->keys);
	intern_init(&w->names);
	intern_init(&w->numbers);
}

static void op_instances_work_release(struct ops_work *w)
{
	if (w->p->keeps_ops_work) {
		w->p->ops_layers = w->layers;
		w->p->ops_stacks = w->stacks;
	} else {
		layers_free(w->layers);
		stacks_free(w->stacks);
	}
	intern_release(&w->contexts);
	intern_release(&w->texts);
	intern_release(&w->keys);
	intern_release(&w->names);
	intern_release(&w->numbers);
	buf_release(&w->text);
	mem_free(w->role);
	mem_free(w->context);
	mem_free(w->component);
	mem_free(w->layer_path);
	mem_free(w->op_of_key);
	mem_free(w->count_of);
	mem_free(w->draft);
}

int pass_ops(struct profile *p, struct err *e)
{
	struct ops_work w = {.p = p, .o = ARENA_ARRAY(&p->arena, 1, struct ops)};
	op_instances_work_init(&w);
	w.o->of_span = ARENA_ARRAY(&p->arena, p->span.rows.n, uint32_t);
	w.o->of_gpu = ARENA_ARRAY(&p->arena, p->gpu_op.rows.n, uint32_t);
	ops_find(&w);
	if (w.o->origin != OPS_NONE && w.o->origin != OPS_STATED)
		w.stacks = stacks_new(p);
	ops_name(&w);
	ops_measure(p, w.o);
	op_instances_work_release(&w);
	p->ops = w.o;
	return 0;
}
