/* Events of torch's profiler as they lie in memory, by the member functions of KinetoEvent that libtorch_cpu exports: some 20 ns each, where
 * Python needs a microsecond. This leans on three things that no header promises: the names of the functions, the order of the first members of
 * ProfilerResult (trace_start_us_, events_), and where pybind11 keeps the object. So it is used for versions it was written for alone (torch
 * 1.13), and after a first recording of each process has been read both ways and found equal (Direct of _direct.py). */
#include "profiler.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* std::string of libstdc++ (GCC 5 and later), a c10::ArrayRef, and the three pointers of a std::vector. */
struct cxx_string {
	char *p;
	size_t n;
	char here[16];
};
struct cxx_list {
	const char *p;
	size_t n;
};
struct cxx_vector {
	const char *begin, *end, *room;
};

/* A class is returned through a hidden first argument, two words in registers. */
typedef void *string_fn(struct cxx_string *returned, const void *event);
typedef struct cxx_list list_fn(const void *event);
typedef uint64_t u64_fn(const void *event);
typedef int64_t i64_fn(const void *event);
typedef uint8_t u8_fn(const void *event);
typedef int8_t i8_fn(const void *event);
typedef bool bool_fn(const void *event);
typedef void delete_fn(void *p);

struct direct {
	string_fn *name;
	u64_fn *start, *duration, *start_thread, *end_thread, *fwd_thread, *linked, *flops;
	i64_fn *sequence, *bytes, *device_us;
	i8_fn *device_type;
	u8_fn *device_index, *scope;
	bool_fn *async;
	list_fn *shapes, *types, *stack;
	delete_fn *release;
};

#define EVENT "_ZNK5torch8autograd8profiler11KinetoEvent"

static const struct {
	const char *symbol;
	size_t at;
} symbols[] = {
	{EVENT "4nameB5cxx11Ev", offsetof(struct direct, name)},
	{EVENT "7startUsEv", offsetof(struct direct, start)},
	{EVENT "10durationUsEv", offsetof(struct direct, duration)},
	{EVENT "13startThreadIdEv", offsetof(struct direct, start_thread)},
	{EVENT "11endThreadIdEv", offsetof(struct direct, end_thread)},
	{EVENT "11fwdThreadIdEv", offsetof(struct direct, fwd_thread)},
	{EVENT "19linkedCorrelationIdEv", offsetof(struct direct, linked)},
	{EVENT "5flopsEv", offsetof(struct direct, flops)},
	{EVENT "10sequenceNrEv", offsetof(struct direct, sequence)},
	{EVENT "6nBytesEv", offsetof(struct direct, bytes)},
	{EVENT "13cudaElapsedUsEv", offsetof(struct direct, device_us)},
	{EVENT "10deviceTypeEv", offsetof(struct direct, device_type)},
	{EVENT "11deviceIndexEv", offsetof(struct direct, device_index)},
	{EVENT "5scopeEv", offsetof(struct direct, scope)},
	{EVENT "7isAsyncEv", offsetof(struct direct, async)},
	{EVENT "6shapesEv", offsetof(struct direct, shapes)},
	{EVENT "6dtypesB5cxx11Ev", offsetof(struct direct, types)},
	{EVENT "5stackB5cxx11Ev", offsetof(struct direct, stack)},
	{"_ZdlPv", offsetof(struct direct, release)},
};

#ifdef __x86_64__
enum { KNOWN_CALLS = 1 };
#else
enum { KNOWN_CALLS = 0 }; /* elsewhere the hidden argument has a register of its own */
#endif

/* Where in the object that an event shares with torch's tree of results (its first word) an allocation's address stands, with its size and the totals behind
 * it; 0 = not known. */
static size_t memory_at;

static struct result_memory memory_of(const char *event, size_t at)
{
	const char *shared;
	struct result_memory m;
	memcpy(&shared, event, sizeof shared);
	memcpy(&m, shared + at, sizeof m);
	return m;
}

const struct direct *direct_open(const char *library)
{
	static struct direct found;
	void *handle = KNOWN_CALLS ? dlopen(library, RTLD_NOLOAD | RTLD_LAZY) : NULL;
	if (!handle)
		return NULL;
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		/* As the linker does for libtorch itself: what another allocator made must not be freed by libstdc++'s. */
		void *symbol = dlsym(RTLD_DEFAULT, symbols[i].symbol);
		if (!symbol)
			symbol = dlsym(handle, symbols[i].symbol);
		if (!symbol)
			return NULL;
		memcpy((char *)&found + symbols[i].at, &symbol, sizeof symbol);
	}
	return &found;
}

/* What a pybind11 object with one holder has first behind its head. */
static const char *held(PyObject *object)
{
	const char *value;
	memcpy(&value, (const char *)object + sizeof(PyObject), sizeof value);
	return value;
}

static bool events_of(PyObject *result, int64_t *start_us, struct cxx_vector *v)
{
	const char *value = held(result);
	if (!value || (uintptr_t)value % sizeof(void *))
		return false;
	memcpy(start_us, value, sizeof *start_us);
	memcpy(v, value + sizeof *start_us, sizeof *v);
	return v->begin <= v->end && v->end <= v->room && (uintptr_t)v->begin % sizeof(void *) == 0;
}

size_t direct_stride(PyObject *result, size_t n)
{
	int64_t start_us;
	struct cxx_vector v;
	size_t bytes = n && events_of(result, &start_us, &v) ? (size_t)(v.end - v.begin) : 0;
	size_t stride = bytes && bytes % n == 0 ? bytes / n : 0;
	return stride % sizeof(void *) == 0 && stride >= sizeof(void *) && stride <= 1024 ? stride : 0;
}

struct place {
	const struct direct *d;
	const char *begin;
	size_t stride;
	struct cxx_string name; /* of the event that was read last */
};

static const void *event_at(const struct result_source *s, size_t i)
{
	const struct place *p = s->context;
	return p->begin + i * p->stride;
}

/* Events lie in a row, what they refer to all over the heap, where a look takes longer than all the rest: it is asked for some events ahead. First
 * the event, then the object that it shares with torch's tree of results (its first word, which has the name), then the lists, and at last
 * what is in these. To ask for an address that is none does no harm. */
enum { AHEAD_EVENT = 48, AHEAD_SHARED = 24, AHEAD_LISTS = 12, AHEAD_ITEMS = 6, LINE = 64, SHARED_BYTES = 448, LIST_BYTES = 512 };

static void fetch(const char *p, size_t n)
{
	for (uintptr_t at = 0; at < n && at < LIST_BYTES; at += LINE) /* not as a pointer: it may be none */
		__builtin_prefetch((const void *)((uintptr_t)p + at));
}

static void fetch_lists(const struct result_source *s, const void *event)
{
	const struct direct *d = ((const struct place *)s->context)->d;
	struct cxx_list list;
	if (s->asks_shapes) {
		list = d->shapes(event);
		fetch(list.p, list.n * sizeof(struct cxx_vector));
		list = d->types(event);
		fetch(list.p, list.n * sizeof(struct cxx_string));
	}
	if (s->asks_stack) {
		list = d->stack(event);
		fetch(list.p, list.n * sizeof(struct cxx_string));
	}
}

static void fetch_items(const struct result_source *s, const void *event)
{
	const struct direct *d = ((const struct place *)s->context)->d;
	if (s->asks_shapes) {
		struct cxx_list list = d->shapes(event);
		const struct cxx_vector *v = (const struct cxx_vector *)(const void *)list.p;
		for (size_t k = 0; k < list.n; k++)
			__builtin_prefetch(v[k].begin);
	}
	if (s->asks_stack) {
		struct cxx_list list = d->stack(event);
		const struct cxx_string *v = (const struct cxx_string *)(const void *)list.p;
		for (size_t k = 0; k < list.n; k++)
			fetch(v[k].p, v[k].n);
	}
}

static void fetch_ahead(const struct result_source *s, size_t i)
{
	const char *shared;
	if (i + AHEAD_EVENT >= s->n)
		return;
	fetch(event_at(s, i + AHEAD_EVENT), ((const struct place *)s->context)->stride);
	memcpy(&shared, event_at(s, i + AHEAD_SHARED), sizeof shared);
	fetch(shared, SHARED_BYTES);
	fetch_lists(s, event_at(s, i + AHEAD_LISTS));
	fetch_items(s, event_at(s, i + AHEAD_ITEMS));
}

static void drop_name(struct place *p)
{
	if (p->name.p != p->name.here)
		p->d->release(p->name.p);
	p->name.p = p->name.here;
}

static bool is_block(const struct result_event *e)
{
	return is_allocation(e) && e->name_n == strlen("[memory]"); /* where none could be had there is no address */
}

static void read_memory(const char *event, struct result_event *e)
{
	if (!memory_at || !is_block(e))
		return;
	e->memory = memory_of(event, memory_at);
	e->placed = e->memory.bytes == e->bytes; /* which is known from elsewhere */
}

static int read_event(const struct result_source *s, size_t i, struct result_event *e)
{
	struct place *p = s->context;
	const struct direct *d = p->d;
	const void *event = event_at(s, i);
	fetch_ahead(s, i);
	drop_name(p);
	d->name(&p->name, event);
	e->name = p->name.p;
	e->name_n = p->name.n;
	e->start_us = (int64_t)d->start(event);
	e->duration_us = (int64_t)d->duration(event);
	e->start_thread = d->start_thread(event);
	e->end_thread = d->end_thread(event);
	e->fwd_thread = d->fwd_thread(event);
	e->flops = s->flops ? d->flops(event) : 0;
	e->sequence = d->sequence(event);
	e->bytes = is_allocation(e) ? d->bytes(event) : 0;
	read_memory(event, e);
	e->device_us = s->device_times ? d->device_us(event) : 0;
	e->device_type = d->device_type(event);
	e->linked = e->device_type != DEVICE_CPU ? d->linked(event) : 0;
	e->device_index = e->device_type != DEVICE_CPU || is_allocation(e) ? d->device_index(event) : 0;
	e->scope = d->scope(event);
	e->async = d->async(event);
	return 0;
}

/* Most dimensions are small: they are written where they go. */
static char *put_dim(char *at, int64_t v)
{
	char digits[DIGITS_MOST], *end = digits + sizeof digits;
	if (v >= 0 && v < 10) {
		*at = (char)('0' + v);
		return at + 1;
	}
	const char *first = digits_before(end, v);
	memcpy(at, first, (size_t)(end - first));
	return at + (end - first);
}

static void put_shape(const struct cxx_vector *v, bool first, struct out *o)
{
	enum { DIM_MAX = 22, DIMS_MAX = 64 }; /* a tensor has no more */
	const int64_t *dim = (const int64_t *)(const void *)v->begin;
	size_t n = (size_t)(v->end - v->begin) / sizeof *dim;
	n = n < DIMS_MAX ? n : DIMS_MAX;
	out_room(o, 3 + n * DIM_MAX);
	char *at = o->p + o->n;
	if (!first)
		*at++ = ',';
	*at++ = '[';
	for (size_t i = 0; i < n; i++) {
		if (i)
			*at++ = ',';
		at = put_dim(at, dim[i]);
	}
	*at++ = ']';
	o->n = (size_t)(at - o->p);
}

/* A std::vector<std::vector<int64_t>>. */
static int put_shapes(const struct result_source *s, size_t i, struct out *o)
{
	struct cxx_list list = ((const struct place *)s->context)->d->shapes(event_at(s, i));
	const struct cxx_vector *v = (const struct cxx_vector *)(const void *)list.p;
	for (size_t k = 0; k < list.n; k++)
		put_shape(&v[k], k == 0, o);
	return 0;
}

static int put_types(const struct result_source *s, size_t i, struct out *o)
{
	struct cxx_list list = ((const struct place *)s->context)->d->types(event_at(s, i));
	const struct cxx_string *v = (const struct cxx_string *)(const void *)list.p;
	size_t tensors = 0;
	for (size_t k = 0; k < list.n; k++)
		tensors += v[k].n && !is_scalar(v[k].p, v[k].n);
	for (size_t k = 0; tensors && k < list.n; k++) {
		if (k)
			out_char(o, ',');
		if (v[k].n)
			out_string(o, v[k].p, v[k].n);
		else
			out_text(o, "\"\"");
	}
	return 0;
}

static int put_stack(const struct result_source *s, size_t i, struct out *o)
{
	struct cxx_list list = ((const struct place *)s->context)->d->stack(event_at(s, i));
	const struct cxx_string *v = (const struct cxx_string *)(const void *)list.p;
	for (size_t k = 0; k < list.n; k++) {
		if (k)
			out_char(o, ';');
		out_inside(o, v[k].p, v[k].n);
	}
	return 0;
}

static void direct_close(struct result_source *s)
{
	drop_name(s->context);
	free(s->context);
}

bool direct_source(const struct direct *d, PyObject *result, size_t stride, struct result_source *s)
{
	int64_t start_us;
	struct cxx_vector v;
	if (!events_of(result, &start_us, &v) || !stride || (size_t)(v.end - v.begin) % stride)
		return false;
	struct place *p = malloc(sizeof *p);
	if (!p)
		return false;
	*p = (struct place){.d = d, .begin = v.begin, .stride = stride};
	p->name.p = p->name.here;
	*s = (struct result_source){
		.n = (size_t)(v.end - v.begin) / stride, .start_us = start_us, .context = p,
		.read = read_event, .shapes = put_shapes, .types = put_types, .stack = put_stack, .close = direct_close,
	};
	return true;
}

static bool is_any(const struct result_memory *m, const struct result_memory *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(m, &v[i], sizeof *m) == 0)
			return true;
	return false;
}

static bool memory_is_at(const struct result_source *s, size_t at, const struct result_memory *v, size_t n)
{
	size_t found = 0;
	bool differ = false;
	int64_t address = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct result_event e = {0};
		if (s->read(s, i, &e) < 0)
			return false;
		if (!is_block(&e))
			continue;
		struct result_memory m = memory_of(event_at(s, i), at);
		if (!is_any(&m, v, n))
			return false;
		differ |= found++ && m.address != address;
		address = m.address;
	}
	return found == n && differ;
}

bool direct_find_memory(PyObject *result, size_t stride, const struct direct *d, const struct result_memory *v, size_t n)
{
	enum { SEARCHED = 128 }; /* the objects are larger than that and a struct result_memory */
	struct result_source s;
	memory_at = 0;
	if (!direct_source(d, result, stride, &s))
		return false;
	for (size_t at = sizeof(int64_t); at < SEARCHED && !memory_at; at += sizeof(int64_t))
		memory_at = memory_is_at(&s, at, v, n) ? at : 0;
	s.close(&s);
	return memory_at != 0;
}
