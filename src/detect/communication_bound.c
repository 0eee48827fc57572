#include "analysis/roles.h"
#include "detect/shared.h"

/* The plugin's threshold (the plugin's data.py), percent of the mean step. */
static const double TOO_MUCH = 10, SEVERE = 30;
enum { COLLECTIVES_TOLD = 3 };

extern const struct detector detector_communication_bound;

/* Which device work is communication, and when no other work goes on. */
static uint8_t *find_comm(const struct profile *p, const struct step_time *w, struct intervals *exposed)
{
	uint8_t *comm = NEW_ARRAY(p->gpu_op.rows.n, uint8_t), *known = NEW_ARRAY(p->strings.n, uint8_t);
	struct intervals other = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t name = p->gpu_op.name[g];
		if (!known[name])
			known[name] = kernel_is_comm(profile_str(p, name)) ? 2 : 1;
		comm[g] = p->gpu_op.kind[g] == GPU_KERNEL && known[name] == 2;
		intervals_add(comm[g] ? exposed : &other, p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	intervals_normalise(exposed);
	intervals_normalise(&other);
	intervals_subtract(exposed, &other, exposed);
	intervals_intersect(exposed, &w->all, exposed);
	intervals_release(&other);
	mem_free(known);
	return comm;
}

/* What a collective is called: by its own arguments, else by its kernel. */
static struct str collective_name(const struct profile *p, uint32_t g, uint32_t key)
{
	struct str s;
	if (key != INTERN_NONE && profile_arg(p, p->gpu_op.args[g], key, &s) && s.n)
		return s;
	s = profile_str(p, p->gpu_op.name[g]);
	const char *args = memchr(s.p, '(', s.n);
	return args ? (struct str){s.p, (size_t)(args - s.p)} : s;
}

/* Appends the collectives with most exposed time, and says where *x is to be looked at; nothing where the trace has no kernels of them. */
static void put_collectives(const struct profile *p, const struct step_time *w, struct finding *x, struct buf *out)
{
	struct intervals exposed = {0};
	struct places places;
	uint8_t *comm = find_comm(p, w, &exposed);
	uint32_t key = intern_find(&p->strings, STR("Collective name"));
	places_init(&places);
	for (size_t i = 0; i < exposed.n; i++)
		finding_looks_at(x, exposed.v[i].start, exposed.v[i].end);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t ns = comm[g] ? intervals_length_within(&exposed, p->gpu_op.start_ns[g], gpu_end(p, g)) : 0;
		if (ns)
			places_add(&places, NULL, collective_name(p, g, key), ROW_NONE, 1, ns);
	}
	if (places.n) {
		buf_cstr(out, "; not hidden, per step: ");
		places_text(&places, COLLECTIVES_TOLD, w->n, true, out);
	}
	places_release(&places);
	intervals_release(&exposed);
	mem_free(comm);
}

static void report(const struct profile *p, struct findings *f, const struct step_time *w, const struct roles *r, double pct)
{
	struct buf evidence = {0};
	struct finding *x = findings_add(f, &detector_communication_bound, pct > SEVERE ? FINDING_HIGH : FINDING_MEDIUM);
	x->problem = arena_printf(&f->arena, "%.1f %% of the step time is communication that no other device work hides", pct);
	buf_printf(&evidence, "Communication %.3f ms of a mean step of %.3f ms, over %u steps", roles_mean_ns(r, ROLE_COMM) / 1e6,
	           roles_mean_step_ns(r) / 1e6, r->n);
	put_collectives(p, w, x, &evidence);
	x->evidence = finding_text(f, &evidence);
	finding_rests_on(x, w, r->n, r->sum.ns[ROLE_COMM]);
	x->share_pct = pct;
	finding_gain(x, w, r->sum.ns[ROLE_COMM], "communication that no other device work hides");
}

static int run(const struct profile *p, struct findings *f, struct err *e)
{
	const struct step_time *w = shared_steps(f);
	if (!w->n) {
		findings_missing(f, &detector_communication_bound, "no steps were found");
		return 0;
	}
	struct roles *r = roles_new(p, ROLES_DEFAULT, NULL, NULL);
	double pct = roles_share_pct(r, ROLE_COMM);
	if (pct > TOO_MUCH)
		report(p, f, w, r, pct);
	roles_free(r);
	return 0;
}

const struct detector detector_communication_bound = {
	.id = "communication-bound",
	.title = "The GPU waits for the network",
	.why = "Time in collectives that computation does not overlap is lost on every rank.",
	.fix = "Use gradient compression, gradient accumulation or a larger batch size (LAMB keeps large batches accurate), so that "
	       "each step communicates less for the same work.",
	.disprove = "Recordings of all ranks show that one begins these collectives late: then this rank waits for that one, not for the network.",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.run = run,
};
