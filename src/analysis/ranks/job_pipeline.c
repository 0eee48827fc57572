#include "analysis/ranks/job_pipeline.h"

#include "analysis/ranks/job_peers.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>

static int job_pipeline_by_step(const void *a, const void *b)
{
	const struct job_pipeline_cell *x = a, *y = b;
	return COMPARE(x->step, y->step) ?: COMPARE(x->stage, y->stage) ?: COMPARE(x->rank, y->rank);
}

/* ---- workers ---- */

static void job_pipeline_add_task(const struct rank_task *t, struct intervals *compute, struct intervals *p2p, struct intervals *collective, struct job_pipeline_cell *c)
{
	switch (t->kind) {
	case RANK_TASK_FORWARD:
		c->forward_ns += t->end_ns - t->start_ns;
		c->microbatches++;
		intervals_add(compute, t->start_ns, t->end_ns);
		break;
	case RANK_TASK_BACKWARD:
		c->backward_ns += t->end_ns - t->start_ns;
		intervals_add(compute, t->start_ns, t->end_ns);
		break;
	case RANK_TASK_FORWARD_SEND:
	case RANK_TASK_FORWARD_RECV:
	case RANK_TASK_BACKWARD_SEND:
	case RANK_TASK_BACKWARD_RECV:
		intervals_add(p2p, t->start_ns, t->end_ns);
		break;
	case RANK_TASK_OPTIMIZER:
	case RANK_TASK_COLLECT:
	case RANK_TASK_OTHER:
		intervals_add(compute, t->start_ns, t->end_ns);
		break;
	default:
		intervals_add(collective, t->start_ns, t->end_ns);
		break;
	}
}

/* The tasks of a worker from `at` on that are of one step. Returns where the next step begins. What the step lasts is not known yet. */
static uint32_t job_pipeline_add_worker_step(const struct job *j, uint32_t rank, uint32_t at, struct job_pipeline *x)
{
	const struct rank *r = j->rank[rank];
	struct intervals compute = {0}, p2p = {0}, collective = {0}, all = {0};
	struct job_pipeline_cell c = {.rank = rank, .stage = (uint32_t)r->stage, .step = r->task[at].step};
	for (; at < r->n_tasks && r->task[at].step == c.step; at++)
		job_pipeline_add_task(&r->task[at], &compute, &p2p, &collective, &c);
	intervals_normalise(&compute);
	intervals_normalise(&p2p);
	intervals_normalise(&collective);
	c.compute_ns = intervals_length(&compute);
	intervals_union(&compute, &collective, &all);
	c.collective_ns = intervals_length(&all) - c.compute_ns;
	intervals_subtract(&p2p, &all, &p2p);
	c.p2p_ns = intervals_length(&p2p);
	intervals_release(&compute);
	intervals_release(&p2p);
	intervals_release(&collective);
	intervals_release(&all);
	MEM_PUSH(x->cell, x->n, x->cap, c);
	return at;
}

/* From the first to the last task of all workers in a step. */
struct job_pipeline_span {
	int64_t number, start_ns, end_ns;
};

static int job_pipeline_by_number(const void *a, const void *b)
{
	return COMPARE(((const struct job_pipeline_span *)a)->number, ((const struct job_pipeline_span *)b)->number);
}

static struct job_pipeline_span *job_pipeline_spans(const struct job *j, uint32_t *n)
{
	struct job_pipeline_span *v = NULL;
	uint32_t cap = 0, all = 0;
	for (uint32_t r = 0; r < j->n; r++)
		for (uint32_t s = 0; s < j->rank[r]->n_steps && j->rank[r]->is_worker; s++)
			MEM_PUSH(v, all, cap, ((struct job_pipeline_span){j->rank[r]->step[s].number, j->rank[r]->step[s].start_ns, j->rank[r]->step[s].end_ns}));
	if (all)
		qsort(v, all, sizeof *v, job_pipeline_by_number);
	*n = 0;
	for (uint32_t i = 0; i < all; i++) {
		struct job_pipeline_span *s = *n ? &v[*n - 1] : NULL;
		if (!s || s->number != v[i].number) {
			v[(*n)++] = v[i];
			continue;
		}
		s->start_ns = v[i].start_ns < s->start_ns ? v[i].start_ns : s->start_ns;
		s->end_ns = v[i].end_ns > s->end_ns ? v[i].end_ns : s->end_ns;
	}
	return v;
}

static void job_pipeline_of_workers(const struct job *j, int64_t first, int64_t last, struct job_pipeline *x)
{
	uint32_t n;
	struct job_pipeline_span *span = job_pipeline_spans(j, &n);
	for (uint32_t r = 0; r < j->n; r++)
		for (uint32_t at = 0; at < j->rank[r]->n_tasks;) {
			if (j->rank[r]->task[at].step < first || j->rank[r]->task[at].step > last)
				at++;
			else
				at = job_pipeline_add_worker_step(j, r, at, x);
		}
	for (uint32_t i = 0; i < x->n; i++) {
		struct job_pipeline_cell *c = &x->cell[i];
		uint32_t at = FIRST_WHERE(k, 0, n, span[k].number >= c->step);
		assert(at < n && span[at].number == c->step); /* a worker's tasks are in its steps */
		const struct job_pipeline_span *s = &span[at];
		c->step_ns = s->end_ns - s->start_ns;
		c->idle_ns = c->step_ns - c->compute_ns - c->collective_ns - c->p2p_ns;
	}
	mem_free(span);
}

/* ---- ranks with stages by their process groups ---- */

static bool job_pipeline_is_p2p(uint8_t kind) { return kind == COMM_SEND || kind == COMM_RECV || kind == COMM_SEND_RECV; }

/* The time of each step in which sends and receives alone ran. */
static void job_pipeline_add_p2p(const struct rank *r, int64_t *ns)
{
	for (uint32_t i = 0; i < r->n_calls; i++)
		for (uint32_t k = r->call[i].piece; job_pipeline_is_p2p(r->call[i].kind) && k < r->call[i].piece + r->call[i].n_pieces; k++) {
			const struct interval *v = &r->piece[k];
			uint32_t s = FIRST_WHERE(q, 0, r->n_steps, r->step[q].end_ns > v->start);
			for (; s < r->n_steps && r->step[s].start_ns < v->end; s++) {
				int64_t start = v->start > r->step[s].start_ns ? v->start : r->step[s].start_ns, end = v->end < r->step[s].end_ns ? v->end : r->step[s].end_ns;
				ns[s] += end > start ? end - start : 0;
			}
		}
}

static void job_pipeline_add_rank(const struct job *j, uint32_t rank, uint32_t stage, int64_t first, int64_t last, struct job_pipeline *x)
{
	const struct rank *r = j->rank[rank];
	int64_t *p2p = NEW_ARRAY(r->n_steps, int64_t);
	job_pipeline_add_p2p(r, p2p);
	for (uint32_t i = 0; i < r->n_steps; i++) {
		const struct rank_step *s = &r->step[i];
		const int64_t *busy = s->busy.ns;
		if (s->number < first || s->number > last)
			continue;
		struct job_pipeline_cell c = {.rank = rank, .stage = stage, .step = s->number, .step_ns = busy[BUSY_TOTAL], .compute_ns = busy[BUSY_COMPUTE],
		                              .collective_ns = busy[BUSY_EXPOSED_COMM] - p2p[i], .p2p_ns = p2p[i]};
		c.idle_ns = c.step_ns - c.compute_ns - c.collective_ns - c.p2p_ns;
		MEM_PUSH(x->cell, x->n, x->cap, c);
	}
	mem_free(p2p);
}

static int job_pipeline_of_ranks(const struct job *j, int64_t first, int64_t last, struct job_pipeline *x, struct err *e)
{
	struct job_peers peers;
	job_peers_find(j, &peers);
	for (uint32_t s = 0; s < peers.n; s++)
		for (uint32_t i = peers.first[s]; i < peers.first[s + 1]; i++) {
			if (peers.stages && peers.stage[s] != UINT32_MAX)
				job_pipeline_add_rank(j, peers.rank[i], peers.stage[s], first, last, x);
			else
				x->unknown++;
		}
	bool known = peers.stages > 0;
	job_peers_release(&peers);
	return known ? 0 : err_set(e, ERR_DATA, "which pipeline stage a rank is of is not known: no process group that lists its ranks is known to divide a pipeline; `collectives --group-by=group` says "
	                           "what each divides. Without such a group the job has no stages");
}

int job_pipeline_find(const struct job *j, int64_t first, int64_t last, struct job_pipeline *out, struct err *e)
{
	*out = (struct job_pipeline){.of_workers = ANY_WHERE(r, 0, j->n, j->rank[r]->is_worker)};
	if (out->of_workers)
		job_pipeline_of_workers(j, first, last, out);
	else if (job_pipeline_of_ranks(j, first, last, out, e) < 0)
		return -1;
	if (!out->n)
		return err_set(e, ERR_DATA, "no rank has such a step");
	qsort(out->cell, out->n, sizeof *out->cell, job_pipeline_by_step);
	for (uint32_t i = 0; i < out->n; i++)
		out->stages = out->cell[i].stage >= out->stages ? out->cell[i].stage + 1 : out->stages;
	return 0;
}

void job_pipeline_release(struct job_pipeline *x)
{
	mem_free(x->cell);
}
