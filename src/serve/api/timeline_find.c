/* Events by name. */
#include "base/mem.h"
#include "base/sort.h"
#include "serve/api/timeline_answers.h"
#include "serve/api/timeline_times.h"

#include <stdlib.h>

struct hit {
	int64_t start_ns;
	uint32_t row;
	bool device;
};

struct hits {
	const struct timeline *t;
	const uint8_t *named;     /* by string id */
	uint32_t limit;
	int64_t from_ns;
	int64_t most_ns;          /* hits from here on are too late to be listed */
	struct hit *v;            /* up to twice as many as wanted, the first of which are kept from time to time */
	uint32_t n;
	uint64_t found, total_ns;
};

static int earlier(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	return COMPARE(x->start_ns, y->start_ns) ?: COMPARE(x->device, y->device) ?: COMPARE(x->row, y->row);
}

static void serve_timeline_find_keep_first(struct hits *h)
{
	qsort(h->v, h->n, sizeof *h->v, earlier);
	if (h->n < h->limit)
		return;
	h->n = h->limit;
	h->most_ns = h->v[h->n - 1].start_ns;
}

static void serve_timeline_find_look(struct hits *h, bool device)
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
		if (start[i] < h->from_ns || start[i] >= h->most_ns)
			continue;
		h->v[h->n++] = (struct hit){start[i], i, device};
		if (h->n == 2 * h->limit)
			serve_timeline_find_keep_first(h);
	}
}

static void put_hits(struct buf *b, struct hits *h)
{
	serve_timeline_find_keep_first(h);
	buf_cstr(b, "{\"events\":[");
	for (uint32_t i = 0; i < h->n; i++) {
		buf_cstr(b, i ? ",\n" : "\n");
		timeline_put_row(b, h->t, h->v[i].device, h->v[i].row);
	}
	buf_cstr(b, "],");
	json_put_number(b, "found", (int64_t)h->found);
	buf_char(b, ',');
	json_put_number(b, "total_ns", (int64_t)h->total_ns);
	buf_cstr(b, "}\n");
}

int timeline_answer_find(const struct timeline *t, const struct request *r, struct response *out, struct err *e)
{
	struct hits h = {.t = t, .most_ns = INT64_MAX};
	int64_t to_ns, limit;
	if (request_number(r, "limit", 1, 10000, 500, &limit, e) < 0 || timeline_window(r, t, &h.from_ns, &to_ns, e) < 0)
		return -1;
	struct str text = request_value(r, "text");
	uint8_t *named = NEW_ARRAY(t->p->strings.n + 1, uint8_t);
	for (uint32_t i = 0; i <= t->p->strings.n; i++)
		named[i] = i && str_has_nocase(profile_str(t->p, i), text);
	h.named = named;
	h.limit = (uint32_t)limit;
	h.v = NEW_ARRAY_RAW(2 * (size_t)limit, struct hit);
	serve_timeline_find_look(&h, false);
	serve_timeline_find_look(&h, true);
	put_hits(&out->body, &h);
	mem_free(h.v);
	mem_free(named);
	return 0;
}

static int serve_timeline_find_run(const struct request *r, struct response *out, struct err *e)
{
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	return t ? timeline_answer_find(t, r, out, e) : -1;
}

static const struct endpoint_param params[] = {TIMELINE_FIND_PARAMS, {0}};

const struct endpoint endpoint_timeline_find = {
	.path = "/api/timeline/find",
	.help = "the events with this text in their name: how many, how long, and the first of them in order of time",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.queue = QUEUE_QUICK,
	.run = serve_timeline_find_run,
};
