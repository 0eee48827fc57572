/* Parts of base/spill, for each other: the files (spill_file.c), its blocks (spill.c), and the thread that keeps the process below the limit
 * (spill_keeper.c). "Under the lock" is spill_lock, which others must not hold when they call. */
#ifndef OPSCOPE_BASE_SPILL_OWN_H
#define OPSCOPE_BASE_SPILL_OWN_H

#include "base/spill.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
	SPILL_PAGE = 4096,       /* or a multiple of it: spill_page() */
	SPILL_HUGE = 2 << 20,
};

/* A stretch of a file. What was given back is taken again where it fits, or is a hole, whose offsets are used again once no file has a block. */
struct spill_piece {
	off_t at;
	size_t bytes;
	unsigned file;
};

extern pthread_mutex_t spill_lock;
extern atomic_uint_fast64_t spill_most;  /* the limit; 0 = none */
extern atomic_uint spill_n;              /* blocks in files, and those that are about to be: while there is one, the files' offsets stay what they are */

size_t spill_page(void);
bool spill_is_huge(size_t bytes);

/* --- the files --- */

/* Opens the first at the first call. False: no folder is fit for it, or this is a child of the process that made it. `again`: also after a failure. */
bool spill_is_open(bool again);
/* Whether spill_is_open would be false, as far as is known. */
bool spill_is_off(void);
bool spill_is_of_parent(void);
/* Of the file that has the piece. */
int spill_descriptor(const struct spill_piece *piece);
/* Space for so many bytes, in the next folder where a disk is full: without it, writing to a mapped page of a full disk ends the process. `zero`: they are zero. False: there
 * is no space. */
bool spill_take(struct spill_piece *piece, size_t bytes, bool zero);
/* Gives a piece back that no child can have seen. */
void spill_give_back(const struct spill_piece *piece);
/* Gives a piece back that was taken at that value of spill_forks: at once, at the end of all children, or, where a child's end is not told, never. */
void spill_give_back_later(const struct spill_piece *piece, unsigned forks);
/* Under the lock. Forks with blocks in the file whose child's end is not told. */
unsigned spill_forks(void);
/* Begins the files anew where nobody has a block in them. */
void spill_reuse(void);
/* Under the lock, in the parent and in the child. */
void spill_file_after_fork(void);
void spill_file_in_child(void);

/* --- the keeper --- */

/* Under the lock: starts the thread at the first call, and wakes it. drop(i), i < n, takes some of the blocks' pages out of the process; false: there are none. All
 * calls have the same. */
void spill_keep(bool (*drop)(unsigned i), unsigned n);
/* Drops pages where there is no room, since the keeper may have to wait for a busy machine. Returns the room that there was. */
uint64_t spill_make_room(void);

#endif
