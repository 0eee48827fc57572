#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"
#include "opscope/schedule.h"

#define REQUESTER "ProfilerStep"

struct opscope_stepper {
	struct opscope_schedule_spec spec;
	bool scheduled, running, owns_tracker;
	struct opscope_tracker *tracker;
	int64_t step;
	int action;              /* of `step` */
	char warning[256];
};

static void make_stepper(void *stepper)
{
	*(struct opscope_stepper **)stepper = NEW(struct opscope_stepper);
}

struct opscope_stepper *opscope_stepper_new(const struct opscope_schedule_spec *s, struct opscope_tracker *t, char *error,
                                            size_t error_size)
{
	int action = opscope_schedule(s, 0, error, error_size);
	if (action < 0)
		return NULL;
	struct opscope_stepper *p = NULL;
	struct opscope_tracker *tracker = t ? t : opscope_tracker_new();
	if (!tracker || mem_try(NULL, make_stepper, &p) < 0) {
		if (!t)
			opscope_tracker_free(tracker);
		if (error && error_size)
			snprintf(error, error_size, "out of memory");
		return NULL;
	}
	if (s)
		p->spec = *s;
	p->scheduled = s != NULL;
	p->owns_tracker = !t;
	p->tracker = tracker;
	p->action = action;
	opscope_tracker_init(p->tracker, REQUESTER);
	return p;
}

void opscope_stepper_free(struct opscope_stepper *p)
{
	if (!p)
		return;
	opscope_tracker_erase(p->tracker, REQUESTER);
	if (p->owns_tracker)
		opscope_tracker_free(p->tracker);
	mem_free(p);
}

static void stepper_add(struct opscope_todo *todo, enum opscope_operation operation)
{
	todo->operation[todo->n++] = operation;
}

static void move(struct opscope_todo *todo, int from, int to)
{
	enum opscope_operation operations[4];
	int n = opscope_transition(from, to, operations, &todo->warning);
	for (int i = 0; i < n; i++)
		stepper_add(todo, operations[i]);
}

static void open_step(const struct opscope_stepper *p, struct opscope_todo *todo)
{
	if (p->scheduled)
		stepper_add(todo, OPSCOPE_OP_OPEN_STEP);
	todo->step = p->step;
}

static void close_step(const struct opscope_stepper *p, struct opscope_todo *todo)
{
	if (p->scheduled)
		stepper_add(todo, OPSCOPE_OP_CLOSE_STEP);
	todo->closes = p->step;
}

static int stepper_begin(const struct opscope_stepper *p, struct opscope_todo *todo, bool running)
{
	*todo = (struct opscope_todo){.step = p->step, .closes = p->step};
	return p->running == running ? 0 : -1;
}

int opscope_stepper_start(struct opscope_stepper *p, struct opscope_todo *todo)
{
	if (stepper_begin(p, todo, false) < 0)
		return -1;
	p->running = true;
	move(todo, OPSCOPE_NONE, p->action);
	open_step(p, todo);
	return 0;
}

int opscope_stepper_step(struct opscope_stepper *p, struct opscope_todo *todo)
{
	if (stepper_begin(p, todo, true) < 0 || p->step == INT64_MAX)
		return -1;
	int from = p->action;
	close_step(p, todo);
	p->action = opscope_schedule(p->scheduled ? &p->spec : NULL, ++p->step, NULL, 0);
	move(todo, from, p->action);
	opscope_tracker_increment(p->tracker, REQUESTER, &todo->kineto_steps, p->warning, sizeof p->warning);
	if (todo->kineto_steps)
		stepper_add(todo, OPSCOPE_OP_KINETO_STEP);
	if (*p->warning)
		todo->warning = p->warning; /* a schedule of opscope_schedule gives none of its own */
	open_step(p, todo);
	return 0;
}

int opscope_stepper_stop(struct opscope_stepper *p, struct opscope_todo *todo)
{
	if (stepper_begin(p, todo, true) < 0)
		return -1;
	p->running = false;
	close_step(p, todo);
	move(todo, p->action, OPSCOPE_EXIT);
	return 0;
}
