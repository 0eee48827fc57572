#include "io/source.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/search.h"
#include "io/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

/* Blocks are small enough to stay in a core's share of the cache, large enough that handing one over costs nothing, and
 * have room in front for the unfinished event that the reader keeps. */
enum { BLOCK = 256 << 10, HEADROOM = 64 << 10, RING = 5, RAW = 128 << 10 };

struct source_block {
	char *memory; /* HEADROOM + BLOCK + SOURCE_PADDING */
	size_t n;
};

struct source {
	int fd;               /* -1: of `remote` */
	struct remote *remote;
	bool is_stdin, gzip, threaded;
	char *path;
	struct str root;
	uint64_t file_bytes, bytes_in;
	struct source *whole; /* of which this reads a part; NULL = none */
	int64_t place;        /* of the next block of a plain file, in bytes from its first block */
	bool by_place;        /* read at `place`, wherever the file stands */
	struct stat opened;
	char error[256];
	enum err_code failed; /* atomic: set behind `error` */
	struct mem_undo undo;

	char *raw;            /* compressed bytes; also what was peeked of a plain file */
	size_t raw_n, raw_at;
	bool raw_end;
#ifdef HAVE_ISAL
	struct inflate_state inflate;
#else
	z_stream inflate;
#endif
	bool member_open;     /* inside a gzip member */

	struct source_block ring[RING];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned filled, taken; /* counters; filled - taken blocks are ready; under lock */
	bool finished, stop;    /* under lock */

	struct str peeked;    /* the first block, handed out by peek and not yet by next */
	bool peek_end;
	source_progress_fn *progress;
	void *progress_context;
	char *big;            /* for a `keep` longer than HEADROOM */
	size_t big_cap;
};

static void source_fail(struct source *s, enum err_code code, const char *what, const char *why)
{
	snprintf(s->error, sizeof s->error, "%s%s", what, why);
	__atomic_store_n(&s->failed, code, __ATOMIC_RELEASE);
}

/* The next bytes, of which `done` of the block are there. */
static ssize_t read_some(struct source *s, char *p, size_t n, off_t done)
{
	ssize_t got;
	do
		got = s->remote ? remote_read(s->remote, p, n) : s->by_place ? pread(s->fd, p, n, s->place + done) : read(s->fd, p, n);
	while (got < 0 && !s->remote && errno == EINTR);
	if (got < 0)
		source_fail(s, ERR_IO, "cannot read: ", s->remote ? remote_error(s->remote) : strerror(errno));
	else
		__atomic_add_fetch(s->whole ? &s->whole->bytes_in : &s->bytes_in, (uint64_t)got, __ATOMIC_RELAXED);
	return got;
}

static bool raw_refill(struct source *s)
{
	if (s->raw_at < s->raw_n)
		return true;
	if (s->raw_end)
		return false;
	ssize_t got = read_some(s, s->raw, RAW, 0);
	s->raw_at = 0;
	s->raw_n = got > 0 ? (size_t)got : 0;
	s->raw_end = got <= 0;
	return got > 0;
}

#ifdef HAVE_ISAL
static void member_begin(struct source *s)
{
	isal_inflate_init(&s->inflate);
	s->inflate.crc_flag = ISAL_GZIP;
}

/* Unpacks from raw into [p, p + n); returns 1 when the member ended, 0 to go on, -1 when damaged. */
static int member_step(struct source *s, char *p, size_t n, size_t *out)
{
	s->inflate.next_in = (uint8_t *)s->raw + s->raw_at;
	s->inflate.avail_in = (uint32_t)(s->raw_n - s->raw_at);
	s->inflate.next_out = (uint8_t *)p;
	s->inflate.avail_out = (uint32_t)n;
	int rc = isal_inflate(&s->inflate);
	s->raw_at = s->raw_n - s->inflate.avail_in;
	*out = n - s->inflate.avail_out;
	if (rc != ISAL_DECOMP_OK && rc != ISAL_END_INPUT)
		return -1;
	return s->inflate.block_state == ISAL_BLOCK_FINISH;
}

static void member_end(struct source *s)
{
}
#else
static void member_begin(struct source *s)
{
	memset(&s->inflate, 0, sizeof s->inflate);
	if (inflateInit2(&s->inflate, 15 + 16) != Z_OK)
		source_fail(s, ERR_NOMEM, "out of memory while gzip data was unpacked", "");
}

static int member_step(struct source *s, char *p, size_t n, size_t *out)
{
	s->inflate.next_in = (Bytef *)s->raw + s->raw_at;
	s->inflate.avail_in = (uInt)(s->raw_n - s->raw_at);
	s->inflate.next_out = (Bytef *)p;
	s->inflate.avail_out = (uInt)n;
	int rc = inflate(&s->inflate, Z_NO_FLUSH);
	s->raw_at = s->raw_n - s->inflate.avail_in;
	*out = n - s->inflate.avail_out;
	if (rc == Z_MEM_ERROR)
		source_fail(s, ERR_NOMEM, "out of memory while gzip data was unpacked", "");
	return rc == Z_STREAM_END ? 1 : rc == Z_OK || rc == Z_BUF_ERROR ? 0 : -1;
}

static void member_end(struct source *s)
{
	inflateEnd(&s->inflate);
}
#endif

/* Fills one block with unpacked bytes; 0 at the end of the stream or of what is sound. A file may hold several members one
 * after another; what follows the last one and is no member is ignored, as gzip does. */
static size_t fill_gzip(struct source *s, char *p)
{
	size_t n = 0;
	while (n < BLOCK && !s->error[0]) {
		if (!raw_refill(s)) {
			if (s->member_open && !s->error[0])
				snprintf(s->error, sizeof s->error, "gzip data ends early, after %llu bytes of the file",
				         (unsigned long long)s->bytes_in);
			break;
		}
		if (!s->member_open) {
			if (s->bytes_in > s->raw_n && (uint8_t)s->raw[s->raw_at] != 0x1f)
				break;
			member_begin(s);
			s->member_open = true;
			if (s->failed)
				break;
		}
		size_t out = 0;
		int rc = member_step(s, p + n, BLOCK - n, &out);
		n += out;
		if (rc < 0) {
			if (!s->failed)
				snprintf(s->error, sizeof s->error, "gzip data is damaged near byte %llu of the file",
			         (unsigned long long)(s->bytes_in - (s->raw_n - s->raw_at)));
			break;
		}
		if (rc == 1) {
			member_end(s);
			s->member_open = false;
			if (s->raw_at < s->raw_n && (uint8_t)s->raw[s->raw_at] != 0x1f)
				s->raw_at = s->raw_n, s->raw_end = true;
		}
	}
	return n;
}

/* Where the block ends that holds this byte, in a file without end. */
static int64_t source_next_border(int64_t offset)
{
	return (offset / BLOCK + 1) * BLOCK;
}

static size_t fill_plain(struct source *s, char *p)
{
	size_t n = 0;
	if (s->raw_at < s->raw_n) {
		n = s->raw_n - s->raw_at;
		memcpy(p, s->raw + s->raw_at, n);
		s->raw_at = s->raw_n;
	}
	const size_t all = (size_t)(source_next_border(s->place) - s->place);
	while (n < all) {
		ssize_t got = s->error[0] ? 0 : read_some(s, p + n, all - n, (off_t)n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	s->place += (int64_t)n;
	return n;
}

static void source_fill(struct source *s, struct source_block *b)
{
	char *p = b->memory + HEADROOM;
	b->n = s->gzip ? fill_gzip(s, p) : fill_plain(s, p);
	memset(p + b->n, 0, SOURCE_PADDING);
}

static void *fill_ahead(void *arg)
{
	struct source *s = arg;
	for (;;) {
		pthread_mutex_lock(&s->lock);
		/* Two blocks are the reader's: the one handed out last, and the one before it while `keep` is copied. */
		while (!s->stop && s->filled - s->taken >= RING - 2)
			pthread_cond_wait(&s->changed, &s->lock);
		bool stop = s->stop;
		unsigned at = s->filled % RING;
		pthread_mutex_unlock(&s->lock);
		if (stop)
			return NULL;
		source_fill(s, &s->ring[at]);
		pthread_mutex_lock(&s->lock);
		s->filled++;
		s->finished = s->ring[at].n == 0;
		pthread_cond_signal(&s->changed);
		bool finished = s->finished;
		pthread_mutex_unlock(&s->lock);
		if (finished)
			return NULL;
	}
}

static struct source_block *source_take(struct source *s)
{
	if (!s->threaded) {
		struct source_block *b = &s->ring[s->taken++ % 2];
		source_fill(s, b);
		return b;
	}
	pthread_mutex_lock(&s->lock);
	while (s->filled == s->taken)
		pthread_cond_wait(&s->changed, &s->lock);
	struct source_block *b = &s->ring[s->taken % RING];
	if (b->n) {
		s->taken++; /* the empty last block stays, for every further call */
		pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return b;
}

/* A pipe with a name waits for its writer, and signals come meanwhile. */
static int open_any(const char *path, struct err *e)
{
	int fd;
	do
		fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno)) : fd;
}

static void source_abandon(void *s)
{
	source_close(s);
}

static char *source_text(const char *text)
{
	return memcpy(mem_alloc(strlen(text) + 1, 1), text, strlen(text) + 1);
}

static int open_regular(const char *path, struct err *e)
{
	return file_open_regular(path, 0, NULL, e);
}

/* Text and packed text are read from front to back; a database, a report of a profiler and the like by place, wherever they say. */
static bool is_read_by_place(struct str head)
{
	const bool gzip = head.n >= 2 && (uint8_t)head.p[0] == 0x1f && (uint8_t)head.p[1] == 0x8b;
	return !gzip && ANY_WHERE(i, 0, head.n, (uint8_t)head.p[i] < ' ' && !strchr("\t\n\r\f", head.p[i] ? head.p[i] : 1));
}

/* Sets s->remote, or s->fd and s->path of a local copy. */
static int source_open_remote(struct source *s, const char *path, struct err *e)
{
	enum { HEAD = 512 };
	struct buf local = {0};
	s->remote = remote_open(path, e);
	if (!s->remote)
		return -1;
	if (!is_read_by_place(remote_peek(s->remote, HEAD)))
		return 0;
	int rc = remote_local(s->remote, &local, e);
	remote_close(s->remote);
	s->remote = NULL;
	s->fd = rc < 0 ? -1 : open_regular(local.p, e);
	if (s->fd >= 0)
		s->path = source_text(local.p);
	buf_release(&local);
	return s->fd < 0 ? -1 : 0;
}

static struct source *open_with(const char *path, int (*open_path)(const char *path, struct err *e), struct err *e)
{
	struct source *s = NEW(struct source);
	s->is_stdin = strcmp(path, "-") == 0;
	s->fd = -1;
	mem_undo_begin(&s->undo, source_abandon, s);
	struct stat st = {0};
	int rc = 0;
	if (remote_is(path))
		rc = source_open_remote(s, path, e);
	else
		s->fd = s->is_stdin ? STDIN_FILENO : open_path(path, e);
	if (rc == 0 && !s->remote)
		rc = s->fd < 0 ? -1 : fstat(s->fd, &st) == 0 ? 0 : err_set(e, ERR_IO, "%s: cannot open: %s", path, strerror(errno));
	if (rc < 0) {
		source_close(s);
		return NULL;
	}
	if (S_ISDIR(st.st_mode)) {
		err_set(e, ERR_IO, "%s: is a directory, a file was expected", path);
		source_close(s);
		return NULL;
	}
	if (!s->path)
		s->path = source_text(path);
	s->opened = st;
	s->file_bytes = s->remote ? remote_bytes(s->remote) : S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	s->raw = mem_alloc(RAW, 1);
	while (s->raw_n < 2) { /* a pipe may give one byte at first */
		ssize_t got = read_some(s, s->raw + s->raw_n, RAW - s->raw_n, 0);
		if (got <= 0)
			break;
		s->raw_n += (size_t)got;
	}
	s->gzip = s->raw_n >= 2 && (uint8_t)s->raw[0] == 0x1f && (uint8_t)s->raw[1] == 0x8b;
	unsigned blocks = s->gzip ? RING : 2;
	for (unsigned i = 0; i < blocks; i++)
		s->ring[i].memory = mem_alloc(HEADROOM + BLOCK + SOURCE_PADDING, 1);
	/* A second thread pays only when there is unpacking to do for longer than a thread takes to start. */
	if (s->gzip && (s->file_bytes == 0 || s->file_bytes > 32 << 10)) {
		pthread_mutex_init(&s->lock, NULL);
		pthread_cond_init(&s->changed, NULL);
		s->threaded = pthread_create(&s->thread, NULL, fill_ahead, s) == 0;
	}
	return s;
}

struct source *source_open(const char *path, struct err *e)
{
	return open_with(path, open_any, e);
}

struct source *source_open_regular(const char *path, struct err *e)
{
	return open_with(path, open_regular, e);
}

void source_set_root(struct source *s, struct str root)
{
	s->root = root;
}

struct str source_root(const struct source *s)
{
	return s->root;
}

struct str source_peek(struct source *s)
{
	if (!s->peeked.p)
		s->peeked = source_next(s, (struct str){NULL, 0}, &s->peek_end);
	struct str head = s->peeked;
	if (head.n > SOURCE_PEEK_BYTES)
		head.n = SOURCE_PEEK_BYTES;
	return head;
}

/* `keep` in front of block b, in a buffer of its own. */
static struct str source_join(struct source *s, struct str keep, const struct source_block *b)
{
	size_t need = keep.n + b->n + SOURCE_PADDING;
	if (keep.p != s->big) {
		char *fresh = mem_alloc(need * 2, 1);
		memcpy(fresh, keep.p, keep.n);
		mem_free(s->big);
		s->big = fresh;
		s->big_cap = need * 2;
	} else {
		MEM_GROW(s->big, s->big_cap, need);
	}
	memcpy(s->big + keep.n, b->memory + HEADROOM, b->n + SOURCE_PADDING);
	return (struct str){s->big, keep.n + b->n};
}

bool source_is_by_place(const struct source *s)
{
	return !s->gzip && !s->is_stdin && !s->remote && S_ISREG(s->opened.st_mode);
}

struct source *source_from(struct source *whole, int64_t offset)
{
	struct source *s = NEW(struct source);
	s->fd = whole->fd;
	s->whole = whole;
	s->opened = whole->opened;
	s->file_bytes = whole->file_bytes;
	s->place = offset;
	s->by_place = true;
	for (unsigned i = 0; i < 2; i++)
		s->ring[i].memory = mem_alloc(HEADROOM + BLOCK + SOURCE_PADDING, 1);
	return s;
}

void source_seek(struct source *s, int64_t offset)
{
	s->place = offset;
	s->by_place = true;
	s->raw_at = s->raw_n;
	s->peeked = (struct str){NULL, 0};
}

int64_t source_block_end(const struct source *s, int64_t offset)
{
	const int64_t end = source_next_border(offset);
	return end < (int64_t)s->file_bytes ? end : (int64_t)s->file_bytes;
}

size_t source_read_at(const struct source *s, int64_t offset, char *p, size_t n)
{
	size_t done = 0;
	ssize_t got;
	while (done < n && ((got = pread(s->fd, p + done, n - done, offset + (off_t)done)) > 0 || (got < 0 && errno == EINTR)))
		done += got > 0 ? (size_t)got : 0;
	return done;
}

void source_tell_progress(struct source *s)
{
	/* What was read twice is told once. */
	const uint64_t done = source_bytes_in(s);
	if (s->progress)
		s->progress(s->progress_context, s->file_bytes && done > s->file_bytes ? s->file_bytes : done, s->file_bytes);
}

struct str source_next(struct source *s, struct str keep, bool *end)
{
	if (s->peeked.p && !keep.n) {
		struct str first = s->peeked;
		s->peeked = (struct str){NULL, 0};
		*end = s->peek_end;
		return first;
	}
	const struct source_block *b = source_take(s);
	source_tell_progress(s);
	*end = b->n == 0;
	if (keep.n > HEADROOM)
		return source_join(s, keep, b);
	char *p = b->memory + HEADROOM - keep.n;
	if (keep.n)
		memmove(p, keep.p, keep.n);
	return (struct str){p, keep.n + b->n};
}

bool source_changed(const struct source *s)
{
	struct stat now;
	const struct stat *old = &s->opened;
	return S_ISREG(old->st_mode) && fstat(s->fd, &now) == 0 &&
	       (now.st_size != old->st_size || now.st_mtim.tv_sec != old->st_mtim.tv_sec || now.st_mtim.tv_nsec != old->st_mtim.tv_nsec);
}

void source_set_progress(struct source *s, source_progress_fn *fn, void *context)
{
	s->progress = fn;
	s->progress_context = context;
}

const char *source_error(const struct source *s)
{
	return s->error[0] ? s->error : NULL;
}

enum err_code source_failed(const struct source *s)
{
	return __atomic_load_n(&s->failed, __ATOMIC_ACQUIRE);
}

const char *source_path(const struct source *s)
{
	return s->path;
}

uint64_t source_file_bytes(const struct source *s)
{
	return s->file_bytes;
}

uint64_t source_bytes_in(const struct source *s)
{
	return __atomic_load_n(&s->bytes_in, __ATOMIC_RELAXED);
}

uint64_t source_size_of(const char *path)
{
	struct stat st;
	struct remote_state state;
	if (remote_is(path))
		return remote_state(path, &state) ? state.bytes : 0;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

bool source_is_compressed(const struct source *s)
{
	return s->gzip;
}

void source_close(struct source *s)
{
	if (!s)
		return;
	mem_undo_end(&s->undo);
	if (s->remote)
		remote_stop(s->remote);
	if (s->threaded) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_signal(&s->changed);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
		pthread_cond_destroy(&s->changed);
		pthread_mutex_destroy(&s->lock);
	}
	if (s->member_open)
		member_end(s);
	if (!s->is_stdin && !s->whole && s->fd >= 0)
		close(s->fd);
	if (s->remote)
		remote_close(s->remote);
	for (unsigned i = 0; i < RING; i++)
		mem_free(s->ring[i].memory);
	mem_free(s->raw);
	mem_free(s->big);
	mem_free(s->path);
	mem_free(s);
}

int source_read_whole(const char *path, uint64_t most, const char *what, struct buf *to, struct err *e)
{
	struct source *s = source_open(path, e);
	bool end = false;
	if (!s)
		return -1;
	const size_t before = to->n;
	while (!end && to->n - before <= most)
		buf_str(to, source_next(s, (struct str){NULL, 0}, &end));
	int rc = 0;
	if (!end)
		rc = err_set(e, ERR_LIMIT, "%s: more than %llu GiB %s", path, (unsigned long long)(most >> 30), what);
	else if (source_error(s))
		rc = err_set(e, source_failed(s) ? source_failed(s) : ERR_FORMAT, "%s: %s", path, source_error(s));
	source_close(s);
	return rc;
}
