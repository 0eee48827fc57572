#include "input/capture/capture.h"

#include "base/machine.h"
#include "base/sort.h"
#include "input/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_MOST = 1 << 20, GRAIN_LEAST = 64, OPEN_TRIES = 20 };

/* As many bytes as there are; a hole in the file is zeros. */
static size_t read_at(struct capture_file *f, uint64_t at, void *to, size_t n)
{
	size_t have = 0;
	while (have < n) {
		ssize_t got = pread(f->fd, (char *)to + have, n - have, (off_t)(at + have));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			f->error = errno;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	return have;
}

/* The clock of the last anchor may be changing just now: it is taken when nobody was writing it. */
static void capture_file_read_header(struct capture_file *f)
{
	struct wire_header again;
	for (int i = 0; i < OPEN_TRIES; i++) {
		if (read_at(f, 0, &f->h, sizeof f->h) < sizeof f->h || read_at(f, 0, &again, sizeof again) < sizeof again)
			return;
		if (!(f->h.anchor_lock & 1) && f->h.anchor_lock == again.anchor_lock && !memcmp(&f->h.last, &again.last, sizeof again.last))
			return;
	}
	f->h.last = f->h.first;
}

static int capture_file_bad(struct err *e, const char *path, const char *what)
{
	return err_set(e, ERR_FORMAT, "%s: %s", path, what);
}

static int check_header(struct capture_file *f, const char *path, struct err *e)
{
	struct wire_header *h = &f->h;
	if (memcmp(h->magic, WIRE_MAGIC, sizeof h->magic) != 0)
		return capture_file_bad(e, path, "no segment of a capture: its first bytes are not " WIRE_MAGIC);
	if (h->version > WIRE_VERSION)
		return err_set(e, ERR_FORMAT, "%s: a segment of version %u, this program knows up to %u", path, h->version, WIRE_VERSION);
	f->block = h->block_bytes;
	f->grain = h->grain_bytes;
	if (f->grain < GRAIN_LEAST || f->grain > WIRE_BLOCK || f->grain % GRAIN_LEAST || f->block < f->grain || f->block > CHUNK_MOST ||
	    f->block % f->grain)
		return capture_file_bad(e, path, "a segment whose header states impossible sizes");
	h->boot_id[sizeof h->boot_id - 1] = h->host[sizeof h->host - 1] = h->library[sizeof h->library - 1] = 0;
	return 0;
}

static bool chunk_of(const struct capture_file *f, const struct wire_chunk *w, uint64_t at, struct capture_chunk *c)
{
	uint64_t bytes = (uint64_t)w->grains * f->grain;
	if (w->magic != WIRE_CHUNK_MAGIC || w->offset != at || !w->grains || bytes > CHUNK_MOST || (w->kind != WIRE_EVENTS && w->kind != WIRE_KEEP))
		return false;
	*c = (struct capture_chunk){at, w->sequence, w->thread, w->thread_number, w->ordinal, (uint32_t)(bytes - sizeof *w), w->kind == WIRE_KEEP};
	return true;
}

/* Where to read on: a hole of the file as large as no writer leaves one is passed over. A smaller one may be none: some file systems do not know of what is
 * being written through a mapping. */
static uint64_t after_hole(const struct capture_file *f, uint64_t at, uint64_t end)
{
	enum { HOLE_LEAST = 256 << 20 };
	off_t data = lseek(f->fd, (off_t)at, SEEK_DATA);
	uint64_t to = data >= 0 ? (uint64_t)data : errno == ENXIO ? end : at;
	return to < at + HOLE_LEAST ? at : to - (to - f->block) % f->grain;
}

/* A grain that is the beginning of no chunk is skipped: it was handed out and never used, or is damaged. */
static void capture_file_list_chunks(struct capture_file *f)
{
	enum { WINDOW = 1 << 20 };
	char *window = mem_alloc(1, WINDOW);
	uint64_t end = f->h.used_bytes < f->bytes ? f->h.used_bytes : f->bytes, from = 0, upto = 0;
	for (uint64_t at = f->block; at + sizeof(struct wire_chunk) <= end;) {
		struct wire_chunk w;
		struct capture_chunk c;
		if (at < from || at + sizeof w > upto) {
			at = after_hole(f, at, end);
			if (at + sizeof w > end)
				break;
			from = at;
			upto = at + read_at(f, at, window, end - at < WINDOW ? (size_t)(end - at) : WINDOW);
			if (at + sizeof w > upto)
				break;
		}
		memcpy(&w, window + (at - from), sizeof w);
		if (!chunk_of(f, &w, at, &c)) {
			at += f->grain;
			continue;
		}
		MEM_PUSH(f->chunk, f->n, f->cap, c);
		at += (uint64_t)w.grains * f->grain;
	}
	mem_free(window);
}

static int capture_file_compare(const void *x, const void *y)
{
	const struct capture_chunk *a = x, *b = y;
	int place = a->kept || b->kept ? COMPARE(b->kept, a->kept) : COMPARE(a->number, b->number) ?: COMPARE(a->thread, b->thread);
	return place ?: COMPARE(a->sequence, b->sequence) ?: COMPARE(a->offset, b->offset);
}

static void capture_file_abandon(void *f)
{
	capture_file_close(f);
}

int capture_file_open(struct capture_file *f, const char *path, bool lists, struct err *e)
{
	struct stat st;
	*f = (struct capture_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	mem_undo_begin(&f->undo, capture_file_abandon, f);
	if (f->fd < 0 || fstat(f->fd, &st) < 0) {
		f->error = discover_is_absent(errno) ? 0 : errno;
		err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
		capture_file_close(f);
		return -1;
	}
	f->bytes = S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
	if (f->bytes >= sizeof f->h)
		capture_file_read_header(f);
	int rc = f->error ? err_set(e, ERR_IO, "%s: cannot read: %s", path, strerror(f->error)) : check_header(f, path, e);
	if (rc < 0) {
		capture_file_close(f);
		return -1;
	}
	if (lists) {
		capture_file_list_chunks(f);
		if (f->error) {
			err_set(e, ERR_IO, "%s: cannot read: %s", path, strerror(f->error));
			capture_file_close(f);
			return -1;
		}
		if (f->n)
			qsort(f->chunk, f->n, sizeof *f->chunk, capture_file_compare);
		f->records = mem_alloc(1, CHUNK_MOST);
	}
	return 0;
}

void capture_file_close(struct capture_file *f)
{
	mem_undo_end(&f->undo);
	if (f->fd >= 0)
		close(f->fd);
	mem_free(f->chunk);
	mem_free(f->records);
	*f = (struct capture_file){.fd = -1, .error = f->error};
}

uint32_t capture_file_load(struct capture_file *f, const struct capture_chunk *c)
{
	struct wire_chunk before, after;
	if (read_at(f, c->offset, &before, sizeof before) < sizeof before || before.sequence != c->sequence || !c->sequence)
		return 0;
	uint32_t n = before.committed < c->bytes ? before.committed : c->bytes;
	n = (uint32_t)read_at(f, c->offset + sizeof before, f->records, n);
	if (read_at(f, c->offset, &after, sizeof after) < sizeof after || after.sequence != c->sequence)
		return 0;
	return n & ~7u;
}

/* 0 where the header tells a time that is still to come. */
static int64_t age_of(const struct wire_header *h)
{
	struct timespec now;
	int64_t age;
	if (clock_gettime(CLOCK_MONOTONIC_RAW, &now) < 0 ||
	    __builtin_sub_overflow((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, h->first.monotonic_raw_ns, &age) || age < 0)
		return 0;
	return age;
}

bool capture_file_lives(const struct wire_header *h)
{
	struct utsname u;
	char boot[sizeof h->boot_id];
	machine_boot_id(boot, sizeof boot);
	return h->state == WIRE_RUNNING && boot[0] && strcmp(boot, h->boot_id) == 0 && uname(&u) == 0 && strncmp(u.nodename, h->host, sizeof h->host - 1) == 0 &&
	       machine_process_lives(h->pid, age_of(h));
}
