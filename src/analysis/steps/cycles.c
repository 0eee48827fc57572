#include "analysis/steps/cycles.h"

#include "analysis/analysis.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "store/torch_names.h"

static bool step_number(const struct profile *p, uint32_t span, int64_t *number)
{
	if (p->span.kind[span] != SPAN_USER && p->span.kind[span] != SPAN_OP)
		return false;
	struct str s = profile_str(p, p->span.name[span]);
	return str_skip(&s, STR(TORCH_STEP)) && str_to_i64(s, number) && *number >= 0;
}

struct cycles_run {
	struct cycle of;
	uint32_t process;
};

struct finder {
	const struct profile *p;
	struct sort_item *step; /* spans, by process and time */
	uint32_t n_steps;
	struct cycles_run *run;        /* likewise */
	uint32_t n_runs;
};

static uint32_t cycles_process_of(const struct profile *p, uint32_t track)
{
	return track < p->track.rows.n ? p->track.pid_text[track] : 0;
}

static void find_steps(struct finder *f)
{
	uint32_t cap = 0;
	int64_t number;
	for (uint32_t i = 0; i < f->p->span.rows.n; i++) {
		if (!step_number(f->p, i, &number))
			continue;
		MEM_PUSH(f->step, f->n_steps, cap, (struct sort_item){.key = sort_key_i64(f->p->span.start_ns[i]), .row = i});
	}
	if (!f->n_steps)
		return;
	sort_items(f->step, f->n_steps);
	for (uint32_t i = 0; i < f->n_steps; i++) /* stable: each process stays in order of time */
		f->step[i].key = cycles_process_of(f->p, f->p->span.track[f->step[i].row]);
	sort_items(f->step, f->n_steps);
}

/* Each of several threads of a process may have each step. */
static void find_runs(struct finder *f)
{
	f->run = NEW_ARRAY_RAW(f->n_steps, struct cycles_run);
	for (uint32_t i = 0; i < f->n_steps; i++) {
		uint32_t row = f->step[i].row, process = (uint32_t)f->step[i].key;
		int64_t number, end = span_end(f->p, row);
		step_number(f->p, row, &number);
		struct cycles_run *last = f->n_runs ? &f->run[f->n_runs - 1] : NULL;
		if (!last || last->process != process || number < last->of.step_last || number - last->of.step_last > 1) {
			last = &f->run[f->n_runs++];
			*last = (struct cycles_run){{f->p->span.start_ns[row], end, number, number}, process};
		}
		last->of.step_last = number;
		last->of.end_ns = end > last->of.end_ns ? end : last->of.end_ns;
	}
}

static struct idmap all_numbers(const struct finder *f)
{
	struct idmap numbers;
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < f->n_runs; i++) {
		min = f->run[i].of.step_first < min ? f->run[i].of.step_first : min;
		max = f->run[i].of.step_last > max ? f->run[i].of.step_last : max;
	}
	idmap_init(&numbers, min, max, f->n_steps);
	return numbers;
}

/* The cycle that a run belongs to: of those known so far, which began no later, the first that has a step of it and is not over. */
static uint32_t known_cycle(const struct cycles *c, const struct idmap *cycle_of_step, const struct cycle *run)
{
	for (int64_t step = run->step_first;; step++) { /* the last may be INT64_MAX */
		uint32_t k = idmap_get(cycle_of_step, step);
		if (k != IDMAP_NONE && c->v[k].end_ns > run->start_ns)
			return k;
		if (step >= run->step_last)
			return c->n;
	}
}

static void merge_runs(const struct finder *f, struct cycles *c)
{
	struct idmap cycle_of_step = all_numbers(f); /* the latest with that step */
	struct sort_item *order = NEW_ARRAY_RAW(f->n_runs, struct sort_item);
	for (uint32_t i = 0; i < f->n_runs; i++)
		order[i] = (struct sort_item){.key = sort_key_i64(f->run[i].of.start_ns), .row = i};
	sort_items(order, f->n_runs);
	for (uint32_t i = 0; i < f->n_runs; i++) {
		const struct cycle *run = &f->run[order[i].row].of;
		uint32_t k = known_cycle(c, &cycle_of_step, run);
		if (k == c->n)
			c->v[c->n++] = *run;
		struct cycle *to = &c->v[k];
		to->end_ns = run->end_ns > to->end_ns ? run->end_ns : to->end_ns;
		to->step_first = run->step_first < to->step_first ? run->step_first : to->step_first;
		to->step_last = run->step_last > to->step_last ? run->step_last : to->step_last;
		for (int64_t step = run->step_first;; step++) {
			idmap_put(&cycle_of_step, step, k);
			if (step >= run->step_last)
				break;
		}
		c->run[order[i].row].cycle = k;
	}
	mem_free(order);
	idmap_release(&cycle_of_step);
}

void cycles_find(const struct profile *p, struct cycles *c)
{
	struct finder f = {.p = p};
	*c = (struct cycles){0};
	find_steps(&f);
	if (f.n_steps) {
		find_runs(&f);
		c->v = NEW_ARRAY_RAW(f.n_runs, struct cycle);
		c->run = NEW_ARRAY_RAW(f.n_runs, struct cycle_run);
		c->n_runs = f.n_runs;
		for (uint32_t i = 0; i < f.n_runs; i++)
			c->run[i] = (struct cycle_run){.process = f.run[i].process, .start_ns = f.run[i].of.start_ns};
		merge_runs(&f, c);
	}
	mem_free(f.step);
	mem_free(f.run);
}

void cycles_release(struct cycles *c)
{
	mem_free(c->v);
	mem_free(c->run);
	*c = (struct cycles){0};
}

/* How many runs are of processes before `process`, or of that one and began by then. */
static uint32_t runs_until(const struct cycles *c, uint32_t process, int64_t time_ns)
{
	const struct cycle_run *r = c->run;
	return FIRST_WHERE(i, 0, c->n_runs, r[i].process > process || (r[i].process == process && r[i].start_ns > time_ns));
}

static uint32_t cycle_of_any(const struct cycles *c, int64_t time_ns)
{
	uint32_t lo = FIRST_WHERE(i, 0, c->n, c->v[i].start_ns > time_ns);
	return lo ? lo - 1 : 0;
}

uint32_t cycle_at(const struct cycles *c, const struct profile *p, uint32_t track, int64_t time_ns)
{
	uint32_t process = cycles_process_of(p, track), at = runs_until(c, process, time_ns);
	if (at && c->run[at - 1].process == process)
		return c->run[at - 1].cycle;
	if (at < c->n_runs && c->run[at].process == process)
		return c->run[at].cycle;
	return cycle_of_any(c, time_ns);
}
