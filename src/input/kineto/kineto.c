/* Kineto and Chrome trace JSON: the object form with traceEvents, and the bare array of legacy torch. The input streams
 * through a window; an event that the window cuts is read again when more has come. Damage costs the damaged event: the
 * reader looks for the next one and goes on. */
#include "base/mem.h"
#include "base/threads.h"
#include "input/input.h"
#include "input/kineto/kineto_reader.h"

/* An event, or another value of the top level, must fit in this much memory. */
enum { VALUE_MAX = 64 << 20, META_MAX = 4 << 20 };
/* A shorter part is read sooner than a thread has started. */
enum { PART_BYTES = 4 << 20 };

/* How many rows `all` bytes have where `done` bytes have n, and some to spare; 0 = too many. */
static uint32_t kineto_expected(uint32_t n, int64_t done, int64_t all)
{
	enum { SPARE = 8 };
	const double expected = n * (double)all / (double)done;
	return expected < ROW_NONE / 2 ? (uint32_t)(expected + expected / SPARE) : 0;
}

/* How many rows there will be if what is left is like what was read: room for them is then made once. Not where several threads read parts: a big page
 * that is filled in part would be there once for each part and column. */
static void kineto_expect_rows(struct kineto_reader *r)
{
	enum { ENOUGH = 1 << 20 };
	const int64_t all = (int64_t)source_file_bytes(r->source), done = source_is_compressed(r->source) ? (int64_t)source_bytes_in(r->source) : r->begin_offset;
	if (r->parts || r->begin_offset < ENOUGH || done >= all)
		return;
	r->k.b.expected_spans = kineto_expected(r->k.p->span.rows.n, done, all);
	r->k.b.expected_gpu_ops = kineto_expected(r->k.p->gpu_op.rows.n, done, all);
}

/* Extends the window, keeping what is at and behind *p, and moves *p along. Doubles what is kept, so that a long value is
 * not read over and over. False when nothing more came. */
static bool more(struct kineto_reader *r, const char **p)
{
	size_t kept = (size_t)(r->k.j.end - *p), n = kept;
	while (!r->final && (n == kept || n < kept * 2)) {
		int64_t offset = kineto_offset_of(r, *p);
		struct str w = source_next(r->source, (struct str){*p, n}, &r->final);
		r->begin = *p = w.p;
		r->begin_offset = offset;
		r->k.j.end = w.p + w.n;
		n = w.n;
	}
	kineto_expect_rows(r);
	return n > kept;
}

static void note_truncated(struct kineto_reader *r, const char *where)
{
	const char *why = source_error(r->source);
	diag_add(&r->k.p->diags, "truncated-file", DIAG_LOSS, kineto_offset_of(r, r->k.j.end),
	         "the input ends %s at byte %lld%s%s: the %llu events before were used", where,
	         (long long)kineto_offset_of(r, r->k.j.end), why ? "; " : "", why ? why : "", (unsigned long long)r->k.n_events);
}

/* The next event after the damage at p; NULL at the end of the input. */
static const char *resync(struct kineto_reader *r, const char *p)
{
	enum { TAIL = 256 };
	for (;;) {
		for (; p < r->k.j.end; p++) {
			p = memchr(p, '{', (size_t)(r->k.j.end - p));
			if (!p)
				break;
			if (r->k.j.end - p < TAIL && !r->final)
				break;
			if (kineto_looks_like_event(r->begin, p))
				return p;
		}
		const char *keep = p && r->k.j.end - p < TAIL ? p : r->k.j.end;
		keep = keep - r->begin > TAIL ? keep - TAIL : r->begin; /* what stands before the brace is looked at, too */
		size_t behind = p ? (size_t)(p - keep) : (size_t)(r->k.j.end - keep);
		if (!more(r, &keep))
			return NULL;
		p = keep + behind;
	}
}

static void note_damage(struct kineto_reader *r, const char *event)
{
	struct json *j = &r->k.j;
	char near[24];
	size_t n = 0;
	for (const char *c = j->bad; c < j->end && n < sizeof near - 1; c++)
		near[n++] = (unsigned char)*c >= ' ' && (unsigned char)*c < 127 ? *c : '.';
	near[n] = 0;
	diag_add(&r->k.p->diags, "damaged-event", DIAG_LOSS, kineto_offset_of(r, j->bad),
	         "the event at byte %lld is not JSON: at byte %lld %s was expected, not '%s'", (long long)kineto_offset_of(r, event),
	         (long long)kineto_offset_of(r, j->bad), j->expected, near);
}

/* One element of traceEvents at p. Returns the position behind it, or NULL as the JSON reader says. */
static const char *element(struct kineto_reader *r, const char *p)
{
	r->k.offset = kineto_offset_of(r, p);
	if (*p == '{')
		return kineto_event(&r->k, p);
	p = json_skip(&r->k.j, p);
	if (p)
		diag_add(&r->k.p->diags, "not-an-event", DIAG_LOSS, r->k.offset, "an element of traceEvents is not an object");
	return p;
}

/* As json_element, to which the same text between two events is the same again. */
static inline const char *kineto_next_element(struct kineto_reader *r, const char *p, bool *first, bool *done)
{
	const bool again = !*first && r->n_between && r->k.j.end - p > LANES;
	if (again && !(~lanes_equal(lanes_at(p), lanes_at(r->between)) & lanes_up_to(r->n_between))) {
		*done = false;
		return p + r->n_between - 1;
	}
	const char *text = p;
	const bool learns = !*first && !r->k.j.repairs;
	p = json_element(&r->k.j, p, first, done);
	if (!p || *done || *p != '{' || !learns || r->k.j.repairs || p - text >= LANES)
		return p;
	r->n_between = (unsigned)(p + 1 - text);
	memcpy(r->between, text, r->n_between);
	return p;
}

static const char *kineto_read_part(struct kineto_reader *r);

/* Whether the reader of a part must not go on behind what it met at `start`: its own first event has no text before it that could be told of. */
static bool kineto_is_first_of_part(const struct kineto_reader *r, const char *start)
{
	return r->k.is_part && kineto_offset_of(r, start) == r->first_offset;
}

/* The events of traceEvents; p is behind '[', or at the first event of a part. Returns the position behind ']', or NULL when the input ended first, or where a part ends
 * (at_border). */
static const char *kineto_read_events(struct kineto_reader *r, const char *p)
{
	bool first = true;
	r->found_events = true;
	for (;;) {
		const char *start = p;
		bool done, was_first = first;
		p = kineto_next_element(r, p, &first, &done);
		const char *value = p;
		if (p && done)
			return p;
		if (p && r->splits && !was_first && start > r->begin && start[-1] == '}' && *p == '{')
			kineto_split(r, p, (struct str){start, (size_t)(p - start)}, kineto_read_part);
		if (p && kineto_offset_of(r, p) >= r->k.stop_at) {
			first = was_first;
			p = kineto_at_border(r, start, p, &first, &done);
			if (!p || done)
				return p;
			continue;
		}
		if (p)
			p = element(r, p);
		if (p)
			continue;
		if (r->k.j.status != JSON_MORE && kineto_is_first_of_part(r, start))
			return NULL;
		first = was_first;
		if (r->k.j.status == JSON_MORE && r->k.j.end - start < VALUE_MAX) {
			p = start;
			if (more(r, &p))
				continue;
			bool inside = value && json_space(p) < r->k.j.end; /* p: the window may have moved */
			note_truncated(r, inside ? "inside an event" : "before the closing bracket");
			return NULL;
		}
		if (r->k.j.status == JSON_MORE) {
			diag_add(&r->k.p->diags, "huge-event", DIAG_LOSS, kineto_offset_of(r, start),
			         "an event is longer than %d MiB, or lacks its end", VALUE_MAX >> 20);
			p = resync(r, r->k.j.end);
		} else {
			note_damage(r, start);
			p = resync(r, value && value < r->k.j.bad ? value + 1 : r->k.j.bad);
		}
		if (!p) {
			p = r->k.j.end;
			note_truncated(r, "in damaged text");
			return NULL;
		}
		first = true;
	}
}

static void kineto_read_meta(struct kineto_reader *r, const struct json_value *key, const struct json_value *v)
{
	if (v->raw.n > META_MAX) {
		diag_add(&r->k.p->diags, "huge-metadata", DIAG_LOSS, kineto_offset_of(r, v->raw.p), "'%.*s' is longer than %d MiB: left out",
		         (int)(key->raw.n < 60 ? key->raw.n : 60), key->raw.p, META_MAX >> 20);
		return;
	}
	build_meta(&r->k.b, kineto_intern(&r->k, key), kineto_intern(&r->k, v), v->type == JSON_STRING);
}

/* The members of the top-level object; p is behind '{'. */
static void read_object(struct kineto_reader *r, const char *p)
{
	bool first = true;
	for (;;) {
		const char *start = p;
		bool was_first = first;
		struct json_value key, v;
		p = json_member(&r->k.j, p, &first, &key);
		if (p && !key.raw.p)
			return;
		if (p && *p == '[' && str_eq(key.raw, STR("traceEvents"))) {
			p = kineto_read_events(r, p + 1);
			if (!p)
				return;
			continue;
		}
		const char *value = p;
		if (p)
			p = json_value(&r->k.j, p, &v);
		if (p) {
			kineto_read_meta(r, &key, &v);
			continue;
		}
		if (value && r->k.j.status == JSON_BAD && r->k.j.expected == json_too_deep && (p = json_skip_deep(&r->k.j, value))) {
			diag_add(&r->k.p->diags, "deep-metadata", DIAG_LOSS, kineto_offset_of(r, value), "'%.*s' is nested deeper than %d levels: left out", (int)(key.raw.n < 60 ? key.raw.n : 60), key.raw.p,
			         JSON_DEPTH);
			continue;
		}
		first = was_first;
		p = start;
		if (r->k.j.status == JSON_MORE && r->k.j.end - start < VALUE_MAX && more(r, &p))
			continue;
		if (r->k.j.status == JSON_MORE)
			note_truncated(r, "inside its top-level object");
		else
			note_damage(r, start);
		return;
	}
}

static bool device_number(const struct json_value *v, int64_t *x)
{
	return v->type == JSON_NUMBER && json_to_i64(v->raw, x);
}

static const char *read_device(struct kineto_reader *r, struct json *j, const char *p)
{
	struct profile *pr = r->k.p;
	uint32_t i = rows_push(&pr->device, &store_tables[TABLE_device]);
	struct devices *d = &pr->device;
	d->id[i] = (int32_t)i;
	d->name[i] = 0;
	d->memory_bytes[i] = 0;
	d->cc_major[i] = d->cc_minor[i] = -1;
	d->sm_count[i] = d->max_threads_per_sm[i] = d->warp_size[i] = 0;
	bool first = true;
	struct json_value key, v;
	while ((p = json_member(j, p, &first, &key)) && key.raw.p && (p = json_value(j, p, &v))) {
		int64_t x = 0;
		bool num = device_number(&v, &x);
		int32_t small = x >= 0 && x <= INT32_MAX ? (int32_t)x : 0;
		if (str_eq(key.raw, STR("name")))
			d->name[i] = kineto_intern(&r->k, &v);
		else if (num && str_eq(key.raw, STR("id")))
			d->id[i] = small;
		else if (num && str_eq(key.raw, STR("totalGlobalMem")))
			d->memory_bytes[i] = x;
		else if (num && str_eq(key.raw, STR("computeMajor")))
			d->cc_major[i] = small;
		else if (num && str_eq(key.raw, STR("computeMinor")))
			d->cc_minor[i] = small;
		else if (num && str_eq(key.raw, STR("numSms")))
			d->sm_count[i] = small;
		else if (num && str_eq(key.raw, STR("warpSize")))
			d->warp_size[i] = small;
		else if (num && str_starts(key.raw, STR("maxThreadsPerMulti")))
			d->max_threads_per_sm[i] = small;
	}
	return p;
}

/* deviceProperties, an array of objects, as kept among the facts about the run. */
static void kineto_read_devices(struct kineto_reader *r)
{
	struct str text;
	if (!profile_meta(r->k.p, "deviceProperties", &text) || !text.n || text.p[0] != '[')
		return;
	struct buf padded = {0};
	buf_str(&padded, text);
	buf_fill(&padded, 0, JSON_PADDING);
	struct json j = {.end = padded.p + text.n};
	const char *p = padded.p + 1;
	bool first = true, done;
	while (p && (p = json_element(&j, p, &first, &done)) && !done)
		p = *p == '{' ? read_device(r, &j, p + 1) : json_skip(&j, p);
	buf_release(&padded);
}

static int read_top(struct kineto_reader *r, struct err *e)
{
	const char *p = r->begin;
	if (r->k.j.end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	p = json_space(p);
	const char *path = source_path(r->source), *why = source_error(r->source);
	if (p >= r->k.j.end)
		return err_set(e, why ? ERR_IO : ERR_FORMAT, "%s: %s, a JSON trace was expected", path, why ? why : "the file is empty");
	if (*p == '[')
		kineto_read_events(r, p + 1);
	else if (*p == '{')
		read_object(r, p + 1);
	else
		return err_set(e, ERR_FORMAT, "%s: byte %lld: '{' or '[' of a JSON trace was expected", path,
		               (long long)kineto_offset_of(r, p));
	if (r->found_events)
		return 0;
	const struct diags *d = &r->k.p->diags;
	for (unsigned i = 0; i < d->n; i++)
		if (d->entry[i].level == DIAG_LOSS)
			return err_set(e, ERR_FORMAT, "%s: no traceEvents array was found; " STR_FMT, path, STR_ARG(d->entry[i].message));
	return err_set(e, ERR_FORMAT, "%s: not a trace: the JSON object has no traceEvents array", path);
}

/* What other JSON files with objects in an array are, by their first keys. */
static const char *what_it_is(const char *keys)
{
	static const struct {
		const char *keys, *what;
	} known[] = {
		{"\"key\", \"count\"", "rows of key_averages() as JSON"},
		{"\"name\", \"thread\", \"start\"", "the list that torch calls events() as JSON"},
		{"\"file\"", "a list of files"},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strncmp(keys, known[i].keys, strlen(known[i].keys)) == 0)
			return known[i].what;
	return NULL;
}

/* Objects without a phase and a time, all of them, are events of nothing. */
static int not_a_trace(const struct kineto_reader *r, struct err *e)
{
	const char *what = what_it_is(r->k.first_keys);
	if (!r->k.n_events)
		return err_set(e, ERR_FORMAT, "%s: not a trace: an array of events was expected, and its elements are not objects", source_path(r->source));
	return err_set(e, ERR_FORMAT, "%s: not a trace: none of its objects (%llu) has \"ph\" or \"ts\", the first has %s%s%s%s; the file that "
	               "export_chrome_trace() or tensorboard_trace_handler() writes was expected", source_path(r->source), (unsigned long long)r->k.n_events,
	               r->k.first_keys[0] ? r->k.first_keys : "other keys", what ? " (it looks like " : "", what ? what : "", what ? ")" : "");
}

/* The first window. */
static void kineto_begin(struct kineto_reader *r)
{
	build_init(&r->k.b, r->k.p);
	kineto_event_init(&r->k);
	struct str w = source_next(r->source, (struct str){NULL, 0}, &r->final);
	r->begin = w.p;
	r->k.j.end = w.p + w.n;
}

static const char *kineto_read_part(struct kineto_reader *r)
{
	kineto_begin(r);
	return kineto_read_events(r, r->begin);
}

int kineto_read_by(struct source *s, struct profile *p, unsigned threads, int64_t part_bytes, unsigned *joined, struct err *e)
{
	struct kineto_reader *r = NEW(struct kineto_reader);
	/* How each event was written is kept in the order of the file. */
	r->splits = threads > 1 && !p->as_written && source_is_by_place(s);
	r->threads = threads;
	r->part_bytes = part_bytes;
	r->source = s;
	r->k.p = p;
	r->k.stop_at = INT64_MAX;
	if (p->as_written)
		kineto_written_init(&r->k);
	kineto_begin(r);
	int rc = read_top(r, e);
	const unsigned n_joined = kineto_parts_end(r);
	if (joined)
		*joined = n_joined;
	if (rc == 0 && source_error(s) && !diag_count(&p->diags, "truncated-file"))
		note_truncated(r, "early");
	if (rc == 0 && !r->k.n_like && (r->k.n_events || diag_count(&p->diags, "not-an-event")))
		rc = not_a_trace(r, e);
	p->input_bytes = (uint64_t)kineto_offset_of(r, r->k.j.end);
	kineto_read_devices(r);
	kineto_event_finish(&r->k);
	if (build_finish(&r->k.b, e) < 0)
		rc = -1;
	mem_free(r);
	return rc;
}

static int kineto_read(struct source *s, struct profile *p, struct err *e)
{
	return kineto_read_by(s, p, threads_wanted(p->threads), PART_BYTES, NULL, e);
}

static int kineto_sniff(struct str head, const char *path, struct err *e)
{
	if (str_starts(head, STR("\xef\xbb\xbf")))
		head.p += 3, head.n -= 3;
	while (head.n && (unsigned char)*head.p <= ' ')
		head.p++, head.n--;
	if (!head.n || (*head.p != '{' && *head.p != '['))
		return 0;
	if (str_has(head, STR("\"traceEvents\"")) || str_has(head, STR("\"ph\"")))
		return 90;
	return str_has(head, STR("\"schemaVersion\"")) ? 80 : 20;
}

const struct input input_kineto = {
	.name = "kineto",
	.help = "PyTorch profiler (Kineto) and Chrome trace JSON, object or array form, plain or gzip",
	.sniff = kineto_sniff,
	.read = kineto_read,
	.leaves_out = LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS | LEFT_FRAMES,
};
