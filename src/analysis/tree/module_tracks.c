/* Module frames under another thread id than the ops they ran: which thread do they belong to? */
#include "analysis/analysis.h"
#include "analysis/tree/modules.h"
#include "base/mem.h"

struct lending {
	const struct profile *p;
	const uint8_t *is_module;
	uint32_t *first;        /* first span of each track; one more for the end */
	uint32_t *modules, *ops; /* how many of each on each track */
};

/* Outermost module frames of one track as disjoint ranges, in order. */
struct module_tracks_ranges {
	int64_t *start, *end;
	uint32_t n;
};

static struct module_tracks_ranges outermost(const struct lending *t, uint32_t track)
{
	struct module_tracks_ranges r = {NEW_ARRAY_RAW(t->modules[track], int64_t), NEW_ARRAY_RAW(t->modules[track], int64_t), 0};
	for (uint32_t i = t->first[track]; i < t->first[track + 1]; i++) {
		if (!t->is_module[i])
			continue;
		int64_t start = t->p->span.start_ns[i], end = span_end(t->p, i);
		if (r.n && start < r.end[r.n - 1]) {
			if (end > r.end[r.n - 1])
				r.end[r.n - 1] = end;
			continue;
		}
		r.start[r.n] = start;
		r.end[r.n++] = end;
	}
	return r;
}

/* Do ops of `track` lie in the ranges, and does none cross a border from inside? */
static bool module_tracks_fits(const struct lending *t, uint32_t track, const struct module_tracks_ranges *r)
{
	uint32_t k = 0;
	bool inside = false;
	for (uint32_t i = t->first[track]; i < t->first[track + 1]; i++) {
		if (t->p->span.kind[i] != SPAN_OP)
			continue;
		int64_t start = t->p->span.start_ns[i], end = span_end(t->p, i);
		while (k < r->n && r->end[k] <= start)
			k++;
		if (k == r->n || r->start[k] > start)
			continue;
		if (end > r->end[k])
			return false;
		inside = true;
	}
	return inside;
}

static bool could_be_same_process(const struct profile *p, uint32_t a, uint32_t b)
{
	return p->track.pid_text[a] == p->track.pid_text[b] || p->track.pid[a] == 0 || p->track.pid[b] == 0;
}

/* The one track with ops, but without modules, that fits; ROW_NONE = none or several. */
static uint32_t borrower(const struct lending *t, uint32_t lender)
{
	struct module_tracks_ranges r = outermost(t, lender);
	uint32_t found = ROW_NONE, n = 0;
	for (uint32_t track = 0; track < t->p->track.rows.n; track++)
		if (t->ops[track] && !t->modules[track] && could_be_same_process(t->p, lender, track) && module_tracks_fits(t, track, &r)) {
			found = track;
			n++;
		}
	mem_free(r.start);
	mem_free(r.end);
	return n == 1 ? found : ROW_NONE;
}

/* More threads than this with modules and without ops are not looked into: it costs tracks times ops. */
enum { MAX_LENDERS = 64 };

uint32_t *module_tracks(const struct profile *p, const uint8_t *is_module, uint64_t *lent, uint64_t *unlent)
{
	uint32_t n = p->track.rows.n, i = 0, lenders = 0;
	struct lending t = {p, is_module, NEW_ARRAY((size_t)n + 1, uint32_t), NEW_ARRAY(n, uint32_t), NEW_ARRAY(n, uint32_t)};
	for (uint32_t track = 0; track < n; track++) {
		t.first[track] = i;
		for (; i < p->span.rows.n && p->span.track[i] == track; i++) {
			t.modules[track] += is_module[i];
			t.ops[track] += p->span.kind[i] == SPAN_OP;
		}
	}
	t.first[n] = i;
	uint32_t *lender_of = NEW_ARRAY_RAW(n, uint32_t);
	memset(lender_of, 0xff, n * sizeof *lender_of);
	for (uint32_t track = 0; track < n; track++) {
		if (!t.modules[track] || t.ops[track])
			continue;
		uint32_t to = ++lenders <= MAX_LENDERS ? borrower(&t, track) : ROW_NONE;
		if (to == ROW_NONE || lender_of[to] != ROW_NONE) {
			++*unlent;
			continue;
		}
		lender_of[to] = track;
		++*lent;
	}
	mem_free(t.first);
	mem_free(t.modules);
	mem_free(t.ops);
	return lender_of;
}
