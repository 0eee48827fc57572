#include "analysis/tree/optree_work.h"

#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "base/mem.h"
#include "store/reuse.h"

enum optree_kind optree_classify(struct str name, enum span_kind kind)
{
	if (str_starts(name, STR("ProfilerStep#")))
		return NODE_STEP;
	if ((str_starts(name, STR("enumerate(DataLoader)#")) && str_ends(name, STR(".__next__"))) ||
	    str_starts(name, STR("enumerate(DataPipe)#")))
		return NODE_DATALOADER;
	if (str_starts(name, STR("Optimizer.step")))
		return NODE_OPTIMIZER;
	if (kind == SPAN_USER)
		return op_is_comm(name) ? NODE_COMM : NODE_USER;
	if (str_starts(name, STR("Optimizer.")) || str_eq(name, STR("DataParallel.forward")) ||
	    str_eq(name, STR("DistributedDataParallel.forward")))
		return NODE_EXCLUDED_OP;
	return NODE_OP;
}

static bool is_op_type(const struct optree_work *m, uint32_t node)
{
	return m->p->span.kind[m->t->span[node]] == SPAN_OP;
}

static enum optree_kind classify_cached(struct optree_work *m, uint32_t span)
{
	uint32_t name = m->p->span.name[span];
	bool user = m->p->span.kind[span] == SPAN_USER;
	uint8_t *slot = &m->kind_of_name[(size_t)name * 2 + user];
	if (!*slot)
		*slot = (uint8_t)(optree_classify(profile_str(m->p, name), m->p->span.kind[span]) + 1);
	return *slot - 1;
}

bool optree_is_node(struct optree_work *m, uint32_t span, enum optree_kind *kind)
{
	uint8_t k = m->p->span.kind[span];
	if (k != SPAN_OP && k != SPAN_USER)
		return false;
	*kind = classify_cached(m, span);
	return m->rules->user_nodes || *kind != NODE_USER;
}

/* Counts nodes first, so that the arrays are exact. What is made later takes the place of what is not needed any more. */
static uint32_t count_nodes(struct optree_work *m)
{
	uint32_t n = 0;
	enum optree_kind kind;
	for (uint32_t i = 0; i < m->p->span.rows.n; i++)
		n += optree_is_node(m, i, &kind);
	return n;
}

static void alloc_nodes(struct optree_work *m, uint32_t n)
{
	struct optree *t = m->t;
	t->span = NEW_ARRAY_RAW(n, uint32_t);
	t->parent = NEW_ARRAY_RAW(n, uint32_t);
	t->kind = NEW_ARRAY_RAW(n, uint8_t);
	m->n_children = NEW_ARRAY(n, uint32_t);
	m->last_child = NEW_ARRAY_RAW(n, uint32_t);
	m->folded_into = NEW_ARRAY_RAW(n, uint32_t);
	memset(m->folded_into, 0xff, n * sizeof *m->folded_into);
	m->has_same_child = NEW_ARRAY(n, uint8_t);
}

/* After the folding. */
static void optree_free_children(struct optree_work *m)
{
	mem_free(m->n_children);
	mem_free(m->last_child);
	m->n_children = m->last_child = NULL;
}

uint32_t optree_add_node(struct optree_work *m, uint32_t span, enum optree_kind kind, uint32_t parent)
{
	struct optree *t = m->t;
	uint32_t n = t->n++;
	t->span[n] = span;
	t->parent[n] = parent;
	t->kind[n] = (uint8_t)kind;
	if (parent != ROW_NONE) {
		m->n_children[parent]++;
		m->last_child[parent] = n;
	}
	return n;
}

/* The nesting that PASS_NEST found, over all kinds of ranges. */
static void nodes_of_nest(struct optree_work *m)
{
	const struct spans *s = &m->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t around = s->parent[i] == ROW_NONE ? ROW_NONE : m->near_node[s->parent[i]];
		enum optree_kind kind;
		m->near_node[i] = optree_is_node(m, i, &kind) ? optree_add_node(m, i, kind, around) : around;
	}
}

/* A node whose only child has its name takes the child's place, again and again. */
static void optree_fold(struct optree_work *m)
{
	struct optree *t = m->t;
	for (uint32_t n = 0; n < t->n; n++) {
		if (m->folded_into[n] != ROW_NONE || !is_op_type(m, n))
			continue;
		uint32_t owner = n; /* the innermost of those that were folded */
		while (m->n_children[n] == 1) {
			uint32_t child = m->last_child[n];
			if (!is_op_type(m, child) || m->p->span.name[t->span[child]] != m->p->span.name[t->span[n]])
				break;
			m->folded_into[child] = n;
			m->has_same_child[owner] = 1;
			owner = child;
			m->n_children[n] = m->n_children[child];
			m->last_child[n] = m->last_child[child];
			t->folded++;
		}
	}
}

/* The node that an API call counts for; ROW_NONE = none. */
static uint32_t optree_node_of_call(const struct optree_work *m, uint32_t call)
{
	const struct spans *s = &m->p->span;
	uint32_t op = s->op[call], by_time = m->near_node[call];
	if (op == ROW_NONE)
		return by_time;
	/* By external id the call belongs to `op`; by time, possibly to an annotation inside it. */
	return span_ext_id(s, call) != ID_NONE && span_ext_id(s, op) == span_ext_id(s, call) ? m->near_node[op] : by_time;
}

/* Takes what range `i` covers of a node's time off its own time; `covered` tells per node how far it is covered already. */
static void optree_cover(struct optree_work *m, int64_t *covered, uint32_t node, uint32_t i)
{
	int64_t limit = span_end(m->p, m->t->span[node]), begin = m->p->span.start_ns[i], end = span_end(m->p, i);
	begin = begin > covered[node] ? begin : covered[node];
	end = end < limit ? end : limit;
	if (end > begin && !span_is_replay(m->p, i)) {
		m->t->host_self[node] -= end - begin;
		covered[node] = end;
	}
}

/* Own time of a node: its length less what its children and its API calls cover, each moment once: a driver call inside a
 * runtime call, or a call and a child that overlap, do not count twice, so that own time is never negative. Rows come in
 * order of start, so a cursor per node is enough. A call that belongs to another op by its external id covers what is
 * innermost around it in time as well: the moment is the call's alone. */
static void own_time(struct optree_work *m)
{
	const struct spans *s = &m->p->span;
	struct optree *t = m->t;
	int64_t *covered = NEW_ARRAY_RAW(t->n, int64_t);
	for (uint32_t n = 0; n < t->n; n++) {
		covered[n] = s->start_ns[t->span[n]];
		t->host_self[n] = span_host_ns(m->p, t->span[n]);
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t node = m->near_node[i], inside = ROW_NONE;
		if (s->kind[i] == SPAN_CALL) {
			inside = optree_live(m, optree_node_of_call(m, i));
			if (optree_live(m, node) != inside && node != ROW_NONE)
				optree_cover(m, covered, optree_live(m, node), i);
		} else if (node != ROW_NONE && t->span[node] == i && m->folded_into[node] == ROW_NONE) {
			inside = optree_live(m, t->parent[node]);
		}
		if (inside != ROW_NONE)
			optree_cover(m, covered, inside, i);
	}
	mem_free(covered);
}

static bool eligible_by_name(struct optree_work *m, uint32_t name)
{
	if (!m->eligible_name[name])
		m->eligible_name[name] = m->rules->tc_eligible(profile_str(m->p, name)) ? 2 : 1;
	return m->eligible_name[name] == 2;
}

/* Parents come before their children: one pass, however deep the nesting. */
static void find_near_ops(struct optree_work *m)
{
	m->near_op = NEW_ARRAY_RAW(m->t->n, uint32_t);
	for (uint32_t n = 0; n < m->t->n; n++) {
		uint32_t up = optree_live(m, m->t->parent[n]);
		m->near_op[n] = m->t->kind[n] == NODE_OP ? n : up != ROW_NONE ? m->near_op[up] : ROW_NONE;
	}
}

/* The op at or around `node`; `node` itself where there is none. */
static uint32_t nearest_op(const struct optree_work *m, uint32_t node)
{
	return node != ROW_NONE && m->near_op[node] != ROW_NONE ? m->near_op[node] : node;
}

static uint32_t node_of_gpu(struct optree_work *m, uint32_t g)
{
	const struct gpu_ops *gpu = &m->p->gpu_op;
	uint32_t call = gpu_is_replayed(gpu, g) ? ROW_NONE : gpu->call[g];
	uint32_t node = call != ROW_NONE ? optree_node_of_call(m, call) : ROW_NONE;
	if (node == ROW_NONE && gpu->op[g] != ROW_NONE)
		node = m->near_node[gpu->op[g]];
	return nearest_op(m, optree_live(m, node));
}

/* Adds to a sum that may have no array yet. */
static void optree_add(const struct optree *t, int64_t **sums, uint32_t node, int64_t ns)
{
	if (!*sums && ns)
		*sums = NEW_ARRAY(t->n, int64_t);
	if (*sums)
		(*sums)[node] += ns;
}

static void add_device_work(struct optree_work *m)
{
	const struct gpu_ops *gpu = &m->p->gpu_op;
	struct optree *t = m->t;
	t->dev_self = NEW_ARRAY(t->n, int64_t);
	t->gpu_node = NEW_ARRAY_RAW(gpu->rows.n, uint32_t);
	t->gpu_lost = NEW_ARRAY(gpu->rows.n, uint8_t);
	for (uint32_t g = 0; g < gpu->rows.n; g++) {
		uint32_t node = m->rules->node_of_gpu(m, g);
		t->gpu_node[g] = node;
		if (node == ROW_NONE) {
			t->unattributed_ns += gpu->dur_ns[g];
			t->unattributed_ops++;
			continue;
		}
		t->dev_self[node] += gpu->dur_ns[g];
		enum tri tc = gpu->kind[g] == GPU_KERNEL ? m->rules->uses_tc(m->p, g) : TRI_NO;
		if (tc == TRI_YES)
			optree_add(t, &t->tc_self, node, gpu->dur_ns[g]);
		else if (tc == TRI_UNKNOWN)
			optree_add(t, &t->tc_unknown_self, node, gpu->dur_ns[g]);
	}
}

/* A node's own figures with those of all nodes below it; NULL of NULL. Needs the parents that optree_sum_up sets. */
static int64_t *optree_totals(const struct optree_work *m, const int64_t *self)
{
	const struct optree *t = m->t;
	if (!self)
		return NULL;
	int64_t *total = NEW_ARRAY_RAW(t->n, int64_t);
	memcpy(total, self, t->n * sizeof *total);
	for (uint32_t n = t->n; n-- > 0;)
		if (m->folded_into[n] == ROW_NONE && t->parent[n] != ROW_NONE)
			total[t->parent[n]] += total[n];
	return total;
}

/* Children's figures into their parents, from the last node to the first. */
static void optree_sum_up(struct optree_work *m)
{
	struct optree *t = m->t;
	t->tc_eligible = NEW_ARRAY(t->n, uint8_t);
	for (uint32_t n = 0; n < t->n; n++)
		if (m->folded_into[n] == ROW_NONE)
			t->tc_eligible[n] = is_op_type(m, n) && (optree_sum(t->tc_self, n) > 0 || eligible_by_name(m, m->p->span.name[t->span[n]]));
	for (uint32_t n = t->n; n-- > 0;) {
		uint32_t up = t->parent[n];
		if (m->folded_into[n] != ROW_NONE || up == ROW_NONE)
			continue;
		up = t->parent[n] = optree_live(m, up);
		if (t->tc_eligible[n] && is_op_type(m, up))
			t->tc_eligible[up] = 1;
	}
	t->dev_total = optree_totals(m, t->dev_self);
	t->tc_total = optree_totals(m, t->tc_self);
	t->tc_unknown_total = optree_totals(m, t->tc_unknown_self);
}

static void optree_move(int64_t *sums, uint32_t to, uint32_t from)
{
	if (sums)
		sums[to] = sums[from];
}

/* Takes the folded nodes out; node numbers change, their order does not. */
static void optree_compact(struct optree_work *m)
{
	struct optree *t = m->t;
	uint32_t *renumber = NEW_ARRAY_RAW(t->n, uint32_t), kept = 0;
	for (uint32_t n = 0; n < t->n; n++)
		renumber[n] = m->folded_into[n] == ROW_NONE ? kept++ : ROW_NONE;
	for (uint32_t n = 0; n < t->n; n++) {
		uint32_t to = renumber[n];
		if (to == ROW_NONE)
			continue;
		t->span[to] = t->span[n];
		t->parent[to] = t->parent[n] == ROW_NONE ? ROW_NONE : renumber[t->parent[n]];
		t->kind[to] = t->kind[n];
		t->tc_eligible[to] = t->tc_eligible[n];
		t->host_self[to] = t->host_self[n];
		t->dev_total[to] = t->dev_total[n];
		t->dev_self[to] = t->dev_self[n];
		optree_move(t->tc_total, to, n);
		optree_move(t->tc_self, to, n);
		optree_move(t->tc_unknown_total, to, n);
		optree_move(t->tc_unknown_self, to, n);
	}
	for (uint32_t g = 0; g < m->p->gpu_op.rows.n; g++)
		if (t->gpu_node[g] != ROW_NONE)
			t->gpu_node[g] = renumber[t->gpu_node[g]];
	t->node_of_span = m->near_node; /* its place is taken row by row */
	for (uint32_t i = 0; i < m->p->span.rows.n; i++) {
		uint32_t node = optree_live(m, m->near_node[i]);
		uint8_t kind = m->p->span.kind[i];
		bool itself = kind == SPAN_OP || kind == SPAN_USER;
		t->node_of_span[i] = node == ROW_NONE || !itself ? ROW_NONE : renumber[node];
	}
	t->n = kept;
	mem_free(renumber);
}

const struct optree_rules optree_own = {
	.user_nodes = true,
	.nodes = nodes_of_nest,
	.own_time = own_time,
	.node_of_gpu = node_of_gpu,
	.uses_tc = gpu_tensor_core,
	.tc_eligible = op_tc_eligible,
};

static void optree_release(void *result)
{
	struct optree *t = result;
	mem_free(t->span);
	mem_free(t->parent);
	mem_free(t->kind);
	mem_free(t->tc_eligible);
	mem_free(t->host_self);
	mem_free(t->dev_total);
	mem_free(t->dev_self);
	mem_free(t->tc_total);
	mem_free(t->tc_self);
	mem_free(t->tc_unknown_total);
	mem_free(t->tc_unknown_self);
	mem_free(t->node_of_span);
	mem_free(t->gpu_node);
	mem_free(t->gpu_lost);
	mem_free(t);
}

void optree_free(struct optree *t)
{
	if (t && !t->is_kept)
		optree_release(t);
}

struct optree *optree_new(const struct profile *p, const struct optree_rules *rules)
{
	struct optree *kept = reuse_find(p, rules);
	if (kept)
		return kept;
	struct optree *t = NEW(struct optree);
	struct optree_work m = {.p = p, .t = t, .rules = rules};
	m.kind_of_name = NEW_ARRAY((size_t)p->strings.n * 2, uint8_t);
	m.eligible_name = NEW_ARRAY(p->strings.n, uint8_t);
	m.near_node = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	memset(m.near_node, 0xff, (size_t)p->span.rows.n * sizeof *m.near_node);
	alloc_nodes(&m, count_nodes(&m));
	rules->nodes(&m);
	optree_fold(&m);
	optree_free_children(&m);
	t->host_self = NEW_ARRAY(t->n, int64_t);
	rules->own_time(&m);
	find_near_ops(&m);
	add_device_work(&m);
	mem_free(m.near_op);
	optree_sum_up(&m);
	optree_compact(&m);
	mem_free(m.kind_of_name);
	mem_free(m.eligible_name);
	mem_free(m.op_of_call);
	mem_free(m.folded_into);
	mem_free(m.has_same_child);
	reuse_keep(p, rules, t, optree_release, &t->is_kept);
	return t;
}

uint32_t optree_operator(const struct optree *t, const struct profile *p, uint32_t gpu)
{
	uint32_t node = t->gpu_node[gpu];
	if (node == ROW_NONE)
		return 0;
	uint8_t kind = t->kind[node];
	bool launches = kind == NODE_OP || kind == NODE_EXCLUDED_OP || kind == NODE_COMM || kind == NODE_OPTIMIZER;
	return launches ? p->span.name[t->span[node]] : 0;
}
