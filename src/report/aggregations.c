/* Report aggregations: what an .opscope file or a DLProf database holds of questions asked before. */
#include "query/aggregate.h"
#include "query/predecessor.h"
#include "query/stated.h"

enum {
	AGGREGATIONS_ID, AGGREGATIONS_NAME, AGGREGATIONS_MADE_BY, AGGREGATIONS_CREATED, AGGREGATIONS_KEY_OP, AGGREGATIONS_STEPS, AGGREGATIONS_FIRST, AGGREGATIONS_LAST,
	AGGREGATIONS_AGGREGATED, AGGREGATIONS_TOTAL, AGGREGATIONS_WALL, AGGREGATIONS_BUSY, AGGREGATIONS_TC, AGGREGATIONS_TABLES, AGGREGATIONS_ROWS, AGGREGATIONS_MISSING
};

static const struct section aggregations_section = {COLUMNS(
	[AGGREGATIONS_ID] = {COLUMN(NUMBER, "aggregation", "No.", "its number, for --aggregation=N")},
	[AGGREGATIONS_NAME] = {COLUMN(TEXT, "name", "Name", "as it was called")},
	[AGGREGATIONS_MADE_BY] = {COLUMN(TEXT, "made_by", "Made by", "program and version")},
	[AGGREGATIONS_CREATED] = {COLUMN(TEXT, "created", "Created", "when it was made")},
	[AGGREGATIONS_KEY_OP] = {COLUMN(TEXT, "key_op", "Key op", "the op that was said to mark steps; none: the program found them by its own rules")},
	[AGGREGATIONS_STEPS] = {COLUMN(TEXT, "steps", "Steps", "which were asked for; none: all")},
	[AGGREGATIONS_FIRST] = {COLUMN(NUMBER, "first_step", "First step", "number of the first step in it; of the first iteration where DLProf made it")},
	[AGGREGATIONS_LAST] = {COLUMN(NUMBER, "last_step", "Last step", "number of the last step")},
	[AGGREGATIONS_AGGREGATED] = {COLUMN(COUNT, "aggregated_steps", "Steps in it", "how many steps are in it")},
	[AGGREGATIONS_TOTAL] = {COLUMN(COUNT, "total_steps", "Steps in all", "how many steps the recording has by this key op")},
	[AGGREGATIONS_WALL] = {COLUMN(NS, "wall_ns", "Wall time", "time that it covers, by its summary: that of its whole steps; without steps, of the recording")},
	[AGGREGATIONS_BUSY] = {COLUMN(PERCENT, "gpu_utilization_pct", "GPU utilization", "part of the wall time in which the GPUs worked, by its summary; where DLProf "
	                              "made it: in which kernels ran")},
	[AGGREGATIONS_TC] = {COLUMN(PERCENT, "tc_utilization_pct", "Tensor Core utilization", "DLProf's Tensor Core kernel time / kernel time of ops that could use "
	                            "Tensor Cores", .flags = COLUMN_DETAIL)},
	[AGGREGATIONS_TABLES] = {COLUMN(COUNT, "tables", "Tables", "how many report tables it has")},
	[AGGREGATIONS_ROWS] = {COLUMN(COUNT, "rows", "Rows", "how many rows its report tables have")},
	[AGGREGATIONS_MISSING] = {COLUMN(COUNT, "missing", "Missing", "reports that the data had nothing for, or that are made when asked for", .flags = COLUMN_DETAIL)},
)};

static void aggregations_set_text(struct table *t, unsigned c, struct str v)
{
	if (v.n)
		table_set_str(t, c, v);
}

static void aggregations_set_number(struct table *t, unsigned c, int64_t v)
{
	if (v != ID_NONE)
		table_set_i64(t, c, v);
}

static void aggregations_own_row(const struct aggregation *a, struct table *t)
{
	table_row(t);
	table_set_i64(t, AGGREGATIONS_ID, a->id);
	aggregations_set_text(t, AGGREGATIONS_NAME, a->name);
	table_set_fmt(t, AGGREGATIONS_MADE_BY, "opscope %.*s", (int)(a->opscope.n < 40 ? a->opscope.n : 40), a->opscope.p);
	aggregations_set_text(t, AGGREGATIONS_CREATED, a->created);
	aggregations_set_text(t, AGGREGATIONS_KEY_OP, a->key_op);
	aggregations_set_text(t, AGGREGATIONS_STEPS, a->steps);
	aggregations_set_number(t, AGGREGATIONS_FIRST, a->first_step);
	aggregations_set_number(t, AGGREGATIONS_LAST, a->last_step);
	aggregations_set_number(t, AGGREGATIONS_AGGREGATED, a->aggregated_steps);
	aggregations_set_number(t, AGGREGATIONS_TOTAL, a->total_steps);
	aggregations_set_number(t, AGGREGATIONS_WALL, a->wall_ns);
	if (a->wall_ns > 0 && a->device_busy_ns >= 0)
		table_set_f64(t, AGGREGATIONS_BUSY, 100.0 * (double)a->device_busy_ns / (double)a->wall_ns);
	aggregations_set_number(t, AGGREGATIONS_TABLES, a->tables);
	aggregations_set_number(t, AGGREGATIONS_ROWS, a->rows);
	aggregations_set_number(t, AGGREGATIONS_MISSING, a->missing);
}

/* A cell of the table with the summary to the cell of ours. */
static void aggregations_take(struct table *t, unsigned to, const struct table *from, size_t row, const char *id)
{
	int c = from && row != SIZE_MAX ? table_find_column(from, str_from(id)) : -1;
	if (c < 0 || table_is_null(from, row, (unsigned)c))
		return;
	enum cell_type is = from->data[c].col.type, want = t->data[to].col.type;
	if (want == CELL_STR && is == CELL_STR)
		aggregations_set_text(t, to, table_str(from, row, (unsigned)c));
	else if (want == CELL_I64 && is == CELL_I64)
		table_set_i64(t, to, table_i64(from, row, (unsigned)c));
	else if (want == CELL_F64 && is != CELL_STR)
		table_set_f64(t, to, table_f64(from, row, (unsigned)c));
}

/* What a predecessor made before, if the tables are its. */
static void stated_rows(const struct profile *p, const struct predecessor *by, const struct table *tables, struct table *t)
{
	const struct predecessor_stated *s = by->stated;
	const struct table *list = stated_find(tables, s->list);
	struct str version = {"", 0};
	profile_meta(p, s->version, &version);
	for (size_t i = 0; list && i < list->n_rows; i++) {
		if (table_is_null(list, i, 0))
			continue;
		int64_t id = table_i64(list, i, 0);
		table_row(t);
		table_set_i64(t, AGGREGATIONS_ID, id);
		table_set_fmt(t, AGGREGATIONS_MADE_BY, "%s %.*s", by->title, (int)(version.n < 40 ? version.n : 40), version.p);
		for (const struct predecessor_cell *c = s->cells; c->column; c++) {
			const struct table *from = stated_find(tables, c->table);
			aggregations_take(t, (unsigned)table_find_column(t, str_from(c->column)), from, from == list ? i : stated_row(from, id, 0), c->stated);
		}
	}
}

static int aggregations_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	if (args->has_steps || args->key_op)
		return err_set(e, ERR_USAGE, "report aggregations lists what the file holds: --steps and --key-op are for `opscope aggregate`, which adds one");
	if (!p->n_aggregations && !p->stated.rows.n)
		return err_set(e, ERR_DATA, "this input holds no aggregations: `opscope import` makes a file with one, `opscope aggregate` adds others; databases "
		               "of DLProf have them, too");
	section_start(&aggregations_section, args, 0, out);
	struct table tables;
	table_init(&tables, "", "");
	stated_tables(p, &tables);
	for (const struct predecessor *const *by = predecessor_registry; *by; by++)
		if ((*by)->stated)
			stated_rows(p, *by, &tables, out);
	for (unsigned i = 0; i < p->n_aggregations; i++)
		aggregations_own_row(&p->aggregation[i], out);
	for (const struct predecessor *const *by = predecessor_registry; *by && tables.next; by++)
		if ((*by)->stated)
			(*by)->stated->compare((struct profile *)(uintptr_t)p, &tables, out);
	table_release(&tables);
	stated_tables(p, out);
	table_note(out, "--aggregation=N makes any report of one of them.");
	return 0;
}

const struct report report_aggregations = {
	.name = "aggregations",
	.title = "Aggregations in the file",
	.asks = ASKS_INPUT,
	.help = "What the file holds of questions asked before: one row for each aggregation, with its key op and steps. `opscope import` makes the first, "
	        "`opscope aggregate` adds others, and any report shows one with --aggregation=N. A DLProf database brings those that DLProf made: its tables "
	        "follow as sections under their own names (model_summary, op_nodes, group_ops, ...), as they are stored (as text with --section alone); the section differences says where "
	        "they are not what opscope computes from the recording by DLProf's rules.",
	.sections = (const struct section *const[]){&aggregations_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS | PASS_OPS,
	.takes = REPORT_STEPS | REPORT_FILE,
	.run = aggregations_run,
};
