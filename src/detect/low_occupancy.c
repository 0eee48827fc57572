/* Kernels that wait for memory, of which the SMs hold few warps. An SM hides the time that memory takes by work of other warps; the less each warp has in
 * flight, the more warps it needs (CUDA C++ Best Practices Guide, "Occupancy"). Few warps are not a fault by themselves: kernels of products, convolutions
 * and attention hold their tiles in registers and shared memory, which makes them fast. So a kernel counts if
 *   - it is neither a product, by its name or its op, nor a sort;
 *   - it is alone on the GPU, long enough, and has blocks for at least one whole wave (few-blocks counts kernels of fewer blocks than SMs; neither detector
 *     counts those in between);
 *   - it has at most LOW % occupancy (gpu/occupancy.h) and takes at least twice the least time of its bytes; where that time is not known, it has at most
 *     VERY_LOW %, and moves element by element, or has an unknown name and shares less memory than a tile takes.
 * By Little's law a kernel that waits for memory becomes faster in proportion to its warps at best: the gain is at most
 * time x (1 - occupancy), and no more than the time above the least. */
#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "detect/parts/gpu_most.h"
#include "detect/parts/kernel_grids.h"
#include "gpu/occupancy.h"

static const double
	LOW = 35,        /* percent of occupancy: up to 5 of the 16 warps that each scheduler of most SMs holds */
	VERY_LOW = 25,   /* the same: up to 4 */
	ABOVE_LEAST = 2, /* times the least time */
	TOO_MUCH = 5,    /* percent of the device time (without collectives) that can go: less is not told */
	LEAST = 1,       /* percent of the steps' time that can go: less is not told */
	LITTLE = 3,      /* percent of the steps' time that can go, from which it is low */
	SEVERE = 15;     /* the same, from which it is medium if the bytes of a kernel are known */
/* Shared memory of a block: what a tile of a product takes at least. */
enum { TILE_BYTES = 4096, PLACES_TOLD = 3 };

struct low_occupancy_measured {
	struct places places;
	struct gpu_most most;
	struct bounds *bounds;
	int64_t device_ns, lost_ns;
	int64_t by_ns[3];        /* time of the kernels that registers, shared memory or the block size limit */
	bool sure;               /* the bytes of at least one kernel are known, and it takes longer than they do */
	bool no_sms, no_limits, no_launch;
};
enum { BY_REGISTERS, BY_SHARED, BY_BLOCK };

static int limit_of(const struct occupancy *o)
{
	return o->by & OCCUPANCY_BY_REGISTERS ? BY_REGISTERS : o->by & OCCUPANCY_BY_SHARED ? BY_SHARED : BY_BLOCK;
}

static void put_limit(const struct profile *p, uint32_t launch, const struct occupancy *o, struct buf *b)
{
	const struct launches *l = &p->launch;
	int threads = l->block_x[launch] * l->block_y[launch] * l->block_z[launch];
	const char *sep = "";
	if (o->by & OCCUPANCY_BY_REGISTERS) {
		buf_printf(b, "%d registers per thread", l->registers[launch]);
		sep = " and ";
	}
	if (o->by & OCCUPANCY_BY_SHARED) {
		buf_printf(b, "%s%.1f KiB of shared memory per block", sep, l->shared_bytes[launch] / 1024.0);
		sep = " and ";
	}
	if (o->by & (OCCUPANCY_BY_WARPS | OCCUPANCY_BY_BLOCKS))
		buf_printf(b, "%sblocks of %d threads", sep, threads);
}

/* Where the least time is not known: whether a kernel is one of those that need many warps. Norms, softmaxes, reductions, sorts and what Triton makes may
 * keep their rows in registers, and have much in flight for that. */
static bool needs_warps(const struct profile *p, enum kernel_class class, uint32_t g)
{
	uint32_t op = p->gpu_op.op[g];
	if (class != KERNEL_UNKNOWN && class != KERNEL_OTHER)
		return class == KERNEL_ELEMENTWISE || class == KERNEL_COPY || class == KERNEL_EMBEDDING || class == KERNEL_POOL || class == KERNEL_RANDOM;
	return p->launch.shared_bytes[p->gpu_op.launch[g]] < TILE_BYTES && (op == ROW_NONE || !name_is(p, p->span.name[op], NAME_TC_ELIGIBLE));
}

/* Whether a kernel with so few warps is likely to wait for memory. */
static bool waits_for_memory(const struct profile *p, struct findings *f, uint32_t g, double pct, double least_ns)
{
	enum kernel_class class = gpu_kernel(p, g)->class;
	if (class == KERNEL_GRAPH || class == KERNEL_SORT || kernel_multiplies(p, f, g))
		return false;
	return least_ns > 0 ? (double)p->gpu_op.dur_ns[g] >= ABOVE_LEAST * least_ns : pct <= VERY_LOW && needs_warps(p, class, g);
}

static void low_occupancy_add(struct low_occupancy_measured *m, const struct profile *p, struct findings *f, uint32_t g, struct buf *text)
{
	uint32_t launch = p->gpu_op.launch[g];
	int64_t ns = p->gpu_op.dur_ns[g];
	struct occupancy o;
	enum occupancy_known known = occupancy_of_launch(p, launch, &o);
	int sms = launch_sms(p, launch);
	m->no_sms |= sms <= 0;
	m->no_limits |= known == OCCUPANCY_NO_LIMITS;
	m->no_launch |= known == OCCUPANCY_NO_LAUNCH || launch_blocks(p, launch) <= 0;
	if (known != OCCUPANCY_KNOWN || sms <= 0 || launch_blocks(p, launch) < (double)sms * o.blocks || o.pct > LOW)
		return;
	double least_ns = bounds_least_ns(m->bounds, shared_costs(f), g);
	if (!waits_for_memory(p, f, g, o.pct, least_ns))
		return;
	double lost = (double)ns * (1 - o.pct / 100), above = least_ns > 0 ? (double)ns - least_ns : (double)ns;
	int64_t lost_ns = (int64_t)(lost < above ? lost : above);
	struct str kernel = kernel_function_name(profile_str(p, p->gpu_op.name[g]));
	buf_clear(text);
	buf_printf(text, "%d of %d warps, by ", o.warps, o.most_warps);
	put_limit(p, launch, &o, text);
	buf_printf(text, ": " STR_FMT, STR_ARG(kernel));
	places_add(&m->places, shared_stacks(f), buf_view(text), p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g], 1, ns);
	m->by_ns[limit_of(&o)] += ns;
	m->lost_ns += lost_ns;
	m->sure |= least_ns > 0;
	gpu_most_add(&m->most, p, g, lost_ns);
}

static void low_occupancy_measure(struct low_occupancy_measured *m, const struct profile *p, struct findings *f, const struct step_time *w)
{
	const uint8_t *beside = shared_beside(f);
	struct buf text = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if ((w->n && !step_time_has(w, p->gpu_op.start_ns[g])) || kernel_waits(p, p->gpu_op.name[g]))
			continue;
		m->device_ns += p->gpu_op.dur_ns[g];
		if (p->gpu_op.kind[g] == GPU_KERNEL && p->gpu_op.launch[g] != ROW_NONE && p->gpu_op.dur_ns[g] >= KERNEL_SHORTEST_NS && !beside[g])
			low_occupancy_add(m, p, f, g, &text);
	}
	gpu_most_choose(&m->most, w);
	buf_release(&text);
}

static const char *const remedies[] = {
	[BY_REGISTERS] = "Let each thread do less, or bound its registers (__launch_bounds__, -maxrregcount; Triton: a smaller block of elements or more num_warps).",
	[BY_SHARED] = "Give each block less shared memory: smaller tiles, fewer stages, 16-bit types; or more threads that share it.",
	[BY_BLOCK] = ("Launch blocks of 128 to 256 threads: an SM runs out of block slots before small blocks fill it, and large ones leave too few warps free for "
	             "another block."),
};

static void low_occupancy_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct low_occupancy_measured *m)
{
	static const char *const names[] = {"their registers", "their shared memory", "the size of their blocks"};
	double pct = 100.0 * (double)m->places.ns / (double)m->device_ns, of_steps = w->n ? step_time_pct(w, m->most.ns) : 0;
	int by = BY_REGISTERS;
	for (int i = BY_SHARED; i <= BY_BLOCK; i++)
		by = m->by_ns[i] > m->by_ns[by] ? i : by;
	struct buf b = {0};
	struct finding *x = findings_add(f, m->sure && of_steps >= SEVERE ? FINDING_MEDIUM : of_steps >= LITTLE ? FINDING_LOW : FINDING_INFO);
	x->problem = arena_printf(&f->arena, "%.1f %% of the device time (without collectives) goes to kernels (no products) of which an SM holds few warps at once, %sbecause of %s",
	                          pct, m->by_ns[by] == m->places.ns ? "" : "mostly ", names[by]);
	buf_cstr(&b, w->n > 1 ? "Per step, alone on the GPU: " : "Alone on the GPU: ");
	finding_evidence(x, f, &b, &m->places, PLACES_TOLD, w->n, true);
	x->advice = str_from(remedies[by]);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	finding_gains_most(x, f, w, &m->most, "time of these kernels x (1 - occupancy), as if they became faster in proportion to their warps, and no more than what they take "
	                   "above the least time of their bytes, where that is known");
}

static void low_occupancy_run(const struct profile *p, struct findings *f)
{
	struct low_occupancy_measured m = {0};
	const struct step_time *w = shared_steps(f);
	m.bounds = bounds_new(p);
	gpu_most_init(&m.most, p);
	low_occupancy_measure(&m, p, f, w);
	bool counts = !w->n || step_time_pct(w, m.most.ns) >= LEAST;
	if (counts && m.device_ns && 100.0 * (double)m.lost_ns >= TOO_MUCH * (double)m.device_ns)
		low_occupancy_report(p, f, w, &m);
	else if (!m.places.n && m.no_limits)
		findings_missing(f, "how many warps an SM of these GPUs holds is not known");
	else if (!m.places.n && m.no_sms)
		findings_missing(f, "the input does not say how many SMs the GPUs have");
	else if (!m.places.n && m.no_launch)
		findings_missing(f, "the input does not state grid, block, registers and shared memory of kernels");
	bounds_free(m.bounds);
	places_release(&m.places);
	gpu_most_release(&m.most);
}

const struct detector detector_low_occupancy = {
	.id = "low-occupancy",
	.title = "Kernels of which the SMs hold few warps",
	.why = "While a warp waits for memory, an SM runs others. Where registers, shared memory or the size of the blocks leave room for few warps, it often has none to run.",
	.fix = "Use fewer registers per thread, less shared memory per block, or blocks of 128 to 256 threads; the finding says which of them is the limit.",
	.disprove = "With more warps on each SM the kernel takes just as long: its threads already had enough loads in flight, or what no longer fits registers now "
	            "goes through memory.",
	.shares = "unfused-elementwise unfused-attention dtype-conversions recomputation unfused-optimizer conv-bias zeroed-gradients",
	.report = "kernels",
	.where = DETECT_DEVICE_TIMES,
	.run = low_occupancy_run,
};
