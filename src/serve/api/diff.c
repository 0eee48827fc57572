/* What changed from one input to another. */
#include "query/diff.h"
#include "query/diff_job.h"
#include "serve/tables.h"

static void serve_diff_free(void *side)
{
	diff_side_free(side);
}

/* The side of one of the two; the other input is not held meanwhile, so that no two turns are waited for at once. NULL and *e, and the status of the answer. */
static struct diff_side *serve_diff_side(const struct request *r, const char *input, const char *steps, struct response *out, struct err *e)
{
	const struct str key = request_value(r, input), chosen = request_value(r, steps);
	struct report_args args = {.key_op = request_value(r, "key_op").p, .device = request_value(r, "device").n ? request_value(r, "device").p : NULL};
	struct library_entry *x = library_find(r->library, key);
	struct diff_side *side = NULL;
	struct library_turn turn;
	struct library_visit visit;
	if (chosen.n && report_args_population(&args, chosen, e) < 0)
		return NULL;
	if (!key.n || !x) {
		out->status = 404;
		err_set(e, ERR_DATA, "no input '" STR_FMT "'; /api/state lists them", STR_ARG(key));
		return NULL;
	}
	if (library_visit_begin(&visit, r->library, x, e) < 0) {
		out->status = e->code == ERR_DATA ? 422 : 503;
		return NULL;
	}
	if (library_turn_begin(&turn, x, e) == 0) {
		side = diff_job_of_recording(x->profile, &args, e);
		if (side)
			diff_side_disown(side); /* the turn gives to the profile what it has allocated */
		library_turn_end(&turn);
	}
	library_visit_end(&visit);
	return side;
}

static int serve_diff_ask(const struct request *r, struct diff_ask *ask, struct err *e)
{
	const struct str by = request_value(r, "by");
	*ask = (struct diff_ask){.force = str_eqc(request_value(r, "force"), "1")};
	return by.n ? diff_by_of(by, &ask->by, e) : 0;
}

static int serve_diff_run(const struct request *r, struct response *out, struct err *e)
{
	struct diff_ask ask;
	struct table t;
	struct mem_undo undo;
	if (serve_diff_ask(r, &ask, e) < 0)
		return -1;
	struct diff_side *a = serve_diff_side(r, "a", "a_steps", out, e), *b;
	if (!a)
		return -1;
	mem_undo_begin(&undo, serve_diff_free, a);
	int rc = -1;
	b = serve_diff_side(r, "b", "b_steps", out, e);
	if (b) {
		struct mem_undo inner;
		mem_undo_begin(&inner, serve_diff_free, b);
		rc = diff_table(a, b, &ask, &t, e);
		if (rc == 0) {
			rc = table_answer(r, &t, out, e);
			table_release(&t);
		}
		mem_undo_end(&inner);
		diff_side_free(b);
	}
	mem_undo_end(&undo);
	diff_side_free(a);
	return rc;
}

static const struct endpoint_param params[] = {
	{"a", "an input, as /api/state names it in \"input\"", NULL, true},
	{"b", "the other one", NULL, true},
	{"a_steps", "only these steps of a: A..B, A.., ..B or A", NULL, false},
	{"b_steps", "the same of b", NULL, false},
	{"key_op", "what each step of both calls once: name of a range, op or kernel, or an op's id", NULL, false},
	{"device", "cpu = what the hosts did, though GPUs worked; N = this GPU alone; default: all GPUs", NULL, false},
	{"by", "a row for each term (default), module, op, kernel or line; or tree: the modules, with their ops", NULL, false},
	{"force", "1 = compare runs that have little in common, too", NULL, false},
	TABLE_PARAMS,
	{0},
};

const struct endpoint endpoint_diff = {
	.path = "/api/diff",
	.help = "what changed from one input to another, as `opscope diff` gives it",
	.flags = ENDPOINT_FRESH, /* the answer depends on two inputs */
	.params = params,
	.run = serve_diff_run,
};
