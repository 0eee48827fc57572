/* What the timeline consists of: tracks, steps, extent. */
#include "analysis/steps/steps.h"
#include "query/report.h"
#include "serve/api/timeline_answers.h"
#include "serve/api/timeline_times.h"

static void put_track(struct buf *b, const struct timeline *t, uint32_t i)
{
	const struct profile *p = t->p;
	const struct timeline_track *k = &t->tracks[i];
	buf_printf(b, "%s{\"track\":%u,\"device\":%s,\"python\":%s,", i ? ",\n" : "\n", i, k->device ? "true" : "false", k->python ? "true" : "false");
	JSON_PUT_TEXTS(b, {"pid", profile_str(p, p->track.pid_text[k->track])}, {"tid", profile_str(p, p->track.tid_text[k->track])},
	               {"process", profile_str(p, p->track.process_name[k->track])}, {"labels", profile_str(p, p->track.process_labels[k->track])},
	               {"thread", profile_str(p, p->track.thread_name[k->track])});
	buf_printf(b, ",\"lanes\":%u,\"nested\":%u,\"slices\":%u,", k->n_lanes, k->n_nested, k->slices);
	json_put_number(b, "first", k->first_ns - t->first_ns);
	buf_char(b, ',');
	json_put_number(b, "last", k->last_ns - t->first_ns);
	buf_char(b, '}');
}

static void serve_timeline_put_steps(struct buf *b, const struct timeline *t)
{
	const struct steps *s = t->p->steps;
	for (unsigned i = 0; !s->whole_trace && i < s->total; i++) {
		buf_cstr(b, i ? ",\n{" : "\n{");
		json_put_text(b, "name", s->v[i].name);
		buf_char(b, ',');
		json_put_number(b, "number", s->v[i].number);
		buf_char(b, ',');
		json_put_number(b, "start", s->v[i].start_ns - t->first_ns);
		buf_char(b, ',');
		json_put_number(b, "end", s->v[i].end_ns - t->first_ns);
		buf_printf(b, ",\"counts\":%s}", i < s->n ? "true" : "false");
	}
}

void timeline_put_info(struct buf *b, const struct timeline *t)
{
	/* The begin as text: beyond 2^53 a browser would round it. */
	buf_printf(b, "{\"first_ns\":\"%lld\",", (long long)t->first_ns);
	json_put_number(b, "length", t->last_ns - t->first_ns);
	buf_printf(b, ",\"times\":%s", t->p->durations_only ? "false" : "true"); /* false: starts are made up from order and durations */
	buf_printf(b, ",\"tile_pixels\":%d,\"zoom_max\":%d,\"slices\":%llu,\"too_deep\":%llu,\"tracks\":[", TIMELINE_TILE_PIXELS, TIMELINE_TILE_ZOOM_MAX,
	           (unsigned long long)t->p->span.rows.n + t->p->gpu_op.rows.n, (unsigned long long)t->too_deep);
	for (uint32_t i = 0; i < t->n_tracks; i++)
		put_track(b, t, i);
}

static int serve_timeline_run(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	struct library_turn turn;
	if (!t || library_turn_begin(&turn, r->entry, e) < 0)
		return -1;
	/* By their default key op, whatever a report was asked for last. */
	int rc = report_part(r->entry->profile, &(struct report_args){0}, PASS_STEPS, e) ? 0 : -1;
	if (rc == 0) {
		timeline_put_info(b, t);
		buf_cstr(b, "],\n\"steps\":[");
		serve_timeline_put_steps(b, t);
		buf_cstr(b, "]}\n");
	}
	library_turn_end(&turn);
	return rc;
}

const struct endpoint endpoint_timeline = {
	.path = "/api/timeline",
	.help = "threads, streams and steps; times in ns since first_ns",
	.flags = ENDPOINT_INPUT,
	.queue = QUEUE_QUICK,
	.run = serve_timeline_run,
};
