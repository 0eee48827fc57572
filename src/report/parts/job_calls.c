#include "report/parts/job_calls.h"

bool job_is_in_steps(const struct job *j, const struct job_instance *x, const struct report_args *args)
{
	if (args->all_steps)
		return true;
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct rank *r = j->rank[x->part[i].rank];
		int64_t start = r->call[x->part[i].call].start_ns;
		for (uint32_t s = 0; s < r->n_steps; s++)
			if (r->step[s].number >= first && r->step[s].number <= last && start >= r->step[s].start_ns && start < r->step[s].end_ns)
				return true;
	}
	return false;
}
