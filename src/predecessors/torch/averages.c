/* key_averages() and total_average() of a version of torch. */
#include "analysis/recording.h"
#include "predecessors/torch/reports.h"
#include "predecessors/torch/table.h"

static int averages_none(const struct profile *p, struct err *e)
{
	return err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
}

int torch_key_averages(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	const struct torch_rules *rules = args->variant->rules;
	struct key_choice choice = key_choice_of(args);
	if (torch_table_check(rules, args, e) < 0)
		return -1;
	struct torch_events *t = torch_events_new(p, rules, TORCH_FLOPS | key_choice_want(&choice));
	struct key_groups *g = key_groups_new(t, &choice);
	if (g->n)
		torch_table_averages(g, args, out);
	int rc = g->n ? 0 : averages_none(p, e);
	key_groups_free(g);
	torch_events_free(t);
	return rc;
}

int torch_total_average(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct torch_events *t = torch_events_new(p, args->variant->rules, TORCH_FLOPS);
	struct key_groups *g = key_groups_new(t, &(struct key_choice){0});
	if (g->n)
		torch_table_total(g, out);
	int rc = g->n ? 0 : averages_none(p, e);
	key_groups_free(g);
	torch_events_free(t);
	return rc;
}
