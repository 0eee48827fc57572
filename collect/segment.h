/* The file: mapped once at its greatest length, which costs addresses alone; room on disk is asked for piece by piece before it is touched, so
 * that a full disk is an error of a call and not a signal. No descriptor stays open that the program could close or meet. */
#ifndef OPSCOPE_COLLECT_SEGMENT_H
#define OPSCOPE_COLLECT_SEGMENT_H

#include "writer.h"

struct segment_options {
	const char *dir;         /* absolute */
	int64_t max_bytes;       /* 0 = no bound */
	enum wire_full full;
	int64_t rank, world;     /* as in wire_header */
};

/* A new file for this process, header and first room; -1 = not possible, errno says why. `forked`: see wire_header. */
int segment_open(const struct segment_options *o, bool forked);
/* After that: the process has a file that says so, until it has a segment; or counts in that of its parent, where false = there is none. */
void segment_absent(const struct segment_options *o);
bool segment_lose_in_parents(uint64_t n);
/* NULL = there is none. */
struct wire_header *segment_header(void);
/* The same for who is neither busy with a writer nor holds the slow lock: until segment_unuse the segment stays mapped. After NULL no unuse. */
struct wire_header *segment_use(void);
void segment_unuse(void);
/* Of the one that was opened last. */
const char *segment_path(void);
/* Counted from 1; another one in each next segment. */
uint32_t segment_generation(void);

/* A fresh chunk, its header filled, `committed` 0. NULL = no room; noted the first time, counted by who wanted it. For WIRE_KEEP the slow lock is held. */
struct wire_chunk *segment_chunk(enum wire_chunk_kind kind, uint32_t bytes, uint32_t tid, uint32_t number, uint32_t ordinal);
/* An ordinary chunk of events to which nothing more will be written: a ring may use it again. */
void segment_retire(struct wire_chunk *c);
/* Why there was no chunk. */
enum wire_loss segment_why_full(void);

/* Touches the next chunks, so that threads need not; asks for more room on disk. By the helper. */
void segment_prepare(void);
/* What the helper waits for between its seconds: a number that changes when chunks run short. */
extern _Atomic uint32_t segment_short;

void segment_anchor(void);
/* Gives back what was asked for and not used. */
void segment_end(void);
/* The same, and the process goes on without a segment: nobody gets another chunk. True: nobody can be touching it any more who is not busy with a
 * writer. segment_unmap, when those are out of it as well; without that its addresses stay taken. */
bool segment_shut(void);
void segment_unmap(void);

/* The lock of everything that happens seldom: strings, kept records, chunks of a ring. false = given up after some milliseconds of waiting,
 * or a second where `long_wait`; at once in a signal handler that interrupted the thread which has it. */
bool slow_lock(bool long_wait);
/* After that: what is lost by it. */
enum wire_loss slow_why_not(void);
void slow_unlock(void);

#endif
