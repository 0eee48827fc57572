#include "analysis/optree.h"

#include "analysis/names.h"
#include "base/mem.h"
#include "op/kernels.h"

/* The ranges of data loaders that the plugin knows. */
static bool is_loader_of_plugin(struct str name)
{
	return (str_starts(name, STR("enumerate(DataLoader)#")) && str_ends(name, STR(".__next__"))) || str_starts(name, STR("enumerate(DataPipe)#"));
}

enum optree_kind optree_kind_of_name(const struct profile *p, uint32_t name, enum span_kind kind, enum optree_rules rules)
{
	if (name_is(p, name, NAME_STEP))
		return NODE_STEP;
	if (name_is_dataloader(p, name) && (rules == OPTREE_DEFAULT || is_loader_of_plugin(profile_str(p, name))))
		return NODE_DATALOADER;
	if (name_is(p, name, NAME_OPTIMIZER_STEP))
		return NODE_OPTIMIZER;
	if (kind == SPAN_USER)
		return name_is(p, name, NAME_COMM) ? NODE_COMM : NODE_USER;
	return name_is(p, name, NAME_WRAPPER) ? NODE_EXCLUDED_OP : NODE_OP;
}

/* Work arrays of one construction. */
struct maker {
	const struct profile *p;
	struct optree *t;
	enum optree_rules rules;
	uint32_t *near_node;     /* per span: the node that it is, or that is around it */
	uint32_t *n_children, *last_child;
	uint32_t *folded_into;   /* per node; ROW_NONE = stands for itself */
	uint32_t *by_ext;        /* tb-plugin, per call: the op with its external id, whatever that is worth; else NULL */
	uint32_t *near_op;       /* per node: the op at or around it; ROW_NONE = none */
	uint8_t *own_calls_lost; /* per node, tb-plugin: its calls gave way to its child's */
};

/* What the plugin's comparison with its operator type sees. */
static bool is_op_type(const struct maker *m, uint32_t node)
{
	return m->p->span.kind[m->t->span[node]] == SPAN_OP;
}

/* Is this span a node under the rules? *kind gets which. */
static bool is_node(struct maker *m, uint32_t i, enum optree_kind *kind)
{
	uint8_t k = m->p->span.kind[i];
	if (k != SPAN_OP && k != SPAN_USER)
		return false;
	*kind = optree_kind_of_name(m->p, m->p->span.name[i], (enum span_kind)k, m->rules);
	return m->rules == OPTREE_DEFAULT || *kind != NODE_USER;
}

/* Counts nodes first, so that the arrays are exact. */
static uint32_t count_nodes(struct maker *m)
{
	uint32_t n = 0;
	enum optree_kind kind;
	for (uint32_t i = 0; i < m->p->span.rows.n; i++)
		n += is_node(m, i, &kind);
	return n;
}

static void alloc_nodes(struct maker *m, uint32_t n)
{
	struct optree *t = m->t;
	t->span = NEW_ARRAY_RAW(n, uint32_t);
	t->parent = NEW_ARRAY_RAW(n, uint32_t);
	t->kind = NEW_ARRAY_RAW(n, uint8_t);
	t->tc_eligible = NEW_ARRAY(n, uint8_t);
	t->host_total = NEW_ARRAY(n, int64_t);
	t->host_self = NEW_ARRAY(n, int64_t);
	t->dev_total = NEW_ARRAY(n, int64_t);
	t->dev_self = NEW_ARRAY(n, int64_t);
	t->tc_total = NEW_ARRAY(n, int64_t);
	t->tc_self = NEW_ARRAY(n, int64_t);
	t->tc_unknown_total = NEW_ARRAY(n, int64_t);
	t->tc_unknown_self = NEW_ARRAY(n, int64_t);
	m->n_children = NEW_ARRAY(n, uint32_t);
	m->last_child = NEW_ARRAY_RAW(n, uint32_t);
	m->folded_into = NEW_ARRAY_RAW(n, uint32_t);
	memset(m->folded_into, 0xff, n * sizeof *m->folded_into);
	m->own_calls_lost = NEW_ARRAY(n, uint8_t);
}

static uint32_t add_node(struct maker *m, uint32_t span, enum optree_kind kind, uint32_t parent)
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

/* Default: the nesting that PASS_NEST found, over all kinds of ranges. */
static void nodes_default(struct maker *m)
{
	const struct spans *s = &m->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t around = s->parent[i] == ROW_NONE ? ROW_NONE : m->near_node[s->parent[i]];
		enum optree_kind kind;
		m->near_node[i] = is_node(m, i, &kind) ? add_node(m, i, kind, around) : around;
	}
}

/* The plugin: only its own nodes take part in the nesting, and what overlaps partially is dropped. */
static void nodes_tb(struct maker *m)
{
	const struct spans *s = &m->p->span;
	uint32_t *stack = NULL;
	size_t depth = 0, cap = 0;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			depth = 0;
		enum optree_kind kind;
		if (!is_node(m, i, &kind))
			continue;
		while (depth && s->start_ns[i] >= span_end(m->p, m->t->span[stack[depth - 1]]))
			depth--;
		uint32_t top = depth ? stack[depth - 1] : ROW_NONE;
		if (top != ROW_NONE && span_end(m->p, i) > span_end(m->p, m->t->span[top])) {
			m->t->dropped++;
			continue;
		}
		uint32_t node = add_node(m, i, kind, top);
		m->near_node[i] = node;
		MEM_GROW(stack, cap, depth + 1);
		stack[depth++] = node;
	}
	mem_free(stack);
}

/* A node whose only child has its name takes the child's place (the plugin's op_tree.py,
 * torch/autograd/profiler_util.py), again and again. */
static void fold(struct maker *m)
{
	struct optree *t = m->t;
	for (uint32_t n = 0; n < t->n; n++) {
		if (m->folded_into[n] != ROW_NONE || !is_op_type(m, n))
			continue;
		uint32_t owner = n; /* whose calls the folded node has, by the plugin's rule */
		while (m->n_children[n] == 1) {
			uint32_t child = m->last_child[n];
			if (!is_op_type(m, child) || m->p->span.name[t->span[child]] != m->p->span.name[t->span[n]])
				break;
			m->folded_into[child] = n;
			m->own_calls_lost[owner] = 1;
			owner = child;
			m->n_children[n] = m->n_children[child];
			m->last_child[n] = m->last_child[child];
			t->folded++;
		}
	}
}

static uint32_t live(const struct maker *m, uint32_t node)
{
	return node != ROW_NONE && m->folded_into[node] != ROW_NONE ? m->folded_into[node] : node;
}

/* The node that an API call counts for; ROW_NONE = none. */
static uint32_t node_of_call(const struct maker *m, uint32_t call)
{
	const struct spans *s = &m->p->span;
	uint32_t op = m->by_ext ? m->by_ext[call] : s->op[call];
	if (m->by_ext)
		return op == ROW_NONE ? ROW_NONE : m->near_node[op];
	uint32_t by_time = m->near_node[call];
	if (op == ROW_NONE)
		return by_time;
	/* By external id the call belongs to `op`; by time, possibly to an annotation inside it. */
	return span_ext_id(s, call) != ID_NONE && span_ext_id(s, op) == span_ext_id(s, call) ? m->near_node[op] : by_time;
}

/* The plugin knows runtime calls, but no driver calls. */
static bool call_counts(const struct maker *m, uint32_t call)
{
	return m->rules == OPTREE_DEFAULT || str_has_nocase(profile_cat(m->p, m->p->span.cat[call]), STR("runtime"));
}

/* Takes what range `i` covers of a node's time off its own time; `covered` tells per node how far it is covered already. */
static void cover(struct maker *m, int64_t *covered, uint32_t node, uint32_t i)
{
	int64_t limit = span_end(m->p, m->t->span[node]), begin = m->p->span.start_ns[i], end = span_end(m->p, i);
	begin = begin > covered[node] ? begin : covered[node];
	end = end < limit ? end : limit;
	if (end > begin) {
		m->t->host_self[node] -= end - begin;
		covered[node] = end;
	}
}

/* Own time of a node: its length less what its children and its API calls cover, each moment once: a driver call inside a
 * runtime call, or a call and a child that overlap, do not count twice, so that own time is never negative. Rows come in
 * order of start, so a cursor per node is enough. A call that belongs to another op by its external id covers what is
 * innermost around it in time as well: the moment is the call's alone. */
static void own_time(struct maker *m)
{
	const struct spans *s = &m->p->span;
	struct optree *t = m->t;
	int64_t *covered = NEW_ARRAY_RAW(t->n, int64_t);
	for (uint32_t n = 0; n < t->n; n++) {
		covered[n] = s->start_ns[t->span[n]];
		t->host_self[n] = s->dur_ns[t->span[n]];
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t node = m->near_node[i], inside = ROW_NONE;
		if (s->kind[i] == SPAN_CALL) {
			inside = live(m, node_of_call(m, i));
			if (live(m, node) != inside && node != ROW_NONE)
				cover(m, covered, live(m, node), i);
		} else if (node != ROW_NONE && t->span[node] == i && m->folded_into[node] == ROW_NONE) {
			inside = live(m, t->parent[node]);
		}
		if (inside != ROW_NONE)
			cover(m, covered, inside, i);
	}
	mem_free(covered);
}

/* The plugin subtracts every child and every call in full. */
static void own_time_tb(struct maker *m)
{
	const struct spans *s = &m->p->span;
	struct optree *t = m->t;
	for (uint32_t n = 0; n < t->n; n++) {
		if (m->folded_into[n] != ROW_NONE)
			continue;
		t->host_self[n] += s->dur_ns[t->span[n]];
		if (t->parent[n] != ROW_NONE)
			t->host_self[live(m, t->parent[n])] -= s->dur_ns[t->span[n]];
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL || !call_counts(m, i))
			continue;
		uint32_t node = node_of_call(m, i);
		if (node != ROW_NONE && !m->own_calls_lost[node])
			t->host_self[live(m, node)] -= s->dur_ns[i];
	}
}

static enum tri uses_tc(const struct maker *m, uint32_t name)
{
	if (m->rules == OPTREE_DEFAULT)
		return name_kernel(m->p, name)->tensor_core;
	return name_is(m->p, name, NAME_TC_LISTED) ? TRI_YES : TRI_NO;
}

static bool eligible_by_name(const struct maker *m, uint32_t name)
{
	return name_is(m->p, name, NAME_TC_ELIGIBLE) && (m->rules == OPTREE_DEFAULT || op_tc_eligible_compat(profile_str(m->p, name)));
}

/* Parents come before their children: one pass, however deep the nesting. */
static void find_near_ops(struct maker *m)
{
	m->near_op = NEW_ARRAY_RAW(m->t->n, uint32_t);
	for (uint32_t n = 0; n < m->t->n; n++) {
		uint32_t up = live(m, m->t->parent[n]);
		m->near_op[n] = m->t->kind[n] == NODE_OP ? n : up != ROW_NONE ? m->near_op[up] : ROW_NONE;
	}
}

/* The op at or around `node`; `node` itself where there is none. */
static uint32_t nearest_op(const struct maker *m, uint32_t node)
{
	return node != ROW_NONE && m->near_op[node] != ROW_NONE ? m->near_op[node] : node;
}

static uint32_t node_of_gpu(struct maker *m, uint32_t g)
{
	const struct gpu_ops *gpu = &m->p->gpu_op;
	uint32_t call = gpu->call[g];
	if (m->rules == OPTREE_TB_PLUGIN) {
		if (call == ROW_NONE || !call_counts(m, call))
			return ROW_NONE; /* kept, under the root */
		uint32_t node = node_of_call(m, call);
		if (node == ROW_NONE) {
			m->t->gpu_lost[g] = span_ext_id(&m->p->span, call) != 0;
			return ROW_NONE;
		}
		if (m->own_calls_lost[node]) {
			m->t->gpu_lost[g] = 1;
			return ROW_NONE;
		}
		return live(m, node);
	}
	uint32_t node = call != ROW_NONE ? node_of_call(m, call) : ROW_NONE;
	if (node == ROW_NONE && gpu->op[g] != ROW_NONE)
		node = m->near_node[gpu->op[g]];
	return nearest_op(m, live(m, node));
}

static void add_device_work(struct maker *m)
{
	const struct gpu_ops *gpu = &m->p->gpu_op;
	struct optree *t = m->t;
	for (uint32_t g = 0; g < gpu->rows.n; g++) {
		uint32_t node = node_of_gpu(m, g);
		t->gpu_node[g] = node;
		if (node == ROW_NONE) {
			t->unattributed_ns += gpu->dur_ns[g];
			t->unattributed_ops++;
			continue;
		}
		t->dev_self[node] += gpu->dur_ns[g];
		enum tri tc = gpu->kind[g] == GPU_KERNEL ? uses_tc(m, gpu->name[g]) : TRI_NO;
		if (tc == TRI_YES)
			t->tc_self[node] += gpu->dur_ns[g];
		else if (tc == TRI_UNKNOWN)
			t->tc_unknown_self[node] += gpu->dur_ns[g];
	}
}

/* Children's figures into their parents, from the last node to the first. */
static void sum_up(struct maker *m)
{
	struct optree *t = m->t;
	for (uint32_t n = 0; n < t->n; n++) {
		if (m->folded_into[n] != ROW_NONE)
			continue;
		t->host_total[n] = m->p->span.dur_ns[t->span[n]];
		t->dev_total[n] += t->dev_self[n];
		t->tc_total[n] += t->tc_self[n];
		t->tc_unknown_total[n] += t->tc_unknown_self[n];
		t->tc_eligible[n] = is_op_type(m, n) &&
		                    (t->tc_self[n] > 0 || eligible_by_name(m, m->p->span.name[t->span[n]]));
	}
	for (uint32_t n = t->n; n-- > 0;) {
		uint32_t up = t->parent[n];
		if (m->folded_into[n] != ROW_NONE || up == ROW_NONE)
			continue;
		up = t->parent[n] = live(m, up);
		t->dev_total[up] += t->dev_total[n];
		t->tc_total[up] += t->tc_total[n];
		t->tc_unknown_total[up] += t->tc_unknown_total[n];
		if (t->tc_eligible[n] && is_op_type(m, up))
			t->tc_eligible[up] = 1;
	}
}

/* Takes the folded nodes out; node numbers change, their order does not. */
static void compact(struct maker *m)
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
		t->host_total[to] = t->host_total[n];
		t->host_self[to] = t->host_self[n];
		t->dev_total[to] = t->dev_total[n];
		t->dev_self[to] = t->dev_self[n];
		t->tc_total[to] = t->tc_total[n];
		t->tc_self[to] = t->tc_self[n];
		t->tc_unknown_total[to] = t->tc_unknown_total[n];
		t->tc_unknown_self[to] = t->tc_unknown_self[n];
	}
	for (uint32_t g = 0; g < m->p->gpu_op.rows.n; g++)
		if (t->gpu_node[g] != ROW_NONE)
			t->gpu_node[g] = renumber[t->gpu_node[g]];
	for (uint32_t i = 0; i < m->p->span.rows.n; i++) {
		uint32_t node = live(m, m->near_node[i]);
		uint8_t kind = m->p->span.kind[i];
		bool itself = kind == SPAN_OP || kind == SPAN_USER;
		t->node_of_span[i] = node == ROW_NONE || !itself ? ROW_NONE : renumber[node];
	}
	t->n = kept;
	mem_free(renumber);
}

struct optree *optree_new(const struct profile *p, enum optree_rules rules)
{
	struct optree *t = NEW(struct optree);
	struct maker m = {.p = p, .t = t, .rules = rules};
	m.near_node = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	memset(m.near_node, 0xff, (size_t)p->span.rows.n * sizeof *m.near_node);
	t->node_of_span = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	t->gpu_node = NEW_ARRAY_RAW(p->gpu_op.rows.n, uint32_t);
	t->gpu_lost = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	m.by_ext = rules == OPTREE_TB_PLUGIN ? correlate_by_ext_id(p) : NULL;
	alloc_nodes(&m, count_nodes(&m));
	if (rules == OPTREE_TB_PLUGIN)
		nodes_tb(&m);
	else
		nodes_default(&m);
	fold(&m);
	if (rules == OPTREE_TB_PLUGIN)
		own_time_tb(&m);
	else
		own_time(&m);
	find_near_ops(&m);
	add_device_work(&m);
	sum_up(&m);
	compact(&m);
	mem_free(m.near_node);
	mem_free(m.by_ext);
	mem_free(m.n_children);
	mem_free(m.last_child);
	mem_free(m.folded_into);
	mem_free(m.near_op);
	mem_free(m.own_calls_lost);
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

void optree_free(struct optree *t)
{
	if (!t)
		return;
	mem_free(t->span);
	mem_free(t->parent);
	mem_free(t->kind);
	mem_free(t->tc_eligible);
	mem_free(t->host_total);
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
