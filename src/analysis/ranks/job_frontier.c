#include "analysis/ranks/job_frontier.h"

#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"

/* Phases are merged where more than this of the time is of no known phase, percent. */
static const double JOB_FRONTIER_UNKNOWN_PCT = 50;

const char *job_frontier_phase_name(const struct job_frontier *f, unsigned phase)
{
	if (phase == JOB_FRONTIER_BETWEEN)
		return "between steps";
	if (f->is_merged && phase - 1 >= RANK_PHASE_OTHER)
		return phase - 1 == RANK_PHASE_OTHER ? "work" : "communication";
	return rank_phase_name[phase - 1];
}

struct job_frontier_work {
	const struct job *j;
	struct job_frontier *out;
	struct sort_item **order;  /* by rank compared: its steps by number */
	uint32_t *at;              /* how far in it the rank is */
	const struct rank_step **step, **before; /* of each rank: the step that is looked at, and the one before it */
	int64_t *begin;            /* of each rank: where its time began */
	int64_t frontier;
	int64_t *spent, *scratch;  /* of each rank */
	int64_t *own;              /* by phase and rank: sum over the steps */
	uint32_t *first, *second;  /* by phase and rank: in how many steps */
};

static void job_frontier_sort_steps(struct job_frontier_work *w)
{
	for (uint32_t i = 0; i < w->out->n; i++) {
		const struct rank *r = w->j->rank[w->out->rank[i]];
		w->order[i] = NEW_ARRAY_RAW(r->n_steps, struct sort_item);
		for (uint32_t k = 0; k < r->n_steps; k++)
			w->order[i][k] = (struct sort_item){sort_key_i64(r->step[k].number), k, 0};
		sort_items(w->order[i], r->n_steps);
	}
}

/* Whether rank i has a step of this number that was not looked at; it is then w->step[i]. Numbers ascend from call to call. */
static bool job_frontier_has_step(struct job_frontier_work *w, uint32_t i, uint64_t number)
{
	const struct rank *r = w->j->rank[w->out->rank[i]];
	const struct sort_item *v = w->order[i];
	uint32_t *at = &w->at[i];
	while (*at < r->n_steps && v[*at].key < number)
		(*at)++;
	if (*at == r->n_steps || v[*at].key != number)
		return false;
	w->step[i] = &r->step[v[(*at)++].row];
	return true;
}

/* Ranks at the frontier after a phase, and next behind it: of several the first. */
static void job_frontier_find_leaders(const int64_t *spent, uint32_t n, uint32_t *first, uint32_t *second)
{
	*first = 0;
	*second = UINT32_MAX;
	for (uint32_t i = 1; i < n; i++)
		if (spent[i] > spent[*first]) {
			*second = *first;
			*first = i;
		} else if (*second == UINT32_MAX || spent[i] > spent[*second]) {
			*second = i;
		}
}

/* What rank i spent in a phase of the step that is looked at. */
static int64_t job_frontier_own(const struct job_frontier_work *w, uint32_t i, unsigned phase)
{
	const int64_t *ns = w->step[i]->phase_ns;
	if (w->out->is_merged && phase - 1 == RANK_PHASE_OTHER)
		return ns[RANK_PHASE_FORWARD] + ns[RANK_PHASE_BACKWARD] + ns[RANK_PHASE_OPTIMIZER] + ns[RANK_PHASE_OTHER];
	if (w->out->is_merged && phase - 1 == RANK_PHASE_OTHER_COMM)
		return ns[RANK_PHASE_FORWARD_COMM] + ns[RANK_PHASE_BACKWARD_COMM] + ns[RANK_PHASE_OPTIMIZER_COMM] + ns[RANK_PHASE_OTHER_COMM];
	if (phase != JOB_FRONTIER_BETWEEN)
		return w->out->is_merged && phase - 1 != RANK_PHASE_DATA ? 0 : ns[phase - 1];
	int64_t gap = w->before[i] ? w->step[i]->start_ns - w->before[i]->end_ns : 0;
	return gap > 0 ? gap : 0;
}

static void job_frontier_add_phase(struct job_frontier_work *w, unsigned k)
{
	struct job_frontier_phase *x = &w->out->phase[k];
	const uint32_t n = w->out->n;
	uint32_t first, second;
	for (uint32_t i = 0; i < n; i++) {
		int64_t ns = job_frontier_own(w, i, k);
		w->scratch[i] = ns;
		w->spent[i] += k == JOB_FRONTIER_BETWEEN ? 0 : ns;
		w->own[k * n + i] += ns;
		x->own_ns += ns;
	}
	job_frontier_find_leaders(w->spent, n, &first, &second);
	int64_t added = w->spent[first] > w->frontier ? w->spent[first] - w->frontier : 0, beyond = added - sort_median_i64(w->scratch, n);
	w->frontier += added;
	x->added_ns += added;
	x->beyond_ns += beyond > 0 ? beyond : 0;
	w->first[k * n + first]++;
	if (second == UINT32_MAX)
		return;
	w->second[k * n + second]++;
	x->lead_ns += w->spent[first] - w->spent[second];
}

/* Adds a step that all ranks have. `follows`: they have the one with the number before it, too. */
static void job_frontier_add_step(struct job_frontier_work *w, bool follows)
{
	struct job_frontier *out = w->out;
	if (!follows) {
		out->total_ns += w->frontier;
		w->frontier = 0;
	}
	for (uint32_t i = 0; i < out->n; i++) {
		w->before[i] = follows ? w->before[i] : NULL;
		w->begin[i] = follows ? w->begin[i] : w->step[i]->start_ns;
		w->spent[i] = w->step[i]->start_ns - w->begin[i];
	}
	for (unsigned k = 0; k < JOB_FRONTIER_PHASES; k++)
		job_frontier_add_phase(w, k);
	for (uint32_t i = 0; i < out->n; i++)
		w->before[i] = w->step[i];
	out->steps++;
}

/* The ranks that are named for a phase. Of the ranks but the first, the second is the one that is most often at the frontier or next behind it. */
static void job_frontier_name(struct job_frontier_work *w, unsigned k)
{
	struct job_frontier_phase *x = &w->out->phase[k];
	const uint32_t n = w->out->n, *first = &w->first[k * n], *second = &w->second[k * n];
	const int64_t *own = &w->own[k * n];
	uint32_t one = 0, two = UINT32_MAX, longest = 0;
	for (uint32_t i = 1; i < n; i++) {
		one = first[i] > first[one] ? i : one;
		longest = own[i] > own[longest] ? i : longest;
	}
	for (uint32_t i = 0; i < n; i++)
		if (i != one && (two == UINT32_MAX || first[i] + second[i] > first[two] + second[two]))
			two = i;
	x->first = w->out->rank[one];
	x->first_steps = first[one];
	x->second = two == UINT32_MAX ? two : w->out->rank[two];
	x->second_steps = two == UINT32_MAX ? 0 : second[two];
	x->longest = w->out->rank[longest];
	x->longest_ns = own[longest];
}

static void job_frontier_add_steps(struct job_frontier_work *w, int64_t first, int64_t last)
{
	const struct rank *r = w->j->rank[w->out->rank[0]];
	int64_t before = INT64_MIN; /* the last number that all ranks have */
	for (uint32_t k = 0; k < r->n_steps; k++) {
		int64_t number = r->step[w->order[0][k].row].number;
		bool all = number >= first && number <= last;
		for (uint32_t i = 0; i < w->out->n && all; i++)
			all = job_frontier_has_step(w, i, w->order[0][k].key);
		if (!all)
			continue;
		job_frontier_add_step(w, before != INT64_MIN && number - 1 == before);
		before = number;
	}
	w->out->total_ns += w->frontier;
	for (uint32_t i = 0; i < w->out->n; i++) {
		const struct rank *other = w->j->rank[w->out->rank[i]];
		uint32_t n = 0;
		for (uint32_t k = 0; k < other->n_steps; k++)
			n += other->step[k].number >= first && other->step[k].number <= last;
		if (n > w->out->steps && n - w->out->steps > w->out->other_steps)
			w->out->other_steps = n - w->out->steps;
	}
}

/* How much of the ranks' steps is of no known phase. */
static void job_frontier_find_unknown(const struct job *j, int64_t first, int64_t last, struct job_frontier *out)
{
	int64_t unknown = 0, all = 0;
	for (uint32_t i = 0; i < out->n; i++) {
		const struct rank *r = j->rank[out->rank[i]];
		for (uint32_t k = 0; k < r->n_steps; k++) {
			const struct rank_step *s = &r->step[k];
			if (s->number < first || s->number > last)
				continue;
			unknown += s->phase_ns[RANK_PHASE_OTHER] + s->phase_ns[RANK_PHASE_OTHER_COMM];
			all += s->end_ns - s->start_ns;
		}
	}
	out->unknown_pct = percent_or_zero((double)unknown, (double)all);
	out->is_merged = out->unknown_pct > JOB_FRONTIER_UNKNOWN_PCT;
}

void job_frontier_find(const struct job *j, const uint32_t *rank, uint32_t n, int64_t first, int64_t last, struct job_frontier *out)
{
	*out = (struct job_frontier){.rank = rank, .n = n};
	if (!n)
		return;
	job_frontier_find_unknown(j, first, last, out);
	struct job_frontier_work w = {.j = j, .out = out, .order = NEW_ARRAY(n, struct sort_item *), .at = NEW_ARRAY(n, uint32_t), .step = NEW_ARRAY(n, const struct rank_step *), .before = NEW_ARRAY(n, const struct rank_step *), .begin = NEW_ARRAY(n, int64_t),
	                              .spent = NEW_ARRAY(n, int64_t), .scratch = NEW_ARRAY(n, int64_t), .own = NEW_ARRAY((size_t)n * JOB_FRONTIER_PHASES, int64_t),
	                              .first = NEW_ARRAY((size_t)n * JOB_FRONTIER_PHASES, uint32_t), .second = NEW_ARRAY((size_t)n * JOB_FRONTIER_PHASES, uint32_t)};
	job_frontier_sort_steps(&w);
	job_frontier_add_steps(&w, first, last);
	for (unsigned k = 0; k < JOB_FRONTIER_PHASES; k++)
		job_frontier_name(&w, k);
	for (uint32_t i = 0; i < n; i++)
		mem_free(w.order[i]);
	mem_free(w.order);
	mem_free(w.at);
	mem_free(w.step);
	mem_free(w.before);
	mem_free(w.begin);
	mem_free(w.spent);
	mem_free(w.scratch);
	mem_free(w.own);
	mem_free(w.first);
	mem_free(w.second);
}
