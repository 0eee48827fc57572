/* Where something happens: a tally by op (or call, or frame) and line of the user's code, for the evidence of findings. */
#ifndef OPSCOPE_DETECT_PARTS_PLACES_H
#define OPSCOPE_DETECT_PARTS_PLACES_H

#include "analysis/names/stacks.h"
#include "base/hash.h"

struct place {
	uint32_t name, line; /* in places->texts; line: 0 = not known */
	uint64_t events;
	int64_t ns;
};

/* {0} = none. */
struct places {
	struct place *v;
	uint32_t n, cap;
	struct intern keys, texts;
	uint64_t events;
	int64_t ns;
	uint32_t most_span;  /* that of the one with most time, */
	int64_t most_ns;     /* which is this; 0: none has a range and time */
};

void places_release(struct places *t);

/* `span`: whose stack gives the line; ROW_NONE = none. */
void places_add(struct places *t, const struct stacks *s, struct str name, uint32_t span, uint64_t events, int64_t ns);

/* Appends the `max` with most time (most events, if none has time), "aten::item at train.py(37): step (1.200 ms, 12 times)",
 * separated by "; ", and how many more there are. Times and counts are divided by `steps`: per step. `counts`: with the number of
 * times. */
void places_text(const struct places *t, unsigned max, unsigned steps, bool counts, struct buf *out);

/* A mean count: "3", "2.5", "0.04". */
void put_mean(struct buf *out, double n);
/* "12.3 us", "4.56 ms", "1.23 s". */
void put_ns(struct buf *out, double ns);

#endif
