/* What a trace holds, what it lacks, and which reports need what it lacks. */
#include "analysis/names/names.h"
#include "analysis/recording.h"
#include "base/mem.h"
#include "query/report.h"

/* Longer values, and objects, are not shown: people put their whole environment into them, secrets included. */
enum { MAX_SHOWN = 200 };

static const char *phase_meaning(uint8_t phase)
{
	switch (phase) {
	case 'X':
		return "range";
	case 'B':
		return "begin of a range";
	case 'E':
		return "end of a range";
	case 'i':
	case 'I':
	case 'R':
		return "instant";
	case 'C':
		return "counter";
	case 'M':
		return "metadata";
	case 's':
		return "start of an arrow";
	case 't':
		return "step of an arrow";
	case 'f':
		return "end of an arrow";
	default:
		return "other";
	}
}

/* What the reports took the events of each category for: a bit for each kind of span, then for each kind of device work, then for memory. */
enum { BIT_GPU = SPAN_KINDS, BIT_MEMORY = SPAN_KINDS + GPU_KINDS };

static uint32_t *kinds_of_categories(const struct profile *p)
{
	uint32_t *kinds = NEW_ARRAY(p->cat.rows.n, uint32_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		kinds[p->span.cat[i]] |= 1u << p->span.kind[i];
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		kinds[p->gpu_op.cat[i]] |= 1u << (BIT_GPU + p->gpu_op.kind[i]);
	for (uint32_t i = 0; i < p->memory.rows.n; i++)
		kinds[p->memory.cat[i]] |= 1u << BIT_MEMORY;
	return kinds;
}

static void set_kinds(struct table *t, unsigned col, uint32_t kinds, uint8_t phase)
{
	bool ranges = phase == 'X' || phase == 'B', instants = phase == 'i' || phase == 'I';
	char text[256];
	size_t n = 0;
	for (unsigned bit = 0; bit <= BIT_MEMORY; bit++) {
		if (!(kinds & 1u << bit) || !(bit == BIT_MEMORY ? instants : ranges))
			continue;
		const char *name = bit < BIT_GPU ? span_kind_name[bit] : bit < BIT_MEMORY ? gpu_kind_name[bit - BIT_GPU] : "memory";
		size_t length = strlen(name);
		if (n + length + 3 > sizeof text)
			break;
		if (n) {
			text[n++] = ',';
			text[n++] = ' ';
		}
		memcpy(text + n, name, length);
		n += length;
	}
	if (n)
		table_set_str_copy(t, col, (struct str){text, n});
}

enum { TRACE_CATEGORY, TRACE_PHASE, TRACE_MEANING, TRACE_KINDS, TRACE_EVENTS };

static const struct section trace_section = {COLUMNS(
	[TRACE_CATEGORY] = {COLUMN(TEXT, "category", "Category", "as written in the input")},
	[TRACE_PHASE] = {COLUMN(TEXT, "phase", "Phase", "`ph` of the event")},
	[TRACE_MEANING] = {COLUMN(TEXT, "meaning", "Meaning", "what that phase is")},
	[TRACE_KINDS] = {COLUMN(TEXT, "kinds", "Taken For", "what the events of this category are in the reports")},
	[TRACE_EVENTS] = {COLUMN(COUNT, "events", "Events", "how many the input holds")},
)};

static int put_counts(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	section_start(&trace_section, args, 0, t);
	uint32_t *kinds = kinds_of_categories(p);
	for (uint32_t i = 0; i < p->count.rows.n; i++) {
		table_row(t);
		table_set_str(t, TRACE_CATEGORY, profile_cat(p, p->count.cat[i]));
		table_set_fmt(t, TRACE_PHASE, "%c", p->count.phase[i]);
		table_set_str(t, TRACE_MEANING, str_from(phase_meaning(p->count.phase[i])));
		set_kinds(t, TRACE_KINDS, p->count.cat[i] < p->cat.rows.n ? kinds[p->count.cat[i]] : 0, p->count.phase[i]);
		table_set_i64(t, TRACE_EVENTS, (int64_t)p->count.events[i]);
	}
	mem_free(kinds);
	return table_sort(t, STR("events"), true, e);
}

/* --- tracks ----------------------------------------------------------------------------------------------------- */

struct track_sum {
	uint64_t kinds[SPAN_KINDS], device, memory;
	int64_t first, last;
};

static void trace_cover(struct track_sum *s, int64_t start, int64_t end)
{
	s->first = start < s->first ? start : s->first;
	s->last = end > s->last ? end : s->last;
}

static struct track_sum *sum_tracks(const struct profile *p)
{
	struct track_sum *sum = NEW_ARRAY(p->track.rows.n, struct track_sum);
	for (uint32_t t = 0; t < p->track.rows.n; t++) {
		sum[t].first = INT64_MAX;
		sum[t].last = INT64_MIN;
	}
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		sum[p->span.track[i]].kinds[p->span.kind[i]]++;
		trace_cover(&sum[p->span.track[i]], p->span.start_ns[i], span_end(p, i));
	}
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		sum[p->gpu_op.track[i]].device++;
		trace_cover(&sum[p->gpu_op.track[i]], p->gpu_op.start_ns[i], gpu_end(p, i));
	}
	for (uint32_t i = 0; i < p->memory.rows.n; i++)
		sum[p->memory.track[i]].memory++;
	return sum;
}

enum {
	TRACKS_PROCESS, TRACKS_THREAD, TRACKS_PROCESS_NAME, TRACKS_THREAD_NAME, TRACKS_OPS, TRACKS_ANNOTATIONS, TRACKS_PYTHON, TRACKS_CALLS, TRACKS_DEVICE,
	TRACKS_MEMORY, TRACKS_START, TRACKS_COVERS
};

static const struct section tracks_section = {.name = "tracks", .title = "Threads and streams", COLUMNS(
	[TRACKS_PROCESS] = {COLUMN(TEXT, "process", "Process", "process id, or the device of a stream")},
	[TRACKS_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread id, or the stream")},
	[TRACKS_PROCESS_NAME] = {COLUMN(TEXT, "process_name", "Process Name", "as recorded")},
	[TRACKS_THREAD_NAME] = {COLUMN(TEXT, "thread_name", "Thread Name", "as recorded", .flags = COLUMN_WIDE)},
	[TRACKS_OPS] = {COLUMN(COUNT, "ops", "Ops", "framework ops")},
	[TRACKS_ANNOTATIONS] = {COLUMN(COUNT, "annotations", "Annotations", "record_function ranges and the like")},
	[TRACKS_PYTHON] = {COLUMN(COUNT, "python_frames", "Python", "Python frames")},
	[TRACKS_CALLS] = {COLUMN(COUNT, "api_calls", "API Calls", "runtime and driver calls")},
	[TRACKS_DEVICE] = {COLUMN(COUNT, "device_operations", "Device", "kernels, copies and sets")},
	[TRACKS_MEMORY] = {COLUMN(COUNT, "memory_events", "Memory", "allocations and frees")},
	[TRACKS_START] = {COLUMN(TIME, "start_ns", "Start", "first moment", .flags = COLUMN_DETAIL)},
	[TRACKS_COVERS] = {COLUMN(NS, "span_ns", "Covers", "from its first moment to its last")},
)};

static void put_tracks(const struct profile *p, const struct report_args *args, const struct track_sum *sum, struct table *out)
{
	struct table *t = section_add(&tracks_section, args, 0, out);
	for (uint32_t i = 0; i < p->track.rows.n; i++) {
		int64_t span;
		table_row(t);
		table_set_str(t, TRACKS_PROCESS, profile_str(p, p->track.pid_text[i]));
		table_set_str(t, TRACKS_THREAD, profile_str(p, p->track.tid_text[i]));
		table_set_str(t, TRACKS_PROCESS_NAME, profile_str(p, p->track.process_name[i]));
		table_set_str(t, TRACKS_THREAD_NAME, profile_str(p, p->track.thread_name[i]));
		table_set_i64(t, TRACKS_OPS, (int64_t)sum[i].kinds[SPAN_OP]);
		table_set_i64(t, TRACKS_ANNOTATIONS, (int64_t)(sum[i].kinds[SPAN_USER] + sum[i].kinds[SPAN_GPU_USER]));
		table_set_i64(t, TRACKS_PYTHON, (int64_t)sum[i].kinds[SPAN_PYTHON]);
		table_set_i64(t, TRACKS_CALLS, (int64_t)sum[i].kinds[SPAN_CALL]);
		table_set_i64(t, TRACKS_DEVICE, (int64_t)sum[i].device);
		table_set_i64(t, TRACKS_MEMORY, (int64_t)sum[i].memory);
		if (sum[i].last >= sum[i].first && !__builtin_sub_overflow(sum[i].last, sum[i].first, &span)) {
			table_set_i64(t, TRACKS_START, sum[i].first);
			table_set_i64(t, TRACKS_COVERS, span);
		}
	}
}

/* --- settings --------------------------------------------------------------------------------------------------- */

enum { SETTINGS_KEY, SETTINGS_VALUE };

static const struct section settings_section = {.name = "settings", .title = "Settings of the profiler and facts about the run", COLUMNS(
	[SETTINGS_KEY] = {COLUMN(TEXT, "key", "Setting", "name in the input")},
	[SETTINGS_VALUE] = {COLUMN(TEXT, "value", "Value", "as recorded", .flags = COLUMN_WIDE)},
)};

static void put_settings(const struct profile *p, const struct report_args *args, struct table *out)
{
	unsigned hidden = 0;
	struct table *t = section_add(&settings_section, args, 0, out);
	for (uint32_t i = 0; i < p->meta.rows.n; i++) {
		struct str key = profile_str(p, p->meta.key[i]), value = profile_str(p, p->meta.value[i]);
		bool nested = !p->meta.is_string[i] && value.n && (value.p[0] == '{' || value.p[0] == '[');
		table_row(t);
		table_set_str(t, SETTINGS_KEY, key);
		if (value.n <= MAX_SHOWN && !nested) {
			table_set_str(t, SETTINGS_VALUE, value);
			continue;
		}
		table_set_fmt(t, SETTINGS_VALUE, "(%zu bytes)", value.n);
		hidden++;
	}
	if (hidden)
		table_note(t, "%u long or nested values are given by their size only: they may hold environment variables and the like",
		           hidden);
}

/* --- what there is, and what it is good for ---------------------------------------------------------------------- */

enum item { HAS_OPS, HAS_DEVICE, HAS_LAUNCHES, HAS_STEPS, HAS_SHAPES, HAS_STACKS, HAS_MODULES, HAS_BACKWARD, HAS_MEMORY,
            HAS_MEMORY_TOTALS, HAS_OCCUPANCY, HAS_DEVICE_PROPERTIES, HAS_DISTRIBUTED, N_ITEMS };

static const struct {
	const char *what, *used_by;
	enum record how;
} items[N_ITEMS] = {
	[HAS_OPS] = {"framework ops", "operators, overview, modules, memory", RECORD_OPS},
	[HAS_DEVICE] = {"device work", "kernels, gpu-timeline, overview (GPU figures)", RECORD_DEVICE_WORK},
	[HAS_LAUNCHES] = {"device work with its launch", "operators (device time), modules (device time)", RECORD_LAUNCHES},
	[HAS_STEPS] = {"steps (ProfilerStep ranges)", "steps, overview per step, --steps", RECORD_STEPS},
	[HAS_SHAPES] = {"ops with input shapes", "operators --group-by=shape, FLOPs and bytes", RECORD_SHAPES},
	[HAS_STACKS] = {"Python frames or call stacks", "operators --group-by=stack", RECORD_STACKS},
	[HAS_MODULES] = {"module calls", "modules", RECORD_MODULES},
	[HAS_BACKWARD] = {"backward ops with a sequence number", "modules (backward time)", RECORD_BACKWARD},
	[HAS_MEMORY] = {"memory events", "memory", RECORD_MEMORY},
	[HAS_MEMORY_TOTALS] = {"memory events with totals", "memory: curve and peaks", RECORD_MEMORY_TOTALS},
	[HAS_OCCUPANCY] = {"kernels whose occupancy is stated", "overview (occupancy), kernels: else it is computed, where that is possible", RECORD_OCCUPANCY},
	[HAS_DEVICE_PROPERTIES] = {"described devices", "devices", RECORD_DEVICES},
	[HAS_DISTRIBUTED] = {"description of the job (distributedInfo)", "views over several ranks", RECORD_JOB},
};

static void count_spans(const struct profile *p, uint64_t has[N_ITEMS])
{
	const unsigned modules = NAME_MODULE | NAME_MODULE_ANNOTATED | NAME_MODULE_LIGHTNING;
	const struct spans *s = &p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		bool op = s->kind[i] == SPAN_OP;
		has[HAS_OPS] += op;
		has[HAS_STEPS] += (op || s->kind[i] == SPAN_USER) && name_is(p, s->name[i], NAME_STEP);
		has[HAS_STACKS] += s->kind[i] == SPAN_PYTHON || (op && profile_arg_id(p, s->args[i], ARG_CALL_STACK));
		has[HAS_MODULES] += name_is(p, s->name[i], modules) || (op && profile_arg_id(p, s->args[i], ARG_MODULE_HIERARCHY));
		has[HAS_SHAPES] += op && profile_arg_id(p, s->args[i], ARG_INPUT_DIMS);
		has[HAS_BACKWARD] += op && s->link_id[i] >= 0 && span_aux_id(s, i) > 0;
	}
}

static void count_items(const struct profile *p, uint64_t has[N_ITEMS])
{
	struct str text;
	count_spans(p, has);
	has[HAS_DEVICE] = p->gpu_op.rows.n;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t launch = p->gpu_op.launch[g];
		has[HAS_LAUNCHES] += p->gpu_op.call[g] != ROW_NONE || p->gpu_op.op[g] != ROW_NONE;
		has[HAS_OCCUPANCY] += launch != ROW_NONE && p->launch.occupancy_pct[launch] >= 0;
	}
	has[HAS_MEMORY] = p->memory.rows.n;
	for (uint32_t i = 0; i < p->memory.rows.n; i++)
		has[HAS_MEMORY_TOTALS] += p->memory.total_allocated[i] != ID_NONE;
	has[HAS_DEVICE_PROPERTIES] = p->device.rows.n;
	has[HAS_DISTRIBUTED] = profile_meta(p, "distributedInfo", &text) && text.n > 2;
}

enum { CONTENTS_WHAT, CONTENTS_EVENTS, CONTENTS_USED_BY, CONTENTS_HOW };

static const struct section contents_section = {.name = "contents", .title = "What is recorded, and what for", COLUMNS(
	[CONTENTS_WHAT] = {COLUMN(TEXT, "what", "What", "a kind of record")},
	[CONTENTS_EVENTS] = {COLUMN(COUNT, "events", "Events", "how many there are")},
	[CONTENTS_USED_BY] = {COLUMN(TEXT, "used_by", "Used By", "reports, or parts of them, that need it")},
	[CONTENTS_HOW] = {COLUMN(TEXT, "how_to_record", "To Record It", "only where there are none", .flags = COLUMN_WIDE)},
)};

static unsigned put_contents(const struct profile *p, const struct report_args *args, struct table *out)
{
	uint64_t has[N_ITEMS] = {0};
	unsigned absent = 0;
	count_items(p, has);
	struct table *t = section_add(&contents_section, args, 0, out);
	for (unsigned i = 0; i < N_ITEMS; i++) {
		table_row(t);
		table_set_str(t, CONTENTS_WHAT, str_from(items[i].what));
		table_set_i64(t, CONTENTS_EVENTS, (int64_t)has[i]);
		table_set_str(t, CONTENTS_USED_BY, str_from(items[i].used_by));
		if (has[i])
			continue;
		table_set_str(t, CONTENTS_HOW, str_from(recording_how(p, items[i].how)));
		absent++;
	}
	return absent;
}

static void note_time(const struct profile *p, const struct track_sum *sum, struct table *t)
{
	struct track_sum all = {.first = INT64_MAX, .last = INT64_MIN};
	int64_t span;
	for (uint32_t i = 0; i < p->track.rows.n; i++)
		if (sum[i].last >= sum[i].first)
			trace_cover(&all, sum[i].first, sum[i].last);
	if (all.last >= all.first && !__builtin_sub_overflow(all.last, all.first, &span))
		table_note(t, "ranges and device work cover %lld ns from %lld ns on the trace's clock", (long long)span,
		           (long long)all.first);
}

static int trace_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct track_sum *sum = sum_tracks(p);
	int rc = put_counts(p, args, out, e);
	table_note(out, "%llu events in all: %u ranges on the host, %u device operations, %u memory events, %u arrows' ends, %u instants "
	           "and counters, the rest metadata",
	           (unsigned long long)profile_events(p), p->span.rows.n, p->gpu_op.rows.n, p->memory.rows.n, p->flow.rows.n,
	           p->mark.rows.n);
	note_time(p, sum, out);
	unsigned absent = put_contents(p, args, out);
	if (absent)
		table_note(out, "%u kinds of record are absent: the section 'contents' says which reports miss them and how to record them",
		           absent);
	put_settings(p, args, out);
	put_tracks(p, args, sum, out);
	mem_free(sum);
	return rc;
}

const struct report report_trace = {
	.name = "trace",
	.title = "What the trace holds",
	.asks = ASKS_INPUT,
	.also = "events",
	.help = "Events by category and phase as the input has them, and what each is taken for. Sections: 'contents' (what is recorded, "
	        "which reports need it, and how to record what is absent), 'settings' (of the profiler, as far as recorded), 'tracks' "
	        "(threads and streams). 'devices' is a report of its own.",
	.sections = (const struct section *const[]){&trace_section, &contents_section, &settings_section, &tracks_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.run = trace_run,
};
