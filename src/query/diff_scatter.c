#include "query/diff_scatter.h"

#include "base/mem.h"
#include "query/diff_noise.h"

#include <assert.h>
#include <string.h>

static bool diff_scatter_is_kept(const struct diff_side *s, uint32_t n_parts)
{
	return s->has_steps && s->n_steps > 1 && !s->scatter_dropped && (uint64_t)n_parts * s->n_steps <= DIFF_SCATTER_CELLS;
}

void diff_scatter_drop(struct diff_side *s)
{
	mem_free(s->part_step_ns);
	s->part_step_ns = NULL;
	s->n_part_steps = s->cap_part_steps = 0;
	s->scatter_dropped = true;
}

/* Room for so many parts; false = nothing is kept. */
static bool diff_scatter_reach(struct diff_side *s, uint32_t n_parts)
{
	if (!diff_scatter_is_kept(s, n_parts)) {
		diff_scatter_drop(s);
		return false;
	}
	const uint32_t n = n_parts * s->n_steps;
	if (n > s->n_part_steps) {
		MEM_GROW(s->part_step_ns, s->cap_part_steps, n);
		memset(s->part_step_ns + s->n_part_steps, 0, (n - s->n_part_steps) * sizeof *s->part_step_ns);
		s->n_part_steps = n;
	}
	return true;
}

void diff_scatter_count(struct diff_side *s, uint32_t part, unsigned step, int64_t ns)
{
	assert(part < s->n_parts && step < s->n_steps);
	if (diff_scatter_reach(s, part + 1))
		s->part_step_ns[part * s->n_steps + step] += ns;
}

bool diff_scatter_adds_up(const struct diff_side *s)
{
	int64_t left_ns = s->total_ns;
	for (uint32_t i = 0; i < s->n_part_steps; i++) {
		const int64_t ns = s->part_step_ns[i];
		if (ns < -left_ns || ns > left_ns)
			return false;
		left_ns -= ns < 0 ? -ns : ns;
	}
	return true;
}

void diff_scatter_end(struct diff_side *s)
{
	if (diff_scatter_reach(s, s->n_parts) && !diff_scatter_adds_up(s))
		diff_scatter_drop(s);
}

void diff_scatter_init(struct diff_scatter *x, const struct diff_side *a, const struct diff_side *b)
{
	*x = (struct diff_scatter){.known = a->n_part_steps && b->n_part_steps, .n_steps = {a->n_steps, b->n_steps}, .gpus = {a->gpus, b->gpus}};
}

void diff_scatter_release(struct diff_scatter *x)
{
	mem_free(x->ns[0]);
	mem_free(x->ns[1]);
}

/* The list's numbers, which are 0 at first. NULL: there are too many lists, and no row's scatter is known. */
static int64_t *diff_scatter_list(struct diff_scatter *x, int side, uint32_t list)
{
	const size_t n = ((size_t)list + 1) * x->n_steps[side];
	if (n > DIFF_SCATTER_CELLS) {
		x->known = false;
		return NULL;
	}
	if (n > x->n[side]) {
		MEM_GROW(x->ns[side], x->cap[side], n);
		memset(x->ns[side] + x->n[side], 0, (n - x->n[side]) * sizeof **x->ns);
		x->n[side] = n;
	}
	return x->ns[side] + (size_t)list * x->n_steps[side];
}

void diff_scatter_add(struct diff_scatter *x, int side, uint32_t list, const struct diff_side *s, uint32_t part)
{
	if (!x->known)
		return;
	assert(((uint64_t)part + 1) * s->n_steps <= s->n_part_steps);
	int64_t *to = diff_scatter_list(x, side, list);
	for (unsigned i = 0; to && i < x->n_steps[side]; i++)
		to[i] += s->part_step_ns[(size_t)part * s->n_steps + i];
}

void diff_scatter_sum(struct diff_scatter *x, int side, uint32_t to, uint32_t from)
{
	if (!x->known || !diff_scatter_list(x, side, to > from ? to : from))
		return;
	int64_t *sum = diff_scatter_list(x, side, to);
	const int64_t *more = diff_scatter_list(x, side, from);
	for (unsigned i = 0; i < x->n_steps[side]; i++)
		sum[i] += more[i];
}

static int64_t *diff_scatter_means(const struct diff_scatter *x, int side, uint32_t list)
{
	int64_t *mean_ns = NEW_ARRAY(x->n_steps[side], int64_t);
	const size_t at = (size_t)list * x->n_steps[side];
	for (unsigned i = 0; i < x->n_steps[side] && at < x->n[side]; i++)
		mean_ns[i] = x->ns[side][at + i] / (x->gpus[side] ? x->gpus[side] : 1);
	return mean_ns;
}

bool diff_scatter_half(const struct diff_scatter *x, uint32_t list_a, uint32_t list_b, double *half_ns)
{
	if (!x->known)
		return false;
	int64_t *a = diff_scatter_means(x, 0, list_a), *b = diff_scatter_means(x, 1, list_b);
	const struct diff_noise noise = diff_noise_of(a, x->n_steps[0], b, x->n_steps[1]);
	*half_ns = noise.half_ns;
	mem_free(a);
	mem_free(b);
	return noise.known;
}
