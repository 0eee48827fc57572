/* Marks a C or C++ program for `opscope record`: ranges, ops with arguments, counters, steps, allocations.
 *
 *   OPSCOPE_RANGE("load batch");                         // until the end of the block: C with gcc or clang, C++
 *   opscope_push("forward"); ... opscope_pop();
 *   opscope_step(i);                                     // step i of training begins
 *   opscope_counter_f64("loss", NULL, loss);
 *
 * Nothing to link with but, on glibc before 2.34, -ldl. When no one records, a call is one load and one comparison. Whether someone does is
 * asked once, at the first call: `opscope record` says so in the environment (OPSCOPE_DIR, and NVTX_INJECTION64_PATH or CUDA_INJECTION64_PATH),
 * and the capture library is loaded then. A program with more rights than its caller (set-user-id, file capabilities) is never recorded: its caller
 * chooses the environment, and with it the library.
 *
 * Every function may be called from any thread, returns nothing that has to be checked, keeps no pointer and never fails: what cannot be recorded
 * is counted in the capture. Texts are UTF-8. Ranges nest by thread and domain: pop ends what that thread pushed last in that domain. Those of
 * opscope_start may end on another thread, and overlap. */
#ifndef OPSCOPE_TRACE_H
#define OPSCOPE_TRACE_H

#include "opscope/trace_table.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPSCOPE_UNUSED_ __attribute__((unused))
#define OPSCOPE_UNLIKELY_(x) __builtin_expect(!!(x), 0)

/* Not asked yet: NULL; nobody listens: &opscope_trace_nobody; one of each in a program or library. */
__attribute__((weak, visibility("hidden"))) const struct opscope_trace_table *opscope_trace_found;
__attribute__((weak, visibility("hidden"))) struct opscope_trace_table opscope_trace_nobody;

OPSCOPE_UNUSED_ __attribute__((noinline, cold)) static const struct opscope_trace_table *opscope_trace_look(void)
{
	const struct opscope_trace_table *found = NULL;
	const char *const variables[] = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH"};
	int i, asked = !getauxval(AT_SECURE) && getenv("OPSCOPE_DIR") != NULL;
	for (i = 0; i < 2 && !found && asked; i++) {
		const char *path = getenv(variables[i]);
		void *library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
		opscope_trace_get_fn *get = NULL;
		void *symbol = library ? dlsym(library, "opscope_trace_get") : NULL;
		memcpy(&get, &symbol, sizeof get);
		found = get ? get(OPSCOPE_TRACE_VERSION) : NULL;
	}
	if (!found)
		found = &opscope_trace_nobody;
	__atomic_store_n(&opscope_trace_found, found, __ATOMIC_RELEASE);
	return found;
}

/* NULL = nobody listens. */
OPSCOPE_UNUSED_ static inline const struct opscope_trace_table *opscope_trace(void)
{
	const struct opscope_trace_table *t = __atomic_load_n(&opscope_trace_found, __ATOMIC_ACQUIRE);
	if (OPSCOPE_UNLIKELY_(!t))
		t = opscope_trace_look();
	return OPSCOPE_UNLIKELY_(t != &opscope_trace_nobody) ? t : NULL;
}

#define OPSCOPE_CALL_(call)                                              \
	do {                                                             \
		const struct opscope_trace_table *t_ = opscope_trace();  \
		if (OPSCOPE_UNLIKELY_(t_ != NULL))                       \
			t_->call;                                        \
	} while (0)

OPSCOPE_UNUSED_ static inline int opscope_is_recording(void) { return opscope_trace() != NULL; }

/* Whether what happens now is wanted: 0 also outside of the times, ranges or steps that `opscope record` was told. For whoever would have to work
 * out what to say; ranges may be pushed and popped at any time. */
OPSCOPE_UNUSED_ static inline int opscope_is_wanted(void)
{
	const struct opscope_trace_table *t = opscope_trace();
	return t ? t->wanted() : 0;
}

/* ---- ranges ---- */

/* A number for a text that is used often; 0 = nobody listens. It costs the library less than the text does each time. */
OPSCOPE_UNUSED_ static inline uint32_t opscope_name(const char *text)
{
	const struct opscope_trace_table *t = opscope_trace();
	return t ? t->name(text) : 0;
}

OPSCOPE_UNUSED_ static inline void opscope_push(const char *text) { OPSCOPE_CALL_(push(0, 0, text)); }
OPSCOPE_UNUSED_ static inline void opscope_push_name(uint32_t name) { OPSCOPE_CALL_(push(0, name, NULL)); }
OPSCOPE_UNUSED_ static inline void opscope_pop(void) { OPSCOPE_CALL_(pop(0)); }
OPSCOPE_UNUSED_ static inline void opscope_mark(const char *text) { OPSCOPE_CALL_(mark(0, 0, text)); }

/* An operation of a framework, which reports list as such: ended by opscope_pop. `sequence` links a backward operation to its forward one: the
 * same number of both, those of backward ones ending in "Backward" or "Backward0"; -1 = none. What it works on is said behind it:
 *   opscope_push_op("aten::mm", 7);
 *   opscope_arg_json("Input Dims", "[[64, 128], [128, 32]]");      // as torch.profiler writes them: FLOPs and bytes are counted by them
 *   opscope_arg_json("Input type", "[\"float\", \"float\"]"); */
OPSCOPE_UNUSED_ static inline void opscope_push_op(const char *op, int64_t sequence) { OPSCOPE_CALL_(push_op(0, 0, op, sequence)); }

/* Ranges that need not nest. 0 = nobody listens. */
OPSCOPE_UNUSED_ static inline uint64_t opscope_start(const char *text)
{
	const struct opscope_trace_table *t = opscope_trace();
	return t ? t->start(0, 0, text) : 0;
}
OPSCOPE_UNUSED_ static inline void opscope_end(uint64_t range) { OPSCOPE_CALL_(end(0, range)); }

/* Arguments of the innermost open range of this thread. JSON is a number, an array or an object. */
OPSCOPE_UNUSED_ static inline void opscope_arg_text(const char *key, const char *value) { OPSCOPE_CALL_(arg_text(0, key, value)); }
OPSCOPE_UNUSED_ static inline void opscope_arg_json(const char *key, const char *json) { OPSCOPE_CALL_(arg_json(0, key, json)); }
OPSCOPE_UNUSED_ static inline void opscope_arg_i64(const char *key, int64_t value) { OPSCOPE_CALL_(arg_i64(0, key, value)); }
OPSCOPE_UNUSED_ static inline void opscope_arg_f64(const char *key, double value) { OPSCOPE_CALL_(arg_f64(0, key, value)); }
/* The key is a number of opscope_name; 0: nothing is recorded. */
OPSCOPE_UNUSED_ static inline void opscope_arg_i64s(uint32_t key, const int64_t *values, uint32_t n) { OPSCOPE_CALL_(arg_i64s(0, key, values, n)); }
/* Key and value are numbers of opscope_name: for texts that are said often. */
OPSCOPE_UNUSED_ static inline void opscope_arg_name(uint32_t key, uint32_t value) { OPSCOPE_CALL_(arg_name(0, key, 0, value)); }

/* ---- domains: ranges of a library, apart from those of the program ---- */

typedef uint32_t opscope_domain_t;

/* The same for the same name; 0 = nobody listens. */
OPSCOPE_UNUSED_ static inline opscope_domain_t opscope_domain(const char *name)
{
	const struct opscope_trace_table *t = opscope_trace();
	return t ? t->domain(name) : 0;
}
OPSCOPE_UNUSED_ static inline void opscope_domain_push(opscope_domain_t d, const char *text) { OPSCOPE_CALL_(push(d, 0, text)); }
OPSCOPE_UNUSED_ static inline void opscope_domain_push_name(opscope_domain_t d, uint32_t name) { OPSCOPE_CALL_(push(d, name, NULL)); }
OPSCOPE_UNUSED_ static inline void opscope_domain_pop(opscope_domain_t d) { OPSCOPE_CALL_(pop(d)); }
OPSCOPE_UNUSED_ static inline void opscope_domain_mark(opscope_domain_t d, const char *text) { OPSCOPE_CALL_(mark(d, 0, text)); }

/* ---- numbers ---- */

/* `unit` NULL = none. */
OPSCOPE_UNUSED_ static inline void opscope_counter_i64(const char *name, const char *unit, int64_t value) { OPSCOPE_CALL_(counter_i64(0, name, unit, value)); }
OPSCOPE_UNUSED_ static inline void opscope_counter_f64(const char *name, const char *unit, double value) { OPSCOPE_CALL_(counter_f64(0, name, unit, value)); }

/* Step `number` begins here and ends where this thread says the next one, or the recording ends: "ProfilerStep#number" in all reports. */
OPSCOPE_UNUSED_ static inline void opscope_step(int64_t number) { OPSCOPE_CALL_(step("ProfilerStep", number)); }

/* An allocator's work: bytes > 0 allocated, < 0 freed. `allocated`, `reserved`: bytes on that device after it, INT64_MIN = unknown. Devices by
 * their numbers in torch: type 0 CPU (device -1), 1 CUDA. */
OPSCOPE_UNUSED_ static inline void opscope_memory(const void *address, int64_t bytes, int64_t allocated, int64_t reserved, int device_type, int device)
{
	OPSCOPE_CALL_(memory(address, bytes, allocated, reserved, device_type, device));
}

OPSCOPE_UNUSED_ static inline void opscope_thread_name(const char *name) { OPSCOPE_CALL_(thread_name(name)); }

/* A sentence without a full stop that readers of the capture should know, once for each `kind`, a word in kebab case ("data-on-cpu"), of which a
 * process may have some hundred. `loss` 1: something was lost by it, which reports say too; 0: `opscope info` alone has it. */
OPSCOPE_UNUSED_ static inline void opscope_note(const char *kind, const char *text, int loss) { OPSCOPE_CALL_(note(kind, text, loss)); }

/* 0: nothing is recorded until it is called with 1, whatever the options of `opscope record` are. */
OPSCOPE_UNUSED_ static inline void opscope_collect(int on) { OPSCOPE_CALL_(collect(on)); }

/* The process is about to end by _exit(), which tells nobody: what was recorded is whole, and no report asks whether it was killed. For forked workers;
 * who ends by exit() need not say it. What is recorded after it is still kept. */
OPSCOPE_UNUSED_ static inline void opscope_leaving(void) { OPSCOPE_CALL_(leaving()); }

/* ---- until the end of the block ---- */

#define OPSCOPE_JOIN2_(a, b) a##b
#define OPSCOPE_JOIN_(a, b) OPSCOPE_JOIN2_(a, b)

/* What the range needs at its end: whether it was begun. */
OPSCOPE_UNUSED_ static inline int opscope_scope_begin(const char *text)
{
	opscope_push(text);
	return 0;
}
OPSCOPE_UNUSED_ static inline int opscope_scope_begin_op(const char *op, int64_t sequence)
{
	opscope_push_op(op, sequence);
	return 0;
}
OPSCOPE_UNUSED_ static inline void opscope_scope_end(const int *scope)
{
	(void)scope;
	opscope_pop();
}

#define OPSCOPE_RANGE(text) \
	OPSCOPE_UNUSED_ __attribute__((cleanup(opscope_scope_end))) const int OPSCOPE_JOIN_(opscope_range_, __COUNTER__) = opscope_scope_begin(text)
#define OPSCOPE_OP(op, sequence) \
	OPSCOPE_UNUSED_ __attribute__((cleanup(opscope_scope_end))) const int OPSCOPE_JOIN_(opscope_range_, __COUNTER__) = opscope_scope_begin_op(op, sequence)

#ifdef __cplusplus
}

namespace opscope {

/* opscope::range r("forward"); */
class range {
public:
	explicit range(const char *text) : domain_(0) { opscope_push(text); }
	range(opscope_domain_t domain, const char *text) : domain_(domain) { opscope_domain_push(domain, text); }
	~range() { opscope_domain_pop(domain_); }
	range(const range &) = delete;
	range &operator=(const range &) = delete;

private:
	opscope_domain_t domain_;
};

} // namespace opscope
#endif
#endif
