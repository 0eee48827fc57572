/* A writer for each thread. Those of threads that are gone are used again. */
#include "threads.h"

#include "control.h"
#include "ranges.h"
#include "segment.h"
#include "start.h"
#include "sys.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

enum { SLAB = 64, SLABS = 1024, BEING_GIVEN_BACK = UINT32_MAX, SWEEP_EVERY = 32 };

static _Atomic(struct writer *) slab[SLABS];
static _Atomic uint32_t numbers, claims;
static _Atomic uint32_t orphans;         /* ranges that control.c waits for, of threads that are gone */
static struct writer *forked;            /* of the thread that made this process by fork() */
__thread struct writer *writer_self __attribute__((tls_model("initial-exec")));

static void threads_add(uint64_t *field, uint64_t n)
{
	_Atomic uint64_t *to = (_Atomic uint64_t *)field;
	if (atomic_load_explicit(to, memory_order_relaxed) < INT64_MAX - n)
		atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void threads_cost(uint64_t calls, uint64_t ns)
{
	struct wire_header *h = ns < INT64_MAX / 2 ? segment_use() : NULL;
	if (h) {
		threads_add(&h->calls, calls);
		threads_add(&h->cost_ns, ns);
		segment_unuse();
	}
}

/* Calls since the last one that was measured: as dear as those before. */
static void add_up(struct writer *w)
{
	if (w->calls && w->counted)
		threads_cost(w->calls, (uint64_t)((double)w->cost_ns / (double)w->counted * w->calls));
	w->calls = 0;
}

static void threads_forget_(struct writer *w)
{
	if (w->passing)
		munmap(w->passing, w->passing_bytes);
	w->passing = NULL;
	w->number = 0;
	w->told_pushes = 0;
	atomic_store_explicit(&w->told_starts, 0, memory_order_relaxed);
	ranges_forget(w);
}

/* What a thread had pushed when it came to its end is open no more; what it had started any other one may still end. */
static void end_told(struct writer *w)
{
	atomic_fetch_add_explicit(&orphans, atomic_exchange_explicit(&w->told_starts, 0, memory_order_relaxed), memory_order_relaxed);
	for (; w->told_pushes; w->told_pushes--)
		control_end();
}

static void threads_give_back(struct writer *w)
{
	(void)atomic_load_explicit(&w->busy, memory_order_acquire); /* the end of the thread's last call */
	atomic_store_explicit(&w->busy, false, memory_order_relaxed);
	if (w->chunk)
		segment_retire(w->chunk);
	w->chunk = NULL;
	w->epoch = 0;
	add_up(w);
	end_told(w);
	threads_forget_(w);
	atomic_store_explicit(&w->owner, 0, memory_order_release);
}

static void threads_sweep_(void)
{
	long pid = getpid();
	for (int s = 0; s < SLABS; s++) {
		struct writer *v = atomic_load_explicit(&slab[s], memory_order_acquire);
		for (int i = 0; v && i < SLAB; i++) {
			uint32_t tid = atomic_load_explicit(&v[i].owner, memory_order_acquire);
			if (tid && tid != BEING_GIVEN_BACK && syscall(SYS_tgkill, pid, (long)tid, 0L) < 0 && errno == ESRCH &&
			    atomic_compare_exchange_strong_explicit(&v[i].owner, &tid, BEING_GIVEN_BACK, memory_order_acq_rel, memory_order_relaxed))
				threads_give_back(&v[i]);
		}
	}
}

void threads_sweep(void)
{
	if (segment_use()) { /* the chunks of those threads lie in it */
		threads_sweep_();
		segment_unuse();
	}
}

static struct writer *claim_in(struct writer *v, uint32_t tid)
{
	for (int i = 0; i < SLAB; i++) {
		uint32_t unowned = 0;
		if (atomic_load_explicit(&v[i].owner, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong_explicit(&v[i].owner, &unowned, tid, memory_order_acq_rel, memory_order_relaxed))
			return &v[i];
	}
	return NULL;
}

static struct writer *claim(void)
{
	uint32_t tid = sys_tid();
	int saved = errno;
	if (atomic_fetch_add_explicit(&claims, 1, memory_order_relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1)
		threads_sweep();
	errno = saved;
	for (int s = 0; s < SLABS; s++) {
		struct writer *v = atomic_load_explicit(&slab[s], memory_order_acquire), *none = NULL;
		if (!v) {
			v = sys_memory(SLAB * sizeof *v);
			if (!v)
				return NULL;
			if (!atomic_compare_exchange_strong_explicit(&slab[s], &none, v, memory_order_acq_rel, memory_order_acquire)) {
				munmap(v, SLAB * sizeof *v);
				v = none;
			}
		}
		struct writer *w = claim_in(v, tid);
		if (w) {
			w->tid = tid;
			return w;
		}
	}
	return NULL;
}

/* At most one of a number; at the end of seldom ranges. */
static bool ended_by(struct writer *w, uint32_t number)
{
	uint32_t open = atomic_load_explicit(&w->told_starts, memory_order_relaxed);
	while (open && w->number == number)
		if (atomic_compare_exchange_weak_explicit(&w->told_starts, &open, open - 1, memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

bool threads_ended(uint32_t number)
{
	for (int s = 0; s < SLABS; s++) {
		struct writer *v = atomic_load_explicit(&slab[s], memory_order_acquire);
		for (int i = 0; v && i < SLAB; i++)
			if (ended_by(&v[i], number))
				return true;
	}
	uint32_t left = atomic_load_explicit(&orphans, memory_order_relaxed);
	while (left)
		if (atomic_compare_exchange_weak_explicit(&orphans, &left, left - 1, memory_order_relaxed, memory_order_relaxed))
			return true;
	return false;
}

/* ---- the end of a capture, while the process goes on ---- */

static bool threads_any_busy(void)
{
	for (int s = 0; s < SLABS; s++) {
		struct writer *v = atomic_load_explicit(&slab[s], memory_order_acquire);
		for (int i = 0; v && i < SLAB; i++)
			if (atomic_load_explicit(&v[i].busy, memory_order_acquire))
				return true;
	}
	return false;
}

/* A thread says that it is busy, then looks at the epoch, with no fence between: the barrier here stands for one in each of them. */
bool threads_quiet(void)
{
	enum { TRIES = 20000, PAUSE_NS = 50000 };
	if (syscall(SYS_membarrier, SYS_BARRIER, 0, 0) < 0)
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (!threads_any_busy())
			return true;
		sys_sleep(PAUSE_NS);
	}
	return false;
}

static void each_writer(void (*f)(struct writer *))
{
	for (int s = 0; s < SLABS; s++) {
		struct writer *v = atomic_load_explicit(&slab[s], memory_order_acquire);
		for (int i = 0; v && i < SLAB; i++)
			f(&v[i]);
	}
}

static void without_chunk(struct writer *w)
{
	w->chunk = NULL;
}

void threads_add_up_all(void) { each_writer(add_up); }

void threads_unbind(void)
{
	each_writer(without_chunk);
	atomic_store_explicit(&orphans, 0, memory_order_relaxed);
}

/* ---- forks ---- */

void threads_forked(void) { forked = writer_self; }

void threads_forget(void)
{
	/* A thread that has a writer already has it from the parent: no other one does. */
	struct writer *self = writer_self ? writer_self : forked;
	atomic_store_explicit(&orphans, 0, memory_order_relaxed);
	control_forked(self ? self->told_pushes + atomic_load_explicit(&self->told_starts, memory_order_relaxed) : 0);
	for (int s = 0; s < SLABS; s++) {
		struct writer *v = atomic_load_explicit(&slab[s], memory_order_relaxed);
		for (int i = 0; v && i < SLAB; i++) {
			v[i].chunk = NULL; /* of the parent's segment */
			v[i].calls = 0;
			v[i].epoch = UINT64_MAX; /* as long as there is no segment `live` has 0 */
			if (&v[i] != self) {
				atomic_store_explicit(&v[i].busy, false, memory_order_relaxed);
				threads_forget_(&v[i]);
			}
			atomic_store_explicit(&v[i].owner, &v[i] == self ? (uint32_t)getpid() : 0, memory_order_relaxed);
		}
	}
}

void threads_add_up(void)
{
	if (writer_self) /* others may be counting just now; what they have not added yet is at most WRITER_GAP_MOST calls each */
		add_up(writer_self);
}

/* What the system calls the thread. */
static void keep_thread_name(struct writer *w)
{
	char name[17] = "";
	if (prctl(PR_GET_NAME, name) < 0 || !name[0])
		return;
	struct wire_thread_name r = {writer_head(WIRE_THREAD_NAME, WIRE_BY_SYSTEM, intern_cstr(name), sizeof r), .thread = w->tid};
	if (r.head.id)
		keep(&r, sizeof r, false);
	else
		lose(WIRE_LOST_STRINGS, 1);
}

static void bind_to_segment(struct writer *w)
{
	w->chunk = NULL;
	w->records = NULL;
	w->used = w->size = w->kept = 0;
	w->calls = w->gap = w->chunks = 0;
	w->counted = w->cost_ns = 0;
	w->tid = sys_tid();
	w->number = w->number ? w->number : atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
	w->on = false;
	atomic_store_explicit(&w->owner, w->tid, memory_order_relaxed);
	if (start_is_own()) {
		ranges_restart(w);
		w->told_pushes = 0;
		atomic_store_explicit(&w->told_starts, 0, memory_order_relaxed);
	} else {
		ranges_unrecord(w);
	}
	keep_thread_name(w);
}

static void append_switch(struct writer *w, bool on, uint32_t generation, uint32_t number)
{
	struct wire_switch r;
	if (!w->chunk)
		return; /* nothing of this thread stands in the file yet */
	control_switch(generation, number, &r);
	r.head.flags = on;
	writer_append(w, &r, sizeof r);
}

void writer_refresh(struct writer *w)
{
	uint64_t epoch = atomic_load_explicit(&live->epoch, memory_order_acquire);
	uint32_t before = (uint32_t)w->epoch >> 1, now = (uint32_t)epoch >> 1;
	if (w->epoch >> 32 != epoch >> 32) {
		bind_to_segment(w);
	} else if (before != now) {
		if (w->on) {
			ranges_unrecord(w);
			append_switch(w, false, (uint32_t)(epoch >> 32), before + 1);
		}
		if (epoch & 1)
			append_switch(w, true, (uint32_t)(epoch >> 32), now);
	}
	w->on = epoch & 1;
	w->epoch = epoch;
}

struct writer *writer_look(void)
{
	struct writer *w = writer_self;
	if (!start_again())
		return NULL;
	if (atomic_load_explicit(&control_next_ns, memory_order_relaxed) != INT64_MAX)
		control_time(now_ns());
	uint64_t epoch = atomic_load_explicit(&live->epoch, memory_order_acquire);
	if (w && atomic_load_explicit(&w->busy, memory_order_relaxed) && w->epoch >> 32 == epoch >> 32) {
		lose(WIRE_LOST_NESTED, 1);
		return NULL;
	}
	if (!w) {
		w = claim();
		if (!w) {
			lose(WIRE_LOST_THREADS, 1);
			return NULL;
		}
		writer_self = w;
	}
	atomic_store_explicit(&w->busy, true, memory_order_relaxed); /* a signal handler from here on is nested */
	atomic_signal_fence(memory_order_seq_cst);
	epoch = atomic_load_explicit(&live->epoch, memory_order_acquire);
	if (!epoch) { /* the capture came to its end meanwhile */
		atomic_store_explicit(&w->busy, false, memory_order_release);
		return NULL;
	}
	if (w->epoch >> 32 != epoch >> 32) { /* what a thread's beginning takes counts as its first call */
		int64_t now = now_ns();
		writer_refresh(w);
		w->entered_ns = now;
	} else if (w->epoch != epoch) {
		writer_refresh(w);
	}
	return w;
}

void writer_measured(struct writer *w)
{
	int64_t ns = now_ns() - w->entered_ns;
	uint64_t all = ns > 0 && ns < INT64_MAX / WRITER_GAP_MOST ? (uint64_t)ns * w->calls : 0; /* the clock may have been set */
	threads_cost(w->calls, all);
	w->counted += w->calls;
	w->cost_ns += all;
	w->gap = (w->counted < WRITER_GAP_MOST ? (uint32_t)w->counted : WRITER_GAP_MOST) | 1;
	w->calls = 0;
	w->entered_ns = 0;
}

void *writer_more(struct writer *w, uint32_t bytes)
{
	uint32_t size = WIRE_GRAIN; /* many threads have little to say */
	if (w->chunk || bytes + w->kept > WIRE_GRAIN - sizeof(struct wire_chunk))
		size = WIRE_BLOCK;
	struct wire_chunk *c = segment_chunk(WIRE_EVENTS, size, w->tid, w->number, w->chunks);
	if (!c && size < WIRE_BLOCK) /* a ring that has turned has whole blocks alone */
		c = segment_chunk(WIRE_EVENTS, size = WIRE_BLOCK, w->tid, w->number, w->chunks);
	if (!c) {
		lose(segment_why_full(), 1);
		return NULL;
	}
	if (w->chunk)
		segment_retire(w->chunk);
	w->chunk = c;
	w->chunks++;
	w->records = (char *)(c + 1);
	w->size = size - (uint32_t)sizeof *c;
	w->used = 0;
	return w->records;
}

bool writer_append(struct writer *w, const void *record, uint32_t bytes)
{
	void *to = writer_room(w, bytes);
	if (!to)
		return false;
	memcpy(to, record, bytes);
	writer_commit(w, bytes);
	return true;
}
