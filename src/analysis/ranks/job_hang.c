#include "analysis/ranks/job_hang.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

struct job_hang_work {
	const struct job *j;
	struct job_hang *h;
	struct intern groups;    /* of the job, by index + 1: description, members, and which of several alike */
	uint32_t **group;        /* by rank and its group: index */
	bool *has_pairs;         /* by group of the job */
	struct intern calls;     /* pending ones but sends and receives: rank, group of the job, number */
	const struct rank_hang_call **call;
	struct intern rows;      /* by index + 1 */
	uint32_t cap, cap_calls, cap_blames;
	struct buf text;
};

bool job_is_hang(const struct job *j) { return j->n && j->rank[0]->hang.is_dump; }

int job_hang_refuse(struct err *e)
{
	return err_set(e, ERR_DATA, "dumps of a flight recorder have no times of kernels: `opscope report hangs` says where the job hangs");
}

/* UINT32_MAX = not here. Ranks without a number stand last. */
static uint32_t job_hang_rank_at(const struct job *j, int64_t number)
{
	uint32_t at = FIRST_WHERE(r, 0, j->n, j->rank[r]->number == RANK_UNKNOWN || j->rank[r]->number >= number);
	return at < j->n && j->rank[at]->number == number && j->rank[at]->hang.is_dump ? at : UINT32_MAX;
}

static const struct rank_hang_call *job_hang_first(const struct job *j, uint32_t r)
{
	const struct rank_hang *h = &j->rank[r]->hang;
	return h->n_calls ? &h->call[0] : NULL;
}

/* ---- groups ---- */

/* What the groups of one rank are told apart by. Several alike: the first of the rank is the first of every rank. */
struct job_hang_twins {
	struct intern alike;     /* by index + 1 */
	uint32_t *seen, cap;
};

static uint32_t job_hang_group_key(struct job_hang_work *w, struct job_hang_twins *t, const struct rank_hang_group *g)
{
	buf_clear(&w->text);
	buf_printf(&w->text, "%zu:" STR_FMT "\n", g->about.n, STR_ARG(g->about));
	for (uint32_t i = 0; i < g->n; i++)
		buf_printf(&w->text, "%lld,", (long long)g->member[i]);
	if (!g->n)
		buf_printf(&w->text, "\n" STR_FMT, STR_ARG(g->name));
	uint32_t before = t->alike.n, at = intern_str(&t->alike, buf_view(&w->text));
	MEM_GROW(t->seen, t->cap, at + 1);
	t->seen[at] = t->alike.n > before ? 0 : t->seen[at] + 1;
	buf_printf(&w->text, "#%u", t->seen[at]);
	return intern_str(&w->groups, buf_view(&w->text)) - 1;
}

static void job_hang_note_calls(struct job_hang_work *w, uint32_t r, const struct rank_hang *h)
{
	for (uint32_t c = 0; c < h->n_calls; c++) {
		const int64_t key[3] = {r, w->group[r][h->call[c].group], h->call[c].seq};
		uint32_t before = w->calls.n, at = h->call[c].is_pair ? 0 : intern_put(&w->calls, (const char *)key, sizeof key);
		if (w->calls.n == before)
			continue;
		MEM_GROW(w->call, w->cap_calls, at + 1);
		w->call[at] = &h->call[c];
	}
}

static void job_hang_find_groups(struct job_hang_work *w)
{
	const struct job *j = w->j;
	size_t all = 0;
	w->group = NEW_ARRAY(j->n, uint32_t *);
	for (uint32_t r = 0; r < j->n; r++)
		all += j->rank[r]->hang.n_groups;
	w->has_pairs = NEW_ARRAY(all + 1, bool);
	for (uint32_t r = 0; r < j->n; r++) {
		const struct rank_hang *h = &j->rank[r]->hang;
		struct job_hang_twins twins = {0};
		intern_init(&twins.alike);
		w->group[r] = NEW_ARRAY(h->n_groups, uint32_t);
		for (uint32_t g = 0; g < h->n_groups; g++) {
			w->group[r][g] = job_hang_group_key(w, &twins, &h->group[g]);
			w->has_pairs[w->group[r][g]] |= h->group[g].has_pairs;
		}
		job_hang_note_calls(w, r, h);
		intern_release(&twins.alike);
		mem_free(twins.seen);
	}
}

/* The rank's own view of a group of the job; NULL = it has none. */
static const struct rank_hang_group *job_hang_group_of(const struct job_hang_work *w, uint32_t r, uint32_t group)
{
	const struct rank_hang *h = &w->j->rank[r]->hang;
	for (uint32_t g = 0; g < h->n_groups; g++)
		if (w->group[r][g] == group)
			return &h->group[g];
	return NULL;
}

/* ---- rows ---- */

/* The pending call of a rank with this number in the group; NULL. */
static const struct rank_hang_call *job_hang_pending(const struct job_hang_work *w, uint32_t r, uint32_t group, int64_t seq)
{
	const int64_t key[3] = {r, group, seq};
	uint32_t at = intern_find(&w->calls, (struct str){(const char *)key, sizeof key});
	return at == INTERN_NONE ? NULL : w->call[at];
}

static enum job_hang_part job_hang_part_of(const struct job_hang_work *w, struct job_hang_row *row, int64_t number, uint32_t group)
{
	uint32_t r = job_hang_rank_at(w->j, number);
	int64_t seq = row->call->seq;
	if (r == UINT32_MAX)
		return JOB_HANG_NO_DUMP;
	const struct rank_hang_call *own = job_hang_pending(w, r, group, seq);
	if (own && !str_eq(own->op, row->call->op) && row->other < 0) {
		row->other = number;
		row->other_op = own->op;
	}
	if (own) {
		bool hangs = own == job_hang_first(w->j, r);
		row->started += hangs && own->started;
		row->since_ns = hangs && own->created_ns < row->since_ns ? own->created_ns : row->since_ns;
		return hangs ? JOB_HANG_WAITING : JOB_HANG_ELSEWHERE;
	}
	const struct rank_hang_group *g = job_hang_group_of(w, r, group);
	if (!g || w->has_pairs[group])
		return JOB_HANG_NOT_TOLD;
	if (g->completed != RANK_HANG_UNKNOWN && g->completed >= seq)
		return JOB_HANG_DONE;
	return g->enqueued != RANK_HANG_UNKNOWN && g->enqueued < seq ? JOB_HANG_MISSING : JOB_HANG_NOT_TOLD;
}

static void job_hang_fill_collective(struct job_hang_work *w, struct job_hang_row *row, uint32_t group)
{
	const struct rank_hang_group *g = row->group;
	row->n = g->n ? g->n : 1;
	row->member = ARENA_ARRAY(&w->h->arena, row->n, struct job_hang_member);
	for (uint32_t i = 0; i < row->n; i++) {
		row->member[i].rank = g->n ? g->member[i] : row->caller;
		row->member[i].part = job_hang_part_of(w, row, row->member[i].rank, group);
	}
}

/* What the other one of a send or receive does. The numbers of sends and receives count for each rank by itself, and tell nothing. */
static enum job_hang_part job_hang_part_of_peer(const struct job_hang_work *w, const struct job_hang_row *row, uint32_t group)
{
	uint32_t r = job_hang_rank_at(w->j, row->call->peer);
	if (r == UINT32_MAX)
		return JOB_HANG_NO_DUMP;
	const struct rank_hang *h = &w->j->rank[r]->hang;
	for (uint32_t c = 0; c < h->n_calls; c++)
		if (h->call[c].is_pair && h->call[c].peer == row->caller && h->call[c].sends != row->call->sends && w->group[r][h->call[c].group] == group)
			return c ? JOB_HANG_ELSEWHERE : JOB_HANG_WAITING;
	return JOB_HANG_MISSING;
}

static void job_hang_fill_pair(struct job_hang_work *w, struct job_hang_row *row, uint32_t group)
{
	bool told = row->call->peer >= 0 && row->call->peer != row->caller;
	row->n = told ? 2 : 1;
	row->member = ARENA_ARRAY(&w->h->arena, row->n, struct job_hang_member);
	unsigned peer = told && row->call->peer < row->caller ? 0 : 1, self = told ? 1 - peer : 0;
	row->member[self] = (struct job_hang_member){.rank = row->caller, .part = JOB_HANG_WAITING};
	if (told)
		row->member[peer] = (struct job_hang_member){.rank = row->call->peer, .part = job_hang_part_of_peer(w, row, group)};
	row->started = row->call->started;
}

static void job_hang_add_rows(struct job_hang_work *w)
{
	for (uint32_t r = 0; r < w->j->n; r++) {
		const struct rank_hang *h = &w->j->rank[r]->hang;
		const struct rank_hang_call *c = job_hang_first(w->j, r);
		w->h->dumps += h->is_dump;
		w->h->hanging += c != NULL;
		if (!c)
			continue;
		uint32_t group = w->group[r][c->group];
		int64_t caller = job_rank_number(w->j, r), key[4] = {group, c->seq, c->is_pair ? caller : -1, c->is_pair ? c->record : 0};
		uint32_t before = w->rows.n;
		intern_put(&w->rows, (const char *)key, sizeof key);
		w->h->first_ns = !w->h->first_ns || c->created_ns < w->h->first_ns ? c->created_ns : w->h->first_ns;
		if (w->rows.n == before)
			continue;
		struct job_hang_row row = {.group = &h->group[c->group], .call = c, .caller = caller, .since_ns = c->created_ns, .other = -1};
		c->is_pair ? job_hang_fill_pair(w, &row, group) : job_hang_fill_collective(w, &row, group);
		MEM_PUSH(w->h->row, w->h->n, w->cap, row);
	}
}

/* ---- whose fault it is ---- */

/* Where another rank has completed it, those that wait at it are stuck themselves. */
static bool job_hang_is_stuck(const struct job_hang_row *row)
{
	return !row->call->is_pair && comm_kind_ends_together(comm_kind_of(row->call->op)) && ANY_WHERE(i, 0, row->n, row->member[i].part == JOB_HANG_DONE);
}

static bool job_hang_is_to_blame(const struct job_hang *h, int64_t rank)
{
	uint32_t at = FIRST_WHERE(i, 0, h->n_blames, h->blame[i].rank >= rank);
	return at < h->n_blames && h->blame[at].rank == rank;
}

static int job_hang_by_rank(const void *a, const void *b)
{
	const struct job_hang_blame *x = a, *y = b;
	return COMPARE(x->rank, y->rank) ?: COMPARE(y->is_stuck, x->is_stuck);
}

/* One entry for each rank. */
static void job_hang_join_blames(struct job_hang *h)
{
	uint32_t n = 0;
	if (h->n_blames)
		qsort(h->blame, h->n_blames, sizeof *h->blame, job_hang_by_rank);
	for (uint32_t i = 0; i < h->n_blames; i++)
		if (!n || h->blame[n - 1].rank != h->blame[i].rank)
			h->blame[n++] = h->blame[i];
	h->n_blames = n;
}

static void job_hang_blame_all(struct job_hang_work *w)
{
	struct job_hang *h = w->h;
	for (uint32_t i = 0; i < h->n; i++) {
		bool stuck = job_hang_is_stuck(&h->row[i]);
		for (uint32_t k = 0; k < h->row[i].n; k++) {
			const struct job_hang_member *m = &h->row[i].member[k];
			uint32_t r = m->part == JOB_HANG_MISSING ? job_hang_rank_at(w->j, m->rank) : UINT32_MAX;
			bool idle = r != UINT32_MAX && !job_hang_first(w->j, r);
			if (idle || (stuck && m->part == JOB_HANG_WAITING))
				MEM_PUSH(h->blame, h->n_blames, w->cap_blames, (struct job_hang_blame){m->rank, !idle});
		}
	}
	job_hang_join_blames(h);
	for (uint32_t i = 0; i < h->n; i++) {
		struct job_hang_row *row = &h->row[i];
		bool stuck = job_hang_is_stuck(row);
		for (uint32_t k = 0; k < row->n; k++) {
			struct job_hang_member *m = &row->member[k];
			m->to_blame = (m->part == JOB_HANG_MISSING || (stuck && m->part == JOB_HANG_WAITING)) && job_hang_is_to_blame(h, m->rank);
			row->blames |= m->to_blame;
		}
	}
}

struct job_hang_order {
	bool blames, is_pair;
	int64_t since_ns;
	uint32_t row;
};

static int job_hang_by_blame(const void *a, const void *b)
{
	const struct job_hang_order *x = a, *y = b;
	return COMPARE(y->blames, x->blames) ?: COMPARE(x->is_pair, y->is_pair) ?: COMPARE(x->since_ns, y->since_ns) ?: COMPARE(x->row, y->row);
}

static void job_hang_sort(struct job_hang *h)
{
	struct job_hang_order *order = NEW_ARRAY(h->n, struct job_hang_order);
	struct job_hang_row *sorted = NEW_ARRAY(h->n, struct job_hang_row);
	for (uint32_t i = 0; i < h->n; i++)
		order[i] = (struct job_hang_order){h->row[i].blames, h->row[i].call->is_pair, h->row[i].since_ns, i};
	if (h->n)
		qsort(order, h->n, sizeof *order, job_hang_by_blame);
	for (uint32_t i = 0; i < h->n; i++)
		sorted[i] = h->row[order[i].row];
	mem_free(h->row);
	mem_free(order);
	h->row = sorted;
}

struct job_hang *job_hang_find(const struct job *j)
{
	struct job_hang_work w = {.j = j, .h = NEW(struct job_hang)};
	intern_init(&w.groups);
	intern_init(&w.calls);
	intern_init(&w.rows);
	job_hang_find_groups(&w);
	job_hang_add_rows(&w);
	job_hang_blame_all(&w);
	job_hang_sort(w.h);
	for (uint32_t r = 0; r < j->n; r++)
		mem_free(w.group[r]);
	mem_free(w.group);
	mem_free(w.has_pairs);
	intern_release(&w.groups);
	intern_release(&w.calls);
	intern_release(&w.rows);
	mem_free(w.call);
	buf_release(&w.text);
	return w.h;
}

void job_hang_free(struct job_hang *h)
{
	if (!h)
		return;
	mem_free(h->row);
	mem_free(h->blame);
	arena_release(&h->arena);
	mem_free(h);
}
