#include "base/search.h"
#include "detect/parts/compiled_calls.h"

/* Percent of the steps' time between the graphs of broken calls. */
static const double TOO_MUCH = 5, SEVERE = 25;
enum { PLACES_TOLD = 3, OPS_TOLD = 3 };

struct graph_breaks_measured {
	struct intervals when;
	uint64_t breaks, ops, works;
	struct places places, eager;
};

/* Device work launched between the graphs, and the time there without device work. */
static void find_cost(const struct compiled_calls *x, struct graph_breaks_measured *c)
{
	const struct profile *p = x->p;
	struct intervals host = {0}, device = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t at = p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
		if (at == ROW_NONE || !compiled_is_eager(x, at))
			continue;
		c->works++;
		intervals_add(&device, p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	intervals_normalise(&device);
	intervals_union(&x->between, &x->back, &host);
	intervals_intersect(&host, &x->w->idle, &host);
	intervals_union(&host, &device, &host);
	intervals_intersect(&host, &x->w->all, &c->when);
	intervals_release(&host);
	intervals_release(&device);
}

static void add_place(const struct compiled_calls *x, struct findings *f, struct graph_breaks_measured *c, uint32_t at, int64_t ns)
{
	struct buf b = {0};
	uint32_t stack_of = compiled_put_break(x, at, &b);
	places_add(&c->places, shared_stacks(f), buf_view(&b), stack_of, 1, ns);
	buf_release(&b);
}

/* The time around a break in which the GPU waits: from the end of the graph before the break to the start of the next graph. */
static int64_t idle_around(const struct compiled_calls *x, int64_t at_ns)
{
	size_t a = FIRST_WHERE(i, 0, x->between.n, x->between.v[i].end > at_ns);
	return a < x->between.n && x->between.v[a].start <= at_ns ? step_time_idle_within(x->w, x->between.v[a].start, x->between.v[a].end) : 0;
}

static void graph_breaks_find_places(const struct compiled_calls *x, struct findings *f, struct graph_breaks_measured *c)
{
	const struct profile *p = x->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i];
		uint8_t part = compiled_part_of(x, i);
		if (x->is_break[i] && compiled_broken_call(x, i)) {
			c->breaks++;
			add_place(x, f, c, i, idle_around(x, p->span.start_ns[i]));
		}
		if (p->span.kind[i] != SPAN_OP || part != COMPILED_OTHER || !compiled_is_eager(x, i))
			continue;
		if (up != ROW_NONE && p->span.kind[up] == SPAN_OP && compiled_part_of(x, up) == COMPILED_OTHER)
			continue;
		c->ops++;
		places_add(&c->eager, shared_stacks(f), profile_str(p, p->span.name[i]), i, 1, p->span.dur_ns[i]);
	}
}

static void graph_breaks_report(const struct compiled_calls *x, struct findings *f, const struct graph_breaks_measured *c)
{
	const struct step_time *w = x->w;
	int64_t ns = intervals_length(&c->when);
	double pct = step_time_pct(w, ns);
	struct buf b = {0};
	struct finding *r = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	buf_printf(&b, "torch.compile leaves its graphs ");
	put_mean(&b, (double)c->breaks / w->n);
	buf_printf(&b, " time%s%s (graph breaks); the time between them takes %.1f %% of the %s", c->breaks == w->n ? "" : "s", w->a_step, pct, w->time);
	r->problem = finding_text(f, &b);
	b = (struct buf){0};
	buf_printf(&b, "%s, in ", w->per);
	put_mean(&b, (double)x->broken / w->n);
	buf_printf(&b, " call%s of compiled functions: ", x->broken == w->n ? "" : "s");
	places_text(&c->places, PLACES_TOLD, w->n, true, &b);
	buf_cstr(&b, ". Outside of the graphs ");
	put_mean(&b, (double)c->ops / w->n);
	buf_printf(&b, " op%s and ", c->ops == w->n ? "" : "s");
	put_mean(&b, (double)c->works / w->n);
	buf_printf(&b, " piece%s of device work", c->works == w->n ? "" : "s");
	if (c->eager.n) {
		buf_cstr(&b, ": ");
		places_text(&c->eager, OPS_TOLD, w->n, true, &b);
	}
	r->evidence = finding_text(f, &b);
	finding_looks_at_most(r, x->p, c->places.most_ns ? &c->places : &c->eager);
	finding_rests_on(r, w, c->breaks, ns);
	finding_covers(r, &c->when);
	finding_gain(r, w, ns, x->back.n ? "time without device work between the graphs of these calls, forward and backward, and device time of what is launched there"
	                                 : "time without device work between the graphs of these calls, and device time of what is launched there");
}

static void graph_breaks_look(const struct compiled_calls *x, struct findings *f)
{
	struct graph_breaks_measured c = {0};
	find_cost(x, &c);
	if (x->broken && step_time_pct(x->w, intervals_length(&c.when)) >= TOO_MUCH) {
		graph_breaks_find_places(x, f, &c);
		graph_breaks_report(x, f, &c);
	} else if (x->unknown.n) {
		findings_missing(f, "%s", compiled_no_graphs_why);
	} else if (compiled_may_be_broken(x)) {
		findings_missing(f, "%s", compiled_no_frames_why);
	}
	intervals_release(&c.when);
	places_release(&c.places);
	places_release(&c.eager);
}

static void graph_breaks_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct compiled_calls *x = compiled_calls_new(p, w);
	if (x)
		graph_breaks_look(x, f);
	compiled_calls_free(x);
}

const struct detector detector_graph_breaks = {
	.id = "graph-breaks",
	.title = "torch.compile leaves its graphs in the middle of a call",
	.why = "Where Dynamo meets what it cannot trace (print, .item(), a call into C), it ends the graph, runs the untraceable part eagerly and begins another graph. "
	       "Each graph has guards and launches of its own, and nothing is fused across the break.",
	.fix = "TORCH_LOGS=graph_breaks names the reason of each; fullgraph=True makes them errors. Take prints, .item() and data-dependent branches out of the compiled "
	       "function (torch.where, torch.cond), and wrap calls that cannot be traced as custom ops (torch.library.custom_op).",
	.disprove = "With fullgraph=True the step is no shorter: then what stands between the graphs costs no less inside one.",
	.shares = "gpu-starvation launch-bound low-gpu-utilization unfused-elementwise synchronising-calls",
	.report = "compile",
	.where = DETECT_WINDOW,
	.run = graph_breaks_run,
};
