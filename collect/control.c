#include "control.h"

#include "ranges.h"
#include "segment.h"
#include "sys.h"

#include <stdlib.h>
#include <string.h>

enum { HISTORY = 256 };

static struct {
	/* What was asked for. */
	char range[512], domain[256];   /* "" = any domain; the name may end in '*' */
	bool by_domain, prefix, by_range, by_steps, by_cuda;
	int64_t first_step, last_step;
	int64_t from_ns, to_ns;
	/* How it stands. */
	_Atomic int64_t open;           /* ranges of the name */
	_Atomic int64_t begun;          /* steps */
	_Atomic bool steps_over, in_steps, cuda, paused;
	_Atomic int64_t when[HISTORY];
	_Atomic uint8_t why[HISTORY];
	uint32_t generation;
} c;

_Atomic int64_t control_next_ns = INT64_MAX;
bool control_names;

static bool wanted(int64_t now)
{
	return now >= c.from_ns && now < c.to_ns && (!c.by_range || c.open > 0) && (!c.by_steps || (c.in_steps && !c.steps_over)) &&
	       (!c.by_cuda || c.cuda) && !c.paused;
}

static void next_time(int64_t now)
{
	atomic_store_explicit(&control_next_ns, now < c.from_ns ? c.from_ns : now < c.to_ns && c.to_ns < INT64_MAX ? c.to_ns : INT64_MAX,
	                      memory_order_relaxed);
}

static void keep_switch(uint32_t number)
{
	struct wire_switch r;
	control_switch(number, &r);
	keep(&r, sizeof r, false);
}

/* Two threads may have changed what `wanted` looks at. Each looks again after its own switch, so the last one leaves what holds. */
static void decide(enum wire_why why, int64_t now)
{
	uint64_t epoch = atomic_load(&live->epoch);
	while (epoch && (epoch & 1) != wanted(now)) {
		uint32_t number = ((uint32_t)epoch >> 1) + 1;
		c.when[number % HISTORY] = now;
		c.why[number % HISTORY] = (uint8_t)(why | (epoch & 1 ? 0 : 0x80));
		if (atomic_compare_exchange_strong(&live->epoch, &epoch, (epoch & ~(uint64_t)UINT32_MAX) | (uint64_t)number << 1 | !(epoch & 1))) {
			keep_switch(number);
			epoch = atomic_load(&live->epoch);
		}
	}
}

void control_switch(uint32_t number, struct wire_switch *to)
{
	uint8_t why = c.why[number % HISTORY];
	*to = (struct wire_switch){writer_head(WIRE_SWITCH, why >> 7, why & 0x7f, sizeof *to), c.when[number % HISTORY]};
}

void control_publish(uint32_t generation)
{
	int64_t now = now_ns();
	bool on = wanted(now);
	next_time(now);
	c.generation = generation;
	c.when[0] = now;
	c.why[0] = on ? 0x80 : 0;
	if (!on) /* how a segment begins that has nothing to say yet */
		keep_switch(0);
	atomic_store(&live->epoch, (uint64_t)generation << 32 | on);
}

void control_time(int64_t now)
{
	if (now < atomic_load_explicit(&control_next_ns, memory_order_relaxed))
		return;
	next_time(now);
	decide(now >= c.to_ns ? WIRE_WHY_DURATION : WIRE_WHY_DELAY, now);
}

static bool is_range(const char *text, size_t n, uint32_t domain)
{
	size_t want = strlen(c.range);
	if (c.prefix ? n < want : n != want)
		return false;
	if (memcmp(text, c.range, want) != 0)
		return false;
	if (!c.by_domain)
		return true;
	struct text d = ranges_domain_name(domain);
	return d.n == strlen(c.domain) && (!d.n || memcmp(d.p, c.domain, d.n) == 0);
}

bool control_begin(const char *text, size_t n, uint32_t domain)
{
	if (!is_range(text, n, domain))
		return false;
	if (c.by_steps) {
		int64_t number = atomic_fetch_add(&c.begun, 1); /* from 0, as reports count them */
		if (number == c.first_step) {
			c.in_steps = true;
			decide(WIRE_WHY_STEPS, now_ns());
		}
		return number == c.last_step;
	}
	if (atomic_fetch_add(&c.open, 1) == 0)
		decide(WIRE_WHY_RANGE, now_ns());
	return true;
}

void control_end(void)
{
	if (c.by_steps) {
		c.steps_over = true;
		decide(WIRE_WHY_STEPS, now_ns());
	} else if (atomic_fetch_sub(&c.open, 1) == 1) {
		decide(WIRE_WHY_RANGE, now_ns());
	}
}

/* Steps that the program numbers itself, where no range was named for them. */
void control_step(int64_t number)
{
	if (!c.by_steps || control_names)
		return;
	c.in_steps = number >= c.first_step;
	c.steps_over = number > c.last_step;
	decide(WIRE_WHY_STEPS, now_ns());
}

void control_cuda_profiler(bool on)
{
	c.cuda = on;
	decide(WIRE_WHY_CUDA_PROFILER, now_ns());
}

void control_pause(bool pause)
{
	c.paused = pause;
	decide(WIRE_WHY_CALL, now_ns());
}

bool control_wanted(int64_t time_ns)
{
	uint64_t epoch = atomic_load(&live->epoch);
	if (!epoch)
		return false;
	uint32_t number = (uint32_t)epoch >> 1, oldest = number < HISTORY - 8 ? 0 : number - (HISTORY - 8);
	for (uint32_t i = number; i > oldest && time_ns < c.when[i % HISTORY]; i--)
		number = i - 1;
	return c.why[number % HISTORY] & 0x80;
}

/* ---- options ---- */

static int64_t later(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* "NAME" or "NAME@DOMAIN", as nsys has it; "@" alone after the name is the default domain. */
static void set_range(const char *s)
{
	const char *at = strrchr(s, '@');
	size_t n = at ? (size_t)(at - s) : strlen(s);
	n = n < sizeof c.range ? n : sizeof c.range - 1;
	memcpy(c.range, s, n);
	c.range[n] = 0;
	c.prefix = n && c.range[n - 1] == '*';
	if (c.prefix)
		c.range[n - 1] = 0;
	c.by_domain = at;
	if (at)
		strncpy(c.domain, at + 1, sizeof c.domain - 1);
	control_names = true;
}

static void set_steps(const char *s)
{
	const char *end;
	c.first_step = sys_number(s, &end);
	c.last_step = end[0] == '.' && end[1] == '.' ? end[2] ? sys_number(end + 2, &end) : INT64_MAX : c.first_step;
	c.by_steps = true;
}

void control_init(int64_t start_ns)
{
	const char *delay = option("DELAY_NS"), *duration = option("DURATION_NS"), *range = option("RANGE"), *steps = option("STEPS"),
	           *key = option("STEP_RANGE"), *cuda = option("CUDA_PROFILER"), *end;
	c.from_ns = delay ? later(start_ns, sys_number(delay, &end)) : INT64_MIN;
	c.to_ns = duration ? later(delay ? c.from_ns : start_ns, sys_number(duration, &end)) : INT64_MAX;
	if (steps) {
		set_steps(steps);
		if (key)
			set_range(key);
	} else if (range) {
		set_range(range);
		c.by_range = true;
	}
	c.by_cuda = cuda && strcmp(cuda, "1") == 0;
}
