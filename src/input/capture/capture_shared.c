#include "base/search.h"
#include "input/capture/capture.h"

#include <stdio.h>

uint32_t capture_string(struct capture *c, uint32_t id)
{
	uint32_t at = id ? idmap_get(&c->text_at, id) : IDMAP_NONE;
	if (at == IDMAP_NONE) {
		if (id)
			diag_add(&c->p->diags, "unknown-text", DIAG_LOSS, c->offset, "%s: a record names text %u, which is not there: read as \"?\"", c->name, id);
		return intern_str(&c->p->strings, id ? STR("?") : STR(""));
	}
	struct capture_text *t = &c->text[at];
	if (!t->id)
		t->id = intern_str(&c->p->strings, t->s) + 1;
	return t->id - 1;
}

void capture_text_cut(struct capture *c)
{
	diag_add(&c->p->diags, "text-cut", DIAG_NOTE, c->offset, "%s: a text was longer than %d bytes: the rest of it was not recorded", c->name, WIRE_MAX_STRING);
}

struct str capture_short(struct str text)
{
	if (text.n > CAPTURE_SHORT)
		for (text.n = CAPTURE_SHORT; text.n && (text.p[text.n] & 0xc0) == 0x80; text.n--)
			;
	return text;
}

struct str capture_bounded(struct capture *c, struct str text)
{
	if (c->room || text.n <= CAPTURE_SHORT)
		return text;
	diag_add(&c->p->diags, "text-out-of-proportion", DIAG_LOSS, c->offset,
	         "%s: texts that are put together exceed %d times the size of the capture: only the first %d bytes of each further one are kept", c->name, CAPTURE_ROOM_A_BYTE,
	         CAPTURE_SHORT);
	return capture_short(text);
}

void capture_pay(struct capture *c, uint32_t strings)
{
	for (; strings < c->p->strings.n; strings++) {
		uint64_t n = intern_get(&c->p->strings, strings).n;
		c->room -= n < c->room ? n : c->room;
	}
}

uint32_t capture_made(struct capture *c, struct str text)
{
	uint32_t before = c->p->strings.n, known = intern_find(&c->p->strings, text);
	if (known != INTERN_NONE)
		return known;
	known = intern_str(&c->p->strings, capture_bounded(c, text));
	capture_pay(c, before);
	return known;
}

bool capture_time(struct capture *c, int64_t time_ns, int64_t *relative)
{
	enum { TOO_FAR = 61 }; /* 2^61 ns are 73 years: sums of two such times cannot overflow */
	if (__builtin_sub_overflow(time_ns, c->base_ns, relative) || *relative > 1ll << TOO_FAR || *relative < -(1ll << TOO_FAR)) {
		diag_add(&c->p->diags, "bad-time", DIAG_LOSS, c->offset, "%s: a record's time lies more than 73 years from the start of the run: the record was left out", c->name);
		return false;
	}
	c->last_ns = time_ns > c->last_ns ? time_ns : c->last_ns;
	return true;
}

static uint32_t capture_new_track(struct capture *c, uint32_t tid, const char *more)
{
	char pid_text[16], tid_text[48];
	int np = snprintf(pid_text, sizeof pid_text, "%d", c->file->h.pid);
	int nt = snprintf(tid_text, sizeof tid_text, "%u%s", tid, more);
	uint32_t track = build_track(&c->b, (struct str){pid_text, (size_t)np}, (struct str){tid_text, (size_t)nt});
	struct tracks *t = &c->p->track;
	uint32_t name = idmap_get(&c->thread_name, tid);
	bool given = name != IDMAP_NONE;
	if (!given && idmap_get(&c->named, track) == IDMAP_NONE)
		name = idmap_get(&c->system_name, tid);
	if (given)
		idmap_put(&c->named, track, 1);
	t->tid[track] = tid;
	t->process_labels[track] = intern_str(&c->p->strings, STR("CPU"));
	if (c->process_name)
		t->process_name[track] = c->process_name;
	if (name != IDMAP_NONE)
		t->thread_name[track] = name;
	return track;
}

uint32_t capture_track(struct capture *c, uint32_t tid, bool ranges)
{
	uint32_t *own = tid == c->thread.tid ? ranges ? &c->thread.range_track : &c->thread.track : NULL;
	if (own && *own != ROW_NONE)
		return *own;
	uint32_t track = capture_new_track(c, tid, ranges ? " start/end" : "");
	if (own)
		*own = track;
	return track;
}

uint16_t capture_cat(struct capture *c, const char *name)
{
	struct capture_cat *slot = &c->cat[hash_u64((uintptr_t)name) % (sizeof c->cat / sizeof c->cat[0])];
	if (slot->name != name)
		*slot = (struct capture_cat){name, build_cat(&c->b, intern_str(&c->p->strings, str_from(name)))};
	return slot->cat;
}

void capture_count(struct capture *c, uint16_t cat)
{
	if (cat >= c->n_seen) {
		uint32_t had = c->n_seen;
		MEM_GROW(c->seen, c->n_seen, cat + 1u);
		memset(c->seen + had, 0, (c->n_seen - had) * sizeof *c->seen);
	}
	c->seen[cat]++;
}

const struct capture_device *capture_find_device(const struct capture *c, uint32_t ordinal)
{
	return ELEMENT_WHERE(i, c->device, c->n_devices, c->device[i].pid == c->file->h.pid && c->device[i].ordinal == ordinal);
}

int32_t capture_device_id(const struct capture *c, uint32_t ordinal)
{
	const struct capture_device *d = capture_find_device(c, ordinal);
	return d ? d->id : capture_small(ordinal);
}

int32_t capture_small(uint32_t v)
{
	return v <= INT32_MAX ? (int32_t)v : INT32_MIN;
}
