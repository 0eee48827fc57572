/* Which collectives of several ranks are one. */
#include "analysis/ranks/job.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

/* One collective of one rank, as it is matched. */
struct job_match_item {
	uint32_t group;          /* of job->group */
	uint32_t rank, call;
	uint8_t kind;
	bool by_seq;
	int64_t seq;             /* by_seq: as recorded; else the place among those of its rank, group and kind */
};

/* A send or receive of which both ranks are known. */
struct job_match_pair {
	uint32_t group, rank, call;
	bool receives;
	int64_t from, to;        /* numbers of ranks */
};

/* What is found once for a group of a rank, and not again for each of its collectives. */
struct job_match_known {
	uint32_t list;           /* its members: string of work->lists */
	uint32_t twins;          /* groups of this rank before it with the same members */
	uint32_t group;          /* of job->group; UINT32_MAX = not known yet */
};

struct job_match_work {
	struct job *j;
	struct job_match_known **known; /* by rank and group */
	struct intern keys;      /* of job->group, by index + 1 */
	struct intern lists;     /* member lists */
	struct buf text;
	struct job_match_item *item;
	size_t n, cap;
	struct job_match_pair *pair;
	size_t n_pairs, cap_pairs;
	uint32_t *seen;          /* by rank: index + 1 of the last group that it was counted for */
};

/* The members as text, which w->text holds until something else is put there. */
static struct str job_match_put_members(struct job_match_work *w, const struct rank_group *g)
{
	buf_clear(&w->text);
	for (uint32_t i = 0; i < g->n; i++)
		buf_printf(&w->text, "%lld,", (long long)g->member[i]);
	return buf_view(&w->text);
}

static void job_match_know_groups(struct job_match_work *w)
{
	const struct job *j = w->j;
	size_t groups = 1;
	w->known = NEW_ARRAY(j->n, struct job_match_known *);
	for (uint32_t r = 0; r < j->n; r++) {
		w->known[r] = NEW_ARRAY(j->rank[r]->n_groups, struct job_match_known);
		for (uint32_t i = 0; i < j->rank[r]->n_groups; i++)
			w->known[r][i] = (struct job_match_known){.list = intern_str(&w->lists, job_match_put_members(w, &j->rank[r]->group[i])), .group = UINT32_MAX};
		groups += j->rank[r]->n_groups;
	}
	uint32_t *before = NEW_ARRAY(groups, uint32_t);
	for (uint32_t r = 0; r < j->n; r++) {
		for (uint32_t i = 0; i < j->rank[r]->n_groups; i++)
			w->known[r][i].twins = before[w->known[r][i].list]++;
		for (uint32_t i = 0; i < j->rank[r]->n_groups; i++)
			before[w->known[r][i].list] = 0;
	}
	mem_free(before);
}

/* Whether ranks agree on the names of groups with these members: every rank that has such a group has the same names. */
static bool *job_match_named_alike(struct job_match_work *w)
{
	const struct job *j = w->j;
	struct intern names;
	size_t groups = 1;
	for (uint32_t r = 0; r < j->n; r++)
		groups += j->rank[r]->n_groups;
	uint32_t *ranks_of_list = NEW_ARRAY(groups, uint32_t), *ranks_of_name = NEW_ARRAY(groups, uint32_t), *list_of_name = NEW_ARRAY(groups, uint32_t);
	intern_init(&names);
	for (uint32_t r = 0; r < j->n; r++)
		for (uint32_t i = 0; i < j->rank[r]->n_groups; i++) {
			const struct rank_group *g = &j->rank[r]->group[i];
			if (!g->n || g->id.n)
				continue;
			uint32_t list = w->known[r][i].list;
			buf_clear(&w->text);
			buf_printf(&w->text, "%u " STR_FMT, list, STR_ARG(g->name));
			uint32_t name = intern_str(&names, buf_view(&w->text));
			ranks_of_list[list] += !w->known[r][i].twins;
			ranks_of_name[name]++;
			list_of_name[name] = list;
		}
	bool *alike = NEW_ARRAY(w->lists.n, bool);
	memset(alike, 1, w->lists.n);
	for (uint32_t name = 1; name < names.n; name++)
		alike[list_of_name[name]] &= ranks_of_name[name] == ranks_of_list[list_of_name[name]];
	mem_free(ranks_of_list);
	mem_free(ranks_of_name);
	mem_free(list_of_name);
	intern_release(&names);
	return alike;
}

/* What names the group of a collective on all ranks. */
static struct str job_match_key(struct job_match_work *w, const bool *alike, const struct rank_group *g, const struct job_match_known *known, uint32_t stream)
{
	buf_clear(&w->text);
	if (g->id.n) {
		buf_printf(&w->text, "id " STR_FMT, STR_ARG(g->id));
	} else if (g->n) {
		bool named = !g->is_address && alike[known->list];
		buf_printf(&w->text, "members %u", known->list);
		named ? buf_printf(&w->text, " " STR_FMT, STR_ARG(g->name)) : buf_printf(&w->text, "#%u", known->twins);
	} else if (g->name.n && !g->is_address) {
		buf_printf(&w->text, "name " STR_FMT " %lld", STR_ARG(g->name), (long long)g->size);
	} else {
		buf_printf(&w->text, "stream %u %lld", stream, (long long)g->size);
	}
	return buf_view(&w->text);
}

static uint32_t job_match_new_group(struct job_match_work *w, struct str key, const struct rank_group *g)
{
	uint32_t before = w->keys.n, at = intern_str(&w->keys, key) - 1;
	if (w->keys.n == before)
		return at;
	struct job_group x = {.name = g->is_address ? STR("") : g->name, .about = g->about, .id = g->id, .member = g->n ? g->member : NULL,
	                      .n_members = g->size > 0 && g->size < UINT32_MAX ? (uint32_t)g->size : 0};
	MEM_PUSH(w->j->group, w->j->n_groups, w->j->cap_groups, x);
	return at;
}

/* The group of a call. Calls whose group is not recorded are told apart by stream; all others of one group are of one. */
static uint32_t job_match_group(struct job_match_work *w, const bool *alike, uint32_t rank, const struct rank_call *call)
{
	const struct rank_group *g = &w->j->rank[rank]->group[call->group];
	struct job_match_known *known = &w->known[rank][call->group];
	bool by_stream = !g->id.n && !g->n && (!g->name.n || g->is_address);
	if (known->group == UINT32_MAX || by_stream)
		known->group = job_match_new_group(w, job_match_key(w, alike, g, known, call->stream), g);
	return known->group;
}

static int job_match_by_rank(const void *a, const void *b)
{
	const struct job_match_item *x = a, *y = b;
	return COMPARE(x->group, y->group) ?: COMPARE(x->rank, y->rank) ?: COMPARE(x->kind, y->kind) ?: COMPARE(x->seq, y->seq) ?: COMPARE(x->call, y->call);
}

static int job_match_by_seq(const void *a, const void *b)
{
	const struct job_match_item *x = a, *y = b;
	return COMPARE(x->group, y->group) ?: COMPARE(x->kind, y->kind) ?: COMPARE(x->seq, y->seq) ?: COMPARE(x->rank, y->rank) ?: COMPARE(x->call, y->call);
}

static int job_match_by_pair(const void *a, const void *b)
{
	const struct job_match_pair *x = a, *y = b;
	return COMPARE(x->group, y->group) ?: COMPARE(x->from, y->from) ?: COMPARE(x->to, y->to) ?: COMPARE(x->receives, y->receives) ?: COMPARE(x->rank, y->rank) ?:
	       COMPARE(x->call, y->call);
}

static void job_match_add_call(struct job_match_work *w, const bool *alike, uint32_t r, uint32_t c)
{
	const struct rank *rank = w->j->rank[r];
	const struct rank_call *call = &rank->call[c];
	uint32_t group = job_match_group(w, alike, r, call);
	if (call->peer != RANK_UNKNOWN && rank->number != RANK_UNKNOWN && rank->number != call->peer) {
		bool receives = call->kind == COMM_RECV;
		struct job_match_pair x = {.group = group, .rank = r, .call = c, .receives = receives, .from = receives ? call->peer : rank->number,
		                           .to = receives ? rank->number : call->peer};
		MEM_PUSH(w->pair, w->n_pairs, w->cap_pairs, x);
	} else {
		struct job_match_item x = {.group = group, .rank = r, .call = c, .kind = call->kind, .seq = call->seq};
		MEM_PUSH(w->item, w->n, w->cap, x);
	}
}

static void job_match_collect(struct job_match_work *w)
{
	struct job *j = w->j;
	job_match_know_groups(w);
	bool *alike = job_match_named_alike(w);
	for (uint32_t r = 0; r < j->n; r++)
		for (uint32_t c = 0; c < j->rank[r]->n_calls; c++)
			job_match_add_call(w, alike, r, c);
	mem_free(alike);
	for (uint32_t r = 0; r < j->n; r++)
		mem_free(w->known[r]);
	mem_free(w->known);
}

/* Items [from, to) of one group, by rank: whether each has a sequence number of its own. */
static bool job_match_has_seq(const struct job_match_item *v, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (v[i].seq == RANK_UNKNOWN || (i > from && v[i].rank == v[i - 1].rank && v[i].kind == v[i - 1].kind && v[i].seq == v[i - 1].seq))
			return false;
	return true;
}

/* Without sequence numbers: the place among those of the same rank and kind, in order of start. */
static void job_match_number(struct job_match_item *v, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		v[i].seq = v[i].call;
	qsort(v + from, to - from, sizeof *v, job_match_by_rank);
	for (size_t i = from, begin = from; i < to; i++) {
		if (v[i].rank != v[begin].rank || v[i].kind != v[begin].kind)
			begin = i;
		v[i].seq = (int64_t)(i - begin);
	}
}

/* By kind: whether all ranks have as many of the items [from, to), which are in order of rank. */
static void job_match_equal_kinds(const struct job_match_item *v, size_t from, size_t to, bool equal[COMM_N_KINDS + 1])
{
	size_t mine[COMM_N_KINDS + 1] = {0}, first[COMM_N_KINDS + 1] = {0};
	memset(equal, 1, sizeof(bool[COMM_N_KINDS + 1]));
	for (size_t i = from; i < to; i++) {
		mine[v[i].kind]++;
		if (i + 1 < to && v[i + 1].rank == v[i].rank)
			continue;
		if (v[i].rank == v[from].rank)
			memcpy(first, mine, sizeof first);
		for (unsigned k = 0; k <= COMM_N_KINDS; k++)
			equal[k] &= first[k] == mine[k];
		memset(mine, 0, sizeof mine);
	}
}

/* Counts a rank of group g once. */
static void job_match_count_rank(struct job_match_work *w, uint32_t g, uint32_t rank)
{
	w->j->group[g].n_ranks += w->seen[rank] != g + 1;
	w->seen[rank] = g + 1;
}

static void job_match_add_parts(struct job *j, struct job_group *g, struct job_instance *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		int64_t bytes = j->rank[x->part[i].rank]->call[x->part[i].call].bytes;
		x->bytes = bytes > x->bytes ? bytes : x->bytes;
	}
	MEM_PUSH(j->instance, j->n_instances, j->cap_instances, *x);
	g->n++;
}

/* A send with its receive, or one of them alone. */
static void job_match_add_pair(struct job_match_work *w, struct job_group *g, const struct job_match_pair *a, const struct job_match_pair *b)
{
	struct job *j = w->j;
	const struct job_match_pair *first = b && b->rank < a->rank ? b : a, *second = first == a ? b : a;
	struct job_instance x = {.n = b ? 2 : 1, .group = a->group, .kind = b ? COMM_SEND_RECV : j->rank[a->rank]->call[a->call].kind, .paired = b != NULL, .seq = RANK_UNKNOWN, .bytes = -1};
	x.part = ARENA_ARRAY(&j->arena, x.n, struct job_part);
	x.part[0] = (struct job_part){.rank = first->rank, .call = first->call};
	if (b)
		x.part[1] = (struct job_part){.rank = second->rank, .call = second->call};
	job_match_add_parts(j, g, &x);
	g->n_pairs += b != NULL;
}

/* All of one rank to another: sends, then receives. They belong together where there are as many. */
static void job_match_pairs(struct job_match_work *w, struct job_group *g, size_t from, size_t to)
{
	const struct job_match_pair *v = w->pair;
	for (size_t next; from < to; from = next) {
		size_t sends = from;
		for (next = from; next < to && v[next].from == v[from].from && v[next].to == v[from].to; next++)
			sends += !v[next].receives;
		bool both = sends - from == next - sends;
		for (size_t i = from; i < (both ? sends : next); i++)
			job_match_add_pair(w, g, &v[i], both ? &v[i + (sends - from)] : NULL);
		g->unmatched += !both && sends > from && next > sends ? (uint32_t)(next - from) : 0;
	}
}

static void job_match_add_instance(struct job_match_work *w, struct job_group *g, size_t from, size_t to)
{
	struct job *j = w->j;
	const struct job_match_item *v = w->item;
	struct job_instance x = {.part = ARENA_ARRAY(&j->arena, to - from, struct job_part), .n = (uint32_t)(to - from), .group = v[from].group, .kind = v[from].kind,
	                         .seq = v[from].by_seq ? v[from].seq : RANK_UNKNOWN, .bytes = -1};
	for (size_t i = from; i < to; i++)
		x.part[i - from] = (struct job_part){.rank = v[i].rank, .call = v[i].call};
	job_match_add_parts(j, g, &x);
	g->unmatched += x.n < g->n_ranks ? x.n : 0;
}

/* The number of the step that a part began in; RANK_UNKNOWN where it is in none. */
static int64_t job_match_step(const struct job *j, const struct job_part *part)
{
	const struct rank *r = j->rank[part->rank];
	uint32_t at = r->steps_are_window ? UINT32_MAX : rank_step_at(r, r->call[part->call].start_ns);
	return at == UINT32_MAX ? RANK_UNKNOWN : r->step[at].number;
}

/* Whether most collectives of the group would be of several steps: they are matched by their places, and the recordings are not of the same steps. */
static bool job_match_mixes_steps(const struct job *j, const struct job_group *g)
{
	uint32_t known = 0, mixed = 0;
	for (uint32_t i = g->first; i < g->first + g->n; i++) {
		const struct job_instance *x = &j->instance[i];
		int64_t least = INT64_MAX, most = INT64_MIN;
		for (uint32_t k = 0; k < x->n; k++) {
			int64_t step = job_match_step(j, &x->part[k]);
			least = step != RANK_UNKNOWN && step < least ? step : least;
			most = step != RANK_UNKNOWN && step > most ? step : most;
		}
		known += least <= most;
		mixed += least < most;
	}
	return mixed > known / 2;
}

/* The ranks that have an item or a pair of group `at`. */
static void job_match_count_ranks(struct job_match_work *w, uint32_t at, size_t from, size_t to, size_t first_pair, size_t end_pair)
{
	struct job_group *g = &w->j->group[at];
	for (size_t i = from; i < to; i++)
		job_match_count_rank(w, at, w->item[i].rank);
	for (size_t i = first_pair; i < end_pair; i++)
		job_match_count_rank(w, at, w->pair[i].rank);
	g->alone = g->n_members == 1 && g->n_ranks == 1;
	g->n_members = g->n_members ? g->n_members : g->n_ranks;
	g->first = w->j->n_instances;
	g->refusal = g->n_ranks < 2 && !g->alone ? JOB_ONE_RANK : g->n_ranks > g->n_members ? JOB_UNEQUAL : JOB_ACCEPTED;
}

static void job_match_one_group(struct job_match_work *w, struct job_group *g, size_t from, size_t to)
{
	struct job_match_item *v = w->item;
	bool by_seq = job_match_has_seq(v, from, to);
	if (!by_seq)
		job_match_number(v, from, to);
	bool equal[COMM_N_KINDS + 1];
	job_match_equal_kinds(v, from, to, equal);
	qsort(v + from, to - from, sizeof *v, job_match_by_seq);
	for (size_t i = from, next; i < to; i = next) {
		bool together = g->refusal != JOB_UNEQUAL && (by_seq || equal[v[i].kind]); /* else each rank's stand alone */
		if (!together && comm_kind_ends_together(v[i].kind) && !g->refusal)
			g->refusal = JOB_UNEQUAL;
		v[i].by_seq = by_seq;
		for (next = i + 1; together && next < to && v[next].kind == v[i].kind && v[next].seq == v[i].seq; next++)
			;
		job_match_add_instance(w, g, i, next);
	}
	if (!by_seq && !g->refusal && job_match_mixes_steps(w->j, g))
		g->refusal = JOB_OTHER_STEPS;
}

void job_match(struct job *j)
{
	struct job_match_work w = {.j = j};
	intern_init(&w.keys);
	intern_init(&w.lists);
	job_match_collect(&w);
	if (w.n)
		qsort(w.item, w.n, sizeof *w.item, job_match_by_rank);
	if (w.n_pairs)
		qsort(w.pair, w.n_pairs, sizeof *w.pair, job_match_by_pair);
	w.seen = NEW_ARRAY(j->n, uint32_t);
	for (size_t g = 0, from = 0, pair = 0; g < j->n_groups; g++) {
		size_t to = FIRST_WHERE(i, from, w.n, w.item[i].group > g), end = FIRST_WHERE(i, pair, w.n_pairs, w.pair[i].group > g);
		job_match_count_ranks(&w, (uint32_t)g, from, to, pair, end);
		if (from < to)
			job_match_one_group(&w, &j->group[g], from, to);
		job_match_pairs(&w, &j->group[g], pair, end);
		from = to;
		pair = end;
	}
	mem_free(w.seen);
	mem_free(w.pair);
	mem_free(w.item);
	buf_release(&w.text);
	intern_release(&w.keys);
	intern_release(&w.lists);
}
