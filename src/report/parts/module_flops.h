/* FLOPs by module: each operation counts once, at the innermost op whose FLOPs are known. Shared by opscope's table and torch's. */
#ifndef OPSCOPE_REPORT_PARTS_MODULE_FLOPS_H
#define OPSCOPE_REPORT_PARTS_MODULE_FLOPS_H

#include "analysis/costs/op_flops.h"
#include "analysis/tree/modules.h"
#include "query/window.h"

enum module_flops_part { MODULE_FORWARD, MODULE_BACKWARD, MODULE_PARTS };

/* FLOPs of a module; `all` with those of the modules inside. */
struct module_figures {
	int64_t self[MODULE_PARTS], all[MODULE_PARTS];
	uint64_t unknown;        /* calls, with the modules inside */
};

struct module_flops {
	const struct profile *p;
	struct modules *m;
	struct op_flops *f;
	struct window w;         /* what --steps chooses */
	struct module_figures *of; /* one per node */
	int64_t total, optimizer, outside;
	uint64_t unknown, unknown_outside; /* calls of ops */
	int64_t unknown_ns, all_ns; /* device time, else host time of the outermost ops */
	bool overflow;
};

/* Free with module_flops_free. NULL: ERR_DATA where the input holds no modules or no such steps, ERR_LIMIT where the sum does not fit 63 bits. */
struct module_flops *module_flops_new(const struct profile *p, const struct report_args *args, enum op_flops_rules rules, struct err *e);
void module_flops_free(struct module_flops *x);

/* N of --group-by=depth:N; `otherwise` without it. */
uint32_t module_flops_depth(const struct report_args *args, uint32_t otherwise);

/* Whether the range is an op in the window. */
static inline bool module_flops_has(const struct module_flops *x, uint32_t span)
{
	return x->p->span.kind[span] == SPAN_OP && window_has(&x->w, x->p->span.start_ns[span]);
}

/* The module that the range is in; MODULE_NONE = none. */
static inline uint32_t module_flops_node(const struct module_flops *x, uint32_t span)
{
	return module_tree_live(&x->m->tree, x->m->place[span]);
}

#endif
