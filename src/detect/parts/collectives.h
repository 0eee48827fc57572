/* Collectives on devices: which device work they are, what they are for, and when nothing else hides them. Used by several detectors.
 *
 * A collective is a kernel of class KERNEL_COMM (NCCL, RCCL, MSCCL, custom all-reduces). A range of a collective on the
 * host is not a collective: it launches one. Within the steps, exposed time of a GPU = time of its collectives - time of all its other device work; work of
 * one GPU does not hide a collective of another GPU. */
#ifndef OPSCOPE_DETECT_PARTS_COLLECTIVES_H
#define OPSCOPE_DETECT_PARTS_COLLECTIVES_H

#include "detect/parts/shared.h"

/* What a collective is for, by the ranges around its launch and the description of its process group. */
enum collective_use {
	COLLECTIVE_UNKNOWN,
	COLLECTIVE_GRADIENTS,    /* of data parallelism: once a step, can run beside the backward pass */
	COLLECTIVE_LAYERS,       /* of tensor, sequence or expert parallelism: the next layer needs its result */
	COLLECTIVE_SHARDS,       /* of sharded parameters: FSDP, ZeRO */
	COLLECTIVE_USES
};

struct collective {
	uint32_t gpu_op;         /* row */
	uint32_t gpu;            /* index into collectives->gpu */
	uint32_t at;             /* whose stack gives the line: the op, else the call; ROW_NONE */
	uint8_t use;             /* enum collective_use */
	int64_t wire_bytes;      /* that a rank sends; -1 = not recorded */
	int64_t exposed_ns;      /* of its GPU's, what is in it and in none that began before */
};

struct collective_gpu {
	int32_t device;          /* ordinal; INT32_MIN = not stated */
	uint64_t n;              /* collectives in the steps */
	int64_t exposed_ns;
	struct intervals exposed;
};

struct collectives {
	struct collective *v;    /* those with time in the steps, in order of gpu_op */
	uint32_t n;
	struct collective_gpu *gpu; /* those with device work in the steps, with collectives or without; none where no GPU has any */
	uint32_t n_gpus;
	int64_t ranks;           /* of the largest group stated, 0 = none is */
};

/* Needs PASS_NEST and PASS_CORRELATE. O(n log n). */
struct collectives *collectives_new(const struct profile *p, struct findings *f, const struct step_time *w);
void collectives_free(struct collectives *c);

/* The GPU with most exposed time; NULL = there is no GPU. */
const struct collective_gpu *collectives_most(const struct collectives *c);
/* Mean exposed time over the GPUs. */
int64_t collectives_exposed_ns(const struct collectives *c);
/* What it is called: by its own arguments ("allreduce"), else by its kernel. A slice of the profile's strings. */
struct str collective_name(const struct profile *p, uint32_t gpu_op);

#endif
