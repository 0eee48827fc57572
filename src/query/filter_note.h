/* What to say where --filter left no row: what it looks for, and what there is to be found. */
#ifndef OPSCOPE_QUERY_FILTER_NOTE_H
#define OPSCOPE_QUERY_FILTER_NOTE_H

#include "base/table.h"

/* For tables of which table_filter(text) left nothing: warns in `chosen`, whose rows it may still read, which values its text columns have.
 * For "COLUMN=VALUE", which the filter takes for a text like any other, the column is told apart. */
void filter_note(struct table *chosen, struct str text);

#endif
