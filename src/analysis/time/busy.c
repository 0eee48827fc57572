#include "analysis/time/busy.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "base/mem.h"

enum { COMPUTE, COMM, COPY, CLASSES };

static int busy_class_of(const struct profile *p, uint32_t g)
{
	if (p->gpu_op.kind[g] == GPU_MEMCPY)
		return COPY;
	if (p->gpu_op.kind[g] == GPU_MEMSET)
		return COMPUTE;
	return name_is(p, p->gpu_op.name[g], NAME_COMM_KERNEL) ? COMM : COMPUTE;
}

/* The kinds of work of one device, while they are collected. */
struct classes {
	struct intervals set[CLASSES];
};

/* Into v[0], or with `gpus` into the entry of each GPU. */
static void busy_collect(const struct profile *p, const struct gpus *gpus, const uint8_t *take, uint8_t want, const struct intervals *window,
                         struct classes *v, struct busy *out)
{
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int64_t start = p->gpu_op.start_ns[g], end = gpu_end(p, g);
		if (take && take[g] != want)
			continue;
		uint32_t i = gpus ? gpus_of(gpus, p, g) : 0;
		if (i == GPUS_NONE)
			continue;
		intervals_add(&v[i].set[busy_class_of(p, g)], start, end);
		out[i].events += !window || intervals_length_within(window, start, end) > 0;
	}
}

/* Takes the sets, and releases them. */
static void busy_measure_(struct classes *v, const struct intervals *window, struct busy *out)
{
	struct intervals *set = v->set, all = {0}, exposed = {0};
	for (int c = 0; c < CLASSES; c++) {
		intervals_normalise(&set[c]);
		if (window)
			intervals_intersect(&set[c], window, &set[c]);
	}
	out->ns[BUSY_COMPUTE] = intervals_length(&set[COMPUTE]);
	out->ns[BUSY_COMM] = intervals_length(&set[COMM]);
	out->ns[BUSY_COPY] = intervals_length(&set[COPY]);
	intervals_subtract(&set[COMM], &set[COMPUTE], &exposed);
	out->ns[BUSY_EXPOSED_COMM] = intervals_length(&exposed);
	intervals_union(&set[COMPUTE], &set[COMM], &all);
	intervals_subtract(&set[COPY], &all, &exposed);
	out->ns[BUSY_EXPOSED_COPY] = intervals_length(&exposed);
	intervals_union(&all, &set[COPY], &all);
	out->ns[BUSY_BUSY] = intervals_length(&all);
	if (window)
		out->ns[BUSY_TOTAL] = intervals_length(window);
	else if (all.n)
		out->ns[BUSY_TOTAL] = all.v[all.n - 1].end - all.v[0].start;
	out->ns[BUSY_IDLE] = out->ns[BUSY_TOTAL] - out->ns[BUSY_BUSY];
	for (int c = 0; c < CLASSES; c++)
		intervals_release(&set[c]);
	intervals_release(&all);
	intervals_release(&exposed);
}

void busy_measure(const struct profile *p, const uint8_t *take, uint8_t want, const struct intervals *window, struct busy *out)
{
	struct classes v = {0};
	*out = (struct busy){0};
	busy_collect(p, NULL, take, want, window, &v, out);
	busy_measure_(&v, window, out);
}

void busy_measure_each(const struct profile *p, const struct gpus *gpus, const uint8_t *take, uint8_t want, const struct intervals *window,
                       struct busy *out)
{
	struct classes *v = NEW_ARRAY(gpus->n, struct classes);
	memset(out, 0, gpus->n * sizeof *out);
	busy_collect(p, gpus, take, want, window, v, out);
	for (uint32_t i = 0; i < gpus->n; i++)
		busy_measure_(&v[i], window, &out[i]);
	mem_free(v);
}
