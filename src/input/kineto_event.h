/* One event of a Kineto or Chrome trace: from JSON text to a row of the store. Used by kineto.c only. */
#ifndef OPSCOPE_INPUT_KINETO_EVENT_H
#define OPSCOPE_INPUT_KINETO_EVENT_H

#include "io/json.h"
#include "store/build.h"

enum arg_field {
#define ARG(text, field, kinds) FIELD_##field,
#define ALIAS(text, field, kinds)
#define DROP(text, kinds)
#include "input/kineto_args.def"
#undef ARG
#undef ALIAS
#undef DROP
	FIELD_DROP,
	FIELD_TEXT, /* no field: kept in the argument set */
};

enum { KEY_SLOTS = 256, TRACK_SLOTS = 256, CAT_SLOTS = 64, MAX_ARGS = 256 };

/* A known argument name, or one met before. */
struct arg_key {
	struct str name;
	uint32_t id;       /* interned name */
	uint16_t kinds;    /* event kinds for which `field` holds */
	uint8_t field;
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
	uint8_t sub;       /* enum span_kind or enum gpu_kind */
};

/* Names of processes, applied to their threads at the end. */
struct process_name {
	uint32_t pid_text, text;
	bool is_label;
};

struct kineto {
	struct profile *p;
	struct build b;
	struct json j;
	struct buf scratch;
	int64_t offset;              /* in the input, of the event being read */
	struct arg_key key[KEY_SLOTS];
	struct arena names_arena;    /* of the keys' names */
	unsigned n_keys;
	struct track_slot track[TRACK_SLOTS];
	struct cat_slot cat[CAT_SLOTS];
	struct arg_pair pair[MAX_ARGS];
	/* B events waiting for their E, a list per track. */
	struct open_range { uint32_t span, below; } *open;
	uint32_t n_open, cap_open;
	uint32_t *open_top;          /* by track; ROW_NONE = none */
	uint32_t n_open_top;
	int64_t last_ns;             /* latest time seen, where unfinished ranges end */
	struct process_name *names;
	unsigned n_names, cap_names;
	uint32_t id_memory, id_oom, id_name, id_labels;
	uint64_t n_events;
};

void kineto_event_init(struct kineto *k);

/* Reads the event at `p` (its opening brace) and stores it; the position behind it, or NULL as the JSON reader says: then
 * nothing was stored. */
const char *kineto_event(struct kineto *k, const char *p);

/* After the last event: closes ranges, names threads. Frees what the reader held, but not the builder. */
void kineto_event_finish(struct kineto *k);

/* Interns a JSON string's raw text, decoded, counting repairs. */
uint32_t kineto_intern(struct kineto *k, const struct json_value *v);

#endif
