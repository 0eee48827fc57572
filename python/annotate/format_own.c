/* Our own form: one range for an op, with arguments of the range for where it was called from. */
#include "annotate.h"

static void tell_ids(PyObject *const *args, Py_ssize_t n, int64_t number)
{
	int64_t made[INPUTS_MOST];
	int some = calls_inputs(args, n, made);
	sink_arg_number("callid", number);
	sink_arg_numbers("input_callids", made, some);
}

static int begin(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t number)
{
	const struct text *text = args_text(w, args, n, kwnames);
	if (!text)
		return 0;
	struct stack *stack = settings.stacks ? stack_now() : NULL;
	const struct text *lines = stack ? stack_lines(stack) : NULL;
	const struct text *functions = settings.function_stacks ? stack_functions(w->op) : NULL;
	sink_push_op(text, settings.links ? number : -1);
	if (lines)
		sink_arg_text("Call stack", lines);
	if (functions)
		sink_arg_text("funcStack", functions);
	if (settings.call_ids)
		tell_ids(args, n, number);
	return 1;
}

static void put_list(struct marker *m, PyObject *name, PyObject *list, unsigned depth)
{
	if (!args_put_tensors(m, name, list))
		args_put_items(m, name, list, depth);
}

const struct format format_own = {
	.name = "own", .begin = begin, .put_list = put_list, .in_library = true, .one_range_an_op = true, .few_numbers = true,
};
