#include "analysis/steps/roles.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/time/gpus.h"
#include "analysis/time/host_use.h"
#include "analysis/time/interval.h"
#include "base/mem.h"
#include "store/reuse.h"

const char *const role_title[ROLES] = {
	[ROLE_KERNEL] = "Kernel", [ROLE_MEMCPY] = "Memcpy", [ROLE_MEMSET] = "Memset", [ROLE_COMM] = "Communication",
	[ROLE_RUNTIME] = "Runtime", [ROLE_DATALOADER] = "DataLoader", [ROLE_CPU] = "CPU Exec", [ROLE_OTHER] = "Other",
};
const char *const role_id[ROLES] = {
	[ROLE_KERNEL] = "kernel", [ROLE_MEMCPY] = "memcpy", [ROLE_MEMSET] = "memset", [ROLE_COMM] = "communication",
	[ROLE_RUNTIME] = "runtime", [ROLE_DATALOADER] = "dataloader", [ROLE_CPU] = "cpu_exec", [ROLE_OTHER] = "other",
};

/* The ranges of the roles while they are collected. */
struct roles_collection {
	const struct profile *p;
	struct role_ranges *r;
	struct host_uses *host_uses;
	bool device_comm;             /* GPUs run collectives */
};

static enum role roles_role_of_span(struct roles_collection *w, uint32_t i)
{
	static const enum role of_use[] = {
		[HOST_NONE] = ROLES, [HOST_CALL] = ROLE_RUNTIME, [HOST_DATALOADER] = ROLE_DATALOADER, [HOST_COMM] = ROLE_COMM,
		[HOST_IO] = ROLES, [HOST_CPU] = ROLE_CPU,
	};
	enum role role = of_use[host_use_of(w->host_uses, i)];
	bool enqueues = role == ROLE_COMM && w->device_comm && !name_is(w->p, w->p->span.name[i], NAME_COMM_BY_HOST);
	return enqueues ? ROLE_CPU : role;
}

static enum role roles_role_of_gpu_op(struct roles_collection *w, uint32_t g)
{
	const struct gpu_ops *v = &w->p->gpu_op;
	if (v->kind[g] == GPU_MEMCPY)
		return ROLE_MEMCPY;
	if (v->kind[g] == GPU_MEMSET)
		return ROLE_MEMSET;
	return name_is(w->p, v->name[g], NAME_COMM_KERNEL) ? ROLE_COMM : ROLE_KERNEL;
}

static void collect_device(struct roles_collection *w)
{
	const struct profile *p = w->p;
	struct gpus gpus;
	gpus_find(p, &gpus);
	role_ranges_add_gpus(w->r, gpus.device, gpus.n);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		enum role role = roles_role_of_gpu_op(w, g);
		uint32_t view = w->r->views > 1 ? gpus_of(&gpus, p, g) : 0;
		if (view == GPUS_NONE)
			continue;
		intervals_add(&w->r->device[view][role], p->gpu_op.start_ns[g], gpu_end(p, g));
		w->device_comm |= role == ROLE_COMM;
	}
	gpus_release(&gpus);
}

/* What a range of the host means depends on what GPUs do: these come first. */
static void roles_collect(const struct profile *p, const struct steps *steps, struct role_ranges *out)
{
	struct roles_collection w = {.p = p, .r = out, .host_uses = host_uses_new(p)};
	collect_device(&w);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum role role = roles_role_of_span(&w, i);
		if (role != ROLES)
			intervals_add(&out->host[role], p->span.start_ns[i], span_end(p, i));
	}
	host_uses_free(w.host_uses);
}

const struct roles_rules roles_own = {
	.order = {ROLE_KERNEL, ROLE_MEMSET, ROLE_COMM, ROLE_MEMCPY, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_OTHER},
	.edges = true,
	.collect = roles_collect,
};

/* --- sharing out ------------------------------------------------------------------------------------------------ */

void role_ranges_add_gpus(struct role_ranges *r, const int32_t *device, uint32_t n)
{
	r->gpus = n;
	r->gpu = NEW_ARRAY(n, int32_t);
	for (uint32_t i = 0; i < n; i++)
		r->gpu[i] = device[i];
	r->views = n ? n : 1;
	r->device = (struct intervals(*)[ROLES])NEW_ARRAY((size_t)r->views * ROLES, struct intervals);
}

void role_ranges_normalise(struct role_ranges *r)
{
	for (uint32_t v = 0; v < r->views; v++)
		for (int role = 0; role < ROLES; role++)
			intervals_normalise(&r->device[v][role]);
	for (int role = 0; role < ROLES; role++)
		intervals_normalise(&r->host[role]);
}

void role_ranges_release(struct role_ranges *r)
{
	for (uint32_t v = 0; v < r->views; v++)
		for (int role = 0; role < ROLES; role++)
			intervals_release(&r->device[v][role]);
	for (int role = 0; role < ROLES; role++)
		intervals_release(&r->host[role]);
	mem_free(r->device);
	mem_free(r->gpu);
}

/* The ranges of the roles, and what is shared out of them. */
struct roles_work {
	const struct profile *p;
	const struct roles_rules *rules;
	struct role_ranges r;
	struct intervals range[ROLES]; /* of the GPU that is looked at: what each role owns */
};

static void work_collect(struct roles_work *w, const struct steps *steps)
{
	w->rules->collect(w->p, steps, &w->r);
	role_ranges_normalise(&w->r);
}

static void roles_work_release(struct roles_work *w)
{
	role_ranges_release(&w->r);
	for (int r = 0; r < ROLES; r++)
		intervals_release(&w->range[r]);
}

/* Turns the ranges of a GPU's work and of the host into the part of the steps that each role owns. */
static void share_out(struct roles_work *w, uint32_t view, const struct steps *steps, unsigned n_steps)
{
	struct intervals all = {0}, free_time = {0};
	for (unsigned i = 0; i < n_steps; i++)
		intervals_add(&all, steps->v[i].start_ns, steps->v[i].end_ns);
	for (unsigned i = 0; w->rules->edges && i < steps->edges; i++)
		intervals_add(&all, steps->edge[i].start_ns, steps->edge[i].end_ns);
	intervals_normalise(&all);
	intervals_union(&all, &(struct intervals){0}, &free_time);
	for (int i = 0; i < ROLE_OTHER; i++) {
		enum role r = w->rules->order[i];
		intervals_union(&w->r.device[view][r], &w->r.host[r], &w->range[r]);
		if (w->rules->again && free_time.n == 0)
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

static struct role_costs costs_of(const struct roles_work *w, const struct step *s)
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
static void roles_add_view(struct roles *r, const struct roles_work *w, uint32_t view, const struct steps *steps)
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

static void roles_choose(struct roles *r, const struct steps *steps, unsigned n, const int64_t *first, const int64_t *last)
{
	r->step = NEW_ARRAY(n, const struct step *);
	r->cost = NEW_ARRAY(n, struct role_costs);
	for (unsigned i = 0; i < n; i++)
		if ((!first || steps->v[i].number >= *first) && (!last || steps->v[i].number <= *last))
			r->step[r->n++] = &steps->v[i];
}

static void list_gpus(struct roles *r, const struct roles_work *w)
{
	r->gpus = w->r.gpus;
	r->gpu = NEW_ARRAY(r->gpus, struct role_gpu);
	for (unsigned i = 0; i < r->gpus; i++)
		r->gpu[i].device = w->r.gpu[i];
}

static void find_shown(struct roles *r, const struct roles_work *w)
{
	bool comm = w->r.host[ROLE_COMM].n > 0;
	for (uint32_t v = 0; v < w->r.views; v++)
		comm |= w->r.device[v][ROLE_COMM].n > 0;
	r->has_device = w->p->gpu_op.rows.n > 0 || w->r.host[ROLE_RUNTIME].n > 0;
	for (int i = 0; i < ROLES; i++)
		r->shown[i] = i >= ROLE_DATALOADER || (i == ROLE_COMM ? comm : r->has_device);
}

static void roles_release(void *result)
{
	struct roles *r = result;
	mem_free(r->step);
	mem_free(r->cost);
	mem_free(r->edge);
	mem_free(r->gpu);
	mem_free(r);
}

void roles_free(struct roles *r)
{
	if (r && !r->is_kept)
		roles_release(r);
}

struct roles *roles_new(const struct profile *p, const struct steps *steps, const struct roles_rules *rules, const int64_t *first, const int64_t *last)
{
	const bool usual = steps == p->steps && !first && !last; /* what several ask for */
	struct roles *kept = usual ? reuse_find(p, rules) : NULL;
	if (kept)
		return kept;
	struct roles *r = NEW(struct roles);
	struct roles_work w = {.p = p, .rules = rules};
	work_collect(&w, steps);
	find_shown(r, &w);
	roles_choose(r, steps, steps->n, first, last);
	list_gpus(r, &w);
	r->edges = rules->edges && !first && !last ? steps->edges : 0;
	r->edge = NEW_ARRAY((size_t)r->edges + 1, struct role_costs);
	for (uint32_t v = 0; v < w.r.views; v++) {
		share_out(&w, v, steps, steps->n);
		roles_add_view(r, &w, v, steps);
	}
	for (unsigned i = 0; i < r->n; i++) {
		take_mean(&r->cost[i], w.r.views);
		add_costs(&r->sum, &r->cost[i]);
	}
	for (unsigned i = 0; i < r->edges; i++)
		take_mean(&r->edge[i], w.r.views);
	roles_work_release(&w);
	if (usual)
		reuse_keep(p, rules, r, roles_release, &r->is_kept);
	return r;
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
