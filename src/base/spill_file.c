/* The files of base/spill: pieces of them are taken and given back. There is one, and another in the next folder when the disk of the first is full. */
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
/* In $TMPDIR, /var/tmp, /tmp. This and what follows: under the lock, but for the atomic ones; a descriptor is constant once its file is open. */
static struct spill_file {
	int fd;                          /* -1 = not opened */
	off_t end;
	char folder[PATH_MAX];
} spill_file[] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
enum { SPILL_FILES = sizeof spill_file / sizeof spill_file[0] };
static unsigned spill_at_file = SPILL_FILES; /* where pieces are taken; SPILL_FILES = no file is open */
static void (*spill_moved)(const char *from, const char *to); /* NULL = nobody is told, or somebody was */
static unsigned spill_untold;            /* forks with blocks in the file, of children whose end nobody tells */
static unsigned spill_children;          /* whose end will be told */
static struct spill_waiting *spill_waiting; /* for the end of those */
static atomic_bool spill_is_child;       /* of the process that made the file */
static atomic_bool spill_off;            /* no file could be had, or this is such a child */
static atomic_bool spill_is_full;
/* Stretches that nobody has, and that still have their pages: to take one again costs no zeroing, no hole and no writing of both. The oldest comes first. */
static struct spill_piece spill_spare[64];
static unsigned spill_spares;
enum { SPILL_SPARES = sizeof spill_spare / sizeof spill_spare[0] };
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

/* Whether the folder is on a disk with space for a part of what memory holds, and for so many bytes. */
static bool spill_fits(const char *folder, uint64_t bytes)
{
	const uint64_t least = UINT64_C(1) << 30;
	struct statfs fs;
	if (statfs(folder, &fs) < 0 || (uint32_t)fs.f_type == spill_tmpfs || (uint32_t)fs.f_type == spill_ramfs)
		return false;
	const uint64_t unit = (uint64_t)(fs.f_frsize ? fs.f_frsize : fs.f_bsize); /* f_bsize is what is read and written best */
	return fs.f_bavail >= MAX(MIN(spill_most, least), bytes) / MAX(unit, 1);
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

static bool spill_open_in(struct spill_file *f, const char *folder, uint64_t bytes)
{
	if (!folder || !*folder || strlen(folder) >= sizeof f->folder || !spill_fits(folder, bytes) || (f->fd = spill_unnamed(folder)) < 0)
		return false;
	strcpy(f->folder, folder);
	return true;
}

/* Under the lock. The first file from this one on that is open or can be; SPILL_FILES = there is none. */
static unsigned spill_open_from(unsigned i, uint64_t bytes)
{
	const char *const folder[SPILL_FILES] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	while (i < SPILL_FILES && spill_file[i].fd < 0 && !spill_open_in(&spill_file[i], folder[i], bytes))
		i++;
	return i;
}

bool spill_is_open(bool again)
{
	pthread_mutex_lock(&spill_lock);
	if (again)
		spill_off = spill_is_child;
	if (spill_at_file == SPILL_FILES && !spill_off)
		spill_at_file = spill_open_from(0, 0);
	if (spill_at_file == SPILL_FILES)
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

int spill_descriptor(const struct spill_piece *piece)
{
	return spill_file[piece->file].fd;
}

/* Whether the piece is zero now. False where the file system has no holes (NFS 3, FAT): the piece then stays what it was, and takes space until the process ends. */
static bool spill_make_hole(const struct spill_piece *piece)
{
	int failed = -1;
#ifdef FALLOC_FL_PUNCH_HOLE
	do
		failed = fallocate(spill_descriptor(piece), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece->at, (off_t)piece->bytes);
	while (failed && errno == EINTR);
#endif
	return !failed;
}

/* --- spare pieces --- */

/* Under the lock. */
static struct spill_piece spill_spare_remove(unsigned i)
{
	const struct spill_piece piece = spill_spare[i];
	memmove(spill_spare + i, spill_spare + i + 1, (--spill_spares - i) * sizeof *spill_spare);
	return piece;
}

/* Under the lock. With those that lie beside it. */
static struct spill_piece spill_spare_joined(struct spill_piece piece)
{
	for (unsigned i = 0; i < spill_spares;) {
		const struct spill_piece *x = &spill_spare[i];
		const bool before = x->at + (off_t)x->bytes == piece.at, behind = piece.at + (off_t)piece.bytes == x->at;
		if (x->file != piece.file || !(before || behind)) {
			i++;
			continue;
		}
		piece.at = MIN(piece.at, x->at);
		piece.bytes += x->bytes;
		spill_spare_remove(i);
		i = 0;
	}
	return piece;
}

/* Under the lock. Whether they hold more than the limit. */
static bool spill_spare_is_over(void)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < spill_spares; i++)
		bytes += spill_spare[i].bytes;
	return bytes > spill_most;
}

/* The oldest becomes a hole; false: none did. `all`: also where they hold no more than the limit. */
static bool spill_spare_drop(bool all)
{
	struct spill_piece oldest;
	pthread_mutex_lock(&spill_lock);
	const bool is = spill_spares && (all || spill_spare_is_over());
	if (is)
		oldest = spill_spare_remove(0);
	pthread_mutex_unlock(&spill_lock);
	if (is)
		spill_make_hole(&oldest);
	return is;
}

/* From the smallest that is large enough. False: none is. */
static bool spill_spare_take(struct spill_piece *piece, size_t bytes)
{
	unsigned best = SPILL_SPARES;
	pthread_mutex_lock(&spill_lock);
	for (unsigned i = 0; i < spill_spares; i++)
		if (spill_spare[i].bytes >= bytes && (!spill_is_huge(bytes) || spill_spare[i].at % SPILL_HUGE == 0) && (best == SPILL_SPARES || spill_spare[i].bytes < spill_spare[best].bytes))
			best = i;
	const bool is = best < SPILL_SPARES;
	if (is) {
		struct spill_piece *from = &spill_spare[best];
		*piece = (struct spill_piece){from->at, bytes, from->file};
		from->bytes -= bytes;
		if (spill_is_huge(bytes))
			from->at += (off_t)bytes;
		else
			piece->at += (off_t)from->bytes; /* the rest begins where it did, at a huge page's beginning */
		if (!from->bytes)
			spill_spare_remove(best);
	}
	pthread_mutex_unlock(&spill_lock);
	return is;
}

void spill_give_back(const struct spill_piece *piece)
{
	struct spill_piece oldest;
	pthread_mutex_lock(&spill_lock);
	const struct spill_piece spare = spill_spare_joined(*piece);
	const bool many = spill_spares == SPILL_SPARES;
	if (many)
		oldest = spill_spare_remove(0);
	spill_spare[spill_spares++] = spare;
	pthread_mutex_unlock(&spill_lock);
	if (many)
		spill_make_hole(&oldest);
	while (spill_spare_drop(false))
		;
}

/* --- pieces --- */

/* 0, or the error. */
static int spill_claim(const struct spill_piece *piece)
{
	int error;
	do
		error = posix_fallocate(spill_descriptor(piece), piece->at, (off_t)piece->bytes);
	while (error == EINTR);
	return error;
}

/* Of the file where pieces are taken. 0, or the error. */
static int spill_take_here(struct spill_piece *piece, size_t bytes)
{
	pthread_mutex_lock(&spill_lock);
	struct spill_file *f = &spill_file[spill_at_file];
	const off_t before = f->end;
	*piece = (struct spill_piece){before, bytes, spill_at_file};
	if (bytes > (uint64_t)(INT64_MAX - SPILL_HUGE - before)) {
		pthread_mutex_unlock(&spill_lock);
		return EINVAL;
	}
	if (spill_is_huge(bytes))
		piece->at = (before + SPILL_HUGE - 1) / SPILL_HUGE * SPILL_HUGE;
	const off_t end = f->end = piece->at + (off_t)bytes;
	pthread_mutex_unlock(&spill_lock);
	const int error = spill_claim(piece);
	if (!error)
		return 0;
	spill_make_hole(piece);
	pthread_mutex_lock(&spill_lock);
	if (f->end == end)
		f->end = before;
	pthread_mutex_unlock(&spill_lock);
	return error;
}

/* From a file on a full disk to the next that has room, or back to the one where `first` was taken. False: none has. */
static bool spill_go_on(unsigned full, unsigned first, size_t bytes)
{
	pthread_mutex_lock(&spill_lock);
	if (spill_at_file == full) /* else another thread was here */
		spill_at_file = spill_open_from(full + 1, bytes);
	const bool is = spill_at_file < SPILL_FILES;
	if (!is)
		spill_at_file = first;
	pthread_mutex_unlock(&spill_lock);
	return is;
}

/* Tells once that what comes goes to another folder. */
static void spill_say_moved(unsigned from, unsigned to)
{
	pthread_mutex_lock(&spill_lock);
	void (*moved)(const char *, const char *) = from == to ? NULL : spill_moved;
	if (moved)
		spill_moved = NULL;
	pthread_mutex_unlock(&spill_lock);
	if (moved)
		moved(spill_file[from].folder, spill_file[to].folder);
}

static bool spill_is_no_space(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* As spill_take, where no spare piece is taken. */
static bool spill_take_fresh(struct spill_piece *piece, size_t bytes)
{
	int error = spill_take_here(piece, bytes);
	while (spill_is_no_space(error) && spill_spare_drop(true))
		error = spill_take_here(piece, bytes);
	const unsigned first = piece->file;
	while (spill_is_no_space(error) && spill_go_on(piece->file, first, bytes))
		error = spill_take_here(piece, bytes);
	spill_is_full = spill_is_no_space(error) || error == EFBIG;
	if (!error)
		spill_say_moved(first, piece->file);
	return !error;
}

bool spill_take(struct spill_piece *piece, size_t bytes, bool zero)
{
	if (!spill_spare_take(piece, bytes))
		return spill_take_fresh(piece, bytes);
	spill_is_full = false;
	if (!zero)
		return true;
	if (spill_make_hole(piece))
		return spill_claim(piece) == 0 || spill_take_fresh(piece, bytes);
	spill_give_back(piece);
	return spill_take_fresh(piece, bytes); /* what no block has had is zero */
}

void spill_tell(void (*moved)(const char *from, const char *to))
{
	pthread_mutex_lock(&spill_lock);
	spill_moved = moved;
	pthread_mutex_unlock(&spill_lock);
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
	const bool may = !spill_n && !spill_children && !spill_untold && !spill_is_child;
	for (unsigned i = 0; may && i < SPILL_FILES; i++)
		if (spill_file[i].end && ftruncate(spill_file[i].fd, 0) == 0) {
			spill_file[i].end = 0;
			spill_at_file = MIN(spill_at_file, i);
			for (unsigned k = spill_spares; k-- > 0;)
				if (spill_spare[k].file == i)
					spill_spare_remove(k);
		}
	pthread_mutex_unlock(&spill_lock);
}

const char *spill_full(void)
{
	pthread_mutex_lock(&spill_lock);
	const char *folder = spill_is_full ? spill_file[spill_at_file].folder : NULL;
	pthread_mutex_unlock(&spill_lock);
	return folder;
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
	/* The last one counts until all pieces are given back: else another thread could begin the files anew in between. */
	for (struct spill_waiting *w; spill_children == 1 && (w = spill_waiting);) {
		spill_waiting = w->next;
		pthread_mutex_unlock(&spill_lock);
		spill_give_back(&w->piece);
		free(w);
		pthread_mutex_lock(&spill_lock);
	}
	spill_children--;
	pthread_mutex_unlock(&spill_lock);
	spill_reuse();
}
