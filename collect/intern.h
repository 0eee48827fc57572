#ifndef OPSCOPE_COLLECT_INTERN_H
#define OPSCOPE_COLLECT_INTERN_H

#include "writer.h"

/* intern() for a thread that says few texts again and again, from the same places: it looks there first. */
uint32_t intern_near(struct near_text *near, const char *text, size_t n);

/* Makes the text stand in the present segment, also in that of a forked child: call it for an id from before. false = no room there. */
bool intern_again(uint32_t id);
/* An id as the program gave it back: 0, and noted, where no text has it. */
uint32_t intern_given(uint64_t id);
/* With the slow lock held; used by keep. */
bool intern_write_locked(uint32_t id);

/* How much is kept of a text that is longer than WIRE_MAX_STRING: no part of a character. */
size_t intern_cut(const char *p);

/* Where the domain of that name and interface is remembered; 0 there = none yet. */
_Atomic uint16_t *intern_domain(uint32_t id, enum wire_api api);

#endif
