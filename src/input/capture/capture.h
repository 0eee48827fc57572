/* What the files capture*.c share: reading the segments that the capture library writes (include/opscope/wire.h).
 *
 * Every length and id in a segment is checked: it may be cut, be damaged, or be written to just now. Times become nanoseconds since the first
 * process of the run began to be recorded. */
#ifndef OPSCOPE_INPUT_CAPTURE_CAPTURE_H
#define OPSCOPE_INPUT_CAPTURE_CAPTURE_H

#include "base/buf.h"
#include "base/mem.h"
#include "input/marker.h"
#include "opscope/wire.h"
#include "store/build.h"

/* ---- capture_file.c: one segment, as bytes ---- */

struct capture_chunk {
	uint64_t offset, sequence;
	uint32_t thread, number, ordinal;
	uint32_t bytes;               /* room for records */
	bool kept;                    /* WIRE_KEEP */
};

struct capture_file {
	int fd;
	uint64_t bytes;
	struct wire_header h;         /* what changes is read consistently; texts end in a NUL */
	uint32_t block, grain;
	struct capture_chunk *chunk;  /* kept ones first, then by thread and in its order */
	uint32_t n, cap;
	char *records;                /* of the chunk that was loaded last */
	int error;                    /* errno of a read that failed, or of an open for a reason other than discover_is_absent: what was read since is not all; kept behind capture_file_close */
	struct mem_undo undo;
};

/* -1 and *e: it cannot be read, or is no segment. `lists`: with its chunks. */
int capture_file_open(struct capture_file *f, const char *path, bool lists, struct err *e);
void capture_file_close(struct capture_file *f);
/* The records of a chunk, in f->records; how many bytes. 0 where it was used again meanwhile, or holds none. */
uint32_t capture_file_load(struct capture_file *f, const struct capture_chunk *c);
/* Whether the process is still there and may be writing. */
bool capture_file_lives(const struct wire_header *h);

/* ---- capture_run.c: the segments of a directory ---- */

struct capture_run {
	char **path;                  /* the segments to be read, in order of their beginnings */
	unsigned n, cap;
	unsigned absent;              /* processes that could not begin one, of whatever rank */
	int64_t base_ns;              /* when the first segment of the directory began */
	int64_t rank, world;
};
/* The segment at `path`, and all others of its rank in its directory where it is the first of them. -1 and *e: it is no segment. Here and below,
 * segments that are links out of `root` are not there, unless root.n == 0. */
int capture_run_find(struct capture_run *r, const char *path, struct str root, struct err *e);
void capture_run_release(struct capture_run *r);
/* Whether the file is the first segment of its rank in its directory, which stands for them all. *known: NULL, or what was found out of this directory before;
 * capture_run_forget takes it. */
bool capture_run_leads(const char *path, struct str root, void **known);
void capture_run_forget(void *known);
bool capture_run_lives(const char *path);
/* A number that another state of the segments that are read with this one makes another one; 0 = it is no segment. */
uint64_t capture_run_progress(const char *path, struct str root);
/* False: it is no rank of a job. */
bool capture_run_rank(const char *path, int64_t *rank);

/* Bytes of text that may be made of others: at first, and for each byte of the segment. */
enum { CAPTURE_ROOM_FIRST = 64 << 20, CAPTURE_ROOM_A_BYTE = 32 };

/* ---- capture_shared.c ---- */

/* A text of the segment. */
struct capture_text {
	struct str s;
	uint32_t id, symbol;          /* in p->strings, + 1; 0 = not there yet. The symbol is demangled */
	uint32_t fact, words;         /* likewise: as the key of a fact, and as its value */
	uint32_t domain;              /* + 1: that `marker` is for; 0 = for none */
	struct marker marker;
	bool cut;
};

struct capture_domain {
	uint32_t name;                /* in p->strings; 0 = the default domain */
	uint16_t cat;
	uint8_t api;
};

/* A range that was started, or ended, on any thread; open ones of a thread. */
struct capture_range {
	struct span_row row;
	uint64_t range;               /* of start/end ranges */
	uint32_t domain;
	uint32_t below;               /* open: the next outer one of this domain, + 1 */
	uint32_t args;                /* first of capture.arg, + 1 */
	bool closed, is_step;
	bool is_node;                 /* started by a node of TensorFlow: its op, where the same thread ends it */
	uint32_t tid, op_track;       /* of is_node: the thread, and the track of its ops */
};

struct capture_arg {
	struct arg_pair pair;
	uint32_t next;                /* + 1 */
};

struct capture_thread {
	uint32_t tid, number;
	uint32_t track, range_track;  /* ROW_NONE = not made yet */
	struct capture_range *open;
	uint32_t n_open, cap_open;
	uint32_t *top;                /* by domain: innermost open range + 1 */
	int64_t step_ns;              /* of the step that is open */
	uint32_t step_name;           /* 0 = none */
};

/* What was told of a stream. Sorted (capture_streams_known), with the device as in the profile. */
struct capture_stream {
	uint32_t context, device;     /* device: its ordinal; UINT32_MAX = that of the context */
	uint32_t stream, name;        /* name: in p->strings; 0 = not known */
	uint32_t order;               /* of being told */
	int32_t priority;             /* 0 = the usual one, or not known */
	bool is_default;
};

struct capture {
	struct profile *p;
	struct build b;
	struct markers *markers;
	int64_t base_ns;              /* absolute time of 0 */
	/* The segment that is being read. */
	struct err failed;            /* a read that failed; code ERR_NONE = none */
	struct capture_file *file;
	const char *name;             /* of the file, for messages */
	struct arena bytes;           /* texts */
	struct capture_text *text;
	uint32_t n_texts, cap_texts, n_cut; /* n_cut: of them, those that were longer */
	struct idmap text_at;         /* wire id -> place in text */
	struct capture_domain *domain;
	struct intern categories;     /* (domain, number) -> place in category_name */
	uint32_t *category_name, cap_categories;
	struct capture_off {
		int64_t time_ns;
		uint32_t why;         /* enum wire_why, or a number that is not known */
	} *off;                       /* when collecting was switched off, in order */
	uint32_t n_off, cap_off;
	int64_t last_ns;              /* the latest time that this process wrote, absolute */
	struct wire_anchor anchor;    /* the latest */
	struct capture_thread thread;
	struct capture_range *started, *ended;
	uint32_t n_started, cap_started, n_ended, cap_ended;
	struct capture_arg *arg;
	uint32_t n_args, cap_args;
	struct buf scratch;
	uint64_t room;                /* bytes that texts made of several others may still come to: capture_made */
	uint64_t samples;             /* of stacks, in the segment */
	uint64_t before;              /* pops of ranges that began before the recording */
	uint64_t open_at_end;
	uint64_t dropped;             /* ranges of which the end was in chunks that are gone */
	uint64_t end_lost;            /* ranges and steps of which the end may be among the events that were lost */
	int64_t offset;               /* of the record being read */
	/* Of all segments. */
	struct intern streams;        /* (device, stream, pid) -> place in stream_track */
	uint32_t *stream_track, cap_streams;
	struct capture_device *device;
	uint32_t n_devices, cap_devices;
	struct intern graph_nodes;    /* (pid, node) -> place in node_range */
	uint32_t *node_range, cap_nodes;
	uint32_t first_span, first_gpu; /* rows of the segment begin there */
	struct capture_allocation *allocation; /* of the segment, by CUDA itself */
	uint32_t n_allocations, cap_allocations;
	struct capture_event *event;  /* of the segment: CUDA's */
	uint32_t n_events, cap_events;
	struct capture_wait *wait;    /* of the segment: for such an event */
	uint32_t n_waits, cap_waits;
	struct idmap context_device;  /* context -> ordinal; of the segment */
	struct capture_stream *stream; /* of the segment */
	uint32_t n_streams, cap_streams_told;
	bool has_memory;              /* the program told of its allocator */
	bool has_devices;
	bool leader;                  /* no segment before had facts: those of the run are its first process's */
	bool has_facts;               /* the segment has */
	int64_t rank, world;          /* -1 = not known */
	struct wire_mapping *mapping; /* of the segment, by start */
	uint32_t n_mappings, cap_mappings;
	struct {
		uint64_t calls, cost_ns, helper_ns, processes, living, unended, lost[WIRE_LOST_N]; /* living: they still run; unended: neither that nor left in order */
		unsigned told;
	} total;
	struct idmap thread_name, system_name; /* tid -> string, as the program and as the system call it; of the segment */
	struct idmap named;           /* tracks that have a name by the program, from whatever segment */
	uint32_t argv;                /* text: the words of its command */
	uint32_t process_name;        /* 0 = not known */
	struct capture_cat {
		const char *name;
		uint16_t cat;
	} cat[64];                    /* of names that live as long as the reader, by their addresses */
	uint64_t *seen;               /* ranges by category */
	uint32_t n_seen;
	uint32_t n_notes;             /* kinds of notes */
};

/* The CUDA ordinal of a process, and which GPU that is. */
struct capture_device {
	int32_t pid;
	uint32_t ordinal, nvml_index;
	uint8_t uuid[16];
	int32_t id;                   /* in the profile */
	uint32_t row;                 /* of p->device */
};

/* A row of memory whose thread is that of the call with this correlation id. */
struct capture_allocation {
	uint32_t row, correlation;
};

/* An event that was recorded on a stream by the call with that correlation id, at the time of that call. */
struct capture_event {
	uint32_t context, event, stream, correlation;
	int64_t time_ns;              /* INT64_MAX until the call was found */
};

/* Row of span. */
struct capture_wait {
	uint32_t row, context, event;
};

enum { CAPTURE_DOMAINS = 4096, CAPTURE_ARGS_MAX = 64 };

static inline struct str capture_text(const struct capture *c, uint32_t id)
{
	uint32_t at = id ? idmap_get(&c->text_at, id) : IDMAP_NONE;
	return at == IDMAP_NONE ? (struct str){"", 0} : c->text[at].s;
}
/* As a string of the profile. A text that is not there is "?" and counted. */
uint32_t capture_string(struct capture *c, uint32_t id);
/* A text was longer than what stands here of it: counted. */
void capture_text_cut(struct capture *c);
/* A text that was put together, as a string of the profile. A few bytes of a segment can name long texts in ever new ways: beyond what is in proportion to
 * its size only the beginning of such a text is kept, and that is counted. */
uint32_t capture_made(struct capture *c, struct str text);
/* No more than its first CAPTURE_SHORT bytes, cut between characters. */
enum { CAPTURE_SHORT = 256 };
struct str capture_short(struct str text);
/* The same for what others make strings of: before, and behind it, with how many strings there were. */
struct str capture_bounded(struct capture *c, struct str text);
void capture_pay(struct capture *c, uint32_t strings);
/* Relative to the run; false and counted: no time that this recording can have. */
bool capture_time(struct capture *c, int64_t time_ns, int64_t *relative);
uint32_t capture_track(struct capture *c, uint32_t tid, bool ranges);
void capture_count(struct capture *c, uint16_t cat); /* a range */
uint16_t capture_cat(struct capture *c, const char *name);
/* The device with this ordinal of the segment's process; NULL = none was told of. */
const struct capture_device *capture_find_device(const struct capture *c, uint32_t ordinal);
/* What the profile calls that device. */
int32_t capture_device_id(const struct capture *c, uint32_t ordinal);
/* INT32_MIN for a number that is too large. */
int32_t capture_small(uint32_t v);

/* One record, whole. */
typedef void capture_handler(struct capture *c, const struct wire_head *h, uint32_t bytes);

/* ---- capture_rows.c: what each type of record becomes ---- */
void capture_kept(struct capture *c, const struct wire_head *h, uint32_t bytes);
void capture_event(struct capture *c, const struct wire_head *h, uint32_t bytes);

/* ---- capture_ranges.c ---- */
capture_handler capture_range, capture_pop, capture_end, capture_arg_record, capture_step;
/* Ends what is open on the thread at that absolute time, for that reason (enum wire_why); when collecting was switched off next, or the process
 * ended. */
void capture_close_all(struct capture *c, int64_t time_ns, uint32_t why);
void capture_close_later(struct capture *c);
void capture_drop_open(struct capture *c);
void capture_thread_begin(struct capture *c, uint32_t tid, uint32_t number);
void capture_match_ranges(struct capture *c); /* when all threads of the segment were read */

/* ---- capture_gpu.c ---- */
capture_handler capture_device, capture_kernel, capture_copy, capture_set, capture_api, capture_sync, capture_overhead, capture_graph,
	capture_graph_node, capture_device_memory, capture_gpu_sample, capture_context,
	capture_cuda_event;

/* ---- capture_streams.c ---- */
capture_handler capture_stream;
void capture_stream_add(struct capture *c, const struct capture_stream *s);
/* When all that is kept was read: from now on streams are asked for. */
void capture_streams_known(struct capture *c);
/* device: as in the profile, -1 = none; stream -1 = none. */
uint32_t capture_stream_track(struct capture *c, int32_t device, int64_t stream);

/* ---- capture_match.c ---- */
/* When all of the segment was read: what its work, waits and allocations say of calls and nodes that may have come later. */
void capture_match_gpu(struct capture *c);

/* ---- capture_facts.c ---- */
capture_handler capture_meta, capture_note, capture_resource;
/* A number that is known of a device; 0 = not known. */
void capture_device_fact(struct capture *c, int32_t device, const char *what, uint64_t value);
void capture_facts_known(struct capture *c);  /* when all that is kept was read */
void capture_facts_tell(struct capture *c);   /* of the segment that was read: losses, how it ended */
void capture_facts_finish(struct capture *c); /* of all of them */

#endif
