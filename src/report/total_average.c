/* All events as one (torch's prof.total_average()). */
#include "base/mem.h"
#include "report/key_groups.h"
#include "report/report.h"
#include "report/torch_table.h"

enum { C_NAME, C_CALLS, C_HOST_SELF, C_HOST_TOTAL, C_DEV_SELF, C_DEV_TOTAL, C_CPU_MEM, C_CPU_MEM_SELF, C_DEV_MEM, C_DEV_MEM_SELF, C_FLOPS,
       C_UNKNOWN, N_COLUMNS };

static const struct column columns[N_COLUMNS] = {
	[C_NAME] = {"name", "Name", "Total", CELL_STR, .flags = COLUMN_KEY},
	[C_CALLS] = {"calls", "Events", "ops, annotations and API calls", CELL_I64, UNIT_COUNT},
	[C_HOST_SELF] = {"host_self_ns", "Host", "time on the host inside events: the sum of their own times", CELL_I64, UNIT_NS},
	[C_HOST_TOTAL] = {"host_total_ns", "Host total", "sum of all events' durations on the host: what is nested counts again and again", CELL_I64,
	                  UNIT_NS},
	[C_DEV_SELF] = {"device_self_ns", "Device", "duration of all device work", CELL_I64, UNIT_NS},
	[C_DEV_TOTAL] = {"device_total_ns", "Device total", "sum of all events' device time: what is nested counts again and again", CELL_I64, UNIT_NS},
	[C_CPU_MEM] = {"host_memory_bytes", "Host memory total", "sum over all events, nested ones again and again", CELL_I64, UNIT_BYTES},
	[C_CPU_MEM_SELF] = {"host_self_memory_bytes", "Host memory", "allocated less freed on the host", CELL_I64, UNIT_BYTES},
	[C_DEV_MEM] = {"device_memory_bytes", "Device memory total", "sum over all events, nested ones again and again", CELL_I64, UNIT_BYTES},
	[C_DEV_MEM_SELF] = {"device_self_memory_bytes", "Device memory", "allocated less freed on the device", CELL_I64, UNIT_BYTES},
	[C_FLOPS] = {"flops", "FLOPs", "of the ops whose FLOPs are known, one inside another once", CELL_I64, UNIT_FLOPS},
	[C_UNKNOWN] = {"flops_unknown", "FLOPs unknown", "kernel-launching ops outside all of these", CELL_I64, UNIT_COUNT},
};

/* Sum over the outermost ops whose FLOPs are known; -1: it does not fit. Parents stand before their children. */
static int64_t outermost_flops(const struct torch_events *t, int64_t *unknown)
{
	uint8_t *inside = NEW_ARRAY(t->n, uint8_t);
	int64_t sum = 0;
	*unknown = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t up = t->parent[i];
		bool covered = up < i && inside[up], known = t->flops[i] != TORCH_UNKNOWN && t->flops[i] > 0;
		inside[i] = covered || known;
		if (known && !covered && (sum < 0 || __builtin_add_overflow(sum, t->flops[i], &sum)))
			sum = -1;
		*unknown += !inside[i] && t->kernel_first[i + 1] > t->kernel_first[i];
	}
	mem_free(inside);
	return sum;
}

static void add_columns(struct table *out, const struct torch_events *t, bool flops, unsigned at[N_COLUMNS])
{
	bool device = t->p->gpu_op.rows.n > 0, torch = t->rules->name;
	for (unsigned c = 0; c < N_COLUMNS; c++) {
		bool of_device = c == C_DEV_SELF || c == C_DEV_TOTAL, of_memory = c >= C_CPU_MEM && c <= C_DEV_MEM_SELF;
		bool nested = c == C_HOST_TOTAL || c == C_DEV_TOTAL || c == C_CPU_MEM || c == C_DEV_MEM;
		bool skip = (of_device && !device) || (of_memory && !t->memory_known) || (nested && !torch) || (c == C_FLOPS && !flops) ||
		            (c == C_UNKNOWN && (torch || !flops || !device));
		at[c] = skip ? UINT32_MAX : table_column(out, &columns[c]);
	}
}

static void put(struct table *out, const unsigned at[], unsigned c, int64_t v)
{
	if (at[c] != UINT32_MAX)
		table_set_i64(out, at[c], v);
}

static void put_total(struct table *out, const struct torch_events *t, const struct key_group *all)
{
	unsigned at[N_COLUMNS];
	bool torch = t->rules->name;
	add_columns(out, t, t->flops && all->flops_known, at);
	table_row(out);
	table_set_str(out, at[C_NAME], STR("Total"));
	put(out, at, C_CALLS, all->calls);
	put(out, at, C_HOST_SELF, all->host_self);
	put(out, at, C_HOST_TOTAL, all->host_total);
	put(out, at, C_DEV_SELF, all->dev_self + (torch ? 0 : t->unattributed_ns));
	put(out, at, C_DEV_TOTAL, all->dev_total);
	put(out, at, C_CPU_MEM, all->cpu_mem);
	put(out, at, C_CPU_MEM_SELF, all->cpu_mem_self);
	put(out, at, C_DEV_MEM, all->dev_mem);
	put(out, at, C_DEV_MEM_SELF, all->dev_mem_self);
	if (at[C_FLOPS] == UINT32_MAX)
		return;
	int64_t unknown, flops = torch ? all->flops : outermost_flops(t, &unknown);
	if (flops >= 0)
		put(out, at, C_FLOPS, flops);
	if (!torch)
		put(out, at, C_UNKNOWN, unknown);
}

static int total_average_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct torch_events *t = torch_events_new(p, torch_rules_of(args->compat), TORCH_FLOPS);
	struct key_groups *g = key_groups_new(t, &(struct key_choice){0});
	int rc = 0;
	if (g->n && args->compat)
		torch_table_total(g, out);
	else if (g->n)
		put_total(out, t, &g->all);
	else
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops: profile with activities=[CPU, CUDA] to record them");
	if (g->n && !args->compat && p->gpu_op.rows.n)
		table_note(out, "device work %lld ns = attributed %lld + unattributed %lld", (long long)(g->all.dev_self + t->unattributed_ns),
		           (long long)g->all.dev_self, (long long)t->unattributed_ns);
	key_groups_free(g);
	torch_events_free(t);
	return rc;
}

const struct report report_total_average = {
	.name = "total-average",
	.title = "All events together",
	.help = "What prof.total_average() of torch answers: one row for all events. Times that count nested events again and again are there "
	        "only with --compat=torch-*.",
	.compat = torch_compats,
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = total_average_run,
};
