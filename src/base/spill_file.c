/* The file of base/spill: pieces of it are taken and given back. */
#include "base/spill_own.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A stretch that was given back while a child may read it. */
struct spill_waiting {
	struct spill_waiting *next;
	struct spill_piece piece;
};

pthread_mutex_t spill_lock = PTHREAD_MUTEX_INITIALIZER;
atomic_uint_fast64_t spill_most;
atomic_uint spill_n;
static off_t spill_end;                  /* of the file; this and what follows: under the lock, but for the atomic ones */
static unsigned spill_untold;            /* forks with blocks in the file, of children whose end nobody tells */
static unsigned spill_children;          /* whose end will be told */
static struct spill_waiting *spill_waiting; /* for the end of those */
static int spill_file = -1;
static char spill_folder[PATH_MAX];
static atomic_bool spill_is_child;       /* of the process that made the file */
static atomic_bool spill_off;            /* no file could be had, or this is such a child */
static atomic_bool spill_is_full;
static __thread bool spill_is_told;      /* the end of the child that this thread forks next */

size_t spill_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Filesystems with large folios write and fault whole 2 MB folios: such blocks are aligned to them. Below a limit of 256 MB a few folios would be all of it. */
bool spill_is_huge(size_t bytes)
{
	return bytes >= SPILL_HUGE && spill_most >= 256 << 20;
}

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
	strcpy(spill_folder, folder);
	return true;
}

bool spill_is_open(bool again)
{
	pthread_mutex_lock(&spill_lock);
	if (again)
		spill_off = spill_is_child;
	if (spill_file < 0 && !spill_off && !spill_open_in(getenv("TMPDIR")) && !spill_open_in("/var/tmp"))
		spill_open_in("/tmp");
	if (spill_file < 0)
		spill_off = true;
	const bool is = !spill_off;
	pthread_mutex_unlock(&spill_lock);
	return is;
}

bool spill_is_off(void)
{
	return spill_off;
}

bool spill_is_of_parent(void)
{
	return spill_is_child;
}

int spill_descriptor(void)
{
	return spill_file;
}

void spill_give_back(const struct spill_piece *piece)
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

bool spill_take(struct spill_piece *piece, size_t bytes)
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

void spill_give_back_later(const struct spill_piece *piece, unsigned forks)
{
	pthread_mutex_lock(&spill_lock);
	const bool never = forks != spill_untold, later = !never && spill_children;
	struct spill_waiting *w = later ? malloc(sizeof *w) : NULL;
	if (w) {
		*w = (struct spill_waiting){spill_waiting, *piece};
		spill_waiting = w;
	}
	pthread_mutex_unlock(&spill_lock);
	if (!never && !later)
		spill_give_back(piece);
}

void spill_reuse(void)
{
	pthread_mutex_lock(&spill_lock);
	if (spill_end && !spill_n && !spill_children && !spill_untold && !spill_is_child && ftruncate(spill_file, 0) == 0)
		spill_end = 0;
	pthread_mutex_unlock(&spill_lock);
}

const char *spill_full(void)
{
	return spill_is_full ? spill_folder : NULL;
}

/* --- children --- */

unsigned spill_forks(void)
{
	return spill_untold;
}

void spill_file_after_fork(void)
{
	if (spill_n && !spill_is_told)
		spill_untold++;
	spill_is_told = false;
}

void spill_file_in_child(void)
{
	spill_off = true;
	spill_is_child = true;
	spill_untold++; /* nothing that this process frees leaves the file */
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
