/* All events as one (torch's prof.total_average()). */
#include "analysis/costs/op_flops.h"
#include "analysis/recording.h"
#include "query/report.h"
#include "report/parts/key_groups.h"
#include "report/parts/key_groups.h"

enum { C_NAME, C_CALLS, C_HOST_SELF, C_DEV_SELF, C_CPU_MEM_SELF, C_DEV_MEM_SELF, C_FLOPS, C_UNKNOWN, N_COLUMNS };

static const struct column columns[N_COLUMNS] = {
	[C_NAME] = {.id = "name", .title = "Name", .help = "Total", .type = CELL_STR, .flags = COLUMN_KEY},
	[C_CALLS] = {.id = "calls", .title = "Events", .help = "ops, annotations and API calls", .type = CELL_I64, .unit = UNIT_COUNT},
	[C_HOST_SELF] = {.id = "host_self_ns", .title = "Host", .help = "time on the host inside events: the sum of their own times", .type = CELL_I64, .unit = UNIT_NS},
	[C_DEV_SELF] = {.id = "device_self_ns", .title = "Device", .help = "duration of all device work", .type = CELL_I64, .unit = UNIT_NS},
	[C_CPU_MEM_SELF] = {.id = "host_self_memory_bytes", .title = "Host memory", .help = "allocated less freed on the host", .type = CELL_I64, .unit = UNIT_BYTES},
	[C_DEV_MEM_SELF] = {.id = "device_self_memory_bytes", .title = "Device memory", .help = "allocated less freed on the device", .type = CELL_I64, .unit = UNIT_BYTES},
	[C_FLOPS] = {.id = "flops", .title = "FLOPs", .help = "of forward and backward, each operation once, as report module-flops has it; what is unknown counts 0; empty = more than 2^63",
	             .type = CELL_I64, .unit = UNIT_FLOPS},
	[C_UNKNOWN] = {.id = "flops_unknown", .title = "FLOPs unknown", .help = "calls of ops whose FLOPs are not known, for want of a model or of recorded shapes", .type = CELL_I64,
	               .unit = UNIT_COUNT},
};

struct flops {
	int64_t sum;      /* -1: does not fit */
	int64_t unknown;  /* calls */
};

static struct flops sum_flops(const struct profile *p)
{
	struct flops all = {0};
	struct costs *c = costs_models(p, COST_DEFAULT);
	struct fwdbwd *links = fwdbwd_new(p);
	struct op_flops *f = op_flops_new(p, c, links, OP_FLOPS_DEFAULT);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		all.unknown += f->unknown[i];
		if (all.sum < 0 || __builtin_add_overflow(all.sum, f->flops[i], &all.sum))
			all.sum = -1;
	}
	op_flops_free(f);
	fwdbwd_free(links);
	costs_free(c);
	return all;
}

static void total_average_put(struct table *out, const unsigned at[], unsigned c, int64_t v)
{
	if (at[c] != UINT32_MAX)
		table_set_i64(out, at[c], v);
}

static void total_average_put_total(struct table *out, const struct torch_events *t, const struct key_group *all)
{
	struct flops flops = sum_flops(t->p);
	bool device = t->p->gpu_op.rows.n > 0, known = flops.sum != 0;
	unsigned at[N_COLUMNS];
	for (unsigned c = 0; c < N_COLUMNS; c++) {
		bool of_memory = c == C_CPU_MEM_SELF || c == C_DEV_MEM_SELF, of_flops = c == C_FLOPS || c == C_UNKNOWN;
		bool skip = (c == C_DEV_SELF && !device) || (of_memory && !t->memory_known) || (of_flops && !known);
		at[c] = skip ? UINT32_MAX : table_column(out, &columns[c]);
	}
	table_row(out);
	table_set_str(out, at[C_NAME], STR("Total"));
	total_average_put(out, at, C_CALLS, all->calls);
	total_average_put(out, at, C_HOST_SELF, all->host_self);
	total_average_put(out, at, C_DEV_SELF, all->dev_self + t->unattributed_ns);
	total_average_put(out, at, C_CPU_MEM_SELF, all->cpu_mem_self);
	total_average_put(out, at, C_DEV_MEM_SELF, all->dev_mem_self);
	if (flops.sum >= 0)
		total_average_put(out, at, C_FLOPS, flops.sum);
	total_average_put(out, at, C_UNKNOWN, flops.unknown);
}

static int total_average_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct torch_events *t = torch_events_new(p, &torch_rules[TORCH_OWN], 0);
	struct key_groups *g = key_groups_new(t, &(struct key_choice){0});
	int rc = 0;
	if (g->n)
		total_average_put_total(out, t, &g->all);
	else
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	if (g->n && p->gpu_op.rows.n)
		table_note(out, "device work %lld ns = attributed %lld + unattributed %lld", (long long)(g->all.dev_self + t->unattributed_ns),
		           (long long)g->all.dev_self, (long long)t->unattributed_ns);
	key_groups_free(g);
	torch_events_free(t);
	return rc;
}

const struct report report_total_average = {
	.name = "total-average",
	.title = "All events together",
	.help = "What prof.total_average() of torch answers: one row for all events. Times that count nested events again and again are left "
	        "out.",
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = total_average_run,
};
