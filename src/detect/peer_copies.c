#include <stdlib.h>

#include "base/sort.h"
#include "detect/parts/shared.h"

/* Percent of the window's time in which GPUs only copy to each other. */
static const double TOO_MUCH = 10, SEVERE = 50;
enum { PAIRS_TOLD = 4 };

/* Copies from one GPU to another one. */
struct peer_copies_pair {
	int64_t from, to;         /* -1 = not recorded */
	int64_t bytes, ns;
};

struct peers {
	struct peer_copies_pair *v;           /* pair i has the id i + 1 in `pairs` */
	uint32_t n, cap;
	struct intern pairs;      /* {from, to} */
	uint64_t copies;
	struct intervals when;    /* such copies, and no other work of any GPU */
	struct places places;
};

static bool is_peer(struct str name)
{
	return str_has(name, STR("PtoP")) || str_has(name, STR("Peer"));
}

static int64_t peer_copies_device_arg(const struct profile *p, uint32_t g, enum arg_key key)
{
	struct str text;
	int64_t n;
	return profile_arg(p, p->gpu_op.args[g], key, &text) && str_to_i64(text, &n) && n >= 0 ? n : -1;
}

static void add_pair(const struct profile *p, struct peers *x, uint32_t g)
{
	const int64_t k[2] = {peer_copies_device_arg(p, g, ARG_FROM_DEVICE), peer_copies_device_arg(p, g, ARG_TO_DEVICE)};
	uint32_t id = intern_put(&x->pairs, (const char *)k, sizeof k), i = id - 1;
	if (!id)
		return; /* more pairs than an interner holds */
	if (i == x->n)
		MEM_PUSH(x->v, x->n, x->cap, (struct peer_copies_pair){.from = k[0], .to = k[1]});
	int64_t bytes = p->launch.bytes[p->gpu_op.launch[g]];
	x->v[i].ns += p->gpu_op.dur_ns[g];
	if (bytes > 0 && __builtin_add_overflow(x->v[i].bytes, bytes, &x->v[i].bytes))
		x->v[i].bytes = INT64_MAX;
}

static void peer_copies_measure(const struct profile *p, struct findings *f, const struct step_time *w, struct peers *x)
{
	struct intervals other = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		bool peer = p->gpu_op.kind[g] == GPU_MEMCPY && is_peer(profile_str(p, p->gpu_op.name[g]));
		intervals_add(peer ? &x->when : &other, p->gpu_op.start_ns[g], gpu_end(p, g));
		if (!peer || !step_time_has(w, p->gpu_op.start_ns[g]))
			continue;
		uint32_t at = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
		add_pair(p, x, g);
		places_add(&x->places, shared_stacks(f), profile_str(p, at != ROW_NONE ? p->span.name[at] : p->gpu_op.name[g]), at, 1, p->gpu_op.dur_ns[g]);
		x->copies++;
	}
	intervals_normalise(&x->when);
	intervals_normalise(&other);
	intervals_subtract(&x->when, &other, &x->when);
	intervals_intersect(&x->when, &w->all, &x->when);
	intervals_release(&other);
}

/* The slowest pair first; pairs without bytes last. */
static int by_rate(const void *a, const void *b)
{
	const struct peer_copies_pair *x = a, *y = b;
	double rate_x = x->ns && x->bytes ? (double)x->bytes / (double)x->ns : 1e30, rate_y = y->ns && y->bytes ? (double)y->bytes / (double)y->ns : 1e30;
	return COMPARE(rate_x, rate_y) ?: COMPARE(x->from, y->from) ?: COMPARE(x->to, y->to);
}

static void put_pairs(const struct peers *x, struct buf *out)
{
	for (uint32_t i = 0; i < x->n && i < PAIRS_TOLD; i++) {
		const struct peer_copies_pair *k = &x->v[i];
		buf_cstr(out, i ? ", " : "");
		if (k->from >= 0 && k->to >= 0)
			buf_printf(out, "GPU %lld to GPU %lld ", (long long)k->from, (long long)k->to);
		if (k->bytes && k->ns)
			buf_printf(out, "%.1f GB/s", (double)k->bytes / (double)k->ns);
		else
			put_ns(out, (double)k->ns);
	}
	if (x->n > PAIRS_TOLD)
		buf_printf(out, " and %u more pair%s", x->n - PAIRS_TOLD, x->n - PAIRS_TOLD == 1 ? "" : "s");
}

static void peer_copies_report(const struct profile *p, struct findings *f, const struct step_time *w, struct peers *x, int64_t ns)
{
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *y = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	y->problem = arena_printf(&f->arena, "In %.1f %% of the %s GPUs only copy to each other, and none does other work", pct, w->time);
	qsort(x->v, x->n, sizeof *x->v, by_rate);
	buf_printf(&evidence, "%llu cop%s: ", (unsigned long long)x->copies, x->copies == 1 ? "y" : "ies");
	put_pairs(x, &evidence);
	buf_printf(&evidence, ". %s, by op: ", w->per);
	places_text(&x->places, 2, w->n, true, &evidence);
	if (x->places.ns > w->ns)
		buf_cstr(&evidence, "; these are sums over copies that overlap, so that they exceed the time looked at");
	y->evidence = finding_text(f, &evidence);
	finding_looks_at_most(y, p, &x->places);
	finding_measured(y, w, x->copies, ns, &x->when, "copies between GPUs while no GPU does other work");
}

static void peer_copies_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct peers x = {0};
	intern_init(&x.pairs);
	peer_copies_measure(p, f, w, &x);
	int64_t ns = intervals_length(&x.when);
	if (x.copies && step_time_pct(w, ns) >= TOO_MUCH)
		peer_copies_report(p, f, w, &x, ns);
	intervals_release(&x.when);
	places_release(&x.places);
	intern_release(&x.pairs);
	mem_free(x.v);
}

const struct detector detector_peer_copies = {
	.id = "peer-copies",
	.title = "GPUs wait for copies between each other",
	.why = "What one GPU sends to another one takes as long as the link between them allows, 10 times as long by PCIe as by NVLink, and neither computes meanwhile.",
	.fix = "Keep what belongs together on one GPU; place neighbours on GPUs with a fast link (nvidia-smi topo -m shows which); copy with non_blocking=True beside "
	       "computation; replace copies by hand with collectives of NCCL.",
	.disprove = "The next computation needs all of the data, and they are no larger than they must be: then only a faster link helps.",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = peer_copies_run,
};
