#include "base/search.h"
#include "detect/parts/copies.h"
#include "detect/parts/op_siblings.h"

/* Percent of the steps' time that making such tensors on the host and copying them keeps the device from other work. */
static const double TOO_MUCH = 0.5, SEVERE = 5;

static bool copied_constants_fills(struct str name)
{
	static const char *const names[] = {"aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_", "aten::bernoulli_"};
	return ANY_WHERE(i, 0, sizeof names / sizeof names[0], str_eqc(name, names[i]));
}

/* The first argument's shape; "" = not recorded. */
static struct str first_shape(const struct profile *p, uint32_t span)
{
	struct str s, none = {"", 0};
	if (!profile_arg(p, p->span.args[span], ARG_INPUT_DIMS, &s) || s.n < 3)
		return none;
	const char *end = memchr(s.p, ']', s.n);
	return end ? (struct str){s.p + 1, (size_t)(end - s.p)} : none;
}

/* By span: 1 = the op, or an op inside it, launched device work, so that its tensor is made on the device. */
static uint8_t *copied_constants_launches(const struct profile *p)
{
	uint8_t *yes = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		for (uint32_t o = p->gpu_op.op[g]; o != ROW_NONE && !yes[o]; o = p->span.op[o])
			yes[o] = 1;
	return yes;
}

struct copied_constants_work {
	const struct profile *p;
	struct findings *f;
	const struct step_time *w;
	struct op_siblings siblings;
	uint8_t *launches;
	struct places places;
	struct intervals host, exposed;
};

/* The op before aten::to that filled what is copied; ROW_NONE = it is no such pattern: aten::to > aten::_to_copy > aten::copy_, which
 * copies to the device, right after an op that ends in a fill on the host, of the same shape where shapes are recorded. */
static uint32_t filled_before(const struct copied_constants_work *x, uint32_t copy)
{
	const struct spans *s = &x->p->span;
	uint32_t to_copy = s->op[copy], to = to_copy != ROW_NONE ? s->op[to_copy] : ROW_NONE;
	if (to == ROW_NONE || !str_eq(profile_str(x->p, s->name[to_copy]), STR("aten::_to_copy")) ||
	    !str_eq(profile_str(x->p, s->name[to]), STR("aten::to")))
		return ROW_NONE;
	uint32_t before = x->siblings.before[to];
	if (before == ROW_NONE || x->launches[before])
		return ROW_NONE;
	uint32_t leaf = op_last_leaf(&x->siblings, before);
	struct str a = first_shape(x->p, leaf), b = first_shape(x->p, to);
	return copied_constants_fills(profile_str(x->p, s->name[leaf])) && (!a.n || !b.n || str_eq(a, b)) ? before : ROW_NONE;
}

static void copied_constants_look(struct copied_constants_work *x, uint32_t g)
{
	const struct profile *p = x->p;
	uint32_t copy = p->gpu_op.op[g];
	if (p->gpu_op.kind[g] != GPU_MEMCPY || copy == ROW_NONE || !step_time_has(x->w, p->gpu_op.start_ns[g]) ||
	    copy_way(profile_str(p, p->gpu_op.name[g])) != COPY_TO_DEVICE || !str_eq(profile_str(p, p->span.name[copy]), STR("aten::copy_")))
		return;
	uint32_t filled = filled_before(x, copy);
	if (filled == ROW_NONE)
		return;
	uint32_t to = p->span.op[p->span.op[copy]];
	int64_t start = p->span.start_ns[filled], end = span_end(p, to);
	intervals_add(&x->host, start, end);
	intervals_add(&x->exposed, p->gpu_op.start_ns[g], gpu_end(p, g));
	places_add(&x->places, shared_stacks(x->f), profile_str(p, p->span.name[filled]), filled, 1,
	           step_time_idle_within(x->w, start, end) + p->gpu_op.dur_ns[g]);
}

static void copied_constants_cover(const struct copied_constants_work *x, struct finding *d)
{
	struct intervals when = {0};
	intervals_union(&x->host, &x->exposed, &when);
	finding_covers(d, &when);
	intervals_release(&when);
}

static void copied_constants_report(struct copied_constants_work *x, int64_t ns)
{
	const struct step_time *w = x->w;
	struct buf evidence = {0};
	struct finding *d = findings_add(x->f, step_time_pct(w, ns) >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	d->problem = arena_printf(&x->f->arena, "%.1f tensors%s are filled on the host and then copied to the GPU: %.1f %% of the %s",
	                          (double)x->places.events / w->n, w->a_step, step_time_pct(w, ns), w->time);
	buf_printf(&evidence, "aten::to copies what the op before it filled. %s: ", w->per);
	finding_evidence(d, x->f, &evidence, &x->places, 3, w->n, true);
	finding_looks_at_most(d, x->p, &x->places);
	finding_rests_on(d, w, x->places.events, ns);
	copied_constants_cover(x, d);
	finding_gain(d, w, ns, "these copies, and the time without device work while the host fills and copies");
}

static void copied_constants_run(const struct profile *p, struct findings *f)
{
	struct copied_constants_work x = {.p = p, .f = f, .w = shared_steps(f)};
	op_siblings_init(&x.siblings, p);
	x.launches = copied_constants_launches(p);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		copied_constants_look(&x, g);
	intervals_normalise(&x.host);
	intervals_intersect(&x.host, &x.w->idle, &x.host);
	intervals_normalise(&x.exposed);
	intervals_intersect(&x.exposed, &x.w->all, &x.exposed);
	int64_t ns = intervals_length(&x.host) + intervals_length(&x.exposed);
	if (step_time_pct(x.w, ns) >= TOO_MUCH)
		copied_constants_report(&x, ns);
	intervals_release(&x.host);
	intervals_release(&x.exposed);
	places_release(&x.places);
	op_siblings_release(&x.siblings);
	mem_free(x.launches);
}

const struct detector detector_copied_constants = {
	.id = "copied-constants",
	.title = "Tensors filled on the host, then copied",
	.why = "torch.zeros(n).to(device) fills memory on the host and moves it over the bus; made on the GPU it costs one small kernel.",
	.fix = "Make them where they are used: torch.zeros(n, device=device), torch.rand(n, device=device).",
	.disprove = "The values must come from the host (its random numbers), or the copy is of another tensor that has the same shape.",
	.shares = "gpu-starvation pageable-copies tiny-copies",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = copied_constants_run,
};
