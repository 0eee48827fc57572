/* A profile: everything read from one input. Inputs fill it through store/build.h; build_finish sorts it; analysis passes
 * add the DERIVED columns; after that it is immutable and may be read by many threads. */
#ifndef OPSCOPE_STORE_PROFILE_H
#define OPSCOPE_STORE_PROFILE_H

#include "base/diag.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/mem.h"
#include "store/aggregation.h"
#include "store/columns.def"
#include "store/rows.h"

#include <assert.h>

enum span_kind {
	SPAN_OP,        /* framework op (aten::mm, autograd nodes, ...) */
	SPAN_USER,      /* record_function and other annotations */
	SPAN_PYTHON,    /* python_function frame */
	SPAN_CALL,      /* runtime or driver API call of any vendor */
	SPAN_SYNC,      /* synchronisation as seen by the device tracer (cuda_sync) */
	SPAN_OVERHEAD,  /* the profiler's own work */
	SPAN_GPU_USER,  /* an annotation projected onto a device */
	SPAN_TRACE,     /* the span of the whole recording */
	SPAN_MARKER,    /* a range that only describes what is inside it: PyProf's call stack and module markers */
	SPAN_OS,        /* a call of the operating system's libraries: read, pthread_cond_wait, ... */
	SPAN_RANGE,     /* a start/end range: it may overlap others of its thread and end on another one */
	SPAN_OTHER,     /* a category that is not known: kept */
	SPAN_KINDS,
};
extern const char *const span_kind_name[SPAN_KINDS];
/* Whether ranges of this kind stand inside each other on a thread, so that the nesting pass gives them their place. */
static inline bool span_nests(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_USER || kind == SPAN_PYTHON || kind == SPAN_CALL || kind == SPAN_MARKER;
}

enum gpu_kind { GPU_KERNEL, GPU_MEMCPY, GPU_MEMSET, GPU_KINDS };
extern const char *const gpu_kind_name[GPU_KINDS];

/* How the op of a piece of a graph's replay is known: one launch starts all of them, outside of the ops that they belong to. */
enum gpu_evidence {
	EVIDENCE_NONE,       /* it is of no graph, or no one looked */
	EVIDENCE_UNKNOWN,    /* of a graph, and its op is not known */
	EVIDENCE_AMBIGUOUS,  /* what was captured fits in more than one way, of other ops */
	EVIDENCE_NODE,       /* the recording has the call that made its node */
	EVIDENCE_SEQUENCE,   /* the graph's work and the calls of a capture are the same sequence of names */
	EVIDENCE_ALIGNED,    /* the sequences differ; this is in a stretch that they share */
	EVIDENCE_POSITION,   /* the capture's calls have no names, and are as many, of the same kinds in the same order */
	GPU_EVIDENCES,
};
extern const char *const gpu_evidence_name[GPU_EVIDENCES];
/* The category of ranges that were copied from a graph's capture to its replay: they tell what the replay did, and took no time on the host. */
#define REPLAY_CATEGORY "graph_replay"

#define PROFILE_FIELD_(type, name, ...) type *name;
#define PROFILE_STRUCT_(table, structname, columns, help)                                              \
	struct structname {                                                                            \
		struct rows rows;                                                                      \
		columns(PROFILE_FIELD_)                                                                \
	};
STORE_TABLES(PROFILE_STRUCT_)

enum store_table_id {
#define PROFILE_ID_(table, ...) TABLE_##table,
	STORE_TABLES(PROFILE_ID_)
	STORE_N_TABLES
};
extern const struct store_table store_tables[STORE_N_TABLES];

/* How many numbers tell one cut from another: analysis/steps/slice.c. */
enum { CUT_BY = 11 };

struct steps;
struct written;
struct ops;
struct name_facts;
struct user_rules;

/* What an argument of an event is (store/arg_keys.def). */
enum arg_key {
#define ARG_KEY(name, ...) ARG_##name,
#include "store/arg_keys.def"
#undef ARG_KEY
	ARG_KEYS,
};
enum { ARG_SPELLINGS = 2 };
extern const char *const arg_key_text[ARG_KEYS];

/* What analysis can add to a profile (analysis/analysis.h); bits of profile.passes_done. */
enum analysis_pass {
	PASS_NEST = 1 << 0,      /* span.parent; span.op of ops and frames */
	PASS_CORRELATE = 1 << 1, /* span.op of API calls; gpu_op.call, gpu_op.op */
	PASS_STEPS = 1 << 2,     /* profile->steps */
	PASS_MEMORY = 1 << 3,    /* memory.span */
	PASS_OPS = 1 << 4,       /* profile->ops: which op each call and kernel belongs to */
	PASS_NAMES = 1 << 5,     /* profile->names; before all others, whatever is asked for */
	PASS_TENSOR_CORES = 1 << 6, /* profile->tensor_cores; whenever PASS_CORRELATE is asked for */
	/* Those whose results are all in DERIVED columns: a file can hold them. */
	PASSES_IN_COLUMNS = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
};

/* Whose terms say how to record more, and whose rules made the ranges. */
enum recorder {
	RECORDER_TORCH,          /* torch.profiler */
	RECORDER_NVIDIA,         /* Nsight Systems, nvprof: API calls, device work and NVTX ranges */
	RECORDER_PYPROF,         /* PyProf, of such a database: its finished records */
};

/* What few reports look at, so that an input need not keep it where nobody else asks (struct report, `ignores`). Who reads one of these calls profile_assert_kept. */
enum left_out {
	LEFT_FLOWS = 1 << 0,
	LEFT_MEMORY = 1 << 1,
	LEFT_MARKS = 1 << 2,
	LEFT_AUX_IDS = 1 << 3,   /* span.aux_id */
	LEFT_FRAMES = 1 << 4,    /* ranges of Python: left out when all is read, unless profile.needs_frames */
	LEFT_OP_IDS = 1 << 5,    /* span.op_id, span.input_ops */
	LEFT_QUIET = 1 << 6,     /* calls that launched nothing, and ranges without a number in which nothing was launched and nothing else is kept; unless profile.needs_quiet */
};

struct profile {
	struct intern strings;
#define PROFILE_MEMBER_(table, structname, ...) struct structname table;
	STORE_TABLES(PROFILE_MEMBER_)
	struct diags diags;
	struct str input_path;    /* as given by the user */
	struct str format;        /* the input's name: "kineto" */
	uint64_t input_bytes;     /* uncompressed */
	uint64_t file_bytes;      /* on disk; 0 when read from a pipe */
	uint32_t arg_key[ARG_KEYS][ARG_SPELLINGS]; /* string ids; 0 = the input has no such string. Set by profile_find_arg_keys */
	unsigned passes_done;     /* enum analysis_pass bits */
	uint32_t replay_cat;      /* row of cat: ranges of a graph's replay have it; ROW_NONE = there are none. Set by profile_find_arg_keys */
	bool durations_only;      /* the input states durations and an order, but no times: start_ns is made up from both, so that
	                           * idle time, overlap and steps are unknown (a PyProf .dict) */
	bool as_written;          /* set before reading: `written` is wanted, where the input is a JSON trace */
	bool keeps_function_ids;  /* set before reading: "Record function id" is wanted, by which an execution trace names ops */
	unsigned left_out;        /* set before reading: enum left_out bits that are not kept. Of a recording their events are read, checked and counted all the same; of an
	                           * .opscope file they are not looked at (store/load.h) */
	bool (*needs_frames)(const struct profile *p); /* set before reading, with LEFT_FRAMES: asked when all rows are there, whether frames count all the same */
	bool (*needs_quiet)(struct str name); /* set before reading, with LEFT_QUIET: whether a range, a call or an argument of this name makes all ranges count */
	unsigned threads;         /* set before reading: how many may read and analyse, threads_wanted(threads) */
	uint32_t left_memory;     /* rows of `memory` that an .opscope file has and that were left out, */
	size_t left_bytes;        /* and what all that was left out of it would take */
	struct written *written;  /* store/written.h; NULL = not kept. A part has that of the whole */
	bool adds_args;           /* other files gave rows arguments, which `written` lacks */
	bool zero_is_start;       /* time 0 is when the recording began (Nsight Systems, the list that torch.autograd.profiler writes) */
	enum recorder recorder;   /* set by the input */
	struct aggregation *aggregation; /* of an .opscope file, in order of number; in the arena */
	unsigned n_aggregations;
	uint64_t content;         /* of an .opscope file: what all its checksums come to */
	uint64_t reopened_bytes;  /* of the .opscope file */
	int reopened_version;     /* of its format */
	bool reopened;            /* read from an .opscope file: repairs were told when it was made */
	bool device_joined;       /* the only device described does the work of `joined_device`: profile_join_devices */
	int32_t joined_device;
	const struct user_rules *user_rules; /* op/user_rules.h; set before analysis, and outlives the profile or lies in its arena. NULL = none */
	struct str key_op;        /* what the user says marks a step; "" = to be found (analysis/steps/steps.h, steps_choose) */
	struct steps *steps;      /* made by the steps pass */
	struct ops *ops;          /* made by the ops pass */
	struct name_facts *names;      /* made by the names pass; a part has that of the whole */
	uint8_t *tensor_cores;         /* made by the Tensor Core pass, by row of gpu_op: analysis/costs/tc_used.h */
	bool keeps_ops_work;      /* the ops pass leaves its layers and stacks below; who set this takes and frees them */
	struct layers *ops_layers; /* analysis/tree/layers.h; NULL = it made none */
	struct stacks *ops_stacks; /* analysis/names/stacks.h; the same */
	const struct profile *whole; /* what this is a part of, which owns the strings and the tables that are not cut (analysis/steps/slice.h);
	                           * NULL = this is no part */
	struct profile *slice;    /* the part that was asked for last; owned */
	int64_t cut_by[CUT_BY];   /* of a part: what it was cut by, which tells whether it is the part that is asked for again */
	struct reuse *reuse;      /* store/reuse.h; NULL = nothing is kept */
	_Atomic(const void *) reuse_owner; /* who may look at `reuse`: a mark of one thread; NULL = nobody */
	struct arena arena;       /* owns the strings above and what passes keep */
	bool is_asked;            /* several threads ask now (store/together.h): nothing may be added to it or its part */
	bool broken;              /* memory ran out while a pass or a report added to it: it is half done, and only to be freed */
	struct mem_pool blocks;   /* all that it holds, where it was made within a mem_try: by them a broken one is freed */
};

/* Marks the profile as broken. For mem_undo_begin around code that adds to the profile. */
void profile_break(void *profile);
/* ERR_NOMEM when it is broken. */
int profile_check(const struct profile *p, struct err *e);

/* The tables of which a part in time has its own rows; it shares the others. */
static inline bool profile_is_cut(enum store_table_id id)
{
	return id == TABLE_span || id == TABLE_gpu_op || id == TABLE_memory || id == TABLE_flow || id == TABLE_mark || id == TABLE_count;
}

/* For who adds to the profile: nobody else reads it. */
static inline void profile_assert_alone(const struct profile *p)
{
	assert(!p->is_asked && !(p->whole && p->whole->is_asked) && !(p->slice && p->slice->is_asked));
	(void)p;
}

/* For who reads what may be left out: it is there. */
static inline void profile_assert_kept(const struct profile *p, unsigned what)
{
	assert(!(p->left_out & what));
	(void)p;
	(void)what;
}

struct profile *profile_new(void);
void profile_free(struct profile *p);

static inline void *profile_table(const struct profile *p, enum store_table_id id)
{
	return (char *)(uintptr_t)p + store_tables[id].offset;
}

/* SPARSE columns. */
static inline int64_t span_ext_id(const struct spans *s, uint32_t i) { return s->ext_id ? s->ext_id[i] : ID_NONE; }
static inline int32_t span_aux_id(const struct spans *s, uint32_t i) { return s->aux_id ? s->aux_id[i] : -1; }
static inline int64_t span_op_id(const struct spans *s, uint32_t i) { return s->op_id ? s->op_id[i] : 0; }
static inline uint32_t span_input_ops(const struct spans *s, uint32_t i) { return s->input_ops ? s->input_ops[i] : 0; }
static inline int64_t gpu_ext_id(const struct gpu_ops *g, uint32_t i) { return g->ext_id ? g->ext_id[i] : ID_NONE; }

static inline uint32_t memory_args(const struct memories *m, uint32_t i) { return m->args ? m->args[i] : 0; }

static inline enum gpu_evidence gpu_evidence(const struct gpu_ops *g, uint32_t i) { return g->evidence ? (enum gpu_evidence)g->evidence[i] : EVIDENCE_NONE; }
/* Its op is that of its own external id, before that of the call that launched the graph. */
static inline bool gpu_is_replayed(const struct gpu_ops *g, uint32_t i) { return gpu_evidence(g, i) >= EVIDENCE_NODE; }

static inline struct str profile_str(const struct profile *p, uint32_t id) { return intern_get(&p->strings, id); }
static inline struct str profile_cat(const struct profile *p, uint16_t cat)
{
	return cat < p->cat.rows.n ? intern_get(&p->strings, p->cat.name[cat]) : (struct str){"", 0};
}

/* A range that was copied to a graph's replay. */
static inline bool span_is_replay(const struct profile *p, uint32_t i) { return p->span.cat[i] == p->replay_cat; }

/* A row for the replay of a whole CUDA graph, of which the kernels were not recorded: it is of kind GPU_KERNEL, and is not one kernel. */
static inline bool gpu_is_graph(const struct profile *p, uint32_t i)
{
	uint32_t l = p->gpu_op.launch[i];
	return p->gpu_op.kind[i] == GPU_KERNEL && l != ROW_NONE && p->launch.graph_id[l] != ID_NONE && p->launch.graph_node_id[l] == ID_NONE && p->launch.grid_x[l] == INT32_MIN;
}

/* The value of an argument in argument set `set`; false when it is not there. */
bool profile_arg(const struct profile *p, uint32_t set, enum arg_key key, struct str *value);
/* The interned id of the value, 0 = not there. */
uint32_t profile_arg_id(const struct profile *p, uint32_t set, enum arg_key key);
/* False: no event of the input has the argument, as there is no such string. */
bool profile_has_arg(const struct profile *p, enum arg_key key);
/* Whether string `id` is a spelling of `key`. */
bool profile_is_arg(const struct profile *p, uint32_t id, enum arg_key key);
/* The value of an argument by its recorded name. One that has a row in store/arg_keys.def is found under its other spelling, too. */
bool profile_arg_named(const struct profile *p, uint32_t set, struct str name, struct str *value);
/* Once, when all strings are there: build_finish and profile_load do. */
void profile_find_arg_keys(struct profile *p);
/* The value of a fact about the run. */
bool profile_meta(const struct profile *p, const char *key, struct str *value);

/* HIP_VISIBLE_DEVICES and its kin let a process number its devices from 0, and so it describes them, while the tracer tells work by the
 * number that the machine gives. Where one device is described, and all work is on one, which has another number, they are the same.
 * Sets device_joined; call when the tables of devices and launches are complete. O(launches). */
void profile_join_devices(struct profile *p);
/* The row of p->device that describes the device on which work has this ordinal; ROW_NONE = none does. */
uint32_t profile_device_row(const struct profile *p, int32_t ordinal);
/* The ordinal that work on the device of that row has. */
static inline int32_t profile_device_ordinal(const struct profile *p, uint32_t row)
{
	return p->device_joined ? p->joined_device : p->device.id[row];
}

/* Bytes held in memory: columns, strings, maps. */
size_t profile_bytes(const struct profile *p);
/* All events that the input held, by its own count. */
uint64_t profile_events(const struct profile *p);

#endif
