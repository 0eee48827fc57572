#include "analysis/tree/direction.h"

#include "analysis/names/names.h"
#include "analysis/tree/fwdbwd.h"
#include "base/mem.h"
#include "store/reuse.h"

const char *const direction_name[DIRECTIONS] = {
	[DIR_FORWARD] = "forward", [DIR_BACKWARD] = "backward", [DIR_OPTIMIZER] = "optimizer", [DIR_OTHER] = "other",
};

/* What is around a span, already told: rows of a parent come before those of its children. */
struct direction_sweep {
	const struct profile *p;
	struct directions *d;
	uint32_t last_forward;    /* forward op of the last backward op of this thread */
};

static enum autograd_name direction_kind_of_name(struct direction_sweep *w, uint32_t i)
{
	return name_autograd(w->p, w->p->span.name[i]);
}

static void direction_inherit(struct direction_sweep *w, uint32_t i)
{
	uint32_t up = w->p->span.parent[i];
	w->d->span[i] = up == ROW_NONE ? DIR_OTHER : w->d->span[up];
	w->d->span_forward[i] = up == ROW_NONE ? ROW_NONE : w->d->span_forward[up];
	w->d->accumulates[i] = up == ROW_NONE ? ROW_NONE : w->d->accumulates[up];
}

static void accumulate(struct direction_sweep *w, uint32_t i)
{
	w->d->span[i] = DIR_BACKWARD;
	w->d->span_forward[i] = ROW_NONE;
	w->d->accumulates[i] = w->last_forward;
}

/* A range that runs a node of autograd: inside the engine's range, which may be linked, it may not be linked itself. */
static void run_node(struct direction_sweep *w, uint32_t i, uint32_t forward)
{
	struct directions *d = w->d;
	uint32_t up = w->p->span.parent[i];
	bool in_engine = up != ROW_NONE && direction_kind_of_name(w, up) == AUTOGRAD_ENGINE;
	d->span[i] = DIR_BACKWARD;
	d->accumulates[i] = ROW_NONE;
	if (forward != ROW_NONE || !in_engine)
		d->span_forward[i] = w->last_forward = forward;
}

static void direction_tell(struct direction_sweep *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	struct directions *d = w->d;
	uint32_t forward = fwdbwd_forward(d->links, i);
	direction_inherit(w, i);
	if (s->kind[i] != SPAN_OP && s->kind[i] != SPAN_USER)
		return;
	enum autograd_name kind = direction_kind_of_name(w, i);
	bool op = s->kind[i] == SPAN_OP, backward = d->span[i] == DIR_BACKWARD;
	if (op && kind == AUTOGRAD_ACCUMULATE && d->accumulates[i] == ROW_NONE)
		accumulate(w, i);
	else if (op && kind != AUTOGRAD_ACCUMULATE && forward != ROW_NONE)
		run_node(w, i, forward);
	else if (op && (kind == AUTOGRAD_ENGINE || kind == AUTOGRAD_NODE))
		run_node(w, i, ROW_NONE);
	else if (op && !backward && (kind == AUTOGRAD_FORMULA || span_aux_id(s, i) > 0))
		d->span[i] = DIR_BACKWARD;
	else if (kind == AUTOGRAD_OPTIMIZER && !backward)
		d->span[i] = DIR_OPTIMIZER;
	else if (op && d->span[i] == DIR_OTHER)
		d->span[i] = DIR_FORWARD;
}

static void tell_gpu(const struct profile *p, struct directions *d)
{
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t from = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
		d->gpu[g] = from == ROW_NONE ? DIR_OTHER : d->span[from];
		d->forward[g] = from == ROW_NONE ? ROW_NONE : d->span_forward[from];
	}
}

static void directions_release(void *result)
{
	struct directions *d = result;
	fwdbwd_free(d->links);
	mem_free(d->gpu);
	mem_free(d->forward);
	mem_free(d->span);
	mem_free(d->span_forward);
	mem_free(d->accumulates);
	mem_free(d);
}

void directions_free(struct directions *d)
{
	if (d && !d->is_kept)
		directions_release(d);
}

static const char directions_kept[] = "directions";

struct directions *directions_new(const struct profile *p)
{
	profile_assert_kept(p, LEFT_AUX_IDS);
	struct directions *kept = reuse_find(p, directions_kept);
	if (kept)
		return kept;
	struct directions *d = NEW(struct directions);
	struct direction_sweep w = {.p = p, .d = d, .last_forward = ROW_NONE};
	uint32_t n = p->span.rows.n, n_gpu = p->gpu_op.rows.n;
	d->gpu = NEW_ARRAY_RAW(n_gpu, uint8_t);
	d->forward = NEW_ARRAY_RAW(n_gpu, uint32_t);
	d->span = NEW_ARRAY_RAW(n, uint8_t);
	d->span_forward = NEW_ARRAY_RAW(n, uint32_t);
	d->accumulates = NEW_ARRAY_RAW(n, uint32_t);
	d->links = fwdbwd_new(p);
	for (uint32_t i = 0; i < n; i++) {
		if (i && p->span.track[i] != p->span.track[i - 1])
			w.last_forward = ROW_NONE;
		direction_tell(&w, i);
	}
	tell_gpu(p, d);
	reuse_keep(p, directions_kept, d, directions_release, &d->is_kept);
	return d;
}
