#include "predecessors/tb_plugin/diff_tree.h"

#include "analysis/analysis.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/search.h"
#include "predecessors/tb_plugin/rules.h"
#include "store/torch_names.h"

#include <stdlib.h>

void tb_push(struct tb_list *l, uint32_t x)
{
	MEM_PUSH(l->v, l->n, l->cap, x);
}

struct str tb_name(const struct tb_tree *t, uint32_t node)
{
	return intern_get(&t->names, t->v[node].name);
}

/* ---- nodes ---- */

static bool tb_is_category(const struct profile *p, uint32_t span, const char *name)
{
	const struct str cat = profile_cat(p, p->span.cat[span]);
	return cat.n == strlen(name) && str_has_nocase(cat, str_from(name));
}

static bool tb_is_runtime(const struct profile *p, uint32_t call)
{
	static const char *const categories[] = {"cuda_runtime", "runtime", "mtia_runtime", "glow_runtime", "xpu_runtime", "privateuse1_runtime"};
	return ANY_WHERE(i, 0, sizeof categories / sizeof *categories, tb_is_category(p, call, categories[i]));
}

/* Whether the span is a node, and which. */
static bool tb_classify(const struct profile *p, uint32_t i, struct tb_node *x)
{
	const struct str name = profile_str(p, p->span.name[i]);
	const uint8_t kind = p->span.kind[i];
	*x = (struct tb_node){.start_ns = p->span.start_ns[i], .end_ns = span_end(p, i), .ext_id = span_ext_id(&p->span, i)};
	if (kind == SPAN_PYTHON) {
		x->kind = TB_MODULE;
		x->ext_id = ID_NONE;
		return p->span.aux_id[i] >= 0;
	}
	if (kind != SPAN_OP && kind != SPAN_USER && kind != SPAN_GPU_USER) /* the plugin takes a stream for a thread */
		return false;
	if (str_starts(name, STR("ProfilerStep#")))
		x->kind = TB_STEP;
	else if ((str_starts(name, STR("enumerate(DataLoader)#")) && str_ends(name, STR(".__next__"))) || str_starts(name, STR("enumerate(DataPipe)#")))
		x->kind = TB_LOADER;
	else if (str_starts(name, STR("Optimizer.step")))
		x->kind = TB_OPTIMIZER;
	else if (kind != SPAN_OP && tb_comm_of(name) == TB_COMMS)
		return false;
	x->is_op = tb_is_category(p, i, "cpu_op") || tb_is_category(p, i, "operator");
	x->counts = x->kind == TB_OP && x->is_op && !str_eqc(name, "DataParallel.forward") && !str_eqc(name, "DistributedDataParallel.forward") && !str_starts(name, STR("Optimizer."));
	return true;
}

struct tb_found {
	struct tb_node node;
	uint32_t tid, row;
};

static int tb_by_start(const void *a, const void *b)
{
	const struct tb_found *x = a, *y = b;
	if (x->node.start_ns != y->node.start_ns)
		return x->node.start_ns < y->node.start_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int tb_by_nesting(const void *a, const void *b)
{
	const struct tb_found *x = a, *y = b;
	if (x->node.start_ns != y->node.start_ns)
		return x->node.start_ns < y->node.start_ns ? -1 : 1;
	if (x->node.end_ns != y->node.end_ns)
		return x->node.end_ns > y->node.end_ns ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Threads in order of their first node, which has the id of the thread without that of the process; their nodes in order of start. */
static void tb_take_nodes(struct tb_tree *t, const struct profile *p)
{
	struct tb_found *found = NULL;
	uint32_t n = 0, cap = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		struct tb_found x = {.tid = p->track.tid_text[p->span.track[i]], .row = i};
		if (!tb_classify(p, i, &x.node))
			continue;
		x.node.tid = x.tid;
		x.node.name = intern_str(&t->names, profile_str(p, p->span.name[i]));
		MEM_PUSH(found, n, cap, x);
	}
	if (n)
		qsort(found, n, sizeof *found, tb_by_start);
	struct intern tids;
	intern_init(&tids);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = intern_put(&tids, (const char *)&found[i].tid, sizeof found[i].tid) - 1;
		if (k == t->n_threads)
			MEM_PUSH(t->thread, t->n_threads, t->cap_threads, (struct tb_thread){.tid = found[i].tid});
		t->thread[k].n++;
		t->thread[k].has_step |= found[i].node.kind == TB_STEP;
	}
	for (uint32_t k = 0; k < t->n_threads; k++)
		t->thread[k].first = k ? t->thread[k - 1].first + t->thread[k - 1].n : 0;
	struct tb_found *sorted = NEW_ARRAY(n, struct tb_found);
	uint32_t *at = NEW_ARRAY(t->n_threads, uint32_t);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = intern_put(&tids, (const char *)&found[i].tid, sizeof found[i].tid) - 1;
		sorted[t->thread[k].first + at[k]++] = found[i];
	}
	for (uint32_t k = 0; k < t->n_threads; k++)
		qsort(sorted + t->thread[k].first, t->thread[k].n, sizeof *sorted, tb_by_nesting);
	MEM_GROW(t->v, t->cap, n);
	for (; t->n < n; t->n++)
		t->v[t->n] = sorted[t->n].node;
	intern_release(&tids);
	mem_free(at);
	mem_free(sorted);
	mem_free(found);
}

/* API calls belong to the first node with their external id, also calls without one to the first node without one. */
static void tb_take_calls(struct tb_tree *t, const struct profile *p)
{
	struct intern ids;
	struct tb_list owner = {0};
	int64_t *dev_ns = NEW_ARRAY(p->span.rows.n, int64_t);
	intern_init(&ids);
	for (uint32_t i = 0; i < t->n; i++)
		if (intern_put(&ids, (const char *)&t->v[i].ext_id, sizeof t->v[i].ext_id) - 1 == owner.n)
			tb_push(&owner, i);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.call[g] != ROW_NONE)
			dev_ns[p->gpu_op.call[g]] += p->gpu_op.dur_ns[g];
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_CALL || !tb_is_runtime(p, i))
			continue;
		const int64_t ext_id = span_ext_id(&p->span, i);
		const uint32_t id = intern_find(&ids, (struct str){(const char *)&ext_id, sizeof ext_id});
		if (id == INTERN_NONE)
			continue;
		struct tb_node *x = &t->v[owner.v[id - 1]];
		x->calls_ns += p->span.dur_ns[i];
		x->own_dev_ns += dev_ns[i];
	}
	intern_release(&ids);
	mem_free(owner.v);
	mem_free(dev_ns);
}

/* What overlaps partially is dropped. */
static void tb_nest(struct tb_tree *t, struct tb_thread *thread)
{
	struct tb_list open = {0};
	for (uint32_t i = thread->first; i < thread->first + thread->n; i++) {
		while (open.n && t->v[i].start_ns >= t->v[open.v[open.n - 1]].end_ns)
			open.n--;
		if (open.n && t->v[i].end_ns > t->v[open.v[open.n - 1]].end_ns)
			continue;
		tb_push(open.n ? &t->v[open.v[open.n - 1]].kids : &thread->kids, i);
		tb_push(&open, i);
	}
	mem_free(open.v);
	thread->start_ns = t->v[thread->kids.v[0]].start_ns;
	thread->end_ns = t->v[thread->kids.v[thread->kids.n - 1]].end_ns;
}

/* A node whose only child has its name takes the child's children and calls; its own calls are lost, as in the plugin. Parents stand before their children. */
static void tb_fold(struct tb_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct tb_node *x = &t->v[i];
		while (x->kids.n == 1 && x->is_op && t->v[x->kids.v[0]].is_op && x->name == t->v[x->kids.v[0]].name) {
			struct tb_node *kid = &t->v[x->kids.v[0]];
			mem_free(x->kids.v);
			x->kids = kid->kids;
			x->calls_ns = kid->calls_ns;
			x->own_dev_ns = kid->own_dev_ns;
			kid->kids = (struct tb_list){0};
		}
	}
}

static void tb_fill(struct tb_tree *t, uint32_t node)
{
	struct tb_node *x = &t->v[node];
	x->own_host_ns = x->end_ns - x->start_ns - x->calls_ns;
	x->dev_ns = x->own_dev_ns;
	for (uint32_t k = 0; k < x->kids.n; k++) {
		const struct tb_node *kid = &t->v[x->kids.v[k]];
		x->own_host_ns -= kid->end_ns - kid->start_ns;
		x->dev_ns += kid->dev_ns;
	}
}

/* ---- the backward pass ---- */

struct tb_backward {
	struct tb_tree *t;
	struct tb_list modules;      /* outermost ones */
	struct tb_list found;        /* ranges of the autograd engine that stand at the top of a thread or step */
	struct intern starts;        /* start of a node inside these -> */
	struct tb_list parent;       /* the node around it, the first one */
	struct tb_list known, engine; /* by start: whether the engine's range around it is known, and which; ROW_NONE = there is none */
	struct tb_list group_first, group_n, group_of; /* of `found`: a range and the AccumulateGrads behind it; by node: its group + 1, where it is the first */
	struct intern forwards;      /* start of a forward op -> */
	struct tb_list group_for;    /* its group */
	struct tb_list group_used;   /* how often the group was put into a module */
	struct tb_list made;         /* outermost backward modules */
};

static bool tb_is_engine(const struct tb_tree *t, uint32_t node)
{
	return str_starts(tb_name(t, node), (struct str){TORCH_ENGINE, sizeof TORCH_ENGINE - 2}); /* without the blank */
}

static uint32_t tb_at(struct intern *times, int64_t ns)
{
	return intern_put(times, (const char *)&ns, sizeof ns) - 1;
}

static uint32_t tb_find(const struct intern *times, int64_t ns)
{
	const uint32_t id = intern_find(times, (struct str){(const char *)&ns, sizeof ns});
	return id == INTERN_NONE ? ROW_NONE : id - 1;
}

/* Takes the engine's ranges out of the list, if there are modules at all. */
static void tb_take_engine(struct tb_backward *b, struct tb_list *kids)
{
	uint32_t kept = 0;
	for (uint32_t k = 0; k < kids->n; k++) {
		const uint32_t x = kids->v[k];
		if (b->t->v[x].kind == TB_OP && tb_is_engine(b->t, x))
			tb_push(&b->found, x);
		else
			kids->v[kept++] = x;
	}
	kids->n = kept;
}

/* Outermost modules of a thread, in order: at its top, in steps, and in steps within these. */
static void tb_find_modules(struct tb_backward *b, const struct tb_list *kids)
{
	struct tb_list open = {0};
	for (uint32_t k = kids->n; k-- > 0;)
		tb_push(&open, kids->v[k]);
	while (open.n) {
		const uint32_t x = open.v[--open.n];
		const struct tb_node *node = &b->t->v[x];
		if (node->kind == TB_MODULE)
			tb_push(&b->modules, x);
		for (uint32_t k = node->kids.n; node->kind == TB_STEP && k-- > 0;)
			tb_push(&open, node->kids.v[k]);
	}
	mem_free(open.v);
}

static void tb_take_engines(struct tb_backward *b)
{
	struct tb_tree *t = b->t;
	struct tb_list open = {0};
	for (uint32_t k = 0; k < t->n_threads; k++) {
		tb_take_engine(b, &t->thread[k].kids);
		for (uint32_t i = t->thread[k].kids.n; i-- > 0;)
			tb_push(&open, t->thread[k].kids.v[i]);
		while (open.n) {
			struct tb_node *x = &t->v[open.v[--open.n]];
			if (x->kind != TB_STEP)
				continue;
			tb_take_engine(b, &x->kids);
			for (uint32_t i = x->kids.n; i-- > 0;)
				tb_push(&open, x->kids.v[i]);
		}
	}
	mem_free(open.v);
}

static void tb_note_parents(struct tb_backward *b)
{
	struct tb_list open = {0};
	for (uint32_t i = 0; i < b->found.n; i++) {
		tb_push(&open, b->found.v[i]);
		while (open.n) {
			const uint32_t x = open.v[--open.n];
			const struct tb_list *kids = &b->t->v[x].kids;
			for (uint32_t k = 0; k < kids->n; k++)
				if (tb_at(&b->starts, b->t->v[kids->v[k]].start_ns) == b->parent.n) {
					tb_push(&b->parent, x);
					tb_push(&b->known, 0);
					tb_push(&b->engine, ROW_NONE);
				}
			for (uint32_t k = kids->n; k-- > 0;)
				tb_push(&open, kids->v[k]);
		}
	}
	mem_free(open.v);
}

static void tb_group(struct tb_backward *b)
{
	for (uint32_t i = 0; i < b->t->n; i++)
		tb_push(&b->group_of, 0);
	for (uint32_t i = 0; i < b->found.n; i++) {
		if (str_eqc(tb_name(b->t, b->found.v[i]), TORCH_ENGINE "torch::autograd::AccumulateGrad") && b->group_first.n) {
			b->group_n.v[b->group_n.n - 1]++;
			continue;
		}
		tb_push(&b->group_first, i);
		tb_push(&b->group_n, 1);
		tb_push(&b->group_used, 0);
		b->group_of.v[b->found.v[i]] = b->group_first.n;
	}
}

/* The engine's range around what begins at a start (ROW_NONE = none such). Starts on the way to it know the way afterwards, so that all walks together take linear time. */
static uint32_t tb_engine_around(struct tb_backward *b, uint32_t start)
{
	struct tb_list way = {0};
	uint32_t x = ROW_NONE;
	while (start != ROW_NONE && !b->known.v[start]) {
		tb_push(&way, start);
		b->known.v[start] = 1;
		x = b->parent.v[start];
		if (tb_is_engine(b->t, x))
			break;
		start = tb_find(&b->starts, b->t->v[x].start_ns);
		x = ROW_NONE;
	}
	if (start != ROW_NONE && x == ROW_NONE)
		x = b->engine.v[start]; /* known, or in a circle: none */
	for (uint32_t i = 0; i < way.n; i++)
		b->engine.v[way.v[i]] = x;
	mem_free(way.v);
	return x;
}

/* Arrows `fwdbwd` lead from the start of a forward op to that of a backward op; of several with one id, or from one place, the last counts. */
static void tb_follow_arrows(struct tb_backward *b, const struct profile *p)
{
	struct intern ids;
	int64_t *time_ns[2] = {NEW_ARRAY(p->flow.rows.n + 1, int64_t), NEW_ARRAY(p->flow.rows.n + 1, int64_t)};
	bool *has[2] = {NEW_ARRAY(p->flow.rows.n + 1, bool), NEW_ARRAY(p->flow.rows.n + 1, bool)};
	intern_init(&ids);
	for (uint32_t i = 0; i < p->flow.rows.n; i++) {
		if (!str_eqc(profile_cat(p, p->flow.cat[i]), "fwdbwd") || p->flow.phase[i] == 't')
			continue;
		const uint32_t id = tb_at(&ids, p->flow.id[i]), end = p->flow.phase[i] == 'f';
		time_ns[end][id] = p->flow.time_ns[i];
		has[end][id] = true;
	}
	for (uint32_t i = 0; i + 1 < ids.n; i++) {
		if (!has[0][i] || !has[1][i])
			continue;
		const uint32_t x = tb_engine_around(b, tb_find(&b->starts, time_ns[1][i]));
		if (x == ROW_NONE || !b->group_of.v[x])
			continue;
		const uint32_t at = tb_at(&b->forwards, time_ns[0][i]);
		if (at == b->group_for.n)
			tb_push(&b->group_for, 0);
		b->group_for.v[at] = b->group_of.v[x] - 1;
		b->group_of.v[x] = 0; /* a group has one forward op */
	}
	intern_release(&ids);
	for (int i = 0; i < 2; i++) {
		mem_free(time_ns[i]);
		mem_free(has[i]);
	}
}

/* By start, the longer first; equal ones stay in order. */
static void tb_sort(struct tb_tree *t, struct tb_list *l)
{
	struct tb_found *found = NEW_ARRAY(l->n, struct tb_found);
	for (uint32_t i = 0; i < l->n; i++)
		found[i] = (struct tb_found){.node = {.start_ns = t->v[l->v[i]].start_ns, .end_ns = t->v[l->v[i]].end_ns, .name = l->v[i]}, .row = i};
	if (l->n)
		qsort(found, l->n, sizeof *found, tb_by_nesting);
	for (uint32_t i = 0; i < l->n; i++)
		l->v[i] = found[i].node.name;
	mem_free(found);
}

/* A backward module lasts from the first to the last of what is in it. One without anything keeps the time of its forward pass. */
static void tb_end_backward(struct tb_tree *t, uint32_t node)
{
	struct tb_list *kids = &t->v[node].kids;
	if (!kids->n)
		return;
	tb_sort(t, kids);
	t->v[node].start_ns = t->v[kids->v[0]].start_ns;
	t->v[node].end_ns = t->v[kids->v[kids->n - 1]].end_ns;
	t->v[node].tid = t->v[kids->v[0]].tid;
	tb_fill(t, node);
}

static uint32_t tb_add_backward(struct tb_tree *t, uint32_t module)
{
	struct buf name = {0};
	buf_printf(&name, STR_FMT ".backward", STR_ARG(tb_name(t, module)));
	const struct tb_node x = {.kind = TB_BACKWARD, .start_ns = t->v[module].start_ns, .end_ns = t->v[module].end_ns, .tid = t->v[module].tid, .name = intern_str(&t->names, buf_view(&name))};
	buf_release(&name);
	MEM_PUSH(t->v, t->n, t->cap, x);
	return t->n - 1;
}

struct tb_visit {
	uint32_t node, kid, backward; /* the child that is next; the backward module that is filled, ROW_NONE = none */
};

/* Ops within each other that begin at the same moment have the same arrow: the plugin counts its group for each of them. So many are followed. */
enum { TB_GROUP_USES = 16 };

/* The backward pass of a module: that of its modules, and the groups of the forward ops directly in it or in ops of it. */
static void tb_build_backward(struct tb_backward *b, uint32_t module)
{
	struct tb_visit *open = NULL;
	size_t n = 0, cap = 0;
	const uint32_t outer = tb_add_backward(b->t, module);
	tb_push(&b->made, outer);
	MEM_PUSH(open, n, cap, (struct tb_visit){module, 0, outer});
	while (n) {
		struct tb_visit *x = &open[n - 1];
		if (x->kid == b->t->v[x->node].kids.n) {
			if (b->t->v[x->node].kind == TB_MODULE)
				tb_end_backward(b->t, x->backward);
			n--;
			continue;
		}
		const uint32_t kid = b->t->v[x->node].kids.v[x->kid++];
		uint32_t backward = x->backward;
		if (b->t->v[kid].counts) {
			const uint32_t at = tb_find(&b->forwards, b->t->v[kid].start_ns), group = at == ROW_NONE ? ROW_NONE : b->group_for.v[at];
			for (uint32_t i = 0; group != ROW_NONE && b->group_used.v[group] < TB_GROUP_USES && i < b->group_n.v[group]; i++)
				tb_push(&b->t->v[backward].kids, b->found.v[b->group_first.v[group] + i]);
			if (group != ROW_NONE)
				b->group_used.v[group]++;
		}
		if (b->t->v[kid].kind == TB_MODULE) {
			const uint32_t inner = tb_add_backward(b->t, kid);
			tb_push(&b->t->v[backward].kids, inner);
			backward = inner;
		}
		MEM_PUSH(open, n, cap, (struct tb_visit){kid, 0, backward});
	}
	mem_free(open);
}

static void tb_insert(struct tb_list *l, uint32_t at, uint32_t x)
{
	tb_push(l, x);
	memmove(l->v + at + 1, l->v + at, (l->n - 1 - at) * sizeof *l->v);
	l->v[at] = x;
}

/* Each backward module becomes a child of the innermost node around its beginning, as the plugin looks for one: forward from where the one before went. */
static void tb_insert_all(struct tb_tree *t, struct tb_thread *main, const struct tb_list *made)
{
	struct tb_visit *stack = NULL;
	size_t depth = 0, cap = 0;
	enum { ROOT = ROW_NONE - 1 };
	uint32_t node = ROOT, at = 0;
	for (uint32_t i = 0; i < made->n && node != ROW_NONE;) {
		const struct tb_node *m = &t->v[made->v[i]];
		const int64_t start_ns = node == ROOT ? main->start_ns : t->v[node].start_ns, end_ns = node == ROOT ? main->end_ns : t->v[node].end_ns;
		if (m->end_ns < start_ns) {
			i++;
			continue;
		}
		if (m->start_ns > end_ns) {
			node = depth ? stack[depth - 1].node : ROW_NONE;
			at = depth ? stack[depth - 1].kid + 1 : 0;
			depth -= depth > 0;
			continue;
		}
		for (const struct tb_list *kids;;) {
			kids = node == ROOT ? &main->kids : &t->v[node].kids;
			if (at >= kids->n || m->end_ns < t->v[kids->v[at]].start_ns)
				break;
			if (m->start_ns >= t->v[kids->v[at]].end_ns) {
				at++;
				continue;
			}
			MEM_PUSH(stack, depth, cap, (struct tb_visit){.node = node, .kid = at});
			node = kids->v[at];
			at = 0;
		}
		tb_insert(node == ROOT ? &main->kids : &t->v[node].kids, at++, made->v[i++]);
	}
	mem_free(stack);
}

/* The last thread with steps; else the longest but the one that the autograd engine uses. */
static struct tb_thread *tb_main_thread(struct tb_tree *t)
{
	struct tb_thread *main = NULL;
	uint32_t engine = ROW_NONE;
	for (uint32_t k = 0; k < t->n_threads; k++)
		if (t->thread[k].has_step)
			main = &t->thread[k];
	for (uint32_t k = 0; k < t->n_threads && engine == ROW_NONE && !main; k++)
		engine = ANY_WHERE(i, 0, t->thread[k].kids.n, tb_is_engine(t, t->thread[k].kids.v[i])) ? k : ROW_NONE;
	for (uint32_t k = 0; k < t->n_threads && (!main || !main->has_step); k++)
		if ((k != engine || t->n_threads == 1) && (!main || t->thread[k].end_ns - t->thread[k].start_ns > main->end_ns - main->start_ns))
			main = &t->thread[k];
	return main;
}

static void tb_add_backward_pass(struct tb_tree *t, const struct profile *p)
{
	struct tb_backward b = {.t = t};
	struct tb_thread *main = tb_main_thread(t);
	for (uint32_t k = 0; k < t->n_threads; k++)
		tb_find_modules(&b, &t->thread[k].kids);
	if (!b.modules.n || !main || !ANY_WHERE(i, 0, p->flow.rows.n, str_eqc(profile_cat(p, p->flow.cat[i]), "fwdbwd"))) {
		mem_free(b.modules.v);
		return;
	}
	intern_init(&b.starts);
	intern_init(&b.forwards);
	tb_take_engines(&b);
	tb_note_parents(&b);
	tb_group(&b);
	tb_follow_arrows(&b, p);
	for (uint32_t i = 0; i < b.modules.n && b.group_for.n; i++)
		tb_build_backward(&b, b.modules.v[i]);
	tb_sort(t, &b.made);
	tb_insert_all(t, main, &b.made);
	intern_release(&b.starts);
	intern_release(&b.forwards);
	struct tb_list *const lists[] = {&b.modules, &b.found, &b.parent, &b.known, &b.engine, &b.group_used, &b.group_first, &b.group_n, &b.group_of, &b.group_for, &b.made};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		mem_free(lists[i]->v);
}

/* ---- the tree ---- */

struct tb_tree *tb_tree_new(const struct profile *p, struct err *e)
{
	struct tb_tree *t = NEW(struct tb_tree);
	intern_init(&t->names);
	tb_take_nodes(t, p);
	tb_take_calls(t, p);
	for (uint32_t k = 0; k < t->n_threads; k++)
		tb_nest(t, &t->thread[k]);
	tb_fold(t);
	for (uint32_t i = t->n; i-- > 0;)
		tb_fill(t, i);
	tb_add_backward_pass(t, p);
	const uint32_t first = FIRST_WHERE(k, 0, t->n_threads, k + 1 == t->n_threads || t->thread[k].kids.n);
	if (first == t->n_threads || !t->thread[first].kids.n) {
		err_set(e, ERR_DATA, "%s: no operators", p->input_path.p);
		tb_tree_free(t);
		return NULL;
	}
	t->root = first;
	const struct tb_list *kids = &t->thread[first].kids;
	const bool steps = ANY_WHERE(i, 0, kids->n, t->v[kids->v[i]].kind == TB_STEP);
	for (uint32_t i = 0; i < kids->n; i++) {
		const struct tb_node *x = &t->v[kids->v[i]];
		for (uint32_t k = 0; steps && x->kind == TB_STEP && k < x->kids.n; k++)
			tb_push(&t->top, x->kids.v[k]);
		if (!steps)
			tb_push(&t->top, kids->v[i]);
	}
	return t;
}

void tb_tree_free(struct tb_tree *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		mem_free(t->v[i].kids.v);
	for (uint32_t k = 0; k < t->n_threads; k++)
		mem_free(t->thread[k].kids.v);
	mem_free(t->v);
	mem_free(t->thread);
	mem_free(t->top.v);
	intern_release(&t->names);
	mem_free(t);
}
