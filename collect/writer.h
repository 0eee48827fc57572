/* How the files of collect/ put something into the segment. Nothing here calls malloc, prints, exits, or is a point at which a thread is cancelled;
 * everything may be called from any thread, also in callbacks. An event waits for a lock for some 40 ms at most, and for room in the file, or as what
 * happens once (a name, a fact, a new text that must not be missing), for a second: then it is given up. What cannot be written is counted
 * (enum wire_loss), never an error of the program that is being recorded.
 *
 *   struct writer *w = writer_enter();               // NULL: nothing is to be recorded now
 *   if (w) {
 *           struct wire_kernel *k = writer_room(w, sizeof *k);
 *           if (k) {                                 // NULL: no room, counted
 *                   *k = (struct wire_kernel){.head = writer_head(WIRE_KERNEL, 0, name, sizeof *k), ...};
 *                   writer_commit(w, sizeof *k);
 *           }
 *           writer_leave(w);                         // always after enter
 *   }
 * Between enter and leave no second enter: what a signal handler does there is counted as WIRE_LOST_NESTED. */
#ifndef OPSCOPE_COLLECT_WRITER_H
#define OPSCOPE_COLLECT_WRITER_H

#include "opscope/wire.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct depth;

/* Where a text was said last, and which one that was. */
struct near_text {
	uintptr_t at;
	uint32_t id;                   /* 0 = nothing yet */
};
enum { NEAR_TEXTS = 64 };

/* A thread's end of the segment; it alone uses it. */
struct writer {
	uint64_t epoch;                /* of `live` when this thread last looked */
	uint32_t used, size;           /* of the chunk's records */
	uint32_t kept;                 /* bytes of the chunk that are promised to the pops of recorded ranges that are open */
	_Atomic bool busy;             /* between enter and leave */
	bool on;                       /* events are wanted */
	char *records;
	struct wire_chunk *chunk;      /* NULL = none yet */
	uint32_t chunks;               /* so far */
	uint32_t tid, number;          /* number: 0 = not given yet; a forked child's thread keeps that of the parent's */
	uint32_t calls, gap;           /* since one was measured; the next one that is */
	uint64_t counted, cost_ns;     /* calls before that, and what they took */
	int64_t entered_ns;            /* when a measured call began, 0 = this one is not measured */
	uint64_t ranges;               /* started so far, for their numbers */
	struct depth *depth;           /* ranges.h: one a domain */
	uint32_t n_depths;
	uint32_t told_pushes;          /* of its open ranges, those that control.c waits for the end of */
	_Atomic uint32_t told_starts;  /* the same of ranges that any thread may end */
	size_t ready_depths;           /* bytes */
	void *passing;                 /* itt.c's, given back with munmap */
	size_t passing_bytes;
	_Atomic uint32_t owner;        /* tid, 0 = free */
	struct near_text near[NEAR_TEXTS]; /* intern_near */
};

/* Time has an influence on what is wanted that is not over (control.h); INT64_MAX = none. */
extern _Atomic int64_t control_next_ns;

/* live->phase. A forked child finds 0 there, whatever its parent had. Waiting: there was no segment to be had for a reason that may pass (no free
 * descriptor, a full disk); it is tried again now and then, and calls are counted. Idle: between two captures that the program makes of itself, and in its
 * forked children; until somebody asks for a recording. */
enum { PHASE_FRESH = 0, PHASE_STARTING, PHASE_RUNNING, PHASE_OFF, PHASE_WAITING, PHASE_IDLE };

/* What a fork takes away: a page that reads as zeros in the child (MADV_WIPEONFORK, or the handler of pthread_atfork). */
struct live {
	_Atomic uint64_t epoch;        /* generation << 32 | switches << 1 | on; 0 = look closely */
	_Atomic uint32_t lock, extending;
	_Atomic int32_t phase;
	_Atomic uint32_t opener;       /* thread that opens the segment */
	_Atomic int64_t retry_ns;      /* of CLOCK_MONOTONIC: when to try again, where that was not possible */
	_Atomic uint64_t missed;       /* calls until then that no segment has counted */
	_Atomic int32_t users;         /* segment_use */
	bool forked;                   /* the segment is that of a forked child */
};
extern struct live *live;

static inline int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

extern __thread struct writer *writer_self __attribute__((tls_model("initial-exec")));

/* The calling thread's writer, made at its first call, and busy; NULL = there is no segment (and none can be had). `on` may be false. */
struct writer *writer_look(void);
void writer_measured(struct writer *w);
/* Some calls are measured, and stand for those before them: the first ones, then fewer and fewer, at last each of so many. Odd, so that pushes and
 * pops take turns. */
enum { WRITER_GAP_MOST = 257 };

/* For those who must follow what happens also while nothing is recorded; others use writer_enter. */
static inline struct writer *writer_any(void)
{
	struct writer *w = writer_self;
	bool ready = w && !atomic_load_explicit(&w->busy, memory_order_relaxed);
	if (LIKELY(ready)) {
		/* First busy, then the look: who ends a capture does it the other way round (threads_quiet). */
		atomic_store_explicit(&w->busy, true, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		ready = w->epoch == atomic_load_explicit(&live->epoch, memory_order_acquire) &&
		        atomic_load_explicit(&control_next_ns, memory_order_relaxed) == INT64_MAX;
		if (UNLIKELY(!ready))
			atomic_store_explicit(&w->busy, false, memory_order_release);
	}
	if (UNLIKELY(!ready) && (atomic_load_explicit(&live->phase, memory_order_relaxed) == PHASE_IDLE || !(w = writer_look())))
		return NULL;
	atomic_signal_fence(memory_order_seq_cst);
	if (UNLIKELY(++w->calls >= w->gap) && !w->entered_ns)
		w->entered_ns = now_ns();
	return w;
}

static inline void writer_leave(struct writer *w)
{
	if (UNLIKELY(w->entered_ns))
		writer_measured(w);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&w->busy, false, memory_order_release); /* seen by whoever takes over when the thread is gone */
}

static inline struct writer *writer_enter(void)
{
	struct writer *w = writer_any();
	if (w && UNLIKELY(!w->on)) {
		writer_leave(w);
		return NULL;
	}
	return w;
}

/* Takes another chunk; NULL = none to be had, counted. */
void *writer_more(struct writer *w, uint32_t bytes);

/* Room for a record of `bytes`, a multiple of 8 and at most WIRE_MAX_RECORD. */
enum { WIRE_MAX_RECORD = WIRE_BLOCK / 2 + 4096 };
static inline void *writer_room(struct writer *w, uint32_t bytes)
{
	if (LIKELY(w->used + bytes + w->kept <= w->size))
		return w->records + w->used;
	return writer_more(w, bytes);
}

static inline void writer_commit(struct writer *w, uint32_t bytes)
{
	w->used += bytes;
	atomic_store_explicit((_Atomic uint32_t *)&w->chunk->committed, w->used, memory_order_release);
}

static inline struct wire_head writer_head(uint8_t type, uint8_t flags, uint32_t id, size_t bytes)
{
	return (struct wire_head){.type = type, .flags = flags, .words = WIRE_WORDS(bytes), .id = id};
}

/* A whole record of events at once; false = not written, counted. */
bool writer_append(struct writer *w, const void *record, uint32_t bytes);

/* The id of a text, the same for the same text; 0 = there is no place for more (not counted: say what is done about it). Longer texts are cut. */
uint32_t intern(const char *text, size_t n);
uint32_t intern_cstr(const char *text); /* NULL and "" are 0 */
/* Waits up to a second for other threads rather than give up, and counts a loss: for what happens once. */
uint32_t intern_surely(const char *text, size_t n);
/* The text again, NUL-terminated; it lives as long as the process. {NULL, 0} for 0. */
struct text {
	const char *p;
	size_t n;
};
struct text intern_text(uint32_t id);

/* A record that all others may refer to (k in wire.h): kept also when a ring is used again. `again`: once, however often it is said, and written
 * again into the process's next segment; for WIRE_DOMAIN, WIRE_CATEGORY, WIRE_RESOURCE, which a forked child's has, too, and for WIRE_DEVICE,
 * WIRE_CONTEXT, WIRE_STREAM, which it has not. false = no room, counted. */
bool keep(const void *record, uint32_t bytes, bool again);

/* A fact: wire_meta. `value` is interned. */
void keep_meta(const char *key, const char *value, size_t n);
void keep_meta_u64(const char *key, uint64_t value);

/* What could not be seen, and why. Once a kind: the second of one kind is left out. The text is put together from the pieces up to NULL. */
void note(const char *kind, int loss, ...) __attribute__((sentinel));

void lose(enum wire_loss reason, uint64_t n);

/* Whether records were wanted at that time, for events that come later than they happened. Where too much has happened since for that to be known: false, and
 * counted. */
bool control_wanted(int64_t time_ns);
/* cudaProfilerStart and Stop, cuProfilerStart and Stop. */
void control_cuda_profiler(bool start);

/* An option from the environment as it was at start; NULL = not set or empty. The name without "OPSCOPE_". */
const char *option(const char *name);

/* Something to do once a second in the library's own thread, after start, and at the end of the process. At most 16 of each. */
void helper_each_second(void (*f)(void));
/* For a forked child, which has no such thread until it asks for one. */
void helper_start(void);
void helper_at_exit(void (*f)(void));
/* False in a forked child that has not asked for one: whoever holds handles of a driver asks this first. */
bool helper_is_here(void);

#endif
