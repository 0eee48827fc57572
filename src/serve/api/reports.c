/* The reports there are, and what each takes. */
#include "serve/endpoint.h"

#include "base/json_text.h"
#include "query/per.h"
#include "query/report.h"

static void serve_reports_put_words(struct buf *b, const char *name, const struct report *r, const char *(*word)(const struct report *r, unsigned i))
{
	buf_printf(b, ",\"%s\":[", name);
	for (unsigned i = 0; word(r, i); i++) {
		buf_cstr(b, i ? "," : "");
		json_put_string(b, str_from(word(r, i)));
	}
	buf_char(b, ']');
}

static void serve_reports_put_text(struct buf *b, const char *name, const char *text)
{
	buf_printf(b, "%s\"%s\":", b->p[b->n - 1] == '{' ? "" : ",", name);
	json_put_string(b, str_from(text));
}

static int serve_reports_run(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	buf_cstr(b, "{\"reports\":[");
	for (const struct report *const *k = report_registry; *k; k++) {
		buf_cstr(b, k == report_registry ? "\n{" : ",\n{");
		serve_reports_put_text(b, "name", (*k)->name);
		serve_reports_put_text(b, "title", (*k)->title);
		serve_reports_put_text(b, "help", (*k)->help);
		serve_reports_put_words(b, "group_by", *k, report_grouping);
		serve_reports_put_words(b, "compat", *k, report_compat);
		buf_printf(b, ",\"device\":%s,\"sums\":%s}", (*k)->takes & REPORT_DEVICE ? "true" : "false", report_has_sums(*k) ? "true" : "false");
	}
	buf_cstr(b, "]}\n");
	return 0;
}

const struct endpoint endpoint_reports = {
	.path = "/api/reports",
	.help = "the reports that /api/report/NAME has, with their groupings and predecessors, and whether they have sums that can be told per step",
	.queue = QUEUE_QUICK,
	.run = serve_reports_run,
};
