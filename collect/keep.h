/* Records that all others may refer to: one stream for the process, under the slow lock. */
#ifndef OPSCOPE_COLLECT_KEEP_H
#define OPSCOPE_COLLECT_KEEP_H

#include "writer.h"

/* With the slow lock held: room for a record, then what was written there counts. NULL = no room. */
void *keep_room(uint32_t bytes);
void keep_commit(uint32_t bytes);
/* With a segment open and no other thread in it yet: writes again what has to be known there too. `forked`: in a forked child, which has no devices. */
void keep_again(bool forked);

#endif
