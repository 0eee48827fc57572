#include "analysis/names/names.h"
#include "base/intern.h"
#include "detect/parts/gpu_most.h"
#include "op/op_args.h"

/* Percent of the device time (without collectives) in conversions, and in those of sizes that are converted both ways; percent of the steps'
 * time for the severity. */
static const double TOO_MUCH = 10, BOTH_WAYS = 3, LITTLE = 3, SEVERE = 15;
enum { PLACES_TOLD = 4 };

/* What is known of a cost: whether it is a copy that changes the type of floating-point numbers. */
struct dtype_conversions_conversion {
	bool asked, is;
	enum dtype from, to;
	uint32_t size;           /* which number of elements and pair of types: in measured.way */
};

/* Conversions of one number of elements between two types: the time of each direction. */
struct way {
	int64_t ns[2];
};

struct dtype_conversions_measured {
	struct places places;
	struct gpu_most most;    /* their time */
	struct dtype_conversions_conversion *of;   /* by cost */
	struct intern sizes;
	struct way *way;         /* by id in `sizes`, from 1 */
	uint32_t ways;
	int64_t device_ns, both_ns;
	bool types;              /* some op has types */
};

static bool is_float(enum dtype t)
{
	return dtype_kind(t) == DTYPE_KIND_FLOAT;
}

static void dtype_conversions_ask(struct dtype_conversions_measured *m, const struct op_facts *f, struct dtype_conversions_conversion *x)
{
	struct op_args a = {0};
	char why[160];
	x->asked = true;
	if (str_eqc(f->name, "aten::copy_") && op_args_parse(&a, f, why) == 0) {
		const struct op_tensor *t = op_arg_tensor(&a, 0);
		x->to = op_arg(&a, 0)->dtype;
		x->from = op_arg(&a, 1)->dtype;
		x->is = t && is_float(x->to) && is_float(x->from) && x->to != x->from;
		int64_t key[2] = {t ? t->elements : 0, x->to < x->from ? (int64_t)x->to << 32 | x->from : (int64_t)x->from << 32 | x->to};
		x->size = x->is ? intern_put(&m->sizes, (const char *)key, sizeof key) : 0;
	}
	op_args_release(&a);
}

static void dtype_conversions_add(const struct profile *p, struct findings *f, struct dtype_conversions_measured *m, uint32_t g, const struct dtype_conversions_conversion *x, uint32_t *cap)
{
	const struct costs *costs = shared_costs(f);
	int64_t ns = p->gpu_op.dur_ns[g];
	while (m->ways <= x->size)
		MEM_PUSH(m->way, m->ways, *cap, (struct way){{0}});
	m->way[x->size].ns[x->to < x->from] += ns;
	enum cost_direction d;
	struct buf b = {0};
	struct op_facts facts = costs_facts(costs, p, costs->of_gpu[g], &d);
	struct str dims = facts.dims;
	for (size_t i = 1; i < dims.n; i++) /* "[[512,128],[512,128],[]]": the first */
		if (dims.p[i] == ']') {
			dims = (struct str){dims.p + 1, i};
			break;
		}
	buf_printf(&b, "%s to %s of " STR_FMT, dtype_name(x->from), dtype_name(x->to), STR_ARG(dims));
	places_add(&m->places, shared_stacks(f), buf_view(&b), costs->op[g], 1, ns);
	gpu_most_add(&m->most, p, g, ns);
	buf_release(&b);
}

static void dtype_conversions_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct dtype_conversions_measured *m)
{
	const struct costs *costs = shared_costs(f);
	uint32_t cap = 0;
	m->of = NEW_ARRAY(costs->n, struct dtype_conversions_conversion);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t c = costs->of_gpu[g];
		enum cost_direction d;
		if ((w->n && !step_time_has(w, p->gpu_op.start_ns[g])) || gpu_kernel(p, g)->class == KERNEL_COMM)
			continue;
		m->device_ns += p->gpu_op.dur_ns[g];
		if (p->gpu_op.kind[g] != GPU_KERNEL || c == ROW_NONE || costs->op[g] == ROW_NONE)
			continue;
		struct dtype_conversions_conversion *x = &m->of[c];
		if (!x->asked) {
			struct op_facts facts = costs_facts(costs, p, c, &d);
			m->types |= facts.types.n > 0;
			dtype_conversions_ask(m, &facts, x);
			x->is &= d == COST_FORWARD;
		}
		if (x->is)
			dtype_conversions_add(p, f, m, g, x, &cap);
	}
	gpu_most_choose(&m->most, w);
	for (uint32_t i = 0; i < m->ways; i++)
		if (m->way[i].ns[0] && m->way[i].ns[1])
			m->both_ns += m->way[i].ns[0] + m->way[i].ns[1];
}

static void dtype_conversions_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct dtype_conversions_measured *m)
{
	double pct = 100.0 * (double)m->places.ns / (double)m->device_ns, of_steps = w->n ? step_time_pct(w, m->most.ns) : 0;
	unsigned steps = w->n ? w->n : 1;
	struct buf b = {0};
	struct finding *x = findings_add(f, of_steps >= SEVERE ? FINDING_MEDIUM : of_steps >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the device time (without collectives) goes to kernels that only convert between floating-point types, "
	                          "back and forth", pct);
	buf_printf(&b, w->n > 1 ? "%.1f conversions a step, of them " : "%.0f conversions, of them ", (double)m->places.events / steps);
	put_ns(&b, (double)m->both_ns / steps);
	buf_cstr(&b, " of sizes that are converted both ways: ");
	finding_evidence(x, f, &b, &m->places, PLACES_TOLD, w->n, true);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	finding_gains_most(x, f, w, &m->most, "all the time of these conversions");
}

static void dtype_conversions_run(const struct profile *p, struct findings *f)
{
	struct dtype_conversions_measured m = {0};
	const struct step_time *w = shared_steps(f);
	gpu_most_init(&m.most, p);
	intern_init(&m.sizes);
	dtype_conversions_measure(p, f, w, &m);
	if (m.device_ns && 100.0 * (double)m.places.ns >= TOO_MUCH * (double)m.device_ns && 100.0 * (double)m.both_ns >= BOTH_WAYS * (double)m.device_ns)
		dtype_conversions_report(p, f, w, &m);
	else if (!m.types)
		findings_missing(f, "the types of the ops' tensors were not recorded");
	places_release(&m.places);
	gpu_most_release(&m.most);
	intern_release(&m.sizes);
	mem_free(m.of);
	mem_free(m.way);
}

const struct detector detector_dtype_conversions = {
	.id = "dtype-conversions",
	.title = "Tensors are converted between types, back and forth",
	.why = "A conversion reads and writes a whole tensor and computes nothing; autocast puts one wherever an op wants another type than its input has.",
	.fix = "Keep activations in one type: cast the model once (model.bfloat16()) where its ops bear it, make masks and buffers in the type of the "
	       "activations, do not leave and enter autocast inside the model; torch.compile fuses what must stay into its neighbours.",
	.disprove = "Without the conversions the results are not good enough: an op between them needs the wider type.",
	.shares = "unfused-elementwise unfused-attention no-tensor-cores few-blocks recomputation",
	.report = "roofline",
	.where = DETECT_DEVICE_WORK,
	.run = dtype_conversions_run,
};
