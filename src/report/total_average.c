/* All events as one (torch's prof.total_average()). */
#include "analysis/costs/op_flops.h"
#include "analysis/recording.h"
#include "query/report.h"
#include "report/parts/key_groups.h"

enum { TOTAL_NAME, TOTAL_CALLS, TOTAL_HOST_SELF, TOTAL_DEV_SELF, TOTAL_CPU_MEM_SELF, TOTAL_DEV_MEM_SELF, TOTAL_FLOPS, TOTAL_UNKNOWN };

static const struct section total_average_section = {COLUMNS(
	[TOTAL_NAME] = {COLUMN(TEXT, "name", "Name", "Total", .flags = COLUMN_ANSWER)},
	[TOTAL_CALLS] = {COLUMN(COUNT, "calls", "Events", "ops, annotations and API calls")},
	[TOTAL_HOST_SELF] = {COLUMN(NS, "host_self_ns", "Host", "time on the host inside events: the sum of their own times")},
	[TOTAL_DEV_SELF] = {COLUMN(NS, "device_self_ns", "Device", "duration of all device work"), .when = WHEN_DEVICE},
	[TOTAL_CPU_MEM_SELF] = {COLUMN(BYTES, "host_self_memory_bytes", "Host memory", "allocated less freed on the host"), .when = WHEN_MEMORY},
	[TOTAL_DEV_MEM_SELF] = {COLUMN(BYTES, "device_self_memory_bytes", "Device memory", "allocated less freed on the device"), .when = WHEN_MEMORY},
	[TOTAL_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "of forward and backward, each operation once, as report module-flops has it; what is unknown counts 0; empty = "
	                        "more than 2^63"), .when = WHEN_SHAPES},
	[TOTAL_UNKNOWN] = {COLUMN(COUNT, "flops_unknown", "FLOPs unknown", "calls of ops whose FLOPs are not known, for want of a model or of recorded shapes"),
	                          .when = WHEN_SHAPES},
)};

struct flops {
	int64_t sum;      /* -1: does not fit */
	int64_t unknown;  /* calls */
};

static struct flops sum_flops(const struct profile *p)
{
	struct flops all = {0};
	struct costs *c = costs_models(p, &cost_own);
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

static void total_average_put_total(struct table *out, const struct report_args *args, const struct profile *p, const struct key_totals *t)
{
	struct flops flops = sum_flops(p);
	section_start(&total_average_section, args,
	              (p->gpu_op.rows.n ? WHEN_DEVICE : 0) | (t->memory_known ? WHEN_MEMORY : 0) | (flops.sum ? WHEN_SHAPES : 0), out);
	table_row(out);
	table_set_str(out, TOTAL_NAME, STR("Total"));
	table_set_i64(out, TOTAL_CALLS, t->all.calls);
	table_set_i64(out, TOTAL_HOST_SELF, t->all.host_self);
	table_set_i64(out, TOTAL_DEV_SELF, t->all.dev_self + t->unattributed_ns);
	table_set_i64(out, TOTAL_CPU_MEM_SELF, t->all.cpu_mem_self);
	table_set_i64(out, TOTAL_DEV_MEM_SELF, t->all.dev_mem_self);
	if (flops.sum >= 0)
		table_set_i64(out, TOTAL_FLOPS, flops.sum);
	table_set_i64(out, TOTAL_UNKNOWN, flops.unknown);
}

static int total_average_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct key_totals t;
	key_totals_find(p, &t);
	if (!t.groups)
		return err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	total_average_put_total(out, args, p, &t);
	if (p->gpu_op.rows.n)
		table_note(out, "device work %lld ns = attributed %lld + unattributed %lld", (long long)(t.all.dev_self + t.unattributed_ns),
		           (long long)t.all.dev_self, (long long)t.unattributed_ns);
	return 0;
}

const struct report report_total_average = {
	.name = "total-average",
	.title = "All events together",
	.help = "What prof.total_average() of torch answers: one row for all events. Times that count nested events again and again are left "
	        "out.",
	.sections = (const struct section *const[]){&total_average_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = total_average_run,
};
