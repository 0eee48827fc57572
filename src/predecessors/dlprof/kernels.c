/* DLProf's iteration and kernel reports. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "op/kernels.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"

#include <stdlib.h>

struct kernel_row {
	struct str op_name, op_id, kernel;
	uint32_t iteration, op, gpu;
	int64_t start_ns;        /* on the device */
	uint32_t long_name;      /* that DLProf prints */
};

struct kernel_rows {
	const struct profile *p;
	struct kernel_row *v;
	uint32_t n;
	struct dlprof_op_names *names; /* by op */
	struct arena texts;
};

static int by_op(const void *a, const void *b)
{
	const struct kernel_row *x = a, *y = b;
	int c = str_cmp(x->op_name, y->op_name) ?: str_cmp(x->op_id, y->op_id) ?: str_cmp(x->kernel, y->kernel);
	return c ?: COMPARE(x->start_ns, y->start_ns) ?: COMPARE(x->gpu, y->gpu);
}

static int by_iteration(const void *a, const void *b)
{
	const struct kernel_row *x = a, *y = b;
	return COMPARE(x->iteration, y->iteration) ?: by_op(a, b);
}

/* DLProf has one long name for each op and short name: that of the last of them to start. Rows are by op. */
static void set_long_names(struct kernel_rows *x)
{
	for (uint32_t i = x->n; i-- > 0;) {
		struct kernel_row *r = &x->v[i], *next = i + 1 < x->n ? r + 1 : NULL;
		bool same = next && next->op == r->op && str_eq(next->kernel, r->kernel);
		r->long_name = same ? next->long_name : x->p->gpu_op.name[r->gpu];
	}
}

/* Which of the iterations begins at or before this moment last. */
static uint32_t dlprof_kernels_iteration_at(const struct dlprof_iterations *d, int64_t at)
{
	return d->n ? FIRST_WHERE(i, 1, d->n, d->start_ns[i] > at) - 1 : 0;
}

/* All kernels of the iterations asked for, in DLProf's order: by op, told apart by their starts on the host; `one`: as if there were one
 * iteration. */
static int dlprof_kernels_collect(struct kernel_rows *x, const struct report_args *args, bool one, struct err *e)
{
	const struct profile *p = x->p;
	struct dlprof_iterations d;
	int64_t first = args->has_steps ? args->step_first : 0, last = args->has_steps ? args->step_last : INT64_MAX;
	dlprof_iterations_of(p, p->key_op, &d);
	x->v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct kernel_row);
	x->names = NEW_ARRAY(p->ops->n_ops, struct dlprof_op_names);
	for (uint32_t i = 0; i < p->ops->n_ops; i++)
		dlprof_op_names(p->ops, p, i, &x->texts, &x->names[i]);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		const struct op_instance *in = &p->ops->instance[p->ops->of_gpu[g]];
		if (p->gpu_op.kind[g] != GPU_KERNEL || in->span == ROW_NONE)
			continue;
		uint32_t at = dlprof_kernels_iteration_at(&d, in->start_ns);
		if (at < first || at > last)
			continue;
		const struct dlprof_op_names *names = &x->names[in->op];
		x->v[x->n++] = (struct kernel_row){names->name, names->id, kernel_function_name(profile_str(p, p->gpu_op.name[g])), at, in->op, g,
		                                 p->gpu_op.start_ns[g], 0};
	}
	dlprof_iterations_release(&d);
	if (!x->n)
		return err_set(e, ERR_DATA, "no kernel was launched in those iterations");
	qsort(x->v, x->n, sizeof *x->v, by_op);
	set_long_names(x);
	if (!one)
		qsort(x->v, x->n, sizeof *x->v, by_iteration);
	return 0;
}

static void kernel_rows_release(struct kernel_rows *x)
{
	mem_free(x->v);
	mem_free(x->names);
	arena_release(&x->texts);
}

enum { I_ITERATION, I_OP_ID, I_OP_NAME, I_DIRECTION, I_TYPE, I_KERNEL, I_DEVICE, I_START, I_DUR, I_CALL_START, I_CALL_DUR, I_TC, I_GRID_X, I_GRID_Y,
       I_GRID_Z, I_BLOCK_X, I_BLOCK_Y, I_BLOCK_Z, I_TYPES, I_INPUTS, I_PARAMS, I_OUTPUTS, I_LONG, I_COLUMNS };
static const struct column iteration_columns[I_COLUMNS] = {
	[I_ITERATION] = {.id = "iteration", .title = "Iteration", .help = "number", .type = CELL_I64},
	[I_OP_ID] = {.id = "op_id", .title = "Op ID", .help = "the op's type and a running number", .type = CELL_STR},
	[I_OP_NAME] = {.id = "op_name", .title = "Op Name", .help = "the op and where it was called", .type = CELL_STR, .flags = COLUMN_WIDE},
	[I_DIRECTION] = {.id = "direction", .title = "Direction", .help = "fprop or bprop", .type = CELL_STR},
	[I_TYPE] = {.id = "op_type", .title = "Op Type", .help = "the op alone", .type = CELL_STR},
	[I_KERNEL] = {.id = "kernel_name", .title = "Kernel Name", .help = "short name", .type = CELL_STR},
	[I_DEVICE] = {.id = "device_id", .title = "Device ID", .help = "ordinal", .type = CELL_I64},
	[I_START] = {.id = "gpu_start_time_ns", .title = "GPU Start Time (ns)", .help = "when it began, since the recording did", .type = CELL_I64},
	[I_DUR] = {.id = "gpu_duration_ns", .title = "GPU Duration (ns)", .help = "how long it ran", .type = CELL_I64},
	[I_CALL_START] = {.id = "api_call_start_ns", .title = "API Call Start (ns)", .help = "when its launch began, since the recording did", .type = CELL_I64},
	[I_CALL_DUR] = {.id = "api_call_time_ns", .title = "API Call Time (ns)", .help = "how long that took", .type = CELL_I64},
	[I_TC] = {.id = "uses_tc", .title = "Uses TC", .help = "by its name", .type = CELL_BOOL},
	[I_GRID_X] = {.id = "grid_x", .title = "Grid X", .help = "blocks", .type = CELL_I64}, [I_GRID_Y] = {.id = "grid_y", .title = "Grid Y", .help = "blocks", .type = CELL_I64},
	[I_GRID_Z] = {.id = "grid_z", .title = "Grid Z", .help = "blocks", .type = CELL_I64}, [I_BLOCK_X] = {.id = "block_x", .title = "Block X", .help = "threads", .type = CELL_I64},
	[I_BLOCK_Y] = {.id = "block_y", .title = "Block Y", .help = "threads", .type = CELL_I64}, [I_BLOCK_Z] = {.id = "block_z", .title = "Block Z", .help = "threads", .type = CELL_I64},
	[I_TYPES] = {.id = "data_types", .title = "Data Types", .help = "of the op's inputs", .type = CELL_STR},
	[I_INPUTS] = {.id = "input_shapes", .title = "Input Shapes", .help = "of the op", .type = CELL_STR, .flags = COLUMN_WIDE},
	[I_PARAMS] = {.id = "parameters", .title = "Parameters", .help = "of the op", .type = CELL_STR, .flags = COLUMN_WIDE},
	[I_OUTPUTS] = {.id = "output_shapes", .title = "Output Shapes", .help = "of the op", .type = CELL_STR, .flags = COLUMN_WIDE},
	[I_LONG] = {.id = "long_kernel_name", .title = "Long Kernel Name", .help = "full name", .type = CELL_STR, .flags = COLUMN_WIDE},
};

static void dlprof_kernels_put_op(struct table *t, const struct kernel_rows *x, const struct kernel_row *r, unsigned id, unsigned name, unsigned direction)
{
	table_set_str_copy(t, id, r->op_id);
	table_set_str_copy(t, name, r->op_name);
	table_set_str(t, direction, dlprof_direction(&x->p->ops->op[r->op]));
}

static void put_iteration_row(struct table *t, const struct kernel_rows *x, const struct kernel_row *r, struct op_tc *tc, const struct op_shapes *shapes,
                              int64_t zero_ns)
{
	const struct profile *p = x->p;
	const struct launches *l = &p->launch;
	uint32_t row = p->gpu_op.launch[r->gpu], call = p->gpu_op.call[r->gpu];
	const int32_t sizes[] = {l->grid_x[row], l->grid_y[row], l->grid_z[row], l->block_x[row], l->block_y[row], l->block_z[row]};
	table_row(t);
	table_set_i64(t, I_ITERATION, r->iteration);
	dlprof_kernels_put_op(t, x, r, I_OP_ID, I_OP_NAME, I_DIRECTION);
	table_set_str_copy(t, I_TYPE, x->names[r->op].type);
	table_set_str(t, I_KERNEL, r->kernel);
	if (l->device[row] != INT32_MIN)
		table_set_i64(t, I_DEVICE, l->device[row]);
	table_set_i64(t, I_START, p->gpu_op.start_ns[r->gpu] - zero_ns);
	table_set_i64(t, I_DUR, p->gpu_op.dur_ns[r->gpu]);
	if (call != ROW_NONE) {
		table_set_i64(t, I_CALL_START, p->span.start_ns[call] - zero_ns);
		table_set_i64(t, I_CALL_DUR, p->span.dur_ns[call]);
	}
	table_set_bool(t, I_TC, op_tc_of(tc, r->gpu) == TRI_YES);
	for (unsigned i = 0; i < 6; i++)
		if (sizes[i] != INT32_MIN)
			table_set_i64(t, I_GRID_X + i, sizes[i]);
	table_set_str(t, I_TYPES, shapes->data_types);
	table_set_str(t, I_INPUTS, shapes->inputs);
	table_set_str(t, I_PARAMS, shapes->parameters);
	table_set_str(t, I_OUTPUTS, shapes->outputs);
	table_set_str(t, I_LONG, profile_str(p, r->long_name));
}

static void put_hints(struct table *t, const struct profile *p, const struct report_args *args)
{
	struct window w;
	struct err e;
	if (window_of(p, args, &w, &e) == 0)
		dlprof_table_hints(t, p, &w, HINT_KERNELS);
}

int dlprof_kernels_by_instance(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct kernel_rows x = {.p = p};
	int rc = dlprof_kernels_collect(&x, args, false, e);
	if (rc == 0) {
		struct op_tc *tc = op_tc_new(p, true);
		struct op_shapes shapes = {0};
		uint32_t of = ROW_NONE;
		int64_t zero_ns = dlprof_zero_ns(p);
		table_columns(t, iteration_columns, I_COLUMNS);
		for (uint32_t i = 0; i < x.n; i++) {
			uint32_t k = p->ops->of_gpu[x.v[i].gpu];
			if (k != of)
				op_instance_shapes(p->ops, p, k, &t->arena, &shapes);
			of = k;
			put_iteration_row(t, &x, &x.v[i], tc, &shapes, zero_ns);
		}
		put_hints(t, p, args);
		op_tc_free(tc);
	}
	kernel_rows_release(&x);
	return rc;
}

static void put_stat(struct table *t, unsigned col, int64_t total, uint32_t n, int64_t min, int64_t max)
{
	table_set_i64(t, col, total);
	table_set_f64(t, col + 1, (double)total / n);
	table_set_i64(t, col + 2, min);
	table_set_i64(t, col + 3, max);
}

/* Rows i .. the result - 1 have one op and one short name. */
static uint32_t put_kernel_row(struct table *t, const struct kernel_rows *x, uint32_t i, struct op_tc *tc)
{
	const struct profile *p = x->p;
	const struct kernel_row *r = &x->v[i];
	int64_t gpu[3] = {0, INT64_MAX, INT64_MIN}, api[3] = {0, INT64_MAX, INT64_MIN};
	uint32_t n = 0;
	bool uses = false;
	for (; i < x->n && x->v[i].op == r->op && str_eq(x->v[i].kernel, r->kernel); i++, n++) {
		uint32_t g = x->v[i].gpu, call = p->gpu_op.call[g];
		int64_t values[] = {p->gpu_op.dur_ns[g], call == ROW_NONE ? 0 : p->span.dur_ns[call]};
		for (int k = 0; k < 2; k++) {
			int64_t *s = k ? api : gpu;
			s[0] += values[k];
			s[1] = values[k] < s[1] ? values[k] : s[1];
			s[2] = values[k] > s[2] ? values[k] : s[2];
		}
		uses |= op_tc_of(tc, g) == TRI_YES;
	}
	table_row(t);
	table_set_str(t, 0, r->kernel);
	dlprof_kernels_put_op(t, x, r, 1, 2, 3);
	table_set_bool(t, 4, uses);
	put_stat(t, 5, gpu[0], n, gpu[1], gpu[2]);
	put_stat(t, 9, api[0], n, api[1], api[2]);
	return i;
}

int dlprof_kernels_by_op(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
#define TIMES(id, title, what)                                                                                      \
	{"total_" id "_time_ns", "Total " title " Time (ns)", "sum of " what, CELL_I64},                            \
	{"avg_" id "_time_ns", "Avg " title " Time (ns)", "mean of " what, CELL_F64, UNIT_NONE, 0, 1},              \
	{"min_" id "_time_ns", "Min " title " Time (ns)", "smallest of " what, CELL_I64},                           \
	{"max_" id "_time_ns", "Max " title " Time (ns)", "largest of " what, CELL_I64}
	static const struct column columns[] = {
		{.id = "kernel_name", .title = "Kernel Name", .help = "short name", .type = CELL_STR, .flags = COLUMN_WIDE},
		{.id = "op_id", .title = "Op ID", .help = "the op's type and a running number", .type = CELL_STR},
		{.id = "op_name", .title = "Op Name", .help = "the op and where it was called", .type = CELL_STR, .flags = COLUMN_WIDE},
		{.id = "direction", .title = "Direction", .help = "fprop or bprop", .type = CELL_STR},
		{.id = "uses_tc", .title = "Uses TC", .help = "by its name", .type = CELL_BOOL},
		TIMES("gpu", "GPU", "durations"),
		TIMES("api", "API", "the calls that launched it"),
	};
#undef TIMES
	struct kernel_rows x = {.p = p};
	int rc = dlprof_kernels_collect(&x, args, true, e);
	if (rc == 0) {
		struct op_tc *tc = op_tc_new(p, true);
		table_columns(t, columns, sizeof columns / sizeof columns[0]);
		for (uint32_t i = 0; i < x.n;)
			i = put_kernel_row(t, &x, i, tc);
		put_hints(t, p, args);
		op_tc_free(tc);
	}
	kernel_rows_release(&x);
	return rc;
}
