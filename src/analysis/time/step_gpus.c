#include "analysis/time/step_gpus.h"

#include "analysis/analysis.h"
#include "analysis/steps/steps.h"
#include "analysis/time/gpus.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <sys/param.h>

/* The steps and what lies between them, one piece after the other: piece i is [border[i], border[i + 1]). */
struct step_gpus_pieces {
	int64_t *border;
	unsigned n;
	struct step_gpus_use *use;
};

/* Adds what of [start, end) lies in each piece. `sum`: where the first piece has its sum. */
static void step_gpus_spread(const struct step_gpus_pieces *x, int64_t *sum, int64_t start, int64_t end)
{
	for (unsigned i = FIRST_WHERE(k, 0, x->n, x->border[k + 1] > start); i < x->n && x->border[i] < end; i++) {
		int64_t *of = (int64_t *)((char *)sum + i * sizeof *x->use);
		*of += MAX(0, MIN(end, x->border[i + 1]) - MAX(start, x->border[i]));
	}
}

/* The GPU had run out of work at `until`; g is the next. */
static void step_gpus_add_gap(const struct step_gpus_pieces *x, const struct profile *p, uint32_t g, int64_t until)
{
	uint32_t call = p->gpu_op.call[g];
	int64_t start = p->gpu_op.start_ns[g];
	if (call == ROW_NONE)
		step_gpus_spread(x, &x->use[0].unknown_ns, until, start);
	else {
		const int64_t called = MIN(MAX(p->span.start_ns[call], until), start);
		step_gpus_spread(x, &x->use[0].host_ns, until, called);
		step_gpus_spread(x, &x->use[0].queued_ns, called, start);
	}
}

static void step_gpus_add_kernel(const struct step_gpus_pieces *x, const struct profile *p, uint32_t g)
{
	int64_t start = p->gpu_op.start_ns[g];
	unsigned i = FIRST_WHERE(k, 0, x->n, x->border[k + 1] > start);
	if (p->gpu_op.kind[g] != GPU_KERNEL || i == x->n || start < x->border[i])
		return;
	if (gpu_is_graph(p, g))
		x->use[i].graphs++;
	else
		x->use[i].kernels++;
}

/* Rows of gpu_op, those of one GPU in order of start. */
static void step_gpus_sweep(const struct step_gpus_pieces *x, const struct profile *p, const struct sort_item *item, uint32_t n)
{
	int64_t until = x->border[0], last = x->border[x->n];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = item[i].row;
		int64_t start = p->gpu_op.start_ns[g], end = gpu_end(p, g);
		step_gpus_add_kernel(x, p, g);
		if (start > until)
			step_gpus_add_gap(x, p, g, until);
		step_gpus_spread(x, &x->use[0].busy_ns, MAX(start, until), end);
		until = MAX(until, end);
	}
	step_gpus_spread(x, &x->use[0].host_ns, until, last); /* the last step goes on, and launches nothing */
}

static void step_gpus_of_work(const struct step_gpus_pieces *x, const struct profile *p, const struct gpus *gpus)
{
	uint32_t n = p->gpu_op.rows.n, *count = NEW_ARRAY(gpus->n + 1, uint32_t), *at = NEW_ARRAY(gpus->n + 1, uint32_t);
	struct sort_item *all = NEW_ARRAY_RAW(n, struct sort_item), *dealt = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t g = 0; g < n; g++) {
		uint32_t gpu = gpus_of(gpus, p, g);
		all[g] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, gpu == GPUS_NONE ? gpus->n : gpu};
		count[all[g].tie]++;
	}
	for (uint32_t i = 1; i <= gpus->n; i++)
		at[i] = at[i - 1] + count[i - 1];
	sort_items(all, n);
	for (uint32_t i = 0; i < n; i++)
		dealt[at[all[i].tie]++] = all[i];
	for (uint32_t i = 0; i < gpus->n; i++)
		step_gpus_sweep(x, p, dealt + at[i] - count[i], count[i]);
	mem_free(all);
	mem_free(dealt);
	mem_free(count);
	mem_free(at);
}

void step_gpus_find(const struct profile *p, int64_t first, int64_t last, struct step_gpus *out)
{
	const struct steps *s = p->steps;
	struct gpus gpus;
	unsigned *step = NEW_ARRAY(s->n, unsigned), n = 0;
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].number >= first && s->v[i].number <= last)
			step[n++] = i;
	gpus_find(p, &gpus);
	*out = (struct step_gpus){.n = n, .gpus = gpus.n, .step = step, .use = NEW_ARRAY(2 * (size_t)n, struct step_gpus_use)};
	struct step_gpus_pieces x = {.border = NEW_ARRAY(2 * (size_t)n + 1, int64_t), .n = n ? 2 * n - 1 : 0, .use = out->use};
	for (unsigned i = 0; i < n; i++) {
		/* Steps that a recording states twice, or that overlap, count from the end of the one before. */
		x.border[2 * i] = i ? MAX(s->v[step[i]].start_ns, x.border[2 * i - 1]) : s->v[step[i]].start_ns;
		x.border[2 * i + 1] = MAX(s->v[step[i]].end_ns, x.border[2 * i]);
	}
	for (unsigned i = 0; i < x.n; i++)
		out->use[i].ns = x.border[i + 1] - x.border[i];
	if (n)
		step_gpus_of_work(&x, p, &gpus);
	mem_free(x.border);
	gpus_release(&gpus);
}

void step_gpus_release(struct step_gpus *x)
{
	mem_free(x->step);
	mem_free(x->use);
	*x = (struct step_gpus){0};
}
