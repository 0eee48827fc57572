#include "analysis/graph/graph_eager.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <string.h>

/* A graph of fewer kernels is found by chance. Of more stretches than there are steps in a recording, the first ones count. */
enum { GRAPH_LEAST_STRETCH = 4, GRAPH_MOST_STRETCHES = 10000 };

static uint64_t graph_eager_key(const struct profile *p, uint32_t g, bool shapes)
{
	const uint64_t key = graph_key(p->gpu_op.kind[g], profile_str(p, p->gpu_op.name[g]));
	return shapes && p->gpu_op.kind[g] == GPU_KERNEL ? hash_u64(key + graph_shape(p, g)) : key;
}

static bool graph_states_shapes(const struct profile *p, const uint32_t *row, uint32_t n)
{
	return !ANY_WHERE(i, 0u, n, p->gpu_op.kind[row[i]] == GPU_KERNEL && p->launch.grid_x[p->gpu_op.launch[row[i]]] == INT32_MIN);
}

/* All device work that no graph launched, by start; *n gets how much. */
static uint32_t *graph_eager_rows(const struct profile *p, uint32_t *n)
{
	*n = 0;
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	uint32_t *row = NEW_ARRAY_RAW(p->gpu_op.rows.n, uint32_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.call[g] == ROW_NONE || !graph_is_launch(profile_str(p, p->span.name[p->gpu_op.call[g]])))
			v[(*n)++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	sort_items(v, *n);
	for (uint32_t i = 0; i < *n; i++)
		row[i] = v[i].row;
	mem_free(v);
	return row;
}

/* What launched it: the call, else the op. */
static uint32_t graph_eager_launcher(const struct profile *p, uint32_t g)
{
	const uint32_t call = p->gpu_op.call[g];
	return call != ROW_NONE && p->span.op[call] != ROW_NONE ? call : p->gpu_op.op[g];
}

/* The stretch of `row` is one more that the work fits. */
static void graph_eager_take(struct graph_match *m, const struct profile *eager, const uint32_t *row, uint32_t n, bool first)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t launcher = graph_eager_launcher(eager, row[i]);
		const uint64_t op = launcher == ROW_NONE ? 0 : graph_op_key(eager, graph_op_of(eager, launcher), true);
		if (first) {
			m->own.work.row[i] = launcher;
			m->own.op[i] = op;
			m->evidence[i] = op ? EVIDENCE_SEQUENCE : EVIDENCE_UNKNOWN;
			m->call[i] = op ? i : ROW_NONE;
		} else if (m->call[i] != ROW_NONE && m->own.op[i] != op) {
			m->evidence[i] = EVIDENCE_AMBIGUOUS;
			m->call[i] = ROW_NONE;
		}
	}
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

/* A polynomial of keys, so that the one of the next stretch follows from that of this one (Rabin and Karp). */
enum { GRAPH_BASE = 1000003 };

bool graph_eager_match(const struct profile *eager, const struct profile *p, const struct graph_sequence *work, struct graph_match *m)
{
	const uint32_t n = work->n;
	uint32_t n_rows, kernels = 0;
	for (uint32_t i = 0; i < n; i++)
		kernels += work->kind[i] == GPU_KERNEL;
	if (kernels < GRAPH_LEAST_STRETCH || n > eager->gpu_op.rows.n)
		return false;
	uint32_t *row = graph_eager_rows(eager, &n_rows);
	if (n > n_rows) {
		mem_free(row);
		return false;
	}
	const bool shapes = graph_states_shapes(p, work->row, n) && graph_states_shapes(eager, row, n_rows);
	uint64_t *key = NEW_ARRAY_RAW(n_rows, uint64_t), *want = NEW_ARRAY_RAW(n, uint64_t), sum = 0, want_sum = 0, top = 1;
	unsigned found = 0;
	for (uint32_t i = 0; i < n_rows; i++)
		key[i] = graph_eager_key(eager, row[i], shapes);
	for (uint32_t i = 0; i < n; i++) {
		want[i] = graph_eager_key(p, work->row[i], shapes);
		want_sum = want_sum * GRAPH_BASE + want[i];
		sum = sum * GRAPH_BASE + key[i];
		top = i ? top * GRAPH_BASE : 1;
	}
	graph_eager_start(m, eager, work);
	for (uint32_t at = 0; at + n <= n_rows && found < GRAPH_MOST_STRETCHES; at++) {
		if (sum == want_sum && memcmp(key + at, want, n * sizeof *want) == 0)
			graph_eager_take(m, eager, row + at, n, found++ == 0);
		if (at + n < n_rows)
			sum = (sum - key[at] * top) * GRAPH_BASE + key[at + n];
	}
	m->capture = &m->own;
	mem_free(row);
	mem_free(key);
	mem_free(want);
	const bool told = ANY_WHERE(i, 0u, n, found && m->call[i] != ROW_NONE);
	if (!told)
		graph_match_release(m);
	return told;
}
