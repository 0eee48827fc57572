/* Curves above the tracks: use of the devices, and memory. */
#include "analysis/memory/memory.h"
#include "analysis/timeline/lttb.h"
#include "analysis/timeline/timeline_sums.h"
#include "base/mem.h"
#include "base/search.h"
#include "serve/api/timeline_times.h"

#include <math.h>

enum { POINTS_MAX = 4096, POINTS = 500 };

struct serve_timeline_counters_window {
	const struct timeline *t;
	int64_t from_ns, to_ns;
	uint32_t points;
};

static void put_shares(struct buf *b, const char *name, const double *v, uint32_t n)
{
	buf_printf(b, ",\"%s\":[", name);
	for (uint32_t i = 0; i < n; i++) {
		buf_cstr(b, i ? "," : "");
		if (isnan(v[i]))
			buf_cstr(b, "null");
		else
			buf_printf(b, "%.4g", v[i]);
	}
	buf_char(b, ']');
}

static void put_use(struct buf *b, const struct serve_timeline_counters_window *w)
{
	struct timeline_use *u;
	uint32_t n = timeline_use(w->t, w->from_ns, w->to_ns, w->points, &u);
	for (uint32_t i = 0; i < n; i++) {
		buf_cstr(b, i ? ",\n{\"device\":" : "\n{\"device\":");
		if (u[i].device == INT32_MIN)
			buf_cstr(b, "null");
		else
			buf_i64(b, u[i].device);
		put_shares(b, "utilization", u[i].utilization, w->points);
		put_shares(b, "sm_efficiency", u[i].sm_efficiency, w->points);
		buf_char(b, '}');
	}
	timeline_use_release(u, n);
}

/* The mean of a curve in each piece; NaN where less than half of it was sampled. */
static void put_sampled_curve(const struct serve_timeline_counters_window *w, const struct sampled_curve *of, double *v)
{
	for (uint32_t i = 0; i < w->points; i++) {
		const __int128 length = w->to_ns - w->from_ns;
		const int64_t from = w->from_ns + (int64_t)(length * i / w->points), to = w->from_ns + (int64_t)(length * (i + 1) / w->points);
		struct sampled_time t = {0};
		sampled_time_add(&t, &w->t->sampled, of, from, to);
		v[i] = t.ns && t.ns >= (to - from) / 2 ? t.weighted / (double)t.ns / 100 : NAN;
	}
}

static void put_sampled(struct buf *b, const struct serve_timeline_counters_window *w)
{
	static const char *const name[SAMPLED_METRICS] = {[SAMPLED_SM_ACTIVE] = "sm_active", [SAMPLED_TENSOR_ACTIVE] = "tensor_active", [SAMPLED_DRAM_READ] = "dram_read", [SAMPLED_DRAM_WRITE] = "dram_write"};
	const struct sampled_curves *c = &w->t->sampled;
	double *v = NEW_ARRAY_RAW(w->points, double);
	for (uint32_t i = 0; i < c->n; i++) {
		if (!i || c->v[i].device != c->v[i - 1].device)
			buf_printf(b, "%s\n{\"device\":%d", i ? "}," : "", c->v[i].device);
		if (!name[c->v[i].metric])
			continue;
		put_sampled_curve(w, &c->v[i], v);
		put_shares(b, name[c->v[i].metric], v, w->points);
	}
	buf_cstr(b, c->n ? "}" : "");
	mem_free(v);
}

/* One device's memory. */
struct curve {
	int64_t *time_ns, *allocated, *reserved;
	uint32_t n, cap;
};

static void add_point(struct curve *c, int64_t time_ns, int64_t allocated, int64_t reserved)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 256;
		c->time_ns = mem_realloc(c->time_ns, c->cap, sizeof *c->time_ns);
		c->allocated = mem_realloc(c->allocated, c->cap, sizeof *c->allocated);
		c->reserved = mem_realloc(c->reserved, c->cap, sizeof *c->reserved);
	}
	c->time_ns[c->n] = time_ns;
	c->allocated[c->n] = allocated;
	c->reserved[c->n++] = reserved;
}

/* The row that the device had last before row `begin`; ROW_NONE = none. */
static uint32_t serve_timeline_counters_last_before(const struct profile *p, uint32_t begin, int device)
{
	while (begin-- > 0)
		if (memory_has_totals(p, begin) && memory_device(p, begin) == device)
			return begin;
	return ROW_NONE;
}

static void serve_timeline_counters_gather(const struct serve_timeline_counters_window *w, int device, struct curve *c)
{
	const struct memories *m = &w->t->p->memory;
	uint32_t i = FIRST_WHERE(k, 0, m->rows.n, m->time_ns[k] >= w->from_ns), before = serve_timeline_counters_last_before(w->t->p, i, device);
	if (before != ROW_NONE)
		add_point(c, w->from_ns, m->total_allocated[before], m->total_reserved[before]);
	for (; i < m->rows.n && m->time_ns[i] < w->to_ns; i++)
		if (memory_has_totals(w->t->p, i) && memory_device(w->t->p, i) == device)
			add_point(c, m->time_ns[i], m->total_allocated[i], m->total_reserved[i]);
	if (c->n)
		add_point(c, w->to_ns, c->allocated[c->n - 1], c->reserved[c->n - 1]);
}

static void serve_timeline_counters_put_values(struct buf *b, const char *name, const int64_t *v, const uint32_t *chosen, uint32_t n, int64_t zero)
{
	buf_printf(b, ",\"%s\":[", name);
	for (uint32_t i = 0; i < n; i++) {
		buf_cstr(b, i ? "," : "");
		if (v[chosen[i]] == ID_NONE)
			buf_cstr(b, "null");
		else
			buf_i64(b, v[chosen[i]] - zero);
	}
	buf_char(b, ']');
}

static void serve_timeline_counters_put_curve(struct buf *b, const struct serve_timeline_counters_window *w, int device, const struct curve *c, bool first)
{
	uint32_t *chosen = NEW_ARRAY_RAW(c->n < w->points ? c->n : w->points, uint32_t);
	uint32_t n = lttb_select(c->time_ns, c->allocated, c->n, w->points, chosen);
	int64_t most = 0;
	for (uint32_t i = 0; i < c->n; i++)
		most = c->allocated[i] > most ? c->allocated[i] : most;
	buf_printf(b, "%s\n{\"device\":%d,", first ? "" : ",", device);
	json_put_number(b, "most", most);
	serve_timeline_counters_put_values(b, "time", c->time_ns, chosen, n, w->t->first_ns);
	serve_timeline_counters_put_values(b, "allocated", c->allocated, chosen, n, 0);
	serve_timeline_counters_put_values(b, "reserved", c->reserved, chosen, n, 0);
	buf_char(b, '}');
	mem_free(chosen);
}

static void serve_timeline_counters_put_memory(struct buf *b, const struct serve_timeline_counters_window *w)
{
	struct memory_peak *peak;
	size_t n = memory_peaks(w->t->p, INT64_MIN, INT64_MAX, &peak);
	bool first = true;
	for (size_t d = 0; d < n; d++) {
		struct curve c = {0};
		int device = (int)d + MEMORY_CPU;
		if (peak[d].allocated != ROW_NONE)
			serve_timeline_counters_gather(w, device, &c);
		if (c.n) {
			serve_timeline_counters_put_curve(b, w, device, &c, first);
			first = false;
		}
		mem_free(c.time_ns);
		mem_free(c.allocated);
		mem_free(c.reserved);
	}
	mem_free(peak);
}

static int serve_timeline_counters_run(const struct request *r, struct response *out, struct err *e)
{
	struct serve_timeline_counters_window w = {.t = library_timeline(r->library, r->entry, e)};
	struct buf *b = &out->body;
	int64_t points;
	if (!w.t || timeline_window(r, w.t, &w.from_ns, &w.to_ns, e) < 0 ||
	    request_number(r, "points", 3, POINTS_MAX, POINTS, &points, e) < 0)
		return -1;
	w.points = (uint32_t)points;
	buf_char(b, '{');
	json_put_number(b, "from", w.from_ns - w.t->first_ns);
	buf_char(b, ',');
	json_put_number(b, "to", w.to_ns - w.t->first_ns);
	buf_char(b, ',');
	json_put_number(b, "points", points);
	buf_cstr(b, ",\"devices\":[");
	if (w.to_ns > w.from_ns)
		put_use(b, &w);
	buf_cstr(b, "],\n\"sampled\":[");
	put_sampled(b, &w);
	buf_cstr(b, "],\n\"memory\":[");
	serve_timeline_counters_put_memory(b, &w);
	buf_cstr(b, "]}\n");
	return 0;
}

static const struct endpoint_param params[] = {
	WINDOW_PARAMS,
	{"points", "how many values a curve has at most (default 500)", NULL, false},
	{0},
};

const struct endpoint endpoint_timeline_counters = {
	.path = "/api/timeline/counters",
	.help = "over the window, of each device: time with kernels, SM efficiency, sampled metrics where there are any, memory; 0 to 1, unknown = null",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = serve_timeline_counters_run,
};
