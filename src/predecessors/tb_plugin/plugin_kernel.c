/* The plugin's kernels: by time, by use of Tensor Cores, and the table. */
#include "base/mem.h"
#include "op/kernels.h"
#include "predecessors/tb_plugin/plugin.h"
#include "render/number.h"

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

/* The share of the kernels' time in those that use them, and the rest of 1. */
static int run_tensor_cores(const struct request *r, struct response *out, struct err *e)
{
	const struct profile *p = r->entry->profile;
	struct table t;
	if (plugin_report(r, "kernels", "name", NULL, &t, e) < 0)
		return -1;
	table_release(&t);
	int64_t ns[2] = {0};
	uint8_t *uses = NEW_ARRAY(p->strings.n, uint8_t); /* by name of kernel: 0 = not asked, 1 = no, 2 = yes */
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		uint32_t name = p->gpu_op.name[i];
		if (p->gpu_op.kind[i] != GPU_KERNEL)
			continue;
		if (!uses[name])
			uses[name] = kernel_uses_tc_listed(profile_str(p, name)) ? 2 : 1;
		ns[uses[name] == 2] += p->gpu_op.dur_ns[i];
	}
	mem_free(uses);
	double ratio = ns[0] + ns[1] > 0 ? (double)ns[1] / (double)(ns[0] + ns[1]) : 0;
	struct buf *b = &out->body;
	buf_cstr(b, "{\"total\":{\"columns\":[{\"type\":\"string\",\"name\":\"name\"},{\"type\":\"number\",\"name\":\"value\"}],"
	            "\"rows\":[[\"Using Tensor Cores\",");
	number_shortest(b, ratio);
	buf_cstr(b, "],[\"Not Using Tensor Cores\",");
	number_shortest(b, 1 - ratio);
	buf_cstr(b, "]]}}\n");
	return 0;
}

static int plugin_kernel_run_table(const struct request *r, struct response *out, struct err *e)
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
	.help = "share of the kernels' time with and without Tensor Cores",
	.flags = PLUGIN_FLAGS,
	.run = run_tensor_cores,
};

static const struct endpoint table = {
	.path = PLUGIN_PATH "kernel/table",
	.help = "a row for each kernel, or for each kernel, launching operator and shape of the launch",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &tensor_cores,
	.run = plugin_kernel_run_table,
};

const struct endpoint endpoint_plugin_kernel = {
	.path = PLUGIN_PATH "kernel",
	.help = "kernels by time",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &table,
	.run = run_pie,
};
