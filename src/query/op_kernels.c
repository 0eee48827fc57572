#include "query/op_kernels.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"

void op_kernels_init(struct op_kernels *x, const struct profile *p, struct op_tc *tc)
{
	*x = (struct op_kernels){.p = p, .tc = tc, .last_op = NEW_ARRAY(p->strings.n, uint32_t)};
	for (int uses = 0; uses < 3; uses++)
		x->set[uses] = NEW_ARRAY(p->ops->n_ops, struct kernel_set);
}

void op_kernels_release(struct op_kernels *x)
{
	for (int uses = 0; uses < 3; uses++) {
		for (uint32_t i = 0; i < x->p->ops->n_ops; i++)
			mem_free(x->set[uses][i].v);
		mem_free(x->set[uses]);
	}
	mem_free(x->last_op);
}

void op_kernels_add(struct op_kernels *x, uint32_t op, uint32_t g)
{
	uint32_t name = x->p->gpu_op.name[g];
	if (x->last_op[name] == op + 1)
		return;
	x->last_op[name] = op + 1;
	struct kernel_set *s = &x->set[op_tc_of(x->tc, g)][op];
	MEM_GROW(s->v, s->cap, s->n + 1);
	s->v[s->n++] = name;
}

uint32_t *op_instances_by_op(const struct ops *o)
{
	uint32_t *first = NEW_ARRAY((size_t)o->n_ops + 1, uint32_t), *by_op = NEW_ARRAY_RAW(o->n_instances, uint32_t);
	for (uint32_t k = 0; k < o->n_instances; k++)
		first[o->instance[k].op + 1]++;
	for (uint32_t i = 0; i < o->n_ops; i++)
		first[i + 1] += first[i];
	for (uint32_t k = 0; k < o->n_instances; k++)
		by_op[first[o->instance[k].op]++] = k;
	mem_free(first);
	return by_op;
}

static int compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

struct str op_kernels_text(const struct op_kernels *x, uint32_t op, enum tri uses, struct str (*name_of)(const void *context, uint32_t name),
                           const void *context, struct arena *a, int64_t *count)
{
	const struct kernel_set *s = &x->set[uses][op];
	struct intern names;
	struct buf b = {0};
	intern_init(&names);
	for (uint32_t i = 0; i < s->n; i++)
		intern_str(&names, name_of(context, s->v[i]));
	struct str *v = NEW_ARRAY(names.n, struct str);
	*count = names.n - 1;
	for (uint32_t i = 1; i < names.n; i++)
		v[i - 1] = intern_get(&names, i);
	qsort(v, names.n - 1, sizeof *v, compare_names);
	for (uint32_t i = 1; i < names.n; i++) {
		buf_cstr(&b, i > 1 ? ", " : "");
		buf_str(&b, v[i - 1]);
	}
	struct str out = arena_str(a, b.n ? buf_view(&b) : (struct str){"", 0});
	intern_release(&names);
	buf_release(&b);
	mem_free(v);
	return out;
}
