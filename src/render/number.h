/* Numbers as text, the same in every locale. */
#ifndef OPSCOPE_RENDER_NUMBER_H
#define OPSCOPE_RENDER_NUMBER_H

#include "base/buf.h"
#include "base/table.h"

/* The fewest digits that read back as exactly v; v is finite. */
void number_shortest(struct buf *out, double v);

/* A cell that is there and no text: digits, true or false. */
void number_put_cell(struct buf *out, const struct column_data *d, size_t row);

/* With `digits` decimals, and commas between groups of three when `grouped`. */
void number_fixed(struct buf *out, double v, int digits, bool grouped);

/* An integer with commas between groups of three: "-1,234". */
void number_grouped(struct buf *out, int64_t v);

#endif
