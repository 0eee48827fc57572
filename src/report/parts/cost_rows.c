#include "analysis/names/names.h"
#include "report/parts/cost_table.h"

#include "analysis/tree/direction.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"

#include <math.h>

/* One call of an op, or one kernel. Copies and sets that an op makes count like kernels. */
struct instance {
	uint32_t cost, op, row;
	uint32_t main;         /* gpu_op row: the longest kernel that carries FLOPs, else the longest */
	bool main_carries, fewer, measured_only;
	int64_t ns, flops, bytes, bytes_least;
	uint32_t kernels;      /* of which these were measured; NaN where not of all of them */
	double dram, tensor, sampled;
};

struct cost_rows_key {
	uint32_t name, params, direction, dtype, class, measured_only, copies;
};

struct cost_rows_work {
	const struct profile *p;
	struct cost_rows *r;
	struct directions *dir;
	const struct window *w;
	uint32_t classes;
	enum cost_by by;
	uint32_t *of_span;            /* span -> its instance; ROW_NONE */
	struct instance *v;
	uint32_t n, cap;
	uint32_t *of_gpu;             /* gpu_op -> its instance; ROW_NONE */
	bool by_name;                 /* kernels without a model have rows, too, by name */
	bool splits_copies;           /* copies by the copy engines have rows of their own */
	struct bounds *bounds;
	struct counter_sets counters; /* none unless r->counters */
	struct intern keys, params;
};

/* --- instances -------------------------------------------------------------------------------------------------- */

static uint32_t cost_rows_instance_of(struct cost_rows_work *w, uint32_t gpu)
{
	const struct costs *c = w->r->costs;
	uint32_t op = c->op[gpu];
	/* Each kernel of a collective is an instance of its own. */
	bool single = w->by == COST_BY_KERNEL || op == ROW_NONE || c->cost[c->of_gpu[gpu]].class == OP_COMM;
	if (!single && w->of_span[op] != ROW_NONE && !w->v[w->of_span[op]].measured_only)
		return w->of_span[op];
	MEM_GROW(w->v, w->cap, w->n + 1);
	w->v[w->n] = (struct instance){.cost = c->of_gpu[gpu], .op = op, .main = gpu, .flops = COST_UNKNOWN, .bytes = COST_UNKNOWN, .bytes_least = COST_UNKNOWN};
	if (!single)
		w->of_span[op] = w->n;
	return w->n++;
}

/* Adds what a kernel carries to the sum so far. A kernel that carries nothing of a known sum changes nothing. */
static int64_t cost_rows_plus(int64_t sum, int64_t v)
{
	int64_t both;
	if (v == COST_UNKNOWN)
		return sum;
	return sum == COST_UNKNOWN ? v : __builtin_add_overflow(sum, v, &both) ? COST_UNKNOWN : both;
}

/* Adds what was measured of a kernel; copies and sets never are. */
static void cost_rows_measure(const struct cost_rows_work *w, struct instance *x, uint32_t gpu)
{
	if (!(w->r->counters || w->r->samples) || w->p->gpu_op.kind[gpu] != GPU_KERNEL)
		return;
	x->kernels++;
	struct sampled_values s;
	const struct gpu *device = w->r->samples && sampled_of(w->p, gpu, &s) && s.call ? bounds_gpu(w->bounds, gpu) : NULL;
	x->sampled += device && device->bytes_per_s > 0 ? sampled_dram_pct(s.v) / 100 * device->bytes_per_s * (double)w->p->gpu_op.dur_ns[gpu] / 1e9 : NAN;
	const struct counter_values c = counters_of(&w->counters, w->p, gpu);
	x->dram += c.v[COUNTER_DRAM_BYTES];
	x->tensor += c.v[COUNTER_TENSOR_FLOPS];
}

static void cost_rows_add_kernel(struct cost_rows_work *w, uint32_t gpu)
{
	const struct costs *c = w->r->costs;
	uint32_t at = w->of_gpu[gpu] = cost_rows_instance_of(w, gpu);
	struct instance *x = &w->v[at];
	bool carries = c->parts[gpu] > 0;
	const struct gpu_ops *g = &w->p->gpu_op;
	if ((carries && !x->main_carries) || (carries == x->main_carries && g->dur_ns[gpu] > g->dur_ns[x->main]))
		x->main = gpu;
	x->main_carries |= carries;
	x->ns += g->dur_ns[gpu];
	x->fewer |= g->kind[gpu] == GPU_KERNEL && gpu_kernel(w->p, gpu)->fewer;
	cost_rows_measure(w, x, gpu);
	if (!carries)
		return;
	x->flops = cost_rows_plus(x->flops, costs_flops(c, gpu));
	x->bytes = cost_rows_plus(x->bytes, costs_bytes(c, gpu));
	x->bytes_least = cost_rows_plus(x->bytes_least, costs_bytes_least(c, gpu));
}

/* The class of op that a kernel does, by its name; a product has the class of its op. OP_UNKNOWN: no report of one class is about the kernel. */
static enum op_class class_by_name(struct cost_rows_work *w, uint32_t gpu)
{
	uint32_t op = w->r->costs->op[gpu];
	struct str name = op == ROW_NONE ? STR("") : profile_str(w->p, w->p->span.name[op]);
	if (w->p->gpu_op.kind[gpu] != GPU_KERNEL)
		return OP_UNKNOWN;
	switch (gpu_kernel(w->p, gpu)->class) {
	case KERNEL_GEMM:
		return str_has(name, STR("conv")) && !str_has(name, STR("convert")) ? OP_CONV : str_has(name, STR("attention")) ? OP_ATTENTION : OP_GEMM;
	case KERNEL_CONV:
		return OP_CONV;
	case KERNEL_ATTENTION:
		return OP_ATTENTION;
	default:
		return OP_UNKNOWN;
	}
}

/* Adds a kernel without a model to a report about the kernel's class: the row has the names of op and kernel, and no FLOPs. */
static bool add_by_name(struct cost_rows_work *w, uint32_t gpu)
{
	enum op_class class = w->by == COST_BY_SHAPE && w->by_name ? class_by_name(w, gpu) : OP_UNKNOWN;
	if (class == OP_UNKNOWN || !(w->classes >> class & 1))
		return false;
	uint32_t cost = costs_index_of_name(w->r->costs, w->p, w->p->gpu_op.name[gpu], class, gpu_kernel(w->p, gpu)->dtype);
	int64_t ns = w->p->gpu_op.dur_ns[gpu];
	MEM_GROW(w->v, w->cap, w->n + 1);
	w->v[w->n] = (struct instance){.cost = cost, .op = w->r->costs->op[gpu], .main = gpu, .ns = ns, .flops = COST_UNKNOWN, .bytes = COST_UNKNOWN, .bytes_least = COST_UNKNOWN};
	cost_rows_measure(w, &w->v[w->n], gpu);
	w->of_gpu[gpu] = w->n++;
	w->r->by_name_ns += ns;
	return true;
}

/* Adds a piece of work without a model to the report of all ops, which leaves it out unless its traffic was measured: by op as a call of the op,
 * else for itself. */
static void cost_rows_add_unmodelled(struct cost_rows_work *w, uint32_t gpu)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	const uint32_t op = w->r->costs->op[gpu];
	const bool single = w->by != COST_BY_OP || op == ROW_NONE || (w->of_span[op] != ROW_NONE && !w->v[w->of_span[op]].measured_only);
	if (single || w->of_span[op] == ROW_NONE) {
		const enum dtype t = g->kind[gpu] == GPU_KERNEL ? gpu_kernel(w->p, gpu)->dtype : DTYPE_UNKNOWN;
		const uint32_t cost = costs_index_of_name(w->r->costs, w->p, g->name[gpu], OP_UNKNOWN, t);
		MEM_GROW(w->v, w->cap, w->n + 1);
		w->v[w->n] = (struct instance){.cost = cost, .op = op, .main = gpu, .measured_only = true, .flops = COST_UNKNOWN, .bytes = COST_UNKNOWN, .bytes_least = COST_UNKNOWN};
		if (!single)
			w->of_span[op] = w->n;
		w->of_gpu[gpu] = w->n++;
	} else {
		w->of_gpu[gpu] = w->of_span[op];
	}
	struct instance *x = &w->v[w->of_gpu[gpu]];
	x->main = g->dur_ns[gpu] > g->dur_ns[x->main] ? gpu : x->main;
	x->ns += g->dur_ns[gpu];
	cost_rows_measure(w, x, gpu);
}

static void cost_rows_collect(struct cost_rows_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct cost_rows *r = w->r;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		w->of_gpu[i] = ROW_NONE;
		if (!window_has_gpu(w->w, w->p, i))
			continue;
		uint32_t cost = r->costs->of_gpu[i];
		r->all_ns += g->dur_ns[i];
		if (cost == ROW_NONE && add_by_name(w, i))
			continue;
		if (cost == ROW_NONE && !w->classes && (r->counters || r->samples))
			cost_rows_add_unmodelled(w, i);
		if (cost == ROW_NONE && r->costs->op[i] == ROW_NONE)
			r->unattributed_ns += g->dur_ns[i];
		else if (cost == ROW_NONE)
			r->unmodelled_ns += g->dur_ns[i];
		else if (w->classes && !(w->classes >> r->costs->cost[cost].class & 1))
			r->other_ns += g->dur_ns[i];
		else
			cost_rows_add_kernel(w, i);
	}
}

/* --- peaks ------------------------------------------------------------------------------------------------------ */

static void note_peak(struct cost_row *row, const struct gpu *g, const char *name, double flops)
{
	bool first = row->peak_flops < 0;
	row->gpu = first || row->gpu == g ? g : NULL;
	row->peak_name = first || row->peak_name == name ? name : "";
	row->peak_flops = first || row->peak_flops == flops ? flops : 0;
}

static void add_ideal(struct cost_rows_work *w, struct cost_row *row, const struct instance *x, struct bound best)
{
	const struct cost *c = &w->r->costs->cost[x->cost];
	const double least_ns = x->bytes_least == x->bytes ? best.least_ns : bounds_of(w->bounds, c, x->flops, x->bytes_least, x->main, BOUND_BEST).least_ns;
	row->tc_ns[best.tensor_core] += x->ns;
	if (c->class == OP_COMM || w->p->gpu_op.kind[x->main] == GPU_MEMCPY)
		return;
	note_peak(row, best.gpu, best.peak_name, best.peak_flops);
	if (!isnan(best.compute_ns) && best.peak_flops > 0) {
		row->compute_ns += best.compute_ns;
		row->compute_of += x->ns;
	}
	if (!isnan(best.memory_ns)) {
		row->memory_ns += best.memory_ns;
		row->memory_of += x->ns;
	}
	if (!isnan(least_ns)) {
		row->attainable_ns += least_ns;
		row->attainable_of += x->ns;
		row->even_ns += x->bytes_least != x->bytes && !isnan(best.least_ns) ? best.least_ns : 0;
	}
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static bool cost_rows_is_copy(const struct cost_rows_work *w, const struct instance *x)
{
	return w->splits_copies && w->p->gpu_op.kind[x->main] == GPU_MEMCPY;
}

static struct cost_rows_key cost_rows_key_of(struct cost_rows_work *w, const struct instance *x)
{
	const struct cost *c = &w->r->costs->cost[x->cost];
	uint32_t name = x->op == ROW_NONE || w->by == COST_BY_KERNEL ? w->p->gpu_op.name[x->main] : w->p->span.name[x->op];
	struct cost_rows_key k = {.name = name, .direction = w->dir->gpu[x->main], .class = c->class, .measured_only = x->measured_only,
	                          .copies = cost_rows_is_copy(w, x)};
	if (w->by == COST_BY_SHAPE) {
		k.params = intern_str(&w->params, c->params);
		k.dtype = c->dtype;
	}
	if (w->by == COST_BY_KERNEL)
		k.direction = k.class = 0;
	return k;
}

/* Drops the work without a model of rows in which nothing was measured. */
static void cost_rows_drop_unmeasured(struct cost_rows_work *w)
{
	struct intern measured;
	uint32_t *moved = NEW_ARRAY_RAW(w->n, uint32_t), n = 0;
	intern_init(&measured);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct instance *x = &w->v[i];
		const struct cost_rows_key k = cost_rows_key_of(w, x);
		if (x->measured_only && x->kernels && (!isnan(x->dram) || !isnan(x->sampled)))
			intern_put(&measured, (const char *)&k, sizeof k);
	}
	for (uint32_t i = 0; i < w->n; i++) {
		const struct cost_rows_key k = cost_rows_key_of(w, &w->v[i]);
		const bool keep = !w->v[i].measured_only || intern_find(&measured, (struct str){(const char *)&k, sizeof k}) != INTERN_NONE;
		moved[i] = keep ? n : ROW_NONE;
		if (keep)
			w->v[n++] = w->v[i];
	}
	for (uint32_t i = 0; i < w->p->gpu_op.rows.n; i++)
		w->of_gpu[i] = w->of_gpu[i] == ROW_NONE ? ROW_NONE : moved[w->of_gpu[i]];
	w->n = n;
	intern_release(&measured);
	mem_free(moved);
}

static uint32_t cost_rows_row_of(struct cost_rows_work *w, const struct instance *x)
{
	struct cost_rows *r = w->r;
	const struct cost *c = &r->costs->cost[x->cost];
	const struct cost_rows_key k = cost_rows_key_of(w, x);
	uint32_t at = intern_put_key(&w->keys, &k, sizeof k) - 1;
	if (at >= r->n) {
		MEM_GROW(r->v, r->cap, at + 1);
		r->v[at] = (struct cost_row){.name = k.name, .direction = w->dir->gpu[x->main], .class = c->class, .cost = c, .measured_only = x->measured_only, .copies = cost_rows_is_copy(w, x), .min = INT64_MAX,
		                             .flops = COST_UNKNOWN, .bytes = COST_UNKNOWN, .eligible = c->tc_eligible, .peak_flops = -1,
		                             .peak_name = ""};
		r->n = at + 1;
	}
	return at;
}

static void cost_rows_sum_up(int64_t *sum, int64_t *of_ns, int64_t v, int64_t ns)
{
	int64_t both = v;
	if (v < 0 || (*of_ns && *sum < 0) || (*sum >= 0 && __builtin_add_overflow(*sum, v, &both))) {
		*sum = *of_ns && v >= 0 ? COST_UNKNOWN : *sum;
		return;
	}
	*sum = both;
	*of_ns += ns;
}

static void cost_rows_add_measured(struct cost_measured *m, double v, int64_t model, int64_t ns)
{
	if (isnan(v))
		return;
	m->sum += v;
	m->ns += ns;
	m->calls++;
	if (model == COST_UNKNOWN)
		return;
	m->both += v;
	m->model += (double)model;
}

static void add_instance(struct cost_rows_work *w, struct instance *x)
{
	const struct cost *c = &w->r->costs->cost[x->cost];
	x->row = cost_rows_row_of(w, x);
	struct cost_row *row = &w->r->v[x->row];
	row->calls++;
	row->main_ns += w->p->gpu_op.dur_ns[x->main];
	row->small_ns += bounds_is_small(w->p, x->main) ? w->p->gpu_op.dur_ns[x->main] : 0;
	row->fewer |= x->fewer && c->class == OP_CONV;
	row->ns += x->ns;
	row->min = x->ns < row->min ? x->ns : row->min;
	row->max = x->ns > row->max ? x->ns : row->max;
	if (row->eligible != c->tc_eligible)
		row->eligible = TRI_UNKNOWN;
	cost_rows_sum_up(&row->flops, &row->flops_ns, x->flops, x->ns);
	struct bound best = bounds_of(w->bounds, c, x->flops, x->bytes, x->main, BOUND_BEST);
	if (x->bytes_least != x->bytes && best.memory_ns > (double)x->ns) {
		/* Faster than the memory: fewer experts were read than are counted, and how many is not known. */
		x->bytes = COST_UNKNOWN;
		best.memory_ns = NAN;
	}
	cost_rows_sum_up(&row->bytes, &row->bytes_ns, x->bytes, x->ns);
	*(x->measured_only ? &w->r->measured_ns : &w->r->listed_ns) += x->ns;
	if (x->kernels) {
		cost_rows_add_measured(&row->dram, x->dram, x->bytes, x->ns);
		cost_rows_add_measured(&row->tensor, x->tensor, x->flops, x->ns);
		cost_rows_add_measured(&row->sampled, x->sampled, x->bytes, x->ns);
	}
	add_ideal(w, row, x, best);
}

/* The values of a row: its calls' numbers of `what`. */
enum cost_rows_value { VALUE_NS, VALUE_TFLOPS, VALUE_GBS };

static double value_of(const struct instance *x, enum cost_rows_value what)
{
	int64_t v = what == VALUE_TFLOPS ? x->flops : x->bytes;
	if (what == VALUE_NS)
		return (double)x->ns;
	return v < 0 || x->ns <= 0 ? (double)NAN : (double)v / (double)x->ns / (what == VALUE_TFLOPS ? 1e3 : 1);
}

/* How the calls of each row differ. */
static void spread_rows(struct cost_rows_work *w)
{
	struct cost_rows *r = w->r;
	uint32_t *first = NEW_ARRAY(r->n + 1, uint32_t), *of_row = NEW_ARRAY_RAW(w->n, uint32_t);
	double *value = NEW_ARRAY_RAW(w->n, double);
	for (uint32_t i = 0; i < w->n; i++)
		first[w->v[i].row + 1]++;
	for (uint32_t i = 0; i < r->n; i++)
		first[i + 1] += first[i];
	for (uint32_t i = w->n; i-- > 0;)
		of_row[--first[w->v[i].row + 1]] = i; /* first[row + 1] moves to where the row begins */
	for (uint32_t i = 0; i < r->n; i++) {
		struct spread *const out[] = {[VALUE_NS] = &r->v[i].call_ns, [VALUE_TFLOPS] = &r->v[i].tflops, [VALUE_GBS] = &r->v[i].gbs};
		uint32_t end = first[i + 1] + (uint32_t)r->v[i].calls;
		for (unsigned what = VALUE_NS; what <= VALUE_GBS; what++) {
			uint32_t n = 0;
			for (uint32_t k = first[i + 1]; k < end; k++) {
				double v = value_of(&w->v[of_row[k]], (enum cost_rows_value)what);
				if (!isnan(v))
					value[n++] = v;
			}
			*out[what] = spread_of(value, n);
		}
	}
	mem_free(value);
	mem_free(of_row);
	mem_free(first);
}

/* Collects the names of each row's kernels, most time first. */
static void name_kernels(struct cost_rows_work *w)
{
	struct cost_rows *r = w->r;
	const struct gpu_ops *g = &w->p->gpu_op;
	struct sort_item *pair = NEW_ARRAY_RAW(g->rows.n, struct sort_item);
	int64_t *ns = NEW_ARRAY(g->rows.n, int64_t);
	uint32_t n = 0, distinct = 0;
	for (uint32_t i = 0; i < g->rows.n; i++)
		if (w->of_gpu[i] != ROW_NONE)
			pair[n++] = (struct sort_item){(uint64_t)w->v[w->of_gpu[i]].row << 32 | g->name[i], i, 0};
	sort_items(pair, n);
	for (uint32_t i = 0; i < n; i++) {
		if (!distinct || pair[distinct - 1].key != pair[i].key)
			pair[distinct++] = pair[i];
		ns[distinct - 1] += g->dur_ns[pair[i].row];
	}
	for (uint32_t i = 0; i < distinct; i++) {
		pair[i].row = (uint32_t)pair[i].key;          /* the name */
		pair[i].tie = (uint32_t)(pair[i].key >> 32);  /* the row */
		pair[i].key = UINT64_MAX - (uint64_t)ns[i];
	}
	sort_items(pair, distinct);
	for (uint32_t i = 0; i < distinct; i++)
		r->v[pair[i].tie].n_kernel_names++;
	uint32_t next = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		r->v[i].first_kernel = next;
		next += r->v[i].n_kernel_names;
		r->v[i].n_kernel_names = 0;
	}
	r->kernel_name = NEW_ARRAY_RAW(distinct, uint32_t);
	for (uint32_t i = 0; i < distinct; i++) {
		struct cost_row *x = &r->v[pair[i].tie];
		r->kernel_name[x->first_kernel + x->n_kernel_names++] = pair[i].row;
	}
	mem_free(pair);
	mem_free(ns);
}

struct cost_rows *cost_rows_new(const struct profile *p, const struct window *win, uint32_t classes, enum cost_by by, const struct cost_rules *rules)
{
	struct cost_rows *r = NEW(struct cost_rows);
	struct cost_rows_work w = {.p = p, .r = r, .w = win, .classes = classes, .by = by, .by_name = rules == &cost_own, .splits_copies = rules == &cost_own};
	r->p = p;
	r->counters = counters_any(p);
	r->samples = sampled_any(p);
	r->costs = costs_new(p, rules);
	w.dir = directions_new(p);
	w.of_span = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	w.of_gpu = NEW_ARRAY_RAW(p->gpu_op.rows.n, uint32_t);
	intern_init(&w.keys);
	intern_init(&w.params);
	w.bounds = bounds_new(p);
	counter_sets_find(p, &w.counters);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		w.of_span[i] = ROW_NONE;
	cost_rows_collect(&w);
	if (!classes && (r->counters || r->samples))
		cost_rows_drop_unmeasured(&w);
	for (uint32_t i = 0; i < w.n; i++)
		add_instance(&w, &w.v[i]);
	spread_rows(&w);
	name_kernels(&w);
	r->gpus = bounds_gpus(w.bounds);
	bounds_free(w.bounds);
	counter_sets_release(&w.counters);
	directions_free(w.dir);
	intern_release(&w.keys);
	intern_release(&w.params);
	mem_free(w.of_span);
	mem_free(w.of_gpu);
	mem_free(w.v);
	return r;
}

void cost_rows_free(struct cost_rows *r)
{
	if (!r)
		return;
	costs_free(r->costs);
	mem_free(r->v);
	mem_free(r->kernel_name);
	mem_free(r);
}

double cost_compute_pct(const struct cost_row *x) { return percent(x->compute_ns, (double)x->compute_of); }
double cost_memory_pct(const struct cost_row *x) { return percent(x->memory_ns, (double)x->memory_of); }
double cost_efficiency_pct(const struct cost_row *x) { return percent(x->attainable_ns, (double)x->attainable_of); }

enum tri cost_tc_used(const struct cost_row *x)
{
	return x->tc_ns[TRI_YES] ? TRI_YES : x->tc_ns[TRI_UNKNOWN] ? TRI_UNKNOWN : TRI_NO;
}
