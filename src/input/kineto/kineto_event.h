/* One event of a Kineto or Chrome trace: from JSON text to a row of the store. Used by kineto.c only. */
#ifndef OPSCOPE_INPUT_KINETO_KINETO_EVENT_H
#define OPSCOPE_INPUT_KINETO_KINETO_EVENT_H

#include "io/json_glue.h"
#include "store/build.h"

enum arg_field {
#define ARG(text, field, kinds) FIELD_##field,
#define ALIAS(text, field, kinds)
#define DROP(text, kinds)
#include "input/kineto/kineto_args.def"
#undef ARG
#undef ALIAS
#undef DROP
	FIELD_DROP,
	FIELD_TEXT, /* no field: kept in the argument set */
};

/* What an event is, as far as its arguments are concerned; bits, so that a row of kineto_args.def can name several. */
enum event_kind {
	ON_OP = 1, ON_USER = 2, ON_PYTHON = 4, ON_CALL = 8, ON_SYNC = 16, ON_OTHER = 32, ON_GPU = 64, ON_MEMORY = 128,
	ANY_SPAN = ON_OP | ON_USER | ON_PYTHON | ON_CALL | ON_SYNC | ON_OTHER,
};

enum { KEY_SLOTS = 256, TRACK_SLOTS = 256, CAT_SLOTS = 64, TEXT_SLOTS = 1024, VALUE_SLOTS = 4096, VERSION_SLOTS = 64, MAX_ARGS = 256 };

/* A known argument name, or one met before. */
struct kineto_key {
	struct str name;
	uint32_t id;       /* interned name */
	uint16_t kinds;    /* event kinds for which `field` holds */
	uint8_t field;
	bool whole;        /* the field is a whole number */
};

struct track_slot {
	char pid[24], tid[24];   /* zero behind their ends */
	uint8_t pid_n, tid_n;
	uint32_t track;
};

struct cat_slot {
	char text[24];
	uint8_t n;
	bool used;
	uint16_t cat;
	uint8_t kind;      /* enum event_kind */
	uint8_t sub;       /* enum span_kind or enum gpu_kind, or GPU_BY_NAME of kineto_event.c */
};

/* A text that was interned; n 0 = none. */
struct kineto_text_slot {
	const char *text;
	uint32_t n, id;
};

/* A value of an argument that was interned: an array or object as it was written, or the text of a string. Of short texts nothing is kept. */
struct kineto_value_slot {
	const char *text;
	uint32_t n;        /* 0 = none */
	uint32_t id;
	bool is_string;
};

/* One event while it is read: slices of the window. */
struct event {
	struct str name, cat, pid, tid, ts, dur, id, args;
	const struct cat_slot *category;
	uint64_t fields;                 /* bit per enum arg_field: value present */
	unsigned n_pairs;
	uint32_t meta_name;              /* metadata events: args.name or args.labels */
	uint64_t cat_version, pid_version, tid_version; /* of the text that the value was found again in; 0 = it was read */
	bool name_escaped, cat_escaped, has_cat, has_name, args_read;
	bool ts_known, dur_known, id_known; /* whether the number is in ts_ns, dur_ns, id_number */
	char ph;
	/* From here on only what `category`, `fields` and the flags above say is set. */
	int64_t ts_ns, dur_ns, id_number;
	uint64_t name_mark;              /* when args are read: kineto_mark_of the name */
	struct cat_slot category_copy;
	int64_t num[FIELD_DROP];
	double real[FIELD_DROP];
	int32_t grid[3], block[3];
};

#define HAS(ev, field) ((ev)->fields >> FIELD_##field & 1)
#define NUM(ev, field, otherwise) (HAS(ev, field) ? (ev)->num[FIELD_##field] : (otherwise))

/* Names of processes, applied to their threads at the end. */
struct process_name {
	uint32_t pid_text, text;
	bool is_label;
};

struct kineto {
	struct profile *p;
	struct build b;
	struct json j;
	struct json_glue glue;       /* of events and their arguments */
	struct buf scratch;
	/* For copies as written: an event's form; arrays and objects as they come, each with what is written for it. */
	struct buf form;
	struct intern values;
	struct str *value_text;
	uint32_t n_value_texts, cap_value_texts;
	struct arena value_arena;
	int64_t offset;              /* in the input, of the event being read */
	bool is_part;                /* the events before are read by another reader */
	bool cannot_join;               /* of a part: it held what depends on the events before */
	int64_t stop_at;             /* an event from this offset on is not read before kineto_at_border is asked; INT64_MAX = any is */
	struct kineto_key key[KEY_SLOTS];
	struct arena names_arena;    /* of the keys' names */
	unsigned n_keys;
	struct track_slot track[TRACK_SLOTS];
	struct cat_slot cat[CAT_SLOTS];
	/* Of values that were found again; a version of 0 says nothing. */
	struct kineto_known_track {
		uint64_t pid_version, tid_version;
		uint32_t track;
	} known_track[VERSION_SLOTS];
	struct kineto_known_cat {
		uint64_t version;
		const struct cat_slot *slot;
	} known_cat[VERSION_SLOTS];
	struct kineto_text_slot text[TEXT_SLOTS];
	struct kineto_value_slot value[VALUE_SLOTS];
	struct arg_pair pair[MAX_ARGS];
	/* B events waiting for their E, a list per track. */
	struct open_range { uint32_t span, below; } *open;
	uint32_t n_open, cap_open;
	uint32_t *open_top;          /* by track; ROW_NONE = none */
	uint32_t n_open_top;
	/* Of a part: E events whose B event stands before the part. */
	struct open_end { int64_t ts; uint32_t track; } *ends;
	uint32_t n_ends, cap_ends;
	int64_t last_ns;             /* latest time seen, where unfinished ranges end */
	struct process_name *names;
	unsigned n_names, cap_names;
	uint32_t id_memory, id_oom, id_name, id_labels;
	/* Arrays and objects that span lines, as written, each with the id of its text on one line. */
	struct intern long_forms;
	uint32_t *short_forms, cap_short_forms;
	uint64_t n_events, n_like;   /* objects among the events; those that have a phase or a time, as events do */
	char first_keys[96];         /* of the first object, for who gave something else than a trace: "key", "count" */
	unsigned n_first_keys;
};

/* kineto_args.c: the table of argument names, and one event's arguments: the object at `p`; `kind` decides which of them are
 * fields. Returns as the JSON reader does. */
void kineto_args_init(struct kineto *k);
const char *kineto_args(struct kineto *k, const char *p, struct event *ev, unsigned kind);

void kineto_event_init(struct kineto *k);

/* Reads the event at `p` (its opening brace) and stores it; the position behind it, or NULL as the JSON reader says: then
 * nothing was stored. */
const char *kineto_event(struct kineto *k, const char *p);

/* What is read now cannot be joined with what another reader read before. */
static inline void kineto_cannot_join(struct kineto *k)
{
	k->cannot_join = k->is_part;
	if (k->is_part)
		k->stop_at = INT64_MIN;
}

/* kineto_written.c: adds the event of this text, which has been read, to profile.written. */
void kineto_keep_written(struct kineto *k, struct str text);
void kineto_written_init(struct kineto *k);
void kineto_written_release(struct kineto *k);

/* After the last event: closes ranges, names threads. Frees what the reader held, but not the builder. */
void kineto_event_finish(struct kineto *k);
void kineto_event_release(struct kineto *k); /* the latter alone */

/* kineto_join.c: whether the part that another reader read can be joined to what was read before; where the builders can (build_can_join). */
bool kineto_event_can_join(const struct kineto *to, const struct kineto *from);
/* Joins it, behind build_join_names. The rows of what it ends are in *to. */
struct build_map;
void kineto_event_join(struct kineto *to, const struct kineto *from, const struct build_map *m);
/* A range begins on that track, and the innermost one ends. */
void kineto_event_open(struct kineto *k, uint32_t track, uint32_t span);
void kineto_event_end(struct kineto *k, uint32_t track, int64_t ts);

/* kineto_text.c: counts what was repaired (enum json_repair bits) of a text. */
void kineto_note_repairs(struct kineto *k, unsigned repairs);
/* Whether a text holds a raw control character. */
bool kineto_has_control(struct str s);
/* Interns the raw text of a JSON value, a string's decoded, counting repairs. */
uint32_t kineto_intern_raw(struct kineto *k, struct str raw, bool escaped);
uint32_t kineto_intern(struct kineto *k, const struct json_value *v);
/* The same; keeps the value in *slot, if it may be found there again. */
uint32_t kineto_intern_kept(struct kineto *k, const struct json_value *v, struct kineto_value_slot *slot);

/* The first up to 8 bytes of a text; 8 bytes can be read there, since it lies in the padded window or in such a buffer. */
static inline uint64_t head_of(struct str s)
{
	uint64_t head;
	memcpy(&head, s.p, 8);
	return s.n < 8 ? head & ((1ull << s.n * 8) - 1) : head;
}

/* A number that tells most texts of a trace apart: of their first and last 8 bytes and their length. 8 bytes can be read, as above. */
static inline uint64_t kineto_mark_of(struct str s)
{
	uint64_t tail = 0;
	if (s.n >= 8)
		memcpy(&tail, s.p + s.n - 8, 8);
	return head_of(s) ^ (tail << 23 | tail >> 41) ^ s.n;
}

/* Equality of short texts of the same length, without a call; the same condition as above. */
static inline bool same_text(const char *a, const char *b, size_t n)
{
	uint64_t x, y;
	if (n > 16)
		return memcmp(a, b, n) == 0;
	if (n < 8)
		return head_of((struct str){a, n}) == head_of((struct str){b, n});
	memcpy(&x, a, 8);
	memcpy(&y, b, 8);
	if (x != y)
		return false;
	memcpy(&x, a + n - 8, 8);
	memcpy(&y, b + n - 8, 8);
	return x == y;
}

static inline unsigned key_slot(struct str s)
{
	uint64_t head = head_of(s);
	uint64_t h = (head ^ (uint64_t)s.n << 56 ^ (uint64_t)(unsigned char)s.p[s.n - 1] << 40) * 0x9e3779b97f4a7c15u;
	return (unsigned)(h >> 56) & (KEY_SLOTS - 1);
}

#endif
