#include "analysis/names/names.h"
#include "detect/parts/copies.h"

/* Percent of the steps' time. */
static const double TOO_MUCH = 5, SEVERE = 20;
/* Copies a step: one or two are the input and the result. Smaller copies belong to tiny-copies. */
enum { FEWEST = 3, PLACES_TOLD = 2 };
/* A call that waits for the copy is made within this time after the copy was ordered. */
static const int64_t FOLLOWS_NS = 20 * 1000;

/* The calls of each thread in order, to find what follows the call of a copy. */
struct blocking_copies_search {
	const struct profile *p;
	uint32_t *next;           /* span -> the next call of its thread; ROW_NONE */
};

static void find_next(struct blocking_copies_search *x)
{
	const struct spans *s = &x->p->span;
	uint32_t last = ROW_NONE;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		x->next[i] = ROW_NONE;
		if (s->kind[i] != SPAN_CALL)
			continue;
		if (last != ROW_NONE && s->track[last] == s->track[i])
			x->next[last] = i;
		last = i;
	}
}

/* The end of the call in which the host waits for copy g, which it ordered; INT64_MIN where the host does not wait. */
static int64_t waits_until(struct blocking_copies_search *x, uint32_t g)
{
	const struct profile *p = x->p;
	uint32_t call = p->gpu_op.call[g];
	int64_t done = gpu_end(p, g);
	if (call == ROW_NONE)
		return INT64_MIN;
	if (span_end(p, call) >= done)
		return span_end(p, call);
	uint32_t next = x->next[call];
	bool waits = next != ROW_NONE && name_host_kind(p, p->span.name[next]) == HOST_SYNC && span_end(p, next) >= done &&
	             p->span.start_ns[next] - span_end(p, call) <= FOLLOWS_NS;
	return waits ? span_end(p, next) : INT64_MIN;
}

struct blocking {
	struct places places;
	uint64_t n;
	int64_t bytes;
	struct intervals copies, other, kernels; /* on the lead GPU: these copies, all other work, and kernels while no such copy runs */
	struct intervals host;    /* no work of the GPU while the host is in the calls */
	int64_t copy_ns;          /* copies that nothing hides */
	int64_t kernel_ns;        /* kernels beside which they could run */
};

static bool blocking_copies_is_candidate(const struct profile *p, const struct step_time *w, uint32_t g)
{
	return p->gpu_op.kind[g] == GPU_MEMCPY && p->launch.device[p->gpu_op.launch[g]] == w->gpu[w->lead].device && step_time_has(w, p->gpu_op.start_ns[g]) &&
	       copy_way(profile_str(p, p->gpu_op.name[g])) != COPY_NEITHER && p->launch.bytes[p->gpu_op.launch[g]] > COPY_TINY_BYTES;
}

static void add_copy(const struct profile *p, struct findings *f, struct blocking *b, uint32_t g, int64_t until)
{
	uint32_t at = copies_op(p, g);
	int64_t bytes = p->launch.bytes[p->gpu_op.launch[g]];
	intervals_add(&b->copies, p->gpu_op.start_ns[g], gpu_end(p, g));
	intervals_add(&b->host, p->span.start_ns[p->gpu_op.call[g]], until);
	b->n++;
	if (__builtin_add_overflow(b->bytes, bytes, &b->bytes))
		b->bytes = INT64_MAX;
	places_add(&b->places, shared_stacks(f), profile_str(p, p->span.name[at]), at, 1, p->gpu_op.dur_ns[g]);
}

static void blocking_copies_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct blocking *b)
{
	struct blocking_copies_search x = {.p = p, .next = NEW_ARRAY_RAW(p->span.rows.n, uint32_t)};
	find_next(&x);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t until = blocking_copies_is_candidate(p, w, g) ? waits_until(&x, g) : INT64_MIN;
		if (until != INT64_MIN)
			add_copy(p, f, b, g, until);
		else if (p->launch.device[p->gpu_op.launch[g]] == w->gpu[w->lead].device)
			intervals_add(p->gpu_op.kind[g] == GPU_KERNEL ? &b->kernels : &b->other, p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	mem_free(x.next);
}

/* Copies and kernels that already run beside each other do not count. */
static void blocking_copies_cut(const struct step_time *w, struct blocking *b)
{
	intervals_normalise(&b->copies);
	intervals_normalise(&b->kernels);
	intervals_normalise(&b->other);
	intervals_normalise(&b->host);
	intervals_intersect(&b->host, &w->idle, &b->host);
	struct intervals alone = {0};
	intervals_subtract(&b->kernels, &b->copies, &alone);
	intervals_intersect(&alone, &w->all, &alone);
	b->kernel_ns = intervals_length(&alone);
	intervals_release(&alone);
	intervals_subtract(&b->copies, &b->kernels, &b->copies);
	intervals_subtract(&b->copies, &b->other, &b->copies);
	intervals_intersect(&b->copies, &w->all, &b->copies);
	b->copy_ns = intervals_length(&b->copies);
}

static void blocking_copies_report(const struct profile *p, struct findings *f, const struct step_time *w, struct blocking *b, int64_t ns)
{
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "The host waits for %.*f copies%s and launches nothing meanwhile, so that copies and kernels take turns: kernels run beside "
	                          "copies and sets in %.1f %% of the time in which the GPU works", b->n % w->n ? 1 : 0, (double)b->n / w->n,
	                          w->kind == WINDOW_STEPS ? " a step" : "", copies_overlap_pct(p, w));
	buf_printf(&evidence, "%s: %.2f MiB; ", w->per, (double)b->bytes / w->n / (1 << 20));
	put_ns(&evidence, (double)b->copy_ns / w->n);
	buf_cstr(&evidence, " of these copies with nothing beside them, ");
	put_ns(&evidence, (double)b->kernel_ns / w->n);
	buf_cstr(&evidence, " of kernels without a copy beside them, and ");
	put_ns(&evidence, (double)intervals_length(&b->host) / w->n);
	buf_cstr(&evidence, " without work of the GPU in the calls: ");
	finding_evidence(x, f, &evidence, &b->places, PLACES_TOLD, w->n, true);
	intervals_union(&b->copies, &b->host, &b->copies);
	finding_looks_at_most(x, p, &b->places);
	finding_measured(x, w, b->n, ns, &b->copies,
	                 "these copies where nothing hides them, but no more than there are kernels to hide them, and the idle time in their calls");
}

static void blocking_copies_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct blocking b = {0};
	blocking_copies_measure(p, f, w, &b);
	blocking_copies_cut(w, &b);
	int64_t ns = (b.copy_ns < b.kernel_ns ? b.copy_ns : b.kernel_ns) + intervals_length(&b.host);
	if (b.n >= (uint64_t)FEWEST * w->n && b.kernel_ns && step_time_pct(w, ns) >= TOO_MUCH)
		blocking_copies_report(p, f, w, &b, ns);
	places_release(&b.places);
	intervals_release(&b.copies);
	intervals_release(&b.kernels);
	intervals_release(&b.other);
	intervals_release(&b.host);
}

const struct detector detector_blocking_copies = {
	.id = "blocking-copies",
	.title = "Copies that the host waits for",
	.why = "A GPU copies in both directions while it computes, if the host launches the next kernels meanwhile. A host that waits for each copy lets the GPU do one "
	       "thing after the other.",
	.fix = "Copy with non_blocking=True, from and to pinned memory (pin_memory()), on a stream of its own, and wait for it (an event) only where the data is used.",
	.disprove = "What the copies bring is needed by the next kernel, and there is nothing else to run meanwhile.",
	.shares = "gpu-starvation pageable-copies synchronising-calls tiny-copies launch-bound dataloader-bound",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = blocking_copies_run,
};
