/* The events of a JSON trace as they were written, in their order, for exact copies: kept only when profile.as_written asks for it.
 *
 * An event is a form, its JSON text in which some numbers are replaced by a marker byte, and these numbers. Events that differ in
 * nothing but times and ids share one form, so that most take some 15 bytes. Read from the start, in order.
 * The rows that were made of event i have i as their rows.place. */
#ifndef OPSCOPE_STORE_WRITTEN_H
#define OPSCOPE_STORE_WRITTEN_H

#include "base/buf.h"
#include "base/intern.h"

enum {
	/* Marker bytes, which no JSON text holds: a whole number; one with 1 to 9 decimals, kept without the point. */
	WRITTEN_WHOLE = 1, WRITTEN_DECIMAL = 2,
	WRITTEN_VALUES = 64, /* markers in one form, at most */
};

struct written_value {
	int64_t digits;     /* 12.50 is 1250 with 2 decimals */
	uint8_t decimals;   /* 0 for WRITTEN_WHOLE */
};

struct written {
	struct intern forms;
	struct buf stream;
	uint32_t n;                    /* events */
	int64_t last[WRITTEN_VALUES];  /* numbers are kept as differences to the event before */
};

struct written *written_new(void);
void written_free(struct written *w);
size_t written_bytes(const struct written *w);

/* `v`: a value for each marker, in order. `always`: the event belongs to any part of the trace: names of threads. */
void written_add(struct written *w, struct str form, const struct written_value *v, unsigned n, bool always);

struct written_event {
	struct str form;
	struct written_value value[WRITTEN_VALUES];
	unsigned n;
	bool always;
};

struct written_reader {
	const struct written *w;
	size_t at;
	int64_t last[WRITTEN_VALUES];
};

/* The next event; false at the end. Start from {w}. Only value[0..n-1] is set. */
bool written_next(struct written_reader *r, struct written_event *ev);

#endif
