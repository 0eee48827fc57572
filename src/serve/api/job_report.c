/* A report about the ranks of a job together. */
#include "query/job_report.h"
#include "serve/shelf.h"
#include "serve/tables.h"

static int serve_job_report_run(const struct request *r, struct response *out, struct err *e)
{
	const struct report *k = report_find(r->rest);
	struct shelf_hold h;
	struct report_args a;
	struct table t;
	if (!k || !k->run_job) {
		out->status = 404;
		return err_set(e, ERR_USAGE, "no report '" STR_FMT "' of a job; /api/job lists them", STR_ARG(r->rest));
	}
	if (table_choice(r, &a, e) < 0 || shelf_hold_begin(&h, r, e) < 0)
		return -1;
	int rc = job_report_of(k, h.it->job, &a, &t, e);
	if (rc == 0) {
		shelf_put_notes(h.it, &t);
		rc = table_answer(r, &t, out, e);
		table_release(&t);
	}
	shelf_hold_end(&h);
	return rc;
}

static const struct endpoint_param params[] = {
	SHELF_PARAM,
	{"group_by", "what the rows are, where the report has a choice", NULL, false},
	{"steps", "only these steps: A..B, A.., ..B or A", NULL, false},
	TABLE_PARAMS,
	{0},
};

const struct endpoint endpoint_job_report = {
	.path = "/api/job/report/",
	.help = "a report about the ranks of a job together, as `opscope report NAME DIR` gives it",
	.flags = ENDPOINT_RUN,
	.params = params,
	.run = serve_job_report_run,
};
