/* When events are wanted: always, or only from a delay on, for a duration, inside ranges of a name, during some steps, between cudaProfilerStart
 * and Stop. All that was asked for must hold. Each change is a switch; they are counted from 0, the state in which a segment begins. */
#ifndef OPSCOPE_COLLECT_CONTROL_H
#define OPSCOPE_COLLECT_CONTROL_H

#include "writer.h"

/* Reads the options. */
void control_init(int64_t start_ns);
/* Instead of that: always. */
void control_always(void);
/* Instead of both, for one capture: what somebody asked for (ask.h). from_ns: CLOCK_REALTIME, 0 = when the segment is there; for_ns: how long from then on, 0 = no end;
 * steps: from the first that begins then, 0 = not by steps; key: what they are, "" = the program's own. Before the segment is made. */
struct control_asked {
	int64_t from_ns, for_ns, steps;
	const char *key;
};
void control_ask(const struct control_asked *a);
/* Whether it has come to be recorded; for how long it was, from then until it was over; how many of the steps have begun; whether nothing will come any more. */
bool control_began(void);
int64_t control_recorded_ns(void);
int64_t control_steps(void);
bool control_is_over(int64_t now_ns);
/* Now nothing is wanted any more; after the segment has gone: nothing is waited for. */
void control_over(int64_t now_ns);
void control_rest(void);
/* Says in live->epoch whether events are wanted now, for a segment that was just made. */
void control_publish(uint32_t generation);
/* What the `number`-th switch of the segment was; without a time and a reason where that is not known any more. */
void control_switch(uint32_t generation, uint32_t number, struct wire_switch *to);
/* In a forked child: of the ranges that it was told of, so many are those of the thread that forked. The others nobody will end here. */
void control_forked(uint32_t open);

/* What it has to be now; each event asks, while control_next_ns is not INT64_MAX. */
void control_time(int64_t now_ns);

/* Names matter: tell each push, start and pop, also while nothing is recorded. */
extern bool control_names;
/* A range begins. True: tell control_end when it is over. */
bool control_begin(const char *text, size_t n, uint32_t domain);
void control_end(void);
void control_step(int64_t number);
void control_pause(bool pause); /* ITT's pause and resume, opscope_pause */

#endif
