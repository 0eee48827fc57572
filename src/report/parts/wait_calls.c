#include "report/parts/wait_calls.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "base/mem.h"
#include "base/sort.h"

/* What else the name of a call says: the call frees device memory; the call only asks whether the device is done. */
enum { CALL_FREES = 1, CALL_ASKS = 2 };

static uint8_t call_kind(struct str s)
{
	static const char *const frees[] = {"cudaFree", "hipFree", "cuMemFree_v2"};
	bool asks = str_ends(s, STR("EventQuery")) || str_ends(s, STR("StreamQuery"));
	return (asks ? CALL_ASKS : 0) | (STR_IN(s, frees) ? CALL_FREES : 0);
}

/* Marks calls whose name says that they wait. A call whose name says that it copies is marked, too; by_copy looks at its copy. */
static void wait_calls_by_name(const struct profile *p, struct wait_calls *w, const struct name_memo *kinds)
{
	const struct spans *s = &p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL)
			continue;
		enum host_kind k = name_host_kind(p, s->name[i]);
		w->calls++;
		w->kind[i] = k == HOST_SYNC ? WAIT_CALL_SYNC : k == HOST_SYNC_COPY ? WAIT_CALL_COPY : WAIT_CALL_NONE;
		if (name_memo_of(kinds, s->name[i]) & CALL_FREES) {
			w->frees++;
			w->frees_ns += s->dur_ns[i];
		}
	}
}

static void by_copy(const struct profile *p, struct wait_calls *w)
{
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t call = p->gpu_op.call[g];
		if (p->gpu_op.kind[g] != GPU_MEMCPY || call == ROW_NONE || w->kind[call] == WAIT_CALL_SYNC)
			continue;
		struct str name = profile_str(p, p->gpu_op.name[g]);
		bool to_pageable = str_ends(name, STR("-> Pageable)")), ended = gpu_end(p, g) <= span_end(p, call);
		bool may = w->kind[call] == WAIT_CALL_COPY || str_has(name, STR("Pageable"));
		if (w->copy[call] != ROW_NONE && w->kind[call])
			continue; /* the call waited for a copy before this one */
		w->kind[call] = to_pageable || (may && ended) ? WAIT_CALL_COPY : WAIT_CALL_NONE;
		w->copy[call] = g;
	}
}

/* Records of waits that have a correlation id, sorted by id, then start. tie: the record that ends last among this one and those before it with the same id. */
static struct sort_item *by_id_and_start(const struct profile *p, uint32_t *n)
{
	const struct spans *s = &p->span;
	*n = 0;
	for (uint32_t i = 0; i < s->rows.n; i++)
		*n += s->kind[i] == SPAN_SYNC && s->link_id[i] != ID_NONE;
	struct sort_item *v = NEW_ARRAY_RAW(*n, struct sort_item);
	uint32_t k = 0;
	for (uint32_t i = 0; i < s->rows.n; i++)
		if (s->kind[i] == SPAN_SYNC && s->link_id[i] != ID_NONE)
			v[k++] = (struct sort_item){sort_key_i64(s->start_ns[i]), i, 0};
	sort_items(v, *n);
	for (k = 0; k < *n; k++)
		v[k].key = sort_key_i64(s->link_id[v[k].row]);
	sort_items(v, *n);
	for (k = 0; k < *n; k++) {
		bool follows = k && v[k - 1].key == v[k].key && span_end(p, v[k - 1].tie) >= span_end(p, v[k].row);
		v[k].tie = follows ? v[k - 1].tie : v[k].row;
	}
	return v;
}

/* How many of the records have a lower key, or this key and a start no later than `time`. */
static uint32_t up_to(const struct profile *p, const struct sort_item *v, uint32_t n, uint64_t key, int64_t time)
{
	uint32_t a = 0, b = n;
	while (a < b) {
		uint32_t m = a + (b - a) / 2;
		if (v[m].key < key || (v[m].key == key && p->span.start_ns[v[m].row] <= time))
			a = m + 1;
		else
			b = m;
	}
	return a;
}

/* The record of this call's wait; ROW_NONE. Several processes use the same ids, so the record must overlap the call in time. Of several records
 * the one that starts last is taken, else the one that ends last. */
static uint32_t record_of(const struct profile *p, const struct sort_item *records, uint32_t n, uint32_t call)
{
	uint64_t key = sort_key_i64(p->span.link_id[call]);
	uint32_t k = up_to(p, records, n, key, span_end(p, call));
	if (!k || records[k - 1].key != key)
		return ROW_NONE;
	const struct sort_item *last = &records[k - 1];
	if (span_end(p, last->row) >= p->span.start_ns[call])
		return last->row;
	return span_end(p, last->tie) >= p->span.start_ns[call] ? last->tie : ROW_NONE;
}

static void mark_recorded(const struct profile *p, struct wait_calls *w, const struct name_memo *kinds)
{
	const struct spans *s = &p->span;
	uint32_t n;
	struct sort_item *records = by_id_and_start(p, &n);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t record = s->kind[i] == SPAN_CALL && s->link_id[i] != ID_NONE ? record_of(p, records, n, i) : ROW_NONE;
		if (record == ROW_NONE)
			continue;
		bool asks = name_memo_of(kinds, s->name[i]) & CALL_ASKS;
		w->asked += asks && !w->asks[record];
		w->asks[record] |= asks;
		w->kind[i] = WAIT_CALL_RECORDED;
	}
	mem_free(records);
}

/* cuStreamSynchronize inside cudaStreamSynchronize is one wait; a record of either call is a record of that wait. Rows are sorted by thread and
 * start, and a call stands before the calls inside it. */
static void join_inner(const struct profile *p, struct wait_calls *w)
{
	const struct spans *s = &p->span;
	uint32_t outer = ROW_NONE;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (!w->kind[i])
			continue;
		bool inside = outer != ROW_NONE && s->track[i] == s->track[outer] && s->start_ns[i] < span_end(p, outer) && span_end(p, i) <= span_end(p, outer);
		if (!inside) {
			outer = i;
			continue;
		}
		if (w->kind[i] == WAIT_CALL_RECORDED)
			w->kind[outer] = WAIT_CALL_RECORDED;
		w->kind[i] = WAIT_CALL_NONE;
	}
}

void wait_calls_find(const struct profile *p, struct wait_calls *w)
{
	uint32_t n = p->span.rows.n;
	struct name_memo kinds = name_memo_new(p, call_kind);
	*w = (struct wait_calls){.kind = NEW_ARRAY(n, uint8_t), .copy = NEW_ARRAY_RAW(n, uint32_t), .asks = NEW_ARRAY(n, uint8_t)};
	for (uint32_t i = 0; i < n; i++)
		w->copy[i] = ROW_NONE;
	wait_calls_by_name(p, w, &kinds);
	by_copy(p, w);
	mark_recorded(p, w, &kinds);
	join_inner(p, w);
	name_memo_release(&kinds);
}

void wait_calls_release(struct wait_calls *w)
{
	mem_free(w->kind);
	mem_free(w->copy);
	mem_free(w->asks);
	*w = (struct wait_calls){0};
}
