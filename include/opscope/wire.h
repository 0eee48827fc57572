/* The file that the capture library writes and `opscope` reads, byte by byte: one segment a process, DIR/<host>-<pid>-<start ns>.seg.
 *
 * Little-endian. Times are CLOCK_REALTIME in nanoseconds, int64. Sizes are bytes. Everything is aligned to 8.
 *
 *   offset 0                  struct wire_header, in a block of WIRE_BLOCK bytes
 *   WIRE_BLOCK ..             chunks, one behind the other, each a multiple of WIRE_GRAIN bytes long and at a multiple of WIRE_GRAIN:
 *                             struct wire_chunk, then `committed` bytes of records
 *
 * DIR/<host>-<pid>-<ns>.none, empty: a process that could not begin its segment, and whose parent has none in which its calls could be counted.
 *
 * A chunk of events belongs to one thread, which alone appends to it: it writes a record, then stores `committed` with release order. So what
 * lies before `committed` is whole, whenever the process dies. A grain without WIRE_CHUNK_MAGIC was never used: a reader goes on at the next one.
 * Chunks of WIRE_KEEP hold what all others refer to (texts, names, facts) and are never used twice. With a bounded size and WIRE_FULL_RING a chunk
 * of events may be used again: `sequence` becomes 0, then the content changes, then `sequence` gets its new number. A reader of a living
 * process copies a chunk and drops the copy if `sequence` was another afterwards. Numbers grow: in their order the chunks of a thread tell its story.
 *
 * A record begins with struct wire_head and never crosses a chunk. A reader skips types that it does not know by `words`. Bytes of a record behind
 * what its type declares belong to a later version. Ids of texts are valid in the whole segment, whatever chunk the text lies in. 0 = none.
 *
 * A new type of record: a number and a struct here; who writes it (collect/); a row in `handlers` of src/input/capture/capture_rows.c; a planted one
 * in tests/oracle/test_capture.py. Nothing else knows the list. */
#ifndef OPSCOPE_WIRE_H
#define OPSCOPE_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC "OPSCSEG1"              /* 8 bytes, no NUL */
#define WIRE_VERSION 1u                    /* a reader refuses what is greater */
#define WIRE_CHUNK_MAGIC 0x4b43504fu       /* "OPCK" */
enum {
	WIRE_BLOCK = 65536,                /* the header's block; also the size of an ordinary chunk */
	WIRE_GRAIN = 4096,
	WIRE_MAX_STRING = 32768,           /* bytes of any text, here and in the program; a longer one is cut between characters and flagged */
	WIRE_MAX_FRAMES = 256,             /* of one stack */
	WIRE_LOSSES = 32,                  /* places in the header, most of them free */
};

/* Why something is not in the file. X(name, what problems are called in reports, what is missing); each is counted in wire_header.lost, in this order.
 * A text for which there was no room stands in its record, or is missing there. */
#define WIRE_LOST_REASONS(X)                                                                                              \
	X(FULL, "lost-size", "events that came after the capture had reached its greatest size (--max-size)")             \
	X(DISK, "lost-disk", "events for which the capture's file got no more room")                                      \
	X(RING, "lost-ring", "bytes of older events that made room for newer ones (--max-size=SIZE,ring)")                \
	X(STRINGS, "lost-texts", "texts for which there was no room")                                                     \
	X(DOMAINS, "lost-domains", "domains, categories or resources for which there was no room")                        \
	X(DEPTH, "lost-depth", "ranges that were nested too deeply")                                                      \
	X(THREADS, "lost-threads", "events of threads for which there was no room")                                       \
	X(NESTED, "lost-nested", "events of signal handlers that interrupted the capture library")                        \
	X(BUSY, "lost-busy", "events that would have made the program wait")                                              \
	X(DEVICE, "lost-device", "records of devices that CUPTI dropped")                                                 \
	X(CLOCK, "lost-clock", "records of devices with times of another clock, which another profiler had set")          \
	X(BUFFERS, "lost-buffers", "records of devices in buffers that could not be had")                                 \
	X(SAMPLES, "lost-samples", "samples of stacks that the kernel dropped")                                           \
	X(WINDOW, "lost-window", "records of devices so late that it was not known any more whether they were wanted (--range, --steps)") \
	X(PROCESSES, "lost-processes", "calls of processes that could not begin a file of their own, as without room on the disk or a free descriptor")
enum wire_loss {
#define WIRE_LOST_(name, kind, what) WIRE_LOST_##name,
	WIRE_LOST_REASONS(WIRE_LOST_)
#undef WIRE_LOST_
	WIRE_LOST_N
};

/* Where the recording stands; wire_header.state. */
enum wire_state {
	WIRE_RUNNING = 1,      /* or killed: ask whether `pid` of `boot_id` lives */
	WIRE_ENDED = 2,        /* the process left by exit(), or said that it was about to leave (opscope_leaving) */
};

enum wire_full { WIRE_FULL_STOP = 0, WIRE_FULL_RING = 1 };

/* Two clocks at one moment: a step of the wall clock shows as a change of their difference. What is less than 1/2000 of the time between two of
 * them and WIRE_CLOCK_STEP is none: that is how the clock is made to follow others. */
struct wire_anchor {
	int64_t realtime_ns;
	int64_t monotonic_raw_ns;
};
enum { WIRE_CLOCK_STEP = 200000 };         /* ns */

/* Written once before `magic`, which comes last, but for the fields marked *: those change, each atomically. */
struct wire_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;             /* sizeof(struct wire_header) of the writer */
	uint32_t block_bytes, grain_bytes; /* WIRE_BLOCK, WIRE_GRAIN */
	int64_t start_ns;                  /* when the recording of this process began; also in the file's name */
	int32_t pid, ppid;
	int32_t forked;                    /* 1: made by fork from a process that was being recorded */
	int32_t full;                      /* enum wire_full */
	int64_t max_bytes;                 /* of the file; 0 = no bound */
	int64_t rank, world;               /* of the job that the process is a part of, as its environment says; -1 = not said */
	char boot_id[40];                  /* /proc/sys/kernel/random/boot_id, "" = unknown; NUL-terminated */
	char host[72];                     /* uname; NUL-terminated */
	char library[32];                  /* version of the capture library; NUL-terminated */
	struct wire_anchor first;
	uint32_t state;                    /* * enum wire_state */
	uint32_t anchor_lock;              /* * odd while `last` is being written; read `last` between two equal even values */
	struct wire_anchor last;           /* * once a second and at the end */
	uint64_t used_bytes;               /* * end of the last chunk handed out */
	uint64_t sequence;                 /* * numbers given to chunks so far */
	uint64_t calls;                    /* * calls of the library, in steps: a thread adds its own now and then */
	uint64_t cost_ns;                  /* * what those calls took, by measuring some of them; saturates at INT64_MAX */
	uint64_t helper_ns;                /* * CPU time of the library's own thread */
	uint64_t lost[WIRE_LOSSES];        /* * by enum wire_loss */
};

/* Rank and world as the environment of a process says: whoever writes a segment of it has to find the same. `number` is the value of a variable, -1 =
 * it is not there, or no number that a rank can be. torch's own variables say more than those of what started it. Slurm says also to a batch
 * script, and to the only process of a step, that it is number 0; how many a step has it says only in steps. */
static inline void wire_rank_of(int64_t (*number)(const void *environment, const char *variable), const void *environment, int64_t *rank, int64_t *world)
{
	static const struct { const char *rank, *world; int64_t least; } job[] = {
		{"RANK", "WORLD_SIZE", -1}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", -1}, {"PMI_RANK", "PMI_SIZE", -1}, {"PMIX_RANK", "", -1},
		{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", -1}, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", 2}};
	for (unsigned i = 0; i < sizeof job / sizeof job[0]; i++) {
		*rank = number(environment, job[i].rank);
		*world = number(environment, job[i].world);
		if (*world >= 0 && *world <= *rank)
			*world = -1;
		if (*rank >= 0 && *world >= job[i].least)
			return;
	}
	*rank = *world = -1;
}

enum wire_chunk_kind {
	WIRE_EVENTS = 1,
	WIRE_KEEP = 2,
};

struct wire_chunk {
	uint32_t magic;
	uint16_t kind;                     /* enum wire_chunk_kind */
	uint16_t grains;                   /* length of the chunk with this header / WIRE_GRAIN */
	uint32_t thread;                   /* gettid() of the owner; 0 for WIRE_KEEP */
	uint32_t thread_number;            /* the owner, counted: tids are used again, these are not */
	uint64_t offset;                   /* of this chunk in the file */
	uint64_t sequence;                 /* * 0 = being used again */
	uint32_t committed;                /* * bytes of records */
	uint32_t ordinal;                  /* chunks that the owner had before this one; one that is missing was used again */
};

struct wire_head {
	uint8_t type;                      /* enum wire_type */
	uint8_t flags;
	uint16_t words;                    /* length of the record with this head / 8, at least 1 */
	uint32_t id;
};

/* k: in chunks of WIRE_KEEP; e: in those of events. */
enum wire_type {
	WIRE_STRING = 1,       /* k */
	WIRE_META,             /* k */
	WIRE_NOTE,             /* k */
	WIRE_THREAD_NAME,      /* k */
	WIRE_DOMAIN,           /* k */
	WIRE_CATEGORY,         /* k */
	WIRE_RESOURCE,         /* k */
	WIRE_ANCHOR,           /* k */
	WIRE_SWITCH,           /* k: of the whole process; e: when this thread saw it */
	WIRE_PUSH = 16,        /* e */
	WIRE_POP,              /* e */
	WIRE_START,            /* e */
	WIRE_END,              /* e */
	WIRE_MARK,             /* e */
	WIRE_COUNTER,          /* e */
	WIRE_STEP,             /* e */
	WIRE_MEMORY,           /* e */
	WIRE_ARG,              /* e */
	WIRE_DEVICE = 32,      /* k */
	WIRE_CONTEXT,          /* k */
	WIRE_STREAM,           /* k */
	WIRE_KERNEL,           /* e */
	WIRE_COPY,             /* e */
	WIRE_SET,              /* e */
	WIRE_API,              /* e */
	WIRE_SYNC,             /* e */
	WIRE_OVERHEAD,         /* e */
	WIRE_GRAPH,            /* e */
	WIRE_GRAPH_NODE,       /* e */
	WIRE_DEVICE_MEMORY,    /* e */
	WIRE_GPU_SAMPLE,       /* e */
	WIRE_CPU_SAMPLE,       /* e */
	WIRE_MAPPING,          /* k */
	WIRE_CUDA_EVENT,       /* e */
	WIRE_TYPES
};

/* ---- texts and facts ---- */

/* Text `id`, UTF-8. The bytes follow, filled up to 8. */
enum { WIRE_CUT = 1 << 7 };                /* a flag of every record with a text: the text was longer */
struct wire_string {
	struct wire_head head;             /* flags: WIRE_CUT; id: of the text, from 1 */
	uint32_t bytes;
	uint32_t reserved;
};

/* A fact about the process: text `id` is the key. "argv", "cwd", "env.RANK", "version.cuda_driver", "version.cupti", "nvtx.version", ... ;
 * "argv" is the words, each closed by a NUL, in `value`. The last one of a key holds. */
struct wire_meta {
	struct wire_head head;
	uint32_t value;                    /* text */
	uint32_t reserved;
};

/* Something that could not be seen, or that a reader of reports should know. */
struct wire_note {
	struct wire_head head;             /* id: text, a kind in kebab case: "cupti-busy" */
	int64_t time_ns;
	uint32_t text;                     /* a sentence without a full stop */
	uint32_t loss;                     /* 1: something was lost by it; 0: only worth knowing */
};

enum { WIRE_BY_SYSTEM = 1 };               /* as the system calls the thread; a name that the program gave goes first */
struct wire_thread_name {
	struct wire_head head;             /* flags: WIRE_BY_SYSTEM; id: text */
	uint32_t thread;                   /* gettid() */
	uint32_t reserved;
};

/* A domain of NVTX, ITT or trace.h: `id` counted from 1; 0 is the default domain of NVTX and has no record. */
enum wire_api { WIRE_API_NVTX = 0, WIRE_API_ITT = 1, WIRE_API_TRACE = 2 };
struct wire_domain {
	struct wire_head head;             /* flags: enum wire_api */
	uint32_t name;                     /* text */
	uint32_t reserved;
};

struct wire_category {
	struct wire_head head;             /* id: the category's number */
	uint32_t domain;
	uint32_t name;                     /* text */
};

/* A name that the program gave to a thing: NVTX resources, names of CUDA devices, contexts, streams, events. */
struct wire_resource {
	struct wire_head head;             /* id: text */
	uint32_t domain;
	uint32_t kind;                     /* NVTX: nvtxResourceAttributes_t.identifierType; WIRE_RESOURCE_* below for the name functions */
	uint64_t handle;                   /* pointer or number of the thing */
};
enum {
	WIRE_RESOURCE_CUDA_DEVICE = 0x40000001, /* device ordinal */
	WIRE_RESOURCE_CUDA_CONTEXT,
	WIRE_RESOURCE_CUDA_STREAM,
	WIRE_RESOURCE_CUDA_EVENT,
	WIRE_RESOURCE_CUDA_STREAM_NUMBER, /* a stream as records of its work name it: device ordinal << 32 | number */
};

/* When the clock was set: the last anchor before it, unless it stands in the header or in the record before, and the first one behind it. */
struct wire_anchor_record {
	struct wire_head head;
	struct wire_anchor anchor;
};

/* Collecting was switched. In a chunk of events: the owner saw it now; ranges that it had open end at `time_ns` for this file, and later pops of
 * them say nothing. */
struct wire_switch {
	struct wire_head head;             /* flags: 1 on, 0 off; id: enum wire_why */
	int64_t time_ns;                   /* of the switch; 0 = not known in this chunk: that of the process has it */
};
enum wire_why { WIRE_WHY_RANGE = 1, WIRE_WHY_STEPS, WIRE_WHY_CUDA_PROFILER, WIRE_WHY_DELAY, WIRE_WHY_DURATION, WIRE_WHY_CALL,
	WIRE_WHY_KEY_RANGE /* steps that are ranges of a name: those of opscope_step may be cut by it */ };

/* ---- ranges ---- */

/* Parts that follow the time of WIRE_PUSH, WIRE_START, WIRE_MARK, in the order of their bits. Each is one word but for the text. */
enum {
	WIRE_HAS_OP = 1 << 0,              /* u32 seq, u32 op_id; UINT32_MAX = not there */
	WIRE_HAS_SIZES = 1 << 1,           /* u32 text, u32 0 */
	WIRE_HAS_ATTR = 1 << 2,            /* u32 category (0 = none), u32 colour as 0xAARRGGBB (0 = none) */
	WIRE_HAS_DOMAIN = 1 << 3,          /* u32 domain, u32 enum wire_payload */
	WIRE_HAS_PAYLOAD = 1 << 4,         /* the value; WIRE_HAS_DOMAIN says of what kind it is */
	WIRE_HAS_RANGE = 1 << 5,           /* u64 number of the range (WIRE_START) */
	WIRE_HAS_TEXT = 1 << 6,            /* u32 bytes, then the text from the next byte on, filled up to 8 in all */
};
enum wire_payload { WIRE_NO_PAYLOAD = 0, WIRE_U64 = 1, WIRE_I64 = 2, WIRE_F64 = 3 };

/* The text of a range is, one behind the other: text `id`; ", seq = N" and ", op_id = N" where WIRE_HAS_OP has them; ", sizes = " and that text
 * with WIRE_HAS_SIZES; the text of WIRE_HAS_TEXT. So the strings of emit_nvtx, each of which is another one, need no text of their own. */
struct wire_range {
	struct wire_head head;             /* flags: WIRE_HAS_*, WIRE_CUT; id: text, 0 = the text is inside, or there is none */
	int64_t time_ns;
};

struct wire_pop {
	struct wire_head head;             /* id: domain */
	int64_t time_ns;
};

struct wire_end {
	struct wire_head head;             /* id: domain */
	int64_t time_ns;
	uint64_t range;                    /* as in WIRE_HAS_RANGE; ended by whatever thread */
};

/* ---- the C API ---- */

struct wire_counter {
	struct wire_head head;             /* flags: enum wire_payload; id: text, the counter's name */
	int64_t time_ns;
	uint64_t value;
	uint32_t domain;
	uint32_t unit;                     /* text, 0 = none */
};

/* A step of training begins. */
struct wire_step {
	struct wire_head head;             /* id: text, what the step is of: "ProfilerStep" */
	int64_t time_ns;
	int64_t number;
};

/* As the framework's allocator sees it. */
struct wire_memory {
	struct wire_head head;
	int64_t time_ns;
	int64_t address;
	int64_t bytes;                     /* negative: freed */
	int64_t allocated, reserved;       /* after it, on that device; INT64_MIN = unknown */
	int16_t device_type;               /* c10: 0 CPU, 1 CUDA, ... */
	int16_t device_id;                 /* -1 = none */
	uint32_t unused;
};

/* An argument of the innermost open range of this thread in that domain. */
enum wire_arg_kind { WIRE_ARG_TEXT = 0, WIRE_ARG_JSON = 1, WIRE_ARG_I64 = 2, WIRE_ARG_F64 = 3, WIRE_ARG_I64S = 4 };
enum { WIRE_MAX_NUMBERS = 256 };
struct wire_arg {
	struct wire_head head;             /* flags: enum wire_arg_kind; id: text, the argument's name */
	uint64_t value;                    /* text, or the number; WIRE_ARG_I64S: how many follow this struct, at most WIRE_MAX_NUMBERS */
	uint32_t domain;
	uint32_t reserved;
};

/* ---- devices; most fields are CUPTI's ---- */

struct wire_device {
	struct wire_head head;             /* id: text, the product's name */
	uint32_t device;                   /* CUDA's ordinal in this process; UINT32_MAX = unknown (known to NVML alone) */
	uint32_t nvml_index;               /* UINT32_MAX = unknown */
	uint64_t memory_bytes;             /* 0 = unknown, as below */
	uint64_t memory_bandwidth;         /* bytes/s */
	uint32_t cc_major, cc_minor;
	uint32_t sm_count;
	uint32_t clock_khz;
	uint32_t max_warps_per_sm, threads_per_warp;
	uint8_t uuid[16];
};

struct wire_context {
	struct wire_head head;             /* id: the context's id */
	uint32_t device;
	uint32_t null_stream;              /* id of its default stream; UINT32_MAX = unknown */
};

struct wire_stream {
	struct wire_head head;             /* id: the stream's id */
	uint32_t context;
	uint32_t flags;                    /* CUpti_ActivityStreamFlag */
	int32_t priority;
	uint32_t reserved;
};

/* Times 0 in a record of a device: not known. */
struct wire_kernel {
	struct wire_head head;             /* flags: WIRE_LAUNCHED_BY_DEVICE, and not by a call; id: text, mangled name */
	int64_t start_ns, end_ns;
	uint32_t correlation;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t registers;
	uint32_t static_shared, dynamic_shared, local_per_thread;
	uint32_t cluster[3];               /* 0 = unknown or no clusters */
	uint32_t graph;                    /* 0 = none */
	uint64_t graph_node;               /* 0 = none */
};
enum { WIRE_LAUNCHED_BY_DEVICE = 1 };

struct wire_copy {
	struct wire_head head;             /* flags: CUpti_ActivityMemcpyKind */
	int64_t start_ns, end_ns;
	uint64_t bytes;
	uint32_t correlation;
	uint32_t device, context, stream;
	uint8_t from, to;                  /* CUpti_ActivityMemoryKind */
	uint8_t async;
	uint8_t peer;                      /* 1: the devices below say between which */
	uint32_t graph;
	uint64_t graph_node;
	uint32_t from_device, to_device;
};

struct wire_set {
	struct wire_head head;             /* flags: CUpti_ActivityMemoryKind */
	int64_t start_ns, end_ns;
	uint64_t bytes;
	uint32_t correlation;
	uint32_t device, context, stream;
	uint32_t value;
	uint32_t graph;
	uint64_t graph_node;
};

/* A call of the CUDA API. `name` is the text CUPTI gives for it, 0 = only its number is known. */
enum { WIRE_API_RUNTIME = 0, WIRE_API_DRIVER = 1 };
struct wire_api_call {
	struct wire_head head;             /* flags: WIRE_API_*; id: CUPTI's number of the function */
	int64_t start_ns, end_ns;
	uint32_t correlation;
	uint32_t thread;                   /* gettid() */
	uint32_t result;
	uint32_t name;
};

struct wire_sync {
	struct wire_head head;             /* flags: CUpti_ActivitySynchronizationType; id: event, UINT32_MAX = none */
	int64_t start_ns, end_ns;
	uint32_t correlation;
	uint32_t context;
	uint32_t stream;                   /* UINT32_MAX = none */
	uint32_t device;                   /* that of the context */
};

/* An event of CUDA was recorded on a stream (--sync). Its time is that of the call. */
struct wire_cuda_event {
	struct wire_head head;             /* id: event, as in wire_sync */
	uint32_t correlation;
	uint32_t context;
	uint32_t stream;
	uint32_t reserved;
};

struct wire_overhead {
	struct wire_head head;             /* flags: what `object` is, CUpti_ActivityObjectKind; id: text, what CUPTI was doing */
	int64_t start_ns, end_ns;
	uint32_t thread;                   /* 0 = unknown */
	uint32_t object;                   /* device or context, by `flags` */
};

/* A CUDA graph that was run as a whole (--graph=graph). */
struct wire_graph {
	struct wire_head head;             /* id: graph */
	int64_t start_ns, end_ns;
	uint32_t correlation;
	uint32_t device, context, stream;
};

/* The owner of the chunk made a node of a CUDA graph now, or copied one: what runs as that node belongs to the range that is open here. */
struct wire_graph_node {
	struct wire_head head;             /* id: graph */
	int64_t time_ns;
	uint64_t node;
	uint64_t original;                 /* the node that was copied, 0 = none */
};

/* An allocation that CUDA itself made. */
struct wire_device_memory {
	struct wire_head head;             /* flags: CUpti_ActivityMemoryKind; id: text, name, 0 = none */
	int64_t time_ns;
	uint64_t address;
	int64_t bytes;                     /* negative: freed */
	uint32_t device, context, stream;
	uint32_t correlation;
	uint32_t thread;
	uint32_t reserved;
};

/* What NVML says of a device. `id` has a bit for each value that is there, in the order of the fields from bit 0 on. */
struct wire_gpu_sample {
	struct wire_head head;
	int64_t time_ns;
	uint32_t nvml_index;
	uint32_t gpu_pct;                  /* bit 0: share of the last sampling period with a kernel running */
	uint32_t memory_pct;               /* bit 1: ... with memory being read or written */
	uint32_t sm_mhz;                   /* bit 2 */
	uint32_t memory_mhz;               /* bit 3 */
	uint32_t power_mw;                 /* bit 4 */
	uint32_t temperature_c;            /* bit 5 */
	uint32_t reserved;
	uint64_t memory_used_bytes;        /* bit 6: of the whole device, all processes */
	uint64_t throttle;                 /* bit 7: nvmlClocksEventReason* */
};

/* A stack, innermost frame first. A frame is an address, or a text where bit 63 is set: WIRE_FRAME_TEXT | id. */
#define WIRE_FRAME_TEXT (UINT64_C(1) << 63)
struct wire_cpu_sample {
	struct wire_head head;             /* flags: WIRE_CUT, outer callers are missing; id: the thread's gettid() */
	int64_t time_ns;
	uint32_t frames;                   /* u64 each, behind this struct; at most WIRE_MAX_FRAMES */
	uint32_t period_us;                /* time that it stands for */
};

/* A file mapped as code: address `a` of a frame in [start, end) is at `offset + a - start` in it. */
struct wire_mapping {
	struct wire_head head;             /* id: text, path */
	uint64_t start, end, offset;
};

/* Length of a record with `bytes` bytes, in words. */
#define WIRE_WORDS(bytes) ((uint16_t)(((bytes) + 7) / 8))

#define WIRE_SIZE_(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#ifndef __cplusplus
WIRE_SIZE_(wire_chunk, 40);
WIRE_SIZE_(wire_head, 8);
WIRE_SIZE_(wire_string, 16);
WIRE_SIZE_(wire_meta, 16);
WIRE_SIZE_(wire_note, 24);
WIRE_SIZE_(wire_thread_name, 16);
WIRE_SIZE_(wire_domain, 16);
WIRE_SIZE_(wire_category, 16);
WIRE_SIZE_(wire_resource, 24);
WIRE_SIZE_(wire_anchor_record, 24);
WIRE_SIZE_(wire_switch, 16);
WIRE_SIZE_(wire_range, 16);
WIRE_SIZE_(wire_pop, 16);
WIRE_SIZE_(wire_end, 24);
WIRE_SIZE_(wire_counter, 32);
WIRE_SIZE_(wire_step, 24);
WIRE_SIZE_(wire_memory, 56);
WIRE_SIZE_(wire_arg, 24);
WIRE_SIZE_(wire_device, 72);
WIRE_SIZE_(wire_context, 16);
WIRE_SIZE_(wire_stream, 24);
WIRE_SIZE_(wire_kernel, 104);
WIRE_SIZE_(wire_copy, 72);
WIRE_SIZE_(wire_set, 64);
WIRE_SIZE_(wire_api_call, 40);
WIRE_SIZE_(wire_sync, 40);
WIRE_SIZE_(wire_cuda_event, 24);
WIRE_SIZE_(wire_overhead, 32);
WIRE_SIZE_(wire_graph, 40);
WIRE_SIZE_(wire_graph_node, 32);
WIRE_SIZE_(wire_device_memory, 56);
WIRE_SIZE_(wire_gpu_sample, 64);
WIRE_SIZE_(wire_cpu_sample, 24);
WIRE_SIZE_(wire_mapping, 32);
#endif

#endif
