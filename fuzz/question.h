/* What the targets that ask take from their input: the last bytes choose two asks, each a report with its options, the advice, an export or
 * an SQL query.
 *
 * An input ends in "?ask" and three bytes for each of the two asks; what stands before is the file. An input that does not end so, as a
 * seed that is only a file, is a file as a whole, and a hash of its bytes chooses: each seed asks something, always the same.
 *
 *   byte 0   what: the reports in the order of their registry, then advice, SQL, then the exports
 *   byte 1   of a report: its default, one of its groupings, or one of its predecessors; of advice: whose (a detector's); of SQL: the
 *            query; of an export: its options' values
 *   byte 2   of a report: steps, device, top level, rows; of a report, advice and SQL: the form of the answer */
#ifndef OPSCOPE_FUZZ_QUESTION_H
#define OPSCOPE_FUZZ_QUESTION_H

#include "base/buf.h"
#include "store/profile.h"

#define QUESTION_MARK "?ask"
enum { QUESTION_ASKS = 2, ASK_BYTES = 3, QUESTION_BYTES = sizeof QUESTION_MARK - 1 + QUESTION_ASKS * ASK_BYTES };

struct question { uint8_t ask[QUESTION_ASKS][ASK_BYTES]; };

/* Returns how many of the bytes are the file. */
size_t question_take(const uint8_t *data, size_t size, struct question *q);
/* Appends QUESTION_BYTES at `at`. */
void question_put(uint8_t *at, const struct question *q);

/* Appends the answer, or the error in its place; aborts for an error without a word. */
void question_answer(struct profile *p, const uint8_t ask[ASK_BYTES], struct buf *out);
/* Appends what is asked, for people: "report operators, grouped by name, as csv". */
void question_name(const uint8_t ask[ASK_BYTES], struct buf *out);
/* Whether the answer is about the file, so that another file of the same recording gives another one. */
bool question_is_of_file(const uint8_t ask[ASK_BYTES]);

#endif
