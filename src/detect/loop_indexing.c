#include "detect/parts/copies.h"

/* The same ops between two aten::select, this often in a row, are a loop over an index (the figure of torch's own pattern matcher). */
enum { ROUNDS = 10 };
/* Percent of the steps' time that no device has work during such loops. */
static const double TOO_MUCH = 1, SEVERE = 10;

/* The ops inside one op, or at the top of a thread, as they come. */
struct loop_indexing_level {
	uint32_t op;             /* ROW_NONE = top of the thread */
	uint64_t now, before;    /* hash of the ops since the last select, and between the two before it */
	unsigned rounds;         /* how often `before` came in a row */
	uint32_t first, last_select; /* the select that began the row of rounds, and the last one */
};

struct loop_indexing_work {
	const struct profile *p;
	struct findings *f;
	const struct step_time *w;
	struct loop_indexing_level *level;
	uint32_t n, cap;
	struct places places;
	struct intervals host, idle; /* idle: the GPU's, but for rows of copies, of which tiny-copies tells: what costs there is each copy */
	uint64_t rounds;
};

static void end_loop(struct loop_indexing_work *x, struct loop_indexing_level *l)
{
	const struct profile *p = x->p;
	if (l->rounds >= ROUNDS && step_time_has(x->w, p->span.start_ns[l->first])) {
		int64_t start = p->span.start_ns[l->first], end = span_end(p, l->last_select);
		int64_t ns = intervals_length_within(&x->idle, start, end);
		if (ns) {
			intervals_add(&x->host, start, end);
			places_add(&x->places, shared_stacks(x->f), profile_str(p, p->span.name[l->first]), l->first, 1, ns);
			x->rounds += l->rounds;
		}
	}
	l->rounds = 0;
}

static void next_select(struct loop_indexing_work *x, struct loop_indexing_level *l, uint32_t i)
{
	if (l->last_select == ROW_NONE || !l->now) {
		end_loop(x, l);
		l->first = i;
	} else if (l->rounds && l->now == l->before) {
		l->rounds++;
	} else {
		end_loop(x, l);
		l->first = l->last_select;
		l->rounds = 1;
	}
	l->before = l->now;
	l->now = 0;
	l->last_select = i;
}

static void loop_indexing_leave(struct loop_indexing_work *x)
{
	end_loop(x, &x->level[x->n - 1]);
	x->n--;
}

static void loop_indexing_enter(struct loop_indexing_work *x, uint32_t op)
{
	MEM_PUSH(x->level, x->n, x->cap, (struct loop_indexing_level){.op = op, .first = ROW_NONE, .last_select = ROW_NONE});
}

static void loop_indexing_look(struct loop_indexing_work *x)
{
	const struct spans *s = &x->p->span;
	uint32_t select = intern_find(&x->p->strings, STR("aten::select")), track = ROW_NONE;
	for (uint32_t i = 0; select != INTERN_NONE && i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_OP)
			continue;
		if (s->track[i] != track) {
			while (x->n)
				loop_indexing_leave(x);
			loop_indexing_enter(x, ROW_NONE);
			track = s->track[i];
		}
		while (x->n > 1 && x->level[x->n - 1].op != s->op[i])
			loop_indexing_leave(x);
		struct loop_indexing_level *l = &x->level[x->n - 1];
		if (s->name[i] == select)
			next_select(x, l, i);
		else
			l->now = hash_u64(l->now ^ (s->name[i] + 1));
		loop_indexing_enter(x, i);
	}
	while (x->n)
		loop_indexing_leave(x);
}

static void loop_indexing_report(struct loop_indexing_work *x, int64_t ns)
{
	const struct step_time *w = x->w;
	struct buf evidence = {0};
	struct finding *d = findings_add(x->f, step_time_pct(w, ns) >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	d->problem = arena_printf(&x->f->arena, "Python loops over the index of a tensor keep the GPU without work for %.1f %% of the %s",
	                          step_time_pct(w, ns), w->time);
	buf_printf(&evidence, "%s, %.0f rounds of the same ops between one aten::select and the next: ", w->per, (double)x->rounds / w->n);
	finding_evidence(d, x->f, &evidence, &x->places, 3, w->n, true);
	finding_measured(d, w, x->rounds, ns, &x->host, "time without device work while the host is in these loops");
}

static void find_idle(struct loop_indexing_work *x)
{
	struct copy_rows rows;
	copies_rows(x->p, x->w, COPY_TINY_BYTES, &rows);
	intervals_subtract(&x->w->idle, &rows.when, &x->idle);
	copies_rows_release(&rows);
}

static void loop_indexing_run(const struct profile *p, struct findings *f)
{
	struct loop_indexing_work x = {.p = p, .f = f, .w = shared_steps(f)};
	find_idle(&x);
	loop_indexing_look(&x);
	intervals_normalise(&x.host);
	intervals_intersect(&x.host, &x.idle, &x.host);
	int64_t ns = intervals_length(&x.host);
	if (step_time_pct(x.w, ns) >= TOO_MUCH)
		loop_indexing_report(&x, ns);
	intervals_release(&x.host);
	intervals_release(&x.idle);
	places_release(&x.places);
	mem_free(x.level);
}

const struct detector detector_loop_indexing = {
	.id = "loop-indexing",
	.title = "A Python loop over the index of a tensor",
	.why = "Each x[i] in a loop launches small kernels for one element; one op over the whole dimension does the same in one launch.",
	.fix = "Work on the whole tensor at once: broadcasting, gather and scatter, torch.bmm or torch.vmap instead of a loop over its index.",
	.disprove = "Each round needs the result of the one before (a recurrence): then the loop cannot be taken out, only made cheaper.",
	.shares = "gpu-starvation launch-bound tiny-copies",
	.report = "operators",
	.where = DETECT_WINDOW,
	.run = loop_indexing_run,
};
