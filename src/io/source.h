/* A stream of bytes from a file or stdin, unpacked on the way if it is gzip. Reading (and unpacking) runs in a second
 * thread, a bounded number of blocks ahead, where that pays. Life cycle: source_open, source_peek, source_next...,
 * source_close. */
#ifndef OPSCOPE_IO_SOURCE_H
#define OPSCOPE_IO_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum { SOURCE_PEEK_BYTES = 64 << 10, SOURCE_PADDING = 64 };

struct source;

/* `path` "-" means stdin; an address (io/remote/remote.h) is read as it comes, or, where its first bytes are no text, as a local copy. NULL and *e on failure. */
struct source *source_open(const char *path, struct err *e);
/* The same of a path that was found and not named: ERR_IO at once for a pipe or device, whose bytes would be waited for. */
struct source *source_open_regular(const char *path, struct err *e);

/* For readers of traces of several files: input_options.root. Borrowed. */
void source_set_root(struct source *s, struct str root);
struct str source_root(const struct source *s);

/* The first bytes, uncompressed, without consuming them: up to SOURCE_PEEK_BYTES, fewer when the input is shorter. */
struct str source_peek(struct source *s);

/* The next block of bytes, in front of which the bytes of `keep` stand again (they may lie in the block before, which is
 * no longer valid after this call); keep.n == 0 for none. SOURCE_PADDING zero bytes can be read behind the result. At the
 * end of the stream the result is just `keep` again and *end is true. A read error or damaged gzip ends the stream
 * early: source_error then says why, and what came before is good. */
struct str source_next(struct source *s, struct str keep, bool *end);

/* Whether the file can be read from any place, too, by several threads: it is a plain file that was opened by its name, and is not packed. */
bool source_is_by_place(const struct source *s);
/* A second stream of the same file from `offset`, for another thread; only if source_is_by_place. Its blocks end where those of `whole`
 * end, which counts what it reads, may go on meanwhile, and must outlive it. source_close. */
struct source *source_from(struct source *whole, int64_t offset);
/* source_next goes on from that byte, only if source_is_by_place: what it gave before is no longer valid. The first block ends as before. */
void source_seek(struct source *s, int64_t offset);
/* Where the block ends that holds this byte, if the file is as long as it was. */
int64_t source_block_end(const struct source *s, int64_t offset);
/* Up to n bytes from that place into p; fewer at the end of the file and where they cannot be read. */
size_t source_read_at(const struct source *s, int64_t offset, char *p, size_t n);

/* NULL when all went well, else what ended the stream early. */
const char *source_error(const struct source *s);
/* ERR_NONE, also where the file is damaged or cut off; ERR_IO or ERR_NOMEM when a read or an allocation failed, so that bytes which are there are missing. */
enum err_code source_failed(const struct source *s);

/* From now on source_next calls fn(context, bytes of the file consumed, its size or 0) for every block. */
typedef void source_progress_fn(void *context, uint64_t done_bytes, uint64_t total_bytes);
void source_set_progress(struct source *s, source_progress_fn *fn, void *context);
void source_tell_progress(struct source *s); /* calls it now */

/* Whether the file was written to since it was opened: what was read may be of more than one version of it. */
bool source_changed(const struct source *s);

const char *source_path(const struct source *s);    /* "-" for stdin; of an address what is open: its copy, or itself */
uint64_t source_file_bytes(const struct source *s); /* size on disk; 0 = not known */
uint64_t source_size_of(const char *path);          /* the same of a file that is not open; of an address as last heard */
uint64_t source_bytes_in(const struct source *s);   /* bytes of the file consumed so far, for progress */
bool source_is_compressed(const struct source *s);

void source_close(struct source *s);

/* Appends all bytes of a file, unpacked, to *to. -1 and *e: as source_open; ERR_FORMAT where the file is damaged or cut off; ERR_LIMIT for more than `most` bytes, a number of GiB, in
 * which case `what` ("of counters") says what the bytes were to be. */
int source_read_whole(const char *path, uint64_t most, const char *what, struct buf *to, struct err *e);

#endif
