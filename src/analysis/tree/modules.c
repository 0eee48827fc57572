#include "analysis/tree/modules.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/tree/optree.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "store/reuse.h"
#include "store/torch_names.h"

/* Values of work.mod while it is being made. */
enum { NODE_UNSET = MODULE_NONE - 1, NODE_PENDING = MODULE_NONE - 2 };

struct modules_work {
	const struct profile *p;
	struct modules *m;
	const struct module_rules *rules;
	const struct step_window *in; /* NULL = everything */
	uint8_t *is_module;    /* per span */
	uint32_t *frame;       /* per span: the innermost module frame at or around it in time, on its own or a lent thread */
	uint32_t *mod;         /* per span: the module it is in, as a node of the tree */
	uint32_t *place;       /* per span: the module it counts for */
	uint8_t *phase;        /* per span: enum module_phase */
	uint32_t *lender;      /* per track */
	struct idmap python;   /* Python id -> span */
	uint32_t *of_hierarchy; /* TorchScript: per string, its node; NODE_UNSET = not asked */
};

static bool is_named(const struct modules_work *w, uint32_t span, unsigned facts)
{
	return name_is(w->p, w->p->span.name[span], facts);
}

static bool modules_in_window(const struct modules_work *w, int64_t time)
{
	return !w->in || step_window_has_host(w->in, time);
}

/* --- where modules come from ------------------------------------------------------------------------------------ */

static enum module_source find_source(const struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	enum module_source found = MODULES_NONE;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		bool range = s->kind[i] == SPAN_OP || s->kind[i] == SPAN_USER;
		if (range && is_named(w, i, NAME_MODULE_ANNOTATED))
			return MODULES_ANNOTATED;
		if (range && is_named(w, i, NAME_MODULE_LIGHTNING))
			found = MODULES_LIGHTNING;
		else if (s->kind[i] == SPAN_PYTHON && is_named(w, i, NAME_MODULE) && found != MODULES_LIGHTNING)
			found = MODULES_PYTHON;
		else if (found == MODULES_NONE && s->kind[i] == SPAN_OP && profile_arg_id(w->p, s->args[i], ARG_MODULE_HIERARCHY))
			found = MODULES_TORCHSCRIPT;
	}
	return found;
}

static void mark_modules(struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (modules_are_dotted(w->m->source))
			w->is_module[i] = is_named(w, i, w->m->source == MODULES_ANNOTATED ? NAME_MODULE_ANNOTATED : NAME_MODULE_LIGHTNING) &&
			                  (s->kind[i] == SPAN_OP || s->kind[i] == SPAN_USER);
		else if (w->m->source == MODULES_PYTHON)
			w->is_module[i] = s->kind[i] == SPAN_PYTHON && is_named(w, i, NAME_MODULE);
	}
}

/* --- Python frames ---------------------------------------------------------------------------------------------- */

static void index_python(struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint64_t n = 0;
	for (int store = 0; store < 2; store++) {
		for (uint32_t i = 0; i < s->rows.n; i++) {
			if (s->kind[i] != SPAN_PYTHON || span_ext_id(s, i) == ID_NONE)
				continue;
			min = span_ext_id(s, i) < min ? span_ext_id(s, i) : min;
			max = span_ext_id(s, i) > max ? span_ext_id(s, i) : max;
			n++;
			if (store)
				idmap_put(&w->python, span_ext_id(s, i), i);
		}
		if (!store)
			idmap_init(&w->python, min, max, n);
	}
}

/* Is a Python frame around span `i`, on its thread? near_python is filled as spans come in order. */
static bool python_around(const struct modules_work *w, uint32_t i, const uint8_t *near_python)
{
	uint32_t up = w->p->span.parent[i];
	return up != ROW_NONE && (w->p->span.kind[up] == SPAN_PYTHON || near_python[up]);
}

/* What this span is called from. Recorded parent ids are at times those of an outer or an ended frame (seen in torch 2.6), so
 * nesting in time goes first; the id serves where a thread's outermost frame was called from another thread, and only if
 * the caller was still running then. */
static uint32_t caller(const struct modules_work *w, uint32_t i, const uint8_t *near_python)
{
	const struct spans *s = &w->p->span;
	bool by_id = w->rules->parent_ids || !near_python[i];
	if (s->kind[i] == SPAN_PYTHON && s->link_id[i] != ID_NONE && by_id) {
		uint32_t up = idmap_get(&w->python, s->link_id[i]);
		if (up != IDMAP_NONE && up != i && s->start_ns[up] <= s->start_ns[i] &&
		    (w->rules->parent_ids || span_end(w->p, up) > s->start_ns[i]))
			return up;
	}
	return s->parent[i];
}

static uint32_t python_node(struct modules_work *w, uint32_t i, uint32_t parent)
{
	struct str name = profile_str(w->p, w->p->span.name[i]);
	size_t skip = sizeof TORCH_MODULE - 1;
	return module_tree_node(&w->m->tree, parent, (struct str){name.p + skip, name.n - skip}, span_aux_id(&w->p->span, i));
}

/* w->mod of every Python frame and of what its chain of callers passes through: up the chain to what is known, then down. */
static void resolve_python(struct modules_work *w)
{
	uint32_t *chain = NULL, n, cap = 0, n_spans = w->p->span.rows.n;
	uint8_t *near_python = NEW_ARRAY(n_spans, uint8_t);
	for (uint32_t i = 0; i < n_spans; i++)
		near_python[i] = python_around(w, i, near_python);
	for (uint32_t i = 0; i < n_spans; i++) {
		if (w->p->span.kind[i] != SPAN_PYTHON)
			continue;
		uint32_t at = i, node;
		for (n = 0; at != ROW_NONE && w->mod[at] == NODE_UNSET; at = caller(w, at, near_python)) {
			MEM_PUSH(chain, n, cap, at);
			w->mod[at] = NODE_PENDING;
		}
		/* A ring of parent ids is damage: cut where it closes. */
		node = at == ROW_NONE || w->mod[at] == NODE_PENDING ? MODULE_NONE : w->mod[at];
		while (n--) {
			at = chain[n];
			node = w->mod[at] = w->is_module[at] ? python_node(w, at, node) : node;
		}
	}
	for (uint32_t i = 0; i < n_spans && w->rules->parent_ids; i++)
		w->mod[i] = w->is_module[i] ? w->mod[i] : NODE_UNSET;
	mem_free(near_python);
	mem_free(chain);
}

/* --- ranges and TorchScript ------------------------------------------------------------------------------------- */

/* "[pl][module]Type: a.b.c": nodes a, b, c. */
static uint32_t dotted_node(struct modules_work *w, uint32_t i)
{
	struct module_tree *t = &w->m->tree;
	struct str name = profile_str(w->p, w->p->span.name[i]), piece;
	size_t skip = w->m->source == MODULES_ANNOTATED ? sizeof "[module]" - 1 : sizeof "[pl][module]" - 1;
	name.p += skip;
	name.n -= skip;
	struct str type = name;
	ptrdiff_t colon = str_find(name, STR(": "));
	if (colon >= 0) {
		type.n = (size_t)colon;
		name.p += colon + 2;
		name.n -= (size_t)colon + 2;
	}
	uint32_t node = MODULE_NONE;
	while (str_split(&name, '.', &piece))
		node = module_tree_node(t, node, piece, -1);
	if (node != MODULE_NONE && colon >= 0)
		t->v[node].type = intern_str(&t->names, type);
	return node;
}

/* "TOP(Net)::forward.conv(Conv2d)::forward.SELF(Conv2d)::_conv_forward": nodes TOP(Net), conv(Conv2d); SELF is its caller. */
static uint32_t torchscript_node(struct modules_work *w, struct str text)
{
	uint32_t node = MODULE_NONE;
	struct str piece;
	while (str_split(&text, '.', &piece)) {
		ptrdiff_t function = str_find(piece, STR("::"));
		if (function >= 0)
			piece.n = (size_t)function;
		if (!str_has(piece, STR("(")) || str_starts(piece, STR("SELF(")))
			continue;
		node = module_tree_node(&w->m->tree, node, piece, -1);
	}
	return node;
}

static uint32_t hierarchy_node(struct modules_work *w, uint32_t i)
{
	uint32_t text = profile_arg_id(w->p, w->p->span.args[i], ARG_MODULE_HIERARCHY);
	if (!text)
		return NODE_UNSET;
	if (w->of_hierarchy[text] == NODE_UNSET)
		w->of_hierarchy[text] = torchscript_node(w, profile_str(w->p, text));
	return w->of_hierarchy[text];
}

/* --- every span's module ---------------------------------------------------------------------------------------- */

/* Open module frames of the lending track. */
struct lent {
	uint32_t *open, n, cap;
	uint32_t next, end; /* its spans still to come */
};

static void lend_from(const struct modules_work *w, struct lent *l, uint32_t track)
{
	const struct spans *s = &w->p->span;
	uint32_t lo = FIRST_WHERE(i, 0, s->rows.n, s->track[i] >= track);
	l->n = 0;
	l->next = lo;
	for (l->end = lo; l->end < s->rows.n && s->track[l->end] == track; l->end++)
		;
}

/* The innermost lent frame around span `i`; spans come in order of their start. */
static uint32_t lent_frame(const struct modules_work *w, struct lent *l, uint32_t i)
{
	int64_t start = w->p->span.start_ns[i], end = span_end(w->p, i);
	for (; l->next < l->end && w->p->span.start_ns[l->next] <= start; l->next++) {
		if (!w->is_module[l->next])
			continue;
		MEM_PUSH(l->open, l->n, l->cap, l->next);
	}
	while (l->n && span_end(w->p, l->open[l->n - 1]) <= start)
		l->n--;
	for (uint32_t k = l->n; k-- > 0;)
		if (span_end(w->p, l->open[k]) >= end)
			return l->open[k];
	return ROW_NONE;
}

/* w->frame of every span. */
static void find_frames(struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	struct lent lent = {0};
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t lender = w->lender[s->track[i]];
		if (lender != ROW_NONE && (!i || s->track[i] != s->track[i - 1]))
			lend_from(w, &lent, lender);
		if (w->is_module[i])
			w->frame[i] = i;
		else if (lender != ROW_NONE)
			w->frame[i] = lent_frame(w, &lent, i);
		else
			w->frame[i] = s->parent[i] == ROW_NONE ? ROW_NONE : w->frame[s->parent[i]];
	}
	mem_free(lent.open);
}

/* w->mod of what is still without. */
static void resolve_rest(struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t node = NODE_UNSET, up = s->parent[i];
		if (w->lender[s->track[i]] != ROW_NONE && w->frame[i] != ROW_NONE)
			node = w->mod[w->frame[i]];
		else if (w->mod[i] != NODE_UNSET)
			continue;
		else if (modules_are_dotted(w->m->source) && w->is_module[i])
			node = dotted_node(w, i);
		else if (w->m->source == MODULES_TORCHSCRIPT && s->kind[i] == SPAN_OP)
			node = hierarchy_node(w, i);
		if (node == NODE_UNSET)
			node = up == ROW_NONE ? MODULE_NONE : w->mod[up];
		w->mod[i] = node;
	}
}

/* --- forward, backward, optimizer ------------------------------------------------------------------------------- */

static bool modules_is_backward(enum module_phase phase)
{
	return phase == PHASE_BACKWARD || phase == PHASE_ACCUMULATE || phase == PHASE_RECOMPUTE;
}

static void modules_place_span(struct modules_work *w, uint32_t i, uint32_t *last_backward)
{
	const struct spans *s = &w->p->span;
	uint32_t up = s->parent[i], forward = fwdbwd_forward(w->m->links, i);
	enum module_phase around = up == ROW_NONE ? PHASE_OUTSIDE : w->phase[up];
	enum autograd_name kind = name_autograd(w->p, w->p->span.name[i]);
	bool op = s->kind[i] == SPAN_OP;
	w->place[i] = w->mod[i];
	w->phase[i] = w->mod[i] == MODULE_NONE ? PHASE_OUTSIDE : PHASE_FORWARD;
	if (w->is_module[i]) {
		w->phase[i] = modules_is_backward(around) ? PHASE_RECOMPUTE : PHASE_FORWARD;
	} else if (forward != ROW_NONE) {
		w->place[i] = *last_backward = w->mod[forward];
		w->phase[i] = PHASE_BACKWARD;
	} else if (op && kind == AUTOGRAD_ACCUMULATE && around != PHASE_ACCUMULATE) {
		w->place[i] = *last_backward;
		w->phase[i] = PHASE_ACCUMULATE;
		w->m->accumulated++;
	} else if (op && kind == AUTOGRAD_ENGINE) {
		w->place[i] = *last_backward = MODULE_NONE;
		w->phase[i] = PHASE_BACKWARD;
	} else if (modules_is_backward(around) || around == PHASE_OPTIMIZER) {
		w->place[i] = w->place[up];
		w->phase[i] = (uint8_t)around;
	} else if (is_named(w, i, NAME_OPTIMIZER_STEP)) {
		w->place[i] = MODULE_NONE;
		w->phase[i] = PHASE_OPTIMIZER;
	}
}

static void modules_place_all(struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	uint32_t last_backward = MODULE_NONE;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			last_backward = MODULE_NONE;
		modules_place_span(w, i, &last_backward);
	}
}

/* Modules as they come. */
static void place_forward(struct modules_work *w)
{
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		w->place[i] = w->mod[i];
		w->phase[i] = w->mod[i] == MODULE_NONE ? PHASE_OUTSIDE : PHASE_FORWARD;
	}
}

/* --- figures ---------------------------------------------------------------------------------------------------- */

static struct module_node *node_of(const struct modules_work *w, uint32_t node)
{
	uint32_t live = module_tree_live(&w->m->tree, node);
	return live == MODULE_NONE ? NULL : &w->m->tree.v[live];
}

static void modules_count_calls(struct modules_work *w)
{
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		if (!w->is_module[i] || w->mod[i] == MODULE_NONE || !modules_in_window(w, w->p->span.start_ns[i]))
			continue;
		struct module_node *n = &w->m->tree.v[w->mod[i]];
		if (w->phase[i] == PHASE_RECOMPUTE)
			n->recompute_calls++;
		else
			n->calls++;
	}
}

/* Directly in `frame` (or, where there are no frames, in its module): no op of the same around it in time. */
static bool is_direct(const struct modules_work *w, uint32_t i, uint32_t frame)
{
	const struct spans *s = &w->p->span;
	uint32_t up = s->parent[i];
	uint32_t op = up == ROW_NONE || s->kind[up] == SPAN_OP ? up : s->op[up];
	if (op == ROW_NONE)
		return true;
	return w->m->source == MODULES_TORCHSCRIPT ? w->mod[op] != w->mod[i] : w->frame[op] != frame;
}

/* Takes time directly inside `frame` from the own time of its module, where the frame is one of those that count. */
static void subtract(struct modules_work *w, uint32_t frame, int64_t ns)
{
	bool counts = frame != ROW_NONE && w->phase[frame] == PHASE_FORWARD && modules_in_window(w, w->p->span.start_ns[frame]);
	struct module_node *n = counts ? node_of(w, w->mod[frame]) : NULL;
	if (n)
		n->host_self -= ns;
}

static void add_frame(struct modules_work *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	struct module_node *n = node_of(w, w->mod[i]);
	uint32_t around = s->parent[i] == ROW_NONE ? ROW_NONE : w->frame[s->parent[i]];
	if (!n || w->phase[i] != PHASE_FORWARD)
		return;
	if (modules_in_window(w, s->start_ns[i])) {
		n->host_total += span_host_ns(w->p, i);
		n->host_self += span_host_ns(w->p, i);
	}
	if (is_direct(w, i, around))
		subtract(w, around, span_host_ns(w->p, i));
}

static void modules_add_op(struct modules_work *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	struct module_node *n = node_of(w, w->mod[i]);
	if (!is_direct(w, i, w->frame[i]))
		return;
	subtract(w, w->frame[i], span_host_ns(w->p, i));
	if (!n || w->phase[i] != PHASE_FORWARD || !modules_in_window(w, s->start_ns[i]))
		return;
	n->operators += optree_classify(profile_str(w->p, s->name[i]), SPAN_OP) == NODE_OP;
	if (w->m->source == MODULES_TORCHSCRIPT)
		n->host_total += span_host_ns(w->p, i);
}

/* An API call inside another is not subtracted twice: *covered is where the last one ended. */
static void modules_add_call(struct modules_work *w, uint32_t i, int64_t *covered)
{
	int64_t start = w->p->span.start_ns[i], end = span_end(w->p, i);
	start = start < *covered ? *covered : start;
	if (start < end && is_direct(w, i, w->frame[i]))
		subtract(w, w->frame[i], end - start);
	*covered = end > *covered ? end : *covered;
}

static void add_backward(struct modules_work *w, uint32_t i)
{
	uint32_t up = w->p->span.parent[i];
	struct module_node *n = node_of(w, w->place[i]);
	if (n && (w->phase[i] == PHASE_BACKWARD || w->phase[i] == PHASE_ACCUMULATE) && (up == ROW_NONE || !modules_is_backward(w->phase[up])))
		n->bwd_host_self += span_host_ns(w->p, i);
}

/* What begins outside the window takes time from a frame that began within it, too: what is inside a call is not the call's own. */
static void modules_add_host(struct modules_work *w)
{
	const struct spans *s = &w->p->span;
	int64_t covered = INT64_MIN;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			covered = INT64_MIN;
		if (w->is_module[i])
			add_frame(w, i);
		else if (s->kind[i] == SPAN_OP)
			modules_add_op(w, i);
		else if (s->kind[i] == SPAN_CALL && !w->rules->calls_are_own)
			modules_add_call(w, i, &covered);
		if (modules_in_window(w, s->start_ns[i]))
			add_backward(w, i);
	}
}

static void modules_add_gpu(struct modules_work *w, uint32_t g)
{
	const struct gpu_ops *gpu = &w->p->gpu_op;
	struct modules *m = w->m;
	uint32_t from = gpu->op[g] != ROW_NONE ? gpu->op[g] : gpu->call[g];
	int64_t dur = gpu->dur_ns[g];
	/* What no recorded call launched was launched before the recording: it belongs to no window within it. */
	if (from == ROW_NONE ? w->in != NULL : !modules_in_window(w, w->p->span.start_ns[from]))
		return;
	struct module_node *n = from == ROW_NONE ? NULL : node_of(w, w->place[from]);
	if (from == ROW_NONE) {
		m->dev_unattributed += dur;
	} else if (w->phase[from] == PHASE_ACCUMULATE && name_is(w->p, gpu->name[g], NAME_COMM_KERNEL)) {
		/* Launched by a hook on the gradient, for a whole bucket of parameters of many modules. */
		m->dev_gradient_comm += dur;
	} else if (w->phase[from] == PHASE_OPTIMIZER) {
		m->dev_optimizer += dur;
	} else if (!n) {
		m->dev_outside += dur;
		m->dev_backward_unlinked += modules_is_backward(w->phase[from]) ? dur : 0;
	} else if (modules_is_backward(w->phase[from])) {
		n->bwd_dev_self += dur;
		n->recompute_dev_self += w->phase[from] == PHASE_RECOMPUTE ? dur : 0;
		m->dev_backward += dur;
	} else {
		n->dev_self += dur;
		m->dev_forward += dur;
	}
}

/* The op tree decides which work an op launched. */
static void add_gpu_of_tree(struct modules_work *w)
{
	struct optree *t = optree_new(w->p, w->rules->optree);
	for (uint32_t k = 0; k < t->n; k++) {
		struct module_node *n = node_of(w, w->mod[t->span[k]]);
		if (!modules_in_window(w, w->p->span.start_ns[t->span[k]]))
			continue;
		if (n)
			n->dev_self += t->dev_self[k];
		*(n ? &w->m->dev_forward : &w->m->dev_outside) += t->dev_self[k];
	}
	w->m->dev_unattributed = t->unattributed_ns;
	optree_free(t);
}

static void modules_measure(struct modules_work *w)
{
	if (w->rules->forward_only) {
		place_forward(w);
		modules_count_calls(w);
	} else {
		w->m->links = fwdbwd_new(w->p);
		modules_place_all(w);
		modules_count_calls(w);
		w->m->joined = module_tree_join_recomputed(&w->m->tree);
	}
	if (w->rules->optree)
		add_gpu_of_tree(w);
	for (uint32_t g = 0; !w->rules->optree && g < w->p->gpu_op.rows.n; g++)
		modules_add_gpu(w, g);
	modules_add_host(w);
	module_tree_finish(&w->m->tree);
}

static void resolve(struct modules_work *w)
{
	uint32_t n = w->p->span.rows.n;
	w->is_module = NEW_ARRAY(n, uint8_t);
	w->phase = NEW_ARRAY(n, uint8_t);
	w->place = mem_filled(n, MODULE_NONE);
	w->frame = mem_filled(n, ROW_NONE);
	w->mod = mem_filled(n, NODE_UNSET);
	mark_modules(w);
	w->lender = module_tracks(w->p, w->is_module, &w->m->lent_tracks, &w->m->unlent_tracks);
	if (w->m->source == MODULES_PYTHON) {
		index_python(w);
		resolve_python(w);
	} else if (w->m->source == MODULES_TORCHSCRIPT) {
		w->of_hierarchy = mem_filled(w->p->strings.n, NODE_UNSET);
	}
	find_frames(w);
	resolve_rest(w);
}

const struct module_rules modules_own = {0};

static void modules_release(void *result)
{
	struct modules *m = result;
	module_tree_release(&m->tree);
	fwdbwd_free(m->links);
	mem_free(m->place);
	mem_free(m->phase);
	mem_free(m->is_module);
	mem_free(m);
}

void modules_free(struct modules *m)
{
	if (m && !m->is_kept)
		modules_release(m);
}

static const char modules_window_kept[] = "modules of a window";

/* Those of everything are kept, under their rules, and those of the first window that was asked for. */
struct modules *modules_new(const struct profile *p, const struct module_rules *rules, const struct step_window *in)
{
	profile_assert_kept(p, LEFT_AUX_IDS | LEFT_FRAMES);
	const void *what = !in ? rules : rules == &modules_own ? (const void *)modules_window_kept : NULL;
	struct modules *kept = what ? reuse_find(p, what) : NULL;
	if (kept && (!in || step_window_is(&kept->in, in)))
		return kept;
	struct modules *m = NEW(struct modules);
	if (in)
		m->in = *in;
	struct modules_work w = {.p = p, .m = m, .rules = rules, .in = in};
	module_tree_init(&m->tree);
	m->source = find_source(&w);
	if (m->source != MODULES_NONE) {
		resolve(&w);
		modules_measure(&w);
	}
	m->place = w.place;
	m->phase = w.phase;
	m->is_module = w.is_module;
	idmap_release(&w.python);
	mem_free(w.frame);
	mem_free(w.mod);
	mem_free(w.lender);
	mem_free(w.of_hierarchy);
	if (what && !kept)
		reuse_keep(p, what, m, modules_release, &m->is_kept);
	return m;
}
