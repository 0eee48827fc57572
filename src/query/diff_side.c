#include "query/diff_side.h"

#include "analysis/memory/memory.h"
#include "analysis/names/names.h"
#include "analysis/names/short_names.h"
#include "analysis/names/stacks.h"
#include "analysis/ranks/rank_place.h"
#include "analysis/ranks/rank_workers.h"
#include "analysis/steps/steps.h"
#include "analysis/time/thinned.h"
#include "analysis/tree/op_instances.h"
#include "base/search.h"
#include "base/sort.h"
#include "detect/parts/gaps.h"
#include "detect/parts/shared.h"
#include "query/diff_scatter.h"
#include "query/diff_workers.h"
#include "store/torch_names.h"

#include <assert.h>
#include <ctype.h>

/* Facts of the run. meta: the key under which the input states it; NULL = found otherwise. */
static const struct {
	const char *name, *meta;
	bool version;
} diff_facts[] = {
	[DIFF_FACT_GPU] = {"GPU", NULL, false}, [DIFF_FACT_RANKS] = {"ranks of the job", NULL, false}, [DIFF_FACT_RECORDER] = {"recorder", NULL, false}, {"stacks", "with_stack", false}, {"shapes", "record_shapes", false}, {"memory", "profile_memory", false}, {"modules", "with_modules", false},
	{"driver", "cuda_driver_version", true}, {"CUDA", "cuda_runtime_version", true}, {"CUPTI", "cupti_version", true}, {"PyTorch", "pytorch_version", true},
};

enum { DIFF_FACTS = sizeof diff_facts / sizeof *diff_facts };

struct diff_taker {
	struct diff_side *side;
	const struct profile *p;
	struct intervals all;      /* the steps */
	int64_t *step_start_ns;    /* of each step that is kept */
	bool one_gpu;              /* of one that was chosen */
	bool host;                 /* of the host, though the GPUs worked */
	struct short_names *names;
	const struct stacks *stacks;
	uint32_t *line_of_stack;   /* stack -> text + 1; 0 = not looked at yet */
	uint32_t *shapes_of_op;    /* op -> text + 1; 0 = not looked at yet */
	uint32_t *class_of;        /* row of device work -> enum diff_kind */
	uint32_t *place;           /* row of device work -> its place in the list of those that run; afterwards its part */
	int64_t *share_ns;         /* row of device work -> its part of the steps */
};

static uint32_t diff_text(struct diff_taker *t, struct str s)
{
	return intern_str(&t->side->texts, s);
}

static struct diff_part *diff_add(struct diff_taker *t, const struct diff_key *key, uint64_t calls, int64_t ns)
{
	return diff_side_add(t->side, key, calls, ns);
}

/* ---- which steps ---- */

/* Of a recording without steps: from the first to the last device work, so that both sides are of the same kind; of the host all of it. */
static struct step diff_whole(const struct profile *p, bool host)
{
	struct step x = p->steps->v[0];
	for (uint32_t g = 0; g < p->gpu_op.rows.n && !host; g++) {
		x.start_ns = g && x.start_ns < p->gpu_op.start_ns[g] ? x.start_ns : p->gpu_op.start_ns[g];
		x.end_ns = g && x.end_ns > gpu_end(p, g) ? x.end_ns : gpu_end(p, g);
	}
	return x;
}

static int diff_take_steps(struct diff_taker *t, const struct report_args *args, struct err *e)
{
	const struct steps *s = t->p->steps;
	struct diff_side *side = t->side;
	side->has_steps = !s->whole_trace;
	side->window = s->whole_trace && t->p->gpu_op.rows.n && !t->host ? WINDOW_DEVICE : s->window;
	side->step_ns = NEW_ARRAY(s->n + 1, int64_t);
	t->step_start_ns = NEW_ARRAY(s->n + 1, int64_t);
	for (unsigned i = 0; i < s->n; i++)
		side->step_ns[i] = s->v[i].end_ns - s->v[i].start_ns;
	side->warm_up = args->has_steps || args->all_steps || s->whole_trace ? 0 : diff_side_warm_up(side->step_ns, s->n);
	const struct step whole = s->whole_trace ? diff_whole(t->p, t->host) : (struct step){0};
	for (unsigned i = side->warm_up; i < s->n; i++) {
		const struct step *x = s->whole_trace ? &whole : &s->v[i];
		if (args->has_steps && (x->number < args->step_first || x->number > args->step_last))
			continue;
		t->step_start_ns[side->n_steps] = x->start_ns;
		side->step_ns[side->n_steps++] = x->end_ns - x->start_ns;
		intervals_add(&t->all, x->start_ns, x->end_ns);
	}
	intervals_normalise(&t->all);
	if (!side->n_steps && !args->has_steps)
		return err_set(e, ERR_DATA, "%s: it holds no events that could be compared", t->p->input_path.p);
	if (!side->n_steps)
		return err_set(e, ERR_USAGE, "%s: no step has a number of %s", t->p->input_path.p, steps_range_text(args->step_first, args->step_last).s);
	if (!intervals_length(&t->all))
		return err_set(e, ERR_DATA, "%s: the steps take no time", t->p->input_path.p);
	return 0;
}

/* ---- device work ---- */

static enum diff_kind diff_side_class_of(const struct profile *p, uint32_t g)
{
	if (p->gpu_op.kind[g] == GPU_MEMCPY)
		return DIFF_COPY;
	return p->gpu_op.kind[g] == GPU_KERNEL && name_is(p, p->gpu_op.name[g], NAME_COMM_KERNEL) ? DIFF_COMM : DIFF_COMPUTE;
}

/* What runs at a moment, by kind. */
struct diff_running {
	uint32_t *v[DIFF_IDLE];
	uint32_t n[DIFF_IDLE];
};

/* Row i of n gets an equal part of `ns`; what division leaves over goes to the first ones. */
static int64_t diff_share_of(uint32_t i, uint32_t n, int64_t ns)
{
	return ns / n + (i < ns % n);
}

static void diff_share(struct diff_taker *t, const uint32_t *v, uint32_t n, int64_t ns)
{
	for (uint32_t i = 0; i < n; i++)
		t->share_ns[v[i]] += diff_share_of(i, n, ns);
}

static void diff_edge(struct diff_taker *t, struct diff_running *r, uint32_t g, bool begins)
{
	uint32_t kind = t->class_of[g], *n = &r->n[kind], *v = r->v[kind];
	if (begins) {
		t->place[g] = *n;
		v[(*n)++] = g;
		return;
	}
	uint32_t last = v[--*n];
	v[t->place[g]] = last;
	t->place[last] = t->place[g];
}

static int64_t diff_edge_ns(const struct profile *p, const struct sort_item *edge)
{
	return edge->tie ? gpu_end(p, edge->row) : p->gpu_op.start_ns[edge->row];
}

/* A GPU runs no more kernels at once. Of damaged input, where more overlap, the first ones share the moment, so that the work stays linear. */
enum { DIFF_SHARING_MOST = 128 };

static uint32_t diff_sharing(const struct diff_running *r, int kind)
{
	return r->n[kind] < DIFF_SHARING_MOST ? r->n[kind] : DIFF_SHARING_MOST;
}

/* Shares a moment in which collectives run, and no computation, and keeps when that was, step by step. */
static void diff_share_exposed(struct diff_taker *t, const struct diff_running *r, int64_t start, int64_t end)
{
	const uint32_t *v = r->v[DIFF_COMM], n = diff_sharing(r, DIFF_COMM);
	struct diff_side *s = t->side;
	for (size_t k = FIRST_WHERE(i, 0, t->all.n, t->all.v[i].end > start); k < t->all.n && t->all.v[k].start < end; k++) {
		const int64_t from = t->all.v[k].start > start ? t->all.v[k].start : start, to = t->all.v[k].end < end ? t->all.v[k].end : end;
		diff_share(t, v, n, to - from);
		for (uint32_t i = 0; i < n; i++) {
			const int64_t ns = diff_share_of(i, n, to - from);
			if (ns)
				MEM_PUSH(s->exposed, s->n_exposed, s->cap_exposed, ((struct diff_exposed){.start_ns = from, .end_ns = to, .share_ns = ns, .row = v[i]}));
		}
	}
}

/* The steps' time of one GPU, whose work stands in `edge` twice: by start, and by end with tie = 1. */
static void diff_sweep(struct diff_taker *t, struct sort_item *edge, uint32_t n, struct diff_running *r)
{
	sort_items(edge, n);
	for (uint32_t i = 0; i < n; i++) {
		int64_t at = diff_edge_ns(t->p, &edge[i]), next = i + 1 < n ? diff_edge_ns(t->p, &edge[i + 1]) : at;
		diff_edge(t, r, edge[i].row, !edge[i].tie);
		int64_t ns = next > at ? intervals_length_within(&t->all, at, next) : 0;
		for (int k = 0; k < DIFF_IDLE && ns; k++)
			if (r->n[k]) {
				if (k == DIFF_COMM)
					diff_share_exposed(t, r, at, next);
				else
					diff_share(t, r->v[k], diff_sharing(r, k), ns);
				break;
			}
	}
}

/* Shares the steps of GPU `i` out; *busy gets when the GPU works. */
static void diff_take_gpu(struct diff_taker *t, const struct gpus *gpus, uint32_t i, struct intervals *busy)
{
	const struct profile *p = t->p;
	uint32_t rows = p->gpu_op.rows.n, n = 0;
	struct sort_item *edge = NEW_ARRAY_RAW(2 * (size_t)rows, struct sort_item);
	struct diff_running r = {0};
	for (int k = 0; k < DIFF_IDLE; k++)
		r.v[k] = NEW_ARRAY_RAW(rows, uint32_t);
	for (uint32_t g = 0; g < rows; g++)
		if (gpus_of(gpus, p, g) == i && p->gpu_op.dur_ns[g] > 0) {
			edge[n++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
			edge[n++] = (struct sort_item){sort_key_i64(gpu_end(p, g)), g, 1};
			intervals_add(busy, p->gpu_op.start_ns[g], gpu_end(p, g));
		}
	diff_sweep(t, edge, n, &r);
	for (int k = 0; k < DIFF_IDLE; k++)
		mem_free(r.v[k]);
	mem_free(edge);
	intervals_normalise(busy);
}

static void diff_take_idle(struct diff_taker *t, const struct stacks *stacks, int32_t device, const struct intervals *busy, uint32_t main_track)
{
	struct intervals idle = {0};
	intervals_subtract(&t->all, busy, &idle);
	struct gaps *g = gaps_new(t->p, stacks, &idle, device, main_track, t->step_start_ns, t->side->n_steps);
	for (int c = 0; c < GAP_N_CAUSES; c++) {
		if (!g->ns[c])
			continue;
		const struct diff_part *x = diff_add(t, &(struct diff_key){.name = diff_text(t, str_from(gap_cause_text[c])), .kind = DIFF_IDLE}, 0, g->ns[c]);
		for (unsigned i = 0; i < t->side->n_steps; i++)
			diff_scatter_count(t->side, (uint32_t)(x - t->side->part), i, g->step_ns[i][c]);
	}
	gaps_free(g);
	intervals_release(&idle);
}

static uint32_t diff_shapes(struct diff_taker *t, uint32_t op)
{
	if (!t->shapes_of_op[op]) {
		struct arena a = {0};
		struct op_shapes s;
		op_instance_shapes(t->p->ops, t->p, t->p->ops->op[op].first, &a, &s);
		t->shapes_of_op[op] = diff_text(t, s.inputs) + 1;
		arena_release(&a);
	}
	return t->shapes_of_op[op] - 1;
}

static uint32_t diff_line(struct diff_taker *t, uint32_t span)
{
	const uint32_t stack = stacks_of(t->stacks, span);
	if (!t->line_of_stack[stack])
		t->line_of_stack[stack] = diff_text(t, stacks_user_line(t->stacks, stack)) + 1;
	return t->line_of_stack[stack] - 1;
}

static void diff_name_op(struct diff_taker *t, uint32_t instance, struct diff_key *key)
{
	const struct ops *o = t->p->ops;
	if (o->instance[instance].span != ROW_NONE)
		key->line = diff_line(t, o->instance[instance].span);
	uint32_t op = o->instance[instance].op;
	key->name = diff_text(t, o->op[op].name);
	key->type = diff_text(t, o->op[op].type);
	key->direction = o->op[op].direction;
	key->shapes = diff_shapes(t, op);
}

/* Launched outside of all ops, and by no graph; or nobody knows by whom. */
static bool diff_is_outside_ops(const struct profile *p, uint32_t instance)
{
	const struct op_instance *i = &p->ops->instance[instance];
	const struct op *o = &p->ops->op[i->op];
	return i->span == ROW_NONE || (o->unassociated && !str_has(o->type, STR("GraphLaunch")));
}

static void diff_take_work(struct diff_taker *t, const struct gpus *gpus)
{
	const struct profile *p = t->p;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t at = p->gpu_op.start_ns[g];
		bool begins = intervals_length_within(&t->all, at, at < INT64_MAX ? at + 1 : at) > 0;
		if ((!begins && !t->share_ns[g]) || (t->one_gpu && gpus_of(gpus, p, g) == GPUS_NONE))
			continue;
		struct diff_key key = {.kind = (uint8_t)t->class_of[g]};
		diff_name_op(t, p->ops->of_gpu[g], &key);
		key.kernel = diff_text(t, profile_str(p, p->gpu_op.name[g]));
		if (diff_is_outside_ops(p, p->ops->of_gpu[g])) {
			key.name = key.type = key.kernel;
			key.shapes = 0;
		}
		struct diff_part *x = diff_add(t, &key, begins, t->share_ns[g]);
		const unsigned later = FIRST_WHERE(i, 0u, t->side->n_steps, t->step_start_ns[i] > at);
		diff_scatter_count(t->side, (uint32_t)(x - t->side->part), later ? later - 1 : 0, t->share_ns[g]);
		x->wait_unknown_ns = x->maybe_wait_ns = key.kind == DIFF_COMM ? x->ns : 0;
		t->place[g] = (uint32_t)(x - t->side->part);
		if (key.kind != DIFF_COPY && !x->short_kernel)
			x->short_kernel = diff_text(t, short_names_get(t->names, p->gpu_op.name[g]));
	}
	for (uint32_t i = 0; i < t->side->n_exposed; i++)
		t->side->exposed[i].part = t->place[t->side->exposed[i].row];
}

static void diff_take_device(struct diff_taker *t, const struct gpus *gpus)
{
	const struct profile *p = t->p;
	uint32_t n = p->gpu_op.rows.n, main_track = steps_main_track(p);
	t->names = short_names_new(p);
	t->class_of = NEW_ARRAY_RAW(n, uint32_t);
	t->place = NEW_ARRAY_RAW(n, uint32_t);
	t->share_ns = NEW_ARRAY(n, int64_t);
	for (uint32_t g = 0; g < n; g++)
		t->class_of[g] = diff_side_class_of(p, g);
	for (uint32_t i = 0; i < gpus->n; i++) {
		struct intervals busy = {0};
		diff_take_gpu(t, gpus, i, &busy);
		diff_take_idle(t, t->stacks, gpus->device[i], &busy, main_track);
		intervals_release(&busy);
	}
	diff_take_work(t, gpus);
	mem_free(t->class_of);
	mem_free(t->place);
	mem_free(t->share_ns);
	short_names_free(t->names);
}

/* ---- the host ---- */

/* The thread whose ops take most time. */
static uint32_t diff_busiest_track(const struct profile *p)
{
	int64_t *ns = NEW_ARRAY(p->track.rows.n, int64_t);
	uint32_t best = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OP && p->span.parent[i] == ROW_NONE) {
			uint32_t t = p->span.track[i];
			ns[t] += p->span.dur_ns[i];
			best = best == ROW_NONE || ns[t] > ns[best] ? t : best;
		}
	mem_free(ns);
	return best;
}

struct str diff_side_outside_ranges(void)
{
	return str_from(gap_cause_text[GAP_UNKNOWN]);
}

/* The name of a range as a text. All steps have one. A builtin's says where in memory its object was, which is another place in each run: that is left out. */
static uint32_t diff_range_name(struct diff_taker *t, uint32_t span)
{
	const struct str name = profile_str(t->p, t->p->span.name[span]), at = STR(" at 0x");
	const char *address = memmem(name.p, name.n, at.p, at.n);
	if (str_starts(name, STR(TORCH_STEP)))
		return diff_text(t, STR(TORCH_ANY_STEP));
	if (!address)
		return diff_text(t, name);
	struct buf b = {0};
	const char *end = address + at.n;
	while (end < name.p + name.n && isxdigit((unsigned char)*end))
		end++;
	buf_put(&b, name.p, (size_t)(address - name.p));
	buf_put(&b, end, (size_t)(name.p + name.n - end));
	const uint32_t text = diff_text(t, buf_view(&b));
	buf_release(&b);
	return text;
}

/* The innermost range around a frame. */
static uint32_t diff_around_frame(struct diff_taker *t, uint32_t frame)
{
	const struct profile *p = t->p;
	uint32_t i = frame;
	while (i != ROW_NONE && (p->span.kind[i] == SPAN_PYTHON || p->ops->of_span[i] != ROW_NONE))
		i = p->span.parent[i];
	return i == ROW_NONE ? diff_text(t, diff_side_outside_ranges()) : diff_range_name(t, i);
}

/* Where each range of the thread ends, as nesting has it (PASS_NEST): with the one around it at the latest, and where the next one beside it begins. So a frame whose end was not recorded does
 * not take the time of what follows, and the ranges within one share its time without overlap. The caller's (mem_free). */
static int64_t *diff_host_ends(const struct profile *p, uint32_t track)
{
	int64_t *end_ns = NEW_ARRAY(p->span.rows.n, int64_t);
	uint32_t open = ROW_NONE; /* the innermost range that may go on */
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.track[i] != track || !span_nests(p->span.kind[i]))
			continue;
		const int64_t start = p->span.start_ns[i];
		const uint32_t parent = p->span.parent[i];
		for (; open != parent; open = p->span.parent[open]) {
			assert(open != ROW_NONE);
			end_ns[open] = end_ns[open] < start ? end_ns[open] : start;
		}
		end_ns[i] = parent != ROW_NONE && end_ns[parent] < span_end(p, i) ? end_ns[parent] : span_end(p, i);
		assert(end_ns[i] >= start);
		open = i;
	}
	return end_ns;
}

/* Ranges around many steps are few, but of damaged input. */
enum { DIFF_RANGE_STEPS_MOST = 1 << 25 };

/* Counts a range of the host in the steps that it is in, of which at most `most`: for its part, and against the part of the range around it. part_of: span -> part; the last one is that of no range. Returns in how many. */
static uint64_t diff_scatter_range(struct diff_taker *t, uint32_t span, int64_t end, const uint32_t *part_of, uint64_t most)
{
	uint64_t n = 0;
	const struct profile *p = t->p;
	const struct diff_side *s = t->side;
	const int64_t start = p->span.start_ns[span];
	const uint32_t parent = p->span.parent[span] != ROW_NONE ? p->span.parent[span] : p->span.rows.n;
	for (unsigned i = FIRST_WHERE(k, 0u, s->n_steps, t->step_start_ns[k] + s->step_ns[k] > start); i < s->n_steps && t->step_start_ns[i] < end && n < most; i++, n++) {
		const int64_t from = start > t->step_start_ns[i] ? start : t->step_start_ns[i], step_end = t->step_start_ns[i] + s->step_ns[i];
		const int64_t ns = (end < step_end ? end : step_end) - from;
		if (part_of[span] != ROW_NONE)
			diff_scatter_count(t->side, part_of[span], i, ns);
		if (part_of[parent] != ROW_NONE)
			diff_scatter_count(t->side, part_of[parent], i, -ns);
	}
	return n;
}

static void diff_scatter_host(struct diff_taker *t, uint32_t track, const int64_t *end_ns, const uint32_t *part_of)
{
	uint64_t left = DIFF_RANGE_STEPS_MOST;
	const struct profile *p = t->p;
	for (unsigned i = 0; i < t->side->n_steps && part_of[p->span.rows.n] != ROW_NONE; i++)
		diff_scatter_count(t->side, part_of[p->span.rows.n], i, t->side->step_ns[i]);
	for (uint32_t i = 0; i < p->span.rows.n && !t->side->scatter_dropped; i++)
		if (p->span.track[i] == track && span_nests(p->span.kind[i]))
			left -= diff_scatter_range(t, i, end_ns[i], part_of, left);
	if (!left)
		diff_scatter_drop(t->side);
	diff_scatter_end(t->side);
}

static void diff_take_host(struct diff_taker *t)
{
	const struct profile *p = t->p;
	uint32_t track = p->steps->v[0].span != ROW_NONE ? p->span.track[p->steps->v[0].span] : diff_busiest_track(p);
	int64_t *end_ns = diff_host_ends(p, track), *own_ns = NEW_ARRAY(p->span.rows.n, int64_t), left_ns = t->side->total_ns;
	uint32_t *part_of = mem_filled((size_t)p->span.rows.n + 1, ROW_NONE);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.track[i] != track || !span_nests(p->span.kind[i]))
			continue;
		const int64_t ns = intervals_length_within(&t->all, p->span.start_ns[i], end_ns[i]);
		own_ns[i] += ns;
		if (p->span.parent[i] != ROW_NONE)
			own_ns[p->span.parent[i]] -= ns;
	}
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		bool begins = p->span.track[i] == track && span_nests(p->span.kind[i]) && intervals_length_within(&t->all, p->span.start_ns[i], p->span.start_ns[i] + 1) > 0;
		assert(own_ns[i] >= 0 && own_ns[i] <= left_ns);
		if (!own_ns[i] && !begins)
			continue;
		struct diff_key key = {.kind = DIFF_HOST, .direction = DIR_OTHER};
		uint32_t instance = p->ops->of_span[i];
		if (instance != ROW_NONE)
			diff_name_op(t, instance, &key);
		else
			key.name = key.type = diff_range_name(t, i);
		if (instance == ROW_NONE)
			key.line = diff_line(t, i);
		if (instance == ROW_NONE && p->span.kind[i] == SPAN_PYTHON) {
			key.around = diff_around_frame(t, i);
			t->side->frames = true;
		}
		left_ns -= own_ns[i];
		part_of[i] = (uint32_t)(diff_add(t, &key, begins && (instance == ROW_NONE || p->ops->instance[instance].span == i), own_ns[i]) - t->side->part);
	}
	if (left_ns)
		part_of[p->span.rows.n] = (uint32_t)(diff_add(t, &(struct diff_key){.name = diff_text(t, diff_side_outside_ranges()), .kind = DIFF_IDLE}, 0, left_ns) - t->side->part);
	diff_scatter_host(t, track, end_ns, part_of);
	mem_free(end_ns);
	mem_free(part_of);
	mem_free(own_ns);
}

/* ---- facts ---- */

static int64_t diff_peak_bytes(const struct profile *p, bool gpus)
{
	struct memory_peak *peak;
	int64_t most = -1;
	const size_t n = memory_peaks(p, INT64_MIN, INT64_MAX, &peak);
	for (size_t d = gpus; d < (gpus ? n : n > 0); d++)
		if (peak[d].allocated != ROW_NONE && p->memory.total_allocated[peak[d].allocated] > most)
			most = p->memory.total_allocated[peak[d].allocated];
	mem_free(peak);
	return most;
}

bool diff_side_set_facts(struct diff_side *s, const struct str *value, unsigned n)
{
	if (n != DIFF_FACTS)
		return false;
	s->fact = NEW_ARRAY(n, struct diff_fact);
	for (s->n_facts = 0; s->n_facts < n; s->n_facts++)
		s->fact[s->n_facts] = (struct diff_fact){diff_facts[s->n_facts].name, value[s->n_facts], diff_facts[s->n_facts].version};
	return true;
}

static void diff_take_facts(struct diff_side *s, const struct profile *p, const struct gpus *gpus, int64_t world)
{
	struct str value[DIFF_FACTS];
	struct buf b = {0};
	s->path = arena_str(&s->arena, p->input_path);
	for (uint32_t i = 0; i < gpus->n; i++)
		for (uint32_t d = 0; d < p->device.rows.n; d++)
			if (p->device.id[d] == gpus->device[i]) {
				struct str name = profile_str(p, p->device.name[d]);
				if (!str_has(buf_view(&b), name))
					buf_printf(&b, "%s" STR_FMT, b.n ? ", " : "", STR_ARG(name));
			}
	value[DIFF_FACT_GPU] = arena_str(&s->arena, buf_view(&b));
	buf_clear(&b);
	if (world > 0)
		buf_printf(&b, "%lld", (long long)world);
	value[DIFF_FACT_RANKS] = arena_str(&s->arena, buf_view(&b));
	value[DIFF_FACT_RECORDER] = arena_str(&s->arena, p->format);
	for (unsigned i = DIFF_FACTS_OWN; i < DIFF_FACTS; i++) {
		struct str stated;
		value[i] = arena_str(&s->arena, profile_meta(p, diff_facts[i].meta, &stated) ? stated : STR(""));
	}
	buf_release(&b);
	const bool all = diff_side_set_facts(s, value, DIFF_FACTS);
	assert(all);
	(void)all;
}

static int diff_take_workers(struct diff_side *s, struct profile *p, const struct report_args *args, struct err *e)
{
	if (args->device)
		return err_set(e, ERR_USAGE, "--device=%s: %s is a timeline of workers, which tells nothing of devices", args->device, p->input_path.p);
	if (diff_workers_take(s, p, args, e) < 0)
		return -1;
	diff_take_facts(s, p, &(struct gpus){0}, s->gpus);
	s->peak_bytes = -1;
	return 0;
}

/* What worked is this device alone: a GPU by its ordinal, or "cpu"; NULL = all GPUs. */
static int diff_choose_device(const struct profile *p, const char *device, struct gpus *gpus, struct err *e)
{
	int64_t ordinal;
	if (!device)
		return 0;
	if (strcmp(device, "cpu") == 0) {
		gpus->n = 0;
		return 0;
	}
	if (!str_to_i64(str_from(device), &ordinal))
		return err_set(e, ERR_USAGE, "--device=%s: cpu or the number of a GPU was expected", device);
	return gpus_keep(gpus, p, ordinal) ? 0 : err_set(e, ERR_USAGE, "--device=%s: no work of this GPU in %s", device, p->input_path.p);
}

static int diff_take_recording(struct diff_taker *t, struct profile *p, const struct report_args *args, struct err *e)
{
	struct diff_side *s = t->side;
	struct gpus gpus = {0};
	t->host = args->device && strcmp(args->device, "cpu") == 0;
	t->one_gpu = args->device && !t->host;
	if (steps_choose(p, args->key_op, e) < 0 || analysis_run(p, PASS_NEST | PASS_CORRELATE | PASS_STEPS | PASS_OPS, e) < 0 || diff_take_steps(t, args, e) < 0)
		return -1;
	const struct thinned thinned = thinned_of(p);
	gpus_find(p, &gpus);
	if (diff_choose_device(p, args->device, &gpus, e) < 0) {
		gpus_release(&gpus);
		return -1;
	}
	s->thinned = thinned_is(&thinned);
	s->gpus = gpus.n;
	const bool fits = !__builtin_mul_overflow(intervals_length(&t->all), gpus.n ? gpus.n : 1, &s->total_ns);
	t->shapes_of_op = NEW_ARRAY(p->ops->n_ops, uint32_t);
	diff_take_facts(s, p, &gpus, rank_place_of(p).world);
	s->peak_bytes = diff_peak_bytes(p, gpus.n);
	struct stacks *stacks = stacks_new(p);
	t->stacks = stacks;
	t->line_of_stack = NEW_ARRAY(stacks_count(stacks), uint32_t);
	if (gpus.n && fits) {
		diff_take_device(t, &gpus);
		diff_scatter_end(s);
	} else if (fits) {
		diff_take_host(t);
	}
	stacks_free(stacks);
	mem_free(t->line_of_stack);
	mem_free(t->shapes_of_op);
	gpus_release(&gpus);
	return fits ? 0 : err_set(e, ERR_DATA, "%s: the steps of all GPUs are longer than 64 bits hold of ns: a time is damaged", p->input_path.p);
}

struct diff_side *diff_side_new(struct profile *p, const struct report_args *args, struct err *e)
{
	struct report_args chosen;
	struct diff_taker t = {.side = NEW(struct diff_side), .p = p};
	struct diff_side *s = t.side;
	intern_init(&s->texts);
	intern_init(&s->keys);
	s->n_recordings = 1;
	int rc = p->durations_only ? err_set(e, ERR_DATA, "%s: the input holds durations, but no times", p->input_path.p) : report_args_chosen(p, args, &chosen, e);
	if (rc == 0)
		rc = rank_workers_count(p) ? diff_take_workers(s, p, &chosen, e) : diff_take_recording(&t, p, &chosen, e);
	intervals_release(&t.all);
	mem_free(t.step_start_ns);
	if (rc == 0)
		return s;
	diff_side_free(s);
	return NULL;
}
