#include "predecessors/dlprof/experts/experts.h"

#include "base/search.h"
#include "detect/parts/shared.h"

const struct expert_system dlprof_experts = {"dlprof", "Expert Systems Feedback", PASS_NEST | PASS_CORRELATE | PASS_STEPS | PASS_OPS};

static uint32_t clamp(int64_t i, uint32_t n)
{
	return i < 0 ? 0 : i >= n ? n - 1 : (uint32_t)i;
}

static struct dlprof_run *make(const struct detect_args *a, const struct profile *p)
{
	struct dlprof_run *r = NEW(struct dlprof_run);
	r->whole = a->whole ? a->whole : p;
	dlprof_iterations_of(r->whole, r->whole->key_op, &r->iterations);
	r->last = r->iterations.n - 1;
	if (a->whole) {
		r->first = clamp(a->first, r->iterations.n);
		r->last = clamp(a->last, r->iterations.n);
	}
	usage_measure(r->whole, r->iterations.start_ns[r->first], dlprof_iteration_end(r, r->last), &dlprof_usage, &r->usage);
	return r;
}

static void run_free(void *run)
{
	struct dlprof_run *r = run;
	dlprof_iterations_release(&r->iterations);
	mem_free(r);
}

const struct dlprof_run *dlprof_run_of(struct findings *f, const struct profile *p)
{
	struct shared_experts *slot = shared_experts(f);
	if (!slot->state)
		*slot = (struct shared_experts){make(&f->args, p), run_free};
	return slot->state;
}

double dlprof_pct(const struct dlprof_run *r, double ns)
{
	return r->usage.window_ns > 0 ? 100 * ns / (double)r->usage.window_ns : 0;
}

/* What a database of DLProf says of the framework: its name, or the mode that it was made in. */
static bool stated_framework(const struct profile *p, struct str *framework)
{
	return profile_meta(p, "system_config:framework", framework) || profile_meta(p, "system_config:mode_string", framework);
}

bool dlprof_is_tensorflow(const struct profile *p)
{
	struct str framework;
	if (stated_framework(p, &framework))
		return str_has_nocase(framework, STR("tensorflow"));
	uint32_t cat = 0; /* a domain may be registered and not used */
	while (cat < p->cat.rows.n && !str_has_nocase(profile_str(p, p->cat.name[cat]), STR("tensorflow")))
		cat++;
	return cat < p->cat.rows.n && ANY_WHERE(i, 0, p->span.rows.n, p->span.cat[i] == cat);
}

bool dlprof_is_pytorch(const struct profile *p)
{
	struct str framework;
	if (stated_framework(p, &framework))
		return str_has_nocase(framework, STR("pytorch"));
	return p->ops->origin == OPS_MARKERS || p->ops->origin == OPS_AUTOGRAD || p->ops->origin == OPS_KINETO;
}

bool dlprof_is_eligible(const struct op *op)
{
	return op->tc_eligible && op->instances;
}

static void dlprof_run_add_note(void *context, struct str text)
{
	findings_note(context, text);
}

void dlprof_note_hints(struct findings *f, const struct profile *p, unsigned which)
{
	dlprof_hints(p, which, NULL, dlprof_run_add_note, f);
}

static bool type_is(struct str type, const char *wanted)
{
	struct str w = str_from(wanted);
	bool prefix = w.n && w.p[w.n - 1] == '*';
	w.n -= prefix;
	return prefix ? str_starts(type, w) : str_eq(type, w);
}

bool dlprof_has_type(const struct profile *p, const char *const *types)
{
	for (uint32_t i = 0; i < p->ops->n_ops; i++)
		for (const char *const *t = types; *t && p->ops->op[i].instances; t++)
			if (type_is(p->ops->op[i].type, *t))
				return true;
	return false;
}

struct str dlprof_device_list(struct findings *f, const int32_t *device, unsigned n)
{
	struct buf b = {0};
	for (unsigned i = 0; i < n; i++)
		buf_printf(&b, "%s%d", i ? ", " : "", device[i]);
	return finding_text(f, &b);
}

int dlprof_findings_of(struct profile *p, const struct report_args *args, struct findings *f, struct err *e)
{
	struct detect_args d = {.experts = dlprof_experts.name, .first = args->step_first, .last = args->step_last};
	struct step_window w;
	*f = (struct findings){0};
	if (analysis_run(p, PASS_STEPS | PASS_OPS, e) < 0)
		return -1;
	if (args->has_steps) {
		d.whole = p;
		if (dlprof_window(p, d.first, d.last, &w, e) < 0)
			return -1;
		p = slice_of(p, &w, d.first, d.last, e);
	}
	if (p && detect_run(p, &d, f, e) == 0)
		return 0;
	findings_release(f);
	return -1;
}

int dlprof_findings(struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct findings f;
	if (dlprof_findings_of(p, args, &f, e) < 0)
		return -1;
	findings_table(&f, t);
	findings_release(&f);
	return 0;
}
