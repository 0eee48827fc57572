/* Waiting for the device as the device's tracer saw it: for streams, contexts and events. */
#include "analysis/recording.h"
#include "base/mem.h"
#include "report/stats.h"
#include "report/window.h"

enum grouping { BY_STREAM, BY_NAME };

/* Parts that a grouping does not ask for are 0. */
struct key {
	uint32_t name, track, on; /* track + 1; on: id of the text of the stream's number, 0 = not known */
};

static struct key key_of(const struct profile *p, enum grouping by, uint32_t on_name, uint32_t i)
{
	struct key k = {.name = p->span.name[i]};
	if (by == BY_STREAM) {
		k.track = p->span.track[i] + 1;
		k.on = on_name ? profile_arg_id(p, p->span.args[i], on_name) : 0;
	}
	return k;
}

static void put(const struct profile *p, enum grouping by, struct stats *s, struct table *out)
{
	unsigned name = TABLE_COLUMN(out, "name", "Wait", "what was waited for, as CUPTI tells kinds of synchronisation", CELL_STR, .flags = COLUMN_KEY);
	unsigned device = UINT32_MAX, stream = UINT32_MAX, on = UINT32_MAX;
	if (by == BY_STREAM) {
		device = TABLE_COLUMN(out, "device", "Device", "of the stream", CELL_STR, .flags = COLUMN_GROUP);
		stream = TABLE_COLUMN(out, "stream", "Stream", "that was waited for; of a Stream Wait Event the one that waits; -1 = the whole context, or an event "
		                      "alone", CELL_STR, .flags = COLUMN_GROUP);
		on = TABLE_COLUMN(out, "wait_on_stream", "For stream", "on which the event that was waited for had been recorded last; empty = not known", CELL_STR,
		                  .flags = COLUMN_GROUP);
	}
	unsigned first = stats_columns(out);
	for (uint32_t g = 0; g < s->n; g++) {
		struct key k;
		stats_key(s, g, &k, sizeof k);
		table_row(out);
		table_set_str(out, name, profile_str(p, k.name));
		if (by == BY_STREAM) {
			table_set_str(out, device, profile_str(p, p->track.pid_text[k.track - 1]));
			table_set_str(out, stream, profile_str(p, p->track.tid_text[k.track - 1]));
			if (k.on)
				table_set_str(out, on, profile_str(p, k.on));
		}
		stats_put(out, first, s, g);
	}
}

static int run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	enum grouping by = args->group_by && strcmp(args->group_by, "name") == 0 ? BY_NAME : BY_STREAM;
	struct stats s = {0};
	uint32_t id = intern_find(&p->strings, STR("wait_on_stream")), on_name = id == INTERN_NONE ? 0 : id;
	uint64_t left_out = 0, for_events = 0, known = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_SYNC)
			continue;
		if (!window_has(&w, p->span.start_ns[i])) {
			left_out++;
			continue;
		}
		struct key k = key_of(p, by, on_name, i);
		stats_add(&s, &k, sizeof k, p->span.dur_ns[i]);
		struct str name = profile_str(p, p->span.name[i]);
		for_events += str_eqc(name, "Event Sync") || str_eqc(name, "Stream Wait Event");
		known += on_name && profile_arg_id(p, p->span.args[i], on_name) != 0;
	}
	int rc = 0;
	if (!s.n) {
		rc = left_out ? err_set(e, ERR_DATA, "no wait began in those steps") :
		                err_set(e, ERR_DATA, "the input holds no waits for a device; to record them: %s", recording_how(p, RECORD_DEVICE_WORK));
	} else {
		stats_finish(&s);
		put(p, by, &s, out);
		table_note(out, "%llu waits, %lld ns; waits outside the steps asked for: %llu", (unsigned long long)s.n_values, (long long)s.total,
		           (unsigned long long)left_out);
		if (for_events)
			table_note(out, "of %llu waits for an event it is known for %llu on which stream that was recorded; `opscope record --sync` records it",
			           (unsigned long long)for_events, (unsigned long long)known);
		rc = table_sort(out, STR("total_ns"), true, e);
	}
	stats_release(&s);
	return rc;
}

static const char *const groupings[] = {"stream", "name", NULL};

const struct report report_waits = {
	.name = "waits",
	.title = "Waiting for the device",
	.help = "Where the host waited for streams, contexts and events, and streams for events of other streams, as the device's tracer saw it: how "
	        "often and how long. The calls that did so are in report api. A Stream Wait Event keeps no host waiting: its time is that of the call. "
	        "--group-by=name adds all streams.",
	.group_by = groupings,
	.timeline = true,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.needs = PASS_STEPS | PASS_NEST | PASS_CORRELATE,
	.run = run,
};
