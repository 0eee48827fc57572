/* The calls of NVTX that guests make: by the toolkit's own headers (REAL_NVTX), or by the numbers of nvtx_layout.h through a loader that does what
 * NVTX's does. */
#ifndef TESTS_NVTX_CALLS_H
#define TESTS_NVTX_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

/* What Ex calls say. */
struct said {
	uint32_t category, color;
	int payload_type;            /* PAYLOAD_* of nvtx_layout.h; the numbers are the same in the headers */
	uint64_t payload;            /* its bytes, from the first on */
	int message_type;
	const void *message;
};

#ifdef REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#define nvtx_load() (void)0
#define nvtx_push nvtxRangePushA
#define nvtx_push_w nvtxRangePushW
#define nvtx_pop nvtxRangePop
#define nvtx_start nvtxRangeStartA
#define nvtx_start_w nvtxRangeStartW
#define nvtx_end nvtxRangeEnd
#define nvtx_mark nvtxMarkA
#define nvtx_mark_w nvtxMarkW
#define nvtx_thread nvtxNameOsThreadA
#define nvtx_thread_w nvtxNameOsThreadW
#define nvtx_domain nvtxDomainCreateA
#define nvtx_domain_w nvtxDomainCreateW
#define nvtx_category nvtxNameCategoryA
#define nvtx_category_w nvtxNameCategoryW
#define nvtx_domain_category nvtxDomainNameCategoryA
#define nvtx_register nvtxDomainRegisterStringA
#define nvtx_register_w nvtxDomainRegisterStringW

static nvtxEventAttributes_t attributes(const struct said *s)
{
	nvtxEventAttributes_t a = {0};
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.category = s->category;
	a.colorType = s->color ? NVTX_COLOR_ARGB : NVTX_COLOR_UNKNOWN;
	a.color = s->color;
	a.payloadType = s->payload_type;
	memcpy(&a.payload, &s->payload, sizeof s->payload);
	a.messageType = s->message_type;
	a.message.ascii = s->message;
	return a;
}

#define EX(call, s) __extension__({ nvtxEventAttributes_t a_ = attributes(s); call; })
#define nvtx_push_ex(s) EX(nvtxRangePushEx(&a_), s)
#define nvtx_start_ex(s) EX(nvtxRangeStartEx(&a_), s)
#define nvtx_mark_ex(s) EX(nvtxMarkEx(&a_), s)
#define nvtx_domain_push(d, s) EX(nvtxDomainRangePushEx(d, &a_), s)
#define nvtx_domain_start(d, s) EX(nvtxDomainRangeStartEx(d, &a_), s)
#define nvtx_domain_mark(d, s) EX(nvtxDomainMarkEx(d, &a_), s)
#define nvtx_domain_pop nvtxDomainRangePop
#define nvtx_domain_end nvtxDomainRangeEnd
#define nvtx_stream(handle, name) nvtxNameCudaStreamA((cudaStream_t)(handle), name)

static void nvtx_resource(nvtxDomainHandle_t d, int type, uint64_t identifier, const char *name)
{
	nvtxResourceAttributes_t a = {0};
	a.version = NVTX_VERSION;
	a.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
	a.identifierType = type;
	a.identifier.ullValue = identifier;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = name;
	nvtxDomainResourceDestroy(nvtxDomainResourceCreate(d, &a));
}

#else
#include "../../python/annotate/nvtx.h"
#include "nvtx_layout.h"

static void **const core = nvtx_slots[MODULE_CORE], **const core2 = nvtx_slots[MODULE_CORE2], **const cudart = nvtx_slots[MODULE_CUDART];

static int nothing(void)
{
	return 0;
}

/* NVTX 2 has no version to export (GUEST_NVTX2 is set by the test). */
static const void *exported(uint32_t id) { return id == TABLE_VERSION && getenv("GUEST_NVTX2") ? NULL : nvtx_export(id); }

/* 1: a tool listens. */
static int nvtx_load(void)
{
	for (int module = 0; module < NVTX_MODULES; module++)
		for (int slot = 0; slot < NVTX_SLOTS; slot++)
			nvtx_slots[module][slot] = (void *)(uintptr_t)nothing;
	return nvtx_ask(exported);
}

#define CALL(table, slot, result, ...) ((result (*)(__VA_ARGS__))(uintptr_t)(table)[slot])
static int nvtx_push(const char *m) { return CALL(core, CORE_PUSH_A, int, const char *)(m); }
static int nvtx_pop(void) { return CALL(core, CORE_POP, int, void)(); }
static uint64_t nvtx_start(const char *m) { return CALL(core, CORE_START_A, uint64_t, const char *)(m); }
static void nvtx_end(uint64_t r) { CALL(core, CORE_END, void, uint64_t)(r); }
static void nvtx_mark(const char *m) { CALL(core, CORE_MARK_A, void, const char *)(m); }
static void *nvtx_domain(const char *m) { return CALL(core2, CORE2_CREATE_A, void *, const char *)(m); }
static void *nvtx_register(void *d, const char *m) { return CALL(core2, CORE2_REGISTER_A, void *, void *, const char *)(d, m); }

#ifdef ALL_NVTX
static int nvtx_push_w(const wchar_t *m) { return CALL(core, CORE_PUSH_W, int, const wchar_t *)(m); }
static uint64_t nvtx_start_w(const wchar_t *m) { return CALL(core, CORE_START_W, uint64_t, const wchar_t *)(m); }
static void nvtx_mark_w(const wchar_t *m) { CALL(core, CORE_MARK_W, void, const wchar_t *)(m); }
static void nvtx_thread(uint32_t t, const char *m) { CALL(core, CORE_THREAD_A, void, uint32_t, const char *)(t, m); }
static void nvtx_thread_w(uint32_t t, const wchar_t *m) { CALL(core, CORE_THREAD_W, void, uint32_t, const wchar_t *)(t, m); }
static void nvtx_category(uint32_t c, const char *m) { CALL(core, CORE_CATEGORY_A, void, uint32_t, const char *)(c, m); }
static void nvtx_category_w(uint32_t c, const wchar_t *m) { CALL(core, CORE_CATEGORY_W, void, uint32_t, const wchar_t *)(c, m); }
static void *nvtx_domain_w(const wchar_t *m) { return CALL(core2, CORE2_CREATE_W, void *, const wchar_t *)(m); }
static void *nvtx_register_w(void *d, const wchar_t *m) { return CALL(core2, CORE2_REGISTER_W, void *, void *, const wchar_t *)(d, m); }
static void nvtx_domain_category(void *d, uint32_t c, const char *m) { CALL(core2, CORE2_CATEGORY_A, void, void *, uint32_t, const char *)(d, c, m); }
static void nvtx_stream(void *s, const char *m) { CALL(cudart, CUDART_STREAM_A, void, void *, const char *)(s, m); }

static void put(char *to, size_t at, const void *v, size_t n) { memcpy(to + at, v, n); }

static void put_attributes(char *a, const struct said *s)
{
	uint16_t version = 3, size = EVENT_BYTES;
	int32_t color_type = s->color ? COLOR_ARGB : 0;
	memset(a, 0, EVENT_BYTES);
	put(a, EVENT_VERSION, &version, 2);
	put(a, EVENT_SIZE, &size, 2);
	put(a, EVENT_CATEGORY, &s->category, 4);
	put(a, EVENT_COLOR_TYPE, &color_type, 4);
	put(a, EVENT_COLOR, &s->color, 4);
	put(a, EVENT_PAYLOAD_TYPE, &s->payload_type, 4);
	put(a, EVENT_PAYLOAD, &s->payload, 8);
	put(a, EVENT_MESSAGE_TYPE, &s->message_type, 4);
	put(a, EVENT_MESSAGE, &s->message, sizeof(void *));
}

#define EX(s) _Alignas(8) char a[EVENT_BYTES]; put_attributes(a, s)
static int nvtx_push_ex(const struct said *s) { EX(s); return CALL(core, CORE_PUSH_EX, int, void *)(a); }
static uint64_t nvtx_start_ex(const struct said *s) { EX(s); return CALL(core, CORE_START_EX, uint64_t, void *)(a); }
static void nvtx_mark_ex(const struct said *s) { EX(s); CALL(core, CORE_MARK_EX, void, void *)(a); }
static uint64_t nvtx_domain_start(void *d, const struct said *s) { EX(s); return CALL(core2, CORE2_START_EX, uint64_t, void *, void *)(d, a); }
static void nvtx_domain_end(void *d, uint64_t r) { CALL(core2, CORE2_END, void, void *, uint64_t)(d, r); }
static void nvtx_domain_mark(void *d, const struct said *s) { EX(s); CALL(core2, CORE2_MARK_EX, void, void *, void *)(d, a); }
static int nvtx_domain_push(void *d, const struct said *s) { EX(s); return CALL(core2, CORE2_PUSH_EX, int, void *, void *)(d, a); }
static int nvtx_domain_pop(void *d) { return CALL(core2, CORE2_POP, int, void *)(d); }

static void nvtx_resource(void *d, int32_t type, uint64_t identifier, const char *name)
{
	_Alignas(8) char a[RESOURCE_BYTES] = {0};
	uint16_t version = 3, size = RESOURCE_BYTES;
	int32_t message_type = MESSAGE_A;
	put(a, 0, &version, 2);
	put(a, 2, &size, 2);
	put(a, RESOURCE_IDENTIFIER_TYPE, &type, 4);
	put(a, RESOURCE_IDENTIFIER, &identifier, 8);
	put(a, RESOURCE_MESSAGE_TYPE, &message_type, 4);
	put(a, RESOURCE_MESSAGE, &name, sizeof name);
	void *handle = CALL(core2, CORE2_RESOURCE_CREATE, void *, void *, void *)(d, a);
	CALL(core2, CORE2_RESOURCE_DESTROY, void, void *)(handle);
}
#endif
#endif

#endif
