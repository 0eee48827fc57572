#include "analysis/op_instances.h"

#include "analysis/analysis.h"

int pass_ops(struct profile *p, struct err *e)
{
	(void)e;
	p->ops = ARENA_ARRAY(&p->arena, 1, struct ops);
	return 0;
}
