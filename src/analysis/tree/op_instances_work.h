/* Within op_instances*.c: what is known while ops are being made. */
#ifndef OPSCOPE_ANALYSIS_TREE_OP_INSTANCES_WORK_H
#define OPSCOPE_ANALYSIS_TREE_OP_INSTANCES_WORK_H

#include "analysis/analysis.h"
#include "analysis/names/stacks.h"
#include "analysis/tree/layers.h"
#include "analysis/tree/op_instances.h"
#include "base/buf.h"
#include "base/mem.h"

enum span_role {
	ROLE_NONE,     /* no op, and no part of a path */
	ROLE_GROUP,    /* a range that makes the path: annotations, execution contexts, optimizer steps */
	ROLE_CONTEXT,  /* a group if an op is inside, else an op */
	ROLE_IMPORT,   /* nothing if an op is inside, else an op */
	ROLE_OP,
};

enum draft_kind { DRAFT_RANGE, DRAFT_CALL, DRAFT_WORK };

/* An instance before it has an op. */
struct draft {
	int64_t start_ns, end_ns;
	uint32_t row;        /* span; gpu_op of DRAFT_WORK */
	uint32_t link;       /* the forward op (row in span) of a backward range; of a call, the instance before it on its thread; ROW_NONE */
	uint8_t kind;        /* enum draft_kind */
	uint8_t direction;
};

/* The context of a span. Spans with the same context share one. */
struct context {
	uint32_t path;       /* in texts: "/a/b" of the groups around it; 0 = none */
	uint32_t func_stack; /* string id of DLProf's function stack; 0 = none */
	uint32_t call_stack; /* string id of a marker's call stack; 0 = none */
	uint32_t depth;      /* of the path */
};

struct ops_work {
	struct profile *p;
	struct ops *o;
	struct layers *layers;     /* NULL: no op in the input */
	struct stacks *stacks;     /* NULL: not recorded */
	uint8_t *role;             /* span -> enum span_role */
	uint32_t *context;         /* span -> what is inside it: id in contexts; 0 = nothing around */
	struct intern contexts;    /* struct context */
	struct intern texts;       /* names and paths; bytes that live as long as this */
	struct intern keys;        /* what tells ops apart, cheaply; id -> op_of_key */
	struct intern names;       /* (name, direction, shapes) -> op + 1 */
	struct intern numbers;     /* (path, op, call stack): which stacks there were of an op */
	uint32_t *op_of_key, cap_op_of_key;
	uint32_t *count_of, cap_count_of; /* by id in numbers */
	uint32_t *layer_path, n_layer_paths; /* layer -> its path in texts */
	uint32_t *component;       /* string id of an annotation -> its part of a path, in texts + 1; 0 = not looked, 1 = none */
	struct draft *draft;
	uint32_t n_drafts, cap_drafts;
	uint32_t cap_ops;
	struct buf text;
};

/* op_instances_find.c: which ranges, calls and works are instances, in order of start; fills o->of_span (instances), o->of_gpu. */
void ops_find(struct ops_work *w);
/* op_instances_names.c: what they are called. */
void ops_name(struct ops_work *w);
/* op_instances_times.c: o->gpu and all times of instances. */
void ops_measure(struct profile *p, struct ops *o);

bool ops_is_library(const struct profile *p, uint32_t span);

#endif
