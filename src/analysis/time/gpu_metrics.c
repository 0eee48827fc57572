#include "analysis/time/gpu_metrics.h"

#include "gpu/occupancy.h"

#include <math.h>

#include "analysis/costs/tc_used.h"
#include "analysis/steps/steps.h"
#include "analysis/time/interval.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"

static void gpu_metrics_add_device(struct gpu_metrics_list *l, unsigned *cap, int32_t device, uint32_t row)
{
	MEM_PUSH(l->v, l->n, *cap, (struct gpu_metrics){
		.device = device, .row = row, .utilization = NAN, .sm_efficiency = NAN, .occupancy_pct = NAN, .tc_ratio = NAN,
	});
}

static void sort_devices(struct gpu_metrics_list *l, unsigned from)
{
	unsigned n = l->n - from;
	struct sort_item *item = NEW_ARRAY(n, struct sort_item);
	struct gpu_metrics *sorted = NEW_ARRAY(n, struct gpu_metrics);
	for (unsigned i = 0; i < n; i++)
		item[i] = (struct sort_item){.key = sort_key_i64(l->v[from + i].device), .row = from + i};
	sort_items(item, n);
	for (unsigned i = 0; i < n; i++)
		sorted[i] = l->v[item[i].row];
	if (n)
		memcpy(&l->v[from], sorted, n * sizeof *sorted);
	mem_free(item);
	mem_free(sorted);
}

/* The row that describes each device. */
static void map_rows(const struct profile *p, struct idmap *rows)
{
	idmap_init(rows, INT32_MIN, INT32_MAX, p->device.rows.n);
	for (uint32_t i = 0; i < p->device.rows.n; i++)
		idmap_put(rows, p->device.id[i], i);
}

/* Devices with work first, found through the distinct launch configurations; then the others that the input describes.
 * *at: ordinal -> index. */
static void gpu_metrics_list_devices(const struct profile *p, const struct gpu_metrics_rules *rules, struct gpu_metrics_list *l, struct idmap *at)
{
	unsigned cap = 0;
	bool joined = p->device_joined && !rules->stated;
	struct idmap rows;
	map_rows(p, &rows);
	idmap_init(at, INT32_MIN, INT32_MAX, (uint64_t)p->launch.rows.n + p->device.rows.n);
	for (uint32_t i = 0; i < p->launch.rows.n; i++) {
		int32_t device = p->launch.device[i];
		if (device == INT32_MIN || idmap_get(at, device) != IDMAP_NONE)
			continue;
		idmap_put(at, device, l->n);
		gpu_metrics_add_device(l, &cap, device, joined ? profile_device_row(p, device) : idmap_get(&rows, device));
	}
	unsigned with_work = l->n;
	sort_devices(l, 0);
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		int32_t device = p->device.id[i];
		if (joined || idmap_get(at, device) != IDMAP_NONE)
			continue;
		idmap_put(at, device, l->n);
		gpu_metrics_add_device(l, &cap, device, idmap_get(&rows, device));
	}
	sort_devices(l, with_work);
	for (unsigned i = 0; i < l->n; i++)
		idmap_put(at, l->v[i].device, i);
	idmap_release(&rows);
}

/* The figures of one device while they are collected. */
struct gpu_metrics_work {
	const struct profile *p;
	const struct gpu_metrics_rules *rules;
	const struct optree *tree;
	struct gpu_metrics *m;
	const struct intervals *in; /* the span, not empty unless there are no steps */
	struct intervals kernels, all;
	struct load { int64_t start, end; double blocks; } *load;
	size_t n_load, cap_load;
	double occupancy_time;
};
_Static_assert(ROW_NONE == IDMAP_NONE, "a device that is not described has no row");

static double blocks_on_row(const struct profile *p, uint32_t launch, uint32_t row)
{
	const struct launches *v = &p->launch;
	if (v->blocks_per_sm[launch] > 0)
		return v->blocks_per_sm[launch];
	int32_t sms = row == ROW_NONE ? 0 : p->device.sm_count[row];
	if (sms <= 0 || v->grid_x[launch] <= 0 || v->grid_y[launch] <= 0 || v->grid_z[launch] <= 0)
		return NAN;
	return (double)v->grid_x[launch] * v->grid_y[launch] * v->grid_z[launch] / sms;
}

/* What an SM holds where the device is not described: more than any GPU does, so that no true 0 is taken for unknown. */
enum { MAX_WARPS_PER_SM = 64 };

/* Stated as 0, of a kernel that has warps for 1 % or more. */
static bool is_false_zero(const struct profile *p, uint32_t launch, uint32_t row)
{
	double capacity = MAX_WARPS_PER_SM;
	if (!(p->launch.occupancy_pct[launch] == 0))
		return false;
	if (row != ROW_NONE && p->device.max_threads_per_sm[row] > 0 && p->device.warp_size[row] > 0)
		capacity = (double)p->device.max_threads_per_sm[row] / p->device.warp_size[row];
	return p->launch.warps_per_sm[launch] >= 0.01 * capacity;
}

static double occupancy_on_row(const struct profile *p, uint32_t launch, uint32_t row)
{
	double stated = p->launch.occupancy_pct[launch];
	if (stated >= 0 && stated <= 100 && !is_false_zero(p, launch, row))
		return stated;
	return occupancy_estimate_pct(p, launch, blocks_on_row(p, launch, row));
}

double launch_blocks_per_sm(const struct profile *p, uint32_t launch)
{
	return blocks_on_row(p, launch, profile_device_row(p, p->launch.device[launch]));
}

double launch_occupancy_pct(const struct profile *p, uint32_t launch)
{
	return occupancy_on_row(p, launch, profile_device_row(p, p->launch.device[launch]));
}

static double blocks_per_sm(struct gpu_metrics_work *w, uint32_t launch)
{
	return w->rules->stated ? w->p->launch.blocks_per_sm[launch] : blocks_on_row(w->p, launch, w->m->row);
}

static double occupancy_pct(struct gpu_metrics_work *w, uint32_t launch)
{
	return w->rules->stated ? w->p->launch.occupancy_pct[launch] : occupancy_on_row(w->p, launch, w->m->row);
}

static void add_load(struct gpu_metrics_work *w, uint32_t g, int64_t within)
{
	uint32_t launch = w->p->gpu_op.launch[g];
	double blocks = blocks_per_sm(w, launch);
	w->m->bad_values += w->p->launch.blocks_per_sm[launch] <= 0;
	if (!(blocks > 0))
		return;
	MEM_PUSH(w->load, w->n_load, w->cap_load, (struct load){w->p->gpu_op.start_ns[g], gpu_end(w->p, g), blocks});
	w->m->blocks_known_ns += within;
}

static void add_occupancy(struct gpu_metrics_work *w, uint32_t g, int64_t within)
{
	uint32_t launch = w->p->gpu_op.launch[g];
	double occupancy = occupancy_pct(w, launch);
	w->m->bad_values += w->p->launch.occupancy_pct[launch] < 0 || is_false_zero(w->p, launch, w->m->row);
	if (!(occupancy >= 0))
		return;
	w->occupancy_time += occupancy * (double)within;
	w->m->occupancy_known_ns += within;
}

/* `dur`: of the kernel, what counts. */
static void add_tensor_core(struct gpu_metrics_work *w, uint32_t g, int64_t dur)
{
	uint32_t node = w->tree ? w->tree->gpu_node[g] : ROW_NONE;
	if (w->tree && (node == ROW_NONE || w->tree->kind[node] != NODE_OP))
		return;
	enum tri uses = w->rules->uses_tc(w->p, g);
	w->m->kernel_ns += dur;
	if (uses == TRI_YES)
		w->m->tc_ns += dur;
	else if (uses == TRI_UNKNOWN)
		w->m->tc_unknown_ns += dur;
}

/* What of [start, end) lies within the span; -1 when nothing does. Work without duration lies where it starts; the end of the span is in it. */
static int64_t length_within(const struct gpu_metrics_work *w, int64_t start, int64_t end)
{
	if (start < end) {
		int64_t ns = intervals_length_within(w->in, start, end);
		return ns ? ns : -1;
	}
	bool at_end = w->in->n && start == w->in->v[w->in->n - 1].end;
	return at_end || intervals_length_within(w->in, start, start + 1) ? 0 : -1;
}

static void add_gpu_op(struct gpu_metrics_work *w, uint32_t g)
{
	const struct gpu_ops *v = &w->p->gpu_op;
	int64_t within = length_within(w, v->start_ns[g], gpu_end(w->p, g));
	w->m->trace_kernels += v->kind[g] == GPU_KERNEL;
	if (within < 0) {
		w->m->outside++;
		if (!w->rules->whole_trace)
			return;
	}
	intervals_add(&w->all, v->start_ns[g], gpu_end(w->p, g));
	if (v->kind[g] != GPU_KERNEL) {
		w->m->copies += v->kind[g] == GPU_MEMCPY;
		w->m->sets += v->kind[g] == GPU_MEMSET;
		return;
	}
	w->m->kernels++;
	w->m->graphs += gpu_is_graph(w->p, g);
	intervals_add(&w->kernels, v->start_ns[g], gpu_end(w->p, g));
	add_load(w, g, within > 0 ? within : 0);
	add_occupancy(w, g, within > 0 ? within : 0);
	add_tensor_core(w, g, w->rules->whole_trace ? v->dur_ns[g] : within);
}

/* The sweep: at each start or end of a kernel the sum of blocks per SM changes; it counts up to 1. */
static double integrate_load(const struct gpu_metrics_work *w)
{
	size_t n = w->n_load * 2;
	struct sort_item *edge = NEW_ARRAY(n, struct sort_item);
	for (size_t i = 0; i < w->n_load; i++) {
		edge[2 * i] = (struct sort_item){sort_key_i64(w->load[i].start), (uint32_t)i, 1};
		edge[2 * i + 1] = (struct sort_item){sort_key_i64(w->load[i].end), (uint32_t)i, 0};
	}
	sort_items(edge, (uint32_t)n);
	double level = 0, sum = 0;
	int64_t since = n ? w->load[edge[0].row].start : 0;
	uint32_t running = 0;
	for (size_t i = 0; i < n; i++) {
		const struct load *k = &w->load[edge[i].row];
		int64_t at = edge[i].tie ? k->start : k->end;
		if (running && at > since)
			sum += (level < 1 ? level : 1) * (double)intervals_length_within(w->in, since, at);
		since = at;
		level += edge[i].tie ? k->blocks : -k->blocks;
		running += edge[i].tie ? 1 : -1u;
		if (!running)
			level = 0; /* sheds what rounding left over */
	}
	mem_free(edge);
	return sum;
}

/* What is known for less than half of the kernel time stays unknown. */
static void gpu_metrics_finish(struct gpu_metrics *m, double load_ns, double occupancy_time, int64_t span)
{
	if (m->trace_kernels && span > 0 && m->blocks_known_ns >= m->kernel_ns - m->blocks_known_ns)
		m->sm_efficiency = load_ns / (double)span;
	if (m->occupancy_known_ns > 0 && m->occupancy_known_ns >= m->kernel_ns - m->occupancy_known_ns)
		m->occupancy_pct = occupancy_time / (double)m->occupancy_known_ns;
	if (m->kernel_ns > 0)
		m->tc_ratio = (double)m->tc_ns / (double)m->kernel_ns;
}

const struct gpu_metrics_rules gpu_metrics_own = {.uses_tc = gpu_tensor_core, .finish = gpu_metrics_finish};

static void finish_device(struct gpu_metrics_work *w)
{
	struct gpu_metrics *m = w->m;
	int64_t span = intervals_length(w->in);
	intervals_normalise(&w->kernels);
	intervals_normalise(&w->all);
	intervals_intersect(&w->kernels, w->in, &w->kernels);
	intervals_intersect(&w->all, w->in, &w->all);
	m->kernel_busy_ns = intervals_length(&w->kernels);
	m->busy_ns = intervals_length(&w->all);
	if (m->trace_kernels && span > 0)
		m->utilization = (double)m->kernel_busy_ns / (double)span;
	w->rules->finish(m, span > 0 ? integrate_load(w) : 0, w->occupancy_time, span);
	intervals_release(&w->kernels);
	intervals_release(&w->all);
	mem_free(w->load);
}

/* Steps stand in order of time. `between`: with the time between two of them. */
static void gpu_metrics_find_span(const struct steps *s, const int64_t *first, const int64_t *last, bool between, struct intervals *in)
{
	int64_t start = 0;
	bool any = false;
	for (unsigned i = 0; i < s->n; i++) {
		if ((first && s->v[i].number < *first) || (last && s->v[i].number > *last))
			continue;
		start = any && between ? start : s->v[i].start_ns;
		intervals_add(in, start, s->v[i].end_ns);
		any = true;
	}
	intervals_normalise(in);
}

void gpu_metrics_measure(const struct profile *p, const struct steps *steps, const struct gpu_metrics_rules *rules, const struct optree *tree, const int64_t *first,
                         const int64_t *last, struct gpu_metrics_list *out)
{
	*out = (struct gpu_metrics_list){0};
	struct intervals in = {0};
	gpu_metrics_find_span(steps, first, last, rules->whole_trace, &in);
	out->span_ns = intervals_length(&in);
	struct idmap at;
	gpu_metrics_list_devices(p, rules, out, &at);
	struct gpu_metrics_work *w = NEW_ARRAY(out->n, struct gpu_metrics_work);
	for (unsigned i = 0; i < out->n; i++)
		w[i] = (struct gpu_metrics_work){.p = p, .rules = rules, .tree = tree, .m = &out->v[i], .in = &in};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int32_t device = p->launch.device[p->gpu_op.launch[g]];
		if (device != INT32_MIN)
			add_gpu_op(&w[idmap_get(&at, device)], g);
	}
	for (unsigned i = 0; i < out->n; i++)
		finish_device(&w[i]);
	intervals_release(&in);
	idmap_release(&at);
	mem_free(w);
}

void gpu_metrics_release(struct gpu_metrics_list *l)
{
	mem_free(l->v);
	*l = (struct gpu_metrics_list){0};
}
