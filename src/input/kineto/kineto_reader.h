/* The reader of a Kineto trace, and how several of them share a file. Used by the files of this folder, tests and fuzz targets.
 *
 * A plain file is split at bytes where an event seems to begin, judged by the text between the first events. The main reader, that of
 * the whole, reads the first part. A thread reads each other part, as if the array of events began there. The main reader joins a part
 * (store/build_join.h) only if it arrives at exactly that byte, between two events of traceEvents, and if the part neither depends on
 * events before it nor is cut off. Else it reads the part itself. So the result equals one thread's, byte for byte, and what one thread
 * refuses is refused. */
#ifndef OPSCOPE_INPUT_KINETO_KINETO_READER_H
#define OPSCOPE_INPUT_KINETO_KINETO_READER_H

#include "input/kineto/kineto_event.h"
#include "io/source.h"

struct kineto_parts;

struct kineto_reader {
	struct kineto k;
	struct source *source;
	const char *begin;   /* of the window */
	int64_t begin_offset; /* of the window in the input */
	bool final;          /* the window reaches to the end of the input */
	bool found_events;
	bool splits;         /* the rest may be split */
	char between[LANES]; /* the text that stood between two events, with the brace of the second */
	unsigned n_between;  /* 0 = none, or one that is longer */
	unsigned threads;
	int64_t part_bytes;  /* no part is shorter */
	struct kineto_parts *parts; /* NULL = the input is not split; of a part's reader: those of the whole */
	unsigned next;       /* whose border k.stop_at is, in `parts` */
	int64_t at_border;   /* of a part's reader: behind which event it came to that border; -1 = it did not */
	bool at_first;       /* then as of json_element */
	int64_t first_offset; /* of a part's reader: where the part begins */
};

static inline int64_t kineto_offset_of(const struct kineto_reader *r, const char *p)
{
	return r->begin_offset + (p - r->begin);
}

/* kineto.c: as `read` of struct input, with at most so many threads (1 to THREADS_MOST), in parts of part_bytes at least. *joined: how
 * many parts were joined; NULL = nobody asks. */
int kineto_read_by(struct source *s, struct profile *p, unsigned threads, int64_t part_bytes, unsigned *joined, struct err *e);
/* kineto_text.c: is there an event at the brace `p`, in text that begins at `begin`? One stands in an array and begins with a key that events have. */
bool kineto_looks_like_event(const char *begin, const char *p);

/* kineto_parts.c */

/* Reads the first window of a part, of which *r has source, profile and border, and the events in it. Returns the position behind ']';
 * NULL where the part ends sooner. */
typedef const char *kineto_read_part_fn(struct kineto_reader *r);
/* Splits what follows `p`, an event, if that pays; `between` is the text between two events before. */
void kineto_split(struct kineto_reader *r, const char *p, struct str between, kineto_read_part_fn *read);

/* At an event `p` on a border or behind one; `start` is behind the event before, with *first as of json_element. Returns where to go on,
 * with *first, or with *done the position behind ']'. NULL: the part ends here (at_border is set), or must not be used. */
const char *kineto_at_border(struct kineto_reader *r, const char *start, const char *p, bool *first, bool *done);

/* Ends all threads and frees what they read. Returns how many parts were joined. */
unsigned kineto_parts_end(struct kineto_reader *r);

#endif
