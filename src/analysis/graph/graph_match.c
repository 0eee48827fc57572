#include "analysis/graph/graph_match.h"

#include "analysis/graph/graph_plausible.h"
#include "base/align.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <string.h>

/* An aligned capture must tell this percentage of the pieces: less in common is another graph. */
enum { GRAPH_LEAST_ALIGNED_PCT = 50 };
/* An aligned piece is told if this many pieces on either side are paired with the calls beside its call, or the sequence ends there. Beside a difference, an
 * equal name may be another call. */
enum { GRAPH_MARGIN = 2 };
/* An alignment takes time. This many different captures, those of the most similar length, are aligned with one graph. */
enum { GRAPH_MOST_ALIGNED = 16 };

/* What captures that fit a graph equally well agree on. */
struct graph_agreement {
	uint8_t *doubt;          /* by piece: they have different ops there */
	bool ops_alone;          /* as in struct graph_match */
	bool by_chance;          /* their hashes are equal and their sequences are not: nothing is told */
};

/* Captures with the same batch, names and ops. The first one stands for all. */
struct graph_alike {
	uint32_t capture;
	bool ops_alone;          /* the modules of their ops differ */
};

struct graph_index {
	const struct graph_captures *captures;
	struct sort_item *equal; /* captures by graph_fit_hash, then by batch, then in order; row is of captures->v */
	uint32_t n_equal;
	struct graph_alike *alike; /* of captures with names */
	uint32_t n_alike;
	struct sort_item *similar; /* rows of `alike` by number of calls, the key */
	int64_t *batch;          /* of captures, ascending, each once; >= 0 */
	uint32_t n_batches;
	struct graph_agreement *agreement; /* of the ranges of `equal` that were asked for */
	uint32_t n_agreements, cap_agreements;
	struct idmap of_range;   /* 2 * struct graph_equal.from + of_batch -> row of `agreement` */
	struct graph_op_classes classes;
};

static uint64_t graph_hash(const uint64_t *v, uint32_t n, uint64_t seed)
{
	return hash_u64(hash_bytes(v, n * sizeof *v) + seed);
}

/* Equal for work and captures that fit: a hash of the names, or of the kinds. */
static uint64_t graph_fit_hash(const struct graph_sequence *s, bool named)
{
	return named ? graph_hash(s->key, s->n, 1) : hash_u64(hash_bytes(s->kind, s->n) + 2);
}

static const struct graph_capture *graph_equal_at(const struct graph_index *x, uint32_t i)
{
	return &x->captures->v[x->equal[i].row];
}

static void graph_index_equal(struct graph_index *x)
{
	x->equal = NEW_ARRAY_RAW(x->captures->n, struct sort_item);
	for (uint32_t i = 0; i < x->captures->n; i++) {
		const struct graph_capture *c = &x->captures->v[i];
		if (c->work.named || !c->loose)
			x->equal[x->n_equal++] = (struct sort_item){sort_key_i64(c->batch), i, 0};
	}
	sort_items(x->equal, x->n_equal);
	for (uint32_t i = 0; i < x->n_equal; i++)
		x->equal[i].key = graph_fit_hash(&graph_equal_at(x, i)->work, graph_equal_at(x, i)->work.named);
	sort_items(x->equal, x->n_equal);
}

/* Whether both have the same batch, names and ops. Modules may differ. */
static bool graph_is_alike(const struct graph_capture *a, const struct graph_capture *b)
{
	return a->batch == b->batch && a->work.n == b->work.n && memcmp(a->work.key, b->work.key, a->work.n * sizeof *a->work.key) == 0 && memcmp(a->plain, b->plain, a->work.n * sizeof *a->plain) == 0;
}

static void graph_index_alike(struct graph_index *x)
{
	struct sort_item *v = NEW_ARRAY_RAW(x->captures->n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->captures->n; i++) {
		const struct graph_capture *c = &x->captures->v[i];
		if (c->work.named)
			v[n++] = (struct sort_item){hash_u64(graph_hash(c->work.key, c->work.n, 1) + graph_hash(c->plain, c->work.n, (uint64_t)c->batch)), i, 0};
	}
	sort_items(v, n);
	x->alike = NEW_ARRAY_RAW(n, struct graph_alike);
	x->similar = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < n; i++) {
		const struct graph_capture *c = &x->captures->v[v[i].row];
		struct graph_alike *last = i && v[i].key == v[i - 1].key ? &x->alike[x->n_alike - 1] : NULL;
		const struct graph_capture *first = last ? &x->captures->v[last->capture] : NULL;
		if (first && graph_is_alike(first, c)) {
			last->ops_alone |= memcmp(first->op, c->op, c->work.n * sizeof *c->op) != 0;
			continue;
		}
		x->similar[x->n_alike] = (struct sort_item){c->work.n, x->n_alike, 0};
		x->alike[x->n_alike++] = (struct graph_alike){v[i].row, false};
	}
	sort_items(x->similar, x->n_alike);
	mem_free(v);
}

static void graph_index_batches(struct graph_index *x)
{
	int64_t *v = NEW_ARRAY_RAW(x->captures->n, int64_t);
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->captures->n; i++)
		if (x->captures->v[i].batch >= 0)
			v[n++] = x->captures->v[i].batch;
	sort_i64(v, n);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || v[i] != v[x->n_batches - 1])
			v[x->n_batches++] = v[i];
	x->batch = v;
}

struct graph_index *graph_index_new(const struct graph_captures *captures)
{
	struct graph_index *x = NEW(struct graph_index);
	x->captures = captures;
	graph_index_equal(x);
	graph_index_alike(x);
	graph_index_batches(x);
	idmap_init(&x->of_range, 0, 2 * (int64_t)x->n_equal, 2 * (uint64_t)x->n_equal);
	return x;
}

void graph_index_free(struct graph_index *x)
{
	for (uint32_t i = 0; i < x->n_agreements; i++)
		mem_free(x->agreement[i].doubt);
	mem_free(x->agreement);
	mem_free(x->equal);
	mem_free(x->alike);
	mem_free(x->similar);
	mem_free(x->batch);
	idmap_release(&x->of_range);
	graph_op_classes_release(&x->classes);
	mem_free(x);
}

int64_t graph_padded_batch(const struct graph_index *x, int64_t batch)
{
	const uint32_t i = FIRST_WHERE(k, 0u, x->n_batches, x->batch[k] >= batch);
	return batch >= 0 && i < x->n_batches ? x->batch[i] : -1;
}

/* ---- the same sequence ---- */

/* The captures that fit some work: those with names if there are any; of these, those of the least batch that is not smaller than the step's, if there are. */
struct graph_equal {
	uint32_t from, to;       /* of graph_index.equal */
	bool named, of_batch;
};

static bool graph_is_equal(const struct graph_sequence *work, const struct graph_capture *c)
{
	const struct graph_sequence *calls = &c->work;
	if (work->n != calls->n)
		return false;
	return calls->named ? memcmp(work->key, calls->key, work->n * sizeof *work->key) == 0 : memcmp(work->kind, calls->kind, work->n) == 0;
}

static struct graph_equal graph_find_fit(const struct graph_index *x, const struct graph_sequence *work, bool named)
{
	const uint64_t key = graph_fit_hash(work, named);
	const uint32_t from = FIRST_WHERE(i, 0u, x->n_equal, x->equal[i].key >= key);
	return (struct graph_equal){from, FIRST_WHERE(i, from, x->n_equal, x->equal[i].key > key), named, false};
}

static struct graph_equal graph_equal_of(const struct graph_index *x, const struct graph_sequence *work, uint32_t streams, int64_t batch)
{
	struct graph_equal e = {0};
	if (streams != 1)
		return e;
	e = graph_find_fit(x, work, true);
	if (e.from == e.to)
		e = graph_find_fit(x, work, false);
	if (batch < 0)
		return e;
	const uint32_t from = FIRST_WHERE(i, e.from, e.to, graph_equal_at(x, i)->batch >= batch);
	if (from == e.to)
		return e;
	const int64_t padded = graph_equal_at(x, from)->batch;
	return (struct graph_equal){from, FIRST_WHERE(i, from, e.to, graph_equal_at(x, i)->batch > padded), e.named, true};
}

uint32_t graph_count_equal(const struct graph_index *x, const struct graph_sequence *work, uint32_t streams, int64_t batch)
{
	const struct graph_equal e = graph_equal_of(x, work, streams, batch);
	return e.from < e.to && graph_equal_at(x, e.from)->batch == graph_equal_at(x, e.to - 1)->batch ? e.to - e.from : 0;
}

/* What these captures agree on. Computed once for each range. */
static const struct graph_agreement *graph_agreement_of(struct graph_index *x, const struct graph_equal *e)
{
	const int64_t key = 2 * (int64_t)e->from + e->of_batch;
	const struct graph_capture *first = graph_equal_at(x, e->from);
	const uint32_t known = idmap_get(&x->of_range, key), n = first->work.n;
	if (known != IDMAP_NONE)
		return &x->agreement[known];
	struct graph_agreement a = {.doubt = NEW_ARRAY(n, uint8_t)};
	for (uint32_t i = e->from + 1; i < e->to && !a.by_chance; i++) {
		a.by_chance = !graph_is_equal(&first->work, graph_equal_at(x, i));
		for (uint32_t k = 0; k < n && !a.by_chance; k++)
			if (first->plain[k] != graph_equal_at(x, i)->plain[k])
				a.doubt[k] = 1;
			else
				a.ops_alone |= first->op[k] != graph_equal_at(x, i)->op[k];
	}
	idmap_put(&x->of_range, key, x->n_agreements);
	MEM_PUSH(x->agreement, x->n_agreements, x->cap_agreements, a);
	return &x->agreement[x->n_agreements - 1];
}

static bool graph_match_equal(struct graph_match *m, struct graph_index *x, const struct profile *p, const struct graph_sequence *work, int64_t batch, const struct graph *g)
{
	const struct graph_equal e = graph_equal_of(x, work, g->streams, batch);
	if (e.from == e.to || !graph_is_equal(work, graph_equal_at(x, e.from)))
		return false;
	const struct graph_agreement *a = graph_agreement_of(x, &e);
	if (a->by_chance)
		return false;
	const bool in_turns = g->turns > 1 && g->turns == e.to - e.from;
	const struct graph_capture *c = graph_equal_at(x, in_turns ? e.from + g->turn : e.from);
	uint8_t *never = NEW_ARRAY(work->n, uint8_t);
	m->implausible = !e.named && !graph_is_plausible(&x->classes, p, work, c, never);
	for (uint32_t k = 0; k < work->n && !m->implausible; k++) {
		const bool doubt = never[k] || (!in_turns && a->doubt[k]);
		m->call[k] = doubt ? ROW_NONE : k;
		m->evidence[k] = doubt ? EVIDENCE_AMBIGUOUS : e.named ? EVIDENCE_SEQUENCE : EVIDENCE_POSITION;
	}
	mem_free(never);
	m->capture = m->implausible ? NULL : c;
	m->ops_alone = m->capture && !in_turns && a->ops_alone;
	return m->capture != NULL;
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

/* Pairs the pieces and the calls of each name in order. Returns how many pieces are told. */
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
	m->ops_alone = false;
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

/* Whether the GRAPH_MARGIN pieces on either side of piece i are paired with the calls beside its call. */
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

/* Aligns from the front and from the back, which gives the first and the last of all best alignments. A piece is told if both pair it with the same op.
 * Returns how many pieces are told. */
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

/* The captures to be aligned. */
struct graph_candidates {
	const struct graph_alike *v[GRAPH_MOST_ALIGNED];
	uint32_t n;
	uint64_t left_out;       /* calls of the longest capture that was left out; 0 = none was. The search ends at one as long as the work */
};

/* Captures with about n calls, of batch `padded` or without a batch; padded < 0: of any batch. */
static struct graph_candidates graph_similar(const struct graph_index *x, uint32_t n, int64_t padded)
{
	struct graph_candidates c = {0};
	uint32_t right = FIRST_WHERE(i, 0u, x->n_alike, x->similar[i].key >= n), left = right;
	while ((left > 0 || right < x->n_alike) && c.left_out < n) {
		const bool take_right = left == 0 || (right < x->n_alike && x->similar[right].key - n <= n - x->similar[left - 1].key);
		const struct sort_item *at = &x->similar[take_right ? right++ : --left];
		const int64_t batch = x->captures->v[x->alike[at->row].capture].batch;
		if (padded >= 0 && batch >= 0 && batch != padded)
			continue;
		if (c.n < GRAPH_MOST_ALIGNED)
			c.v[c.n++] = &x->alike[at->row];
		else
			c.left_out = at->key > c.left_out ? at->key : c.left_out;
	}
	return c;
}

static uint32_t graph_try(struct graph_match *m, const struct profile *p, const struct graph_sequence *work, uint32_t streams, const struct graph_index *x, const struct graph_alike *a)
{
	const struct graph_capture *c = &x->captures->v[a->capture];
	graph_match_reset(m, work->n);
	m->capture = c;
	m->ops_alone = a->ops_alone;
	return streams > 1 ? graph_pair_by_name(m, p, work, c) : graph_pair_aligned(m, work, c);
}

/* Takes away what another capture, by which as many pieces are told, says otherwise. */
static void graph_doubt_told(struct graph_match *m, const struct graph_match *other, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (m->call[i] == ROW_NONE || other->call[i] == ROW_NONE)
			continue;
		m->ops_alone |= other->ops_alone || m->capture->op[m->call[i]] != other->capture->op[other->call[i]];
		if (m->capture->plain[m->call[i]] != other->capture->plain[other->call[i]])
			graph_match_drop(m, i, EVIDENCE_AMBIGUOUS);
	}
}

static void graph_doubt_all(struct graph_match *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (m->call[i] != ROW_NONE)
			graph_match_drop(m, i, EVIDENCE_AMBIGUOUS);
}

/* Tries the captures of the batch that the step pads to. The one that tells most pieces, and at least half, is the graph's. Others that tell as many cast
 * doubt. */
static void graph_match_best(struct graph_match *m, const struct graph_index *x, const struct profile *p, const struct graph_sequence *work, uint32_t streams, int64_t batch)
{
	const struct graph_candidates c = graph_similar(x, work->n, graph_padded_batch(x, batch));
	uint32_t most = 0, told[GRAPH_MOST_ALIGNED];
	const struct graph_alike *best = NULL;
	for (uint32_t i = 0; i < c.n; i++) {
		told[i] = graph_try(m, p, work, streams, x, c.v[i]);
		if (told[i] > most && (uint64_t)told[i] * 100 >= (uint64_t)work->n * GRAPH_LEAST_ALIGNED_PCT) {
			most = told[i];
			best = c.v[i];
		}
	}
	graph_match_reset(m, work->n);
	if (!best)
		return;
	(void)graph_try(m, p, work, streams, x, best);
	for (uint32_t i = 0; i < c.n; i++) {
		if (told[i] != most || c.v[i] == best)
			continue;
		struct graph_match other = {.evidence = NEW_ARRAY_RAW(work->n, uint8_t), .call = NEW_ARRAY_RAW(work->n, uint32_t)};
		(void)graph_try(&other, p, work, streams, x, c.v[i]);
		graph_doubt_told(m, &other, work->n);
		graph_match_release(&other);
	}
	if (c.left_out >= most) /* a capture that was not tried may tell as many */
		graph_doubt_all(m, work->n);
}

void graph_match_find(struct graph_match *m, struct graph_index *x, const struct profile *p, const struct graph_sequence *work, int64_t batch, const struct graph *g)
{
	*m = (struct graph_match){.evidence = NEW_ARRAY_RAW(work->n, uint8_t), .call = NEW_ARRAY_RAW(work->n, uint32_t)};
	graph_match_reset(m, work->n);
	if (!graph_match_equal(m, x, p, work, batch, g))
		graph_match_best(m, x, p, work, g->streams, batch);
	/* Branches ran one after the other, in an order that is not known. On several streams, each has a stream of its own. */
	for (uint32_t i = 0; i < work->n && g->streams == 1; i++)
		if (m->call[i] != ROW_NONE && m->capture->twin && m->capture->twin[m->call[i]])
			graph_match_drop(m, i, EVIDENCE_AMBIGUOUS);
	/* A call outside of all ops has no op to tell. */
	for (uint32_t i = 0; i < work->n; i++)
		if (m->call[i] != ROW_NONE && !m->capture->op[m->call[i]])
			graph_match_drop(m, i, EVIDENCE_UNKNOWN);
}

void graph_match_release(struct graph_match *m)
{
	mem_free(m->evidence);
	mem_free(m->call);
	graph_sequence_release(&m->own.work);
	mem_free(m->own.op);
}
