#include "analysis/time/bounds.h"

#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/time/gpu_metrics.h"
#include "base/hash.h"
#include "base/mem.h"
#include "gpu/gpu_state.h"

struct bounds {
	const struct profile *p;
	struct idmap devices;         /* ordinal -> row of device */
	bool same_product;            /* all described devices have one name */
	struct bounds_gpus gpus;
	const struct gpu **found;     /* by row of device; looked up once */
	uint8_t *looked;
};

static void index_devices(struct bounds *b)
{
	const struct devices *d = &b->p->device;
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < d->rows.n; i++) {
		min = d->id[i] < min ? d->id[i] : min;
		max = d->id[i] > max ? d->id[i] : max;
	}
	idmap_init(&b->devices, min, max, d->rows.n);
	b->same_product = d->rows.n > 0;
	for (uint32_t i = 1; i < d->rows.n; i++)
		b->same_product &= d->name[i] == d->name[0];
	for (uint32_t i = d->rows.n; i-- > 0;)
		idmap_put(&b->devices, d->id[i], i);
}

struct bounds *bounds_new(const struct profile *p)
{
	struct bounds *b = NEW(struct bounds);
	b->p = p;
	b->gpus.assumed = INT32_MIN;
	b->found = NEW_ARRAY(p->device.rows.n, const struct gpu *);
	b->looked = NEW_ARRAY(p->device.rows.n, uint8_t);
	index_devices(b);
	return b;
}

void bounds_free(struct bounds *b)
{
	if (!b)
		return;
	idmap_release(&b->devices);
	mem_free(b->found);
	mem_free(b->looked);
	mem_free(b);
}

struct bounds_gpus bounds_gpus(const struct bounds *b)
{
	return b->gpus;
}

const struct gpu *bounds_gpu(struct bounds *b, uint32_t gpu)
{
	const struct profile *p = b->p;
	uint32_t launch = p->gpu_op.launch[gpu], row = 0;
	int32_t device = launch == ROW_NONE ? INT32_MIN : p->launch.device[launch];
	if (device != INT32_MIN)
		row = p->device_joined ? profile_device_row(p, device) : idmap_get(&b->devices, device);
	else if (p->device.rows.n != 1)
		return NULL;
	if (row == IDMAP_NONE && b->same_product) { /* ordinals are often told in two ways: all of a machine, or those that a process sees */
		row = 0;
		b->gpus.assumed = device;
	}
	if (row == IDMAP_NONE || row >= p->device.rows.n)
		return NULL;
	struct str name = profile_str(p, p->device.name[row]);
	if (!b->looked[row]) {
		b->found[row] = gpu_of_device(p, row);
		b->looked[row] = 1;
	}
	if (!b->gpus.name.n) {
		b->gpus.by_size = !name.n && b->found[row];
		b->gpus.name = b->gpus.by_size ? str_from(b->found[row]->name) : name;
	}
	b->gpus.known |= b->found[row] != NULL;
	return b->found[row];
}

struct rate {
	enum dtype dtype;
	enum tri tensor_core;
	bool sparse;
};

static struct rate rate_of(const struct cost *c, enum tri used, struct kernel_info k, enum bound_cores cores)
{
	if (!bounds_multiplies(c->class)) {
		bool narrow = dtype_kind(c->dtype) == DTYPE_KIND_FLOAT && dtype_bits(c->dtype) <= 16;
		return (struct rate){narrow ? DTYPE_FLOAT32 : c->dtype, TRI_NO, false};
	}
	/* emit_nvtx records shapes without types; the kernel's name often has it. */
	enum dtype t = c->dtype == DTYPE_UNKNOWN ? k.dtype : c->dtype;
	bool best = c->tc_eligible == TRI_YES && (cores == BOUND_BEST || used == TRI_UNKNOWN);
	return (struct rate){t, best ? TRI_YES : used, k.sparse};
}

static struct bound at_peaks(const struct cost *c, int64_t flops, int64_t bytes, double peak, double bandwidth)
{
	struct bound x = {.peak_name = "", .peak_flops = peak, .compute_ns = NAN, .memory_ns = NAN, .least_ns = NAN};
	if (flops >= 0 && (peak > 0 || flops == 0))
		x.compute_ns = flops ? (double)flops / peak * 1e9 : 0;
	if (bytes >= 0 && bandwidth > 0)
		x.memory_ns = (double)bytes / bandwidth * 1e9;
	double compute = isnan(x.compute_ns) && !bounds_multiplies(c->class) ? 0 : x.compute_ns;
	if (!isnan(compute) && !isnan(x.memory_ns))
		x.least_ns = compute > x.memory_ns ? compute : x.memory_ns;
	return x;
}

enum tri bounds_tensor_core(const struct profile *p, const struct cost *c, uint32_t gpu)
{
	enum tri used = gpu_tensor_core(p, gpu);
	enum kernel_class class = gpu_kernel(p, gpu)->class;
	if (bounds_multiplies(c->class) && (class == KERNEL_OTHER || class == KERNEL_COPY))
		return TRI_UNKNOWN; /* it prepares the product; the kernel that multiplies was not recorded */
	return used == TRI_UNKNOWN ? kernel_tensor_core(*gpu_kernel(p, gpu), c->dtype) : used;
}

struct bound bounds_of(struct bounds *b, const struct cost *c, int64_t flops, int64_t bytes, uint32_t gpu, enum bound_cores cores)
{
	bool kernel = b->p->gpu_op.kind[gpu] == GPU_KERNEL;
	struct kernel_info k = kernel ? *gpu_kernel(b->p, gpu) : (struct kernel_info){.tensor_core = TRI_NO};
	enum tri used = bounds_tensor_core(b->p, c, gpu);
	const struct gpu *g = bounds_gpu(b, gpu);
	if (c->class == OP_COMM || b->p->gpu_op.kind[gpu] == GPU_MEMCPY)
		return (struct bound){.peak_name = "", .tensor_core = used, .compute_ns = NAN, .memory_ns = NAN, .least_ns = NAN};
	struct rate r = rate_of(c, used, k, cores);
	struct bound x = at_peaks(c, flops, bytes, gpu_peak_flops(g, r.dtype, r.tensor_core, r.sparse), gpu_peak_bytes(g));
	x.gpu = g;
	x.tensor_core = used;
	x.peak_name = gpu_peak_name(g, r.dtype, r.tensor_core);
	return x;
}

bool bounds_is_small(const struct profile *p, uint32_t gpu)
{
	const uint32_t launch = p->gpu_op.launch[gpu];
	return p->gpu_op.kind[gpu] == GPU_KERNEL && launch != ROW_NONE && launch_blocks_per_sm(p, launch) * BOUNDS_SMALL_SMS < 1;
}

double bounds_least_ns(struct bounds *b, const struct costs *c, uint32_t gpu)
{
	uint32_t cost = c->of_gpu[gpu];
	if (cost == ROW_NONE)
		return NAN;
	if (!c->parts[gpu])
		return 0;
	return bounds_of(b, &c->cost[cost], costs_flops(c, gpu), costs_bytes_least(c, gpu), gpu, BOUND_BEST).least_ns;
}

double bounds_least_ns_as(struct bounds *b, const struct costs *c, uint32_t gpu, enum dtype t)
{
	uint32_t cost = c->of_gpu[gpu];
	if (cost == ROW_NONE)
		return NAN;
	if (!c->parts[gpu])
		return 0;
	const struct cost *m = &c->cost[cost];
	const struct gpu *g = bounds_gpu(b, gpu);
	int64_t bytes = costs_bytes_least(c, gpu);
	int from = dtype_bits(m->dtype), to = dtype_bits(t);
	if (bytes >= 0 && from > to && to > 0)
		bytes = (int64_t)((double)bytes / from * to);
	return at_peaks(m, costs_flops(c, gpu), bytes, gpu_peak_flops(g, t, TRI_YES, false), gpu_peak_bytes(g)).least_ns;
}
