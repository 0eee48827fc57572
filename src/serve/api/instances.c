/* Kernels of each step and op, summed up: what the drill-downs ask. */
#include "base/mem.h"
#include "serve/query.h"
#include "serve/tables.h"

#define SUMS "count(*) AS calls, sum(dur_ns) AS total_ns, CAST(round(avg(dur_ns)) AS INTEGER) AS mean_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns"
#define COUNTS "count(*) AS kernels, sum(tensor_cores = 'yes') AS tc_kernels, sum(dur_ns) AS total_ns"

/* What the rows are. Where an op is asked for, kernels need not say it again. */
static const struct {
	const char *by, *columns, *sums, *order;
} forms[] = {
	{"step", "step", COUNTS ", sum(CASE tensor_cores WHEN 'yes' THEN dur_ns ELSE 0 END) AS tc_ns", "step IS NULL, step"},
	{"op", "op_id, op, op_type, direction", COUNTS, "total_ns DESC, op_id, direction"},
	{"kernel", "kernel_name, op_id, op_type, direction, tensor_cores", SUMS, "total_ns DESC, kernel_name, op_id, direction"},
	{"kernel", "kernel_name, tensor_cores", SUMS, "total_ns DESC, kernel_name"},
	{"all", "step, op_id, op, op_type, direction, kernel_name, tensor_cores", "count(*) AS calls, sum(dur_ns) AS total_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns",
	 "step IS NULL, step, op_id, direction, kernel_name"},
};

static const struct { const char *argument, *column; } columns[] = {{"step", "step"}, {"op", "op_id"}, {"direction", "direction"}};
enum { STEP, OP, DIRECTION, COLUMNS };

static void serve_instances_put_quoted(struct buf *b, struct str v)
{
	buf_char(b, '\'');
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] == '\'')
			buf_char(b, '\'');
		buf_char(b, v.p[i]);
	}
	buf_char(b, '\'');
}

/* "step,op": whether this one is to be unknown. */
static bool is_unknown(const struct request *r, const char *argument)
{
	struct str list = request_value(r, "unknown"), word;
	while (str_split(&list, ',', &word))
		if (str_eqc(word, argument))
			return true;
	return false;
}

static int put_where(struct buf *b, const struct request *r, struct err *e)
{
	bool any = false;
	int64_t step;
	if (request_number(r, "step", INT64_MIN, INT64_MAX, 0, &step, e) < 0)
		return -1;
	for (unsigned i = 0; i < COLUMNS; i++) {
		struct str v = request_value(r, columns[i].argument);
		bool unknown = is_unknown(r, columns[i].argument);
		if (v.p && unknown)
			return err_set(e, ERR_USAGE, "unknown: not together with a value of %s", columns[i].argument);
		if (!v.p && !unknown)
			continue;
		buf_printf(b, "%s %s IS ", any ? " AND" : " WHERE", columns[i].column);
		any = true;
		if (unknown)
			buf_cstr(b, "NULL");
		else if (i == STEP)
			buf_i64(b, step);
		else
			serve_instances_put_quoted(b, v);
	}
	return 0;
}

/* Why there are no kernels at all is the input's matter, not the query's. */
static void serve_instances_explain(const struct request *r, struct err *e)
{
	struct report_args a;
	struct table t;
	struct err why;
	struct library_turn turn;
	if (table_choice(r, &a, &why) < 0 || library_turn_begin(&turn, r->entry, e) < 0)
		return;
	int rc = report_run(report_find(STR("kernels")), r->entry->profile, &a, &t, &why);
	library_turn_end(&turn);
	if (rc == 0)
		table_release(&t);
	else
		*e = why;
}

static int serve_instances_run(const struct request *r, struct response *out, struct err *e)
{
	struct str by = request_value(r, "by");
	bool of_op = request_value(r, "op").p || is_unknown(r, "op");
	struct buf query = {0};
	unsigned k = 0;
	while (!str_eqc(by, forms[k].by))
		k++;
	k += strcmp(forms[k].by, "kernel") == 0 && of_op;
	buf_printf(&query, "SELECT %s, %s FROM kernels_by_instance", forms[k].columns, forms[k].sums);
	int rc = put_where(&query, r, e);
	if (rc == 0) {
		buf_printf(&query, " GROUP BY %s ORDER BY %s", forms[k].columns, forms[k].order);
		rc = query_answer(r, buf_view(&query), out, e);
		if (rc < 0)
			serve_instances_explain(r, e);
	}
	buf_release(&query);
	return rc;
}

static const char *const choices[] = {"step", "op", "kernel", "all", NULL};
static const struct endpoint_param params[] = {
	{"by", "what the rows are: step, op or kernel; all: each kernel of each op in each step", choices, true},
	{"step", "only kernels of this step", NULL, false},
	{"op", "only kernels of this op, by its id", NULL, false},
	{"direction", "only kernels of this direction, fwd or bwd", NULL, false},
	{"unknown", "only kernels of no step, op or direction: these words, with commas", NULL, false},
	CHOICE_PARAMS,
	TABLE_PARAMS,
	{0},
};

const struct endpoint endpoint_instances = {
	.path = "/api/instances",
	.help = "kernels of steps and ops, counted and summed up",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = serve_instances_run,
};
