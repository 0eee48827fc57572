/* TraceLens' table of ops with their FLOPs and bytes. */
#include "predecessors/tracelens/tables.h"
#include "report/parts/cost_calls.h"

enum { C_NAME, C_DIMS, C_TYPES, C_CONCRETE, C_CALLS, C_GFLOPS, C_MB, C_AI, N_COLUMNS };

static const struct column costs_columns[N_COLUMNS] = {
	[C_NAME] = {"name", "name", "op", CELL_STR},
	[C_DIMS] = {"input_dims", "Input Dims", "shapes as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[C_TYPES] = {"input_type", "Input type", "types as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[C_CONCRETE] = {"concrete_inputs", "Concrete Inputs", "values as recorded", CELL_STR, UNIT_NONE, COLUMN_WIDE},
	[C_CALLS] = {"operation_count", "operation_count", "how often it was called so", CELL_I64},
	[C_GFLOPS] = {"gflops", "GFLOPS", "10^9 FLOPs of one call, by TraceLens' formulas", CELL_F64, UNIT_NONE, 0, 9},
	[C_MB] = {"data_moved_mb", "Data Moved (MB)", "2^20 bytes of one call", CELL_F64, UNIT_NONE, 0, 9},
	[C_AI] = {"flops_per_byte", "FLOPS/Byte", "arithmetic intensity", CELL_F64},
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
	struct cost_calls *r = cost_calls_new(p, COST_TRACELENS, e);
	if (!r)
		return -1;
	table_columns(out, costs_columns, N_COLUMNS);
	for (uint32_t i = 0; i < r->n; i++)
		if (r->v[i].calls && r->costs->cost[i].flops >= 0 && r->costs->cost[i].class != OP_VIEW)
			costs_put(out, r, i);
	cost_calls_free(r);
	return 0;
}
