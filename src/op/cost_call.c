#include "op/cost_call.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

const char *const op_class_name[OP_CLASSES] = {
	[OP_UNKNOWN] = "unknown",   [OP_GEMM] = "gemm",           [OP_CONV] = "conv",       [OP_ATTENTION] = "attention",
	[OP_RNN] = "rnn",           [OP_NORM] = "norm",           [OP_SOFTMAX] = "softmax", [OP_ELEMENTWISE] = "elementwise",
	[OP_REDUCE] = "reduce",     [OP_LOSS] = "loss",           [OP_POOL] = "pool",       [OP_EMBEDDING] = "embedding",
	[OP_COPY] = "copy",         [OP_FILL] = "fill",           [OP_RANDOM] = "random",   [OP_SORT] = "sort",
	[OP_OPTIMIZER] = "optimizer", [OP_COMM] = "communication", [OP_FFT] = "fft",        [OP_INTERPOLATE] = "interpolate",
	[OP_VIEW] = "view",         [OP_OTHER] = "other",
};

int64_t cost_mul(int64_t a, int64_t b)
{
	int64_t v;
	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &v) ? COST_UNKNOWN : v;
}

int64_t cost_add(int64_t a, int64_t b)
{
	int64_t v;
	return a < 0 || b < 0 || __builtin_add_overflow(a, b, &v) ? COST_UNKNOWN : v;
}

int64_t cost_bytes_of(int64_t n, enum dtype t)
{
	int bits = dtype_bits(t);
	if (!bits || n < 0)
		return COST_UNKNOWN;
	if (bits % 8 == 0)
		return cost_mul(n, bits / 8);
	int64_t all = cost_add(cost_mul(n, bits), 7);
	return all < 0 ? COST_UNKNOWN : all / 8;
}

void cost_unknown(struct cost_call *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(c->why_flops, sizeof c->why_flops, fmt, ap);
	va_end(ap);
	memcpy(c->why_bytes, c->why_flops, sizeof c->why_bytes);
	c->out->flops = c->out->bytes = c->out->bytes_read = c->out->bytes_written = COST_UNKNOWN;
}

void cost_bytes_unknown(struct cost_call *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(c->why_bytes, sizeof c->why_bytes, fmt, ap);
	va_end(ap);
	c->out->bytes = c->out->bytes_read = c->out->bytes_written = COST_UNKNOWN;
}

void cost_set_bytes(struct cost_call *c, int64_t read, int64_t written, const char *why)
{
	int64_t sum = cost_add(read, written);
	if (sum < 0) {
		cost_bytes_unknown(c, "%s", why);
		return;
	}
	c->out->bytes_read = read;
	c->out->bytes_written = written;
	c->out->bytes = sum;
}

void cost_set_flops(struct cost_call *c, int64_t flops)
{
	c->out->flops = flops < 0 ? COST_UNKNOWN : flops;
	if (flops < 0)
		snprintf(c->why_flops, sizeof c->why_flops, "does not fit 64 bits");
}

int64_t cost_complex_factor(enum dtype t)
{
	return dtype_kind(t) == DTYPE_KIND_COMPLEX ? 4 : 1;
}

/* float32 can run as TF32, float64 and complex on newer Tensor Cores: that depends on the GPU and on settings. */
enum tri cost_tc_eligible(enum dtype t)
{
	switch (dtype_kind(t)) {
	case DTYPE_KIND_FLOAT:
		return dtype_bits(t) <= 16 ? TRI_YES : TRI_UNKNOWN;
	case DTYPE_KIND_INT:
		return dtype_bits(t) <= 8 ? TRI_YES : TRI_NO;
	case DTYPE_KIND_QUANT:
		return TRI_YES;
	case DTYPE_KIND_BOOL:
		return TRI_NO;
	default:
		return TRI_UNKNOWN;
	}
}

void cost_set_gemm(struct cost_call *c, int64_t b, int64_t m, int64_t n, int64_t k, enum dtype t)
{
	struct cost *o = c->out;
	int64_t one = cost_mul(cost_mul(2, m), cost_mul(n, k));
	cost_set_flops(c, cost_mul(cost_mul(one, b), cost_complex_factor(t)));
	o->class = OP_GEMM;
	o->b = b, o->m = m, o->n = n, o->k = k;
	o->dtype = t;
	o->tc_eligible = m > 1 && n > 1 && k > 0 && b > 0 ? cost_tc_eligible(t) : TRI_NO;
	struct buf text = {0};
	if (b != 1)
		buf_printf(&text, "B=%lld,", (long long)b);
	buf_printf(&text, "M=%lld,N=%lld,K=%lld,%s", (long long)m, (long long)n, (long long)k, dtype_short(t));
	o->params = arena_str(c->arena, buf_view(&text));
	buf_release(&text);
}

void cost_double(struct cost_call *c)
{
	struct cost *o = c->out;
	if (o->uneven) { /* several products, which are those of inference */
		o->uneven = false;
		cost_unknown(c, "no model of this op's backward");
		return;
	}
	o->parts = 2;
	if (o->flops >= 0)
		cost_set_flops(c, cost_mul(o->flops, 2));
	if (o->bytes >= 0)
		cost_set_bytes(c, cost_mul(o->bytes_read, 2), cost_mul(o->bytes_written, 2), "does not fit 64 bits");
}

static void put_tensor(struct buf *b, const struct op_args *a, const struct op_tensor *t, enum dtype type)
{
	buf_char(b, '[');
	for (uint32_t i = 0; i < t->rank; i++)
		buf_printf(b, i ? ",%lld" : "%lld", (long long)op_dims(a, t)[i]);
	buf_printf(b, "]%s", dtype_short(type));
}

struct str cost_operands_text(const struct cost_call *c)
{
	enum { MAX_SHOWN = 8 };
	struct buf b = {0};
	unsigned shown = 0;
	for (unsigned i = 0; i < c->args.n; i++) {
		const struct op_arg *x = &c->args.arg[i];
		for (uint32_t k = 0; x->kind != OP_ARG_NONE && k < x->n_tensors; k++, shown++) {
			if (shown >= MAX_SHOWN)
				continue;
			if (shown)
				buf_char(&b, ';');
			put_tensor(&b, &c->args, &c->args.tensor[x->tensor + k], x->dtype);
		}
	}
	if (shown > MAX_SHOWN)
		buf_printf(&b, ";... (%u tensors)", shown);
	struct str s = arena_str(c->arena, buf_view(&b));
	buf_release(&b);
	return s;
}
