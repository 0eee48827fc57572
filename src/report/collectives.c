/* Collectives over the ranks of a job: what of their time is transfer, and what is waiting for the rank that came last (analysis/ranks/job.h). */
#include "analysis/ranks/job_groups.h"
#include "base/mem.h"
#include "base/round.h"
#include "gpu/gpus.h"
#include "base/search.h"
#include "query/report.h"
#include "report/parts/job_calls.h"
#include "report/parts/job_notes.h"

enum collectives_grouping { COLLECTIVES_BY_KIND, COLLECTIVES_BY_GROUP, COLLECTIVES_BY_SIZE, COLLECTIVES_BY_OP, COLLECTIVES_BY_INSTANCE };

/* What instances are added up by; parts that the grouping does not ask for are 0. */
struct collectives_key {
	int64_t bytes;
	uint32_t kind, group, op;
	uint32_t pad;
};

/* Messages, and what a rank sends of them, over a time. */
struct collectives_rate {
	int64_t bytes, ns, wire, wire_ns; /* of instances of known size; of known bytes on the wire */
};

struct collectives_row {
	struct collectives_key key;
	const struct job_instance *instance; /* the first */
	uint64_t n, accepted, told, sized; /* told: accepted, and of several ranks */
	int64_t bytes, shortest_ns, total_ns, accepted_ns, exposed_ns, transfer_ns, wait_ns, start_skew_ns, end_skew_ns; /* accepted_ns: of total_ns */
	struct collectives_rate transfer, shortest;
	const struct gpu_link *link;      /* of the groups whose transfers count; NULL = they have several, or it is not known */
	bool has_link;
	uint64_t exchanged;               /* all-to-alls of which each rank's part is known: */
	double exchanged_bytes, most_bytes, mean_bytes, exchanged_ns;
	uint64_t *last;                   /* by rank: how often it came last */
};

struct collectives {
	const struct job *j;
	enum collectives_grouping by;
	struct intern keys, ops;
	const struct gpu_link **link; /* by group; NULL = not known, or its ranks are on several hosts */
	struct collectives_row *v;
	uint32_t n, cap;
};

enum {
	COLLECTIVES_KIND, COLLECTIVES_GROUP, COLLECTIVES_SPLIT, COLLECTIVES_TOLD, COLLECTIVES_HOSTS, COLLECTIVES_OP, COLLECTIVES_SEQ, COLLECTIVES_START, COLLECTIVES_RANKS, COLLECTIVES_N, COLLECTIVES_BYTES, COLLECTIVES_TOTAL, COLLECTIVES_MIN,
	COLLECTIVES_TRANSFER, COLLECTIVES_WAIT, COLLECTIVES_WAIT_PCT, COLLECTIVES_EXPOSED, COLLECTIVES_START_SKEW, COLLECTIVES_END_SKEW, COLLECTIVES_COINCIDES, COLLECTIVES_FIRST, COLLECTIVES_LAST, COLLECTIVES_LAST_N,
	COLLECTIVES_ALG, COLLECTIVES_BUS, COLLECTIVES_LINK, COLLECTIVES_LINK_PCT, COLLECTIVES_ALG_MIN, COLLECTIVES_BUS_MIN, COLLECTIVES_IMBALANCE, COLLECTIVES_ALL,
	COLLECTIVES_UNKNOWN
};

static const struct section collectives_section = {COLUMNS(
	[COLLECTIVES_KIND] = {COLUMN(TEXT, "kind", "Collective", "all_reduce, all_gather, ...; the kernel's name where nothing says more",
	                             .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[COLLECTIVES_GROUP] = {COLUMN(TEXT, "group", "Group", "process group: its description, else its name, and its ranks where they are recorded", .flags = COLUMN_GROUP),
	                       .not_by = BY(COLLECTIVES_BY_KIND) | BY(COLLECTIVES_BY_OP)},
	[COLLECTIVES_SPLIT] = {COLUMN(TEXT, "parallel", "Parallel", "what the group divides among its ranks: DP data, TP tensors, PP the layers (pipeline), CP the sequence (context), "
	                              "EP experts; empty = unknown, the notes say why", .flags = COLUMN_ANSWER), .by = BY(COLLECTIVES_BY_GROUP)},
	[COLLECTIVES_TOLD] = {COLUMN(TEXT, "parallel_by", "Known by", "said: by its description or name; ops: by the ops that use it; ranks (guess): by which ranks are together and "
	                             "what they exchange"), .by = BY(COLLECTIVES_BY_GROUP)},
	[COLLECTIVES_HOSTS] = {COLUMN(NUMBER, "hosts", "Hosts", "machines on which the group's ranks are; empty = unknown"), .by = BY(COLLECTIVES_BY_GROUP)},
	[COLLECTIVES_OP] = {COLUMN(TEXT, "op", "Op", "the op or range that asked for it", .flags = COLUMN_ANSWER | COLUMN_GROUP), .by = BY(COLLECTIVES_BY_OP)},
	[COLLECTIVES_SEQ] = {COLUMN(NUMBER, "seq", "Seq", "its number in its group, as recorded; else in order of start"), .by = BY(COLLECTIVES_BY_INSTANCE)},
	[COLLECTIVES_START] = {COLUMN(TIME, "start_ns", "Arrival", "when the last rank came, from the first collective of the job on", .flags = COLUMN_MINOR),
	                       .by = BY(COLLECTIVES_BY_INSTANCE)},
	[COLLECTIVES_RANKS] = {COLUMN(NUMBER, "ranks", "Ranks", "ranks that took part and are recorded; the most of a row's collectives")},
	[COLLECTIVES_N] = {COLUMN(COUNT, "instances", "Count", "collectives, each counted once for all its ranks",
	                          .flags = COLUMN_ANSWER), .not_by = BY(COLLECTIVES_BY_INSTANCE)},
	[COLLECTIVES_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "sum of the messages, as nccl-tests counts their size; empty = not recorded")},
	[COLLECTIVES_TOTAL] = {COLUMN(NS, "total_ns", "Total", "durations of the kernels, summed over the ranks: transfer and waiting")},
	[COLLECTIVES_MIN] = {COLUMN(NS, "min_ns", "Shortest", "the shortest duration over the ranks, summed over the collectives", .flags = COLUMN_ANSWER)},
	[COLLECTIVES_TRANSFER] = {COLUMN(NS, "transfer_ns", "Transfer", "from when the last rank came until the end: of one rank (median), summed over the collectives",
	                                 .flags = COLUMN_ANSWER)},
	[COLLECTIVES_WAIT] = {COLUMN(NS, "wait_ns", "Waiting",
	                             "device time that ranks spent waiting for the last one, summed over the ranks and the collectives; of a send and its receive, what the receiver waited for the "
	                             "sender to come; empty = unknown",
	                             .flags = COLUMN_ANSWER)},
	[COLLECTIVES_WAIT_PCT] = {COLUMN(PERCENT, "wait_pct", "Waiting %", "waiting / total, both of the collectives whose wait is known, and of sends and receives of the receivers; the rest is transfer",
	                                 .flags = COLUMN_ANSWER)},
	[COLLECTIVES_EXPOSED] = {COLUMN(NS, "exposed_ns", "Exposed", "while the rank's GPU did nothing else, summed over the ranks")},
	[COLLECTIVES_START_SKEW] = {COLUMN(NS, "start_skew_ns", "Start skew", "from the first rank's start to the last rank's, summed over the collectives")},
	[COLLECTIVES_END_SKEW] = {COLUMN(NS, "end_skew_ns", "End skew", "from the first rank's end to the last rank's, summed: small where the clocks are right",
	                                 .flags = COLUMN_MINOR)},
	[COLLECTIVES_COINCIDES] = {COLUMN(YES_NO, "coincides", "Ends together", "it ended on all ranks at one moment: within three times the median end skew of its group, or 0.1 ms; a broadcast need not",
	                                  .flags = COLUMN_MINOR), .by = BY(COLLECTIVES_BY_INSTANCE)},
	[COLLECTIVES_FIRST] = {COLUMN(NUMBER, "first_rank", "First rank", "the rank that came first, and waited longest", .flags = COLUMN_DETAIL), .by = BY(COLLECTIVES_BY_INSTANCE)},
	[COLLECTIVES_LAST] = {COLUMN(NUMBER, "last_rank", "Last rank", "the rank that came last; of several collectives, most often", .flags = COLUMN_ANSWER)},
	[COLLECTIVES_LAST_N] = {COLUMN(COUNT, "last_count", "Times last", "how often that rank came last"), .not_by = BY(COLLECTIVES_BY_INSTANCE)},
	[COLLECTIVES_ALG] = {COLUMN(REAL, "algorithm_gb_per_s", "Alg. GB/s", "bytes / transfer, of the collectives whose size and transfer are known", .flags = COLUMN_DETAIL,
	                            .digits = 2)},
	[COLLECTIVES_BUS] = {COLUMN(REAL, "bus_gb_per_s", "Bus GB/s", "bytes that a rank sends / transfer: nccl-tests' bus bandwidth, without waiting", .flags = COLUMN_MINOR, .digits = 2)},
	[COLLECTIVES_LINK] = {COLUMN(REAL, "link_gb_per_s", "Link GB/s", "what all links of one GPU can send (NVLink, Infinity Fabric, PCIe), by its product, where the ranks share a host; "
	                             "empty = not known", .flags = COLUMN_MINOR, .digits = 0)},
	[COLLECTIVES_LINK_PCT] = {COLUMN(PERCENT, "link_pct", "Link %", "bus bandwidth / link; may be above 100 % where switches add up (NVLink SHARP)", .flags = COLUMN_DETAIL)},
	[COLLECTIVES_ALG_MIN] = {COLUMN(REAL, "algorithm_min_gb_per_s", "Alg. GB/s of shortest", "bytes / shortest duration, as other tools count", .flags = COLUMN_DETAIL, .digits = 2)},
	[COLLECTIVES_BUS_MIN] = {COLUMN(REAL, "bus_min_gb_per_s", "Bus GB/s of shortest", "bytes that a rank sends / shortest duration: no less than the bus bandwidth where that is known",
	                                .flags = COLUMN_DETAIL, .digits = 2)},
	[COLLECTIVES_IMBALANCE] = {COLUMN(REAL, "imbalance", "Imbalance", "all-to-alls: what the rank that sends most sends / the mean of the ranks; 1 = equal parts", .flags = COLUMN_DETAIL,
	                                  .digits = 2)},
	[COLLECTIVES_ALL] = {COLUMN(REAL, "all_gb_per_s", "All GB/s", "all-to-alls: what all ranks send together / from the first start to the last end", .flags = COLUMN_DETAIL,
	                            .digits = 2)},
	[COLLECTIVES_UNKNOWN] = {COLUMN(COUNT, "unknown", "Unknown", "collectives whose wait and transfer are unknown", .flags = COLUMN_MINOR),
	                         .not_by = BY(COLLECTIVES_BY_INSTANCE)},
)};

static const struct rank_call *collectives_call(const struct job *j, const struct job_instance *x, uint32_t part)
{
	return &j->rank[x->part[part].rank]->call[x->part[part].call];
}

static struct str collectives_op(const struct job *j, const struct job_instance *x)
{
	return intern_get(&j->rank[x->part[0].rank]->texts, collectives_call(j, x, 0)->op);
}

/* The rank that came first; of several in one moment the first of the list. */
static uint32_t collectives_first(const struct job_instance *x)
{
	uint32_t first = 0;
	for (uint32_t k = 1; k < x->n; k++)
		first = x->part[k].start_ns < x->part[first].start_ns ? k : first;
	return x->part[first].rank;
}

static struct collectives_row *collectives_row_of(struct collectives *x, const struct job_instance *i)
{
	struct collectives_key k = {.kind = i->kind};
	if (x->by == COLLECTIVES_BY_GROUP || x->by == COLLECTIVES_BY_SIZE || x->by == COLLECTIVES_BY_INSTANCE)
		k.group = i->group + 1;
	if (x->by == COLLECTIVES_BY_SIZE)
		k.bytes = i->bytes;
	if (x->by == COLLECTIVES_BY_OP)
		k.op = intern_str(&x->ops, collectives_op(x->j, i));
	if (x->by == COLLECTIVES_BY_INSTANCE)
		k.bytes = i - x->j->instance;
	uint32_t before = x->keys.n, at = intern_put(&x->keys, (const char *)&k, sizeof k) - 1;
	if (x->keys.n > before)
		MEM_PUSH(x->v, x->n, x->cap, (struct collectives_row){.key = k, .instance = i, .last = NEW_ARRAY(x->j->n, uint64_t)});
	return &x->v[at];
}

/* Wait and transfer are known: of all ranks of a collective, or of the receiver of a pair. */
static bool collectives_is_told(const struct job_instance *i)
{
	return i->accepted || (i->paired && i->wait_ns >= 0);
}

/* The link between the ranks of a group: they are on one host, and their GPUs are of one product. */
static const struct gpu_link *collectives_link(const struct job *j, const struct job_group *g)
{
	const struct rank *first = NULL;
	if (g->hosts != 1 || g->n_members < 2)
		return NULL;
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		for (uint32_t k = 0; k < j->instance[i].n; k++) {
			const struct rank *r = j->rank[j->instance[i].part[k].rank];
			first = first ? first : r;
			if (!str_eq(r->gpu, first->gpu))
				return NULL;
		}
	return first ? gpu_link_find(first->gpu) : NULL;
}

static void collectives_add_rate(struct collectives_rate *r, int64_t bytes, int64_t wire, int64_t ns)
{
	if (ns <= 0)
		return;
	r->bytes = job_sum(r->bytes, bytes);
	r->ns += ns;
	r->wire = job_sum(r->wire, wire > 0 ? wire : 0);
	r->wire_ns += wire > 0 ? ns : 0;
}

/* An all-to-all: what each rank sends. Returns whether these are unequal: no message has a size then that a rate could be of. */
static bool collectives_add_exchange(struct collectives_row *r, const struct job *j, const struct job_instance *i)
{
	double sum = 0, most = 0, least = 0;
	int64_t start = INT64_MAX, end = INT64_MIN;
	for (uint32_t k = 0; k < i->n; k++) {
		double bytes = (double)collectives_call(j, i, k)->bytes;
		if (bytes < 0)
			return false;
		sum += bytes;
		most = bytes > most ? bytes : most;
		least = !k || bytes < least ? bytes : least;
		start = i->part[k].start_ns < start ? i->part[k].start_ns : start;
		end = i->part[k].end_ns > end ? i->part[k].end_ns : end;
	}
	r->exchanged++;
	r->exchanged_bytes += i->accepted ? sum : 0;
	r->most_bytes += most;
	r->mean_bytes += sum / i->n;
	r->exchanged_ns += i->accepted ? (double)(end - start) : 0;
	return least < most;
}

static void collectives_add_size(struct collectives *x, struct collectives_row *r, const struct job_instance *i)
{
	int64_t wire = -1;
	const struct gpu_link *link = x->link[i->group];
	if (i->bytes < 0)
		return;
	r->sized++;
	r->bytes = job_sum(r->bytes, i->bytes);
	if (i->kind == COMM_ALL_TO_ALL && i->n > 1 && collectives_add_exchange(r, x->j, i))
		return;
	for (uint32_t k = 0; k < i->n; k++)
		wire = collectives_call(x->j, i, k)->wire_bytes > wire ? collectives_call(x->j, i, k)->wire_bytes : wire;
	collectives_add_rate(&r->shortest, i->bytes, wire, i->shortest_ns);
	if (!collectives_is_told(i) || i->n < 2 || i->transfer_ns <= 0)
		return;
	collectives_add_rate(&r->transfer, i->bytes, wire, i->transfer_ns);
	r->link = r->has_link && r->link != link ? NULL : link;
	r->has_link = true;
}

static void collectives_add(struct collectives *x, const struct job_instance *i)
{
	struct collectives_row *r = collectives_row_of(x, i);
	r->n++;
	r->shortest_ns += i->shortest_ns;
	r->exposed_ns += i->exposed_ns;
	r->start_skew_ns += i->start_skew_ns;
	r->end_skew_ns += i->end_skew_ns;
	r->instance = i->n > r->instance->n ? i : r->instance;
	for (uint32_t k = 0; k < i->n; k++) {
		int64_t ns = i->part[k].end_ns - i->part[k].start_ns;
		r->total_ns += ns;
		r->accepted_ns += i->accepted || (collectives_is_told(i) && collectives_call(x->j, i, k)->kind == COMM_RECV) ? ns : 0;
	}
	collectives_add_size(x, r, i);
	if (!collectives_is_told(i))
		return;
	r->accepted++;
	r->told += i->n > 1;
	r->transfer_ns += i->transfer_ns;
	r->wait_ns += i->wait_ns;
	r->last[i->last] += i->wait_ns > 0;
}

static void collectives_put_names(const struct collectives *x, const struct collectives_row *r, struct table *t)
{
	const struct job_instance *i = r->instance;
	struct str kind = str_from(comm_kind_name((enum comm_kind)i->kind));
	struct buf b = {0};
	if (!kind.n)
		kind = intern_get(&x->j->rank[i->part[0].rank]->texts, collectives_call(x->j, i, 0)->kernel);
	job_put_group(&x->j->group[i->group], &b);
	table_set_str_copy(t, COLLECTIVES_KIND, kind);
	table_set_str_copy(t, COLLECTIVES_GROUP, buf_view(&b));
	table_set_str_copy(t, COLLECTIVES_OP, collectives_op(x->j, i));
	buf_release(&b);
}

static void collectives_put_split(const struct job_group *g, struct table *t)
{
	struct buf b = {0};
	job_put_split(g->split, &b);
	if (b.n) {
		table_set_str_copy(t, COLLECTIVES_SPLIT, buf_view(&b));
		table_set_str(t, COLLECTIVES_TOLD, str_from(job_told_text((enum job_told)g->told)));
	}
	if (g->hosts)
		table_set_i64(t, COLLECTIVES_HOSTS, g->hosts);
	buf_release(&b);
}

static void collectives_put_rate(const struct collectives_rate *r, unsigned alg, unsigned bus, struct table *t)
{
	if (r->ns > 0)
		table_set_f64(t, alg, (double)r->bytes / (double)r->ns);
	if (r->wire_ns > 0)
		table_set_f64(t, bus, (double)r->wire / (double)r->wire_ns);
}

static void collectives_put_rates(const struct collectives_row *r, struct table *t)
{
	collectives_put_rate(&r->transfer, COLLECTIVES_ALG, COLLECTIVES_BUS, t);
	collectives_put_rate(&r->shortest, COLLECTIVES_ALG_MIN, COLLECTIVES_BUS_MIN, t);
	if (r->link) {
		table_set_f64(t, COLLECTIVES_LINK, r->link->bytes_per_s / 1e9);
		if (r->transfer.wire_ns > 0)
			table_set_f64(t, COLLECTIVES_LINK_PCT, percent((double)r->transfer.wire / (double)r->transfer.wire_ns * 1e9, r->link->bytes_per_s));
	}
	if (r->exchanged && r->mean_bytes > 0)
		table_set_f64(t, COLLECTIVES_IMBALANCE, r->most_bytes / r->mean_bytes);
	if (r->exchanged_ns > 0)
		table_set_f64(t, COLLECTIVES_ALL, r->exchanged_bytes / r->exchanged_ns);
}

/* As recorded, else its place in its group. */
static int64_t collectives_seq(const struct job *j, const struct job_instance *i)
{
	return i->seq != RANK_UNKNOWN ? i->seq : i - &j->instance[j->group[i->group].first];
}

static void collectives_put_row(const struct collectives *x, const struct collectives_row *r, int64_t zero_ns, struct table *t)
{
	const struct job_instance *i = r->instance;
	uint32_t last = 0;
	for (uint32_t k = 1; k < x->j->n; k++)
		last = r->last[k] > r->last[last] ? k : last;
	table_row(t);
	collectives_put_names(x, r, t);
	collectives_put_split(&x->j->group[i->group], t);
	table_set_i64(t, COLLECTIVES_SEQ, collectives_seq(x->j, i));
	table_set_i64(t, COLLECTIVES_START, i->arrival_ns - zero_ns);
	table_set_i64(t, COLLECTIVES_RANKS, i->n);
	table_set_i64(t, COLLECTIVES_N, (int64_t)r->n);
	if (r->sized)
		table_set_i64(t, COLLECTIVES_BYTES, r->bytes);
	table_set_i64(t, COLLECTIVES_TOTAL, r->total_ns);
	table_set_i64(t, COLLECTIVES_MIN, r->shortest_ns);
	table_set_i64(t, COLLECTIVES_EXPOSED, r->exposed_ns);
	table_set_i64(t, COLLECTIVES_START_SKEW, r->start_skew_ns);
	table_set_i64(t, COLLECTIVES_END_SKEW, r->end_skew_ns);
	if (i->n > 1)
		table_set_bool(t, COLLECTIVES_COINCIDES, i->coincides);
	table_set_i64(t, COLLECTIVES_UNKNOWN, (int64_t)(r->n - r->accepted));
	collectives_put_rates(r, t);
	if (!r->told && r->accepted < r->n)
		return;
	table_set_i64(t, COLLECTIVES_TRANSFER, r->transfer_ns);
	table_set_i64(t, COLLECTIVES_WAIT, r->wait_ns);
	table_set_f64(t, COLLECTIVES_WAIT_PCT, percent((double)r->wait_ns, (double)r->accepted_ns));
	if (r->last[last]) {
		table_set_i64(t, COLLECTIVES_FIRST, job_rank_number(x->j, collectives_first(i)));
		table_set_i64(t, COLLECTIVES_LAST, job_rank_number(x->j, last));
	}
	table_set_i64(t, COLLECTIVES_LAST_N, (int64_t)r->last[last]);
}

/* What is not known of the group's collectives, and why. */
static void collectives_put_group_note(const struct job_group *g, struct table *t)
{
	struct buf b = {0};
	uint32_t n = g->n - g->n_pairs;
	buf_cstr(&b, job_group_name(g).n ? "group " : g->id.n ? "" : "a group of ");
	job_put_group(g, &b);
	if (g->refusal && n)
		table_warn(t, "%u collective%s of " STR_FMT ": wait and transfer are unknown, because %s", n, n == 1 ? "" : "s", STR_ARG(buf_view(&b)), job_refusal_text(g->refusal));
	if ((!g->refusal || g->n_pairs) && g->unmatched)
		table_warn(t, "%u kernel%s of " STR_FMT " %s of collectives that not all of its ranks recorded", g->unmatched, g->unmatched == 1 ? "" : "s", STR_ARG(buf_view(&b)),
		           g->unmatched == 1 ? "is" : "are");
	buf_release(&b);
}

/* What is known of operations between two ranks, and of kernels that run several. */
static void collectives_put_pair_notes(const struct job *j, struct table *t)
{
	uint64_t pairs = 0, unknown = 0, alone = 0, coalesced = 0;
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		pairs += x->paired;
		unknown += x->paired && x->wait_ns < 0;
		alone += !x->paired && (x->kind == COMM_SEND || x->kind == COMM_RECV);
		coalesced += x->kind == COMM_COALESCED ? x->n : 0;
	}
	if (pairs)
		table_note(t, "%llu send%s stand%s with the receives: waiting is that of the receivers; what senders wait is unknown", (unsigned long long)pairs, pairs == 1 ? "" : "s",
		           pairs == 1 ? "s" : "");
	if (unknown)
		table_warn(t, "of %llu of these, waiting is unknown: the clocks of the two ranks cannot be compared", (unsigned long long)unknown);
	if (alone)
		table_note(t, "%llu sends and receives stand alone: the other rank was not recorded, or the ranks have unequal numbers of them", (unsigned long long)alone);
	if (coalesced)
		table_note(t, "%llu kernel%s a group of coalesced operations: which, to whom and of how many bytes was not recorded", (unsigned long long)coalesced,
		           coalesced == 1 ? " runs" : "s run");
}

static void collectives_put_notes(const struct collectives *x, uint64_t outside, struct table *t)
{
	const struct job_instance *first_apart = NULL;
	uint64_t apart = 0, all = 0;
	for (uint32_t i = 0; i < x->n; i++)
		all += x->v[i].n;
	table_note(t, "total, waiting and exposed are sums over the ranks; shortest, transfer and skews count a collective once%s",
	           ANY_WHERE(row, 0, x->n, x->v[row].accepted && x->v[row].accepted < x->v[row].n) ? "; transfer and waiting leave out the collectives under Unknown, shortest does not" : "");
	job_put_notes(x->j, t);
	for (uint32_t g = 0; g < x->j->n_groups; g++) {
		const struct job_group *group = &x->j->group[g];
		collectives_put_group_note(group, t);
		for (uint32_t i = group->first; i < group->first + group->n && !group->refusal; i++) {
			const struct job_instance *k = &x->j->instance[i];
			bool is_apart = k->n > 1 && comm_kind_ends_together((enum comm_kind)k->kind) && !k->accepted;
			first_apart = is_apart && !first_apart ? k : first_apart;
			apart += is_apart;
		}
	}
	collectives_put_pair_notes(x->j, t);
	if (apart)
		table_warn(t, "of %llu collectives, %llu did not end on all ranks at one moment: %s wait and transfer are unknown; %s is %s with Seq %lld "
		           "(--group-by=instance has all: Ends together)", (unsigned long long)all, (unsigned long long)apart, apart == 1 ? "its" : "their", apart == 1 ? "this" : "the first",
		           comm_kind_name((enum comm_kind)first_apart->kind), (long long)collectives_seq(x->j, first_apart));
	if (outside)
		table_note(t, "%llu collectives outside the steps are left out: --steps=all has them", (unsigned long long)outside);
}

static int collectives_run(const struct job *j, const struct report_args *args, struct table *out, struct err *e)
{
	struct collectives x = {.j = j, .by = (enum collectives_grouping)args->variant->by};
	uint64_t outside = 0;
	int64_t zero = INT64_MAX;
	intern_init(&x.keys);
	intern_init(&x.ops);
	x.link = NEW_ARRAY(j->n_groups, const struct gpu_link *);
	for (uint32_t g = 0; g < j->n_groups; g++)
		x.link[g] = collectives_link(j, &j->group[g]);
	section_start(&collectives_section, args, 0, out);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		bool in = job_is_in_steps(j, &j->instance[i], args);
		outside += !in;
		if (in)
			collectives_add(&x, &j->instance[i]);
		for (uint32_t k = 0; k < j->instance[i].n; k++)
			zero = j->instance[i].part[k].start_ns < zero ? j->instance[i].part[k].start_ns : zero;
	}
	for (uint32_t i = 0; i < x.n; i++)
		collectives_put_row(&x, &x.v[i], zero, out);
	collectives_put_notes(&x, args->has_steps ? 0 : outside, out);
	for (uint32_t i = 0; i < x.n; i++)
		mem_free(x.v[i].last);
	mem_free(x.v);
	mem_free(x.link);
	intern_release(&x.keys);
	intern_release(&x.ops);
	if (!j->n_instances)
		return err_set(e, ERR_DATA, "no kernel in the input is of a collective (nccl, rccl, ...), nor a range of the host (gloo, MPI, UCC): what enqueueing collectives costs the host is in `operators`");
	return table_sort(out, x.by == COLLECTIVES_BY_INSTANCE ? STR("start_ns") : STR("total_ns"), x.by != COLLECTIVES_BY_INSTANCE, e);
}

static const struct report_variant collectives_variants[] = {
	{.group_by = "kind", .by = COLLECTIVES_BY_KIND},
	{.group_by = "group", .by = COLLECTIVES_BY_GROUP},
	{.group_by = "size", .by = COLLECTIVES_BY_SIZE},
	{.group_by = "op", .by = COLLECTIVES_BY_OP},
	{.group_by = "instance", .by = COLLECTIVES_BY_INSTANCE},
	{0},
};

const struct report report_collectives = {
	.name = "collectives",
	.title = "Collectives over the ranks: transfer and waiting",
	.asks = ASKS_MOVE,
	.also = "nccl_ranks skew",
	.help = "What of the time of collectives is transfer, and what is waiting for the rank that comes last. Give the recordings of all ranks: a folder, or several files. The same "
	        "collective is found on all ranks by its group and its number there; clocks are compared by the moments at which collectives end. Where ends do not "
	        "coincide, wait and transfer are unknown. --group-by=instance lists each collective.",
	.variants = collectives_variants,
	.sections = (const struct section *const[]){&collectives_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.timeline = true,
	.run_job = collectives_run,
};
