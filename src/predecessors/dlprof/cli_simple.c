/* Mode simple: what can be said of kernels without knowing ops. */
#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/saturate.h"
#include "op/kernels.h"
#include "predecessors/dlprof/cli_dlprof.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/system.h"

#include <stdlib.h>

struct kernel_sum {
	struct str name;
	uint64_t calls;
	int64_t gpu[3], api[3]; /* sum, min, max */
	bool uses_tc;
};

static void cli_simple_add(int64_t s[3], int64_t ns, bool first)
{
	add_saturated(&s[0], ns);
	s[1] = first || ns < s[1] ? ns : s[1];
	s[2] = first || ns > s[2] ? ns : s[2];
}

/* Rows of GPU time: all device work, and kernels that use Tensor Cores. */
void dlprof_simple_summary(const struct profile *p, struct table *t)
{
	struct dlprof_iterations d;
	int64_t gpu = 0, tc = 0;
	uint8_t *known = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		uint8_t *k = &known[p->gpu_op.name[i]];
		if (!*k)
			*k = kernel_uses_tc_listed(profile_str(p, p->gpu_op.name[i])) ? 2 : 1;
		add_saturated(&gpu, p->gpu_op.dur_ns[i]);
		if (p->gpu_op.kind[i] == GPU_KERNEL && *k == 2)
			add_saturated(&tc, p->gpu_op.dur_ns[i]);
	}
	mem_free(known);
	dlprof_iterations_of(p, STR(""), &d);
	t->title = "System Config";
	TABLE_COLUMN(t, .id = "name", .title = "Name", .help = "what", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "value", .title = "Value", .help = "its value", .type = CELL_STR);
	dlprof_system_rows(p, t);
	struct table *s = table_section(t, "summary_report", "Summary Report");
	TABLE_COLUMN(s, .id = "total_wall_clock_time_ns", .title = "Total Wall Clock Time (ns)", .help = "from the begin of the recording to the end of the last event",
	             .type = CELL_I64);
	TABLE_COLUMN(s, .id = "total_gpu_time_ns", .title = "Total GPU Time (ns)", .help = "kernels, copies and sets", .type = CELL_I64);
	TABLE_COLUMN(s, .id = "total_tensor_core_kernel_time_ns", .title = "Total Tensor Core Kernel Time (ns)", .help = "kernels that use Tensor Cores", .type = CELL_I64);
	table_row(s);
	table_set_i64(s, 0, d.stop_ns[d.n - 1] - d.start_ns[0]);
	table_set_i64(s, 1, gpu);
	table_set_i64(s, 2, tc);
	dlprof_iterations_release(&d);
}

static int cli_simple_by_name(const void *a, const void *b)
{
	return str_cmp(((const struct kernel_sum *)a)->name, ((const struct kernel_sum *)b)->name);
}

static void cli_simple_put(struct table *t, unsigned at, const int64_t s[3], uint64_t calls)
{
	table_set_i64(t, at, s[0]);
	table_set_f64(t, at + 1, (double)s[0] / (double)calls);
	table_set_i64(t, at + 2, s[1]);
	table_set_i64(t, at + 3, s[2]);
}

static void cli_simple_put_kernels(const struct kernel_sum *v, uint32_t n, struct table *t)
{
	static const struct column columns[] = {
		{.id = "kernel_name", .title = "Kernel Name", .help = "short name", .type = CELL_STR}, {.id = "uses_tc", .title = "Uses TC", .help = "by its name", .type = CELL_BOOL},
		{.id = "total_gpu_time_ns", .title = "Total GPU Time (ns)", .help = "", .type = CELL_I64}, {.id = "avg_gpu_time_ns", .title = "Avg GPU Time (ns)", .help = "", .type = CELL_F64},
		{.id = "min_gpu_time_ns", .title = "Min GPU Time (ns)", .help = "", .type = CELL_I64}, {.id = "max_gpu_time_ns", .title = "Max GPU Time (ns)", .help = "", .type = CELL_I64},
		{.id = "total_api_time_ns", .title = "Total API Time (ns)", .help = "", .type = CELL_I64}, {.id = "avg_api_time_ns", .title = "Avg API Time (ns)", .help = "", .type = CELL_F64},
		{.id = "min_api_time_ns", .title = "Min API Time (ns)", .help = "", .type = CELL_I64}, {.id = "max_api_time_ns", .title = "Max API Time (ns)", .help = "", .type = CELL_I64},
	};
	table_columns(t, columns, sizeof columns / sizeof columns[0]);
	for (uint32_t i = 0; i < n; i++) {
		table_row(t);
		table_set_str(t, 0, v[i].name);
		table_set_bool(t, 1, v[i].uses_tc);
		cli_simple_put(t, 2, v[i].gpu, v[i].calls);
		cli_simple_put(t, 6, v[i].api, v[i].calls);
	}
}

int dlprof_simple_kernels(const struct profile *p, struct table *t, struct err *e)
{
	struct intern names;
	struct kernel_sum *v = NULL;
	uint32_t *of = NEW_ARRAY(p->strings.n, uint32_t), n = 0, cap = 0; /* string id -> place in v + 1 */
	intern_init(&names);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t *at = &of[p->gpu_op.name[g]], call = p->gpu_op.call[g];
		if (p->gpu_op.kind[g] != GPU_KERNEL)
			continue;
		if (!*at) {
			struct str full = profile_str(p, p->gpu_op.name[g]), name = kernel_function_name(full);
			*at = intern_str(&names, name);
			MEM_GROW(v, cap, *at + 1);
			for (; n <= *at; n++)
				v[n] = (struct kernel_sum){0};
			v[*at].name = name;
			v[*at].uses_tc |= kernel_uses_tc_listed(full);
		}
		struct kernel_sum *s = &v[*at];
		bool first = !s->calls++;
		cli_simple_add(s->gpu, p->gpu_op.dur_ns[g], first);
		cli_simple_add(s->api, call == ROW_NONE ? 0 : p->span.dur_ns[call], first);
	}
	int rc = n ? 0 : err_set(e, ERR_DATA, "the input holds no kernels");
	if (n) {
		qsort(v + 1, n - 1, sizeof *v, cli_simple_by_name); /* place 0 is the empty name's */
		cli_simple_put_kernels(v + 1, n - 1, t);
	}
	intern_release(&names);
	mem_free(of);
	mem_free(v);
	return rc;
}
