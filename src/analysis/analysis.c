#include "analysis/analysis.h"

#include "analysis/check.h"
#include "base/mem.h"
#include "store/reuse.h"

static bool analysis_has_names(const struct profile *p)
{
	return p->names;
}
static bool has_nest(const struct profile *p)
{
	return p->span.parent && p->span.op;
}
static bool has_correlate(const struct profile *p)
{
	return p->gpu_op.call && p->gpu_op.op;
}
static bool has_tensor_cores(const struct profile *p)
{
	return p->tensor_cores;
}
static bool has_steps(const struct profile *p)
{
	return p->steps;
}
static bool has_memory(const struct profile *p)
{
	return p->memory.span;
}

static bool analysis_has_ops(const struct profile *p)
{
	return p->ops;
}

static const struct pass {
	unsigned provides, needs;
	int (*run)(struct profile *p, struct err *e);
	bool (*has)(const struct profile *p); /* are the results there? */
} passes[] = {
	/* in an order in which each finds what it needs */
	{PASS_NAMES, 0, pass_names, analysis_has_names},
	{PASS_NEST, 0, pass_nest, has_nest},
	{PASS_CORRELATE, PASS_NEST, pass_correlate, has_correlate},
	{PASS_TENSOR_CORES, PASS_NEST | PASS_CORRELATE, pass_tensor_cores, has_tensor_cores},
	{PASS_STEPS, PASS_NEST | PASS_CORRELATE, pass_steps, has_steps},
	{PASS_MEMORY, PASS_NEST, pass_memory, has_memory},
	{PASS_OPS, PASS_NEST | PASS_CORRELATE, pass_ops, analysis_has_ops},
};
enum { N_PASSES = sizeof passes / sizeof passes[0] };

/* Takes back the marks of passes without results, and of those that used them. */
static void distrust_marks(struct profile *p)
{
	for (int i = 0; i < N_PASSES; i++)
		if (!passes[i].has(p) || (passes[i].needs & ~p->passes_done))
			p->passes_done &= ~passes[i].provides;
}

int analysis_run(struct profile *p, unsigned wanted, struct err *e)
{
	wanted |= PASS_NAMES;
	for (int i = N_PASSES - 1; i >= 0; i--)
		if (wanted & passes[i].provides)
			wanted |= passes[i].needs;
	wanted |= wanted & PASS_CORRELATE ? PASS_TENSOR_CORES : 0;
	distrust_marks(p);
	profile_assert_kept(p, (wanted & PASS_MEMORY ? LEFT_MEMORY : 0) | (wanted & (PASS_STEPS | PASS_OPS) ? LEFT_QUIET : 0));
	for (int i = 0; i < N_PASSES; i++) {
		if (!(wanted & passes[i].provides) || (p->passes_done & passes[i].provides))
			continue;
		profile_assert_alone(p);
		if (passes[i].run(p, e) < 0)
			return -1;
		p->passes_done |= passes[i].provides;
#ifdef OPSCOPE_CHECK
		analysis_check(p);
#endif
	}
	return 0;
}

void analysis_forget(struct profile *p)
{
	reuse_forget(p);
	for (unsigned t = 0; t < STORE_N_TABLES; t++) {
		void *table = profile_table(p, (enum store_table_id)t);
		for (unsigned c = 0; c < store_tables[t].n_columns; c++) {
			const struct store_column *col = &store_tables[t].columns[c];
			void **data = rows_column(table, col);
			if (col->group != DERIVED)
				continue;
			mem_free(*data);
			*data = NULL;
		}
		rows_trim(table, &store_tables[t]);
	}
	p->names = NULL; /* these two are in the arena */
	p->tensor_cores = NULL;
	p->passes_done = 0;
	profile_find_arg_keys(p);
}
