#include "opscope/schedule.h"

#include <inttypes.h>
#include <stdio.h>

enum { ACTIONS = OPSCOPE_EXIT + 1 };

static const char *const action_names[ACTIONS] = {"NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "EXIT"};
static const char *const operation_names[] = {"", "prepare", "start", "stop", "ready", "close-step", "open-step", "kineto-step"};
enum { OPERATIONS = sizeof operation_names / sizeof *operation_names };

const char *opscope_action_name(int action)
{
	return action >= 0 && action < ACTIONS ? action_names[action] : NULL;
}

const char *opscope_operation_name(int operation)
{
	return operation > 0 && operation < OPERATIONS ? operation_names[operation] : NULL;
}

static int schedule_say(char *message, size_t size, const char *field, int64_t value, const char *expected)
{
	if (message && size)
		snprintf(message, size, "schedule: %s=%" PRId64 ": %s", field, value, expected);
	return -1;
}

/* The length of a cycle in *steps. */
static int schedule_check_(const struct opscope_schedule_spec *s, int64_t *steps, char *message, size_t size)
{
	const struct {
		const char *name;
		int64_t value;
	} fields[] = {{"wait", s->wait}, {"warmup", s->warmup}, {"repeat", s->repeat}, {"skip_first", s->skip_first}};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].value < 0)
			return schedule_say(message, size, fields[i].name, fields[i].value, "0 or more was expected");
	if (s->active < 1)
		return schedule_say(message, size, "active", s->active, "1 or more was expected");
	if (__builtin_add_overflow(s->wait, s->warmup, steps) || __builtin_add_overflow(*steps, s->active, steps))
		return schedule_say(message, size, "active", s->active, "wait + warmup + active must be less than 2^63");
	return 0;
}

int opscope_schedule_check(const struct opscope_schedule_spec *s, char *message, size_t message_size)
{
	int64_t steps;
	if (message && message_size)
		*message = 0;
	if (!s)
		return 0;
	if (schedule_check_(s, &steps, message, message_size) < 0)
		return -1;
	if (s->warmup)
		return 0;
	if (message && message_size)
		snprintf(message, message_size, "schedule: warmup=0: the first recorded step will hold the start of the profiler itself");
	return 1;
}

int opscope_schedule(const struct opscope_schedule_spec *s, int64_t step, char *error, size_t error_size)
{
	int64_t cycle;
	if (step < 0)
		return schedule_say(error, error_size, "step", step, "0 or more was expected");
	if (!s)
		return OPSCOPE_RECORD;
	if (schedule_check_(s, &cycle, error, error_size) < 0)
		return -1;
	if (step < s->skip_first)
		return OPSCOPE_NONE;
	/* unsigned: step and wait together may pass 2^63 */
	uint64_t at = (uint64_t)(step - s->skip_first) + (s->skip_first_wait ? (uint64_t)s->wait : 0);
	if (s->repeat && at / (uint64_t)cycle >= (uint64_t)s->repeat)
		return OPSCOPE_NONE;
	int64_t in_cycle = (int64_t)(at % (uint64_t)cycle);
	if (in_cycle < s->wait)
		return OPSCOPE_NONE;
	if (in_cycle - s->wait < s->warmup)
		return OPSCOPE_WARMUP;
	return in_cycle < cycle - 1 ? OPSCOPE_RECORD : OPSCOPE_RECORD_AND_SAVE;
}

struct transition {
	uint8_t n, operation[4];
	const char *warning;
};

#define PREPARE OPSCOPE_OP_PREPARE
#define START OPSCOPE_OP_START
#define STOP OPSCOPE_OP_STOP
#define READY OPSCOPE_OP_READY
#define NOTHING {0, {0}, NULL}

static const struct transition transitions[OPSCOPE_EXIT][ACTIONS] = {
	[OPSCOPE_NONE] = {
		NOTHING, {1, {PREPARE}, NULL}, {2, {PREPARE, START}, NULL}, {2, {PREPARE, START}, NULL}, NOTHING,
	},
	[OPSCOPE_WARMUP] = {
		{2, {START, STOP}, "Incorrect schedule: WARMUP followed by NONE: nothing was recorded after the warmup"},
		NOTHING, {1, {START}, NULL}, {1, {START}, NULL}, {2, {START, STOP}, NULL},
	},
	[OPSCOPE_RECORD] = {
		{1, {STOP}, "Incorrect schedule: RECORD followed by NONE: what was recorded is not saved"},
		{1, {STOP}, "Incorrect schedule: RECORD followed by WARMUP: what was recorded is not saved"},
		NOTHING, NOTHING, {2, {STOP, READY}, NULL},
	},
	[OPSCOPE_RECORD_AND_SAVE] = {
		{2, {STOP, READY}, NULL}, {3, {STOP, READY, PREPARE}, NULL}, {4, {STOP, READY, PREPARE, START}, NULL},
		{4, {STOP, READY, PREPARE, START}, NULL}, {2, {STOP, READY}, NULL},
	},
};

int opscope_transition(int from, int to, enum opscope_operation operations[4], const char **warning)
{
	if (warning)
		*warning = NULL;
	if (from < 0 || from >= OPSCOPE_EXIT || to < 0 || to >= ACTIONS)
		return -1;
	const struct transition *t = &transitions[from][to];
	for (unsigned i = 0; i < t->n; i++)
		operations[i] = (enum opscope_operation)t->operation[i];
	if (warning)
		*warning = t->warning;
	return t->n;
}
