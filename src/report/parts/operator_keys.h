/* The row of each op in a table of ops: by name, and by shapes, stack, both or line. */
#ifndef OPSCOPE_REPORT_PARTS_OPERATOR_KEYS_H
#define OPSCOPE_REPORT_PARTS_OPERATOR_KEYS_H

#include "analysis/names/stacks.h"
#include "base/intern.h"
#include "report/parts/operators.h"

struct operator_keys {
	const struct profile *p;
	enum operators_by by;
	struct operator_key {
		uint32_t name, detail; /* name: string id, 0 by line; detail: string id of the shapes, a stack, an id of `lines` */
		uint32_t shapes;       /* by shapes and stack: string id of the shapes; else 0 */
	} *v;                   /* by row */
	uint32_t n, cap;
	uint32_t *last;         /* by name: its row that was asked for last, + 1; 0 = none. Calls of one name often have one row */
	struct intern keys;
	struct intern lines;
	struct stacks *stacks;  /* by stack (and shapes) and by line; else NULL */
};

void operator_keys_init(struct operator_keys *k, const struct profile *p, enum operators_by by);
void operator_keys_release(struct operator_keys *k);

/* The row of an op: k->n - 1 when it is a new one. */
uint32_t operator_keys_row(struct operator_keys *k, uint32_t span);

/* Sets a column to the frames of a stack; leaves it empty where there are none. */
void operator_keys_put_stack(struct table *out, unsigned col, const struct operator_keys *k, uint32_t stack);

#endif
