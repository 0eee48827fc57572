/* The object form of the Chrome trace format with Kineto's names. A Kineto trace is copied event by event as it was written
 * (store/written.h); what comes from elsewhere is made from the rows (chrome_rows.c). */
#include "export/chrome.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "base/search.h"
#include "io/json.h"
#include "io/json_valid.h"
#include "store/written.h"

static void export_chrome_put_event(struct buf *b, const struct written_event *ev)
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

static void export_chrome_mark(uint8_t *wanted, const struct rows *r)
{
	for (uint32_t i = 0; r->place && i < r->n; i++)
		if (r->place[i] != ROW_NONE)
			wanted[r->place[i]] = 1;
}

/* By number of event: is it in the part? NULL = p is no part. */
static uint8_t *events_wanted(const struct profile *p)
{
	if (!p->whole)
		return NULL;
	uint8_t *wanted = NEW_ARRAY(p->written->n, uint8_t);
	export_chrome_mark(wanted, &p->span.rows);
	export_chrome_mark(wanted, &p->gpu_op.rows);
	export_chrome_mark(wanted, &p->memory.rows);
	export_chrome_mark(wanted, &p->flow.rows);
	export_chrome_mark(wanted, &p->mark.rows);
	return wanted;
}

static void put_written(const struct export_run *x)
{
	struct written_reader r = {.w = x->p->written};
	struct written_event ev;
	uint8_t *wanted = events_wanted(x->p);
	const char *separator = "\n";
	for (uint32_t i = 0; written_next(&r, &ev) && sink_room(x->out) == 0; i++) {
		if (wanted && !wanted[i] && !ev.always)
			continue;
		buf_cstr(&x->out->buf, separator);
		export_chrome_put_event(&x->out->buf, &ev);
		separator = ",\n";
	}
	mem_free(wanted);
}

/* A range that began and ended with an event each has the row, and so the place, of the first: a part would lose the other. */
static bool has_ends(const struct profile *p)
{
	const struct counts *n = &(p->whole ? p->whole : p)->count;
	return ANY_WHERE(i, 0, n->rows.n, n->phase[i] == 'E');
}

static bool is_copy(const struct profile *p)
{
	return p->written && !(p->whole && has_ends(p));
}

static void put_known(struct buf *b, const char *key, int64_t v, int64_t unknown)
{
	if (v != unknown)
		buf_printf(b, ",\"%s\":%lld", key, (long long)v);
}

void chrome_put_device(struct buf *b, const struct profile *p, uint32_t row, int64_t id)
{
	const struct devices *d = &p->device;
	buf_printf(b, "{\"id\":%lld,\"name\":", (long long)id);
	json_put_string(b, profile_str(p, d->name[row]));
	put_known(b, "totalGlobalMem", d->memory_bytes[row], 0);
	put_known(b, "computeMajor", d->cc_major[row], -1);
	put_known(b, "computeMinor", d->cc_minor[row], -1);
	put_known(b, "maxThreadsPerMultiprocessor", d->max_threads_per_sm[row], 0);
	put_known(b, "warpSize", d->warp_size[row], 0);
	put_known(b, "numSms", d->sm_count[row], 0);
	buf_char(b, '}');
}

static void export_chrome_put_devices(struct buf *b, const struct profile *p)
{
	buf_cstr(b, "\"deviceProperties\":[");
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		buf_cstr(b, i ? ",\n" : "\n");
		chrome_put_device(b, p, i, p->device.id[i]);
	}
	buf_cstr(b, "],\n");
}

/* What is known about the run, and what Kineto says of every run where others recorded it. */
static void put_facts(struct buf *b, const struct profile *p)
{
	struct str value;
	buf_char(b, '\n');
	for (uint32_t i = 0; i < p->meta.rows.n; i++) {
		struct str key = profile_str(p, p->meta.key[i]);
		value = profile_str(p, p->meta.value[i]);
		if (str_eqc(key, "traceEvents"))
			continue;
		json_put_string(b, key);
		buf_char(b, ':');
		if (p->meta.is_string[i])
			json_put_string(b, value);
		else
			json_put_valid_text(b, value);
		buf_cstr(b, ",\n");
	}
	if (str_eqc(p->format, "kineto"))
		return;
	if (!profile_meta(p, "schemaVersion", &value))
		buf_cstr(b, "\"schemaVersion\":1,\n");
	if (p->device.rows.n && !profile_meta(p, "deviceProperties", &value))
		export_chrome_put_devices(b, p);
}

int chrome_put_events(const struct export_run *x, struct err *e)
{
	if (!is_copy(x->p))
		return chrome_put_rows(x, e);
	put_written(x);
	return 0;
}

static int write_chrome(const struct export_run *x, struct err *e)
{
	struct buf *b = &x->out->buf;
	buf_char(b, '{');
	put_facts(b, x->p);
	buf_cstr(b, "\"traceEvents\":[");
	int rc = chrome_put_events(x, e);
	buf_cstr(b, "\n]}\n");
	return rc;
}

const struct export_format export_format_chrome = {
	.name = "chrome",
	.title = "Chrome trace JSON as torch.profiler writes it",
	.help = "For Perfetto (ui.perfetto.dev), chrome://tracing, and everything that reads torch.profiler's traces. A Kineto trace comes out event by "
	        "event as it was, in its order, repaired where it was no JSON; of other inputs ops, ranges, calls, kernels, copies, allocations and counters "
	        "get Kineto's categories and arguments, and arrows from launch to kernel and from forward to backward. The ranks of a job come in one "
	        "file, on one clock, with arrows between the parts of a collective.",
	.suffix = "json",
	.needs = PASS_NEST | PASS_CORRELATE,
	.as_written = true,
	.timeline = true,
	.write = write_chrome,
	.write_job = chrome_write_job,
};
