#include "analysis/ranks/rank_phases.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/ranks/rank_host_calls.h"
#include "analysis/steps/steps.h"
#include "analysis/tree/direction.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

const char *const rank_phase_name[RANK_N_PHASES] = {
#define RANK_PHASE_NAME_(id, name) [RANK_PHASE_##id] = name,
	RANK_PHASES(RANK_PHASE_NAME_)
};

const enum rank_phase rank_spent_phase[RANK_N_SPENT] = {
	[RANK_SPENT_DATA] = RANK_PHASE_DATA, [RANK_SPENT_FORWARD] = RANK_PHASE_FORWARD, [RANK_SPENT_BACKWARD] = RANK_PHASE_BACKWARD,
	[RANK_SPENT_OPTIMIZER] = RANK_PHASE_OPTIMIZER, [RANK_SPENT_OTHER] = RANK_PHASE_OTHER,
};

static const enum rank_phase rank_phase_of_direction[DIRECTIONS] = {
	[DIR_FORWARD] = RANK_PHASE_FORWARD, [DIR_BACKWARD] = RANK_PHASE_BACKWARD, [DIR_OPTIMIZER] = RANK_PHASE_OPTIMIZER, [DIR_OTHER] = RANK_PHASE_OTHER,
};

/* What may hold of a moment: an earlier layer has it before a later one. */
enum rank_phases_layer { RANK_PHASES_WORK, RANK_PHASES_TALK, RANK_PHASES_COPY, RANK_PHASES_LAYERS };

/* A stretch of time of one phase. */
struct rank_phases_piece {
	int64_t start_ns, end_ns;
	enum rank_phase phase;
};

struct rank_phases_work {
	const struct profile *p;
	struct rank_phases *out;
	struct intervals layer[RANK_PHASES_LAYERS][DIRECTIONS];
	struct intervals loading;
	struct rank_phases_piece *piece; /* in order of time, disjoint */
	uint32_t n;
	int64_t *end;                    /* of the steps, ascending */
	uint32_t n_ends;
};

static void rank_phases_collect_device(struct rank_phases_work *w, const struct gpus *gpus, uint32_t gpu, const struct directions *d)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (gpu != GPUS_NONE && gpus_of(gpus, w->p, i) != gpu)
			continue;
		bool talks = g->kind[i] == GPU_KERNEL && gpu_kernel(w->p, i)->class == KERNEL_COMM;
		enum rank_phases_layer layer = talks ? RANK_PHASES_TALK : g->kind[i] == GPU_MEMCPY ? RANK_PHASES_COPY : RANK_PHASES_WORK;
		intervals_add(&w->layer[layer][d->gpu[i]], g->start_ns[i], gpu_end(w->p, i));
	}
}

/* The host's own phases: its waiting is inside the ranges that wait. */
static void rank_phases_collect_host(struct rank_phases_work *w, const struct directions *d)
{
	for (uint32_t i = 0; i < w->p->span.rows.n; i++)
		if (d->span[i] != DIR_OTHER)
			intervals_add(&w->layer[RANK_PHASES_WORK][d->span[i]], w->p->span.start_ns[i], span_end(w->p, i));
}

/* Collectives that the host does itself, where the GPU ran none. */
static void rank_phases_collect_host_calls(struct rank_phases_work *w, const struct directions *d)
{
	for (int i = 0; i < DIRECTIONS; i++)
		if (w->layer[RANK_PHASES_TALK][i].n)
			return;
	for (uint32_t i = 0; i < w->p->span.rows.n; i++)
		if (rank_host_calls_has(w->p, i))
			intervals_add(&w->layer[RANK_PHASES_TALK][d->span[i]], w->p->span.start_ns[i], span_end(w->p, i));
}

static void rank_phases_collect_loading(struct rank_phases_work *w)
{
	for (uint32_t i = 0; i < w->p->span.rows.n; i++)
		if (name_is_dataloader(w->p, w->p->span.name[i]))
			intervals_add(&w->loading, w->p->span.start_ns[i], span_end(w->p, i));
	intervals_normalise(&w->loading);
}

/* What of *v no earlier phase has becomes that of `phase`. */
static void rank_phases_take(struct rank_phases_work *w, struct intervals *v, enum rank_phase phase, struct intervals *taken)
{
	struct intervals new = {0};
	intervals_normalise(v);
	if (!v->n)
		return;
	intervals_subtract(v, taken, &new);
	intervals_union(taken, &new, taken);
	intervals_union(&w->out->v[phase], &new, &w->out->v[phase]);
	intervals_release(&new);
}

/* Of work that overlaps on one GPU, backward counts before forward and the optimizer before both on a host, where calls of one contain those of another. */
static void rank_phases_share(struct rank_phases_work *w, bool of_host)
{
	static const enum direction first_forward[DIRECTIONS] = {DIR_FORWARD, DIR_BACKWARD, DIR_OPTIMIZER, DIR_OTHER};
	static const enum direction last_forward[DIRECTIONS] = {DIR_OPTIMIZER, DIR_BACKWARD, DIR_FORWARD, DIR_OTHER};
	struct intervals taken = {0};
	if (of_host)
		rank_phases_take(w, &w->loading, RANK_PHASE_DATA, &taken);
	for (int layer = 0; layer < RANK_PHASES_LAYERS; layer++)
		for (int i = 0; i < DIRECTIONS; i++) {
			enum direction d = of_host ? last_forward[i] : first_forward[i];
			enum rank_phase phase = rank_phase_of_direction[d] + (layer == RANK_PHASES_TALK ? 1u : 0u);
			rank_phases_take(w, &w->layer[layer][d], phase, &taken);
		}
	intervals_release(&taken);
}

static void rank_phases_list_pieces(struct rank_phases_work *w)
{
	uint32_t n = 0;
	for (int phase = 0; phase < RANK_N_PHASES; phase++)
		n += (uint32_t)w->out->v[phase].n;
	struct sort_item *order = NEW_ARRAY_RAW(n, struct sort_item);
	n = 0;
	for (uint32_t phase = 0; phase < RANK_N_PHASES; phase++)
		for (uint32_t i = 0; i < w->out->v[phase].n; i++)
			order[n++] = (struct sort_item){sort_key_i64(w->out->v[phase].v[i].start), i, phase};
	sort_items(order, n);
	w->piece = NEW_ARRAY_RAW(n, struct rank_phases_piece);
	w->n = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct interval *v = &w->out->v[order[i].tie].v[order[i].row];
		w->piece[i] = (struct rank_phases_piece){v->start, v->end, (enum rank_phase)order[i].tie};
	}
	mem_free(order);
}

/* Nothing ran from start to end, then `next`. What lies before a step's end is behind the last work of that step. */
static void rank_phases_fill(struct rank_phases_work *w, int64_t start, int64_t end, enum rank_phase next, struct rank_phases *gap)
{
	uint32_t after = FIRST_WHERE(i, 0, w->n_ends, w->end[i] > end);
	int64_t border = after && w->end[after - 1] > start ? w->end[after - 1] : start;
	intervals_add(&gap->v[RANK_PHASE_OTHER], start, border);
	/* Before a collective, the rank was busy with getting there. */
	bool talks = next == RANK_PHASE_FORWARD_COMM || next == RANK_PHASE_BACKWARD_COMM || next == RANK_PHASE_OPTIMIZER_COMM || next == RANK_PHASE_OTHER_COMM;
	intervals_add(&gap->v[talks ? next - 1 : next], border, end);
}

/* Gives the time in which nothing ran to the phases, from the first to the last border of a step. */
static void rank_phases_fill_gaps(struct rank_phases_work *w)
{
	const struct steps *s = w->p->steps;
	struct rank_phases gap = {0};
	int64_t at = INT64_MAX, last = INT64_MIN;
	w->end = NEW_ARRAY_RAW(s->n, int64_t);
	for (unsigned i = 0; i < s->n; i++) {
		at = s->v[i].start_ns < at ? s->v[i].start_ns : at;
		last = s->v[i].end_ns > last ? s->v[i].end_ns : last;
		w->end[w->n_ends++] = s->v[i].end_ns;
	}
	sort_i64(w->end, w->n_ends);
	for (uint32_t i = 0; i < w->n && at < last; i++) {
		int64_t until = w->piece[i].start_ns < last ? w->piece[i].start_ns : last;
		if (until > at)
			rank_phases_fill(w, at, until, w->piece[i].phase, &gap);
		at = w->piece[i].end_ns > at ? w->piece[i].end_ns : at;
	}
	if (at < last)
		rank_phases_fill(w, at, last, RANK_PHASE_OTHER, &gap);
	for (int phase = 0; phase < RANK_N_PHASES; phase++) {
		struct intervals waited = {0};
		intervals_normalise(&gap.v[phase]);
		intervals_intersect(&gap.v[phase], &w->loading, &waited);
		intervals_subtract(&gap.v[phase], &waited, &gap.v[phase]);
		intervals_union(&w->out->v[RANK_PHASE_DATA], &waited, &w->out->v[RANK_PHASE_DATA]);
		intervals_union(&w->out->v[phase], &gap.v[phase], &w->out->v[phase]);
		intervals_release(&waited);
	}
	rank_phases_release(&gap);
}

void rank_phases_find(const struct profile *p, const struct gpus *gpus, uint32_t gpu, struct rank_phases *out)
{
	struct rank_phases_work w = {.p = p, .out = out};
	struct directions *d = directions_new(p);
	bool of_host = p->gpu_op.rows.n == 0;
	if (of_host)
		rank_phases_collect_host(&w, d);
	else
		rank_phases_collect_device(&w, gpus, gpu, d);
	rank_phases_collect_host_calls(&w, d);
	directions_free(d);
	rank_phases_collect_loading(&w);
	rank_phases_share(&w, of_host);
	rank_phases_list_pieces(&w);
	rank_phases_fill_gaps(&w);
	for (int layer = 0; layer < RANK_PHASES_LAYERS; layer++)
		for (int i = 0; i < DIRECTIONS; i++)
			intervals_release(&w.layer[layer][i]);
	intervals_release(&w.loading);
	mem_free(w.piece);
	mem_free(w.end);
}

void rank_phases_release(struct rank_phases *x)
{
	for (int phase = 0; phase < RANK_N_PHASES; phase++)
		intervals_release(&x->v[phase]);
}

void rank_phases_add(const struct rank_phases *x, int64_t start, int64_t end, int64_t ns[RANK_N_PHASES])
{
	for (int phase = 0; phase < RANK_N_PHASES; phase++)
		ns[phase] += intervals_length_within(&x->v[phase], start, end);
}
