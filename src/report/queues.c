/* How many launches wait on each stream, and how long the host is held up because no more can wait. */
#include "analysis/recording.h"
#include "analysis/time/launch_queue.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/spread.h"
#include "query/report.h"

enum queues_grouping { QUEUES_BY_STREAM, QUEUES_BY_LENGTH, QUEUES_BY_CHANGE };

enum {
	QUEUES_DEVICE, QUEUES_STREAM, QUEUES_LAUNCHES, QUEUES_MEAN, QUEUES_MOST, QUEUES_EMPTY, QUEUES_EMPTY_PCT, QUEUES_FULL, QUEUES_FULL_PCT, QUEUES_BLOCKED,
	QUEUES_CHANGES, QUEUES_C_MEAN, QUEUES_C_SD, QUEUES_C_MIN, QUEUES_C_P25, QUEUES_C_P50, QUEUES_C_P75
};

static const struct section queues_section = {.by = BY(QUEUES_BY_STREAM), COLUMNS(
	[QUEUES_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_GROUP)},
	[QUEUES_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "number of the stream", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[QUEUES_LAUNCHES] = {COLUMN(COUNT, "launches", "Launches", "calls that launched work on the stream; a graph counts once")},
	[QUEUES_MEAN] = {COLUMN(REAL, "mean_length", "Mean length", "mean number of launches that waited, over the time from the first launch to the beginning of the last work",
	                        .digits = 1, .flags = COLUMN_ANSWER)},
	[QUEUES_MOST] = {COLUMN(COUNT, "max_length", "Longest", "the most launches that waited at a time", .flags = COLUMN_ANSWER)},
	[QUEUES_EMPTY] = {COLUMN(NS, "empty_ns", "Nothing waits", "time in which no launch waited: the stream ran the last work that it had, or was idle", .flags = COLUMN_MINOR)},
	[QUEUES_EMPTY_PCT] = {COLUMN(PERCENT, "empty_pct", "Nothing waits %", "the same / the time from the first launch to the beginning of the last work", .flags = COLUMN_ANSWER)},
	[QUEUES_FULL] = {COLUMN(NS, "full_ns", "Full", "time in which as many launches waited as can wait on a CUDA stream (1022); empty = no such limit is known", .flags = COLUMN_ANSWER)},
	[QUEUES_FULL_PCT] = {COLUMN(PERCENT, "full_pct", "Full %", "the same / the time from the first launch to the beginning of the last work", .flags = COLUMN_MINOR)},
	[QUEUES_BLOCKED] = {COLUMN(NS, "blocked_host_ns", "Host blocked", "time of the calls that launched on the full stream: the host waited for room", .flags = COLUMN_ANSWER)},
	[QUEUES_CHANGES] = {COLUMN(COUNT, "changes", "Changes", "changes of the length. The figures that follow are over these changes: each counts once, however long the length lasted",
	                           .flags = COLUMN_DETAIL)},
	[QUEUES_C_MEAN] = {COLUMN(REAL, "changes_mean", "Mean (changes)", "mean length after a change", .digits = 3, .flags = COLUMN_DETAIL)},
	[QUEUES_C_SD] = {COLUMN(REAL, "changes_stddev", "Std dev (changes)", "standard deviation of the length after a change, as of a sample (n - 1)", .digits = 3, .flags = COLUMN_DETAIL)},
	[QUEUES_C_MIN] = {COLUMN(COUNT, "changes_min", "Min (changes)", "least length after a change", .flags = COLUMN_DETAIL)},
	[QUEUES_C_P25] = {COLUMN(REAL, "changes_p25", "25 % (changes)", "25th percentile, interpolated", .digits = 2, .flags = COLUMN_DETAIL)},
	[QUEUES_C_P50] = {COLUMN(REAL, "changes_p50", "50 % (changes)", "median", .digits = 2, .flags = COLUMN_DETAIL)},
	[QUEUES_C_P75] = {COLUMN(REAL, "changes_p75", "75 % (changes)", "75th percentile, interpolated", .digits = 2, .flags = COLUMN_DETAIL)},
)};

enum { LENGTHS_DEVICE, LENGTHS_STREAM, LENGTHS_FROM, LENGTHS_TO, LENGTHS_TIME, LENGTHS_SHARE };

static const struct section lengths_section = {.by = BY(QUEUES_BY_LENGTH), COLUMNS(
	[LENGTHS_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_GROUP)},
	[LENGTHS_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "number of the stream", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[LENGTHS_FROM] = {COLUMN(COUNT, "from_length", "From", "least length of the row", .flags = COLUMN_ANSWER)},
	[LENGTHS_TO] = {COLUMN(COUNT, "to_length", "To", "greatest length of the row", .flags = COLUMN_ANSWER)},
	[LENGTHS_TIME] = {COLUMN(NS, "time_ns", "Time", "time in which the queue had such a length", .flags = COLUMN_ANSWER)},
	[LENGTHS_SHARE] = {COLUMN(PERCENT, "time_pct", "Time %", "the same / the time from the stream's first launch to the beginning of its last work", .flags = COLUMN_ANSWER)},
)};

enum { CHANGE_TIME, CHANGE_DEVICE, CHANGE_STREAM, CHANGE_LENGTH };

static const struct section change_section = {.by = BY(QUEUES_BY_CHANGE), COLUMNS(
	[CHANGE_TIME] = {COLUMN(TIME, "time_ns", "Time", "time of the change")},
	[CHANGE_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_GROUP)},
	[CHANGE_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "number of the stream", .flags = COLUMN_GROUP)},
	[CHANGE_LENGTH] = {COLUMN(COUNT, "length", "Length", "launches that wait from this time up to the stream's next change", .flags = COLUMN_ANSWER)},
)};

enum { LENGTH_CLASSES = 33 }; /* 0, 1, 2..3, 4..7, ... */

struct queue_sums {
	uint64_t launches;
	double length_time;               /* sum of length x time */
	int64_t all_ns, full_ns, blocked_ns, by_class_ns[LENGTH_CLASSES];
	uint32_t most;
};

static unsigned length_class(uint32_t length) { return length ? 32 - (unsigned)__builtin_clz(length) : 0; }

/* Sums over the changes of one stream: from .. to - 1. */
static void queue_sum(const struct profile *p, const struct queue_change *v, uint32_t from, uint32_t to, struct queue_sums *s)
{
	*s = (struct queue_sums){0};
	for (uint32_t i = from; i < to; i++) {
		int64_t ns = i + 1 < to ? v[i + 1].time_ns - v[i].time_ns : 0;
		bool full = v[i].length >= LAUNCH_QUEUE_FULL;
		s->launches += v[i].launched;
		s->most = v[i].length > s->most ? v[i].length : s->most;
		s->all_ns += ns;
		s->length_time += (double)v[i].length * (double)ns;
		s->by_class_ns[length_class(v[i].length)] += ns;
		s->full_ns += full ? ns : 0;
		s->blocked_ns += full && v[i].launched ? p->span.dur_ns[p->gpu_op.call[v[i].gpu]] : 0;
	}
}

static void queues_put_place(const struct profile *p, uint32_t gpu, struct table *t, unsigned device, unsigned stream)
{
	uint32_t launch = p->gpu_op.launch[gpu];
	if (p->launch.device[launch] != INT32_MIN)
		table_set_i64(t, device, p->launch.device[launch]);
	if (p->launch.stream[launch] != ID_NONE)
		table_set_i64(t, stream, p->launch.stream[launch]);
}

static void put_changes(const struct queue_change *v, uint32_t from, uint32_t to, double *length, struct table *t)
{
	for (uint32_t i = from; i < to; i++)
		length[i - from] = v[i].length;
	struct spread s = spread_of(length, to - from);
	table_set_i64(t, QUEUES_CHANGES, (int64_t)s.n);
	table_set_f64(t, QUEUES_C_MEAN, s.mean);
	table_set_f64(t, QUEUES_C_SD, s.sd);
	table_set_i64(t, QUEUES_C_MIN, (int64_t)s.min);
	table_set_f64(t, QUEUES_C_P25, s.p25);
	table_set_f64(t, QUEUES_C_P50, s.median);
	table_set_f64(t, QUEUES_C_P75, s.p75);
}

static void queues_put_stream(const struct profile *p, const struct queue_change *v, uint32_t from, uint32_t to, double *length, struct table *t)
{
	struct queue_sums s;
	queue_sum(p, v, from, to, &s);
	table_row(t);
	queues_put_place(p, v[from].gpu, t, QUEUES_DEVICE, QUEUES_STREAM);
	table_set_i64(t, QUEUES_LAUNCHES, (int64_t)s.launches);
	table_set_f64(t, QUEUES_MEAN, s.all_ns ? s.length_time / (double)s.all_ns : (double)NAN);
	table_set_i64(t, QUEUES_MOST, s.most);
	table_set_i64(t, QUEUES_EMPTY, s.by_class_ns[0]);
	table_set_f64(t, QUEUES_EMPTY_PCT, percent((double)s.by_class_ns[0], (double)s.all_ns));
	if (launch_queue_has_limit(p, v[from].gpu)) {
		table_set_i64(t, QUEUES_FULL, s.full_ns);
		table_set_f64(t, QUEUES_FULL_PCT, percent((double)s.full_ns, (double)s.all_ns));
		table_set_i64(t, QUEUES_BLOCKED, s.blocked_ns);
	}
	put_changes(v, from, to, length, t);
}

static void queues_put_lengths(const struct profile *p, const struct queue_change *v, uint32_t from, uint32_t to, struct table *t)
{
	struct queue_sums s;
	queue_sum(p, v, from, to, &s);
	for (unsigned c = 0; c <= length_class(s.most); c++) {
		table_row(t);
		queues_put_place(p, v[from].gpu, t, LENGTHS_DEVICE, LENGTHS_STREAM);
		table_set_i64(t, LENGTHS_FROM, c ? INT64_C(1) << (c - 1) : 0);
		table_set_i64(t, LENGTHS_TO, c ? (INT64_C(1) << c) - 1 : 0);
		table_set_i64(t, LENGTHS_TIME, s.by_class_ns[c]);
		table_set_f64(t, LENGTHS_SHARE, percent((double)s.by_class_ns[c], (double)s.all_ns));
	}
}

static void queues_put_changes(const struct profile *p, const struct launch_queues *q, const struct report_args *args, struct table *t)
{
	uint32_t n = args->row_limit && args->row_limit < q->n ? (uint32_t)args->row_limit : q->n;
	for (uint32_t i = 0; i < n; i++) {
		table_row(t);
		table_set_i64(t, CHANGE_TIME, q->v[i].time_ns);
		queues_put_place(p, q->v[i].gpu, t, CHANGE_DEVICE, CHANGE_STREAM);
		table_set_i64(t, CHANGE_LENGTH, q->v[i].length);
	}
	t->hidden_rows = q->n - n;
}

static void queues_put_notes(const struct launch_queues *q, struct table *t)
{
	table_note(t, "a launch waits from the start of its call to the beginning of its work");
	if (q->unknown)
		table_warn(t, "kernels, copies and sets whose launch was not recorded are left out: %u. Queues may have been longer", q->unknown);
	if (q->early)
		table_warn(t, "launches whose work began before their call are left out: %u. The clocks of host and device differ", q->early);
}

static int queues_put(const struct profile *p, const struct launch_queues *q, const struct report_args *args, struct table *out, struct err *e)
{
	enum queues_grouping by = (enum queues_grouping)args->variant->by;
	const struct section *const section[] = {&queues_section, &lengths_section, &change_section};
	section_start(section[by], args, 0, out);
	if (by == QUEUES_BY_CHANGE)
		queues_put_changes(p, q, args, out);
	double *length = NEW_ARRAY_RAW(q->n, double);
	for (uint32_t from = 0, to; by != QUEUES_BY_CHANGE && from < q->n; from = to) {
		to = launch_queue_end(q, p, from);
		if (by == QUEUES_BY_STREAM)
			queues_put_stream(p, q->v, from, to, length, out);
		else
			queues_put_lengths(p, q->v, from, to, out);
	}
	mem_free(length);
	queues_put_notes(q, out);
	return by == QUEUES_BY_STREAM ? table_sort(out, STR("launches"), true, e) : 0;
}

static int queues_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct launch_queues q;
	int rc;
	if (!p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "the input holds no device work, and so no queues; to record device work: %s", recording_how(p, RECORD_DEVICE_WORK));
	launch_queues_find(p, &q);
	if (!q.n)
		rc = err_set(e, ERR_DATA, "no launch of device work was recorded, or all work begins before its launch: how much waited is unknown");
	else
		rc = queues_put(p, &q, args, out, e);
	launch_queues_release(&q);
	return rc;
}

static const struct report_variant queues_variants[] = {
	{.group_by = "stream", .by = QUEUES_BY_STREAM},
	{.group_by = "length", .by = QUEUES_BY_LENGTH},
	{.group_by = "change", .by = QUEUES_BY_CHANGE, .takes = REPORT_LIMIT},
	{0},
};

const struct report report_queues = {
	.name = "queues",
	.title = "Queues: launched work that waits",
	.asks = ASKS_WAIT,
	.also = "queue_length queue outstanding outstanding_kernels launch_queue",
	.help = "How far the host is ahead of each stream: how many launches wait for the device, and for how long none does. Where a queue is mostly empty, the host hardly feeds "
	        "the GPU. Where a queue is full, calls that launch wait for room: they look slow, and the GPU is. --group-by=length has the time by length of the queue, "
	        "--group-by=change each change of the length.",
	.variants = queues_variants,
	.sections = (const struct section *const[]){&queues_section, &lengths_section, &change_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_OF_STEPS,
	.timeline = true,
	.run = queues_run,
};
