#include "predecessors/pyprof/forward.h"

#include "base/mem.h"

#include <assert.h>

/* *key = seq * n_processes + process. False: that does not fit 64 bits; such a number is never found. */
static bool forward_key(const struct pyprof_forward *x, uint32_t thread, int64_t seq, int64_t *key)
{
	return !__builtin_mul_overflow(seq, x->n_processes, key) && !__builtin_add_overflow(*key, (int64_t)x->process[thread], key);
}

void pyprof_forward_init(struct pyprof_forward *x, const struct pyprof_records *r, const uint32_t *process, int64_t n_processes, int64_t least, int64_t most,
                         uint64_t n)
{
	*x = (struct pyprof_forward){.process = process, .n_processes = n_processes ? n_processes : 1, .n_threads = r->p->track.rows.n};
	int64_t low = INT64_MIN, high = INT64_MAX;
	if (n && (__builtin_mul_overflow(least, x->n_processes, &low) || __builtin_add_overflow(most, (int64_t)1, &high) ||
	          __builtin_mul_overflow(high, x->n_processes, &high)))
		low = INT64_MIN, high = INT64_MAX;
	idmap_init(&x->latest, low, high, n);
	x->thread = NEW_ARRAY(x->n_threads, struct pyprof_forward_thread);
	for (uint32_t t = 0; t < x->n_threads; t++)
		x->thread[t].last = ROW_NONE;
}

void pyprof_forward_release(struct pyprof_forward *x)
{
	for (uint32_t t = 0; t < x->n_threads; t++) {
		pyprof_path_release(&x->thread[t].path);
		mem_free(x->thread[t].claim);
	}
	mem_free(x->thread);
	mem_free(x->claim);
	idmap_release(&x->latest);
	*x = (struct pyprof_forward){0};
}

/* Closes the claim of the thread's innermost entry. */
static void forward_close(struct pyprof_forward *x, struct pyprof_forward_thread *t)
{
	uint32_t c = t->claim[--t->n];
	if (c == ROW_NONE)
		return;
	x->claim[c].open = false;
	x->claim[c].last = t->last;
}

const struct pyprof_path *pyprof_forward_enter(struct pyprof_forward *x, const struct pyprof_records *r, uint32_t thread, uint32_t chain)
{
	struct pyprof_forward_thread *t = &x->thread[thread];
	t->path.low_seq = t->path.n_seq;
	pyprof_path_go(&t->path, r, chain);
	while (t->n > t->path.low_seq)
		forward_close(x, t);
	return &t->path;
}

/* Claim c, or the newest one before it that is open; ROW_NONE. */
static uint32_t forward_latest_open(const struct pyprof_forward *x, uint32_t c)
{
	while (c != ROW_NONE && !x->claim[c].open)
		c = x->claim[c].older;
	return c;
}

/* A new claim of the number; ROW_NONE if a range further out on the thread has claimed it. A closed claim of the number is reused. */
static uint32_t forward_claim(struct pyprof_forward *x, uint32_t thread, int64_t seq)
{
	int64_t key;
	if (!forward_key(x, thread, seq, &key))
		return ROW_NONE;
	uint32_t at = idmap_get(&x->latest, key), before = forward_latest_open(x, at); /* IDMAP_NONE is ROW_NONE */
	for (uint32_t c = before; c != ROW_NONE; c = forward_latest_open(x, x->claim[c].older))
		if (x->claim[c].thread == thread)
			return ROW_NONE;
	struct pyprof_claim claim = {.thread = thread, .last = ROW_NONE, .older = before, .open = true};
	if (at == ROW_NONE || before == at) {
		at = x->n_claims;
		MEM_PUSH(x->claim, x->n_claims, x->cap_claims, claim);
		idmap_put(&x->latest, key, at);
	} else {
		x->claim[at] = claim;
	}
	return at;
}

/* 0 counts for some records of a range and not for others (pyprof_path_has_zero). So each record has a claim of its own, which is closed at once. */
static void forward_claim_zero(struct pyprof_forward *x, uint32_t thread, uint32_t i)
{
	uint32_t c = forward_claim(x, thread, 0);
	assert(c != ROW_NONE);
	x->claim[c].open = false;
	x->claim[c].last = i;
}

void pyprof_forward_remember(struct pyprof_forward *x, const struct pyprof_records *r, uint32_t thread, uint32_t i)
{
	struct pyprof_forward_thread *t = &x->thread[thread];
	t->last = i;
	MEM_GROW(t->claim, t->cap, t->path.n_seq);
	while (t->n < t->path.n_seq) {
		int64_t seq = r->p->span.link_id[t->path.seq[t->n].span];
		uint32_t c = seq ? forward_claim(x, thread, seq) : ROW_NONE;
		t->claim[t->n++] = c;
	}
	if (pyprof_path_has_zero(&t->path))
		forward_claim_zero(x, thread, i);
}

uint32_t pyprof_forward_find(const struct pyprof_forward *x, uint32_t thread, int64_t seq)
{
	int64_t key;
	if (!forward_key(x, thread, seq, &key))
		return ROW_NONE;
	uint32_t latest = ROW_NONE;
	for (uint32_t c = idmap_get(&x->latest, key); c != ROW_NONE; c = x->claim[c].older) {
		uint32_t found = x->claim[c].open ? x->thread[x->claim[c].thread].last : x->claim[c].last;
		if (found != ROW_NONE && (latest == ROW_NONE || found > latest))
			latest = found;
	}
	return latest;
}
