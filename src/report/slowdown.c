/* What slow workers, stages, replicas and kinds of tasks cost the step: by replay (analysis/ranks/job_replay.h). */
#include "analysis/ranks/job_replay.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "query/report.h"

enum slowdown_by { SLOWDOWN_BY_WORKER, SLOWDOWN_BY_STAGE, SLOWDOWN_BY_REPLICA, SLOWDOWN_BY_OP };

enum {
	SLOWDOWN_WORKER, SLOWDOWN_REPLICA, SLOWDOWN_STAGE, SLOWDOWN_SHARD, SLOWDOWN_OP, SLOWDOWN_REMOVED, SLOWDOWN_REMOVED_PCT, SLOWDOWN_ADDED, SLOWDOWN_ADDED_PCT, SLOWDOWN_RATIO
};

/* At most so many workers are replayed one by one: those whose stage and replica are both slow, by the smaller slowdown of the two. */
enum { SLOWDOWN_WORKERS = 64 };

static const struct section slowdown_section = {COLUMNS(
	[SLOWDOWN_WORKER] = {COLUMN(NUMBER, "rank", "Worker", "its number: workers are in order of replica, stage and shard", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(SLOWDOWN_BY_WORKER)},
	[SLOWDOWN_REPLICA] = {COLUMN(NUMBER, "replica", "Replica", "data-parallel rank", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(SLOWDOWN_BY_WORKER) | BY(SLOWDOWN_BY_REPLICA)},
	[SLOWDOWN_STAGE] = {COLUMN(NUMBER, "stage", "Stage", "of the pipeline", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(SLOWDOWN_BY_WORKER) | BY(SLOWDOWN_BY_STAGE)},
	[SLOWDOWN_SHARD] = {COLUMN(NUMBER, "shard", "Shard", "tensor-parallel rank", .flags = COLUMN_DETAIL), .by = BY(SLOWDOWN_BY_WORKER)},
	[SLOWDOWN_OP] = {COLUMN(TEXT, "op", "Op", "name of the tasks", .flags = COLUMN_ANSWER), .by = BY(SLOWDOWN_BY_OP)},
	[SLOWDOWN_REMOVED] = {COLUMN(MEAN_NS, "removed_ns", "Gain without", "by how much a step is shorter if these tasks alone take the ideal time; mean", .flags = COLUMN_ANSWER)},
	[SLOWDOWN_REMOVED_PCT] = {COLUMN(PERCENT, "removed_pct", "Gain %", "Gain without / (step - ideal step). These do not add up: tasks hide each other's delays",
	                                 .flags = COLUMN_ANSWER)},
	[SLOWDOWN_ADDED] = {COLUMN(MEAN_NS, "added_ns", "Cost alone", "by how much an ideal step is longer if these tasks alone take their own time; mean", .flags = COLUMN_ANSWER)},
	[SLOWDOWN_ADDED_PCT] = {COLUMN(PERCENT, "added_pct", "Cost %", "Cost alone / (step - ideal step); these do not add up either")},
	[SLOWDOWN_RATIO] = {COLUMN(REAL, "slowdown", "Slowdown", "(ideal step + Cost alone) / ideal step", .digits = 5)},
)};

struct slowdown_run {
	struct job_replay *x;
	int64_t whole, ideal;        /* sums over the steps */
	uint8_t *ranks, *names;      /* which ones a replay takes as they are */
	struct table *t;
};

/* A row of the tasks that w->ranks and w->names choose. `names`: the names choose, not the ranks. */
static void slowdown_put_effects(struct slowdown_run *w, bool names)
{
	const uint32_t n = names ? w->x->names.n : w->x->j->n;
	uint8_t *chosen = names ? w->names : w->ranks;
	const double steps = w->x->n, all = (double)(w->whole - w->ideal);
	int64_t added = job_replay_time(w->x, names ? NULL : chosen, names ? chosen : NULL) - w->ideal;
	for (uint32_t i = 0; i < n; i++)
		chosen[i] = !chosen[i];
	int64_t removed = w->whole - job_replay_time(w->x, names ? NULL : chosen, names ? chosen : NULL);
	table_set_f64(w->t, SLOWDOWN_REMOVED, (double)removed / steps);
	table_set_f64(w->t, SLOWDOWN_REMOVED_PCT, percent((double)removed, all));
	table_set_f64(w->t, SLOWDOWN_ADDED, (double)added / steps);
	table_set_f64(w->t, SLOWDOWN_ADDED_PCT, percent((double)added, all));
	if (w->ideal)
		table_set_f64(w->t, SLOWDOWN_RATIO, (double)(w->ideal + added) / (double)w->ideal);
}

static int64_t slowdown_place(const struct rank *r, enum slowdown_by by) { return by == SLOWDOWN_BY_STAGE ? r->stage : r->replica; }

/* The ranks of a stage, or of a replica, ascending. The caller's (mem_free). */
static int64_t *slowdown_places(const struct job *j, enum slowdown_by by, uint32_t *n)
{
	int64_t *v = NEW_ARRAY(j->n, int64_t);
	uint32_t kept = 0;
	for (uint32_t r = 0; r < j->n; r++)
		v[r] = slowdown_place(j->rank[r], by);
	sort_i64(v, j->n);
	for (uint32_t r = 0; r < j->n; r++)
		if (!r || v[r] != v[r - 1])
			v[kept++] = v[r];
	*n = kept;
	return v;
}

static void slowdown_choose_place(struct slowdown_run *w, enum slowdown_by by, int64_t place)
{
	for (uint32_t r = 0; r < w->x->j->n; r++)
		w->ranks[r] = slowdown_place(w->x->j->rank[r], by) == place;
}

static void slowdown_put_places(struct slowdown_run *w, enum slowdown_by by)
{
	uint32_t n;
	int64_t *place = slowdown_places(w->x->j, by, &n);
	for (uint32_t i = 0; i < n; i++) {
		slowdown_choose_place(w, by, place[i]);
		table_row(w->t);
		table_set_i64(w->t, by == SLOWDOWN_BY_STAGE ? SLOWDOWN_STAGE : SLOWDOWN_REPLICA, place[i]);
		slowdown_put_effects(w, false);
	}
	mem_free(place);
}

static void slowdown_put_ops(struct slowdown_run *w)
{
	for (uint32_t i = 1; i < w->x->names.n; i++) {
		for (uint32_t k = 0; k < w->x->names.n; k++)
			w->names[k] = k == i;
		table_row(w->t);
		table_set_str_copy(w->t, SLOWDOWN_OP, intern_get(&w->x->names, i));
		slowdown_put_effects(w, true);
	}
}

/* The workers that are replayed, in no order: all, or those whose stage and replica both cost much. */
static uint32_t slowdown_choose_workers(struct slowdown_run *w, struct sort_item *out)
{
	const struct job *j = w->x->j;
	int64_t *score = NEW_ARRAY(j->n, int64_t);
	for (uint32_t r = 0; r < j->n; r++)
		out[r] = (struct sort_item){0, r, 0};
	for (enum slowdown_by by = SLOWDOWN_BY_STAGE; by <= SLOWDOWN_BY_REPLICA && j->n > SLOWDOWN_WORKERS; by++) {
		uint32_t n;
		int64_t *place = slowdown_places(j, by, &n);
		for (uint32_t i = 0; i < n; i++) {
			slowdown_choose_place(w, by, place[i]);
			int64_t ns = job_replay_time(w->x, w->ranks, NULL);
			for (uint32_t r = 0; r < j->n; r++)
				if (slowdown_place(j->rank[r], by) == place[i])
					score[r] = by == SLOWDOWN_BY_STAGE || ns < score[r] ? ns : score[r];
		}
		mem_free(place);
	}
	for (uint32_t r = 0; r < j->n; r++)
		out[r].key = sort_key_i64(-score[r]);
	sort_items(out, j->n);
	mem_free(score);
	return j->n < SLOWDOWN_WORKERS ? j->n : SLOWDOWN_WORKERS;
}

static void slowdown_put_workers(struct slowdown_run *w)
{
	const struct job *j = w->x->j;
	struct sort_item *chosen = NEW_ARRAY_RAW(j->n, struct sort_item);
	uint32_t n = slowdown_choose_workers(w, chosen);
	for (uint32_t i = 0; i < n; i++) {
		const struct rank *r = j->rank[chosen[i].row];
		for (uint32_t k = 0; k < j->n; k++)
			w->ranks[k] = k == chosen[i].row;
		table_row(w->t);
		table_set_i64(w->t, SLOWDOWN_WORKER, job_rank_number(j, chosen[i].row));
		table_set_i64(w->t, SLOWDOWN_REPLICA, r->replica);
		table_set_i64(w->t, SLOWDOWN_STAGE, r->stage);
		table_set_i64(w->t, SLOWDOWN_SHARD, r->shard);
		slowdown_put_effects(w, false);
	}
	mem_free(chosen);
	if (n < j->n)
		table_note(w->t, "%u of %u workers are shown: those whose stage and replica are both slow, by the smaller slowdown of the two", n, j->n);
}

static void slowdown_put_notes(const struct slowdown_run *w)
{
	const double steps = w->x->n;
	table_note(w->t, "a step takes %.0f ns if each task begins when what it waits for has ended, and %.0f ns if tasks of one name also take the same on all workers in all steps (the mean; of "
	           "communication, the median): a slowdown of %.5f. As recorded it takes %.0f ns: only there can hosts launch late (means of %u step%s)",
	           (double)w->whole / steps, (double)w->ideal / steps, w->ideal ? (double)w->whole / (double)w->ideal : 1.0, w->x->recorded_ns / steps, w->x->n, w->x->n == 1 ? "" : "s");
	table_note(w->t, "Gain without and Cost alone are different questions: tasks that are slow beside each other gain nothing one by one. Neither adds up to the whole");
	if (w->x->contradict)
		table_warn(w->t, "%u step%s left out: their tasks wait for each other in a circle", w->x->contradict, w->x->contradict == 1 ? " is" : "s are");
}

static int slowdown_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	section_start(&slowdown_section, args, 0, out);
	struct job_replay *x = job_replay_new(j, first, last, e);
	if (!x)
		return -1;
	struct slowdown_run w = {.x = x, .t = out, .whole = job_replay_time(x, NULL, NULL), .ranks = NEW_ARRAY(j->n, uint8_t), .names = NEW_ARRAY(x->names.n, uint8_t)};
	w.ideal = job_replay_time(x, w.ranks, NULL); /* no rank takes its own time */
	switch ((enum slowdown_by)args->variant->by) {
	case SLOWDOWN_BY_WORKER: slowdown_put_workers(&w); break;
	case SLOWDOWN_BY_OP: slowdown_put_ops(&w); break;
	case SLOWDOWN_BY_STAGE:
	case SLOWDOWN_BY_REPLICA: slowdown_put_places(&w, (enum slowdown_by)args->variant->by); break;
	}
	slowdown_put_notes(&w);
	mem_free(w.ranks);
	mem_free(w.names);
	job_replay_free(x);
	return table_sort(out, STR("removed_ns"), true, e);
}

const struct report report_slowdown = {
	.name = "slowdown",
	.title = "What slow workers cost the step",
	.asks = ASKS_MOVE,
	.also = "what_if straggler slow_worker replay simulation",
	.help = "How long a step of a job with pipeline stages would be if all workers were alike, and how much of the difference is because of each worker, stage, replica or kind of task: the step is "
	        "replayed with other times of the tasks. It takes a timeline of workers: a Chrome trace in which each thread is a stream of a worker, named as \"PP rank 0, TP rank 0, compute\", each "
	        "process is a data-parallel rank, and each event is a task (forward-compute, forward-send, ...) with the arguments step and seq_id.",
	.sections = (const struct section *const[]){&slowdown_section, NULL},
	.variants = (const struct report_variant[]){{.group_by = "worker", .by = SLOWDOWN_BY_WORKER}, {.group_by = "stage", .by = SLOWDOWN_BY_STAGE},
	                                            {.group_by = "replica", .by = SLOWDOWN_BY_REPLICA}, {.group_by = "op", .by = SLOWDOWN_BY_OP}, {0}},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS | REPORT_WORKERS,
	.timeline = true,
	.run_job = slowdown_run,
};
