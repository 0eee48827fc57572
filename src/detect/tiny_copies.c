#include "analysis/names/names.h"
#include "detect/parts/copies.h"

/* Copies a step; fewer copies are flags and results that a step may need. */
enum { TOO_MANY = 20, PLACES_TOLD = 3 };
/* Percent of the steps' time that they keep the device from other work. */
static const double TOO_MUCH = 1, SEVERE = 10;

static bool is_tiny(const struct profile *p, uint32_t g)
{
	int64_t bytes = p->launch.bytes[p->gpu_op.launch[g]];
	return bytes > 0 && bytes <= COPY_TINY_BYTES && copy_way(profile_str(p, p->gpu_op.name[g])) != COPY_NEITHER;
}

/* How often, within these times, the host waits for the device in a call that only waits. */
static uint64_t count_waits(const struct profile *p, const struct intervals *when)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_CALL && name_host_kind(p, p->span.name[i]) == HOST_SYNC)
			n += intervals_length_within(when, p->span.start_ns[i], p->span.start_ns[i] + 1) > 0;
	return n;
}

static void put_size(struct buf *b, double bytes)
{
	buf_printf(b, bytes < 1024 ? "%.0f bytes" : "%.1f KiB", bytes < 1024 ? bytes : bytes / 1024);
}

static void tiny_copies_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct copies *c, const struct copy_rows *rows, int64_t ns)
{
	bool one_by_one = 2 * rows->copies > c->n;
	const char *each = w->kind == WINDOW_STEPS ? " a step" : "";
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	if (one_by_one)
		x->problem = arena_printf(&f->arena, "%.0f of %.0f small copies%s between host and GPU follow one another, each for itself where one could bring all: "
		                          "%.1f %% of the %s", (double)rows->copies / w->n, (double)c->n / w->n, each, pct, w->time);
	else
		x->problem = arena_printf(&f->arena, "%.0f copies%s between host and GPU are of %d KiB or less and keep the GPU from other work for "
		                          "%.1f %% of the %s", (double)c->n / w->n, each, COPY_TINY_BYTES / 1024, pct, w->time);
	buf_cstr(&evidence, "They move ");
	put_size(&evidence, (double)c->bytes / (double)c->n);
	buf_cstr(&evidence, " each on average");
	if (one_by_one)
		buf_printf(&evidence, ". In the rows of them, the host waits for the GPU %.0f times%s, one comes every %.1f us", (double)count_waits(p, &rows->when) / w->n, each,
		           (double)intervals_length(&rows->when) / 1e3 / (double)rows->copies);
	buf_printf(&evidence, ". %s, copying or in calls to copy: ", w->per);
	finding_evidence(x, f, &evidence, &c->places, PLACES_TOLD, w->n, true);
	if (one_by_one)
		x->advice = STR("Copy the whole tensor once, before the loop, and read its elements on the host (x.cpu(), x.tolist()); or compute on the GPU and copy the result.");
	finding_looks_at_most(x, p, &c->places);
	finding_rests_on(x, w, c->n, ns);
	finding_covers(x, &c->when);
	finding_gain(x, w, ns, one_by_one ? "these copies where nothing hides them, the idle time in their calls, and all the time of rows of them but the first of each"
	                                  : "these copies where nothing hides them, and the idle time in their calls");
}

static void tiny_copies_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct copies c;
	struct copy_rows rows;
	copies_measure(p, f, w, is_tiny, &c);
	copies_rows(p, w, COPY_TINY_BYTES, &rows);
	intervals_union(&c.when, &rows.when, &c.when);
	int64_t ns = intervals_length(&c.when);
	if (c.n >= (uint64_t)TOO_MANY * w->n && step_time_pct(w, ns) >= TOO_MUCH)
		tiny_copies_report(p, f, w, &c, &rows, ns);
	copies_rows_release(&rows);
	copies_release(&c);
}

const struct detector detector_tiny_copies = {
	.id = "tiny-copies",
	.title = "Many tiny copies between host and GPU",
	.why = "A copy costs some 10 us whatever its size; many small ones cost far more than one of the same bytes.",
	.fix = "Make small tensors on the GPU (torch.zeros(..., device=...)), stack values on one side and copy them once, keep scalars as "
	       "Python numbers or as tensors of the GPU.",
	.disprove = "The step takes as long when the values are made on the GPU: then other work of the host sets the pace.",
	.shares = "gpu-starvation pageable-copies launch-bound",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = tiny_copies_run,
};
