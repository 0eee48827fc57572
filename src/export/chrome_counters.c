/* Counter tracks: what waits on each stream, and how fast memory is copied and set. A viewer draws each from one event to the next. */
#include "analysis/time/copy_rates.h"
#include "analysis/time/launch_queue.h"
#include "base/json_text.h"
#include "export/chrome.h"

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
		counter_begin(b, x->p, "Queue Length", "", track, q.v[i].time_ns);
		buf_clear(text);
		buf_printf(text, "stream " STR_FMT, STR_ARG(profile_str(x->p, x->p->track.tid_text[track])));
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

void chrome_put_counters(const struct export_run *x)
{
	struct buf text = {0};
	put_queues(x, &text);
	put_copies(x);
	buf_release(&text);
}
