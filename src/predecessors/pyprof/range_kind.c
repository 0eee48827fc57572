/* What a range says by its text alone (PyProf's kernel.py, nsight.py, nvvp.py). Each string is looked at once. */
#include "analysis/names/autograd_names.h"
#include "base/mem.h"
#include "predecessors/pyprof/chain.h"

static void find_markers(struct pyprof_names *x, const struct profile *p)
{
	x->marker_of_args = NEW_ARRAY(p->arg_set.rows.n + 1, uint32_t);
	for (uint32_t set = 0; profile_has_arg(p, ARG_MARKER) && set < p->arg_set.rows.n; set++)
		x->marker_of_args[set] = profile_arg_id(p, set, ARG_MARKER);
}

struct pyprof_names *pyprof_names_new(const struct profile *p)
{
	struct pyprof_names *x = NEW(struct pyprof_names);
	x->flags = NEW_ARRAY(p->strings.n, uint16_t);
	x->op_id = NEW_ARRAY(p->strings.n, uint32_t);
	x->sane_id = NEW_ARRAY(p->strings.n, uint32_t);
	x->short_id = NEW_ARRAY(p->strings.n, uint32_t);
	find_markers(x, p);
	intern_init(&x->ops);
	return x;
}

void pyprof_names_free(struct pyprof_names *x)
{
	if (!x)
		return;
	mem_free(x->flags);
	mem_free(x->op_id);
	mem_free(x->sane_id);
	mem_free(x->short_id);
	mem_free(x->marker_of_args);
	intern_release(&x->ops);
	mem_free(x);
}

static bool is_autograd(struct str name)
{
	enum autograd_name kind = autograd_classify(name);
	return kind == AUTOGRAD_ENGINE || kind == AUTOGRAD_NODE || kind == AUTOGRAD_ACCUMULATE || kind == AUTOGRAD_FORMULA;
}

unsigned pyprof_name_flags(const struct pyprof_records *r, uint32_t name)
{
	uint16_t *slot = &r->names->flags[name];
	if (*slot)
		return *slot;
	struct str s = profile_str(r->p, name);
	bool back_op = str_ends(s, STR("Backward")) || str_ends(s, STR("backward"));
	bool back = back_op || str_ends(s, STR("Backward0")) || (r->rules == PYPROF_RECORDS_2 && str_ends(s, STR("Backward1")));
	unsigned f = NAME_ASKED | (back ? NAME_BACK : 0) | (back_op ? NAME_BACK_OP : 0) | (is_autograd(s) ? NAME_AUTOGRAD : 0) |
	             (autograd_classify(s) == AUTOGRAD_ACCUMULATE ? NAME_ACCUMULATE : 0);
	if (str_has(s, STR("CheckpointFunctionBackward")))
		f |= NAME_IGNORED;
	else if (str_has(s, STR("layer:")))
		f |= NAME_LAYER;
	else if (str_has(s, STR("traceMarker")))
		f |= NAME_TRACE;
	else if (str_has(s, STR("strRepr")))
		f |= NAME_REPR;
	return *slot = (uint16_t)f;
}

enum pyprof_range pyprof_range_kind(const struct pyprof_records *r, uint32_t span)
{
	const struct spans *s = &r->p->span;
	unsigned f = pyprof_name_flags(r, s->name[span]);
	if (f & NAME_IGNORED)
		return PYPROF_IGNORED;
	if (r->names->marker_of_args[s->args[span]])
		return PYPROF_MARKER;
	if (f & (NAME_LAYER | NAME_TRACE | NAME_REPR))
		return f & NAME_LAYER ? PYPROF_LAYER : f & NAME_TRACE ? PYPROF_TRACE : PYPROF_REPR;
	return s->kind[span] == SPAN_OP && s->link_id[span] != ID_NONE ? PYPROF_SEQUENCE : PYPROF_PLAIN;
}

bool pyprof_is_import(const struct pyprof_records *r, uint32_t span)
{
	if (r->rules != PYPROF_RECORDS_DEFAULT || !profile_has_arg(r->p, ARG_MARKER_OP))
		return false;
	return str_eqc(profile_str(r->p, profile_arg_id(r->p, r->p->span.args[span], ARG_MARKER_OP)), "__getattr__");
}
