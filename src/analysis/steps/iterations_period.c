/* The last resort: a pattern that repeats. What is looked at is one sequence, the device work of the stream that has most, or the
 * outermost ranges of the host thread that has most.
 *
 * An iteration calls some things once. So each name that occurs at about equal distances is an anchor, which divides the sequence into
 * segments. The usual content of a segment is, for each name, the median of its counts over the segments; what an anchor explains is
 * the share of all work that lies within this content, by number and by time, the smaller of the two. Parts of segments before the first
 * and after the last anchor count likewise.
 *
 * A period is taken only if
 *   - there are at least three anchors, and three quarters of the segments have at least nine tenths of the usual content in common;
 *   - it explains at least nine tenths;
 *   - each segment has something that steps have and layers have not: results that go to the host, a wait for the device, an
 *     optimizer, a loss, a choice of tokens. Twelve equal layers are not twelve steps;
 *   - nothing says that the segments are parts of one step: modules numbered "blocks.3", "blocks.4", ... that occur once each, or
 *     several segments launched by one call (a CUDA graph).
 * Of several that explain about the same, the shortest: a step that is logged each tenth time is a step all the same, and so is one that
 * takes two forms in turn. */
#include "analysis/steps/iterations_period.h"

#include <ctype.h>

#include "analysis/analysis.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sort.h"

enum { FEWEST = 3, MOST_TRIED = 12, MOST_PHASES = 6 };
static const double enough_explained = 0.9, equal_enough = 0.9, regular_enough = 0.5, same_within = 0.02, in_turn_within = 0.08;

/* A name's places are place[first[t]] .. place[first[t + 1] - 1]. */
struct places {
	uint32_t *first, *place;
};

/* All places; or only those before which something else stands: several calls in a row are then one. */
static struct places iterations_period_find_places(const struct sequence *q, bool only_changes)
{
	struct places x = {NEW_ARRAY((size_t)q->names + 1, uint32_t), NEW_ARRAY(q->n, uint32_t)};
	uint32_t *at = NEW_ARRAY(q->names, uint32_t);
	for (uint32_t i = 0; i < q->n; i++)
		x.first[q->name[i] + 1] += !only_changes || !i || q->name[i] != q->name[i - 1];
	for (uint32_t t = 0; t < q->names; t++)
		at[t] = x.first[t + 1] += x.first[t];
	for (uint32_t i = q->n; i-- > 0;)
		if (!only_changes || !i || q->name[i] != q->name[i - 1])
			x.place[--at[q->name[i]]] = i;
	mem_free(at);
	return x;
}

static void places_release(struct places *x)
{
	mem_free(x->first);
	mem_free(x->place);
}

struct anchor {
	uint32_t name, count;
	uint32_t period;         /* median distance */
	double regular;          /* share of distances within an eighth of that, times the share of the sequence that they span */
};

/* Distances that differ by an eighth are equal here: what a segment holds is compared later. */
static struct anchor measure_anchor(const struct sequence *q, const struct places *x, uint32_t name, struct sort_item *gap)
{
	const uint32_t *at = x->place + x->first[name];
	uint32_t n = x->first[name + 1] - x->first[name], good = 0;
	struct anchor a = {.name = name, .count = n};
	if (n < FEWEST)
		return a;
	for (uint32_t i = 0; i + 1 < n; i++)
		gap[i] = (struct sort_item){at[i + 1] - at[i], i, 0};
	sort_items(gap, n - 1);
	a.period = (uint32_t)gap[(n - 1) / 2].key;
	for (uint32_t i = 0; i + 1 < n; i++) {
		uint64_t away = gap[i].key > a.period ? gap[i].key - a.period : a.period - gap[i].key;
		good += away <= a.period / 8 + 1;
	}
	double span = (double)(at[n - 1] - at[0] + a.period) / q->n;
	a.regular = (double)good / (n - 1) * (span < 1 ? span : 1);
	return a;
}

/* The best anchor of each number of occurrences, the most regular ones first; at most MOST_TRIED. */
static unsigned choose_anchors(const struct sequence *q, const struct places *x, struct anchor *best)
{
	struct sort_item *gap = NEW_ARRAY(q->n, struct sort_item);
	unsigned n = 0;
	for (uint32_t name = 0; name < q->names; name++) {
		struct anchor a = measure_anchor(q, x, name, gap);
		if (a.regular < regular_enough || a.period < 2)
			continue;
		unsigned same = 0, at;
		while (same < n && best[same].count != a.count)
			same++;
		if (same < n && best[same].regular >= a.regular)
			continue;
		at = same < n ? same : n < MOST_TRIED ? n++ : MOST_TRIED - 1;
		if (at == MOST_TRIED - 1 && same == n && n == MOST_TRIED && best[at].regular >= a.regular)
			continue;
		for (; at > 0 && best[at - 1].regular < a.regular; at--)
			best[at] = best[at - 1];
		best[at] = a;
	}
	mem_free(gap);
	return n;
}

/* Segment of each place of the sequence: 0 is before the first anchor. */
static void number_segments(const struct sequence *q, const uint32_t *border, uint32_t n, uint32_t *segment)
{
	uint32_t s = 0;
	for (uint32_t i = 0; i < q->n; i++) {
		while (s < n && border[s] <= i)
			s++;
		segment[i] = s;
	}
}

/* Calls fn for each run of places of one name within one segment. */
struct iterations_period_run {
	uint32_t segment, first, n; /* places place[first] .. place[first + n - 1] */
};

static uint32_t next_run(const struct places *x, const uint32_t *segment, uint32_t end, uint32_t at, struct iterations_period_run *r)
{
	*r = (struct iterations_period_run){segment[x->place[at]], at, 0};
	while (at < end && segment[x->place[at]] == r->segment) {
		r->n++;
		at++;
	}
	return at;
}

/* The median of a name's counts over the inner segments 1 .. n - 1. */
static uint32_t iterations_period_usual_count(const struct places *x, const uint32_t *segment, uint32_t name, uint32_t n, struct sort_item *item)
{
	uint32_t runs = 0, inner = n - 1;
	struct iterations_period_run r;
	for (uint32_t at = x->first[name]; at < x->first[name + 1];) {
		at = next_run(x, segment, x->first[name + 1], at, &r);
		if (r.segment > 0 && r.segment < n)
			item[runs++] = (struct sort_item){r.n, 0, 0};
	}
	uint32_t zeros = inner - runs, middle = inner / 2;
	if (middle < zeros)
		return 0;
	sort_items(item, runs);
	return (uint32_t)item[middle - zeros].key;
}

struct share {
	uint64_t common, all; /* with the usual content: how many both have, how many at least one has */
};

static void explain_name(const struct sequence *q, const struct places *x, const uint32_t *segment, uint32_t name, uint32_t n,
                         uint32_t usual, struct share *share, struct period *p)
{
	struct iterations_period_run r;
	for (uint32_t at = x->first[name]; at < x->first[name + 1];) {
		at = next_run(x, segment, x->first[name + 1], at, &r);
		uint32_t common = r.n < usual ? r.n : usual;
		share[r.segment].common += common;
		share[r.segment].all += r.n > usual ? r.n - usual : 0; /* beside the usual content, which is added for all names below */
		p->places_explained += common;
		for (uint32_t i = 0; i < common; i++)
			p->ns_explained += q->end_ns[x->place[r.first + i]] - q->start_ns[x->place[r.first + i]];
	}
}

/* What the anchor's segments explain. `border`: its n places. share: n + 1 elements. */
static void iterations_period_explain(const struct sequence *q, const struct places *x, const uint32_t *border, uint32_t n, uint32_t *segment,
                                      struct share *share, struct period *p)
{
	struct sort_item *item = NEW_ARRAY(n, struct sort_item);
	uint64_t usual_length = 0, places = q->n;
	uint32_t equal = 0;
	*p = (struct period){.anchors = n};
	memset(share, 0, ((size_t)n + 1) * sizeof *share);
	number_segments(q, border, n, segment);
	for (uint32_t name = 0; name < q->names; name++) {
		uint32_t usual = iterations_period_usual_count(x, segment, name, n, item);
		usual_length += usual;
		explain_name(q, x, segment, name, n, usual, share, p);
	}
	for (uint32_t s = 1; s < n; s++) {
		uint64_t all = share[s].all + usual_length;
		equal += all && (double)share[s].common >= equal_enough * (double)all;
		places += usual_length - (share[s].common < usual_length ? share[s].common : usual_length); /* what is missing */
	}
	p->length = (uint32_t)(usual_length < UINT32_MAX ? usual_length : UINT32_MAX);
	p->equal = n > 1 ? (double)equal / (n - 1) : 0;
	double by_number = places ? (double)p->places_explained / (double)places : 0;
	double by_time = q->ns > 0 ? (double)p->ns_explained / (double)q->ns : by_number;
	p->explained = by_number < by_time ? by_number : by_time;
	p->last_is_whole = (double)share[n].common >= equal_enough * (double)usual_length; /* something else may be behind it */
	mem_free(item);
}

/* Has nearly each segment one of these points in time? */
static bool in_each_segment(const struct sequence *q, const uint32_t *border, uint32_t n, const int64_t *time, uint32_t n_times)
{
	uint32_t with = 0, at = 0;
	for (uint32_t s = 0; s + 1 < n; s++) {
		int64_t start = q->start_ns[border[s]], end = q->start_ns[border[s + 1]];
		while (at < n_times && time[at] < start)
			at++;
		with += at < n_times && time[at] < end;
	}
	return (double)with >= equal_enough * (n - 1);
}

static bool one_call_for_several(const struct sequence *q, const uint32_t *border, uint32_t n)
{
	uint32_t same = 0;
	for (uint32_t s = 0; s + 1 < n; s++)
		same += q->call[border[s]] != ROW_NONE && q->call[border[s]] == q->call[border[s + 1]];
	return same > n / 10;
}

/* "blocks.3.attn" -> the digits behind a dot; false when there are none. */
static bool module_number(struct str s, size_t *at, size_t *end)
{
	for (*at = 1; *at < s.n; ++*at)
		if (s.p[*at - 1] == '.' && isdigit((unsigned char)s.p[*at])) {
			for (*end = *at; *end < s.n && isdigit((unsigned char)s.p[*end]);)
				++*end;
			return *at > 1;
		}
	return false;
}

/* Modules whose names differ in their number alone, each once: the segments are then layers of one step. The most that any such name has. */
static uint32_t most_numbered_once(const struct profile *p)
{
	uint32_t *calls = NEW_ARRAY(p->strings.n, uint32_t), *track = NEW_ARRAY(p->strings.n, uint32_t), most = 0;
	struct intern patterns;
	uint32_t *once = NULL, *again = NULL, caps[2] = {0, 0};
	intern_init(&patterns);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t s = p->span.name[i];
		if (p->span.kind[i] != SPAN_USER && p->span.kind[i] != SPAN_OP && p->span.kind[i] != SPAN_RANGE)
			continue;
		if (!calls[s])
			track[s] = p->span.track[i];
		calls[s] += track[s] == p->span.track[i];
	}
	for (uint32_t s = 0; s < p->strings.n; s++) {
		size_t at, end;
		struct str name = profile_str(p, s);
		if (!calls[s] || !module_number(name, &at, &end))
			continue;
		struct buf b = {0};
		buf_put(&b, name.p, at);
		buf_char(&b, '#');
		buf_put(&b, name.p + end, name.n - end);
		uint32_t id = intern_str(&patterns, buf_view(&b)), before = caps[0];
		buf_release(&b);
		MEM_GROW(once, caps[0], id + 1);
		MEM_GROW(again, caps[1], id + 1);
		memset(once + before, 0, (caps[0] - before) * sizeof *once);
		memset(again + before, 0, (caps[1] - before) * sizeof *again);
		*(calls[s] == 1 ? &once[id] : &again[id]) += 1;
	}
	for (uint32_t id = 0; id < patterns.n && id < caps[0]; id++)
		if (again[id] < once[id] / 4 + 1 && once[id] > most)
			most = once[id];
	intern_release(&patterns);
	mem_free(once);
	mem_free(again);
	mem_free(calls);
	mem_free(track);
	return most;
}

/* So many places before each anchor: is nearly always the same there, and how long is the pause before it? */
struct phase {
	uint32_t back;
	int64_t pause_ns;        /* mean */
};

static bool begins_copies_in(const struct sequence *q, uint32_t at)
{
	return q->copy_in[q->name[at]] && !(at && q->copy_in[q->name[at - 1]]);
}

/* Where copies to the device begin, a step may begin even without a pause: that is worth a twentieth of the period. */
static bool measure_phase(const struct sequence *q, const uint32_t *at, uint32_t n, uint32_t back, struct phase *out)
{
	uint32_t alike = 0, pairs = 0;
	int64_t pause = 0, bonus = (q->start_ns[at[n - 1]] - q->start_ns[at[0]]) / (n - 1) / 20;
	for (uint32_t i = 0; i < n; i++) {
		if (at[i] < back)
			continue;
		uint32_t here = at[i] - back;
		alike += q->name[here] == q->name[at[n - 1] - back];
		pairs++;
		if (here && q->start_ns[here] > q->end_ns[here - 1])
			pause += (q->start_ns[here] - q->end_ns[here - 1]) / n;
		pause += begins_copies_in(q, here) ? bonus / n : 0;
	}
	*out = (struct phase){back, pause};
	return pairs + 1 >= n && (double)alike >= equal_enough * pairs;
}

/* The phases with the longest pauses, the longest first. */
static unsigned longest_pauses(const struct sequence *q, const uint32_t *at, uint32_t n, uint32_t period, struct phase *best)
{
	unsigned found = 0;
	for (uint32_t back = 0; back < period && back <= at[n - 1]; back++) {
		struct phase x;
		if (!measure_phase(q, at, n, back, &x) || (found == MOST_PHASES && x.pause_ns <= best[found - 1].pause_ns))
			continue;
		unsigned k = found < MOST_PHASES ? found++ : found - 1;
		for (; k > 0 && best[k - 1].pause_ns < x.pause_ns; k--)
			best[k] = best[k - 1];
		best[k] = x;
	}
	return found;
}

/* Moves the anchors to where a step begins: behind the longest pause; of pauses at least half as long, rather so that a whole step is behind
 * the last border. An anchor before which there is too little is left out. */
static void choose_phase(const struct sequence *q, const struct places *x, uint32_t period, uint32_t *segment, struct share *share,
                         struct period *best, uint32_t *border)
{
	struct phase phase[MOST_PHASES];
	struct period as_found = *best;
	uint32_t n = best->anchors, *moved = NEW_ARRAY(n, uint32_t);
	unsigned phases = longest_pauses(q, border, n, period, phase);
	bool any = false;
	uint32_t *at = NEW_ARRAY(n, uint32_t);
	memcpy(at, border, n * sizeof *at);
	for (unsigned i = 0; i < phases && phase[i].pause_ns >= phase[0].pause_ns / 2; i++) {
		struct period p;
		uint32_t m = 0;
		for (uint32_t k = 0; k < n; k++)
			if (at[k] >= phase[i].back)
				moved[m++] = at[k] - phase[i].back;
		if (m < FEWEST)
			continue;
		iterations_period_explain(q, x, moved, m, segment, share, &p);
		if (p.explained < as_found.explained - same_within || p.equal < as_found.equal - same_within || (any && !p.last_is_whole))
			continue;
		any = true;
		*best = p;
		memcpy(border, moved, m * sizeof *border);
		if (p.last_is_whole)
			break;
	}
	mem_free(moved);
	mem_free(at);
}

static bool may_be_step(const struct period *p)
{
	return p->equal >= 0.75 && p->explained >= enough_explained && p->marked && !p->within_call;
}

/* Of those that may be steps the one that explains most, or a shorter one that does about as well; without any, what explains most. */
static unsigned choose_period(const struct anchor *a, const struct period *p, unsigned n)
{
	unsigned best = n, chosen = n;
	for (unsigned i = 0; i < n; i++) {
		if (p[i].equal < 0.75)
			continue;
		bool better = best < n && may_be_step(&p[i]) == may_be_step(&p[best]) ? p[i].explained > p[best].explained : may_be_step(&p[i]);
		if (best == n || better)
			best = i;
	}
	chosen = best;
	for (unsigned i = 0; i < n && best < n && may_be_step(&p[best]); i++) {
		bool half = a[i].count / 2 == a[best].count || (a[i].count + 1) / 2 == a[best].count;
		double least = p[best].explained - (half ? in_turn_within : same_within);
		if (may_be_step(&p[i]) && p[i].explained >= least && a[i].period < a[chosen].period)
			chosen = i;
	}
	return chosen;
}

bool period_find(const struct profile *prof, const struct sequence *q, struct period *out, uint32_t **border)
{
	*border = NULL;
	*out = (struct period){0};
	if (q->n < 2 * FEWEST)
		return false;
	struct anchor anchors[MOST_TRIED];
	struct period found[MOST_TRIED];
	struct places x = iterations_period_find_places(q, false), changes = iterations_period_find_places(q, true);
	unsigned n = choose_anchors(q, &changes, anchors);
	uint32_t most = 0, *segment = NEW_ARRAY(q->n, uint32_t);
	for (unsigned i = 0; i < n; i++)
		most = anchors[i].count > most ? anchors[i].count : most;
	struct share *share = NEW_ARRAY((size_t)most + 1, struct share);
	for (unsigned i = 0; i < n; i++) {
		const uint32_t *at = changes.place + changes.first[anchors[i].name];
		iterations_period_explain(q, &x, at, anchors[i].count, segment, share, &found[i]);
		found[i].marked = in_each_segment(q, at, anchors[i].count, q->mark_ns, q->n_marks);
		found[i].within_call = one_call_for_several(q, at, anchors[i].count);
	}
	unsigned chosen = choose_period(anchors, found, n);
	bool good = chosen < n && may_be_step(&found[chosen]);
	if (chosen < n) {
		*out = found[chosen];
		*border = NEW_ARRAY(out->anchors, uint32_t);
		memcpy(*border, changes.place + changes.first[anchors[chosen].name], out->anchors * sizeof **border);
		if (good)
			choose_phase(q, &x, anchors[chosen].period, segment, share, out, *border);
		out->marked = found[chosen].marked;
		out->within_call = found[chosen].within_call;
		out->name = q->name[(*border)[0]];
		out->numbered = most_numbered_once(prof);
		good = good && out->numbered < out->anchors / 2;
	}
	mem_free(share);
	mem_free(segment);
	places_release(&x);
	places_release(&changes);
	return good;
}
