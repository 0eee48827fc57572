#include "report/parts/kernel_groups.h"

#include "analysis/costs/tc_used.h"
#include "analysis/recording.h"
#include "analysis/tree/sources.h"
#include "base/mem.h"
#include "report/parts/launch_limit.h"

#include <math.h>

void kernel_groups_release(struct kernel_groups *g)
{
	intern_release(&g->keys);
	counter_sets_release(&g->sets);
	mem_free(g->v);
	mem_free(g->durations);
}

static struct kernel_key kernel_key_of(const struct kernel_groups *g, uint32_t gpu)
{
	const struct launches *l = &g->p->launch;
	struct kernel_key k = {.name = g->p->gpu_op.name[gpu]};
	if (g->by != KERNELS_BY_NAME)
		k.op = g->rules->op(g->t, g->p, gpu);
	if (g->by == KERNELS_BY_LAUNCH) {
		uint32_t i = g->p->gpu_op.launch[gpu];
		k.grid[0] = l->grid_x[i], k.grid[1] = l->grid_y[i], k.grid[2] = l->grid_z[i];
		k.block[0] = l->block_x[i], k.block[1] = l->block_y[i], k.block[2] = l->block_z[i];
		k.registers = l->registers[i];
		k.shared_bytes = l->shared_bytes[i];
	}
	return k;
}

static uint32_t kernel_group_at(struct kernel_groups *g, const struct kernel_key *k, uint32_t launch)
{
	uint32_t before = g->keys.n;
	uint32_t at = intern_put_key(&g->keys, k, sizeof *k) - 1;
	if (g->keys.n > before)
		MEM_PUSH(g->v, g->n, g->cap, (struct kernel_group){.key = *k, .min = INT64_MAX, .launch = launch});
	return at;
}

static void kernel_group_add(struct kernel_groups *g, struct kernel_group *x, uint32_t gpu)
{
	int64_t ns = g->p->gpu_op.dur_ns[gpu];
	uint32_t launch = g->p->gpu_op.launch[gpu];
	double blocks = g->rules->blocks_per_sm(g->p, launch), occupancy = g->rules->occupancy_pct(g->p, launch);
	if (g->sources) {
		const struct str lines = sources_of(g->p, g->p->gpu_op.args[gpu]).lines;
		x->lines = x->calls ? x->lines : lines;
		x->several_lines |= !str_eq(x->lines, lines);
	}
	if (g->counters) {
		counter_sums_add(&x->counters, &g->sets, g->p, gpu);
		counter_sums_add(&g->measured, &g->sets, g->p, gpu);
	}
	if (g->samples) {
		sampled_sums_add(&x->sampled, g->p, gpu, g->by == KERNELS_BY_NAME);
		sampled_sums_add(&g->sampled, g->p, gpu, true);
	}
	x->calls++;
	if (g->by == KERNELS_BY_LAUNCH && x->launch != launch && x->launch != ROW_NONE && !launch_limit_same(g->p, x->launch, launch))
		x->launch = ROW_NONE;
	x->total += ns;
	x->tc_ns[gpu_tensor_core(g->p, gpu)] += ns;
	x->tc_calls[gpu_tensor_core(g->p, gpu)]++;
	x->min = ns < x->min ? ns : x->min;
	if (ns >= x->max)
		x->device = g->p->launch.device[launch];
	x->max = ns > x->max ? ns : x->max;
	if (!isnan(blocks)) {
		g->blocks = true;
		x->blocks_ns += ns;
		x->blocks += blocks * ((double)ns / 1000);
	}
	if (!isnan(occupancy)) {
		g->occupancy = true;
		x->occupancy_ns += ns;
		x->occupancy += occupancy * ((double)ns / 1000);
	}
	g->all_ns += ns;
	if (gpu_is_graph(g->p, gpu)) {
		g->graphs++;
		g->graphs_ns += ns;
	}
}

static bool kernel_counts(const struct kernel_groups *g, const struct window *w, uint32_t gpu)
{
	if (g->p->gpu_op.kind[gpu] != GPU_KERNEL || (g->by != KERNELS_BY_NAME && g->t->gpu_lost[gpu]))
		return false;
	if (g->has_device && g->p->launch.device[g->p->gpu_op.launch[gpu]] != g->device)
		return false;
	return window_has_gpu(w, g->p, gpu);
}

/* Sorts all kernels by duration and deals them out to the groups in that order, so that each group's durations are sorted, too. */
static void deal_durations(struct kernel_groups *g)
{
	sort_items(g->durations, g->n_durations);
	uint32_t *at = NEW_ARRAY_RAW(g->n, uint32_t), next = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		at[i] = g->v[i].first = next;
		next += (uint32_t)g->v[i].calls;
	}
	struct sort_item *dealt = NEW_ARRAY_RAW(g->n_durations, struct sort_item);
	for (uint32_t i = 0; i < g->n_durations; i++)
		dealt[at[g->durations[i].tie]++] = g->durations[i];
	mem_free(g->durations);
	g->durations = dealt;
	mem_free(at);
}

int kernel_groups_collect(const struct profile *p, const struct report_args *args, const struct window *w, const struct optree *t, const struct kernel_rules *rules,
                          struct kernel_groups *g, struct err *e)
{
	uint32_t n = p->gpu_op.rows.n;
	*g = (struct kernel_groups){.p = p, .t = t, .rules = rules, .by = (enum kernels_by)args->variant->by, .has_device = args->device != NULL, .sources = sources_any(p), .counters = counters_any(p), .samples = sampled_anything(p) || sampled_any(p)};
	if (g->has_device && !str_to_i64(str_from(args->device), &g->device))
		return err_set(e, ERR_USAGE, "--device=%s: a GPU number was expected", args->device);
	intern_init(&g->keys);
	counter_sets_find(p, &g->sets);
	g->durations = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < n; i++) {
		if (!kernel_counts(g, w, i))
			continue;
		struct kernel_key k = kernel_key_of(g, i);
		uint32_t at = kernel_group_at(g, &k, p->gpu_op.launch[i]);
		kernel_group_add(g, &g->v[at], i);
		g->durations[g->n_durations++] = (struct sort_item){(uint64_t)p->gpu_op.dur_ns[i], 0, at};
	}
	deal_durations(g);
	if (g->n)
		return 0;
	bool chosen = g->has_device || !w->all;
	kernel_groups_release(g);
	if (chosen)
		return err_set(e, ERR_DATA, "no kernel of the trace is on that device or in those steps");
	return err_set(e, ERR_DATA, "the input holds no kernels; to record them: %s", recording_how(p, RECORD_DEVICE_WORK));
}

void kernel_groups_put_triple(struct table *out, unsigned col, const int32_t v[3], const char *fmt)
{
	if (v[0] != INT32_MIN)
		table_set_fmt(out, col, fmt, v[0], v[1], v[2]);
}
