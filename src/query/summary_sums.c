#include "query/summary_sums.h"

#include "analysis/costs/tc_use.h"
#include "analysis/time/interval.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"

/* The union of the device work of one class of ops, on each GPU. */
struct class_use {
	struct intervals *gpu;
	struct intervals host;
};

struct summing {
	const struct profile *p;
	const struct window *w;
	const struct op_rules *rules;
	struct op_tc *tc;
	struct op_sum *sum;          /* by op */
	uint8_t *could;              /* gpu_op -> a kernel that could use Tensor Cores; NULL by rules that ask for ops alone */
	int64_t *unknown_ns;         /* by op: of its kernels that could, those whose name does not tell; the same condition */
	struct idmap gpu_of;         /* device -> index */
	uint32_t gpus;
	struct class_use use[TC_USES];
	struct summary_sums *out;
};

static void summary_sums_add_ns(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

/* --- ops -------------------------------------------------------------------------------------------------------- */

static enum tc_use summary_sums_class_of(const struct summing *x, uint32_t op)
{
	const struct op_sum *s = &x->sum[op];
	if (s->tc_kernels)
		return TC_USING;
	const struct op *of = &x->p->ops->op[op];
	if (!(x->rules->by_type ? of->tc_eligible : op_eligible(of)))
		return TC_OTHER;
	return (x->could ? x->unknown_ns[op] : s->unknown_ns) ? TC_UNKNOWN : TC_ELIGIBLE;
}

static bool summary_sums_counts(const struct summing *x, uint32_t instance)
{
	return !(x->rules->recorded_calls && x->p->ops->instance[instance].span == ROW_NONE) && op_in_window(x->p, instance, x->w);
}

static uint32_t gpu_index(const struct summing *x, uint32_t g)
{
	return idmap_get(&x->gpu_of, x->p->launch.device[x->p->gpu_op.launch[g]]);
}

static void summary_sums_find_gpus(struct summing *x)
{
	idmap_init(&x->gpu_of, INT32_MIN, INT32_MAX, x->p->launch.rows.n);
	for (uint32_t i = 0; i < x->p->gpu_op.rows.n; i++)
		if (gpu_index(x, i) == IDMAP_NONE)
			idmap_put(&x->gpu_of, x->p->launch.device[x->p->gpu_op.launch[i]], x->gpus++);
	for (int c = 0; c < TC_USES; c++)
		x->use[c].gpu = NEW_ARRAY(x->gpus, struct intervals);
}

/* Work of an op that could not use Tensor Cores, all-reduces for example, counts with all others. */
static void summary_sums_collect(struct summing *x, uint32_t instance, enum tc_use class)
{
	const struct op_instance *in = &x->p->ops->instance[instance];
	if (in->span != ROW_NONE)
		intervals_add(&x->use[class].host, in->start_ns, in->end_ns);
	for (uint32_t i = 0; i < in->gpu_n; i++) {
		uint32_t g = x->p->ops->gpu[in->gpu_first + i];
		bool other = class != TC_ALL && x->could && !x->could[g];
		intervals_add(&x->use[other ? TC_OTHER : class].gpu[gpu_index(x, g)], x->p->gpu_op.start_ns[g], gpu_end(x->p, g));
	}
}

/* Adds up the figures on kernels that could use Tensor Cores. */
static void sum_possible(struct summing *x)
{
	const struct ops *o = x->p->ops;
	for (uint32_t g = 0; g < x->p->gpu_op.rows.n; g++) {
		if (!x->could[g] || !summary_sums_counts(x, o->of_gpu[g]))
			continue;
		int64_t ns = x->p->gpu_op.dur_ns[g];
		enum tri uses = op_tc_of(x->tc, g);
		summary_sums_add_ns(&x->out->kernel_ns, ns);
		if (uses == TRI_YES)
			summary_sums_add_ns(&x->out->tc_ns, ns);
		if (uses == TRI_UNKNOWN) {
			summary_sums_add_ns(&x->out->unknown_ns, ns);
			summary_sums_add_ns(&x->unknown_ns[o->instance[o->of_gpu[g]].op], ns);
		}
	}
}

static void add_union(struct summing *x, struct class_use *u, struct op_use *out)
{
	intervals_normalise(&u->host);
	out->cpu_ns = intervals_length(&u->host);
	intervals_release(&u->host);
	for (uint32_t g = 0; g < x->gpus; g++) {
		intervals_normalise(&u->gpu[g]);
		summary_sums_add_ns(&out->gpu_ns, intervals_length(&u->gpu[g]));
		intervals_release(&u->gpu[g]);
	}
	mem_free(u->gpu);
}

static void summary_sums_sum_ops(struct summing *x)
{
	const struct ops *o = x->p->ops;
	for (uint32_t k = 0; k < o->n_instances; k++)
		if (summary_sums_counts(x, k))
			op_sum_add(&x->sum[o->instance[k].op], x->p, k, x->tc);
	summary_sums_find_gpus(x);
	if (x->could)
		sum_possible(x);
	for (uint32_t k = 0; k < o->n_instances; k++) {
		if (!summary_sums_counts(x, k))
			continue;
		summary_sums_collect(x, k, TC_ALL);
		summary_sums_collect(x, k, summary_sums_class_of(x, o->instance[k].op));
	}
	for (int c = 0; c < TC_USES; c++)
		add_union(x, &x->use[c], &x->out->op[c]);
	for (uint32_t i = 0; i < o->n_ops; i++) {
		const struct op_sum *s = &x->sum[i];
		enum tc_use at[2] = {TC_ALL, summary_sums_class_of(x, i)};
		for (int c = 0; c < 2 && s->calls; c++) {
			x->out->op[at[c]].ops++;
			x->out->op[at[c]].calls += s->calls;
		}
		if (!x->could && o->op[i].tc_eligible) {
			summary_sums_add_ns(&x->out->tc_ns, s->tc_ns);
			summary_sums_add_ns(&x->out->kernel_ns, s->kernel_ns);
			summary_sums_add_ns(&x->out->unknown_ns, s->unknown_ns);
		}
	}
}

/* --- kernels ---------------------------------------------------------------------------------------------------- */

static enum tc_use kernel_class(struct summing *x, uint32_t g)
{
	static const enum tc_use of[] = {[TRI_NO] = TC_OTHER, [TRI_YES] = TC_USING, [TRI_UNKNOWN] = TC_UNKNOWN};
	return x->p->gpu_op.kind[g] == GPU_KERNEL ? of[op_tc_of(x->tc, g)] : TC_MEMORY;
}

/* The name by which the kernel, copy or set is counted. */
static void summary_sums_put_name(const struct summing *x, uint32_t g, struct buf *b)
{
	const struct gpu_ops *gpu = &x->p->gpu_op;
	struct str name = profile_str(x->p, gpu->name[g]);
	if (gpu->kind[g] != GPU_KERNEL)
		buf_str(b, gpu->call[g] == ROW_NONE ? name : profile_str(x->p, x->p->span.name[gpu->call[g]]));
	else if (x->rules->function_names)
		buf_str(b, kernel_function_name(name));
	else
		buf_str(b, name);
}

static void sum_kernels(struct summing *x)
{
	const struct profile *p = x->p;
	const struct gpu_ops *g = &p->gpu_op;
	struct intern seen[TC_USES];
	struct buf text = {0};
	uint8_t *called = NEW_ARRAY(p->span.rows.n, uint8_t);
	uint64_t last = UINT64_MAX;
	for (int c = 0; c < TC_USES; c++)
		intern_init(&seen[c]);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (!summary_sums_counts(x, p->ops->of_gpu[i]))
			continue;
		enum tc_use class = kernel_class(x, i);
		struct kernel_use *u = &x->out->kernel[class];
		uint32_t call = g->call[i];
		u->calls++;
		summary_sums_add_ns(&u->gpu_ns, g->dur_ns[i]);
		if (call == ROW_NONE)
			summary_sums_add_ns(&x->out->unlaunched_ns, g->dur_ns[i]);
		else if (x->rules->call_per_launch || !called[call])
			summary_sums_add_ns(&u->api_ns, p->span.dur_ns[call]);
		if (call != ROW_NONE)
			called[call] = 1;
		uint64_t this = (uint64_t)g->name[i] << 32 | (class == TC_MEMORY && call != ROW_NONE ? p->span.name[call] : ROW_NONE);
		if (this == last)
			continue; /* most work of a stream repeats */
		last = this;
		buf_clear(&text);
		summary_sums_put_name(x, i, &text);
		intern_str(&seen[class], buf_view(&text));
	}
	for (int c = 1; c < TC_USES; c++) {
		struct kernel_use *u = &x->out->kernel[c], *all = &x->out->kernel[TC_ALL];
		u->names = seen[c].n - 1;
		all->names += u->names;
		all->calls += u->calls;
		summary_sums_add_ns(&all->gpu_ns, u->gpu_ns);
		summary_sums_add_ns(&all->api_ns, u->api_ns);
	}
	for (int c = 0; c < TC_USES; c++)
		intern_release(&seen[c]);
	buf_release(&text);
	mem_free(called);
}

void summary_sum(const struct profile *p, const struct window *w, const struct op_rules *rules, struct summary_sums *out)
{
	static const struct op_rules own = {0};
	struct summing x = {.p = p, .w = w, .rules = rules ? rules : &own, .out = out};
	x.tc = op_tc_new(p, x.rules->listed_kernels);
	*out = (struct summary_sums){0};
	x.sum = NEW_ARRAY(p->ops->n_ops, struct op_sum);
	if (!x.rules->by_type) {
		struct optree *t = optree_new(p, &optree_own);
		x.could = tc_could_use(p, t);
		x.unknown_ns = NEW_ARRAY(p->ops->n_ops, int64_t);
		optree_free(t);
	}
	summary_sums_sum_ops(&x);
	sum_kernels(&x);
	idmap_release(&x.gpu_of);
	op_tc_free(x.tc);
	mem_free(x.sum);
	mem_free(x.could);
	mem_free(x.unknown_ns);
}
