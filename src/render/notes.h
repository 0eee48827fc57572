/* Notes under tables as people read them: durations and counts as in the tables, and which note comes first. */
#ifndef OPSCOPE_RENDER_NOTES_H
#define OPSCOPE_RENDER_NOTES_H

#include "base/buf.h"
#include "base/table.h"

/* Appends a note with its durations ("84257276 ns", and the parts of a sum that is given in ns) in the unit of the table, else in the one that suits
 * the first of them, and with the digits of other large numbers in groups. */
void note_put(struct buf *out, const struct table *t, struct str note);

/* The note that changes the reader's mind most, of at least one: the first of table_warn; else the first that gives a sum of which more than
 * NOTE_MUCH_PCT is unknown or unattributed; else the first. */
enum { NOTE_MUCH_PCT = 10 };
unsigned note_first(const struct table *t);

/* The place among the notes of the i-th to be shown, of all of them: first the one that note_first says. */
static inline unsigned note_at(const struct table *t, unsigned i)
{
	unsigned first = note_first(t);
	return i == 0 ? first : i <= first ? i - 1 : i;
}

/* Appends the line that stands for all of at least one: the first note, and how many more there are. */
void note_put_brief(struct buf *out, const struct table *t);

#endif
