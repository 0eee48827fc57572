#include "analysis/tree/layers.h"

#include "analysis/tree/modules.h"
#include "base/buf.h"
#include "base/mem.h"
#include "store/reuse.h"

/* A layer nested deeper than this counts for the layer around it: paths stay short whatever the input. */
enum { DEPTH_MAX = 64 };

enum { NOT_LOOKED = LAYER_NONE - 1 };

struct layers_work {
	const struct profile *p;
	struct layers *l;
	struct intern keys;     /* (parent layer, id of the name) -> layer + 1 */
	struct buf path;
	uint32_t *of_stack;     /* string id of a function stack -> layer of the stack; NOT_LOOKED */
};

/* The layer `name` inside `parent`; a new one where there is none yet. */
static uint32_t layer_at(struct layers_work *w, uint32_t parent, struct str name, uint32_t type, char joint)
{
	struct layers *l = w->l;
	uint32_t key[2] = {parent, intern_str(&l->names, name)}, depth = 0;
	for (uint32_t up = parent; up != LAYER_NONE; up = l->v[up].parent)
		if (++depth >= DEPTH_MAX)
			return parent;
	uint32_t at = intern_put_key(&w->keys, key, sizeof key) - 1;
	if (at < l->n)
		return at;
	buf_clear(&w->path);
	if (parent != LAYER_NONE) {
		buf_str(&w->path, intern_get(&l->names, l->v[parent].name));
		buf_char(&w->path, joint);
	}
	buf_str(&w->path, name);
	MEM_GROW(l->v, l->cap, at + 1);
	l->v[at] = (struct layer){parent, type, intern_str(&l->names, buf_view(&w->path))};
	l->n = at + 1;
	return at;
}

/* --- ranges ----------------------------------------------------------------------------------------------------- */

/* The NAME in "layer:NAME" or "layer:NAME:more"; empty = the range is not of a layer. */
static struct str layers_range_name(struct str text)
{
	struct str piece;
	if (!str_starts(text, STR("layer:")))
		return (struct str){"", 0};
	text.p += sizeof "layer:" - 1;
	text.n -= sizeof "layer:" - 1;
	return str_split(&text, ':', &piece) ? piece : (struct str){"", 0};
}

static bool layers_is_range(const struct profile *p, uint32_t i)
{
	const struct spans *s = &p->span;
	return (s->kind[i] == SPAN_USER || s->kind[i] == SPAN_OP) && layers_range_name(profile_str(p, s->name[i])).n;
}

/* --- PyProf's module markers ------------------------------------------------------------------------------------ */

static struct str last_word(struct str s)
{
	for (size_t i = s.n; i-- > 0;)
		if (s.p[i] == '.')
			return (struct str){s.p + i + 1, s.n - i - 1};
	return s;
}

static bool is_marker(const struct profile *p, uint32_t i)
{
	const struct spans *s = &p->span;
	struct str module, repr;
	return s->kind[i] == SPAN_MARKER && profile_arg(p, s->args[i], ARG_MARKER_REPR, &repr) && profile_arg(p, s->args[i], ARG_MARKER_MODULE, &module) && module.n;
}

/* Writes "Linear(in_features=4, bias=False)": what the module prints of itself. Where the marker has only the module's arguments (extra_repr), the class
 * is put before them; where it has nothing, the name is the class. */
static void marker_name(struct buf *out, struct str class, struct str repr)
{
	bool whole = str_starts(repr, class) && (repr.n == class.n || repr.p[class.n] == '(');
	if (whole || !repr.n)
		buf_str(out, whole ? repr : class);
	else
		buf_printf(out, STR_FMT "(" STR_FMT ")", STR_ARG(class), STR_ARG(repr));
}

static uint32_t marker_layer(struct layers_work *w, uint32_t i, uint32_t parent)
{
	struct str module = {"", 0}, repr = {"", 0};
	profile_arg(w->p, w->p->span.args[i], ARG_MARKER_MODULE, &module);
	profile_arg(w->p, w->p->span.args[i], ARG_MARKER_REPR, &repr);
	struct str class = last_word(module);
	struct buf name = {0};
	marker_name(&name, class, repr);
	uint32_t layer = layer_at(w, parent, buf_view(&name), intern_str(&w->l->names, class), '/');
	buf_release(&name);
	return layer;
}

/* --- DLProf's function stacks ----------------------------------------------------------------------------------- */

/* The layer that the calls of modules in a function stack name: "Linear::_call_impl(2)" is the layer "Linear(2)". */
static uint32_t stack_layer(struct layers_work *w, struct str stack)
{
	static const char *const call[] = {"::_call_impl", "::__call__"};
	uint32_t layer = LAYER_NONE;
	struct str piece;
	while (str_split(&stack, '/', &piece)) {
		for (int i = 0; i < 2; i++) {
			ptrdiff_t at = str_find(piece, str_from(call[i]));
			size_t skip = strlen(call[i]);
			if (at <= 0)
				continue;
			struct str class = {piece.p, (size_t)at}, number = {piece.p + at + skip, piece.n - (size_t)at - skip};
			struct buf name = {0};
			buf_str(&name, class);
			buf_str(&name, number);
			layer = layer_at(w, layer, buf_view(&name), intern_str(&w->l->names, class), '/');
			buf_release(&name);
			break;
		}
	}
	return layer;
}

static uint32_t layers_stack_of(struct layers_work *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	if (s->kind[i] != SPAN_MARKER)
		return LAYER_NONE;
	uint32_t text = profile_arg_id(w->p, s->args[i], ARG_FUNCTION_STACK);
	if (!text)
		return LAYER_NONE;
	if (!w->of_stack)
		w->of_stack = mem_filled(w->p->strings.n, NOT_LOOKED);
	if (w->of_stack[text] == NOT_LOOKED)
		w->of_stack[text] = stack_layer(w, profile_str(w->p, text));
	return w->of_stack[text];
}

/* --- ranges and markers: which layer forward and backward work is in -------------------------------------------- */

static void layers_find_calls(struct layers_work *w)
{
	const struct spans *s = &w->p->span;
	struct layers *l = w->l;
	l->is_call = NEW_ARRAY(s->rows.n, uint8_t);
	for (uint32_t i = 0; i < s->rows.n; i++)
		if ((l->is_call[i] = layers_is_range(w->p, i)))
			l->source = LAYERS_RANGES;
	if (l->source != LAYERS_NONE)
		return;
	for (uint32_t i = 0; i < s->rows.n; i++)
		if ((l->is_call[i] = is_marker(w->p, i)))
			l->source = LAYERS_MARKERS;
	for (uint32_t i = 0; i < s->rows.n && l->source == LAYERS_NONE; i++)
		if (layers_stack_of(w, i) != LAYER_NONE)
			l->source = LAYERS_STACKS;
}

static uint32_t call_layer(struct layers_work *w, uint32_t i, uint32_t around)
{
	if (w->l->source == LAYERS_RANGES)
		return layer_at(w, around, layers_range_name(profile_str(w->p, w->p->span.name[i])), 0, ':');
	return marker_layer(w, i, around);
}

/* The layer around a backward op: the layer of its forward op. A backward op inside a backward op of the same forward op has the layer of the outer one. */
static uint32_t layer_around_backward(const struct layers_work *w, uint32_t i)
{
	const struct directions *d = w->l->dir;
	uint32_t up = w->p->span.parent[i];
	uint32_t forward = d->span_forward[i] != ROW_NONE ? d->span_forward[i] : d->accumulates[i];
	bool same = up != ROW_NONE && d->span[up] == DIR_BACKWARD && d->span_forward[i] == d->span_forward[up] &&
	            d->accumulates[i] == d->accumulates[up];
	if (forward == ROW_NONE || same)
		return up == ROW_NONE ? LAYER_NONE : w->l->of_span[up];
	/* A forward op within the backward pass (recomputation, create_graph) is placed before its own backward. */
	return d->span[forward] != DIR_BACKWARD || forward < i ? w->l->of_span[forward] : LAYER_NONE;
}

/* Places forward work by the ranges around it, then backward work, which needs the layers of all forward ops. */
static void layers_place_all(struct layers_work *w)
{
	const struct spans *s = &w->p->span;
	struct layers *l = w->l;
	l->of_span = NEW_ARRAY_RAW(s->rows.n, uint32_t);
	for (int backward = 0; backward < 2; backward++) {
		for (uint32_t i = 0; i < s->rows.n; i++) {
			uint32_t up = s->parent[i], around;
			if ((l->dir->span[i] == DIR_BACKWARD) != backward)
				continue;
			around = backward ? layer_around_backward(w, i) : up == ROW_NONE ? LAYER_NONE : l->of_span[up];
			l->of_span[i] = l->is_call[i] ? call_layer(w, i, around) : around;
			if (l->source == LAYERS_STACKS && layers_stack_of(w, i) != LAYER_NONE)
				l->of_span[i] = w->of_stack[profile_arg_id(w->p, s->args[i], ARG_FUNCTION_STACK)];
		}
	}
}

/* --- modules ---------------------------------------------------------------------------------------------------- */

/* "Linear_3" -> "Linear". */
static struct str module_class(struct str name)
{
	size_t n = name.n;
	while (n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
		n--;
	return n && n < name.n && name.p[n - 1] == '_' ? (struct str){name.p, n - 1} : name;
}

static void take_modules(struct layers_work *w, struct modules *m)
{
	struct layers *l = w->l;
	const struct module_tree *t = &m->tree;
	char joint = modules_are_dotted(m->source) ? '.' : '/';
	uint32_t *of_node = mem_filled(t->n, LAYER_NONE);
	for (uint32_t k = 0; k < t->n_order; k++) {
		const struct module_node *n = &t->v[t->order[k]];
		struct str name = intern_get(&t->names, n->name);
		struct str class = n->type ? last_word(intern_get(&t->names, n->type)) : module_class(name);
		uint32_t parent = n->parent == MODULE_NONE ? LAYER_NONE : of_node[n->parent];
		of_node[t->order[k]] = layer_at(w, parent, name, intern_str(&l->names, class), joint);
	}
	l->of_span = NEW_ARRAY_RAW(w->p->span.rows.n, uint32_t);
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		uint32_t node = module_tree_live(t, m->place[i]);
		l->of_span[i] = node == MODULE_NONE ? LAYER_NONE : of_node[node];
	}
	mem_free(l->is_call);
	l->is_call = m->is_module;
	m->is_module = NULL;
	mem_free(of_node);
	l->source = LAYERS_MODULES;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void layers_release(void *result)
{
	struct layers *l = result;
	directions_free(l->dir);
	intern_release(&l->names);
	mem_free(l->v);
	mem_free(l->of_span);
	mem_free(l->is_call);
	mem_free(l);
}

void layers_free(struct layers *l)
{
	if (l && !l->is_kept)
		layers_release(l);
}

static const char layers_kept[] = "layers";

struct layers *layers_new(const struct profile *p)
{
	struct layers *kept = reuse_find(p, layers_kept);
	if (kept)
		return kept;
	struct layers *l = NEW(struct layers);
	struct layers_work w = {.p = p, .l = l};
	intern_init(&l->names);
	intern_init(&w.keys);
	l->dir = directions_new(p);
	layers_find_calls(&w);
	struct modules *m = l->source == LAYERS_RANGES ? NULL : modules_new(p, &modules_own, NULL);
	if (m && m->source != MODULES_NONE)
		take_modules(&w, m);
	else
		layers_place_all(&w);
	modules_free(m);
	intern_release(&w.keys);
	buf_release(&w.path);
	mem_free(w.of_stack);
	reuse_keep(p, layers_kept, l, layers_release, &l->is_kept);
	return l;
}

/* A stack names a layer only where it names such a call. */
static bool layers_calls_module(struct str stack)
{
	return str_has(stack, STR("::_call_impl")) || str_has(stack, STR("::__call__"));
}

bool layers_may_be_told(const struct profile *p)
{
	const struct spans *s = &p->span;
	bool device = p->gpu_op.rows.n > 0; /* whose time lines of Python divide */
	for (uint32_t i = 0; i < s->rows.n; i++) {
		struct str name = profile_str(p, s->name[i]), stack;
		if ((s->kind[i] == SPAN_PYTHON && (device || str_starts(name, STR("nn.Module: ")))) || str_starts(name, STR("[module]")) || str_starts(name, STR("[pl][module]")))
			return true;
		if (layers_is_range(p, i) || is_marker(p, i) || profile_arg_id(p, s->args[i], ARG_MODULE_HIERARCHY) || (device && profile_arg_id(p, s->args[i], ARG_CALL_STACK)))
			return true;
		if (s->kind[i] == SPAN_MARKER && profile_arg(p, s->args[i], ARG_FUNCTION_STACK, &stack) && layers_calls_module(stack))
			return true;
	}
	return false;
}

uint32_t layers_of_gpu(const struct layers *l, const struct profile *p, uint32_t gpu)
{
	uint32_t from = p->gpu_op.op[gpu] != ROW_NONE ? p->gpu_op.op[gpu] : p->gpu_op.call[gpu];
	return from == ROW_NONE || l->dir->gpu[gpu] == DIR_OPTIMIZER ? LAYER_NONE : l->of_span[from];
}
