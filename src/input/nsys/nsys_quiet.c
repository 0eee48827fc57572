/* Leaves out the ranges and calls that tell nothing of what ran on devices (LEFT_QUIET): calls that launched nothing, and ranges without a number in which nothing
 * was launched. A range is kept where any that is kept begins within it, so that those that are left have the ranges around them that they had.
 *
 * Rows of a thread come in order of start. The ranges that are open are a stack: the inner ones of it wait until something that is kept begins, or until they end,
 * and are then left out. What does not fit this is kept, with all that follows on its thread: a range that ends after the one around it. Where rows come out of order
 * after something was left out, it may have been around them: the file is read again. */
#include "base/search.h"
#include "input/nsys/nsys.h"

enum { QUIET_BITS_PER_WORK = 8, QUIET_WAIT_MOST = 4096 };

struct nsys_quiet_thread {
	int64_t last_start, kept_start; /* of all rows, of those that are kept */
	int64_t *end;                   /* of the open ranges, the outermost first */
	uint32_t n, cap;
	struct span_row *waiting;       /* the innermost ones of them: the others are kept */
	uint32_t n_waiting, cap_waiting;
	bool all;                       /* everything is kept from here on */
	bool dropped;                   /* something was left out */
};

struct nsys_quiet {
	struct nsys_quiet_thread *thread; /* by track */
	uint32_t n_threads;
	uint64_t *launched;               /* a bit for each correlation id of device work, by its last bits: a call without is not one that launched */
	uint64_t mask;
};

void nsys_quiet_begin(struct nsys *n)
{
	const struct gpu_ops *g = &n->p->gpu_op;
	if (!(n->p->left_out & LEFT_QUIET))
		return;
	struct nsys_quiet *q = n->quiet = NEW(struct nsys_quiet);
	uint64_t bits = 64;
	while (bits < QUIET_BITS_PER_WORK * (uint64_t)g->rows.n)
		bits *= 2;
	q->mask = bits - 1;
	q->launched = NEW_ARRAY(bits / 64, uint64_t);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		const uint64_t id = (uint64_t)g->corr_id[i] & q->mask;
		q->launched[id / 64] |= UINT64_C(1) << id % 64;
	}
}

static struct nsys_quiet_thread *quiet_thread(struct nsys_quiet *q, uint32_t track)
{
	const uint32_t had = q->n_threads;
	MEM_GROW(q->thread, q->n_threads, track + 1);
	for (uint32_t i = had; i < q->n_threads; i++)
		q->thread[i] = (struct nsys_quiet_thread){.last_start = INT64_MIN, .kept_start = INT64_MIN};
	return &q->thread[track];
}

/* Whether it tells nothing by itself. */
static bool is_quiet(const struct nsys_quiet *q, const struct span_row *r)
{
	const uint64_t id = (uint64_t)r->link_id & q->mask;
	if (r->kind == SPAN_CALL)
		return !(q->launched[id / 64] >> id % 64 & 1);
	return (r->kind == SPAN_OP || r->kind == SPAN_USER) && r->link_id == ID_NONE;
}

static void quiet_keep_waiting(struct nsys *n, struct nsys_quiet_thread *t)
{
	for (uint32_t i = 0; i < t->n_waiting; i++)
		nsys_put_span(n, &t->waiting[i], false);
	t->n_waiting = 0;
}

static int64_t quiet_end(const struct span_row *r) { return r->start_ns + r->dur_ns; }

/* Takes away what ended before `now`. */
static void quiet_close(struct nsys_quiet_thread *t, int64_t now)
{
	for (; t->n && t->end[t->n - 1] <= now; t->n--)
		if (t->n_waiting) {
			t->n_waiting--;
			t->dropped = true;
		}
}

/* Puts the range, or call, into its place among the open ones of its thread. False: it has none. */
static bool quiet_enter(struct nsys *n, struct nsys_quiet_thread *t, const struct span_row *r)
{
	if (r->start_ns < t->last_start) {
		n->again |= t->dropped;
		return false;
	}
	t->last_start = r->start_ns;
	quiet_close(t, r->start_ns);
	return !t->n || quiet_end(r) <= t->end[t->n - 1];
}

static void quiet_span(struct nsys *n, const struct span_row *r, bool open)
{
	struct nsys_quiet_thread *t = quiet_thread(n->quiet, r->track);
	if (r->kind == SPAN_OS)
		return;
	if (!span_nests(r->kind)) {
		nsys_put_span(n, r, open);
		return;
	}
	const bool nests = quiet_enter(n, t, r); /* once all is kept, too: rows out of order have the file read again */
	t->all = t->all || !nests;
	/* Of rows that begin together, the longer one stands around the other one, whichever comes first. */
	const bool waits = !t->all && !open && r->start_ns > t->kept_start && t->n_waiting < QUIET_WAIT_MOST && is_quiet(n->quiet, r);
	if (!waits) {
		quiet_keep_waiting(n, t);
		nsys_put_span(n, r, open);
		t->kept_start = r->start_ns;
	}
	if (t->all || r->kind == SPAN_CALL) {
		t->dropped |= waits;
		return;
	}
	MEM_PUSH(t->end, t->n, t->cap, quiet_end(r));
	if (waits)
		MEM_PUSH(t->waiting, t->n_waiting, t->cap_waiting, *r);
}

void nsys_span(struct nsys *n, const struct span_row *r, bool open)
{
	if (!build_admit_span(&n->b, r))
		return;
	if (n->quiet)
		quiet_span(n, r, open);
	else
		nsys_put_span(n, r, open);
}

void nsys_quiet_finish(struct nsys *n)
{
	struct nsys_quiet *q = n->quiet;
	const struct intern *names = &n->p->strings;
	if (!q)
		return;
	n->again = n->again || ANY_WHERE(i, 0u, names->n, n->p->needs_quiet(intern_get(names, i)));
	for (uint32_t i = 0; i < q->n_threads; i++) {
		mem_free(q->thread[i].end);
		mem_free(q->thread[i].waiting);
	}
	mem_free(q->thread);
	mem_free(q->launched);
	mem_free(q);
	n->quiet = NULL;
}
