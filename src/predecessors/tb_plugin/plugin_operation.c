/* The plugin's operators: four pies, the table, and the rows of one operator by call stack. */
#include "predecessors/tb_plugin/plugin.h"

static const char *grouping(const struct request *r)
{
	return plugin_grouped(r, "OperationAndInputShape") ? "shape" : "name";
}

static int run_pies(const struct request *r, struct response *out, struct err *e)
{
	static const struct { const char *name, *title, *column; bool device; } pies[] = {
		{"device_total_time", "Device Total Time (us)", "device_total_duration", true},
		{"device_self_time", "Device Self Time (us)", "device_self_duration", true},
		{"host_total_time", "Host Total Time (us)", "host_total_duration", false},
		{"host_self_time", "Host Self Time (us)", "host_self_duration", false},
	};
	struct buf *b = &out->body;
	struct table t;
	int rc = 0;
	if (plugin_report(r, "operators", grouping(r), NULL, &t, e) < 0)
		return -1;
	for (unsigned i = 0; rc == 0 && i < sizeof pies / sizeof pies[0]; i++) {
		buf_printf(b, "%s\"%s\":", i ? ",\n" : "{", pies[i].name);
		if (table_find_column(&t, str_from(pies[i].column)) < 0)
			buf_cstr(b, "null");
		else
			rc = plugin_put_pie(b, pies[i].title, &t, pies[i].column, e);
	}
	buf_cstr(b, "}\n");
	table_release(&t);
	return rc;
}

static void plugin_operation_put_head(struct buf *b, const struct table *t)
{
	bool device = table_find_column(t, STR("device_self_duration")) >= 0;
	buf_printf(b, "{\"metadata\":{\"sort\":\"%s\",\"tooltips\":{", device ? "device_self_duration" : "host_self_duration");
	buf_cstr(b, "\"tc_eligible\":\"Whether the operator could use Tensor Cores.\","
	         "\"tc_self_ratio\":\"Time of its own kernels that use Tensor Cores / time of its own kernels.\","
	         "\"tc_total_ratio\":\"The same with the kernels of the operators inside it.\"}},\"data\":[");
}

/* All columns by their ids, which are the plugin's, but `leave_out`. */
static void plugin_operation_put_row(struct buf *b, const struct table *t, size_t row, const char *leave_out)
{
	bool any = false;
	for (unsigned c = 0; c < t->n_columns; c++) {
		if (strcmp(t->data[c].col.id, leave_out) == 0)
			continue;
		buf_printf(b, "%s\"%s\":", any ? "," : "{", t->data[c].col.id);
		any = true;
		plugin_put_cell(b, t, row, (int)c);
	}
	buf_char(b, '}');
}

static int plugin_operation_run_table(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	struct table t;
	if (plugin_report(r, "operators", grouping(r), NULL, &t, e) < 0)
		return -1;
	plugin_operation_put_head(b, &t);
	for (size_t i = 0; i < t.n_rows; i++) {
		buf_cstr(b, i ? ",\n" : "\n");
		plugin_operation_put_row(b, &t, i, "");
	}
	buf_cstr(b, "]}\n");
	table_release(&t);
	return 0;
}

static int run_stacks(const struct request *r, struct response *out, struct err *e)
{
	struct str op = request_value(r, "op_name"), shapes = request_value(r, "input_shape");
	struct table t;
	bool any = false, by_shapes = plugin_grouped(r, "OperationAndInputShape");
	if (by_shapes && !shapes.p)
		return err_set(e, ERR_USAGE, "'input_shape' was expected with group_by=OperationAndInputShape, as operation/table has it");
	if (plugin_report(r, "operators", by_shapes ? "shape-stack" : "stack", NULL, &t, e) < 0)
		return -1;
	int name = table_find_column(&t, STR("name")), stack = table_find_column(&t, STR("call_stack")), shape = table_find_column(&t, STR("input_shape"));
	plugin_operation_put_head(&out->body, &t);
	for (size_t i = 0; i < t.n_rows; i++) {
		if (!str_eq(table_str(&t, i, (unsigned)name), op) || table_is_null(&t, i, (unsigned)stack))
			continue;
		if (by_shapes && !str_eq(table_str(&t, i, (unsigned)shape), shapes))
			continue;
		buf_cstr(&out->body, any ? ",\n" : "\n");
		plugin_operation_put_row(&out->body, &t, i, "has_call_stack");
		any = true;
	}
	buf_cstr(&out->body, "]}\n");
	table_release(&t);
	if (any)
		return 0;
	out->status = 404;
	return err_set(e, ERR_DATA, "no call stack of operator '" STR_FMT "' was recorded", STR_ARG(op));
}

static const struct endpoint_param params[] = {{"group_by", "Operation or OperationAndInputShape", NULL, false}, {0}};
static const struct endpoint_param stack_params[] = {
	{"op_name", "the operator", NULL, true},
	{"group_by", "Operation or OperationAndInputShape", NULL, false},
	{"input_shape", "of OperationAndInputShape: the shapes of its inputs, as operation/table has them", NULL, false},
	{0},
};

static const struct endpoint stacks = {
	.path = PLUGIN_PATH "operation/stack",
	.help = "the calls of one operator by call stack",
	.flags = PLUGIN_FLAGS,
	.params = stack_params,
	.run = run_stacks,
};

static const struct endpoint table = {
	.path = PLUGIN_PATH "operation/table",
	.help = "a row for each operator",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &stacks,
	.run = plugin_operation_run_table,
};

const struct endpoint endpoint_plugin_operation = {
	.path = PLUGIN_PATH "operation",
	.help = "operators by device and host time, total and self",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &table,
	.run = run_pies,
};
