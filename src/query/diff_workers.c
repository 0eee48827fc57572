#include "query/diff_workers.h"

#include "analysis/ranks/rank_workers.h"
#include "analysis/tree/direction.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>

/* A worker that computes so many times as long as the median one is named. */
static const double DIFF_WORKERS_NAMED = 1.1;

/* Which kinds of tasks communicate. */
static const bool diff_workers_talks[] = {
#define DIFF_WORKERS_TALKS_(id, name, talks) [RANK_TASK_##id] = talks,
	RANK_TASKS(DIFF_WORKERS_TALKS_)
	[RANK_TASK_OTHER] = false
};

struct diff_workers_step {
	int64_t number, start_ns, end_ns;
};

struct diff_workers {
	struct diff_side *side;
	struct rank **rank;
	unsigned n;
	struct diff_workers_step *step; /* that are compared, in order of time */
	uint32_t n_steps, cap_steps;
	int64_t *compute_ns;     /* by worker: of these steps */
};

/* The tasks of a worker in one step, which run at a moment. */
struct diff_workers_running {
	const struct rank_task *task;
	uint32_t *place;         /* by task: in v of its kind */
	uint32_t *v[2], n[2];    /* of computation, of communication */
	int64_t *share_ns;       /* by task */
};

/* ---- steps ---- */

static int diff_workers_by_number(const void *a, const void *b)
{
	const struct diff_workers_step *x = a, *y = b;
	return COMPARE(x->number, y->number);
}

static int diff_workers_by_start(const void *a, const void *b)
{
	const struct diff_workers_step *x = a, *y = b;
	return COMPARE(x->start_ns, y->start_ns) ?: COMPARE(x->number, y->number);
}

/* The steps of all workers together, in order of time. */
static void diff_workers_find_steps(struct diff_workers *w)
{
	uint32_t kept = 0;
	for (unsigned r = 0; r < w->n; r++)
		for (uint32_t i = 0; i < w->rank[r]->n_steps; i++) {
			const struct rank_step *x = &w->rank[r]->step[i];
			MEM_PUSH(w->step, w->n_steps, w->cap_steps, ((struct diff_workers_step){x->number, x->start_ns, x->end_ns}));
		}
	if (w->n_steps)
		qsort(w->step, w->n_steps, sizeof *w->step, diff_workers_by_number);
	for (uint32_t i = 0; i < w->n_steps; i++) {
		const struct diff_workers_step *x = &w->step[i];
		if (!kept || w->step[kept - 1].number != x->number) {
			w->step[kept++] = *x;
			continue;
		}
		struct diff_workers_step *to = &w->step[kept - 1];
		to->start_ns = x->start_ns < to->start_ns ? x->start_ns : to->start_ns;
		to->end_ns = x->end_ns > to->end_ns ? x->end_ns : to->end_ns;
	}
	w->n_steps = kept;
	if (kept)
		qsort(w->step, kept, sizeof *w->step, diff_workers_by_start);
}

/* Keeps the steps that are asked for: all but the warm-up, where none are. */
static int diff_workers_choose_steps(struct diff_workers *w, const struct profile *p, const struct report_args *args, struct err *e)
{
	struct diff_side *s = w->side;
	uint32_t kept = 0;
	int64_t all_ns = 0;
	s->step_ns = NEW_ARRAY(w->n_steps + 1, int64_t);
	for (uint32_t i = 0; i < w->n_steps; i++)
		s->step_ns[i] = w->step[i].end_ns - w->step[i].start_ns;
	s->warm_up = args->has_steps || args->all_steps ? 0 : diff_side_warm_up(s->step_ns, w->n_steps);
	for (uint32_t i = s->warm_up; i < w->n_steps; i++) {
		if (args->has_steps && (w->step[i].number < args->step_first || w->step[i].number > args->step_last))
			continue;
		w->step[kept] = w->step[i];
		s->step_ns[kept] = w->step[i].end_ns - w->step[i].start_ns;
		if (__builtin_add_overflow(all_ns, s->step_ns[kept++], &all_ns))
			return err_set(e, ERR_DATA, "%s: the steps are longer than 64 bits hold of ns: a time is damaged", p->input_path.p);
	}
	w->n_steps = s->n_steps = kept;
	if (!kept && args->has_steps)
		return err_set(e, ERR_USAGE, "%s: no step has a number of %s", p->input_path.p, steps_range_text(args->step_first, args->step_last).s);
	if (!all_ns)
		return err_set(e, ERR_DATA, "%s: the steps take no time", p->input_path.p);
	if (__builtin_mul_overflow(all_ns, (int64_t)w->n, &s->total_ns))
		return err_set(e, ERR_DATA, "%s: the steps of all workers are longer than 64 bits hold of ns: a time is damaged", p->input_path.p);
	return 0;
}

/* ---- tasks ---- */

static void diff_workers_edge(struct diff_workers_running *x, const struct sort_item *edge)
{
	const bool talks = diff_workers_talks[x->task[edge->row].kind];
	uint32_t *v = x->v[talks], *n = &x->n[talks];
	if (!edge->tie) {
		x->place[edge->row] = *n;
		v[(*n)++] = edge->row;
		return;
	}
	const uint32_t last = v[--*n];
	v[x->place[edge->row]] = last;
	x->place[last] = x->place[edge->row];
}

/* Gives each of the tasks that run an equal part of `ns`; what division leaves over goes to the first ones. False: none runs. */
static bool diff_workers_share(struct diff_workers_running *x, int64_t ns)
{
	const bool talks = !x->n[0];
	const uint32_t n = x->n[talks];
	for (uint32_t i = 0; i < n; i++)
		x->share_ns[x->v[talks][i]] += ns / n + (i < ns % n);
	return n > 0;
}

static void diff_workers_add_idle(struct diff_side *s, const struct rank *r, const struct rank_task *next, int64_t ns)
{
	struct buf b = {0};
	if (!ns)
		return;
	if (next)
		buf_printf(&b, "until " STR_FMT " begins", STR_ARG(intern_get(&r->texts, next->name)));
	else
		buf_cstr(&b, "until the step ends");
	diff_side_add(s, &(struct diff_key){.name = intern_str(&s->texts, buf_view(&b)), .kind = DIFF_IDLE}, 0, ns);
	buf_release(&b);
}

static enum direction diff_workers_direction(struct str name)
{
	return str_starts(name, STR("forward")) ? DIR_FORWARD : str_starts(name, STR("backward")) ? DIR_BACKWARD : str_starts(name, STR("optimizer")) ? DIR_OPTIMIZER : DIR_OTHER;
}

static void diff_workers_add_task(struct diff_workers *w, unsigned worker, const struct rank_task *x, int64_t ns)
{
	struct diff_side *s = w->side;
	const struct str name = intern_get(&w->rank[worker]->texts, x->name);
	const bool talks = diff_workers_talks[x->kind];
	const uint32_t text = intern_str(&s->texts, name);
	const struct diff_key key = {.name = text, .type = text, .kernel = text, .kind = talks ? DIFF_COMM : DIFF_COMPUTE, .direction = (uint8_t)diff_workers_direction(name)};
	struct diff_part *part = diff_side_add(s, &key, 1, ns);
	part->wait_unknown_ns = part->maybe_wait_ns = talks ? part->ns : 0;
	w->compute_ns[worker] += talks ? 0 : ns;
}

/* One step of one worker, which has n tasks in it. */
static void diff_workers_take_step(struct diff_workers *w, unsigned worker, const struct diff_workers_step *step, const struct rank_task *task, uint32_t n)
{
	struct diff_workers_running x = {.task = task, .place = NEW_ARRAY_RAW(n, uint32_t), .v = {NEW_ARRAY_RAW(n, uint32_t), NEW_ARRAY_RAW(n, uint32_t)}, .share_ns = NEW_ARRAY(n, int64_t)};
	struct sort_item *edge = NEW_ARRAY_RAW(2 * (size_t)n, struct sort_item);
	uint32_t edges = 0;
	int64_t at = step->start_ns;
	for (uint32_t i = 0; i < n; i++)
		if (task[i].end_ns > task[i].start_ns) {
			edge[edges++] = (struct sort_item){sort_key_i64(task[i].start_ns), i, 0};
			edge[edges++] = (struct sort_item){sort_key_i64(task[i].end_ns), i, 1};
		}
	sort_items(edge, edges);
	for (uint32_t i = 0; i <= edges; i++) {
		const struct rank_task *of = i < edges ? &task[edge[i].row] : NULL;
		const int64_t next = !of ? step->end_ns : edge[i].tie ? of->end_ns : of->start_ns;
		assert(next >= at && next <= step->end_ns);
		if (!diff_workers_share(&x, next - at))
			diff_workers_add_idle(w->side, w->rank[worker], of, next - at);
		if (of)
			diff_workers_edge(&x, &edge[i]);
		at = next;
	}
	for (uint32_t i = 0; i < n; i++)
		diff_workers_add_task(w, worker, &task[i], x.share_ns[i]);
	mem_free(x.place);
	mem_free(x.v[0]);
	mem_free(x.v[1]);
	mem_free(x.share_ns);
	mem_free(edge);
}

/* Which worker computes much longer than most, since means over the workers do not tell. */
static void diff_workers_name_slowest(struct diff_workers *w)
{
	unsigned most = 0;
	for (unsigned r = 1; r < w->n; r++)
		most = w->compute_ns[r] > w->compute_ns[most] ? r : most;
	const struct rank *r = w->rank[most];
	const double longest = (double)w->compute_ns[most], median = (double)sort_median_i64(w->compute_ns, w->n), unit = longest / w->n_steps < 1e9 ? 1e6 : 1e9;
	const char *name = unit < 1e9 ? "ms" : "s";
	if (median <= 0 || longest < DIFF_WORKERS_NAMED * median)
		return;
	w->side->slowest_pct = longest < median * 1000 ? (unsigned)(100 * longest / median) : 100000;
	w->side->slowest = arena_printf(&w->side->arena, "worker %u (replica %lld, stage %lld) computes %.1f %s of a step, the median worker %.1f %s", most, (long long)r->replica,
		                                (long long)r->stage, longest / w->n_steps / unit, name, median / w->n_steps / unit, name);
}

int diff_workers_take(struct diff_side *s, const struct profile *p, const struct report_args *args, struct err *e)
{
	struct diff_workers w = {.side = s, .n = rank_workers_count(p)};
	w.rank = NEW_ARRAY(w.n, struct rank *);
	w.compute_ns = NEW_ARRAY(w.n, int64_t);
	for (unsigned r = 0; r < w.n; r++)
		w.rank[r] = rank_worker_new(p, r);
	s->gpus = w.n;
	s->workers = true;
	s->has_steps = true;
	s->window = WINDOW_STEPS;
	diff_workers_find_steps(&w);
	const int rc = diff_workers_choose_steps(&w, p, args, e);
	for (unsigned r = 0; r < w.n && rc == 0; r++)
		for (uint32_t i = 0; i < w.n_steps; i++) {
			const struct rank *x = w.rank[r];
			const uint32_t from = FIRST_WHERE(k, 0, x->n_tasks, x->task[k].step >= w.step[i].number), to = FIRST_WHERE(k, from, x->n_tasks, x->task[k].step > w.step[i].number);
			diff_workers_take_step(&w, r, &w.step[i], x->task + from, to - from);
		}
	if (rc == 0)
		diff_workers_name_slowest(&w);
	for (unsigned r = 0; r < w.n; r++)
		rank_free(w.rank[r]);
	mem_free(w.rank);
	mem_free(w.step);
	mem_free(w.compute_ns);
	return rc;
}
