#include "base/spill.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
	SPILL_PAGE = 4096,       /* or a multiple of it: spill_page() */
	SPILL_HUGE = 2 << 20,
	SPILL_BUCKETS = 1 << 12,
	SPILL_PIECES = 48,       /* growing by half each time, 48 pieces exceed the address space */
};

/* A stretch of the file. What was given back is a hole; its offsets are used again once the file has no block. */
struct spill_piece {
	off_t at;
	size_t bytes;
};

/* A stretch that was given back while a child may read it. */
struct spill_waiting {
	struct spill_waiting *next;
	struct spill_piece piece;
};

struct spill_block {
	struct spill_block *next;  /* in its bucket */
	char *p;
	size_t bytes;              /* whole pages */
	unsigned forks;            /* spill_forks when it was made */
	unsigned n;
	struct spill_piece piece[SPILL_PIECES];
};

static pthread_mutex_t spill_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows, but for the atomic ones */
static pthread_cond_t spill_begun = PTHREAD_COND_INITIALIZER;
static struct spill_block *spill_bucket[SPILL_BUCKETS];
static off_t spill_end;                  /* of the file */
static unsigned spill_forks;             /* with blocks in the file, of children whose end nobody tells */
static unsigned spill_children;          /* whose end will be told */
static struct spill_waiting *spill_waiting; /* for the end of those */
static bool spill_kept;                  /* the keeper runs */
static bool spill_is_child;              /* of the process that made the file */
static int spill_file = -1, spill_statm = -1; /* constant once the file is open */
static char spill_folder[PATH_MAX];

static atomic_uint_fast64_t spill_most;  /* the limit; 0 = none */
static atomic_bool spill_strict;
static atomic_bool spill_off;            /* no file could be had, or this is a child that has not made it */
static atomic_bool spill_is_full;
static atomic_size_t spill_held;         /* bytes of large blocks in memory */
static atomic_uint spill_n;              /* blocks in the file, and those that are about to be */
static __thread bool spill_is_told;      /* the end of the child that this thread forks next */

static size_t spill_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Filesystems with large folios write and fault whole 2 MB folios: such blocks are aligned to them. Below a limit of 256 MB a few folios would be all of it. */
static bool spill_is_huge(size_t bytes)
{
	return bytes >= SPILL_HUGE && spill_most >= 256 << 20;
}

/* 0 = too many. */
static size_t spill_whole_pages(size_t bytes)
{
	const size_t page = spill_is_huge(bytes) ? SPILL_HUGE : spill_page();
	return bytes > SIZE_MAX / 2 ? 0 : (bytes + page - 1) / page * page;
}

/* --- the file --- */

static const uint32_t spill_tmpfs = 0x01021994, spill_ramfs = 0x858458f6;

/* Whether the folder is on a disk with space for a part of what memory holds. */
static bool spill_fits(const char *folder)
{
	const uint64_t least = UINT64_C(1) << 30;
	struct statfs fs;
	if (statfs(folder, &fs) < 0 || (uint32_t)fs.f_type == spill_tmpfs || (uint32_t)fs.f_type == spill_ramfs)
		return false;
	const uint64_t unit = (uint64_t)(fs.f_frsize ? fs.f_frsize : fs.f_bsize); /* f_bsize is what is read and written best */
	return fs.f_bavail >= MIN(spill_most, least) / MAX(unit, 1);
}

/* A file without a name; -1 = none. */
static int spill_unnamed(const char *folder)
{
	char path[PATH_MAX];
#ifdef O_TMPFILE
	const int unnamed = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (unnamed >= 0)
		return unnamed;
#endif
	if (snprintf(path, sizeof path, "%s/.opscope-XXXXXX", folder) >= (int)sizeof path)
		return -1;
	const int named = mkostemp(path, O_CLOEXEC);
	if (named >= 0)
		unlink(path);
	return named;
}

static bool spill_open_in(const char *folder)
{
	if (!folder || !*folder || strlen(folder) >= sizeof spill_folder || !spill_fits(folder) || (spill_file = spill_unnamed(folder)) < 0)
		return false;
	spill_statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	strcpy(spill_folder, folder);
	return true;
}

/* Under the lock. */
static bool spill_open(void)
{
	if (spill_file < 0 && !spill_off && !spill_open_in(getenv("TMPDIR")) && !spill_open_in("/var/tmp"))
		spill_open_in("/tmp");
	if (spill_file < 0)
		spill_off = true;
	return spill_file >= 0;
}

static bool spill_is_open(void)
{
	pthread_mutex_lock(&spill_lock);
	const bool is = spill_open();
	pthread_mutex_unlock(&spill_lock);
	return is;
}

static void spill_give_back(const struct spill_piece *piece)
{
#ifdef FALLOC_FL_PUNCH_HOLE
	fallocate(spill_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece->at, (off_t)piece->bytes); /* where a file has no holes, until the process ends */
#endif
}

/* 0, or the error. */
static int spill_claim(const struct spill_piece *piece)
{
	int error;
	do
		error = posix_fallocate(spill_file, piece->at, (off_t)piece->bytes);
	while (error == EINTR);
	return error;
}

/* Space for so many bytes: without it, writing to a mapped page of a full disk ends the process. */
static bool spill_take(struct spill_piece *piece, size_t bytes)
{
	pthread_mutex_lock(&spill_lock);
	const off_t before = spill_end;
	if (bytes > (uint64_t)(INT64_MAX - SPILL_HUGE - before)) {
		pthread_mutex_unlock(&spill_lock);
		return false;
	}
	const off_t at = spill_is_huge(bytes) ? (before + SPILL_HUGE - 1) / SPILL_HUGE * SPILL_HUGE : before;
	*piece = (struct spill_piece){at, bytes};
	spill_end = at + (off_t)bytes;
	pthread_mutex_unlock(&spill_lock);
	const int error = spill_claim(piece);
	spill_is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
	if (!error)
		return true;
	spill_give_back(piece);
	pthread_mutex_lock(&spill_lock);
	if (spill_end == at + (off_t)bytes)
		spill_end = before;
	pthread_mutex_unlock(&spill_lock);
	return false;
}

/* Gives a stretch back: at once, at the end of all children, or, where a child's end is not told, never. */
static void spill_drop_piece(const struct spill_piece *piece, unsigned forks)
{
	pthread_mutex_lock(&spill_lock);
	const bool never = forks != spill_forks, later = !never && spill_children;
	struct spill_waiting *w = later ? malloc(sizeof *w) : NULL;
	if (w) {
		*w = (struct spill_waiting){spill_waiting, *piece};
		spill_waiting = w;
	}
	pthread_mutex_unlock(&spill_lock);
	if (!never && !later)
		spill_give_back(piece);
}

/* Begins the file anew where nobody has a block in it. */
static void spill_reuse(void)
{
	pthread_mutex_lock(&spill_lock);
	if (!spill_n && !spill_children && !spill_forks && !spill_is_child && ftruncate(spill_file, 0) == 0)
		spill_end = 0;
	pthread_mutex_unlock(&spill_lock);
}

/* --- blocks --- */

static struct spill_block **spill_bucket_of(const void *p)
{
	return &spill_bucket[((uintptr_t)p / SPILL_PAGE * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SPILL_BUCKETS];
}

/* Under the lock. Where the pointer to the block stands; it is NULL when p is none. */
static struct spill_block **spill_at(const void *p)
{
	struct spill_block **at = spill_bucket_of(p);
	while (*at && (*at)->p != p)
		at = &(*at)->next;
	return at;
}

/* Under the lock. */
static void spill_put(struct spill_block *b)
{
	struct spill_block **to = spill_bucket_of(b->p);
	b->next = *to;
	*to = b;
}

/* Fresh addresses with nothing behind them, at a huge page's beginning; NULL = there are none. */
static char *spill_reserve(size_t bytes)
{
	char *p = mmap(NULL, bytes + SPILL_HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	const size_t before = -(uintptr_t)p % SPILL_HUGE;
	if (before)
		munmap(p, before);
	munmap(p + before + bytes, SPILL_HUGE - before);
	return p + before;
}

/* All pieces at fresh addresses, one behind the other; NULL = it cannot be done. */
static char *spill_map(const struct spill_piece *piece, unsigned n, size_t bytes)
{
	char *p = spill_reserve(bytes), *to = p;
	for (unsigned i = 0; p && i < n; to += piece[i++].bytes)
		if (mmap(to, piece[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, spill_file, piece[i].at) == MAP_FAILED) {
			munmap(p, bytes);
			return NULL;
		}
	if (p && spill_is_huge(bytes))
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static void spill_keep(void);
static uint64_t spill_make_room(void);

void *spill_new(size_t bytes)
{
	bytes = spill_whole_pages(bytes);
	struct spill_block *b = bytes ? malloc(sizeof *b) : NULL;
	spill_n++; /* from here on the file's offsets stay what they are */
	const bool taken = b && spill_take(&b->piece[0], bytes);
	if (!taken || !(b->p = spill_map(b->piece, 1, bytes))) {
		if (taken)
			spill_give_back(&b->piece[0]);
		free(b);
		spill_n--;
		return NULL;
	}
	b->n = 1;
	b->bytes = bytes;
	pthread_mutex_lock(&spill_lock);
	b->forks = spill_forks;
	spill_put(b);
	spill_keep();
	pthread_mutex_unlock(&spill_lock);
	spill_make_room(); /* the keeper may have to wait for a busy machine */
	return b->p;
}

size_t spill_bytes(const void *p)
{
	if (!spill_n || (uintptr_t)p % SPILL_PAGE)
		return 0;
	pthread_mutex_lock(&spill_lock);
	const struct spill_block *b = *spill_at(p);
	const size_t bytes = b ? b->bytes : 0;
	pthread_mutex_unlock(&spill_lock);
	return bytes;
}

static struct spill_block *spill_remove(void *p)
{
	pthread_mutex_lock(&spill_lock);
	struct spill_block **at = spill_at(p), *b = *at;
	assert(b);
	*at = b->next;
	pthread_mutex_unlock(&spill_lock);
	return b;
}

/* Its pages from `bytes` on, whole pages, leave the file, unless a child may still read them. */
static void spill_cut(struct spill_block *b, size_t bytes)
{
	munmap(b->p + bytes, b->bytes - bytes);
	while (b->bytes > bytes) {
		struct spill_piece *last = &b->piece[b->n - 1], cut = *last;
		cut.bytes = MIN(last->bytes, b->bytes - bytes);
		last->bytes -= cut.bytes;
		cut.at += (off_t)last->bytes;
		b->bytes -= cut.bytes;
		b->n -= !last->bytes;
		spill_drop_piece(&cut, b->forks);
	}
}

static bool spill_grow(struct spill_block *b, size_t bytes)
{
	struct spill_piece *more = &b->piece[b->n];
	if (!spill_take(more, bytes - b->bytes))
		return false;
	char *p = spill_map(b->piece, b->n + 1, bytes);
	if (!p) {
		spill_give_back(more);
		return false;
	}
	munmap(b->p, b->bytes);
	b->p = p;
	b->bytes = bytes;
	b->n++;
	return true;
}

static void spill_free(void *p)
{
	struct spill_block *b = spill_remove(p);
	spill_cut(b, 0);
	free(b);
	if (--spill_n == 0)
		spill_reuse();
}

static void *spill_move(void *p, size_t had, size_t bytes)
{
	void *fresh = spill_new(bytes);
	if (fresh) {
		memcpy(fresh, p, MIN(had, bytes));
		spill_free(p);
	}
	return fresh;
}

void *spill_resize(void *p, size_t bytes)
{
	if (spill_off)
		return NULL;
	struct spill_block *b = spill_remove(p);
	const size_t had = b->bytes;
	bool done = false;
	bytes = spill_whole_pages(MAX(bytes, 1));
	if (bytes && bytes <= had) {
		spill_cut(b, bytes);
		done = true;
	} else if (bytes && b->n < SPILL_PIECES) {
		done = spill_grow(b, bytes);
	}
	const bool moves = bytes && b->n == SPILL_PIECES && !done;
	p = b->p;
	pthread_mutex_lock(&spill_lock);
	spill_put(b);
	pthread_mutex_unlock(&spill_lock);
	spill_make_room(); /* the keeper may have to wait for a busy machine */
	return done ? p : moves ? spill_move(p, had, bytes) : NULL;
}

/* --- forks --- */

static void spill_before_fork(void)
{
	pthread_mutex_lock(&spill_lock);
}

static void spill_after_fork(void)
{
	if (spill_n && !spill_is_told)
		spill_forks++;
	spill_is_told = false;
	pthread_mutex_unlock(&spill_lock);
}

void spill_child_begins(void)
{
	pthread_mutex_lock(&spill_lock);
	spill_children++;
	spill_is_told = true;
	pthread_mutex_unlock(&spill_lock);
}

void spill_child_ended(void)
{
	pthread_mutex_lock(&spill_lock);
	assert(spill_children);
	struct spill_waiting *w = NULL;
	if (--spill_children == 0) {
		w = spill_waiting;
		spill_waiting = NULL;
	}
	pthread_mutex_unlock(&spill_lock);
	for (struct spill_waiting *next; w; w = next) {
		next = w->next;
		spill_give_back(&w->piece);
		free(w);
	}
	spill_reuse();
}

/* What this process writes must not be seen by the other. */
static void spill_in_child(void)
{
	spill_off = true;
	spill_strict = false;
	spill_is_child = true;
	spill_forks++; /* nothing that this process frees leaves the file */
	for (unsigned i = 0; i < SPILL_BUCKETS; i++)
		for (struct spill_block *b = spill_bucket[i]; b; b = b->next) {
			char *to = b->p;
			for (unsigned k = 0; k < b->n; to += b->piece[k++].bytes)
				if (mmap(to, b->piece[k].bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, spill_file, b->piece[k].at) == MAP_FAILED)
					mprotect(to, b->piece[k].bytes, PROT_READ);
		}
	pthread_mutex_unlock(&spill_lock);
}

/* --- the keeper --- */

/* Bytes of the process in memory, and of them those of files; false = not known. */
static bool spill_resident(uint64_t *all, uint64_t *of_files)
{
	char text[128];
	unsigned long long size, resident, shared;
	ssize_t n = pread(spill_statm, text, sizeof text - 1, 0);
	text[MAX(n, 0)] = 0;
	if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3)
		return false;
	*all = resident * (uint64_t)spill_page();
	*of_files = MIN(shared, resident) * (uint64_t)spill_page();
	return true;
}

/* Bytes of the file that may still become resident; 0 = drop some. *bytes: the most that may be. */
static uint64_t spill_room(uint64_t *bytes)
{
	const uint64_t least = 8 << 20;
	uint64_t all, of_files, most = spill_most;
	*bytes = most;
	if (!spill_resident(&all, &of_files))
		return most;
	*bytes = MAX(least, most - MIN(most, all - of_files)) / 8 * 5;
	return *bytes - MIN(*bytes, of_files);
}

/* Takes pages out of the process, block by block in turn, until there is room. */
static void spill_drop(void)
{
	static atomic_uint bucket;
	uint64_t bytes, room = 0;
	for (unsigned i = 0; i < SPILL_BUCKETS; i++) {
		pthread_mutex_lock(&spill_lock);
		const struct spill_block *b = spill_bucket[bucket++ % SPILL_BUCKETS];
		const bool any = b != NULL;
		for (; b; b = b->next)
			madvise(b->p, b->bytes, MADV_DONTNEED); /* of shared pages nothing is lost */
		pthread_mutex_unlock(&spill_lock);
		if (any)
			room = spill_room(&bytes);
		if (any && room > bytes / 2)
			return;
	}
}

/* Sleeps as long as filling `room` takes at 12 GB/s, between 1 and 50 ms. */
static void spill_wait(uint64_t room)
{
	const uint64_t bytes_per_ns = 12, least_ns = 1000000, most_ns = 50000000;
	const struct timespec t = {0, (long)MIN(MAX(room / bytes_per_ns, least_ns), most_ns)};
	nanosleep(&t, NULL);
}

/* The room that there is then. */
static uint64_t spill_make_room(void)
{
	uint64_t bytes, room = spill_room(&bytes);
	if (!room)
		spill_drop();
	return room;
}

static void *spill_run_keeper(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&spill_lock);
		while (!spill_n)
			pthread_cond_wait(&spill_begun, &spill_lock);
		pthread_mutex_unlock(&spill_lock);
		spill_wait(spill_make_room());
	}
	return NULL;
}

/* Under the lock. Without a thread for it, pages leave the process when the kernel finds that memory is short. */
static void spill_keep(void)
{
	pthread_attr_t how;
	pthread_t keeper;
	sigset_t all, before;
	if (!spill_kept && pthread_attr_init(&how) == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for threads that know of them */
		pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
		spill_kept = pthread_create(&keeper, &how, spill_run_keeper, NULL) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		pthread_attr_destroy(&how);
	}
	pthread_cond_signal(&spill_begun);
}

/* --- what goes to the file --- */

bool spill_is_due(size_t had, size_t bytes)
{
	const uint64_t most = spill_most, held = spill_held;
	if (!most || bytes < SPILL_BLOCK || spill_off || held - MIN(had, held) + bytes <= most / 3)
		return false;
	return spill_is_open();
}

void spill_note(size_t bytes)
{
	if (bytes >= SPILL_BLOCK)
		spill_held += bytes;
}

void spill_forget(size_t bytes)
{
	if (bytes >= SPILL_BLOCK)
		spill_held -= bytes;
}

void spill_release(void *p)
{
	if (spill_bytes(p)) {
		spill_free(p);
		return;
	}
	if (p)
		spill_forget(malloc_usable_size(p));
	free(p);
}

bool spill_is_strict(void)
{
	return spill_strict;
}

const char *spill_full(void)
{
	return spill_is_full ? spill_folder : NULL;
}

static void spill_set_handlers(void)
{
	pthread_atfork(spill_before_fork, spill_after_fork, spill_in_child);
}

static void spill_set(uint64_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, spill_set_handlers);
	spill_most = bytes;
}

int spill_limit(uint64_t bytes, struct err *e)
{
	const uint64_t before = spill_most;
	spill_set(bytes);
	spill_off = spill_is_child; /* $TMPDIR may be another one by now */
	if (!spill_is_open()) {
		spill_most = before;
		return err_set(e, ERR_IO, "no folder on a disk with space ($TMPDIR, /var/tmp, /tmp)");
	}
	spill_strict = !spill_is_child;
	return 0;
}

void spill_limit_unless_set(uint64_t bytes)
{
	if (bytes && !spill_most)
		spill_set(bytes);
}
