/* FLOPs of each event: by torch's formulas for torch-* rules, by the cost models for our own. Asked once for each name with its
 * arguments. */
#include "analysis/costs/costs.h"
#include "analysis/names/names.h"
#include "analysis/tree/torch_events_work.h"
#include "base/mem.h"
#include "op/torch_flops.h"

struct asker {
	const struct torch_events *t;
	struct costs *models;
	struct intern keys;      /* (name, argument set) */
	int64_t *flops;          /* by key - 1 */
	uint32_t cap;
	struct name_memo counted; /* does torch count it? */
};

/* What torch itself counted, where whoever wrote the trace had it: the formulas need more than shapes for a convolution. */
static bool torch_events_flops_stated(const struct asker *a, uint32_t span, int64_t *flops)
{
	const struct profile *p = a->t->p;
	uint32_t id = profile_arg_id(p, p->span.args[span], ARG_COUNTED_FLOPS);
	return id && str_to_i64(profile_str(p, id), flops) && *flops >= 0;
}

static uint8_t torch_events_flops_is_counted(struct str name)
{
	return torch_flops_counts(name);
}

static int64_t by_model(struct asker *a, uint32_t span)
{
	const struct profile *p = a->t->p;
	if (!a->t->rules->name) {
		uint32_t at = costs_index_of_span(a->models, p, span, COST_FORWARD); /* may move cost[] */
		int64_t flops = a->models->cost[at].flops;
		return flops == COST_UNKNOWN ? TORCH_UNKNOWN : flops;
	}
	int64_t flops;
	if (torch_events_flops_stated(a, span, &flops))
		return flops;
	if (!name_memo_of(&a->counted, p->span.name[span]))
		return 0;
	enum cost_direction d;
	struct op_facts f = costs_facts(a->models, p, costs_index_of_span(a->models, p, span, COST_FORWARD), &d);
	flops = torch_flops(&f);
	return flops == COST_UNKNOWN ? TORCH_UNKNOWN : flops;
}

static int64_t torch_events_flops_ask(struct asker *a, uint32_t span)
{
	const struct profile *p = a->t->p;
	uint32_t pair[2] = {p->span.name[span], p->span.args[span]}, before = a->keys.n;
	uint32_t at = intern_put_key(&a->keys, pair, sizeof pair) - 1;
	if (a->keys.n > before) {
		MEM_GROW(a->flops, a->cap, at + 1);
		a->flops[at] = by_model(a, span);
	}
	return a->flops[at];
}

void torch_put_flops(struct torch_events *t)
{
	struct asker a = {.t = t};
	if (t->rules->name && !t->shapes_known)
		return; /* torch counts none without shapes */
	intern_init(&a.keys);
	a.models = costs_models(t->p, &cost_own);
	a.counted = name_memo_new(t->p, torch_events_flops_is_counted);
	t->flops = NEW_ARRAY_RAW(t->n, int64_t);
	for (uint32_t i = 0; i < t->n; i++) {
		bool op = t->kind[i] == TORCH_SPAN && t->p->span.kind[t->row[i]] == SPAN_OP;
		t->flops[i] = op ? torch_events_flops_ask(&a, t->row[i]) : t->rules->name ? 0 : TORCH_UNKNOWN;
	}
	costs_free(a.models);
	intern_release(&a.keys);
	mem_free(a.flops);
	name_memo_release(&a.counted);
}
