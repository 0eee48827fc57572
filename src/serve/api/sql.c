/* A query over an input's events and reports. It can only read (query/sql.h). */
#include "serve/query.h"

#include "analysis/analysis.h"
#include "query/sql.h"
#include "serve/tables.h"

#include <limits.h>

enum { BYTES_MAX = 256 << 20 };

struct query {
	const struct request *r;
	struct library_turn turn;
};

static bool stop(void *context)
{
	const struct query *q = context;
	return !q->r->alone && library_ends(q->r->library);
}

static int serve_sql_enter(void *context, struct err *e)
{
	struct query *q = context;
	return q->r->alone ? 0 : library_turn_begin(&q->turn, q->r->entry, e);
}

static void serve_sql_leave(void *context)
{
	struct query *q = context;
	if (!q->r->alone)
		library_turn_end(&q->turn);
}

int query_answer(const struct request *r, struct str query, struct response *out, struct err *e)
{
	struct report_args a;
	struct table t;
	struct query q = {.r = r};
	const struct sql_limits limits = {.time_ns = r->query_seconds * INT64_C(1000000000), .bytes = BYTES_MAX, .stop = stop, .enter = serve_sql_enter, .leave = serve_sql_leave,
	                                  .context = &q};
	if (table_choice(r, &a, e) < 0 || serve_sql_enter(&q, e) < 0)
		return -1;
	/* All passes are run by the time that it is open; what a query reads then does not change. */
	struct sql *s = sql_open(r->entry->profile, &a, e);
	serve_sql_leave(&q);
	if (!s)
		return -1;
	sql_limit(s, &limits);
	int rc = sql_run(s, query, &t, e);
	if (rc == 0) {
		rc = table_answer(r, &t, out, e);
		table_release(&t);
	}
	sql_close(s);
	return rc;
}

static int serve_sql_run(const struct request *r, struct response *out, struct err *e)
{
	return query_answer(r, request_value(r, "query"), out, e);
}

static int serve_sql_prepare(const struct request *r, struct err *e)
{
	return analysis_run(r->entry->profile, UINT_MAX, e);
}

static const struct endpoint_param params[] = {
	{"query", "one SELECT, as `opscope sql` takes it", NULL, true},
	CHOICE_PARAMS,
	TABLE_PARAMS,
	{0},
};

const struct endpoint endpoint_sql = {
	.path = "/api/sql",
	.help = "a query's rows",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.queue = QUEUE_QUERIES,
	.run = serve_sql_run,
	.prepare = serve_sql_prepare,
};
