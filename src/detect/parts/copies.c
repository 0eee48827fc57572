#include "detect/parts/copies.h"

#include "base/sort.h"

enum copy_way copy_way(struct str name)
{
	if (str_has(name, STR("HtoD")) || str_has(name, STR("HostToDevice")) || str_has(name, STR("Host-to-Device")))
		return COPY_TO_DEVICE;
	if (str_has(name, STR("DtoH")) || str_has(name, STR("DeviceToHost")) || str_has(name, STR("Device-to-Host")))
		return COPY_TO_HOST;
	return COPY_NEITHER;
}

enum tri copy_is_pageable(struct str name)
{
	if (str_has(name, STR("Pageable")))
		return TRI_YES;
	return str_has(name, STR("Pinned")) ? TRI_NO : TRI_UNKNOWN;
}

bool copies_on_lead(const struct profile *p, const struct step_time *w, uint32_t g)
{
	return p->launch.device[p->gpu_op.launch[g]] == w->gpu[w->lead].device;
}

static uint8_t *copies_choose(const struct profile *p, const struct step_time *w, copy_wanted *wanted)
{
	uint8_t *take = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		take[g] = p->gpu_op.kind[g] == GPU_MEMCPY && copies_on_lead(p, w, g) && step_time_has(w, p->gpu_op.start_ns[g]) && wanted(p, g);
	return take;
}

/* The times in which the GPU does nothing but the copies taken. */
static void copies_find_exposed(const struct profile *p, const struct step_time *w, const uint8_t *take, struct intervals *exposed)
{
	struct intervals other = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (copies_on_lead(p, w, g))
			intervals_add(take[g] ? exposed : &other, p->gpu_op.start_ns[g], gpu_end(p, g));
	intervals_normalise(exposed);
	intervals_normalise(&other);
	intervals_subtract(exposed, &other, exposed);
	intervals_intersect(exposed, &w->all, exposed);
	intervals_release(&other);
}

uint32_t copies_op(const struct profile *p, uint32_t g)
{
	uint32_t call = p->gpu_op.call[g], at = call;
	while (at != ROW_NONE && p->span.kind[at] != SPAN_OP)
		at = p->span.parent[at];
	if (at != ROW_NONE)
		return at;
	return p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : call;
}

void copies_measure(const struct profile *p, struct findings *f, const struct step_time *w, copy_wanted *wanted, struct copies *out)
{
	struct intervals exposed = {0}, calls = {0};
	uint8_t *take = copies_choose(p, w, wanted);
	*out = (struct copies){0};
	copies_find_exposed(p, w, take, &exposed);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (!take[g])
			continue;
		uint32_t call = p->gpu_op.call[g], at = copies_op(p, g);
		int64_t ns = intervals_length_within(&exposed, p->gpu_op.start_ns[g], gpu_end(p, g));
		int64_t bytes = p->launch.bytes[p->gpu_op.launch[g]];
		if (call != ROW_NONE) {
			intervals_add(&calls, p->span.start_ns[call], span_end(p, call));
			ns += step_time_idle_within(w, p->span.start_ns[call], span_end(p, call));
		}
		places_add(&out->places, shared_stacks(f), profile_str(p, at != ROW_NONE ? p->span.name[at] : p->gpu_op.name[g]), at, 1, ns);
		out->n++;
		out->device_ns += p->gpu_op.dur_ns[g];
		if (bytes > 0 && __builtin_add_overflow(out->bytes, bytes, &out->bytes))
			out->bytes = INT64_MAX;
	}
	intervals_normalise(&calls);
	intervals_intersect(&calls, &w->idle, &calls);
	out->exposed_ns = intervals_length(&exposed);
	out->idle_ns = intervals_length(&calls);
	intervals_union(&exposed, &calls, &out->when);
	intervals_release(&exposed);
	intervals_release(&calls);
	mem_free(take);
}

void copies_release(struct copies *c)
{
	places_release(&c->places);
	intervals_release(&c->when);
}

enum { ROW_LEAST = 20 };
static const int64_t ROW_PAUSE_NS = 200 * 1000;

struct copies_row_search {
	const struct profile *p;
	struct copy_rows *out;
	uint64_t n;
	int64_t from, to;         /* end of the first copy of the row that goes on, end of its last */
	enum copy_way way;
};

static void copies_end_row(struct copies_row_search *r)
{
	if (r->n >= ROW_LEAST) {
		intervals_add(&r->out->when, r->from, r->to);
		r->out->copies += r->n;
		r->out->rows++;
	}
	r->n = 0;
}

/* Which way a small copy goes, which may be in a row; COPY_NEITHER = other work, or a larger copy. */
static enum copy_way row_way(const struct profile *p, uint32_t g, int64_t bytes_max)
{
	int64_t bytes = p->launch.bytes[p->gpu_op.launch[g]];
	return p->gpu_op.kind[g] == GPU_MEMCPY && bytes > 0 && bytes <= bytes_max ? copy_way(profile_str(p, p->gpu_op.name[g])) : COPY_NEITHER;
}

static void next_in_row(struct copies_row_search *r, uint32_t g, enum copy_way way)
{
	int64_t end = gpu_end(r->p, g);
	if (way != r->way || way == COPY_NEITHER || r->p->gpu_op.start_ns[g] - r->to > ROW_PAUSE_NS)
		copies_end_row(r);
	r->way = way;
	if (way == COPY_NEITHER)
		return;
	r->from = r->n++ ? r->from : end;
	r->to = end;
}

void copies_rows(const struct profile *p, const struct step_time *w, int64_t bytes_max, struct copy_rows *out)
{
	uint32_t n = 0;
	struct intervals other = {0};
	struct sort_item *order = NEW_ARRAY_RAW(p->gpu_op.rows.n, struct sort_item);
	struct copies_row_search r = {.p = p, .out = out};
	*out = (struct copy_rows){0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (copies_on_lead(p, w, g) && step_time_has(w, p->gpu_op.start_ns[g]))
			order[n++] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	sort_items(order, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = order[i].row;
		enum copy_way way = row_way(p, g, bytes_max);
		if (way == COPY_NEITHER)
			intervals_add(&other, p->gpu_op.start_ns[g], gpu_end(p, g));
		next_in_row(&r, g, way);
	}
	copies_end_row(&r);
	intervals_normalise(&other);
	intervals_normalise(&out->when);
	intervals_subtract(&out->when, &other, &out->when);
	intervals_release(&other);
	intervals_intersect(&out->when, &w->all, &out->when);
	mem_free(order);
}

void copies_rows_release(struct copy_rows *r)
{
	intervals_release(&r->when);
}

double copies_overlap_pct(const struct profile *p, const struct step_time *w)
{
	struct intervals memory = {0}, kernels = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (copies_on_lead(p, w, g))
			intervals_add(p->gpu_op.kind[g] == GPU_KERNEL ? &kernels : &memory, p->gpu_op.start_ns[g], gpu_end(p, g));
	intervals_normalise(&memory);
	intervals_normalise(&kernels);
	intervals_intersect(&memory, &kernels, &memory);
	intervals_intersect(&memory, &w->all, &memory);
	int64_t both = intervals_length(&memory), busy = intervals_length(&w->busy);
	intervals_release(&memory);
	intervals_release(&kernels);
	return busy ? 100.0 * (double)both / (double)busy : 0;
}
