/* One report as a table. */
#include "serve/tables.h"

static int serve_report_run(const struct request *r, struct response *out, struct err *e)
{
	const struct report *k = report_find(r->rest);
	struct report_args a;
	struct table t;
	if (!k) {
		out->status = 404;
		return err_set(e, ERR_USAGE, "no report '" STR_FMT "'; /api/reports lists them", STR_ARG(r->rest));
	}
	if (table_choice(r, &a, e) < 0)
		return -1;
	int rc = report_run(k, r->entry->profile, &a, &t, e);
	if (rc == 0) {
		rc = table_answer(r, &t, out, e);
		table_release(&t);
	}
	return rc;
}

static const char *const pers[] = {"total", "step", "call", NULL};
static const struct endpoint_param params[] = {
	{"group_by", "what the rows are, where the report has a choice", NULL, false},
	{"compat", "the numbers of a predecessor", NULL, false},
	CHOICE_PARAMS,
	{"per", "what sums are told as, where the report has sums", pers, false},
	{"device", "cpu or a GPU's number, where the report has the choice", NULL, false},
	TABLE_PARAMS,
	{0},
};

const struct endpoint endpoint_report = {
	.path = "/api/report/",
	.help = "a report by its name, as `opscope report NAME` gives it",
	.flags = ENDPOINT_INPUT | ENDPOINT_TURN,
	.params = params,
	.run = serve_report_run,
};
