#include "control.h"

#include "ranges.h"
#include "segment.h"
#include "sys.h"

#include "opscope/ask.h"

#include <stdlib.h>
#include <string.h>

/* Of two switches in each step of 5 ms, those of two minutes: longer than CUPTI keeps what it recorded. Pages of it count when they are used. */
enum { HISTORY = 1 << 16 };

static struct {
	/* What was asked for. */
	char range[512], domain[256];
	bool by_domain, prefix, domain_prefix, by_range, by_steps, by_cuda; /* prefix: the text is how it begins */
	int64_t first_step, last_step;
	int64_t from_ns, to_ns;
	/* How it stands. */
	_Atomic int64_t open;           /* ranges of the name */
	_Atomic int64_t begun;          /* steps */
	_Atomic bool steps_over, in_steps, cuda, paused;
	/* Of what was asked for, while there is a segment. */
	bool asked, any_steps;          /* any_steps: numbers and ranges, whichever the program has */
	_Atomic int kind;               /* enum step_kind */
	int64_t for_ns;                 /* from the making of the segment on, 0 = not by that */
	_Atomic int64_t began_ns, ended_ns;
} c;

/* The latest switches. `stamp` says which one the slot holds (STAMP), why, and whether it was on; 0 while that is being written. */
static struct {
	_Atomic uint64_t stamp;
	_Atomic int64_t time_ns;
} history[HISTORY];
enum { STAMP_ON = 0x80, STAMP_WHY = 0x7f, STAMP_BITS = 8 };
#define STAMP(generation, number) ((uint64_t)(generation) << 39 | (uint64_t)(number) << STAMP_BITS)

_Atomic int64_t control_next_ns = INT64_MAX;
bool control_names;

static bool control_wanted_(int64_t now)
{
	return now >= c.from_ns && now < c.to_ns && (!c.by_range || c.open > 0) && (!c.by_steps || (c.in_steps && !c.steps_over)) &&
	       (!c.by_cuda || c.cuda) && !c.paused;
}

enum step_kind { STEPS_UNKNOWN, STEPS_RANGES, STEPS_NUMBERS };

/* A step that was asked for is of the kind that came first, and began after the moment that was asked for. */
static bool control_is_asked(enum step_kind kind, int64_t now)
{
	int before = STEPS_UNKNOWN;
	if (!c.asked)
		return true;
	if (now < c.from_ns)
		return false;
	return atomic_compare_exchange_strong(&c.kind, &before, kind) || before == (int)kind;
}

static int64_t control_later(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void next_time(int64_t now)
{
	atomic_store_explicit(&control_next_ns, now < c.from_ns ? c.from_ns : now < c.to_ns && c.to_ns < INT64_MAX ? c.to_ns : INT64_MAX,
	                      memory_order_relaxed);
}

static void keep_switch(bool on, enum wire_why why, int64_t now)
{
	struct wire_switch r = {writer_head(WIRE_SWITCH, on, why, sizeof r), now};
	keep(&r, sizeof r, false);
}

/* Only by who made the switch. */
static void control_remember(uint32_t generation, uint32_t number, bool on, enum wire_why why, int64_t now)
{
	uint32_t at = number % HISTORY;
	atomic_store_explicit(&history[at].stamp, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&history[at].time_ns, now, memory_order_relaxed);
	atomic_store_explicit(&history[at].stamp, STAMP(generation, number) | (on ? STAMP_ON : 0) | (unsigned)why, memory_order_release);
}

enum recall { FORGOTTEN, RECALLED, NOT_YET };

static enum recall recall(uint32_t generation, uint32_t number, struct wire_switch *to)
{
	uint32_t at = number % HISTORY;
	uint64_t stamp = atomic_load_explicit(&history[at].stamp, memory_order_acquire), asked = STAMP(generation, number);
	int64_t time_ns = atomic_load_explicit(&history[at].time_ns, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if (stamp >> STAMP_BITS > asked >> STAMP_BITS)
		return FORGOTTEN;
	if (stamp >> STAMP_BITS != asked >> STAMP_BITS || atomic_load_explicit(&history[at].stamp, memory_order_relaxed) != stamp)
		return NOT_YET;
	*to = (struct wire_switch){writer_head(WIRE_SWITCH, (stamp & STAMP_ON) != 0, stamp & STAMP_WHY, sizeof *to), time_ns};
	return RECALLED;
}

/* Two threads may have changed what `wanted` looks at. Each looks again after its own switch, so the last one leaves what holds. */
static void decide(enum wire_why why, int64_t now)
{
	uint64_t epoch = atomic_load(&live->epoch);
	while (epoch && (epoch & 1) != control_wanted_(now)) {
		uint32_t number = ((uint32_t)epoch >> 1) + 1;
		bool on = !(epoch & 1);
		if (atomic_compare_exchange_strong(&live->epoch, &epoch, (epoch & ~(uint64_t)UINT32_MAX) | (uint64_t)number << 1 | on)) {
			control_remember((uint32_t)(epoch >> 32), number, on, why, now);
			keep_switch(on, why, now);
			if (on && !c.began_ns)
				c.began_ns = now;
			c.ended_ns = on ? 0 : now;
			epoch = atomic_load(&live->epoch);
		}
	}
}

void control_switch(uint32_t generation, uint32_t number, struct wire_switch *to)
{
	if (recall(generation, number, to) != RECALLED)
		*to = (struct wire_switch){writer_head(WIRE_SWITCH, 0, 0, sizeof *to), 0};
}

void control_forked(uint32_t open) { c.open = open; }

void control_publish(uint32_t generation)
{
	int64_t now = now_ns();
	if (c.asked && c.for_ns)
		c.to_ns = control_later(now, c.for_ns);
	bool on = control_wanted_(now);
	next_time(now);
	control_remember(generation, 0, on, 0, now);
	if (!on) /* how a segment begins that has nothing to say yet */
		keep_switch(on, 0, now);
	c.began_ns = on ? now : 0;
	c.ended_ns = 0;
	atomic_store(&live->epoch, (uint64_t)generation << 32 | on);
}

void control_time(int64_t now)
{
	if (now < atomic_load_explicit(&control_next_ns, memory_order_relaxed))
		return;
	next_time(now);
	decide(now >= c.to_ns ? WIRE_WHY_DURATION : WIRE_WHY_DELAY, now);
}

static bool control_is_text(const char *text, size_t n, const char *asked, bool prefix)
{
	size_t want = strlen(asked);
	return (prefix ? n >= want : n == want) && (!want || memcmp(text, asked, want) == 0);
}

static bool control_is_range(const char *text, size_t n, uint32_t domain)
{
	if (!control_is_text(text, n, c.range, c.prefix))
		return false;
	struct text d = c.by_domain ? ranges_domain_name(domain) : (struct text){NULL, 0};
	return !c.by_domain || control_is_text(d.p, d.n, c.domain, c.domain_prefix);
}

bool control_begin(const char *text, size_t n, uint32_t domain)
{
	if (!control_is_range(text, n, domain))
		return false;
	if (c.by_steps) {
		if (!control_is_asked(STEPS_RANGES, c.asked ? now_ns() : 0))
			return false;
		int64_t number = atomic_fetch_add(&c.begun, 1); /* from 0, as reports count them */
		if (number == c.first_step) {
			c.in_steps = true;
			decide(WIRE_WHY_KEY_RANGE, now_ns());
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
		decide(WIRE_WHY_KEY_RANGE, now_ns());
	} else if (atomic_fetch_sub(&c.open, 1) == 1) {
		decide(WIRE_WHY_RANGE, now_ns());
	}
}

/* Each ends where the next one begins. */
static void control_count_step(void)
{
	int64_t now = now_ns();
	if (!atomic_load(&live->epoch) || !control_is_asked(STEPS_NUMBERS, now))
		return;
	int64_t number = atomic_fetch_add(&c.begun, 1);
	c.in_steps = true;
	if (number > c.last_step)
		c.steps_over = true;
	decide(WIRE_WHY_STEPS, now);
}

/* Steps that the program numbers itself, where no range was named for them. */
void control_step(int64_t number)
{
	if (c.any_steps) {
		control_count_step();
		return;
	}
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
	uint32_t generation = (uint32_t)(epoch >> 32), newest = (uint32_t)epoch >> 1, oldest = newest < HISTORY ? 0 : newest - HISTORY + 1, low = oldest;
	struct wire_switch s;
	if (!newest)
		return epoch & 1;
	for (uint32_t high = newest + 1; low < high;) { /* the first one that came later */
		uint32_t middle = low + (high - low) / 2;
		enum recall r = recall(generation, middle, &s);
		if (r == FORGOTTEN || (r == RECALLED && s.time_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	bool known = low > oldest || !oldest; /* before the beginning it was as at the beginning */
	if (known && recall(generation, low ? low - 1 : 0, &s) == RECALLED)
		return s.head.flags;
	lose(WIRE_LOST_WINDOW, 1);
	return false;
}

/* ---- options ---- */

/* Without the backslashes; where it ends in '*' without one that is left out. */
static bool control_take_text(const char *s, const char *end, char *to, size_t room)
{
	size_t n = 0;
	bool star = false;
	for (; s < end && n < room - 1; s++) {
		star = *s == '*' && s + 1 == end;
		s += *s == '\\' && s + 1 < end;
		to[n++] = *s;
	}
	to[n -= star] = 0;
	return star;
}

/* "NAME", of any domain; "NAME@DOMAIN"; "NAME@": of the default one. Either may end in '*': how the text begins. The last '@' counts; a backslash takes
 * the meaning from '@', '*' and itself. */
static void set_range(const char *s)
{
	const char *end = s + strlen(s), *at = NULL;
	for (const char *p = s; p < end; p++) {
		at = *p == '@' ? p : at;
		p += *p == '\\' && p + 1 < end;
	}
	c.prefix = control_take_text(s, at ? at : end, c.range, sizeof c.range);
	c.by_domain = at;
	c.domain_prefix = at && control_take_text(at + 1, end, c.domain, sizeof c.domain);
	control_names = true;
}

static void control_set_steps(const char *s)
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
	c.from_ns = delay ? control_later(start_ns, sys_number(delay, &end)) : INT64_MIN;
	c.to_ns = duration ? control_later(delay ? c.from_ns : start_ns, sys_number(duration, &end)) : INT64_MAX;
	if (steps) {
		control_set_steps(steps);
		if (key)
			set_range(key);
	} else if (range) {
		set_range(range);
		c.by_range = true;
	}
	c.by_cuda = cuda && strcmp(cuda, "1") == 0;
}

void control_always(void)
{
	c.from_ns = INT64_MIN;
	c.to_ns = INT64_MAX;
}

void control_ask(const struct control_asked *a)
{
	c.from_ns = a->from_ns;
	c.to_ns = a->from_ns && a->for_ns ? control_later(a->from_ns, a->for_ns) : INT64_MAX;
	c.for_ns = a->from_ns ? 0 : a->for_ns;
	c.by_range = c.by_cuda = c.by_steps = c.any_steps = false;
	c.in_steps = c.steps_over = false;
	c.begun = c.open = 0;
	c.kind = STEPS_UNKNOWN;
	c.asked = true;
	if (!a->steps)
		return;
	c.first_step = 0;
	c.last_step = a->steps - 1;
	c.by_steps = true;
	c.any_steps = !a->key[0];
	set_range(a->key[0] ? a->key : ASK_STEP_RANGE);
}

bool control_began(void) { return c.began_ns; }

int64_t control_recorded_ns(void)
{
	int64_t end = c.ended_ns > c.to_ns ? c.to_ns : c.ended_ns;
	return c.began_ns && end > c.began_ns ? end - c.began_ns : 0;
}

int64_t control_steps(void)
{
	int64_t begun = c.by_steps ? c.begun : 0;
	return begun > c.last_step + 1 ? c.last_step + 1 : begun;
}

bool control_is_over(int64_t now) { return now >= c.to_ns || (c.by_steps && c.steps_over); }

void control_over(int64_t now)
{
	if (c.to_ns > now)
		c.to_ns = now;
	decide(WIRE_WHY_DURATION, now);
	next_time(now);
}

void control_rest(void)
{
	c.by_steps = c.any_steps = control_names = false;
	atomic_store_explicit(&control_next_ns, INT64_MAX, memory_order_relaxed);
}
