#include "start.h"

#include "control.h"
#include "facts.h"
#include "glibc.h"
#include "keep.h"
#include "options.h"
#include "segment.h"
#include "sys.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { HOOKS = 16, SECOND = 1000000000 };

static struct {
	_Atomic int once;               /* 0, 1 = being done, 2 = done: what only the first process does */
	_Atomic int32_t own;            /* process that captures itself, 0 = none ever did */
	_Atomic bool turn;              /* a thread is beginning or ending such a capture */
	_Atomic bool hold, inside;      /* the helper is to do nothing; it is doing something */
	uint64_t helper_before;         /* its CPU time when the capture began */
	bool has_hooks, on_demand;
	struct segment_options segment;
	char dir[4000];
	_Atomic int32_t helper_pid;     /* whose the helper is: a fork leaves it behind */
	_Atomic uint32_t helper_tid;
	_Atomic(void *) each_second[HOOKS], at_exit[HOOKS];
	_Atomic int n_each_second, n_at_exit;
} s;

static const struct start_asking *asking;

void start_register(const struct start_asking *a) { asking = a; }

static bool set_directory(const char *dir)
{
	if (!dir)
		return false;
	if (dir[0] == '/') {
		if (strlen(dir) >= sizeof s.dir)
			return false;
		strcpy(s.dir, dir);
	} else {
		if (!getcwd(s.dir, sizeof s.dir) || strlen(s.dir) + 1 + strlen(dir) >= sizeof s.dir)
			return false;
		strcat(strcat(s.dir, "/"), dir);
	}
	return true;
}

static int64_t env_number(const void *unused, const char *name)
{
	const char *v = *name ? sys_environment(name) : NULL, *end;
	(void)unused;
	if (!v || !*v)
		return -1;
	int64_t n = sys_number(v, &end);
	return *end ? -1 : n;
}

static void try_again(bool now);

static int64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* ---- the helper: touches pages in time, looks at the clocks, runs what others want done now and then ---- */

static void start_run(_Atomic(void *) *hooks, _Atomic int *n)
{
	int count = atomic_load_explicit(n, memory_order_acquire);
	for (int i = 0; i < count && i < HOOKS; i++) {
		void (*f)(void) = (void (*)(void))(uintptr_t)atomic_load_explicit(&hooks[i], memory_order_acquire);
		if (f)
			f();
	}
}

static void hook(_Atomic(void *) *hooks, _Atomic int *n, void (*f)(void))
{
	int at = atomic_fetch_add_explicit(n, 1, memory_order_acq_rel);
	if (at < HOOKS)
		atomic_store_explicit(&hooks[at], (void *)(uintptr_t)f, memory_order_release);
}

void helper_each_second(void (*f)(void)) { hook(s.each_second, &s.n_each_second, f); }
void helper_at_exit(void (*f)(void)) { hook(s.at_exit, &s.n_at_exit, f); }

bool helper_is_here(void)
{
	return atomic_load_explicit(&s.helper_pid, memory_order_relaxed) == (int32_t)getpid();
}

/* CPU time of the helper, asked for by whatever thread. */
static bool helper_cpu(uint64_t *ns)
{
	uint32_t tid = atomic_load_explicit(&s.helper_tid, memory_order_relaxed);
	struct timespec cpu;
	clockid_t clock = (clockid_t)(~tid << 3 | 6); /* what pthread_getcpuclockid makes of a thread */
	if (!tid || clock_gettime(clock, &cpu) < 0)
		return false;
	*ns = (uint64_t)cpu.tv_sec * SECOND + (uint64_t)cpu.tv_nsec;
	return true;
}

static void count_helper(void)
{
	struct wire_header *h = segment_header();
	uint64_t ns;
	if (h && helper_cpu(&ns))
		atomic_store_explicit((_Atomic uint64_t *)&h->helper_ns, ns - s.helper_before, memory_order_relaxed);
}

/* The program's main thread left by pthread_exit(), and the last of its others is gone: the process would have ended but for this thread. */
static bool is_left_over(void)
{
	enum { STATE = 3, THREADS = 20 };
	char stat[1024];
	size_t n = sys_read_file("/proc/self/stat", stat, sizeof stat - 1);
	stat[n] = 0;
	const char *p = strrchr(stat, ')'); /* behind the name, which may hold anything */
	if (!p || p[1] != ' ' || p[2] != 'Z')
		return false;
	for (int field = STATE - 1; p && field < THREADS; field++)
		p = strchr(p + 1, ' ');
	return p && sys_number(p + 1, &p) <= 2 + (asking ? asking->threads() : 0);
}

static void each_second(int64_t now)
{
	try_again(false);
	segment_anchor();
	threads_sweep();
	control_time(now);
	start_run(s.each_second, &s.n_each_second);
	count_helper();
}

static void help(bool is_second, int64_t now)
{
	atomic_store(&s.inside, true); /* then the look: who ends a capture does it the other way round */
	if (!atomic_load(&s.hold) && atomic_load(&live->phase) != PHASE_IDLE) {
		segment_prepare();
		if (is_second)
			each_second(now);
	}
	atomic_store(&s.inside, false);
}

static void *helper(void *unused)
{
	int64_t next = now_ns() + SECOND;
	(void)unused;
	atomic_store_explicit(&s.helper_tid, sys_tid(), memory_order_relaxed);
	prctl(PR_SET_NAME, "opscope");
	for (;;) {
		uint32_t seen = atomic_load_explicit(&segment_short, memory_order_relaxed);
		int64_t now = now_ns();
		bool is_second = now >= next || next - now > SECOND;
		next = is_second ? now + SECOND : next;
		help(is_second, now);
		if (is_second && is_left_over()) {
			if (asking)
				asking->leave();
			return NULL; /* the C library ends the process as it would have */
		}
		int64_t wait = next - now, at = atomic_load_explicit(&control_next_ns, memory_order_relaxed);
		wait = at - now < wait && at != INT64_MAX ? at - now : wait;
		sys_wait(&segment_short, seen, wait > 0 ? wait : 1);
	}
	return NULL;
}

bool start_thread(void *(*run)(void *))
{
	pthread_t t;
	pthread_attr_t attr;
	uint64_t all = UINT64_MAX, before;
	if (!HAS_THREADS)
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Signals are the program's. */
	syscall(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &before, sizeof all);
	int why = pthread_create(&t, &attr, run, NULL);
	syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before, NULL, sizeof before);
	pthread_attr_destroy(&attr);
	return why == 0;
}

void helper_start(void)
{
	if (HAS_THREADS && atomic_exchange(&s.helper_pid, (int32_t)getpid()) != (int32_t)getpid())
		start_thread(helper);
}

/* ---- life ---- */

static void end_in_order(void)
{
	if (atomic_load_explicit(&live->missed, memory_order_relaxed))
		try_again(true); /* so that they are counted in a file */
	if (atomic_load_explicit(&live->phase, memory_order_acquire) != PHASE_RUNNING)
		return; /* a forked child that had nothing to say */
	if (helper_is_here()) {
		start_run(s.at_exit, &s.n_at_exit);
		count_helper();
	}
	threads_add_up();
	segment_end();
}

static bool take_turn(int tries)
{
	for (int i = 0; atomic_exchange(&s.turn, true); i++) {
		if (i == tries)
			return false;
		sys_sleep(100000);
	}
	return true;
}

void start_end(void)
{
	enum { SOME_SECONDS = 50000 };
	if (asking)
		asking->end();
	if (!take_turn(SOME_SECONDS))
		return; /* who is ending the capture has not come to its end */
	end_in_order();
	atomic_store(&s.turn, false);
}

/* Kernels before 4.14 do not wipe the page in a child: then this does, for all children that fork() makes. */
static void start_in_child(void)
{
	threads_forked();
	atomic_store_explicit(&live->epoch, 0, memory_order_relaxed);
	atomic_store_explicit(&live->lock, 0, memory_order_relaxed);
	atomic_store_explicit(&live->extending, 0, memory_order_relaxed);
	atomic_store_explicit(&live->opener, 0, memory_order_relaxed);
	atomic_store_explicit(&live->missed, 0, memory_order_relaxed);
	atomic_store_explicit(&live->users, 0, memory_order_relaxed);
	atomic_store_explicit(&live->phase, PHASE_FRESH, memory_order_release);
	atomic_store_explicit(&s.turn, false, memory_order_relaxed); /* of a thread that is not here */
	atomic_store_explicit(&s.hold, false, memory_order_relaxed);
	atomic_store_explicit(&s.inside, false, memory_order_relaxed);
	if (asking)
		asking->forked();
}

/* Waits for what may pass: descriptors that are given back, room on the disk. */
static int32_t without_segment(int why)
{
	enum { SOON = SECOND / 100 };
	bool soon = why == EMFILE || why == ENFILE || why == EINTR, passes = soon || why == ENOSPC || why == EDQUOT || why == ENOMEM || why == EAGAIN;
	atomic_store_explicit(&live->retry_ns, clock_ns() + (soon ? SOON : SECOND), memory_order_relaxed);
	segment_absent(&s.segment);
	return passes ? PHASE_WAITING : PHASE_OFF;
}

static int32_t open_segment(bool waited)
{
	if (segment_open(&s.segment, live->forked) < 0)
		return without_segment(errno);
	control_publish(segment_generation());
	if (live->forked || waited)
		keep_again(live->forked);
	facts_keep();
	lose(WIRE_LOST_PROCESSES, atomic_exchange_explicit(&live->missed, 0, memory_order_relaxed));
	return PHASE_RUNNING;
}

static bool is_opener(void) { return atomic_load_explicit(&live->opener, memory_order_relaxed) == sys_tid(); }

/* One thread opens; the others wait for it, but not for ever. */
static bool open_once(int32_t before, bool forked)
{
	int32_t phase = before;
	int saved = errno;
	if (before != PHASE_STARTING &&
	    atomic_compare_exchange_strong_explicit(&live->phase, &phase, PHASE_STARTING, memory_order_acq_rel, memory_order_acquire)) {
		atomic_store_explicit(&live->opener, sys_tid(), memory_order_relaxed);
		live->forked |= forked;
		if (live->forked)
			threads_forget();
		phase = open_segment(before == PHASE_WAITING);
		atomic_store_explicit(&live->phase, phase, memory_order_release);
	}
	for (int i = 0; phase == PHASE_STARTING && i < 100000 && !is_opener(); i++) {
		sched_yield();
		phase = atomic_load_explicit(&live->phase, memory_order_acquire);
	}
	errno = saved;
	return phase == PHASE_RUNNING;
}

bool start_on_demand(void) { return s.on_demand; }

bool start_is_own(void) { return atomic_load_explicit(&s.own, memory_order_relaxed) != 0; }

/* Of captures of its own: fresh is a forked child alone, which has none. */
static bool start_is_idle(int32_t phase) { return phase == PHASE_IDLE || (phase == PHASE_FRESH && start_is_own()); }

static bool is_due(void) { return clock_ns() >= atomic_load_explicit(&live->retry_ns, memory_order_relaxed); }

/* Without counting a call. */
static bool is_started(void)
{
	int32_t phase = atomic_load_explicit(&live->phase, memory_order_acquire);
	if (LIKELY(phase == PHASE_RUNNING))
		return true;
	if (atomic_load_explicit(&s.once, memory_order_acquire) != 2)
		return false;
	return phase != PHASE_OFF && !start_is_idle(phase) && (phase != PHASE_WAITING || is_due()) && open_once(phase, phase == PHASE_FRESH);
}

bool start_again(void)
{
	if (is_started())
		return true;
	if (!start_is_own() && !segment_lose_in_parents(1))
		atomic_fetch_add_explicit(&live->missed, 1, memory_order_relaxed);
	return false;
}

bool start_waits(void) { return atomic_load_explicit(&live->phase, memory_order_acquire) == PHASE_WAITING; }

bool start_keeps(void)
{
	int32_t phase = atomic_load_explicit(&live->phase, memory_order_acquire);
	return phase == PHASE_WAITING || (phase == PHASE_IDLE && s.on_demand);
}

static void try_again(bool now)
{
	if (start_waits() && (now || is_due()))
		open_once(PHASE_WAITING, false);
}

bool start_names(void)
{
	try_again(false);
	return start_keeps() || is_started() || start_keeps();
}

bool start_inside(void)
{
	int32_t phase = atomic_load_explicit(&live->phase, memory_order_acquire);
	if (LIKELY(phase == PHASE_RUNNING))
		return true;
	return (phase == PHASE_STARTING && is_opener()) || is_started();
}

/* NULL = no memory. */
static struct live *new_page(void)
{
	struct live *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	madvise(page, 4096, MADV_WIPEONFORK);
	return page;
}

static bool start_prepare(void)
{
	const char *full;
	options_read();
	full = option("FULL");
	struct live *page = set_directory(option("DIR")) ? new_page() : NULL;
	if (!page)
		return false;
	s.segment = (struct segment_options){.dir = s.dir, .max_bytes = option_bytes("MAX_SIZE"),
	                                     .full = full && strcmp(full, "ring") == 0 ? WIRE_FULL_RING : WIRE_FULL_STOP};
	wire_rank_of(env_number, NULL, &s.segment.rank, &s.segment.world);
	control_init(now_ns());
	live = page;
	return true;
}

static void start_add_hooks(void)
{
	helper_start();
	if (s.has_hooks)
		return;
	s.has_hooks = true;
	atexit(start_end);
	pthread_atfork(NULL, NULL, start_in_child);
}

/* No segment until somebody asks for one. */
static bool wait_for_asking(void)
{
	struct segment_options o = s.segment;
	char dir[sizeof s.dir];
	s.on_demand = true;
	atomic_store(&s.own, (int32_t)getpid());
	atomic_store_explicit(&live->phase, PHASE_IDLE, memory_order_release);
	syscall(SYS_membarrier, SYS_BARRIER_READY, 0, 0);
	o.dir = strcpy(dir, s.dir);
	return asking && asking->start(option("ASK"), &o);
}

bool start(void)
{
	int once = 0;
	if (atomic_compare_exchange_strong_explicit(&s.once, &once, 1, memory_order_acq_rel, memory_order_acquire)) {
		int64_t began = now_ns();
		bool ok = start_prepare() && (option("ASK") ? wait_for_asking() : open_once(PHASE_FRESH, false) || start_waits());
		if (ok) {
			int64_t took = now_ns() - began;
			threads_cost(0, took > 0 ? (uint64_t)took : 0);
			start_add_hooks();
		} else if (live->epoch == 0) {
			atomic_store(&live->phase, PHASE_OFF);
		}
		atomic_store_explicit(&s.once, 2, memory_order_release);
		return ok;
	}
	for (int i = 0; once == 1 && i < 100000; i++) {
		sched_yield();
		once = atomic_load_explicit(&s.once, memory_order_acquire);
	}
	return once == 2 && (s.on_demand || start_names());
}

/* ---- captures of its own ---- */

/* Whether this process may begin one: 0, or why not. */
static int may_begin(bool asked)
{
	int32_t own = atomic_load(&s.own), phase = atomic_load_explicit(&live->phase, memory_order_acquire);
	int once = 0;
	if (s.on_demand && !asked)
		return -EBUSY;
	if (own == (int32_t)getpid())
		return phase == PHASE_IDLE ? 0 : -EALREADY;
	if (own)
		return 0; /* a forked child: its first one */
	const char *dir = sys_environment("OPSCOPE_DIR");
	if (dir && *dir && start())
		return -EBUSY; /* also where that was to wait until somebody asks */
	if (atomic_compare_exchange_strong(&s.once, &once, 1))
		return 0;
	return once == 2 && atomic_load_explicit(&live->phase, memory_order_acquire) == PHASE_OFF ? 0 : -EBUSY;
}

/* What only the first one of a process does. */
static int become_own(void)
{
	int32_t before = atomic_load(&s.own);
	if (before == (int32_t)getpid())
		return 0;
	options_read();
	struct live *page = before ? live : new_page();
	if (!page) {
		atomic_store(&live->phase, PHASE_OFF);
		return -ENOMEM;
	}
	atomic_store_explicit(&page->phase, PHASE_IDLE, memory_order_relaxed);
	atomic_store(&s.own, (int32_t)getpid());
	if (before) {
		threads_forget();
		atomic_store_explicit(&s.helper_tid, 0, memory_order_relaxed); /* the parent's */
	} else {
		control_always();
	}
	live = page;
	syscall(SYS_membarrier, SYS_BARRIER_READY, 0, 0);
	return 0;
}

static int open_own(const struct segment_options *o)
{
	if (!set_directory(o->dir))
		return -ENAMETOOLONG;
	s.segment = *o;
	s.segment.dir = s.dir;
	wire_rank_of(env_number, NULL, &s.segment.rank, &s.segment.world);
	atomic_store_explicit(&live->opener, sys_tid(), memory_order_relaxed);
	atomic_store(&live->phase, PHASE_STARTING);
	if (segment_open(&s.segment, false) < 0) {
		int why = errno;
		atomic_store(&live->phase, PHASE_IDLE);
		return why ? -why : -EIO;
	}
	if (!helper_cpu(&s.helper_before))
		s.helper_before = 0;
	control_publish(segment_generation());
	keep_again(false);
	facts_keep();
	atomic_store(&live->phase, PHASE_RUNNING);
	return 0;
}

static int begin_own(const struct segment_options *o, const struct control_asked *asked, void (*begun)(void))
{
	int64_t began = now_ns();
	int error = may_begin(asked);
	if (error)
		return error;
	error = become_own();
	if (asked)
		control_ask(asked);
	if (!error)
		error = open_own(o);
	if (asked && error)
		control_rest();
	atomic_store_explicit(&s.once, 2, memory_order_release);
	if (error)
		return error;
	int64_t took = now_ns() - began;
	threads_cost(0, took > 0 ? (uint64_t)took : 0);
	start_add_hooks();
	begun();
	return 0;
}

static int start_capture(const struct segment_options *options, const struct control_asked *asked, void (*begun)(void))
{
	int saved = errno;
	if (!take_turn(0))
		return -EBUSY;
	int error = begin_own(options, asked, begun);
	atomic_store(&s.turn, false);
	errno = saved;
	return error;
}

int start_own(const struct segment_options *options, void (*begun)(void)) { return start_capture(options, NULL, begun); }

int start_asked(const struct segment_options *options, const struct control_asked *asked, void (*begun)(void))
{
	return start_capture(options, asked, begun);
}

/* The helper does nothing any more until it may again. False: it has not come to the end of what it was doing. */
static bool hold_helper(void)
{
	enum { SOME_SECONDS = 50000 };
	int tries = 0;
	atomic_store(&s.hold, true);
	for (; helper_is_here() && atomic_load(&s.inside) && tries < SOME_SECONDS; tries++)
		sys_sleep(100000);
	return tries < SOME_SECONDS;
}

static void shut_own(bool alone)
{
	count_helper();
	segment_anchor();
	atomic_store(&live->phase, PHASE_IDLE);
	atomic_store(&live->epoch, 0);
	alone &= threads_quiet();
	if (alone)
		threads_add_up_all();
	alone &= segment_shut();
	if (!alone)
		return; /* the addresses stay, for whoever may still write there */
	threads_unbind();
	segment_unmap();
}

int end_own(void (*ends)(void))
{
	int saved = errno, error = 0;
	if (!take_turn(0))
		return -EBUSY;
	if (atomic_load(&s.own) != (int32_t)getpid() || atomic_load(&live->phase) != PHASE_RUNNING) {
		error = -ESRCH;
	} else {
		bool alone = hold_helper();
		ends();
		shut_own(alone);
		atomic_store(&s.hold, false);
	}
	atomic_store(&s.turn, false);
	errno = saved;
	return error;
}
