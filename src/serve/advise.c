/* The findings. */
#include "detect/detect.h"
#include "serve/tables.h"

static int run(const struct request *r, struct response *out, struct err *e)
{
	struct findings f = {0};
	struct table t;
	pthread_mutex_lock(&r->entry->ask);
	int rc = detect_run(r->entry->profile, &(struct detect_args){0}, &f, e);
	if (rc == 0) {
		findings_table(&f, &t);
		rc = table_answer(r, &t, out, e);
		table_release(&t);
	}
	findings_release(&f);
	pthread_mutex_unlock(&r->entry->ask);
	return rc;
}

static const struct endpoint_param params[] = {TABLE_PARAMS, {0}};

const struct endpoint endpoint_advise = {
	.path = "/api/advise",
	.help = "the findings, as `opscope advise` gives them",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = run,
};
