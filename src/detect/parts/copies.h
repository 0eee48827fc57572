/* What copies between host and device cost: the time in which nothing else hides them, on the GPU that findings about idle time look at. Used by
 * several detectors. */
#ifndef OPSCOPE_DETECT_PARTS_COPIES_H
#define OPSCOPE_DETECT_PARTS_COPIES_H

#include "detect/parts/shared.h"

enum copy_way { COPY_NEITHER, COPY_TO_DEVICE, COPY_TO_HOST };
/* Which way a copy goes, by the name of a gpu_op of kind GPU_MEMCPY; COPY_NEITHER = within devices, or the name does not tell. */
enum copy_way copy_way(struct str name);
/* Whether the copy's host memory is pageable; TRI_UNKNOWN = the name does not tell ("Host -> Device"). */
enum tri copy_is_pageable(struct str name);

typedef bool copy_wanted(const struct profile *p, uint32_t gpu);

struct copies {
	struct places places;    /* by op and line; time: exposed + idle */
	uint64_t n;
	int64_t bytes;           /* of the copies that state their bytes */
	int64_t device_ns;       /* sum of durations */
	int64_t exposed_ns;      /* the GPU does nothing but these copies */
	int64_t idle_ns;         /* the GPU has no work while the host is in their calls */
	struct intervals when;   /* exposed and idle time, in the steps */
};

/* Whether the lead GPU does this work. */
bool copies_on_lead(const struct profile *p, const struct step_time *w, uint32_t gpu);
/* Copies on the lead GPU that start within the steps and are wanted. */
void copies_measure(const struct profile *p, struct findings *f, const struct step_time *w, copy_wanted *wanted, struct copies *out);
void copies_release(struct copies *c);

/* Copies of the lead GPU with bytes as given or fewer, of one way, that follow one another: no other work of the GPU lies between two of them, nor more than
 * 200 us. A row has 20 or more: one copy could bring them all. */
struct copy_rows {
	struct intervals when;   /* from the end of a row's first copy to the end of its last, where no other work of the GPU goes on */
	uint64_t copies, rows;
};
void copies_rows(const struct profile *p, const struct step_time *w, int64_t bytes_max, struct copy_rows *out);
void copies_rows_release(struct copy_rows *r);

/* How much the GPU's kernels and its copies and sets run at the same time: percent of the lead GPU's busy time in the steps. */
double copies_overlap_pct(const struct profile *p, const struct step_time *w);

/* The innermost op around the call of device work; else the op that the input names, else the call; ROW_NONE. */
uint32_t copies_op(const struct profile *p, uint32_t gpu);

/* The largest copy that is taken for small: it takes less on the bus (2 us at 12 GB/s) than the host takes to order it. */
#define COPY_TINY_BYTES (24 * 1024)

#endif
