/* The life of the library in a process. */
#ifndef OPSCOPE_COLLECT_START_H
#define OPSCOPE_COLLECT_START_H

#include "segment.h"
#include "writer.h"

/* live->phase. A forked child finds 0 there, whatever its parent had. Waiting: there was no segment to be had for a reason that may pass (no free
 * descriptor, a full disk); it is tried again now and then, and calls are counted. Idle: between
 * two captures that the program makes of itself, and in its forked children. */
enum { PHASE_FRESH = 0, PHASE_STARTING, PHASE_RUNNING, PHASE_OFF, PHASE_WAITING, PHASE_IDLE };

/* From every entry point: true when there is a segment to write to, or may be one. The first call makes it, if OPSCOPE_DIR says where. */
bool start(void);
bool start_waits(void);
/* For who gives names that later calls use: true also while start_waits, when texts and domains are kept for the segment that is to come. */
bool start_names(void);
/* The same for a thread that finds the process fresh: a forked child goes on in a segment of its own if its parent had one. False: the call was counted. */
bool start_again(void);
/* Captures that the program makes of itself (opscope/capture.h): 0, or an errno, negative. `begun` and `ends`: something to do in a segment that was
 * just made, or is to be ended. */
int start_own(const struct segment_options *options, void (*begun)(void));
int end_own(void (*ends)(void));
/* Whether the process, or the one that it was forked from, has made such a capture. */
bool start_is_own(void);
/* The same for what opening a segment itself needs: whoever writes a text or a record outside of writer_enter and writer_leave. */
bool start_inside(void);
/* The process leaves in order, by exit() or because it said so: its segment is complete. May be called more than once. */
void start_end(void);

#endif
