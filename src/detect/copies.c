#include "detect/copies.h"

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

static uint8_t *choose(const struct profile *p, const struct step_time *w, copy_wanted *wanted)
{
	uint8_t *take = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		take[g] = p->gpu_op.kind[g] == GPU_MEMCPY && step_time_has(w, p->gpu_op.start_ns[g]) && wanted(p, g);
	return take;
}

/* When the device does nothing but the copies taken. */
static void find_exposed(const struct profile *p, const struct step_time *w, const uint8_t *take, struct intervals *exposed)
{
	struct intervals other = {0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		intervals_add(take[g] ? exposed : &other, p->gpu_op.start_ns[g], gpu_end(p, g));
	intervals_normalise(exposed);
	intervals_normalise(&other);
	intervals_subtract(exposed, &other, exposed);
	intervals_intersect(exposed, &w->all, exposed);
	intervals_release(&other);
}

void copies_measure(const struct profile *p, struct findings *f, const struct step_time *w, copy_wanted *wanted, struct copies *out)
{
	struct intervals exposed = {0}, calls = {0};
	uint8_t *take = choose(p, w, wanted);
	*out = (struct copies){0};
	places_init(&out->places);
	find_exposed(p, w, take, &exposed);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (!take[g])
			continue;
		uint32_t call = p->gpu_op.call[g], at = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : call;
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
	intervals_release(&exposed);
	intervals_release(&calls);
	mem_free(take);
}
