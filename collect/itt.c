/* Intel's ITT: the part of it in a program loads the library that INTEL_LIBITTNOTIFY64 names and has it fill a list of functions. Layouts are
 * those of ittnotify (the struct ___itt_global and its parts), written down here. Only the plain names are filled: the wide ones do not exist on
 * Linux. */
#include "control.h"
#include "intern.h"
#include "ranges.h"
#include "segment.h"
#include "start.h"
#include "sys.h"
#include "trace.h"

#include <pthread.h>
#include <string.h>

struct itt_domain {
	volatile int flags;             /* not 0: the program calls */
	const char *name;
	const void *wide_name;
	int number;                     /* "extra1": ours */
	void *extra;
	struct itt_domain *next;
};

struct itt_string {
	const char *text;
	const void *wide_text;
	int number;
	void *extra;
	struct itt_string *next;
};

struct itt_id {                         /* by value in calls */
	uint64_t d1, d2, d3;
};

struct itt_function {
	const char *name;
	void **at;
	void *at_start;
	void *when_off;
	uint32_t group;
};

struct itt_global {
	unsigned char magic[8];
	unsigned long version[3];
	volatile long initialized, mutex_initialized, counter;
	pthread_mutex_t mutex;
	void *library, *error_handler;
	const char **path;
	struct itt_function *functions;
};
_Static_assert(sizeof(struct itt_domain) == 48 && sizeof(struct itt_string) == 40 && sizeof(struct itt_function) == 40, "ittnotify");

enum { COUNTERS_MOST = 4096, EVENTS_MOST = 4096, STRINGS_MOST = 1 << 18, PASSING_MOST = 64, PASSING_BYTES = 1000 };

/* What handles point to: tables of our own, by our numbers. Addresses only until they are used. */
static struct {
	struct itt_domain *domain;
	struct itt_string *string;
	_Atomic size_t ready_strings;   /* bytes; set under the slow lock */
} table;

/* Texts of emit_itt are another one each time: kept only for a while, by thread, since they are used at once. */
struct passing {
	struct itt_string handle[PASSING_MOST];
	char text[PASSING_MOST][PASSING_BYTES];
	unsigned next;
};

static struct itt_string full_handle = {.text = "(too many texts)"};

static bool ours(const void *p, const void *base, size_t n, size_t size)
{
	return base && (const char *)p >= (const char *)base && (const char *)p < (const char *)base + n * size;
}

/* Handles that the program had before the library came are its own, and found by name. */
static uint32_t itt_domain_of(const struct itt_domain *d)
{
	if (!d)
		return 0;
	if (ours(d, table.domain, DOMAINS_MOST, sizeof *d))
		return (uint32_t)(d - table.domain);
	return d->name ? ranges_domain(d->name, strlen(d->name), WIRE_API_ITT) : 0;
}

static struct event itt_event_of(const struct itt_domain *d, const struct itt_string *s)
{
	struct event e = {.domain = itt_domain_of(d)};
	if (ours(s, table.string, STRINGS_MOST + 1, sizeof *s)) {
		e.id = (uint32_t)(s - table.string);
	} else if (s && s->text) {
		e.text = s->text;
		e.n = strlen(s->text);
	}
	return e;
}

/* ---- domains and texts ---- */

static struct itt_domain *domain_create(const char *name)
{
	uint32_t id = name && start_names() ? ranges_domain(name, strlen(name), WIRE_API_ITT) : 0;
	struct itt_domain *d = id && table.domain ? &table.domain[id] : NULL;
	if (d && !d->flags) {
		d->name = ranges_domain_name(id).p;
		d->number = (int)id;
		d->flags = 1;
	}
	return d;
}

static struct itt_string *passing_string(const char *text, size_t n)
{
	struct writer *w = writer_any();
	struct itt_string *s = NULL;
	if (!w)
		return NULL;
	if (!w->passing && (w->passing = sys_memory(sizeof(struct passing))))
		w->passing_bytes = sizeof(struct passing);
	struct passing *p = w->passing;
	if (p) {
		unsigned i = p->next++ % PASSING_MOST;
		memcpy(p->text[i], text, n + 1);
		s = &p->handle[i];
		s->text = p->text[i];
	}
	writer_leave(w);
	return s;
}

static bool has_string(uint32_t id)
{
	size_t have = atomic_load_explicit(&table.ready_strings, memory_order_acquire), need = (id + 1) * sizeof *table.string;
	if (LIKELY(need <= have))
		return true;
	if (!slow_lock(true))
		return false;
	have = atomic_load_explicit(&table.ready_strings, memory_order_relaxed);
	bool ready = sys_ready(table.string, &have, need, true);
	atomic_store_explicit(&table.ready_strings, have, memory_order_release);
	slow_unlock();
	return ready;
}

static struct itt_string *string_create(const char *text)
{
	size_t n = text ? strlen(text) : 0;
	if (!n || !start_names())
		return NULL;
	struct itt_string *s = n < PASSING_BYTES && range_text_is_numbered(text, n) ? passing_string(text, n) : NULL;
	if (s)
		return s;
	uint32_t id = table.string ? intern_surely(text, n) : 0;
	if (!id || !has_string(id))
		return &full_handle;
	s = &table.string[id];
	__atomic_store_n(&s->text, intern_text(id).p, __ATOMIC_RELAXED);
	return s;
}

/* ---- tasks, marks, frames ---- */

static void task_begin(const struct itt_domain *d, struct itt_id task, struct itt_id parent, struct itt_string *name)
{
	struct event e = itt_event_of(d, name);
	range_push(&e);
}

static void task_begin_function(const struct itt_domain *d, struct itt_id task, struct itt_id parent, void *function)
{
	static const char digit[] = "0123456789abcdef";
	char text[20], *p = text + sizeof text;
	uintptr_t v = (uintptr_t)function;
	do {
		*--p = digit[v & 15];
	} while (v >>= 4);
	*--p = 'x';
	*--p = '0';
	struct event e = {.text = p, .n = (size_t)(text + sizeof text - p), .domain = itt_domain_of(d)};
	range_push(&e);
}

static void task_end(const struct itt_domain *d) { range_pop(itt_domain_of(d)); }

static void task_group(const struct itt_domain *d, struct itt_id id, struct itt_id parent, struct itt_string *name)
{
	struct event e = itt_event_of(d, name);
	range_mark(&e);
}

static void marker(const struct itt_domain *d, struct itt_id id, struct itt_string *name, int scope)
{
	struct event e = itt_event_of(d, name);
	range_mark(&e);
}

/* Even and not 0: see range_start_as. */
static uint64_t number_of(const struct itt_domain *d, struct itt_id id)
{
	uint64_t n = (id.d1 * UINT64_C(0x9e3779b97f4a7c15)) ^ (id.d2 * UINT64_C(0xc2b2ae3d27d4eb4f)) ^ ((uint64_t)itt_domain_of(d) << 48);
	return (n ? n : 1) << 1;
}

static void task_begin_overlapped(const struct itt_domain *d, struct itt_id task, struct itt_id parent, struct itt_string *name)
{
	struct event e = itt_event_of(d, name);
	range_start_as(&e, number_of(d, task));
}

static void task_end_overlapped(const struct itt_domain *d, struct itt_id task) { range_end(number_of(d, task), itt_domain_of(d)); }

/* Frames have no name: they are called as their domain is. */
static void frame_begin(const struct itt_domain *d, const struct itt_id *id)
{
	struct event e = {.domain = itt_domain_of(d)};
	struct text name = ranges_domain_name(e.domain);
	e.text = name.p;
	e.n = name.n;
	range_start_as(&e, number_of(d, id ? *id : (struct itt_id){0}));
}

static void frame_end(const struct itt_domain *d, const struct itt_id *id)
{
	range_end(number_of(d, id ? *id : (struct itt_id){0}), itt_domain_of(d));
}

static void region_begin(const struct itt_domain *d, struct itt_id id, struct itt_id parent, struct itt_string *name)
{
	struct event e = itt_event_of(d, name);
	range_start_as(&e, number_of(d, id));
}

static void region_end(const struct itt_domain *d, struct itt_id id) { range_end(number_of(d, id), itt_domain_of(d)); }

/* ---- events: user-defined ones by number ---- */

static _Atomic uint32_t event_text[EVENTS_MOST];
static _Atomic uint32_t n_events;

static int event_create(const char *name, int n)
{
	uint32_t id = name && n > 0 && start_names() ? intern_surely(name, strnlen(name, (size_t)n)) : 0, have = atomic_load(&n_events);
	if (!id)
		return 0;
	for (uint32_t i = 0; i < have && i < EVENTS_MOST; i++)
		if (atomic_load_explicit(&event_text[i], memory_order_relaxed) == id)
			return (int)i + 1;
	uint32_t i = have < EVENTS_MOST ? atomic_fetch_add(&n_events, 1) : EVENTS_MOST;
	if (i >= EVENTS_MOST) {
		lose(WIRE_LOST_DOMAINS, 1);
		return 0;
	}
	atomic_store_explicit(&event_text[i], id, memory_order_relaxed);
	return (int)i + 1;
}

static int event_start(int event)
{
	if (event < 1 || event > EVENTS_MOST)
		return 1;
	struct event e = {.id = atomic_load_explicit(&event_text[event - 1], memory_order_relaxed)};
	range_start_as(&e, (uint64_t)sys_tid() << 32 | (uint64_t)event << 1 | UINT64_C(1) << 63);
	return 0;
}

static int event_end(int event)
{
	range_end((uint64_t)sys_tid() << 32 | (uint64_t)event << 1 | UINT64_C(1) << 63, 0);
	return 0;
}

/* ---- counters ---- */

enum { TYPE_U64 = 1, TYPE_S64, TYPE_U32, TYPE_S32, TYPE_U16, TYPE_S16, TYPE_F32, TYPE_F64 };

struct itt_counter {
	_Atomic uint32_t name;          /* 0 = free */
	uint32_t domain;
	int type;
	_Atomic uint64_t value;         /* of those that are counted up and down */
};
static struct itt_counter counters[COUNTERS_MOST];

/* By name and domain: the same one again, and no search over all of them. */
static struct itt_counter *counter_create_typed(const char *name, const char *domain, int type)
{
	uint32_t id = name && start_names() ? intern_surely(name, strlen(name)) : 0, d = 0;
	struct itt_counter *found = NULL;
	if (!id)
		return NULL;
	if (domain && *domain)
		d = ranges_domain(domain, strlen(domain), WIRE_API_ITT);
	if (!slow_lock(true)) {
		lose(slow_why_not(), 1);
		return NULL;
	}
	for (uint32_t i = 0, at = id * 31 + d; i < 64 && !found; i++, at++) {
		struct itt_counter *c = &counters[at % COUNTERS_MOST];
		uint32_t has = atomic_load_explicit(&c->name, memory_order_relaxed);
		if (!has) {
			c->domain = d;
			c->type = type;
			atomic_store_explicit(&c->name, id, memory_order_release);
		}
		if (!has || (has == id && c->domain == d))
			found = c;
	}
	slow_unlock();
	if (!found)
		lose(WIRE_LOST_DOMAINS, 1);
	return found;
}

static struct itt_counter *counter_create(const char *name, const char *domain) { return counter_create_typed(name, domain, TYPE_U64); }

static struct itt_counter *counter_create_v3(const struct itt_domain *d, const char *name, int type)
{
	return counter_create_typed(name, d ? d->name : NULL, type);
}

static void set(struct itt_counter *c, enum wire_payload kind, uint64_t value)
{
	counter(c->domain, atomic_load_explicit(&c->name, memory_order_acquire), kind, value);
}

/* What `p` points to; false where ITT's number of the type is none. */
static bool itt_read_number(int type, const void *p, enum wire_payload *kind, uint64_t *v)
{
	union {
		int64_t s64;
		uint32_t u32;
		int32_t s32;
		uint16_t u16;
		int16_t s16;
		float f32;
	} n;
	static const uint8_t bytes[] = {0, 8, 8, 4, 4, 2, 2, 4, 8};
	double f;
	if (type < TYPE_U64 || type > TYPE_F64)
		return false;
	memcpy(&n, p, bytes[type]);
	*kind = type == TYPE_F32 || type == TYPE_F64 ? WIRE_F64 : type % 2 ? WIRE_U64 : WIRE_I64;
	switch (type) {
	case TYPE_U32: *v = n.u32; break;
	case TYPE_S32: *v = (uint64_t)(int64_t)n.s32; break;
	case TYPE_U16: *v = n.u16; break;
	case TYPE_S16: *v = (uint64_t)(int64_t)n.s16; break;
	case TYPE_F32: f = (double)n.f32, memcpy(v, &f, 8); break;
	default: memcpy(v, p, 8);
	}
	return true;
}

static void counter_set_value(struct itt_counter *c, const void *value)
{
	enum wire_payload kind;
	uint64_t v;
	if (!c || !value || !itt_read_number(c->type, value, &kind, &v))
		return;
	atomic_store_explicit(&c->value, v, memory_order_relaxed);
	set(c, kind, v);
}

static void itt_add(struct itt_counter *c, uint64_t delta)
{
	if (c)
		set(c, WIRE_I64, atomic_fetch_add_explicit(&c->value, delta, memory_order_relaxed) + delta);
}

static void counter_inc(struct itt_counter *c) { itt_add(c, 1); }
static void counter_dec(struct itt_counter *c) { itt_add(c, (uint64_t)-1); }
static void counter_inc_delta(struct itt_counter *c, uint64_t by) { itt_add(c, by); }
static void counter_dec_delta(struct itt_counter *c, uint64_t by) { itt_add(c, 0 - by); }

/* ---- what is said of a task ---- */

static void metadata_text(const struct itt_domain *d, struct itt_id id, struct itt_string *key, const char *data, size_t n)
{
	struct event k = itt_event_of(d, key);
	if (data)
		trace_arg(k.domain, k.id ? k.id : intern(k.text, k.n), WIRE_ARG_TEXT, intern(data, n ? strnlen(data, n) : strlen(data)));
}

/* One number; of several the first ones would be told without the others. */
static void itt_metadata(const struct itt_domain *d, struct itt_id id, struct itt_string *key, int type, size_t n, const void *data)
{
	struct event k = itt_event_of(d, key);
	enum wire_payload kind;
	uint64_t v;
	if (data && n == 1 && itt_read_number(type, data, &kind, &v))
		trace_arg(k.domain, k.id ? k.id : intern(k.text, k.n), kind == WIRE_F64 ? WIRE_ARG_F64 : WIRE_ARG_I64, v);
}

/* ---- the rest ---- */

static void thread_set_name(const char *name)
{
	if (name)
		name_thread(sys_tid(), name, strlen(name));
}

static void pause_all(void) { control_pause(true); }
static void resume_all(void) { control_pause(false); }

static const struct {
	const char *name;
	void (*function)(void);
} functions[] = {
#define F(name, f) {"__itt_" name, (void (*)(void))(f)}
	F("domain_create", domain_create), F("string_handle_create", string_create), F("task_begin", task_begin), F("task_begin_fn", task_begin_function),
	F("task_end", task_end), F("task_group", task_group), F("marker", marker), F("task_begin_overlapped", task_begin_overlapped),
	F("task_end_overlapped", task_end_overlapped), F("frame_begin_v3", frame_begin), F("frame_end_v3", frame_end), F("region_begin", region_begin),
	F("region_end", region_end), F("event_create", event_create), F("event_start", event_start), F("event_end", event_end),
	F("counter_create", counter_create), F("counter_create_typed", counter_create_typed), F("counter_create_v3", counter_create_v3),
	F("counter_set_value", counter_set_value), F("counter_set_value_v3", counter_set_value), F("counter_inc", counter_inc),
	F("counter_dec", counter_dec), F("counter_inc_delta", counter_inc_delta), F("counter_dec_delta", counter_dec_delta),
	F("metadata_add", itt_metadata), F("metadata_str_add", metadata_text), F("thread_set_name", thread_set_name), F("pause", pause_all), F("resume", resume_all),
};

static void *function_of(const char *name)
{
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		if (strcmp(functions[i].name, name) == 0)
			return (void *)(uintptr_t)functions[i].function;
	return NULL;
}

__attribute__((visibility("default"))) void __itt_api_init(struct itt_global *g, int groups);
void __itt_api_init(struct itt_global *g, int groups)
{
	bool on = g && start();
	(void)groups;
	if (on && slow_lock(true)) {
		if (!table.domain)
			table.domain = sys_memory(DOMAINS_MOST * sizeof *table.domain);
		if (!table.string)
			table.string = sys_reserve((STRINGS_MOST + 1) * sizeof *table.string);
		slow_unlock();
	}
	for (struct itt_function *f = g ? g->functions : NULL; f && f->name; f++) {
		void *with = on ? function_of(f->name) : NULL;
		__atomic_store_n(f->at, with ? with : f->when_off, __ATOMIC_RELEASE);
	}
}
