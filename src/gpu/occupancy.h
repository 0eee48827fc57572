/* Theoretical occupancy: how many blocks of a kernel an SM holds at once, what limits them, and which share of its warps that is.
 *
 * A block takes, for as long as it runs,
 *   warps          threads / 32, rounded up
 *   registers      of each warp 32 x registers per thread, rounded up to 256; a warp's are of one partition of the SM, so that warps fit in
 *                  each partition by themselves
 *   shared memory  static and dynamic, rounded up to 128 bytes (256 before compute capability 8.0), and 1 KiB for the system from 8.0 on
 * and an SM holds so many blocks at most, whatever they take (gpu/sm.def). These are the rules of NVIDIA's occupancy calculator (Nsight Compute,
 * cuda_occupancy.h) and of the CUDA C++ Programming Guide, section "Hardware Multithreading"; Kineto's "est. achieved occupancy %" follows from
 * them: min(blocks, blocks of the grid / SMs) x threads of a block / threads of an SM, so that it counts small grids, too.
 *
 * An SM whose L1 cache leaves less for shared memory holds fewer: what is said is the most. Clusters of blocks are not regarded. */
#ifndef OPSCOPE_GPU_OCCUPANCY_H
#define OPSCOPE_GPU_OCCUPANCY_H

#include "store/profile.h"

struct sm_limits {
	int cc;                 /* compute capability, major * 10 + minor */
	int warps, blocks;      /* resident at most */
	int registers;
	int shared_bytes;
	int partitions;
};

/* What an NVIDIA SM of this compute capability holds; NULL = not known. AMD's gfx versions look like compute capabilities: ask gpu_is_amd first. */
const struct sm_limits *sm_limits(int cc_major, int cc_minor);

/* What keeps a further block away: as bits. */
enum occupancy_limit {
	OCCUPANCY_BY_REGISTERS = 1, OCCUPANCY_BY_SHARED = 2,
	OCCUPANCY_BY_WARPS = 4,  /* the warps that are left are fewer than a block has */
	OCCUPANCY_BY_BLOCKS = 8, /* the number of blocks: they are small */
};

struct occupancy {
	int blocks;             /* resident on an SM */
	int warps, most_warps;  /* of these blocks; of an SM */
	double pct;             /* warps of most_warps */
	unsigned by;            /* enum occupancy_limit: all that allow no more */
};

/* Of blocks of so many threads. False = not even one block fits: the figures are not those of this SM. */
bool occupancy_find(const struct sm_limits *sm, int threads, int registers, int shared_bytes, struct occupancy *out);

enum occupancy_known {
	OCCUPANCY_KNOWN,
	OCCUPANCY_NO_LIMITS,    /* the device is not described, not in gpu/sm.def, or AMD's */
	OCCUPANCY_NO_LAUNCH,    /* the launch does not state its block, registers or shared memory, or states more than an SM of this GPU has */
};

/* The same of a row of p->launch. */
enum occupancy_known occupancy_of_launch(const struct profile *p, uint32_t launch, struct occupancy *out);

/* The share of an SM's warps, in percent, that the kernel holds on average if its blocks are spread evenly and take equally long: Kineto's estimate,
 * computed where it is not stated. NaN = not known. */
double occupancy_estimate_pct(const struct profile *p, uint32_t launch, double blocks_per_sm);

#endif
