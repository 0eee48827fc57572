/* The life of the library in a process. */
#ifndef OPSCOPE_COLLECT_START_H
#define OPSCOPE_COLLECT_START_H

#include "writer.h"

/* live->phase. A forked child finds 0 there, whatever its parent had. */
enum { PHASE_FRESH = 0, PHASE_STARTING, PHASE_RUNNING, PHASE_OFF };

/* From every entry point: true when there is a segment to write to. The first call makes it, if OPSCOPE_DIR says where. */
bool start(void);
/* The same for a thread that finds the process fresh: a forked child goes on in a segment of its own if its parent had one. */
bool start_again(void);
/* The same for what opening a segment itself needs: whoever writes a text or a record outside of writer_enter and writer_leave. */
bool start_inside(void);

#endif
