/* NVTX's binary interface in numbers, as tools of any version see it: offsets of the structures that programs hand over, places in the tables of
 * functions. Taken from NVTX 3's headers, against which nvtx_layout.c holds them where a toolkit is installed. */
#define EVENT_BYTES 48
#define EVENT_VERSION 0           /* u16 */
#define EVENT_SIZE 2              /* u16 */
#define EVENT_CATEGORY 4          /* u32 */
#define EVENT_COLOR_TYPE 8        /* i32 */
#define EVENT_COLOR 12            /* u32 */
#define EVENT_PAYLOAD_TYPE 16     /* i32 */
#define EVENT_PAYLOAD 24          /* union of 8 bytes */
#define EVENT_MESSAGE_TYPE 32     /* i32 */
#define EVENT_MESSAGE 40          /* pointer */

#define RESOURCE_BYTES 32
#define RESOURCE_IDENTIFIER_TYPE 4
#define RESOURCE_IDENTIFIER 8
#define RESOURCE_MESSAGE_TYPE 16
#define RESOURCE_MESSAGE 24

#define COLOR_ARGB 1
#define PAYLOAD_U64 1
#define PAYLOAD_I64 2
#define PAYLOAD_F64 3
#define PAYLOAD_U32 4
#define PAYLOAD_I32 5
#define PAYLOAD_F32 6
#define MESSAGE_A 1
#define MESSAGE_W 2
#define MESSAGE_REGISTERED 3

#define MODULE_CORE 1
#define MODULE_CUDART 4
#define MODULE_CORE2 5
#define TABLE_CALLBACKS 1
#define TABLE_VERSION 3

#define CORE_MARK_EX 1
#define CORE_MARK_A 2
#define CORE_MARK_W 3
#define CORE_START_EX 4
#define CORE_START_A 5
#define CORE_START_W 6
#define CORE_END 7
#define CORE_PUSH_EX 8
#define CORE_PUSH_A 9
#define CORE_PUSH_W 10
#define CORE_POP 11
#define CORE_CATEGORY_A 12
#define CORE_CATEGORY_W 13
#define CORE_THREAD_A 14
#define CORE_THREAD_W 15
#define CORE_SIZE 16

#define CORE2_MARK_EX 1
#define CORE2_START_EX 2
#define CORE2_END 3
#define CORE2_PUSH_EX 4
#define CORE2_POP 5
#define CORE2_RESOURCE_CREATE 6
#define CORE2_RESOURCE_DESTROY 7
#define CORE2_CATEGORY_A 8
#define CORE2_CATEGORY_W 9
#define CORE2_REGISTER_A 10
#define CORE2_REGISTER_W 11
#define CORE2_CREATE_A 12
#define CORE2_CREATE_W 13
#define CORE2_DESTROY 14
#define CORE2_INITIALIZE 15
#define CORE2_SIZE 16

#define CUDART_STREAM_A 3
#define CUDART_SIZE 7
