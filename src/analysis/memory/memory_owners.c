#include "analysis/memory/memory_owners.h"

#include "analysis/names/stacks.h"
#include "analysis/tree/layers.h"
#include "base/buf.h"
#include "base/mem.h"

enum { MEMORY_OWNER_CALLS = 6 }; /* of forward(), the innermost */

struct memory_owners {
	const struct profile *p;
	struct stacks *stacks;
	struct layers *layers;
	struct intern texts;
	struct memory_owner *of_stack; /* by stack */
	uint8_t *known;                /* by stack: 1 = of_stack says it */
	bool forward;                  /* a stack has a call of forward() */
};

/* ---- by a stack ---- */

/* Of a frame of C++ what stands between `begin` and the next "::": "at::_ops::add_Tensor::call(...)" -> "add_Tensor". */
static bool memory_owner_native(struct str frame, struct str begin, struct str *op)
{
	int64_t at = str_starts(frame, STR("<native")) ? str_find(frame, begin) : -1;
	if (at < 0)
		return false;
	struct str name = {frame.p + at + begin.n, frame.n - (size_t)at - begin.n};
	int64_t end = str_find(name, STR("::"));
	*op = (struct str){name.p, end < 0 ? 0 : (size_t)end};
	return op->n > 0;
}

/* "/a/net.py(54): forward" -> "net.py(54)". */
static bool memory_owner_call_of(struct str frame, struct str *place)
{
	const struct str function = STR(": forward");
	if (str_starts(frame, STR("<")) || !str_ends(frame, function) || str_has(frame, STR("/torch/")) || str_has(frame, STR("\\torch\\")))
		return false;
	*place = (struct str){frame.p, frame.n - function.n};
	for (size_t i = place->n; i-- > 0;)
		if (place->p[i] == '/' || place->p[i] == '\\') {
			*place = (struct str){place->p + i + 1, place->n - i - 1};
			break;
		}
	return true;
}

static uint32_t memory_owner_calls(struct memory_owners *o, const struct str *call, unsigned n)
{
	struct buf b = {0};
	if (n > MEMORY_OWNER_CALLS)
		buf_cstr(&b, "... > ");
	for (unsigned i = n < MEMORY_OWNER_CALLS ? n : MEMORY_OWNER_CALLS; i-- > 0;) {
		buf_str(&b, call[i]);
		if (i)
			buf_cstr(&b, " > ");
	}
	uint32_t id = intern_str(&o->texts, buf_view(&b));
	buf_release(&b);
	return id;
}

static struct memory_owner memory_owner_read(struct memory_owners *o, uint32_t stack)
{
	struct memory_owner w = {.line = intern_str(&o->texts, stacks_user_line(o->stacks, stack))};
	struct str frame, call[MEMORY_OWNER_CALLS], place, op = STR(""), node = STR(""), name;
	unsigned n = 0;
	while (stacks_pop(o->stacks, &stack, &frame)) {
		if (!node.n)
			memory_owner_native(frame, STR("torch::autograd::generated::"), &node);
		if (memory_owner_native(frame, STR("at::_ops::"), &name) && (!op.n || str_starts(op, STR("empty"))) && (!op.n || !str_starts(name, STR("empty"))))
			op = name;
		if (memory_owner_call_of(frame, &place) && n++ < MEMORY_OWNER_CALLS)
			call[n - 1] = place;
	}
	if (op.n) {
		struct buf b = {0};
		buf_printf(&b, "aten::" STR_FMT, STR_ARG(op));
		if (node.n)
			buf_printf(&b, " (" STR_FMT ")", STR_ARG(node));
		w.op = intern_str(&o->texts, buf_view(&b));
		buf_release(&b);
	}
	w.module = n ? memory_owner_calls(o, call, n) : 0;
	return w;
}

static struct memory_owner memory_owner_at(struct memory_owners *o, uint32_t stack)
{
	if (!o->known[stack]) {
		o->of_stack[stack] = memory_owner_read(o, stack);
		o->known[stack] = 1;
	}
	return o->of_stack[stack];
}

struct memory_owner memory_owner_by_stack(struct memory_owners *o, uint32_t set)
{
	return memory_owner_at(o, stacks_of_args(o->stacks, set));
}

/* ---- by the op around ---- */

/* "aten::_to_copy (aten::empty_strided)": aten::empty and its kin allocate for the op around them. */
static uint32_t memory_owner_op_text(struct memory_owners *o, uint32_t span)
{
	const struct spans *s = &o->p->span;
	struct str name = profile_str(o->p, s->name[span]);
	if (!str_starts(name, STR("aten::empty")) || s->op[span] == ROW_NONE)
		return intern_str(&o->texts, name);
	struct buf b = {0};
	buf_printf(&b, STR_FMT " (" STR_FMT ")", STR_ARG(profile_str(o->p, s->name[s->op[span]])), STR_ARG(name));
	uint32_t id = intern_str(&o->texts, buf_view(&b));
	buf_release(&b);
	return id;
}

struct memory_owner memory_owner_of(struct memory_owners *o, uint32_t i)
{
	const struct memories *m = &o->p->memory;
	uint32_t span = m->span[i];
	if (stacks_of_args(o->stacks, memory_args(m, i)))
		return memory_owner_by_stack(o, memory_args(m, i));
	if (span == ROW_NONE)
		return (struct memory_owner){0};
	struct memory_owner w = {.op = memory_owner_op_text(o, span)};
	w.line = intern_str(&o->texts, stacks_user_line(o->stacks, stacks_of(o->stacks, span)));
	uint32_t layer = o->layers->source == LAYERS_NONE ? LAYER_NONE : o->layers->of_span[span];
	if (layer != LAYER_NONE)
		w.module = intern_str(&o->texts, intern_get(&o->layers->names, o->layers->v[layer].name));
	return w;
}

struct memory_owners *memory_owners_new(const struct profile *p)
{
	struct memory_owners *o = NEW(struct memory_owners);
	*o = (struct memory_owners){.p = p, .stacks = stacks_new(p), .layers = layers_new(p)};
	uint32_t n = stacks_count(o->stacks);
	intern_init(&o->texts);
	o->of_stack = NEW_ARRAY_RAW(n, struct memory_owner);
	o->known = NEW_ARRAY(n, uint8_t);
	for (uint32_t i = 1; i < n && !o->forward; i++) {
		struct str frame, place;
		uint32_t stack = i;
		o->forward = stacks_pop(o->stacks, &stack, &frame) && memory_owner_call_of(frame, &place);
	}
	return o;
}

void memory_owners_free(struct memory_owners *o)
{
	if (!o)
		return;
	stacks_free(o->stacks);
	layers_free(o->layers);
	intern_release(&o->texts);
	mem_free(o->of_stack);
	mem_free(o->known);
	mem_free(o);
}

struct str memory_owner_text(const struct memory_owners *o, uint32_t id) { return intern_get(&o->texts, id); }

bool memory_owners_have_lines(const struct memory_owners *o) { return stacks_any(o->stacks); }

bool memory_owners_have_modules(const struct memory_owners *o)
{
	bool own_stacks = o->p->memory.args || o->p->memory_block.rows.n;
	return o->layers->source != LAYERS_NONE || (own_stacks && o->forward);
}
