/* Python stacks of events. */
#include "analysis/fwdbwd.h"
#include "analysis/torch_events_work.h"
#include "base/mem.h"

/* What runs under a node of the backward pass has the stack of the node's forward op, or none (profiler_util.py,
 * _set_backward_stacktraces). Parents stand before their children, but for API calls, which begin together with their op at the
 * earliest. */
static void torch_stacks(struct torch_events *t)
{
	struct fwdbwd *links = fwdbwd_new(t->p);
	uint32_t *node = NEW_ARRAY_RAW(t->n, uint32_t); /* the innermost node at or around it; ROW_NONE */
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t up = t->parent[i];
		node[i] = t->flags[i] & TORCH_BACKWARD ? i : up < i ? node[up] : ROW_NONE;
		if (t->kind[i] != TORCH_SPAN)
			continue;
		uint32_t span = t->row[i];
		if (node[i] != ROW_NONE)
			span = fwdbwd_forward(links, t->row[node[i]]);
		t->stack[i] = span == ROW_NONE ? 0 : stacks_of(t->stacks, span);
	}
	mem_free(node);
	fwdbwd_free(links);
}

void torch_put_stacks(struct torch_events *t)
{
	t->stacks = stacks_new(t->p);
	t->stack = NEW_ARRAY(t->n, uint32_t);
	if (t->rules->name && t->key_stack)
		torch_stacks(t);
	for (uint32_t i = 0; !t->rules->name && i < t->n; i++)
		if (t->kind[i] == TORCH_SPAN)
			t->stack[i] = stacks_of(t->stacks, t->row[i]);
}

/* Frames of backward() itself and of torch's own tests (profiler_util.py, _filter_stack_entry). */
static bool is_hidden(struct str frame)
{
	static const char *const hidden[][2] = {
		{"autograd/__init__", "_make_grads"},          {"autograd/__init__", "backward"},
		{"torch/tensor", "backward"},                  {"_internal/common_utils", "prof_callable"},
		{"_internal/common_utils", "prof_func_call"},  {"_internal/common_utils", "prof_meth_call"},
	};
	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (str_has(frame, str_from(hidden[i][0])) && str_has(frame, str_from(hidden[i][1])))
			return true;
	return false;
}

void torch_stack_text(const struct torch_events *t, uint32_t stack, unsigned frames, struct buf *out)
{
	struct str frame;
	for (unsigned n = 0; (!frames || n < frames) && stacks_pop(t->stacks, &stack, &frame);) {
		if (t->rules->name && is_hidden(frame))
			continue;
		if (n++)
			buf_char(out, ';');
		buf_str(out, frame);
	}
}
