/* Collectives as the devices saw them: which, in which group, how many bytes, how long, and how much of it nothing else hid.
 *
 * On each GPU: exposed = union of the kernels of collectives - union of all its other work. Where such kernels overlap, a moment counts for the
 * one that began first, so that the rows add up to the union. Bandwidths are those of nccl-tests (op/comm.c). */
#include "analysis/costs/costs.h"
#include "analysis/names/names.h"
#include "analysis/recording.h"
#include "analysis/time/gpus.h"
#include "analysis/time/interval.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "op/cost_call.h"
#include "query/window.h"
#include "report/parts/cost_table.h"

enum comm_grouping { COMM_BY_NAME, COMM_BY_SIZE, COMM_BY_KERNEL };

struct comm_key {
	uint32_t name, group, dtype, ranks; /* ids of `texts`, except for ranks */
	int64_t device, bytes;              /* bytes: by size only */
};

struct comm_row {
	struct comm_key key;
	uint64_t calls, sized, wired;       /* all calls; calls of known size; calls of known bytes on the wire */
	int64_t ns, exposed, min, max, sized_ns, wired_ns;
	int64_t bytes, wire;                /* COST_UNKNOWN: more than fit 64 bits */
};

struct comm {
	const struct profile *p;
	const struct window *w;
	struct costs *costs;
	enum comm_grouping by;
	bool has_device;
	int64_t device;
	uint8_t *is;             /* by gpu_op row: a collective */
	struct gpus gpus;
	struct intervals *other; /* by GPU: all work of the GPU except collectives */
	struct intern texts, keys;
	struct comm_row *v;
	uint32_t n, cap;
};

static int64_t comm_end_of(const struct profile *p, uint32_t g)
{
	return p->gpu_op.start_ns[g] + p->gpu_op.dur_ns[g];
}

/* The kind of collective: the first piece of "all_reduce,elements=...". Where nothing says the kind, the kernel's own name up to its parameters. */
static struct str comm_name_of(const struct comm *x, const struct cost *cost, uint32_t g)
{
	struct str s;
	if (cost && cost->params.n && x->by != COMM_BY_KERNEL) {
		struct str rest = cost->params;
		str_split(&rest, ',', &s);
		return s;
	}
	if (x->by != COMM_BY_KERNEL && profile_arg(x->p, x->p->gpu_op.args[g], ARG_COLLECTIVE, &s) && s.n)
		return s;
	s = profile_str(x->p, x->p->gpu_op.name[g]);
	const char *args = memchr(s.p, '(', s.n);
	return args && args > s.p ? (struct str){s.p, (size_t)(args - s.p)} : s;
}

/* As the kernel says, else the op that launched it: the description of the group, else its name. torch calls a group "undefined" that has
 * no description. */
static struct str comm_group_of(const struct comm *x, uint32_t g)
{
	struct str s;
	uint32_t op = x->costs->op[g], args[2] = {x->p->gpu_op.args[g], op != ROW_NONE ? x->p->span.args[op] : 0};
	for (int i = 0; i < 2; i++)
		if (profile_arg(x->p, args[i], ARG_GROUP_DESCRIPTION, &s) && s.n && !str_eqc(s, "undefined"))
			return s;
	for (int i = 0; i < 2; i++)
		if (profile_arg(x->p, args[i], ARG_GROUP_NAME, &s) && s.n)
			return s;
	return STR("");
}

static const struct cost *comm_cost_of_kernel(const struct comm *x, uint32_t g)
{
	uint32_t i = x->costs->of_gpu[g];
	return i != ROW_NONE && x->costs->cost[i].class == OP_COMM ? &x->costs->cost[i] : NULL;
}

/* Bytes of the message. COST_UNKNOWN where its size or type was not recorded, or the bytes do not fit 64 bits. */
static int64_t message_bytes(const struct cost *c)
{
	return c ? c->message_bytes : COST_UNKNOWN;
}

static struct comm_row *comm_row_at(struct comm *x, const struct comm_key *k)
{
	uint32_t before = x->keys.n, at = intern_put(&x->keys, (const char *)k, sizeof *k) - 1;
	if (x->keys.n > before)
		MEM_PUSH(x->v, x->n, x->cap, (struct comm_row){.key = *k, .min = INT64_MAX});
	return &x->v[at];
}

/* Index of the kernel's GPU; gpus.n where the input does not tell which of several GPUs it is. */
static uint32_t gpu_of(const struct comm *x, uint32_t g)
{
	uint32_t gpu = gpus_of(&x->gpus, x->p, g);
	return gpu == GPUS_NONE ? x->gpus.n : gpu;
}

static int32_t comm_device_of(const struct comm *x, uint32_t gpu)
{
	return gpu < x->gpus.n ? x->gpus.device[gpu] : INT32_MIN;
}

static void comm_add(struct comm *x, uint32_t g, uint32_t gpu, int64_t exposed)
{
	const struct cost *c = comm_cost_of_kernel(x, g);
	int64_t ranks = 0, bytes = message_bytes(c), ns = x->p->gpu_op.dur_ns[g];
	struct comm_key k;
	memset(&k, 0, sizeof k); /* compared as bytes */
	if (c)
		cost_params_number(c->params, "ranks", &ranks);
	k.name = intern_str(&x->texts, comm_name_of(x, c, g));
	k.group = intern_str(&x->texts, comm_group_of(x, g));
	k.dtype = c && c->dtype ? intern_str(&x->texts, str_from(dtype_name(c->dtype))) : 0;
	k.ranks = ranks > 0 && ranks < UINT32_MAX ? (uint32_t)ranks : 0;
	k.device = comm_device_of(x, gpu);
	k.bytes = x->by == COMM_BY_SIZE ? bytes : 0;
	struct comm_row *r = comm_row_at(x, &k);
	r->calls++;
	r->ns += ns;
	r->exposed += exposed;
	r->min = ns < r->min ? ns : r->min;
	r->max = ns > r->max ? ns : r->max;
	bool counted = c && x->costs->parts[g]; /* one kernel of an op has the bytes of the whole op */
	if (bytes >= 0 && counted) {
		r->sized++;
		r->bytes = cost_add(r->bytes, bytes);
		r->sized_ns += ns;
	}
	if (counted && c->wire_bytes >= 0) {
		r->wired++;
		r->wire = cost_add(r->wire, c->wire_bytes);
		r->wired_ns += ns;
	}
}

static void find_other(struct comm *x)
{
	const struct profile *p = x->p;
	x->other = NEW_ARRAY(x->gpus.n + 1, struct intervals);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (!x->is[g])
			intervals_add(&x->other[gpu_of(x, g)], p->gpu_op.start_ns[g], comm_end_of(p, g));
	for (uint32_t i = 0; i <= x->gpus.n; i++)
		intervals_normalise(&x->other[i]);
}

/* One GPU: order[0 .. n) are its collectives by start. */
static int64_t comm_add_device(struct comm *x, const struct sort_item *order, uint32_t n, uint32_t gpu)
{
	const struct profile *p = x->p;
	struct intervals alone = {0};
	for (uint32_t i = 0; i < n; i++)
		intervals_add(&alone, p->gpu_op.start_ns[order[i].row], comm_end_of(p, order[i].row));
	intervals_normalise(&alone);
	intervals_subtract(&alone, &x->other[gpu], &alone);
	int64_t done = INT64_MIN, exposed = intervals_length(&alone);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = order[i].row;
		int64_t start = p->gpu_op.start_ns[g], end = comm_end_of(p, g);
		start = start > done ? start : done;
		comm_add(x, g, gpu, start < end ? intervals_length_within(&alone, start, end) : 0);
		done = end > done ? end : done;
	}
	intervals_release(&alone);
	return exposed;
}

/* Collectives that count, by GPU, then start. */
static struct sort_item *comm_find(struct comm *x, uint32_t *n)
{
	const struct profile *p = x->p;
	struct sort_item *v = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	*n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.kind[g] != GPU_KERNEL || !name_is(p, p->gpu_op.name[g], NAME_COMM_KERNEL))
			continue;
		x->is[g] = 1; /* collectives of other steps, too: a collective does not hide another one */
		if (window_has_gpu(x->w, p, g) && (!x->has_device || comm_device_of(x, gpu_of(x, g)) == x->device))
			v[(*n)++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	}
	sort_items(v, *n);
	for (uint32_t i = 0; i < *n; i++)
		v[i] = (struct sort_item){gpu_of(x, v[i].row), v[i].row, i};
	sort_items(v, *n);
	return v;
}

enum {
	COMM_DEVICE, COMM_NAME, COMM_GROUP, COMM_RANKS, COMM_DTYPE, COMM_SIZE, COMM_CALLS, COMM_BYTES, COMM_TOTAL, COMM_EXPOSED, COMM_EXPOSED_PCT, COMM_MEAN, COMM_MIN, COMM_MAX,
	COMM_ALG, COMM_BUS
};

static const struct section comm_section = {COLUMNS(
	[COMM_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_GROUP)},
	[COMM_NAME] = {COLUMN(TEXT, "collective", "Collective", "what it does: all_reduce, all_gather, ...; the kernel's name where nothing says more",
	                      .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[COMM_GROUP] = {COLUMN(TEXT, "process_group", "Group", "process group, by the name that torch gives it; empty = not recorded")},
	[COMM_RANKS] = {COLUMN(NUMBER, "ranks", "Ranks", "ranks of the group; empty = not recorded")},
	[COMM_DTYPE] = {COLUMN(TEXT, "dtype", "Type", "of the elements; empty = not recorded", .flags = COLUMN_MINOR)},
	[COMM_SIZE] = {COLUMN(BYTES, "message_bytes", "Message", "bytes of one call's message; empty = not recorded", .flags = COLUMN_GROUP), .by = BY(COMM_BY_SIZE)},
	[COMM_CALLS] = {COLUMN(COUNT, "calls", "Calls", "kernels of it that ran", .flags = COLUMN_ANSWER)},
	[COMM_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "sum of the messages, as nccl-tests counts their size; empty = of no call known, or more than fit 64 bits",
	                       .flags = COLUMN_ANSWER)},
	[COMM_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum of the durations of its kernels: transfer, and waiting for ranks that come later", .flags = COLUMN_ANSWER)},
	[COMM_EXPOSED] = {COLUMN(NS, "exposed_ns", "Exposed", "while its GPU did nothing else; a moment in which several collectives ran counts for the one that began "
	                         "first", .flags = COLUMN_ANSWER)},
	[COMM_EXPOSED_PCT] = {COLUMN(PERCENT, "exposed_pct", "Exposed %", "exposed / total")},
	[COMM_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "mean duration")},
	[COMM_MIN] = {COLUMN(NS, "min_ns", "Min", "shortest duration: the nearest to a transfer without waiting")},
	[COMM_MAX] = {COLUMN(NS, "max_ns", "Max", "longest duration", .flags = COLUMN_MINOR)},
	[COMM_ALG] = {COLUMN(REAL, "algorithm_gb_per_s", "Alg. GB/s", "bytes / time of the calls of known size, as nccl-tests has it, waiting included",
	                     .flags = COLUMN_DETAIL, .digits = 2)},
	[COMM_BUS] = {COLUMN(REAL, "bus_gb_per_s", "Bus GB/s", "bytes that a rank sends / time, as nccl-tests has it, waiting included", .flags = COLUMN_MINOR,
	                     .digits = 2)},
)};

static void comm_put_row(const struct comm *x, struct table *t, const struct comm_row *r)
{
	table_row(t);
	if (r->key.device != INT32_MIN)
		table_set_i64(t, COMM_DEVICE, r->key.device);
	table_set_str_copy(t, COMM_NAME, intern_get(&x->texts, r->key.name));
	if (r->key.group)
		table_set_str_copy(t, COMM_GROUP, intern_get(&x->texts, r->key.group));
	if (r->key.ranks)
		table_set_i64(t, COMM_RANKS, r->key.ranks);
	if (r->key.dtype)
		table_set_str_copy(t, COMM_DTYPE, intern_get(&x->texts, r->key.dtype));
	if (r->key.bytes >= 0)
		table_set_i64(t, COMM_SIZE, r->key.bytes);
	table_set_i64(t, COMM_CALLS, (int64_t)r->calls);
	if (r->sized && r->bytes >= 0)
		table_set_i64(t, COMM_BYTES, r->bytes);
	table_set_i64(t, COMM_TOTAL, r->ns);
	table_set_i64(t, COMM_EXPOSED, r->exposed);
	table_set_f64(t, COMM_EXPOSED_PCT, percent((double)r->exposed, (double)r->ns));
	table_set_f64(t, COMM_MEAN, (double)r->ns / (double)r->calls);
	table_set_i64(t, COMM_MIN, r->min);
	table_set_i64(t, COMM_MAX, r->max);
	if (r->sized && r->bytes >= 0 && r->sized_ns > 0)
		table_set_f64(t, COMM_ALG, (double)r->bytes / (double)r->sized_ns);
	if (r->wired && r->wire >= 0 && r->wired_ns > 0)
		table_set_f64(t, COMM_BUS, (double)r->wire / (double)r->wired_ns);
}

static int comm_put(const struct comm *x, const struct report_args *args, struct table *t, int64_t exposed, unsigned gpus, struct err *e)
{
	int64_t all = 0;
	uint64_t calls = 0, sized = 0;
	section_start(&comm_section, args, 0, t);
	for (uint32_t i = 0; i < x->n; i++) {
		comm_put_row(x, t, &x->v[i]);
		all += x->v[i].ns;
		calls += x->v[i].calls;
		sized += x->v[i].sized;
	}
	if (gpus > 1)
		table_warn(t, "a collective's kernel runs from when its GPU reaches it until all have: its time holds waiting for slower ranks. `opscope advise` tells waiting from "
		           "transfer where all GPUs of the job are in the recording");
	else
		table_warn(t, "a collective's kernel runs from when this rank reaches it until all have: its time holds waiting for slower ranks, which one rank's trace cannot tell "
		           "from the transfer");
	table_note(t, "collectives %lld ns; exposed %lld ns%s", (long long)all, (long long)exposed, gpus > 1 ? ", summed over the GPUs, each by itself" : "");
	if (sized < calls)
		table_note(t, "the size of the message is known for %llu of %llu kernels; bytes and rates are of these", (unsigned long long)sized, (unsigned long long)calls);
	return table_sort(t, STR("total_ns"), true, e);
}

static int comm_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct comm x = {.p = p, .w = &w, .by = (enum comm_grouping)args->variant->by, .has_device = args->device != NULL};
	if (args->device && !str_to_i64(str_from(args->device), &x.device))
		return err_set(e, ERR_USAGE, "--device=%s: a GPU number was expected", args->device);
	x.is = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	gpus_find(p, &x.gpus);
	x.costs = costs_new(p, &cost_own);
	intern_init(&x.texts);
	intern_init(&x.keys);
	uint32_t n;
	unsigned gpus = 0;
	int64_t exposed = 0;
	struct sort_item *v = comm_find(&x, &n);
	find_other(&x);
	for (uint32_t from = 0, to; from < n; from = to, gpus++) {
		for (to = from + 1; to < n && v[to].key == v[from].key; to++)
			;
		exposed += comm_add_device(&x, v + from, to - from, (uint32_t)v[from].key);
	}
	int rc = n ? comm_put(&x, args, out, exposed, gpus, e) : -1;
	if (!n && (args->device || !w.all))
		err_set(e, ERR_DATA, "no collective ran on that device or in those steps");
	else if (!n)
		err_set(e, ERR_DATA, "no kernel in the input is of a collective (nccl, rccl, ...): what the host's own collectives (gloo, MPI, UCC) cost is in `overlap` and, over the ranks, in `collectives`");
	mem_free(v);
	for (uint32_t i = 0; i <= x.gpus.n; i++)
		intervals_release(&x.other[i]);
	mem_free(x.other);
	mem_free(x.is);
	mem_free(x.v);
	gpus_release(&x.gpus);
	costs_free(x.costs);
	intern_release(&x.texts);
	intern_release(&x.keys);
	return rc;
}

static const struct report_variant comm_variants[] = {
	{.group_by = "name", .by = COMM_BY_NAME},
	{.group_by = "size", .by = COMM_BY_SIZE},
	{.group_by = "kernel", .by = COMM_BY_KERNEL},
	{0},
};

const struct report report_comm = {
	.name = "comm",
	.title = "Collectives",
	.asks = ASKS_MOVE,
	.also = "communication collectives collective nccl rccl allreduce distributed",
	.help = "What communication between GPUs cost: each kind of collective by process group and GPU, with its bytes, calls, time and the exposed time, in which the GPU did "
	        "nothing else. --group-by=size divides by the size of the message, too; --group-by=kernel by the kernel's name. A rank's time holds waiting "
	        "for the ranks that reach the collective later; the shortest call is the nearest to the transfer alone, and "
	        "`collectives` tells both apart with the recordings of all ranks.",
	.variants = comm_variants,
	.sections = (const struct section *const[]){&comm_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS | REPORT_DEVICE,
	.timeline = true,
	.run = comm_run,
};
