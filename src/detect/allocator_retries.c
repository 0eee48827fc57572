#include "analysis/names/names.h"
#include "base/search.h"
#include "detect/parts/shared.h"

/* Percent of the steps' time without device work in calls that allocate and free; share of the steps that must have both kinds of call. */
static const double TOO_MUCH = 1, SEVERE = 10, MOST_STEPS = 0.5;
enum { PLACES_TOLD = 3, FEWEST_STEPS = 2 };

enum { NEITHER, ALLOCATES, FREES };

static uint8_t allocator_retries_kind_of(struct str name)
{
	static const char *const allocate[] = {"cudaMalloc", "hipMalloc", "cuMemCreate", "hipMemCreate"};
	static const char *const release[] = {"cudaFree", "hipFree", "cuMemRelease", "hipMemRelease", "cuMemUnmap", "hipMemUnmap"};
	for (size_t i = 0; i < sizeof allocate / sizeof *allocate; i++)
		if (str_eqc(name, allocate[i]))
			return ALLOCATES;
	for (size_t i = 0; i < sizeof release / sizeof *release; i++)
		if (str_eqc(name, release[i]))
			return FREES;
	return NEITHER;
}

struct allocator_retries_measured {
	struct places places;
	struct intervals calls;
	uint64_t allocations, frees;
	unsigned both;           /* steps with frees and allocations */
	int64_t unused_bytes;    /* most that the allocator held beyond what was in use when it freed; -1 = not recorded */
};

/* How much a GPU's allocator held beyond what was in use, by the last event before this moment; -1 = not recorded. */
static int64_t unused_at(const struct profile *p, int64_t time)
{
	uint32_t a = FIRST_WHERE(i, 0, p->memory.rows.n, p->memory.time_ns[i] > time);
	enum { LOOK_BACK = 64, CUDA = 1 };
	for (uint32_t i = a; i-- > 0 && a - i <= LOOK_BACK;)
		if (p->memory.device_type[i] == CUDA && p->memory.total_reserved[i] != ID_NONE && p->memory.total_allocated[i] != ID_NONE)
			return p->memory.total_reserved[i] - p->memory.total_allocated[i];
	return -1;
}

static void allocator_retries_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct allocator_retries_measured *m)
{
	struct name_memo kinds = name_memo_new(p, allocator_retries_kind_of);
	uint8_t *of_step = NEW_ARRAY(p->steps->n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t name = p->span.name[i];
		if (p->span.kind[i] != SPAN_CALL)
			continue;
		uint8_t kind = name_memo_of(&kinds, name);
		uint32_t step = kind == NEITHER ? ROW_NONE : shared_step_at(p->steps, p->span.start_ns[i]);
		if (step == ROW_NONE)
			continue;
		bool frees = kind == FREES;
		int64_t unused = frees ? unused_at(p, p->span.start_ns[i]) : -1;
		of_step[step] |= frees ? 1 : 2;
		m->frees += frees;
		m->allocations += !frees;
		m->unused_bytes = unused > m->unused_bytes ? unused : m->unused_bytes;
		intervals_add(&m->calls, p->span.start_ns[i], span_end(p, i));
		places_add(&m->places, shared_stacks(f), profile_str(p, name), i, 1, step_time_idle_within(w, p->span.start_ns[i], span_end(p, i)));
	}
	for (uint32_t s = 0; s < p->steps->n; s++)
		m->both += of_step[s] == 3;
	intervals_normalise(&m->calls);
	intervals_intersect(&m->calls, &w->idle, &m->calls);
	name_memo_release(&kinds);
	mem_free(of_step);
}

static void allocator_retries_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct allocator_retries_measured *m, int64_t idle_ns)
{
	double pct = step_time_pct(w, idle_ns);
	struct buf b = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	put_lead(w, &b);
	buf_printf(&b, " has no work in %.1f %% of the %s while the host frees device memory and allocates it again, as it does in %u of %u steps", pct, w->time, m->both, w->n);
	x->problem = finding_text(f, &b);
	b = (struct buf){0};
	buf_cstr(&b, "Per step ");
	put_mean(&b, (double)m->allocations / w->n);
	buf_printf(&b, " call%s that allocate%s and ", m->allocations == w->n ? "" : "s", m->allocations == w->n ? "s" : "");
	put_mean(&b, (double)m->frees / w->n);
	buf_printf(&b, " that free%s: ", m->frees == w->n ? "s" : "");
	places_text(&m->places, PLACES_TOLD, w->n, true, &b);
	if (m->unused_bytes > 0)
		buf_printf(&b, "; when it freed, up to %.2f GiB were held that no tensor used, in pieces that did not fit", (double)m->unused_bytes / (1 << 30));
	x->evidence = finding_text(f, &b);
	finding_looks_at_most(x, p, &m->places);
	finding_covers(x, &m->calls);
	finding_rests_on(x, w, m->allocations + m->frees, idle_ns);
	finding_gain(x, w, idle_ns, "time without device work while the host is in these calls");
}

static void allocator_retries_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	if (w->n < FEWEST_STEPS || w->n != p->steps->n) /* a single step may be the first one, which fills the cache */
		return;
	struct allocator_retries_measured m = {.unused_bytes = -1};
	allocator_retries_measure(p, f, w, &m);
	int64_t idle_ns = intervals_length(&m.calls);
	if (m.both >= FEWEST_STEPS && (double)m.both >= MOST_STEPS * w->n && step_time_pct(w, idle_ns) >= TOO_MUCH)
		allocator_retries_report(p, f, w, &m, idle_ns);
	intervals_release(&m.calls);
	places_release(&m.places);
}

const struct detector detector_allocator_retries = {
	.id = "allocator-retries",
	.title = "Device memory is freed and allocated in every step",
	.why = "Where no piece of its cache fits, PyTorch's allocator waits for the GPU, gives memory back and asks the driver for a new piece: each such call "
	       "stops the host, and cudaFree the GPU, too.",
	.fix = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, keep shapes the same (pad to a few lengths), leave some memory free (a smaller "
	       "batch), and call no empty_cache() in the loop. torch.cuda.memory_stats()[\"num_alloc_retries\"] counts them.",
	.disprove = "num_alloc_retries does not grow from step to step: then the program itself frees memory, by empty_cache() or an extension.",
	.shares = "gpu-starvation synchronising-calls launch-bound low-gpu-utilization",
	.report = "api",
	.where = DETECT_WINDOW,
	.run = allocator_retries_run,
};
