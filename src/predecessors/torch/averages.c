/* key_averages() and total_average() of a version of torch. */
#include "analysis/recording.h"
#include "predecessors/torch/reports.h"
#include "predecessors/torch/table.h"

/* Ends what made the groups: -1 where there are none. */
static int averages_end(const struct profile *p, struct torch_events *t, struct key_groups *g, struct err *e)
{
	bool any = g->n > 0;
	key_groups_free(g);
	torch_events_free(t);
	return any ? 0 : err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
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
	return averages_end(p, t, g, e);
}

int torch_total_average(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct torch_events *t = torch_events_new(p, args->variant->rules, TORCH_FLOPS);
	struct key_groups *g = key_groups_new(t, &(struct key_choice){.python = true});
	if (g->n)
		torch_table_total(g, out);
	return averages_end(p, t, g, e);
}
