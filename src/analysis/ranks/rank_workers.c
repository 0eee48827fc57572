#include "analysis/ranks/rank_workers.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

/* A track of a worker. */
struct rank_workers_track {
	int64_t replica, stage, shard;
	uint32_t track;
};

struct rank_workers {
	struct rank_workers_track *v; /* by worker */
	uint32_t n, cap;
	unsigned workers;
};

static const char *const rank_task_names[RANK_N_TASKS] = {
#define RANK_TASK_NAME_(id, name, talks) name,
	RANK_TASKS(RANK_TASK_NAME_)
};

static enum rank_task_kind rank_task_kind_of(struct str name)
{
	for (unsigned k = 0; k < RANK_N_TASKS; k++)
		if (str_eqc(name, rank_task_names[k]))
			return (enum rank_task_kind)k;
	return RANK_TASK_OTHER;
}

/* "PP rank 1, TP rank 0, compute". */
static bool rank_workers_read_name(struct str name, struct rank_workers_track *t)
{
	struct str pp, tp;
	if (!str_split(&name, ',', &pp) || !str_split(&name, ',', &tp))
		return false;
	pp = str_trim(pp);
	tp = str_trim(tp);
	return str_skip(&pp, STR("PP rank ")) && str_skip(&tp, STR("TP rank ")) && str_to_i64(pp, &t->stage) && str_to_i64(tp, &t->shard) && t->stage >= 0 && t->shard >= 0 &&
	       t->stage <= INT32_MAX && t->shard <= INT32_MAX;
}

static int rank_workers_compare(const struct rank_workers_track *a, const struct rank_workers_track *b)
{
	return COMPARE(a->replica, b->replica) ?: COMPARE(a->stage, b->stage) ?: COMPARE(a->shard, b->shard);
}

static int rank_workers_by_worker(const void *a, const void *b)
{
	const struct rank_workers_track *x = a, *y = b;
	return rank_workers_compare(x, y) ?: COMPARE(x->track, y->track);
}

static bool rank_workers_arg(const struct profile *p, uint32_t i, enum arg_key key, int64_t *v)
{
	struct str text;
	return profile_arg(p, p->span.args[i], key, &text) && str_to_i64(text, v);
}

/* The rows of span on a track: from the first to before the last. */
static uint32_t rank_workers_first_span(const struct profile *p, uint32_t track)
{
	return FIRST_WHERE(i, 0, p->span.rows.n, p->span.track[i] >= track);
}

static void rank_workers_find(const struct profile *p, struct rank_workers *w)
{
	*w = (struct rank_workers){0};
	if (p->gpu_op.rows.n || !profile_has_arg(p, ARG_TASK_STEP) || !profile_has_arg(p, ARG_TASK_SEQUENCE))
		return;
	for (uint32_t i = 0; i < p->track.rows.n; i++) {
		struct rank_workers_track t = {.replica = p->track.pid[i], .track = i};
		uint32_t first = rank_workers_first_span(p, i);
		int64_t step;
		if (t.replica >= 0 && t.replica <= INT32_MAX && rank_workers_read_name(profile_str(p, p->track.thread_name[i]), &t) && first < p->span.rows.n &&
		    p->span.track[first] == i && rank_workers_arg(p, first, ARG_TASK_STEP, &step))
			MEM_PUSH(w->v, w->n, w->cap, t);
	}
	if (w->n)
		qsort(w->v, w->n, sizeof *w->v, rank_workers_by_worker);
	for (uint32_t i = 0; i < w->n; i++)
		w->workers += !i || rank_workers_compare(&w->v[i - 1], &w->v[i]) != 0;
}

unsigned rank_workers_count(const struct profile *p)
{
	struct rank_workers w;
	rank_workers_find(p, &w);
	mem_free(w.v);
	return w.workers;
}

/* The tasks of one track. Events without a step are none. */
static void rank_worker_read_track(const struct profile *p, uint32_t track, struct rank *r, uint32_t *cap)
{
	for (uint32_t i = rank_workers_first_span(p, track); i < p->span.rows.n && p->span.track[i] == track; i++) {
		struct str name = profile_str(p, p->span.name[i]);
		struct rank_task t = {.start_ns = p->span.start_ns[i], .end_ns = span_end(p, i), .name = intern_str(&r->texts, name), .kind = (uint8_t)rank_task_kind_of(name)};
		int64_t chunk;
		r->is_interleaved |= rank_workers_arg(p, i, ARG_TASK_CHUNK, &chunk) && chunk > 0;
		if (rank_workers_arg(p, i, ARG_TASK_STEP, &t.step) && rank_workers_arg(p, i, ARG_TASK_SEQUENCE, &t.seq) && t.seq >= 0)
			MEM_PUSH(r->task, r->n_tasks, *cap, t);
	}
}

/* By step, then by start. */
static void rank_worker_sort_tasks(struct rank *r)
{
	struct sort_item *order = NEW_ARRAY_RAW(r->n_tasks, struct sort_item);
	struct rank_task *sorted = NEW_ARRAY_RAW(r->n_tasks, struct rank_task);
	for (uint32_t i = 0; i < r->n_tasks; i++)
		order[i] = (struct sort_item){sort_key_i64(r->task[i].start_ns), i, 0};
	sort_items(order, r->n_tasks);
	for (uint32_t i = 0; i < r->n_tasks; i++)
		order[i].key = sort_key_i64(r->task[order[i].row].step);
	sort_items(order, r->n_tasks);
	for (uint32_t i = 0; i < r->n_tasks; i++)
		sorted[i] = r->task[order[i].row];
	mem_free(order);
	mem_free(r->task);
	r->task = sorted;
}

/* The step goes from the first to the last of the worker's tasks. Its phases are not told: what keeps a worker of a pipeline is another stage. */
static void rank_worker_find_steps(struct rank *r)
{
	uint32_t cap = 0;
	for (uint32_t i = 0; i < r->n_tasks; i++) {
		const struct rank_task *t = &r->task[i];
		if (!r->n_steps || r->step[r->n_steps - 1].number != t->step)
			MEM_PUSH(r->step, r->n_steps, cap, ((struct rank_step){.number = t->step, .start_ns = t->start_ns, .end_ns = t->end_ns}));
		struct rank_step *s = &r->step[r->n_steps - 1];
		s->end_ns = t->end_ns > s->end_ns ? t->end_ns : s->end_ns;
	}
	for (uint32_t i = 0; i < r->n_steps; i++) {
		struct rank_step *s = &r->step[i];
		s->busy.ns[BUSY_TOTAL] = s->busy.ns[BUSY_IDLE] = s->phase_ns[RANK_PHASE_OTHER] = s->end_ns - s->start_ns;
	}
}

struct rank *rank_worker_new(const struct profile *p, unsigned i)
{
	struct rank_workers w;
	struct rank *r = NEW(struct rank);
	uint32_t cap = 0;
	unsigned worker = 0;
	rank_workers_find(p, &w);
	intern_init(&r->texts);
	r->path = arena_str(&r->arena, p->input_path);
	r->number = i;
	r->world = w.workers;
	r->device = INT32_MIN;
	r->gpu = STR("");
	r->is_worker = true;
	for (uint32_t k = 0; k < w.n; k++) {
		worker += k && rank_workers_compare(&w.v[k - 1], &w.v[k]) != 0;
		if (worker != i)
			continue;
		r->replica = w.v[k].replica;
		r->stage = w.v[k].stage;
		r->shard = w.v[k].shard;
		rank_worker_read_track(p, w.v[k].track, r, &cap);
	}
	mem_free(w.v);
	rank_worker_sort_tasks(r);
	rank_worker_find_steps(r);
	return r;
}
