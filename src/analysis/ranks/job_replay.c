#include "analysis/ranks/job_replay.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

/* Times are rounded to ns: a task that begins so much before another one ends begins behind it. */
enum { JOB_REPLAY_ROUNDING_NS = 1000 };

/* A task in a step. */
struct job_replay_task {
	const struct rank_task *task;
	uint32_t rank, name;         /* index into job->rank; of replay->names */
	uint32_t unit;               /* tasks that wait for each other are one unit */
	uint32_t first_dep;          /* of step->dep, up to that of the next task */
	int64_t ns;                  /* computation, or transfer */
};

struct job_replay_step {
	struct job_replay_task *task; /* by rank, then in order of start; one more ends the dependencies */
	uint32_t n;
	uint32_t *dep;               /* tasks */
	uint32_t n_deps, cap_deps;
	uint32_t *member, *first_member; /* by unit */
	uint32_t units;
	uint32_t *order;             /* units, each behind those that it depends on */
};

static bool job_replay_talks(uint8_t kind)
{
	static const bool talks[RANK_N_TASKS + 1] = {
#define JOB_REPLAY_TALKS_(id, name, talks) talks,
		RANK_TASKS(JOB_REPLAY_TALKS_)
	};
	return talks[kind];
}

static bool job_replay_computes(uint8_t kind) { return kind == RANK_TASK_FORWARD || kind == RANK_TASK_BACKWARD; }
static bool job_replay_is_p2p(uint8_t kind) { return kind >= RANK_TASK_FORWARD_SEND && kind <= RANK_TASK_BACKWARD_RECV; }

/* ---- which tasks begin together ---- */

/* What names a unit. Computation has one for each task. */
struct job_replay_key {
	int64_t what, replica, stage, shard, seq;
};

/* False: the task waits for none. */
static bool job_replay_key_of(const struct rank *r, const struct rank_task *t, uint32_t name, struct job_replay_key *key)
{
	*key = (struct job_replay_key){.what = t->kind, .shard = r->shard, .seq = t->seq};
	switch (t->kind) {
	case RANK_TASK_FORWARD_SEND:
	case RANK_TASK_FORWARD_RECV:
		key->what = RANK_TASK_FORWARD_SEND;
		key->replica = r->replica;
		key->stage = t->kind == RANK_TASK_FORWARD_SEND ? r->stage : r->stage - 1;
		return true;
	case RANK_TASK_BACKWARD_SEND:
	case RANK_TASK_BACKWARD_RECV:
		key->what = RANK_TASK_BACKWARD_SEND;
		key->replica = r->replica;
		key->stage = t->kind == RANK_TASK_BACKWARD_SEND ? r->stage : r->stage + 1;
		return true;
	case RANK_TASK_REDUCE_EMBEDDING:
		key->replica = r->replica;
		return true;
	case RANK_TASK_GATHER_PARAMS:
	case RANK_TASK_REDUCE_GRADS:
		key->what = RANK_N_TASKS + (int64_t)name;
		key->stage = r->stage;
		return true;
	case RANK_TASK_CLIP:
		key->shard = 0;
		return true;
	default:
		return false;
	}
}

static void job_replay_find_units(const struct job_replay *x, struct job_replay_step *s)
{
	struct intern keys;
	uint32_t *unit_of_key = NEW_ARRAY((size_t)s->n + 1, uint32_t), *fill;
	intern_init(&keys);
	for (uint32_t i = 0; i < s->n; i++) {
		struct job_replay_task *t = &s->task[i];
		struct job_replay_key key;
		uint32_t before = keys.n, id = UINT32_MAX;
		if (job_replay_key_of(x->j->rank[t->rank], t->task, t->name, &key))
			id = intern_put(&keys, (const char *)&key, sizeof key) - 1;
		bool known = id != UINT32_MAX && keys.n == before;
		t->unit = known ? unit_of_key[id] : s->units++;
		if (id != UINT32_MAX)
			unit_of_key[id] = t->unit;
	}
	intern_release(&keys);
	mem_free(unit_of_key);
	s->first_member = NEW_ARRAY((size_t)s->units + 1, uint32_t);
	s->member = NEW_ARRAY(s->n, uint32_t);
	for (uint32_t i = 0; i < s->n; i++)
		s->first_member[s->task[i].unit + 1]++;
	for (uint32_t u = 0; u < s->units; u++)
		s->first_member[u + 1] += s->first_member[u];
	fill = NEW_ARRAY(s->units, uint32_t);
	for (uint32_t i = 0; i < s->n; i++)
		s->member[s->first_member[s->task[i].unit] + fill[s->task[i].unit]++] = i;
	mem_free(fill);
}

/* The time of computation, and of a transfer from when the last of its unit began. */
static void job_replay_find_times(struct job_replay_step *s)
{
	for (uint32_t u = 0; u < s->units; u++) {
		int64_t start = INT64_MIN;
		for (uint32_t m = s->first_member[u]; m < s->first_member[u + 1]; m++)
			start = s->task[s->member[m]].task->start_ns > start ? s->task[s->member[m]].task->start_ns : start;
		for (uint32_t m = s->first_member[u]; m < s->first_member[u + 1]; m++) {
			struct job_replay_task *t = &s->task[s->member[m]];
			t->ns = t->task->end_ns > start ? t->task->end_ns - start : 0;
		}
	}
}

/* ---- what tasks of one worker come behind ---- */

/* The tasks from..to of one worker, while what they depend on is found. */
struct job_replay_worker {
	struct job_replay_step *s;
	uint32_t from, to;
	uint32_t *compute[2];        /* forward and backward computations, in order */
	uint32_t n_compute[2];
	uint32_t before_backward;    /* the forward before the last one before the first backward; UINT32_MAX = there is none */
};

static void job_replay_look_at_worker(struct job_replay_worker *w)
{
	const struct job_replay_step *s = w->s;
	uint32_t last = UINT32_MAX, one_before = UINT32_MAX;
	w->n_compute[0] = w->n_compute[1] = 0;
	w->before_backward = UINT32_MAX;
	for (uint32_t i = w->from; i < w->to; i++) {
		uint8_t kind = s->task[i].task->kind;
		if (!job_replay_computes(kind))
			continue;
		if (kind == RANK_TASK_BACKWARD && !w->n_compute[1])
			w->before_backward = one_before;
		w->compute[kind == RANK_TASK_BACKWARD][w->n_compute[kind == RANK_TASK_BACKWARD]++] = i;
		one_before = last;
		last = i;
	}
}

static void job_replay_depend(struct job_replay_step *s, uint32_t on)
{
	if (on != UINT32_MAX)
		MEM_PUSH(s->dep, s->n_deps, s->cap_deps, on);
}

/* Where a task stands among those of its kind, and what came before it. */
struct job_replay_so_far {
	uint32_t last[RANK_N_TASKS + 1], n[RANK_N_TASKS + 1]; /* by kind */
	uint32_t compute, ended;     /* the last computation that began, and the last of those that had ended; UINT32_MAX = none */
	uint32_t other;              /* the last task that neither computes nor is sent */
	uint32_t gathered;           /* the last gathering of parameters */
};

static void job_replay_depend_p2p(struct job_replay_worker *w, const struct job_replay_so_far *f, uint8_t kind, uint32_t at)
{
	const int backward = kind == RANK_TASK_BACKWARD_SEND || kind == RANK_TASK_BACKWARD_RECV;
	const bool receives = kind == RANK_TASK_FORWARD_RECV || kind == RANK_TASK_BACKWARD_RECV;
	job_replay_depend(w->s, f->last[kind]);
	if (!receives && at < w->n_compute[backward])
		job_replay_depend(w->s, w->compute[backward][at]);
	if (receives && at && at - 1 < w->n_compute[backward])
		job_replay_depend(w->s, w->compute[backward][at - 1]);
	if (backward && !at)
		job_replay_depend(w->s, w->before_backward);
}

/* Computation number `at` of its direction. `receive`: the receives of that direction, in order. */
static void job_replay_depend_compute(struct job_replay_worker *w, const struct job_replay_so_far *f, uint32_t at, const uint32_t *receive, uint32_t n_receives)
{
	job_replay_depend(w->s, f->compute);
	if (at < n_receives)
		job_replay_depend(w->s, receive[at]);
	if (f->compute == UINT32_MAX)
		job_replay_depend(w->s, f->gathered);
}

static void job_replay_pass_compute(const struct job_replay_step *s, struct job_replay_so_far *f, const uint32_t *compute, uint32_t n, uint32_t *at, int64_t start)
{
	for (; *at < n && s->task[compute[*at]].task->end_ns <= start + JOB_REPLAY_ROUNDING_NS; (*at)++)
		if (f->ended == UINT32_MAX || s->task[compute[*at]].task->end_ns >= s->task[f->ended].task->end_ns)
			f->ended = compute[*at];
}

/* The dependencies of the worker's tasks, in order. `receive`: room for its receives of each direction. */
static void job_replay_find_deps(struct job_replay_worker *w, uint32_t *receive[2])
{
	struct job_replay_step *s = w->s;
	struct job_replay_so_far f = {.compute = UINT32_MAX, .ended = UINT32_MAX, .other = UINT32_MAX, .gathered = UINT32_MAX};
	uint32_t n_receives[2] = {0}, ended[2] = {0};
	memset(f.last, 0xff, sizeof f.last);
	job_replay_look_at_worker(w);
	for (uint32_t i = w->from; i < w->to; i++) {
		uint8_t kind = s->task[i].task->kind;
		if (kind == RANK_TASK_FORWARD_RECV || kind == RANK_TASK_BACKWARD_RECV)
			receive[kind == RANK_TASK_BACKWARD_RECV][n_receives[kind == RANK_TASK_BACKWARD_RECV]++] = i;
	}
	for (uint32_t i = w->from; i < w->to; i++) {
		uint8_t kind = s->task[i].task->kind;
		s->task[i].first_dep = s->n_deps;
		if (job_replay_computes(kind)) {
			int d = kind == RANK_TASK_BACKWARD;
			job_replay_depend_compute(w, &f, f.n[kind], receive[d], n_receives[d]);
			f.compute = i;
		} else if (job_replay_is_p2p(kind)) {
			job_replay_depend_p2p(w, &f, kind, f.n[kind]);
		} else {
			for (int d = 0; d < 2; d++)
				job_replay_pass_compute(s, &f, w->compute[d], w->n_compute[d], &ended[d], s->task[i].task->start_ns);
			job_replay_depend(s, f.other);
			job_replay_depend(s, f.ended);
			f.other = i;
			f.gathered = kind == RANK_TASK_GATHER_PARAMS ? i : f.gathered;
		}
		f.last[kind] = i;
		f.n[kind]++;
	}
	s->task[w->to].first_dep = s->n_deps;
}

static void job_replay_find_all_deps(struct job_replay_step *s)
{
	struct job_replay_worker w = {.s = s, .compute = {NEW_ARRAY(s->n, uint32_t), NEW_ARRAY(s->n, uint32_t)}};
	uint32_t *receive[2] = {NEW_ARRAY(s->n, uint32_t), NEW_ARRAY(s->n, uint32_t)};
	for (w.from = 0; w.from < s->n; w.from = w.to) {
		for (w.to = w.from + 1; w.to < s->n && s->task[w.to].rank == s->task[w.from].rank; w.to++)
			;
		job_replay_find_deps(&w, receive);
	}
	for (int d = 0; d < 2; d++) {
		mem_free(w.compute[d]);
		mem_free(receive[d]);
	}
}

/* Puts units behind those that they depend on. False where there is a circle. */
static bool job_replay_order(struct job_replay_step *s)
{
	uint32_t *waits = NEW_ARRAY(s->units, uint32_t), *first = NEW_ARRAY((size_t)s->units + 2, uint32_t), *next = NEW_ARRAY(s->n_deps, uint32_t), n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t d = s->task[i].first_dep; d < s->task[i + 1].first_dep; d++) {
			waits[s->task[i].unit]++;
			first[s->task[s->dep[d]].unit + 2]++;
		}
	for (uint32_t u = 0; u < s->units; u++)
		first[u + 2] += first[u + 1];
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t d = s->task[i].first_dep; d < s->task[i + 1].first_dep; d++)
			next[first[s->task[s->dep[d]].unit + 1]++] = s->task[i].unit;
	s->order = NEW_ARRAY(s->units, uint32_t);
	for (uint32_t u = 0; u < s->units; u++)
		if (!waits[u])
			s->order[n++] = u;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = first[s->order[k]]; i < first[s->order[k] + 1]; i++)
			if (!--waits[next[i]])
				s->order[n++] = next[i];
	mem_free(waits);
	mem_free(first);
	mem_free(next);
	return n == s->units;
}

/* ---- all steps ---- */

static void job_replay_free_step(struct job_replay_step *s)
{
	mem_free(s->task);
	mem_free(s->dep);
	mem_free(s->member);
	mem_free(s->first_member);
	mem_free(s->order);
}

void job_replay_free(struct job_replay *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n; i++)
		job_replay_free_step(&r->step[i]);
	mem_free(r->step);
	intern_release(&r->names);
	mem_free(r->ideal_ns);
	mem_free(r->talks);
	mem_free(r->end);
	mem_free(r->ns);
	mem_free(r);
}

/* The tasks of one step: those of each rank that has it, from where `part` says. NULL tasks: they contradict each other. */
static struct job_replay_step job_replay_collect(struct job_replay *x, const struct sort_item *part, uint32_t n_parts)
{
	struct job_replay_step s = {0};
	uint32_t cap = 0;
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t k = 0; k < n_parts; k++) {
		const struct rank *r = x->j->rank[part[k].row];
		for (uint32_t i = part[k].tie; i < r->n_tasks && r->task[i].step == r->task[part[k].tie].step; i++) {
			const struct rank_task *t = &r->task[i];
			MEM_PUSH(s.task, s.n, cap, ((struct job_replay_task){.task = t, .rank = part[k].row, .name = intern_str(&x->names, intern_get(&r->texts, t->name))}));
			first = t->start_ns < first ? t->start_ns : first;
			last = t->end_ns > last ? t->end_ns : last;
		}
	}
	MEM_PUSH(s.task, s.n, cap, (struct job_replay_task){0});
	s.n--;
	job_replay_find_units(x, &s);
	job_replay_find_times(&s);
	job_replay_find_all_deps(&s);
	if (!job_replay_order(&s)) {
		x->contradict++;
		job_replay_free_step(&s);
		return (struct job_replay_step){0};
	}
	x->recorded_ns += (double)(last - first);
	return s;
}

/* Where each rank's tasks of a step begin: by step, then by rank. */
static struct sort_item *job_replay_list_parts(const struct job *j, int64_t first, int64_t last, uint32_t *n)
{
	struct sort_item *v = NULL;
	uint32_t cap = 0;
	*n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		for (uint32_t i = 0; i < j->rank[r]->n_tasks; i++) {
			int64_t step = j->rank[r]->task[i].step;
			if (step >= first && step <= last && (!i || j->rank[r]->task[i - 1].step != step))
				MEM_PUSH(v, *n, cap, ((struct sort_item){sort_key_i64(step), r, i}));
		}
	if (*n)
		sort_items(v, *n);
	return v;
}

static void job_replay_collect_all(struct job_replay *x, int64_t first, int64_t last)
{
	uint32_t n;
	struct sort_item *part = job_replay_list_parts(x->j, first, last, &n);
	for (uint32_t i = 0, to; i < n; i = to) {
		for (to = i + 1; to < n && part[to].key == part[i].key; to++)
			;
		struct job_replay_step s = job_replay_collect(x, part + i, to - i);
		if (!s.n)
			continue;
		MEM_PUSH(x->step, x->n, x->cap, s);
		x->most_tasks = s.n > x->most_tasks ? s.n : x->most_tasks;
	}
	mem_free(part);
}

/* The mean of computations of a name, and the median of communication. */
static void job_replay_find_ideals(struct job_replay *x)
{
	const uint32_t names = x->names.n;
	uint32_t *first = NEW_ARRAY((size_t)names + 1, uint32_t), *fill = NEW_ARRAY(names, uint32_t);
	x->ideal_ns = NEW_ARRAY(names, int64_t);
	x->talks = NEW_ARRAY(names, bool);
	for (uint32_t i = 0; i < x->n; i++)
		for (uint32_t t = 0; t < x->step[i].n; t++) {
			first[x->step[i].task[t].name + 1]++;
			x->talks[x->step[i].task[t].name] = job_replay_talks(x->step[i].task[t].task->kind);
		}
	for (uint32_t k = 0; k < names; k++)
		first[k + 1] += first[k];
	int64_t *ns = NEW_ARRAY(first[names], int64_t);
	for (uint32_t i = 0; i < x->n; i++)
		for (uint32_t t = 0; t < x->step[i].n; t++)
			ns[first[x->step[i].task[t].name] + fill[x->step[i].task[t].name]++] = x->step[i].task[t].ns;
	for (uint32_t k = 0; k < names; k++) {
		double sum = 0;
		for (uint32_t i = first[k]; i < first[k + 1]; i++)
			sum += (double)ns[i];
		if (fill[k])
			x->ideal_ns[k] = x->talks[k] ? sort_median_i64(ns + first[k], fill[k]) : (int64_t)(sum / fill[k]);
	}
	mem_free(ns);
	mem_free(first);
	mem_free(fill);
}

struct job_replay *job_replay_new(const struct job *j, int64_t first, int64_t last, struct err *e)
{
	bool workers = ANY_WHERE(r, 0, j->n, j->rank[r]->is_worker), interleaved = ANY_WHERE(r, 0, j->n, j->rank[r]->is_interleaved);
	struct job_replay *x = NEW(struct job_replay);
	x->j = j;
	intern_init(&x->names);
	if (!interleaved)
		job_replay_collect_all(x, first, last);
	if (!x->n) {
		err_set(e, ERR_DATA, "what the step would take with other times is not known: %s",
		        !workers ? "it takes a timeline of workers, which states the tasks that forward, backward and communication are made of"
		        : interleaved ? "the workers have several chunks of the model each, and which send belongs to which receive is not told then"
		        : x->contradict ? "the tasks of the steps wait for each other in a circle" : "there is no such step");
		job_replay_free(x);
		return NULL;
	}
	job_replay_find_ideals(x);
	x->end = NEW_ARRAY(x->most_tasks, int64_t);
	x->ns = NEW_ARRAY(x->most_tasks, int64_t);
	return x;
}

static int64_t job_replay_step_time(struct job_replay *x, const struct job_replay_step *s)
{
	int64_t done = 0;
	for (uint32_t k = 0; k < s->units; k++) {
		const uint32_t u = s->order[k];
		int64_t start = 0;
		for (uint32_t m = s->first_member[u]; m < s->first_member[u + 1]; m++)
			for (uint32_t d = s->task[s->member[m]].first_dep; d < s->task[s->member[m] + 1].first_dep; d++)
				start = x->end[s->dep[d]] > start ? x->end[s->dep[d]] : start;
		for (uint32_t m = s->first_member[u]; m < s->first_member[u + 1]; m++) {
			int64_t end = start + x->ns[s->member[m]];
			x->end[s->member[m]] = end;
			done = end > done ? end : done;
		}
	}
	return done;
}

int64_t job_replay_time(struct job_replay *x, const uint8_t *rank_as_is, const uint8_t *name_as_is)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct job_replay_step *s = &x->step[i];
		for (uint32_t t = 0; t < s->n; t++) {
			bool as_is = (!rank_as_is || rank_as_is[s->task[t].rank]) && (!name_as_is || name_as_is[s->task[t].name]);
			x->ns[t] = as_is ? s->task[t].ns : x->ideal_ns[s->task[t].name];
		}
		sum += job_replay_step_time(x, s);
	}
	return sum;
}
