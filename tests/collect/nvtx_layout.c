/* The numbers of nvtx_layout.h are those of the toolkit's own headers: it compiles, or they are not. */
#include <nvtx3/nvToolsExt.h>

#undef NVTX_NO_IMPL
#include <stddef.h>

#include "nvtx_layout.h"

#define AT(number, type, member) _Static_assert((number) == offsetof(type, member), #number)
#define IS(number, value) _Static_assert((number) == (int)(value), #number)

_Static_assert(EVENT_BYTES == sizeof(nvtxEventAttributes_t), "EVENT_BYTES");
_Static_assert(RESOURCE_BYTES == sizeof(nvtxResourceAttributes_t), "RESOURCE_BYTES");
AT(EVENT_VERSION, nvtxEventAttributes_t, version);
AT(EVENT_SIZE, nvtxEventAttributes_t, size);
AT(EVENT_CATEGORY, nvtxEventAttributes_t, category);
AT(EVENT_COLOR_TYPE, nvtxEventAttributes_t, colorType);
AT(EVENT_COLOR, nvtxEventAttributes_t, color);
AT(EVENT_PAYLOAD_TYPE, nvtxEventAttributes_t, payloadType);
AT(EVENT_PAYLOAD, nvtxEventAttributes_t, payload);
AT(EVENT_MESSAGE_TYPE, nvtxEventAttributes_t, messageType);
AT(EVENT_MESSAGE, nvtxEventAttributes_t, message);
AT(RESOURCE_IDENTIFIER_TYPE, nvtxResourceAttributes_t, identifierType);
AT(RESOURCE_IDENTIFIER, nvtxResourceAttributes_t, identifier);
AT(RESOURCE_MESSAGE_TYPE, nvtxResourceAttributes_t, messageType);
AT(RESOURCE_MESSAGE, nvtxResourceAttributes_t, message);
IS(COLOR_ARGB, NVTX_COLOR_ARGB);
IS(PAYLOAD_U64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
IS(PAYLOAD_I64, NVTX_PAYLOAD_TYPE_INT64);
IS(PAYLOAD_F64, NVTX_PAYLOAD_TYPE_DOUBLE);
IS(PAYLOAD_U32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
IS(PAYLOAD_I32, NVTX_PAYLOAD_TYPE_INT32);
IS(PAYLOAD_F32, NVTX_PAYLOAD_TYPE_FLOAT);
IS(MESSAGE_A, NVTX_MESSAGE_TYPE_ASCII);
IS(MESSAGE_W, NVTX_MESSAGE_TYPE_UNICODE);
IS(MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
IS(MODULE_CORE, NVTX_CB_MODULE_CORE);
IS(MODULE_CUDART, NVTX_CB_MODULE_CUDART);
IS(MODULE_CORE2, NVTX_CB_MODULE_CORE2);
IS(TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
IS(TABLE_VERSION, NVTX_ETID_VERSIONINFO);
IS(CORE_MARK_EX, NVTX_CBID_CORE_MarkEx);
IS(CORE_MARK_A, NVTX_CBID_CORE_MarkA);
IS(CORE_MARK_W, NVTX_CBID_CORE_MarkW);
IS(CORE_START_EX, NVTX_CBID_CORE_RangeStartEx);
IS(CORE_START_A, NVTX_CBID_CORE_RangeStartA);
IS(CORE_START_W, NVTX_CBID_CORE_RangeStartW);
IS(CORE_END, NVTX_CBID_CORE_RangeEnd);
IS(CORE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
IS(CORE_PUSH_A, NVTX_CBID_CORE_RangePushA);
IS(CORE_PUSH_W, NVTX_CBID_CORE_RangePushW);
IS(CORE_POP, NVTX_CBID_CORE_RangePop);
IS(CORE_CATEGORY_A, NVTX_CBID_CORE_NameCategoryA);
IS(CORE_CATEGORY_W, NVTX_CBID_CORE_NameCategoryW);
IS(CORE_THREAD_A, NVTX_CBID_CORE_NameOsThreadA);
IS(CORE_THREAD_W, NVTX_CBID_CORE_NameOsThreadW);
IS(CORE_SIZE, NVTX_CBID_CORE_SIZE);
IS(CORE2_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
IS(CORE2_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
IS(CORE2_END, NVTX_CBID_CORE2_DomainRangeEnd);
IS(CORE2_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
IS(CORE2_POP, NVTX_CBID_CORE2_DomainRangePop);
IS(CORE2_RESOURCE_CREATE, NVTX_CBID_CORE2_DomainResourceCreate);
IS(CORE2_RESOURCE_DESTROY, NVTX_CBID_CORE2_DomainResourceDestroy);
IS(CORE2_CATEGORY_A, NVTX_CBID_CORE2_DomainNameCategoryA);
IS(CORE2_CATEGORY_W, NVTX_CBID_CORE2_DomainNameCategoryW);
IS(CORE2_REGISTER_A, NVTX_CBID_CORE2_DomainRegisterStringA);
IS(CORE2_REGISTER_W, NVTX_CBID_CORE2_DomainRegisterStringW);
IS(CORE2_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
IS(CORE2_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
IS(CORE2_DESTROY, NVTX_CBID_CORE2_DomainDestroy);
IS(CORE2_INITIALIZE, NVTX_CBID_CORE2_Initialize);
IS(CORE2_SIZE, NVTX_CBID_CORE2_SIZE);
IS(CUDART_STREAM_A, NVTX_CBID_CUDART_NameCudaStreamA);
IS(CUDART_SIZE, NVTX_CBID_CUDART_SIZE);

int main(void)
{
	return 0;
}
