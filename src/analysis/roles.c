#include "analysis/roles.h"

#include "analysis/analysis.h"
#include "analysis/gpus.h"
#include "analysis/host_use.h"
#include "analysis/interval.h"
#include "analysis/names.h"
#include "analysis/optree.h"
#include "base/hash.h"
#include "base/mem.h"

const char *const role_title[ROLES] = {
	[ROLE_KERNEL] = "Kernel", [ROLE_MEMCPY] = "Memcpy", [ROLE_MEMSET] = "Memset", [ROLE_COMM] = "Communication",
	[ROLE_RUNTIME] = "Runtime", [ROLE_DATALOADER] = "DataLoader", [ROLE_CPU] = "CPU Exec", [ROLE_OTHER] = "Other",
};
const char *const role_id[ROLES] = {
	[ROLE_KERNEL] = "kernel", [ROLE_MEMCPY] = "memcpy", [ROLE_MEMSET] = "memset", [ROLE_COMM] = "communication",
	[ROLE_RUNTIME] = "runtime", [ROLE_DATALOADER] = "dataloader", [ROLE_CPU] = "cpu_exec", [ROLE_OTHER] = "other",
};

const enum role roles_order[2][ROLES] = {
	[ROLES_DEFAULT] = {ROLE_KERNEL, ROLE_MEMSET, ROLE_COMM, ROLE_MEMCPY, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_OTHER},
	[ROLES_TB_PLUGIN] = {ROLE_KERNEL, ROLE_MEMCPY, ROLE_MEMSET, ROLE_COMM, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_OTHER},
};

struct work {
	const struct profile *p;
	enum roles_rules rules;
	struct host_uses *host_uses;  /* default rules */
	uint8_t *is_step;             /* tb-plugin, by string id: a range of this name is a step */
	struct idmap comm_ext;        /* tb-plugin: external ids of communication ops */
	bool device_comm;             /* GPUs run collectives */
	struct gpus gpus;
	struct intervals (*device)[ROLES]; /* of each GPU; by the plugin's rules of all together */
	struct intervals host[ROLES];
	struct intervals range[ROLES]; /* of the GPU that is looked at: what each role owns */
	uint32_t views;               /* entries of device; at least 1 */
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
	enum optree_kind kind = optree_kind_of_name(w->p, s->name[i], SPAN_USER, OPTREE_TB_PLUGIN);
	if (kind == NODE_STEP || w->is_step[s->name[i]])
		return ROLES;
	if (kind == NODE_DATALOADER)
		return ROLE_DATALOADER;
	return name_is(w->p, s->name[i], NAME_COMM) && is_comm_tb_plugin(profile_str(w->p, s->name[i])) ? ROLE_COMM : ROLE_CPU;
}

static enum role role_of_span(struct work *w, uint32_t i)
{
	static const enum role of_use[] = {
		[HOST_NONE] = ROLES, [HOST_CALL] = ROLE_RUNTIME, [HOST_DATALOADER] = ROLE_DATALOADER, [HOST_COMM] = ROLE_COMM,
		[HOST_IO] = ROLES, [HOST_CPU] = ROLE_CPU,
	};
	if (!w->host_uses)
		return plugin_role_of_span(w, i);
	enum role role = of_use[host_use_of(w->host_uses, i)];
	bool enqueues = role == ROLE_COMM && w->device_comm && !name_is(w->p, w->p->span.name[i], NAME_COMM_BY_HOST);
	return enqueues ? ROLE_CPU : role;
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
		intervals_add(&w->host[role], p->span.start_ns[i], span_end(p, i));
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
		comm = name_is(w->p, v->name[g], NAME_COMM_KERNEL);
	return comm ? ROLE_COMM : ROLE_KERNEL;
}

/* A range that is a step is no work in it. */
static void mark_step_names(struct work *w)
{
	const struct profile *p = w->p;
	const struct steps *s = steps_by(p->steps, true);
	for (unsigned i = 0; i < s->total; i++)
		if (s->v[i].span != ROW_NONE)
			w->is_step[p->span.name[s->v[i].span]] = 1;
}

static void collect_device(struct work *w)
{
	const struct profile *p = w->p;
	gpus_find(p, &w->gpus);
	w->views = w->rules == ROLES_DEFAULT && w->gpus.n ? w->gpus.n : 1;
	w->device = (struct intervals(*)[ROLES])NEW_ARRAY((size_t)w->views * ROLES, struct intervals);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		enum role role = role_of_gpu_op(w, g);
		uint32_t view = w->views > 1 ? gpus_of(&w->gpus, p, g) : 0;
		if (view == GPUS_NONE)
			continue;
		intervals_add(&w->device[view][role], p->gpu_op.start_ns[g], gpu_end(p, g));
		w->device_comm |= role == ROLE_COMM;
	}
	for (uint32_t v = 0; v < w->views; v++)
		for (int r = 0; r < ROLES; r++)
			intervals_normalise(&w->device[v][r]);
}

/* By the default rules, what a range of the host means depends on what GPUs do; by the plugin's, the role of device work on the host's ranges. */
static void collect(struct work *w)
{
	const struct profile *p = w->p;
	w->is_step = NEW_ARRAY(p->strings.n, uint8_t);
	if (w->rules == ROLES_DEFAULT) {
		w->host_uses = host_uses_new(p);
		collect_device(w);
		collect_spans(w);
	} else {
		mark_step_names(w);
		collect_spans(w);
		collect_device(w);
	}
	for (int r = 0; r < ROLES; r++)
		intervals_normalise(&w->host[r]);
	idmap_release(&w->comm_ext);
	mem_free(w->is_step);
	host_uses_free(w->host_uses);
}

static void work_release(struct work *w)
{
	for (uint32_t v = 0; v < w->views; v++)
		for (int r = 0; r < ROLES; r++)
			intervals_release(&w->device[v][r]);
	for (int r = 0; r < ROLES; r++) {
		intervals_release(&w->host[r]);
		intervals_release(&w->range[r]);
	}
	mem_free(w->device);
	gpus_release(&w->gpus);
}

/* Turns the ranges of a GPU's work and of the host into the part of the steps that each role owns. */
static void share_out(struct work *w, uint32_t view, const struct steps *steps, unsigned n_steps)
{
	struct intervals all = {0}, free_time = {0};
	for (unsigned i = 0; i < n_steps; i++)
		intervals_add(&all, steps->v[i].start_ns, steps->v[i].end_ns);
	for (unsigned i = 0; w->rules == ROLES_DEFAULT && i < steps->edges; i++)
		intervals_add(&all, steps->edge[i].start_ns, steps->edge[i].end_ns);
	intervals_normalise(&all);
	intervals_union(&all, &(struct intervals){0}, &free_time);
	for (int i = 0; i < ROLE_OTHER; i++) {
		enum role r = roles_order[w->rules][i];
		intervals_union(&w->device[view][r], &w->host[r], &w->range[r]);
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

static void add_costs(struct role_costs *sum, const struct role_costs *c)
{
	sum->total_ns += c->total_ns;
	for (int i = 0; i < ROLES; i++)
		sum->ns[i] += c->ns[i];
}

/* Sums over n GPUs become means. What division leaves over goes to the roles that lose most by it, so that the parts still sum to the step. */
static void take_mean(struct role_costs *c, unsigned n)
{
	int64_t rest[ROLES], left;
	c->total_ns /= n;
	left = c->total_ns;
	for (int i = 0; i < ROLES; i++) {
		rest[i] = c->ns[i] % n;
		c->ns[i] /= n;
		left -= c->ns[i];
	}
	for (; left > 0 && n > 1; left--) {
		int most = 0;
		for (int i = 1; i < ROLES; i++)
			most = rest[i] > rest[most] ? i : most;
		c->ns[most]++;
		rest[most] = -1;
	}
}

/* The costs of one GPU, added to those of the others. */
static void add_view(struct roles *r, const struct work *w, uint32_t view, const struct steps *steps)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct role_costs c = costs_of(w, r->step[i]);
		add_costs(&r->cost[i], &c);
		if (view < r->gpus)
			add_costs(&r->gpu[view].sum, &c);
	}
	for (unsigned i = 0; i < r->edges; i++) {
		struct role_costs c = costs_of(w, &steps->edge[i]);
		add_costs(&r->edge[i], &c);
	}
}

static void choose(struct roles *r, const struct steps *steps, unsigned n, const int64_t *first, const int64_t *last)
{
	r->step = NEW_ARRAY(n, const struct step *);
	r->cost = NEW_ARRAY(n, struct role_costs);
	for (unsigned i = 0; i < n; i++)
		if ((!first || steps->v[i].number >= *first) && (!last || steps->v[i].number <= *last))
			r->step[r->n++] = &steps->v[i];
}

static void list_gpus(struct roles *r, const struct work *w)
{
	r->gpus = w->rules == ROLES_DEFAULT ? w->gpus.n : 0;
	r->gpu = NEW_ARRAY(r->gpus, struct role_gpu);
	for (unsigned i = 0; i < r->gpus; i++)
		r->gpu[i].device = w->gpus.device[i];
}

static void find_shown(struct roles *r, const struct work *w)
{
	bool comm = w->host[ROLE_COMM].n > 0;
	for (uint32_t v = 0; v < w->views; v++)
		comm |= w->device[v][ROLE_COMM].n > 0;
	r->has_device = w->p->gpu_op.rows.n > 0 || w->host[ROLE_RUNTIME].n > 0;
	for (int i = 0; i < ROLES; i++)
		r->shown[i] = i >= ROLE_DATALOADER || (i == ROLE_COMM ? comm : r->has_device);
}

struct roles *roles_new(const struct profile *p, enum roles_rules rules, const int64_t *first, const int64_t *last)
{
	struct roles *r = NEW(struct roles);
	struct work w = {.p = p, .rules = rules};
	const struct steps *steps = steps_by(p->steps, rules == ROLES_TB_PLUGIN);
	unsigned n = steps_kept(steps, rules == ROLES_TB_PLUGIN);
	collect(&w);
	find_shown(r, &w);
	choose(r, steps, n, first, last);
	list_gpus(r, &w);
	r->edges = rules == ROLES_DEFAULT && !first && !last ? steps->edges : 0;
	r->edge = NEW_ARRAY((size_t)r->edges + 1, struct role_costs);
	for (uint32_t v = 0; v < w.views; v++) {
		share_out(&w, v, steps, n);
		add_view(r, &w, v, steps);
	}
	for (unsigned i = 0; i < r->n; i++) {
		take_mean(&r->cost[i], w.views);
		add_costs(&r->sum, &r->cost[i]);
	}
	for (unsigned i = 0; i < r->edges; i++)
		take_mean(&r->edge[i], w.views);
	work_release(&w);
	return r;
}

void roles_free(struct roles *r)
{
	if (!r)
		return;
	mem_free(r->step);
	mem_free(r->cost);
	mem_free(r->edge);
	mem_free(r->gpu);
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
