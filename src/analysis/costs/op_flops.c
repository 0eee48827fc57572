#include "analysis/costs/op_flops.h"

#include "analysis/names/names.h"
#include "base/mem.h"
#include "op/op_args.h"

const char *const op_flops_torch_ops[OP_FLOPS_TORCH_OPS] = {
	"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm", "aten._scaled_mm", "aten.convolution", "aten._convolution",
	"aten.convolution_backward", "aten._scaled_dot_product_efficient_attention", "aten._scaled_dot_product_flash_attention",
	"aten._scaled_dot_product_cudnn_attention", "aten._scaled_dot_product_efficient_attention_backward",
	"aten._scaled_dot_product_flash_attention_backward", "aten._scaled_dot_product_cudnn_attention_backward",
	"aten._flash_attention_forward", "aten._efficient_attention_forward", "aten._flash_attention_backward",
	"aten._efficient_attention_backward",
};

int op_flops_torch_op(struct str name)
{
	if (!str_starts(name, STR("aten::")))
		return -1;
	struct str op = {name.p + 6, name.n - 6};
	for (int i = 0; i < OP_FLOPS_TORCH_OPS; i++)
		if (str_eqc(op, op_flops_torch_ops[i] + 5))
			return i;
	return -1;
}

struct op_flops_work {
	const struct profile *p;
	struct costs *c;
	const struct fwdbwd *links;
	struct op_flops *f;
	uint32_t *inside;      /* classes that count in the op's inside, a bit each */
	uint8_t *state;        /* bits below */
	uint32_t *torch_name;  /* string id -> 1: an op that torch counts; 0: any other; NOT_LOOKED */
};
enum { KNOWN = 1, AROUND = 2, HAS_CHILD = 4, OPEN_CHILD = 8 };
#define NOT_LOOKED UINT32_MAX

static bool op_flops_is_op(const struct op_flops_work *w, uint32_t i) { return w->p->span.kind[i] == SPAN_OP; }

/* The op around it, which stands before it. */
static uint32_t op_flops_op_around(const struct op_flops_work *w, uint32_t i)
{
	uint32_t up = w->p->span.op[i];
	return up != ROW_NONE && up < i && op_flops_is_op(w, up) ? up : ROW_NONE;
}

/* cost[] may move with each new op: the pointer holds until the next call. */
static const struct cost *op_flops_cost_at(struct op_flops_work *w, uint32_t i, enum cost_direction d)
{
	uint32_t at = costs_index_of_span(w->c, w->p, i, d);
	return &w->c->cost[at];
}

static const struct cost *op_flops_model(struct op_flops_work *w, uint32_t i)
{
	const struct cost *m = op_flops_cost_at(w, i, COST_FORWARD);
	uint32_t forward = m->flops >= 0 || m->class == OP_VIEW ? ROW_NONE : fwdbwd_forward(w->links, i);
	return forward == ROW_NONE ? m : op_flops_cost_at(w, forward, COST_BACKWARD);
}

/* Ranges of autograd's own that hold ops, and nothing else that counts. */
static bool is_wrapper(const struct op_flops_work *w, uint32_t i)
{
	enum autograd_name kind = name_autograd(w->p, w->p->span.name[i]);
	return kind == AUTOGRAD_ENGINE || kind == AUTOGRAD_NODE || kind == AUTOGRAD_ACCUMULATE;
}

/* From the inside out: children stand behind their parents. */
static void count_innermost(struct op_flops_work *w)
{
	for (uint32_t i = w->p->span.rows.n; i-- > 0;) {
		if (!op_flops_is_op(w, i))
			continue;
		const struct cost *m = op_flops_model(w, i);
		if (m->flops > 0 && m->class != OP_VIEW && !costs_counts_inside(m, w->inside[i])) {
			w->f->flops[i] = m->flops;
			w->inside[i] |= 1u << m->class;
		}
		bool settled = m->flops >= 0 || m->class == OP_VIEW || w->inside[i] ||
		               ((w->state[i] & (HAS_CHILD | OPEN_CHILD)) == HAS_CHILD && is_wrapper(w, i));
		w->state[i] |= settled ? KNOWN : 0;
		uint32_t up = op_flops_op_around(w, i);
		if (up == ROW_NONE)
			continue;
		w->inside[up] |= w->inside[i];
		w->state[up] |= (uint8_t)(HAS_CHILD | (settled ? 0 : OPEN_CHILD));
	}
}

/* What is inside an op with known FLOPs is part of it; a backward node is no op whose FLOPs one could know. */
static void find_unknown(struct op_flops_work *w)
{
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		if (!op_flops_is_op(w, i))
			continue;
		uint32_t up = op_flops_op_around(w, i);
		bool around = up != ROW_NONE && ((w->state[up] & AROUND) || w->f->flops[up] > 0);
		w->state[i] |= around ? AROUND : 0;
		w->f->unknown[i] = !(w->state[i] & (KNOWN | AROUND)) && !((w->state[i] & HAS_CHILD) && is_wrapper(w, i));
	}
}

/* Groups of a convolution whose weight gradient is asked for; 1 = nothing to add. */
static int64_t too_large(struct op_flops_work *w, uint32_t i, const struct cost *m)
{
	enum cost_direction d;
	struct op_args args;
	char why[160];
	bool mask[3] = {true, true, true};
	unsigned n = 0;
	if (m->class != OP_CONV || m->b <= 1 || !str_eqc(profile_str(w->p, w->p->span.name[i]), "aten::convolution_backward"))
		return 1;
	struct op_facts f = costs_facts(w->c, w->p, costs_index_of_span(w->c, w->p, i, COST_FORWARD), &d);
	enum { OUTPUT_MASK = 10 };
	if (op_args_parse(&args, &f, why) == 0 && op_arg_bools(&args, OUTPUT_MASK, mask, 3, &n) && n < 2)
		mask[1] = true;
	op_args_release(&args);
	return mask[1] ? m->b : 1;
}

static int64_t torch_flops(struct op_flops_work *w, uint32_t i)
{
	const struct cost *m = op_flops_cost_at(w, i, COST_FORWARD);
	if (m->flops < 0)
		return -1;
	int64_t flops = m->flops, groups = too_large(w, i, m), more;
	if (dtype_kind(m->dtype) == DTYPE_KIND_COMPLEX)
		flops /= 4; /* 8 real operations for what it takes for 2 */
	if (groups == 1)
		return flops;
	return __builtin_mul_overflow(flops / m->parts, groups - 1, &more) || __builtin_add_overflow(flops, more, &flops) ? -1 : flops;
}

/* From the outside in: what runs inside an op that it counts, its dispatcher does not see. */
static void count_outermost(struct op_flops_work *w)
{
	w->torch_name = NEW_ARRAY_RAW(w->p->strings.n + 1, uint32_t);
	memset(w->torch_name, 0xff, ((size_t)w->p->strings.n + 1) * sizeof *w->torch_name);
	for (uint32_t i = 0; i < w->p->span.rows.n; i++) {
		if (!op_flops_is_op(w, i))
			continue;
		uint32_t up = op_flops_op_around(w, i), *known = &w->torch_name[w->p->span.name[i]];
		if (*known == NOT_LOOKED)
			*known = op_flops_torch_op(profile_str(w->p, w->p->span.name[i])) >= 0;
		if (up != ROW_NONE && (w->state[up] & AROUND)) {
			w->state[i] = AROUND;
		} else if (*known) {
			int64_t flops = torch_flops(w, i);
			w->state[i] = AROUND;
			w->f->flops[i] = flops > 0 ? flops : 0;
			w->f->unknown[i] = flops < 0;
		}
	}
	mem_free(w->torch_name);
}

struct op_flops *op_flops_new(const struct profile *p, struct costs *c, const struct fwdbwd *links, enum op_flops_rules rules)
{
	uint32_t n = p->span.rows.n;
	struct op_flops *f = NEW(struct op_flops);
	struct op_flops_work w = {.p = p, .c = c, .links = links, .f = f, .state = NEW_ARRAY(n, uint8_t)};
	if (rules == OP_FLOPS_DEFAULT)
		costs_link(c, p, links);
	f->flops = NEW_ARRAY(n, int64_t);
	f->unknown = NEW_ARRAY(n, uint8_t);
	if (rules == OP_FLOPS_TORCH) {
		count_outermost(&w);
	} else {
		w.inside = NEW_ARRAY(n, uint32_t);
		count_innermost(&w);
		find_unknown(&w);
		mem_free(w.inside);
	}
	mem_free(w.state);
	return f;
}

void op_flops_free(struct op_flops *f)
{
	if (!f)
		return;
	mem_free(f->flops);
	mem_free(f->unknown);
	mem_free(f);
}
