#include "query/timeline_list.h"

#include "analysis/steps/steps.h"
#include "analysis/timeline/timeline.h"
#include "base/mem.h"

enum {
	TIMELINE_TRACK, TIMELINE_DEVICE, TIMELINE_PROCESS, TIMELINE_THREAD, TIMELINE_THREAD_NAME, TIMELINE_LANE, TIMELINE_START, TIMELINE_DURATION, TIMELINE_BUSY, TIMELINE_EVENTS, TIMELINE_NAME,
	TIMELINE_KIND, TIMELINE_COLUMNS
};

static const struct section_column timeline_list_columns[TIMELINE_COLUMNS] = {
	[TIMELINE_TRACK] = {COLUMN(NUMBER, "track", "Track", "a thread of the host or a stream: its number, from 0")},
	[TIMELINE_DEVICE] = {COLUMN(YES_NO, "on_device", "On device", "work of a device, no range of the host")},
	[TIMELINE_PROCESS] = {COLUMN(TEXT, "process", "Process", "process or device, as recorded")},
	[TIMELINE_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread or stream, as recorded")},
	[TIMELINE_THREAD_NAME] = {COLUMN(TEXT, "thread_name", "Thread's name", "as recorded; empty = not stated")},
	[TIMELINE_LANE] = {COLUMN(NUMBER, "lane", "Lane", "line of the track, from 0: what is nested stands at its depth")},
	[TIMELINE_START] = {COLUMN(NS, "since_first_ns", "Start", "since the first event")},
	[TIMELINE_DURATION] = {COLUMN(NS, "duration_ns", "Duration", "from its start to its end")},
	[TIMELINE_BUSY] = {COLUMN(NS, "busy_ns", "Busy", "what its events cover of that")},
	[TIMELINE_EVENTS] = {COLUMN(COUNT, "events", "Events", "that it stands for")},
	[TIMELINE_NAME] = {COLUMN(TEXT, "name", "Name", "of the event, or of the longest of them")},
	[TIMELINE_KIND] = {COLUMN(TEXT, "kind", "Kind", "of the event, or of the longest of them: op, user, call, kernel, memcpy, ...")},
};

enum { TIMELINE_STEP_NUMBER, TIMELINE_STEP_NAME, TIMELINE_STEP_START, TIMELINE_STEP_DURATION, TIMELINE_STEP_COLUMNS };

static const struct section_column timeline_list_step_columns[TIMELINE_STEP_COLUMNS] = {
	[TIMELINE_STEP_NUMBER] = {COLUMN(NUMBER, "step", "Step", "number of the step")},
	[TIMELINE_STEP_NAME] = {COLUMN(TEXT, "name", "Name", "name of the step")},
	[TIMELINE_STEP_START] = {COLUMN(NS, "since_first_ns", "Start", "since the first event")},
	[TIMELINE_STEP_DURATION] = {COLUMN(NS, "duration_ns", "Duration", "with the device work that it launched")},
};

static void timeline_list_put_text(struct table *out, unsigned column, struct str text)
{
	if (text.n)
		table_set_str(out, column, text);
}

static void timeline_list_put_item(const struct timeline *t, uint32_t lane, const struct timeline_item *x, struct table *out)
{
	const struct profile *p = t->p;
	const struct timeline_track *k = &t->tracks[t->lanes[lane].track];
	table_row(out);
	table_set_i64(out, TIMELINE_TRACK, t->lanes[lane].track);
	table_set_bool(out, TIMELINE_DEVICE, k->device);
	timeline_list_put_text(out, TIMELINE_PROCESS, profile_str(p, p->track.pid_text[k->track]));
	timeline_list_put_text(out, TIMELINE_THREAD, profile_str(p, p->track.tid_text[k->track]));
	timeline_list_put_text(out, TIMELINE_THREAD_NAME, profile_str(p, p->track.thread_name[k->track]));
	table_set_i64(out, TIMELINE_LANE, lane - k->first_lane);
	table_set_i64(out, TIMELINE_START, x->start_ns - t->first_ns);
	table_set_i64(out, TIMELINE_DURATION, x->end_ns - x->start_ns);
	table_set_i64(out, TIMELINE_BUSY, x->busy_ns);
	table_set_i64(out, TIMELINE_EVENTS, x->count);
	timeline_list_put_text(out, TIMELINE_NAME, profile_str(p, k->device ? p->gpu_op.name[x->row] : p->span.name[x->row]));
	table_set_str(out, TIMELINE_KIND, str_from(k->device ? gpu_kind_name[p->gpu_op.kind[x->row]] : span_kind_name[p->span.kind[x->row]]));
}

/* All items at this zoom; *first[lane] is the place of the first of a lane. Gives up beyond `most`. */
static bool timeline_list_take(const struct timeline *t, unsigned zoom, size_t most, struct timeline_items *out, size_t *first)
{
	out->n = 0;
	for (uint32_t lane = 0; lane < t->n_lanes; lane++) {
		first[lane] = out->n;
		timeline_items_of(t, lane, t->first_ns, t->last_ns + 1, zoom, out);
		if (out->n > most && zoom < TIMELINE_ZOOM_MAX)
			return false;
	}
	first[t->n_lanes] = out->n;
	return true;
}

static void timeline_list_put_items(const struct timeline *t, size_t most, struct table *out)
{
	struct timeline_items items = {0};
	size_t *first = NEW_ARRAY(t->n_lanes + 1, size_t);
	unsigned zoom = 0;
	while (!timeline_list_take(t, zoom, most, &items, first))
		zoom++;
	for (uint32_t lane = 0; lane < t->n_lanes; lane++)
		for (size_t i = first[lane]; i < first[lane + 1]; i++)
			timeline_list_put_item(t, lane, &items.v[i], out);
	if (zoom)
		table_note(out, "Of %llu events, those shorter than %lld ns are summed up.", (unsigned long long)t->p->span.rows.n + t->p->gpu_op.rows.n, 1ll << zoom);
	timeline_items_release(&items);
	mem_free(first);
}

static void timeline_list_put_steps(const struct timeline *t, struct table *out)
{
	const struct steps *s = t->p->steps;
	struct table *section = table_section(out, "steps", "Steps");
	for (unsigned i = 0; i < TIMELINE_STEP_COLUMNS; i++)
		table_column(section, &timeline_list_step_columns[i].column);
	for (unsigned i = 0; s && !s->whole_trace && i < s->n; i++) {
		table_row(section);
		table_set_i64(section, TIMELINE_STEP_NUMBER, s->v[i].number);
		table_set_str(section, TIMELINE_STEP_NAME, s->v[i].name);
		table_set_i64(section, TIMELINE_STEP_START, s->v[i].start_ns - t->first_ns);
		table_set_i64(section, TIMELINE_STEP_DURATION, s->v[i].end_ns - s->v[i].start_ns);
	}
}

int timeline_list(struct profile *whole, const struct report_args *asked, size_t most, struct table *out, struct err *e)
{
	struct report_args args;
	if (whole->durations_only)
		return err_set(e, ERR_DATA, "this input holds durations but no times, so that there is no timeline");
	if (report_args_chosen(whole, asked, &args, e) < 0)
		return -1;
	struct profile *p = report_part(whole, &args, PASS_NEST | PASS_STEPS, e);
	if (!p)
		return -1;
	struct timeline *t = timeline_new(p);
	table_init(out, "timeline", "Timeline");
	for (unsigned i = 0; i < TIMELINE_COLUMNS; i++)
		table_column(out, &timeline_list_columns[i].column);
	timeline_list_put_items(t, most, out);
	timeline_list_put_steps(t, out);
	timeline_free(t);
	return 0;
}
