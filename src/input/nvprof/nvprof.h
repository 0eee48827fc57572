/* What the files nvprof*.c share: the state of reading one SQLite database of nvprof or the Visual Profiler.
 *
 * Each table that is understood is one row of a `struct nvprof_table` array: its name, the columns wanted, and a function for one
 * row. Columns that a version lacks read as NULL. Times are ns since the Unix epoch, kept as they are. Names are ids of
 * StringTable; those of kernels are mangled. A range's ext_id is its id in MARKER. Threads are the signed 32 bits of pthread_self(), shown unsigned. */
#ifndef OPSCOPE_INPUT_NVPROF_NVPROF_H
#define OPSCOPE_INPUT_NVPROF_NVPROF_H

#include "base/buf.h"
#include "base/mem.h"
#include "input/marker.h"
#include "input/string_table.h"
#include "io/sqldb.h"
#include "store/build.h"

struct nvprof;

struct nvprof_table {
	const char *name;            /* without "CUPTI_ACTIVITY_KIND_" */
	const char *const *columns;  /* NULL-terminated */
	void (*row)(struct nvprof *n, const struct sqlscan *s);
	const char *cat;             /* the rows are counted under it, with `phase`; NULL = the row function counts */
	char phase;
};
extern const struct nvprof_table nvprof_info_tables[], nvprof_gpu_tables[], nvprof_host_tables[]; /* each ends with a NULL name */

struct nvprof_thread {
	int64_t pid, tid;
	uint32_t track; /* + 1; 0 = free slot */
};
enum { NVPROF_THREADS = 1024 };

/* The end of a range, met before its start. */
struct nvprof_end {
	int64_t id, at_ns;
};

struct nvprof {
	struct sqldb db;
	struct profile *p;
	struct build b;
	struct markers *markers;
	const struct nvprof_table *table;           /* being read, and its row, for diagnostics */
	uint16_t cat;                               /* the table's, where it has one */
	int64_t row;
	int64_t last_ns;                            /* the latest time seen */
	struct intern tables_read;

	struct string_table strings;                /* StringTable */
	uint32_t *readable;                         /* of each, its id in p->strings when it is demangled, + 1; 0 = not yet */

	struct nvprof_thread thread[NVPROF_THREADS];
	struct idmap context_device;                /* context -> ordinal of its device */
	struct idmap stream_device;                 /* stream -> the same; NVPROF_SEVERAL */
	struct idmap device_row;                    /* ordinal -> row of p->device */
	struct idmap process_name;
	struct idmap open;                          /* id of a range -> its span, while it has no end; NVPROF_CLOSED */
	struct nvprof_end *early;                   /* ends without a start so far */
	uint32_t n_early, cap_early, n_open;
	bool any_ranges;
};

/* Tells of the row that is being read: `text`, a literal, follows its table and number. */
#define NVPROF_DIAG(n, kind, level, text, ...) \
	diag_add(&(n)->p->diags, kind, level, -1, "table %s, row %lld" text, (n)->table->name, (long long)(n)->row, ##__VA_ARGS__)
#define NVPROF_CLOSED (UINT32_MAX - 1)
#define NVPROF_SEVERAL (UINT32_MAX - 1)

/* nvprof_common.c. Strings that are not in StringTable are counted and read as "?". */
void nvprof_strings_load(struct nvprof *n);
void nvprof_strings_release(struct nvprof *n);
struct str nvprof_text(struct nvprof *n, int64_t string_id);
uint32_t nvprof_intern(struct nvprof *n, int64_t string_id);
/* The name of a function, demangled once a string. */
uint32_t nvprof_function(struct nvprof *n, int64_t string_id);
uint32_t nvprof_intern_buf(struct nvprof *n, struct buf *b); /* releases *b */

uint32_t nvprof_thread_track(struct nvprof *n, int64_t pid, int64_t tid);
uint32_t nvprof_stream_track(struct nvprof *n, int32_t device, int64_t stream);
/* The ordinal of the device that a context is on; INT32_MIN where the file does not tell. */
int32_t nvprof_context_device(const struct nvprof *n, int64_t context);
/* A stream seen on a device. Streams are numbered through a process, whatever their device. */
void nvprof_stream_on(struct nvprof *n, int64_t stream, int32_t device);
/* The device of a stream; that of the context where the file does not tell, or names several. */
int32_t nvprof_stream_device(const struct nvprof *n, int64_t stream, int64_t context);
/* What a marker, a name or an overhead is about. */
struct nvprof_object {
	int64_t kind;             /* CUpti_ActivityObjectKind */
	int64_t pid, tid;         /* of a process, a thread */
	int64_t device, context, stream;
};
enum { NVPROF_PROCESS = 1, NVPROF_THREAD = 2, NVPROF_DEVICE = 3, NVPROF_CONTEXT = 4, NVPROF_STREAM = 5 };
struct nvprof_object nvprof_object(struct nvprof *n, const struct sqlscan *s, int kind, int id);
uint32_t nvprof_object_track(struct nvprof *n, const struct nvprof_object *o);

/* An integer cell, or `absent`; anything but an integer or NULL is counted. */
int64_t nvprof_int(struct nvprof *n, const struct sqlscan *s, int column, int64_t absent);
/* False, and counted, when the row has no place in time. */
bool nvprof_times(struct nvprof *n, const struct sqlscan *s, int start, int end, int64_t *start_ns, int64_t *dur_ns);
bool nvprof_time_ok(struct nvprof *n, int64_t at_ns);

/* nvprof_marker.c: ranges whose ends came before their starts, and those that never ended. */
void nvprof_markers_finish(struct nvprof *n);
void nvprof_marker_row(struct nvprof *n, const struct sqlscan *s);
extern const char *const nvprof_marker_columns[];

#endif
