/* Events by name. */
#include "base/mem.h"
#include "serve/timeline_times.h"

struct hits {
	const struct timeline *t;
	const uint8_t *named;     /* by string id */
	struct buf *b;
	int64_t limit, from_ns;
	uint64_t found, total_ns;
	unsigned listed;
};

/* Rows are sorted by track, so that those of all tracks in order of time would need a sort; a list by track is as good to walk. */
static void look(struct hits *h, bool device)
{
	const struct profile *p = h->t->p;
	uint32_t n = device ? p->gpu_op.rows.n : p->span.rows.n;
	const uint32_t *name = device ? p->gpu_op.name : p->span.name;
	const int64_t *start = device ? p->gpu_op.start_ns : p->span.start_ns, *dur = device ? p->gpu_op.dur_ns : p->span.dur_ns;
	for (uint32_t i = 0; i < n; i++) {
		if (!h->named[name[i]])
			continue;
		h->found++;
		h->total_ns += (uint64_t)dur[i];
		if (start[i] < h->from_ns || h->listed >= h->limit)
			continue;
		buf_cstr(h->b, h->listed++ ? ",\n" : "\n");
		timeline_put_row(h->b, h->t, device, i);
	}
}

static int run(const struct request *r, struct response *out, struct err *e)
{
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	struct hits h = {.t = t, .b = &out->body};
	int64_t to_ns;
	if (!t || request_number(r, "limit", 1, 10000, 500, &h.limit, e) < 0 || timeline_window(r, t, &h.from_ns, &to_ns, e) < 0)
		return -1;
	struct str text = request_value(r, "text");
	uint8_t *named = NEW_ARRAY(t->p->strings.n + 1, uint8_t);
	for (uint32_t i = 0; i <= t->p->strings.n; i++)
		named[i] = i && str_has_nocase(profile_str(t->p, i), text);
	h.named = named;
	buf_cstr(h.b, "{\"events\":[");
	look(&h, false);
	look(&h, true);
	buf_cstr(h.b, "],");
	put_number(h.b, "found", (int64_t)h.found);
	buf_char(h.b, ',');
	put_number(h.b, "total_ns", (int64_t)h.total_ns);
	buf_cstr(h.b, "}\n");
	mem_free(named);
	return 0;
}

static const struct endpoint_param params[] = {
	{"text", "a part of the name, whatever the case", NULL, true},
	{"from", "list only those that begin at this time or later", NULL, false},
	{"limit", "list at most so many (default 500)", NULL, false},
	{0},
};

const struct endpoint endpoint_timeline_find = {
	.path = "/api/timeline/find",
	.help = "the events with this text in their name: how many, how long, and the first of each track",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = run,
};
