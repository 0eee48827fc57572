/* Views: what one output shows of tables that others show otherwise. */
#ifndef OPSCOPE_RENDER_VIEW_H
#define OPSCOPE_RENDER_VIEW_H

#include "base/table.h"

/* A table (and, if `sections`, those that hang on it) with the cells of *t: rows may be cut and notes added without changing *t, which must
 * outlive it. Nothing else may be done to it. */
struct table *table_view(const struct table *t, bool sections);
void table_view_free(struct table *view);

/* Takes folded sections out of what text shows, and says so in a note; they go to *kept, a list that the caller hangs on again. */
void table_fold(struct table *t, struct table **kept);

#endif
