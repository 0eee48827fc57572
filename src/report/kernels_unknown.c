/* Kernels that the rules do not know, hottest first: what a rule would be worth. */
#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "base/mem.h"
#include "base/round.h"
#include "gpu/gpus.h"
#include "op/kernels.h"
#include "query/window.h"

#include <math.h>

enum { NAMED_OPS = 3 }; /* how many of the ops that launched a kernel are named */

/* The vendor of the device that a kernel ran on. A name means the same on all devices, but each vendor has other unknown names. */
enum vendor { VENDOR_UNKNOWN, NVIDIA, AMD, INTEL, GAUDI, MTIA, VENDORS };
static const char *const vendor_name[VENDORS] = {"unknown", "NVIDIA", "AMD", "Intel", "Intel Gaudi", "Meta MTIA"};

static enum vendor vendor_of_device(const struct profile *p, uint32_t row)
{
	static const char *const nvidia[] = {"NVIDIA", "Tesla", "GeForce", "Quadro", "TITAN"};
	struct str name = profile_str(p, p->device.name[row]);
	for (size_t i = 0; i < sizeof nvidia / sizeof nvidia[0]; i++)
		if (str_has(name, str_from(nvidia[i])))
			return NVIDIA;
	if (gpu_is_amd(name, p->device.warp_size[row]))
		return AMD;
	return str_has(name, STR("Intel")) ? INTEL : VENDOR_UNKNOWN;
}

/* By the API whose call launched it. */
static enum vendor vendor_of_call(struct str name)
{
	static const struct {
		const char *prefix;
		enum vendor vendor;
	} apis[] = {{"cuda", NVIDIA}, {"cuLaunch", NVIDIA}, {"cuGraph", NVIDIA}, {"hip", AMD}, {"ur", INTEL}, {"ze", INTEL}, {"pi", INTEL}};
	for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++)
		if (str_starts(name, str_from(apis[i].prefix)))
			return apis[i].vendor;
	return VENDOR_UNKNOWN;
}

static enum vendor vendor_of(const struct profile *p, uint32_t gpu)
{
	struct str cat = profile_cat(p, p->gpu_op.cat[gpu]);
	if (str_starts(cat, STR("mtia_")))
		return MTIA;
	if (str_starts(cat, STR("hpu_")))
		return GAUDI;
	uint32_t launch = p->gpu_op.launch[gpu], call = p->gpu_op.call[gpu];
	uint32_t row = launch == ROW_NONE ? ROW_NONE : profile_device_row(p, p->launch.device[launch]);
	enum vendor v = row == ROW_NONE ? VENDOR_UNKNOWN : vendor_of_device(p, row);
	if (v == VENDOR_UNKNOWN && call != ROW_NONE)
		v = vendor_of_call(profile_str(p, p->span.name[call]));
	return v == VENDOR_UNKNOWN && p->recorder == RECORDER_NVIDIA ? NVIDIA : v;
}

enum kernels_unknown_grouping { KERNELS_UNKNOWN_BY_NAME, KERNELS_UNKNOWN_BY_VENDOR };

struct kernels_unknown_group {
	uint64_t calls, no_tc;   /* no_tc: calls of which neither name nor op tells whether they used Tensor Cores */
	int64_t ns, vendor_ns[VENDORS];
	int64_t no_tc_ns[VENDORS + 1]; /* time of those calls; [VENDORS] has the sum */
	enum vendor vendor;            /* of the last one */
	uint32_t op[NAMED_OPS], n_ops; /* string ids; n_ops = NAMED_OPS + 1 says that there are more */
	bool seen;
};

static void kernels_unknown_add_op(struct kernels_unknown_group *x, uint32_t op)
{
	for (uint32_t i = 0; i < x->n_ops && i < NAMED_OPS; i++)
		if (x->op[i] == op)
			return;
	if (x->n_ops < NAMED_OPS)
		x->op[x->n_ops] = op;
	if (x->n_ops <= NAMED_OPS)
		x->n_ops++;
}

/* By string id of the name. */
static struct kernels_unknown_group *kernels_unknown_collect(const struct profile *p, const struct window *w, int64_t *all_ns)
{
	struct kernels_unknown_group *v = NEW_ARRAY(p->strings.n, struct kernels_unknown_group);
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (p->gpu_op.kind[i] != GPU_KERNEL || gpu_is_graph(p, i) || !window_has_gpu(w, p, i))
			continue;
		struct kernels_unknown_group *x = &v[p->gpu_op.name[i]];
		x->seen = true;
		x->calls++;
		x->ns += p->gpu_op.dur_ns[i];
		x->vendor = vendor_of(p, i);
		x->vendor_ns[x->vendor] += p->gpu_op.dur_ns[i];
		if (gpu_tensor_core(p, i) == TRI_UNKNOWN) {
			x->no_tc++;
			x->no_tc_ns[x->vendor] += p->gpu_op.dur_ns[i];
			x->no_tc_ns[VENDORS] += p->gpu_op.dur_ns[i];
		}
		*all_ns += p->gpu_op.dur_ns[i];
		if (p->gpu_op.op[i] != ROW_NONE)
			kernels_unknown_add_op(x, p->span.name[p->gpu_op.op[i]]);
	}
	return v;
}

static void kernels_unknown_put_ops(struct table *out, unsigned col, const struct profile *p, const struct kernels_unknown_group *x)
{
	struct str s[NAMED_OPS] = {{"", 0}, {"", 0}, {"", 0}};
	for (uint32_t i = 0; i < x->n_ops && i < NAMED_OPS; i++)
		s[i] = profile_str(p, x->op[i]);
	if (x->n_ops)
		table_set_fmt(out, col, STR_FMT "%s" STR_FMT "%s" STR_FMT "%s", STR_ARG(s[0]), x->n_ops > 1 ? ", " : "", STR_ARG(s[1]),
		              x->n_ops > 2 ? ", " : "", STR_ARG(s[2]), x->n_ops > NAMED_OPS ? ", ..." : "");
}

/* Time of all kernels and of the kernels that no rule knows; [VENDORS] has the sums over all vendors. */
struct kernels_unknown_sums {
	int64_t all[VENDORS + 1], no_class[VENDORS + 1], no_tc[VENDORS + 1];
	uint64_t names[VENDORS + 1];
};

static void add_sums(struct kernels_unknown_sums *s, const struct kernels_unknown_group *x, bool class)
{
	for (unsigned v = 0; v <= VENDORS; v++) {
		int64_t ns = v == VENDORS ? x->ns : x->vendor_ns[v];
		s->all[v] += ns;
		s->no_class[v] += class ? ns : 0;
		s->no_tc[v] += x->no_tc_ns[v];
		s->names[v] += class && (v == VENDORS || x->vendor_ns[v] > 0);
	}
}

enum {
	KERNELS_UNKNOWN_NAME, KERNELS_UNKNOWN_UNKNOWN, KERNELS_UNKNOWN_CLASS, KERNELS_UNKNOWN_VENDOR, KERNELS_UNKNOWN_OPS, KERNELS_UNKNOWN_CALLS,
	KERNELS_UNKNOWN_TOTAL, KERNELS_UNKNOWN_SHARE
};

static const struct section kernels_unknown_section = {.by = BY(KERNELS_UNKNOWN_BY_NAME), COLUMNS(
	[KERNELS_UNKNOWN_NAME] = {COLUMN(TEXT, "name", "Kernel", "name of the kernel", .flags = COLUMN_WIDE | COLUMN_KERNEL)},
	[KERNELS_UNKNOWN_UNKNOWN] = {COLUMN(TEXT, "unknown", "Unknown", "what no rule tells: class, Tensor Cores, or both")},
	[KERNELS_UNKNOWN_CLASS] = {COLUMN(TEXT, "class", "Class", "what it does, by its name")},
	[KERNELS_UNKNOWN_VENDOR] = {COLUMN(TEXT, "vendor", "Vendor", "of the device that it ran on, by the device's name or the API that launched it",
	                                   .flags = COLUMN_MINOR)},
	[KERNELS_UNKNOWN_OPS] = {COLUMN(TEXT, "operators", "Operators", "ops that launched it, the first three; empty = none known", .flags = COLUMN_WIDE)},
	[KERNELS_UNKNOWN_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran")},
	[KERNELS_UNKNOWN_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum of its durations")},
	[KERNELS_UNKNOWN_SHARE] = {COLUMN(PERCENT, "total_pct", "Total %", "total / time of all kernels, known or not")},
)};

static void kernels_unknown_put_name(const struct profile *p, struct table *out, uint32_t id, const struct kernels_unknown_group *x, struct kernel_info k, int64_t all)
{
	bool class = k.class == KERNEL_UNKNOWN, tc = x->no_tc > 0;
	table_row(out);
	table_set_str(out, KERNELS_UNKNOWN_NAME, profile_str(p, id));
	table_set_str(out, KERNELS_UNKNOWN_UNKNOWN, class && tc ? STR("class, Tensor Cores") : class ? STR("class") : STR("Tensor Cores"));
	table_set_str(out, KERNELS_UNKNOWN_CLASS, str_from(kernel_class_name[k.class]));
	table_set_str(out, KERNELS_UNKNOWN_VENDOR, str_from(vendor_name[x->vendor]));
	kernels_unknown_put_ops(out, KERNELS_UNKNOWN_OPS, p, x);
	table_set_i64(out, KERNELS_UNKNOWN_CALLS, (int64_t)x->calls);
	table_set_i64(out, KERNELS_UNKNOWN_TOTAL, x->ns);
	table_set_f64(out, KERNELS_UNKNOWN_SHARE, percent((double)x->ns, (double)all));
}

enum { VENDORS_NAME, VENDORS_UNKNOWN, VENDORS_TOTAL, VENDORS_CLASS, VENDORS_CLASS_SHARE, VENDORS_TC, VENDORS_TC_SHARE };

static const struct section vendors_section = {.by = BY(KERNELS_UNKNOWN_BY_VENDOR), COLUMNS(
	[VENDORS_NAME] = {COLUMN(TEXT, "vendor", "Vendor", "of the device, by its name or the API that launched the kernels")},
	[VENDORS_UNKNOWN] = {COLUMN(COUNT, "unknown_names", "Unknown names", "kernel names whose class no rule tells")},
	[VENDORS_TOTAL] = {COLUMN(NS, "total_ns", "Total", "time of all its kernels, known or not")},
	[VENDORS_CLASS] = {COLUMN(NS, "no_class_ns", "Class unknown", "time of kernels whose class no rule tells")},
	[VENDORS_CLASS_SHARE] = {COLUMN(PERCENT, "no_class_pct", "Class unknown %", "that / total")},
	[VENDORS_TC] = {COLUMN(NS, "no_tc_ns", "TC unknown", "time of kernels of which neither the name nor the types of the op that launched them tell whether they use Tensor Cores")},
	[VENDORS_TC_SHARE] = {COLUMN(PERCENT, "no_tc_pct", "TC unknown %", "that / total")},
)};

static void put_vendors(struct table *out, const struct kernels_unknown_sums *s)
{
	for (unsigned v = 0; v < VENDORS; v++) {
		if (!s->all[v])
			continue;
		table_row(out);
		table_set_str(out, VENDORS_NAME, str_from(vendor_name[v]));
		table_set_i64(out, VENDORS_UNKNOWN, (int64_t)s->names[v]);
		table_set_i64(out, VENDORS_TOTAL, s->all[v]);
		table_set_i64(out, VENDORS_CLASS, s->no_class[v]);
		table_set_f64(out, VENDORS_CLASS_SHARE, percent((double)s->no_class[v], (double)s->all[v]));
		table_set_i64(out, VENDORS_TC, s->no_tc[v]);
		table_set_f64(out, VENDORS_TC_SHARE, percent((double)s->no_tc[v], (double)s->all[v]));
	}
}

static int kernels_unknown_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	bool by_vendor = args->variant->by == KERNELS_UNKNOWN_BY_VENDOR, any = false;
	int64_t all = 0;
	struct kernels_unknown_group *v = kernels_unknown_collect(p, &w, &all);
	struct kernels_unknown_sums s = {0};
	section_start(by_vendor ? &vendors_section : &kernels_unknown_section, args, 0, out);
	for (uint32_t id = 0; id < p->strings.n; id++) {
		const struct kernels_unknown_group *x = &v[id];
		any |= x->seen;
		if (!x->seen)
			continue;
		struct kernel_info k = *name_kernel(p, id);
		bool class = k.class == KERNEL_UNKNOWN, tc = x->no_tc > 0;
		add_sums(&s, x, class);
		if ((class || tc) && !by_vendor)
			kernels_unknown_put_name(p, out, id, x, k, all);
	}
	mem_free(v);
	if (!any)
		return w.all ? err_set(e, ERR_DATA, "the input holds no kernels") : err_set(e, ERR_DATA, "the steps asked for have no kernel");
	if (by_vendor)
		put_vendors(out, &s);
	table_note(out, "kernels %lld ns = of a known class %lld + unknown %lld", (long long)all, (long long)(all - s.no_class[VENDORS]),
	           (long long)s.no_class[VENDORS]);
	table_note(out, "kernels %lld ns = Tensor Core use known %lld + unknown %lld", (long long)all, (long long)(all - s.no_tc[VENDORS]),
	           (long long)s.no_tc[VENDORS]);
	if (out->n_rows && (s.no_class[VENDORS] || s.no_tc[VENDORS]))
		table_note(out, "a rule is a line in src/op/kernels.def: KERNEL(\"part of the name\", CLASS, YES, NO or UNKNOWN); the first that "
		           "matches holds");
	return table_sort(out, STR("total_ns"), true, e);
}

static const struct report_variant kernels_unknown_variants[] = {
	{.group_by = "name", .by = KERNELS_UNKNOWN_BY_NAME},
	{.group_by = "vendor", .by = KERNELS_UNKNOWN_BY_VENDOR},
	{0},
};

const struct report report_kernels_unknown = {
	.name = "kernels-unknown",
	.title = "Kernels that no rule knows",
	.asks = ASKS_INPUT,
	.help = "Kernels whose class cannot be told from their name, or whose use of Tensor Cores neither from their name nor from their op's types, with the time at stake and the ops that "
	        "launched them. The notes say which share of the kernel time is known. An empty table: all are. --group-by=vendor: how much of each vendor's.",
	.variants = kernels_unknown_variants,
	.sections = (const struct section *const[]){&kernels_unknown_section, &vendors_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = kernels_unknown_run,
};
