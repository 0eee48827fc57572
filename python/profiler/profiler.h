/* The extension opscope._profiler: what torch's profiler recorded, as a trace that opscope reads, and torch's schedules. */
#ifndef OPSCOPE_PROFILER_H
#define OPSCOPE_PROFILER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Text on its way into a file, in blocks. */
struct out {
	char *p;
	size_t n, cap;
	int fd;
	int error;       /* errno of the first write that failed; nothing is written after it */
	int64_t flushed; /* bytes that are out of the block */
};

int out_init(struct out *o, int fd);            /* -1: no memory */
int out_finish(struct out *o);                  /* writes the rest, frees; the errno, 0 = done */
void out_room(struct out *o, size_t n);         /* so that the next n bytes (at most a block) stay in memory */
void out_long(struct out *o, const char *p, size_t n);
void out_large(struct out *o, int64_t v);
void out_string(struct out *o, const char *p, size_t n);  /* as a JSON string, quotes included */
void out_inside(struct out *o, const char *p, size_t n);  /* the same without the quotes */

static inline int64_t out_bytes(const struct out *o)
{
	return o->flushed + (int64_t)o->n;
}

static inline void out_put(struct out *o, const char *p, size_t n)
{
	if (n > o->cap - o->n) {
		out_long(o, p, n);
		return;
	}
	memcpy(o->p + o->n, p, n);
	o->n += n;
}

/* Always inline, so that the length of a literal is known. */
__attribute__((always_inline)) static inline void out_text(struct out *o, const char *text)
{
	out_put(o, text, strlen(text));
}

static inline void out_char(struct out *o, char c)
{
	if (o->n == o->cap)
		out_room(o, 1);
	o->p[o->n++] = c;
}

/* Writes the number so that it ends before `end`; where it begins, at most DIGITS_MOST bytes before. */
enum { DIGITS_MOST = 20 };
extern const char digit_pairs[201]; /* "00" to "99" */
static inline char *digits_before(char *end, int64_t v)
{
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	for (; u >= 100; u /= 100)
		memcpy(end -= 2, digit_pairs + u % 100 * 2, 2);
	if (u >= 10)
		memcpy(end -= 2, digit_pairs + u * 2, 2);
	else
		*--end = (char)('0' + u);
	if (v < 0)
		*--end = '-';
	return end;
}

static inline void out_i64(struct out *o, int64_t v)
{
	if (v >= 0 && v < 10)
		out_char(o, (char)('0' + v));
	else
		out_large(o, v);
}

/* c10::DeviceType and at::RecordScope, as far as they matter here. */
enum { DEVICE_CPU = 0 };
enum { SCOPE_BACKWARD = 1, SCOPE_USER = 7 };

/* Of an allocation or a free: the block's address, and what its device's allocator has given away and reserved after it. */
struct result_memory {
	int64_t address, bytes, total_allocated, total_reserved;
};

/* A torch::autograd::profiler::KinetoEvent, but for its lists. Times in us. bytes: of allocations alone. memory: only if `placed`. */
struct result_event {
	const char *name;
	size_t name_n;
	int64_t start_us, duration_us;
	uint64_t start_thread, end_thread, fwd_thread, linked, flops;
	int64_t sequence, bytes, device_us;
	int device_type, device_index, scope;
	bool async, placed;
	struct result_memory memory;
};

static inline bool is_allocation(const struct result_event *e)
{
	return (e->name_n == 8 && memcmp(e->name, "[memory]", 8) == 0) || (e->name_n == 13 && memcmp(e->name, "[OutOfMemory]", 13) == 0);
}

/* What torch calls the type of an argument that is a number or a text; of those alone the types are not written. */
static inline bool is_scalar(const char *type, size_t n)
{
	return n == 6 && memcmp(type, "Scalar", 6) == 0;
}

/* Where events come from. Both ways give the same; a name is valid until the next event is read. Lists are written as the inside of a JSON
 * array, without the brackets; nothing for an empty one. */
struct result_source {
	size_t n;
	int64_t start_us;                     /* of the recording */
	void *context;
	bool flops, device_times;             /* which of the fields that cost most are to be read; else they are 0 */
	bool asks_shapes, asks_stack;         /* whether those lists will be asked for, with each event */
	bool needs_python;                    /* whether it may be read only with the GIL held; Python errors are then left set */
	int (*read)(const struct result_source *s, size_t i, struct result_event *e);     /* -1: cannot */
	int (*shapes)(const struct result_source *s, size_t i, struct out *o);
	int (*types)(const struct result_source *s, size_t i, struct out *o);
	int (*stack)(const struct result_source *s, size_t i, struct out *o);             /* frames separated by ';', inside a JSON string */
	void (*close)(struct result_source *s);
};

/* torch_direct.c: by the functions that libtorch exports, on the objects as they lie in memory. */
struct direct;
/* What was resolved; NULL, without a Python error: not possible with this torch. `library` is the path of libtorch_cpu. */
const struct direct *direct_open(const char *library);
/* What lies behind a _ProfilerResult, which must outlive *s; false: not what is expected there. stride: bytes of an event. */
bool direct_source(const struct direct *d, PyObject *result, size_t stride, struct result_source *s);
/* The stride for which the result has `n` events; 0: none. */
size_t direct_stride(PyObject *result, size_t n);

/* Looks where allocations have their addresses, which no function tells, in a result whose allocations and frees, at least 2 of different addresses, are
 * these n. From then on all results have them there. False: nowhere, and none has. */
bool direct_find_memory(PyObject *result, size_t stride, const struct direct *d, const struct result_memory *v, size_t n);

/* torch_getters.c: by the methods that torch gives to Python, of a list of _KinetoEvent, which must outlive *s. -1 with a Python error. */
int getters_source(PyObject *events, int64_t start_us, struct result_source *s);

/* schedule.c */
extern PyMethodDef schedule_methods[];
int schedule_add_types(PyObject *module);

#endif
