/* Says everything that NVTX can say, once: test_capture.py knows what. Levels that pushes and pops return are checked here. */
#define ALL_NVTX
#include "nvtx_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PAYLOAD_U64
#include "nvtx_layout.h"
#endif

static int failures;

static void is_level(int level, int expected, int line)
{
	if (level == expected)
		return;
	fprintf(stderr, "line %d: level %d, not %d\n", line, level, expected);
	failures++;
}
#define LEVEL(call, expected) is_level(call, expected, __LINE__)

static uint64_t moving; /* started on one thread, ended on another */

static void *second_thread(void *unused)
{
	nvtx_thread((uint32_t)syscall(SYS_gettid), "second");
	LEVEL(nvtx_push("on the second thread"), 0);
	nvtx_end(moving);
	LEVEL(nvtx_pop(), 0);
	return unused;
}

static void payloads(void)
{
	const struct { int type; uint64_t bits; } v[] = {
		{PAYLOAD_U64, UINT64_MAX}, {PAYLOAD_I64, (uint64_t)-7}, {PAYLOAD_F64, 0x3ff8000000000000u /* 1.5 */}, {PAYLOAD_U32, 0xdeadbeef00000000u | 4000000000u},
		{PAYLOAD_I32, 0xdeadbeefu << 0 | (uint64_t)0x1234 << 32}, {PAYLOAD_F32, 0x3e800000u /* 0.25 */}};
	for (int i = 0; i < 6; i++) {
		char text[16];
		snprintf(text, sizeof text, "payload %d", i);
		struct said s = {.payload_type = v[i].type, .payload = v[i].bits, .message_type = MESSAGE_A, .message = text};
		LEVEL(nvtx_push_ex(&s), 1);
		LEVEL(nvtx_pop(), 1);
	}
}

static void domains(void)
{
	void *d = (void *)nvtx_domain("library"), *w = (void *)nvtx_domain_w(L"B\u00fccherei"), *again = (void *)nvtx_domain("library");
	failures += d != again || d == w || !d;
	nvtx_domain_category(d, 5, "five of the library");
	struct said s = {.category = 5, .color = 0xff102030u, .message_type = MESSAGE_REGISTERED, .message = (void *)nvtx_register(d, "registered")};
	struct said wide = {.message_type = MESSAGE_REGISTERED, .message = (void *)nvtx_register_w(w, L"\u2713 weit")};
	/* Levels are counted by domain. */
	LEVEL(nvtx_domain_push(d, &s), 0);
	LEVEL(nvtx_domain_push(w, &wide), 0);
	LEVEL(nvtx_push("default inside"), 1);
	LEVEL(nvtx_domain_pop(d), 0);
	LEVEL(nvtx_domain_pop(w), 0);
	LEVEL(nvtx_pop(), 1);
	nvtx_domain_end(d, nvtx_domain_start(d, &s));
	nvtx_domain_mark(d, &s);
	nvtx_resource(d, 1, 0x1234, "a thing");
	nvtx_stream((void *)0x77, "copies");
}

/* Texts that are longer than most, wide and narrow, in all places where there are some. */
static int long_texts(void)
{
	enum { LONG = 5000, TOO_LONG = 20000, TABLE = 270000 };
	static wchar_t text[TOO_LONG + 1], named[LONG + 1];
	static char narrow[1 + 2 * TOO_LONG + 1] = "x";
	wmemset(named, L'\u00e4', LONG);
	nvtx_thread_w((uint32_t)syscall(SYS_gettid), named);
	nvtx_category_w(6, named);
	LEVEL(nvtx_push_w(named), 0);
	LEVEL(nvtx_pop(), 0);
	struct said s = {.category = 6, .message_type = MESSAGE_W, .message = named};
	nvtx_mark_ex(&s);
	struct said registered = {.message_type = MESSAGE_REGISTERED, .message = (void *)nvtx_register_w((void *)nvtx_domain_w(named), named)};
	LEVEL(nvtx_domain_push((void *)nvtx_domain_w(named), &registered), 0);
	LEVEL(nvtx_domain_pop((void *)nvtx_domain_w(named)), 0);
	wmemset(text, L'\u4e2d', TOO_LONG); /* 3 bytes each: too many of them */
	LEVEL(nvtx_push_w(text), 0);
	LEVEL(nvtx_pop(), 0);
	for (int i = 0; i < TABLE; i++) { /* until texts stand in their records */
		char one[32];
		snprintf(one, sizeof one, "text number %d of many", i);
		nvtx_mark(one);
	}
	for (int i = 0; i < TOO_LONG; i++)
		memcpy(narrow + 1 + 2 * i, "\u00e4", 2);
	LEVEL(nvtx_push(narrow), 0);
	LEVEL(nvtx_pop(), 0);
	return failures != 0;
}

int main(int argc, char **argv)
{
	static char longest[40001];
	pthread_t thread;
	nvtx_load();
	if (argc > 1 && !strcmp(argv[1], "long"))
		return long_texts();
	nvtx_thread_w((uint32_t)syscall(SYS_gettid), L"\u00e4rste");
	nvtx_category(3, "three");
	nvtx_category_w(4, L"vier \U0001f600");
	LEVEL(nvtx_pop(), -1); /* none is open */
	LEVEL(nvtx_push("outer"), 0);
	LEVEL(nvtx_push("aten::conv2d, seq = 4, op_id = 7, sizes = [[2, 3, 8, 8], [4, 3, 3, 3], []], input_op_ids = [(0,-1), (3,0)]"), 1);
	LEVEL(nvtx_push("aten::_convolution, seq = 4, op_id = 8"), 2);
	LEVEL(nvtx_pop(), 2);
	LEVEL(nvtx_pop(), 1);
	LEVEL(nvtx_push("ConvolutionBackward0, seq = 4, op_id = 9"), 1);
	LEVEL(nvtx_pop(), 1);
	LEVEL(nvtx_push("odd, seq = 007"), 1); /* not as emit_nvtx writes numbers: a name like others */
	LEVEL(nvtx_pop(), 1);
	LEVEL(nvtx_push(", sizes = [[2, 16], []]"), 1); /* torch 1.1 to 1.7 with a name that was lost */
	LEVEL(nvtx_pop(), 1);
	LEVEL(nvtx_push_w(L"weit: \u00fc \u4e2d \U0001f680"), 1);
	LEVEL(nvtx_pop(), 1);
	payloads();
	struct said plain = {.category = 3, .color = 0x80ff0000u, .message_type = MESSAGE_A, .message = "with category and colour"};
	LEVEL(nvtx_push_ex(&plain), 1);
	LEVEL(nvtx_pop(), 1);
	struct said wide = {.category = 4, .message_type = MESSAGE_W, .message = L"Kategorie"};
	LEVEL(nvtx_push_ex(&wide), 1);
	LEVEL(nvtx_pop(), 1);
	struct said nothing_said = {0};
	LEVEL(nvtx_push_ex(&nothing_said), 1);
	LEVEL(nvtx_pop(), 1);
	memset(longest, 'x', sizeof longest - 1);
	LEVEL(nvtx_push(longest), 1);
	LEVEL(nvtx_pop(), 1);
	domains();
	nvtx_mark("a mark");
	nvtx_mark_w(L"eine Marke \u2691");
	nvtx_mark_ex(&plain);
	nvtx_end(nvtx_start("plain start"));
	nvtx_end(nvtx_start_w(L"start weit"));
	nvtx_end(nvtx_start_ex(&plain));
	uint64_t a = nvtx_start("overlapping a"), b = nvtx_start("overlapping b");
	nvtx_end(a);
	nvtx_end(b);
	moving = nvtx_start("ends elsewhere");
	failures += pthread_create(&thread, NULL, second_thread, NULL) != 0;
	pthread_join(thread, NULL);
	nvtx_start("never ended");
	nvtx_push("never popped");
	return failures != 0;
}
