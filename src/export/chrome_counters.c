/* Counter tracks: what waits on each stream, how fast memory is copied and set, and how busy GPUs are. A viewer draws each from one event to the next. */
#include "analysis/time/copy_rates.h"
#include "analysis/time/launch_queue.h"
#include "analysis/timeline/timeline_sums.h"
#include "base/json_text.h"
#include "export/chrome.h"

#include <math.h>

enum { USE_PIECES_MAX = 100 };

/* The first event has others before it: where something can be counted there is device work. */
static void counter_begin(struct buf *b, const struct profile *p, const char *name, const char *what, uint32_t track, int64_t time_ns)
{
	buf_printf(b, ",\n{\"ph\":\"C\",\"name\":\"%s%s\",\"pid\":", name, what);
	chrome_put_id(b, profile_str(p, p->track.pid_text[track]));
	buf_cstr(b, ",\"ts\":");
	b->n = (size_t)(chrome_put_us(buf_room(b, CHROME_NUMBER_MAX), time_ns) - b->p);
	buf_cstr(b, ",\"args\":{");
}

static void put_queues(const struct export_run *x, struct buf *text)
{
	struct buf *b = &x->out->buf;
	struct launch_queues q;
	launch_queues_find(x->p, &q);
	for (uint32_t i = 0; i < q.n && sink_room(x->out) == 0; i++) {
		uint32_t track = x->p->gpu_op.track[q.v[i].gpu];
		struct str stream = profile_str(x->p, x->p->track.tid_text[track]); /* "7", or "stream 7" in the first traces of Kineto */
		counter_begin(b, x->p, "Queue Length", "", track, q.v[i].time_ns);
		buf_clear(text);
		buf_printf(text, "%s" STR_FMT, str_starts(stream, STR("stream ")) ? "" : "stream ", STR_ARG(stream));
		json_put_string(b, buf_view(text));
		buf_printf(b, ":%u}}", q.v[i].length);
	}
	launch_queues_release(&q);
}

static void put_copies(const struct export_run *x)
{
	struct buf *b = &x->out->buf;
	struct copy_rates r;
	copy_rates_find(x->p, NULL, &r);
	for (uint32_t i = 0; i < r.n && sink_room(x->out) == 0; i++) {
		uint32_t gpu = r.v[i].gpu;
		bool copy = x->p->gpu_op.kind[gpu] == GPU_MEMCPY;
		const char *direction = copy_direction(profile_str(x->p, x->p->gpu_op.name[gpu]));
		counter_begin(b, x->p, copy ? *direction ? "Memcpy " : "Memcpy" : "Memset", copy ? direction : "", x->p->gpu_op.track[gpu], r.v[i].time_ns);
		buf_printf(b, "\"GB/s\":%.6g}}", r.v[i].gbs);
	}
	copy_rates_release(&r);
}

/* A part of one, 0 to 1; the process is the GPU, as in Kineto's traces. */
static void put_share(struct buf *b, int32_t device, const char *name, const char *arg, int64_t time_ns, double share)
{
	buf_printf(b, ",\n{\"ph\":\"C\",\"name\":\"GPU %d %s\",\"pid\":%d,\"ts\":", device, name, device);
	b->n = (size_t)(chrome_put_us(buf_room(b, CHROME_NUMBER_MAX), time_ns) - b->p);
	buf_printf(b, ",\"args\":{\"%s\":%.6g}}", arg, share);
}

/* Pieces of 10^n us, of which there are at most USE_PIECES_MAX. */
struct use_pieces {
	int64_t from_ns, to_ns, piece_ns;
	uint32_t n;
};

/* Of the time that the profiler states as recorded, else from the first event to the last. False where there is none. */
static bool use_pieces_find(const struct timeline *t, struct use_pieces *x)
{
	const struct spans *s = &t->p->span;
	int64_t from = t->first_ns, to = t->last_ns, length;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_TRACE || s->dur_ns[i] <= 0)
			continue;
		from = s->start_ns[i];
		to = span_end(t->p, i);
		break;
	}
	if (__builtin_sub_overflow(to, from, &length) || length <= 0)
		return false;
	int64_t piece = 1000;
	while ((length - 1) / piece >= USE_PIECES_MAX)
		piece *= 10;
	*x = (struct use_pieces){.from_ns = from, .piece_ns = piece, .n = (uint32_t)((length - 1) / piece + 1)};
	return !__builtin_add_overflow(from, piece * x->n, &x->to_ns);
}

/* From 1 to 0 at the begin, so that all are drawn at one scale. */
static void put_use_of(const struct export_run *x, const struct use_pieces *w, const struct timeline_use *u)
{
	static const char utilization[] = "Utilization", efficiency[] = "Est. SM Efficiency";
	struct buf *b = &x->out->buf;
	bool known = true;
	for (uint32_t i = 0; i < w->n; i++)
		known = known && !isnan(u->sm_efficiency[i]);
	put_share(b, u->device, utilization, "GPU Utilization", w->from_ns, 1);
	put_share(b, u->device, utilization, "GPU Utilization", w->from_ns, 0);
	for (uint32_t i = 0; i < w->n && sink_room(x->out) == 0; i++) {
		int64_t at = w->from_ns + i * w->piece_ns;
		put_share(b, u->device, utilization, "GPU Utilization", at, u->utilization[i]);
		if (known)
			put_share(b, u->device, efficiency, efficiency, at, u->sm_efficiency[i]);
	}
	put_share(b, u->device, utilization, "GPU Utilization", w->to_ns, 0);
	if (known)
		put_share(b, u->device, efficiency, efficiency, w->to_ns, 0);
}

static void put_use(const struct export_run *x)
{
	struct timeline *t = timeline_new(x->p);
	struct timeline_use *u;
	struct use_pieces w;
	if (use_pieces_find(t, &w)) {
		uint32_t n = timeline_use(t, w.from_ns, w.to_ns, w.n, &u);
		for (uint32_t i = 0; i < n && sink_room(x->out) == 0; i++)
			if (u[i].device != INT32_MIN)
				put_use_of(x, &w, &u[i]);
		timeline_use_release(u, n);
	}
	timeline_free(t);
}

void chrome_put_counters(const struct export_run *x)
{
	struct buf text = {0};
	put_queues(x, &text);
	put_copies(x);
	put_use(x);
	buf_release(&text);
}
