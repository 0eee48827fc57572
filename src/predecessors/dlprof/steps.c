/* The table of DLProf's iterations: where each begins and ends, and how busy the GPUs were in it. */
#include "analysis/ranks/rank_place.h"
#include "analysis/time/interval.h"
#include "base/hash.h"
#include "base/mem.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"
#include "predecessors/dlprof/reports.h"

/* What each GPU did, kernels, copies and sets together; visible GPUs that did nothing count too. */
struct gpus {
	struct intervals *busy;
	uint32_t n;              /* that did something */
	uint32_t visible;
};

static struct gpus gpus_measure(const struct profile *p)
{
	struct gpus g = {0};
	uint32_t cap = 0;
	struct idmap of;
	idmap_init(&of, INT32_MIN, INT32_MAX, p->launch.rows.n);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		int32_t device = p->launch.device[p->gpu_op.launch[i]];
		uint32_t at = idmap_get(&of, device);
		if (at == IDMAP_NONE) {
			MEM_GROW(g.busy, cap, g.n + 1);
			g.busy[g.n] = (struct intervals){0};
			idmap_put(&of, device, at = g.n++);
		}
		intervals_add(&g.busy[at], p->gpu_op.start_ns[i], gpu_end(p, i));
	}
	for (uint32_t i = 0; i < g.n; i++)
		intervals_normalise(&g.busy[i]);
	g.visible = rank_own_gpus(p) > g.n ? rank_own_gpus(p) : g.n;
	idmap_release(&of);
	return g;
}

static void gpus_release(struct gpus *g)
{
	for (uint32_t i = 0; i < g->n; i++)
		intervals_release(&g->busy[i]);
	mem_free(g->busy);
}

static double utilization_pct(const struct gpus *g, int64_t start, int64_t end)
{
	double busy = 0;
	for (uint32_t i = 0; i < g->n; i++)
		busy += (double)intervals_length_within(&g->busy[i], start, end);
	return g->visible && end > start ? 100 * busy / g->visible / (double)(end - start) : 0;
}

static void put_iteration(const struct gpus *g, const struct dlprof_iterations *d, uint32_t i, int64_t zero_ns, struct table *t)
{
	int64_t end = i + 1 < d->n ? d->start_ns[i + 1] : d->stop_ns[i];
	table_row(t);
	table_set_i64(t, 0, i);
	table_set_i64(t, 1, d->start_ns[i] - zero_ns);
	table_set_i64(t, 2, d->stop_ns[i] - zero_ns);
	table_set_i64(t, 3, end - d->start_ns[i]);
	table_set_f64(t, 4, utilization_pct(g, d->start_ns[i], end));
}

int dlprof_steps(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct dlprof_iterations d;
	uint32_t shown = 0;
	TABLE_COLUMN(t, .id = "iteration", .title = "Iteration", .help = "0 is what is before the first end of the key op", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "start_ns", .title = "Start Time (ns)", .help = "since the recording began", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "stop_ns", .title = "Stop Time (ns)", .help = "its last nanosecond; of the last iteration, the end of the last event", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "total_ns", .title = "Iteration Time (ns)", .help = "lengths sum to the wall clock time", .type = CELL_I64);
	TABLE_COLUMN(t, .id = "gpu_utilization_pct", .title = "GPU Utilization %",
	             .help = "time with a kernel, copy or set, as a mean over all visible GPUs", .type = CELL_F64, .unit = UNIT_PERCENT);
	dlprof_iterations_of(p, p->key_op, &d);
	struct gpus g = gpus_measure(p);
	double mean, deviation;
	int64_t first = args->has_steps ? args->step_first : 0, last = args->has_steps ? args->step_last : INT64_MAX;
	for (uint32_t i = 0; i < d.n; i++)
		if (i >= first && i <= last) {
			put_iteration(&g, &d, i, dlprof_zero_ns(p), t);
			shown++;
		}
	first = first < 0 ? 0 : first;
	dlprof_iterations_mean(&d, (uint32_t)(first < UINT32_MAX ? first : UINT32_MAX), (uint32_t)(last < UINT32_MAX ? last : UINT32_MAX), &mean,
	                &deviation);
	table_note(t, "Key op: " STR_FMT ", %u call%s. Mean iteration time %.1f ns, standard deviation %.1f ns, of %u of %u iterations.",
	           STR_ARG(d.key), d.calls, d.calls == 1 ? "" : "s", mean, deviation, shown, d.n);
	dlprof_table_hints(t, p, &(struct window){.all = true}, HINT_GPUS);
	int rc = shown ? 0 : err_set(e, ERR_DATA, "--steps: DLProf's iterations of this input are 0 to %u", d.n - 1);
	gpus_release(&g);
	dlprof_iterations_release(&d);
	return rc;
}
