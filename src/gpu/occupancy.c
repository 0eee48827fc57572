#include "gpu/occupancy.h"

#include "base/search.h"
#include "gpu/gpus.h"

#include <limits.h>
#include <math.h>

#define SM(cc_, warps_, blocks_, registers_, shared_kib, partitions_) \
	{.cc = (cc_), .warps = (warps_), .blocks = (blocks_), .registers = (registers_), .shared_bytes = (shared_kib) << 10, .partitions = (partitions_)},

static const struct sm_limits sms[] = {
#include "gpu/sm.def"
};

enum { WARP = 32, REGISTER_UNIT = 256, RESERVED_BYTES = 1024, LARGEST_BLOCK = 1024, MOST_REGISTERS = 255 };

const struct sm_limits *sm_limits(int cc_major, int cc_minor)
{
	return ELEMENT_WHERE(i, sms, sizeof sms / sizeof *sms,
	                     cc_minor >= 0 && cc_minor < 10 && sms[i].cc / 10 == cc_major && sms[i].cc % 10 == cc_minor);
}

static int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

static int blocks_by_registers(const struct sm_limits *sm, int warps, int registers)
{
	if (!registers)
		return INT_MAX;
	int of_warp = round_up(registers * WARP, REGISTER_UNIT);
	return sm->registers / sm->partitions / of_warp * sm->partitions / warps;
}

static int blocks_by_shared(const struct sm_limits *sm, int bytes)
{
	bool newer = sm->cc >= 80;
	int of_block = round_up(bytes + (newer ? RESERVED_BYTES : 0), newer ? 128 : 256);
	return of_block ? sm->shared_bytes / of_block : INT_MAX;
}

bool occupancy_find(const struct sm_limits *sm, int threads, int registers, int shared_bytes, struct occupancy *out)
{
	*out = (struct occupancy){0};
	if (threads <= 0 || threads > LARGEST_BLOCK || registers < 0 || registers > MOST_REGISTERS || shared_bytes < 0 || shared_bytes > sm->shared_bytes)
		return false;
	int warps = round_up(threads, WARP) / WARP, least = INT_MAX;
	const struct { int blocks; enum occupancy_limit by; } limit[] = {
		{blocks_by_registers(sm, warps, registers), OCCUPANCY_BY_REGISTERS}, {blocks_by_shared(sm, shared_bytes), OCCUPANCY_BY_SHARED},
		{sm->warps / warps, OCCUPANCY_BY_WARPS}, {sm->blocks, OCCUPANCY_BY_BLOCKS},
	};
	for (size_t i = 0; i < sizeof limit / sizeof *limit; i++) {
		out->by = limit[i].blocks < least ? limit[i].by : limit[i].blocks == least ? out->by | limit[i].by : out->by;
		least = limit[i].blocks < least ? limit[i].blocks : least;
	}
	out->blocks = least;
	out->warps = least * warps;
	out->most_warps = sm->warps;
	out->pct = 100.0 * out->warps / sm->warps;
	return least > 0;
}

static const struct sm_limits *limits_of_device(const struct profile *p, uint32_t row)
{
	if (row == ROW_NONE)
		return NULL;
	struct str name = profile_str(p, p->device.name[row]);
	if (gpu_is_amd(name, p->device.warp_size[row]))
		return NULL;
	const struct gpu *gpu = p->device.cc_major[row] < 0 ? gpu_find(name) : NULL;
	const struct sm_limits *sm = gpu ? sm_limits(gpu->cc_major, gpu->cc_minor) : sm_limits(p->device.cc_major[row], p->device.cc_minor[row]);
	int stated = p->device.max_threads_per_sm[row];
	return sm && stated > 0 && stated != sm->warps * WARP ? NULL : sm; /* a GPU that is not what it seems */
}

enum occupancy_known occupancy_of_launch(const struct profile *p, uint32_t launch, struct occupancy *out)
{
	const struct launches *l = &p->launch;
	const struct sm_limits *sm = limits_of_device(p, profile_device_row(p, l->device[launch]));
	int32_t x = l->block_x[launch], y = l->block_y[launch], z = l->block_z[launch];
	*out = (struct occupancy){0};
	if (!sm)
		return OCCUPANCY_NO_LIMITS;
	if (x <= 0 || y <= 0 || z <= 0 || (double)x * y * z > LARGEST_BLOCK || l->registers[launch] <= 0 || l->shared_bytes[launch] < 0)
		return OCCUPANCY_NO_LAUNCH;
	return occupancy_find(sm, x * y * z, l->registers[launch], l->shared_bytes[launch], out) ? OCCUPANCY_KNOWN : OCCUPANCY_NO_LAUNCH;
}

double occupancy_estimate_pct(const struct profile *p, uint32_t launch, double blocks_per_sm)
{
	const struct launches *l = &p->launch;
	struct occupancy o;
	if (!(blocks_per_sm > 0) || occupancy_of_launch(p, launch, &o) != OCCUPANCY_KNOWN)
		return NAN;
	double threads = (double)l->block_x[launch] * l->block_y[launch] * l->block_z[launch];
	return 100 * fmin(o.blocks, blocks_per_sm) * threads / (o.most_warps * WARP);
}
