/* Says all that is recorded of ITT, through structures laid down here by their offsets, as the static part of ittnotify has them in a program. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ___itt_global up to the list of functions: 8 bytes of magic, 6 longs, a mutex, 3 pointers. */
enum { GLOBAL_MUTEX = 56, GLOBAL_FUNCTIONS = GLOBAL_MUTEX + sizeof(pthread_mutex_t) + 24, GLOBAL_BYTES = 512 };
/* ___itt_api_info */
enum { FUNCTION_NAME = 0, FUNCTION_AT = 8, FUNCTION_NULL = 24, FUNCTION_BYTES = 40 };
/* ___itt_domain, ___itt_string_handle */
enum { DOMAIN_FLAGS = 0, DOMAIN_NAME = 8, STRING_TEXT = 0 };
enum { METADATA_U64 = 1, METADATA_S64, METADATA_U32, METADATA_S32, METADATA_U16, METADATA_S16, METADATA_F32, METADATA_F64 };

struct id { uint64_t d1, d2, d3; };

enum { DOMAIN_CREATE, STRING_CREATE, TASK_BEGIN, TASK_END, TASK_GROUP, OVERLAPPED_BEGIN, OVERLAPPED_END, FRAME_BEGIN, FRAME_END, MARKER, COUNTER_CREATE,
       COUNTER_TYPED, COUNTER_SET, COUNTER_INC, COUNTER_DEC_DELTA, METADATA_ADD, METADATA_STR_ADD, THREAD_NAME, PAUSE, RESUME, EVENT_CREATE, EVENT_START, EVENT_END,
       UNKNOWN, FUNCTIONS };
static const char *const name[FUNCTIONS] = {"__itt_domain_create", "__itt_string_handle_create", "__itt_task_begin", "__itt_task_end", "__itt_task_group",
	"__itt_task_begin_overlapped", "__itt_task_end_overlapped", "__itt_frame_begin_v3", "__itt_frame_end_v3", "__itt_marker", "__itt_counter_create",
	"__itt_counter_create_typed", "__itt_counter_set_value", "__itt_counter_inc", "__itt_counter_dec_delta", "__itt_metadata_add", "__itt_metadata_str_add",
	"__itt_thread_set_name", "__itt_pause", "__itt_resume", "__itt_event_create", "__itt_event_start", "__itt_event_end", "__itt_heap_record"};
static void *function[FUNCTIONS];
static int nulls;

static void null_function(void)
{
	nulls++;
}

static int load(void)
{
	static _Alignas(8) char global[GLOBAL_BYTES], list[(FUNCTIONS + 1) * FUNCTION_BYTES];
	const char *functions = list, *path = getenv("INTEL_LIBITTNOTIFY64");
	void *null = (void *)(uintptr_t)null_function;
	for (int i = 0; i < FUNCTIONS; i++) {
		void **at = &function[i];
		memcpy(list + i * FUNCTION_BYTES + FUNCTION_NAME, &name[i], 8);
		memcpy(list + i * FUNCTION_BYTES + FUNCTION_AT, &at, 8);
		memcpy(list + i * FUNCTION_BYTES + FUNCTION_NULL, &null, 8);
	}
	memcpy(global + GLOBAL_FUNCTIONS, &functions, 8);
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL, *symbol = library ? dlsym(library, "__itt_api_init") : NULL;
	if (symbol)
		((void (*)(void *, int))(uintptr_t)symbol)(global, -1);
	return symbol && function[TASK_BEGIN] != null;
}

#define F(i, result, ...) ((result (*)(__VA_ARGS__))(uintptr_t)function[i])
static const struct id none;

static void begin(void *d, const char *text)
{
	void *s = F(STRING_CREATE, void *, const char *)(text);
	F(TASK_BEGIN, void, void *, struct id, struct id, void *)(d, none, none, s);
}

static void end(void *d) { F(TASK_END, void, void *)(d); }

static void numbers(void *d)
{
	void *c = F(COUNTER_CREATE, void *, const char *, const char *)("queue", "PyTorch"), *typed = F(COUNTER_TYPED, void *, const char *, const char *, int)("loss", NULL, METADATA_F64);
	uint64_t seven = 7;
	double half = 0.5;
	int16_t small = -3;
	F(COUNTER_SET, void, void *, const void *)(c, &seven);
	F(COUNTER_INC, void, void *)(c);
	F(COUNTER_DEC_DELTA, void, void *, uint64_t)(c, 10);
	F(COUNTER_SET, void, void *, const void *)(typed, &half);
	void *key = F(STRING_CREATE, void *, const char *)("small"), *text_key = F(STRING_CREATE, void *, const char *)("who");
	begin(d, "with metadata");
	F(METADATA_ADD, void, void *, struct id, void *, int, size_t, const void *)(d, none, key, METADATA_S16, 1, &small);
	F(METADATA_STR_ADD, void, void *, struct id, void *, const char *, size_t)(d, none, text_key, "me and others", 2);
	end(d);
}

int main(void)
{
	if (!load())
		return 99;
	void *d = F(DOMAIN_CREATE, void *, const char *)("PyTorch"), *again = F(DOMAIN_CREATE, void *, const char *)("PyTorch");
	int flags;
	const char *text;
	memcpy(&flags, (char *)d + DOMAIN_FLAGS, sizeof flags);
	memcpy(&text, (char *)d + DOMAIN_NAME, sizeof text);
	if (d != again || !flags || strcmp(text, "PyTorch"))
		return 1;
	void *s = F(STRING_CREATE, void *, const char *)("same");
	memcpy(&text, (char *)s + STRING_TEXT, sizeof text);
	if (s != F(STRING_CREATE, void *, const char *)("same") || strcmp(text, "same"))
		return 2;
	F(THREAD_NAME, void, const char *)("the only one");
	begin(d, "aten::linear, seq = 3, op_id = 1, sizes = [[2, 3], [4, 3]]");
	begin(d, "aten::addmm, seq = 3, op_id = 2");
	end(d);
	end(d);
	for (int i = 0; i < 280000; i++) { /* texts that are all different take no places */
		char unique[64];
		snprintf(unique, sizeof unique, "aten::add, seq = %d, op_id = %d", i, i + 10);
		begin(d, unique);
		end(d);
	}
	struct id a = {1, 2, 0}, b = {3, 4, 0};
	F(OVERLAPPED_BEGIN, void, void *, struct id, struct id, void *)(d, a, none, s);
	F(OVERLAPPED_BEGIN, void, void *, struct id, struct id, void *)(d, b, none, F(STRING_CREATE, void *, const char *)("crossing"));
	F(OVERLAPPED_END, void, void *, struct id)(d, a);
	F(OVERLAPPED_END, void, void *, struct id)(d, b);
	F(FRAME_BEGIN, void, void *, void *)(d, NULL);
	F(FRAME_END, void, void *, void *)(d, NULL);
	F(TASK_GROUP, void, void *, struct id, struct id, void *)(d, none, none, F(STRING_CREATE, void *, const char *)("a group"));
	F(MARKER, void, void *, struct id, void *, int)(d, none, F(STRING_CREATE, void *, const char *)("a marker"), 1);
	int event = F(EVENT_CREATE, int, const char *, int)("an event", 8);
	F(EVENT_START, int, int)(event);
	F(EVENT_END, int, int)(event);
	numbers(d);
	F(PAUSE, void, void)();
	begin(d, "while paused");
	end(d);
	F(RESUME, void, void)();
	begin(d, "resumed");
	end(d);
	F(UNKNOWN, void, void)();
	return nulls != 1;
}
