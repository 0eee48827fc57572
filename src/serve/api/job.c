/* Which ranks a job has, and what can be asked about all of them together. */
#include "base/json_text.h"
#include "query/report.h"
#include "serve/shelf.h"

static const char *serve_job_clock(enum job_clock how)
{
	static const char *const words[] = {[JOB_CLOCK_RAW] = "as recorded", [JOB_CLOCK_ENDS] = "by ends", [JOB_CLOCK_FILE] = "by file", [JOB_CLOCK_UNKNOWN] = "unknown"};
	return words[how];
}

static void serve_job_put_rank(struct buf *b, const struct shelf_job *k, uint32_t r)
{
	const struct job *j = k->job;
	const struct rank *rank = j->rank[r];
	buf_cstr(b, r ? ",\n{" : "\n{");
	json_put_number(b, "rank", job_rank_number(j, r));
	buf_char(b, ',');
	json_put_text(b, "input", k->entry[rank->input]->key);
	buf_char(b, ',');
	json_put_text(b, "worker", k->entry[rank->input]->worker);
	buf_char(b, ',');
	json_put_text(b, "clock", str_from(serve_job_clock(j->clock[r].how)));
	buf_char(b, ',');
	json_put_number(b, "offset_ns", j->clock[r].offset_ns);
	buf_printf(b, ",\"steps\":%u,\"collectives\":%u}", rank->n_steps, rank->n_calls);
}

static void serve_job_put_reports(struct buf *b)
{
	bool any = false;
	for (const struct report *const *k = report_registry; *k; k++) {
		if (!(*k)->run_job)
			continue;
		buf_cstr(b, any ? ",\n{" : "\n{");
		json_put_text(b, "name", str_from((*k)->name));
		buf_char(b, ',');
		json_put_text(b, "title", str_from((*k)->title));
		buf_cstr(b, ",\"group_by\":[");
		for (unsigned i = 0; report_grouping(*k, i); i++) {
			buf_cstr(b, i ? "," : "");
			json_put_string(b, str_from(report_grouping(*k, i)));
		}
		buf_cstr(b, "]}");
		any = true;
	}
}

static int serve_job_run(const struct request *r, struct response *out, struct err *e)
{
	struct shelf_hold h;
	if (shelf_hold_begin(&h, r, e) < 0)
		return -1;
	const struct job *j = h.it->job;
	struct buf *b = &out->body;
	buf_printf(b, "{\"world\":%lld,\"missing\":%lld,\"repeated\":%u,\"left_out\":%u,\"collectives\":%u,\"ranks\":[", (long long)j->world, (long long)j->missing, j->repeated,
	           h.it->n_left_out, j->n_instances);
	for (uint32_t i = 0; i < j->n; i++)
		serve_job_put_rank(b, h.it, i);
	buf_cstr(b, "],\n\"reports\":[");
	serve_job_put_reports(b);
	buf_cstr(b, "]}\n");
	shelf_hold_end(&h);
	return 0;
}

static const struct endpoint_param params[] = {SHELF_PARAM, {0}};

const struct endpoint endpoint_job = {
	.path = "/api/job",
	.help = "the ranks of a job, the input of each, how its clock was found, and the reports that are about all ranks together",
	.flags = ENDPOINT_RUN,
	.params = params,
	.run = serve_job_run,
};
