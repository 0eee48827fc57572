#include "report/parts/cost_table.h"

#include "analysis/recording.h"
#include "analysis/tree/direction.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/round.h"
#include "base/sort.h"

#include <math.h>

enum {
	COST_TABLE_OP, COST_TABLE_KERNEL, COST_TABLE_DIRECTION, COST_TABLE_DONE_BY, COST_TABLE_CLASS, COST_TABLE_PARAMS, COST_TABLE_DTYPE, COST_TABLE_B, COST_TABLE_M, COST_TABLE_N, COST_TABLE_K,
	COST_TABLE_CALLS, COST_TABLE_TOTAL, COST_TABLE_SHARE, COST_TABLE_MEAN, COST_TABLE_MIN, COST_TABLE_MAX, COST_TABLE_FLOPS, COST_TABLE_BYTES, COST_TABLE_TFLOPS,
	COST_TABLE_GBS, COST_TABLE_INTENSITY, COST_TABLE_TC, COST_TABLE_ELIGIBLE, COST_TABLE_HINT, COST_TABLE_BOUND, COST_TABLE_ATTAINABLE,
	COST_TABLE_GAIN, COST_TABLE_GAIN_PCT, COST_TABLE_EFFICIENCY, COST_TABLE_PEAK_PCT, COST_TABLE_PEAK, COST_TABLE_MEMORY_PCT, COST_TABLE_OVER, COST_TABLE_FORMULA, COST_TABLE_CAUSAL,
	COST_TABLE_KERNELS, COST_TABLE_MEDIAN, COST_TABLE_SD, COST_TABLE_TFLOPS_MEAN, COST_TABLE_TFLOPS_MEDIAN, COST_TABLE_TFLOPS_SD, COST_TABLE_TFLOPS_MIN, COST_TABLE_TFLOPS_MAX,
	COST_TABLE_GBS_MEAN, COST_TABLE_GBS_MEDIAN, COST_TABLE_GBS_SD, COST_TABLE_GBS_MIN, COST_TABLE_GBS_MAX,
	COST_TABLE_UNKNOWN, COST_TABLE_MEASURED, COST_TABLE_DRAM, COST_TABLE_DRAM_RATIO, COST_TABLE_DRAM_GBS, COST_TABLE_DRAM_PCT, COST_TABLE_DRAM_CALL, COST_TABLE_TENSOR,
	COST_TABLE_SAMPLED, COST_TABLE_SAMPLED_DRAM, COST_TABLE_SAMPLED_RATIO, COST_TABLE_SAMPLED_GBS, COST_TABLE_SAMPLED_PCT, COST_TABLE_SAMPLED_CALL, COST_TABLE_COLUMNS
};

/* The groupings that have a column. */
enum {
	COST_TABLE_OF_ROOFLINE = BY(COST_BY_SHAPE) | BY(COST_BY_OP) | BY(COST_BY_KERNEL),
	COST_TABLE_OF_ONE_CLASS = BY(COST_BY_GEMM) | BY(COST_BY_CONV) | BY(COST_BY_ATTENTION),
};

const struct section cost_section = {COLUMNS(
	[COST_TABLE_OP] = {COLUMN(TEXT, "op", "Op", "name of the op", .flags = COLUMN_ANSWER), .not_by = BY(COST_BY_KERNEL)},
	[COST_TABLE_KERNEL] = {COLUMN(TEXT, "kernel", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_ANSWER), .by = BY(COST_BY_KERNEL)},
	[COST_TABLE_DIRECTION] = {COLUMN(TEXT, "direction", "Dir", "forward, backward or optimizer"), .not_by = BY(COST_BY_KERNEL)},
	[COST_TABLE_DONE_BY] = {COLUMN(TEXT, "done_by", "By", "kernels, or copy engines: copies by these are bound by the link between host and GPU, or between GPUs, and have no attainable time. An op with both has two rows"), .not_by = BY(COST_BY_KERNEL), .when = WHEN_RECORDED},
	[COST_TABLE_CLASS] = {COLUMN(TEXT, "class", "Class", "kind of op", .flags = COLUMN_MINOR), .by = BY(COST_BY_OP) | BY(COST_BY_SHAPE)},
	[COST_TABLE_PARAMS] = {COLUMN(TEXT, "params", "Shape", "sizes and types that the model went by", .flags = COLUMN_WIDE),
	                              .not_by = BY(COST_BY_OP) | BY(COST_BY_KERNEL)},
	[COST_TABLE_DTYPE] = {COLUMN(TEXT, "dtype", "Type", "element type of the operands that decide"), .not_by = BY(COST_BY_OP) | BY(COST_BY_KERNEL)},
	[COST_TABLE_B] = {COLUMN(NUMBER, "b", "B", "how many products a call makes", .flags = COLUMN_DETAIL), .by = BY(COST_BY_GEMM)},
	[COST_TABLE_M] = {COLUMN(NUMBER, "m", "M", "rows of the result", .flags = COLUMN_MINOR), .by = BY(COST_BY_GEMM)},
	[COST_TABLE_N] = {COLUMN(NUMBER, "n", "N", "columns of the result", .flags = COLUMN_MINOR), .by = BY(COST_BY_GEMM)},
	[COST_TABLE_K] = {COLUMN(NUMBER, "k", "K", "length of the sums", .flags = COLUMN_MINOR), .by = BY(COST_BY_GEMM)},
	[COST_TABLE_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often")},
	[COST_TABLE_TOTAL] = {COLUMN(NS, "total_gpu_ns", "GPU total", "sum of the durations of its kernels, copies and sets", .flags = COLUMN_ANSWER)},
	[COST_TABLE_SHARE] = {COLUMN(PERCENT, "total_pct", "Total %", "total / all device work, listed or not")},
	[COST_TABLE_MEAN] = {COLUMN(MEAN_NS, "mean_gpu_ns", "Mean", "mean of a call", .flags = COLUMN_MINOR), .by = COST_TABLE_OF_ONE_CLASS},
	[COST_TABLE_MIN] = {COLUMN(NS, "min_gpu_ns", "Min", "shortest call", .flags = COLUMN_DETAIL), .by = COST_TABLE_OF_ONE_CLASS},
	[COST_TABLE_MAX] = {COLUMN(NS, "max_gpu_ns", "Max", "longest call", .flags = COLUMN_DETAIL), .by = COST_TABLE_OF_ONE_CLASS},
	[COST_TABLE_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "floating-point operations of all calls, a multiply-add as 2; empty = unknown")},
	[COST_TABLE_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "what all calls read and write, each operand once; of a mixture of experts those that an even choice reads, where attainable "
	                            "goes by the fewest; empty = unknown")},
	[COST_TABLE_TFLOPS] = {COLUMN(REAL, "tflops_per_s", "TFLOP/s", "FLOPs / time, over the calls whose FLOPs are known", .digits = 3)},
	[COST_TABLE_GBS] = {COLUMN(REAL, "gb_per_s", "GB/s model", "bytes (of the model) / time, over the calls whose bytes are known", .digits = 1)},
	[COST_TABLE_INTENSITY] = {COLUMN(REAL, "flops_per_byte", "FLOP/B", "arithmetic intensity: FLOPs / bytes", .flags = COLUMN_MINOR, .digits = 2)},
	[COST_TABLE_TC] = {COLUMN(TEXT, "tensor_cores", "TC", "whether its main kernels used Tensor Cores: yes, no or unknown")},
	[COST_TABLE_ELIGIBLE] = {COLUMN(TEXT, "tc_eligible", "Eligible", "whether type and shape allow Tensor Cores: yes, no or unknown; yes where a kernel uses them"),
	                                .by = COST_TABLE_OF_ONE_CLASS},
	[COST_TABLE_HINT] = {COLUMN(TEXT, "tc_hint", "Hint", "what keeps it from Tensor Cores, or from using them well", .flags = COLUMN_WIDE | COLUMN_ANSWER),
	                            .by = COST_TABLE_OF_ONE_CLASS, .when = WHEN_RECORDED},
	[COST_TABLE_BOUND] = {COLUMN(TEXT, "bound", "Bound", "what bounds it: compute or memory, whichever would take longer at its peak; latency: under a tenth of what "
	                             "those allow, by kernels of under 10 us (a call's main one, on average), or whose blocks take up under a tenth of the SMs, which come near no peak; over peak: it did more than a peak allows (column "
	                             "over_peak), so that the model tells nothing of it; empty = unknown", .flags = COLUMN_ANSWER), .by = COST_TABLE_OF_ROOFLINE},
	[COST_TABLE_ATTAINABLE] = {COLUMN(MEAN_NS, "attainable_ns", "Attainable", "time that the calls would take at the peaks: the longer of FLOPs / peak and bytes / "
	                                  "bandwidth, call by call; of calls whose FLOPs, bytes or peak are unknown nothing is in it"), .by = COST_TABLE_OF_ROOFLINE},
	[COST_TABLE_GAIN] = {COLUMN(MEAN_NS, "gain_ns", "Gain", "actual - attainable, of the calls that attainable has: what could be gained at most; empty = unknown, or over a peak",
	                            .flags = COLUMN_ANSWER), .by = COST_TABLE_OF_ROOFLINE},
	[COST_TABLE_GAIN_PCT] = {COLUMN(PERCENT, "gain_pct", "Gain %", "gain / all device work"), .by = COST_TABLE_OF_ROOFLINE},
	[COST_TABLE_EFFICIENCY] = {COLUMN(PERCENT, "efficiency_pct", "Effic. %", "attainable / actual time of the same calls: the share of the peak that bounds it",
	                                  .flags = COLUMN_ANSWER), .by = COST_TABLE_OF_ROOFLINE},
	[COST_TABLE_PEAK_PCT] = {COLUMN(PERCENT, "peak_pct", "Peak %", "FLOP/s achieved / the peak of column peak", .flags = COLUMN_ANSWER)},
	[COST_TABLE_PEAK] = {COLUMN(TEXT, "peak", "Peak", "the peak that shares are of; empty = GPU or rate not known, or several", .flags = COLUMN_DETAIL)},
	[COST_TABLE_MEMORY_PCT] = {COLUMN(PERCENT, "bandwidth_pct", "BW %", "bytes/s achieved / peak bandwidth of the device memory, over the calls whose bytes and bandwidth are known")},
	[COST_TABLE_OVER] = {COLUMN(TEXT, "over_peak", "Over peak", "set where more than 100 % of a peak comes out, which cannot be: of which peak",
	                            .flags = COLUMN_WIDE), .when = WHEN_RECORDED},
	[COST_TABLE_FORMULA] = {COLUMN(TEXT, "formula", "Formula", "how FLOPs were computed; empty = by a procedure", .flags = COLUMN_DETAIL),
	                               .by = COST_TABLE_OF_ONE_CLASS},
	[COST_TABLE_CAUSAL] = {COLUMN(FLOPS, "flops_causal", "Causal FLOPs", "of attention with a causal mask: FLOPs of the pairs below the diagonal alone",
	                              .flags = COLUMN_DETAIL), .by = BY(COST_BY_ATTENTION), .when = WHEN_RECORDED},
	[COST_TABLE_KERNELS] = {COLUMN(TEXT, "kernels", "Kernels", "its kernels, most time first, the first three", .flags = COLUMN_WIDE | COLUMN_DETAIL | COLUMN_KERNEL),
	                               .not_by = BY(COST_BY_KERNEL)},
	[COST_TABLE_MEDIAN] = {COLUMN(MEAN_NS, "median_gpu_ns", "Median", "median call; of an even number the mean of the two in the middle", .flags = COLUMN_DETAIL)},
	[COST_TABLE_SD] = {COLUMN(MEAN_NS, "stddev_gpu_ns", "Std dev", "standard deviation of the calls as a sample (n - 1); 0 of one", .flags = COLUMN_DETAIL)},
	[COST_TABLE_TFLOPS_MEAN] = {COLUMN(REAL, "mean_tflops_per_s", "TFLOP/s mean", "mean over its calls, each counting once, of FLOPs / time of a call", .digits = 3, .flags = COLUMN_DETAIL)},
	[COST_TABLE_TFLOPS_MEDIAN] = {COLUMN(REAL, "median_tflops_per_s", "TFLOP/s median", "median of FLOPs / time of a call over its calls; of an even number the mean of the two in the middle", .digits = 3, .flags = COLUMN_DETAIL)},
	[COST_TABLE_TFLOPS_SD] = {COLUMN(REAL, "stddev_tflops_per_s", "TFLOP/s std dev", "standard deviation of FLOPs / time of a call over its calls as a sample (n - 1); 0 of one", .digits = 3, .flags = COLUMN_DETAIL)},
	[COST_TABLE_TFLOPS_MIN] = {COLUMN(REAL, "min_tflops_per_s", "TFLOP/s min", "FLOPs / time of the slowest call", .digits = 3, .flags = COLUMN_DETAIL)},
	[COST_TABLE_TFLOPS_MAX] = {COLUMN(REAL, "max_tflops_per_s", "TFLOP/s max", "FLOPs / time of the fastest call", .digits = 3, .flags = COLUMN_DETAIL)},
	[COST_TABLE_GBS_MEAN] = {COLUMN(REAL, "mean_gb_per_s", "GB/s mean", "mean over its calls, each counting once, of bytes / time of a call", .digits = 1, .flags = COLUMN_DETAIL)},
	[COST_TABLE_GBS_MEDIAN] = {COLUMN(REAL, "median_gb_per_s", "GB/s median", "median of bytes / time of a call over its calls; of an even number the mean of the two in the middle", .digits = 1, .flags = COLUMN_DETAIL)},
	[COST_TABLE_GBS_SD] = {COLUMN(REAL, "stddev_gb_per_s", "GB/s std dev", "standard deviation of bytes / time of a call over its calls as a sample (n - 1); 0 of one", .digits = 1, .flags = COLUMN_DETAIL)},
	[COST_TABLE_GBS_MIN] = {COLUMN(REAL, "min_gb_per_s", "GB/s min", "bytes / time of the slowest call", .digits = 1, .flags = COLUMN_DETAIL)},
	[COST_TABLE_GBS_MAX] = {COLUMN(REAL, "max_gb_per_s", "GB/s max", "bytes / time of the fastest call", .digits = 1, .flags = COLUMN_DETAIL)},
	[COST_TABLE_UNKNOWN] = {COLUMN(TEXT, "unknown", "Unknown", "why FLOPs or bytes are unknown", .flags = COLUMN_WIDE | COLUMN_DETAIL), .when = WHEN_RECORDED},
	[COST_TABLE_MEASURED] = {COLUMN(COUNT, "measured_calls", "Measured", "calls whose traffic with the device's memory was measured, by hardware counters of all their kernels"), .when = WHEN_COUNTERS},
	[COST_TABLE_DRAM] = {COLUMN(BYTES, "measured_dram_bytes", "DRAM measured", "what the kernels of all calls read from and wrote to the device's memory, measured; beside `bytes`, which are modelled. Empty = "
	                            "not all calls were measured", .flags = COLUMN_ANSWER), .when = WHEN_COUNTERS},
	[COST_TABLE_DRAM_RATIO] = {COLUMN(REAL, "measured_to_model", "Measured/model", "measured bytes / modelled bytes, over the calls of which both are known: above 1 where data was read again, below 1 where "
	                                  "a cache held it", .digits = 2), .when = WHEN_COUNTERS},
	[COST_TABLE_DRAM_GBS] = {COLUMN(REAL, "measured_gb_per_s", "GB/s measured", "measured bytes / time of these calls", .digits = 1), .when = WHEN_COUNTERS},
	[COST_TABLE_DRAM_PCT] = {COLUMN(PERCENT, "measured_bandwidth_pct", "BW measured %", "that / peak bandwidth of the device memory"), .when = WHEN_COUNTERS},
	[COST_TABLE_DRAM_CALL] = {COLUMN(MEAN_BYTES, "measured_dram_per_call_bytes", "DRAM per call", "measured bytes of a call, mean of the calls that were measured", .flags = COLUMN_MINOR), .when = WHEN_COUNTERS},
	[COST_TABLE_TENSOR] = {COLUMN(FLOPS, "measured_tensor_flops", "TC FLOPs measured", "operations of Tensor Cores of all calls, a multiply-add as 2, measured; empty = not known of all calls", .flags = COLUMN_MINOR),
	                              .when = WHEN_COUNTERS},
	[COST_TABLE_SAMPLED] = {COLUMN(COUNT, "sampled_calls", "Sampled", "calls in each of whose kernels enough samples of the GPU lie while no other work ran"), .when = WHEN_SAMPLES},
	[COST_TABLE_SAMPLED_DRAM] = {COLUMN(BYTES, "sampled_dram_bytes", "DRAM sampled", "what the kernels of all calls read from and wrote to the device's memory: the sampled share of its peak bandwidth x that "
	                                    "peak x the kernel's time; beside `bytes`, which are modelled. Empty = not all calls were sampled", .flags = COLUMN_ANSWER), .when = WHEN_SAMPLES},
	[COST_TABLE_SAMPLED_RATIO] = {COLUMN(REAL, "sampled_to_model", "Sampled/model", "sampled bytes / modelled bytes, over the calls of which both are known", .digits = 2), .when = WHEN_SAMPLES},
	[COST_TABLE_SAMPLED_GBS] = {COLUMN(REAL, "sampled_gb_per_s", "GB/s sampled", "these bytes / time of these calls", .digits = 1), .when = WHEN_SAMPLES},
	[COST_TABLE_SAMPLED_PCT] = {COLUMN(PERCENT, "sampled_bandwidth_pct", "BW sampled %", "that / peak bandwidth of the device memory"), .when = WHEN_SAMPLES},
	[COST_TABLE_SAMPLED_CALL] = {COLUMN(MEAN_BYTES, "sampled_dram_per_call_bytes", "DRAM sampled per call", "sampled bytes of a call, mean of the calls that were sampled", .flags = COLUMN_MINOR), .when = WHEN_SAMPLES},
)};

/* A share of 100 % that rounding made a little larger is not over. */
static bool is_over(double pct) { return pct > 100.0000001; }

/* --- hints ------------------------------------------------------------------------------------------------------ */

bool cost_params_number(struct str params, const char *name, int64_t *value)
{
	struct str piece, key = str_from(name);
	while (str_split(&params, ',', &piece))
		if (str_starts(piece, key) && piece.n > key.n && piece.p[key.n] == '=')
			return str_to_i64((struct str){piece.p + key.n + 1, piece.n - key.n - 1}, value);
	return false;
}

/* Tensor Cores take operands whose inner dimensions are multiples of 16 bytes. The layout decides which of M, N and K are inner dimensions, and a
 * trace says little about the layout: M is named only where Tensor Cores were not used. */
static void odd_sizes(const struct cost *c, bool used, struct buf *b)
{
	static const char *const gemm[] = {"N", "K", "M"}, *const conv[] = {"C", "K"};
	const int64_t nkm[] = {c->n, c->k, c->m};
	int bits = dtype_bits(c->dtype), unit = bits && bits <= 16 ? 128 / bits : 0;
	bool found = false, is_conv = c->class == OP_CONV;
	for (int i = 0; unit && i < (is_conv || used ? 2 : 3); i++) {
		const char *name = is_conv ? conv[i] : gemm[i];
		int64_t v = is_conv ? 0 : nkm[i];
		if (is_conv && !cost_params_number(c->params, name, &v))
			continue;
		if (v <= 0 || v % unit == 0)
			continue;
		buf_printf(b, "%s%s=%lld", found ? ", " : "", name, (long long)v);
		found = true;
	}
	if (found)
		buf_printf(b, ": not a multiple of %d", unit);
}

static void hint(const struct cost_row *x, struct buf *b)
{
	const struct cost *c = x->cost;
	enum tri used = cost_tc_used(x);
	buf_clear(b);
	bool no_tf32 = x->gpu && !(x->gpu->flops[GPU_TF32] > 0) && !(x->gpu->flops[GPU_FP32_TENSOR] > 0);
	if (used == TRI_NO && c->dtype == DTYPE_FLOAT32 && no_tf32)
		buf_cstr(b, "float32: the Tensor Cores of this GPU, if it has any, take types of 16 bits and less");
	else if (used == TRI_NO && c->dtype == DTYPE_FLOAT32)
		buf_cstr(b, "float32: Tensor Cores take float32 as TF32 where TF32 is allowed; else use a type of 16 bits");
	else if (used == TRI_NO && dtype_bits(c->dtype) == 64)
		buf_cstr(b, "64-bit type");
	else if (c->class == OP_GEMM && (c->m == 1 || c->n == 1) && used != TRI_YES)
		buf_cstr(b, "matrix times vector");
	else
		odd_sizes(c, used == TRI_YES, b);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static void cost_table_put_i64(struct table *t, unsigned c, int64_t v)
{
	if (v >= 0)
		table_set_i64(t, c, v);
}

static void put_str(struct table *t, unsigned c, struct str v)
{
	if (v.n)
		table_set_str_copy(t, c, v);
}

static void peak_text(const struct cost_row *x, struct buf *b)
{
	buf_clear(b);
	if (x->peak_flops > 0 && x->gpu)
		buf_printf(b, "%s of %s, %.4g TFLOP/s", x->peak_name, x->gpu->name, x->peak_flops / 1e12);
}

static void over_compute(const struct cost_row *x, struct buf *b)
{
	if (x->peak_flops > 0 && x->gpu)
		buf_printf(b, "%.1f %% of %s of %s, %.4g TFLOP/s", cost_compute_pct(x), x->peak_name, x->gpu->name, x->peak_flops / 1e12);
	else
		buf_printf(b, "%.1f %% of the peaks of several types or GPUs", cost_compute_pct(x));
	if (x->fewer)
		buf_cstr(b, " (by Winograd or FFT, with fewer operations than the definition that is counted)");
}

static void over_memory(const struct cost_row *x, struct buf *b)
{
	if (x->gpu)
		buf_printf(b, "%.1f %% of the memory bandwidth of %s, %.4g GB/s", cost_memory_pct(x), x->gpu->name, x->gpu->bytes_per_s / 1e9);
	else
		buf_printf(b, "%.1f %% of the memory bandwidths of several GPUs", cost_memory_pct(x));
}

static void over_text(const struct cost_row *x, struct buf *b)
{
	bool compute = is_over(cost_compute_pct(x)), memory = is_over(cost_memory_pct(x));
	buf_clear(b);
	if (compute)
		over_compute(x, b);
	if (compute && memory)
		buf_cstr(b, "; ");
	if (memory)
		over_memory(x, b);
	if (!compute && !memory && is_over(cost_efficiency_pct(x)))
		buf_printf(b, "at the peaks its calls would take %.1f %% of the time that they took", cost_efficiency_pct(x));
}

/* Whether the row did more than a peak allows, which cannot be. */
static bool row_is_over(const struct cost_row *x)
{
	return is_over(cost_compute_pct(x)) || is_over(cost_memory_pct(x)) || is_over(cost_efficiency_pct(x));
}

static const char *bound_of(const struct cost_row *x)
{
	double efficiency = cost_efficiency_pct(x);
	if (isnan(efficiency))
		return "";
	if (row_is_over(x))
		return "over peak";
	if (efficiency < 10 && ((double)x->main_ns / (double)x->calls < 10e3 || x->small_ns > x->main_ns / 2))
		return "latency";
	return x->compute_ns > x->memory_ns ? "compute" : "memory";
}

static void put_rates(struct table *t, const struct cost_row *x)
{
	cost_table_put_i64(t, COST_TABLE_FLOPS, x->flops);
	cost_table_put_i64(t, COST_TABLE_BYTES, x->bytes);
	if (x->flops >= 0 && x->flops_ns > 0)
		table_set_f64(t, COST_TABLE_TFLOPS, (double)x->flops / (double)x->flops_ns / 1e3);
	if (x->bytes >= 0 && x->bytes_ns > 0)
		table_set_f64(t, COST_TABLE_GBS, (double)x->bytes / (double)x->bytes_ns);
	if (x->flops >= 0 && x->bytes > 0 && x->flops_ns == x->bytes_ns)
		table_set_f64(t, COST_TABLE_INTENSITY, (double)x->flops / (double)x->bytes);
	table_set_f64(t, COST_TABLE_PEAK_PCT, cost_compute_pct(x));
	table_set_f64(t, COST_TABLE_MEMORY_PCT, cost_memory_pct(x));
}

static void put_spread(struct table *t, unsigned first, const struct spread *s)
{
	const double v[] = {s->mean, s->median, s->sd, s->min, s->max};
	for (unsigned i = 0; s->n && i < sizeof v / sizeof *v; i++)
		table_set_f64(t, first + i, v[i]);
}

/* A sum over all calls of the row, which is known where each was measured. */
static void cost_table_put_sum(struct table *t, unsigned c, const struct cost_row *x, const struct cost_measured *m)
{
	if (m->calls == x->calls && m->sum < 0x1p62)
		table_set_i64(t, c, llround(m->sum));
}

/* Where columns of bytes that were measured, or sampled, stand. */
struct cost_table_traffic {
	unsigned calls, sum, ratio, gbs, pct, per_call;
};

static void cost_table_put_traffic(struct table *t, const struct cost_row *x, const struct cost_measured *m, struct cost_table_traffic c)
{
	table_set_i64(t, c.calls, (int64_t)m->calls);
	cost_table_put_sum(t, c.sum, x, m);
	if (m->model > 0)
		table_set_f64(t, c.ratio, m->both / m->model);
	if (m->calls)
		table_set_f64(t, c.per_call, m->sum / (double)m->calls);
	if (m->ns)
		table_set_f64(t, c.gbs, m->sum / (double)m->ns);
	if (m->ns && x->gpu && x->gpu->bytes_per_s > 0)
		table_set_f64(t, c.pct, percent(m->sum * 1e9, (double)m->ns * x->gpu->bytes_per_s));
}

static void cost_table_put_measured(struct table *t, const struct cost_rows *r, const struct cost_row *x)
{
	if (r->counters) {
		cost_table_put_traffic(t, x, &x->dram, (struct cost_table_traffic){COST_TABLE_MEASURED, COST_TABLE_DRAM, COST_TABLE_DRAM_RATIO, COST_TABLE_DRAM_GBS, COST_TABLE_DRAM_PCT, COST_TABLE_DRAM_CALL});
		cost_table_put_sum(t, COST_TABLE_TENSOR, x, &x->tensor);
	}
	if (r->samples)
		cost_table_put_traffic(t, x, &x->sampled, (struct cost_table_traffic){COST_TABLE_SAMPLED, COST_TABLE_SAMPLED_DRAM, COST_TABLE_SAMPLED_RATIO, COST_TABLE_SAMPLED_GBS, COST_TABLE_SAMPLED_PCT,
		                                                                      COST_TABLE_SAMPLED_CALL});
}

static void put_roofline(struct table *t, const struct cost_rows *r, const struct cost_row *x)
{
	if (!x->attainable_of)
		return;
	double gain = (double)x->attainable_of - x->attainable_ns;
	put_str(t, COST_TABLE_BOUND, str_from(bound_of(x)));
	table_set_f64(t, COST_TABLE_ATTAINABLE, x->attainable_ns);
	table_set_f64(t, COST_TABLE_EFFICIENCY, cost_efficiency_pct(x));
	if (row_is_over(x))
		return;
	table_set_f64(t, COST_TABLE_GAIN, gain);
	table_set_f64(t, COST_TABLE_GAIN_PCT, percent(gain, (double)r->all_ns));
}

static void cost_table_put_kernels(struct table *t, const struct cost_rows *r, const struct cost_row *x, struct buf *b)
{
	enum { NAMED = 3 };
	buf_clear(b);
	for (uint32_t i = 0; i < x->n_kernel_names && i < NAMED; i++) {
		buf_cstr(b, i ? "; " : "");
		buf_str(b, profile_str(r->p, r->kernel_name[x->first_kernel + i]));
	}
	if (x->n_kernel_names > NAMED)
		buf_printf(b, "; ... (%u)", x->n_kernel_names);
	put_str(t, COST_TABLE_KERNELS, buf_view(b));
}

static void cost_table_put_shape(struct table *t, const struct cost *c, int64_t calls)
{
	int64_t causal;
	put_str(t, COST_TABLE_PARAMS, c->params);
	put_str(t, COST_TABLE_DTYPE, c->dtype == DTYPE_UNKNOWN ? (struct str){"", 0} : str_from(dtype_name(c->dtype)));
	put_str(t, COST_TABLE_FORMULA, c->formula);
	if (c->causal && c->flops_causal >= 0 && !__builtin_mul_overflow(c->flops_causal, calls, &causal))
		table_set_i64(t, COST_TABLE_CAUSAL, causal);
	if (c->flops < 0 || !c->b)
		return;
	table_set_i64(t, COST_TABLE_B, c->b);
	table_set_i64(t, COST_TABLE_M, c->m);
	table_set_i64(t, COST_TABLE_N, c->n);
	table_set_i64(t, COST_TABLE_K, c->k);
}

static void cost_table_put_row(struct table *t, const struct cost_rows *r, const struct cost_row *x, struct buf *b)
{
	const struct cost *c = x->cost;
	table_row(t);
	put_str(t, COST_TABLE_OP, profile_str(r->p, x->name));
	put_str(t, COST_TABLE_KERNEL, profile_str(r->p, x->name));
	put_str(t, COST_TABLE_DIRECTION, str_from(direction_name[x->direction]));
	put_str(t, COST_TABLE_DONE_BY, str_from(x->copies ? "copy engines" : "kernels"));
	put_str(t, COST_TABLE_CLASS, str_from(op_class_name[x->class]));
	table_set_i64(t, COST_TABLE_CALLS, (int64_t)x->calls);
	table_set_i64(t, COST_TABLE_TOTAL, x->ns);
	table_set_f64(t, COST_TABLE_SHARE, percent((double)x->ns, (double)r->all_ns));
	table_set_f64(t, COST_TABLE_MEAN, (double)x->ns / (double)x->calls);
	table_set_i64(t, COST_TABLE_MIN, x->min);
	table_set_i64(t, COST_TABLE_MAX, x->max);
	table_set_f64(t, COST_TABLE_MEDIAN, x->call_ns.median);
	table_set_f64(t, COST_TABLE_SD, x->call_ns.sd);
	put_rates(t, x);
	put_spread(t, COST_TABLE_TFLOPS_MEAN, &x->tflops);
	put_spread(t, COST_TABLE_GBS_MEAN, &x->gbs);
	put_roofline(t, r, x);
	cost_table_put_measured(t, r, x);
	put_str(t, COST_TABLE_TC, str_from(tri_name[cost_tc_used(x)]));
	put_str(t, COST_TABLE_ELIGIBLE, str_from(tri_name[cost_tc_used(x) == TRI_YES ? TRI_YES : x->eligible]));
	cost_table_put_shape(t, c, (int64_t)x->calls);
	hint(x, b);
	put_str(t, COST_TABLE_HINT, buf_view(b));
	put_str(t, COST_TABLE_UNKNOWN, c->why);
	peak_text(x, b);
	put_str(t, COST_TABLE_PEAK, buf_view(b));
	over_text(x, b);
	put_str(t, COST_TABLE_OVER, buf_view(b));
	cost_table_put_kernels(t, r, x, b);
}

/* --- the table -------------------------------------------------------------------------------------------------- */

/* Whether rows look alike by name and shape, and by their direction and what did the work, if these are asked for. A narrow terminal must not leave out the column that tells them apart. */
static bool has_twins(const struct cost_rows *r, bool with_direction, bool with_copies, bool shape)
{
	struct intern seen;
	struct buf key = {0};
	bool twins = false;
	intern_init(&seen);
	for (uint32_t i = 0; i < r->n && !twins; i++) {
		const struct cost_row *x = &r->v[i];
		buf_clear(&key);
		buf_printf(&key, "%u %d %d ", x->name, with_copies && x->copies, with_direction ? x->direction : -1);
		buf_str(&key, shape ? x->cost->params : STR(""));
		uint32_t before = seen.n;
		intern_str(&seen, buf_view(&key));
		twins = seen.n == before;
	}
	buf_release(&key);
	intern_release(&seen);
	return twins;
}

static void leave_out_unknown(struct table *t, const struct cost_rows *r)
{
	struct buf b = {0};
	bool over = false, causal = false, why = false, hints = false, copies = false;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct cost_row *x = &r->v[i];
		over |= row_is_over(x);
		copies |= x->copies;
		causal |= x->cost->causal;
		why |= x->cost->why.n > 0;
		hint(x, &b);
		hints |= b.n > 0;
	}
	buf_release(&b);
	const bool lacks[COST_TABLE_COLUMNS] = {
		[COST_TABLE_OVER] = !over, [COST_TABLE_CAUSAL] = !causal, [COST_TABLE_UNKNOWN] = !why, [COST_TABLE_HINT] = !hints, [COST_TABLE_DONE_BY] = !copies,
	};
	for (unsigned c = 0; c < COST_TABLE_COLUMNS; c++)
		if (lacks[c])
			section_leave_out(&cost_section, c, t);
}

static void cost_table_flag(struct table *t, unsigned column, unsigned flags) { t->data[column].col.flags = flags; }

static void cost_table_start(struct table *t, const struct cost_rows *r, const struct cost_spec *spec, const struct report_args *args)
{
	bool roofline = !spec->classes, shape = !roofline || args->variant->by == COST_BY_SHAPE;
	section_start(&cost_section, args, WHEN_RECORDED | (r->counters ? WHEN_COUNTERS : 0) | (r->samples ? WHEN_SAMPLES : 0), t);
	leave_out_unknown(t, r);
	if (!roofline) { /* these columns answer the question of a report of one class */
		cost_table_flag(t, COST_TABLE_PARAMS, COLUMN_WIDE | COLUMN_ANSWER);
		cost_table_flag(t, COST_TABLE_TFLOPS, COLUMN_ANSWER);
		cost_table_flag(t, COST_TABLE_TC, COLUMN_ANSWER);
	}
	if (has_twins(r, true, true, shape))
		cost_table_flag(t, COST_TABLE_CLASS, COLUMN_ANSWER);
	if (has_twins(r, true, false, shape))
		cost_table_flag(t, COST_TABLE_DONE_BY, COLUMN_ANSWER);
	if (!has_twins(r, false, true, shape))
		return;
	cost_table_flag(t, COST_TABLE_DIRECTION, COLUMN_ANSWER);
	if (roofline) { /* 80 columns have no room for the direction and these */
		cost_table_flag(t, COST_TABLE_ATTAINABLE, 0);
		cost_table_flag(t, COST_TABLE_PEAK_PCT, 0);
	}
}

/* Rows that come out beyond 100 % of a peak. `says` takes how many rows, their words, and the row with the highest share. */
static const struct cost_table_over {
	double (*share)(const struct cost_row *);
	void (*put)(const struct cost_row *, struct buf *);
	int fewer;            /* 1: convolutions by algorithms with fewer operations than are counted alone; 0: all others; -1: all rows */
	const char *rows[2];  /* of one, of several */
	const char *says;
} cost_table_over[] = {
	{cost_compute_pct, over_compute, 0, {"row comes out", "rows come out"},
	 "cannot be: %u %s beyond 100 %% of a peak, most so " STR_FMT " with " STR_FMT ". The op's model, its recorded shapes or the peak is wrong; the rows "
	 "are shown as computed"},
	{cost_compute_pct, over_compute, 1, {"convolution comes out", "convolutions come out"},
	 "%u %s beyond 100 %% of a peak, most so " STR_FMT " with " STR_FMT ". A share of the peak says nothing about such rows"},
	{cost_memory_pct, over_memory, -1, {"row comes out", "rows come out"},
	 "cannot be: %u %s beyond 100 %% of the memory bandwidth, most so " STR_FMT " with " STR_FMT ". A part of the data came from a cache, an input was expanded "
	 "(it holds fewer values than its shape), or the model or the peak is wrong; such rows have no gain"},
};

static bool cost_table_is_over(const struct cost_table_over *o, const struct cost_row *x)
{
	return is_over(o->share(x)) && (o->fewer < 0 || x->fewer == o->fewer);
}

/* The time of the rows that a note is about. */
static int64_t cost_table_over_ns(const struct cost_rows *r, const struct cost_table_over *o)
{
	int64_t ns = 0;
	for (uint32_t i = 0; i < r->n; i++)
		ns += cost_table_is_over(o, &r->v[i]) ? r->v[i].ns : 0;
	return ns;
}

static void note_over(struct table *t, const struct cost_rows *r, const struct cost_table_over *o)
{
	const struct cost_row *most = NULL;
	unsigned n = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct cost_row *x = &r->v[i];
		if (!cost_table_is_over(o, x))
			continue;
		n++;
		if (!most || o->share(x) > o->share(most))
			most = x;
	}
	if (!most)
		return;
	struct buf b = {0};
	o->put(most, &b);
	table_warn(t, o->says, n, o->rows[n != 1], STR_ARG(profile_str(r->p, most->name)), STR_ARG(buf_view(&b)));
	buf_release(&b);
}

/* What share of the listed time can be compared with peaks, and where the peaks come from. */
static void note_peaks(struct table *t, const struct cost_rows *r)
{
	int64_t compute = 0, memory = 0, both = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		compute += r->v[i].compute_of;
		memory += r->v[i].memory_of;
		both += r->v[i].attainable_of;
	}
	double listed = r->listed_ns ? (double)r->listed_ns : 1;
	if (r->gpus.assumed != INT32_MIN)
		table_warn(t, "device %d did work, but the input does not describe it: it is taken for " STR_FMT ", as all described devices are", r->gpus.assumed,
		           STR_ARG(r->gpus.name));
	if (r->gpus.by_size)
		table_note(t, "the input does not name the GPU: its compute units and memory are those of the " STR_FMT ", whose peaks hold (--gpu=NAME names another)", STR_ARG(r->gpus.name));
	if (!r->gpus.name.n)
		table_warn(t, "the input does not name the GPU (--gpu=NAME names it): its peaks, and figures that need them, are unknown");
	else if (!r->gpus.known)
		table_warn(t, "the list of GPUs does not have '" STR_FMT "': its peaks, and figures that need them, are unknown", STR_ARG(r->gpus.name));
	else
		table_note(t, "%.1f %% of the time listed can be compared with the GPU's FLOP/s, %.1f %% with its bandwidth, %.1f %% with both%s",
		           100 * (double)compute / listed, 100 * (double)memory / listed, 100 * (double)both / listed,
		           both == r->listed_ns ? "" : "; the rest has no known FLOPs, bytes or types, or the GPU has no peak for it");
	for (uint32_t i = 0; i < r->n; i++) {
		if (!r->v[i].gpu)
			continue;
		if (gpu_is_verified(r->v[i].gpu))
			table_note(t, "peaks of %s: %s", r->v[i].gpu->name, r->v[i].gpu->source);
		else
			table_note(t, "peaks of %s: unverified", r->v[i].gpu->name);
		break;
	}
}

/* Of the row with a choice of experts that could gain most: two figures of its bytes stand beside each other. */
static void note_experts(struct table *t, const struct cost_rows *r)
{
	const struct cost_row *most = NULL;
	for (uint32_t i = 0; i < r->n; i++)
		if (r->v[i].even_ns > 0 && (!most || r->v[i].ns > most->ns))
			most = &r->v[i];
	if (!most)
		return;
	table_warn(t, STR_FMT ": which experts its tokens chose is not recorded. Attainable, Effic. and Gain go by the fewest that they can choose (%lld ns); Bytes, GB/s model and BW by an "
	           "even choice, by which the calls could take %lld ns", STR_ARG(profile_str(r->p, most->name)), llround(most->attainable_ns), llround(most->even_ns));
}

/* How much device time the roofline leaves out. It is a warning where this is much, unless the GPU's peaks are unknown, which another note says. */
static void note_outside(struct table *t, const struct cost_rows *r, int64_t out_ns)
{
	enum { MUCH_PCT = 10 };
	struct buf b = {0};
	if (out_ns <= 0)
		return;
	buf_printf(&b, "the roofline leaves out %lld ns = ops without a model %lld + work of no op %lld + ops with unknown FLOPs, bytes or peak %lld; %.1f %% of device work", (long long)out_ns,
	           (long long)r->unmodelled_ns, (long long)r->unattributed_ns, (long long)(r->listed_ns + r->other_ns - (r->all_ns - out_ns)), percent((double)out_ns, (double)r->all_ns));
	if (r->measured_ns)
		buf_printf(&b, ". %lld ns of it has rows with what was measured alone", (long long)r->measured_ns);
	if (r->gpus.known && percent((double)out_ns, (double)r->all_ns) > MUCH_PCT)
		table_warn(t, STR_FMT, STR_ARG(buf_view(&b)));
	else
		table_note(t, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
}

/* Of how many calls the traffic was measured: sums of rows that lack some are empty. */
static void note_measured(struct table *t, const struct cost_rows *r)
{
	const bool asked[] = {r->counters, r->samples};
	static const char *const by[] = {"measured", "sampled"};
	for (unsigned k = 0; k < 2; k++) {
		uint64_t calls = 0, all = 0, part = 0;
		for (uint32_t i = 0; i < r->n && asked[k]; i++) {
			uint64_t n = k ? r->v[i].sampled.calls : r->v[i].dram.calls;
			calls += n;
			all += r->v[i].calls;
			part += n && n < r->v[i].calls;
		}
		if (part)
			table_note(t, "memory traffic was %s in %llu of %llu calls; %llu row%s it of a part of the calls: the sum over all calls is empty there, and rates are of that part", by[k],
			           (unsigned long long)calls, (unsigned long long)all, (unsigned long long)part, part == 1 ? " has" : "s have");
		else if (calls < all)
			table_note(t, "memory traffic was %s in %llu of %llu calls", by[k], (unsigned long long)calls, (unsigned long long)all);
	}
}

/* What the figures lack, and which of them cannot be: what concerns most time first. */
static void note_by_time(struct table *t, const struct cost_rows *r, bool all)
{
	enum { OVER = sizeof cost_table_over / sizeof *cost_table_over, OUTSIDE = OVER, EXPERTS, NOTES };
	struct sort_item order[NOTES];
	int64_t out_ns = all ? r->all_ns : 0, experts_ns = 0;
	for (uint32_t i = 0; i < r->n && all; i++) {
		out_ns -= r->v[i].attainable_of;
		experts_ns += r->v[i].even_ns > 0 ? r->v[i].ns : 0;
	}
	for (uint32_t i = 0; i < OVER; i++)
		order[i] = (struct sort_item){UINT64_MAX - (uint64_t)cost_table_over_ns(r, &cost_table_over[i]), i, i};
	order[OUTSIDE] = (struct sort_item){UINT64_MAX - (uint64_t)(out_ns > 0 ? out_ns : 0), OUTSIDE, OUTSIDE};
	order[EXPERTS] = (struct sort_item){UINT64_MAX - (uint64_t)experts_ns, EXPERTS, EXPERTS};
	sort_items(order, NOTES);
	for (uint32_t i = 0; i < NOTES; i++) {
		if (order[i].row < OVER)
			note_over(t, r, &cost_table_over[order[i].row]);
		else if (order[i].row == OUTSIDE)
			note_outside(t, r, out_ns);
		else if (all)
			note_experts(t, r);
	}
}

static void cost_table_put_notes(struct table *t, const struct cost_rows *r, bool all)
{
	int64_t modelled = r->listed_ns - r->by_name_ns + r->other_ns;
	double share = r->all_ns ? 100.0 * (double)modelled / (double)r->all_ns : 0;
	if (all)
		table_note(t, "device work %lld ns = ops with a model %lld + ops without %lld + unattributed %lld; %.2f %% have a model",
		           (long long)r->all_ns, (long long)modelled, (long long)r->unmodelled_ns, (long long)r->unattributed_ns, share);
	else
		table_note(t, "device work %lld ns = listed %lld + other ops with a model %lld + ops without %lld + unattributed %lld; %.2f %% have a model",
		           (long long)r->all_ns, (long long)r->listed_ns, (long long)r->other_ns, (long long)r->unmodelled_ns,
		           (long long)r->unattributed_ns, share);
	if (r->by_name_ns)
		table_note(t, "%lld ns of the listed time are kernels for which no shapes were recorded: their rows have the kernel's name in place of the shape, and no FLOPs",
		           (long long)r->by_name_ns);
	if (r->p->durations_only)
		table_warn(t, "a .dict does not tell apart equal calls that follow each other: they count as one call, so that their FLOPs and bytes are too few");
	note_by_time(t, r, all);
	note_measured(t, r);
	note_peaks(t, r);
}

static void cost_table_put_time(struct buf *b, int64_t ns)
{
	if (ns < 1000)
		buf_printf(b, "%lld ns", (long long)ns);
	else if (ns < 1000000)
		buf_printf(b, "%.3f us", (double)ns / 1e3);
	else
		buf_printf(b, "%.3f ms", (double)ns / 1e6);
}

/* Whether the FLOPs or bytes of any op are known: then shapes were recorded. */
static bool knows_shapes(const struct costs *c)
{
	for (uint32_t i = 0; i < c->n_made; i++)
		if (c->cost[i].flops > 0 || c->cost[i].bytes > 0)
			return true;
	return false;
}

static int none_found(const struct cost_spec *spec, const struct cost_rows *x, bool by_name, struct err *e)
{
	struct buf b = {0};
	if (spec->absent && by_name && knows_shapes(x->costs))
		buf_cstr(&b, spec->absent);
	else
		buf_printf(&b, "%s%s; to record them: %s", spec->missing, by_name ? ", and none does such work by its name" : "", recording_how(x->p, RECORD_SHAPES));
	buf_cstr(&b, "; device work ");
	cost_table_put_time(&b, x->all_ns);
	buf_cstr(&b, " = ops with another model ");
	cost_table_put_time(&b, x->other_ns);
	buf_cstr(&b, " + ops without ");
	cost_table_put_time(&b, x->unmodelled_ns);
	buf_cstr(&b, " + unattributed ");
	cost_table_put_time(&b, x->unattributed_ns);
	int rc = err_set(e, ERR_DATA, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
	return rc;
}

int cost_report(const struct cost_spec *spec, const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	const struct cost_rules *rules = args->variant->rules ? args->variant->rules : &cost_own;
	enum cost_by by = spec->classes ? COST_BY_SHAPE : (enum cost_by)args->variant->by;
	struct buf b = {0};
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct cost_rows *x = cost_rows_new(p, &w, spec->classes, by, rules);
	int rc = 0;
	if (!x->all_ns && !x->n) {
		rc = w.all ? err_set(e, ERR_DATA, "the input holds no device work; to record it: %s", recording_how(p, RECORD_DEVICE_WORK))
		           : err_set(e, ERR_DATA, "the steps asked for have no device work");
	} else if (!x->n) {
		rc = none_found(spec, x, spec->classes && rules == &cost_own, e);
	} else {
		cost_table_start(out, x, spec, args);
		for (uint32_t i = 0; i < x->n; i++)
			cost_table_put_row(out, x, &x->v[i], &b);
		cost_table_put_notes(out, x, !spec->classes);
		rc = table_sort(out, str_from(spec->sort), true, e);
	}
	buf_release(&b);
	cost_rows_free(x);
	return rc;
}
