/* When to profile: torch.profiler's schedules, step by step, for whoever captures.
 *
 *	struct opscope_schedule_spec s = {.wait = 1, .warmup = 1, .active = 3, .repeat = 2};
 *	struct opscope_stepper *p = opscope_stepper_new(&s, NULL, error, sizeof error);
 *	opscope_stepper_start(p, &todo);                      do what todo says, in its order
 *	for (each batch) { train(); opscope_stepper_step(p, &todo); ... }
 *	opscope_stepper_stop(p, &todo);
 *
 * The functions before the stepper are pure: the same arguments give the same answer, nothing is kept, any thread may call them.
 * What fails here is what the caller asked for, or there is no memory for a stepper, a tracker or a new requester: opscope_error_code is left
 * as it is.
 * Errors as in opscope.h: -1 or NULL, and one line in `error` (NULL, 0 is fine). Nothing is printed, no profiler is touched: what is
 * to be done is returned. The structs here are part of the binary interface: their fields stay as they are. */
#ifndef OPSCOPE_SCHEDULE_H
#define OPSCOPE_SCHEDULE_H

#include "opscope/opscope.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In steps. Leave out `skip_first` steps; then cycles of wait + warmup + active steps: `repeat` of them, 0 = without end.
 * skip_first_wait: anything but 0 = the first cycle has no wait. The others >= 0, active >= 1. */
struct opscope_schedule_spec {
	int64_t wait, warmup, active, repeat, skip_first, skip_first_wait;
};

/* What a step is for. */
enum opscope_action {
	OPSCOPE_NONE = 0,
	OPSCOPE_WARMUP = 1,
	OPSCOPE_RECORD = 2,
	OPSCOPE_RECORD_AND_SAVE = 3, /* the last active step of a cycle: a trace is complete after it */
	OPSCOPE_EXIT = 4,            /* not of a step: where the last transition goes */
};
/* "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "EXIT"; NULL for other numbers. */
OPSCOPE_API const char *opscope_action_name(int action);

/* 0, or 1 with a warning in `message`, or -1 with what is wrong in it: which argument, its value, what it should be. */
OPSCOPE_API int opscope_schedule_check(const struct opscope_schedule_spec *s, char *message, size_t message_size);

/* The action of step `step`, from 0; -1 where opscope_schedule_check says -1, or the step is negative. `s` NULL is the schedule
 * of a run without one: RECORD always. */
OPSCOPE_API int opscope_schedule(const struct opscope_schedule_spec *s, int64_t step, char *error, size_t error_size);

/* What is to be done at the border of two steps. */
enum opscope_operation {
	OPSCOPE_OP_PREPARE = 1, /* get the profiler ready: buffers, subscriptions */
	OPSCOPE_OP_START = 2,   /* record from here on */
	OPSCOPE_OP_STOP = 3,    /* record no more */
	OPSCOPE_OP_READY = 4,   /* hand out the trace */
	OPSCOPE_OP_CLOSE_STEP = 5, /* end the range ProfilerStep#N; these two and the next are of steppers only */
	OPSCOPE_OP_OPEN_STEP = 6,  /* begin the range ProfilerStep#N */
	OPSCOPE_OP_KINETO_STEP = 7, /* tell the library below (Kineto) that a step is over */
};
/* "prepare", "start", "stop", "ready", "close-step", "open-step", "kineto-step"; NULL for other numbers. */
OPSCOPE_API const char *opscope_operation_name(int operation);

/* From a step's action to the next one's: the operations, in order, into `operations` (room for 4), their number returned.
 *
 *   from \ to          NONE            WARMUP               RECORD, RECORD_AND_SAVE      EXIT
 *   NONE               -               prepare              prepare start                -
 *   WARMUP             start stop (!)  -                    start                        start stop
 *   RECORD             stop (!)        stop (!)             -                            stop ready
 *   RECORD_AND_SAVE    stop ready      stop ready prepare   stop ready prepare start     stop ready
 *
 * (!) no schedule of opscope_schedule does this, one of your own may: *warning (may be NULL) is then a text that stays valid,
 * otherwise NULL. What was recorded is lost. -1: no such action; EXIT leads nowhere. */
OPSCOPE_API int opscope_transition(int from, int to, enum opscope_operation operations[4], const char **warning);

/* Counts steps for several requesters, e.g. the profiler and each optimizer, where each calls once a step: the global step is the
 * largest count, so that a step is counted once. Torch's KinetoStepTracker; an object here, not a global.
 * One tracker may be used by several threads at once: calls take turns, and each global step is reported to one caller.
 * opscope_tracker_new returns NULL when there is no memory. opscope_tracker_set then adds no new requester; opscope_tracker_count shows this. */
struct opscope_tracker;
OPSCOPE_API struct opscope_tracker *opscope_tracker_new(void);
OPSCOPE_API void opscope_tracker_free(struct opscope_tracker *t);

/* The requester counts from the current global step on, also one that counted before. `name` is copied. */
OPSCOPE_API void opscope_tracker_init(struct opscope_tracker *t, const char *name);
/* As torch's own dictionary lets one do: the requester's count becomes `count`; the global step learns of it at the next increment. */
OPSCOPE_API void opscope_tracker_set(struct opscope_tracker *t, const char *name, int64_t count);
/* Forgets the requester; the global step stays. 1 = it was there, 0 = unknown. */
OPSCOPE_API int opscope_tracker_erase(struct opscope_tracker *t, const char *name);
/* A requester's step is over; an unknown one is initialised first. Returns the global step, and in *kineto_steps (may be NULL) how
 * often the library below is to be told: 0 when others were ahead, usually 1. More than 1 comes with a `warning` (else it is "").
 * -1: the count is at its end (2^63 - 1), or there is no memory for a new requester; nothing is changed. */
OPSCOPE_API int64_t opscope_tracker_increment(struct opscope_tracker *t, const char *name, int64_t *kineto_steps, char *warning,
                                              size_t warning_size);
OPSCOPE_API int64_t opscope_tracker_current(struct opscope_tracker *t);
/* A requester's own count; -1 = unknown. */
OPSCOPE_API int64_t opscope_tracker_count(struct opscope_tracker *t, const char *name);

/* torch.profiler.profile's start(), step() and stop(): what each of them does, in order. The ranges ProfilerStep#N are opened and
 * closed only where a schedule was given. One stepper is for one thread. */
struct opscope_stepper;
struct opscope_todo {
	unsigned n;                      /* operations */
	enum opscope_operation operation[8];
	int64_t step;                    /* N of an open-step */
	int64_t closes;                  /* N of a close-step */
	int64_t kineto_steps;            /* how often a kineto-step */
	const char *warning;             /* of the transition or the tracker, valid until the next call; NULL = none */
};
/* `s` is copied and checked; NULL = always record. `t` is not owned and must outlive the stepper; NULL = it has its own. */
OPSCOPE_API struct opscope_stepper *opscope_stepper_new(const struct opscope_schedule_spec *s, struct opscope_tracker *t, char *error,
                                                        size_t error_size);
OPSCOPE_API void opscope_stepper_free(struct opscope_stepper *p);
/* 0, or -1 with nothing to do: started twice, not started, or stopped. After a stop it may be started again: at the same step. */
OPSCOPE_API int opscope_stepper_start(struct opscope_stepper *p, struct opscope_todo *todo);
OPSCOPE_API int opscope_stepper_step(struct opscope_stepper *p, struct opscope_todo *todo);
OPSCOPE_API int opscope_stepper_stop(struct opscope_stepper *p, struct opscope_todo *todo);

#ifdef __cplusplus
}
#endif

#endif
