/* Copies and sets of memory on devices: how many, how much, how fast, by direction and kind of memory, as `nsys stats` has them in
 * cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum. */
#include "analysis/time/copy_rates.h"
#include "base/mem.h"
#include "base/spread.h"
#include "gpu/gpu_state.h"
#include "query/stats.h"
#include "query/window.h"
#include "report/parts/copy_changes.h"

#include <math.h>
#include <sys/param.h>

/* What the grouping does not ask for is 0. */
struct memcpy_key {
	uint32_t name, kind, op;   /* string id of the name as the input has it; enum gpu_kind; string id, 0 = none */
	int32_t device;
};

/* Sums over the operations of a group whose bytes are known. */
struct moved {
	uint64_t ops;
	int64_t bytes, ns, min, max;
	bool too_many;   /* the sum is beyond 64 bits: `bytes` says nothing */
	uint32_t n_rates, first_rate; /* of those that took time: in memcpy_rates.by_group */
};

/* GB/s of each operation whose bytes are known and that took time. */
struct memcpy_rates {
	double *gbs, *by_group;
	uint32_t *group, n;
};

/* The kinds of memory in "Memcpy HtoD (Pageable -> Device)": before and behind the arrow. "Memset (Device)" has only the one behind. Empty = not told. */
static void memory_kinds(struct str name, struct str *from, struct str *to)
{
	*from = *to = (struct str){"", 0};
	ptrdiff_t open = str_find(name, STR("(")), arrow = str_find(name, STR(" -> "));
	if (open < 0 || name.p[name.n - 1] != ')')
		return;
	struct str in = {name.p + open + 1, name.n - (size_t)open - 2};
	if (arrow > open) {
		*from = (struct str){in.p, (size_t)(arrow - open - 1)};
		in.p += from->n + 4;
		in.n -= from->n + 4;
	}
	*to = in;
}

static struct memcpy_key memcpy_key_of(const struct profile *p, enum memcpy_grouping by, uint32_t i)
{
	const struct gpu_ops *g = &p->gpu_op;
	struct memcpy_key k = {.name = g->name[i], .kind = g->kind[i]};
	if (by == MEMCPY_BY_DEVICE)
		k.device = p->launch.device[g->launch[i]];
	if (by == MEMCPY_BY_OP && g->op[i] != ROW_NONE)
		k.op = p->span.name[g->op[i]];
	return k;
}

static void add_moved(struct moved *m, int64_t bytes, int64_t ns)
{
	if (bytes == ID_NONE)
		return;
	m->min = m->ops ? MIN(m->min, bytes) : bytes;
	m->max = m->ops ? MAX(m->max, bytes) : bytes;
	m->ops++;
	m->too_many |= __builtin_add_overflow(m->bytes, bytes, &m->bytes);
	m->ns += ns;
}

enum {
	MEMCPY_KIND, MEMCPY_DIRECTION, MEMCPY_FROM, MEMCPY_TO, MEMCPY_NAME, MEMCPY_DEVICE, MEMCPY_OP, MEMCPY_STATS, MEMCPY_BYTES = MEMCPY_STATS + STATS_COLUMNS,
	MEMCPY_RATE, MEMCPY_MEAN, MEMCPY_MIN, MEMCPY_MAX, MEMCPY_RATE_MEAN, MEMCPY_RATE_SD, MEMCPY_RATE_MIN, MEMCPY_RATE_P25, MEMCPY_RATE_MEDIAN, MEMCPY_RATE_P75,
	MEMCPY_RATE_MAX
};

static const struct section memcpy_section = {.by = BY(MEMCPY_BY_KIND) | BY(MEMCPY_BY_DEVICE) | BY(MEMCPY_BY_OP), COLUMNS(
	[MEMCPY_KIND] = {COLUMN(TEXT, "operation", "Operation", "memcpy or memset")},
	[MEMCPY_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "H = host, D = device, P = another device, A = array; empty = not told")},
	[MEMCPY_FROM] = {COLUMN(TEXT, "from_memory", "From", "kind of memory read: Pageable, Pinned, Device, ...; empty = not told")},
	[MEMCPY_TO] = {COLUMN(TEXT, "to_memory", "To", "kind of memory written; empty = not told")},
	[MEMCPY_NAME] = {COLUMN(TEXT, "name", "Name", "as the input has it", .flags = COLUMN_DETAIL)},
	[MEMCPY_DEVICE] = {COLUMN(NUMBER, "device", "Device", "ordinal of the device"), .by = BY(MEMCPY_BY_DEVICE)},
	[MEMCPY_OP] = {COLUMN(TEXT, "operator", "Operator", "op that launched it; empty = none known"), .by = BY(MEMCPY_BY_OP)},
	STATS_COLUMN_LIST(MEMCPY_STATS),
	[MEMCPY_BYTES] = {COLUMN(BYTES, "bytes", "Bytes", "bytes moved or set, where the input states them", .flags = COLUMN_ANSWER)},
	[MEMCPY_RATE] = {COLUMN(REAL, "gb_per_s", "GB/s", "bytes / time of the operations whose bytes are stated, in 10^9 bytes", .digits = 2)},
	[MEMCPY_MEAN] = {COLUMN(MEAN_BYTES, "mean_bytes", "Mean size", "mean of the stated sizes")},
	[MEMCPY_MIN] = {COLUMN(BYTES, "min_bytes", "Min size", "smallest stated size", .flags = COLUMN_MINOR)},
	[MEMCPY_MAX] = {COLUMN(BYTES, "max_bytes", "Max size", "largest stated size", .flags = COLUMN_MINOR)},
	[MEMCPY_RATE_MEAN] = {COLUMN(REAL, "mean_gb_per_s", "GB/s mean", "mean over the operations, each counting once, of bytes / time; of those that took time", .digits = 2, .flags = COLUMN_DETAIL)},
	[MEMCPY_RATE_SD] = {COLUMN(REAL, "stddev_gb_per_s", "GB/s std dev", "standard deviation of these rates as a sample (n - 1); 0 of one", .digits = 2, .flags = COLUMN_DETAIL)},
	[MEMCPY_RATE_MIN] = {COLUMN(REAL, "min_gb_per_s", "GB/s min", "lowest of these rates", .digits = 2, .flags = COLUMN_DETAIL)},
	[MEMCPY_RATE_P25] = {COLUMN(REAL, "p25_gb_per_s", "GB/s 25 %", "their 25th percentile, between two values in proportion", .digits = 2, .flags = COLUMN_DETAIL)},
	[MEMCPY_RATE_MEDIAN] = {COLUMN(REAL, "median_gb_per_s", "GB/s median", "their median; of an even number the mean of the two in the middle", .digits = 2, .flags = COLUMN_DETAIL)},
	[MEMCPY_RATE_P75] = {COLUMN(REAL, "p75_gb_per_s", "GB/s 75 %", "their 75th percentile, between two values in proportion", .digits = 2, .flags = COLUMN_DETAIL)},
	[MEMCPY_RATE_MAX] = {COLUMN(REAL, "max_gb_per_s", "GB/s max", "highest of these rates", .digits = 2, .flags = COLUMN_DETAIL)},
)};

/* Deals the rates out to their groups. */
static void deal_rates(struct memcpy_rates *r, struct moved *moved, uint32_t groups)
{
	uint32_t next = 0;
	for (uint32_t i = 0; i < r->n; i++)
		moved[r->group[i]].n_rates++;
	for (uint32_t g = 0; g < groups; g++) {
		moved[g].first_rate = next;
		next += moved[g].n_rates;
		moved[g].n_rates = 0;
	}
	for (uint32_t i = 0; i < r->n; i++) {
		struct moved *m = &moved[r->group[i]];
		r->by_group[m->first_rate + m->n_rates++] = r->gbs[i];
	}
}

static void put_rates(struct table *t, const struct memcpy_rates *r, const struct moved *m)
{
	struct spread s = spread_of(&r->by_group[m->first_rate], m->n_rates);
	const double v[] = {s.mean, s.sd, s.min, s.p25, s.median, s.p75, s.max};
	for (unsigned i = 0; s.n && i < sizeof v / sizeof *v; i++)
		table_set_f64(t, MEMCPY_RATE_MEAN + i, v[i]);
}

static void memcpy_put(const struct profile *p, const struct report_args *args, struct stats *s, const struct moved *moved, const struct memcpy_rates *rates,
                       struct table *out)
{
	section_start(&memcpy_section, args, 0, out);
	for (uint32_t g = 0; g < s->n; g++) {
		const struct moved *m = &moved[g];
		struct str from, to;
		struct memcpy_key k;
		stats_key(s, g, &k, sizeof k);
		struct str name = profile_str(p, k.name);
		memory_kinds(name, &from, &to);
		table_row(out);
		table_set_str(out, MEMCPY_KIND, str_from(gpu_kind_name[k.kind]));
		table_set_str(out, MEMCPY_DIRECTION, str_from(copy_direction(name)));
		table_set_str(out, MEMCPY_FROM, from);
		table_set_str(out, MEMCPY_TO, to);
		table_set_str(out, MEMCPY_NAME, name);
		if (k.device != INT32_MIN)
			table_set_i64(out, MEMCPY_DEVICE, k.device);
		if (k.op)
			table_set_str(out, MEMCPY_OP, profile_str(p, k.op));
		stats_put(out, MEMCPY_STATS, s, g);
		if (!m->ops)
			continue;
		if (!m->too_many) {
			table_set_i64(out, MEMCPY_BYTES, m->bytes);
			table_set_f64(out, MEMCPY_RATE, m->ns > 0 ? (double)m->bytes / (double)m->ns : NAN);
			table_set_f64(out, MEMCPY_MEAN, (double)m->bytes / (double)m->ops);
		}
		table_set_i64(out, MEMCPY_MIN, m->min);
		table_set_i64(out, MEMCPY_MAX, m->max);
		put_rates(out, rates, m);
	}
}

/* Warns of rates beyond the GPU's memory and of sums beyond 64 bits: the input misstates sizes or times. */
static void note_impossible(const struct profile *p, const struct moved *moved, uint32_t n, struct table *out)
{
	double peak = 0, most = 0;
	uint32_t too_many = 0;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		double b = gpu_peak_bytes(gpu_of_device(p, i));
		peak = b > peak ? b : peak;
	}
	for (uint32_t g = 0; g < n; g++) {
		too_many += moved[g].too_many;
		double rate = moved[g].ns > 0 && !moved[g].too_many ? (double)moved[g].bytes / (double)moved[g].ns : 0;
		most = rate > most ? rate : most;
	}
	if (too_many)
		table_warn(out, "bytes of %u %s are not known: the stated sizes add up to more than 2^63", too_many,
		           too_many == 1 ? "row" : "rows");
	if (peak > 0 && most * 1e9 > peak)
		table_warn(out, "cannot be: %.0f GB/s is beyond the %.0f GB/s of the GPU's memory. The input misstates sizes or times of such rows, or a cache "
		                "took the data; the rows are shown as computed", most, peak / 1e9);
}

static int memcpy_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	enum memcpy_grouping by = (enum memcpy_grouping)args->variant->by;
	struct stats s = {0};
	struct moved *moved = NULL, all = {0};
	uint32_t cap = 0, n = p->gpu_op.rows.n;
	struct memcpy_rates rates = {NEW_ARRAY_RAW(n, double), NEW_ARRAY_RAW(n, double), NEW_ARRAY_RAW(n, uint32_t), 0};
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (p->gpu_op.kind[i] == GPU_KERNEL || !window_has_gpu(&w, p, i))
			continue;
		struct memcpy_key k = memcpy_key_of(p, by, i);
		uint32_t before = s.n, g = stats_add(&s, &k, sizeof k, p->gpu_op.dur_ns[i]);
		if (s.n > before) {
			MEM_GROW(moved, cap, s.n);
			moved[g] = (struct moved){0};
		}
		int64_t bytes = p->launch.bytes[p->gpu_op.launch[i]];
		add_moved(&moved[g], bytes, p->gpu_op.dur_ns[i]);
		if (bytes != ID_NONE && p->gpu_op.dur_ns[i] > 0) {
			rates.group[rates.n] = g;
			rates.gbs[rates.n++] = (double)bytes / (double)p->gpu_op.dur_ns[i];
		}
		add_moved(&all, bytes, p->gpu_op.dur_ns[i]);
	}
	int rc = 0;
	if (!s.n) {
		rc = w.all ? err_set(e, ERR_DATA, "the input holds no copies or sets of memory on a device")
		           : err_set(e, ERR_DATA, "the steps asked for have no copy or set of memory");
	} else {
		stats_finish(&s);
		deal_rates(&rates, moved, s.n);
		memcpy_put(p, args, &s, moved, &rates, out);
		table_note(out, "%llu operations, %lld ns = with stated bytes %lld + without %lld", (unsigned long long)s.n_values,
		           (long long)s.total, (long long)all.ns, (long long)(s.total - all.ns));
		note_impossible(p, moved, s.n, out);
		rc = table_sort(out, STR("total_ns"), true, e);
	}
	stats_release(&s);
	mem_free(moved);
	mem_free(rates.gbs);
	mem_free(rates.by_group);
	mem_free(rates.group);
	return rc;
}

static const struct report_variant memcpy_variants[] = {
	{.group_by = "kind", .by = MEMCPY_BY_KIND},
	{.group_by = "device", .by = MEMCPY_BY_DEVICE},
	{.group_by = "op", .by = MEMCPY_BY_OP},
	{.group_by = "change", .by = MEMCPY_BY_CHANGE, .run = copy_changes, .takes = REPORT_LIMIT},
	{0},
};

const struct report report_memcpy = {
	.name = "memcpy",
	.title = "Copies and sets of memory",
	.asks = ASKS_MOVE,
	.also = "copies copy memset memory_bandwidth bandwidth",
	.help = "What copies and sets of memory took on the devices, by direction and, where the input tells, by kind of memory (pageable or "
	        "pinned, ...), with bytes and rate. --group-by=device tells devices apart, --group-by=op the ops that launched them; --group-by=change "
	        "has the rate over time.",
	.variants = memcpy_variants,
	.sections = (const struct section *const[]){&memcpy_section, &copy_changes_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = memcpy_run,
};
