#include "report/parts/cost_table.h"

#include "analysis/recording.h"
#include "analysis/tree/direction.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/round.h"

#include <math.h>

enum { C_NAME, C_DIRECTION, C_CLASS, C_PARAMS, C_DTYPE, C_CALLS, C_TOTAL, C_SHARE, C_MEAN, C_MIN, C_MAX, C_FLOPS, C_BYTES, C_TFLOPS, C_GBS,
       C_INTENSITY, C_TC, C_ELIGIBLE, C_HINT, C_BOUND, C_ATTAINABLE, C_EFFICIENCY, C_GAIN, C_GAIN_PCT, C_PEAK_PCT, C_PEAK, C_MEMORY_PCT,
       C_OVER, C_FORMULA, C_CAUSAL, C_KERNELS, C_UNKNOWN, N_COLUMNS };

#define IN(set) (1u << COST_SET_##set)
enum { OPS = IN(OPS), ROOFLINE = IN(ROOFLINE), BOTH = IN(OPS) | IN(ROOFLINE) };

static const struct {
	unsigned sets;
	struct column c;
} columns[N_COLUMNS] = {
	[C_NAME] = {BOTH, {.id = "op", .title = "Op", .help = "name of the op", .type = CELL_STR}},
	[C_DIRECTION] = {BOTH, {.id = "direction", .title = "Dir", .help = "forward, backward or optimizer", .type = CELL_STR}},
	[C_CLASS] = {ROOFLINE, {.id = "class", .title = "Class", .help = "kind of op", .type = CELL_STR}},
	[C_PARAMS] = {BOTH, {.id = "params", .title = "Shape", .help = "sizes and types that the model went by", .type = CELL_STR, .flags = COLUMN_WIDE}},
	[C_DTYPE] = {BOTH, {.id = "dtype", .title = "Type", .help = "element type of the operands that decide", .type = CELL_STR}},
	[C_CALLS] = {BOTH, {.id = "calls", .title = "Calls", .help = "how often", .type = CELL_I64, .unit = UNIT_COUNT}},
	[C_TOTAL] = {BOTH, {.id = "total_gpu_ns", .title = "GPU total", .help = "sum of the durations of its kernels, copies and sets", .type = CELL_I64, .unit = UNIT_NS}},
	[C_SHARE] = {BOTH, {.id = "total_pct", .title = "Total %", .help = "total / all device work, listed or not", .type = CELL_F64, .unit = UNIT_PERCENT}},
	[C_MEAN] = {OPS, {.id = "mean_gpu_ns", .title = "Mean", .help = "mean of a call", .type = CELL_F64, .unit = UNIT_NS}},
	[C_MIN] = {OPS, {.id = "min_gpu_ns", .title = "Min", .help = "shortest call", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL}},
	[C_MAX] = {OPS, {.id = "max_gpu_ns", .title = "Max", .help = "longest call", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL}},
	[C_FLOPS] = {BOTH, {.id = "flops", .title = "FLOPs", .help = "floating-point operations of all calls, a multiply-add as 2; empty = unknown", .type = CELL_I64, .unit = UNIT_FLOPS}},
	[C_BYTES] = {BOTH, {.id = "bytes", .title = "Bytes", .help = "what all calls must read and write at least, each operand once; empty = unknown", .type = CELL_I64, .unit = UNIT_BYTES}},
	[C_TFLOPS] = {BOTH, {.id = "tflops_per_s", .title = "TFLOP/s", .help = "FLOPs / time, over the calls whose FLOPs are known", .type = CELL_F64, .digits = 3}},
	[C_GBS] = {BOTH, {.id = "gb_per_s", .title = "GB/s", .help = "bytes / time, over the calls whose bytes are known", .type = CELL_F64, .digits = 1}},
	[C_INTENSITY] = {BOTH, {.id = "flops_per_byte", .title = "FLOP/B", .help = "arithmetic intensity: FLOPs / bytes", .type = CELL_F64, .digits = 2}},
	[C_TC] = {BOTH, {.id = "tensor_cores", .title = "TC", .help = "whether its main kernels used Tensor Cores: yes, no or unknown", .type = CELL_STR}},
	[C_ELIGIBLE] = {OPS, {.id = "tc_eligible", .title = "Eligible", .help = "whether type and shape allow Tensor Cores: yes, no or unknown; yes where a kernel uses them", .type = CELL_STR}},
	[C_HINT] = {OPS, {.id = "tc_hint", .title = "Hint", .help = "what keeps it from Tensor Cores, or from using them well", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_KEY}},
	[C_BOUND] = {ROOFLINE, {.id = "bound", .title = "Bound", .help = "what bounds it: compute or memory, whichever would take longer at its peak; latency: under a tenth of "
	                        "what those allow, by kernels of under 10 us (a call's main one, on average); over peak: it did more than a peak allows (column over_peak), so that the model "
	                        "tells nothing of it; empty = unknown", .type = CELL_STR}},
	[C_ATTAINABLE] = {ROOFLINE, {.id = "attainable_ns", .title = "Attainable", .help = "time that all calls would take at the peaks: the longer of FLOPs / peak and bytes / bandwidth, "
	                             "call by call", .type = CELL_F64, .unit = UNIT_NS}},
	[C_EFFICIENCY] = {ROOFLINE, {.id = "efficiency_pct", .title = "Effic. %", .help = "attainable / actual time", .type = CELL_F64, .unit = UNIT_PERCENT}},
	[C_GAIN] = {ROOFLINE, {.id = "gain_ns", .title = "Gain", .help = "actual - attainable: what could be gained at most; empty = unknown, or over a peak", .type = CELL_F64, .unit = UNIT_NS}},
	[C_GAIN_PCT] = {ROOFLINE, {.id = "gain_pct", .title = "Gain %", .help = "gain / all device work", .type = CELL_F64, .unit = UNIT_PERCENT}},
	[C_PEAK_PCT] = {BOTH, {.id = "peak_pct", .title = "Peak %", .help = "FLOP/s achieved / the peak of column peak", .type = CELL_F64, .unit = UNIT_PERCENT}},
	[C_PEAK] = {BOTH, {.id = "peak", .title = "Peak", .help = "the peak that shares are of; empty = GPU or rate not known, or several", .type = CELL_STR, .flags = COLUMN_DETAIL}},
	[C_MEMORY_PCT] = {BOTH, {.id = "bandwidth_pct", .title = "BW %", .help = "bytes/s achieved / peak bandwidth of the device memory", .type = CELL_F64, .unit = UNIT_PERCENT}},
	[C_OVER] = {BOTH, {.id = "over_peak", .title = "Over peak", .help = "set where more than 100 % of a peak comes out, which cannot be: of which peak", .type = CELL_STR, .flags = COLUMN_WIDE}},
	[C_FORMULA] = {OPS, {.id = "formula", .title = "Formula", .help = "how FLOPs were computed; empty = by a procedure", .type = CELL_STR, .flags = COLUMN_DETAIL}},
	[C_CAUSAL] = {OPS, {.id = "flops_causal", .title = "Causal FLOPs", .help = "of attention with a causal mask: FLOPs of the pairs below the diagonal alone", .type = CELL_I64, .unit = UNIT_FLOPS,
	                    .flags = COLUMN_DETAIL}},
	[C_KERNELS] = {BOTH, {.id = "kernels", .title = "Kernels", .help = "its kernels, most time first, the first three", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_DETAIL | COLUMN_KERNEL}},
	[C_UNKNOWN] = {BOTH, {.id = "unknown", .title = "Unknown", .help = "why FLOPs or bytes are unknown", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_DETAIL}},
};

/* What answers the question, by set; what may go first. */
static const uint8_t answers[N_COLUMNS] = {
	[C_NAME] = BOTH, [C_PARAMS] = OPS, [C_TOTAL] = BOTH, [C_TFLOPS] = OPS, [C_TC] = OPS, [C_HINT] = OPS, [C_BOUND] = ROOFLINE, [C_ATTAINABLE] = ROOFLINE,
	[C_GAIN] = ROOFLINE, [C_PEAK_PCT] = BOTH,
};
static const uint8_t decoration[N_COLUMNS] = {[C_CLASS] = ROOFLINE, [C_MEAN] = OPS, [C_INTENSITY] = BOTH};

struct cost_table_shown {
	unsigned at[N_COLUMNS], extra;
	enum cost_by by;
	bool over, causal, why, hint;
	bool twins[2];           /* rows of one name (and shape) that only the direction tells apart; that only the class does */
};

static const char *const tri_text[] = {[TRI_NO] = "no", [TRI_YES] = "yes", [TRI_UNKNOWN] = "unknown"};

/* Rounding apart. */
static bool is_over(double pct) { return pct > 100.0000001; }

/* --- hints ------------------------------------------------------------------------------------------------------ */

bool cost_param(struct str params, const char *name, int64_t *value)
{
	struct str piece, key = str_from(name);
	while (str_split(&params, ',', &piece))
		if (str_starts(piece, key) && piece.n > key.n && piece.p[key.n] == '=')
			return str_to_i64((struct str){piece.p + key.n + 1, piece.n - key.n - 1}, value);
	return false;
}

/* Tensor Cores take operands whose inner dimensions are multiples of 16 bytes; which ones of M, N and K that concerns depends on the
 * layout, of which a trace tells little: M is named only where Tensor Cores were not used. */
static void odd_sizes(const struct cost *c, bool used, struct buf *b)
{
	static const char *const gemm[] = {"N", "K", "M"}, *const conv[] = {"C", "K"};
	const int64_t nkm[] = {c->n, c->k, c->m};
	int bits = dtype_bits(c->dtype), unit = bits && bits <= 16 ? 128 / bits : 0;
	bool found = false, is_conv = c->class == OP_CONV;
	for (int i = 0; unit && i < (is_conv || used ? 2 : 3); i++) {
		const char *name = is_conv ? conv[i] : gemm[i];
		int64_t v = is_conv ? 0 : nkm[i];
		if (is_conv && !cost_param(c->params, name, &v))
			continue;
		if (v <= 0 || v % unit == 0)
			continue;
		buf_printf(b, "%s%s=%lld", found ? ", " : "", name, (long long)v);
		found = true;
	}
	if (found)
		buf_printf(b, ": no multiple of %d", unit);
}

static void hint(const struct cost_row *x, struct buf *b)
{
	const struct cost *c = x->cost;
	enum tri used = cost_tc_used(x);
	buf_clear(b);
	bool no_tf32 = x->gpu && !(x->gpu->flops[GPU_TF32] > 0) && !(x->gpu->flops[GPU_FP32_TENSOR] > 0);
	if (used == TRI_NO && c->dtype == DTYPE_FLOAT32 && no_tf32)
		buf_cstr(b, "float32: this GPU's Tensor Cores, where it has any, take types of 16 bits and less");
	else if (used == TRI_NO && c->dtype == DTYPE_FLOAT32)
		buf_cstr(b, "float32: Tensor Cores take it as TF32 where that is allowed, or in a type of 16 bits");
	else if (used == TRI_NO && dtype_bits(c->dtype) == 64)
		buf_cstr(b, "64-bit type");
	else if (c->class == OP_GEMM && (c->m == 1 || c->n == 1) && used != TRI_YES)
		buf_cstr(b, "matrix times vector");
	else
		odd_sizes(c, used == TRI_YES, b);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static void cost_table_put_f64(struct table *t, const struct cost_table_shown *s, unsigned c, double v)
{
	if (s->at[c] != UINT32_MAX && !isnan(v))
		table_set_f64(t, s->at[c], v);
}

static void cost_table_put_i64(struct table *t, const struct cost_table_shown *s, unsigned c, int64_t v)
{
	if (s->at[c] != UINT32_MAX && v >= 0)
		table_set_i64(t, s->at[c], v);
}

static void put_str(struct table *t, const struct cost_table_shown *s, unsigned c, struct str v)
{
	if (s->at[c] != UINT32_MAX && v.n)
		table_set_str_copy(t, s->at[c], v);
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
		buf_printf(b, "%.1f %% of the time would do at the peaks, call by call", cost_efficiency_pct(x));
}

/* Whether it did more than a peak allows, which cannot be. */
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
	if (efficiency < 10 && (double)x->main_ns / (double)x->calls < 10e3)
		return "latency";
	return x->compute_ns > x->memory_ns ? "compute" : "memory";
}

static void put_rates(struct table *t, const struct cost_table_shown *s, const struct cost_row *x)
{
	cost_table_put_i64(t, s, C_FLOPS, x->flops);
	cost_table_put_i64(t, s, C_BYTES, x->bytes);
	if (x->flops >= 0 && x->flops_ns > 0)
		cost_table_put_f64(t, s, C_TFLOPS, (double)x->flops / (double)x->flops_ns / 1e3);
	if (x->bytes >= 0 && x->bytes_ns > 0)
		cost_table_put_f64(t, s, C_GBS, (double)x->bytes / (double)x->bytes_ns);
	if (x->flops >= 0 && x->bytes > 0 && x->flops_ns == x->bytes_ns)
		cost_table_put_f64(t, s, C_INTENSITY, (double)x->flops / (double)x->bytes);
	cost_table_put_f64(t, s, C_PEAK_PCT, cost_compute_pct(x));
	cost_table_put_f64(t, s, C_MEMORY_PCT, cost_memory_pct(x));
}

static void put_roofline(struct table *t, const struct cost_table_shown *s, const struct cost_rows *r, const struct cost_row *x)
{
	if (!x->attainable_of)
		return;
	double gain = (double)x->attainable_of - x->attainable_ns;
	put_str(t, s, C_BOUND, str_from(bound_of(x)));
	cost_table_put_f64(t, s, C_ATTAINABLE, x->attainable_ns);
	cost_table_put_f64(t, s, C_EFFICIENCY, cost_efficiency_pct(x));
	if (row_is_over(x))
		return;
	cost_table_put_f64(t, s, C_GAIN, gain);
	cost_table_put_f64(t, s, C_GAIN_PCT, percent(gain, (double)r->all_ns));
}

static void cost_table_put_kernels(struct table *t, const struct cost_table_shown *s, const struct cost_rows *r, const struct cost_row *x, struct buf *b)
{
	enum { NAMED = 3 };
	buf_clear(b);
	for (uint32_t i = 0; i < x->n_kernel_names && i < NAMED; i++) {
		buf_cstr(b, i ? "; " : "");
		buf_str(b, profile_str(r->p, r->kernel_name[x->first_kernel + i]));
	}
	if (x->n_kernel_names > NAMED)
		buf_printf(b, "; ... (%u)", x->n_kernel_names);
	put_str(t, s, C_KERNELS, buf_view(b));
}

static void cost_table_put_row(struct table *t, const struct cost_table_shown *s, const struct cost_rows *r, const struct cost_row *x, struct buf *b)
{
	const struct cost *c = x->cost;
	bool shape = s->by == COST_BY_SHAPE;
	table_row(t);
	put_str(t, s, C_NAME, profile_str(r->p, x->name));
	put_str(t, s, C_DIRECTION, str_from(direction_name[x->direction]));
	put_str(t, s, C_CLASS, str_from(op_class_name[x->class]));
	cost_table_put_i64(t, s, C_CALLS, (int64_t)x->calls);
	cost_table_put_i64(t, s, C_TOTAL, x->ns);
	cost_table_put_f64(t, s, C_SHARE, percent((double)x->ns, (double)r->all_ns));
	cost_table_put_f64(t, s, C_MEAN, (double)x->ns / (double)x->calls);
	cost_table_put_i64(t, s, C_MIN, x->min);
	cost_table_put_i64(t, s, C_MAX, x->max);
	put_rates(t, s, x);
	put_roofline(t, s, r, x);
	put_str(t, s, C_TC, str_from(tri_text[cost_tc_used(x)]));
	put_str(t, s, C_ELIGIBLE, str_from(tri_text[cost_tc_used(x) == TRI_YES ? TRI_YES : x->eligible]));
	if (shape) {
		put_str(t, s, C_PARAMS, c->params);
		put_str(t, s, C_DTYPE, c->dtype == DTYPE_UNKNOWN ? (struct str){"", 0} : str_from(dtype_name(c->dtype)));
		put_str(t, s, C_FORMULA, c->formula);
		if (c->causal && c->flops_causal >= 0 && s->at[C_CAUSAL] != UINT32_MAX) {
			int64_t all;
			cost_table_put_i64(t, s, C_CAUSAL, __builtin_mul_overflow(c->flops_causal, (int64_t)x->calls, &all) ? -1 : all);
		}
		hint(x, b);
		put_str(t, s, C_HINT, buf_view(b));
	}
	put_str(t, s, C_UNKNOWN, c->why);
	peak_text(x, b);
	put_str(t, s, C_PEAK, buf_view(b));
	over_text(x, b);
	put_str(t, s, C_OVER, buf_view(b));
	cost_table_put_kernels(t, s, r, x, b);
}

/* --- the table -------------------------------------------------------------------------------------------------- */

/* Rows that would look alike without the direction, and with it but without the class: a narrow terminal must not leave these out. */
static void look_for_twins(struct cost_table_shown *s, const struct cost_rows *r)
{
	for (int with = 0; with < 2; with++) {
		struct intern seen;
		struct buf key = {0};
		intern_init(&seen);
		for (uint32_t i = 0; i < r->n; i++) {
			const struct cost_row *x = &r->v[i];
			buf_clear(&key);
			buf_printf(&key, "%u %d ", x->name, with ? x->direction : -1);
			buf_str(&key, s->by == COST_BY_SHAPE ? x->cost->params : STR(""));
			uint32_t before = seen.n;
			intern_str(&seen, buf_view(&key));
			s->twins[with] |= seen.n == before;
		}
		buf_release(&key);
		intern_release(&seen);
	}
}

static void cost_table_look(struct cost_table_shown *s, const struct cost_rows *r)
{
	struct buf b = {0};
	look_for_twins(s, r);
	for (uint32_t i = 0; i < r->n; i++) {
		const struct cost_row *x = &r->v[i];
		s->over |= row_is_over(x);
		s->causal |= x->cost->causal;
		s->why |= x->cost->why.n > 0;
		hint(x, &b);
		s->hint |= b.n > 0;
	}
	buf_release(&b);
}

static bool cost_table_is_shown(const struct cost_table_shown *s, unsigned c, enum cost_set set)
{
	bool shape = s->by == COST_BY_SHAPE;
	switch (c) {
	case C_DIRECTION:
	case C_CLASS:
		if (s->by == COST_BY_KERNEL)
			return false;
		break;
	case C_PARAMS:
	case C_DTYPE:
	case C_FORMULA:
		if (!shape)
			return false;
		break;
	case C_HINT:
		if (!shape || !s->hint)
			return false;
		break;
	case C_CAUSAL:
		if (!shape || !s->causal)
			return false;
		break;
	case C_OVER:
		return s->over;
	case C_UNKNOWN:
		return s->why;
	case C_KERNELS:
		if (s->by == COST_BY_KERNEL)
			return false;
		break;
	}
	return columns[c].sets >> set & 1;
}

static void cost_table_add_columns(struct table *t, struct cost_table_shown *s, const struct cost_spec *spec)
{
	for (unsigned c = 0; c < N_COLUMNS; c++) {
		struct column col = columns[c].c;
		if (c == C_NAME && s->by == COST_BY_KERNEL) {
			col.id = "kernel";
			col.title = "Kernel";
			col.help = "name of the kernel";
			col.flags |= COLUMN_WIDE;
		}
		bool tells = (c == C_DIRECTION && s->twins[0]) || (c == C_CLASS && s->twins[1]) || answers[c] >> spec->set & 1;
		if (s->twins[0] && (c == C_ATTAINABLE || c == C_PEAK_PCT) && spec->set == COST_SET_ROOFLINE)
			tells = false; /* 80 columns have no room for both */
		col.flags |= tells ? COLUMN_KEY : decoration[c] >> spec->set & 1 ? COLUMN_MINOR : 0;
		s->at[c] = cost_table_is_shown(s, c, spec->set) ? table_column(t, &col) : UINT32_MAX;
		if (c == C_DTYPE && spec->columns) {
			s->extra = t->n_columns;
			spec->columns(t);
		}
	}
}

/* Of convolutions by algorithms with fewer operations (1), of the other rows (0) or of all (-1): the one with most of a share; NULL
 * when none is over. */
static const struct cost_row *most_over(const struct cost_rows *r, double (*share)(const struct cost_row *), int fewer, unsigned *n)
{
	const struct cost_row *most = NULL;
	for (uint32_t i = 0; i < r->n; i++) {
		if (!is_over(share(&r->v[i])) || (fewer >= 0 && r->v[i].fewer != fewer))
			continue;
		++*n;
		if (!most || share(&r->v[i]) > share(most))
			most = &r->v[i];
	}
	return most;
}

static void note_over(struct table *t, const struct cost_rows *r)
{
	unsigned n_compute = 0, n_fewer = 0, n_memory = 0;
	const struct cost_row *compute = most_over(r, cost_compute_pct, 0, &n_compute);
	const struct cost_row *fewer = most_over(r, cost_compute_pct, 1, &n_fewer);
	const struct cost_row *memory = most_over(r, cost_memory_pct, -1, &n_memory);
	struct buf b = {0};
	if (compute) {
		over_compute(compute, &b);
		table_warn(t, "cannot be: %u %s beyond 100 %% of a peak, most so " STR_FMT " with " STR_FMT ": the op's model, its recorded "
		           "shapes or the peak is wrong there; shown as computed", n_compute, n_compute == 1 ? "row comes out" : "rows come out",
		           STR_ARG(profile_str(r->p, compute->name)), STR_ARG(buf_view(&b)));
	}
	if (fewer) {
		buf_clear(&b);
		over_compute(fewer, &b);
		table_warn(t, "%u %s beyond 100 %% of a peak, most so " STR_FMT " with " STR_FMT ": there a share of the peak says nothing", n_fewer,
		           n_fewer == 1 ? "convolution comes out" : "convolutions come out", STR_ARG(profile_str(r->p, fewer->name)),
		           STR_ARG(buf_view(&b)));
	}
	if (memory) {
		buf_clear(&b);
		over_memory(memory, &b);
		table_warn(t, "cannot be: %u %s beyond 100 %% of the memory bandwidth, most so " STR_FMT " with " STR_FMT ": the data came "
		           "from a cache at least in part, an input was expanded (it holds fewer values than its shape), or the model or the peak is wrong; no gain is "
		           "told of such rows", n_memory,
		           n_memory == 1 ? "row comes out" : "rows come out", STR_ARG(profile_str(r->p, memory->name)), STR_ARG(buf_view(&b)));
	}
	buf_release(&b);
}

static void note_gpu(struct table *t, const struct cost_rows *r)
{
	int64_t compute = 0, memory = 0, both = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		compute += r->v[i].compute_of;
		memory += r->v[i].memory_of;
		both += r->v[i].attainable_of;
	}
	double listed = r->listed_ns ? (double)r->listed_ns : 1;
	if (r->gpus.assumed != INT32_MIN)
		table_warn(t, "device %d did work but is not described: taken for " STR_FMT ", as all described devices are", r->gpus.assumed,
		           STR_ARG(r->gpus.name));
	if (!r->gpus.name.n)
		table_warn(t, "the input does not name the GPU (--gpu=NAME can): peaks, and what follows from them, are unknown");
	else if (!r->gpus.known)
		table_warn(t, "what '" STR_FMT "' can do is not in the list of GPUs: peaks, and what follows from them, are unknown", STR_ARG(r->gpus.name));
	else
		table_note(t, "of the time listed, %.1f %% can be compared with a peak of its GPU in FLOP/s, %.1f %% with its bandwidth, %.1f %% with both%s",
		           100 * (double)compute / listed, 100 * (double)memory / listed, 100 * (double)both / listed,
		           both == r->listed_ns ? "" : "; of the rest FLOPs, bytes or types are not known, or no peak of the GPU bounds it");
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

/* How much device time the roofline says nothing of. */
static void note_outside(struct table *t, const struct cost_rows *r)
{
	int64_t compared = 0;
	for (uint32_t i = 0; i < r->n; i++)
		compared += r->v[i].attainable_of;
	if (r->all_ns > compared)
		table_note(t, "outside the roofline are %lld ns, %.1f %% of device work: ops without a model %lld, of no op %lld, FLOPs, bytes or peak unknown %lld",
		           (long long)(r->all_ns - compared), 100 * (double)(r->all_ns - compared) / (double)r->all_ns, (long long)r->unmodelled_ns,
		           (long long)r->unattributed_ns, (long long)(r->listed_ns + r->other_ns - compared));
}

static void cost_table_put_notes(struct table *t, const struct cost_rows *r, bool all)
{
	int64_t modelled = r->listed_ns - r->by_name_ns + r->other_ns;
	double share = r->all_ns ? 100.0 * (double)modelled / (double)r->all_ns : 0;
	if (all)
		table_note(t, "device work %lld ns = of ops with a model %lld + without %lld + unattributed %lld; %.2f %% have a model",
		           (long long)r->all_ns, (long long)modelled, (long long)r->unmodelled_ns, (long long)r->unattributed_ns, share);
	else
		table_note(t, "device work %lld ns = listed %lld + other ops with a model %lld + without %lld + unattributed %lld; %.2f %% have a model",
		           (long long)r->all_ns, (long long)r->listed_ns, (long long)r->other_ns, (long long)r->unmodelled_ns,
		           (long long)r->unattributed_ns, share);
	if (r->by_name_ns)
		table_note(t, "of the listed, %lld ns are of kernels for which no shapes were recorded: their rows have the kernel's name in place of the shape, and no FLOPs",
		           (long long)r->by_name_ns);
	if (r->p->durations_only)
		table_warn(t, "a .dict does not tell calls apart that say the same in a row: they count as one, and their FLOPs and bytes are too few");
	if (all)
		note_outside(t, r);
	note_over(t, r);
	note_gpu(t, r);
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

/* Whether another op's FLOPs or bytes are known, so that its shapes are. */
static bool knows_shapes(const struct costs *c)
{
	for (uint32_t i = 0; i < c->n; i++)
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
	buf_cstr(&b, "; of ");
	cost_table_put_time(&b, x->all_ns);
	buf_cstr(&b, " of device work ");
	cost_table_put_time(&b, x->other_ns);
	buf_cstr(&b, " are of ops with another model, ");
	cost_table_put_time(&b, x->unmodelled_ns);
	buf_cstr(&b, " of ops without, ");
	cost_table_put_time(&b, x->unattributed_ns);
	buf_cstr(&b, " of no op");
	int rc = err_set(e, ERR_DATA, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
	return rc;
}

int cost_report(const struct cost_spec *spec, const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	enum cost_rules rules = args->variant->rules ? *(const enum cost_rules *)args->variant->rules : COST_DEFAULT;
	struct cost_table_shown s = {.by = (enum cost_by)args->variant->by};
	struct buf b = {0};
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct cost_rows *x = cost_rows_new(p, &w, spec->classes, s.by, rules);
	int rc = 0;
	if (!x->all_ns && !x->n) {
		rc = w.all ? err_set(e, ERR_DATA, "the input holds no device work; to record it: %s", recording_how(p, RECORD_DEVICE_WORK))
		           : err_set(e, ERR_DATA, "no device work is of those steps");
	} else if (!x->n) {
		rc = none_found(spec, x, spec->classes && rules == COST_DEFAULT, e);
	} else {
		cost_table_look(&s, x);
		cost_table_add_columns(out, &s, spec);
		for (uint32_t i = 0; i < x->n; i++) {
			cost_table_put_row(out, &s, x, &x->v[i], &b);
			if (spec->put)
				spec->put(out, s.extra, &x->v[i]);
		}
		cost_table_put_notes(out, x, !spec->classes);
		rc = table_sort(out, str_from(spec->sort), true, e);
	}
	buf_release(&b);
	cost_rows_free(x);
	return rc;
}
