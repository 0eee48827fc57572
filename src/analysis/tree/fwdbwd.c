#include "analysis/tree/fwdbwd.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "store/reuse.h"
#include "store/torch_names.h"

/* A forward thread id of the profiler and the thread of the trace that it stands for. Where ops carry none (emit_nvtx), the backward
 * op's own thread takes its place: each runs what one forward thread made. */
struct thread_match {
	int32_t fwd_tid;
	uint32_t track;  /* ROW_NONE = cannot be told */
};

struct linker {
	const struct profile *p;
	struct fwdbwd *out;
	bool by_name;              /* no forward thread id tells forward from backward: names do */
	uint32_t *track_first;     /* first span of each thread; one more for the end */
	struct sort_item *forward; /* forward ops by sequence number, then thread, then start */
	uint32_t n_forward;
	struct idmap first;        /* sequence number -> its first place in `forward` */
	uint32_t *links;           /* span -> its forward op; ROW_NONE */
	uint32_t *by_flow;         /* backward span -> forward span; NULL, like the next one, when there are no arrows */
	uint32_t *op_of_run;       /* first of the spans that start together -> op_at of them; NOT_LOOKED */
	struct thread_match *match;
	uint32_t n_match;
};

enum { NOT_LOOKED = ROW_NONE - 1 };

/* Where an arrow says that the backward op's forward op is. */
static uint32_t fwdbwd_flow_of(const struct linker *l, uint32_t bwd)
{
	return l->by_flow ? l->by_flow[bwd] : ROW_NONE;
}

static bool fwdbwd_is_numbered(const struct spans *s, uint32_t i)
{
	return s->kind[i] == SPAN_OP && s->link_id[i] >= 0;
}

static enum autograd_name fwdbwd_kind_of_name(const struct linker *l, uint32_t i)
{
	return name_autograd(l->p, l->p->span.name[i]);
}

static bool is_forward(const struct linker *l, uint32_t i)
{
	const struct spans *s = &l->p->span;
	if (!fwdbwd_is_numbered(s, i))
		return false;
	if (!l->by_name)
		return span_aux_id(s, i) <= 0;
	return fwdbwd_kind_of_name(l, i) == AUTOGRAD_NONE || fwdbwd_kind_of_name(l, i) == AUTOGRAD_FORMULA;
}

static bool fwdbwd_is_backward(const struct linker *l, uint32_t i)
{
	const struct spans *s = &l->p->span;
	return fwdbwd_is_numbered(s, i) && (l->by_name ? fwdbwd_kind_of_name(l, i) == AUTOGRAD_NODE : span_aux_id(s, i) > 0);
}

static int32_t thread_key(const struct linker *l, uint32_t i)
{
	return l->by_name ? (int32_t)l->p->span.track[i] : span_aux_id(&l->p->span, i);
}

/* Without one forward thread id in the whole input, names tell forward from backward. */
static void look_at_names(struct linker *l)
{
	const struct profile *p = l->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (fwdbwd_is_numbered(&p->span, i) && span_aux_id(&p->span, i) > 0)
			return;
	l->by_name = true;
}

static void find_tracks(struct linker *l)
{
	const struct spans *s = &l->p->span;
	uint32_t n_tracks = l->p->track.rows.n, i = 0;
	l->track_first = NEW_ARRAY((size_t)n_tracks + 1, uint32_t);
	for (uint32_t t = 0; t <= n_tracks; t++) {
		while (i < s->rows.n && s->track[i] < t)
			i++;
		l->track_first[t] = i;
	}
}

static void sort_forward(struct linker *l)
{
	const struct spans *s = &l->p->span;
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->rows.n; i++)
		n += is_forward(l, i);
	l->forward = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < s->rows.n; i++)
		if (is_forward(l, i))
			l->forward[l->n_forward++] = (struct sort_item){.key = (uint64_t)s->link_id[i], .row = i};
	sort_items(l->forward, n);
	int64_t min = n ? (int64_t)l->forward[0].key : 1, max = n ? (int64_t)l->forward[n - 1].key : 0;
	idmap_init(&l->first, min, max, n);
	for (uint32_t i = n; i-- > 0;)
		if (!i || l->forward[i - 1].key != l->forward[i].key)
			idmap_put(&l->first, (int64_t)l->forward[i].key, i);
}

/* The end of the run of equal numbers that begins at `first`: found by doubling steps, since runs are short. */
static uint32_t run_end(const struct linker *l, uint32_t first)
{
	uint64_t seq = l->forward[first].key;
	uint32_t step = 1, lo = first;
	while (step < l->n_forward - first && l->forward[first + step].key == seq) {
		lo = first + step;
		step *= 2;
	}
	return FIRST_WHERE(i, lo + 1, step < l->n_forward - first ? first + step : l->n_forward, l->forward[i].key != seq);
}

/* The first forward op with this number that is not before (track, start), as an index into l->forward; the end of those with
 * this number, or of all when none has it, if all are. */
static uint32_t position(const struct linker *l, uint64_t seq, uint32_t track, int64_t start)
{
	const struct spans *s = &l->p->span;
	uint32_t first = idmap_get(&l->first, (int64_t)seq), row;
	if (first == IDMAP_NONE)
		return l->n_forward;
	return FIRST_WHERE(i, first, run_end(l, first),
	                   (row = l->forward[i].row, s->track[row] != track ? s->track[row] > track : s->start_ns[row] >= start));
}

/* The op that starts exactly at `time`: of several the innermost, one with a sequence number before one without. */
static uint32_t fwdbwd_op_at(const struct linker *l, uint32_t track, int64_t time)
{
	const struct spans *s = &l->p->span;
	uint32_t end = l->track_first[track + 1], lo = FIRST_WHERE(i, l->track_first[track], end, s->start_ns[i] >= time);
	if (lo == end || s->start_ns[lo] != time)
		return ROW_NONE;
	uint32_t *found = &l->op_of_run[lo]; /* kept: many arrows may end at one place */
	if (*found != NOT_LOOKED)
		return *found;
	*found = ROW_NONE;
	for (; lo < end && s->start_ns[lo] == time; lo++)
		if (s->kind[lo] == SPAN_OP && (*found == ROW_NONE || s->link_id[lo] >= 0 || s->link_id[*found] < 0))
			*found = lo;
	return *found;
}

/* The arrow's end `f` belongs to the last start before it with the same id: ids may be used again. */
static uint32_t flow_start(const struct flows *f, const struct sort_item *v, uint32_t n, int64_t before)
{
	uint32_t best = ROW_NONE;
	for (uint32_t i = 0; i < n; i++)
		if (f->phase[v[i].row] == 's' && f->time_ns[v[i].row] <= before &&
		    (best == ROW_NONE || f->time_ns[v[i].row] >= f->time_ns[best]))
			best = v[i].row;
	return best;
}

/* An arrow ends at `XBackward0`; the engine's range `autograd::engine::evaluate_function: XBackward0` around it is the same
 * autograd node. */
static bool is_engine_range_of(const struct profile *p, uint32_t outer, uint32_t inner)
{
	struct str name = profile_str(p, p->span.name[outer]);
	return p->span.kind[outer] == SPAN_OP && str_starts(name, STR(TORCH_ENGINE)) && str_ends(name, profile_str(p, p->span.name[inner]));
}

/* Longer runs of one id than this are damage, not arrows. */
enum { MAX_SAME_FLOW = 64 };

static void link_flow_group(struct linker *l, const struct sort_item *v, uint32_t n)
{
	const struct flows *f = &l->p->flow;
	const struct spans *s = &l->p->span;
	for (uint32_t i = 0; i < n && n <= MAX_SAME_FLOW; i++) {
		uint32_t end = v[i].row;
		uint32_t start = f->phase[end] == 'f' ? flow_start(f, v, n, f->time_ns[end]) : ROW_NONE;
		if (start == ROW_NONE)
			continue;
		uint32_t fwd = fwdbwd_op_at(l, f->track[start], f->time_ns[start]), bwd = fwdbwd_op_at(l, f->track[end], f->time_ns[end]);
		if (fwd == ROW_NONE || bwd == ROW_NONE || fwd == bwd)
			continue;
		l->by_flow[bwd] = fwd;
		uint32_t outer = s->parent[bwd];
		if (outer != ROW_NONE && is_engine_range_of(l->p, outer, bwd))
			l->by_flow[outer] = fwd;
	}
}

static void link_flows(struct linker *l)
{
	const struct flows *f = &l->p->flow;
	uint32_t n = 0;
	struct sort_item *v = NEW_ARRAY_RAW(f->rows.n, struct sort_item);
	uint32_t name = intern_find(&l->p->strings, STR("fwdbwd"));
	for (uint32_t i = 0; i < f->rows.n && name != INTERN_NONE; i++)
		if (l->p->cat.name[f->cat[i]] == name)
			v[n++] = (struct sort_item){.key = sort_key_i64(f->id[i]), .row = i};
	if (n) {
		uint32_t spans = l->p->span.rows.n;
		l->by_flow = NEW_ARRAY_RAW(spans, uint32_t);
		l->op_of_run = NEW_ARRAY_RAW(spans, uint32_t);
		for (uint32_t i = 0; i < spans; i++) {
			l->by_flow[i] = ROW_NONE;
			l->op_of_run[i] = NOT_LOOKED;
		}
	}
	sort_items(v, n);
	for (uint32_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && v[k].key == v[i].key; k++)
			;
		link_flow_group(l, v + i, k - i);
	}
	mem_free(v);
}

struct votes {
	struct sort_item *v; /* key: forward thread id and thread of the trace; tie: how many votes */
	uint32_t n, cap;
	uint32_t limit;      /* n at which equal keys are put together */
};

/* Brings votes with the same key together. */
static void merge_votes(struct votes *t)
{
	uint32_t n = 0;
	sort_items(t->v, t->n);
	for (uint32_t i = 0; i < t->n; i++) {
		if (n && t->v[n - 1].key == t->v[i].key)
			t->v[n - 1].tie += t->v[i].tie;
		else
			t->v[n++] = t->v[i];
	}
	t->n = n;
}

static void fwdbwd_vote(struct votes *t, int32_t fwd_tid, uint32_t track)
{
	if (t->n >= t->limit) {
		merge_votes(t);
		t->limit = t->n < (1u << 15) ? 1u << 16 : 2 * t->n;
	}
	MEM_PUSH(t->v, t->n, t->cap, (struct sort_item){.key = (uint64_t)(uint32_t)fwd_tid << 32 | track, .tie = 1});
}

/* Of the threads that have a number, no more than this are looked at: hostile input may give one number to all. */
enum { MAX_SAME_NUMBER = 64 };

/* Of the forward ops with this number on this thread, the last that began before the backward op. */
static uint32_t fwdbwd_forward_of(const struct linker *l, uint32_t bwd, uint32_t track)
{
	const struct spans *s = &l->p->span;
	uint64_t seq = (uint64_t)s->link_id[bwd];
	uint32_t i = position(l, seq, track, s->start_ns[bwd] + 1);
	if (!i || l->forward[i - 1].key != seq || s->track[l->forward[i - 1].row] != track)
		return ROW_NONE;
	return l->forward[i - 1].row;
}

static bool names_fit(const struct linker *l, uint32_t bwd, uint32_t fwd)
{
	const struct profile *p = l->p;
	return autograd_node_fits(profile_str(p, p->span.name[bwd]), profile_str(p, p->span.name[fwd]));
}

/* May this thread be where the op of a backward op without forward thread id ran? Another one of the same process, and the names
 * agree. */
static bool may_be_from(const struct linker *l, uint32_t bwd, uint32_t track)
{
	const struct profile *p = l->p;
	uint32_t own = p->span.track[bwd], fwd;
	if (track == own || p->track.pid_text[track] != p->track.pid_text[own])
		return false;
	fwd = fwdbwd_forward_of(l, bwd, track);
	return fwd != ROW_NONE && names_fit(l, bwd, fwd);
}

/* One vote for each thread that has a forward op with this number, begun before the backward op. */
static void vote_by_number(struct linker *l, struct votes *t, uint32_t bwd)
{
	const struct spans *s = &l->p->span;
	uint64_t seq = (uint64_t)s->link_id[bwd];
	uint32_t i = position(l, seq, 0, INT64_MIN);
	for (int k = 0; k < MAX_SAME_NUMBER && i < l->n_forward && l->forward[i].key == seq; k++) {
		uint32_t fwd = l->forward[i].row;
		if (l->by_name ? may_be_from(l, bwd, s->track[fwd]) : s->start_ns[fwd] <= s->start_ns[bwd])
			fwdbwd_vote(t, thread_key(l, bwd), s->track[fwd]);
		i = position(l, seq, s->track[fwd] + 1, INT64_MIN);
	}
}

/* For each forward thread id the thread with most votes; none when two have as many. */
static uint32_t count_votes(struct votes *t, struct thread_match *out)
{
	uint32_t n = 0, best = 0;
	merge_votes(t);
	for (uint32_t i = 0; i < t->n; i++) {
		int32_t tid = (int32_t)(t->v[i].key >> 32);
		uint32_t votes = t->v[i].tie;
		if (!n || out[n - 1].fwd_tid != tid) {
			out[n++] = (struct thread_match){tid, (uint32_t)t->v[i].key};
			best = votes;
		} else if (votes >= best) {
			out[n - 1].track = votes > best ? (uint32_t)t->v[i].key : ROW_NONE;
			best = votes;
		}
	}
	return n;
}

static const struct thread_match *match_find(const struct thread_match *v, uint32_t n, int32_t tid)
{
	uint32_t lo = FIRST_WHERE(i, 0, n, v[i].fwd_tid >= tid);
	return lo < n && v[lo].fwd_tid == tid ? &v[lo] : NULL;
}

static void match_threads(struct linker *l)
{
	const struct spans *s = &l->p->span;
	struct votes flow = {0}, number = {0};
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (!fwdbwd_is_backward(l, i))
			continue;
		if (fwdbwd_flow_of(l, i) != ROW_NONE)
			fwdbwd_vote(&flow, thread_key(l, i), s->track[fwdbwd_flow_of(l, i)]);
		vote_by_number(l, &number, i);
	}
	struct thread_match *sure = NEW_ARRAY(flow.n, struct thread_match);
	uint32_t n_sure = count_votes(&flow, sure);
	l->match = NEW_ARRAY(number.n, struct thread_match);
	l->n_match = count_votes(&number, l->match);
	for (uint32_t i = 0; i < l->n_match; i++) {
		const struct thread_match *m = match_find(sure, n_sure, l->match[i].fwd_tid);
		if (m)
			l->match[i].track = m->track;
	}
	mem_free(sure);
	mem_free(flow.v);
	mem_free(number.v);
}

/* Without forward thread id. The engine's threads number what they make themselves (create_graph) like the others do, so that
 * both its own thread and the voted one may hold the number: the name decides, then who was last. In torch before 1.8 all ops of the
 * backward pass are number 0. */
static uint32_t forward_by_name(const struct linker *l, uint32_t bwd, const struct thread_match *voted)
{
	const struct spans *s = &l->p->span;
	uint32_t other = !voted || voted->track == ROW_NONE ? ROW_NONE : fwdbwd_forward_of(l, bwd, voted->track);
	uint32_t own = fwdbwd_forward_of(l, bwd, s->track[bwd]);
	bool own_fits = own != ROW_NONE && names_fit(l, bwd, own);
	if (own == ROW_NONE || other == ROW_NONE) {
		bool sure = own_fits || (!voted && s->link_id[bwd] > 0);
		return own != ROW_NONE && sure ? own : other;
	}
	own_fits &= s->link_id[bwd] > 0;
	if (own_fits && names_fit(l, bwd, other))
		return s->start_ns[own] > s->start_ns[other] ? own : other;
	return own_fits ? own : other;
}

static void link_op(struct linker *l, uint32_t i)
{
	struct fwdbwd *out = l->out;
	uint32_t fwd = ROW_NONE;
	l->links[i] = ROW_NONE;
	if (!fwdbwd_is_backward(l, i) && fwdbwd_flow_of(l, i) == ROW_NONE)
		return;
	const struct thread_match *m = match_find(l->match, l->n_match, thread_key(l, i));
	if (fwdbwd_is_backward(l, i) && l->by_name)
		fwd = forward_by_name(l, i, m);
	else if (fwdbwd_is_backward(l, i) && m && m->track != ROW_NONE)
		fwd = fwdbwd_forward_of(l, i, m->track);
	if (fwd != ROW_NONE) {
		out->by_sequence++;
		out->agree += fwdbwd_flow_of(l, i) == fwd;
		out->differ += fwdbwd_flow_of(l, i) != ROW_NONE && fwdbwd_flow_of(l, i) != fwd;
	} else if (fwdbwd_flow_of(l, i) != ROW_NONE) {
		fwd = fwdbwd_flow_of(l, i);
		out->by_flow++;
	} else if (fwdbwd_is_backward(l, i)) {
		out->unlinked++;
		out->ambiguous += m && m->track == ROW_NONE;
	}
	l->links[i] = fwd;
}

/* emit_nvtx gives the number to the node alone; the engine's range around it is the same. */
static void link_engine_range(struct linker *l, uint32_t i)
{
	uint32_t outer = l->p->span.parent[i], fwd = l->links[i];
	if (fwd != ROW_NONE && outer != ROW_NONE && l->links[outer] == ROW_NONE && is_engine_range_of(l->p, outer, i))
		l->links[outer] = fwd;
}

/* Few spans are linked: only their links are kept. */
static void keep_links(const struct linker *l)
{
	struct fwdbwd *out = l->out;
	uint32_t n = l->p->span.rows.n, k = 0;
	rankset_init(&out->linked, n);
	for (uint32_t i = 0; i < n; i++)
		if (l->links[i] != ROW_NONE)
			rankset_add(&out->linked, i);
	rankset_seal(&out->linked);
	out->forward = NEW_ARRAY_RAW(out->linked.members, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		if (l->links[i] != ROW_NONE)
			out->forward[k++] = l->links[i];
}

static void fwdbwd_release(void *result)
{
	struct fwdbwd *f = result;
	rankset_release(&f->linked);
	mem_free(f->forward);
	mem_free(f);
}

void fwdbwd_free(struct fwdbwd *f)
{
	if (f && !f->is_kept)
		fwdbwd_release(f);
}

static const char fwdbwd_kept[] = "fwdbwd";

struct fwdbwd *fwdbwd_new(const struct profile *p)
{
	profile_assert_kept(p, LEFT_FLOWS | LEFT_AUX_IDS);
	struct fwdbwd *kept = reuse_find(p, fwdbwd_kept);
	if (kept)
		return kept;
	uint32_t n = p->span.rows.n;
	struct linker l = {.p = p, .out = NEW(struct fwdbwd)};
	l.links = NEW_ARRAY_RAW(n, uint32_t);
	look_at_names(&l);
	find_tracks(&l);
	sort_forward(&l);
	link_flows(&l);
	match_threads(&l);
	for (uint32_t i = 0; i < n; i++)
		link_op(&l, i);
	for (uint32_t i = 0; i < n && l.by_name; i++)
		link_engine_range(&l, i);
	keep_links(&l);
	mem_free(l.links);
	mem_free(l.track_first);
	mem_free(l.forward);
	idmap_release(&l.first);
	mem_free(l.by_flow);
	mem_free(l.op_of_run);
	mem_free(l.match);
	reuse_keep(p, fwdbwd_kept, l.out, fwdbwd_release, &l.out->is_kept);
	return l.out;
}
