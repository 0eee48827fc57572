#include "query/job_advice_links.h"

#include <stdlib.h>

#include "analysis/ranks/job_groups.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "gpu/gpus.h"

/* Smaller messages take longer to begin than to send: their rate says nothing of a link. */
static const int64_t JOB_LINKS_LARGE = 4 << 20;
/* What is compared with what links can send is larger. */
static const double JOB_LINKS_LARGE_FOR_PEAK = 32 << 20;
enum {
	JOB_LINKS_FEWEST = 4,     /* large collectives of a group, at least */
	JOB_LINKS_PEERS = 3,      /* groups like it, with itself, at least */
};
static const double JOB_LINKS_SCALE = 1e6; /* rates as whole numbers, for a median */
/* Slower than so much of the median of its peers; and than so much of what the links can send, which no collective reaches. */
static const double JOB_LINKS_OF_PEERS = 0.5, JOB_LINKS_OF_PEAK = 0.2;
/* The rank with most sends so many times the mean. */
static const double JOB_LINKS_UNEQUAL = 1.5;
/* Percent of the mean step that would be gained. */
static const double JOB_LINKS_MUCH_PCT = 2, JOB_LINKS_SEVERE_PCT = 15;

static const struct detector job_links_slow = {.id = "slow-link", .report = "collectives",
	.disprove = "The group's collectives run beside more computation than those of the others, or carry other sizes: `opscope report collectives --group-by=size` has each.",
	.fix = "Look at what connects these GPUs: `nvidia-smi topo -m`, `nvidia-smi nvlink -s`, cards and cables of the network, and what NCCL chose (NCCL_DEBUG=INFO). Run nccl-tests on these ranks alone."};
static const struct detector job_links_unequal = {.id = "unequal-exchange", .report = "traffic",
	.disprove = "`opscope report traffic` has equal bytes from each rank: then the parts differ, and not what a rank sends.",
	.fix = "Give the ranks equal parts: balance experts (an auxiliary loss, a capacity, copies of experts that are asked for most), or the sharding of tables."};

/* The large collectives of one kind of a group. */
struct job_links_sum {
	uint32_t group;
	uint8_t kind;
	uint64_t n;
	int64_t wire, ns;          /* sent by a rank; transfer */
	double exposed_ns;         /* of the transfer, over the ranks */
};

static double job_links_rate(const struct job_links_sum *s) { return (double)s->wire / (double)s->ns; }
static double job_links_size(const struct job_links_sum *s) { return (double)s->wire / (double)s->n; }

/* Groups of one kind of collective, as many ranks, and one division of the work lie together. */
static int job_links_by_likeness(const void *a, const void *b, void *context)
{
	const struct job_links_sum *x = a, *y = b;
	const struct job_group *g = ((const struct job *)context)->group, *p = &g[x->group], *q = &g[y->group];
	return COMPARE(x->kind, y->kind) ?: COMPARE(p->n_members, q->n_members) ?: COMPARE(p->split, q->split) ?: COMPARE(p->hosts, q->hosts) ?: COMPARE(x->group, y->group);
}

static bool job_links_are_alike(const struct job *j, const struct job_links_sum *a, const struct job_links_sum *b)
{
	const struct job_group *p = &j->group[a->group], *q = &j->group[b->group];
	return a->kind == b->kind && p->n_members == q->n_members && p->split == q->split && p->hosts == q->hosts;
}

static int64_t job_links_wire(const struct job *j, const struct job_instance *x)
{
	int64_t wire = -1;
	for (uint32_t i = 0; i < x->n; i++) {
		const struct rank_call *c = &j->rank[x->part[i].rank]->call[x->part[i].call];
		wire = c->wire_bytes > wire ? c->wire_bytes : wire;
	}
	return wire < INT64_MAX / 1024 ? wire : -1; /* no message is as large: sums do not leave 64 bits */
}

/* What of its kernels' time is transfer that nothing hides, over the ranks: at most what was exposed. */
static double job_links_exposed(const struct job_instance *x)
{
	double transfer = (double)x->transfer_ns * x->n;
	return transfer < (double)x->exposed_ns ? transfer : (double)x->exposed_ns;
}

static struct job_links_sum *job_links_add_up(const struct job *j, uint32_t *n)
{
	struct job_links_sum *v = NULL;
	uint32_t cap = 0;
	*n = 0;
	for (uint32_t g = 0; g < j->n_groups; g++) {
		uint32_t first = *n;
		for (uint32_t i = j->group[g].first; i < j->group[g].first + j->group[g].n; i++) {
			const struct job_instance *x = &j->instance[i];
			int64_t wire = x->accepted && x->n > 1 && x->transfer_ns > 0 ? job_links_wire(j, x) : -1;
			if (wire < JOB_LINKS_LARGE)
				continue;
			uint32_t at = first;
			while (at < *n && v[at].kind != x->kind)
				at++;
			if (at == *n)
				MEM_PUSH(v, *n, cap, (struct job_links_sum){.group = g, .kind = x->kind});
			v[at].n++;
			v[at].wire += wire;
			v[at].ns += x->transfer_ns;
			v[at].exposed_ns += job_links_exposed(x);
		}
	}
	if (*n)
		qsort_r(v, *n, sizeof *v, job_links_by_likeness, (void *)(uintptr_t)j);
	return v;
}

/* The rate that a group should have; 0 = nothing says that it is slow. */
struct job_links_doubt {
	const struct job_links_sum *sum;
	double should, gain_ns; /* B/ns; over all ranks */
	uint32_t peers;         /* 0 = by the links of its GPUs */
	const char *link;
};

static void job_links_keep_worst(struct job_links_doubt *worst, const struct job_links_sum *s, double should, uint32_t peers, const char *link)
{
	double gain = s->exposed_ns * (1 - job_links_rate(s) / should);
	if (gain > worst->gain_ns)
		*worst = (struct job_links_doubt){.sum = s, .should = should, .gain_ns = gain, .peers = peers, .link = link};
}

/* Sums [0, n) of groups that are alike. */
static void job_links_compare(const struct job_links_sum *v, uint32_t n, int64_t *scratch, struct job_links_doubt *worst)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++)
		if (v[i].n >= JOB_LINKS_FEWEST)
			scratch[k++] = (int64_t)(job_links_rate(&v[i]) * JOB_LINKS_SCALE);
	if (k < JOB_LINKS_PEERS)
		return;
	double median = (double)sort_median_i64(scratch, k) / JOB_LINKS_SCALE;
	for (uint32_t i = 0; i < n; i++) {
		bool alike = v[i].n >= JOB_LINKS_FEWEST && job_links_size(&v[i]) * 2 >= job_links_size(&v[0]) && job_links_size(&v[i]) <= job_links_size(&v[0]) * 2;
		if (alike && job_links_rate(&v[i]) < JOB_LINKS_OF_PEERS * median)
			job_links_keep_worst(worst, &v[i], median, k - 1, NULL);
	}
}

static void job_links_against_peak(const struct job *j, const struct job_links_sum *s, struct job_links_doubt *worst)
{
	const struct job_group *g = &j->group[s->group];
	const struct rank *r = j->rank[j->instance[g->first].part[0].rank];
	const struct gpu_link *link = g->hosts == 1 && g->n_ranks == g->n_members ? gpu_link_find(r->gpu) : NULL;
	for (uint32_t i = g->first; i < g->first + g->n && link; i++)
		for (uint32_t k = 0; k < j->instance[i].n; k++)
			link = str_eq(j->rank[j->instance[i].part[k].rank]->gpu, r->gpu) ? link : NULL;
	double peak = link ? link->bytes_per_s / 1e9 : 0;
	if (s->n >= JOB_LINKS_FEWEST && job_links_size(s) >= JOB_LINKS_LARGE_FOR_PEAK && peak > 0 && job_links_rate(s) < JOB_LINKS_OF_PEAK * peak)
		job_links_keep_worst(worst, s, peak, 0, link->name);
}

static struct finding *job_links_add(struct findings *f, const struct detector *d, double pct, double gain_ns)
{
	f->detector = d;
	struct finding *x = findings_add(f, pct > JOB_LINKS_SEVERE_PCT ? FINDING_HIGH : FINDING_MEDIUM);
	x->has_share = x->has_gain = true;
	x->share_pct = pct;
	x->gain_ns_per_step = (int64_t)gain_ns;
	return x;
}

static void job_links_tell_slow(struct findings *f, const struct job *j, const struct job_links_doubt *w, double step_ns, uint64_t steps)
{
	double gain = w->gain_ns / (double)steps, pct = percent(gain, step_ns);
	if (!w->sum || pct < JOB_LINKS_MUCH_PCT)
		return;
	struct finding *x = job_links_add(f, &job_links_slow, pct, gain);
	struct buf b = {0};
	job_put_group(&j->group[w->sum->group], &b);
	const char *kind = comm_kind_name((enum comm_kind)w->sum->kind);
	x->problem = w->peers ? arena_printf(&f->arena, "The %ss of " STR_FMT " move %.1f GB/s, those of groups like it %.1f GB/s", kind, STR_ARG(buf_view(&b)), job_links_rate(w->sum), w->should)
	                      : arena_printf(&f->arena, "The %ss of " STR_FMT " move %.1f GB/s, and %s could %.0f GB/s", kind, STR_ARG(buf_view(&b)), job_links_rate(w->sum), w->link, w->should);
	x->evidence = w->peers ? arena_printf(&f->arena, "Bus bandwidth, without waiting, of %llu %ss of %.1f MB on average (sent by a rank); median of %u other groups of as many ranks",
	                                      (unsigned long long)w->sum->n, kind, job_links_size(w->sum) / 1e6, w->peers)
	                       : arena_printf(&f->arena, "Bus bandwidth, without waiting, of %llu %ss of %.1f MB on average (sent by a rank)", (unsigned long long)w->sum->n, kind,
	                                      job_links_size(w->sum) / 1e6);
	x->bound = w->peers ? STR("the transfer that nothing hides, as far as it is longer than at the rate of the other groups, mean over the ranks")
	                    : STR("the transfer that nothing hides, as far as it is longer than at the rate of the links, mean over the ranks");
	buf_release(&b);
}

/* All-to-alls of which each rank's part is known. */
static void job_links_tell_unequal(struct findings *f, const struct job *j, double step_ns, uint64_t steps)
{
	double gain = 0, most = 0, mean = 0;
	uint64_t n = 0;
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		double sum = 0, top = 0;
		bool known = x->accepted && x->n > 1 && x->kind == COMM_ALL_TO_ALL;
		for (uint32_t k = 0; k < x->n && known; k++) {
			double bytes = (double)j->rank[x->part[k].rank]->call[x->part[k].call].bytes;
			known = bytes >= 0;
			sum += bytes;
			top = bytes > top ? bytes : top;
		}
		if (!known || sum <= 0)
			continue;
		n++;
		most += top;
		mean += sum / x->n;
		gain += job_links_exposed(x) * (1 - sum / x->n / top);
	}
	double pct = percent(gain / (double)steps, step_ns);
	if (!n || most < JOB_LINKS_UNEQUAL * mean || pct < JOB_LINKS_MUCH_PCT)
		return;
	struct finding *x = job_links_add(f, &job_links_unequal, pct, gain / (double)steps);
	x->problem = arena_printf(&f->arena, "In all-to-alls the rank with most sends %.1f times what a rank sends on average", most / mean);
	x->evidence = arena_printf(&f->arena, "%llu all-to-alls of which the bytes of each rank are recorded, %.1f MB a rank on average", (unsigned long long)n, mean / (double)n / 1e6);
	x->bound = STR("the transfer of these all-to-alls that nothing hides, less as much as equal parts would take, mean over the ranks");
}

void job_advice_add_links(struct findings *f, const struct job *j, double step_ns, uint64_t steps)
{
	uint32_t n;
	struct job_links_doubt worst = {0};
	if (!steps || step_ns <= 0)
		return;
	struct job_links_sum *v = job_links_add_up(j, &n);
	int64_t *scratch = NEW_ARRAY(n + 1, int64_t);
	for (uint32_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && job_links_are_alike(j, &v[from], &v[to]); to++)
			;
		job_links_compare(v + from, to - from, scratch, &worst);
	}
	for (uint32_t i = 0; i < n && !worst.sum; i++)
		job_links_against_peak(j, &v[i], &worst);
	job_links_tell_slow(f, j, &worst, step_ns, steps);
	job_links_tell_unequal(f, j, step_ns, steps);
	mem_free(scratch);
	mem_free(v);
}
