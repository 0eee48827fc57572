#include "analysis/names/names.h"
#include "detect/parts/shared.h"

/* Percent of the steps' time. */
static const double TOO_MUCH = 2, SEVERE = 10;
/* The host takes some 100 us to launch a collective; a longer launch waits for something else. Fewer collectives a step are single events, not a pace. */
static const int64_t LAUNCH_LONGEST_NS = 500 * 1000;
enum { LAUNCHES_FEWEST = 20, PLACES_TOLD = 3 };

/* A host range of a collective is the call that launches it on a device, or the collective itself, done by the host. */
enum { NO_COLLECTIVE, LAUNCHES, DOES };

static uint8_t classify(const struct profile *p, uint32_t name)
{
	return name_is(p, name, NAME_COMM_BY_HOST) ? DOES : name_is(p, name, NAME_COMM) ? LAUNCHES : NO_COLLECTIVE;
}

/* Ranges of collectives on the host, and when devices wait meanwhile. */
struct host_collectives_work {
	const struct profile *p;
	struct intervals *waits;    /* by track: when devices wait for a launch by it */
	struct intervals *launches; /* by track: its outermost ranges that launch collectives */
	struct intervals all, does; /* of all tracks: the waits, the ranges of collectives that the host does */
	struct places places;
	uint64_t launched;          /* of the places' events, launches */
	int64_t done_ns;            /* of the places' time, in collectives that the host does */
};

static void find_waits(struct host_collectives_work *x, const struct gaps *g, uint32_t main_track)
{
	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t track = g->v[i].call != ROW_NONE ? x->p->span.track[g->v[i].call] : main_track;
		int64_t until = gap_host_until(&g->v[i], x->p);
		if (track != ROW_NONE)
			intervals_add(&x->waits[track], g->v[i].start_ns, until);
		intervals_add(&x->all, g->v[i].start_ns, until);
	}
	for (uint32_t i = 0; i < x->p->track.rows.n; i++)
		intervals_normalise(&x->waits[i]);
	intervals_normalise(&x->all);
}

/* A range that does the collective costs on any thread; a range that launches it, only on the thread that devices wait for. */
static void look_at(struct host_collectives_work *x, struct findings *f, struct finding *where, uint32_t span, uint8_t kind)
{
	const struct spans *s = &x->p->span;
	int64_t start = s->start_ns[span], end = span_end(x->p, span);
	if (kind == LAUNCHES && end - start > LAUNCH_LONGEST_NS)
		return;
	int64_t ns = intervals_length_within(kind == DOES ? &x->all : &x->waits[s->track[span]], start, end);
	intervals_add(kind == DOES ? &x->does : &x->launches[s->track[span]], start, end);
	if (!ns)
		return;
	places_add(&x->places, shared_stacks(f), profile_str(x->p, s->name[span]), span, 1, ns);
	finding_looks_at(where, start, end);
	x->launched += kind == LAUNCHES;
	x->done_ns += kind == DOES ? ns : 0;
}

/* Only outermost ranges count: c10d's op holds record_param_comms, which holds the backend's range. */
static void host_collectives_find_ranges(struct host_collectives_work *x, struct findings *f, struct finding *where)
{
	const struct spans *s = &x->p->span;
	uint8_t *inside = NEW_ARRAY(s->rows.n, uint8_t);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint8_t kind = s->kind[i] == SPAN_GPU_USER ? NO_COLLECTIVE : classify(x->p, s->name[i]); /* its projection onto a device is not a range of the host */
		bool outer = s->parent[i] == ROW_NONE || !inside[s->parent[i]];
		inside[i] = !outer || kind;
		if (kind && outer)
			look_at(x, f, where, i, kind);
	}
	mem_free(inside);
}

static void add_common(struct intervals *ranges, const struct intervals *waits, struct intervals *sum)
{
	intervals_normalise(ranges);
	intervals_intersect(ranges, waits, ranges);
	for (size_t i = 0; i < ranges->n; i++)
		intervals_add(sum, ranges->v[i].start, ranges->v[i].end);
	intervals_release(ranges);
}

/* Adds the waits in these ranges to *sum; a wait in two ranges counts once. */
static void host_collectives_cost(struct host_collectives_work *x, struct intervals *sum)
{
	for (uint32_t i = 0; i < x->p->track.rows.n; i++) {
		add_common(&x->launches[i], &x->waits[i], sum);
		intervals_release(&x->waits[i]);
	}
	add_common(&x->does, &x->all, sum);
	intervals_release(&x->all);
	intervals_normalise(sum);
}

static void host_collectives_report(struct findings *f, const struct step_time *w, const struct host_collectives_work *x, const struct finding *where, const struct intervals *cost)
{
	bool done = 2 * x->done_ns > x->places.ns;
	int64_t ns = intervals_length(cost);
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *y = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	y->problem = arena_printf(&f->arena, done ? "The host does collectives itself, and the GPU has no work meanwhile: %.1f %% of the %s"
	                                          : "The host launches collectives, and the GPU has no work meanwhile: %.1f %% of the %s", pct, w->time);
	buf_printf(&evidence, "%s, without device work: ", w->per);
	finding_evidence(y, f, &evidence, &x->places, PLACES_TOLD, w->n, true);
	if (done)
		y->advice = STR("Use the NCCL backend (RCCL on AMD) for tensors on GPUs, and let what the host has to exchange run beside device work (async_op=True).");
	finding_looks_at(y, where->from_ns, where->to_ns);
	finding_measured(y, w, x->places.events, ns, cost, "the time without device work while the host is in these ranges");
}

static void host_collectives_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct host_collectives_work x = {.p = p};
	struct finding where = {0};
	x.waits = NEW_ARRAY(p->track.rows.n, struct intervals);
	x.launches = NEW_ARRAY(p->track.rows.n, struct intervals);
	find_waits(&x, shared_gaps(f), w->main_track);
	host_collectives_find_ranges(&x, f, &where);
	struct intervals cost = {0};
	host_collectives_cost(&x, &cost);
	if (step_time_pct(w, intervals_length(&cost)) >= TOO_MUCH && (x.done_ns || x.launched >= (uint64_t)LAUNCHES_FEWEST * w->n))
		host_collectives_report(f, w, &x, &where, &cost);
	intervals_release(&cost);
	places_release(&x.places);
	mem_free(x.waits);
	mem_free(x.launches);
}

const struct detector detector_host_collectives = {
	.id = "host-collectives",
	.title = "Collectives keep the host busy while the GPU waits",
	.why = "Each collective costs the host some tens of microseconds to launch; one that the host does itself (gloo) costs all its time. The GPU has nothing to "
	       "do until the host is done.",
	.fix = "Launch fewer collectives: join small messages (buckets of DistributedDataParallel, all_reduce_coalesced), and capture the step in a CUDA graph where "
	       "its shapes are fixed.",
	.disprove = "The step takes as long with these collectives taken out: then other work of the host sets the pace.",
	.shares = "gpu-starvation launch-bound",
	.where = DETECT_WINDOW,
	.run = host_collectives_run,
};
