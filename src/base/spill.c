#include "base/spill_own.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>

enum {
	SPILL_BUCKETS = 1 << 12,
	SPILL_PIECES = 48,         /* growing by half each time, 48 pieces exceed the address space */
};

struct spill_block {
	struct spill_block *next;  /* in its bucket */
	char *p;
	size_t bytes;              /* whole pages */
	unsigned forks;            /* spill_forks() when it was made */
	unsigned n;
	struct spill_piece piece[SPILL_PIECES];
};

static struct spill_block *spill_bucket[SPILL_BUCKETS]; /* under the lock */
static atomic_bool spill_strict;
static atomic_size_t spill_held;         /* bytes of large blocks in memory */

/* 0 = too many. */
static size_t spill_whole_pages(size_t bytes)
{
	const size_t page = spill_is_huge(bytes) ? SPILL_HUGE : spill_page();
	return bytes > SIZE_MAX / 2 ? 0 : (bytes + page - 1) / page * page;
}

/* --- blocks --- */

/* By Fibonacci hashing: the upper bits of the product are the mixed ones. */
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
		if (mmap(to, piece[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, spill_descriptor(&piece[i]), piece[i].at) == MAP_FAILED) {
			munmap(p, bytes);
			return NULL;
		}
	if (p && spill_is_huge(bytes))
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

/* Takes the pages of a bucket's blocks out of the process; false: it has none. */
static bool spill_drop_bucket(unsigned bucket)
{
	pthread_mutex_lock(&spill_lock);
	const struct spill_block *b = spill_bucket[bucket];
	const bool any = b != NULL;
	for (; b; b = b->next)
		madvise(b->p, b->bytes, MADV_DONTNEED); /* of shared pages nothing is lost */
	pthread_mutex_unlock(&spill_lock);
	return any;
}

void *spill_new(size_t bytes, bool zero)
{
	bytes = spill_whole_pages(bytes);
	struct spill_block *b = bytes ? malloc(sizeof *b) : NULL;
	spill_n++; /* from here on the files' offsets stay what they are */
	const bool taken = b && spill_take(&b->piece[0], bytes, zero);
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
	b->forks = spill_forks();
	spill_put(b);
	spill_keep(spill_drop_bucket, SPILL_BUCKETS);
	pthread_mutex_unlock(&spill_lock);
	spill_make_room();
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
		spill_give_back_later(&cut, b->forks);
	}
}

static bool spill_grow(struct spill_block *b, size_t bytes)
{
	struct spill_piece *more = &b->piece[b->n];
	if (!spill_take(more, bytes - b->bytes, false))
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
	void *fresh = spill_new(bytes, false);
	if (fresh) {
		memcpy(fresh, p, MIN(had, bytes));
		spill_free(p);
	}
	return fresh;
}

void *spill_resize(void *p, size_t bytes)
{
	if (spill_is_off())
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
	spill_make_room();
	return done ? p : moves ? spill_move(p, had, bytes) : NULL;
}

/* --- forks --- */

static void spill_before_fork(void)
{
	pthread_mutex_lock(&spill_lock);
}

static void spill_after_fork(void)
{
	spill_file_after_fork();
	pthread_mutex_unlock(&spill_lock);
}

/* What this process writes must not be seen by the other. */
static void spill_in_child(void)
{
	spill_strict = false;
	spill_file_in_child();
	for (unsigned i = 0; i < SPILL_BUCKETS; i++)
		for (struct spill_block *b = spill_bucket[i]; b; b = b->next) {
			char *to = b->p;
			for (unsigned k = 0; k < b->n; to += b->piece[k++].bytes)
				if (mmap(to, b->piece[k].bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, spill_descriptor(&b->piece[k]), b->piece[k].at) == MAP_FAILED)
					mprotect(to, b->piece[k].bytes, PROT_READ);
		}
	pthread_mutex_unlock(&spill_lock);
}

/* --- what goes to the file --- */

/* A third of the limit: what the rest of the process takes, and the file's resident pages, need the others. */
bool spill_is_due(size_t had, size_t bytes)
{
	const uint64_t most = spill_most, held = spill_held;
	if (!most || bytes < SPILL_BLOCK || spill_is_off() || held - MIN(had, held) + bytes <= most / 3)
		return false;
	return spill_is_open(false);
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

bool spill_is_short(void)
{
	return spill_strict || spill_n;
}

uint64_t spill_most_bytes(void)
{
	return spill_most;
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
	if (!spill_is_of_parent() && !spill_is_open(true)) { /* $TMPDIR may be another one by now */
		spill_most = before;
		return err_set(e, ERR_IO, "no folder on a disk with space ($TMPDIR, /var/tmp, /tmp)");
	}
	spill_strict = !spill_is_of_parent();
	return 0;
}

void spill_limit_unless_set(uint64_t bytes)
{
	if (bytes && !spill_most)
		spill_set(bytes);
}
