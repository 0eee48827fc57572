/* A profile as torch.autograd.profiler sees it: its list of FunctionEvents (torch/autograd/profiler.py, profiler_util.py), from
 * a Kineto trace or the bare array that torch writes without Kineto. Built on demand and freed by its user; needs PASS_NEST
 * and PASS_CORRELATE.
 *
 * One event per op, annotation, API call, device work and gpu_user_annotation (by the rules also Python frames), sorted by
 * (start, -end), in the order of the recording where both are equal; allocations inside no event and failed ones are events
 * of no length. Names are those of tables (ProfilerStep#7 is ProfilerStep*), utility ops are left out.
 *
 * Formulas, int64 ns and bytes:
 *   cpu_total = end - start; 0 for device events            cpu_self = cpu_total - what direct children cover
 *   dev_total = kernels + children's dev_total; end - start for device events        dev_self = dev_total - children's
 *   cpu_mem, dev_mem: sum of the allocations and frees in it, with those of its children; *_self: less the children's
 *   async events: cpu_self, dev_total, dev_self and memory self 0; they take no part in the nesting
 * An event whose only child has its name takes the child's place: its children and kernels.
 *
 * torch-* rules reproduce that version: allocations count by time whatever the thread; ranges that overlap partially have no
 * relation (so that own time may be negative); a parent that takes the place of its child loses its own kernels; kernels stand
 * in the list as events and count once more there; a runtime call keeps no time of what it launched.
 * Default rules: opscope's own tree (analysis/tree/optree.h), in which all device work counts exactly once: at the op that launched it, or
 * in `unattributed_ns`; there are no device events, and cpu_self is never negative; an allocation counts at the innermost event
 * of its own thread. */
#ifndef OPSCOPE_ANALYSIS_TREE_TORCH_EVENTS_H
#define OPSCOPE_ANALYSIS_TREE_TORCH_EVENTS_H

#include "analysis/analysis.h"
#include "analysis/names/stacks.h"

#define TORCH_UNKNOWN INT64_MIN /* a number that the input does not hold */

/* What the versions of torch do differently.
 *
 * Adding a version: a row in analysis/tree/torch_versions.def (options and reports then have its name); if none of the others does what it
 * does, a field here and what heeds it; how its tables look in styles[] of render/layout_torch.c (a test holds that each version has a
 * row there); its recorded output among the runs of tests/oracle/test_torch_events.py and test_torch_tables.py. */
struct torch_rules {
	const char *name;       /* as users type it: "torch-2.6"; NULL = opscope's own */
	bool python_events;     /* Python frames are events and parents; key_averages has no rows of them */
	bool memory_float_us;   /* the ends of an event, when allocations are looked up, are doubles of microseconds */
	bool xpu_memory;        /* allocations on XPU count as the device's */
	bool whole_us;          /* times are whole microseconds, those of allocations too */
	bool cuda_alone;        /* all devices are CUDA, by name too */
	bool overload;          /* key_averages can tell overloads apart */
	bool user_annotation;   /* whether an event is an annotation is part of a group's key */
	bool overheads_inside;  /* the profiler's overheads nest in the first thread that has ops; else they stand by themselves */
};

enum torch_version {
	TORCH_OWN, /* opscope's own rules */
#define TORCH_VERSION(id, ...) TORCH_##id,
#include "analysis/tree/torch_versions.def"
#undef TORCH_VERSION
	TORCH_VERSIONS
};

extern const struct torch_rules torch_rules[TORCH_VERSIONS];

/* The names of all versions, NULL-terminated; the rules by such a name, NULL = opscope's own. */
extern const char *const torch_versions[];
const struct torch_rules *torch_rules_of(const char *version);

enum torch_event_kind {
	TORCH_SPAN,   /* row: of span */
	TORCH_GPU,    /* row: of gpu_op: a kernel, copy or set */
	TORCH_MEMORY, /* row: of memory: [memory] or [OutOfMemory] */
};

/* torch's DeviceType, as far as events have it. */
enum torch_device { TORCH_CPU = 0, TORCH_CUDA = 1, TORCH_XPU = 12, TORCH_PRIVATEUSE1 = 20 };

/* As tables name it, and as names of fields do: "CUDA", "cuda", also of a type that is none of these. */
struct torch_device_name {
	const char *text, *field;
};
const struct torch_device_name *torch_device_name(uint32_t type);

enum torch_event_flag {
	TORCH_ASYNC = 1,
	TORCH_REMOTE = 2,          /* of another process, by RPC: node_id says which */
	TORCH_USER_ANNOTATION = 4, /* record_function, and its shadow on the device */
	TORCH_PYTHON = 8,          /* a Python frame */
	TORCH_BACKWARD = 16,       /* scope: a node of the backward pass */
};

struct torch_events {
	const struct profile *p;
	const struct torch_rules *rules;
	uint32_t n;
	uint8_t *kind;            /* enum torch_event_kind */
	uint32_t *row;            /* in the table that `kind` says */
	uint32_t *key;            /* name as in tables: id in `keys` */
	uint8_t *flags;           /* enum torch_event_flag */
	uint8_t *device_type;     /* enum torch_device */
	int32_t *node_id;         /* NULL = -1 for all */
	uint32_t *parent;         /* event; ROW_NONE = none */
	uint32_t *track;          /* its thread; of API calls that of the op that made them */
	int64_t *start_ns, *end_ns;
	int64_t *cpu_self, *dev_total, *dev_self;
	int64_t *cpu_mem, *cpu_mem_self, *dev_mem, *dev_mem_self; /* all NULL when no memory was recorded */
	int64_t *flops;           /* TORCH_UNKNOWN; NULL unless asked for with TORCH_FLOPS, and by torch-* rules
	                           * without recorded shapes */
	uint32_t *kernel_first;   /* n + 1: kernels of event i are kernel[kernel_first[i]] .. kernel[kernel_first[i + 1] - 1] */
	uint32_t *kernel;         /* read with torch_kernel_* */
	struct intern keys;
	struct stacks *stacks;    /* NULL unless asked for with TORCH_STACKS */
	uint32_t *stack;          /* a number of *stacks for each event, 0 = none: its own, or of the forward op for what runs under a
	                           * node of the backward pass; the same condition. By torch-* rules only the event's own recorded
	                           * "Call stack" counts, no frames and nothing around, without the frames that torch hides, and
	                           * without a forward op there is none */
	bool shapes_known;        /* the input has Input Dims */
	bool memory_known;        /* allocations were recorded */
	/* Counted while building. */
	uint64_t folded;          /* events that went into a parent of the same name */
	uint64_t dropped_names;   /* utility ops left out */
	int64_t unattributed_ns;  /* device work that no event launched */
	uint64_t unattributed;
};

enum torch_events_want { TORCH_STACKS = 1, TORCH_FLOPS = 2 };

/* `rules`: torch_rules_of. `want`: enum torch_events_want bits. O(n log n). */
struct torch_events *torch_events_new(const struct profile *p, const struct torch_rules *rules, unsigned want);
void torch_events_free(struct torch_events *t);

/* Duration on the host; 0 for device events. */
static inline int64_t torch_cpu_total(const struct torch_events *t, uint32_t i)
{
	return t->device_type[i] == TORCH_CPU ? t->end_ns[i] - t->start_ns[i] : 0;
}
/* The name as tables have it, and as the trace has it ("" for memory events, which traces leave out). */
static inline struct str torch_event_name(const struct torch_events *t, uint32_t i) { return intern_get(&t->keys, t->key[i]); }
struct str torch_event_trace_name(const struct torch_events *t, uint32_t i);
/* Input shapes as JSON text: id of a string of the profile; 0 = none recorded. */
uint32_t torch_event_shapes(const struct torch_events *t, uint32_t i);
/* Overload name; id of a string; 0 = none. */
uint32_t torch_event_overload(const struct torch_events *t, uint32_t i);
/* The stack of an event; 0 also where stacks were not asked for. */
static inline uint32_t torch_event_stack(const struct torch_events *t, uint32_t i) { return t->stack ? t->stack[i] : 0; }
/* Appends its innermost `frames` frames (0 = all), separated by ';'. */
void torch_stack_text(const struct torch_events *t, uint32_t stack, unsigned frames, struct buf *out);
/* The argument set of the event; 0 = it has none. */
uint32_t torch_event_args(const struct torch_events *t, uint32_t i);
/* Where device work ran: row of the profile's `launch`; ROW_NONE for what runs on the host, and where nothing says it. */
uint32_t torch_event_launch(const struct torch_events *t, uint32_t i);
/* -1 = none. */
int64_t torch_event_sequence(const struct torch_events *t, uint32_t i);
/* The profiler's own number of the forward op's thread; 0 = none. */
int32_t torch_event_fwd_thread(const struct torch_events *t, uint32_t i);

/* What an event launched: `k` is an element of t->kernel. Kernels, copies and sets; by torch-* rules also synchronizations. The
 * device's shadow of an annotation is an event, and launched by none: Kineto links no op to it, in no version. */
struct str torch_kernel_name(const struct torch_events *t, uint32_t k);
int64_t torch_kernel_start(const struct torch_events *t, uint32_t k);
int64_t torch_kernel_ns(const struct torch_events *t, uint32_t k);
int32_t torch_kernel_device(const struct torch_events *t, uint32_t k); /* ordinal; -1 = not known */

/* Whether key_averages() counts it. */
static inline bool torch_event_counts(const struct torch_events *t, uint32_t i)
{
	return !(t->flags[i] & TORCH_PYTHON);
}

#endif
