/* The events of a Chrome trace: copied event by event as they were written, where the input is a Kineto trace (store/written.h); else made from the rows
 * (chrome_rows.c). */
#include "export/chrome.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "base/search.h"
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

static void chrome_events_put_written(const struct export_run *x)
{
	struct written_reader r = {.w = x->p->written};
	struct written_event ev;
	uint8_t *wanted = chrome_events_wanted(x->p);
	const char *separator = "\n";
	for (uint32_t i = 0; written_next(&r, &ev) && sink_room(x->out) == 0; i++) {
		if (wanted && !wanted[i] && !ev.always)
			continue;
		buf_cstr(&x->out->buf, separator);
		chrome_events_put_event(&x->out->buf, &ev);
		separator = ",\n";
	}
	mem_free(wanted);
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
