#include "analysis/analysis.h"
#include "analysis/steps/iterations.h"
#include "analysis/steps/steps.h"
#include "base/buf.h"
#include "store/reuse.h"

/* The error for a key op that nothing matches; it names candidates. */
static int steps_choose_fail(struct profile *p, struct str key, struct err *e)
{
	struct buf b = {0};
	steps_put_candidates(p, &b);
	err_set(e, ERR_USAGE, "--key-op=" STR_FMT ": no range, op, op id or kernel has this name, or several end so%s" STR_FMT, STR_ARG(key),
	        b.n ? "; ops that are called several times: " : "", STR_ARG(buf_view(&b)));
	buf_release(&b);
	return -1;
}

int steps_choose(struct profile *p, const char *key_op, struct err *e)
{
	struct str key = str_from(key_op ? key_op : "");
	if (str_eq(key, p->key_op) && (p->passes_done & PASS_STEPS))
		return 0;
	profile_assert_alone(p);
	if (key.n) {
		struct key_calls k;
		if (p->durations_only)
			return err_set(e, ERR_DATA, "--key-op: this input holds durations but no times, so that there are no steps");
		if (analysis_run(p, PASS_NEST | PASS_CORRELATE | PASS_OPS, e) < 0)
			return -1;
		if (!key_calls_find(p, key, &k))
			return steps_choose_fail(p, key, e);
		key_calls_release(&k);
	}
	p->key_op = key.n ? arena_str(&p->arena, key) : (struct str){0};
	p->passes_done &= ~(unsigned)PASS_STEPS;
	reuse_forget(p);
	return analysis_run(p, PASS_STEPS, e);
}
