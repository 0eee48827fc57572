/* What each stream of a GPU did, and why it did nothing in between. A gap lies between the end of what ran on the stream and the start of the next work there:
 *   host      the call that launched the next work began after that end: there was nothing to do
 *   delay     else, where the gap is shorter than STREAMS_DELAY_NS: what the device takes between pieces of work
 *   other     else: the work was launched in time, and waited for other streams, for events, or for room on the device
 * Where the launch of the next work was not recorded, a gap of the host cannot be told: it counts as delay or other, by its length. */
#include "analysis/recording.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/report.h"

enum { STREAMS_DELAY_NS = 30000 };

enum { STREAMS_DEVICE, STREAMS_STREAM, STREAMS_N, STREAMS_BUSY, STREAMS_IDLE, STREAMS_GAPS, STREAMS_HOST, STREAMS_HOST_PCT, STREAMS_DELAY, STREAMS_OTHER, STREAMS_LONGEST };

static const struct section streams_section = {COLUMNS(
	[STREAMS_DEVICE] = {COLUMN(NUMBER, "device", "GPU", "ordinal", .flags = COLUMN_GROUP)},
	[STREAMS_STREAM] = {COLUMN(NUMBER, "stream", "Stream", "its number", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[STREAMS_N] = {COLUMN(COUNT, "count", "Pieces of work", "kernels, copies and sets")},
	[STREAMS_BUSY] = {COLUMN(NS, "busy_ns", "Busy", "time in which something ran on the stream", .flags = COLUMN_ANSWER)},
	[STREAMS_IDLE] = {COLUMN(NS, "idle_ns", "Idle", "sum of the gaps between its first and its last work", .flags = COLUMN_ANSWER)},
	[STREAMS_GAPS] = {COLUMN(COUNT, "gaps", "Gaps", "number of these gaps", .flags = COLUMN_MINOR)},
	[STREAMS_HOST] = {COLUMN(NS, "host_wait_ns", "Waiting for the host", "gaps whose next work was launched after the stream had run out of work", .flags = COLUMN_ANSWER)},
	[STREAMS_HOST_PCT] = {COLUMN(PERCENT, "host_wait_pct", "Host %", "waiting for the host / idle")},
	[STREAMS_DELAY] = {COLUMN(NS, "kernel_wait_ns", "Delay between work", "gaps under 30 us whose next work had been launched: what the device takes between two pieces of work")},
	[STREAMS_OTHER] = {COLUMN(NS, "other_wait_ns", "Other waiting",
	                          "longer gaps whose next work had been launched: it waited for other streams, for events or for room; or when it was launched is not recorded",
	                          .flags = COLUMN_ANSWER)},
	[STREAMS_LONGEST] = {COLUMN(NS, "longest_ns", "Longest gap", "the longest gap", .flags = COLUMN_MINOR)},
)};

struct streams_sums {
	uint64_t n, gaps, unknown;   /* unknown: gaps before work whose launch was not recorded */
	int64_t busy_ns, host_ns, delay_ns, other_ns, longest_ns;
	int64_t until_ns;            /* when all work so far had ended */
};

static void streams_add_gap(struct streams_sums *s, const struct profile *p, uint32_t g, int64_t gap_ns)
{
	uint32_t call = p->gpu_op.call[g];
	s->gaps++;
	s->longest_ns = gap_ns > s->longest_ns ? gap_ns : s->longest_ns;
	s->unknown += call == ROW_NONE;
	if (call != ROW_NONE && p->span.start_ns[call] > s->until_ns)
		s->host_ns += gap_ns;
	else if (gap_ns < STREAMS_DELAY_NS)
		s->delay_ns += gap_ns;
	else
		s->other_ns += gap_ns;
}

static void streams_add(struct streams_sums *s, const struct profile *p, uint32_t g)
{
	int64_t start = p->gpu_op.start_ns[g], end = gpu_end(p, g);
	if (s->n++ && start > s->until_ns)
		streams_add_gap(s, p, g, start - s->until_ns);
	if (s->n == 1 || start > s->until_ns)
		s->busy_ns += end - start;
	else if (end > s->until_ns)
		s->busy_ns += end - s->until_ns;
	s->until_ns = s->n == 1 || end > s->until_ns ? end : s->until_ns;
}

static void streams_put(const struct streams_sums *s, const struct profile *p, uint32_t last, struct table *t)
{
	uint32_t launch = p->gpu_op.launch[last];
	int64_t idle = s->host_ns + s->delay_ns + s->other_ns;
	table_row(t);
	if (launch != ROW_NONE && p->launch.device[launch] != INT32_MIN)
		table_set_i64(t, STREAMS_DEVICE, p->launch.device[launch]);
	if (launch != ROW_NONE && p->launch.stream[launch] != ID_NONE)
		table_set_i64(t, STREAMS_STREAM, p->launch.stream[launch]);
	table_set_i64(t, STREAMS_N, (int64_t)s->n);
	table_set_i64(t, STREAMS_BUSY, s->busy_ns);
	table_set_i64(t, STREAMS_IDLE, idle);
	table_set_i64(t, STREAMS_GAPS, (int64_t)s->gaps);
	table_set_i64(t, STREAMS_HOST, s->host_ns);
	table_set_f64(t, STREAMS_HOST_PCT, percent((double)s->host_ns, (double)idle));
	table_set_i64(t, STREAMS_DELAY, s->delay_ns);
	table_set_i64(t, STREAMS_OTHER, s->other_ns);
	table_set_i64(t, STREAMS_LONGEST, s->longest_ns);
}

static int streams_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	const struct gpu_ops *g = &p->gpu_op;
	struct streams_sums s = {0};
	uint64_t unknown = 0, gaps = 0;
	if (!g->rows.n)
		return err_set(e, ERR_DATA, "no device work, and so no streams; to record it: %s", recording_how(p, RECORD_DEVICE_WORK));
	section_start(&streams_section, args, 0, out);
	for (uint32_t i = 0; i < g->rows.n; i++) { /* by track, then start */
		streams_add(&s, p, i);
		if (i + 1 < g->rows.n && g->track[i + 1] == g->track[i])
			continue;
		streams_put(&s, p, i, out);
		unknown += s.unknown;
		gaps += s.gaps;
		s = (struct streams_sums){0};
	}
	table_note(out, "busy + idle of a stream = the time from its first to its last work: what lies before and after is not in it, so that it is shorter than the steps; idle = waiting for the host + delay "
	                "between work + other waiting; a stream that is idle may leave the GPU to others");
	if (unknown)
		table_warn(out, "of %llu gaps, %llu lie before work whose launch was not recorded: whether they waited for the host is unknown", (unsigned long long)gaps,
		           (unsigned long long)unknown);
	return table_sort(out, STR("busy_ns"), true, e);
}

const struct report report_streams = {
	.name = "streams",
	.title = "Streams: busy, and why not",
	.asks = ASKS_WAIT,
	.also = "idle_time idle_breakdown stream_gaps launch_bound",
	.help = "How long each stream of a GPU worked, and why it did nothing between two pieces of work: the host had launched nothing yet, the device took its time between two "
	        "pieces of work, or the work was there and waited for something else. A stream that waits for the host while no other works is a GPU that waits for it.",
	.sections = (const struct section *const[]){&streams_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_OF_STEPS,
	.timeline = true,
	.ignores = LEFT_MEMORY | LEFT_MARKS | LEFT_FLOWS | LEFT_AUX_IDS | LEFT_OP_IDS,
	.run = streams_run,
};
