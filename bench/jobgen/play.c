/* Plays the job: when each rank comes to each collective, and when it leaves. */
#include "jobgen.h"

#include "base/mem.h"

void jobgen_group(const struct jobgen_options *o, const struct jobgen_item *i, int64_t rank, int64_t *first, int64_t *apart, int64_t *n)
{
	int64_t t = jobgen_tensor_place(o, rank), d = jobgen_data_place(o, rank), s = jobgen_stage(o, rank);
	*first = i->kind == ITEM_TENSOR ? jobgen_rank(o, 0, d, s) : i->kind == ITEM_DATA ? jobgen_rank(o, t, 0, s) : jobgen_rank(o, t, d, 0);
	*apart = i->kind == ITEM_TENSOR ? 1 : i->kind == ITEM_DATA ? o->tp : o->tp * o->dp;
	*n = i->kind == ITEM_TENSOR ? o->tp : i->kind == ITEM_DATA ? o->dp : o->pp;
}

bool jobgen_takes_part(const struct jobgen_options *o, const struct jobgen_item *i, int64_t rank)
{
	int64_t stage = jobgen_stage(o, rank);
	if (i->kind == ITEM_TENSOR || i->kind == ITEM_DATA)
		return true;
	return (i->kind == ITEM_SEND) == i->forward ? stage < o->pp - 1 : stage > 0;
}

/* The other end of a message. */
static int64_t play_peer(const struct jobgen_options *o, const struct jobgen_item *i, int64_t rank)
{
	return (i->kind == ITEM_SEND) == i->forward ? rank + o->tp * o->dp : rank - o->tp * o->dp;
}

static uint32_t play_send_of(const struct jobgen_base *b, uint32_t receive)
{
	for (uint32_t i = 0; i < b->n_items; i++)
		if (b->item[i].kind == ITEM_SEND && b->item[i].forward == b->item[receive].forward && b->item[i].step == b->item[receive].step)
			return i;
	jobgen_die("a message without a sender", "");
}

static struct jobgen_part *play_part(const struct jobgen_play *p, int64_t rank, int64_t round, uint32_t item)
{
	return &p->part[(rank * p->o->rounds + round) * p->b->n_items + item];
}

/* The stretch of a base step in which a cause strikes; UINT32_MAX = the step has none. */
static uint32_t play_stretch_of(const struct jobgen_step *s, enum jobgen_cause cause)
{
	return cause == CAUSE_DATA ? s->first : cause == CAUSE_BACKWARD ? s->backward : s->longest;
}

static bool play_is_late(const struct jobgen_play *p, const struct jobgen_late *l, int64_t rank, int64_t step)
{
	int64_t of = l->rank >= 0 ? l->rank : jobgen_chance(p->o, 1, (uint64_t)step, (uint64_t)l->cause, p->o->n);
	return of == rank && step >= l->first && step <= l->last;
}

/* How much longer each kernel of the rank takes in a step. */
static double play_slowness(const struct jobgen_play *p, int64_t rank, int64_t round, uint32_t step)
{
	const struct jobgen_options *o = p->o;
	int64_t stage = jobgen_stage(o, rank), more = 0;
	double f = stage < o->n_stages ? o->stage[stage] : 1;
	for (unsigned i = 0; i < o->n_lates; i++)
		if (o->late[i].cause == CAUSE_SLOWER && play_is_late(p, &o->late[i], rank, round * p->b->n_steps + step))
			more += o->late[i].ns;
	int64_t all = p->b->step[step].compute_ns;
	return f + (all ? (double)more / (double)all : 0);
}

static void play_point(struct jobgen_map *m, int64_t base, int64_t before, int64_t after)
{
	if (m)
		MEM_PUSH(m->v, m->n, m->cap, (struct jobgen_point){base, before, after});
}

/* One stretch of one rank: from true time `t` at its beginning to the time at its end. */
static int64_t play_stretch(const struct jobgen_play *p, int64_t rank, int64_t round, uint32_t g, uint32_t *busy, int64_t t, struct jobgen_map *m, struct jobgen_insert *in,
                            unsigned *n_in)
{
	const struct jobgen_base *b = p->b;
	const struct jobgen_options *o = p->o;
	int64_t at = g ? b->item[g - 1].end_ns : 0, end = g < b->n_items ? b->item[g].start_ns : b->end_ns;
	uint32_t step = b->item[g < b->n_items ? g : g - 1].step;
	double slow = play_slowness(p, rank, round, step);
	bool struck = false;
	for (;;) {
		bool more = *busy < b->n_busy && b->busy[*busy].start_ns < end;
		int64_t next = more ? b->busy[*busy].start_ns : end, place = next - 1 > at ? next - 1 : at;
		if (!struck) { /* before the first kernel, or at the end */
			t += place - at;
			at = place;
			struck = true;
			for (unsigned i = 0; i < o->n_lates; i++) {
				const struct jobgen_late *l = &o->late[i];
				if (l->cause == CAUSE_SLOWER || g == b->n_items || play_stretch_of(&b->step[step], l->cause) != g || !play_is_late(p, l, rank, round * b->n_steps + step))
					continue;
				play_point(m, at, t, t + l->ns);
				if (in)
					in[(*n_in)++] = (struct jobgen_insert){l->cause, t, t + l->ns};
				t += l->ns;
			}
		}
		t += next - at;
		at = next;
		if (!more)
			break;
		int64_t length = b->busy[*busy].end_ns - at;
		play_point(m, at, t, t);
		t += (int64_t)((double)length * slow);
		at += length;
		play_point(m, at, t, t);
		(*busy)++;
	}
	int64_t idle = jobgen_chance(o, 2, (uint64_t)rank, (uint64_t)(round * (b->n_items + 1) + g), o->jitter_ns);
	idle += o->stacks[rank] ? (end - (g ? b->item[g - 1].end_ns : 0)) * o->stacks_pct / 100 : 0;
	int64_t back = end - 1 > (g ? b->item[g - 1].end_ns : 0);
	play_point(m, end - back, t - back, t + idle);
	return t + idle;
}

unsigned jobgen_map_round(const struct jobgen_play *p, int64_t rank, int64_t round, struct jobgen_map *m, struct jobgen_insert *in)
{
	const struct jobgen_base *b = p->b;
	unsigned n_in = 0;
	uint32_t busy = 0;
	int64_t t = p->begin[rank * (p->o->rounds + 1) + round];
	m->n = 0;
	play_point(m, 0, t, t);
	for (uint32_t g = 0; g <= b->n_items; g++) {
		t = play_stretch(p, rank, round, g, &busy, t, m, in, &n_in);
		if (g == b->n_items || !jobgen_takes_part(p->o, &b->item[g], rank))
			continue;
		const struct jobgen_item *x = &b->item[g];
		const struct jobgen_part *part = play_part(p, rank, round, g);
		play_point(m, x->start_ns, part->arrival_ns, part->begin_ns);
		if (x->quiet_ns > x->start_ns)
			play_point(m, x->quiet_ns, part->begin_ns + (x->quiet_ns - x->start_ns), part->begin_ns + (x->quiet_ns - x->start_ns));
		t = part->end_ns;
		play_point(m, x->end_ns, t, t);
	}
	play_point(m, b->end_ns, t, t);
	return n_in;
}

/* Where a rank stands while the job is played. */
struct play_rank {
	int64_t round, now_ns;
	uint32_t item, busy;     /* the next item */
	bool arrived;            /* at it */
};

struct play_work {
	struct jobgen_play *p;
	struct play_rank *rank;
	int64_t *came[2];        /* by first rank of a tensor- and of a data-parallel group: how many have come */
	int64_t *queue;
	int64_t first, n;        /* of the queue, which is a ring */
	bool *queued;
};

static void play_wake(struct play_work *w, int64_t rank)
{
	if (w->queued[rank])
		return;
	w->queued[rank] = true;
	w->queue[(w->first + w->n++) % w->p->o->n] = rank;
}

static int64_t play_end_noise(const struct jobgen_play *p, int64_t rank, int64_t round, uint32_t item)
{
	return jobgen_chance(p->o, 3, (uint64_t)rank, (uint64_t)(round * p->b->n_items + item), p->o->end_skew_ns);
}

static void play_leave(struct play_work *w, int64_t rank, int64_t begin)
{
	struct play_rank *r = &w->rank[rank];
	const struct jobgen_item *x = &w->p->b->item[r->item];
	struct jobgen_part *part = play_part(w->p, rank, r->round, r->item);
	part->begin_ns = begin;
	part->end_ns = r->now_ns = begin + x->transfer_ns + play_end_noise(w->p, rank, r->round, r->item);
	r->arrived = false;
	r->item++;
	play_wake(w, rank);
}

/* All of the group have come. */
static void play_finish_group(struct play_work *w, const struct jobgen_item *x, int64_t rank)
{
	int64_t first, apart, n, round = w->rank[rank].round, last = 0;
	uint32_t item = w->rank[rank].item;
	jobgen_group(w->p->o, x, rank, &first, &apart, &n);
	for (int64_t k = 0; k < n; k++) {
		int64_t arrival = play_part(w->p, first + k * apart, round, item)->arrival_ns;
		last = k == 0 || arrival > play_part(w->p, first + last * apart, round, item)->arrival_ns ? k : last;
	}
	int64_t arrival = play_part(w->p, first + last * apart, round, item)->arrival_ns, root = play_part(w->p, first, round, item)->arrival_ns;
	for (int64_t k = 0; k < n; k++) {
		int64_t mine = play_part(w->p, first + k * apart, round, item)->arrival_ns;
		play_leave(w, first + k * apart, x->syncs ? arrival : mine > root ? mine : root);
		w->p->wait_ns[first + k * apart] += x->syncs ? arrival - mine : 0;
		w->p->kept_ns[first + last * apart] += x->syncs ? arrival - mine : 0;
	}
}

/* Lets a rank go on until it waits for another. */
static void play_go_on(struct play_work *w, int64_t rank)
{
	const struct jobgen_base *b = w->p->b;
	struct play_rank *r = &w->rank[rank];
	if (r->arrived && b->item[r->item].kind != ITEM_RECEIVE)
		return;
	while (!r->arrived && r->round < w->p->o->rounds) {
		if (r->item == b->n_items) {
			r->now_ns = play_stretch(w->p, rank, r->round, r->item, &r->busy, r->now_ns, NULL, NULL, NULL);
			w->p->begin[rank * (w->p->o->rounds + 1) + ++r->round] = r->now_ns;
			r->item = r->busy = 0;
			continue;
		}
		const struct jobgen_item *x = &b->item[r->item];
		r->now_ns = play_stretch(w->p, rank, r->round, r->item, &r->busy, r->now_ns, NULL, NULL, NULL);
		if (!jobgen_takes_part(w->p->o, x, rank)) {
			r->item++;
			continue;
		}
		play_part(w->p, rank, r->round, r->item)->arrival_ns = r->now_ns;
		r->arrived = true;
	}
	if (r->round == w->p->o->rounds)
		return;
	const struct jobgen_item *x = &b->item[r->item];
	if (x->kind == ITEM_SEND) {
		int64_t peer = play_peer(w->p->o, x, rank);
		play_leave(w, rank, r->now_ns);
		play_wake(w, peer);
	} else if (x->kind == ITEM_RECEIVE) {
		const struct jobgen_part *sent = play_part(w->p, play_peer(w->p->o, x, rank), r->round, play_send_of(b, r->item));
		if (sent->end_ns) /* else the sender wakes it */
			play_leave(w, rank, sent->begin_ns > r->now_ns ? sent->begin_ns : r->now_ns);
	} else {
		int64_t first, apart, n;
		jobgen_group(w->p->o, x, rank, &first, &apart, &n);
		int64_t *came = &w->came[x->kind == ITEM_DATA][first];
		if (++*came < n)
			return;
		*came = 0;
		play_finish_group(w, x, rank);
	}
}

void jobgen_play(struct jobgen_play *p)
{
	const struct jobgen_options *o = p->o;
	struct play_work w = {.p = p, .rank = NEW_ARRAY(o->n, struct play_rank), .came = {NEW_ARRAY(o->n, int64_t), NEW_ARRAY(o->n, int64_t)}, .queue = NEW_ARRAY(o->n, int64_t),
	                      .queued = NEW_ARRAY(o->n, bool)};
	p->part = NEW_ARRAY((size_t)(o->n * o->rounds) * p->b->n_items, struct jobgen_part);
	p->begin = NEW_ARRAY(o->n * (o->rounds + 1), int64_t);
	p->wait_ns = NEW_ARRAY(o->n, int64_t);
	p->kept_ns = NEW_ARRAY(o->n, int64_t);
	for (int64_t r = 0; r < o->n; r++) {
		w.rank[r].now_ns = p->begin[r * (o->rounds + 1)] = 1000000000 + jobgen_chance(o, 4, (uint64_t)r, 0, o->jitter_ns);
		play_wake(&w, r);
	}
	while (w.n) {
		int64_t rank = w.queue[w.first];
		w.first = (w.first + 1) % o->n;
		w.n--;
		w.queued[rank] = false;
		play_go_on(&w, rank);
	}
	for (int64_t r = 0; r < o->n; r++)
		if (w.rank[r].round < o->rounds)
			jobgen_die("the ranks wait for each other", "");
	mem_free(w.rank);
	mem_free(w.came[0]);
	mem_free(w.came[1]);
	mem_free(w.queue);
	mem_free(w.queued);
}
