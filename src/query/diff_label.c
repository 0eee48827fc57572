#include "query/diff_label.h"

#include <math.h>

bool diff_has_other_shapes(const struct diff_row *r)
{
	return r->of[0].shapes && r->of[1].shapes && r->of[0].shapes != r->of[1].shapes;
}

struct str diff_shown(const struct diff *d, const struct diff_row *r)
{
	return intern_get(&d->texts, r->shown ? r->shown : r->name);
}

bool diff_has_calls(const struct diff_row *r)
{
	return r->kind != DIFF_IDLE && r->kind != DIFF_WAIT;
}

bool diff_has_other_kernels(const struct diff *d, const struct diff_row *r)
{
	return d->by != DIFF_BY_KERNEL && r->of[0].kernels != r->of[1].kernels;
}

bool diff_may_wait(const struct diff_row *r)
{
	return r->kind == DIFF_COMM && r->of[0].maybe_wait_ns + r->of[1].maybe_wait_ns > (r->of[0].ns + r->of[1].ns) / 100;
}

bool diff_is_unclear(const struct diff_row *r)
{
	return r->half_known && fabs(r->delta_ns) <= r->half_ns;
}

const char *diff_label(const struct diff *d, const struct diff_row *r)
{
	double a = diff_row_ns(d, r, 0), b = diff_row_ns(d, r, 1), calls_a = diff_row_calls(d, r, 0), calls_b = diff_row_calls(d, r, 1);
	const bool has_calls = diff_has_calls(r);
	if (r->n_replaced)
		return "as a region";
	if (!has_calls && diff_is_unclear(r))
		return "unclear";
	if (!diff_row_is_on(r, 0) && r->kind != DIFF_WAIT)
		return "new";
	if (!diff_row_is_on(r, 1) && r->kind != DIFF_WAIT)
		return "gone";
	if (fabs(b - a) * 100 <= DIFF_NAMED_PCT * a && (!has_calls || fabs(calls_b - calls_a) * 100 <= DIFF_CALLS_PCT * calls_a))
		return "same";
	const bool kernels_differ = diff_has_other_kernels(d, r);
	/* Modules and lines have several ops: one more, and the set of their shapes is another. */
	if (has_calls && diff_has_other_shapes(r) && (diff_is_by_op(d) || !kernels_differ))
		return "other shapes";
	if (has_calls && kernels_differ)
		return "other kernels";
	if (has_calls && fabs(calls_b - calls_a) * 100 > DIFF_CALLS_PCT * calls_a)
		return calls_b > calls_a ? "more calls" : "fewer calls";
	if (diff_is_unclear(r))
		return "unclear";
	if (r->kind == DIFF_COMM)
		return diff_may_wait(r) ? b > a ? "longer, or waiting" : "shorter, or less waiting" : b > a ? "longer" : "shorter";
	return has_calls ? b > a ? "slower" : "faster" : b > a ? "more" : "less";
}
