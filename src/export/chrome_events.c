/* The events of a Chrome trace: copied event by event as they were written, where the input is a Kineto trace (store/written.h); else made from the rows
 * (chrome_rows.c). */
#include "export/chrome.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "base/search.h"
#include "io/json.h"
#include "io/json_valid.h"
#include "store/written.h"

static void chrome_events_put_event(struct buf *b, const struct written_event *ev)
{
	const char *text = ev->form.p, *end = text + ev->form.n;
	char *p = buf_room(b, ev->form.n + ev->n * CHROME_NUMBER_MAX + 8);
	for (unsigned i = 0; i < ev->n; i++) {
		while ((unsigned char)*text > WRITTEN_DECIMAL)
			*p++ = *text++;
		text++;
		p = chrome_put_decimal(p, ev->value[i].digits, ev->value[i].decimals);
	}
	memcpy(p, text, (size_t)(end - text));
	b->n = (size_t)(p + (end - text) - b->p);
}

static void chrome_events_mark(uint8_t *wanted, const struct rows *r)
{
	for (uint32_t i = 0; r->place && i < r->n; i++)
		if (r->place[i] != ROW_NONE)
			wanted[r->place[i]] = 1;
}

/* By number of event: is it in the part? NULL = p is no part. */
static uint8_t *chrome_events_wanted(const struct profile *p)
{
	if (!p->whole)
		return NULL;
	uint8_t *wanted = NEW_ARRAY(p->written->n, uint8_t);
	chrome_events_mark(wanted, &p->span.rows);
	chrome_events_mark(wanted, &p->gpu_op.rows);
	chrome_events_mark(wanted, &p->memory.rows);
	chrome_events_mark(wanted, &p->flow.rows);
	chrome_events_mark(wanted, &p->mark.rows);
	return wanted;
}

static void chrome_events_note_sets(uint32_t *set, const struct rows *r, const uint32_t *args)
{
	for (uint32_t i = 0; r->place && i < r->n; i++)
		if (r->place[i] != ROW_NONE)
			set[r->place[i]] = args[i];
}

/* By number of event: the arguments of its row. NULL = each event has them all. */
static uint32_t *chrome_events_sets(const struct profile *p)
{
	if (!(p->whole ? p->whole : p)->adds_args)
		return NULL;
	uint32_t *set = NEW_ARRAY(p->written->n, uint32_t);
	chrome_events_note_sets(set, &p->span.rows, p->span.args);
	chrome_events_note_sets(set, &p->gpu_op.rows, p->gpu_op.args);
	return set;
}

/* What an event has of its own. */
struct chrome_events_own {
	struct intern names;     /* of its arguments */
	size_t end;              /* of its arguments: where others go; 0 = it has none */
};

/* False: the event is no whole object. `text` is followed by padding. */
static bool chrome_events_read_own(struct chrome_events_own *own, struct str text)
{
	struct json j = {.end = text.p + text.n};
	struct json_value key, v;
	struct buf name = {0};
	bool first = true;
	const char *at = text.p[0] == '{' ? text.p + 1 : NULL;
	while (at && (at = json_member(&j, at, &first, &key)) && key.raw.p && !(str_eqc(key.raw, "args") && *at == '{'))
		at = json_skip(&j, at);
	if (at && key.raw.p) {
		first = true;
		at++;
		while ((at = json_member(&j, at, &first, &key)) && key.raw.p && (at = json_value(&j, at, &v))) {
			buf_clear(&name);
			json_unescape(key.raw, &name, &j.repairs);
			intern_str(&own->names, buf_view(&name));
		}
		own->end = at ? (size_t)(at - 1 - text.p) : 0;
	}
	buf_release(&name);
	return at;
}

static void chrome_events_put_missing(struct buf *b, const struct profile *p, uint32_t set, const struct intern *own)
{
	const uint32_t end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	for (uint32_t i = p->arg_set.first[set]; i < end; i++) {
		const struct str value = profile_str(p, p->arg.value[i]);
		if (intern_find(own, profile_str(p, p->arg.key[i])) != INTERN_NONE)
			continue;
		if (b->n)
			buf_char(b, ',');
		json_put_string(b, profile_str(p, p->arg.key[i]));
		buf_char(b, ':');
		if (p->arg.is_string[i])
			json_put_string(b, value);
		else
			json_put_valid_text(b, value);
	}
}

/* Adds what the row's arguments have and those of the event lack, which stands at the end of *b from byte `from` on. */
static void chrome_events_add_args(struct buf *b, size_t from, const struct profile *p, uint32_t set)
{
	struct chrome_events_own own = {.end = 0};
	struct buf added = {0};
	const size_t n = b->n - from;
	intern_init(&own.names);
	buf_fill(b, 0, JSON_PADDING);
	b->n = from + n;
	if (chrome_events_read_own(&own, (struct str){b->p + from, n}))
		chrome_events_put_missing(&added, p, set, &own.names);
	if (added.n) {
		const size_t at = own.end ? from + own.end : b->n - 1;
		const bool any = own.names.n > 1;
		struct buf rest = {0};
		buf_put(&rest, b->p + at, b->n - at);
		b->n = at;
		buf_cstr(b, !own.end ? ",\"args\":{" : any ? "," : "");
		buf_str(b, buf_view(&added));
		buf_cstr(b, own.end ? "" : "}");
		buf_str(b, buf_view(&rest));
		buf_release(&rest);
	}
	buf_release(&added);
	intern_release(&own.names);
}

static void chrome_events_put_written(const struct export_run *x)
{
	struct written_reader r = {.w = x->p->written};
	struct written_event ev;
	uint8_t *wanted = chrome_events_wanted(x->p);
	uint32_t *set = chrome_events_sets(x->p);
	struct buf *b = &x->out->buf;
	const char *separator = "\n";
	for (uint32_t i = 0; written_next(&r, &ev) && sink_room(x->out) == 0; i++) {
		if (wanted && !wanted[i] && !ev.always)
			continue;
		buf_cstr(b, separator);
		const size_t from = b->n;
		chrome_events_put_event(b, &ev);
		if (set && set[i])
			chrome_events_add_args(b, from, x->p, set[i]);
		separator = ",\n";
	}
	mem_free(wanted);
	mem_free(set);
}

/* A range that began and ended with an event each has the row, and so the place, of the first: a part would lose the other. */
static bool chrome_events_has_ends(const struct profile *p)
{
	const struct counts *n = &(p->whole ? p->whole : p)->count;
	return ANY_WHERE(i, 0, n->rows.n, n->phase[i] == 'E');
}

static bool chrome_events_is_copy(const struct profile *p)
{
	return p->written && !(p->whole && chrome_events_has_ends(p));
}

static void chrome_events_put_known(struct buf *b, const char *key, int64_t v, int64_t unknown)
{
	if (v != unknown)
		buf_printf(b, ",\"%s\":%lld", key, (long long)v);
}

void chrome_put_device(struct buf *b, const struct profile *p, uint32_t row, int64_t id)
{
	const struct devices *d = &p->device;
	buf_printf(b, "{\"id\":%lld,\"name\":", (long long)id);
	json_put_string(b, profile_str(p, d->name[row]));
	chrome_events_put_known(b, "totalGlobalMem", d->memory_bytes[row], 0);
	chrome_events_put_known(b, "computeMajor", d->cc_major[row], -1);
	chrome_events_put_known(b, "computeMinor", d->cc_minor[row], -1);
	chrome_events_put_known(b, "maxThreadsPerMultiprocessor", d->max_threads_per_sm[row], 0);
	chrome_events_put_known(b, "warpSize", d->warp_size[row], 0);
	chrome_events_put_known(b, "numSms", d->sm_count[row], 0);
	buf_char(b, '}');
}

int chrome_put_events(const struct export_run *x, struct err *e)
{
	if (!chrome_events_is_copy(x->p))
		return chrome_put_rows(x, e);
	chrome_events_put_written(x);
	return 0;
}
