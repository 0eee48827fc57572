/* Which columns of a text table get room in the width there is, and how much. */
#ifndef OPSCOPE_RENDER_TEXT_ROOM_H
#define OPSCOPE_RENDER_TEXT_ROOM_H

#include "render/text_layout.h"

/* Sets `shown` and the widths, moves the columns that are left out behind the others and sets l->n. The columns are measured;
 * width > 0. */
void text_room_find(struct text_layout *l, const struct table *t, size_t width);

#endif
