/* A query over an input's events and reports. It can only read (report/sql.h). */
#include "serve/query.h"

#include "analysis/analysis.h"
#include "report/sql.h"
#include "serve/tables.h"

#include <limits.h>

enum { BYTES_MAX = 256 << 20 };

static bool stop(void *context)
{
	const struct request *r = context;
	return !r->alone && library_ends(r->library);
}

static void enter(void *context)
{
	const struct request *r = context;
	if (!r->alone)
		pthread_mutex_lock(&r->entry->ask);
}

static void leave(void *context)
{
	const struct request *r = context;
	if (!r->alone)
		pthread_mutex_unlock(&r->entry->ask);
}

int query_answer(const struct request *r, struct str query, struct response *out, struct err *e)
{
	struct report_args a;
	struct table t;
	void *context = (void *)(uintptr_t)r;
	const struct sql_limits limits = {.time_ns = r->query_seconds * INT64_C(1000000000), .bytes = BYTES_MAX, .stop = stop, .enter = enter, .leave = leave,
	                                  .context = context};
	if (table_choice(r, &a, e) < 0)
		return -1;
	/* All passes are run by the time that it is open; what a query reads then does not change. */
	enter(context);
	struct sql *s = sql_open(r->entry->profile, &a, e);
	leave(context);
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

static int run(const struct request *r, struct response *out, struct err *e)
{
	return query_answer(r, request_value(r, "query"), out, e);
}

static int prepare(const struct request *r, struct err *e)
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
	.run = run,
	.prepare = prepare,
};
