#include "analysis/tree/module_tree.h"

#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>

void module_tree_init(struct module_tree *t)
{
	*t = (struct module_tree){0};
	intern_init(&t->names);
	intern_init(&t->keys);
}

void module_tree_release(struct module_tree *t)
{
	intern_release(&t->names);
	intern_release(&t->keys);
	mem_free(t->v);
	mem_free(t->order);
	*t = (struct module_tree){0};
}

struct module_tree_key {
	uint32_t parent, name;
	int32_t module_id;
};

uint32_t module_tree_node(struct module_tree *t, uint32_t parent, struct str name, int32_t module_id)
{
	struct module_tree_key key = {parent, intern_str(&t->names, name), module_id};
	uint32_t at = intern_put(&t->keys, (const char *)&key, sizeof key) - 1;
	if (at == t->n) {
		MEM_PUSH(t->v, t->n, t->cap, (struct module_node){
			.name = key.name, .module_id = module_id, .parent = parent, .merged_into = MODULE_NONE,
		});
	}
	return at;
}

/* Called, but only within the backward pass. */
static bool is_recomputed(const struct module_tree *t, uint32_t node)
{
	return t->v[node].calls == 0 && t->v[node].recompute_calls > 0;
}

/* Per module (name and id) the one node that the forward pass called: node, MODULE_NONE = none, AMBIGUOUS = several. */
enum { AMBIGUOUS = MODULE_NONE - 1 };

static uint32_t *forward_nodes(const struct module_tree *t, struct intern *modules, uint32_t *module_of)
{
	uint32_t *forward = NEW_ARRAY_RAW(t->n + 1, uint32_t);
	for (uint32_t i = 0; i < t->n; i++) {
		struct module_tree_key key = {0, t->v[i].name, t->v[i].module_id};
		uint32_t before = modules->n, m = module_of[i] = intern_put(modules, (const char *)&key, sizeof key);
		if (modules->n > before)
			forward[m] = MODULE_NONE;
		if (t->v[i].calls)
			forward[m] = forward[m] == MODULE_NONE ? i : AMBIGUOUS;
	}
	return forward;
}

/* Children of each node as lists in order of their numbers. */
struct children {
	uint32_t *first, *next; /* [n]; first has one more, for the roots */
};

static struct children list_children(const struct module_tree *t)
{
	struct children c = {NEW_ARRAY_RAW(t->n + 1, uint32_t), NEW_ARRAY_RAW(t->n, uint32_t)};
	memset(c.first, 0xff, ((size_t)t->n + 1) * sizeof *c.first);
	for (uint32_t i = t->n; i-- > 0;) {
		uint32_t *head = &c.first[t->v[i].parent == MODULE_NONE ? t->n : t->v[i].parent];
		c.next[i] = *head;
		if (t->v[i].merged_into == MODULE_NONE)
			*head = i;
	}
	return c;
}

static void children_release(struct children *c)
{
	mem_free(c->first);
	mem_free(c->next);
}

/* Joins `from` to `to`, and its children to those of the same name there; a child without such a node moves over. */
static void module_tree_join(struct module_tree *t, const struct children *c, uint32_t from, uint32_t to)
{
	uint32_t *stack = NULL, n = 0, cap = 0;
	MEM_GROW(stack, cap, 2u);
	stack[n++] = from;
	stack[n++] = to;
	while (n) {
		to = stack[--n];
		from = stack[--n];
		t->v[from].merged_into = to;
		t->v[to].calls += t->v[from].calls;
		t->v[to].recompute_calls += t->v[from].recompute_calls;
		for (uint32_t i = c->first[from]; i != MODULE_NONE; i = c->next[i]) {
			struct module_tree_key key = {to, t->v[i].name, t->v[i].module_id};
			uint32_t same = intern_find(&t->keys, (struct str){(const char *)&key, sizeof key});
			if (same == INTERN_NONE || t->v[same - 1].merged_into != MODULE_NONE) {
				t->v[i].parent = to;
				continue;
			}
			MEM_GROW(stack, cap, n + 2);
			stack[n++] = i;
			stack[n++] = same - 1;
		}
	}
	mem_free(stack);
}

/* Is `node` at or below `top`? */
static bool is_below(const struct module_tree *t, uint32_t node, uint32_t top)
{
	for (uint32_t i = node; i != MODULE_NONE; i = t->v[i].parent)
		if (i == top)
			return true;
	return false;
}

uint64_t module_tree_join_recomputed(struct module_tree *t)
{
	struct intern modules;
	intern_init(&modules);
	uint32_t *module_of = NEW_ARRAY(t->n, uint32_t);
	uint32_t *forward = forward_nodes(t, &modules, module_of);
	struct children c = list_children(t);
	uint64_t joined = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t up = t->v[i].parent, to = forward[module_of[i]];
		if (!is_recomputed(t, i) || t->v[i].merged_into != MODULE_NONE || (up != MODULE_NONE && is_recomputed(t, up)))
			continue;
		if (to == MODULE_NONE || to == AMBIGUOUS || is_below(t, to, i))
			continue;
		module_tree_join(t, &c, i, to);
		joined += t->v[i].recompute_calls;
	}
	children_release(&c);
	mem_free(forward);
	mem_free(module_of);
	intern_release(&modules);
	return joined;
}

struct root {
	struct str name;
	uint32_t node;
};

static int compare_roots(const void *a, const void *b)
{
	const struct root *x = a, *y = b;
	return str_cmp_natural(x->name, y->name) ?: COMPARE(x->node, y->node);
}

/* Chains the roots anew, by name. */
static void sort_roots(const struct module_tree *t, struct children *c)
{
	uint32_t n = 0;
	struct root *root = NEW_ARRAY_RAW(t->n, struct root);
	for (uint32_t i = c->first[t->n]; i != MODULE_NONE; i = c->next[i])
		root[n++] = (struct root){intern_get(&t->names, t->v[i].name), i};
	qsort(root, n, sizeof *root, compare_roots);
	c->first[t->n] = n ? root[0].node : MODULE_NONE;
	for (uint32_t i = 0; i < n; i++)
		c->next[root[i].node] = i + 1 < n ? root[i + 1].node : MODULE_NONE;
	mem_free(root);
}

static void make_order(struct module_tree *t, const struct children *c)
{
	t->order = NEW_ARRAY_RAW(t->n, uint32_t);
	uint32_t i = c->first[t->n];
	while (i != MODULE_NONE) {
		uint32_t up = t->v[i].parent;
		t->v[i].depth = up == MODULE_NONE ? 0 : t->v[up].depth + 1;
		t->order[t->n_order++] = i;
		if (c->first[i] != MODULE_NONE) {
			i = c->first[i];
			continue;
		}
		while (i != MODULE_NONE && c->next[i] == MODULE_NONE)
			i = t->v[i].parent;
		i = i == MODULE_NONE ? i : c->next[i];
	}
}

void module_tree_finish(struct module_tree *t)
{
	struct children c = list_children(t);
	sort_roots(t, &c);
	make_order(t, &c);
	children_release(&c);
	for (uint32_t k = t->n_order; k-- > 0;) {
		struct module_node *m = &t->v[t->order[k]];
		m->dev_total += m->dev_self;
		m->bwd_host_total += m->bwd_host_self;
		m->bwd_dev_total += m->bwd_dev_self;
		m->recompute_dev_total += m->recompute_dev_self;
		if (m->parent == MODULE_NONE)
			continue;
		struct module_node *up = &t->v[m->parent];
		up->dev_total += m->dev_total;
		up->bwd_host_total += m->bwd_host_total;
		up->bwd_dev_total += m->bwd_dev_total;
		up->recompute_dev_total += m->recompute_dev_total;
		if (!up->calls && !up->recompute_calls)
			up->host_total += m->host_total;
	}
}

void module_tree_path(const struct module_tree *t, uint32_t node, struct buf *b)
{
	uint32_t up[64], n = 0;
	for (uint32_t at = node; at != MODULE_NONE && n < sizeof up / sizeof *up; at = t->v[at].parent)
		up[n++] = at;
	while (n-- > 0) {
		buf_str(b, intern_get(&t->names, t->v[up[n]].name));
		buf_cstr(b, n ? "/" : "");
	}
}
