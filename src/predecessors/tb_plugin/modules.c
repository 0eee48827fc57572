/* Time by module (module_op.py of the plugin). */
#include "analysis/recording.h"
#include "base/mem.h"
#include "predecessors/tb_plugin/rules.h"
#include "predecessors/tb_plugin/tables.h"

const struct module_rules tb_module_rules = {.parent_ids = true, .forward_only = true, .calls_are_own = true, .optree = &tb_optree};

static const struct column modules_columns[] = {
	{.id = "depth", .title = "Depth", .help = "0 = root", .type = CELL_I64, .flags = COLUMN_TREE},
	{.id = "name", .title = "Module Name", .help = "class and number of the module", .type = CELL_STR},
	{.id = "occurences", .title = "Occurences", .help = "how often it was called", .type = CELL_I64},
	{.id = "operators", .title = "Operators", .help = "ops directly inside", .type = CELL_I64},
	{.id = "host_total_time", .title = "Host Total Time", .help = "us", .type = CELL_F64, .unit = UNIT_US, .digits = 3},
	{.id = "host_self_time", .title = "Host Self Time", .help = "us; less modules and ops directly inside", .type = CELL_F64, .unit = UNIT_US, .digits = 3},
	{.id = "device_total_time", .title = "Device Total Time", .help = "us", .type = CELL_F64, .unit = UNIT_US, .digits = 3},
	{.id = "device_self_time", .title = "Device Self Time", .help = "us; with the device total of ops directly inside", .type = CELL_F64, .unit = UNIT_US, .digits = 3},
};

/* The table adds up by (name, module id) and shows the sum wherever the module stands. */
struct total {
	uint64_t calls, operators;
	int64_t host_total, host_self, dev_total, dev_self;
};

static struct total *totals_of(const struct modules *m, uint32_t *total_of)
{
	struct intern keys;
	intern_init(&keys);
	struct total *total = NEW_ARRAY((size_t)m->tree.n + 1, struct total);
	for (uint32_t i = 0; i < m->tree.n; i++) {
		const struct module_node *n = &m->tree.v[i];
		uint32_t key[2] = {n->name, (uint32_t)n->module_id};
		struct total *x = &total[total_of[i] = intern_put(&keys, (const char *)key, sizeof key)];
		x->calls += n->calls;
		x->operators += n->operators;
		x->host_total += n->host_total;
		x->host_self += n->host_self;
		x->dev_total += n->dev_total;
		x->dev_self += n->dev_self;
	}
	intern_release(&keys);
	return total;
}

static void tb_modules_put(const struct modules *m, struct table *t)
{
	table_columns(t, modules_columns, sizeof modules_columns / sizeof *modules_columns);
	uint32_t *total_of = NEW_ARRAY(m->tree.n, uint32_t);
	struct total *total = totals_of(m, total_of);
	for (uint32_t k = 0; k < m->tree.n_order; k++) {
		const struct module_node *n = &m->tree.v[m->tree.order[k]];
		const struct total *x = &total[total_of[m->tree.order[k]]];
		table_row(t);
		table_set_i64(t, 0, n->depth);
		table_set_str_copy(t, 1, intern_get(&m->tree.names, n->name));
		table_set_i64(t, 2, (int64_t)x->calls);
		table_set_i64(t, 3, (int64_t)x->operators);
		table_set_f64(t, 4, (double)x->host_total / 1000);
		table_set_f64(t, 5, (double)x->host_self / 1000);
		table_set_f64(t, 6, (double)x->dev_total / 1000);
		table_set_f64(t, 7, (double)x->dev_self / 1000);
	}
	mem_free(total);
	mem_free(total_of);
}

int tb_modules(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct arena a = {0};
	struct window w;
	if (tb_window(p, args, &a, &w, e) < 0)
		return -1;
	struct modules *m = modules_new(p, &tb_module_rules, w.all ? NULL : &w.in);
	int rc = 0;
	if (m->source == MODULES_NONE)
		rc = err_set(e, ERR_DATA, "the input holds no modules; to record them: %s", recording_how(p, RECORD_MODULES));
	else
		tb_modules_put(m, out);
	modules_free(m);
	arena_release(&a);
	return rc;
}
