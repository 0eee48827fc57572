/* What programs say with opscope/trace.h. */
#include "trace.h"

#include "control.h"
#include "intern.h"
#include "opscope/trace_table.h"
#include "ranges.h"
#include "start.h"
#include "sys.h"

#include <string.h>

static uint32_t trace_text_id(const char *text)
{
	return text && start_names() ? intern_surely(text, strlen(text)) : 0;
}

static struct event trace_event_of(uint32_t domain, uint32_t id, const char *text)
{
	return (struct event){.text = text, .n = text ? strlen(text) : 0, .id = text ? 0 : intern_given(id), .domain = domain};
}

static uint32_t trace_domain_of(const char *name)
{
	return name && start_names() ? ranges_domain(name, strlen(name), WIRE_API_TRACE) : 0;
}

static void trace_push(uint32_t domain, uint32_t id, const char *text)
{
	struct event e = trace_event_of(domain, id, text);
	range_push(&e);
}

static void push_op(uint32_t domain, uint32_t id, const char *text, int64_t sequence)
{
	struct event e = trace_event_of(domain, id, text);
	e.is_op = true;
	e.sequence = sequence >= 0 && sequence < UINT32_MAX ? (uint32_t)sequence : UINT32_MAX;
	range_push(&e);
}

static void trace_pop(uint32_t domain) { range_pop(domain); }

static uint64_t trace_start_range(uint32_t domain, uint32_t id, const char *text)
{
	struct event e = trace_event_of(domain, id, text);
	return range_start(&e);
}

static void trace_end(uint32_t domain, uint64_t range) { range_end(range, domain); }

static void trace_mark(uint32_t domain, uint32_t id, const char *text)
{
	struct event e = trace_event_of(domain, id, text);
	range_mark(&e);
}

/* ---- counters, steps, memory, arguments ---- */

/* Between enter and leave. */
static uint32_t said(const char *text)
{
	uint32_t id = intern_cstr(text);
	if (!id && text && *text)
		lose(WIRE_LOST_STRINGS, 1);
	return id;
}

static void put_counter(struct writer *w, uint32_t domain, uint32_t name, uint32_t unit, enum wire_payload kind, uint64_t value)
{
	struct wire_counter r = {writer_head(WIRE_COUNTER, (uint8_t)kind, name, sizeof r), now_ns(), value, domain, unit};
	writer_append(w, &r, sizeof r);
}

void counter(uint32_t domain, uint32_t name, enum wire_payload kind, uint64_t value)
{
	struct writer *w = writer_enter();
	if (!w)
		return;
	if (intern_again(name))
		put_counter(w, domain, name, 0, kind, value);
	else
		lose(WIRE_LOST_STRINGS, 1);
	writer_leave(w);
}

static void counter_of(uint32_t domain, const char *name, const char *unit, enum wire_payload kind, uint64_t value)
{
	struct writer *w = writer_enter();
	if (!w)
		return;
	uint32_t id = said(name && *name ? name : "(no name)");
	if (id)
		put_counter(w, domain, id, said(unit), kind, value);
	writer_leave(w);
}

static void counter_i64(uint32_t domain, const char *name, const char *unit, int64_t value)
{
	counter_of(domain, name, unit, WIRE_I64, (uint64_t)value);
}

static void counter_f64(uint32_t domain, const char *name, const char *unit, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	counter_of(domain, name, unit, WIRE_F64, bits);
}

static void trace_step(const char *what, int64_t number)
{
	control_step(number);
	struct writer *w = writer_enter();
	if (!w)
		return;
	struct wire_step r = {writer_head(WIRE_STEP, 0, said(what), sizeof r), now_ns(), number};
	writer_append(w, &r, sizeof r);
	writer_leave(w);
}

static void trace_memory(const void *address, int64_t bytes, int64_t allocated, int64_t reserved, int device_type, int device)
{
	static _Atomic uint32_t told; /* in which segment: a reader prefers this to what CUDA says of the same bytes */
	struct writer *w = writer_enter();
	if (!w)
		return;
	uint32_t now = (uint32_t)(w->epoch >> 32);
	if (UNLIKELY(atomic_exchange_explicit(&told, now, memory_order_relaxed) != now))
		keep_meta("memory.source", "program", 7);
	struct wire_memory r = {writer_head(WIRE_MEMORY, 0, 0, sizeof r), now_ns(), (int64_t)(intptr_t)address, bytes, allocated, reserved,
	                        (int16_t)device_type, (int16_t)device, 0};
	writer_append(w, &r, sizeof r);
	writer_leave(w);
}

void trace_arg(uint32_t domain, uint32_t key, enum wire_arg_kind kind, uint64_t value)
{
	struct writer *w = writer_enter();
	if (!w)
		return;
	struct wire_arg r = {writer_head(WIRE_ARG, (uint8_t)kind, key, sizeof r), value, domain, 0};
	if (range_is_written(w, domain)) {
		if (!key || !intern_again(key) || (!value && (kind == WIRE_ARG_TEXT || kind == WIRE_ARG_JSON)))
			lose(WIRE_LOST_STRINGS, 1);
		else
			writer_append(w, &r, sizeof r);
	}
	writer_leave(w);
}

static void arg(uint32_t domain, const char *key, enum wire_arg_kind kind, uint64_t value)
{
	if (key)
		trace_arg(domain, intern_cstr(key), kind, value);
}

static void trace_arg_text(uint32_t domain, const char *key, const char *value) { arg(domain, key, WIRE_ARG_TEXT, intern_cstr(value)); }
static void arg_json(uint32_t domain, const char *key, const char *json) { arg(domain, key, WIRE_ARG_JSON, intern_cstr(json)); }
static void arg_i64(uint32_t domain, const char *key, int64_t value) { arg(domain, key, WIRE_ARG_I64, (uint64_t)value); }

static void arg_f64(uint32_t domain, const char *key, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	arg(domain, key, WIRE_ARG_F64, bits);
}

static int trace_wanted(void)
{
	struct writer *w = writer_enter();
	if (!w)
		return 0;
	writer_leave(w);
	return 1;
}

static void arg_name(uint32_t domain, uint32_t key, int kind, uint64_t value)
{
	bool is_text = kind == WIRE_ARG_TEXT || kind == WIRE_ARG_JSON;
	if (!is_text || intern_again((uint32_t)value))
		trace_arg(domain, key, (enum wire_arg_kind)kind, value);
}

static void arg_i64s(uint32_t domain, uint32_t key, const int64_t *values, uint32_t n)
{
	struct { struct wire_arg arg; int64_t v[WIRE_MAX_NUMBERS]; } r;
	struct writer *w = intern_given(key) ? writer_enter() : NULL;
	if (!w)
		return;
	n = n < WIRE_MAX_NUMBERS ? n : WIRE_MAX_NUMBERS;
	uint32_t bytes = (uint32_t)(sizeof r.arg + n * sizeof r.v[0]);
	r.arg = (struct wire_arg){writer_head(WIRE_ARG, WIRE_ARG_I64S, key, bytes), n, domain, 0};
	memcpy(r.v, values, n * sizeof r.v[0]);
	if (range_is_written(w, domain)) {
		if (!intern_again(key))
			lose(WIRE_LOST_STRINGS, 1);
		else
			writer_append(w, &r, bytes);
	}
	writer_leave(w);
}

void name_thread(uint32_t thread, const char *name, size_t n)
{
	struct wire_thread_name r = {writer_head(WIRE_THREAD_NAME, 0, start_names() ? intern_surely(name, n) : 0, sizeof r), .thread = thread};
	if (r.head.id)
		keep(&r, sizeof r, false);
}

static void trace_thread_name(const char *name)
{
	if (name)
		name_thread(sys_tid(), name, strlen(name));
}

static void trace_collect(int on) { control_pause(!on); }
static void leaving(void) { start_end(); }

static void note_of_program(const char *kind, const char *text, int loss)
{
	if (kind && text)
		note(kind, loss != 0, text, NULL);
}

/* ---- being asked for ---- */

__attribute__((visibility("default"))) opscope_trace_get_fn opscope_trace_get;
const struct opscope_trace_table *opscope_trace_get(uint32_t version)
{
	static const struct opscope_trace_table table = {
		.version = OPSCOPE_TRACE_VERSION, .bytes = sizeof table, .name = trace_text_id, .domain = trace_domain_of, .push = trace_push, .push_op = push_op, .pop = trace_pop,
		.start = trace_start_range, .end = trace_end, .mark = trace_mark, .counter_i64 = counter_i64, .counter_f64 = counter_f64, .step = trace_step, .memory = trace_memory,
		.arg_text = trace_arg_text, .arg_json = arg_json, .arg_i64 = arg_i64, .arg_f64 = arg_f64, .thread_name = trace_thread_name, .collect = trace_collect,
		.wanted = trace_wanted, .arg_name = arg_name, .arg_i64s = arg_i64s, .leaving = leaving, .note = note_of_program,
	};
	return version && version <= OPSCOPE_TRACE_VERSION && start() ? &table : NULL;
}
