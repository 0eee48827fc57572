#include "analysis/costs/counters.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

const char *const counter_match_name[COUNTER_MATCHES] = {[COUNTER_NONE] = "", [COUNTER_BY_ORDER] = "order", [COUNTER_BY_RUN] = "row of launches"};

/* The metrics of which `enum counter` is made. */
enum metric { DRAM_BYTES, DRAM_READ, DRAM_WRITTEN, TENSOR_INST, TENSOR_INST_OF_SMSP, OCCUPANCY, SM, DRAM, DRAM_OF_GPU, METRICS };

static const char *const metric_name[METRICS] = {
	[DRAM_BYTES] = "dram__bytes.sum",
	[DRAM_READ] = "dram__bytes_read.sum",
	[DRAM_WRITTEN] = "dram__bytes_write.sum",
	[TENSOR_INST] = "sm__inst_executed_pipe_tensor.sum",
	[TENSOR_INST_OF_SMSP] = "smsp__inst_executed_pipe_tensor.sum",
	[OCCUPANCY] = "sm__warps_active.avg.pct_of_peak_sustained_active",
	[SM] = "sm__throughput.avg.pct_of_peak_sustained_elapsed",
	[DRAM] = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
	[DRAM_OF_GPU] = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
};

static double either(double a, double b) { return isnan(a) ? b : a; }

/* `ops`: the operations of Tensor Cores, summed over the types that were measured. A type that was not asked for adds nothing to the sum: so a sum of 0 is unknown, unless no
 * instruction of Tensor Cores was executed. */
static double tensor_flops(double ops, double instructions)
{
	return ops > 0 || instructions == 0 ? ops : NAN;
}

double counter_value(const struct profile *p, uint32_t arg) { return counter_is_metric(profile_str(p, p->arg.key[arg])) ? counter_number(p, arg) : NAN; }

double counter_number(const struct profile *p, uint32_t arg)
{
	const struct str text = profile_str(p, p->arg.value[arg]);
	char *end;
	if (p->arg.is_string[arg] || !text.n || !(is_digit(text.p[0]) || text.p[0] == '-'))
		return NAN;
	const double v = strtod(text.p, &end); /* the interner ends texts with a NUL */
	return end == text.p + text.n && fabs(v) < 1e18 ? v : NAN;
}

static struct counter_values counters_none(void)
{
	struct counter_values c;
	for (unsigned i = 0; i < COUNTERS; i++)
		c.v[i] = NAN;
	return c;
}

static struct counter_values counters_read(const struct profile *p, uint32_t set)
{
	struct counter_values c = counters_none();
	double m[METRICS], ops = 0;
	for (unsigned i = 0; i < METRICS; i++)
		m[i] = NAN;
	const uint32_t end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	for (uint32_t a = p->arg_set.first[set]; a < end; a++) {
		const struct str name = profile_str(p, p->arg.key[a]);
		const double v = counter_value(p, a);
		if (isnan(v))
			continue;
		for (unsigned i = 0; i < METRICS; i++)
			if (str_eqc(name, metric_name[i]))
				m[i] = v;
		if (str_starts(name, STR("sm__ops_path_tensor_")) && str_ends(name, STR(".sum")))
			ops += v;
	}
	c.v[COUNTER_DRAM_BYTES] = either(m[DRAM_BYTES], m[DRAM_READ] + m[DRAM_WRITTEN]);
	c.v[COUNTER_TENSOR_INST] = either(m[TENSOR_INST], m[TENSOR_INST_OF_SMSP]);
	c.v[COUNTER_TENSOR_FLOPS] = tensor_flops(ops, c.v[COUNTER_TENSOR_INST]);
	c.v[COUNTER_OCCUPANCY_PCT] = m[OCCUPANCY];
	c.v[COUNTER_SM_PCT] = m[SM];
	c.v[COUNTER_DRAM_PCT] = either(m[DRAM], m[DRAM_OF_GPU]);
	return c;
}

void counter_sets_find(const struct profile *p, struct counter_sets *out)
{
	struct str how;
	*out = (struct counter_sets){.of_set = NEW_ARRAY(p->arg_set.rows.n, uint32_t)};
	for (uint32_t i = 0; i < p->gpu_op.rows.n && counters_any(p); i++) {
		const uint32_t set = p->gpu_op.args[i];
		if (!set || out->of_set[set] || !profile_arg(p, set, ARG_COUNTERS, &how))
			continue;
		MEM_PUSH(out->v, out->n, out->cap, counters_read(p, set));
		out->of_set[set] = out->n;
	}
}

void counter_sets_release(struct counter_sets *s)
{
	mem_free(s->of_set);
	mem_free(s->v);
}

struct counter_values counters_of(const struct counter_sets *s, const struct profile *p, uint32_t gpu_op)
{
	const uint32_t set = p->gpu_op.args[gpu_op], at = set ? s->of_set[set] : 0;
	return at ? s->v[at - 1] : counters_none();
}

void counter_sums_add(struct counter_sums *s, const struct counter_sets *sets, const struct profile *p, uint32_t gpu_op)
{
	const struct counter_values c = counters_of(sets, p, gpu_op);
	const int64_t ns = p->gpu_op.dur_ns[gpu_op];
	bool any = false;
	for (unsigned i = 0; i < COUNTERS; i++) {
		if (isnan(c.v[i]))
			continue;
		any = true;
		s->of[i].sum += c.v[i];
		s->of[i].weighted += c.v[i] * (double)ns;
		s->of[i].ns += ns;
		s->of[i].calls++;
	}
	s->calls += any;
}

double counter_mean(const struct counter_sums *s, enum counter c)
{
	const struct counter_sum *x = &s->of[c];
	return !x->calls ? NAN : c >= COUNTER_OCCUPANCY_PCT && x->ns ? x->weighted / (double)x->ns : x->sum / (double)x->calls;
}

bool counter_is_metric(struct str name)
{
	const ptrdiff_t bars = str_find(name, STR("__"));
	if (bars <= 0)
		return false;
	for (ptrdiff_t i = 0; i < bars; i++)
		if (!(name.p[i] >= 'a' && name.p[i] <= 'z') && !is_digit(name.p[i]))
			return false;
	return true;
}

void counter_units_find(const struct profile *p, struct idmap *units)
{
	idmap_init(units, 0, p->strings.n, p->meta.rows.n);
	for (uint32_t i = 0; i < p->meta.rows.n; i++) {
		struct str key = profile_str(p, p->meta.key[i]);
		if (!str_skip(&key, STR(COUNTER_UNIT)))
			continue;
		const uint32_t metric = intern_find(&p->strings, key);
		if (metric != INTERN_NONE && idmap_get(units, metric) == IDMAP_NONE)
			idmap_put(units, metric, i);
	}
}

struct str counter_unit(const struct profile *p, const struct idmap *units, uint32_t metric)
{
	const uint32_t row = idmap_get(units, metric);
	return row == IDMAP_NONE ? (struct str){"", 0} : profile_str(p, p->meta.value[row]);
}
