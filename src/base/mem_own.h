/* What mem.c, which allocates, and mem_try.c, which knows the blocks of calls that may be abandoned, tell each other. */
#ifndef OPSCOPE_BASE_MEM_OWN_H
#define OPSCOPE_BASE_MEM_OWN_H

#include <stdbool.h>

struct mem_block;

/* A new block, for the pool of the thread's mem_try if there is one. False: there is no memory to note it. */
bool mem_note(void *p);
/* Out of the list, so that it can be resized, and in again; NULL: it was in none. */
struct mem_block *mem_unnote(void *p);
void mem_note_again(struct mem_block *b, void *p);
/* Before it is freed. */
void mem_forget(void *p);

#endif
