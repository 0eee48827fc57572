#include "analysis/time/launch_queue.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <assert.h>

/* The entries of the stream whose work is rows from .. to - 1: first the pieces that a call launched first. */
static uint32_t entries_of(const struct profile *p, struct launch_queues *q, uint32_t from, uint32_t to, uint32_t *last_track, uint32_t *entry)
{
	const struct gpu_ops *g = &p->gpu_op;
	uint32_t n = 0;
	for (uint32_t i = from; i < to; i++) {
		uint32_t call = g->call[i];
		if (call == ROW_NONE) {
			q->unknown++;
			continue;
		}
		if (last_track[call] == g->track[i])
			continue;
		last_track[call] = g->track[i];
		if (g->start_ns[i] < p->span.start_ns[call])
			q->early++;
		else
			entry[n++] = i;
	}
	return n;
}

/* Merges launches, in order of their calls' starts, and begins, which are in order. */
static void merge(const struct profile *p, struct launch_queues *q, const uint32_t *entry, struct sort_item *launch, uint32_t n)
{
	uint32_t begun = 0, length = 0;
	for (uint32_t i = 0; i < n; i++)
		launch[i] = (struct sort_item){sort_key_i64(p->span.start_ns[p->gpu_op.call[entry[i]]]), entry[i], 0};
	sort_items(launch, n);
	for (uint32_t i = 0; begun < n;) { /* each was launched before it began, so that launches run out first */
		int64_t starts = p->gpu_op.start_ns[entry[begun]];
		if (i < n && p->span.start_ns[p->gpu_op.call[launch[i].row]] <= starts) {
			q->v[q->n++] = (struct queue_change){p->span.start_ns[p->gpu_op.call[launch[i].row]], launch[i].row, ++length, true};
			i++;
		} else {
			assert(length);
			q->v[q->n++] = (struct queue_change){starts, entry[begun], --length, false};
			begun++;
		}
	}
}

void launch_queues_find(const struct profile *p, struct launch_queues *out)
{
	const struct gpu_ops *g = &p->gpu_op;
	uint32_t n = g->rows.n, *entry = NEW_ARRAY_RAW(n, uint32_t), *last_track = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	struct sort_item *launch = NEW_ARRAY_RAW(n, struct sort_item);
	*out = (struct launch_queues){.v = NEW_ARRAY_RAW((size_t)n * 2, struct queue_change)};
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		last_track[i] = ROW_NONE;
	for (uint32_t from = 0, to; from < n; from = to) {
		to = FIRST_WHERE(i, from, n, g->track[i] != g->track[from]);
		merge(p, out, entry, launch, entries_of(p, out, from, to, last_track, entry));
	}
	mem_free(launch);
	mem_free(last_track);
	mem_free(entry);
}

void launch_queues_release(struct launch_queues *q) { mem_free(q->v); }

uint32_t launch_queue_end(const struct launch_queues *q, const struct profile *p, uint32_t at)
{
	return FIRST_WHERE(i, at, q->n, p->gpu_op.track[q->v[i].gpu] != p->gpu_op.track[q->v[at].gpu]);
}

bool launch_queue_has_limit(const struct profile *p, uint32_t gpu)
{
	uint32_t call = p->gpu_op.call[gpu];
	return call != ROW_NONE && str_starts(profile_str(p, p->span.name[call]), STR("cu"));
}
