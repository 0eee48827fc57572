/* The aggregations in a DLProf database, as rows of the store's table `stated`. Each table of the file becomes one of that name, with what
 * it refers to in place of the reference: a metric becomes total, average, least and most, in columns named as DLProf's reports have
 * them. */
#include "input/dldb/dldb.h"

#include <stdio.h>

enum dldb_stated_as {
	AS_NUMBER,   /* as it is */
	AS_TEXT,
	AS_WORD,     /* id in the dictionary */
	AS_OP,       /* id in read_only_ops: op_id, op_name, direction, op_type */
	AS_METRIC,   /* id in metric: total_ID, avg_ID, min_ID, max_ID */
	AS_TIMES,    /* id in node_time_metrics: four metrics */
	AS_CATEGORY, /* id in category_summary: ID_gpu_time_ns, ... */
	AS_DEVICE,   /* id in read_only_gpu_infos: device_id */
};

struct stated_column {
	const char *from;
	enum dldb_stated_as as;
	const char *id;
};

struct stated_table {
	const char *name;
	const struct stated_column *columns; /* of the file: at most STATED_COLUMNS_MAX; ends with a NULL name */
	bool is_list;   /* of aggregations: its id is the number of one */
	bool repeats;   /* a row for each kernel, equal in all that is kept: kept once */
};
enum { STATED_COLUMNS_MAX = 28 };

/* Behind the columns of each table. */
enum { AGGREGATION, DOMAIN, BEFORE };

static const struct stated_column aggregations[] = {
	{"server_user_name", AS_TEXT, "user"}, {"server_host_name", AS_TEXT, "host"}, {"start_timestamp", AS_TEXT, "start"},
	{"end_timestamp", AS_TEXT, "end"}, {0},
};
static const struct stated_column iteration_key[] = {{"key_node_id", AS_WORD, "key_op"}, {0}};
static const struct stated_column model_summary[] = {
	{"wall_time", AS_NUMBER, "wall_clock_time_ns"}, {"tc_utilization", AS_NUMBER, "tc_utilization_pct"},
	{"gpu_utilization", AS_NUMBER, "gpu_utilization_pct"}, {"tc_duration_pct", AS_NUMBER, "tc_duration_pct"},
	{"non_tc_duration_pct", AS_NUMBER, "non_tc_duration_pct"}, {"memory_duration_pct", AS_NUMBER, "memory_duration_pct"},
	{"dataloader_duration_pct", AS_NUMBER, "dataloader_duration_pct"}, {"io_duration_pct", AS_NUMBER, "io_duration_pct"},
	{"cpu_duration_pct", AS_NUMBER, "cpu_duration_pct"}, {"other_duration_pct", AS_NUMBER, "other_duration_pct"},
	{"iter_total", AS_NUMBER, "total_iterations"}, {"iter_aggregated", AS_NUMBER, "aggregated_iterations"},
	{"iter_start", AS_NUMBER, "start_iteration"}, {"iter_stop", AS_NUMBER, "stop_iteration"},
	{"avg_iteration_time", AS_NUMBER, "average_iteration_time_ns"},
	{"iteration_time_std_dev", AS_NUMBER, "iteration_time_standard_deviation_ns"}, {"key_node_id", AS_WORD, "key_op"},
	{"nodes_total_id", AS_CATEGORY, "all_ops"}, {"nodes_using_tc_id", AS_CATEGORY, "ops_using_tc"},
	{"nodes_tc_eligible_id", AS_CATEGORY, "ops_eligible_not_using_tc"}, {"nodes_other_id", AS_CATEGORY, "other_ops"}, {0},
};
static const struct stated_column kernel_summary_metrics[] = {
	{"kernels_total_id", AS_CATEGORY, "all_kernels"}, {"kernels_using_tc_id", AS_CATEGORY, "kernels_using_tc"},
	{"kernels_non_tc_id", AS_CATEGORY, "kernels_not_using_tc"}, {0},
};
static const struct stated_column memory_summary_metrics[] = {{"memory_time_id", AS_CATEGORY, "memory"}, {0}};
static const struct stated_column iteration_list[] = {
	{"iter_value", AS_NUMBER, "iteration"}, {"start_time", AS_NUMBER, "start_ns"}, {"stop_time", AS_NUMBER, "stop_ns"}, {0},
};
static const struct stated_column iteration_aggregation_list[] = {
	{"iter_value", AS_NUMBER, "iteration"}, {"gpu_utilization", AS_NUMBER, "gpu_utilization_pct"}, {"tc_duration", AS_NUMBER, "tc_ns"},
	{"non_tc_duration", AS_NUMBER, "non_tc_ns"}, {"memory_duration", AS_NUMBER, "memory_ns"},
	{"dataloader_duration", AS_NUMBER, "dataloader_ns"}, {"io_duration", AS_NUMBER, "io_ns"}, {"cpu_duration", AS_NUMBER, "cpu_ns"},
	{"other_duration", AS_NUMBER, "other_ns"}, {0},
};
static const struct stated_column kernel_iteration_stats[] = {
	{"iter_value", AS_NUMBER, "iteration"}, {"total_count", AS_NUMBER, "kernels"}, {"uses_tc_count", AS_NUMBER, "tc_kernels"},
	{"total_gpu_time", AS_NUMBER, "total_gpu_time_ns"}, {"tc_gpu_time", AS_NUMBER, "tc_gpu_time_ns"}, {0},
};
static const struct stated_column kernel_iteration_node[] = {
	{"iter_value", AS_NUMBER, "iteration"}, {"read_only_ops_id", AS_OP, ""}, {"total_count", AS_NUMBER, "kernels"},
	{"uses_tc_count", AS_NUMBER, "tc_kernels"}, {"total_gpu_time", AS_NUMBER, "total_gpu_time_ns"},
	{"tc_gpu_time", AS_NUMBER, "tc_gpu_time_ns"}, {0},
};
static const struct stated_column op_nodes[] = {
	{"read_only_ops_id", AS_OP, ""}, {"num_calls", AS_NUMBER, "no_calls"}, {"tc_eligible", AS_NUMBER, "tc_eligible"},
	{"using_tc", AS_NUMBER, "using_tc"}, {"node_time_metrics_id", AS_TIMES, ""}, {"kernel_calls", AS_NUMBER, "kernel_calls"},
	{"is_bad_data_type", AS_NUMBER, "is_bad_data_type"}, {0},
};
static const struct stated_column op_type_metrics[] = {
	{"op_node_type_id", AS_WORD, "op_type"}, {"num_nodes", AS_NUMBER, "no_ops"}, {"num_calls", AS_NUMBER, "no_calls"},
	{"op_type_metrics_id", AS_TIMES, ""}, {0},
};
static const struct stated_column group_ops[] = {
	{"group_op_full_name_id", AS_WORD, "name"}, {"group_op_full_id_id", AS_WORD, "full_id"}, {"row_type", AS_NUMBER, "row_type"},
	{"level", AS_NUMBER, "level"}, {"num_op_instances", AS_NUMBER, "num_calls_aggregated"},
	{"num_supported_leaf_ops", AS_NUMBER, "num_tc_eligible_ops"}, {"num_tc_leaf_ops", AS_NUMBER, "num_ops_using_tc"},
	{"group_op_time_metrics_id", AS_TIMES, ""}, {0},
};
static const struct stated_column kernel_summaries[] = {
	{"kernel_name_id", AS_WORD, "kernel_name"}, {"read_only_ops_id", AS_OP, ""}, {"uses_tc", AS_NUMBER, "uses_tc"},
	{"gpu_time_metric_id", AS_METRIC, "gpu_time_ns"}, {"api_time_metric_id", AS_METRIC, "api_time_ns"}, {0},
};
static const struct stated_column expert_systems_feedback[] = {
	{"exp_sys_id", AS_TEXT, "detector"}, {"problem", AS_TEXT, "problem"}, {"recommendation", AS_TEXT, "recommendation"},
	{"javascript_function", AS_TEXT, "link"}, {"javascript_args", AS_TEXT, "link_args"}, {0},
};
static const struct stated_column device_gpu_utilizations[] = {
	{"gpu_info_id", AS_DEVICE, "device_id"}, {"gpu_utilization", AS_NUMBER, "gpu_utilization_pct"}, {0},
};
static const struct stated_column gpu_memories[] = {{"total", AS_NUMBER, "total_bytes"}, {"used", AS_NUMBER, "used_bytes"}, {0}};

static const struct stated_table tables[] = {
	{"aggregations", aggregations, true, false},
	{"iteration_key", iteration_key, false, false},
	{"model_summary", model_summary, false, false},
	{"kernel_summary_metrics", kernel_summary_metrics, false, false},
	{"memory_summary_metrics", memory_summary_metrics, false, false},
	{"iteration_list", iteration_list, false, false},
	{"iteration_aggregation_list", iteration_aggregation_list, false, false},
	{"kernel_iteration_stats", kernel_iteration_stats, false, false},
	{"kernel_iteration_node", kernel_iteration_node, false, true},
	{"op_nodes", op_nodes, false, false},
	{"op_type_metrics", op_type_metrics, false, false},
	{"group_ops", group_ops, false, false},
	{"kernel_summaries", kernel_summaries, false, false},
	{"device_gpu_utilizations", device_gpu_utilizations, false, false},
	{"expert_systems_feedback", expert_systems_feedback, false, false},
	{"gpu_memories", gpu_memories, false, false},
};

/* What the tables refer to. */
struct lookups {
	struct dldb_rows metric, times, category, device;
};

struct dldb_stated_row {
	struct dldb *d;
	const struct lookups *look;
	int64_t aggregation;
	uint32_t table;
	int32_t row;
};

static void dldb_stated_put(struct dldb_stated_row *r, const char *prefix, const char *id, const struct dldb_cell *v)
{
	struct stateds *t = &r->d->p->stated;
	struct intern *strings = &r->d->p->strings;
	char name[96];
	if (v->type == SQLPAGE_NULL)
		return;
	int n = snprintf(name, sizeof name, "%s%s", prefix, id);
	uint32_t value = dldb_text(r->d, v), i = rows_push(t, &store_tables[TABLE_stated]);
	if (i == ROW_NONE)
		return;
	t->aggregation[i] = r->aggregation;
	t->tbl[i] = r->table;
	t->row[i] = r->row;
	t->col[i] = intern_put(strings, name, n < (int)sizeof name ? (size_t)n : sizeof name - 1);
	t->value[i] = value;
	t->is_string[i] = v->type == SQLPAGE_TEXT;
}

static void dldb_stated_put_word(struct dldb_stated_row *r, const char *id, const struct dldb_cell *v)
{
	dldb_stated_put(r, "", id, &(struct dldb_cell){.type = SQLPAGE_TEXT, .text = dldb_word(r->d, v)});
}

static uint32_t dldb_stated_find(struct dldb_stated_row *r, const struct dldb_rows *in, const struct dldb_cell *id, const char *what)
{
	uint32_t at = id->type == SQLPAGE_INT ? dldb_find(in, id->i) : ROW_NONE;
	if (at == ROW_NONE && id->type != SQLPAGE_NULL)
		diag_add(&r->d->p->diags, "missing-result", DIAG_LOSS, -1, "table %s, row %lld refers to a row of %s that is not there: its numbers are "
		         "unknown", r->d->table, (long long)r->d->row, what);
	return at;
}

static void dldb_stated_put_op(struct dldb_stated_row *r, const struct dldb_cell *id)
{
	const struct dldb_rows *ops = &r->d->ops;
	uint32_t at = dldb_stated_find(r, ops, id, "read_only_ops");
	if (at == ROW_NONE)
		return;
	dldb_stated_put(r, "", "op_id", dldb_at(ops, at, OP_ID));
	dldb_stated_put(r, "", "op_name", dldb_at(ops, at, OP_NAME));
	dldb_stated_put_word(r, "direction", dldb_at(ops, at, OP_DIRECTION));
	dldb_stated_put_word(r, "op_type", dldb_at(ops, at, OP_TYPE));
}

enum { METRIC_ID, METRIC_SUM, METRIC_AVG, METRIC_MIN, METRIC_MAX };
static const char *const metric_columns[] = {"id", "sum", "avg", "min", "max", NULL};

static void dldb_stated_put_metric(struct dldb_stated_row *r, const char *id, const struct dldb_cell *metric)
{
	static const char *const prefix[] = {"", "total_", "avg_", "min_", "max_"};
	uint32_t at = dldb_stated_find(r, &r->look->metric, metric, "metric");
	for (int c = METRIC_SUM; at != ROW_NONE && c <= METRIC_MAX; c++)
		dldb_stated_put(r, prefix[c], id, dldb_at(&r->look->metric, at, c));
}

static const char *const times_columns[] = {"id", "cpu_time_metric_id", "gpu_time_metric_id", "cpu_overhead_time_metric_id",
                                            "gpu_idle_time_metric_id", NULL};

static void dldb_stated_put_times(struct dldb_stated_row *r, const struct dldb_cell *times)
{
	static const char *const id[] = {"", "cpu_time_ns", "gpu_time_ns", "cpu_overhead_time_ns", "gpu_idle_time_ns"};
	uint32_t at = dldb_stated_find(r, &r->look->times, times, "node_time_metrics");
	for (int c = 1; at != ROW_NONE && c <= 4; c++)
		dldb_stated_put_metric(r, id[c], dldb_at(&r->look->times, at, c));
}

static const char *const category_columns[] = {"id", "gpu_time", "cpu_time", "cpu_overhead", "gpu_idle", "count", NULL};

static void put_category(struct dldb_stated_row *r, const char *id, const struct dldb_cell *category)
{
	static const char *const part[] = {"", "_gpu_time_ns", "_cpu_time_ns", "_cpu_overhead_ns", "_gpu_idle_ns", ""};
	uint32_t at = dldb_stated_find(r, &r->look->category, category, "category_summary");
	for (int c = 1; at != ROW_NONE && c <= 5; c++)
		dldb_stated_put(r, id, part[c], dldb_at(&r->look->category, at, c));
}

static void dldb_stated_put_device(struct dldb_stated_row *r, const char *id, const struct dldb_cell *device)
{
	uint32_t at = dldb_stated_find(r, &r->look->device, device, "read_only_gpu_infos");
	if (at != ROW_NONE)
		dldb_stated_put(r, "", id, dldb_at(&r->look->device, at, 1));
}

static void dldb_stated_put_column(struct dldb_stated_row *r, const struct stated_column *c, const struct dldb_cell *v)
{
	struct dldb_cell text = {.type = SQLPAGE_TEXT};
	switch (c->as) {
	case AS_NUMBER: dldb_stated_put(r, "", c->id, v); break;
	case AS_TEXT:
		text.text = dldb_text(r->d, v);
		dldb_stated_put(r, "", c->id, v->type == SQLPAGE_NULL ? v : &text);
		break;
	case AS_WORD: dldb_stated_put_word(r, c->id, v); break;
	case AS_OP: dldb_stated_put_op(r, v); break;
	case AS_METRIC: dldb_stated_put_metric(r, c->id, v); break;
	case AS_TIMES: dldb_stated_put_times(r, v); break;
	case AS_CATEGORY: put_category(r, c->id, v); break;
	case AS_DEVICE: dldb_stated_put_device(r, c->id, v); break;
	}
}

/* Whether a row like this was not there yet. */
static bool is_new(struct intern *seen, const struct dldb_cell *v, unsigned n)
{
	int64_t key[BEFORE + STATED_COLUMNS_MAX];
	uint32_t before = seen->n;
	for (unsigned i = 0; i < n; i++)
		key[i] = dldb_i64(&v[i], ID_NONE);
	intern_put(seen, (const char *)key, n * sizeof key[0]);
	return seen->n > before;
}

static void dldb_stated_read_table(struct dldb *d, const struct lookups *look, const struct stated_table *t)
{
	const char *columns[BEFORE + STATED_COLUMNS_MAX + 1] = {t->is_list ? "id" : "aggr_id", "domain_id"};
	struct dldb_cell v[BEFORE + STATED_COLUMNS_MAX];
	struct sqlscan s;
	struct intern seen;
	unsigned n = BEFORE;
	for (const struct stated_column *c = t->columns; c->from && n < BEFORE + STATED_COLUMNS_MAX; c++)
		columns[n++] = c->from;
	if (!dldb_scan(d, &s, t->name, columns))
		return;
	struct dldb_stated_row r = {.d = d, .look = look, .table = intern_str(&d->p->strings, str_from(t->name))};
	intern_init(&seen);
	while (r.row < INT32_MAX && dldb_next(d, &s)) {
		for (unsigned i = 0; i < n; i++)
			v[i] = dldb_cell(d, &s, (int)i);
		if (!dldb_own_domain(d, dldb_i64(&v[DOMAIN], ID_NONE)) || (t->repeats && !is_new(&seen, v, n)))
			continue;
		r.aggregation = dldb_i64(&v[AGGREGATION], ID_NONE);
		for (unsigned i = BEFORE; i < n; i++)
			dldb_stated_put_column(&r, &t->columns[i - BEFORE], &v[i]);
		r.row++;
	}
	build_count(&d->b, build_cat(&d->b, r.table), 'M', (uint64_t)s.row);
	intern_release(&seen);
	dldb_scan_end(d, &s);
}

void dldb_read_stated(struct dldb *d)
{
	static const char *const device_columns[] = {"id", "device_id", NULL};
	struct lookups look;
	dldb_load(d, &look.metric, "metric", metric_columns);
	dldb_load(d, &look.times, "node_time_metrics", times_columns);
	dldb_load(d, &look.category, "category_summary", category_columns);
	dldb_load(d, &look.device, "read_only_gpu_infos", device_columns);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		dldb_stated_read_table(d, &look, &tables[i]);
	dldb_rows_release(&look.metric);
	dldb_rows_release(&look.times);
	dldb_rows_release(&look.category);
	dldb_rows_release(&look.device);
}
