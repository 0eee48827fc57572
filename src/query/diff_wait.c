#include "query/diff_wait.h"

#include "analysis/ranks/job_blame.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "query/diff_scatter.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The waiting of a kernel is told where no more of its time is untold, percent, on both sides. */
enum { DIFF_WAIT_UNTOLD_PCT = 5 };
/* A rank has a row of its own where one of so many ns of a side's waiting is for it. */
enum { DIFF_WAIT_NAMED = 3 };
/* From this share of the communication on, percent, a note says why waiting is unknown. */
static const double DIFF_WAIT_NOTED_PCT = 1;

/* ---- telling waiting from transfer ---- */

/* A collective of a rank. */
struct diff_wait_call {
	uint64_t key;            /* recording and row */
	uint32_t rank, call, instance; /* of the job */
};

static uint64_t diff_wait_key(uint32_t input, uint32_t row)
{
	return (uint64_t)input << 32 | row;
}

static int diff_wait_by_key(const void *a, const void *b)
{
	return COMPARE(((const struct diff_wait_call *)a)->key, ((const struct diff_wait_call *)b)->key);
}

/* All collectives that are kernels, by key. The caller's (mem_free). */
static struct diff_wait_call *diff_wait_calls(const struct job *j, size_t *n)
{
	struct diff_wait_call *v;
	*n = 0;
	for (uint32_t i = 0; i < j->n_instances; i++)
		*n += j->instance[i].n;
	v = NEW_ARRAY_RAW(*n, struct diff_wait_call);
	*n = 0;
	for (uint32_t i = 0; i < j->n_instances; i++)
		for (uint32_t k = 0; k < j->instance[i].n; k++) {
			const struct job_part *part = &j->instance[i].part[k];
			const struct rank *r = j->rank[part->rank];
			if (r->call[part->call].row != ROW_NONE)
				v[(*n)++] = (struct diff_wait_call){diff_wait_key(r->input, r->call[part->call].row), part->rank, part->call, i};
		}
	if (*n)
		qsort(v, *n, sizeof *v, diff_wait_by_key);
	return v;
}

/* Why the waiting of a collective is unknown: enum job_refusal, or one of these. */
enum { DIFF_WAIT_NO_CALL = JOB_REFUSALS, DIFF_WAIT_ALONE, DIFF_WAIT_PAIR, DIFF_WAIT_WHYS };

static unsigned diff_wait_why(const struct job *j, const struct job_instance *x)
{
	if (x->kind == COMM_SEND_RECV || x->kind == COMM_SEND || x->kind == COMM_RECV)
		return DIFF_WAIT_PAIR;
	if (j->group[x->group].refusal != JOB_ACCEPTED)
		return j->group[x->group].refusal;
	if (!comm_kind_ends_together(x->kind))
		return JOB_NOT_TOGETHER;
	return x->n < 2 ? DIFF_WAIT_ALONE : JOB_ENDS_APART;
}

static const char *diff_wait_why_text(unsigned why)
{
	static const char *const text[] = {
		[DIFF_WAIT_NO_CALL] = "its kernels are not those of collectives that are known", [DIFF_WAIT_ALONE] = "other ranks have not recorded the same collectives",
		[DIFF_WAIT_PAIR] = "sends and receives do not end on all ranks at one moment",
	};
	return why < (unsigned)JOB_REFUSALS ? job_refusal_text((enum job_refusal)why) : text[why];
}

/* How much of x->share_ns passed until a time of the recording's clock. */
static int64_t diff_wait_share(const struct diff_exposed *x, int64_t until_ns)
{
	const int64_t length = x->end_ns - x->start_ns;
	if (until_ns <= x->start_ns)
		return 0;
	if (until_ns >= x->end_ns)
		return x->share_ns;
	const int64_t ns = (int64_t)((double)x->share_ns * (double)(until_ns - x->start_ns) / (double)length);
	return ns < x->share_ns ? ns : x->share_ns;
}

/* Takes `ns` of waiting for this rank out of a part. */
static void diff_wait_take(struct diff_side *s, uint32_t part, int64_t rank_number, int64_t ns)
{
	const uint32_t short_kernel = s->part[part].short_kernel;
	struct diff_key key = s->part[part].key;
	char text[32];
	assert(key.kind == DIFF_COMM && ns <= s->part[part].ns);
	snprintf(text, sizeof text, "rank %lld", (long long)rank_number);
	key.kind = DIFF_WAIT;
	key.waited_for = intern_str(&s->texts, str_from(text));
	s->part[part].ns -= ns;
	diff_side_add(s, &key, 0, ns)->short_kernel = short_kernel;
}

void diff_wait_tell(struct diff_side *s, const struct job *j)
{
	size_t n;
	struct diff_wait_call *call = diff_wait_calls(j, &n);
	uint32_t *late = job_blame_ranks(j);
	int64_t why_ns[DIFF_WAIT_WHYS] = {0};
	for (uint32_t i = 0; i < s->n_exposed; i++) {
		const struct diff_exposed *x = &s->exposed[i];
		const uint64_t key = diff_wait_key(x->input, x->row);
		const size_t at = FIRST_WHERE(k, 0, n, call[k].key >= key);
		if (at == n || call[at].key != key) {
			why_ns[DIFF_WAIT_NO_CALL] += x->share_ns;
			continue;
		}
		const struct rank *r = j->rank[call[at].rank];
		const struct rank_call *c = &r->call[call[at].call];
		const struct job_instance *of = &j->instance[call[at].instance];
		if (c->wait_ns < 0) {
			why_ns[diff_wait_why(j, of)] += x->share_ns;
			continue;
		}
		const int64_t ns = diff_wait_share(x, c->start_ns - r->epoch_ns + c->wait_ns);
		s->part[x->part].wait_unknown_ns -= x->share_ns;
		s->part[x->part].maybe_wait_ns -= of->n < j->group[of->group].n_members ? ns : x->share_ns;
		if (ns)
			diff_wait_take(s, x->part, job_rank_number(j, late[call[at].instance]), ns);
	}
	unsigned most = 0;
	for (unsigned k = 1; k < DIFF_WAIT_WHYS; k++)
		most = why_ns[k] > why_ns[most] ? k : most;
	s->untold_why = why_ns[most] ? diff_wait_why_text(most) : NULL;
	s->missing = j->missing;
	s->waits_told = true;
	diff_scatter_end(s); /* waiting has parts of its own, whose times in single steps are not known (diff_row.steps_unknown) */
	mem_free(call);
	mem_free(late);
}

/* ---- what rows see ---- */

struct diff_wait_sum {
	int64_t ns[2], wait_unknown_ns[2]; /* of the sides */
};

struct diff_waits {
	const struct diff_side *side[2];
	struct intern kernels, ranks;
	struct diff_wait_sum *of_kernel, *of_rank; /* by id */
	int64_t all_ns[2];       /* waiting that is told */
};

static bool diff_wait_is_told(const struct diff_waits *w, int side, const struct diff_part *x)
{
	const struct diff_wait_sum *sum = &w->of_kernel[intern_find(&w->kernels, intern_get(&w->side[side]->texts, x->key.kernel))];
	for (int s = 0; s < 2; s++)
		if ((double)sum->wait_unknown_ns[s] * 100 > (double)sum->ns[s] * DIFF_WAIT_UNTOLD_PCT)
			return false;
	return true;
}

struct diff_waits *diff_waits_new(const struct diff_side *a, const struct diff_side *b)
{
	struct diff_waits *w = NEW(struct diff_waits);
	const size_t most = (size_t)a->n_parts + b->n_parts + 1;
	w->side[0] = a;
	w->side[1] = b;
	intern_init(&w->kernels);
	intern_init(&w->ranks);
	w->of_kernel = NEW_ARRAY(most, struct diff_wait_sum);
	w->of_rank = NEW_ARRAY(most, struct diff_wait_sum);
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < w->side[s]->n_parts; i++) {
			const struct diff_part *x = &w->side[s]->part[i];
			if (x->key.kind != DIFF_COMM && x->key.kind != DIFF_WAIT)
				continue;
			struct diff_wait_sum *sum = &w->of_kernel[intern_str(&w->kernels, intern_get(&w->side[s]->texts, x->key.kernel))];
			sum->ns[s] += x->ns;
			sum->wait_unknown_ns[s] += x->wait_unknown_ns;
		}
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < w->side[s]->n_parts; i++) {
			const struct diff_part *x = &w->side[s]->part[i];
			if (x->key.kind != DIFF_WAIT || !diff_wait_is_told(w, s, x))
				continue;
			w->of_rank[intern_str(&w->ranks, intern_get(&w->side[s]->texts, x->key.waited_for))].ns[s] += x->ns;
			w->all_ns[s] += x->ns;
		}
	return w;
}

void diff_waits_free(struct diff_waits *w)
{
	intern_release(&w->kernels);
	intern_release(&w->ranks);
	mem_free(w->of_kernel);
	mem_free(w->of_rank);
	mem_free(w);
}

static bool diff_wait_is_named(const struct diff_waits *w, struct str rank)
{
	const struct diff_wait_sum *sum = &w->of_rank[intern_find(&w->ranks, rank)];
	for (int s = 0; s < 2; s++)
		if (sum->ns[s] > 0 && sum->ns[s] >= w->all_ns[s] / DIFF_WAIT_NAMED)
			return true;
	return false;
}

struct diff_part diff_waits_part(const struct diff_waits *w, int side, uint32_t i)
{
	struct diff_part x = w->side[side]->part[i];
	if (x.key.kind != DIFF_COMM && x.key.kind != DIFF_WAIT)
		return x;
	if (!diff_wait_is_told(w, side, &x)) {
		x.key.kind = DIFF_COMM;
		x.key.waited_for = 0;
		x.maybe_wait_ns = x.ns;
	} else if (x.key.kind == DIFF_WAIT && !diff_wait_is_named(w, intern_get(&w->side[side]->texts, x.key.waited_for))) {
		x.key.waited_for = 0;
	}
	return x;
}

uint32_t diff_wait_name(struct intern *texts, const struct diff_side *s, const struct diff_part *x, enum diff_by by, bool shown)
{
	struct buf b = {0};
	const struct str rank = x->key.waited_for ? intern_get(&s->texts, x->key.waited_for) : STR("other ranks");
	const uint32_t in = by == DIFF_BY_OP ? x->key.name : by != DIFF_BY_KERNEL ? 0 : shown && x->short_kernel ? x->short_kernel : x->key.kernel;
	buf_printf(&b, "waiting for " STR_FMT, STR_ARG(rank));
	if (in)
		buf_printf(&b, " in " STR_FMT, STR_ARG(intern_get(&s->texts, in)));
	const uint32_t id = intern_str(texts, buf_view(&b));
	buf_release(&b);
	return id;
}

/* Percent of the communication of which no waiting is known. */
static double diff_wait_untold_pct(const struct diff_side *s)
{
	double all_ns = 0, wait_unknown_ns = 0;
	for (uint32_t i = 0; i < s->n_parts; i++) {
		const struct diff_part *x = &s->part[i];
		all_ns += x->key.kind == DIFF_COMM || x->key.kind == DIFF_WAIT ? (double)x->ns : 0;
		wait_unknown_ns += (double)x->wait_unknown_ns;
	}
	return all_ns > 0 ? 100 * wait_unknown_ns / all_ns : 0;
}

static void diff_wait_note(const struct diff_side *s, const char *of, double pct, struct table *t)
{
	if (pct >= DIFF_WAIT_NOTED_PCT)
		table_warn(t, "%sfor %.0f %% of the exposed communication, it is unknown how much of it is waiting for other ranks: %s", of, pct,
		           s->waits_told ? s->untold_why : "only one rank is here");
}

void diff_wait_notes(const struct diff_side *a, const struct diff_side *b, struct table *t)
{
	const double pct[] = {diff_wait_untold_pct(a), diff_wait_untold_pct(b)};
	const bool alike = a->untold_why == b->untold_why && fabs(pct[0] - pct[1]) < DIFF_WAIT_NOTED_PCT / 2;
	if (!a->waits_told && !b->waits_told)
		return;
	diff_wait_note(a, alike ? "" : "A: ", pct[0], t);
	if (!alike)
		diff_wait_note(b, "B: ", pct[1], t);
	if (a->missing || b->missing)
		table_warn(t, "ranks of the job are missing (A: %lld, B: %lld): what was waited for these counts as communication", (long long)a->missing, (long long)b->missing);
}
