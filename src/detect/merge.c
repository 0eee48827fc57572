#include "detect/merge.h"

#include <assert.h>

#include "base/hash.h"
#include "base/search.h"
#include "base/sort.h"

/* SAME_TIME: a finding is part of another one that has at least this share of its time. HALF: a symptom stands behind the cause that has most of its time where
 * the causes have at least this share of it together. */
static const double SAME_TIME = 0.8, HALF = 0.5;

static const struct detector *merge_detector(const char *id)
{
	for (const struct detector *const *d = detector_registry; *d; d++)
		if (strcmp((*d)->id, id) == 0)
			return *d;
	return NULL;
}

static enum detector_symptom merge_symptom_of(const struct finding *x)
{
	return merge_detector(x->detector)->symptom;
}

static int64_t merge_gain(const struct finding *x)
{
	return x->has_gain ? x->gain_ns_per_step : -1;
}

static bool merge_ranks_before(const struct finding *a, const struct finding *b)
{
	if (merge_gain(a) != merge_gain(b))
		return merge_gain(a) > merge_gain(b);
	return a->severity > b->severity;
}

/* Insertion sort: stable, and there are few. */
static void merge_sort(struct findings *f)
{
	for (unsigned i = 1; i < f->n; i++) {
		struct finding x = f->v[i];
		unsigned k = i;
		for (; k > 0 && merge_ranks_before(&x, &f->v[k - 1]); k--)
			f->v[k] = f->v[k - 1];
		f->v[k] = x;
	}
}

int64_t merge_common_ns(const struct finding *x, const struct finding *y)
{
	struct intervals both = {0};
	intervals_intersect(&x->covers, &y->covers, &both);
	int64_t ns = intervals_length(&both);
	intervals_release(&both);
	return ns;
}

static bool merge_has_most_of(const struct finding *lead, const struct finding *x)
{
	return (double)merge_common_ns(lead, x) >= SAME_TIME * (double)intervals_length(&x->covers);
}

static bool merge_can_lead(const struct finding *x, const struct finding *part)
{
	return x != part && x->has_covers && !x->part_of && strcmp(x->detector, part->detector) != 0;
}

/* A symptom is part of the finding that has most of its time, of those that say more of the cause, or stands behind it. */
static void merge_symptom(struct findings *f, struct finding *x)
{
	struct intervals causes = {0};
	const struct finding *most = NULL;
	int64_t most_ns = 0;
	for (unsigned i = 0; i < f->n; i++) {
		const struct finding *c = &f->v[i];
		if (!merge_can_lead(c, x) || merge_symptom_of(c) >= merge_symptom_of(x))
			continue;
		int64_t ns = merge_common_ns(c, x);
		intervals_union(&causes, &c->covers, &causes);
		if (ns > most_ns) {
			most_ns = ns;
			most = c;
		}
	}
	if (most && merge_has_most_of(most, x))
		x->part_of = most->detector;
	intervals_intersect(&causes, &x->covers, &causes);
	if (most && !x->part_of && (double)intervals_length(&causes) >= HALF * (double)intervals_length(&x->covers))
		x->behind = most->detector;
	intervals_release(&causes);
}

/* Goes through the findings in order of gain, so that a finding is settled before those that may be part of it. */
static void merge_cause(struct findings *f, unsigned at)
{
	struct finding *x = &f->v[at];
	for (unsigned i = 0; i < at && !x->part_of; i++) {
		const struct finding *c = &f->v[i];
		if (merge_can_lead(c, x) && merge_symptom_of(c) == merge_symptom_of(x) && merge_has_most_of(c, x))
			x->part_of = c->detector;
	}
}

/* Whether a finding of this detector stands by itself. */
static bool merge_has_lead(const struct findings *f, const char *detector)
{
	return ANY_WHERE(i, 0, f->n, !f->v[i].part_of && strcmp(f->v[i].detector, detector) == 0);
}

/* The detector whose finding this one stands behind; NULL = none. */
static const char *merge_follows(const struct finding *x)
{
	return x->part_of ? x->part_of : x->behind;
}

struct merge_order {
	const struct findings *f;
	struct finding *v;       /* in the new order, the first n */
	unsigned n;
	uint8_t *placed;         /* by place in f->v */
};

/* Places finding i, and behind it those that follow it. As deep as there are symptoms above one another. */
static void merge_place(struct merge_order *o, unsigned i)
{
	const struct finding *x = &o->f->v[i];
	o->placed[i] = 1;
	o->v[o->n++] = *x;
	for (unsigned k = 0; k < o->f->n && !x->part_of; k++) {
		const char *follows = merge_follows(&o->f->v[k]);
		if (!o->placed[k] && follows && strcmp(follows, x->detector) == 0)
			merge_place(o, k);
	}
}

void merge_put_parts_behind(struct findings *f)
{
	if (!f->n)
		return;
	for (unsigned i = 0; i < f->n; i++) {
		if (f->v[i].part_of && !merge_has_lead(f, f->v[i].part_of))
			f->v[i].part_of = NULL;
		if (f->v[i].behind && !merge_has_lead(f, f->v[i].behind))
			f->v[i].behind = NULL;
	}
	struct merge_order o = {.f = f, .v = NEW_ARRAY(f->n, struct finding), .placed = NEW_ARRAY(f->n, uint8_t)};
	for (unsigned i = 0; i < f->n; i++)
		if (!merge_follows(&f->v[i]) && !o.placed[i])
			merge_place(&o, i);
	for (unsigned i = 0; i < f->n; i++) /* of several recordings two may follow each other */
		if (!o.placed[i])
			merge_place(&o, i);
	assert(o.n == f->n);
	memcpy(f->v, o.v, o.n * sizeof *o.v);
	mem_free(o.v);
	mem_free(o.placed);
}

/* A finding is as severe as the most severe of its parts. */
static void merge_severity(struct findings *f)
{
	for (unsigned i = 0; i < f->n; i++)
		for (unsigned k = 0; k < f->n && f->v[i].part_of; k++)
			if (!f->v[k].part_of && strcmp(f->v[i].part_of, f->v[k].detector) == 0 && f->v[i].severity > f->v[k].severity)
				f->v[k].severity = f->v[i].severity;
}

void merge_findings(struct findings *f)
{
	if (!f->n)
		return;
	merge_sort(f);
	for (enum detector_symptom level = SYMPTOM_NONE; level < SYMPTOMS; level++)
		for (unsigned i = 0; i < f->n; i++) {
			if (!f->v[i].has_covers || !f->v[i].covers.n || merge_symptom_of(&f->v[i]) != level)
				continue;
			merge_symptom(f, &f->v[i]);
			merge_cause(f, i);
		}
	merge_severity(f);
	merge_put_parts_behind(f);
}

/* How many findings can be counted together: each is a bit of a set. */
enum { COUNTED = 64 };

/* A set of findings, and how much of the window is the time of all of these and of no other. */
struct merge_cell {
	uint64_t set;
	int64_t left_ns;
};

struct merge_flow {
	struct merge_cell *cell;
	unsigned cells, cap;
	int64_t *of;             /* of[finding * cells + cell]: ns of the cell that the finding was given */
	int64_t left[COUNTED];   /* the part of each finding's gain that it was not given yet */
	unsigned n;
};

static void merge_add_cell(struct merge_flow *w, struct idmap *of_set, uint64_t set, int64_t ns)
{
	uint32_t at = idmap_get(of_set, (int64_t)set);
	if (!set || ns <= 0)
		return;
	if (at == IDMAP_NONE) {
		MEM_GROW(w->cell, w->cap, w->cells + 1);
		w->cell[w->cells] = (struct merge_cell){set, 0};
		idmap_put(of_set, (int64_t)set, at = w->cells++);
	}
	w->cell[at].left_ns += ns;
}

/* Divides the window at all borders of the findings' times. */
static void merge_divide(struct merge_flow *w, const struct intervals *const *when)
{
	struct sort_item *item = NULL;
	size_t n = 0, at = 0;
	struct idmap of_set;
	for (unsigned i = 0; i < w->n; i++)
		n += 2 * when[i]->n;
	item = NEW_ARRAY(n, struct sort_item);
	for (unsigned i = 0; i < w->n; i++)
		for (size_t k = 0; k < when[i]->n; k++) {
			item[at++] = (struct sort_item){sort_key_i64(when[i]->v[k].start), i, 0};
			item[at++] = (struct sort_item){sort_key_i64(when[i]->v[k].end), i, 0};
		}
	sort_items(item, n);
	idmap_init(&of_set, INT64_MIN, INT64_MAX, n + 1);
	uint64_t set = 0;
	for (size_t i = 0; i < n; i++) {
		if (i)
			merge_add_cell(w, &of_set, set, (int64_t)(item[i].key - item[i - 1].key));
		set ^= 1ull << item[i].row;
	}
	idmap_release(&of_set);
	mem_free(item);
}

/* Gives finding i up to `want` ns: from cells with time left, or by moving other findings to other cells. `seen` are the findings already asked to move.
 * Returns how many ns it gave. */
static int64_t merge_push(struct merge_flow *w, unsigned i, int64_t want, uint64_t *seen)
{
	*seen |= 1ull << i;
	for (unsigned c = 0; c < w->cells; c++) {
		struct merge_cell *x = &w->cell[c];
		if (!(x->set >> i & 1))
			continue;
		if (x->left_ns) {
			int64_t ns = want < x->left_ns ? want : x->left_ns;
			x->left_ns -= ns;
			w->of[(size_t)i * w->cells + c] += ns;
			return ns;
		}
		for (unsigned k = 0; k < w->n; k++) {
			int64_t *given = &w->of[(size_t)k * w->cells + c];
			if (*seen >> k & 1 || !*given)
				continue;
			int64_t ns = merge_push(w, k, want < *given ? want : *given, seen);
			if (!ns)
				continue;
			*given -= ns;
			w->of[(size_t)i * w->cells + c] += ns;
			return ns;
		}
	}
	return 0;
}

int64_t merge_gain_ns(const struct findings *f, const struct step_time *t)
{
	struct merge_flow w = {0};
	const struct intervals *when[COUNTED];
	int64_t sum = 0, moved;
	for (unsigned i = 0; i < f->n; i++) {
		const struct finding *x = &f->v[i];
		if (!x->has_gain || x->gain_ns_per_step <= 0)
			continue;
		if (w.n == COUNTED)
			return 0;
		w.left[w.n] = x->gain_ns_per_step > t->ns / t->n ? t->ns : x->gain_ns_per_step * t->n;
		when[w.n++] = x->has_covers ? &x->covers : &t->all;
	}
	merge_divide(&w, when);
	w.of = NEW_ARRAY((size_t)w.n * w.cells, int64_t);
	for (unsigned i = 0; i < w.n; i++)
		while (w.left[i] > 0) {
			uint64_t seen = 0;
			if (!(moved = merge_push(&w, i, w.left[i], &seen)))
				break;
			w.left[i] -= moved;
			sum += moved;
		}
	mem_free(w.of);
	mem_free(w.cell);
	return sum;
}
