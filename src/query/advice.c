#include "query/advice.h"

#include "analysis/steps/slice.h"
#include "detect/detect.h"
#include "query/predecessor.h"
#include "store/reuse.h"

/* The iterations of a predecessor are not opscope's steps. */
static struct profile *part_by(struct profile *p, const struct predecessor *by, struct detect_args *d, struct err *e)
{
	struct step_window w;
	if (analysis_run(p, PASS_STEPS | PASS_OPS, e) < 0 || by->window(p, d->first, d->last, &w, e) < 0)
		return NULL;
	d->whole = p;
	return slice_of(p, &w, d->first, d->last, e);
}

/* The profile itself, or the part of it that the steps choose. On error NULL, and *e says why. */
static struct profile *chosen_part(struct profile *p, const struct report_args *args, struct detect_args *d, struct err *e)
{
	*d = (struct detect_args){.experts = args->compat, .first = args->step_first, .last = args->step_last, .brief = args->brief};
	if (steps_choose(p, args->key_op, e) < 0)
		return NULL;
	if (!args->has_steps)
		return p;
	const struct predecessor *by = predecessor_find(args->compat);
	return by && by->window ? part_by(p, by, d, e) : slice_of_steps(p, args->step_first, args->step_last, e);
}

int advice_findings(struct profile *p, const struct report_args *asked, struct findings *out, struct err *e)
{
	struct report_args args;
	struct detect_args d;
	if (report_args_chosen(p, asked, &args, e) < 0)
		return -1;
	const bool began = reuse_begin(p);
	struct profile *part = chosen_part(p, &args, &d, e);
	int rc = part ? detect_run(part, &d, out, e) : -1;
	if (began)
		reuse_end(p);
	return rc;
}

int advice_table(struct profile *p, const struct report_args *asked, struct table *out, struct err *e)
{
	struct findings f = {0};
	int rc = advice_findings(p, asked, &f, e);
	if (rc == 0)
		findings_table(&f, out);
	findings_release(&f);
	return rc;
}
