/* The whole timeline at one zoom: what an exported report of a long trace draws its timeline from. */
#include "serve/api/timeline_roles.h"
#include "serve/api/timeline_times.h"
#include "serve/series.h"

enum { ITEMS_MAX = 200000 };

struct whole {
	const struct timeline *t;
	struct buf *b;
	struct texts texts;
	struct timeline_names names;
	struct timeline_items items;
	unsigned zoom;
};

static void items_of(struct whole *x, uint32_t lane)
{
	x->items.n = 0;
	timeline_items_of(x->t, lane, x->t->first_ns, x->t->last_ns + 1, x->zoom, &x->items);
}

/* The finest zoom that has no more items than that. */
static unsigned finest(struct whole *x, uint64_t most)
{
	for (x->zoom = 0; x->zoom < TIMELINE_TILE_ZOOM_MAX; x->zoom++) {
		uint64_t n = 0;
		for (uint32_t l = 0; l < x->t->n_lanes && n <= most; l++) {
			items_of(x, l);
			n += x->items.n;
		}
		if (n <= most)
			break;
	}
	return x->zoom;
}

#define PUT(name, differences, value)                                                                                               \
	do {                                                                                                                        \
		struct series s_ = series_begin(x->b, name, differences);                                                           \
		for (size_t i = 0; i < x->items.n; i++) {                                                                           \
			const struct timeline_item *k = &x->items.v[i];                                                             \
			series_add(&s_, value);                                                                                     \
		}                                                                                                                   \
		series_end(&s_);                                                                                                    \
	} while (0)

/* Of the slice that gives an item its name; where it is drawn shorter, because the next one begins, no more than is drawn of all. */
static int64_t longest_ns(const struct profile *p, bool device, const struct timeline_item *k)
{
	int64_t ns = device ? p->gpu_op.dur_ns[k->row] : p->span.dur_ns[k->row];
	return ns < k->busy_ns ? ns : k->busy_ns;
}

static void serve_timeline_whole_put_lane(struct whole *x, uint32_t lane)
{
	const struct profile *p = x->t->p;
	bool device = x->t->tracks[x->t->lanes[lane].track].device;
	items_of(x, lane);
	for (size_t i = 0; i < x->items.n; i++)
		timeline_names_meet(&x->names, device, x->items.v[i].row);
	buf_printf(x->b, "{\"track\":%u,", x->t->lanes[lane].track);
	PUT("start", true, k->start_ns - x->t->first_ns);
	buf_char(x->b, ',');
	PUT("dur", false, k->end_ns - k->start_ns);
	buf_char(x->b, ',');
	PUT("idle", false, k->end_ns - k->start_ns - timeline_busy_ns(p, device, k));
	buf_char(x->b, ',');
	PUT("count", false, k->count);
	buf_char(x->b, ',');
	PUT("row", true, k->row);
	buf_char(x->b, ',');
	PUT("longest", false, longest_ns(x->t->p, device, k));
	buf_char(x->b, ',');
	PUT("name", false, texts_number(&x->texts, device ? p->gpu_op.name[k->row] : p->span.name[k->row]));
	buf_char(x->b, ',');
	PUT("category", false, device ? p->gpu_op.cat[k->row] : p->span.cat[k->row]);
	buf_char(x->b, '}');
}

static int serve_timeline_whole_run(const struct request *r, struct response *out, struct err *e)
{
	struct whole w = {.t = library_timeline(r->library, r->entry, e), .b = &out->body}, *x = &w;
	int64_t most;
	if (!x->t || request_number(r, "items", 1, 10000000, ITEMS_MAX, &most, e) < 0)
		return -1;
	x->zoom = finest(x, (uint64_t)most);
	texts_begin(&x->texts, x->t->p);
	timeline_names_begin(&x->names, x->t->p);
	buf_printf(x->b, "{\"zoom\":%u,\"lanes\":[", x->zoom);
	for (uint32_t l = 0; l < x->t->n_lanes; l++) {
		buf_cstr(x->b, l ? ",\n" : "\n");
		serve_timeline_whole_put_lane(x, l);
	}
	buf_cstr(x->b, "],\n\"categories\":[");
	for (uint32_t i = 0; i < x->t->p->cat.rows.n; i++) {
		buf_cstr(x->b, i ? "," : "");
		json_put_string(x->b, profile_cat(x->t->p, (uint16_t)i));
	}
	buf_cstr(x->b, "],\n");
	timeline_names_put_roles(&x->names, &x->texts, x->b);
	buf_cstr(x->b, ",\n");
	texts_put(&x->texts, x->b, "texts");
	buf_cstr(x->b, "}\n");
	texts_release(&x->texts);
	timeline_names_release(&x->names);
	timeline_items_release(&x->items);
	return 0;
}

static const struct endpoint_param params[] = {
	{"items", "at most so many items (default 200000)", NULL, false},
	{0},
};

const struct endpoint endpoint_timeline_whole = {
	.path = "/api/timeline/whole",
	.help = "all lanes from begin to end at the finest zoom that has no more than so many items, column by column",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = serve_timeline_whole_run,
};
