/* The op tree (op_tree.py, node_parser.py and node.py of the plugin). It differs from opscope's own:
 *   - annotations are not in it, and ranges that overlap partially are dropped;
 *   - an API call belongs to the op with its external id alone, and calls of the driver to none;
 *   - where a child is folded into its parent, the parent's own calls are lost (a bug of the plugin);
 *   - Tensor Cores are used by kernels with a name on a list. */
#include "analysis/names/names.h"
#include "analysis/tree/optree_work.h"
#include "base/mem.h"
#include "predecessors/tb_plugin/rules.h"

/* Only nodes take part in the nesting, and what overlaps partially is dropped. */
static void optree_nodes(struct optree_work *m)
{
	const struct spans *s = &m->p->span;
	uint32_t *stack = NULL;
	size_t depth = 0, cap = 0;
	m->op_of_call = correlate_by_ext_id(m->p);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			depth = 0;
		enum optree_kind kind;
		if (!optree_is_node(m, i, &kind))
			continue;
		while (depth && s->start_ns[i] >= span_end(m->p, m->t->span[stack[depth - 1]]))
			depth--;
		uint32_t top = depth ? stack[depth - 1] : ROW_NONE;
		if (top != ROW_NONE && span_end(m->p, i) > span_end(m->p, m->t->span[top]))
			continue;
		uint32_t node = optree_add_node(m, i, kind, top);
		m->near_node[i] = node;
		MEM_PUSH(stack, depth, cap, node);
	}
	mem_free(stack);
}

static uint32_t tb_optree_node_of_call(const struct optree_work *m, uint32_t call)
{
	uint32_t op = m->op_of_call[call];
	return op == ROW_NONE ? ROW_NONE : m->near_node[op];
}

/* Runtime calls are known, driver calls are not. */
static bool call_counts(const struct optree_work *m, uint32_t call)
{
	return str_has_nocase(profile_cat(m->p, m->p->span.cat[call]), STR("runtime"));
}

/* Every child and every call is subtracted in full. */
static void optree_own_time(struct optree_work *m)
{
	const struct spans *s = &m->p->span;
	struct optree *t = m->t;
	for (uint32_t n = 0; n < t->n; n++) {
		if (m->folded_into[n] != ROW_NONE)
			continue;
		t->host_self[n] += s->dur_ns[t->span[n]];
		if (t->parent[n] != ROW_NONE)
			t->host_self[optree_live(m, t->parent[n])] -= s->dur_ns[t->span[n]];
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL || !call_counts(m, i))
			continue;
		uint32_t node = tb_optree_node_of_call(m, i);
		if (node != ROW_NONE && !m->has_same_child[node])
			t->host_self[optree_live(m, node)] -= s->dur_ns[i];
	}
}

static uint32_t optree_node_of_gpu(struct optree_work *m, uint32_t g)
{
	uint32_t call = m->p->gpu_op.call[g];
	if (call == ROW_NONE || !call_counts(m, call))
		return ROW_NONE; /* kept, under the root */
	uint32_t node = tb_optree_node_of_call(m, call);
	if (node == ROW_NONE) {
		m->t->gpu_lost[g] = span_ext_id(&m->p->span, call) != 0;
		return ROW_NONE;
	}
	if (m->has_same_child[node]) {
		m->t->gpu_lost[g] = 1;
		return ROW_NONE;
	}
	return optree_live(m, node);
}

static enum tri optree_uses_tc(const struct profile *p, uint32_t gpu)
{
	return name_is(p, p->gpu_op.name[gpu], NAME_TC_LISTED) ? TRI_YES : TRI_NO;
}

const struct optree_rules tb_optree = {
	.nodes = optree_nodes,
	.own_time = optree_own_time,
	.node_of_gpu = optree_node_of_gpu,
	.uses_tc = optree_uses_tc,
	.tc_eligible = op_tc_eligible_listed,
};
