/* Making of torch_events: what its files share. Only they include this. */
#ifndef OPSCOPE_ANALYSIS_TREE_TORCH_EVENTS_WORK_H
#define OPSCOPE_ANALYSIS_TREE_TORCH_EVENTS_WORK_H

#include "analysis/tree/torch_events.h"

/* One event before the list is sorted. `parent`: the number of an earlier candidate, ROW_NONE = none. */
struct torch_candidate {
	int64_t start_ns, end_ns;
	uint32_t row, key, track, parent;
	int32_t node_id;
	uint8_t kind, flags, device_type;
};

struct torch_work {
	struct torch_events *t;
	const struct profile *p;
	struct torch_candidate *v;
	uint32_t n, cap;
	uint32_t *key_of_name;  /* string id -> key, 0 = not asked */
	uint32_t *run_by_name;  /* string id -> what node the engine runs in a range of this name, + 1; 0 = not asked */
	uint32_t *order;        /* sorted place -> candidate */
	uint32_t *place;        /* candidate -> sorted place */
};

enum { TORCH_KEY_DROPPED = UINT32_MAX }; /* torch leaves events of this name out */

/* The key of a name. */
uint32_t torch_key(struct torch_work *w, uint32_t name);

/* Adds a candidate for a row of span, with what its kind says of flags and device; its number. */
uint32_t torch_add_span(struct torch_work *w, uint32_t span, uint32_t key);
/* The same for rows of gpu_op and memory. */
uint32_t torch_add_gpu(struct torch_work *w, uint32_t row);
uint32_t torch_add_memory(struct torch_work *w, uint32_t row);
/* Sorts, fills the columns of *t that candidates have, allocates the others with zeros (parent: from the candidates). */
void torch_sort(struct torch_work *w);

/* kernel_first and kernel from the event of each item: of[i] is the event of item[i], ROW_NONE = none. */
void torch_put_kernels(struct torch_events *t, const uint32_t *item, const uint32_t *of, uint32_t n);

/* Whose memory a row of memory is about. */
enum torch_side { TORCH_HOST, TORCH_DEVICE, TORCH_NEITHER };
enum torch_side torch_memory_side(const struct torch_events *t, uint32_t row);

/* torch_events_stacks.c: t->stacks and t->stack. */
void torch_put_stacks(struct torch_events *t);

/* torch_events_flops.c: t->flops. */
void torch_put_flops(struct torch_events *t);

/* The two ways; they leave *t complete but for stacks and FLOPs. */
void torch_events_own(struct torch_work *w);
void torch_events_of_version(struct torch_work *w);

#endif
