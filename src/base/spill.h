/* Large blocks of base/mem in an unnamed file, so that a trace may be larger than memory. Blocks are MAP_SHARED: plain pointers work, and the kernel may
 * write pages out. A thread drops resident pages (MADV_DONTNEED) when the process nears the limit. The file lies in $TMPDIR, /var/tmp or /tmp, the first that is
 * on a disk and has space; when that disk is full, what comes goes to a file in the next that has. The files are gone with the process.
 *
 * Blocks below SPILL_BLOCK and, up to a third of the limit, larger ones stay in memory: what small traces need never meets the file.
 *
 * Order of calls: spill_limit or spill_limit_unless_set, at any time and again; then, by base/mem, spill_new where spill_is_due, spill_resize and
 * spill_release of such blocks, spill_note and spill_forget of all others. Any thread may call, several at once, but for one block.
 *
 * A child of fork() has its new blocks in memory, and what it writes in old ones is its own. It sees in the file what its parent writes there later, until it
 * writes the page itself: the parent must leave blocks that the child reads as they are. */
#ifndef OPSCOPE_BASE_SPILL_H
#define OPSCOPE_BASE_SPILL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPILL_BLOCK = 256 << 10 };

/* Limits resident memory of the process to about `bytes`; the last call counts. From then on a full disk is out of memory.
 * ERR_IO, and no limit: no folder is fit for the file. */
int spill_limit(uint64_t bytes, struct err *e);
/* The same for a process that was given no limit; 0 = none. Where no folder is fit for the file, and when the file can take no more, blocks are in memory. */
void spill_limit_unless_set(uint64_t bytes);

/* Calls moved(from, to) once, on any thread, when the disk of a folder is full and the next one's is used; NULL = nobody is told. */
void spill_tell(void (*moved)(const char *from, const char *to));

/* Around a fork by this thread and the end of its child, or the fork's failure: what is freed in between stays in the file until no such child is left. What
 * is freed after another fork, of blocks that were there then, stays in the file until the process ends. */
void spill_child_begins(void);
void spill_child_ended(void);

/* --- for base/mem --- */

/* Whether a block that grows from `had` bytes in memory (0 = a new one) to `bytes` goes to the file. */
bool spill_is_due(size_t had, size_t bytes);
/* A block in the file; `zero`: all of it is. NULL: the file can take no more, or the process no more mappings. */
void *spill_new(size_t bytes, bool zero);
/* Bytes that there are at p; 0 = p is no block in the file. */
size_t spill_bytes(const void *p);
/* Of a block in the file. NULL, and the block as before: as spill_new. New bytes may be any. */
void *spill_resize(void *p, size_t bytes);
/* A block in the file or in memory; NULL does nothing. */
void spill_release(void *p);
/* Of a block in memory of so many bytes (malloc_usable_size), of any size. */
void spill_note(size_t bytes);
void spill_forget(size_t bytes);
/* Whether memory has run out when the file can take no more. */
bool spill_is_strict(void);
/* Whether memory is short: a limit was given, or there are blocks in the file. */
bool spill_is_short(void);
/* The limit; 0 = there is none. */
uint64_t spill_most_bytes(void);
/* The folder that was full when no file could take more the last time; NULL = one could. */
const char *spill_full(void);

#endif
