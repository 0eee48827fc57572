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

/* Groupings whose rows are single events, which have no sums. */
static void serve_reports_put_per_event(struct buf *b, const struct report *r)
{
	buf_cstr(b, ",\"per_event\":[");
	for (unsigned i = 0; report_grouping(r, i); i++) {
		if (!report_is_per_event(r, report_grouping(r, i)))
			continue;
		buf_cstr(b, b->p[b->n - 1] == '[' ? "" : ",");
		json_put_string(b, str_from(report_grouping(r, i)));
	}
	buf_char(b, ']');
}

static void serve_reports_put_sums(struct buf *b, const struct report *r)
{
	struct str rest = str_from(report_sums(r) ? report_sums(r) : ""), id;
	buf_printf(b, ",\"sums\":%s,\"sum_columns\":[", rest.n ? "true" : "false");
	for (bool first = true; rest.n && str_split(&rest, ' ', &id); first = false) {
		buf_cstr(b, first ? "" : ",");
		json_put_string(b, id);
	}
	buf_char(b, ']');
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
		buf_printf(b, ",\"device\":%s", (*k)->takes & REPORT_DEVICE ? "true" : "false");
		serve_reports_put_per_event(b, *k);
		serve_reports_put_sums(b, *k);
		buf_char(b, '}');
	}
	buf_cstr(b, "]}\n");
	return 0;
}

const struct endpoint endpoint_reports = {
	.path = "/api/reports",
	.help = "the reports that /api/report/NAME has, with their groupings and predecessors, and which of their columns are sums, which can be told per step",
	.queue = QUEUE_QUICK,
	.run = serve_reports_run,
};
