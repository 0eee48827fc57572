/* Events by key, as torch's key_averages() adds them up: one hash pass over the events of analysis/tree/torch_events.h, each going into
 * the group that its name and the parts asked for make. Life cycle: key_groups_new, read, key_groups_free. O(n). */
#ifndef OPSCOPE_REPORT_PARTS_KEY_GROUPS_H
#define OPSCOPE_REPORT_PARTS_KEY_GROUPS_H

#include "analysis/steps/cycles.h"
#include "analysis/tree/torch_events.h"
#include "query/report.h"
#include "query/stats.h"

/* What makes a group, besides its name, node and device and whether it is an annotation. */
enum key_part {
	KEY_SHAPE = 1,     /* input shapes */
	KEY_STACK = 2,     /* the innermost `frames` frames of the Python stack */
	KEY_OVERLOAD = 4,  /* overload name */
	KEY_MODULE = 8,    /* innermost nn.Module around it */
	KEY_THREAD = 16,
	KEY_CYCLE = 32,    /* which of several recorded spans (analysis/steps/cycles.h) */
	KEY_EVENT = 64,    /* each event by itself */
};

enum { KEY_FRAMES_MAX = 64 };

struct key_choice {
	unsigned parts;    /* enum key_part bits */
	unsigned frames;   /* of KEY_STACK; 0 = all, and so are more than KEY_FRAMES_MAX by opscope's own rules */
	bool python;       /* Python frames count, too, where they are events */
};

/* Equal bytes, equal group. 0 = none or not asked for. */
struct key_id {
	uint32_t name;                     /* torch_events.keys */
	int32_t node_id;
	uint32_t device_type, annotation;
	uint32_t shapes, overload, stack, module, thread, cycle, event; /* texts; stack: see
	                                    * key_stack_text; thread: track + 1; cycle, event: from 1 */
};

struct key_group {
	struct key_id id;
	uint32_t first;                    /* its first event */
	uint32_t calls, async;             /* events; of these async */
	uint32_t flops_known;              /* events whose FLOPs are known */
	int64_t host_self, host_total, dev_self, dev_total;
	int64_t cpu_mem, cpu_mem_self, dev_mem, dev_mem_self;
	int64_t flops;                     /* of the events whose FLOPs are known */
};

struct key_groups {
	const struct torch_events *t;
	struct key_choice choice;
	struct key_group *v;               /* in order of first appearance */
	uint32_t n, cap;
	uint32_t *group_of;                /* by event; ROW_NONE = in none */
	struct stats durations;            /* of the events on the host; group i is group i */
	struct intern texts;
	struct cycles cycles;              /* by torch-* rules only with KEY_CYCLE */
	struct key_group all;              /* sum of all groups */
	uint64_t overflows;                /* sums that did not fit 64 bits: they stand at the limit */
};

/* The key parts that args->group_by chooses: "name,shape,stack:5". */
struct key_choice key_choice_of(const struct report_args *args);

/* KEY_STACK and KEY_MODULE need events with TORCH_STACKS; *t must outlive the groups. */
struct key_groups *key_groups_new(const struct torch_events *t, const struct key_choice *c);
void key_groups_free(struct key_groups *g);

/* Of all events by opscope's own rules, Python frames left out. */
struct key_totals {
	uint32_t groups;         /* by name; 0 = there are no events */
	bool memory_known;
	struct key_group all;    /* without FLOPs and what depends on groups */
	int64_t unattributed_ns; /* as in struct torch_events */
};
/* Where results of *p are kept (store/reuse.h) and groups were made, taken from these. */
void key_totals_find(const struct profile *p, struct key_totals *out);

/* Appends a group's stack, frames separated by ';', innermost first. */
void key_stack_text(const struct key_groups *g, uint32_t group, struct buf *out);

/* What the events need for these key parts: enum torch_events_want bits. */
static inline unsigned key_choice_want(const struct key_choice *c)
{
	return c->parts & (KEY_STACK | KEY_MODULE) ? TORCH_STACKS : 0;
}

/* Input shapes as torch prints them: Python's text of a list, tensor lists as empty ones. */
void torch_shapes_text(struct str dims, struct buf *out);

#endif
