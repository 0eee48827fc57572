/* Triton kernels of torch.compile: which generated file each comes from and with which parameters it was launched. */
#include "base/mem.h"
#include "query/window.h"

enum {
	TRITON_KERNEL, TRITON_OP, TRITON_TOTAL, TRITON_CALLS, TRITON_MEAN, TRITON_MIN, TRITON_MAX, TRITON_FILE, TRITON_HASH, TRITON_BACKEND, TRITON_GRID,
	TRITON_WARPS, TRITON_STAGES, TRITON_PARAMETERS
};

static const struct section triton_section = {COLUMNS(
	[TRITON_KERNEL] = {COLUMN(TEXT, "kernel", "Kernel", "name of the device kernel", .flags = COLUMN_KERNEL)},
	[TRITON_OP] = {COLUMN(TEXT, "operator", "Operator", "op that launched it", .flags = COLUMN_DETAIL)},
	[TRITON_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum of its durations", .flags = COLUMN_ANSWER)},
	[TRITON_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran", .flags = COLUMN_ANSWER)},
	[TRITON_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "mean duration")},
	[TRITON_MIN] = {COLUMN(NS, "min_ns", "Min", "shortest duration", .flags = COLUMN_MINOR)},
	[TRITON_MAX] = {COLUMN(NS, "max_ns", "Max", "longest duration", .flags = COLUMN_MINOR)},
	[TRITON_FILE] = {COLUMN(TEXT, "kernel_file", "File", "generated source file", .flags = COLUMN_WIDE | COLUMN_PATH | COLUMN_ANSWER)},
	[TRITON_HASH] = {COLUMN(TEXT, "kernel_hash", "Hash", "hash of the generated code", .flags = COLUMN_DETAIL)},
	[TRITON_BACKEND] = {COLUMN(TEXT, "kernel_backend", "Backend", "code generator", .flags = COLUMN_DETAIL)},
	[TRITON_GRID] = {COLUMN(TEXT, "grid", "Grid", "launch grid as the compiler wrote it")},
	[TRITON_WARPS] = {COLUMN(TEXT, "num_warps", "Warps", "warps of a program")},
	[TRITON_STAGES] = {COLUMN(TEXT, "num_stages", "Stages", "software pipeline stages")},
	[TRITON_PARAMETERS] = {COLUMN(TEXT, "kernel_kwargs", "Parameters", "compile-time parameters", .flags = COLUMN_WIDE | COLUMN_MINOR)},
)};

/* Arguments that the compiler writes on the launching op, in the order of the columns from TRITON_FILE on. */
static const enum arg_key triton_arguments[] = {
	ARG_KERNEL_FILE, ARG_KERNEL_HASH, ARG_KERNEL_BACKEND, ARG_KERNEL_GRID, ARG_KERNEL_WARPS, ARG_KERNEL_STAGES, ARG_KERNEL_PARAMETERS,
};
enum { TRITON_ARGUMENTS = sizeof triton_arguments / sizeof triton_arguments[0] };

/* Kernels that an op with these arguments launched. */
struct triton_key {
	uint32_t kernel, op, value[TRITON_ARGUMENTS];
};

struct triton_group {
	struct triton_key key;
	uint64_t calls;
	int64_t total, min, max;
};

static void triton_put(const struct profile *p, const struct report_args *args, struct table *out, const struct triton_group *v, uint32_t n)
{
	section_start(&triton_section, args, 0, out);
	for (uint32_t i = 0; i < n; i++) {
		const struct triton_key *k = &v[i].key;
		table_row(out);
		table_set_str(out, TRITON_KERNEL, profile_str(p, k->kernel));
		if (k->op)
			table_set_str(out, TRITON_OP, profile_str(p, k->op));
		table_set_i64(out, TRITON_TOTAL, v[i].total);
		table_set_i64(out, TRITON_CALLS, (int64_t)v[i].calls);
		table_set_f64(out, TRITON_MEAN, (double)v[i].total / (double)v[i].calls);
		table_set_i64(out, TRITON_MIN, v[i].min);
		table_set_i64(out, TRITON_MAX, v[i].max);
		for (unsigned a = 0; a < TRITON_ARGUMENTS; a++)
			if (k->value[a])
				table_set_str(out, TRITON_FILE + a, profile_str(p, k->value[a]));
	}
}

/* Generated kernels are told by their name, or by the file that their op names. */
static bool is_triton(const struct profile *p, uint32_t gpu, uint32_t file)
{
	return p->gpu_op.kind[gpu] == GPU_KERNEL &&
	       (file || str_starts(profile_str(p, p->gpu_op.name[gpu]), STR("triton_")));
}

static int triton_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	uint32_t cap = 0;
	struct intern groups;
	intern_init(&groups);
	struct triton_group *v = NULL;
	int64_t triton_ns = 0, all_ns = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || !window_has_gpu(&w, p, g))
			continue;
		int64_t ns = p->gpu_op.dur_ns[g];
		all_ns += ns;
		uint32_t op = p->gpu_op.op[g];
		struct triton_key k = {.kernel = p->gpu_op.name[g], .op = op == ROW_NONE ? 0 : p->span.name[op]};
		for (unsigned a = 0; op != ROW_NONE && a < TRITON_ARGUMENTS; a++)
			k.value[a] = profile_arg_id(p, p->span.args[op], triton_arguments[a]);
		if (!is_triton(p, g, k.value[0]))
			continue;
		triton_ns += ns;
		uint32_t before = groups.n, at = intern_put(&groups, (const char *)&k, sizeof k) - 1;
		if (groups.n > before) {
			MEM_GROW(v, cap, at + 1);
			v[at] = (struct triton_group){.key = k, .min = INT64_MAX};
		}
		v[at].calls++;
		v[at].total += ns;
		v[at].min = ns < v[at].min ? ns : v[at].min;
		v[at].max = ns > v[at].max ? ns : v[at].max;
	}
	int rc = 0;
	if (groups.n == 1) {
		rc = err_set(e, ERR_DATA, "the trace holds no Triton kernels: they come from torch.compile and hand-written Triton code");
	} else {
		triton_put(p, args, out, v, groups.n - 1);
		rc = table_sort(out, STR("total_ns"), true, e);
		table_note(out, "kernels %lld ns = Triton %lld + others %lld", (long long)all_ns, (long long)triton_ns,
		           (long long)(all_ns - triton_ns));
	}
	intern_release(&groups);
	mem_free(v);
	return rc;
}

const struct report report_triton = {
	.name = "triton",
	.title = "Triton kernels",
	.asks = ASKS_FASTER,
	.also = "inductor compile compiled",
	.help = "Kernels that torch.compile generated or that were written in Triton: the file each was compiled from, its launch grid, "
	        "warps, pipeline stages and compile-time parameters, and its time.",
	.sections = (const struct section *const[]){&triton_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = triton_run,
};
