/* The inputs that are served: found, watched, loaded when first asked for, let go when memory is short.
 *
 * An entry is a trace file. It keeps its key as long as the server runs, whatever becomes of the file. Entries are never freed
 * before the library, so pointers to them stay good; what they hold is kept while it is in use (library_hold). */
#ifndef OPSCOPE_SERVE_LIBRARY_H
#define OPSCOPE_SERVE_LIBRARY_H

#include "analysis/timeline/timeline.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/profile.h"

#include <pthread.h>

enum entry_state { ENTRY_FOUND, ENTRY_QUEUED, ENTRY_LOADING, ENTRY_READY, ENTRY_FAILED, ENTRY_GONE };
extern const char *const entry_state_name[];

struct library;

struct library_entry {
	struct str key;               /* "run/worker/span": what `input` names it by */
	struct str run, worker, span, path;
	/* The rest by library_look or while held. */
	enum entry_state state;
	uint64_t done_bytes, total_bytes; /* while loading */
	char error[1024];             /* of ENTRY_FAILED */
	uint64_t content;             /* grows whenever other content is seen in the file, be it read or not */
	uint64_t bytes;               /* of the file, as it was seen last */
	int64_t changed_ns;           /* when it was written, since 1970; 0 = not known */
	bool absent;                  /* the file is no longer there; what is in memory can still be shown */
	uint64_t generation;          /* of what is held: another one for other content; 0 = not read yet */
	unsigned marks;               /* what library_options.look said, once it was read */
	uint32_t problems;            /* that reading it met: profile->diags grows while passes run */
	struct str met;               /* the same as text (serve/problems.h); of ENTRY_READY, lives as long as the profile */
	struct profile *profile;      /* while held and ENTRY_READY */
	pthread_mutex_t ask;          /* of library_turn_begin */
	struct library_private *own;
};

/* What waits for an entry; `ready` is called once, on another thread, when the entry is ready (and then is held for it) or cannot be. */
struct library_waiter {
	struct library_waiter *next;
	void (*ready)(struct library_waiter *w, struct library_entry *x, bool held);
};

struct library_options {
	const char *const *paths;
	unsigned n_paths;
	uint64_t memory_bytes;        /* 0 = half of memory_limit() */
	bool follow_links;            /* in directories also those that lead out of them */
	unsigned (*look)(const struct profile *p); /* at what was read, before anybody else has it; NULL = nothing is wanted */
};

/* Looks at the paths once; then a thread looks for changes every few seconds. ERR_IO when a path cannot be read. */
struct library *library_open(const struct library_options *o, struct err *e);
/* Loads nothing more: those who wait are told so, and library_hold fails. */
void library_refuse(struct library *l);
/* Whether library_refuse was called: what takes long gives up. */
bool library_ends(struct library *l);
/* After the last library_release. False when what is being read is not done `until` (CLOCK_REALTIME; NULL = however long it takes): nothing is
 * freed then, since it is still used. */
bool library_close(struct library *l, const struct timespec *until);

/* Grows whenever anything that library_look shows has changed. */
uint64_t library_version(struct library *l);

/* Calls see(context, entry) for each entry in order of run, worker and span, with the entries locked: be brief. */
void library_look(struct library *l, void (*see)(void *context, const struct library_entry *x), void *context);

/* Calls see(context, path) for each link that leads out of the directory which was given and is therefore left out; locked as well. */
void library_left_out(struct library *l, void (*see)(void *context, struct str path), void *context);

/* Looks whether the entry's file has changed, without waiting for the thread that does: what is held after this is what was there then. */
void library_renew(struct library *l, struct library_entry *x);

/* By key; when there is one entry in all, by the empty key as well. NULL = none. */
struct library_entry *library_find(struct library *l, struct str key);

/* The one of these names; where several have them, the first. NULL = none. */
struct library_entry *library_find_span(struct library *l, struct str run, struct str worker, struct str span);
bool library_has_run(struct library *l, struct str run);
/* What stands for the contents of all inputs of the run that are there: another number for other contents. */
uint64_t library_run_content(struct library *l, struct str run);
/* The first of the run that was not read yet and may be; NULL = none. */
struct library_entry *library_unread(struct library *l, struct str run);

enum library_hold { HOLD_READY, HOLD_WAITS, HOLD_FAILED, HOLD_FULL };

/* Keeps the entry's profile from being let go. HOLD_READY: library_release is owed. HOLD_WAITS: it is being loaded; if `waits`, w
 * is kept until w->ready. HOLD_FAILED: library_news says why; it will not be tried again before the file changes, unless there was no memory for
 * it. HOLD_FULL: too many wait already. */
enum library_hold library_hold(struct library *l, struct library_entry *x, struct library_waiter *w, bool waits);
void library_release(struct library *l, struct library_entry *x);
/* The same for a thread that needs several inputs one after the other: returns when the entry is held, or cannot be. 0, and library_release is owed; -1 and *e: it
 * cannot be read (ERR_DATA), or not now (ERR_LIMIT, ERR_NOMEM). */
int library_hold_here(struct library *l, struct library_entry *x, struct err *e);

/* The same for as long as a request looks at the entry, which is let go of when memory runs out, too. library_visit_end is owed after 0. */
struct library_visit {
	struct library *l;
	struct library_entry *x;
	struct mem_undo undo;
};
int library_visit_begin(struct library_visit *v, struct library *l, struct library_entry *x, struct err *e);
void library_visit_end(struct library_visit *v);

/* One thread at a time adds to a held entry's profile (analysis_run, reports, slices), between these two calls. When memory runs out in a turn, the
 * profile is marked as broken and the turn ends by itself; nobody new gets the profile, and the file is read again. library_turn_begin: -1 and
 * ERR_NOMEM when the profile is broken. library_turn_end hands what the thread's mem_try has allocated to the profile. While others wait for their turns, what a turn made stays for
 * the next (store/reuse.h). */
struct library_turn {
	struct library_entry *x;
	struct mem_undo undo;
};
int library_turn_begin(struct library_turn *t, struct library_entry *x, struct err *e);
void library_turn_end(struct library_turn *t);

struct library_news {
	enum entry_state state;
	uint64_t done_bytes, total_bytes;
	char error[1024];
	bool no_memory;               /* that is why it failed: it may go better the next time */
};
/* How far an entry is that is not held. */
void library_news(struct library *l, struct library_entry *x, struct library_news *out);

/* What is found out about an input and kept beyond what is in memory, as long as the file holds the same. */
enum library_note {
	NOTE_SUMMARY,                 /* of the input */
	NOTE_JOB_SUMMARY,             /* of the run whose first input it is */
	NOTE_IS_JOB,                  /* whether that run is a job */
	LIBRARY_NOTES
};
/* Keeps a text, with a number that stands for the contents of the files that it tells of; the text of other contents is dropped. */
void library_note_put(struct library *l, struct library_entry *x, enum library_note which, uint64_t contents, struct str text);
/* Appends the text that is kept for these contents to *out. False: there is none. */
bool library_note_get(struct library *l, struct library_entry *x, enum library_note which, uint64_t contents, struct buf *out);

/* library_entry.content, of an entry that is neither held nor locked. */
uint64_t library_content(struct library *l, const struct library_entry *x);
/* The n paths that were given; the library owns them. */
const char *const *library_paths(const struct library *l, unsigned *n);
/* Whether the entry is in memory, or will be soon. */
bool library_is_wanted(struct library *l, const struct library_entry *x);
/* Reads the file for the caller alone, who frees the profile (profile_free): the library keeps nothing of it, and lets go of nothing for it. To be called within a mem_try.
 * NULL and *e: it cannot be read. */
struct profile *library_read_apart(struct library *l, struct library_entry *x, struct err *e);

/* The entry's timeline, made when first asked for. Of a held entry. It may be read without x->ask. */
const struct timeline *library_timeline(struct library *l, struct library_entry *x, struct err *e);

/* The file has been changed by ourselves: it will be read again once nobody holds it, and who asks meanwhile waits. Of a held entry. */
void library_changed(struct library *l, struct library_entry *x);

#endif
