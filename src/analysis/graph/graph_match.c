#include "analysis/graph/graph_match.h"

#include "base/align.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <string.h>

/* Of a capture that is aligned with the work, so much of the work, percent, must have a counterpart. */
enum { GRAPH_LEAST_ALIGNED_PCT = 50 };
/* A piece that is aligned is told if so many on either side of it are paired with the calls on either side of its call, or the sequence ends: beside an edit, an equal name may be another call. */
enum { GRAPH_MARGIN = 2 };
/* So many captures are aligned with one graph at most: those of the most similar length. */
enum { GRAPH_MOST_ALIGNED = 16 };

static bool graph_is_equal(const struct graph_sequence *work, const struct graph_capture *c)
{
	const struct graph_sequence *calls = &c->work;
	if (work->n != calls->n)
		return false;
	if (calls->named)
		return memcmp(work->key, calls->key, work->n * sizeof *work->key) == 0;
	return !c->forked && memcmp(work->kind, calls->kind, work->n) == 0;
}

/* Of two captures that fit equally, whether the batch of the second is nearer to that of the step. */
static bool graph_is_nearer(int64_t batch, int64_t known, int64_t other)
{
	if (batch < 0 || other < batch)
		return false;
	return known < batch || other < known;
}

/* ---- the same sequence ---- */

/* Pieces of which another capture that fits as well has another op are ambiguous. Where it has the same op in another module, no module is known. */
static void graph_doubt(struct graph_match *m, const struct graph_sequence *work, const struct graph_capture *other)
{
	for (uint32_t i = 0; i < work->n; i++)
		if (m->capture->plain[i] != other->plain[i]) {
			m->evidence[i] = EVIDENCE_AMBIGUOUS;
			m->call[i] = ROW_NONE;
		} else if (m->capture->op[i] != other->op[i]) {
			m->ops_alone = true;
		}
}

/* Which captures of the work count: named ones, if there are any, and of the least batch that is not smaller than the step's, if that is known. */
struct graph_equal {
	uint32_t n;
	bool named;
	int64_t batch;           /* -1 = of any */
};

static bool graph_counts(const struct graph_equal *x, const struct graph_sequence *work, const struct graph_capture *c)
{
	return c->work.named == x->named && (x->batch < 0 || c->batch == x->batch) && graph_is_equal(work, c);
}

static struct graph_equal graph_equal_of(const struct graph_sequence *work, uint32_t streams, const struct graph_captures *captures, int64_t batch)
{
	struct graph_equal x = {.batch = -1};
	const struct graph_capture *best = NULL;
	if (streams != 1)
		return x;
	x.named = ANY_WHERE(i, 0u, captures->n, captures->v[i].work.named && graph_is_equal(work, &captures->v[i]));
	for (uint32_t i = 0; i < captures->n; i++)
		if (graph_counts(&x, work, &captures->v[i]) && (!best || graph_is_nearer(batch, best->batch, captures->v[i].batch)))
			best = &captures->v[i];
	x.batch = best && batch >= 0 && best->batch >= batch ? best->batch : -1;
	for (uint32_t i = 0; i < captures->n; i++)
		x.n += graph_counts(&x, work, &captures->v[i]);
	return x;
}

int64_t graph_padded_batch(const struct graph_captures *captures, int64_t batch)
{
	int64_t padded = -1;
	for (uint32_t i = 0; i < captures->n && batch >= 0; i++)
		if (captures->v[i].batch >= batch && (padded < 0 || captures->v[i].batch < padded))
			padded = captures->v[i].batch;
	return padded;
}

uint32_t graph_count_equal(const struct graph_sequence *work, uint32_t streams, const struct graph_captures *captures, int64_t batch)
{
	return graph_equal_of(work, streams, captures, batch).n;
}

static bool graph_match_equal(struct graph_match *m, const struct graph_sequence *work, uint32_t streams, const struct graph_captures *captures, int64_t batch, const struct graph *g)
{
	const struct graph_equal equal = graph_equal_of(work, streams, captures, batch);
	const bool in_turns = g->pieces == equal.n && equal.n > 1;
	uint32_t turn = 0;
	for (uint32_t i = 0; i < captures->n && equal.n; i++) {
		const struct graph_capture *c = &captures->v[i];
		if (!graph_counts(&equal, work, c) || (in_turns && turn++ != g->piece))
			continue;
		if (m->capture) {
			graph_doubt(m, work, c);
			continue;
		}
		m->capture = c;
		for (uint32_t k = 0; k < work->n; k++) {
			m->call[k] = k;
			m->evidence[k] = equal.named ? EVIDENCE_SEQUENCE : EVIDENCE_POSITION;
		}
	}
	return m->capture;
}

/* ---- several streams ---- */

static struct sort_item *graph_by_key(const struct graph_sequence *s)
{
	struct sort_item *v = NEW_ARRAY_RAW(s->n, struct sort_item);
	for (uint32_t i = 0; i < s->n; i++)
		v[i] = (struct sort_item){s->key[i], i, 0};
	sort_items(v, s->n);
	return v;
}

static uint32_t graph_run_end(const struct sort_item *v, uint32_t from, uint32_t n)
{
	uint32_t to = from + 1;
	while (to < n && v[to].key == v[from].key)
		to++;
	return to;
}

static bool graph_on_one_stream(const struct profile *p, const struct graph_sequence *work, const struct sort_item *v, uint32_t from, uint32_t to)
{
	return !ANY_WHERE(i, from + 1, to, p->gpu_op.track[work->row[v[i].row]] != p->gpu_op.track[work->row[v[from].row]]);
}

static bool graph_one_op(const struct graph_capture *c, const struct sort_item *v, uint32_t from, uint32_t to)
{
	return !ANY_WHERE(i, from + 1, to, c->op[v[i].row] != c->op[v[from].row]);
}

/* Pairs work and calls of each name in order. Returns how many pieces were told. */
static uint32_t graph_pair_by_name(struct graph_match *m, const struct profile *p, const struct graph_sequence *work, const struct graph_capture *c)
{
	struct sort_item *a = graph_by_key(work), *b = graph_by_key(&c->work);
	uint32_t told = 0;
	for (uint32_t i = 0, k = 0, i_end, k_end; i < work->n; i = i_end) {
		i_end = graph_run_end(a, i, work->n);
		while (k < c->work.n && b[k].key < a[i].key)
			k++;
		if (k == c->work.n || b[k].key != a[i].key)
			continue;
		k_end = graph_run_end(b, k, c->work.n);
		const bool sure = i_end - i == k_end - k && (graph_on_one_stream(p, work, a, i, i_end) || graph_one_op(c, b, k, k_end));
		for (uint32_t at = i; at < i_end; at++) {
			m->evidence[a[at].row] = sure ? EVIDENCE_SEQUENCE : EVIDENCE_AMBIGUOUS;
			m->call[a[at].row] = sure ? b[k + at - i].row : ROW_NONE;
		}
		told += sure ? i_end - i : 0;
		k = k_end;
	}
	mem_free(a);
	mem_free(b);
	return told;
}

static void graph_match_reset(struct graph_match *m, uint32_t n)
{
	m->capture = NULL;
	memset(m->evidence, EVIDENCE_UNKNOWN, n);
	memset(m->call, 0xff, n * sizeof *m->call);
}

/* ---- sequences that differ ---- */

static uint64_t *graph_reversed(const uint64_t *key, uint32_t n)
{
	uint64_t *v = NEW_ARRAY_RAW(n, uint64_t);
	for (uint32_t i = 0; i < n; i++)
		v[i] = key[n - 1 - i];
	return v;
}

/* Whether the pieces around i are paired with the calls around its call. */
static bool graph_is_inside_run(const uint32_t *pair, uint32_t n, uint32_t n_calls, uint32_t i)
{
	const uint32_t call = pair[i];
	for (uint32_t k = 1; k <= GRAPH_MARGIN; k++) {
		const bool first = i < k && call < k, last = i + k >= n && call + k >= n_calls;
		if (!first && (i < k || call < k || pair[i - k] != call - k))
			return false;
		if (!last && (i + k >= n || call + k >= n_calls || pair[i + k] != call + k))
			return false;
	}
	return true;
}

/* Pairs what is paired from the front as from the back, which are the first and the last of all best alignments: of what lies between them, none is known. Returns how many pieces were told. */
static uint32_t graph_pair_aligned(struct graph_match *m, const struct graph_sequence *work, const struct graph_capture *c)
{
	const uint32_t n = work->n, n_calls = c->work.n;
	uint64_t *back[] = {graph_reversed(work->key, n), graph_reversed(c->work.key, n_calls)};
	uint32_t *first = NEW_ARRAY_RAW(n, uint32_t), *last = NEW_ARRAY_RAW(n, uint32_t), told = 0;
	align_sequences(&(struct align_ask){.hash = {work->key, c->work.key}, .n = {n, n_calls}}, first);
	align_sequences(&(struct align_ask){.hash = {back[0], back[1]}, .n = {n, n_calls}}, last);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t from_back = last[n - 1 - i], other = from_back == ALIGN_NONE ? ROW_NONE : n_calls - 1 - from_back;
		if (first[i] == ALIGN_NONE && other == ROW_NONE)
			continue;
		const bool same = first[i] != ALIGN_NONE && other != ROW_NONE && c->op[first[i]] == c->op[other] && graph_is_inside_run(first, n, n_calls, i);
		m->evidence[i] = same ? EVIDENCE_ALIGNED : EVIDENCE_AMBIGUOUS;
		m->call[i] = same ? first[i] : ROW_NONE;
		told += same;
	}
	mem_free(back[0]);
	mem_free(back[1]);
	mem_free(first);
	mem_free(last);
	return told;
}

/* Named captures by how much their length differs from n, at most GRAPH_MOST_ALIGNED; *found gets how many. */
static struct sort_item *graph_similar(const struct graph_captures *captures, uint32_t n, int64_t padded, uint32_t *found)
{
	struct sort_item *v = NEW_ARRAY_RAW(captures->n, struct sort_item);
	*found = 0;
	for (uint32_t i = 0; i < captures->n; i++) {
		const struct graph_sequence *s = &captures->v[i].work;
		if (s->named && (padded < 0 || captures->v[i].batch < 0 || captures->v[i].batch == padded))
			v[(*found)++] = (struct sort_item){s->n > n ? s->n - n : n - s->n, i, 0};
	}
	sort_items(v, *found);
	*found = *found < GRAPH_MOST_ALIGNED ? *found : GRAPH_MOST_ALIGNED;
	return v;
}

static uint32_t graph_try(struct graph_match *m, const struct profile *p, const struct graph_sequence *work, uint32_t streams, const struct graph_capture *c)
{
	graph_match_reset(m, work->n);
	m->capture = c;
	return streams > 1 ? graph_pair_by_name(m, p, work, c) : graph_pair_aligned(m, work, c);
}

/* What another capture, by which as much is told, says otherwise. */
static void graph_doubt_told(struct graph_match *m, const struct graph_match *other, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (m->call[i] == ROW_NONE || other->call[i] == ROW_NONE)
			continue;
		m->ops_alone |= m->capture->op[m->call[i]] != other->capture->op[other->call[i]];
		if (m->capture->plain[m->call[i]] != other->capture->plain[other->call[i]]) {
			m->evidence[i] = EVIDENCE_AMBIGUOUS;
			m->call[i] = ROW_NONE;
		}
	}
}

/* Tries the captures one after the other, of the batch that the step pads to, if that is known. The one by which most is told, and at least half, is the graph's; where others tell as much, they cast doubt. */
static void graph_match_best(struct graph_match *m, const struct profile *p, const struct graph_sequence *work, uint32_t streams, const struct graph_captures *captures, int64_t batch)
{
	const int64_t padded = graph_padded_batch(captures, batch);
	uint32_t n, most = 0, *told;
	struct sort_item *v = graph_similar(captures, work->n, padded, &n);
	const struct graph_capture *best = NULL;
	told = NEW_ARRAY(n, uint32_t);
	for (uint32_t i = 0; i < n; i++) {
		told[i] = graph_try(m, p, work, streams, &captures->v[v[i].row]);
		if (told[i] > most && (uint64_t)told[i] * 100 >= (uint64_t)work->n * GRAPH_LEAST_ALIGNED_PCT) {
			most = told[i];
			best = &captures->v[v[i].row];
		}
	}
	graph_match_reset(m, work->n);
	if (best)
		(void)graph_try(m, p, work, streams, best);
	for (uint32_t i = 0; i < n && best; i++) {
		struct graph_match other = {.evidence = NEW_ARRAY_RAW(work->n, uint8_t), .call = NEW_ARRAY_RAW(work->n, uint32_t)};
		if (told[i] == most && &captures->v[v[i].row] != best) {
			(void)graph_try(&other, p, work, streams, &captures->v[v[i].row]);
			graph_doubt_told(m, &other, work->n);
		}
		graph_match_release(&other);
	}
	mem_free(told);
	mem_free(v);
}

void graph_match_find(struct graph_match *m, const struct profile *p, const struct graph_sequence *work, uint32_t streams, const struct graph_captures *captures, int64_t batch, const struct graph *g)
{
	*m = (struct graph_match){.evidence = NEW_ARRAY_RAW(work->n, uint8_t), .call = NEW_ARRAY_RAW(work->n, uint32_t)};
	graph_match_reset(m, work->n);
	if (!graph_match_equal(m, work, streams, captures, batch, g))
		graph_match_best(m, p, work, streams, captures, batch);
	/* What was launched outside of all ops has no op to be attributed to. */
	for (uint32_t i = 0; i < work->n; i++)
		if (m->call[i] != ROW_NONE && !m->capture->op[m->call[i]]) {
			m->evidence[i] = EVIDENCE_UNKNOWN;
			m->call[i] = ROW_NONE;
		}
}

void graph_match_release(struct graph_match *m)
{
	mem_free(m->evidence);
	mem_free(m->call);
	graph_sequence_release(&m->own.work);
	mem_free(m->own.op);
}
