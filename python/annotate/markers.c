/* PyProf's markers: ranges in each other. */
#include "annotate.h"

int markers_begin(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t number)
{
	int ranges = 0;
	struct stack *stack = stack_now();
	const struct text *trace = stack ? stack_marker(stack, w->op) : NULL;
	struct text *module = w->has_repr && n ? args_module_text(w, args[0]) : NULL, *with_ids = NULL;
	const struct text *text;
	if (settings.call_ids)
		text = with_ids = args_text_with_ids(w, args, n, kwnames, number);
	else
		text = args_text(w, args, n, kwnames);
	const struct text *all[] = {trace, module, text};
	for (int i = 0; i < 3; i++)
		if (all[i]) {
			sink_push(all[i]);
			ranges++;
		}
	if (settings.call_ids)
		calls_name(number, stack_functions(w->op));
	text_free(module);
	text_free(with_ids);
	return ranges;
}
