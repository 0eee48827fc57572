#include "analysis/analysis.h"

static const struct pass {
	unsigned provides, needs;
	int (*run)(struct profile *p, struct err *e);
} passes[] = {
	/* in an order in which each finds what it needs */
	{PASS_NEST, 0, pass_nest},
	{PASS_CORRELATE, PASS_NEST, pass_correlate},
	{PASS_STEPS, PASS_NEST | PASS_CORRELATE, pass_steps},
	{PASS_MEMORY, PASS_NEST, pass_memory},
};
enum { N_PASSES = sizeof passes / sizeof passes[0] };

int analysis_run(struct profile *p, unsigned wanted, struct err *e)
{
	for (int i = N_PASSES - 1; i >= 0; i--)
		if (wanted & passes[i].provides)
			wanted |= passes[i].needs;
	for (int i = 0; i < N_PASSES; i++) {
		if (!(wanted & passes[i].provides) || (p->passes_done & passes[i].provides))
			continue;
		if (passes[i].run(p, e) < 0)
			return -1;
		p->passes_done |= passes[i].provides;
	}
	return 0;
}
