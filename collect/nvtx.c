/* NVTX 2 and 3: each copy of it in the process asks for its tables of functions to be filled. Layouts are NVTX's binary interface, written down
 * here by offset, so that no header of it is needed. */
#include "cupti.h"
#include "intern.h"
#include "ranges.h"
#include "start.h"
#include "sys.h"
#include "trace.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct attributes { /* nvtxEventAttributes_t, version 2 */
	uint16_t version, size;
	uint32_t category;
	int32_t colour_type;
	uint32_t colour;
	int32_t payload_type, reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} payload;
	int32_t message_type;
	const void *message;
};
_Static_assert(sizeof(struct attributes) == 48 && offsetof(struct attributes, message) == 40, "nvtxEventAttributes_t");

struct resource { /* nvtxResourceAttributes_t */
	uint16_t version, size;
	int32_t identifier_type;
	uint64_t identifier;
	int32_t message_type;
	const void *message;
};
_Static_assert(sizeof(struct resource) == 32, "nvtxResourceAttributes_t");

enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3, COLOUR_ARGB = 1 };
enum { PAYLOAD_U64 = 1, PAYLOAD_I64, PAYLOAD_F64, PAYLOAD_U32, PAYLOAD_I32, PAYLOAD_F32 };

/* Handles of domains and registered strings are their numbers, odd, so that none is NULL or the address of anything. */
static void *handle_of(uint32_t id) { return (void *)(uintptr_t)((uint64_t)id << 1 | 1); }
static uint32_t nvtx_id_of(const void *handle) { return handle ? (uint32_t)((uintptr_t)handle >> 1) : 0; }
/* What may be anything: an address is no number of a text. */
static uint64_t nvtx_text_of(const void *handle) { return handle && !((uintptr_t)handle & 1) ? UINT64_MAX : (uint64_t)(uintptr_t)handle >> 1; }

/* Wide texts are seldom. The UTF-8 of one lives as long as the call: on its stack, which may be small, or in memory of its own. */
enum { WIDE_BYTES = 512, WIDE_MOST = WIRE_MAX_STRING + 4 /* so that what is longer is seen to be, and is cut as other texts are */ };

struct wide {
	char room[WIDE_BYTES];
	char *more;
	size_t bytes;
};

static void wide_release(struct wide *w)
{
	if (UNLIKELY(w->more))
		munmap(w->more, w->bytes);
}
#define WIDE(name)                                              \
	__attribute__((cleanup(wide_release))) struct wide name; \
	name.more = NULL

static void set_wide(struct event *e, const wchar_t *text, struct wide *w)
{
	size_t n = text ? utf8_of(text, NULL, WIDE_MOST) : 0;
	char *to = w->room;
	if (UNLIKELY(n > sizeof w->room)) {
		w->bytes = n;
		to = w->more = sys_memory(n);
		if (!to) {
			lose(WIRE_LOST_STRINGS, 1);
			return;
		}
	}
	e->text = to;
	e->n = n ? utf8_of(text, to, n) : 0;
}

static void set_payload(struct event *e, const struct attributes *a)
{
	double f;
	switch (a->payload_type) {
	case PAYLOAD_U64: e->payload_kind = WIRE_U64, e->payload = a->payload.u64; break;
	case PAYLOAD_I64: e->payload_kind = WIRE_I64, e->payload = a->payload.u64; break;
	case PAYLOAD_F64: e->payload_kind = WIRE_F64, e->payload = a->payload.u64; break;
	case PAYLOAD_U32: e->payload_kind = WIRE_U64, e->payload = a->payload.u32; break;
	case PAYLOAD_I32: e->payload_kind = WIRE_I64, e->payload = (uint64_t)(int64_t)a->payload.i32; break;
	case PAYLOAD_F32: e->payload_kind = WIRE_F64, f = (double)a->payload.f32, memcpy(&e->payload, &f, 8); break;
	case 0: break;
	default: note("nvtx-payload", false, "ranges have payloads of NVTX's extended kinds (schemas), which are not recorded", NULL);
	}
}

static void set_message(struct event *e, int32_t type, const void *message, struct wide *w)
{
	if (type == MESSAGE_ASCII && message) {
		e->text = message;
		e->n = strlen(e->text);
	} else if (type == MESSAGE_WIDE) {
		set_wide(e, message, w);
	} else if (type == MESSAGE_REGISTERED) {
		e->id = intern_given(nvtx_text_of(message));
	}
}

static struct event nvtx_event_of(const void *domain, const struct attributes *a, struct wide *w)
{
	struct event e = {.domain = nvtx_id_of(domain)};
	if (!a || a->size < sizeof *a)
		return e;
	e.category = a->category;
	e.colour = a->colour_type == COLOUR_ARGB ? a->colour : 0;
	if (UNLIKELY(a->payload_type))
		set_payload(&e, a);
	set_message(&e, a->message_type, a->message, w);
	return e;
}

static struct event event_of_text(const char *text)
{
	return (struct event){.text = text, .n = text ? strlen(text) : 0};
}

/* ---- the module CORE ---- */

static int push_a(const char *text)
{
	struct event e = event_of_text(text);
	return range_push(&e);
}

static int push_w(const wchar_t *text)
{
	WIDE(w);
	struct event e = {0};
	set_wide(&e, text, &w);
	return range_push(&e);
}

static int push_ex(const struct attributes *a)
{
	WIDE(w);
	struct event e = nvtx_event_of(NULL, a, &w);
	return range_push(&e);
}

static int nvtx_pop_(void) { return range_pop(0); }

static uint64_t start_a(const char *text)
{
	struct event e = event_of_text(text);
	return range_start(&e);
}

static uint64_t start_w(const wchar_t *text)
{
	WIDE(w);
	struct event e = {0};
	set_wide(&e, text, &w);
	return range_start(&e);
}

static uint64_t start_ex(const struct attributes *a)
{
	WIDE(w);
	struct event e = nvtx_event_of(NULL, a, &w);
	return range_start(&e);
}

static void nvtx_end_(uint64_t range) { range_end(range, 0); }

static void mark_a(const char *text)
{
	struct event e = event_of_text(text);
	range_mark(&e);
}

static void mark_w(const wchar_t *text)
{
	WIDE(w);
	struct event e = {0};
	set_wide(&e, text, &w);
	range_mark(&e);
}

static void mark_ex(const struct attributes *a)
{
	WIDE(w);
	struct event e = nvtx_event_of(NULL, a, &w);
	range_mark(&e);
}

/* Calls that name something do so through a text in either width. */
struct nvtx_named {
	struct event e;
	struct wide w;
};

static void named_release(struct nvtx_named *n) { wide_release(&n->w); }
#define NAMED(name)                                               \
	__attribute__((cleanup(named_release))) struct nvtx_named name; \
	name.w.more = NULL

static const struct event *narrow(struct nvtx_named *n, const char *text)
{
	n->e = event_of_text(text);
	return &n->e;
}

static const struct event *wide(struct nvtx_named *n, const wchar_t *text)
{
	n->e = (struct event){0};
	set_wide(&n->e, text, &n->w);
	return &n->e;
}

static void name_category(const void *domain, uint32_t category, const struct event *e)
{
	if (start_names() && e->n)
		ranges_category(nvtx_id_of(domain), category, e->text, e->n);
}

static void category_a(uint32_t category, const char *text)
{
	NAMED(n);
	name_category(NULL, category, narrow(&n, text));
}

static void category_w(uint32_t category, const wchar_t *text)
{
	NAMED(n);
	name_category(NULL, category, wide(&n, text));
}

static void thread_a(uint32_t thread, const char *text)
{
	NAMED(n);
	narrow(&n, text);
	name_thread(thread, n.e.text, n.e.n);
}

static void thread_w(uint32_t thread, const wchar_t *text)
{
	NAMED(n);
	wide(&n, text);
	name_thread(thread, n.e.text, n.e.n);
}

/* ---- the module CORE2: the same in domains ---- */

static int domain_push(void *domain, const struct attributes *a)
{
	WIDE(w);
	struct event e = nvtx_event_of(domain, a, &w);
	return range_push(&e);
}

static int domain_pop(void *domain) { return range_pop(nvtx_id_of(domain)); }

static uint64_t domain_start(void *domain, const struct attributes *a)
{
	WIDE(w);
	struct event e = nvtx_event_of(domain, a, &w);
	return range_start(&e);
}

static void domain_end(void *domain, uint64_t range) { range_end(range, nvtx_id_of(domain)); }

static void domain_mark(void *domain, const struct attributes *a)
{
	WIDE(w);
	struct event e = nvtx_event_of(domain, a, &w);
	range_mark(&e);
}

/* The text; 0 = there is none, or no room for it. */
static uint32_t keep_resource(uint32_t domain, uint32_t kind, uint64_t handle, const struct event *e)
{
	struct wire_resource r = {.domain = domain, .kind = kind, .handle = handle};
	uint32_t text = e->id ? e->id : intern_surely(e->text, e->n);
	if (!text || !intern_again(text))
		return 0;
	r.head = writer_head(WIRE_RESOURCE, 0, text, sizeof r);
	keep(&r, sizeof r, true);
	return text;
}

static void *resource_create(void *domain, const struct resource *a)
{
	WIDE(w);
	struct event e = {0};
	if (!a || a->size < sizeof *a)
		return NULL;
	set_message(&e, a->message_type, a->message, &w);
	keep_resource(nvtx_id_of(domain), (uint32_t)a->identifier_type, a->identifier, &e);
	return handle_of(0); /* there is nothing to find again */
}

static void resource_destroy(void *resource) { (void)resource; }

static void domain_category_a(void *domain, uint32_t category, const char *text)
{
	NAMED(n);
	name_category(domain, category, narrow(&n, text));
}

static void domain_category_w(void *domain, uint32_t category, const wchar_t *text)
{
	NAMED(n);
	name_category(domain, category, wide(&n, text));
}

static void *register_text(const struct event *e)
{
	uint32_t id = start_names() ? intern_surely(e->text, e->n) : 0;
	return id ? handle_of(id) : NULL;
}

static void *register_a(void *domain, const char *text)
{
	NAMED(n);
	(void)domain;
	return register_text(narrow(&n, text));
}

static void *register_w(void *domain, const wchar_t *text)
{
	NAMED(n);
	(void)domain;
	return register_text(wide(&n, text));
}

static void *create_domain(const struct event *e)
{
	uint32_t id = start_names() && e->n ? ranges_domain(e->text, e->n, WIRE_API_NVTX) : 0;
	return id ? handle_of(id) : NULL;
}

static void *create_a(const char *text)
{
	NAMED(n);
	return create_domain(narrow(&n, text));
}

static void *create_w(const wchar_t *text)
{
	NAMED(n);
	return create_domain(wide(&n, text));
}

static void destroy_domain(void *domain) { (void)domain; }
static void initialize(const void *reserved) { (void)reserved; }

/* ---- the modules CUDA and CUDART: names of things ---- */

#define NAME(function, type, kind)                                                         \
	static void function##_a(type thing, const char *text)                             \
	{                                                                                  \
		NAMED(n);                                                                  \
		keep_resource(0, kind, (uint64_t)(uintptr_t)thing, narrow(&n, text)); \
	}                                                                                  \
	static void function##_w(type thing, const wchar_t *text)                          \
	{                                                                                  \
		NAMED(n);                                                                  \
		keep_resource(0, kind, (uint64_t)(uintptr_t)thing, wide(&n, text));   \
	}
NAME(name_device, int, WIRE_RESOURCE_CUDA_DEVICE)
NAME(name_context, void *, WIRE_RESOURCE_CUDA_CONTEXT)
NAME(name_event, void *, WIRE_RESOURCE_CUDA_EVENT)

static void stream_is(void *stream, const struct event *e)
{
	uint32_t text = keep_resource(0, WIRE_RESOURCE_CUDA_STREAM, (uint64_t)(uintptr_t)stream, e);
	if (text)
		cupti_name_stream(stream, text);
}

static void name_stream_a(void *stream, const char *text)
{
	NAMED(n);
	stream_is(stream, narrow(&n, text));
}

static void name_stream_w(void *stream, const wchar_t *text)
{
	NAMED(n);
	stream_is(stream, wide(&n, text));
}

/* ---- being loaded ---- */

typedef void (*function)(void);
#define F(f) ((function)(f))

/* By NVTX's numbers of the functions, from 1. */
static const function core[] = {NULL, F(mark_ex), F(mark_a), F(mark_w), F(start_ex), F(start_a), F(start_w), F(nvtx_end_), F(push_ex), F(push_a),
	F(push_w), F(nvtx_pop_), F(category_a), F(category_w), F(thread_a), F(thread_w)};
static const function core2[] = {NULL, F(domain_mark), F(domain_start), F(domain_end), F(domain_push), F(domain_pop), F(resource_create),
	F(resource_destroy), F(domain_category_a), F(domain_category_w), F(register_a), F(register_w), F(create_a), F(create_w),
	F(destroy_domain), F(initialize)};
static const function cuda[] = {NULL, F(name_device_a), F(name_device_w), F(name_context_a), F(name_context_w), F(name_stream_a),
	F(name_stream_w), F(name_event_a), F(name_event_w)};
static const function cudart[] = {NULL, F(name_device_a), F(name_device_w), F(name_stream_a), F(name_stream_w), F(name_event_a), F(name_event_w)};

struct callbacks { /* NvtxExportTableCallbacks */
	size_t size;
	int (*table_of)(int module, function ***table, unsigned *n);
};

struct version { /* NvtxExportTableVersionInfo */
	size_t size;
	uint32_t version, reserved;
	void (*set)(uint32_t);
};

enum { EXPORT_CALLBACKS = 1, EXPORT_VERSION = 3, MODULE_CORE = 1, MODULE_CUDA = 2, MODULE_CUDART = 4, MODULE_CORE2 = 5 };

static bool nvtx_fill(const struct callbacks *c, int module, const function *with, unsigned n)
{
	function **table = NULL;
	unsigned size = 0;
	if (!c->table_of(module, &table, &size) || !table)
		return false;
	for (unsigned i = 1; i < n && i < size; i++)
		if (table[i])
			__atomic_store_n(table[i], with[i], __ATOMIC_RELEASE);
	return true;
}
#define FILL(c, module, with) nvtx_fill(c, module, with, sizeof(with) / sizeof((with)[0]))

static int initialize_injection(const void *(*export)(uint32_t))
{
	const struct callbacks *c = export ? export(EXPORT_CALLBACKS) : NULL;
	const struct version *v = export ? export(EXPORT_VERSION) : NULL;
	if (!c || c->size < sizeof *c || !c->table_of || !start())
		return 0;
	if (v && v->size >= offsetof(struct version, reserved)) /* NVTX 2 has none */
		keep_meta_u64("version.nvtx", v->version);
	bool any = FILL(c, MODULE_CORE, core);
	any |= FILL(c, MODULE_CORE2, core2);
	FILL(c, MODULE_CUDA, cuda);
	FILL(c, MODULE_CUDART, cudart);
	return any;
}

EXPORT int InitializeInjectionNvtx2(const void *(*export)(uint32_t));
int InitializeInjectionNvtx2(const void *(*export)(uint32_t)) { return initialize_injection(export); }

EXPORT int InitializeInjectionNvtx(const void *(*export)(uint32_t));
int InitializeInjectionNvtx(const void *(*export)(uint32_t)) { return initialize_injection(export); }
