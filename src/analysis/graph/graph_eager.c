#include "analysis/graph/graph_eager.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <string.h>

/* GRAPH_LEAST_STRETCH: a shorter sequence of kernels is found by chance. GRAPH_MOST_KINDS: stretches of different ops; a recording has fewer kinds of steps,
 * and where there are more stretches, the match tells nothing. */
enum { GRAPH_LEAST_STRETCH = 4, GRAPH_MOST_KINDS = 1000 };

/* Base of a rolling hash: the hash of a stretch follows from the hashes of all pieces before its begin and before its end (Rabin and Karp). */
enum { GRAPH_BASE = 1000003 };

/* Keys of all pieces. */
struct graph_keys {
	uint64_t *key;           /* graph_eager_key */
	uint64_t *sum;           /* rolling hash of all keys before; one more at the end */
	struct sort_item *place; /* sorted by key; row is the number of the piece */
};

struct graph_eager {
	const struct profile *p;
	bool ready;
	uint32_t *row;           /* of gpu_op: work that no graph launched, sorted by start. Its numbers count pieces below */
	uint32_t *launcher;      /* the call that launched it, else the op; ROW_NONE = neither is known */
	uint32_t n;
	bool shapes;             /* all kernels state their grid and block */
	struct graph_keys keys[2]; /* [1]: with grid and block, filled if `shapes` */
	uint64_t *op;            /* of each piece (graph_op_key); 0 = not known */
	uint64_t *op_sum;        /* rolling hash of op[] */
	uint64_t *power;         /* of GRAPH_BASE; n + 1 of them */
};

struct graph_eager *graph_eager_new(const struct profile *p)
{
	struct graph_eager *x = NEW(struct graph_eager);
	x->p = p;
	return x;
}

static void graph_keys_release(struct graph_keys *k)
{
	mem_free(k->key);
	mem_free(k->sum);
	mem_free(k->place);
}

void graph_eager_free(struct graph_eager *x)
{
	graph_keys_release(&x->keys[0]);
	graph_keys_release(&x->keys[1]);
	mem_free(x->row);
	mem_free(x->launcher);
	mem_free(x->op);
	mem_free(x->op_sum);
	mem_free(x->power);
	mem_free(x);
}

static uint64_t graph_eager_key(const struct profile *p, uint32_t g, bool shapes)
{
	const uint64_t key = graph_key(p->gpu_op.kind[g], profile_str(p, p->gpu_op.name[g]));
	return shapes && p->gpu_op.kind[g] == GPU_KERNEL ? hash_u64(key + graph_shape(p, g)) : key;
}

static bool graph_states_shapes(const struct profile *p, const uint32_t *row, uint32_t n)
{
	return !ANY_WHERE(i, 0u, n, p->gpu_op.kind[row[i]] == GPU_KERNEL && p->launch.grid_x[p->gpu_op.launch[row[i]]] == INT32_MIN);
}

static uint64_t *graph_sums(const uint64_t *v, uint32_t n)
{
	uint64_t *sum = NEW_ARRAY_RAW((size_t)n + 1, uint64_t);
	sum[0] = 0;
	for (uint32_t i = 0; i < n; i++)
		sum[i + 1] = sum[i] * GRAPH_BASE + v[i];
	return sum;
}

/* Rolling hash of the pieces [at, at + n). */
static uint64_t graph_stretch(const struct graph_eager *x, const uint64_t *sum, uint32_t at, uint32_t n)
{
	return sum[at + n] - sum[at] * x->power[n];
}

static void graph_eager_rows(struct graph_eager *x)
{
	const struct profile *p = x->p;
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	uint8_t *is_launch = NEW_ARRAY(p->strings.n, uint8_t); /* 1 = no, 2 = yes; 0 = not looked at */
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		const uint32_t call = p->gpu_op.call[g], name = call == ROW_NONE ? 0 : p->span.name[call];
		if (!is_launch[name])
			is_launch[name] = 1 + graph_is_launch(profile_str(p, name));
		if (call == ROW_NONE || is_launch[name] == 1)
			v[x->n++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	}
	sort_items(v, x->n);
	x->row = NEW_ARRAY_RAW(x->n, uint32_t);
	for (uint32_t i = 0; i < x->n; i++)
		x->row[i] = v[i].row;
	mem_free(is_launch);
	mem_free(v);
}

static void graph_eager_launchers(struct graph_eager *x)
{
	const struct profile *p = x->p;
	x->launcher = NEW_ARRAY_RAW(x->n, uint32_t);
	x->op = NEW_ARRAY_RAW(x->n, uint64_t);
	for (uint32_t i = 0; i < x->n; i++) {
		const uint32_t call = p->gpu_op.call[x->row[i]];
		x->launcher[i] = call != ROW_NONE && p->span.op[call] != ROW_NONE ? call : p->gpu_op.op[x->row[i]];
		x->op[i] = x->launcher[i] == ROW_NONE ? 0 : graph_op_key(p, graph_op_of(p, x->launcher[i]), true);
	}
	x->op_sum = graph_sums(x->op, x->n);
}

static void graph_keys_fill(struct graph_keys *k, const struct graph_eager *x, bool shapes)
{
	k->key = NEW_ARRAY_RAW(x->n, uint64_t);
	k->place = NEW_ARRAY_RAW(x->n, struct sort_item);
	for (uint32_t i = 0; i < x->n; i++) {
		k->key[i] = graph_eager_key(x->p, x->row[i], shapes);
		k->place[i] = (struct sort_item){k->key[i], i, 0};
	}
	sort_items(k->place, x->n);
	k->sum = graph_sums(k->key, x->n);
}

static void graph_eager_prepare(struct graph_eager *x)
{
	x->ready = true;
	graph_eager_rows(x);
	graph_eager_launchers(x);
	x->power = NEW_ARRAY_RAW((size_t)x->n + 1, uint64_t);
	x->power[0] = 1;
	for (uint32_t i = 0; i < x->n; i++)
		x->power[i + 1] = x->power[i] * GRAPH_BASE;
	x->shapes = graph_states_shapes(x->p, x->row, x->n);
	graph_keys_fill(&x->keys[0], x, false);
	if (x->shapes)
		graph_keys_fill(&x->keys[1], x, true);
}

static void graph_eager_start(struct graph_match *m, const struct profile *eager, const struct graph_sequence *work)
{
	const uint32_t n = work->n;
	*m = (struct graph_match){.evidence = NEW_ARRAY_RAW(n, uint8_t), .call = NEW_ARRAY_RAW(n, uint32_t), .own = {.p = eager, .begin = ROW_NONE, .end = ROW_NONE, .batch = -1}};
	m->own.op = NEW_ARRAY_RAW(n, uint64_t);
	m->own.work = (struct graph_sequence){NEW_ARRAY_RAW(n, uint32_t), NEW_ARRAY_RAW(n, uint64_t), NEW_ARRAY_RAW(n, uint8_t), n, true};
	memcpy(m->own.work.key, work->key, n * sizeof *work->key);
	memcpy(m->own.work.kind, work->kind, n);
}

/* Adds what the stretch from piece `at` on says of the work that it equals. */
static void graph_eager_take(struct graph_match *m, const struct graph_eager *x, uint32_t at, uint32_t n, bool first)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t op = x->op[at + i];
		if (first) {
			m->own.work.row[i] = x->launcher[at + i];
			m->own.op[i] = op;
			m->evidence[i] = op ? EVIDENCE_SEQUENCE : EVIDENCE_UNKNOWN;
			m->call[i] = op ? i : ROW_NONE;
		} else if (m->call[i] != ROW_NONE && m->own.op[i] != op) {
			graph_match_drop(m, i, EVIDENCE_AMBIGUOUS);
		}
	}
}

/* Where a piece of the work stands in the recording. */
struct graph_places {
	uint32_t from, to;       /* of graph_keys.place */
	uint32_t piece;          /* of the work */
};

/* The places of that piece of the work which stands least often in the recording. */
static struct graph_places graph_rarest(const struct graph_keys *k, uint32_t n_rows, const uint64_t *want, uint32_t n)
{
	struct graph_places best = {0, n_rows, 0};
	for (uint32_t i = 0; i < n && best.from < best.to; i++) {
		const uint32_t from = FIRST_WHERE(r, 0u, n_rows, k->place[r].key >= want[i]), to = FIRST_WHERE(r, from, n_rows, k->place[r].key > want[i]);
		if (i == 0 || to - from < best.to - best.from)
			best = (struct graph_places){from, to, i};
	}
	return best;
}

/* Takes all stretches that equal the work; of stretches with the same ops, the first. False: there is none, or there are more than GRAPH_MOST_KINDS. */
static bool graph_eager_find(struct graph_match *m, const struct graph_eager *x, const struct graph_keys *keys, const uint64_t *want, uint32_t n)
{
	const struct graph_places places = graph_rarest(keys, x->n, want, n);
	uint64_t want_sum = 0;
	uint32_t kinds = 0;
	struct idmap known;
	idmap_init(&known, INT64_MIN, INT64_MAX, GRAPH_MOST_KINDS);
	for (uint32_t i = 0; i < n; i++)
		want_sum = want_sum * GRAPH_BASE + want[i];
	for (uint32_t i = places.from; i < places.to && kinds <= GRAPH_MOST_KINDS; i++) {
		const uint32_t at = keys->place[i].row - places.piece;
		if (keys->place[i].row < places.piece || at + (uint64_t)n > x->n || graph_stretch(x, keys->sum, at, n) != want_sum)
			continue;
		const int64_t ops = (int64_t)graph_stretch(x, x->op_sum, at, n);
		if (idmap_get(&known, ops) != IDMAP_NONE || memcmp(keys->key + at, want, n * sizeof *want) != 0)
			continue;
		graph_eager_take(m, x, at, n, kinds == 0);
		if (++kinds <= GRAPH_MOST_KINDS)
			idmap_put(&known, ops, kinds);
	}
	idmap_release(&known);
	return kinds && kinds <= GRAPH_MOST_KINDS;
}

bool graph_eager_match(struct graph_eager *x, const struct profile *p, const struct graph_sequence *work, struct graph_match *m)
{
	const uint32_t n = work->n;
	uint32_t kernels = 0;
	for (uint32_t i = 0; i < n; i++)
		kernels += work->kind[i] == GPU_KERNEL;
	if (kernels < GRAPH_LEAST_STRETCH || n > x->p->gpu_op.rows.n)
		return false;
	if (!x->ready)
		graph_eager_prepare(x);
	if (n > x->n)
		return false;
	const bool shapes = x->shapes && graph_states_shapes(p, work->row, n);
	uint64_t *want = NEW_ARRAY_RAW(n, uint64_t);
	for (uint32_t i = 0; i < n; i++)
		want[i] = graph_eager_key(p, work->row[i], shapes);
	graph_eager_start(m, x->p, work);
	m->capture = &m->own;
	const bool told = graph_eager_find(m, x, &x->keys[shapes], want, n) && ANY_WHERE(i, 0u, n, m->call[i] != ROW_NONE);
	mem_free(want);
	if (!told)
		graph_match_release(m);
	return told;
}
