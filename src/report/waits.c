/* Where the host waits for a device: by the tracer's records of synchronisation, and by the API calls that wait where the tracer wrote no record. */
#include "analysis/recording.h"
#include "base/buf.h"
#include "base/mem.h"
#include "query/stats.h"
#include "query/window.h"
#include "report/parts/wait_calls.h"

enum waits_grouping { WAITS_BY_STREAM, WAITS_BY_NAME };
enum evidence { RECORD, CALL, COPYING, EVIDENCES };
static const char *const evidence_name[EVIDENCES] = {"record", "call", "copying call"};

enum { NO_DEVICE = INT32_MIN, SEVERAL = INT32_MIN + 1 };

/* What the grouping does not ask for is 0. */
struct waits_key {
	int64_t stream;             /* of a call that copied; ID_NONE */
	uint32_t name, track;       /* track: of a record, track + 1 */
	uint32_t event_stream;      /* of a record of a wait for an event: string id of the stream that recorded the event; 0 = not known */
	int32_t device;             /* of a call; NO_DEVICE */
	uint32_t evidence, reserved;
};

struct waits {
	const struct profile *p;
	struct window window;
	enum waits_grouping by;
	struct wait_calls calls;
	int32_t *device_of_track;   /* the one device on which the track's process launched work; NO_DEVICE, SEVERAL */
	struct stats s;
	uint64_t n[EVIDENCES];
	int64_t ns[EVIDENCES];
	uint64_t left_out;          /* waits outside the steps asked for */
	uint64_t for_events;        /* records of waits for an event */
	uint64_t of_known_stream;   /* those that name the stream which recorded the event */
};

static uint32_t by_process(const struct profile *p, uint32_t track, struct intern *processes)
{
	return intern_str(processes, profile_str(p, p->track.pid_text[track])); /* 0 is the empty text */
}

/* A call that waits does not say for which device. Where its process launched work on one device alone, it waits for that device. */
static int32_t *devices_of_tracks(const struct profile *p)
{
	struct intern processes;
	intern_init(&processes);
	uint32_t n = p->track.rows.n;
	int32_t *of_process = NEW_ARRAY_RAW(n + 1, int32_t), *of_track = NEW_ARRAY_RAW(n + 1, int32_t);
	for (uint32_t t = 0; t <= n; t++)
		of_process[t] = NO_DEVICE;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t call = p->gpu_op.call[g], launch = p->gpu_op.launch[g];
		int32_t device = launch == ROW_NONE ? NO_DEVICE : p->launch.device[launch];
		if (call == ROW_NONE || device == NO_DEVICE)
			continue;
		int32_t *d = &of_process[by_process(p, p->span.track[call], &processes)];
		*d = *d == NO_DEVICE || *d == device ? device : SEVERAL;
	}
	for (uint32_t t = 0; t < n; t++)
		of_track[t] = of_process[by_process(p, t, &processes)];
	mem_free(of_process);
	intern_release(&processes);
	return of_track;
}

static struct waits_key key_of_record(const struct waits *w, uint32_t i)
{
	const struct profile *p = w->p;
	struct waits_key k = {.stream = ID_NONE, .name = p->span.name[i], .device = NO_DEVICE, .evidence = RECORD};
	if (w->by == WAITS_BY_STREAM) {
		k.track = p->span.track[i] + 1;
		k.event_stream = profile_arg_id(p, p->span.args[i], ARG_WAIT_ON_STREAM);
	}
	return k;
}

static struct waits_key key_of_call(const struct waits *w, uint32_t i)
{
	const struct profile *p = w->p;
	bool copying = w->calls.kind[i] == WAIT_CALL_COPY;
	struct waits_key k = {.stream = ID_NONE, .name = p->span.name[i], .device = NO_DEVICE, .evidence = copying ? COPYING : CALL};
	if (w->by != WAITS_BY_STREAM)
		return k;
	k.device = w->device_of_track[p->span.track[i]];
	if (copying && w->calls.copy[i] != ROW_NONE) {
		uint32_t launch = p->gpu_op.launch[w->calls.copy[i]];
		k.device = launch == ROW_NONE ? NO_DEVICE : p->launch.device[launch];
		k.stream = launch == ROW_NONE ? ID_NONE : p->launch.stream[launch];
	}
	return k;
}

static void count_record(struct waits *w, uint32_t i)
{
	struct str name = profile_str(w->p, w->p->span.name[i]);
	bool for_event = str_eqc(name, "Event Sync") || str_eqc(name, "Stream Wait Event");
	w->for_events += for_event;
	w->of_known_stream += for_event && profile_arg_id(w->p, w->p->span.args[i], ARG_WAIT_ON_STREAM) != 0;
}

static void waits_collect(struct waits *w)
{
	const struct spans *s = &w->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		bool record = s->kind[i] == SPAN_SYNC, call = w->calls.kind[i] == WAIT_CALL_SYNC || w->calls.kind[i] == WAIT_CALL_COPY;
		if ((!record && !call) || w->calls.asks[i])
			continue;
		if (!window_has(&w->window, s->start_ns[i])) {
			w->left_out++;
			continue;
		}
		struct waits_key k = record ? key_of_record(w, i) : key_of_call(w, i);
		stats_add(&w->s, &k, sizeof k, s->dur_ns[i]);
		w->n[k.evidence]++;
		w->ns[k.evidence] += s->dur_ns[i];
		if (record)
			count_record(w, i);
	}
}

enum { WAITS_NAME, WAITS_EVIDENCE, WAITS_DEVICE, WAITS_STREAM, WAITS_ON, WAITS_STATS};

static const struct section waits_section = {COLUMNS(
	[WAITS_NAME] = {COLUMN(TEXT, "name", "Wait", "kind of synchronisation, in CUPTI's words; where no record was written, the name of the call that waits", .flags = COLUMN_ANSWER)},
	[WAITS_EVIDENCE] = {COLUMN(TEXT, "evidence", "Known by", "record = the tracer's record of a synchronisation; call = an API call without such a record, whose "
	                           "name says that it waits; copying call = an API call that returned when the copy it had launched was done")},
	[WAITS_DEVICE] = {COLUMN(TEXT, "device", "Device", "device of the stream; of a call the device on which its process works; empty = not known",
	                         .flags = COLUMN_GROUP), .by = BY(WAITS_BY_STREAM)},
	[WAITS_STREAM] = {COLUMN(TEXT, "stream", "Stream", "stream that was waited for; in a Stream Wait Event the stream that waits; all = every stream of the "
	                         "context; empty = the wait is for an event alone, or not known", .flags = COLUMN_GROUP), .by = BY(WAITS_BY_STREAM)},
	[WAITS_ON] = {COLUMN(TEXT, "wait_on_stream", "For stream", "stream that last recorded the event which was waited for; empty = not known",
	                     .flags = COLUMN_GROUP), .by = BY(WAITS_BY_STREAM)},
	STATS_COLUMN_LIST(WAITS_STATS),
)};

/* Device and stream of a row; a cell that stays empty is not known. */
static void waits_put_place(const struct waits *w, struct table *out, const struct waits_key *k)
{
	const struct tracks *t = &w->p->track;
	if (k->evidence != RECORD) {
		if (k->device != NO_DEVICE && k->device != SEVERAL)
			table_set_fmt(out, WAITS_DEVICE, "%d", k->device);
		if (k->stream != ID_NONE)
			table_set_fmt(out, WAITS_STREAM, "%lld", (long long)k->stream);
		return;
	}
	uint32_t track = k->track - 1;
	if (t->pid[track] != -1)
		table_set_str(out, WAITS_DEVICE, profile_str(w->p, t->pid_text[track]));
	if (t->tid[track] != -1)
		table_set_str(out, WAITS_STREAM, profile_str(w->p, t->tid_text[track]));
	else if (str_eqc(profile_str(w->p, k->name), "Context Sync"))
		table_set_str(out, WAITS_STREAM, STR("all"));
}

static void waits_put(struct waits *w, const struct report_args *args, struct table *out)
{
	section_start(&waits_section, args, 0, out);
	for (uint32_t g = 0; g < w->s.n; g++) {
		struct waits_key k;
		stats_key(&w->s, g, &k, sizeof k);
		table_row(out);
		table_set_str(out, WAITS_NAME, profile_str(w->p, k.name));
		table_set_str(out, WAITS_EVIDENCE, str_from(evidence_name[k.evidence]));
		if (w->by == WAITS_BY_STREAM)
			waits_put_place(w, out, &k);
		if (k.event_stream)
			table_set_str(out, WAITS_ON, profile_str(w->p, k.event_stream));
		stats_put(out, WAITS_STATS, &w->s, g);
	}
}

static const char *s_of(uint64_t n) { return n == 1 ? "" : "s"; }

static void waits_put_notes(const struct waits *w, struct table *out)
{
	static const char *const from[EVIDENCES] = {"records of the tracer", "calls that wait", "calls that returned with their copy"};
	struct buf b = {0};
	for (unsigned i = 0; i < EVIDENCES; i++)
		if (w->n[i])
			buf_printf(&b, "%s%llu from %s (%lld ns)", b.n ? " + " : "", (unsigned long long)w->n[i], from[i], (long long)w->ns[i]);
	table_note(out, "%llu wait%s, %lld ns = " STR_FMT ". A wait that has a record counts by its record alone; the time of a call includes the call's own work",
	           (unsigned long long)w->s.n_values, s_of(w->s.n_values), (long long)w->s.total, STR_ARG(buf_view(&b)));
	buf_release(&b);
	if (!w->window.all && !w->window.in.outside)
		table_note(out, "waits outside the steps asked for: %llu", (unsigned long long)w->left_out);
	if (w->calls.asked)
		table_note(out, "%llu record%s of calls that only ask, as cudaEventQuery does, %s not counted: the host did not wait in them",
		           (unsigned long long)w->calls.asked, s_of(w->calls.asked), w->calls.asked == 1 ? "is" : "are");
	if (w->of_known_stream < w->for_events)
		table_warn(out, "%llu of %llu wait%s for an event %s not name the stream that recorded the event; `opscope record --sync` records the stream",
		           (unsigned long long)(w->for_events - w->of_known_stream), (unsigned long long)w->for_events, s_of(w->for_events),
		           w->for_events - w->of_known_stream == 1 ? "does" : "do");
	if (w->calls.frees)
		table_note(out, "%llu call%s that free%s device memory, %lld ns, may also have waited for the device. How long they waited is not recorded, and they are not counted",
		           (unsigned long long)w->calls.frees, s_of(w->calls.frees), w->calls.frees == 1 ? "s" : "", (long long)w->calls.frees_ns);
}

static int none(const struct waits *w, struct err *e)
{
	if (w->left_out)
		return err_set(e, ERR_DATA, "the host did not wait for a device in those steps; why the device waited: `opscope report streams`");
	if (w->calls.calls)
		return err_set(e, ERR_DATA, "the host did not wait for a device: the input holds no record of a wait, and no call that waits among its %llu API call%s; why the device waited: `opscope report streams`",
		               (unsigned long long)w->calls.calls, s_of(w->calls.calls));
	return err_set(e, ERR_DATA, "the input holds neither waits for a device nor API calls; to record them: %s", recording_how(w->p, RECORD_DEVICE_WORK));
}

static int waits_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct waits w = {.p = p, .by = (enum waits_grouping)args->variant->by};
	if (window_of(p, args, &w.window, e) < 0)
		return -1;
	w.device_of_track = devices_of_tracks(p);
	wait_calls_find(p, &w.calls);
	waits_collect(&w);
	int rc = 0;
	if (!w.s.n) {
		rc = none(&w, e);
	} else {
		stats_finish(&w.s);
		waits_put(&w, args, out);
		waits_put_notes(&w, out);
		rc = table_sort(out, STR("total_ns"), true, e);
	}
	stats_release(&w.s);
	wait_calls_release(&w.calls);
	mem_free(w.device_of_track);
	return rc;
}

static const struct report_variant waits_variants[] = {
	{.group_by = "stream", .by = WAITS_BY_STREAM},
	{.group_by = "name", .by = WAITS_BY_NAME},
	{0},
};

const struct report report_waits = {
	.name = "waits",
	.title = "Waiting for the device",
	.asks = ASKS_WAIT,
	.also = "wait sync syncs synchronization stalls",
	.help = "Where the host waited for streams, contexts and events, and streams for events of other streams: how often and how long. A wait is known by "
	        "the tracer's record of a synchronisation, or, without a record, by the API call that waits: cudaStreamSynchronize and its kin, and calls that "
	        "return when the copy they launched is done (cudaMemcpy; cudaMemcpyAsync of pageable memory). A Stream Wait Event does not keep the host "
	        "waiting: its time is the time of the call. A call of cudaStreamWaitEvent without a record is not counted. --group-by=name adds up all streams.",
	.none_in_steps = "the host did not wait for a device in them (why the device waited: `opscope report streams`)",
	.variants = waits_variants,
	.sections = (const struct section *const[]){&waits_section, NULL},
	.timeline = true,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.needs = PASS_STEPS | PASS_NEST | PASS_CORRELATE,
	.ignores = LEFT_MEMORY | LEFT_MARKS | LEFT_FLOWS | LEFT_AUX_IDS | LEFT_OP_IDS,
	.run = waits_run,
};
