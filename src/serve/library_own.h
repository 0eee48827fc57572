/* What the parts of the library share: library.c, which reads inputs and lets them go, and library_look.c, which finds and watches them. */
#ifndef OPSCOPE_SERVE_LIBRARY_OWN_H
#define OPSCOPE_SERVE_LIBRARY_OWN_H

#include "base/arena.h"
#include "serve/library.h"

#include <stdatomic.h>

/* What a file was when it was looked at: other values mean other content. */
struct stamp {
	uint64_t device, inode, size;
	int64_t changed_ns;
	uint64_t progress;            /* of a file that is written through memory */
	bool absent, is_file;
};

struct library_private {
	struct library *library;
	struct stamp loading, read;   /* of the file: when the reading in progress began, and the last that was finished */
	struct stamp last;            /* as it was seen last */
	struct timeline *timeline;
	pthread_mutex_t make;         /* held while the timeline is made */
	unsigned holds;
	atomic_uint turns;            /* threads that are at their turn or wait for it */
	uint64_t used;                /* library.clock at the last hold */
	uint64_t bytes;               /* of profile and timeline */
	struct waste *waste;          /* room for what is let go, so that it can be where there is no memory */
	bool no_memory;               /* why the last reading failed */
	bool stale;                   /* to be let go as soon as nobody holds it; nobody new gets it */
	bool remote;                  /* it came of an address */
	bool was_file;                /* a regular one: what else is there later may keep a reader waiting for ever */
	unsigned rereads;             /* one after the other, since the file changed meanwhile */
	bool again;                   /* and then, or after the reading in progress, to be read at once */
	bool seen;                    /* by the look in progress */
	struct str root;              /* the directory that its path, with links followed, must not leave; n == 0: any will do */
	struct library_waiter *waiters;
	struct library_kept {
		char *text;           /* NULL = nothing was noted */
		size_t n;
		uint64_t contents;
	} note[LIBRARY_NOTES];
};

struct waste;

/* Entries by a text that each has for itself: open addressing, linear probing, load <= 1/2. */
struct library_names {
	struct library_entry **slot;  /* NULL = free */
	uint32_t n_slots;             /* a power of two, or 0 */
};

struct library {
	pthread_mutex_t lock;         /* everything below, and the entries but `ask` and what it guards */
	pthread_cond_t work;
	pthread_t loader, watcher;
	struct library_entry **entry; /* in order */
	unsigned n, cap;
	char **path;
	unsigned n_paths, n_waiters;
	struct waste *waste;
	uint64_t version, clock, generation, memory_bytes;
	time_t looked_at_s;           /* when addresses were looked at, CLOCK_MONOTONIC; 0 = not yet */
	bool closing, follow_links;
	unsigned (*look)(const struct profile *p);
	struct str *left_out;         /* links out of the directories */
	unsigned n_left_out;
	struct arena left_arena;      /* owns those */
	struct library_names paths, keys;
	struct arena arena;           /* owns the strings */
};

struct stamp stamp_of(const struct library_entry *x);

/* But for progress: what is read of a file that tells that is sound all the same. */
static inline bool stamp_same_file(struct stamp a, struct stamp b)
{
	return a.absent == b.absent && a.device == b.device && a.inode == b.inode && a.size == b.size && a.changed_ns == b.changed_ns;
}

static inline bool stamp_eq(struct stamp a, struct stamp b) { return stamp_same_file(a, b) && a.progress == b.progress; }

/* The file of *x was seen as `now`: counts it where that is other content. Locked. */
void library_note_content(struct library *l, struct library_entry *x, struct stamp now);

/* Lets go of what is in memory; whoever waits for other content gets it. Locked. */
void library_let_go(struct library *l, struct library_entry *x);
/* Unlocks, and frees what was let go. */
void library_unlock(struct library *l);

/* For mem_undo_begin. */
static inline void library_undo_lock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/* Looks what stands at the paths now. ERR_IO for one that cannot be read; the others are looked at all the same. */
int library_look_again(struct library *l, struct err *e);
/* Does so every few seconds until the library is being closed: a thread's function, of a struct library. */
void *library_watch(void *context);

#endif
