/* Which rank of a job sends how many bytes to which.
 *
 * Between two ranks bytes are known of sends and receives that state the other rank, and of all-to-alls that state their parts ("In split size"; equal where the list is empty). A rank's part for
 * itself stays where it is, and is left out. What other collectives send from one rank to another depends on the algorithm that the library chooses (ring, tree, switches): of these only what a
 * rank sends in all is known, by nccl-tests' formulas (op/comm.c), and not to whom. */
#include "analysis/ranks/job_groups.h"
#include "base/mem.h"
#include "base/search.h"
#include "query/report.h"
#include "report/parts/job_calls.h"
#include "report/parts/job_notes.h"

enum traffic_grouping { TRAFFIC_BY_PAIR, TRAFFIC_BY_GROUP };
/* More pairs of ranks than this are not listed. */
enum { TRAFFIC_PAIRS = 1 << 20 };

enum traffic_how { TRAFFIC_SEND, TRAFFIC_PARTS };
static const char *const traffic_how_name[] = {[TRAFFIC_SEND] = "send", [TRAFFIC_PARTS] = "all_to_all"};

struct traffic_key {
	int64_t from, to;
	uint32_t how, group, kind; /* group and kind: by group only */
	uint32_t pad;
};

struct traffic_row {
	struct traffic_key key;
	uint64_t messages, unsized;
	int64_t bytes, wire;
};

/* What a rank sends to each other rank of a group in equal parts: told to each once all are added up. */
struct traffic_equal {
	uint32_t rank, group; /* of job->rank, job->group */
	uint64_t messages;
	double bytes;         /* to one rank */
};

struct traffic {
	const struct job *j;
	enum traffic_grouping by;
	struct intern keys, equals;
	struct traffic_row *v;
	uint32_t n, cap;
	struct traffic_equal *equal;
	uint32_t n_equal, cap_equal;
	uint64_t unsized, others, dropped; /* messages of unknown size; kernels of collectives whose receivers are unknown; pairs of ranks */
	int64_t inside, between, unplaced; /* bytes on one host, between hosts, of hosts that are unknown */
};

enum { TRAFFIC_FROM, TRAFFIC_TO, TRAFFIC_HOW, TRAFFIC_GROUP, TRAFFIC_SPLIT, TRAFFIC_RANKS, TRAFFIC_HOSTS, TRAFFIC_PLACE, TRAFFIC_MESSAGES, TRAFFIC_UNSIZED, TRAFFIC_BYTES,
	TRAFFIC_WIRE };

static const struct section traffic_section = {COLUMNS(
	[TRAFFIC_FROM] = {COLUMN(NUMBER, "from_rank", "From rank", "the rank that sends", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(TRAFFIC_BY_PAIR)},
	[TRAFFIC_TO] = {COLUMN(NUMBER, "to_rank", "To rank", "the rank that receives", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(TRAFFIC_BY_PAIR)},
	[TRAFFIC_HOW] = {COLUMN(TEXT, "kind", "By", "send, all_to_all; by group any collective", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[TRAFFIC_GROUP] = {COLUMN(TEXT, "group", "Group", "process group, as in `collectives`", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(TRAFFIC_BY_GROUP)},
	[TRAFFIC_SPLIT] = {COLUMN(TEXT, "parallel", "Parallel", "what the group divides among its ranks, as in `collectives --group-by=group`; empty = unknown"), .by = BY(TRAFFIC_BY_GROUP)},
	[TRAFFIC_RANKS] = {COLUMN(NUMBER, "ranks", "Ranks", "of the group"), .by = BY(TRAFFIC_BY_GROUP)},
	[TRAFFIC_HOSTS] = {COLUMN(NUMBER, "hosts", "Hosts", "machines on which the group's ranks are; empty = unknown"), .by = BY(TRAFFIC_BY_GROUP)},
	[TRAFFIC_PLACE] = {COLUMN(TEXT, "place", "Place", "inside: both ranks are on one host; between: on two; empty = unknown", .flags = COLUMN_GROUP), .by = BY(TRAFFIC_BY_PAIR)},
	[TRAFFIC_MESSAGES] = {COLUMN(COUNT, "messages", "Messages", "by group: collectives, each counted once for all its ranks", .flags = COLUMN_ANSWER)},
	[TRAFFIC_UNSIZED] = {COLUMN(COUNT, "unsized", "Unsized", "messages of which the size is not known", .flags = COLUMN_MINOR)},
	[TRAFFIC_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "of the messages of known size; by group as nccl-tests counts the size of a collective", .flags = COLUMN_ANSWER)},
	[TRAFFIC_WIRE] = {COLUMN(BYTES, "sent_bytes", "A rank sends", "what one rank of the group sends in all, by nccl-tests' formulas: all-reduce 2 (n - 1) / n of the message, all-gather, "
	                         "reduce-scatter and all-to-all (n - 1) / n, others all of it; empty = not known", .flags = COLUMN_ANSWER), .by = BY(TRAFFIC_BY_GROUP)},
)};

static struct traffic_row *traffic_row_of(struct traffic *x, const struct traffic_key *k)
{
	uint32_t before = x->keys.n, at = intern_put(&x->keys, (const char *)k, sizeof *k) - 1;
	if (x->keys.n > before)
		MEM_PUSH(x->v, x->n, x->cap, (struct traffic_row){.key = *k});
	return &x->v[at];
}

static void traffic_add_pair(struct traffic *x, int64_t from, int64_t to, enum traffic_how how, int64_t bytes, uint64_t messages)
{
	struct traffic_key k = {.from = from, .to = to, .how = how};
	if (x->n >= TRAFFIC_PAIRS) {
		x->dropped++;
		return;
	}
	struct traffic_row *r = traffic_row_of(x, &k);
	int share = job_share_host(x->j, from, to);
	r->messages += messages;
	if (bytes < 0) {
		r->unsized += messages;
		x->unsized += messages;
		return;
	}
	int64_t *where = share < 0 ? &x->unplaced : share ? &x->inside : &x->between;
	r->bytes = job_sum(r->bytes, bytes);
	*where = job_sum(*where, bytes);
}

static void traffic_add_equal(struct traffic *x, uint32_t rank, uint32_t group, int64_t bytes)
{
	const uint32_t key[2] = {rank, group};
	uint32_t before = x->equals.n, at = intern_put(&x->equals, (const char *)key, sizeof key) - 1;
	if (x->equals.n > before)
		MEM_PUSH(x->equal, x->n_equal, x->cap_equal, (struct traffic_equal){.rank = rank, .group = group});
	x->equal[at].messages++;
	x->equal[at].bytes += (double)bytes / x->j->group[group].n_members;
}

/* What an all-to-all of rank r sends. False: to whom is not known. */
static bool traffic_add_parts(struct traffic *x, const struct job_instance *i, uint32_t rank)
{
	const struct job_group *g = &x->j->group[i->group];
	const struct rank *r = x->j->rank[i->part[rank].rank];
	const struct rank_call *c = &r->call[i->part[rank].call];
	if (!g->member || r->number == RANK_UNKNOWN || !c->sent || c->bytes < 0)
		return false;
	if (c->sent == RANK_EQUAL_PARTS) {
		traffic_add_equal(x, i->part[rank].rank, i->group, c->bytes);
		return true;
	}
	for (uint32_t k = 0; k < g->n_members && k < r->n_sent - (c->sent - 1); k++)
		if (g->member[k] != r->number)
			traffic_add_pair(x, r->number, g->member[k], TRAFFIC_PARTS, r->sent[c->sent - 1 + k], 1);
	return true;
}

static void traffic_add_by_pair(struct traffic *x, const struct job_instance *i)
{
	const struct job *j = x->j;
	for (uint32_t k = 0; k < i->n; k++) {
		const struct rank *r = j->rank[i->part[k].rank];
		const struct rank_call *c = &r->call[i->part[k].call];
		bool known = c->peer != RANK_UNKNOWN && r->number != RANK_UNKNOWN;
		if (c->kind == COMM_SEND && known)
			traffic_add_pair(x, r->number, c->peer, TRAFFIC_SEND, c->bytes, 1);
		else if (c->kind == COMM_RECV && known && job_rank_of(j, c->peer) == j->n) /* the sender's own recording counts its sends */
			traffic_add_pair(x, c->peer, r->number, TRAFFIC_SEND, c->bytes, 1);
		else if (!(c->kind == COMM_RECV && known) && c->kind != COMM_BARRIER)
			x->others += c->kind != COMM_ALL_TO_ALL || !traffic_add_parts(x, i, k);
	}
}

static void traffic_tell_equal(struct traffic *x)
{
	for (uint32_t i = 0; i < x->n_equal; i++) {
		const struct traffic_equal *q = &x->equal[i];
		const struct job_group *g = &x->j->group[q->group];
		int64_t from = x->j->rank[q->rank]->number;
		for (uint32_t k = 0; k < g->n_members; k++)
			if (g->member[k] != from)
				traffic_add_pair(x, from, g->member[k], TRAFFIC_PARTS, q->bytes < 9e18 ? (int64_t)(q->bytes + 0.5) : -1, q->messages);
	}
}

static void traffic_add_by_group(struct traffic *x, const struct job_instance *i)
{
	struct traffic_key k = {.group = i->group + 1, .kind = i->kind};
	struct traffic_row *r = traffic_row_of(x, &k);
	int64_t wire = -1;
	for (uint32_t p = 0; p < i->n; p++) {
		const struct rank_call *c = &x->j->rank[i->part[p].rank]->call[i->part[p].call];
		wire = c->wire_bytes > wire ? c->wire_bytes : wire;
	}
	r->messages++;
	r->unsized += i->bytes < 0;
	r->bytes = job_sum(r->bytes, i->bytes > 0 ? i->bytes : 0);
	r->wire = job_sum(r->wire, wire > 0 ? wire : 0);
	x->unsized += i->bytes < 0 && i->kind != COMM_BARRIER;
}

static void traffic_put_row(const struct traffic *x, const struct traffic_row *r, struct table *t)
{
	table_row(t);
	table_set_i64(t, TRAFFIC_MESSAGES, (int64_t)r->messages);
	table_set_i64(t, TRAFFIC_UNSIZED, (int64_t)r->unsized);
	if (r->unsized < r->messages)
		table_set_i64(t, TRAFFIC_BYTES, r->bytes);
	if (x->by == TRAFFIC_BY_PAIR) {
		int share = job_share_host(x->j, r->key.from, r->key.to);
		table_set_i64(t, TRAFFIC_FROM, r->key.from);
		table_set_i64(t, TRAFFIC_TO, r->key.to);
		table_set_str(t, TRAFFIC_HOW, str_from(traffic_how_name[r->key.how]));
		if (share >= 0)
			table_set_str(t, TRAFFIC_PLACE, share ? STR("inside") : STR("between"));
		return;
	}
	const struct job_group *g = &x->j->group[r->key.group - 1];
	const char *kind = comm_kind_name((enum comm_kind)r->key.kind);
	struct buf b = {0};
	job_put_group(g, &b);
	table_set_str_copy(t, TRAFFIC_GROUP, buf_view(&b));
	buf_clear(&b);
	job_put_split(g->split, &b);
	if (b.n)
		table_set_str_copy(t, TRAFFIC_SPLIT, buf_view(&b));
	buf_release(&b);
	table_set_str(t, TRAFFIC_HOW, kind[0] ? str_from(kind) : STR("unknown"));
	table_set_i64(t, TRAFFIC_RANKS, g->n_members);
	if (g->hosts)
		table_set_i64(t, TRAFFIC_HOSTS, g->hosts);
	if (r->wire)
		table_set_i64(t, TRAFFIC_WIRE, r->wire);
}

static void traffic_put_notes(const struct traffic *x, uint64_t outside, struct table *t)
{
	if (x->by == TRAFFIC_BY_PAIR) {
		table_note(t, "bytes between ranks of one host %lld, between hosts %lld, where a host is unknown %lld", (long long)x->inside, (long long)x->between, (long long)x->unplaced);
		if (x->others)
			table_warn(t, "%llu kernel%s of collectives %s left out: from which rank to which their bytes go depends on the algorithm, or was not recorded. --group-by=group has what "
			           "a rank sends in all", (unsigned long long)x->others, x->others == 1 ? "" : "s", x->others == 1 ? "is" : "are");
		if (x->dropped)
			table_warn(t, "more than %d pairs of ranks are not listed", TRAFFIC_PAIRS);
	} else {
		table_note(t, "a collective counts once for all its ranks; what a rank sends follows from its size and the number of ranks, whatever the algorithm");
	}
	if (x->unsized)
		table_note(t, "the size of %llu message%s was not recorded", (unsigned long long)x->unsized, x->unsized == 1 ? "" : "s");
	if (outside)
		table_note(t, "%llu collectives outside the steps are left out: --steps=all has them", (unsigned long long)outside);
	job_put_notes(x->j, t);
}

static int traffic_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	struct traffic x = {.j = j, .by = (enum traffic_grouping)args->variant->by};
	uint64_t outside = 0;
	if (!j->n_instances)
		return err_set(e, ERR_DATA, "no kernel in the input is of a collective (nccl, rccl, ...)");
	intern_init(&x.keys);
	intern_init(&x.equals);
	section_start(&traffic_section, args, 0, out);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		if (!job_is_in_steps(j, &j->instance[i], args))
			outside++;
		else if (x.by == TRAFFIC_BY_PAIR)
			traffic_add_by_pair(&x, &j->instance[i]);
		else
			traffic_add_by_group(&x, &j->instance[i]);
	}
	traffic_tell_equal(&x);
	for (uint32_t i = 0; i < x.n; i++)
		traffic_put_row(&x, &x.v[i], out);
	traffic_put_notes(&x, args->has_steps ? 0 : outside, out);
	mem_free(x.v);
	mem_free(x.equal);
	intern_release(&x.keys);
	intern_release(&x.equals);
	return table_sort(out, STR("bytes"), true, e);
}

static const struct report_variant traffic_variants[] = {
	{.group_by = "pair", .by = TRAFFIC_BY_PAIR},
	{.group_by = "group", .by = TRAFFIC_BY_GROUP},
	{0},
};

const struct report report_traffic = {
	.name = "traffic",
	.title = "Bytes from rank to rank",
	.asks = ASKS_MOVE,
	.also = "communication_matrix bytes_between_ranks p2p",
	.help = "Which rank of a job sends how many bytes to which: of sends and receives that state the other rank, and of all-to-alls that state their parts. What other collectives send from one rank to "
	        "another depends on the algorithm; --group-by=group has what a rank of each process group sends in all.",
	.variants = traffic_variants,
	.sections = (const struct section *const[]){&traffic_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run_job = traffic_run,
};
