#include "analysis/time/gpu_samples.h"

#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>

const struct gpu_metric_info gpu_metric_info[GPU_METRICS] = {
	[GPU_UTILIZATION] = {"gpu_utilization_pct", "GPU utilization", "%", 1},
	[GPU_MEMORY_UTILIZATION] = {"gpu_memory_utilization_pct", "Memory utilization", "%", 1},
	[GPU_MEMORY_USED] = {"gpu_memory_used_bytes", "Memory used", "MiB", 1 << 20},
	[GPU_SM_CLOCK] = {"gpu_sm_clock_mhz", "SM clock", "MHz", 1},
	[GPU_MEMORY_CLOCK] = {"gpu_memory_clock_mhz", "Memory clock", "MHz", 1},
	[GPU_POWER] = {"gpu_power_mw", "Power", "W", 1000},
	[GPU_TEMPERATURE] = {"gpu_temperature_c", "Temperature", "C", 1},
};

const struct gpu_reason gpu_reasons[] = {
#define GPU_REASON(bit, id, class, meaning) {bit, id, meaning, GPU_REASON_##class},
#include "analysis/time/gpu_reasons.def"
#undef GPU_REASON
	{0},
};

/* Ids of the strings that are looked for; 0 = the profile has no such string. */
struct gpu_samples_names {
	uint32_t metric[GPU_METRICS], reasons;
};

static uint32_t gpu_samples_id_of(const struct profile *p, const char *text)
{
	uint32_t id = intern_find(&p->strings, str_from(text));
	return id == INTERN_NONE ? 0 : id;
}

static struct gpu_samples_names names_of(const struct profile *p)
{
	struct gpu_samples_names n = {.reasons = gpu_samples_id_of(p, "gpu_throttle_reasons")};
	for (int m = 0; m < GPU_METRICS; m++)
		n.metric[m] = gpu_samples_id_of(p, gpu_metric_info[m].counter);
	return n;
}

static bool gpu_samples_is_sample(const struct profile *p, uint32_t mark)
{
	return p->mark.phase[mark] == 'C' && str_eqc(profile_cat(p, p->mark.cat[mark]), "gpu_sample");
}

static bool gpu_samples_number(const struct profile *p, uint32_t args, enum arg_key key, int64_t *v)
{
	struct str text;
	return profile_arg(p, args, key, &text) && str_to_i64(text, v);
}

/* False = it names no device, or no number. */
static bool gpu_samples_value(const struct profile *p, uint32_t mark, int64_t *device, int64_t *value)
{
	uint32_t args = p->mark.args[mark];
	return gpu_samples_number(p, args, ARG_COUNTER_DEVICE, device) && gpu_samples_number(p, args, ARG_COUNTER_VALUE, value) && *device >= 0 && *device <= INT16_MAX;
}

/* NULL = there are too many to be true. */
static struct gpu_samples *of_device(struct gpu_samples_list *l, uint32_t *cap, int32_t device, int64_t time_ns)
{
	enum { DEVICES_MOST = 256 };
	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].device == device)
			return &l->v[i];
	if (l->n == DEVICES_MOST)
		return NULL;
	MEM_GROW(l->v, *cap, l->n + 1);
	l->v[l->n] = (struct gpu_samples){.device = device, .first_ns = time_ns};
	return &l->v[l->n++];
}

static void gpu_samples_add(struct gpu_metric_values *m, int64_t v)
{
	m->least = !m->n || v < m->least ? v : m->least;
	m->most = !m->n || v > m->most ? v : m->most;
	m->last = v;
	m->sum += (double)v;
	m->n++;
}

/* The clock of the same moment: counters of one sample stand together, in whatever order. */
static void add_reasons(struct gpu_samples *s, uint64_t mask, bool has_clock, int64_t clock)
{
	bool class[GPU_REASON_CLASSES] = {false};
	s->told++;
	for (unsigned bit = 0; bit < GPU_REASON_BITS; bit++)
		s->reason[bit] += mask >> bit & 1;
	for (const struct gpu_reason *r = gpu_reasons; r->id; r++)
		class[r->class] |= mask >> r->bit & 1;
	for (int c = 0; c < GPU_REASON_CLASSES; c++)
		s->class[c] += class[c];
	bool slowed = class[GPU_REASON_POWER] || class[GPU_REASON_HEAT] || class[GPU_REASON_SLOWDOWN];
	if (has_clock && slowed)
		gpu_samples_add(&s->slowed, clock);
	else if (has_clock && !class[GPU_REASON_IDLE])
		gpu_samples_add(&s->free, clock);
}

/* Whether mark `i` belongs to the sample of mark `of`. */
static bool same_sample(const struct profile *p, uint32_t i, uint32_t of)
{
	return p->mark.time_ns[i] == p->mark.time_ns[of] && p->mark.track[i] == p->mark.track[of];
}

static bool clock_beside(const struct profile *p, const struct gpu_samples_names *n, uint32_t mark, int64_t *clock)
{
	enum { NEAR = 2 * GPU_METRICS };
	uint32_t first = mark, rows = p->mark.rows.n;
	while (first && mark - first < NEAR && p->mark.time_ns[first - 1] == p->mark.time_ns[mark])
		first--;
	for (uint32_t i = first; i < rows && i - first < 2 * NEAR && p->mark.time_ns[i] == p->mark.time_ns[mark]; i++)
		if (n->metric[GPU_SM_CLOCK] && p->mark.name[i] == n->metric[GPU_SM_CLOCK] && same_sample(p, i, mark))
			return gpu_samples_number(p, p->mark.args[i], ARG_COUNTER_VALUE, clock);
	return false;
}

static int by_device(const void *a, const void *b)
{
	const struct gpu_samples *x = a, *y = b;
	return COMPARE(x->device, y->device);
}

void gpu_samples_measure(const struct profile *p, struct gpu_samples_list *out)
{
	profile_assert_kept(p, LEFT_MARKS);
	struct gpu_samples_names n = names_of(p);
	uint32_t cap = 0;
	*out = (struct gpu_samples_list){0};
	for (uint32_t i = 0; i < p->mark.rows.n; i++) {
		int metric = 0;
		int64_t device, value, clock = 0;
		if (!gpu_samples_is_sample(p, i))
			continue;
		while (metric < GPU_METRICS && (!n.metric[metric] || p->mark.name[i] != n.metric[metric]))
			metric++;
		bool reasons = n.reasons && p->mark.name[i] == n.reasons;
		if (metric == GPU_METRICS && !reasons)
			continue;
		bool sound = gpu_samples_value(p, i, &device, &value);
		struct gpu_samples *s = sound ? of_device(out, &cap, (int32_t)device, p->mark.time_ns[i]) : NULL;
		if (!s) {
			out->odd++;
			continue;
		}
		s->last_ns = p->mark.time_ns[i];
		if (reasons)
			add_reasons(s, (uint64_t)value, clock_beside(p, &n, i, &clock), clock);
		else
			gpu_samples_add(&s->metric[metric], value);
	}
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_device);
}

void gpu_samples_release(struct gpu_samples_list *l)
{
	mem_free(l->v);
	*l = (struct gpu_samples_list){0};
}

static int gpu_samples_by_time(const void *a, const void *b)
{
	const struct gpu_sample *x = a, *y = b;
	return COMPARE(x->device, y->device) ?: COMPARE(x->time_ns, y->time_ns);
}

uint32_t gpu_samples_of(const struct profile *p, enum gpu_metric metric, struct gpu_sample **out)
{
	profile_assert_kept(p, LEFT_MARKS);
	uint32_t name = names_of(p).metric[metric], n = 0, cap = 0;
	*out = NULL;
	for (uint32_t i = 0; name && i < p->mark.rows.n; i++) {
		int64_t device, value;
		if (p->mark.name[i] == name && gpu_samples_is_sample(p, i) && gpu_samples_value(p, i, &device, &value))
			MEM_PUSH(*out, n, cap, (struct gpu_sample){(int32_t)device, p->mark.time_ns[i], value});
	}
	if (n)
		qsort(*out, n, sizeof **out, gpu_samples_by_time);
	return n;
}
