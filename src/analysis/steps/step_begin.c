#include "analysis/steps/step_begin.h"

#include "analysis/analysis.h"
#include "analysis/time/gpus.h"
#include "base/mem.h"
#include "base/sort.h"

#include <sys/param.h>

/* How long device work waited behind its call. */
struct step_waits {
	int64_t first_ns;        /* the first work of all */
	int64_t longest_ns;      /* of later work, while its GPU had nothing to do */
	bool followed;           /* other work had been launched when the first began */
};

/* All work in order of its start. */
static struct sort_item *step_begin_order(const struct profile *p)
{
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		v[g] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	sort_items(v, p->gpu_op.rows.n);
	return v;
}

static int64_t step_begin_wait(const struct profile *p, uint32_t g)
{
	return p->gpu_op.start_ns[g] - span_end(p, p->gpu_op.call[g]);
}

static struct step_waits step_begin_waits(const struct profile *p, uint32_t first)
{
	const int64_t begin = p->gpu_op.start_ns[first];
	struct sort_item *order = step_begin_order(p);
	struct gpus gpus;
	gpus_find(p, &gpus);
	int64_t *until = NEW_ARRAY_RAW(gpus.n + 1, int64_t); /* of each GPU, and of work of which the GPU is not known */
	struct step_waits w = {.first_ns = step_begin_wait(p, first)};
	for (uint32_t i = 0; i <= gpus.n; i++)
		until[i] = begin;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		const uint32_t g = order[i].row, of = gpus_of(&gpus, p, g), gpu = of == GPUS_NONE ? gpus.n : of, call = p->gpu_op.call[g];
		if (g != first && call != ROW_NONE) {
			const int64_t called = span_end(p, call);
			w.longest_ns = MAX(w.longest_ns, p->gpu_op.start_ns[g] - MAX(until[gpu], called));
			w.followed |= called < begin && call != p->gpu_op.call[first];
		}
		until[gpu] = MAX(until[gpu], gpu_end(p, g));
	}
	mem_free(until);
	mem_free(order);
	gpus_release(&gpus);
	return w;
}

static uint32_t step_begin_first(const struct profile *p)
{
	uint32_t first = 0;
	for (uint32_t g = 1; g < p->gpu_op.rows.n; g++)
		first = p->gpu_op.start_ns[g] < p->gpu_op.start_ns[first] ? g : first;
	return first;
}

/* Whether the first work of all was launched in the step. */
static bool step_begin_is_first(const struct profile *p, const struct step *s, uint32_t first)
{
	const uint32_t call = p->gpu_op.call[first];
	return call != ROW_NONE && p->span.start_ns[call] >= s->host_start_ns && span_end(p, call) <= s->host_end_ns && p->gpu_op.start_ns[first] > s->start_ns;
}

void step_begin_settle(const struct profile *p, struct steps *s)
{
	if (!s->n || s->whole_trace || !p->gpu_op.rows.n || (s->edges && s->edge[0].start_ns < s->v[0].start_ns))
		return;
	struct step *x = &s->v[0];
	const uint32_t first = step_begin_first(p);
	if (step_begin_is_first(p, x, first) && step_begin_wait(p, first) >= STEP_WAIT_LEAST_NS) {
		const struct step_waits w = step_begin_waits(p, first);
		if (w.followed && w.first_ns / STEP_WAIT_TIMES > w.longest_ns) {
			x->start_ns = p->gpu_op.start_ns[first];
			s->before.waited_ns = w.first_ns;
			s->before.longest_ns = w.longest_ns;
		}
	}
	s->before.ns = x->start_ns - x->host_start_ns;
}
