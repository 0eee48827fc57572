#include "analysis/ranks/job_lines.h"

#include "base/hash.h"
#include "base/mem.h"
#include "store/build.h"

#include <stdio.h>

/* What is known of a rank while it has no place in the job yet. */
struct job_lines_rank {
	const struct rank *rank;
	uint32_t place;          /* index of job->rank; UINT32_MAX = it is a repeated one */
};

struct job_lines {
	struct profile *p;
	struct build b;
	struct timeline *t;
	struct job_lines_rank *rank;
	uint32_t n_ranks, cap_ranks;
	uint32_t **row;          /* by index of job->rank, then by call; NULL = not chosen */
	uint32_t n_rows, n_job;
	uint64_t most, n;        /* rows, and those that came */
};

struct job_lines *job_lines_new(uint32_t most)
{
	struct job_lines *l = NEW(struct job_lines);
	l->p = profile_new();
	l->p->format = STR("job");
	l->most = most;
	build_init(&l->b, l->p);
	return l;
}

void job_lines_free(struct job_lines *l)
{
	struct err e;
	if (!l)
		return;
	if (!l->t)
		build_finish(&l->b, &e);
	timeline_free(l->t);
	profile_free(l->p);
	for (uint32_t i = 0; l->row && i < l->n_job; i++)
		mem_free(l->row[i]);
	mem_free(l->row);
	mem_free(l->rank);
	mem_free(l);
}

/* By row of p's gpu_op: its call, counted over the ranks that p holds; -1 = none. */
static int64_t *job_lines_calls(const struct profile *p, const struct job *j, uint32_t first)
{
	int64_t *call = NEW_ARRAY_RAW(p->gpu_op.rows.n, int64_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		call[g] = ID_NONE;
	for (uint32_t r = first; r < j->n; r++)
		for (uint32_t i = 0; i < j->rank[r]->n_calls; i++)
			if (j->rank[r]->call[i].row < p->gpu_op.rows.n)
				call[j->rank[r]->call[i].row] = i;
	return call;
}

/* Which of the ranks that p holds a piece of work is of: that of its GPU, else the first. */
static uint32_t job_lines_rank_of(const struct profile *p, const struct job *j, uint32_t first, uint32_t g)
{
	int32_t device = p->launch.device[p->gpu_op.launch[g]];
	for (uint32_t r = first; r < j->n; r++)
		if (j->rank[r]->device == device)
			return r;
	return first;
}

static void job_lines_add_row(struct job_lines *l, const struct profile *p, uint32_t g, uint32_t line, int64_t epoch_ns, int64_t call)
{
	char pid[24], tid[48];
	struct launch_row launch = launch_none();
	uint32_t from = p->gpu_op.launch[g];
	int64_t stream = p->launch.stream[from];
	launch.device = p->launch.device[from];
	launch.stream = stream;
	snprintf(pid, sizeof pid, "%u", line);
	if (stream == ID_NONE)
		snprintf(tid, sizeof tid, "device work");
	else
		snprintf(tid, sizeof tid, "stream %lld", (long long)stream);
	struct gpu_row r = {
		.start_ns = p->gpu_op.start_ns[g] + epoch_ns, .dur_ns = p->gpu_op.dur_ns[g], .ext_id = ID_NONE, .corr_id = call,
		.name = intern_str(&l->p->strings, profile_str(p, p->gpu_op.name[g])), .track = build_track(&l->b, str_from(pid), str_from(tid)), .launch = build_launch(&l->b, &launch),
		.cat = build_cat(&l->b, intern_str(&l->p->strings, profile_cat(p, p->gpu_op.cat[g]))), .kind = p->gpu_op.kind[g],
	};
	build_gpu(&l->b, &r);
}

void job_lines_add(struct job_lines *l, const struct profile *p, const struct job *j, uint32_t first)
{
	uint32_t line = l->n_ranks;
	l->n += p->gpu_op.rows.n;
	if (l->n > l->most || first >= j->n)
		return;
	for (uint32_t r = first; r < j->n; r++)
		MEM_PUSH(l->rank, l->n_ranks, l->cap_ranks, (struct job_lines_rank){j->rank[r], UINT32_MAX});
	int64_t *call = job_lines_calls(p, j, first);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t r = j->n - first > 1 ? job_lines_rank_of(p, j, first, g) : first;
		job_lines_add_row(l, p, g, line + r - first, j->rank[r]->epoch_ns, call[g]);
	}
	mem_free(call);
}

/* Where each line's rank stands in the job. */
static void job_lines_place(struct job_lines *l, const struct job *j)
{
	struct idmap at;
	idmap_init(&at, INT64_MIN, INT64_MAX, l->n_ranks);
	for (uint32_t i = 0; i < l->n_ranks; i++)
		idmap_put(&at, (int64_t)(intptr_t)l->rank[i].rank, i);
	l->n_job = j->n;
	l->row = NEW_ARRAY(j->n, uint32_t *);
	for (uint32_t r = 0; r < j->n; r++) {
		uint32_t i = idmap_get(&at, (int64_t)(intptr_t)j->rank[r]);
		if (i == IDMAP_NONE)
			continue;
		l->rank[i].place = r;
		l->row[r] = mem_filled(j->rank[r]->n_calls, ROW_NONE);
	}
	idmap_release(&at);
}

/* Rows of a track are of one rank: its clock moves them and leaves their order. */
static void job_lines_move(struct job_lines *l, const struct job *j)
{
	struct gpu_ops *g = &l->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t place = l->rank[l->p->track.pid[g->track[i]]].place;
		int64_t start = g->start_ns[i];
		if (place == UINT32_MAX)
			continue;
		g->start_ns[i] = job_time(j, place, start);
		g->dur_ns[i] = job_time(j, place, start + g->dur_ns[i]) - g->start_ns[i];
		if (g->corr_id[i] >= 0 && g->corr_id[i] < j->rank[place]->n_calls)
			l->row[place][g->corr_id[i]] = i;
	}
}

static void job_lines_name(struct job_lines *l, const struct job *j)
{
	struct tracks *t = &l->p->track;
	char text[32];
	for (uint32_t i = 0; i < t->rows.n; i++) {
		uint32_t place = l->rank[t->pid[i]].place;
		if (place == UINT32_MAX)
			snprintf(text, sizeof text, "a repeated rank");
		else
			snprintf(text, sizeof text, "rank %lld", (long long)job_rank_number(j, place));
		t->process_name[i] = intern_str(&l->p->strings, str_from(text));
	}
}

int job_lines_finish(struct job_lines *l, const struct job *j, struct err *e)
{
	if (l->n > l->most)
		return err_set(e, ERR_LIMIT, "These ranks have %llu kernels and copies, more than the %llu that one timeline shows: choose fewer ranks.", (unsigned long long)l->n,
		               (unsigned long long)l->most);
	if (build_finish(&l->b, e) < 0)
		return -1;
	job_lines_place(l, j);
	job_lines_move(l, j);
	job_lines_name(l, j);
	if (analysis_run(l->p, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	l->t = timeline_new(l->p);
	return 0;
}

const struct timeline *job_lines_timeline(const struct job_lines *l)
{
	return l->t;
}

uint32_t job_lines_row(const struct job_lines *l, const struct job_part *part)
{
	return l->row[part->rank] ? l->row[part->rank][part->call] : ROW_NONE;
}
