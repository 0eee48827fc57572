/* The findings. */
#include "query/advice.h"
#include "serve/tables.h"

static int serve_advise_run(const struct request *r, struct response *out, struct err *e)
{
	struct report_args a;
	struct table t;
	if (table_choice(r, &a, e) < 0)
		return -1;
	int rc = advice_table(r->entry->profile, &a, &t, e);
	if (rc == 0) {
		rc = table_answer(r, &t, out, e);
		table_release(&t);
	}
	return rc;
}

static const struct endpoint_param params[] = {
	{"compat", "the expert system of a predecessor, as `opscope advise --help` lists them", NULL, false},
	CHOICE_PARAMS,
	TABLE_PARAMS,
	{0},
};

const struct endpoint endpoint_advise = {
	.path = "/api/advise",
	.help = "the findings, as `opscope advise` gives them",
	.flags = ENDPOINT_INPUT | ENDPOINT_TURN,
	.params = params,
	.run = serve_advise_run,
};
