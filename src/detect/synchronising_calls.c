#include "analysis/names/names.h"
#include "base/search.h"
#include "detect/parts/shared.h"

/* Percent of the steps' time that the GPU stands idle after such calls. */
static const double TOO_MUCH = 2, SEVERE = 10;
enum { PLACES_TOLD = 3 };

/* The index of the gap that the device is in when a call returns; ROW_NONE = the device has work. */
static uint32_t gap_at(const struct gaps *g, int64_t t)
{
	uint32_t a = FIRST_WHERE(i, 0, g->n, g->v[i].end_ns > t);
	return a < g->n && g->v[a].start_ns <= t ? a : ROW_NONE;
}

/* Calls that wait: by name, and copies to pageable host memory, which wait whatever they are called. */
static uint8_t *synchronising_calls_find_calls(const struct profile *p)
{
	uint8_t *waits = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum host_kind k = p->span.kind[i] == SPAN_CALL ? name_host_kind(p, p->span.name[i]) : HOST_PLAIN;
		waits[i] = k == HOST_SYNC || k == HOST_SYNC_COPY;
	}
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.kind[g] == GPU_MEMCPY && p->gpu_op.call[g] != ROW_NONE &&
		    str_ends(profile_str(p, p->gpu_op.name[g]), STR("Device -> Pageable)")))
			waits[p->gpu_op.call[g]] = 1;
	return waits;
}

struct synchronising_calls_waits {
	struct places places;
	uint64_t calls;
	struct intervals when; /* the idle time that the calls cost */
	int64_t wait_ns;       /* how long the host waited in the calls that emptied the device */
	int64_t most_ns, most_from_ns, most_to_ns; /* the call with most idle time behind it: from the call to where the device works again */
};

/* What call i costs: the device stands idle from its end to the next launch, which without the wait would have been called as much earlier
 * as the call lasted. It counts only if the same thread launches what ends the gap, after the call. lost[]: of each gap, what other
 * calls already cost. */
static int64_t cost_of_call(const struct profile *p, const struct gaps *g, uint32_t i, int64_t *lost)
{
	int64_t end = span_end(p, i);
	uint32_t k = gap_at(g, end);
	if (k == ROW_NONE || g->v[k].call == ROW_NONE || p->span.track[g->v[k].call] != p->span.track[i] || p->span.start_ns[g->v[k].call] < end)
		return 0;
	int64_t after = g->v[k].end_ns - end, room = g->v[k].end_ns - g->v[k].start_ns - lost[k];
	int64_t ns = p->span.dur_ns[i] < after ? p->span.dur_ns[i] : after;
	ns = ns < room ? ns : room;
	lost[k] += ns;
	return ns;
}

static void note_most(struct synchronising_calls_waits *m, const struct profile *p, const struct gaps *g, uint32_t i, int64_t ns)
{
	if (ns <= m->most_ns)
		return;
	m->most_ns = ns;
	m->most_from_ns = p->span.start_ns[i];
	m->most_to_ns = g->v[gap_at(g, span_end(p, i))].end_ns;
}

/* The innermost op around the call, else the op that the input names, else the call itself. */
static uint32_t synchronising_calls_around_call(const struct profile *p, uint32_t call)
{
	uint32_t at = p->span.parent[call];
	while (at != ROW_NONE && p->span.kind[at] != SPAN_OP)
		at = p->span.parent[at];
	if (at == ROW_NONE)
		at = p->span.op[call];
	return at != ROW_NONE ? at : call;
}

static void synchronising_calls_measure(const struct profile *p, struct findings *f, const struct gaps *g, struct synchronising_calls_waits *m)
{
	uint8_t *waits = synchronising_calls_find_calls(p);
	int64_t *lost = NEW_ARRAY(g->n, int64_t);
	uint32_t last = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		int64_t ns = waits[i] ? cost_of_call(p, g, i, lost) : 0;
		if (!ns)
			continue;
		uint32_t op = synchronising_calls_around_call(p, i);
		bool again = op == last && op != i; /* a copy to pageable memory, and the synchronisation behind it in the same op: one wait */
		last = op;
		intervals_add(&m->when, span_end(p, i), span_end(p, i) + ns);
		places_add(&m->places, shared_stacks(f), profile_str(p, p->span.name[op]), op, !again, ns);
		note_most(m, p, g, i, ns);
		m->calls += !again;
		m->wait_ns += p->span.dur_ns[i];
	}
	mem_free(lost);
	mem_free(waits);
}

static void synchronising_calls_report(struct findings *f, const struct step_time *w, const struct synchronising_calls_waits *m)
{
	double pct = step_time_pct(w, m->places.ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The host waits for the GPU %.*f times%s, and the GPU then waits for the host: %.1f %% of the %s",
	                          m->calls % w->n ? 1 : 0, (double)m->calls / w->n, w->kind == WINDOW_STEPS ? " a step" : "", pct, w->time);
	buf_printf(&evidence, "%s, the host waits ", w->per);
	put_ns(&evidence, (double)m->wait_ns / w->n);
	buf_cstr(&evidence, " in these calls. Idle after them: ");
	finding_evidence(x, f, &evidence, &m->places, PLACES_TOLD, w->n, true);
	finding_looks_at(x, m->most_from_ns, m->most_to_ns);
	finding_measured(x, w, m->calls, m->places.ns, &m->when,
	                 "the time without device work after each of these calls, but no more than the call waited");
}

static void synchronising_calls_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct synchronising_calls_waits m = {0};
	synchronising_calls_measure(p, f, shared_gaps(f), &m);
	intervals_normalise(&m.when);
	if (step_time_pct(w, m.places.ns) >= TOO_MUCH)
		synchronising_calls_report(f, w, &m);
	intervals_release(&m.when);
	places_release(&m.places);
}

const struct detector detector_synchronising_calls = {
	.id = "synchronising-calls",
	.title = "The host waits for the GPU within the step",
	.why = "A call that waits (.item(), .cpu(), nonzero, print of a tensor, synchronize()) empties the GPU's queue; then the GPU waits "
	       "until the host has launched again.",
	.fix = "Keep values on the GPU and read them every so many steps; copy with non_blocking=True into pinned memory; use masks or "
	       "torch.where instead of nonzero and boolean indexing; take out synchronize() calls.",
	.disprove = "The step takes as long with these calls taken out: then the GPU would have been without work there anyway.",
	.shares = "gpu-starvation pageable-copies tiny-copies",
	.where = DETECT_WINDOW,
	.run = synchronising_calls_run,
};
