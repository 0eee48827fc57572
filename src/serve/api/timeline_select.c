/* What is in a window of some tracks, by name. */
#include "analysis/timeline/timeline_sums.h"
#include "base/mem.h"
#include "serve/api/timeline_answers.h"
#include "serve/api/timeline_times.h"
#include "serve/tables.h"

enum { C_NAME, C_KIND, C_COUNT, C_TOTAL, C_SELF, C_SHARE, C_MEAN };

static const struct column columns[] = {
	{.id = "name", .title = "Name", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "name of the ranges or of the device work"},
	{.id = "kind", .title = "Kind", .type = CELL_STR, .help = "kernel, memcpy or memset on a device; op, user, python, call, ... on the host"},
	{.id = "count", .title = "Count", .type = CELL_I64, .unit = UNIT_COUNT, .help = "how many of them overlap the window"},
	{.id = "total_ns", .title = "Total", .type = CELL_I64, .unit = UNIT_NS,
	 .help = "sum of their durations as far as they lie within the window; ranges within ranges count for themselves"},
	{.id = "self_ns", .title = "Self", .type = CELL_I64, .unit = UNIT_NS, .help = "the same without the ranges within them that the table has, too"},
	{.id = "share_pct", .title = "Share", .type = CELL_F64, .unit = UNIT_PERCENT,
	 .help = "self / self of all device work in the table, or of all ranges of the host: 100 % in all; empty for what only describes a time, as annotations on a stream do"},
	{.id = "mean_ns", .title = "Mean", .type = CELL_I64, .unit = UNIT_NS, .help = "total / count"},
};

static bool serve_timeline_select_shares(const struct timeline_sum *x)
{
	return x->device || span_nests(x->kind);
}

static void serve_timeline_select_add_row(struct table *t, const struct profile *p, const struct timeline_sum *x, int64_t all_ns)
{
	table_row(t);
	table_set_str(t, C_NAME, profile_str(p, x->name));
	table_set_str(t, C_KIND, str_from(x->device ? gpu_kind_name[x->kind] : span_kind_name[x->kind]));
	table_set_i64(t, C_COUNT, (int64_t)x->count);
	table_set_i64(t, C_TOTAL, x->total_ns);
	table_set_i64(t, C_SELF, x->self_ns);
	if (serve_timeline_select_shares(x) && all_ns > 0)
		table_set_f64(t, C_SHARE, 100.0 * (double)x->self_ns / (double)all_ns);
	table_set_i64(t, C_MEAN, x->total_ns / (int64_t)x->count);
}

int timeline_answer_select(const struct timeline *t, const struct request *r, struct response *out, struct err *e)
{
	int64_t from_ns, to_ns;
	struct timeline_sum *v;
	struct table table;
	if (timeline_window(r, t, &from_ns, &to_ns, e) < 0)
		return -1;
	uint8_t *take = arena_alloc(r->arena, t->n_tracks + 1);
	if (timeline_take(r, "tracks", t->n_tracks, take, e) < 0)
		return -1;
	uint32_t n = timeline_sums(t, take, from_ns, to_ns, &v);
	int64_t all_ns[2] = {0}; /* of the host, of devices */
	for (uint32_t i = 0; i < n; i++)
		all_ns[v[i].device] += serve_timeline_select_shares(&v[i]) ? v[i].self_ns : 0;
	table_init(&table, "selection", "What is in the window");
	table_columns(&table, columns, sizeof columns / sizeof columns[0]);
	for (uint32_t i = 0; i < n; i++)
		serve_timeline_select_add_row(&table, t->p, &v[i], all_ns[v[i].device]);
	int rc = table_sort(&table, STR("self_ns"), true, e);
	if (rc == 0)
		rc = table_answer(r, &table, out, e);
	table_release(&table);
	mem_free(v);
	return rc;
}

static int serve_timeline_select_run(const struct request *r, struct response *out, struct err *e)
{
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	return t ? timeline_answer_select(t, r, out, e) : -1;
}

static const struct endpoint_param params[] = {TIMELINE_SELECT_PARAMS, {0}};

const struct endpoint endpoint_timeline_select = {
	.path = "/api/timeline/select",
	.help = "totals by name of what is in a window of the timeline",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = serve_timeline_select_run,
};
