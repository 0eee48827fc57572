#include "report/parts/job_notes.h"

#include "analysis/ranks/job_groups.h"
#include "base/buf.h"

enum { JOB_NOTES_NAMED = 8 };

/* Numbers of ranks, the first few: "3, 5 to 8 and more". */
struct job_notes_list {
	struct buf b;
	uint32_t n;
};

/* Ranks from first to last. */
static void job_notes_add(struct job_notes_list *l, int64_t first, int64_t last)
{
	const char *comma = l->n ? ", " : "";
	if (l->n == JOB_NOTES_NAMED)
		buf_cstr(&l->b, " and more");
	else if (l->n < JOB_NOTES_NAMED && last > first)
		buf_printf(&l->b, "%s%lld%s%lld", comma, (long long)first, last == first + 1 ? ", " : " to ", (long long)last);
	else if (l->n < JOB_NOTES_NAMED)
		buf_printf(&l->b, "%s%lld", comma, (long long)first);
	l->n++;
}

static const char *job_notes_s(uint64_t n) { return n == 1 ? "" : "s"; }

static void job_notes_put_missing(const struct job *j, struct table *t)
{
	struct job_notes_list gone = {0};
	bool numbered = j->rank[j->n - 1]->number != RANK_UNKNOWN; /* all are: those without a number stand last */
	int64_t next = 0; /* of the ranks before it, those that are missing are listed */
	for (uint32_t i = 0; i < j->n && numbered; i++) {
		int64_t rank = j->rank[i]->number;
		if (rank > next)
			job_notes_add(&gone, next, rank - 1);
		next = rank + 1;
	}
	if (numbered && next < j->world)
		job_notes_add(&gone, next, j->world - 1);
	table_warn(t, "%u of %lld ranks %s here%s" STR_FMT ". A rank that is not here may have come last: the others waited at least as long as shown", j->n,
	           (long long)j->world, j->n == 1 ? "is" : "are", gone.n ? "; missing: " : "", STR_ARG(buf_view(&gone.b)));
	buf_release(&gone.b);
}

static void job_notes_put_clocks(const struct job *j, struct table *t)
{
	struct job_notes_list unknown = {0}, apart = {0};
	uint32_t by_ends = 0, by_file = 0, told = 0, apart_first = 0;
	int64_t residual = 0, farthest = 0;
	for (uint32_t r = 0; r < j->n; r++) {
		const struct job_clocks *c = &j->clock[r];
		by_ends += c->how == JOB_CLOCK_ENDS;
		by_file += c->how == JOB_CLOCK_FILE;
		told += c->ends > 0;
		residual = c->residual_ns > residual ? c->residual_ns : residual;
		int64_t off = c->offset_ns < 0 ? -c->offset_ns : c->offset_ns;
		farthest = off > farthest ? off : farthest;
		if (c->how == JOB_CLOCK_UNKNOWN)
			job_notes_add(&unknown, job_rank_number(j, r), job_rank_number(j, r));
		if (c->apart && (!r || !j->clock[r - 1].apart))
			apart_first = r;
		if (c->apart && (r + 1 == j->n || !j->clock[r + 1].apart))
			job_notes_add(&apart, job_rank_number(j, apart_first), job_rank_number(j, r));
	}
	if (by_ends)
		table_note(t, "clocks of %u rank%s are compared by the ends of collectives, and moved by %lld ns at most: after that no rank ends collectives more than "
		           "%lld ns before or after the others (median)", by_ends, job_notes_s(by_ends), (long long)farthest, (long long)residual);
	else if (by_file)
		table_note(t, "clocks of %u rank%s are as the file states them (--align), and moved by %lld ns at most: after that no rank ends collectives more than %lld ns before or "
		           "after the others (median)", by_file, job_notes_s(by_file), (long long)farthest, (long long)residual);
	else if (told && !unknown.n)
		table_note(t, "clocks are as recorded: no rank ends collectives more than %lld ns before or after the others (median)", (long long)residual);
	if (unknown.n == j->n)
		table_warn(t, "the clocks of the ranks cannot be compared: their collectives do not end at one moment");
	else if (unknown.n && by_file)
		table_warn(t, "the file does not state the clock%s of rank%s " STR_FMT ": waiting of collectives that %s took part in is unknown", job_notes_s(unknown.n),
		           job_notes_s(unknown.n), STR_ARG(buf_view(&unknown.b)), unknown.n == 1 ? "this rank" : "these ranks");
	else if (unknown.n)
		table_warn(t, "the clock%s of rank%s " STR_FMT " cannot be compared with those of the others: no collective that ends on all its ranks at one moment ties %s to them, or they are more "
		           "than a minute apart",
		           job_notes_s(unknown.n), job_notes_s(unknown.n), STR_ARG(buf_view(&unknown.b)), unknown.n == 1 ? "it" : "them");
	if (apart.n)
		table_note(t, "no collective that ends on all its ranks at one moment ties ranks " STR_FMT " to the others: their clocks are compared among themselves, which their own collectives need, "
		           "and not with those of the others", STR_ARG(buf_view(&apart.b)));
	buf_release(&apart.b);
	buf_release(&unknown.b);
}

/* One rank that recorded what others did not is slower for that alone. */
static void job_notes_put_options(const struct job *j, struct table *t)
{
	struct job_notes_list with = {0};
	for (uint32_t r = 0; r < j->n; r++)
		if (j->rank[r]->recording.stacks || j->rank[r]->recording.memory)
			job_notes_add(&with, job_rank_number(j, r), job_rank_number(j, r));
	if (with.n && with.n < j->n)
		table_warn(t, "rank%s " STR_FMT " recorded stacks or memory and the others did not: recording made %s slower", job_notes_s(with.n), STR_ARG(buf_view(&with.b)),
		           with.n == 1 ? "it" : "them");
	buf_release(&with.b);
}

static bool job_notes_names_groups(const struct rank *r)
{
	for (uint32_t i = 0; i < r->n_groups; i++)
		if (r->group[i].id.n || (r->group[i].name.n && !r->group[i].is_address))
			return true;
	return false;
}

/* Recordings of several versions of PyTorch: older ones do not say which group a collective is of. */
static void job_notes_put_nameless(const struct job *j, struct table *t)
{
	struct job_notes_list nameless = {0};
	uint32_t named = 0;
	for (uint32_t r = 0; r < j->n; r++) {
		bool names = job_notes_names_groups(j->rank[r]);
		named += names;
		if (!names && j->rank[r]->n_calls)
			job_notes_add(&nameless, job_rank_number(j, r), job_rank_number(j, r));
	}
	if (named && nameless.n)
		table_warn(t, "rank%s " STR_FMT " recorded no names of process groups, which PyTorch up to 2.2 leaves out, and the others did: in groups that do not hold all ranks, %s collectives are not found "
		           "on the others", job_notes_s(nameless.n), STR_ARG(buf_view(&nameless.b)), nameless.n == 1 ? "its" : "their");
	buf_release(&nameless.b);
}

/* How many groups of one kind, known in one way. */
struct job_notes_kind {
	unsigned split, told, untold;
	uint32_t n;
};

/* The kinds of the job's groups in the order in which they are first used. Returns how many, at most `most`. */
static unsigned job_notes_find_kinds(const struct job *j, struct job_notes_kind *v, unsigned most)
{
	unsigned n = 0, at;
	for (uint32_t i = 0; i < j->n_groups; i++) {
		const struct job_group *g = &j->group[i];
		unsigned untold = g->split ? 0 : g->untold;
		if (!g->split && g->untold == JOB_UNTOLD_ALONE)
			continue;
		for (at = 0; at < n && !(v[at].split == g->split && v[at].told == g->told && v[at].untold == untold); at++)
			;
		if (at == n && n == most)
			break;
		v[at] = at < n ? v[at] : (struct job_notes_kind){.split = g->split, .told = g->told, .untold = untold};
		v[at].n++;
		n += at == n;
	}
	return n;
}

static void job_notes_put_groups(const struct job *j, struct table *t)
{
	struct job_notes_kind kind[JOB_NOTES_NAMED];
	unsigned n = job_notes_find_kinds(j, kind, JOB_NOTES_NAMED);
	struct buf b = {0};
	buf_printf(&b, "%u rank%s", j->n, job_notes_s(j->n));
	if (j->n_hosts)
		buf_printf(&b, " on %u host%s%s", j->n_hosts, job_notes_s(j->n_hosts), j->hosts_by == JOB_HOSTS_BY_GPUS ? " (by the number of GPUs that each process sees)" : "");
	for (unsigned i = 0; i < n; i++) {
		if (!kind[i].split)
			continue;
		buf_printf(&b, "; %u group%s ", kind[i].n, job_notes_s(kind[i].n));
		job_put_split(kind[i].split, &b);
		buf_printf(&b, ", by %s", kind[i].told == JOB_TOLD_SAID ? "their names" : kind[i].told == JOB_TOLD_BY_OPS ? "the ops that use them" : "which ranks are together: a guess");
	}
	if (j->n_hosts || memchr(b.p, ';', b.n))
		table_note(t, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
	for (unsigned i = 0; i < n; i++)
		if (!kind[i].split)
			table_note(t, "how %u process group%s divide%s the work (DP, TP, PP, ...) is unknown: %s", kind[i].n, job_notes_s(kind[i].n), kind[i].n == 1 ? "s" : "",
			           job_untold_text((enum job_untold)kind[i].untold));
}

void job_put_rank_notes(const struct job *j, struct table *t)
{
	if (j->missing)
		job_notes_put_missing(j, t);
	if (j->repeated)
		table_warn(t, "%u recording%s of a rank that another recording is of, too: the first by name counts", j->repeated, job_notes_s(j->repeated));
	job_notes_put_options(j, t);
	job_notes_put_nameless(j, t);
}

void job_put_notes(const struct job *j, struct table *t)
{
	job_put_rank_notes(j, t);
	job_notes_put_clocks(j, t);
	if (j->n > 1)
		job_notes_put_groups(j, t);
}
