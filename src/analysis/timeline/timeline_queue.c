/* How many launches waited on devices over time. */
#include "analysis/time/launch_queue.h"
#include "analysis/timeline/timeline_sums.h"
#include "base/mem.h"

#include <stdlib.h>

struct timeline_queue_list {
	int64_t from_ns, to_ns;
	uint32_t points;
	struct timeline_queue *v;
	uint32_t n, cap;
};

static uint32_t *timeline_queue_of(struct timeline_queue_list *l, int32_t device)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].device == device)
			return l->v[i].longest;
	MEM_PUSH(l->v, l->n, l->cap, (struct timeline_queue){device, NEW_ARRAY(l->points, uint32_t)});
	return l->v[l->n - 1].longest;
}

static uint32_t timeline_queue_piece(const struct timeline_queue_list *l, int64_t ns)
{
	return (uint32_t)((__int128)(ns - l->from_ns) * l->points / (l->to_ns - l->from_ns));
}

/* The queue is as long from one moment to another. */
static void timeline_queue_add(const struct timeline_queue_list *l, uint32_t *longest, int64_t start, int64_t end, uint32_t length)
{
	start = start > l->from_ns ? start : l->from_ns;
	end = end < l->to_ns ? end : l->to_ns;
	if (!length || start >= end)
		return;
	for (uint32_t k = timeline_queue_piece(l, start), last = timeline_queue_piece(l, end - 1); k <= last; k++)
		longest[k] = length > longest[k] ? length : longest[k];
}

static int timeline_queue_order(const void *a, const void *b)
{
	const struct timeline_queue *x = a, *y = b;
	return x->device < y->device ? -1 : x->device > y->device;
}

uint32_t timeline_queues(const struct timeline *t, int64_t from_ns, int64_t to_ns, uint32_t points, struct timeline_queue **out)
{
	struct timeline_queue_list l = {.from_ns = from_ns, .to_ns = to_ns, .points = points};
	const struct profile *p = t->p;
	struct launch_queues q;
	*out = NULL;
	if (p->gpu_op.rows.n > TIMELINE_QUEUES_MOST)
		return 0;
	launch_queues_find(p, &q);
	for (uint32_t at = 0, end; at < q.n; at = end) {
		uint32_t launch = p->gpu_op.launch[q.v[at].gpu];
		end = launch_queue_end(&q, p, at);
		if (launch == ROW_NONE || p->launch.device[launch] == INT32_MIN)
			continue;
		uint32_t *longest = timeline_queue_of(&l, p->launch.device[launch]);
		for (uint32_t i = at; i + 1 < end; i++)
			timeline_queue_add(&l, longest, q.v[i].time_ns, q.v[i + 1].time_ns, q.v[i].length);
	}
	launch_queues_release(&q);
	if (l.n)
		qsort(l.v, l.n, sizeof *l.v, timeline_queue_order);
	*out = l.v;
	return l.n;
}

void timeline_queues_release(struct timeline_queue *q, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mem_free(q[i].longest);
	mem_free(q);
}
