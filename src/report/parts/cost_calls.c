#include "report/parts/cost_calls.h"

#include "analysis/recording.h"
#include "base/mem.h"

static struct cost_call *cost_calls_at(struct cost_calls *r, uint32_t index)
{
	while (r->n <= index)
		MEM_PUSH(r->v, r->n, r->cap, (struct cost_call){.span = ROW_NONE});
	return &r->v[index];
}

/* Notes a call of the row, if it is the first. */
static void cost_calls_first(struct cost_calls *r, uint32_t index, uint32_t span, bool launched)
{
	struct cost_call *x = cost_calls_at(r, index);
	bool earlier = x->span == ROW_NONE || r->p->span.start_ns[span] < r->p->span.start_ns[x->span];
	if (launched > x->launched || (launched == x->launched && earlier))
		x->span = span;
	x->launched |= launched;
}

/* Counts the calls of ops that the trace has. Of a backward pass that only its forward op explains, it counts the ranges that launched work. */
static void cost_calls_collect(struct cost_calls *r)
{
	const struct profile *p = r->p;
	uint8_t *counted = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OP) {
			uint32_t at = costs_index_of_span(r->costs, p, i, COST_FORWARD);
			cost_calls_at(r, at)->calls++;
			cost_calls_first(r, at, i, false);
		}
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		uint32_t at = r->costs->of_gpu[i], op = r->costs->op[i];
		enum cost_direction d = COST_FORWARD;
		r->device_ns += p->gpu_op.dur_ns[i];
		if (at == ROW_NONE && op != ROW_NONE && p->span.kind[op] == SPAN_OP)
			at = costs_index_of_span(r->costs, p, op, COST_FORWARD);
		if (at == ROW_NONE)
			continue;
		if (op != ROW_NONE)
			cost_calls_first(r, at, op, true);
		struct cost_call *x = cost_calls_at(r, at);
		struct op_facts f = costs_facts(r->costs, p, at, &d);
		x->gpu_ns += p->gpu_op.dur_ns[i];
		bool of_kernel = f.collective.n && (op == ROW_NONE || costs_index_of_span(r->costs, p, op, COST_FORWARD) != at);
		if (of_kernel)
			x->calls++;
		else if (d == COST_BACKWARD && op != ROW_NONE && !counted[op])
			x->calls += counted[op] = 1;
	}
	mem_free(counted);
}

struct cost_calls *cost_calls_new(const struct profile *p, const struct cost_rules *rules, struct err *e)
{
	bool any = false;
	for (uint32_t i = 0; i < p->span.rows.n && !any; i++)
		any = p->span.kind[i] == SPAN_OP;
	if (!any) {
		err_set(e, ERR_DATA, "the input holds no framework ops; to record them: %s, and %s", recording_how(p, RECORD_OPS), recording_how(p, RECORD_SHAPES));
		return NULL;
	}
	struct cost_calls *r = NEW(struct cost_calls);
	*r = (struct cost_calls){.p = p, .costs = costs_new(p, rules)};
	cost_calls_collect(r);
	return r;
}

void cost_calls_free(struct cost_calls *r)
{
	mem_free(r->v);
	costs_free(r->costs);
	mem_free(r);
}
