/* What the steps of each rank of a job are made of. */
#include "base/json_text.h"
#include "base/mem.h"
#include "base/sort.h"
#include "query/report.h"
#include "serve/shelf.h"

#include <stdlib.h>

enum { CELLS_MAX = 1000000 };

/* The numbers of all steps of all ranks, ascending, each once; the caller's. */
static int64_t *serve_job_steps_numbers(const struct job *j, const struct report_args *a, size_t *n)
{
	size_t all = 0, kept = 0;
	for (uint32_t r = 0; r < j->n; r++)
		all += j->rank[r]->n_steps;
	int64_t *v = NEW_ARRAY(all, int64_t);
	*n = 0;
	for (uint32_t r = 0; r < j->n; r++)
		for (uint32_t i = 0; i < j->rank[r]->n_steps; i++) {
			int64_t number = j->rank[r]->step[i].number;
			if (!a->has_steps || (number >= a->step_first && number <= a->step_last))
				v[(*n)++] = number;
		}
	sort_i64(v, *n);
	for (size_t i = 0; i < *n; i++)
		if (!i || v[i] != v[i - 1])
			v[kept++] = v[i];
	*n = kept;
	return v;
}

static int serve_job_steps_by_number(const void *a, const void *b)
{
	return COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

/* One rank's values by step, by kind; null where the rank has no such step. */
static void serve_job_steps_put_rank(struct buf *b, const struct job *j, uint32_t r, const int64_t *number, size_t n, int64_t *scratch)
{
	static const struct { const char *name; enum job_time_kind kind; } kinds[] = {
		{"step_ns", JOB_TOTAL}, {"compute_ns", JOB_COMPUTE}, {"exposed_transfer_ns", JOB_TRANSFER}, {"exposed_wait_ns", JOB_WAIT}, {"exposed_unknown_ns", JOB_EXPOSED_UNKNOWN},
		{"exposed_copy_ns", JOB_COPY}, {"idle_ns", JOB_IDLE},
	};
	enum { KINDS = sizeof kinds / sizeof *kinds };
	for (size_t i = 0; i < n * KINDS; i++)
		scratch[i] = -1;
	for (uint32_t i = 0; i < j->rank[r]->n_steps; i++) {
		const int64_t *at = bsearch(&j->rank[r]->step[i].number, number, n, sizeof *number, serve_job_steps_by_number);
		struct job_times times = {0};
		if (at)
			job_times_add_step(j, r, i, &times);
		for (size_t k = 0; k < KINDS && at; k++) {
			int64_t *to = &scratch[k * n + (size_t)(at - number)];
			*to = (*to < 0 ? 0 : *to) + times.ns[kinds[k].kind];
		}
	}
	buf_printf(b, "%s{\"rank\":%lld", r ? ",\n" : "\n", (long long)job_rank_number(j, r));
	for (size_t k = 0; k < KINDS; k++) {
		buf_printf(b, ",\"%s\":[", kinds[k].name);
		for (size_t i = 0; i < n; i++) {
			buf_cstr(b, i ? "," : "");
			if (scratch[k * n + i] < 0)
				buf_cstr(b, "null");
			else
				buf_i64(b, scratch[k * n + i]);
		}
		buf_char(b, ']');
	}
	buf_char(b, '}');
}

static int serve_job_steps_put(const struct job *j, const struct report_args *a, struct buf *b, struct err *e)
{
	size_t n;
	int64_t *number = serve_job_steps_numbers(j, a, &n);
	if (!n || n * j->n > CELLS_MAX) {
		mem_free(number);
		return n ? err_set(e, ERR_DATA, "%u ranks with %zu steps are more than a picture shows: choose steps", j->n, n) : err_set(e, ERR_DATA, "no rank has such a step");
	}
	int64_t *scratch = NEW_ARRAY(n * JOB_TIME_KINDS, int64_t);
	buf_printf(b, "{\"whole\":%s,\"steps\":[", j->rank[0]->steps_are_window ? "true" : "false");
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%s%lld", i ? "," : "", (long long)number[i]);
	buf_cstr(b, "],\n\"ranks\":[");
	for (uint32_t r = 0; r < j->n; r++)
		serve_job_steps_put_rank(b, j, r, number, n, scratch);
	buf_cstr(b, "]}\n");
	mem_free(number);
	mem_free(scratch);
	return 0;
}

static int serve_job_steps_run(const struct request *r, struct response *out, struct err *e)
{
	struct shelf_hold h;
	struct report_args a = {0};
	struct str steps = request_value(r, "steps");
	if ((steps.p && report_args_population(&a, steps, e) < 0) || shelf_hold_begin(&h, r, e) < 0)
		return -1;
	int rc = serve_job_steps_put(h.it->job, &a, &out->body, e);
	shelf_hold_end(&h);
	return rc;
}

static const struct endpoint_param params[] = {
	SHELF_PARAM,
	{"steps", "only these steps: A..B, A.., ..B or A", NULL, false},
	{0},
};

const struct endpoint endpoint_job_steps = {
	.path = "/api/job/steps",
	.help = "each step of each rank of a job: its length and what it is made of, in ns; null = the rank has no such step. `whole`: no steps were found, and the one is the time of the device work",
	.flags = ENDPOINT_RUN,
	.params = params,
	.run = serve_job_steps_run,
};
