/* Time by role (event_parser.py and overall_parser.py of the plugin). It differs from opscope's own:
 *   - once no time is left before the last role, later roles are counted twice; memcpy stands before memset and communication;
 *   - the work of all GPUs is one union;
 *   - driver API calls are not known, device-side annotations count as CPU Exec;
 *   - a collective is one of ten nccl: and gloo: names, and a kernel is communication only by such an op's external id. */
#include "analysis/analysis.h"
#include "analysis/tree/optree.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "predecessors/tb_plugin/rules.h"

/* What a name says, found once per distinct string. */
enum { NAME_SEEN = 1, NAME_COMM_OP = 2, NAME_STEP = 4, NAME_DATALOADER = 8 };

struct tb_roles_collection {
	const struct profile *p;
	struct role_ranges *r;
	uint8_t *name;                /* flags by string id */
	struct idmap comm_ext;        /* external ids of communication ops */
};

const char *const tb_comm_name[TB_COMMS] = {
	"nccl:broadcast", "nccl:reduce", "nccl:all_reduce", "nccl:all_gather", "nccl:reduce_scatter",
	"gloo:broadcast", "gloo:reduce", "gloo:all_reduce", "gloo:all_gather", "gloo:reduce_scatter",
};

unsigned tb_comm_of(struct str name)
{
	unsigned i = 0;
	if (!str_starts(name, STR("nccl:")) && !str_starts(name, STR("gloo:")))
		return TB_COMMS;
	while (i < TB_COMMS && !str_eqc(name, tb_comm_name[i]))
		i++;
	return i;
}

static uint8_t name_flags(struct tb_roles_collection *w, uint32_t id)
{
	if (w->name[id])
		return w->name[id];
	struct str s = profile_str(w->p, id);
	uint8_t f = NAME_SEEN;
	if (tb_comm_of(s) != TB_COMMS)
		f |= NAME_COMM_OP;
	if (str_starts(s, STR("ProfilerStep#")))
		f |= NAME_STEP;
	if (optree_classify(s, SPAN_USER) == NODE_DATALOADER)
		f |= NAME_DATALOADER;
	return w->name[id] = f;
}

/* By lower-cased category. */
static bool tb_roles_is_runtime_call(struct str cat)
{
	static const char *const cats[] = {
		"runtime", "cuda_runtime", "mtia_runtime", "glow_runtime", "xpu_runtime", "privateuse1_runtime",
	};
	return ANY_WHERE(i, 0, sizeof cats / sizeof cats[0], cat.n == strlen(cats[i]) && str_has_nocase(cat, str_from(cats[i])));
}

/* ROLES = none. */
static enum role tb_roles_role_of_span(struct tb_roles_collection *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	switch (s->kind[i]) {
	case SPAN_CALL:
		return tb_roles_is_runtime_call(profile_cat(w->p, s->cat[i])) ? ROLE_RUNTIME : ROLES;
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
	return f & NAME_DATALOADER ? ROLE_DATALOADER : f & NAME_COMM_OP ? ROLE_COMM : ROLE_CPU;
}

static void collect_spans(struct tb_roles_collection *w)
{
	const struct profile *p = w->p;
	uint64_t n_comm = 0;
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum role role = tb_roles_role_of_span(w, i);
		if (role == ROLES)
			continue;
		intervals_add(&w->r->host[role], p->span.start_ns[i], span_end(p, i));
		if (role != ROLE_COMM)
			continue;
		int64_t id = tb_ext_id(span_ext_id(&p->span, i));
		n_comm++;
		min = id < min ? id : min;
		max = id > max ? id : max;
	}
	idmap_init(&w->comm_ext, min, max, n_comm);
	for (uint32_t i = 0; n_comm && i < p->span.rows.n; i++)
		if (tb_roles_role_of_span(w, i) == ROLE_COMM)
			idmap_put(&w->comm_ext, tb_ext_id(span_ext_id(&p->span, i)), i);
}

static enum role tb_roles_role_of_gpu_op(struct tb_roles_collection *w, uint32_t g)
{
	const struct gpu_ops *v = &w->p->gpu_op;
	if (v->kind[g] == GPU_MEMCPY)
		return ROLE_MEMCPY;
	if (v->kind[g] == GPU_MEMSET)
		return ROLE_MEMSET;
	return idmap_get(&w->comm_ext, tb_ext_id(gpu_ext_id(v, g))) != IDMAP_NONE ? ROLE_COMM : ROLE_KERNEL;
}

/* A range that is a step is no work in it. */
static void mark_step_names(struct tb_roles_collection *w, const struct steps *s)
{
	for (unsigned i = 0; i < s->total; i++)
		if (s->v[i].span != ROW_NONE)
			w->name[w->p->span.name[s->v[i].span]] = NAME_SEEN | NAME_STEP;
}

static void tb_roles_collect(const struct profile *p, const struct steps *steps, struct role_ranges *r)
{
	struct tb_roles_collection w = {.p = p, .r = r, .name = NEW_ARRAY(p->strings.n, uint8_t)};
	role_ranges_add_gpus(r, NULL, 0);
	mark_step_names(&w, steps);
	collect_spans(&w);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		intervals_add(&r->device[0][tb_roles_role_of_gpu_op(&w, g)], p->gpu_op.start_ns[g], gpu_end(p, g));
	idmap_release(&w.comm_ext);
	mem_free(w.name);
}

const struct roles_rules tb_roles = {
	.order = {ROLE_KERNEL, ROLE_MEMCPY, ROLE_MEMSET, ROLE_COMM, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_OTHER},
	.again = true,
	.collect = tb_roles_collect,
};
