/* gate_sim ACCEPTED STEPS SLOWER_PCT TRIALS < SERIES: how often a gate stops a run. SERIES: step times of a real run, ns, a line each.
 *
 * A run is STEPS steps drawn from the series in blocks of neighbours, as correlated as those are (circular block bootstrap). In each trial a gate learns ACCEPTED runs and judges
 * another, all of whose steps take SLOWER_PCT percent longer. Prints "fail F undecided U least L": of 100 trials, and the median of the least change that the gate says it finds. */
#include "base/mem.h"
#include "query/diff_noise.h"
#include "query/gate.h"
#include "query/gate_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t gate_sim_state = 0x9e3779b97f4a7c15;

/* xorshift64*: the same numbers everywhere. */
static uint64_t gate_sim_random(void)
{
	gate_sim_state ^= gate_sim_state >> 12;
	gate_sim_state ^= gate_sim_state << 25;
	gate_sim_state ^= gate_sim_state >> 27;
	return gate_sim_state * 0x2545f4914f6cdd1d;
}

static struct gate_value gate_sim_run(const double *series, unsigned n_series, unsigned steps, double factor)
{
	const unsigned block = (unsigned)ceil(cbrt(n_series));
	double *v = NEW_ARRAY_RAW(steps, double);
	int64_t *ns = NEW_ARRAY_RAW(steps, int64_t);
	uint64_t at = 0;
	for (unsigned i = 0; i < steps; i++) {
		at = i % block ? at + 1 : gate_sim_random();
		v[i] = series[at % n_series] * factor;
		ns[i] = (int64_t)v[i];
	}
	const struct gate_value x = {gate_middle(v, steps), diff_noise_error(ns, steps)};
	mem_free(v);
	mem_free(ns);
	return x;
}

static int gate_sim_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	const unsigned accepted = (unsigned)atoi(argv[1]), steps = (unsigned)atoi(argv[2]), trials = (unsigned)atoi(argv[4]);
	const double slower = atof(argv[3]);
	const struct gate_ask ask = {.false_alarms_pct = 1, .threshold_pct = slower > 0 && slower < 2 ? slower / 2 : 2};
	const struct str metric = STR("step_ns");
	double series[4096], *least = NEW_ARRAY(trials, double);
	unsigned n = 0, verdicts[GATE_VERDICTS] = {0};
	while (n < sizeof series / sizeof *series && scanf("%lf", &series[n]) == 1)
		n++;
	for (unsigned i = 0; i < trials; i++) {
		struct gate_file f = {0};
		struct gate_block *b = gate_file_add_block(&f, NULL, 0, &metric, 1);
		for (unsigned k = 0; k < accepted; k++)
			gate_file_add_run(&f, b, STR("run"), true)->v[0] = gate_sim_run(series, n, steps, 1);
		const struct gate_value x = gate_sim_run(series, n, steps, 1 + slower / 100);
		const struct gate_value *const run = &x;
		const struct gate_judgements j = gate_judge(b, &run, 1, &ask);
		verdicts[j.verdict]++;
		least[i] = j.v[0].least_pct;
		gate_file_release(&f);
	}
	qsort(least, trials, sizeof *least, gate_sim_compare);
	printf("fail %.3f undecided %.3f least %.3f\n", 100.0 * verdicts[GATE_FAIL] / trials, 100.0 * verdicts[GATE_UNDECIDED] / trials, least[trials / 2]);
	mem_free(least);
	return 0;
}
