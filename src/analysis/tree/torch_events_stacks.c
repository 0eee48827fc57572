/* Python stacks of events. */
#include "analysis/tree/fwdbwd.h"
#include "analysis/tree/torch_events_work.h"
#include "base/mem.h"
#include "base/search.h"

/* Frames of backward() itself and of torch's own tests: no event has them (profiler_util.py, _filter_stack_entry). */
static bool is_hidden(struct str frame)
{
	static const char *const hidden[][2] = {
		{"autograd/__init__", "_make_grads"},          {"autograd/__init__", "backward"},
		{"torch/tensor", "backward"},                  {"_internal/common_utils", "prof_callable"},
		{"_internal/common_utils", "prof_func_call"},  {"_internal/common_utils", "prof_meth_call"},
	};
	return ANY_WHERE(i, 0, sizeof hidden / sizeof hidden[0], str_has(frame, str_from(hidden[i][0])) && str_has(frame, str_from(hidden[i][1])));
}

/* What runs under a node of the backward pass has the stack of the first event outside of any that has the node's sequence number, on
 * the thread of the node's forward op; or none (profiler_util.py, _set_backward_stacktraces). */
struct forward {
	struct fwdbwd *links;
	struct intern keys; /* struct forward_key; key i has event i */
	uint32_t *event;    /* the first of each */
	uint32_t cap;
	uint32_t *node;     /* event -> the innermost node at or around it; ROW_NONE */
};

struct forward_key {
	int64_t sequence;
	uint32_t track, zero;
};

static void forward_init(struct forward *f, const struct torch_events *t)
{
	*f = (struct forward){.links = fwdbwd_new(t->p), .node = NEW_ARRAY_RAW(t->n, uint32_t)};
	intern_init(&f->keys);
	for (uint32_t i = 0; i < t->n; i++) { /* by torch-* rules parents stand before their children */
		uint32_t up = t->parent[i];
		f->node[i] = t->flags[i] & TORCH_BACKWARD ? i : up != ROW_NONE ? f->node[up] : ROW_NONE;
		struct forward_key k = {torch_event_sequence(t, i), t->track[i], 0};
		if (k.sequence < 0 || f->node[i] != ROW_NONE)
			continue;
		uint32_t before = f->keys.n, id = intern_put(&f->keys, (const char *)&k, sizeof k);
		if (f->keys.n == before)
			continue;
		MEM_GROW(f->event, f->cap, id + 1);
		f->event[id] = i;
	}
}

static void forward_release(struct forward *f)
{
	fwdbwd_free(f->links);
	intern_release(&f->keys);
	mem_free(f->event);
	mem_free(f->node);
}

/* The event that has a node's stack. */
static uint32_t torch_events_stacks_forward_of(const struct forward *f, const struct torch_events *t, uint32_t node)
{
	uint32_t row = fwdbwd_forward(f->links, t->row[node]);
	if (row == ROW_NONE)
		return ROW_NONE;
	struct forward_key k = {torch_event_sequence(t, node), t->p->span.track[row], 0};
	uint32_t id = intern_find(&f->keys, (struct str){(const char *)&k, sizeof k});
	return id == INTERN_NONE ? ROW_NONE : f->event[id];
}

static void torch_stacks(struct torch_events *t)
{
	struct forward f;
	t->stacks = stacks_recorded_new(t->p, is_hidden);
	if (!stacks_any(t->stacks))
		return;
	forward_init(&f, t);
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->kind[i] != TORCH_SPAN)
			continue;
		uint32_t from = f.node[i] == ROW_NONE ? i : torch_events_stacks_forward_of(&f, t, f.node[i]);
		t->stack[i] = from == ROW_NONE ? 0 : stacks_of(t->stacks, t->row[from]);
	}
	forward_release(&f);
}

void torch_put_stacks(struct torch_events *t)
{
	t->stack = NEW_ARRAY(t->n, uint32_t);
	if (t->rules->name) {
		torch_stacks(t);
		return;
	}
	t->stacks = stacks_new(t->p);
	for (uint32_t i = 0; i < t->n; i++)
		if (t->kind[i] == TORCH_SPAN)
			t->stack[i] = stacks_of(t->stacks, t->row[i]);
}

void torch_stack_text(const struct torch_events *t, uint32_t stack, unsigned frames, struct buf *out)
{
	struct str frame;
	for (unsigned n = 0; (!frames || n < frames) && stacks_pop(t->stacks, &stack, &frame);) {
		if (n++)
			buf_char(out, ';');
		buf_str(out, frame);
	}
}
