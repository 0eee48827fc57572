#include "analysis/names/autograd_names.h"
#include "analysis/names/names.h"
#include "analysis/steps/iterations_names.h"
#include "analysis/tree/op_instances_work.h"
#include "base/search.h"
#include "base/sort.h"

#include <ctype.h>
#include <strings.h>

/* Paths of annotations nested deeper than this say no more than those around them; longer names are cut. */
enum { PATH_DEPTH_MAX = 64, PART_MAX = 200, FAMILY_MAX = 64 };

/* What a name says. */
enum { SAYS_GROUP = 1, SAYS_CONTEXT = 2 };

static uint32_t op_instances_find_arg_of(const struct profile *p, uint32_t span, enum arg_key key)
{
	return profile_arg_id(p, p->span.args[span], key);
}

/* An annotation that an old profiler, or emit_nvtx, wrote like an op. Ops are identifiers, with scopes before them. */
static bool is_annotation(struct str name)
{
	if (autograd_classify(name) == AUTOGRAD_OPTIMIZER && !str_starts(name, STR("aten::")))
		return true;
	if (str_has(name, STR("::")))
		return false;
	return str_has(name, STR(" ")) || str_has(name, STR("#")) || str_has(name, STR(".")) || str_has(name, STR("("));
}

/* TensorRT's calls of a whole network, around its layers. */
static bool is_execution(struct str name)
{
	return str_starts(name, STR("ExecutionContext::")) || str_starts(name, STR("IExecutionContext::"));
}

static uint8_t ask_name(struct str name)
{
	return (is_annotation(name) ? SAYS_GROUP : 0) | (is_execution(name) ? SAYS_CONTEXT : 0);
}

static enum span_role role_of_op(const struct ops_work *w, uint32_t i, unsigned name)
{
	const struct profile *p = w->p;
	if (op_instances_find_arg_of(p, i, ARG_MARKER)) {
		struct str op = profile_str(p, op_instances_find_arg_of(p, i, ARG_MARKER_OP));
		/* A module's attribute: the import of the whole program may run inside. */
		return str_eqc(op, "__getattr__") ? ROLE_IMPORT : ROLE_OP;
	}
	if (!ops_is_library(p, i))
		return name & SAYS_GROUP ? ROLE_GROUP : ROLE_OP;
	if (profile_has_arg(w->p, ARG_HLO_OP) && str_eqc(profile_cat(p, p->span.cat[i]), "TSL"))
		return op_instances_find_arg_of(p, i, ARG_HLO_OP) ? ROLE_OP : ROLE_CONTEXT;
	return name & SAYS_CONTEXT ? ROLE_CONTEXT : ROLE_OP;
}

static void tell_origin(struct ops_work *w, uint32_t i)
{
	enum op_origin from = op_instances_find_arg_of(w->p, i, ARG_MARKER) ? OPS_MARKERS : ops_is_library(w->p, i) ? OPS_LIBRARY : OPS_KINETO;
	static const uint8_t rank[] = {
		[OPS_NONE] = 0, [OPS_LIBRARY] = 1, [OPS_AUTOGRAD] = 2, [OPS_KINETO] = 3, [OPS_MARKERS] = 4, [OPS_STATED] = 5,
	};
	if (from == OPS_KINETO && str_eqc(profile_cat(w->p, w->p->span.cat[i]), "nvtx"))
		from = OPS_AUTOGRAD;
	if (rank[from] > rank[w->o->origin])
		w->o->origin = from;
}

/* Roles, and whether an execution context has an op inside: children stand behind their parents. */
static void find_roles(struct ops_work *w)
{
	const struct profile *p = w->p;
	uint32_t n = p->span.rows.n;
	struct name_memo names = name_memo_new(p, ask_name);
	uint8_t *has_op = NEW_ARRAY(n, uint8_t);
	for (uint32_t i = 0; i < n; i++) {
		if (p->span.kind[i] == SPAN_USER)
			w->role[i] = ROLE_GROUP;
		if (p->span.kind[i] != SPAN_OP)
			continue;
		if (w->o->origin == OPS_STATED)
			w->role[i] = op_instances_find_arg_of(p, i, ARG_OP_ID) ? ROLE_OP : ROLE_NONE;
		else
			w->role[i] = (uint8_t)role_of_op(w, i, name_memo_of(&names, p->span.name[i]));
	}
	for (uint32_t i = n; i-- > 0;) {
		if (w->role[i] == ROLE_CONTEXT)
			w->role[i] = has_op[i] ? ROLE_GROUP : ROLE_OP;
		if (w->role[i] == ROLE_IMPORT)
			w->role[i] = has_op[i] ? ROLE_NONE : ROLE_OP;
		if (w->role[i] == ROLE_OP && w->o->origin != OPS_STATED)
			tell_origin(w, i);
		if (p->span.parent[i] != ROW_NONE && (has_op[i] || w->role[i] == ROLE_OP))
			has_op[p->span.parent[i]] = 1;
	}
	name_memo_release(&names);
	mem_free(has_op);
}

/* --- paths of annotations --------------------------------------------------------------------------------------- */

/* The name with each number replaced by '#'; false when it has none. */
static bool op_instances_find_without_numbers(struct str name, struct buf *out)
{
	bool any = false;
	buf_clear(out);
	for (size_t i = 0; i < name.n; i++) {
		if (!is_digit(name.p[i])) {
			buf_char(out, name.p[i]);
			continue;
		}
		any = true;
		buf_char(out, '#');
		while (i + 1 < name.n && is_digit(name.p[i + 1]))
			i++;
	}
	return any;
}

/* "iteration 17", "ProfilerStep#5", "epoch 3": an op's name may not depend on the iteration. */
static bool counts_iterations(struct str name)
{
	static const char *const words[] = {"epoch", "loop", "request"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		size_t at = strlen(words[i]);
		if (name.n <= at || strncasecmp(name.p, words[i], at) != 0)
			continue;
		while (at < name.n && !isalpha((unsigned char)name.p[at]))
			at++;
		if (at == name.n)
			return true;
	}
	return name_means_step(name);
}

static uint32_t clean_component(struct ops_work *w, struct str name)
{
	while (name.n && name.p[0] == '/')
		name.p++, name.n--;
	while (name.n && name.p[name.n - 1] == '/')
		name.n--;
	struct buf b = {0};
	name.n = name.n < PART_MAX ? name.n : PART_MAX;
	for (size_t i = 0; i < name.n; i++)
		buf_char(&b, (unsigned char)name.p[i] < ' ' ? ' ' : name.p[i]);
	uint32_t id = intern_str(&w->texts, buf_view(&b));
	buf_release(&b);
	return id;
}

/* The part of a path that each annotation makes. Those of which many differ in numbers only make the same. */
static void find_components(struct ops_work *w)
{
	const struct profile *p = w->p;
	struct intern families;
	struct buf family = {0};
	uint32_t *members = NULL, cap = 0, before;
	uint8_t *seen = NEW_ARRAY(p->strings.n, uint8_t);
	intern_init(&families);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < p->span.rows.n; i++) {
			uint32_t name = p->span.name[i];
			if (w->role[i] != ROLE_GROUP || seen[name] > pass)
				continue;
			seen[name] = (uint8_t)(pass + 1);
			bool numbers = op_instances_find_without_numbers(profile_str(p, name), &family);
			before = families.n;
			uint32_t f = intern_str(&families, buf_view(&family));
			MEM_GROW(members, cap, f + 1);
			if (families.n > before)
				members[f] = 0;
			members[f] += !pass;
			if (!pass)
				continue;
			if (numbers && counts_iterations(profile_str(p, name)))
				w->component[name] = 1;
			else
				w->component[name] = clean_component(w, numbers && members[f] > FAMILY_MAX ? buf_view(&family) : profile_str(p, name)) + 1;
		}
	intern_release(&families);
	buf_release(&family);
	mem_free(members);
	mem_free(seen);
}

static struct context context_get(const struct ops_work *w, uint32_t id)
{
	struct context c = {0};
	if (id)
		memcpy(&c, intern_get(&w->contexts, id).p, sizeof c);
	return c;
}

/* What is around the children of a span that is no op and in none. */
static uint32_t context_inside(struct ops_work *w, uint32_t i)
{
	const struct profile *p = w->p;
	uint32_t up = p->span.parent[i], around = up == ROW_NONE ? 0 : w->context[up];
	struct context c = context_get(w, around);
	if (p->span.kind[i] == SPAN_MARKER) {
		uint32_t func = op_instances_find_arg_of(p, i, ARG_FUNCTION_STACK), stack = op_instances_find_arg_of(p, i, ARG_CALL_STACK);
		if (!func && !stack)
			return around;
		c.func_stack = func;
		c.call_stack = stack;
	} else if (w->role[i] == ROLE_GROUP && w->component[p->span.name[i]] > 1 && c.depth < PATH_DEPTH_MAX) {
		buf_clear(&w->text);
		buf_str(&w->text, intern_get(&w->texts, c.path));
		buf_char(&w->text, '/');
		buf_str(&w->text, intern_get(&w->texts, w->component[p->span.name[i]] - 1));
		c.path = intern_str(&w->texts, buf_view(&w->text));
		c.depth++;
	} else {
		return around;
	}
	return intern_put(&w->contexts, (const char *)&c, sizeof c);
}

/* --- instances -------------------------------------------------------------------------------------------------- */

static uint32_t add_draft(struct ops_work *w, struct draft d)
{
	MEM_PUSH(w->draft, w->n_drafts, w->cap_drafts, d);
	return w->n_drafts - 1;
}

static bool is_call_of_backward(const struct ops_work *w, uint32_t i)
{
	return str_eqc(profile_str(w->p, op_instances_find_arg_of(w->p, i, ARG_MARKER_OP)), "backward");
}

static uint32_t add_range(struct ops_work *w, uint32_t i)
{
	const struct directions *dir = w->layers ? w->layers->dir : NULL;
	struct draft d = {.start_ns = w->p->span.start_ns[i], .end_ns = span_end(w->p, i), .row = i, .link = ROW_NONE, .kind = DRAFT_RANGE};
	d.direction = dir ? dir->span[i] : DIR_FORWARD;
	if (d.direction == DIR_OTHER)
		d.direction = DIR_FORWARD;
	if (dir && is_call_of_backward(w, i))
		d.direction = DIR_BACKWARD;
	return add_draft(w, d);
}

static void op_instances_find_ranges(struct ops_work *w)
{
	const struct spans *s = &w->p->span;
	uint32_t *of_span = w->o->of_span;
	const struct directions *dir = w->layers ? w->layers->dir : NULL;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t up = s->parent[i];
		of_span[i] = up == ROW_NONE || s->kind[i] == SPAN_CALL ? ROW_NONE : of_span[up];
		if (of_span[i] == ROW_NONE && w->role[i] == ROLE_OP)
			of_span[i] = add_range(w, i);
		if (of_span[i] == ROW_NONE) {
			w->context[i] = context_inside(w, i);
			continue;
		}
		struct draft *d = &w->draft[of_span[i]];
		w->context[i] = up == ROW_NONE ? 0 : w->context[up];
		/* The engine's range is linked through the node inside. */
		if (dir && d->direction == DIR_BACKWARD && d->link == ROW_NONE)
			d->link = dir->span_forward[i];
	}
}

static uint32_t op_around_call(const struct ops_work *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	uint32_t op = s->op[i], up = s->parent[i];
	if (op != ROW_NONE && w->o->of_span[op] != ROW_NONE)
		return w->o->of_span[op];
	return up == ROW_NONE ? ROW_NONE : w->o->of_span[up];
}

/* Where the backward pass has no ranges of its own, calls of the engine's threads belong to the call of backward() that goes on. */
struct backward_calls {
	struct sort_item *v;  /* by start; row = draft */
	uint32_t n;
	uint8_t *has_ops;     /* track -> 1 */
};

static void find_backward_calls(const struct ops_work *w, struct backward_calls *b)
{
	const struct profile *p = w->p;
	b->v = NEW_ARRAY_RAW(w->n_drafts, struct sort_item);
	b->has_ops = NEW_ARRAY(p->track.rows.n, uint8_t);
	for (uint32_t k = 0; k < w->n_drafts; k++) {
		b->has_ops[p->span.track[w->draft[k].row]] = 1;
		if (profile_has_arg(w->p, ARG_MARKER) && op_instances_find_arg_of(p, w->draft[k].row, ARG_MARKER) && is_call_of_backward(w, w->draft[k].row))
			b->v[b->n++] = (struct sort_item){.key = sort_key_i64(w->draft[k].start_ns), .row = k};
	}
	sort_items(b->v, b->n);
}

static uint32_t backward_call_at(const struct ops_work *w, const struct backward_calls *b, uint32_t call)
{
	const struct profile *p = w->p;
	uint32_t track = p->span.track[call];
	if (!b->n || b->has_ops[track])
		return ROW_NONE;
	uint32_t lo = FIRST_WHERE(i, 0, b->n, w->draft[b->v[i].row].start_ns > p->span.start_ns[call]);
	if (!lo)
		return ROW_NONE;
	const struct draft *d = &w->draft[b->v[lo - 1].row];
	bool same = p->track.pid_text[p->span.track[d->row]] == p->track.pid_text[track];
	return same && p->span.start_ns[call] < d->end_ns ? b->v[lo - 1].row : ROW_NONE;
}

static void op_instances_find_calls(struct ops_work *w)
{
	const struct spans *s = &w->p->span;
	uint32_t *of_span = w->o->of_span, before = ROW_NONE, ranges = w->n_drafts;
	struct backward_calls b = {0};
	find_backward_calls(w, &b);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			before = ROW_NONE;
		if (s->kind[i] != SPAN_CALL) {
			before = of_span[i] != ROW_NONE && of_span[i] < ranges ? of_span[i] : before;
			continue;
		}
		of_span[i] = op_around_call(w, i);
		if (of_span[i] == ROW_NONE)
			of_span[i] = backward_call_at(w, &b, i);
		if (of_span[i] == ROW_NONE)
			of_span[i] = add_draft(w, (struct draft){s->start_ns[i], span_end(w->p, i), i, before, DRAFT_CALL, DIR_OTHER});
	}
	mem_free(b.v);
	mem_free(b.has_ops);
}

static void find_work(struct ops_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t at = g->call[i] != ROW_NONE && !gpu_is_replayed(g, i) ? w->o->of_span[g->call[i]] : ROW_NONE;
		if (at == ROW_NONE && g->op[i] != ROW_NONE)
			at = w->o->of_span[g->op[i]];
		if (at == ROW_NONE)
			at = add_draft(w, (struct draft){g->start_ns[i], g->start_ns[i], i, ROW_NONE, DRAFT_WORK, DIR_OTHER});
		w->o->of_gpu[i] = at;
	}
}

static void renumber(uint32_t *v, uint32_t n, const uint32_t *place)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i] != ROW_NONE)
			v[i] = place[v[i]];
}

/* By start; of equal starts ranges first. */
static void put_in_order(struct ops_work *w)
{
	struct sort_item *v = NEW_ARRAY_RAW(w->n_drafts, struct sort_item);
	uint32_t *place = NEW_ARRAY_RAW(w->n_drafts, uint32_t);
	struct draft *sorted = NEW_ARRAY_RAW(w->n_drafts, struct draft);
	for (uint32_t k = 0; k < w->n_drafts; k++)
		v[k] = (struct sort_item){.key = sort_key_i64(w->draft[k].start_ns), .row = k};
	sort_items(v, w->n_drafts);
	for (uint32_t k = 0; k < w->n_drafts; k++) {
		place[v[k].row] = k;
		sorted[k] = w->draft[v[k].row];
	}
	for (uint32_t k = 0; k < w->n_drafts; k++)
		if (sorted[k].kind == DRAFT_CALL && sorted[k].link != ROW_NONE)
			sorted[k].link = place[sorted[k].link];
	renumber(w->o->of_span, w->p->span.rows.n, place);
	renumber(w->o->of_gpu, w->p->gpu_op.rows.n, place);
	mem_free(w->draft);
	w->draft = sorted;
	w->cap_drafts = w->n_drafts;
	mem_free(v);
	mem_free(place);
}

void ops_find(struct ops_work *w)
{
	struct profile *p = w->p;
	if (profile_has_arg(w->p, ARG_OP_ID) && profile_has_arg(w->p, ARG_OP_NAME))
		for (uint32_t i = 0; i < p->span.rows.n && w->o->origin == OPS_NONE; i++)
			if (p->span.kind[i] == SPAN_OP && op_instances_find_arg_of(p, i, ARG_OP_ID) && op_instances_find_arg_of(p, i, ARG_OP_NAME))
				w->o->origin = OPS_STATED;
	w->role = NEW_ARRAY(p->span.rows.n, uint8_t);
	w->context = NEW_ARRAY(p->span.rows.n, uint32_t);
	w->component = NEW_ARRAY(p->strings.n, uint32_t);
	find_roles(w);
	find_components(w);
	if (w->o->origin != OPS_NONE && w->o->origin != OPS_STATED)
		w->layers = layers_new(p);
	op_instances_find_ranges(w);
	op_instances_find_calls(w);
	find_work(w);
	put_in_order(w);
}
