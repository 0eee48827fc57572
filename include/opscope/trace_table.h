/* The functions behind opscope/trace.h: what the capture library gives a program that asks for them. Programs include trace.h. */
#ifndef OPSCOPE_TRACE_TABLE_H
#define OPSCOPE_TRACE_TABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Members are only ever added at the end, and `bytes` says how many there are: a program asks for the version that it was built with, and finds
 * all that this version had. */
enum { OPSCOPE_TRACE_VERSION = 3 };

/* A text: either `name`, a number that the library gave for it (opscope_name), or NUL-terminated UTF-8. */
struct opscope_trace_table {
	uint32_t version;
	uint32_t bytes;
	uint32_t (*name)(const char *text);
	uint32_t (*domain)(const char *name);
	void (*push)(uint32_t domain, uint32_t name, const char *text);
	void (*push_op)(uint32_t domain, uint32_t name, const char *text, int64_t sequence);
	void (*pop)(uint32_t domain);
	uint64_t (*start)(uint32_t domain, uint32_t name, const char *text);
	void (*end)(uint32_t domain, uint64_t range);
	void (*mark)(uint32_t domain, uint32_t name, const char *text);
	void (*counter_i64)(uint32_t domain, const char *counter, const char *unit, int64_t value);
	void (*counter_f64)(uint32_t domain, const char *counter, const char *unit, double value);
	void (*step)(const char *what, int64_t number);
	void (*memory)(const void *address, int64_t bytes, int64_t allocated, int64_t reserved, int device_type, int device);
	void (*arg_text)(uint32_t domain, const char *key, const char *value);
	void (*arg_json)(uint32_t domain, const char *key, const char *json);
	void (*arg_i64)(uint32_t domain, const char *key, int64_t value);
	void (*arg_f64)(uint32_t domain, const char *key, double value);
	void (*thread_name)(const char *name);
	void (*collect)(int on);
	/* version 2 */
	int (*wanted)(void);
	void (*arg_name)(uint32_t domain, uint32_t key, int kind, uint64_t value);
	void (*arg_i64s)(uint32_t domain, uint32_t key, const int64_t *values, uint32_t n);
	/* version 3 */
	void (*leaving)(void);
	void (*note)(const char *kind, const char *text, int loss);
};

/* The capture library's own symbol, "opscope_trace_get": NULL = it does not listen, or is older than `version`. */
typedef const struct opscope_trace_table *opscope_trace_get_fn(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif
