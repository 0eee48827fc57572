/* Makes a long trace from a short one: writes the events of a Kineto trace again and again, one recording after the other,
 * until the output has the wanted size.
 *
 *   scale TRACE.json[.gz] MEGABYTES >OUT.json
 *
 * In copy k the time stamps are moved by k times the length of the recording, and correlation, external, flow, sequence and
 * Python ids and ProfilerStep numbers by k times their range, so that the copies are separate stretches of one sound, longer
 * run. Metadata is written once; "Iteration Start" only at the beginning, "Record Window End" only at the end, and the span
 * of the whole recording is stretched. Addresses and graph and module ids repeat, as they do in a long run.
 * Everything else is copied byte for byte, so size, field order and spacing stay those of a real file. */
#include "base/buf.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum slot_kind { SLOT_TIME, SLOT_ID, SLOT_STEP, SLOT_LENGTH, SLOT_KINDS };

/* A number in the base text that differs from copy to copy. */
struct slot {
	size_t at, n;        /* its digits, whole part only */
	int64_t value;
	enum slot_kind kind;
};

enum event_when { EVENT_ALWAYS, EVENT_FIRST, EVENT_LAST };

struct event {
	size_t at, n;        /* its object in the base text */
	unsigned slot, n_slots;
	enum event_when when;
};

struct range {
	int64_t min, max;
};

struct base {
	struct buf text;
	size_t events_end;   /* offset of the ']' that closes traceEvents */
	struct event *event;
	size_t n_events, cap_events;
	struct slot *slot;
	size_t n_slots, cap_slots;
	struct range range[SLOT_KINDS];
};

static const struct key {
	const char *name;
	enum slot_kind kind;
} keys[] = {
	{"ts", SLOT_TIME},
	{"id", SLOT_ID},
	{"correlation", SLOT_ID},
	{"Ev Idx", SLOT_ID},
	{"External id", SLOT_ID},
	{"external id", SLOT_ID},
	{"Python id", SLOT_ID},
	{"Python parent id", SLOT_ID},
	{"python_caller_id", SLOT_ID},
	{"Record function id", SLOT_ID},
	{"Sequence number", SLOT_ID},
	{"wait_on_cuda_event_record_corr_id", SLOT_ID},
};

static void die(const char *what, size_t at)
{
	fprintf(stderr, "scale: %s (at byte %zu)\n", what, at);
	exit(1);
}

static void read_all(struct base *b, const char *path)
{
	gzFile f = gzopen(path, "rb");
	if (!f)
		die("cannot open the trace", 0);
	char block[1 << 16];
	int n;
	while ((n = gzread(f, block, sizeof block)) > 0)
		buf_put(&b->text, block, (size_t)n);
	if (n < 0)
		die("damaged gzip", b->text.n);
	gzclose(f);
	buf_char(&b->text, 0);
	b->text.n--;
}

static size_t skip_space(const char *p, size_t i)
{
	while (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t')
		i++;
	return i;
}

/* i is at the opening quote; gives the offset after the closing one. */
static size_t skip_string(const char *p, size_t i)
{
	size_t start = i++;
	for (; p[i] != '"'; i++) {
		if (p[i] == '\\' && p[i + 1])
			i++;
		else if (!p[i])
			die("unterminated string", start);
	}
	return i + 1;
}

static void widen(struct range *r, int64_t v)
{
	if (v < r->min)
		r->min = v;
	if (v > r->max)
		r->max = v;
}

/* Records the number whose text starts at i; its whole part must be digits. Ids of 0 and below mean "none" and stay. */
static int64_t add_slot(struct base *b, struct event *e, size_t i, enum slot_kind kind)
{
	const char *p = b->text.p;
	size_t n = 0;
	int64_t v = 0;
	while (p[i + n] >= '0' && p[i + n] <= '9')
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, p[i + n++] - '0', &v))
			die("a number beyond 2^63", i);
	if (!n || (kind == SLOT_ID && v <= 0))
		return 0;
	MEM_GROW(b->slot, b->cap_slots, b->n_slots + 1);
	b->slot[b->n_slots++] = (struct slot){i, n, v, kind};
	e->n_slots++;
	return v;
}

static bool at_word(const char *p, size_t i, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(p + i, word, n) == 0;
}

/* One key with its value, at offset `value`: notes what changes from copy to copy. */
static void see_field(struct base *b, struct event *e, struct str key, size_t value, unsigned depth, int64_t *ts, int64_t *dur)
{
	const char *p = b->text.p;
	if (depth == 1 && str_eqc(key, "dur")) {
		*dur = strtoll(p + value, NULL, 10) + 1;
		return;
	}
	if (depth == 1 && str_eqc(key, "ph") && p[value + 1] == 'M') {
		e->when = EVENT_FIRST;
		return;
	}
	static const char step[] = "\"ProfilerStep#";
	if (depth == 1 && str_eqc(key, "name")) {
		if (!strncmp(p + value, step, sizeof step - 1))
			add_slot(b, e, value + sizeof step - 1, SLOT_STEP);
		if (!strncmp(p + value, "\"Iteration Start", 16))
			e->when = EVENT_FIRST;
		if (!strncmp(p + value, "\"Record Window End", 18))
			e->when = EVENT_LAST;
		return;
	}
	for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
		if (!at_word(key.p, 0, key.n, keys[k].name))
			continue;
		bool top = keys[k].kind == SLOT_TIME || !strcmp(keys[k].name, "id");
		if (top != (depth == 1))
			continue;
		int64_t v = add_slot(b, e, value + (p[value] == '"'), keys[k].kind);
		if (keys[k].kind == SLOT_TIME)
			*ts = v;
	}
}

/* i is at the '{' of an event; gives the offset after its '}'. */
static size_t scan_event(struct base *b, size_t i)
{
	const char *p = b->text.p;
	struct event e = {.at = i, .slot = (unsigned)b->n_slots};
	int64_t ts = -1, dur = 0;
	unsigned depth = 0;
	bool trace_span = false;
	size_t dur_at = 0;
	for (;;) {
		char c = p[i];
		if (!c)
			die("the trace ends inside an event", e.at);
		if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (!--depth)
				break;
		} else if (c == '"') {
			size_t end = skip_string(p, i), colon = skip_space(p, end);
			if (p[colon] == ':') {
				struct str key = {p + i + 1, end - i - 2};
				size_t value = skip_space(p, colon + 1);
				see_field(b, &e, key, value, depth, &ts, &dur);
				if (depth == 1 && str_eqc(key, "dur"))
					dur_at = value;
				if (depth == 1 && str_eqc(key, "cat"))
					trace_span = !strncmp(p + value, "\"Trace\"", 7);
			}
			i = end;
			continue;
		}
		i++;
	}
	e.n = i + 1 - e.at;
	if (trace_span) {
		e.when = EVENT_FIRST;
		if (dur_at && dur_at > b->slot[b->n_slots - 1].at) /* slots stand in order of place */
			add_slot(b, &e, dur_at, SLOT_LENGTH);
	} else if (e.when == EVENT_ALWAYS) {
		for (unsigned s = e.slot; s < e.slot + e.n_slots; s++)
			widen(&b->range[b->slot[s].kind], b->slot[s].value);
		if (ts >= 0)
			widen(&b->range[SLOT_TIME], ts + dur);
	}
	MEM_GROW(b->event, b->cap_events, b->n_events + 1);
	b->event[b->n_events++] = e;
	return i + 1;
}

static void scan(struct base *b)
{
	const char *p = b->text.p;
	for (int k = 0; k < SLOT_KINDS; k++)
		b->range[k] = (struct range){INT64_MAX, INT64_MIN};
	size_t i = skip_space(p, 0);
	if (p[i] == '{') {
		const char *hit = strstr(p, "\"traceEvents\"");
		if (!hit)
			die("no traceEvents", 0);
		i = skip_space(p, (size_t)(hit - p) + 13);
		if (p[i] != ':')
			die("no ':' after traceEvents", i);
		i = skip_space(p, i + 1);
	}
	if (p[i] != '[')
		die("no array of events", i);
	for (i = skip_space(p, i + 1); p[i] == '{';) {
		i = skip_space(p, scan_event(b, i));
		if (p[i] == ',')
			i = skip_space(p, i + 1);
	}
	if (p[i] != ']')
		die("expected the next event or ']'", i);
	if (!b->n_events)
		die("no events", i);
	b->events_end = i;
}

static void put_event(const struct base *b, const struct event *e, int64_t k, int64_t copies, const int64_t *shift, struct buf *out)
{
	size_t at = e->at;
	for (unsigned s = e->slot; s < e->slot + e->n_slots; s++) {
		const struct slot *x = &b->slot[s];
		buf_put(out, b->text.p + at, x->at - at);
		buf_i64(out, x->value + (x->kind == SLOT_LENGTH ? (copies - 1) * shift[SLOT_TIME] : k * shift[x->kind]));
		at = x->at + x->n;
	}
	buf_put(out, b->text.p + at, e->at + e->n - at);
}

static void flush(struct buf *out, uint64_t *written)
{
	for (size_t done = 0; done < out->n;) {
		ssize_t n = write(STDOUT_FILENO, out->p + done, out->n - done);
		if (n <= 0) {
			perror("scale: write");
			exit(1);
		}
		done += (size_t)n;
	}
	*written += out->n;
	buf_clear(out);
}

static void write_copies(const struct base *b, int64_t copies)
{
	int64_t shift[SLOT_KINDS] = {0};
	for (int k = 0; k < SLOT_LENGTH; k++)
		if (b->range[k].max >= b->range[k].min)
			shift[k] = b->range[k].max - b->range[k].min + 1;
	struct buf out = {0};
	uint64_t written = 0, events = 0;
	buf_put(&out, b->text.p, b->event[0].at);
	/* What stands between two events in the base: a comma and its spacing. */
	size_t gap = b->event[0].at + b->event[0].n;
	struct str sep = b->n_events > 1 ? (struct str){b->text.p + gap, b->event[1].at - gap} : STR(",");
	for (int64_t k = 0; k < copies; k++) {
		for (size_t i = 0; i < b->n_events; i++) {
			const struct event *e = &b->event[i];
			if ((e->when == EVENT_FIRST && k) || (e->when == EVENT_LAST && k != copies - 1))
				continue;
			if (events++)
				buf_str(&out, sep);
			put_event(b, e, k, copies, shift, &out);
			if (out.n > 1 << 20)
				flush(&out, &written);
		}
	}
	buf_put(&out, b->text.p + b->events_end, b->text.n - b->events_end);
	flush(&out, &written);
	fprintf(stderr, "scale: %lld copies, %llu events, %llu bytes\n", (long long)copies, (unsigned long long)events,
	        (unsigned long long)written);
	buf_release(&out);
}

int main(int argc, char **argv)
{
	if (argc != 3 || atof(argv[2]) <= 0) {
		fprintf(stderr, "usage: scale TRACE.json[.gz] MEGABYTES >OUT.json\n");
		return 2;
	}
	struct base b = {0};
	read_all(&b, argv[1]);
	scan(&b);
	int64_t copies = (int64_t)(atof(argv[2]) * 1e6 / (double)b.text.n + 0.5);
	write_copies(&b, copies > 0 ? copies : 1);
	buf_release(&b.text);
	mem_free(b.event);
	mem_free(b.slot);
	return 0;
}
