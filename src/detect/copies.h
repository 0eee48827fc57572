/* What copies between host and device cost: the time in which nothing else hides them. Used by several detectors. */
#ifndef OPSCOPE_DETECT_COPIES_H
#define OPSCOPE_DETECT_COPIES_H

#include "detect/shared.h"

enum copy_way { COPY_NEITHER, COPY_TO_DEVICE, COPY_TO_HOST };
/* Of a gpu_op of kind GPU_MEMCPY, by its name. */
enum copy_way copy_way(struct str name);
/* TRI_UNKNOWN: the name does not tell ("Host -> Device"). */
enum tri copy_is_pageable(struct str name);

typedef bool copy_wanted(const struct profile *p, uint32_t gpu);

struct copies {
	struct places places;    /* by op and line; time: exposed + idle */
	uint64_t n;
	int64_t bytes;           /* of those that state them */
	int64_t device_ns;       /* sum of durations */
	int64_t exposed_ns;      /* the device does nothing but these copies */
	int64_t idle_ns;         /* no device has work while the host is in their calls */
};

/* Copies that start within the steps and are wanted. Release out->places. */
void copies_measure(const struct profile *p, struct findings *f, const struct step_time *w, copy_wanted *wanted, struct copies *out);

#endif
