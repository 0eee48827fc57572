/* Kernels so short that the cost of their launches matters: by op and shape, or counted by duration. */
#include "analysis/recording.h"
#include "analysis/tree/optree.h"
#include "base/mem.h"
#include "query/stats.h"
#include "query/window.h"
#include "report/parts/short_kernels.h"

/* A launch takes the host 3 to 10 us: the host can hardly launch kernels faster than kernels of 10 us run. */
enum { SHORT_NS = 10000, SHORT_BINS = 20 };

struct short_key {
	uint32_t name, op, dims; /* string ids; op, dims: 0 = none, or not asked for */
};

/* Sums over the kernels of a group that are the only work of their call. */
struct short_launches {
	uint64_t under;          /* kernels that took less time than their call */
	int64_t host_ns;         /* of the calls */
};

struct short_kernels {
	const struct profile *p;
	struct window w;
	enum short_by by;
	struct optree *tree;
	uint32_t *work_of_call;  /* span -> pieces of device work that it launched */
	struct stats s;
	struct short_launches *launches;
	uint32_t cap;
	uint64_t kernels, n;     /* all kernels; short kernels */
	int64_t kernels_ns, *dur_ns; /* time of all kernels; of each short kernel */
};

enum {
	SHORT_OP, SHORT_DIMS, SHORT_NAME, SHORT_STATS, SHORT_UNDER = SHORT_STATS + STATS_COLUMNS, SHORT_HOST
};

static const struct section short_section = {.by = BY(SHORT_BY_OP) | BY(SHORT_BY_SHAPE), COLUMNS(
	[SHORT_OP] = {COLUMN(TEXT, "operator", "Operator", "the innermost op, collective or optimizer that launched the kernel, as in `operators`; empty = not known",
	                     .flags = COLUMN_GROUP | COLUMN_ANSWER)},
	[SHORT_DIMS] = {COLUMN(TEXT, "input_dims", "Input dims", "shapes of the op, as recorded", .flags = COLUMN_WIDE), .by = BY(SHORT_BY_SHAPE)},
	[SHORT_NAME] = {COLUMN(TEXT, "name", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL | COLUMN_ANSWER)},
	STATS_COLUMN_LIST_OF(SHORT_STATS, "Of short %", "total / total of all kernels shorter than 10 us"),
	[SHORT_UNDER] = {COLUMN(COUNT, "under_launch", "Under launch", "how many of these kernels took less time than the call that launched the kernel and nothing else", .flags = COLUMN_ANSWER)},
	[SHORT_HOST] = {COLUMN(NS, "launch_ns", "Launch", "time of the calls that launched one of these kernels and nothing else", .flags = COLUMN_ANSWER)},
)};

enum { BIN_FROM, BIN_TO, BIN_N, BIN_NS };

static const struct section bin_section = {.by = BY(SHORT_BY_DURATION), COLUMNS(
	[BIN_FROM] = {COLUMN(MEAN_NS, "from_ns", "From", "least duration of the row", .flags = COLUMN_ANSWER)},
	[BIN_TO] = {COLUMN(MEAN_NS, "to_ns", "To", "durations of the row are shorter than this; in the last row also as long", .flags = COLUMN_ANSWER)},
	[BIN_N] = {COLUMN(COUNT, "calls", "Calls", "kernels with such a duration", .flags = COLUMN_ANSWER)},
	[BIN_NS] = {COLUMN(NS, "total_ns", "Total", "sum of their durations")},
)};

static void short_collect_one(struct short_kernels *x, uint32_t g)
{
	const struct profile *p = x->p;
	uint32_t call = p->gpu_op.call[g], op = p->gpu_op.op[g], before = x->s.n;
	struct short_key k = {.name = p->gpu_op.name[g], .op = optree_operator(x->tree, p, g)};
	if (x->by == SHORT_BY_SHAPE && op != ROW_NONE)
		k.dims = profile_arg_id(p, p->span.args[op], ARG_INPUT_DIMS);
	uint32_t at = stats_add(&x->s, &k, sizeof k, p->gpu_op.dur_ns[g]);
	if (x->s.n > before) {
		MEM_GROW(x->launches, x->cap, x->s.n);
		x->launches[at] = (struct short_launches){0};
	}
	if (call == ROW_NONE || x->work_of_call[call] != 1)
		return;
	x->launches[at].under += p->gpu_op.dur_ns[g] < p->span.dur_ns[call];
	x->launches[at].host_ns += p->span.dur_ns[call];
}

static void short_collect(struct short_kernels *x)
{
	const struct gpu_ops *g = &x->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++)
		if (g->call[i] != ROW_NONE)
			x->work_of_call[g->call[i]]++;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->kind[i] != GPU_KERNEL || !window_has_gpu(&x->w, x->p, i) || gpu_is_graph(x->p, i))
			continue;
		x->kernels++;
		x->kernels_ns += g->dur_ns[i];
		if (g->dur_ns[i] >= SHORT_NS)
			continue;
		x->dur_ns[x->n++] = g->dur_ns[i];
		short_collect_one(x, i);
	}
	stats_finish(&x->s);
}

static void short_put(struct short_kernels *x, const struct report_args *args, struct table *t)
{
	section_start(&short_section, args, 0, t);
	for (uint32_t i = 0; i < x->s.n; i++) {
		struct short_key k;
		stats_key(&x->s, i, &k, sizeof k);
		table_row(t);
		if (k.op)
			table_set_str(t, SHORT_OP, profile_str(x->p, k.op));
		if (k.dims)
			table_set_str(t, SHORT_DIMS, profile_str(x->p, k.dims));
		table_set_str(t, SHORT_NAME, profile_str(x->p, k.name));
		stats_put(t, SHORT_STATS, &x->s, i);
		table_set_i64(t, SHORT_UNDER, (int64_t)x->launches[i].under);
		table_set_i64(t, SHORT_HOST, x->launches[i].host_ns);
	}
}

static void short_put_bins(const struct short_kernels *x, const struct report_args *args, struct table *t)
{
	const struct short_bins *bins = args->variant->rules;
	unsigned n = bins ? bins->n : SHORT_BINS;
	int64_t least = x->dur_ns[0], most = x->dur_ns[0];
	for (uint64_t i = 0; i < x->n; i++) {
		least = x->dur_ns[i] < least ? x->dur_ns[i] : least;
		most = x->dur_ns[i] > most ? x->dur_ns[i] : most;
	}
	double from = bins ? (double)least : 0, to = bins ? (double)most : SHORT_NS;
	uint64_t *count = NEW_ARRAY(n, uint64_t);
	int64_t *ns = NEW_ARRAY(n, int64_t);
	for (uint64_t i = 0; i < x->n; i++) {
		double at = to > from ? ((double)x->dur_ns[i] - from) / (to - from) * n : 0;
		unsigned bin = at < n - 1 ? (unsigned)at : n - 1;
		count[bin]++;
		ns[bin] += x->dur_ns[i];
	}
	section_start(&bin_section, args, 0, t);
	for (unsigned i = 0; i < n; i++) {
		table_row(t);
		table_set_f64(t, BIN_FROM, from + (to - from) * i / n);
		table_set_f64(t, BIN_TO, from + (to - from) * (i + 1) / n);
		table_set_i64(t, BIN_N, (int64_t)count[i]);
		table_set_i64(t, BIN_NS, ns[i]);
	}
	t->whole = true;
	mem_free(count);
	mem_free(ns);
}

static int short_none(const struct short_kernels *x, struct err *e)
{
	if (x->kernels)
		return err_set(e, ERR_DATA, "none of the %llu kernels is shorter than 10 us", (unsigned long long)x->kernels);
	return x->w.all ? err_set(e, ERR_DATA, "the input holds no kernels; to record them: %s", recording_how(x->p, RECORD_DEVICE_WORK))
	                : err_set(e, ERR_DATA, "the steps asked for have no kernel");
}

static int short_kernels_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct short_kernels x = {.p = p, .by = (enum short_by)args->variant->by};
	int rc = 0;
	if (window_of(p, args, &x.w, e) < 0)
		return -1;
	x.tree = optree_new(p, &optree_own);
	x.work_of_call = NEW_ARRAY(p->span.rows.n, uint32_t);
	x.dur_ns = NEW_ARRAY_RAW(p->gpu_op.rows.n, int64_t);
	short_collect(&x);
	if (!x.n) {
		rc = short_none(&x, e);
	} else {
		if (x.by == SHORT_BY_DURATION)
			short_put_bins(&x, args, out);
		else
			short_put(&x, args, out);
		table_note(out, "kernels shorter than 10 us: %llu of %llu; they take %lld of %lld ns", (unsigned long long)x.n, (unsigned long long)x.kernels, (long long)x.s.total,
		           (long long)x.kernels_ns);
		rc = x.by == SHORT_BY_DURATION ? 0 : table_sort(out, STR("total_ns"), true, e);
	}
	optree_free(x.tree);
	stats_release(&x.s);
	mem_free(x.work_of_call);
	mem_free(x.dur_ns);
	mem_free(x.launches);
	return rc;
}

static const struct report_variant short_kernels_variants[] = {
	{.group_by = "op", .by = SHORT_BY_OP},
	{.group_by = "shape", .by = SHORT_BY_SHAPE},
	{.group_by = "duration", .by = SHORT_BY_DURATION},
	{0},
};

const struct report report_short_kernels = {
	.name = "short-kernels",
	.title = "Kernels shorter than 10 us",
	.asks = ASKS_FASTER,
	.also = "short tiny small_kernels launch_overhead histogram",
	.help = "Kernels so short that the cost of launching them matters: which ops launch them, and how many took less time than the call that launched them. Where most kernels "
	        "are short, the GPU works at best as fast as the host launches. Fewer and larger calls, fusing (torch.compile) and CUDA graphs help. --group-by=shape tells shapes apart, "
	        "--group-by=duration counts the kernels by their duration.",
	.variants = short_kernels_variants,
	.sections = (const struct section *const[]){&short_section, &bin_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.ignores = LEFT_MEMORY | LEFT_MARKS | LEFT_FLOWS | LEFT_AUX_IDS | LEFT_OP_IDS,
	.run = short_kernels_run,
};
