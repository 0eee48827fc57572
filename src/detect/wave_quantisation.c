/* Products whose last blocks run on a part of the GPU. An SM holds so many blocks of a kernel at once (gpu/occupancy.h); as many as all SMs hold are a
 * wave. A grid of 1.2 waves takes the time of two where blocks take the same time each: NVIDIA, "Matrix Multiplication Background User's Guide",
 * section "Wave Quantization". With b blocks on s SMs that hold r each, and w = b / (s r) waves, SMs are without blocks
 *   at most   1 - w / ceil(w)               of the time: a block takes as long, whether others share its SM or not
 *   at least  1 - (b / s) / ceil(b / s)     blocks of one SM share its units evenly, and the SM with most blocks ends last
 * Both are the same where an SM holds one block. What is told goes by the second, what is gained at most by the first.
 *
 * Only products, convolutions and attention, but no products with a vector: blocks that wait for memory share the bandwidth of the whole GPU, and those
 * that are left are the faster for it. Attention counts where its op says that no mask is causal, since blocks under one take different times. Persistent
 * kernels have at most one wave, and stream-K ones divide their last wave themselves.
 * Grids of fewer blocks than SMs are few-blocks' case; between that and one wave all blocks run at once, and neither counts them. */
#include "analysis/names/names.h"
#include "analysis/time/bounds.h"
#include "base/search.h"
#include "detect/parts/gpu_most.h"
#include "detect/parts/kernel_grids.h"
#include "gpu/occupancy.h"

#include <assert.h>
#include <math.h>

static const double
	LEAST_OF_KERNEL = 0.1, /* share of a kernel's time: less is what every grid loses */
	TOO_MUCH = 3,          /* percent of the device time (without collectives) that is lost at least: less is not told */
	LEAST = 1,             /* percent of the steps' time that can go: less is not told */
	SEVERE = 15;           /* percent of each, from which it is medium */
enum { PLACES_TOLD = 3, GRIDS_MOST = 64 };

struct wave_quantisation_measured {
	struct places places;
	struct gpu_most most;    /* what they lose at most */
	struct bounds *bounds;
	int64_t device_ns;
	double lost_ns;          /* at least */
	struct grid { double blocks, wave; int64_t ns; } grid[GRIDS_MOST]; /* the first ones, and how long their kernels took */
	unsigned grids;
	bool no_sms, no_limits, no_launch;
};

/* Persistent and stream-K kernels, and small helpers of products (gemv, split-K sums), which have no last wave to lose. */
static bool has_no_waves(struct str name)
{
	static const char *const words[] = {"persistent", "streamk", "stream_k", "gemv", "splitkreduce", "combine", "dot_kernel"};
	return ANY_WHERE(i, 0, sizeof words / sizeof *words, str_has_nocase(name, str_from(words[i])));
}

/* Blocks of attention under a causal mask take times from one tile to a whole row of them. */
static bool blocks_alike(const struct profile *p, struct findings *f, uint32_t g)
{
	if (gpu_kernel(p, g)->class != KERNEL_ATTENTION)
		return true;
	const struct costs *costs = shared_costs(f);
	uint32_t of = costs->of_gpu[g];
	return of != ROW_NONE && costs->cost[of].flops != COST_UNKNOWN && !costs->cost[of].causal;
}

static double above_whole(double n) { return 1 - n / ceil(n); }

/* How many blocks of a kernel that has waves run at once, where that is fewer than it has; else 0. */
static double wave_of(struct wave_quantisation_measured *m, const struct profile *p, uint32_t gpu)
{
	struct occupancy o;
	uint32_t launch = p->gpu_op.launch[gpu];
	int sms = launch_sms(p, launch);
	enum occupancy_known known = occupancy_of_launch(p, launch, &o);
	double blocks = launch_blocks(p, launch), wave = known == OCCUPANCY_KNOWN && sms > 0 ? (double)sms * o.blocks : 0;
	if ((wave > 0 && blocks > 0 && blocks <= wave) || has_no_waves(profile_str(p, p->gpu_op.name[gpu])))
		return 0;
	m->no_sms |= sms <= 0;
	m->no_limits |= known == OCCUPANCY_NO_LIMITS;
	m->no_launch |= known == OCCUPANCY_NO_LAUNCH || blocks <= 0;
	return blocks > 0 ? wave : 0;
}

static void add_grid(struct wave_quantisation_measured *m, double blocks, double wave, int64_t ns)
{
	unsigned i = 0;
	while (i < m->grids && (m->grid[i].blocks != blocks || m->grid[i].wave != wave))
		i++;
	if (i == GRIDS_MOST)
		return;
	if (i == m->grids)
		m->grid[m->grids++] = (struct grid){blocks, wave, 0};
	m->grid[i].ns += ns;
}

/* What would make whole waves of the grid with most time. */
static void wave_quantisation_put_whole(const struct wave_quantisation_measured *m, struct buf *b)
{
	const struct grid *g = m->grid;
	for (unsigned i = 1; i < m->grids; i++)
		g = m->grid[i].ns > g->ns ? &m->grid[i] : g;
	assert(m->grids > 0);
	double fewer = floor(g->blocks / g->wave) * g->wave, more = fewer + g->wave;
	buf_printf(b, ". %.0f blocks would be whole waves if they were %.0f (%.2f times as many) or %.0f (%.2f times as many)", g->blocks, fewer, fewer / g->blocks,
	           more, more / g->blocks);
}

static void wave_quantisation_add(struct wave_quantisation_measured *m, const struct profile *p, struct findings *f, uint32_t g, double wave, struct buf *text)
{
	uint32_t launch = p->gpu_op.launch[g];
	int64_t ns = p->gpu_op.dur_ns[g];
	double blocks = launch_blocks(p, launch), lost = above_whole(blocks / launch_sms(p, launch)), most = above_whole(blocks / wave);
	double least_ns = bounds_least_ns(m->bounds, shared_costs(f), g), above = least_ns > 0 ? 1 - least_ns / (double)ns : 1;
	lost = lost < above ? lost : above;
	most = most < above ? most : above;
	if (lost < LEAST_OF_KERNEL)
		return;
	struct str kernel = kernel_function_name(profile_str(p, p->gpu_op.name[g]));
	buf_clear(text);
	buf_printf(text, "%.0f blocks, %.2f waves of %.0f: " STR_FMT, blocks, blocks / wave, wave, STR_ARG(kernel));
	places_add(&m->places, shared_stacks(f), buf_view(text), p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g], 1, ns);
	add_grid(m, blocks, wave, ns);
	m->lost_ns += lost * (double)ns;
	gpu_most_add(&m->most, p, g, (int64_t)(most * (double)ns));
}

static void wave_quantisation_measure(struct wave_quantisation_measured *m, const struct profile *p, struct findings *f, const struct step_time *w)
{
	const uint8_t *beside = shared_beside(f);
	struct buf text = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t launch = p->gpu_op.launch[g], name = p->gpu_op.name[g];
		if ((w->n && !step_time_has(w, p->gpu_op.start_ns[g])) || kernel_waits(p, name))
			continue;
		m->device_ns += p->gpu_op.dur_ns[g];
		if (p->gpu_op.kind[g] != GPU_KERNEL || launch == ROW_NONE || p->gpu_op.dur_ns[g] < KERNEL_SHORTEST_NS || beside[g] ||
		    !kernel_multiplies(p, f, g))
			continue;
		double wave = wave_of(m, p, g);
		if (wave > 0 && blocks_alike(p, f, g))
			wave_quantisation_add(m, p, f, g, wave, &text);
	}
	gpu_most_choose(&m->most, w);
	buf_release(&text);
}

static void wave_quantisation_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct wave_quantisation_measured *m)
{
	double pct = 100.0 * m->lost_ns / (double)m->device_ns, of_steps = w->n ? step_time_pct(w, m->most.ns) : 0;
	struct buf b = {0};
	struct finding *x = findings_add(f, pct >= SEVERE && of_steps >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The last blocks of products run on a part of the GPU, which costs %.1f %% of the device time (without "
	                          "collectives), if all blocks take equally long", pct);
	buf_cstr(&b, w->n > 1 ? "Per step, alone on the GPU: " : "Alone on the GPU: ");
	places_text(&m->places, PLACES_TOLD, w->n, true, &b);
	wave_quantisation_put_whole(m, &b);
	x->evidence = finding_text(f, &b);
	finding_looks_at_most(x, p, &m->places);
	finding_share(x, m->places.events, m->places.ns, pct);
	finding_gains_most(x, f, w, &m->most, "time of these kernels x (1 - waves / waves rounded up), and no more than what they take above the least at the GPU's peaks");
}

static void wave_quantisation_run(const struct profile *p, struct findings *f)
{
	struct wave_quantisation_measured m = {0};
	const struct step_time *w = shared_steps(f);
	m.bounds = bounds_new(p);
	gpu_most_init(&m.most, p);
	wave_quantisation_measure(&m, p, f, w);
	bool counts = !w->n || step_time_pct(w, m.most.ns) >= LEAST;
	if (counts && m.device_ns && 100.0 * m.lost_ns >= TOO_MUCH * (double)m.device_ns)
		wave_quantisation_report(p, f, w, &m);
	else if (!m.places.n && m.no_limits)
		findings_missing(f, "how many blocks an SM of these GPUs holds is not known");
	else if (!m.places.n && m.no_sms)
		findings_missing(f, "the input does not say how many SMs the GPUs have");
	else if (!m.places.n && m.no_launch)
		findings_missing(f, "the input does not state grid, registers and shared memory of products");
	bounds_free(m.bounds);
	places_release(&m.places);
	gpu_most_release(&m.most);
}

const struct detector detector_wave_quantisation = {
	.id = "wave-quantisation",
	.title = "Products whose last blocks run on a part of the GPU",
	.why = "The GPU runs as many blocks at once as its SMs hold, a wave; where the last wave is small, most SMs wait for it.",
	.fix = "Choose sizes whose blocks make whole waves: a batch, a number of tokens or a hidden size a little smaller, so that the last wave goes, or larger, so that it "
	       "is full; or let torch.compile(mode=\"max-autotune\") choose other tiles or split-K.",
	.disprove = "With the smaller size the time falls only as much as the work does: blocks take different times, or the last ones run faster for having "
	            "clocks, cache or memory bandwidth to themselves.",
	.shares = "no-tensor-cores tf32-off unfused-attention unaligned-gemm recomputation cudnn-benchmark",
	.report = "kernels",
	.where = DETECT_DEVICE_TIMES,
	.run = wave_quantisation_run,
};
