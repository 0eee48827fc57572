/* What the files nsys*.c share: the state of reading one Nsight Systems SQLite export.
 *
 * Each table of the export that is understood is one row of a `struct nsys_table` array (nsys_gpu.c, nsys_host.c,
 * nsys_info.c): its name, the columns wanted, and a function for one row. Tables are looked up by name, with the highest suffix
 * _V2, _V3, ... that is there; columns that a version lacks read as NULL. Times are ns since the start of the session, kept as
 * they are. globalTid holds the thread in bits 0-23 and the process in bits 24-47. */
#ifndef OPSCOPE_INPUT_NSYS_NSYS_H
#define OPSCOPE_INPUT_NSYS_NSYS_H

#include "base/buf.h"
#include "base/mem.h"
#include "input/marker.h"
#include "input/string_table.h"
#include "io/sqldb.h"
#include "store/build.h"

struct nsys;

struct nsys_table {
	const char *name;
	const char *const *columns;  /* NULL-terminated; of a merged table the first is its start */
	void (*row)(struct nsys *n, const struct sqlscan *s);
	void (*reserve)(struct nsys *n, int64_t rows);  /* told about how many rows are to come; NULL = needs nothing */
	char phase;                  /* the rows are counted under the table's name with this phase; 0 = the row function counts */
};
extern const struct nsys_table nsys_info_tables[], nsys_gpu_tables[], nsys_host_tables[], nsys_metric_tables[]; /* each ends with a NULL name */

struct nsys_thread {
	int64_t global_tid;
	uint32_t track; /* + 1; 0 = free slot */
};
#define NSYS_TIME_MOST ((INT64_C(1) << 62) - 1) /* as in the store: sums and differences of times fit */
enum { NSYS_THREADS = 1024, NSYS_NAMES = 1024, NSYS_RESERVE_MIN = 64 /* fewer rows are not worth reserving for */ };

struct nsys_name {
	uint32_t string; /* + 1; 0 = free slot */
	uint32_t id;
	uint32_t args;   /* its version, of an API call that has one */
};

struct nsys {
	struct sqldb db;
	struct profile *p;
	struct build b;
	struct markers *markers;
	const char *table;                          /* being read, and its row, for diagnostics */
	int64_t row;
	int64_t last_ns;                            /* the latest time seen */
	struct buf tables;                          /* names of all tables, each with a NUL */
	struct intern tables_read;

	struct string_table strings;                /* StringIds */
	struct nsys_name api_name[NSYS_NAMES];      /* the names of API calls, as `nsys stats` prints them */

	struct nsys_thread thread[NSYS_THREADS], range_thread[NSYS_THREADS], last_thread; /* last_thread: of `thread` */
	struct idmap thread_name, process_name;     /* (process << 24 | thread) -> string, process -> string */
	struct intern streams;                      /* (device, stream, process) -> place in stream_track */
	uint32_t *stream_track, cap_streams;
	struct nsys_stream {
		int32_t device;
		int64_t stream, pid;
		uint32_t track;                     /* + 1; 0 = none yet */
	} last_stream;
	struct intern stream_names;                 /* (device, stream) -> place in stream_owner */
	int64_t *stream_owner;
	uint32_t cap_owners;
	struct idmap device_row;                    /* GPU -> row of p->device */
	struct intern devices_of;                   /* (process, CUDA ordinal) -> place in gpu_id */
	int32_t *gpu_id;
	uint32_t cap_gpu_ids;
	struct intern contexts;                     /* (process, context) -> place in context_device */
	int64_t *context_device;                    /* CUDA ordinals */
	uint32_t cap_contexts;

	struct nsys_cat {
		const char *name;
		uint16_t cat;
	} cat[16];
	uint64_t *seen;                             /* events by category */
	uint32_t n_seen;
	uint32_t *open;                             /* spans whose end is not known */
	uint32_t n_open, cap_open;
	int64_t last_pop_ns;                        /* latest end of a push/pop range */
	uint64_t last_pops;                         /* how many end then: of several, all but one were never popped */
	struct nsys_nvtx *nvtx;
	struct nsys_quiet *quiet;                   /* NULL = all ranges are kept */
	bool again;                                 /* what was left out counts, or may: the file is to be read again */
	struct nsys_metrics *metrics;               /* NULL = the file samples none */
	bool unmapped;                              /* the GPU behind a CUDA ordinal was taken to have the same number */
};

/* Tells of the row that is being read: `text`, a literal, follows its table and number. */
#define NSYS_DIAG(n, kind, level, text, ...) \
	diag_add(&(n)->p->diags, kind, level, -1, "table %s, row %lld" text, (n)->table, (long long)(n)->row, ##__VA_ARGS__)

/* nsys.c: reads one table whole, or all tables of a list at once, always the row with the smallest first column. */
void nsys_read_tables(struct nsys *n, const struct nsys_table *t);
void nsys_read_merged(struct nsys *n, const struct nsys_table *t);
/* The name under which the table is in the file: its own, or with the highest suffix _Vn. NULL = not there. */
const char *nsys_find_table(struct nsys *n, const char *name);

/* nsys_common.c. Ids that are not in StringIds are counted and read as "?". */
struct string_cell *nsys_string(struct nsys *n, int64_t id);
uint32_t nsys_intern(struct nsys *n, int64_t string_id);
uint32_t nsys_intern_cell(struct nsys *n, const struct sqlscan *s, int text);
/* As above without the version at the end ("cudaLaunchKernel_v7000"), where `nsys stats` leaves it out: four digits. *args gets that
 * version as arguments "version": "v7000"; 0 = none. */
uint32_t nsys_api_name(struct nsys *n, int64_t string_id, uint32_t *args);
void nsys_strings_load(struct nsys *n);

uint32_t nsys_other_thread_track(struct nsys *n, const struct sqlscan *s, int column);
static inline uint32_t nsys_thread_track(struct nsys *n, const struct sqlscan *s, int column)
{
	bool last = s->v[column].type == SQLPAGE_INT && n->last_thread.track && n->last_thread.global_tid == s->v[column].i;
	return last ? n->last_thread.track - 1 : nsys_other_thread_track(n, s, column);
}
/* The track of the thread's start/end ranges, which need not nest with anything. */
uint32_t nsys_range_track(struct nsys *n, const struct sqlscan *s, int column);
uint32_t nsys_stream_track(struct nsys *n, int32_t device, int64_t stream, int64_t pid);
/* The GPU behind a process' CUDA ordinal; the ordinal itself where the file does not tell. */
int32_t nsys_device(struct nsys *n, int64_t cuda_id, int64_t pid);
/* A context is of one device: what one table says of it holds for the others. The first that is told of a context counts; a device or a
 * context below 0 tells nothing. */
void nsys_context_on(struct nsys *n, int64_t pid, int64_t context, int64_t cuda_id);
/* The CUDA ordinal of the context's device; `stated` where the file has told nothing of that context. */
int64_t nsys_context_device(const struct nsys *n, int64_t pid, int64_t context, int64_t stated);
void nsys_name_tracks(struct nsys *n);
static inline int64_t nsys_pid(int64_t global) { return global >> 24 & 0xffffff; }
static inline int64_t nsys_tid(int64_t global) { return global & 0xffffff; }

/* Start and duration of a row. A missing end is told in *open: the range ends with the capture. False, and counted, when
 * the row has no place in time. */
bool nsys_odd_times(struct nsys *n, const struct sqlscan *s, int start, int end, int64_t *start_ns, int64_t *dur_ns, bool *open);
static inline bool nsys_times(struct nsys *n, const struct sqlscan *s, int start, int end, int64_t *start_ns, int64_t *dur_ns, bool *open)
{
	const struct sqlpage_value *from = &s->v[start], *to = &s->v[end];
	const int64_t usual = NSYS_TIME_MOST / 2; /* differences of such times fit */
	if (from->type != SQLPAGE_INT || to->type != SQLPAGE_INT || from->i < -usual || to->i > usual || to->i < from->i)
		return nsys_odd_times(n, s, start, end, start_ns, dur_ns, open);
	*start_ns = from->i;
	*dur_ns = to->i - from->i;
	*open = false;
	n->last_ns = to->i > n->last_ns ? to->i : n->last_ns;
	return true;
}
/* Adds a span that build_admit_span admitted, and remembers it when it is open. */
void nsys_put_span(struct nsys *n, const struct span_row *r, bool open);
void nsys_close_open(struct nsys *n);
/* A push/pop range ended then. */
void nsys_popped(struct nsys *n, int64_t end_ns);
/* The category of a name that lives as long as the reader: remembered by its address. */
uint16_t nsys_cat(struct nsys *n, const char *name);
void nsys_count_new(struct nsys *n, uint16_t cat);
static inline void nsys_count(struct nsys *n, uint16_t cat)
{
	if (cat >= n->n_seen)
		nsys_count_new(n, cat);
	n->seen[cat]++;
}
void nsys_flush_counts(struct nsys *n);
/* An integer cell, or `absent`; anything but an integer or NULL is counted. */
int64_t nsys_other_int(struct nsys *n, const struct sqlscan *s, int column, int64_t absent);
static inline int64_t nsys_int(struct nsys *n, const struct sqlscan *s, int column, int64_t absent)
{
	const struct sqlpage_value *v = &s->v[column];
	return v->type == SQLPAGE_INT ? v->i : v->type == SQLPAGE_NULL ? absent : nsys_other_int(n, s, column, absent);
}

/* nsys_quiet.c: leaves out what LEFT_QUIET says. When all work on devices is read, and no range. */
void nsys_quiet_begin(struct nsys *n);
/* Adds the span, unless it is left out. */
void nsys_span(struct nsys *n, const struct span_row *r, bool open);
/* When all ranges are read: sets n->again where what was left out matters. */
void nsys_quiet_finish(struct nsys *n);

/* nsys_metrics.c: makes curves and means of what nsys_metric_tables held. When all work on devices is read. */
void nsys_metrics_finish(struct nsys *n);

/* nsys_nvtx.c */
void nsys_nvtx_row(struct nsys *n, const struct sqlscan *s);
extern const char *const nsys_nvtx_columns[];
void nsys_nvtx_release(struct nsys *n);

/* nsys_payload.c: binary payloads by the schemas that the file holds. */
struct nsys_payloads;
struct nsys_payloads *nsys_payloads_load(struct nsys *n);
void nsys_payloads_free(struct nsys_payloads *p);
/* Whether a schema of the domain speaks of NCCL communicators: then it is NCCL's, though it has no name. */
bool nsys_payloads_are_nccl(const struct nsys_payloads *p, int64_t domain);
/* Adds what the bytes say to pair[0..max); returns how many were added. */
unsigned nsys_payload_args(struct nsys *n, const struct nsys_payloads *p, struct str bytes, struct arg_pair *pair, unsigned max);

/* nsys_comms.c: communicators of NCCL. */
struct nsys_comms;
struct nsys_comms *nsys_comms_new(void);
void nsys_comms_free(struct nsys_comms *c);
/* A payload in JSON that names a communicator: fills pair[0..max) with its members, as its binary form has them. Returns how many there are; 0 = it is another text. */
unsigned nsys_comms_json(struct nsys *n, struct nsys_comms *c, struct str text, struct arg_pair *pair, unsigned max);
/* Whether nsys_comms_complete may add to a range of this name that states nothing. */
bool nsys_comms_is_group(struct str name);
/* Adds what other ranges say to the arguments pair[0..k) of a range of `thread` (globalTid). Ranges of a thread come in order of start. Returns the new k. */
unsigned nsys_comms_complete(struct nsys *n, struct nsys_comms *c, int64_t thread, uint32_t name, struct arg_pair *pair, unsigned k, unsigned max);

#endif
