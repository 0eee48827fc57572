#include "report/parts/hang_notes.h"

enum { HANG_NOTES_RANKS = 16 };

/* Numbers in ascending order, as ranges: the first few. */
struct hang_ranks {
	int64_t first, last;     /* of the range that is not put yet; last < first = none */
	unsigned n;
	bool more;
};

static void hang_ranks_flush(struct hang_ranks *r, struct buf *b)
{
	if (r->last < r->first)
		return;
	if (r->n++ >= HANG_NOTES_RANKS) {
		if (!r->more)
			buf_cstr(b, " and more");
		r->more = true;
		return;
	}
	buf_printf(b, "%s%lld", r->n > 1 ? ", " : "", (long long)r->first);
	if (r->last > r->first)
		buf_printf(b, "%s%lld", r->last == r->first + 1 ? ", " : "-", (long long)r->last);
}

static void hang_ranks_add(struct hang_ranks *r, int64_t rank, struct buf *b)
{
	if (r->last >= r->first && rank == r->last + 1) {
		r->last = rank;
		return;
	}
	hang_ranks_flush(r, b);
	r->first = r->last = rank;
}

void hang_put_ranks(const struct job_hang_row *row, enum job_hang_part part, bool to_blame, struct buf *b)
{
	struct hang_ranks r = {.last = -1};
	for (uint32_t i = 0; i < row->n; i++)
		if (row->member[i].part == part && (row->member[i].to_blame || !to_blame))
			hang_ranks_add(&r, row->member[i].rank, b);
	hang_ranks_flush(&r, b);
}

static uint32_t hang_count(const struct job_hang_row *row, enum job_hang_part part, bool to_blame)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < row->n; i++)
		n += row->member[i].part == part && (row->member[i].to_blame || !to_blame);
	return n;
}

void hang_put_op(const struct job_hang_row *row, struct buf *b)
{
	const struct rank_hang_call *c = row->call;
	if (c->is_pair && c->peer >= 0)
		buf_printf(b, "%s %lld%s%lld", c->sends ? "send" : "recv", (long long)row->caller, c->sends ? "->" : "<-", (long long)c->peer);
	else
		buf_str(b, c->op.n ? c->op : STR("?"));
}

void hang_put_group(const struct rank_hang_group *g, struct buf *b)
{
	struct str name = g->about.n && !str_eqc(g->about, "undefined") ? g->about : g->name;
	struct hang_ranks r = {.last = -1};
	buf_printf(b, STR_FMT "%s", STR_ARG(name), g->n ? g->n == 1 ? " (rank " : " (ranks " : "");
	for (uint32_t i = 0; i < g->n; i++)
		hang_ranks_add(&r, g->member[i], b);
	hang_ranks_flush(&r, b);
	if (g->n)
		buf_char(b, ')');
}

/* "; rank 3 did not come", with as many words as ranks need. */
static void hang_put_piece(const struct job_hang_row *row, enum job_hang_part part, bool to_blame, const char *before, const char *one, const char *several, struct buf *b)
{
	uint32_t n = hang_count(row, part, to_blame);
	if (!n)
		return;
	buf_printf(b, "%s%s%s", b->n ? "; " : "", before, n == 1 ? "rank " : "ranks ");
	hang_put_ranks(row, part, to_blame, b);
	buf_cstr(b, n == 1 ? one : several);
}

void hang_put_why(const struct job_hang *h, const struct job_hang_row *row, struct buf *b)
{
	hang_put_piece(row, JOB_HANG_MISSING, true, "", " did not come", " did not come", b);
	hang_put_piece(row, JOB_HANG_WAITING, true, "", " is stuck", " are stuck", b);
	if (row->other >= 0)
		buf_printf(b, "%srank %lld called " STR_FMT, b->n ? "; " : "", (long long)row->other, STR_ARG(row->other_op));
	if (b->n)
		return;
	hang_put_piece(row, JOB_HANG_MISSING, false, "", " waits itself", " wait themselves", b);
	hang_put_piece(row, JOB_HANG_ELSEWHERE, false, "", " hangs before", " hang before", b);
	hang_put_piece(row, JOB_HANG_NO_DUMP, false, "unknown: no dump of ", "", "", b);
	hang_put_piece(row, JOB_HANG_NOT_TOLD, false, "unknown: the dump does not tell of ", "", "", b);
	if (!b->n && hang_count(row, JOB_HANG_DONE, false))
		buf_cstr(b, "unknown: it is done on other ranks, which need not wait for it");
	else if (!b->n)
		buf_cstr(b, row->call->is_pair ? "unknown: both ranks came" : "unknown: all ranks came");
}

/* "ranks 10, 15": those to blame of one sort. Returns how many. */
static uint32_t hang_put_blamed(const struct job_hang *h, bool stuck, struct buf *b)
{
	struct hang_ranks r = {.last = -1};
	uint32_t n = 0;
	for (uint32_t i = 0; i < h->n_blames; i++)
		n += h->blame[i].is_stuck == stuck;
	if (n)
		buf_printf(b, "%s%s ", b->n ? ". " : "", n == 1 ? "rank" : "ranks");
	for (uint32_t i = 0; i < h->n_blames; i++)
		if (h->blame[i].is_stuck == stuck)
			hang_ranks_add(&r, h->blame[i].rank, b);
	hang_ranks_flush(&r, b);
	return n;
}

static void hang_put_blames(const struct job_hang *h, struct table *t)
{
	struct buf b = {0};
	uint32_t n = hang_put_blamed(h, false, &b);
	if (n)
		buf_printf(&b, " did not come to what others wait at, and %s nothing pending: %s stopped, or %s elsewhere in the program. While the process lives, `py-spy dump --pid PID` says where",
		           n == 1 ? "has" : "have", n == 1 ? "its host" : "their hosts", n == 1 ? "is" : "are");
	n = hang_put_blamed(h, true, &b);
	if (n)
		buf_printf(&b, " %s not complete a collective that other ranks have completed: %s stuck, or %s. `dmesg | grep Xid` on the host says whether a GPU failed", n == 1 ? "does" : "do",
		           n == 1 ? "its GPU is" : "their GPUs are", n == 1 ? "the thread that watches it" : "the threads that watch them");
	if (b.n)
		table_warn(t, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
}

/* No one is idle, and still some did not come: each waits for another one. */
static bool hang_is_circle(const struct job_hang *h)
{
	bool missing = false, unknown = false;
	for (uint32_t i = 0; i < h->n; i++) {
		missing |= hang_count(&h->row[i], JOB_HANG_MISSING, false) > 0;
		unknown |= hang_count(&h->row[i], JOB_HANG_NO_DUMP, false) || hang_count(&h->row[i], JOB_HANG_NOT_TOLD, false);
	}
	return !h->n_blames && missing && !unknown;
}

void hang_put_notes(const struct job *j, const struct job_hang *h, struct table *t)
{
	struct hang_ranks gone = {.last = -1};
	struct buf b = {0};
	hang_put_blames(h, t);
	if (hang_is_circle(h))
		table_warn(t, "ranks wait for each other in a circle: they call collectives of different groups in different orders");
	int64_t next = 0;
	for (uint32_t r = 0; r < j->n && j->missing && j->rank[r]->number != RANK_UNKNOWN; r++) {
		for (; next < j->rank[r]->number && gone.n <= HANG_NOTES_RANKS; next++)
			hang_ranks_add(&gone, next, &b);
		next = j->rank[r]->number + 1;
	}
	for (; j->missing && next < j->world && gone.n <= HANG_NOTES_RANKS; next++)
		hang_ranks_add(&gone, next, &b);
	hang_ranks_flush(&gone, &b);
	if (j->missing)
		table_warn(t, "%u of %lld ranks have a dump that can be read; missing: " STR_FMT ". A rank without a dump may be to blame", j->n, (long long)j->world, STR_ARG(buf_view(&b)));
	if (j->repeated)
		table_warn(t, "%u dump%s of a rank that another dump is of, too: the first by name counts", j->repeated, j->repeated == 1 ? "" : "s");
	if (!h->n)
		table_note(t, "no call is pending in %u dump%s: the ranks were not waiting for each other when they were written", h->dumps, h->dumps == 1 ? "" : "s");
	else
		table_note(t, "of %u ranks with a dump, %u hang: each at its first pending call. A call that is pending behind it has no row", h->dumps, h->hanging);
	buf_release(&b);
}
