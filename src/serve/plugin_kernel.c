/* The plugin's kernels: by time, by use of Tensor Cores, and the table. */
#include "serve/plugin.h"

/* The pie of all kernels. */
static int run_pie(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	struct table t;
	if (plugin_report(r, "kernels", "name", NULL, &t, e) < 0)
		return -1;
	buf_cstr(b, "{\"total\":");
	int rc = plugin_put_pie(b, NULL, &t, "total_duration_us", e);
	buf_cstr(b, "}\n");
	table_release(&t);
	return rc;
}

/* Of two. */
static int run_tensor_cores(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	struct table t;
	int64_t us[2] = {0};
	if (plugin_report(r, "kernels", "name", NULL, &t, e) < 0)
		return -1;
	int used = table_find_column(&t, STR("tensor_cores_used")), total = table_find_column(&t, STR("total_duration_us"));
	for (size_t i = 0; i < t.n_rows; i++)
		us[str_eqc(table_str(&t, i, (unsigned)used), "Yes")] += table_i64(&t, i, (unsigned)total);
	buf_printf(b, "{\"total\":{\"columns\":[{\"type\":\"string\",\"name\":\"name\"},{\"type\":\"number\",\"name\":\"value\"}],"
	           "\"rows\":[[\"Using Tensor Cores\",%lld],[\"Not Using Tensor Cores\",%lld]]}}\n", (long long)us[1], (long long)us[0]);
	table_release(&t);
	return 0;
}

static int run_table(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	struct table t;
	if (plugin_report(r, "kernels", plugin_grouped(r, "KernelNameAndOpName") ? "launch" : "name", NULL, &t, e) < 0)
		return -1;
	buf_cstr(b, "{\"metadata\":{\"sort\":\"Total Duration (us)\"},\"data\":");
	plugin_put_table(b, &t);
	buf_cstr(b, "}\n");
	table_release(&t);
	return 0;
}

static const struct endpoint_param params[] = {{"group_by", "Kernel or KernelNameAndOpName", NULL, false}, {0}};

static const struct endpoint tensor_cores = {
	.path = PLUGIN_PATH "kernel/tc_pie",
	.help = "kernel time with and without Tensor Cores",
	.flags = PLUGIN_FLAGS,
	.run = run_tensor_cores,
};

static const struct endpoint table = {
	.path = PLUGIN_PATH "kernel/table",
	.help = "a row for each kernel, or for each kernel, launching operator and shape of the launch",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &tensor_cores,
	.run = run_table,
};

const struct endpoint endpoint_plugin_kernel = {
	.path = PLUGIN_PATH "kernel",
	.help = "kernels by time",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &table,
	.run = run_pie,
};
