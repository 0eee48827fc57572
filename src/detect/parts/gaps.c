#include "detect/parts/gaps.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

const char *const gap_cause_text[GAP_N_CAUSES] = {
#define GAP_CAUSE_TEXT_(id, text) [GAP_##id] = text,
	GAP_CAUSES(GAP_CAUSE_TEXT_)
};

/* A time in which the host kept the device waiting, to be looked up on one thread. */
struct gaps_piece {
	int64_t start, end;
	uint32_t gap, track;
};

struct gaps_pieces {
	struct gaps_piece *v;
	uint32_t n, cap;
};

struct gaps_work {
	const struct profile *p;
	const struct stacks *stacks;
	struct gaps *out;
	uint8_t *context;         /* span -> enum host_kind that it is in: HOST_DATA or HOST_GC, else HOST_PLAIN */
	int32_t device;
	uint32_t main_track;
	const int64_t *step_start_ns;
	uint32_t n_steps;
	struct gaps_pieces now, left;  /* looked up on the launching thread, then what is left on the main one */
};

static void pieces_add(struct gaps_pieces *s, struct gaps_piece x)
{
	if (x.start >= x.end)
		return;
	MEM_PUSH(s->v, s->n, s->cap, x);
}

static void inherit_context(struct gaps_work *w)
{
	const struct spans *s = &w->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		enum host_kind k = name_host_kind(w->p, s->name[i]);
		if (k != HOST_DATA && k != HOST_GC) /* parents stand before their children */
			k = s->parent[i] != ROW_NONE ? (enum host_kind)w->context[s->parent[i]] : HOST_PLAIN;
		w->context[i] = (uint8_t)k;
	}
}

/* A launch that takes so long loads its kernel. A copy waits for the device and moves pageable memory; a set does neither. */
static enum gap_cause cause_of_long_call(const struct profile *p, uint32_t span)
{
	struct str name = profile_str(p, p->span.name[span]);
	return str_has(name, STR("emcpy")) ? GAP_SYNC : str_has(name, STR("emset")) ? GAP_CALL : GAP_LOAD;
}

/* What an innermost range tells of the host; GAP_UNKNOWN: nothing. */
static enum gap_cause gaps_cause_of(const struct gaps_work *w, uint32_t span)
{
	static const enum gap_cause of_kind[] = {
		[HOST_PLAIN] = GAP_CALL, [HOST_SYNC] = GAP_SYNC, [HOST_SYNC_COPY] = GAP_SYNC, [HOST_ALLOC] = GAP_ALLOC, [HOST_LOAD] = GAP_LOAD,
		[HOST_GC] = GAP_GC, [HOST_DATA] = GAP_DATA,
	};
	enum host_kind k = name_host_kind(w->p, w->p->span.name[span]);
	if (w->context[span] != HOST_PLAIN)
		return of_kind[w->context[span]];
	switch (w->p->span.kind[span]) {
	case SPAN_CALL: return of_kind[k] == GAP_CALL && w->p->span.dur_ns[span] >= GAP_LONG_CALL_NS ? cause_of_long_call(w->p, span) : of_kind[k];
	case SPAN_OVERHEAD: return k == HOST_LOAD ? GAP_LOAD : GAP_PROFILER;
	case SPAN_OP: case SPAN_MARKER: return GAP_OP;
	case SPAN_PYTHON: return GAP_PYTHON;
	default: return GAP_UNKNOWN;
	}
}

/* A range that takes part: it says what its thread does. */
static bool tells(const struct profile *p, uint32_t span)
{
	return p->span.kind[span] <= SPAN_CALL || p->span.kind[span] == SPAN_OVERHEAD || p->span.kind[span] == SPAN_MARKER;
}

static void gaps_add(struct gaps_work *w, uint32_t gap, enum gap_cause c, int64_t ns)
{
	w->out->ns[c] += ns;
	if (!w->n_steps)
		return;
	const uint32_t later = FIRST_WHERE(i, 0, w->n_steps, w->step_start_ns[i] > w->out->v[gap].start_ns);
	w->out->step_ns[later ? later - 1 : 0][c] += ns;
}

static void gaps_count(struct gaps_work *w, const struct gaps_piece *x, int64_t ns, uint32_t span, enum gap_cause c)
{
	const struct spans *s = &w->p->span;
	uint32_t named = c == GAP_SYNC && s->op[span] != ROW_NONE ? s->op[span] : span;
	gaps_add(w, x->gap, c, ns);
	places_add(&w->out->place[c], w->stacks, profile_str(w->p, s->name[named]), named, 1, ns);
	if (c <= GAP_LOAD)
		w->out->v[x->gap].blocked_ns += ns;
}

/* Looks up pieces [first, last), of one thread and in order of time: cursor is the first with time left. */
struct gaps_sweep {
	struct gaps_work *w;
	uint32_t cursor, last;
	int64_t from;             /* what is before this, of the piece at the cursor, is done */
};

static void gaps_enter(struct gaps_sweep *s)
{
	if (s->cursor < s->last)
		s->from = s->w->now.v[s->cursor].start;
}

/* From `start` to `end` the thread is in `span`. */
static void segment(struct gaps_sweep *s, int64_t start, int64_t end, uint32_t span)
{
	enum gap_cause c = gaps_cause_of(s->w, span);
	while (c != GAP_UNKNOWN && s->cursor < s->last) {
		struct gaps_piece *x = &s->w->now.v[s->cursor];
		if (x->start >= end)
			return;
		int64_t a = start > s->from ? start : s->from, b = end < x->end ? end : x->end;
		if (a < b) {
			pieces_add(&s->w->left, (struct gaps_piece){s->from, a, x->gap, x->track});
			gaps_count(s->w, x, b - a, span, c);
			s->from = b;
		}
		if (x->end > end)
			return;
		pieces_add(&s->w->left, (struct gaps_piece){s->from, x->end, x->gap, x->track});
		s->cursor++;
		gaps_enter(s);
	}
}

/* The stack of ranges around a moment, as rows. */
struct gaps_open {
	uint32_t *v, n, cap;
};

/* Closes what ends until `until`; *at moves there. */
static void gaps_close_until(struct gaps_sweep *s, struct gaps_open *o, int64_t *at, int64_t until)
{
	while (o->n) {
		uint32_t top = o->v[o->n - 1];
		int64_t end = span_end(s->w->p, top);
		if (end > until)
			break;
		if (end > *at) {
			segment(s, *at, end, top);
			*at = end;
		}
		o->n--;
	}
	if (o->n && until > *at)
		segment(s, *at, until, o->v[o->n - 1]);
	*at = until > *at ? until : *at;
}

static void sweep_track(struct gaps_work *w, uint32_t first, uint32_t last)
{
	const struct profile *p = w->p;
	uint32_t track = w->now.v[first].track;
	struct gaps_sweep s = {w, first, last, 0};
	struct gaps_open o = {0};
	int64_t at = INT64_MIN;
	gaps_enter(&s);
	uint32_t begin = FIRST_WHERE(i, 0, p->span.rows.n, p->span.track[i] >= track);
	for (uint32_t i = begin; i < p->span.rows.n && p->span.track[i] == track && s.cursor < last; i++) {
		if (!tells(p, i))
			continue;
		gaps_close_until(&s, &o, &at, p->span.start_ns[i]);
		MEM_PUSH(o.v, o.n, o.cap, i);
	}
	gaps_close_until(&s, &o, &at, INT64_MAX);
	for (; s.cursor < last; s.cursor++, gaps_enter(&s))
		pieces_add(&w->left, (struct gaps_piece){s.from, w->now.v[s.cursor].end, w->now.v[s.cursor].gap, track});
	mem_free(o.v);
}

static void gaps_sort_pieces(struct gaps_pieces *s)
{
	struct sort_item *item = NEW_ARRAY_RAW(s->n, struct sort_item);
	struct gaps_piece *sorted = NEW_ARRAY_RAW(s->n, struct gaps_piece);
	for (int by_track = 0; by_track < 2; by_track++) {
		for (uint32_t i = 0; i < s->n; i++)
			item[i] = (struct sort_item){by_track ? s->v[i].track : sort_key_i64(s->v[i].start), i, 0};
		sort_items(item, s->n);
		for (uint32_t i = 0; i < s->n; i++)
			sorted[i] = s->v[item[i].row];
		if (s->n)
			memcpy(s->v, sorted, s->n * sizeof *sorted);
	}
	mem_free(item);
	mem_free(sorted);
}

static void look_up(struct gaps_work *w)
{
	gaps_sort_pieces(&w->now);
	for (uint32_t i = 0, k; i < w->now.n; i = k) {
		for (k = i + 1; k < w->now.n && w->now.v[k].track == w->now.v[i].track; k++)
			;
		sweep_track(w, i, k);
	}
}

/* What the launching thread did not tell, the main thread may. */
static void look_up_left(struct gaps_work *w)
{
	struct gaps_pieces left = w->left;
	w->left = (struct gaps_pieces){0};
	w->now.n = 0;
	for (uint32_t i = 0; i < left.n; i++) {
		bool other = w->main_track != ROW_NONE && left.v[i].track != w->main_track;
		left.v[i].track = w->main_track;
		pieces_add(other ? &w->now : &w->left, left.v[i]);
	}
	look_up(w);
	for (uint32_t i = 0; i < w->left.n; i++)
		gaps_add(w, w->left.v[i].gap, GAP_UNKNOWN, w->left.v[i].end - w->left.v[i].start);
	mem_free(left.v);
}

/* Rows of device work by start. */
static struct sort_item *gaps_by_start(const struct profile *p)
{
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		v[g] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	sort_items(v, p->gpu_op.rows.n);
	return v;
}

/* Finds the work that ends each gap: work that begins at the gap's end, preferably work whose call is known. */
static void gaps_find_ends(struct gaps_work *w)
{
	const struct profile *p = w->p;
	struct sort_item *order = gaps_by_start(p);
	uint32_t k = 0, n = p->gpu_op.rows.n;
	for (uint32_t i = 0; i < w->out->n; i++) {
		struct gap *x = &w->out->v[i];
		while (k < n && p->gpu_op.start_ns[order[k].row] < x->end_ns)
			k++;
		for (uint32_t j = k; j < n && p->gpu_op.start_ns[order[j].row] == x->end_ns; j++) {
			int32_t device = p->launch.device[p->gpu_op.launch[order[j].row]];
			if (device != w->device && device != INT32_MIN)
				continue;
			if (p->gpu_op.dur_ns[order[j].row] == 0 || (x->gpu != ROW_NONE && x->call != ROW_NONE))
				continue;
			x->gpu = order[j].row;
			x->call = p->gpu_op.call[x->gpu];
		}
	}
	mem_free(order);
}

static void make_pieces(struct gaps_work *w)
{
	const struct spans *s = &w->p->span;
	for (uint32_t i = 0; i < w->out->n; i++) {
		const struct gap *x = &w->out->v[i];
		int64_t until = gap_host_until(x, w->p);
		gaps_add(w, i, GAP_LATENCY, x->end_ns - until);
		uint32_t track = x->call != ROW_NONE ? s->track[x->call] : w->main_track;
		if (track == ROW_NONE)
			gaps_add(w, i, GAP_UNKNOWN, until - x->start_ns);
		else
			pieces_add(&w->now, (struct gaps_piece){x->start_ns, until, i, track});
	}
}

struct gaps *gaps_new(const struct profile *p, const struct stacks *s, const struct intervals *idle, int32_t device, uint32_t main_track, const int64_t *step_start_ns, uint32_t n_steps)
{
	struct gaps *g = NEW(struct gaps);
	struct gaps_work w = {.p = p, .stacks = s, .out = g, .device = device, .main_track = main_track, .step_start_ns = step_start_ns, .n_steps = n_steps};
	g->step_ns = n_steps ? mem_zalloc(n_steps, sizeof *g->step_ns) : NULL;
	g->v = NEW_ARRAY(idle->n, struct gap);
	for (g->n = 0; g->n < idle->n; g->n++)
		g->v[g->n] = (struct gap){idle->v[g->n].start, idle->v[g->n].end, ROW_NONE, ROW_NONE, 0};
	w.context = NEW_ARRAY(p->span.rows.n, uint8_t);
	inherit_context(&w);
	gaps_find_ends(&w);
	make_pieces(&w);
	look_up(&w);
	look_up_left(&w);
	mem_free(w.context);
	mem_free(w.now.v);
	mem_free(w.left.v);
	return g;
}

void gaps_free(struct gaps *g)
{
	if (!g)
		return;
	for (int c = 0; c < GAP_N_CAUSES; c++)
		places_release(&g->place[c]);
	mem_free(g->v);
	mem_free(g->step_ns);
	mem_free(g);
}
