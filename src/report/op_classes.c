/* Device time by class of op: products, convolutions, attention, elementwise, ... */
#include "analysis/costs/costs.h"
#include "analysis/names/names.h"
#include "analysis/recording.h"
#include "analysis/tree/direction.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "query/window.h"

enum {
	OP_CLASSES_CLASS, OP_CLASSES_DIRECTION, OP_CLASSES_OPS, OP_CLASSES_CALLS, OP_CLASSES_PIECES, OP_CLASSES_GPU, OP_CLASSES_PCT, OP_CLASSES_CUMULATIVE,
	OP_CLASSES_MEAN
};

static const struct section op_classes_section = {COLUMNS(
	[OP_CLASSES_CLASS] = {COLUMN(TEXT, "class", "Class", "class of the op that launched the work; where no rule has the op, class of the work by its name", .flags = COLUMN_ANSWER)},
	[OP_CLASSES_DIRECTION] = {COLUMN(TEXT, "direction", "Dir", "forward, backward or optimizer; other = work outside all ops", .flags = COLUMN_ANSWER)},
	[OP_CLASSES_OPS] = {COLUMN(COUNT, "ops", "Ops", "different names of ops")},
	[OP_CLASSES_CALLS] = {COLUMN(COUNT, "calls", "Calls", "calls of these ops that launched work; a piece of work of no op counts as a call", .flags = COLUMN_ANSWER)},
	[OP_CLASSES_PIECES] = {COLUMN(COUNT, "gpu_ops", "Device ops", "kernels, copies and sets of these calls")},
	[OP_CLASSES_GPU] = {COLUMN(NS, "total_gpu_ns", "GPU total", "sum of the durations of this device work", .flags = COLUMN_ANSWER)},
	[OP_CLASSES_PCT] = {COLUMN(PERCENT, "total_pct", "Total %", "total / all device work", .flags = COLUMN_ANSWER)},
	[OP_CLASSES_CUMULATIVE] = {COLUMN(PERCENT, "cumulative_pct", "Cumul. %", "this row and all rows with more time / all device work")},
	[OP_CLASSES_MEAN] = {COLUMN(MEAN_NS, "mean_gpu_ns", "Mean", "mean device time of a call", .flags = COLUMN_MINOR)},
)};

struct op_classes_key {
	const char *class; /* compared by address: from op_class_name if it has the class, else from kernel_class_name or gpu_kind_name */
	uint64_t direction;
};

struct op_classes_row {
	struct op_classes_key key;
	uint64_t ops, calls, pieces;
	int64_t ns;
};

struct op_classes {
	const struct profile *p;
	struct window w;
	struct costs *costs;
	struct directions *dir;
	uint32_t *row_of_call;   /* span -> the last row of `v` that counted this call, + 1 */
	struct intern keys, names;
	struct op_classes_row *v;
	uint32_t n, cap;
	int64_t all_ns, by_name_ns;
};

/* The address of a class's name: a class that op_class_name has, too, gets the address there. */
static const char *class_named(const char *name)
{
	for (unsigned c = 0; c < OP_CLASSES; c++)
		if (strcmp(op_class_name[c], name) == 0)
			return op_class_name[c];
	return name;
}

static const char *class_of_work(struct op_classes *x, uint32_t g)
{
	uint32_t cost = x->costs->of_gpu[g];
	if (cost != ROW_NONE && x->costs->cost[cost].class != OP_UNKNOWN)
		return op_class_name[x->costs->cost[cost].class];
	x->by_name_ns += x->p->gpu_op.dur_ns[g];
	return class_named(x->p->gpu_op.kind[g] == GPU_KERNEL ? kernel_class_name[gpu_kernel(x->p, g)->class] : gpu_kind_name[x->p->gpu_op.kind[g]]);
}

static void op_classes_add(struct op_classes *x, uint32_t g)
{
	uint32_t op = x->costs->op[g], before = x->keys.n;
	struct op_classes_key k = {class_of_work(x, g), x->dir->gpu[g]};
	uint32_t at = intern_put_key(&x->keys, &k, sizeof k) - 1;
	if (x->keys.n > before)
		MEM_PUSH(x->v, x->n, x->cap, (struct op_classes_row){.key = k});
	struct op_classes_row *row = &x->v[at];
	row->pieces++;
	row->ns += x->p->gpu_op.dur_ns[g];
	x->all_ns += x->p->gpu_op.dur_ns[g];
	if (op == ROW_NONE || x->row_of_call[op] != at + 1)
		row->calls++;
	if (op == ROW_NONE)
		return;
	x->row_of_call[op] = at + 1;
	struct { uint32_t row, name; } name = {at, x->p->span.name[op]};
	before = x->names.n;
	intern_put_key(&x->names, &name, sizeof name);
	row->ops += x->names.n > before;
}

static void op_classes_put(const struct op_classes *x, const struct report_args *args, struct table *t)
{
	struct sort_item *order = NEW_ARRAY_RAW(x->n, struct sort_item);
	int64_t so_far = 0;
	for (uint32_t i = 0; i < x->n; i++)
		order[i] = (struct sort_item){UINT64_MAX - (uint64_t)x->v[i].ns, i, 0};
	sort_items(order, x->n);
	section_start(&op_classes_section, args, 0, t);
	for (uint32_t i = 0; i < x->n; i++) {
		const struct op_classes_row *row = &x->v[order[i].row];
		so_far += row->ns;
		table_row(t);
		table_set_str(t, OP_CLASSES_CLASS, str_from(row->key.class));
		table_set_str(t, OP_CLASSES_DIRECTION, str_from(direction_name[row->key.direction]));
		table_set_i64(t, OP_CLASSES_OPS, (int64_t)row->ops);
		table_set_i64(t, OP_CLASSES_CALLS, (int64_t)row->calls);
		table_set_i64(t, OP_CLASSES_PIECES, (int64_t)row->pieces);
		table_set_i64(t, OP_CLASSES_GPU, row->ns);
		table_set_f64(t, OP_CLASSES_PCT, percent((double)row->ns, (double)x->all_ns));
		table_set_f64(t, OP_CLASSES_CUMULATIVE, percent((double)so_far, (double)x->all_ns));
		table_set_f64(t, OP_CLASSES_MEAN, (double)row->ns / (double)row->calls);
	}
	mem_free(order);
	table_note(t, "device work %lld ns = classed by the op %lld + by the name of the work %lld", (long long)x->all_ns, (long long)(x->all_ns - x->by_name_ns),
	           (long long)x->by_name_ns);
}

static int op_classes_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct op_classes x = {.p = p};
	if (window_of(p, args, &x.w, e) < 0)
		return -1;
	x.costs = costs_new(p, &cost_own);
	x.dir = directions_new(p);
	x.row_of_call = NEW_ARRAY(p->span.rows.n, uint32_t);
	intern_init(&x.keys);
	intern_init(&x.names);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (window_has_gpu(&x.w, p, g))
			op_classes_add(&x, g);
	int rc = 0;
	if (x.n)
		op_classes_put(&x, args, out);
	else
		rc = x.w.all ? err_set(e, ERR_DATA, "the input holds no device work; to record it: %s", recording_how(p, RECORD_DEVICE_WORK))
		             : err_set(e, ERR_DATA, "the steps asked for have no device work");
	costs_free(x.costs);
	directions_free(x.dir);
	intern_release(&x.keys);
	intern_release(&x.names);
	mem_free(x.row_of_call);
	mem_free(x.v);
	return rc;
}

const struct report report_op_classes = {
	.name = "op-classes",
	.title = "Time by class of op",
	.asks = ASKS_WHERE,
	.also = "category categories ops_by_category op_category classes",
	.help = "Which classes of ops took the device's time: products, convolutions, attention, norms, elementwise, reductions, copies, ..., each forward, backward and in the optimizer.",
	.sections = (const struct section *const[]){&op_classes_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = op_classes_run,
};
