/* What is to be drawn of some tracks in a piece of time, at a zoom. */
#include "serve/api/timeline_answers.h"
#include "serve/api/timeline_roles.h"
#include "serve/api/timeline_times.h"

struct tile {
	const struct timeline *t;
	int64_t from_ns, to_ns;
	unsigned zoom;
	struct timeline_items items;
	struct timeline_names names;
};

static char *put_comma_number(char *at, int64_t v)
{
	*at++ = ',';
	return i64_write(at, v);
}

/* Seven numbers an item, as small as can be: where it begins is counted from the end of the one before, its row from the one before. Most of a tile is
 * this, so that room is made once a lane. */
static void serve_timeline_tile_put_lane(struct buf *b, struct tile *x, uint32_t lane)
{
	enum { ITEM_BYTES = 7 * (I64_DIGITS + 1) };
	const struct profile *p = x->t->p;
	bool device = x->t->tracks[x->t->lanes[lane].track].device;
	const uint32_t *name = device ? p->gpu_op.name : p->span.name;
	const uint16_t *cat = device ? p->gpu_op.cat : p->span.cat;
	x->items.n = 0;
	timeline_items_of(x->t, lane, x->from_ns, x->to_ns, x->zoom, &x->items);
	char *begin = buf_room(b, x->items.n * ITEM_BYTES + 2), *at = begin;
	int64_t before_ns = x->t->first_ns, before_row = 0;
	for (size_t i = 0; i < x->items.n; i++) {
		const struct timeline_item *k = &x->items.v[i];
		timeline_names_meet(&x->names, device, k->row);
		at = put_comma_number(at, k->start_ns - before_ns);
		at = put_comma_number(at, k->end_ns - k->start_ns);
		at = put_comma_number(at, k->end_ns - k->start_ns - timeline_busy_ns(p, device, k));
		at = put_comma_number(at, k->count);
		at = put_comma_number(at, k->row - before_row);
		at = put_comma_number(at, name[k->row]);
		at = put_comma_number(at, cat[k->row]);
		before_ns = k->end_ns;
		before_row = k->row;
	}
	if (at == begin)
		at++;
	*begin = '['; /* in place of the first comma */
	*at++ = ']';
	b->n = (size_t)(at - b->p);
}

static void serve_timeline_tile_put_names(struct buf *b, const struct tile *x)
{
	buf_cstr(b, "],\n");
	timeline_names_put(&x->names, b);
	buf_cstr(b, ",\n");
	timeline_names_put_roles(&x->names, NULL, b);
	buf_cstr(b, ",\n\"categories\":[");
	for (uint32_t i = 0; i < x->t->p->cat.rows.n; i++) {
		buf_cstr(b, i ? "," : "");
		json_put_string(b, profile_cat(x->t->p, (uint16_t)i));
	}
	buf_cstr(b, "]}\n");
}

static void serve_timeline_tile_put_tile(struct buf *b, struct tile *x, const uint8_t *take, int64_t index)
{
	bool any = false;
	timeline_names_begin(&x->names, x->t->p);
	buf_printf(b, "{\"zoom\":%u,\"index\":%lld,\"tracks\":[", x->zoom, (long long)index);
	for (uint32_t i = 0; i < x->t->n_tracks; i++) {
		const struct timeline_track *k = &x->t->tracks[i];
		if (!take[i])
			continue;
		buf_printf(b, "%s{\"track\":%u,\"lanes\":[", any ? ",\n" : "\n", i);
		any = true;
		bool here = k->first_ns < x->to_ns && k->last_ns >= x->from_ns;
		for (uint32_t l = 0; here && l < k->n_lanes; l++) {
			buf_cstr(b, l ? "," : "");
			serve_timeline_tile_put_lane(b, x, k->first_lane + l);
		}
		buf_cstr(b, "]}");
	}
	serve_timeline_tile_put_names(b, x);
	timeline_names_release(&x->names);
	timeline_items_release(&x->items);
}

int timeline_answer_tile(const struct timeline *t, const struct request *r, struct response *out, struct err *e)
{
	int64_t zoom, index;
	if (request_number(r, "zoom", 0, TIMELINE_TILE_ZOOM_MAX, 0, &zoom, e) < 0 ||
	    request_number(r, "index", 0, TIMELINE_NS_MAX >> TIMELINE_TILE_BITS >> zoom, 0, &index, e) < 0)
		return -1;
	uint8_t *take = arena_alloc(r->arena, t->n_tracks + 1);
	if (timeline_take(r, "tracks", t->n_tracks, take, e) < 0)
		return -1;
	int64_t width_ns = (int64_t)TIMELINE_TILE_PIXELS << zoom;
	struct tile x = {.t = t, .from_ns = t->first_ns + index * width_ns, .to_ns = t->first_ns + (index + 1) * width_ns, .zoom = (unsigned)zoom};
	serve_timeline_tile_put_tile(&out->body, &x, take, index);
	return 0;
}

static int serve_timeline_tile_run(const struct request *r, struct response *out, struct err *e)
{
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	return t ? timeline_answer_tile(t, r, out, e) : -1;
}

static const struct endpoint_param params[] = {TIMELINE_TILE_PARAMS, {0}};

const struct endpoint endpoint_timeline_tile = {
	.path = "/api/timeline/tile",
	.help = "what is to be drawn of each lane in one tile: of each item the ns from the end of the item before (of the first: from 0) to its start, its duration, what of that was idle, count, row less that of the item before, name and category; and what each name is, by which it is coloured. A single event that is drawn up to the next one's begin, and lasts longer, has an idle time below 0",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.queue = QUEUE_QUICK,
	.run = serve_timeline_tile_run,
};
