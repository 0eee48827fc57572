/* One timeline of chosen ranks of a job: their device work, on the job's clock, and which kernels are parts of one collective. */
#include "analysis/ranks/job_lines.h"
#include "base/mem.h"
#include "base/sort.h"
#include "serve/api/timeline_answers.h"
#include "serve/api/timeline_times.h"
#include "serve/shelf.h"
#include "serve/tables.h"

#include <stdlib.h>

enum { TIES_MAX = 1000, TIES = 200 };

/* Steps of the first rank that has some. */
static void serve_job_timeline_put_steps(struct buf *b, const struct job *j, const struct timeline *t)
{
	const struct rank *r = j->rank[0];
	buf_cstr(b, "],\n\"steps\":[");
	for (uint32_t i = 0; i < r->n_steps && !r->steps_are_window; i++)
		buf_printf(b, "%s{\"name\":\"Step %lld\",\"number\":%lld,\"start\":%lld,\"end\":%lld,\"counts\":true}", i ? ",\n" : "\n", (long long)r->step[i].number,
		           (long long)r->step[i].number, (long long)(job_time(j, 0, r->step[i].start_ns) - t->first_ns), (long long)(job_time(j, 0, r->step[i].end_ns) - t->first_ns));
	buf_cstr(b, "]}\n");
}

static int serve_job_timeline_run(const struct request *r, struct response *out, struct err *e)
{
	struct shelf_hold h;
	if (shelf_hold_lines(&h, r, e) < 0)
		return -1;
	const struct timeline *t = job_lines_timeline(h.it->lines);
	timeline_put_info(&out->body, t);
	serve_job_timeline_put_steps(&out->body, h.it->job, t);
	shelf_hold_end(&h);
	return 0;
}

/* An answer that a timeline of one recording gives as well. */
static int serve_job_timeline_answer(const struct request *r, struct response *out, struct err *e, timeline_answer_fn *answer)
{
	struct shelf_hold h;
	if (shelf_hold_lines(&h, r, e) < 0)
		return -1;
	int rc = answer(job_lines_timeline(h.it->lines), r, out, e);
	shelf_hold_end(&h);
	return rc;
}

static int serve_job_timeline_tile_run(const struct request *r, struct response *out, struct err *e) { return serve_job_timeline_answer(r, out, e, timeline_answer_tile); }
static int serve_job_timeline_find_run(const struct request *r, struct response *out, struct err *e) { return serve_job_timeline_answer(r, out, e, timeline_answer_find); }
static int serve_job_timeline_select_run(const struct request *r, struct response *out, struct err *e) { return serve_job_timeline_answer(r, out, e, timeline_answer_select); }
static int serve_job_timeline_event_run(const struct request *r, struct response *out, struct err *e) { return serve_job_timeline_answer(r, out, e, timeline_answer_event); }

/* ---- ties ---- */

struct serve_job_timeline_tie {
	int64_t weight;          /* how far apart the ranks came */
	uint32_t instance;
};

static int serve_job_timeline_by_weight(const void *a, const void *b)
{
	const struct serve_job_timeline_tie *x = a, *y = b;
	return COMPARE(y->weight, x->weight) ?: COMPARE(x->instance, y->instance);
}

static int serve_job_timeline_by_start(const void *a, const void *b)
{
	const struct job_part *x = a, *y = b;
	return COMPARE(x->start_ns, y->start_ns) ?: COMPARE(x->rank, y->rank);
}

/* Whether the collective has two parts on the timeline, and lies in the window or reaches into it. */
static bool serve_job_timeline_is_in(const struct job_lines *l, const struct job_instance *x, int64_t from_ns, int64_t to_ns)
{
	uint32_t n = 0;
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t i = 0; i < x->n; i++) {
		if (job_lines_row(l, &x->part[i]) == ROW_NONE)
			continue;
		n++;
		first = x->part[i].start_ns < first ? x->part[i].start_ns : first;
		last = x->part[i].end_ns > last ? x->part[i].end_ns : last;
	}
	return n > 1 && first < to_ns && last >= from_ns;
}

/* Parts in order of their start: each a row of the timeline. */
static void serve_job_timeline_put_tie(struct buf *b, const struct shelf_job *k, const struct job_instance *x, struct job_part *part)
{
	const struct timeline *t = job_lines_timeline(k->lines);
	bool any = false;
	memcpy(part, x->part, x->n * sizeof *part);
	qsort(part, x->n, sizeof *part, serve_job_timeline_by_start);
	buf_cstr(b, "{");
	json_put_text(b, "kind", str_from(comm_kind_name(x->kind)));
	buf_printf(b, ",\"accepted\":%s,\"wait_ns\":%lld,\"last\":%lld,\"parts\":[", x->accepted ? "true" : "false", (long long)x->wait_ns, (long long)job_rank_number(k->job, x->last));
	for (uint32_t i = 0; i < x->n; i++) {
		uint32_t row = job_lines_row(k->lines, &part[i]);
		if (row == ROW_NONE)
			continue;
		uint32_t lane = t->gpu_lane[row];
		buf_printf(b, "%s[%u,%u,%u,%lld,%lld]", any ? "," : "", row, lane, t->lanes[lane].track, (long long)(t->p->gpu_op.start_ns[row] - t->first_ns), (long long)t->p->gpu_op.dur_ns[row]);
		any = true;
	}
	buf_cstr(b, "]}");
}

static void serve_job_timeline_put_ties(struct buf *b, const struct shelf_job *k, int64_t from_ns, int64_t to_ns, uint32_t most)
{
	const struct job *j = k->job;
	struct serve_job_timeline_tie *v = NULL;
	struct job_part *part = NEW_ARRAY(j->n, struct job_part);
	uint32_t n = 0, cap = 0;
	for (uint32_t i = 0; i < j->n_instances; i++)
		if (serve_job_timeline_is_in(k->lines, &j->instance[i], from_ns, to_ns))
			MEM_PUSH(v, n, cap, (struct serve_job_timeline_tie){j->instance[i].start_skew_ns, i});
	if (n)
		qsort(v, n, sizeof *v, serve_job_timeline_by_weight);
	buf_printf(b, "{\"found\":%u,\"ties\":[", n);
	for (uint32_t i = 0; i < n && i < most; i++) {
		buf_cstr(b, i ? ",\n" : "\n");
		serve_job_timeline_put_tie(b, k, &j->instance[v[i].instance], part);
	}
	buf_cstr(b, "]}\n");
	mem_free(v);
	mem_free(part);
}

static int serve_job_timeline_ties_run(const struct request *r, struct response *out, struct err *e)
{
	struct shelf_hold h;
	int64_t limit, from_ns, to_ns;
	if (request_number(r, "limit", 1, TIES_MAX, TIES, &limit, e) < 0 || shelf_hold_lines(&h, r, e) < 0)
		return -1;
	int rc = timeline_window(r, job_lines_timeline(h.it->lines), &from_ns, &to_ns, e);
	if (rc == 0)
		serve_job_timeline_put_ties(&out->body, h.it, from_ns, to_ns, (uint32_t)limit);
	shelf_hold_end(&h);
	return rc;
}

#define LINES_PARAMS SHELF_PARAM, {"ranks", "which ranks: numbers with commas, ranges as A..B (default: all)", NULL, false}

static const struct endpoint_param info_params[] = {LINES_PARAMS, {0}};
static const struct endpoint_param tile_params[] = {LINES_PARAMS, TIMELINE_TILE_PARAMS, {0}};
static const struct endpoint_param find_params[] = {LINES_PARAMS, TIMELINE_FIND_PARAMS, {0}};
static const struct endpoint_param select_params[] = {LINES_PARAMS, TIMELINE_SELECT_PARAMS, {0}};
static const struct endpoint_param event_params[] = {LINES_PARAMS, TIMELINE_EVENT_PARAMS, {0}};
static const struct endpoint_param ties_params[] = {LINES_PARAMS, WINDOW_PARAMS, {"limit", "at most so many (default 200)", NULL, false}, {0}};

static const struct endpoint endpoint_job_ties = {
	.path = "/api/job/timeline/ties",
	.help = "the collectives in a window, those first of which the ranks came farthest apart: of each its parts in order of start, as row, lane, track, start and duration",
	.flags = ENDPOINT_RUN,
	.params = ties_params,
	.run = serve_job_timeline_ties_run,
};

static const struct endpoint endpoint_job_event = {
	.path = "/api/job/timeline/event",
	.help = "one kernel or copy of a rank, as /api/timeline/event gives it",
	.flags = ENDPOINT_RUN,
	.params = event_params,
	.run = serve_job_timeline_event_run,
	.also = &endpoint_job_ties,
};

static const struct endpoint endpoint_job_select = {
	.path = "/api/job/timeline/select",
	.help = "totals by name of what is in a window of the ranks' timeline",
	.flags = ENDPOINT_RUN,
	.params = select_params,
	.run = serve_job_timeline_select_run,
	.also = &endpoint_job_event,
};

static const struct endpoint endpoint_job_find = {
	.path = "/api/job/timeline/find",
	.help = "kernels and copies of the ranks by name, as /api/timeline/find gives them",
	.flags = ENDPOINT_RUN,
	.params = find_params,
	.run = serve_job_timeline_find_run,
	.also = &endpoint_job_select,
};

static const struct endpoint endpoint_job_tile = {
	.path = "/api/job/timeline/tile",
	.help = "what is to be drawn of the ranks in one tile, as /api/timeline/tile gives it",
	.flags = ENDPOINT_RUN,
	.params = tile_params,
	.run = serve_job_timeline_tile_run,
	.also = &endpoint_job_find,
};

const struct endpoint endpoint_job_timeline = {
	.path = "/api/job/timeline",
	.help = "streams of chosen ranks of a job, and steps of its first rank; times in ns since first_ns, on the job's clock",
	.flags = ENDPOINT_RUN,
	.params = info_params,
	.run = serve_job_timeline_run,
	.also = &endpoint_job_tile,
};
