/* The rows of a comparison: the parts of two sides, joined. query/diff.c says what they mean.
 *
 * Parts stand in one row where their ops are aligned (query/diff_align.h) and have equal passes and shapes. Rows of one side that are left over are joined where the op and pass are the same and the
 * shapes are not, then where type, pass and shapes are. The compiled regions or graphs of a pass, joined, take the rows of the other side that they may stand for. */
#ifndef OPSCOPE_QUERY_DIFF_ROWS_H
#define OPSCOPE_QUERY_DIFF_ROWS_H

#include "query/diff.h"
#include "query/diff_matched.h"
#include "query/diff_scatter.h"

/* What a row has of one side. */
struct diff_sum {
	int64_t ns;
	uint64_t calls;
	int64_t maybe_wait_ns;         /* of collectives: so much of ns may be waiting, too */
	uint64_t kernels, shapes; /* sums of hashes: equal where the sets are equal; 0 = none was recorded */
};

struct diff_row {
	uint32_t name, direction, shapes, kind; /* texts of diff.texts, of B where B has the row; kind: enum diff_kind */
	uint32_t alike;          /* type, direction and shapes as a text: what else can belong together */
	uint32_t same_op;        /* op and direction as a text: rows that differ in shapes alone; 0 = has none such */
	uint32_t shown;          /* in place of the name; 0 = the name */
	uint32_t name_in_a, shapes_in_a; /* those in A, where they differ; 0 = they do not */
	bool region;             /* a compiled region or a graph, which tells not of its ops */
	uint32_t n_replaced;     /* rows of the other side that the region stands for */
	struct diff_sum of[2];
	double delta_ns, half_ns; /* half_ns: half the 95 % interval of delta_ns */
	bool half_known;
	bool steps_unknown;      /* its times in single steps */
	uint32_t steps[2];       /* its lists of diff.scatter */
	uint32_t parent, depth;  /* of the tree: the row of the module around it, ROW_NONE = none */
};

/* What an op of the aligned tree is called in rows: texts of diff.texts; 0 = not asked yet. */
struct diff_op_name {
	uint32_t key;            /* equal where rows belong together */
	uint32_t own[2];
};

struct diff {
	const struct diff_side *side[2];
	const struct diff_align *align;
	struct diff_op_name *op_name; /* of each node of the tree */
	enum diff_by by;
	bool paths, shapes;      /* rows know the paths of ops, and shapes: both sides have them */
	struct diff_scatter scatter;
	struct intern texts;
	struct intern keys;      /* id = row + 1 */
	struct diff_waits *waits;
	struct intern seen;      /* which kernels and shapes a row's side has */
	struct diff_row *row;
	uint32_t n, cap;
	uint32_t n_nodes;        /* by tree: so many rows at the beginning are the nodes of *align, in its order; else 0 */
};

/* Makes the rows of *d, the largest difference first, but of the tree in pre-order, with rows of no op behind them; *m and what it is of must outlive *d. diff_rows_release frees them. */
void diff_rows_init(struct diff *d, const struct diff_matched *m, enum diff_by by);
void diff_rows_release(struct diff *d);

/* Of a row, or of a side (0 = A, 1 = B), means per step and over the GPUs: ns, and calls. */
double diff_row_ns(const struct diff *d, const struct diff_row *r, int side);
double diff_row_calls(const struct diff *d, const struct diff_row *r, int side);
double diff_step_ns(const struct diff_side *s);

bool diff_row_is_on(const struct diff_row *r, int side);
bool diff_is_by_op(const struct diff *d);

#endif
