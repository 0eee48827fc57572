#include "analysis/roles.h"

#include "analysis/analysis.h"
#include "analysis/host_use.h"
#include "analysis/interval.h"
#include "analysis/optree.h"
#include "base/hash.h"
#include "base/mem.h"
#include "op/kernels.h"

const char *const role_title[ROLES] = {
	[ROLE_KERNEL] = "Kernel", [ROLE_MEMCPY] = "Memcpy", [ROLE_MEMSET] = "Memset", [ROLE_COMM] = "Communication",
	[ROLE_RUNTIME] = "Runtime", [ROLE_DATALOADER] = "DataLoader", [ROLE_CPU] = "CPU Exec", [ROLE_OTHER] = "Other",
};
const char *const role_id[ROLES] = {
	[ROLE_KERNEL] = "kernel", [ROLE_MEMCPY] = "memcpy", [ROLE_MEMSET] = "memset", [ROLE_COMM] = "communication",
	[ROLE_RUNTIME] = "runtime", [ROLE_DATALOADER] = "dataloader", [ROLE_CPU] = "cpu_exec", [ROLE_OTHER] = "other",
};

/* What a name says, found once per distinct string. */
enum { NAME_SEEN = 1, NAME_COMM_OP = 2, NAME_COMM_KERNEL = 4, NAME_STEP = 8, NAME_DATALOADER = 16 };

struct work {
	const struct profile *p;
	enum roles_rules rules;
	struct host_uses *host;       /* default rules */
	uint8_t *name;                /* flags by string id */
	struct idmap comm_ext;        /* tb-plugin: external ids of communication ops */
	struct intervals range[ROLES];
};

/* The names that the plugin knows (its consts). */
static bool is_comm_tb_plugin(struct str name)
{
	static const char *const ops[] = {"broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter"};
	if (!str_starts(name, STR("nccl:")) && !str_starts(name, STR("gloo:")))
		return false;
	struct str op = {name.p + 5, name.n - 5};
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (str_eqc(op, ops[i]))
			return true;
	return false;
}

static uint8_t name_flags(struct work *w, uint32_t id)
{
	if (w->name[id])
		return w->name[id];
	struct str s = profile_str(w->p, id);
	uint8_t f = NAME_SEEN;
	if (w->rules == ROLES_TB_PLUGIN ? is_comm_tb_plugin(s) : op_is_comm(s))
		f |= NAME_COMM_OP;
	if (kernel_is_comm(s))
		f |= NAME_COMM_KERNEL;
	if (str_starts(s, STR("ProfilerStep#")))
		f |= NAME_STEP;
	if (optree_classify(s, SPAN_USER) == NODE_DATALOADER)
		f |= NAME_DATALOADER;
	return w->name[id] = f;
}

static int64_t ext_or_zero(int64_t id)
{
	return id == ID_NONE ? 0 : id;
}

/* The plugin goes by lower-cased category, and knows these. */
static bool is_tb_plugin_call(struct str cat)
{
	static const char *const cats[] = {
		"runtime", "cuda_runtime", "mtia_runtime", "glow_runtime", "xpu_runtime", "privateuse1_runtime",
	};
	for (size_t i = 0; i < sizeof cats / sizeof cats[0]; i++)
		if (cat.n == strlen(cats[i]) && str_has_nocase(cat, str_from(cats[i])))
			return true;
	return false;
}

/* The role of a CPU-side range as the plugin sees it; ROLES = none. */
static enum role plugin_role_of_span(struct work *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	switch (s->kind[i]) {
	case SPAN_CALL:
		return is_tb_plugin_call(profile_cat(w->p, s->cat[i])) ? ROLE_RUNTIME : ROLES;
	case SPAN_PYTHON: { /* the old per-call `python` events, not the frames of with_stack, which cover everything */
		struct str cat = profile_cat(w->p, s->cat[i]);
		return cat.n == 6 && str_has_nocase(cat, STR("python")) ? ROLE_CPU : ROLES;
	}
	case SPAN_GPU_USER:
	case SPAN_OP:
	case SPAN_USER:
		break;
	default:
		return ROLES;
	}
	uint8_t f = name_flags(w, s->name[i]);
	if (f & NAME_STEP)
		return ROLES;
	if (f & NAME_DATALOADER)
		return ROLE_DATALOADER;
	return f & NAME_COMM_OP ? ROLE_COMM : ROLE_CPU;
}

static enum role role_of_span(struct work *w, uint32_t i)
{
	static const enum role of_use[] = {
		[HOST_NONE] = ROLES, [HOST_CALL] = ROLE_RUNTIME, [HOST_DATALOADER] = ROLE_DATALOADER, [HOST_COMM] = ROLE_COMM,
		[HOST_IO] = ROLES, [HOST_CPU] = ROLE_CPU,
	};
	return w->host ? of_use[host_use_of(w->host, i)] : plugin_role_of_span(w, i);
}

static void collect_spans(struct work *w)
{
	const struct profile *p = w->p;
	uint64_t n_comm = 0;
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum role role = role_of_span(w, i);
		if (role == ROLES)
			continue;
		intervals_add(&w->range[role], p->span.start_ns[i], span_end(p, i));
		if (role != ROLE_COMM)
			continue;
		int64_t id = ext_or_zero(span_ext_id(&p->span, i));
		n_comm++;
		min = id < min ? id : min;
		max = id > max ? id : max;
	}
	idmap_init(&w->comm_ext, min, max, n_comm);
	for (uint32_t i = 0; n_comm && i < p->span.rows.n; i++)
		if (role_of_span(w, i) == ROLE_COMM)
			idmap_put(&w->comm_ext, ext_or_zero(span_ext_id(&p->span, i)), i);
}

static enum role role_of_gpu_op(struct work *w, uint32_t g)
{
	const struct gpu_ops *v = &w->p->gpu_op;
	if (v->kind[g] == GPU_MEMCPY)
		return ROLE_MEMCPY;
	if (v->kind[g] == GPU_MEMSET)
		return ROLE_MEMSET;
	bool comm;
	if (w->rules == ROLES_TB_PLUGIN)
		comm = idmap_get(&w->comm_ext, ext_or_zero(gpu_ext_id(v, g))) != IDMAP_NONE;
	else
		comm = name_flags(w, v->name[g]) & NAME_COMM_KERNEL ||
		       (v->op[g] != ROW_NONE && name_flags(w, w->p->span.name[v->op[g]]) & NAME_COMM_OP);
	return comm ? ROLE_COMM : ROLE_KERNEL;
}

/* A range that is a step is no work in it. */
static void mark_step_names(struct work *w)
{
	const struct profile *p = w->p;
	const struct steps *s = steps_by(p->steps, true);
	for (unsigned i = 0; i < s->total; i++)
		if (s->v[i].span != ROW_NONE)
			w->name[p->span.name[s->v[i].span]] = NAME_SEEN | NAME_STEP;
}

static void collect(struct work *w)
{
	const struct profile *p = w->p;
	w->name = NEW_ARRAY(p->strings.n, uint8_t);
	if (w->rules == ROLES_DEFAULT)
		w->host = host_uses_new(p);
	else
		mark_step_names(w);
	collect_spans(w);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		intervals_add(&w->range[role_of_gpu_op(w, g)], p->gpu_op.start_ns[g], gpu_end(p, g));
	for (int r = 0; r < ROLES; r++)
		intervals_normalise(&w->range[r]);
	idmap_release(&w->comm_ext);
	mem_free(w->name);
	if (w->host)
		host_uses_free(w->host);
}

/* Turns each role's ranges into the part that it owns. */
static void share_out(struct work *w, const struct steps *steps, unsigned n_steps)
{
	struct intervals all = {0}, free_time = {0};
	for (unsigned i = 0; i < n_steps; i++)
		intervals_add(&all, steps->v[i].start_ns, steps->v[i].end_ns);
	for (unsigned i = 0; w->rules == ROLES_DEFAULT && i < steps->edges; i++)
		intervals_add(&all, steps->edge[i].start_ns, steps->edge[i].end_ns);
	intervals_normalise(&all);
	intervals_union(&all, &(struct intervals){0}, &free_time);
	for (int r = 0; r < ROLE_OTHER; r++) {
		if (w->rules == ROLES_TB_PLUGIN && free_time.n == 0)
			intervals_subtract(&all, &w->range[r], &free_time);
		else {
			intervals_intersect(&w->range[r], &free_time, &w->range[r]);
			intervals_subtract(&free_time, &w->range[r], &free_time);
		}
	}
	intervals_release(&w->range[ROLE_OTHER]);
	w->range[ROLE_OTHER] = free_time;
	intervals_release(&all);
}

static struct role_costs costs_of(const struct work *w, const struct step *s)
{
	struct role_costs c = {.total_ns = s->end_ns - s->start_ns};
	for (int i = 0; i < ROLES; i++)
		c.ns[i] = intervals_length_within(&w->range[i], s->start_ns, s->end_ns);
	return c;
}

static void add_step(struct roles *r, const struct work *w, const struct step *s)
{
	struct role_costs c = costs_of(w, s);
	r->step[r->n] = s;
	r->cost[r->n++] = c;
	r->sum.total_ns += c.total_ns;
	for (int i = 0; i < ROLES; i++)
		r->sum.ns[i] += c.ns[i];
}

struct roles *roles_new(const struct profile *p, enum roles_rules rules, const int64_t *first, const int64_t *last)
{
	struct roles *r = NEW(struct roles);
	struct work w = {.p = p, .rules = rules};
	collect(&w);
	r->has_device = p->gpu_op.rows.n > 0 || w.range[ROLE_RUNTIME].n > 0;
	for (int i = 0; i < ROLES; i++)
		r->shown[i] = i >= ROLE_DATALOADER || (i == ROLE_COMM ? w.range[i].n > 0 : r->has_device);
	const struct steps *steps = steps_by(p->steps, rules == ROLES_TB_PLUGIN);
	unsigned n = steps_kept(steps, rules == ROLES_TB_PLUGIN);
	share_out(&w, steps, n);
	r->step = NEW_ARRAY(n, const struct step *);
	r->cost = NEW_ARRAY(n, struct role_costs);
	for (unsigned i = 0; i < n; i++) {
		const struct step *s = &steps->v[i];
		if ((!first || s->number >= *first) && (!last || s->number <= *last))
			add_step(r, &w, s);
	}
	r->edges = rules == ROLES_DEFAULT && !first && !last ? steps->edges : 0;
	r->edge = NEW_ARRAY((size_t)r->edges + 1, struct role_costs);
	for (unsigned i = 0; i < r->edges; i++)
		r->edge[i] = costs_of(&w, &steps->edge[i]);
	for (int i = 0; i < ROLES; i++)
		intervals_release(&w.range[i]);
	return r;
}

void roles_free(struct roles *r)
{
	if (!r)
		return;
	mem_free(r->step);
	mem_free(r->cost);
	mem_free(r->edge);
	mem_free(r);
}

double roles_mean_ns(const struct roles *r, enum role role)
{
	return r->n ? (double)r->sum.ns[role] / r->n : 0;
}

double roles_mean_step_ns(const struct roles *r)
{
	return r->n ? (double)r->sum.total_ns / r->n : 0;
}

double roles_share_pct(const struct roles *r, enum role role)
{
	return r->sum.total_ns > 0 ? 100.0 * (double)r->sum.ns[role] / (double)r->sum.total_ns : 0;
}
