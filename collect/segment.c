#include "segment.h"

#include "sys.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

enum {
	PIECE_FIRST = 1 << 20,          /* of the disk */
	PIECE_MOST = 16 << 20,
	ROOM_LEAST = 2 * WIRE_BLOCK,    /* of a segment */
	AHEAD = 4 << 20,                /* touched in front of those who write */
	KEEP_RESERVE = 4 * WIRE_BLOCK,  /* room for texts when events may take no more */
};
static const int64_t UNBOUNDED = (int64_t)64 << 30;

static struct {
	_Atomic(char *) base;
	_Atomic uint32_t generation;
	int64_t limit;                  /* bytes that are mapped */
	enum wire_full full;
	_Atomic int64_t allocated;      /* on disk */
	_Atomic int64_t touched;
	_Atomic bool no_more;           /* the disk said so */
	_Atomic int refused;            /* errno of the last time that there was no more room, 0 = there was some since */
	_Atomic bool told, told_passing;
	struct wire_anchor anchor;      /* the latest, and whether the file has it; by who holds the header's anchor_lock */
	bool anchor_stands;
	char path[4096], absent[4096];  /* absent: of the file that says that there is none, "" = there is no such file */
	int32_t absent_pid;             /* whose that is */
	char *shut;                     /* by segment_shut, still mapped */
	size_t shut_bytes;
	_Atomic(char *) parents;        /* what was mapped before the fork, while there is no segment of our own */
	size_t parents_bytes;
	_Atomic int in_parents;         /* who is counting there just now */
	uint64_t dev, ino;
	/* Ring: chunks that may be used again, oldest first; under the slow lock. */
	uint32_t *retired;              /* offset / WIRE_GRAIN */
	uint32_t retired_cap;
	uint64_t retired_first, retired_end;
	int64_t kept;                   /* bytes of WIRE_KEEP chunks */
} seg;

_Atomic uint32_t segment_short;
static struct live nothing;             /* before start: always "look closely", and no writer is found */
struct live *live = &nothing;

enum { EINTR_MOST = 1000 };
enum { MOMENT = 300, SHORT_WAIT = 700, LONG_WAIT = 10300 }; /* tries: after a moment of them some 40 ms, and a second */

/* A lock holds the thread that has it: a signal handler that interrupted this one there would wait for itself. */
static bool lock_wait(_Atomic uint32_t *lock, int tries)
{
	uint32_t self = sys_tid();
	for (int i = 0; i < tries; i++) {
		uint32_t holder = 0;
		if (atomic_compare_exchange_weak_explicit(lock, &holder, self, memory_order_acquire, memory_order_relaxed))
			return true;
		if (holder == self)
			return false;
		if (i > MOMENT)
			sys_sleep(50000); /* who holds it may be waiting for this processor */
		else if (i > 50)
			sched_yield();
	}
	return false;
}

static void lock_release(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

bool slow_lock(bool long_wait) { return lock_wait(&live->lock, long_wait ? LONG_WAIT : SHORT_WAIT); }
void slow_unlock(void) { lock_release(&live->lock); }

static bool is_mine(_Atomic uint32_t *lock) { return atomic_load_explicit(lock, memory_order_relaxed) == sys_tid(); }

enum wire_loss slow_why_not(void) { return is_mine(&live->lock) ? WIRE_LOST_NESTED : WIRE_LOST_BUSY; }

struct wire_header *segment_header(void)
{
	return (struct wire_header *)atomic_load_explicit(&seg.base, memory_order_acquire);
}

struct wire_header *segment_use(void)
{
	if (!segment_header())
		return NULL;
	atomic_fetch_add(&live->users, 1);
	struct wire_header *h = (struct wire_header *)atomic_load(&seg.base);
	if (!h)
		segment_unuse();
	return h;
}

void segment_unuse(void) { atomic_fetch_sub(&live->users, 1); }

const char *segment_path(void) { return seg.path; }

uint32_t segment_generation(void)
{
	return atomic_load_explicit(&seg.generation, memory_order_acquire);
}

/* There is no place for another block of events. */
static bool is_at_limit(void)
{
	struct wire_header *h = segment_use();
	if (!h)
		return false;
	bool full = (int64_t)atomic_load_explicit((_Atomic uint64_t *)&h->used_bytes, memory_order_relaxed) + WIRE_BLOCK > seg.limit - KEEP_RESERVE;
	segment_unuse();
	return full;
}

enum wire_loss segment_why_full(void)
{
	if (atomic_load_explicit(&seg.refused, memory_order_relaxed))
		return WIRE_LOST_DISK;
	if (is_mine(&live->extending) || is_mine(&live->lock))
		return WIRE_LOST_NESTED;
	return seg.full == WIRE_FULL_RING || !is_at_limit() ? WIRE_LOST_BUSY : WIRE_LOST_FULL;
}

void lose(enum wire_loss reason, uint64_t n)
{
	struct wire_header *h = n ? segment_use() : NULL;
	if (!h)
		return;
	atomic_fetch_add_explicit((_Atomic uint64_t *)&h->lost[reason], n, memory_order_relaxed);
	segment_unuse();
}

/* Room on disk up to `end`. */
static int allocate(int fd, int64_t from, int64_t end)
{
	static const char zeros[WIRE_BLOCK];
	int rc;
	for (int tries = 0; (rc = sys_allocate(fd, 0, from, end - from)) < 0 && errno == EINTR && tries < EINTR_MOST; tries++)
		;
	if (rc == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	/* File systems that cannot promise are made to give. Only behind the present end: what is in front may hold records. */
	struct stat st;
	int64_t at = syscall(SYS_fstat, fd, &st) == 0 && st.st_size > from ? st.st_size : from;
	for (long n; at < end; at += n) {
		n = sys_write_at(fd, zeros, (size_t)(end - at < (int64_t)sizeof zeros ? end - at : (int64_t)sizeof zeros), at);
		if (n < 0 && errno == EINTR) {
			n = 0;
			continue;
		}
		if (n <= 0)
			return -1;
	}
	return 0;
}

/* A file longer than the program may write is a signal to it. */
static bool within_file_limit(int64_t end)
{
	struct rlimit r;
	return getrlimit(RLIMIT_FSIZE, &r) < 0 || r.rlim_cur == RLIM_INFINITY || end <= (int64_t)r.rlim_cur;
}

/* Not the disk's word: there are no descriptors just now. */
static bool may_pass(int why) { return why == EMFILE || why == ENFILE || why == EINTR; }

/* One thread at a time: where room is made by writing zeros, a slower one must not write them over records. */
static bool extend_alone(int64_t end, bool needed)
{
	int64_t have = atomic_load_explicit(&seg.allocated, memory_order_acquire);
	if (end <= have)
		return true;
	if (atomic_load_explicit(&seg.no_more, memory_order_relaxed))
		return false;
	int64_t piece = have < PIECE_FIRST ? PIECE_FIRST : have > PIECE_MOST ? PIECE_MOST : have, upto = have + piece;
	upto = upto < end ? end : upto;
	upto = upto > seg.limit ? seg.limit : upto;
	if (!within_file_limit(upto))
		upto = end;
	int fd = within_file_limit(upto) ? sys_open(seg.path, O_RDWR | O_NOFOLLOW, 0) : -1;
	struct stat st;
	bool ours = fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && st.st_dev == seg.dev && st.st_ino == seg.ino;
	int why = within_file_limit(upto) ? fd < 0 ? errno : ESTALE : EFBIG, rc = ours ? allocate(fd, have, upto) : -1;
	if (rc < 0 && ours && upto > end) { /* less may still be there */
		upto = end;
		rc = allocate(fd, have, upto);
	}
	if (rc == 0)
		rc = mprotect(atomic_load_explicit(&seg.base, memory_order_acquire) + have, (size_t)(upto - have), PROT_READ | PROT_WRITE);
	why = ours && rc < 0 ? errno : why;
	if (fd >= 0)
		sys_close(fd);
	if (rc < 0) {
		if (needed)
			atomic_store_explicit(&seg.refused, why, memory_order_relaxed);
		atomic_store_explicit(&seg.no_more, needed && !may_pass(why), memory_order_relaxed);
		return false;
	}
	atomic_store_explicit(&seg.refused, 0, memory_order_relaxed);
	atomic_store_explicit(&seg.allocated, upto, memory_order_release);
	return true;
}

/* `needed`: not only in good time; when it is refused the disk is full. */
static bool segment_extend(int64_t end, bool needed)
{
	if (end <= atomic_load_explicit(&seg.allocated, memory_order_acquire))
		return true;
	if (!lock_wait(&live->extending, LONG_WAIT))
		return false;
	bool ok = extend_alone(end, needed);
	lock_release(&live->extending);
	return ok;
}

static char *segment_put(char *p, const char *end, const char *s)
{
	while (*s && p < end)
		*p++ = *s++;
	*p = 0;
	return p;
}

/* What refused more room; the sentence has its errno in it. The last one stands for all that is not in front of it. */
static const struct reason {
	int why[4];
	const char *kind, *begins, *ends;
} reasons[] = {
	{{EMFILE, ENFILE, EINTR}, "no-descriptor", "the capture's file could not be opened for more room (errno ", "): what came meanwhile is missing"},
	{{EACCES, EPERM}, "not-allowed", "the program may no longer open the capture's file for more room, as after setuid (errno ", "): what came later is missing"},
	{{ENOENT, ENOTDIR, ESTALE, ELOOP}, "file-gone", "the capture's file is not in its place any more, as after chroot or when it was moved (errno ", "): what came later is missing"},
	{{EFBIG}, "file-limit", "the program may write no longer file (ulimit -f; errno ", "): what came later is missing"},
	{{ENOMEM}, "no-memory", "there was no memory for more of the capture (errno ", "): what came later is missing"},
	{{0}, "disk-full", "the disk gave no more room for the capture (errno ", "): what came later is missing"},
};

static const struct reason *reason_of(int why)
{
	const struct reason *r = reasons;
	for (; r->why[0]; r++)
		for (size_t i = 0; i < sizeof r->why / sizeof r->why[0]; i++)
			if (r->why[i] == why)
				return r;
	return r;
}

static void tell_full(int refused)
{
	_Atomic bool *told = may_pass(refused) ? &seg.told_passing : &seg.told;
	const struct reason *r = reason_of(refused);
	char room[SYS_DIGITS];
	if (is_mine(&live->lock) || (!refused && !is_at_limit()))
		return; /* a signal handler cannot say it now; or a lock was not had, which is counted */
	if (atomic_exchange_explicit(told, true, memory_order_relaxed))
		return;
	if (refused)
		note(r->kind, true, r->begins, sys_digits(room, (uint64_t)refused), r->ends, NULL);
	else if (seg.full == WIRE_FULL_STOP)
		note("max-size", true, "the size that the capture may have (--max-size) was reached: what came later is missing", NULL);
}

/* The oldest chunk that nobody writes to any more. */
static char *used_again(char *base)
{
	if (seg.retired_first == seg.retired_end)
		return NULL;
	char *at = base + (int64_t)seg.retired[seg.retired_first++ % seg.retired_cap] * WIRE_GRAIN;
	struct wire_chunk *c = (struct wire_chunk *)at;
	lose(WIRE_LOST_RING, c->committed);
	atomic_store_explicit((_Atomic uint64_t *)&c->sequence, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* a reader that sees anything of what comes now sees this 0 as well */
	return at;
}

static char *from_ring(char *base, enum wire_chunk_kind kind, uint32_t bytes)
{
	if (seg.full != WIRE_FULL_RING || bytes != WIRE_BLOCK || (kind == WIRE_KEEP && seg.kept > seg.limit / 2))
		return NULL;
	if (kind == WIRE_KEEP) /* the slow lock is held */
		return used_again(base);
	if (!slow_lock(false))
		return NULL;
	char *at = used_again(base);
	slow_unlock();
	return at;
}

/* New room behind what is used. */
static char *from_end(char *base, enum wire_chunk_kind kind, uint32_t bytes)
{
	struct wire_header *h = (struct wire_header *)base;
	_Atomic uint64_t *used = (_Atomic uint64_t *)&h->used_bytes;
	int64_t limit = seg.limit - (kind == WIRE_KEEP ? 0 : KEEP_RESERVE);
	uint64_t at = atomic_load_explicit(used, memory_order_relaxed);
	do {
		if ((int64_t)(at + bytes) > limit) {
			if (!atomic_load_explicit(&seg.no_more, memory_order_relaxed))
				atomic_store_explicit(&seg.refused, 0, memory_order_relaxed);
			return NULL;
		}
		if (!segment_extend((int64_t)(at + bytes), true))
			return NULL;
	} while (!atomic_compare_exchange_weak(used, &at, at + bytes));
	if ((int64_t)(at + bytes) > atomic_load(&seg.allocated) && !segment_extend((int64_t)(at + bytes), true))
		return NULL; /* given back meanwhile: segment_end */
	if ((int64_t)at + bytes + AHEAD / 2 > atomic_load_explicit(&seg.touched, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&segment_short, 1, memory_order_relaxed);
		sys_wake(&segment_short);
	}
	return base + at;
}

struct wire_chunk *segment_chunk(enum wire_chunk_kind kind, uint32_t bytes, uint32_t tid, uint32_t number, uint32_t ordinal)
{
	char *base = atomic_load_explicit(&seg.base, memory_order_acquire);
	if (!base)
		return NULL;
	char *at = from_end(base, kind, bytes);
	if (!at)
		at = from_ring(base, kind, bytes);
	if (!at) {
		if (kind != WIRE_KEEP)
			tell_full(atomic_load_explicit(&seg.refused, memory_order_relaxed));
		return NULL;
	}
	if (kind == WIRE_KEEP)
		seg.kept += bytes;
	struct wire_chunk *c = (struct wire_chunk *)at;
	_Atomic uint64_t *next = (_Atomic uint64_t *)&((struct wire_header *)base)->sequence;
	uint64_t sequence = atomic_fetch_add_explicit(next, 1, memory_order_relaxed) + 1;
	c->kind = (uint16_t)kind;
	c->grains = (uint16_t)(bytes / WIRE_GRAIN);
	c->thread = tid;
	c->thread_number = number;
	c->offset = (uint64_t)(at - base);
	c->ordinal = ordinal;
	atomic_store_explicit((_Atomic uint32_t *)&c->committed, 0, memory_order_relaxed);
	atomic_store_explicit((_Atomic uint64_t *)&c->sequence, sequence, memory_order_release);
	atomic_store_explicit((_Atomic uint32_t *)&c->magic, WIRE_CHUNK_MAGIC, memory_order_release);
	return c;
}

void segment_retire(struct wire_chunk *c)
{
	if (seg.full != WIRE_FULL_RING || c->grains != WIRE_BLOCK / WIRE_GRAIN || !slow_lock(false))
		return; /* a chunk that is not retired stays as it is: nothing is lost by that but room */
	bool of_this = (char *)c - c->offset == atomic_load_explicit(&seg.base, memory_order_relaxed); /* not of one that was shut */
	if (of_this && seg.retired_end - seg.retired_first < seg.retired_cap)
		seg.retired[seg.retired_end++ % seg.retired_cap] = (uint32_t)(c->offset / WIRE_GRAIN);
	slow_unlock();
}

void segment_prepare(void)
{
	char *base = atomic_load_explicit(&seg.base, memory_order_acquire);
	if (!base || atomic_load_explicit((_Atomic uint32_t *)&segment_header()->state, memory_order_acquire) == WIRE_ENDED)
		return;
	int64_t used = (int64_t)atomic_load_explicit((_Atomic uint64_t *)&((struct wire_header *)base)->used_bytes, memory_order_relaxed);
	int64_t from = atomic_load_explicit(&seg.touched, memory_order_relaxed), upto = used + AHEAD;
	from = from < used ? used : from;
	upto = upto > seg.limit ? seg.limit : upto;
	segment_extend(upto, false);
	int64_t have = atomic_load_explicit(&seg.allocated, memory_order_acquire);
	upto = upto > have ? have : upto;
	if (upto <= from)
		return;
	madvise(base + from, (size_t)(upto - from), MADV_POPULATE_WRITE); /* EINVAL before Linux 5.14: then they touch for themselves */
	atomic_store_explicit(&seg.touched, upto, memory_order_relaxed);
}

static int64_t steady_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Two readings of the steady clock around one of the other, as close together as can be had; how far apart they are. */
static int64_t read_anchor(struct wire_anchor *a)
{
	enum { TRIES = 8, CLOSE_NS = 2000 };
	int64_t least = INT64_MAX;
	for (int i = 0; i < TRIES && least > CLOSE_NS; i++) {
		int64_t before = steady_ns(), now = now_ns(), apart = steady_ns() - before;
		if (apart < least) {
			*a = (struct wire_anchor){now, before + apart / 2};
			least = apart;
		}
	}
	return least;
}

static void keep_anchor(const struct wire_anchor *a)
{
	struct wire_anchor_record r = {writer_head(WIRE_ANCHOR, 0, 0, sizeof r), *a};
	keep(&r, sizeof r, false);
}

/* Whether the clock was set since then. The network may make it run faster or slower by 500 in a million. */
static bool was_set(const struct wire_anchor *then, const struct wire_anchor *now, int64_t uncertain)
{
	int64_t ran = now->monotonic_raw_ns - then->monotonic_raw_ns, moved = now->realtime_ns - then->realtime_ns - ran;
	int64_t may = ran / 2000 + WIRE_CLOCK_STEP + uncertain;
	return moved > may || moved < -may;
}

void segment_anchor(void)
{
	struct wire_header *h = segment_header();
	struct wire_anchor a, before;
	if (!h)
		return;
	_Atomic uint32_t *lock = (_Atomic uint32_t *)&h->anchor_lock;
	uint32_t even = atomic_load_explicit(lock, memory_order_relaxed);
	if (even & 1 || !atomic_compare_exchange_strong_explicit(lock, &even, even + 1, memory_order_acquire, memory_order_relaxed))
		return;
	atomic_thread_fence(memory_order_release);
	int64_t uncertain = read_anchor(&a);
	atomic_store_explicit((_Atomic int64_t *)&h->last.realtime_ns, a.realtime_ns, memory_order_relaxed);
	atomic_store_explicit((_Atomic int64_t *)&h->last.monotonic_raw_ns, a.monotonic_raw_ns, memory_order_relaxed);
	before = seg.anchor;
	bool set = was_set(&before, &a, uncertain), stood = seg.anchor_stands;
	seg.anchor = a;
	seg.anchor_stands = set;
	atomic_store_explicit(lock, even + 2, memory_order_release);
	/* A step is between two records. */
	if (set && !stood)
		keep_anchor(&before);
	if (set)
		keep_anchor(&a);
}

/* ---- opening ---- */

static void fill_header(struct wire_header *h, const struct segment_options *o, const struct utsname *u, int64_t start, bool forked)
{
	memset(h, 0, sizeof *h);
	h->version = WIRE_VERSION;
	h->header_bytes = sizeof *h;
	h->block_bytes = WIRE_BLOCK;
	h->grain_bytes = WIRE_GRAIN;
	h->start_ns = start;
	h->pid = (int32_t)getpid();
	h->ppid = (int32_t)getppid();
	h->forked = forked;
	h->full = o->full;
	h->max_bytes = o->max_bytes;
	h->rank = o->rank;
	h->world = o->world;
	size_t n = sys_read_file("/proc/sys/kernel/random/boot_id", h->boot_id, sizeof h->boot_id - 1);
	while (n && h->boot_id[n - 1] == '\n')
		h->boot_id[--n] = 0;
	segment_put(h->host, h->host + sizeof h->host - 1, u->nodename);
	segment_put(h->library, h->library + sizeof h->library - 1, OPSCOPE_VERSION);
	read_anchor(&h->first);
	h->last = seg.anchor = h->first;
	seg.anchor_stands = true;
	h->state = WIRE_RUNNING;
	h->used_bytes = WIRE_BLOCK;
	uint64_t magic;
	memcpy(&magic, WIRE_MAGIC, sizeof magic);
	atomic_store_explicit((_Atomic uint64_t *)(void *)h->magic, magic, memory_order_release);
}

/* Addresses for the whole file; fewer where the program may not have so many. What has no room on disk yet cannot be touched, so that nobody who
 * walks through the memory of the process (a search for leaks) has to walk through that. */
static char *map_file(int fd, int64_t *bytes)
{
	*bytes = (int64_t)sys_fair((size_t)*bytes) & ~((int64_t)WIRE_BLOCK - 1);
	for (; *bytes >= 2 * PIECE_FIRST; *bytes = *bytes / 2 & ~((int64_t)WIRE_BLOCK - 1)) {
		char *p = sys_addresses((size_t)*bytes, MAP_SHARED, fd);
		if (p) {
			madvise(p, (size_t)*bytes, MADV_DONTDUMP);
			return p;
		}
	}
	errno = ENOMEM;
	return NULL;
}

static void segment_put_path(char path[sizeof seg.path], const struct segment_options *o, const struct utsname *u, int64_t start, const char *suffix)
{
	char room[SYS_DIGITS], *p = path;
	const char *end = path + sizeof seg.path - 1;
	p = segment_put(p, end, o->dir);
	p = segment_put(p, end, "/");
	for (const char *h = u->nodename; *h && p < end; h++)
		*p++ = *h == '/' ? '_' : *h;
	p = segment_put(p, end, "-");
	p = segment_put(p, end, sys_digits(room, (uint64_t)getpid()));
	p = segment_put(p, end, "-");
	p = segment_put(p, end, sys_digits(room, (uint64_t)start));
	segment_put(p, end, suffix);
}

static int segment_create(const struct segment_options *o, const struct utsname *u, int64_t *start)
{
	for (int tries = 0; tries < 100; tries++) {
		*start = now_ns();
		segment_put_path(seg.path, o, u, *start, ".seg");
		int fd = sys_open(seg.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

static void start_ring(int64_t limit)
{
	uint32_t cap = (uint32_t)(limit / WIRE_BLOCK + 1);
	if (seg.retired && seg.retired_cap != cap) {
		munmap(seg.retired, seg.retired_cap * sizeof *seg.retired);
		seg.retired = NULL;
	}
	seg.retired_cap = cap;
	seg.retired_first = seg.retired_end = 0;
	if (!seg.retired && !(seg.retired = sys_memory(cap * sizeof *seg.retired)))
		seg.full = WIRE_FULL_STOP;
}

/* Less where the disk has little, or the program may write little. 0 = not even that, errno says why. */
static int64_t first_room(int fd)
{
	for (int64_t room = PIECE_FIRST; room >= ROOM_LEAST; room /= 2) {
		errno = EFBIG;
		if (within_file_limit(room) && allocate(fd, 0, room) == 0)
			return room;
		if (errno != EFBIG && errno != ENOSPC && errno != EDQUOT)
			break;
	}
	return 0;
}

/* No descriptor is needed for that. */
void segment_absent(const struct segment_options *o)
{
	struct utsname u = {0};
	if (seg.parents || (seg.absent[0] && seg.absent_pid == (int32_t)getpid()))
		return;
	uname(&u);
	segment_put_path(seg.absent, o, &u, now_ns(), ".none");
	seg.absent_pid = (int32_t)getpid();
	if (syscall(SYS_mknodat, AT_FDCWD, seg.absent, S_IFREG | 0600, 0) < 0)
		seg.absent[0] = 0;
}

bool segment_lose_in_parents(uint64_t n)
{
	atomic_fetch_add(&seg.in_parents, 1);
	struct wire_header *h = (struct wire_header *)atomic_load(&seg.parents);
	if (h)
		atomic_fetch_add_explicit((_Atomic uint64_t *)&h->lost[WIRE_LOST_PROCESSES], n, memory_order_relaxed);
	atomic_fetch_sub(&seg.in_parents, 1);
	return h;
}

/* What there was instead of a segment. Where somebody is still counting, as one that a signal handler has interrupted, it stays mapped. */
static void forget_before(void)
{
	char *parents = atomic_exchange(&seg.parents, NULL);
	for (int i = 0; i < MOMENT && parents && atomic_load(&seg.in_parents); i++)
		sched_yield();
	if (parents && !atomic_load(&seg.in_parents))
		munmap(parents, seg.parents_bytes);
	if (seg.absent[0] && seg.absent_pid == (int32_t)getpid())
		unlink(seg.absent);
	seg.absent[0] = 0;
}

int segment_open(const struct segment_options *o, bool forked)
{
	struct utsname u = {0};
	struct stat st;
	int64_t start, room, limit = o->max_bytes ? o->max_bytes & ~((int64_t)WIRE_BLOCK - 1) : UNBOUNDED;
	uname(&u);
	char *parents = atomic_exchange_explicit(&seg.base, NULL, memory_order_relaxed), *base = NULL;
	if (parents) {
		seg.parents_bytes = (size_t)seg.limit;
		atomic_store(&seg.parents, parents);
	}
	int fd = segment_create(o, &u, &start);
	if (fd < 0)
		return -1;
	if (!(room = first_room(fd)) || syscall(SYS_fstat, fd, &st) < 0 || !(base = map_file(fd, &limit)) ||
	    mprotect(base, (size_t)room, PROT_READ | PROT_WRITE) < 0)
		goto undo;
	sys_close(fd);
	forget_before();
	seg.dev = st.st_dev;
	seg.ino = st.st_ino;
	seg.limit = limit;
	seg.full = o->full;
	seg.kept = 0;
	atomic_store_explicit(&seg.allocated, room, memory_order_relaxed);
	atomic_store_explicit(&seg.touched, 0, memory_order_relaxed);
	atomic_store_explicit(&seg.no_more, false, memory_order_relaxed);
	atomic_store_explicit(&seg.told, false, memory_order_relaxed);
	atomic_store_explicit(&seg.told_passing, false, memory_order_relaxed);
	atomic_store_explicit(&seg.refused, 0, memory_order_relaxed);
	if (o->full == WIRE_FULL_RING)
		start_ring(limit);
	madvise(base, (size_t)room, MADV_POPULATE_WRITE);
	fill_header((struct wire_header *)base, o, &u, start, forked);
	atomic_fetch_add_explicit(&seg.generation, 1, memory_order_release);
	atomic_store_explicit(&seg.base, base, memory_order_release);
	return 0;
undo:;
	int why = errno;
	if (base)
		munmap(base, (size_t)limit);
	sys_close(fd);
	unlink(seg.path);
	errno = why;
	return -1;
}

/* A hole, not a shorter file: other threads may still be writing, and touching what lies behind the end of a file kills. Touching the hole may, too,
 * where the disk is full: `allocated` goes down first, and from_end looks at it once more when a chunk is taken, so that either it asks for
 * room again or the chunk is seen here. */
static void segment_give_back(struct wire_header *h)
{
	_Atomic uint64_t *used_bytes = (_Atomic uint64_t *)&h->used_bytes;
	int64_t have = atomic_load(&seg.allocated), used = (int64_t)atomic_load(used_bytes);
	int fd = used < have ? sys_open(seg.path, O_RDWR | O_NOFOLLOW, 0) : -1;
	struct stat st;
	if (fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && st.st_dev == seg.dev && st.st_ino == seg.ino) {
		atomic_store(&seg.allocated, used);
		used = (int64_t)atomic_load(used_bytes);
		if (used < have)
			sys_allocate(fd, 0x02 | 0x01, used, have - used); /* FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE */
	}
	if (fd >= 0)
		sys_close(fd);
}

void segment_end(void)
{
	struct wire_header *h = segment_header();
	if (!h)
		return;
	segment_anchor();
	atomic_store_explicit((_Atomic uint32_t *)&h->state, WIRE_ENDED, memory_order_release);
	if (!lock_wait(&live->extending, LONG_WAIT))
		return;
	segment_give_back(h);
	lock_release(&live->extending);
}

bool segment_shut(void)
{
	struct wire_header *h = segment_header();
	if (!h)
		return false;
	bool alone = slow_lock(true), still = lock_wait(&live->extending, LONG_WAIT);
	atomic_store_explicit((_Atomic uint32_t *)&h->state, WIRE_ENDED, memory_order_release);
	if (still)
		segment_give_back(h);
	seg.shut = atomic_exchange(&seg.base, NULL);
	seg.shut_bytes = (size_t)seg.limit;
	atomic_fetch_add_explicit(&seg.generation, 1, memory_order_release); /* who waits for the slow lock knows of no chunk then */
	for (int i = 0; i < LONG_WAIT && atomic_load(&live->users) > 0; i++)
		sys_sleep(50000);
	bool out = alone && still && atomic_load(&live->users) <= 0;
	if (still)
		lock_release(&live->extending);
	if (alone)
		slow_unlock();
	return out;
}

void segment_unmap(void)
{
	munmap(seg.shut, seg.shut_bytes);
	seg.shut = NULL;
}
