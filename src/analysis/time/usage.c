#include "analysis/time/usage.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/ranks/rank_place.h"
#include "analysis/time/host_use.h"
#include "analysis/time/interval.h"
#include "base/hash.h"
#include "base/mem.h"

const char *const usage_title[USAGES] = {
	[USAGE_TC] = "Tensor Core Kernel", [USAGE_KERNEL] = "Non-Tensor Core Kernel", [USAGE_UNKNOWN] = "Other Kernel",
	[USAGE_MEMORY] = "Memory", [USAGE_DATALOADER] = "Dataloader", [USAGE_IO] = "IO", [USAGE_CPU] = "CPU", [USAGE_OTHER] = "Other",
};
const char *const usage_id[USAGES] = {
	[USAGE_TC] = "tc", [USAGE_KERNEL] = "non_tc", [USAGE_UNKNOWN] = "unknown", [USAGE_MEMORY] = "memory",
	[USAGE_DATALOADER] = "dataloader", [USAGE_IO] = "io", [USAGE_CPU] = "cpu", [USAGE_OTHER] = "other",
};

/* When one GPU was used for each kind; kinds of the host are in `host` of struct work. */
struct gpu_use {
	struct intervals kind[USAGE_DATALOADER];
};

struct usage_work {
	const struct profile *p;
	const struct usage_rules *rules;
	struct gpu_use *gpu;
	uint32_t n, cap;                      /* GPUs that did something */
	struct intervals host[USAGE_OTHER];   /* from USAGE_DATALOADER on */
};

static enum usage_kind kernel_kind(struct usage_work *w, uint32_t name)
{
	enum tri uses = w->rules->listed_kernels ? (name_is(w->p, name, NAME_TC_LISTED) ? TRI_YES : TRI_NO) : name_kernel(w->p, name)->tensor_core;
	return uses == TRI_YES ? USAGE_TC : uses == TRI_NO ? USAGE_KERNEL : USAGE_UNKNOWN;
}

static void collect_devices(struct usage_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct idmap of;
	idmap_init(&of, INT32_MIN, INT32_MAX, w->p->launch.rows.n);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		int32_t device = w->p->launch.device[g->launch[i]];
		uint32_t at = idmap_get(&of, device);
		if (at == IDMAP_NONE) {
			MEM_GROW(w->gpu, w->cap, w->n + 1);
			w->gpu[w->n] = (struct gpu_use){0};
			idmap_put(&of, device, at = w->n++);
		}
		enum usage_kind kind = g->kind[i] == GPU_KERNEL ? kernel_kind(w, g->name[i]) : USAGE_MEMORY;
		intervals_add(&w->gpu[at].kind[kind], g->start_ns[i], gpu_end(w->p, i));
	}
	idmap_release(&of);
	for (uint32_t i = 0; i < w->n; i++)
		for (int k = 0; k < USAGE_DATALOADER; k++)
			intervals_normalise(&w->gpu[i].kind[k]);
}

static void collect_host(struct usage_work *w)
{
	static const enum usage_kind of_use[] = {
		[HOST_NONE] = USAGE_OTHER, [HOST_CALL] = USAGE_CPU, [HOST_DATALOADER] = USAGE_DATALOADER, [HOST_COMM] = USAGE_CPU,
		[HOST_IO] = USAGE_IO, [HOST_CPU] = USAGE_CPU,
	};
	const struct profile *p = w->p;
	struct host_uses *h = host_uses_new(p);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum usage_kind kind = of_use[host_use_of(h, i)];
		if (kind != USAGE_OTHER)
			intervals_add(&w->host[kind], p->span.start_ns[i], span_end(p, i));
	}
	host_uses_free(h);
}

struct windows {
	const int64_t *start, *end;
	unsigned n;
	int64_t *before;         /* what is used by the kinds so far, of one GPU */
	struct usage *out;
};

/* Adds what one GPU (NULL: one that did nothing), `times` of them, was used for. */
static void measure_gpu(const struct usage_work *w, const struct gpu_use *gpu, unsigned times, struct windows *x)
{
	struct intervals all = {0};
	memset(x->before, 0, x->n * sizeof *x->before);
	for (int k = 0; k < USAGE_OTHER; k++) {
		const struct intervals none = {0};
		const struct intervals *own = k >= USAGE_DATALOADER ? &w->host[k] : gpu ? &gpu->kind[k] : &none;
		if (own->n)
			intervals_union(&all, own, &all);
		for (unsigned i = 0; i < x->n; i++) {
			struct usage *u = &x->out[i];
			int64_t used = own->n ? intervals_length_within(&all, x->start[i], x->end[i]) : x->before[i];
			u->ns[k] += (double)(used - x->before[i]) * times;
			x->before[i] = used;
			if (k == USAGE_UNKNOWN)
				u->kernel_busy_ns += (double)used * times;
			if (k == USAGE_MEMORY)
				u->device_busy_ns += (double)used * times;
		}
	}
	for (unsigned i = 0; i < x->n; i++)
		x->out[i].ns[USAGE_OTHER] += (double)(x->out[i].window_ns - x->before[i]) * times;
	intervals_release(&all);
}

/* GPUs to average over. */
static unsigned count_gpus(const struct usage_work *w)
{
	unsigned visible = rank_own_gpus(w->p);
	return w->rules->visible_gpus && visible > w->n ? visible : w->n;
}

void usage_measure_all(const struct profile *p, const int64_t *start, const int64_t *end, unsigned n, const struct usage_rules *rules,
                       struct usage *out)
{
	static const struct usage_rules own = {0};
	struct usage_work w = {.p = p, .rules = rules ? rules : &own};
	struct windows x = {start, end, n, NEW_ARRAY(n, int64_t), out};
	collect_devices(&w);
	if (w.rules->add_host)
		w.rules->add_host(p, w.host);
	else
		collect_host(&w);
	for (int k = USAGE_DATALOADER; k < USAGE_OTHER; k++)
		intervals_normalise(&w.host[k]);
	unsigned gpus = count_gpus(&w);
	for (unsigned i = 0; i < n; i++)
		out[i] = (struct usage){.window_ns = end[i] > start[i] ? end[i] - start[i] : 0, .gpus = gpus};
	for (uint32_t g = 0; g < w.n; g++)
		measure_gpu(&w, &w.gpu[g], 1, &x);
	if (gpus > w.n || !gpus)
		measure_gpu(&w, NULL, gpus ? gpus - w.n : 1, &x);
	for (unsigned i = 0; i < n && gpus > 1; i++) {
		for (int k = 0; k < USAGES; k++)
			out[i].ns[k] /= gpus;
		out[i].kernel_busy_ns /= gpus;
		out[i].device_busy_ns /= gpus;
	}
	for (uint32_t g = 0; g < w.n; g++)
		for (int k = 0; k < USAGE_DATALOADER; k++)
			intervals_release(&w.gpu[g].kind[k]);
	for (int k = USAGE_DATALOADER; k < USAGE_OTHER; k++)
		intervals_release(&w.host[k]);
	mem_free(w.gpu);
	mem_free(x.before);
}

void usage_measure(const struct profile *p, int64_t start, int64_t end, const struct usage_rules *rules, struct usage *out)
{
	usage_measure_all(p, &start, &end, 1, rules, out);
}
