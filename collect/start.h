/* The life of the library in a process. */
#ifndef OPSCOPE_COLLECT_START_H
#define OPSCOPE_COLLECT_START_H

#include "segment.h"
#include "writer.h"

/* From every entry point: true when there is a segment to write to, or may be one. The first call makes it, if OPSCOPE_DIR says where. */
bool start(void);
bool start_waits(void);
/* Names that later calls use are kept for a segment that is to come: start_waits, or nobody has asked for a recording yet. */
bool start_keeps(void);
/* For who gives names that later calls use: true also while start_keeps, when texts and domains are kept for the segment that is to come. */
bool start_names(void);
/* The same for a thread that finds the process fresh: a forked child goes on in a segment of its own if its parent had one. False: the call was counted. */
bool start_again(void);
/* Captures that the program makes of itself (opscope/capture.h): 0, or an errno, negative. `begun` and `ends`: something to do in a segment that was
 * just made, or is to be ended. */
int start_own(const struct segment_options *options, void (*begun)(void));
int end_own(void (*ends)(void));
/* The same for what was asked for (ask.h); end_own ends it. */
struct control_asked;
int start_asked(const struct segment_options *options, const struct control_asked *asked, void (*begun)(void));
/* Who listens for those who ask, which stands above this file: made known when the library is loaded. */
struct start_asking {
	/* Sockets are in the folder `dir`; folders with captures in o->dir, which is copied. Once a process. False: there is no thread to be had. */
	bool (*start)(const char *dir, const struct segment_options *o);
	void (*forked)(void);      /* in a forked child: its copies of the descriptors are closed */
	void (*end)(void);         /* the process ends: the socket goes */
	void (*leave)(void);       /* the thread is to end, as its last but one */
	int (*threads)(void);      /* how many threads that is: 0 or 1 */
};
void start_register(const struct start_asking *a);
/* Whether captures are made when somebody asks for them, and no others. */
bool start_on_demand(void);
/* A thread of the library's own, which gets no signals. False: there is none to be had. */
bool start_thread(void *(*run)(void *));
/* Whether the process, or the one that it was forked from, has made such a capture, or makes them on demand. */
bool start_is_own(void);
/* The same for what opening a segment itself needs: whoever writes a text or a record outside of writer_enter and writer_leave. */
bool start_inside(void);
/* The process leaves in order, by exit() or because it said so: its segment is complete. May be called more than once. */
void start_end(void);

#endif
