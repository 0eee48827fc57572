/* Streams: the tracks of device work, and what is known of them. */
#include "base/sort.h"
#include "input/capture/capture.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLAG_MASK = 0xffff, FLAG_NULL = 3 }; /* CUpti_ActivityStreamFlag */

void capture_stream_add(struct capture *c, const struct capture_stream *s)
{
	MEM_GROW(c->stream, c->cap_streams_told, c->n_streams + 1);
	c->stream[c->n_streams] = *s;
	c->stream[c->n_streams].order = c->n_streams;
	c->n_streams++;
}

void capture_stream(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_stream *s = (const struct wire_stream *)h;
	build_count(&c->b, capture_cat(c, "stream"), 'M', 1);
	capture_stream_add(c, &(struct capture_stream){.context = s->context, .device = UINT32_MAX, .stream = h->id, .priority = s->priority,
	                                               .is_default = (s->flags & FLAG_MASK) == FLAG_NULL});
}

static int capture_streams_by_place(const void *x, const void *y)
{
	const struct capture_stream *a = x, *b = y;
	return COMPARE(a->device, b->device) ?: COMPARE(a->stream, b->stream);
}

static int by_place_and_order(const void *x, const void *y)
{
	const struct capture_stream *a = x, *b = y;
	return capture_streams_by_place(a, b) ?: COMPARE(a->order, b->order);
}

/* One entry for each stream of a device, from all that was told of it. */
void capture_streams_known(struct capture *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n_streams; i++) {
		struct capture_stream *s = &c->stream[i];
		uint32_t ordinal = s->device == UINT32_MAX ? idmap_get(&c->context_device, s->context) : s->device;
		if (ordinal == IDMAP_NONE)
			continue;
		c->stream[n] = *s;
		c->stream[n++].device = (uint32_t)capture_device_id(c, ordinal);
	}
	if (n)
		qsort(c->stream, n, sizeof *c->stream, by_place_and_order);
	c->n_streams = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct capture_stream *to = c->n_streams ? &c->stream[c->n_streams - 1] : NULL, *s = &c->stream[i];
		if (!to || capture_streams_by_place(to, s) != 0) {
			c->stream[c->n_streams++] = *s;
			continue;
		}
		to->name = s->name ? s->name : to->name;
		to->priority = s->priority ? s->priority : to->priority;
		to->is_default |= s->is_default;
	}
}

/* As much of it as a lane has room for: streams without end may have one long name. The whole one is a fact of the capture. */
static void capture_streams_put_name(struct buf *b, struct str name)
{
	enum { MOST = 200 };
	struct str shown = name;
	for (shown.n = name.n < MOST ? name.n : MOST; shown.n < name.n && shown.n && (name.p[shown.n] & 0xc0) == 0x80; shown.n--)
		;
	buf_printf(b, ": " STR_FMT "%s", STR_ARG(shown), shown.n < name.n ? "…" : "");
}

/* "stream 7 (default)", "stream 20: copies, priority -1". */
static uint32_t stream_name(struct capture *c, int32_t device, int64_t stream)
{
	const struct capture_stream wanted = {.device = (uint32_t)device, .stream = (uint32_t)stream}, *s = NULL;
	if (stream >= 0 && c->n_streams)
		s = bsearch(&wanted, c->stream, c->n_streams, sizeof *c->stream, capture_streams_by_place);
	struct buf *b = &c->scratch;
	buf_clear(b);
	buf_printf(b, stream < 0 ? "no stream" : "stream %lld", (long long)stream);
	if (s && s->is_default)
		buf_cstr(b, " (default)");
	if (s && s->name)
		capture_streams_put_name(b, intern_get(&c->p->strings, s->name));
	if (s && s->priority)
		buf_printf(b, ", priority %d", s->priority);
	return intern_put(&c->p->strings, b->p, b->n);
}

/* Tracks are called as Kineto calls them; that of a second process with the same number on one device by its process, too. */
static uint32_t capture_streams_new_track(struct capture *c, int32_t device, int64_t stream)
{
	char dev[16], name[64], label[32];
	int64_t key[3] = {device, stream, INT64_MIN};
	uint32_t before = c->streams.n;
	intern_put(&c->streams, (const char *)key, sizeof key); /* of no process: whether any has had this number */
	MEM_GROW(c->stream_track, c->cap_streams, c->streams.n);
	bool first = c->streams.n > before;
	int nd = snprintf(dev, sizeof dev, "%d", device);
	int nn = snprintf(name, sizeof name, first ? "%lld" : "%lld of process %d", (long long)stream, c->file->h.pid);
	uint32_t track = build_track(&c->b, (struct str){dev, (size_t)nd}, (struct str){name, (size_t)nn});
	struct tracks *t = &c->p->track;
	t->tid[track] = stream;
	int nl = device < 0 ? snprintf(label, sizeof label, "unknown GPU") : snprintf(label, sizeof label, "GPU %d", device);
	t->process_labels[track] = intern_put(&c->p->strings, label, (size_t)nl);
	t->thread_name[track] = stream_name(c, device, stream);
	return track;
}

uint32_t capture_stream_track(struct capture *c, int32_t device, int64_t stream)
{
	int64_t key[3] = {device, stream, c->file->h.pid};
	uint32_t at = intern_find(&c->streams, (struct str){(const char *)key, sizeof key});
	if (at != INTERN_NONE)
		return c->stream_track[at];
	uint32_t track = capture_streams_new_track(c, device, stream);
	at = intern_put(&c->streams, (const char *)key, sizeof key);
	MEM_GROW(c->stream_track, c->cap_streams, at + 1);
	return c->stream_track[at] = track;
}
