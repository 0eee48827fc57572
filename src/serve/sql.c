/* A query over an input's events and reports. It can only read (report/sql.h). */
#include "report/sql.h"
#include "serve/tables.h"

static int run(const struct request *r, struct response *out, struct err *e)
{
	struct report_args a;
	struct table t;
	if (table_choice(r, &a, e) < 0)
		return -1;
	pthread_mutex_lock(&r->entry->ask);
	struct sql *s = sql_open(r->entry->profile, &a, e);
	int rc = s ? sql_run(s, request_value(r, "query"), &t, e) : -1;
	if (rc == 0) {
		rc = table_answer(r, &t, out, e);
		table_release(&t);
	}
	sql_close(s);
	pthread_mutex_unlock(&r->entry->ask);
	return rc;
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
	.run = run,
};
