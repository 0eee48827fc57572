#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "detect/parts/gpu_most.h"

/* Products in a row that count, and percent of the device time (without collectives) that they take; percent of the steps' time for the
 * severity. */
enum { FEWEST = 4, PLACES_TOLD = 3 };
static const double TOO_MUCH = 5, LITTLE = 3, SEVERE = 15;

/* Products of one kind that follow each other on a stream. */
struct many_small_gemms_row {
	const struct cost *cost;
	uint32_t op;             /* of the first (row in span) */
	uint32_t gpu;            /* its first (row in gpu_op) */
	uint32_t n;
	int64_t ns, longest_ns;
	int64_t start_ns, end_ns;
	double least_ns;         /* sum; NAN = not known */
};

struct many_small_gemms_measured {
	struct places places;
	struct gpu_most most;    /* above the least */
	int64_t device_ns;
	bool least_known;
};

/* Fewer blocks than SMs: another one would have had room beside it. */
static bool leaves_room(const struct profile *p, uint32_t g)
{
	uint32_t launch = p->gpu_op.launch[g];
	if (launch == ROW_NONE || p->launch.grid_x[launch] <= 0 || p->launch.grid_y[launch] <= 0 || p->launch.grid_z[launch] <= 0)
		return false;
	double blocks = (double)p->launch.grid_x[launch] * p->launch.grid_y[launch] * p->launch.grid_z[launch];
	uint32_t row = profile_device_row(p, p->launch.device[launch]);
	return row != ROW_NONE && blocks < p->device.sm_count[row];
}

/* A product whose result is of another size than both operands: the next one of the same sizes cannot read it. */
static bool is_apart(const struct cost *c)
{
	return c->class == OP_GEMM && c->k > 0 && c->m != c->k && c->n != c->k;
}

static bool many_small_gemms_is_same(const struct cost *a, const struct cost *b)
{
	return a->b == b->b && a->m == b->m && a->n == b->n && a->k == b->k && a->dtype == b->dtype;
}

static void close_row(const struct profile *p, struct findings *f, struct many_small_gemms_measured *m, struct many_small_gemms_row *r)
{
	if (r->n >= FEWEST) {
		struct buf b = {0};
		double least = isnan(r->least_ns) || r->least_ns < (double)r->longest_ns ? (double)r->longest_ns : r->least_ns;
		buf_printf(&b, "rows of %u " STR_FMT ", M=%lld N=%lld K=%lld %s", r->n, STR_ARG(profile_str(p, p->span.name[r->op])), (long long)r->cost->m,
		           (long long)r->cost->n, (long long)r->cost->k, dtype_short(r->cost->dtype));
		places_add(&m->places, shared_stacks(f), buf_view(&b), r->op, 1, r->ns);
		m->least_known &= !isnan(r->least_ns);
		gpu_most_add_range(&m->most, p, r->gpu, r->start_ns, r->end_ns, least < (double)r->ns ? r->ns - (int64_t)least : 0);
		buf_release(&b);
	}
	*r = (struct many_small_gemms_row){0};
}

static void many_small_gemms_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct many_small_gemms_measured *m)
{
	const struct costs *costs = shared_costs(f);
	struct bounds *bounds = bounds_new(p);
	struct many_small_gemms_row r = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t c = costs->of_gpu[g];
		bool first = !g || p->gpu_op.track[g] != p->gpu_op.track[g - 1], inside = !w->n || step_time_has(w, p->gpu_op.start_ns[g]);
		bool comm = gpu_kernel(p, g)->class == KERNEL_COMM;
		bool product = inside && p->gpu_op.kind[g] == GPU_KERNEL && c != ROW_NONE && costs->op[g] != ROW_NONE && costs->parts[g] &&
		               is_apart(&costs->cost[c]) && leaves_room(p, g);
		m->device_ns += inside && !comm ? p->gpu_op.dur_ns[g] : 0;
		if (first || !product || (r.n && !many_small_gemms_is_same(r.cost, &costs->cost[c])))
			close_row(p, f, m, &r);
		if (!product)
			continue;
		if (!r.n)
			r = (struct many_small_gemms_row){.cost = &costs->cost[c], .op = costs->op[g], .gpu = g, .start_ns = p->gpu_op.start_ns[g]};
		r.n++;
		r.end_ns = gpu_end(p, g);
		r.ns += p->gpu_op.dur_ns[g];
		r.longest_ns = p->gpu_op.dur_ns[g] > r.longest_ns ? p->gpu_op.dur_ns[g] : r.longest_ns;
		r.least_ns += bounds_least_ns(bounds, costs, g);
	}
	close_row(p, f, m, &r);
	gpu_most_choose(&m->most, w);
	bounds_free(bounds);
}

static void many_small_gemms_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct many_small_gemms_measured *m)
{
	double pct = 100.0 * (double)m->places.ns / (double)m->device_ns, of_steps = w->n ? step_time_pct(w, m->most.ns) : 0;
	struct buf b = {0};
	struct finding *x = findings_add(f, of_steps >= SEVERE ? FINDING_MEDIUM : of_steps >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the device time (without collectives) goes to rows of small products of the same sizes, one after the "
	                          "other, none of which fills the GPU", pct);
	buf_cstr(&b, w->n > 1 ? "Per step: " : "");
	places_text(&m->places, PLACES_TOLD, w->n, true, &b);
	buf_cstr(&b, ". None can read the result of the one before: it is of another size");
	x->evidence = finding_text(f, &b);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	finding_gains_most(x, f, w, &m->most, m->least_known ? "time of these rows above the longest product of each, or the FLOPs and bytes of all at the GPU's peaks" :
	             "time of these rows above the longest product of each; the GPU's peaks are not known");
}

static void many_small_gemms_run(const struct profile *p, struct findings *f)
{
	struct many_small_gemms_measured m = {.least_known = true};
	const struct step_time *w = shared_steps(f);
	gpu_most_init(&m.most, p);
	many_small_gemms_measure(p, f, w, &m);
	if (m.device_ns && 100.0 * (double)m.places.ns >= TOO_MUCH * (double)m.device_ns)
		many_small_gemms_report(p, f, w, &m);
	places_release(&m.places);
	gpu_most_release(&m.most);
}

const struct detector detector_many_small_gemms = {
	.id = "many-small-gemms",
	.title = "Small products one after the other",
	.why = "A product with fewer blocks than the GPU has SMs leaves the rest idle; several of the same sizes that do not need each other can run as one "
	       "launch, which fills it.",
	.fix = "Stack the operands and multiply them at once (torch.bmm, torch.einsum, torch.stack over a loop), or use a grouped product (torch._grouped_mm, "
	       "CUTLASS grouped GEMM) for experts of unequal sizes.",
	.disprove = "One batched product of all of them takes as long, or something between the calls needs a result of the one before.",
	.shares = "few-blocks launch-bound no-tensor-cores tf32-off unaligned-gemm",
	.report = "gemm",
	.where = DETECT_DEVICE_WORK,
	.run = many_small_gemms_run,
};
