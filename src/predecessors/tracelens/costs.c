/* TraceLens' table of ops with their FLOPs and bytes. */
#include "predecessors/tracelens/rules.h"
#include "predecessors/tracelens/tables.h"
#include "report/parts/cost_calls.h"

enum { C_NAME, C_DIMS, C_TYPES, C_CONCRETE, C_CALLS, C_GFLOPS, C_MB, C_AI, N_COLUMNS };

static const struct column costs_columns[N_COLUMNS] = {
	[C_NAME] = {.id = "name", .title = "name", .help = "op", .type = CELL_STR},
	[C_DIMS] = {.id = "input_dims", .title = "Input Dims", .help = "shapes as recorded", .type = CELL_STR, .flags = COLUMN_WIDE},
	[C_TYPES] = {.id = "input_type", .title = "Input type", .help = "types as recorded", .type = CELL_STR, .flags = COLUMN_WIDE},
	[C_CONCRETE] = {.id = "concrete_inputs", .title = "Concrete Inputs", .help = "values as recorded", .type = CELL_STR, .flags = COLUMN_WIDE},
	[C_CALLS] = {.id = "operation_count", .title = "operation_count", .help = "how often it was called so", .type = CELL_I64},
	[C_GFLOPS] = {.id = "gflops", .title = "GFLOPS", .help = "10^9 FLOPs of one call, by TraceLens' formulas", .type = CELL_F64, .digits = 9},
	[C_MB] = {.id = "data_moved_mb", .title = "Data Moved (MB)", .help = "2^20 bytes of one call", .type = CELL_F64, .digits = 9},
	[C_AI] = {.id = "flops_per_byte", .title = "FLOPS/Byte", .help = "arithmetic intensity", .type = CELL_F64},
};

static void costs_put(struct table *out, const struct cost_calls *r, uint32_t i)
{
	const struct cost *m = &r->costs->cost[i];
	enum cost_direction d;
	struct op_facts f = costs_facts(r->costs, r->p, i, &d);
	table_row(out);
	table_set_str_copy(out, C_NAME, f.name);
	table_set_str(out, C_DIMS, f.dims);
	table_set_str(out, C_TYPES, f.types);
	table_set_str(out, C_CONCRETE, f.concrete);
	table_set_i64(out, C_CALLS, (int64_t)r->v[i].calls);
	table_set_f64(out, C_GFLOPS, (double)m->flops / 1e9);
	if (m->bytes >= 0)
		table_set_f64(out, C_MB, (double)m->bytes / (1 << 20));
	if (m->bytes > 0)
		table_set_f64(out, C_AI, (double)m->flops / (double)m->bytes);
}

int tracelens_costs(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct cost_calls *r = cost_calls_new(p, &tracelens_rules, e);
	if (!r)
		return -1;
	table_columns(out, costs_columns, N_COLUMNS);
	for (uint32_t i = 0; i < r->n; i++)
		if (r->v[i].calls && r->costs->cost[i].flops >= 0 && r->costs->cost[i].class != OP_VIEW)
			costs_put(out, r, i);
	cost_calls_free(r);
	return 0;
}
