#include "export/memory_timeline.h"

#include "analysis/memory/memory.h"
#include "analysis/recording.h"
#include "export/export.h"

int64_t memory_torch_us(int64_t ns)
{
	int64_t us = ns / 1000, rest = ns % 1000;
	if (us < 1 << 10)
		return us;
	int bits = 52 - (63 - __builtin_clzll((uint64_t)us)); /* of a double's 53, those behind the point */
	if (bits >= 10) /* .999 stays below 1 */
		return us;
	if (bits < 0)
		bits = 0;
	int64_t scaled = rest << bits, steps = scaled / 1000, twice = scaled % 1000 * 2;
	bool odd = bits ? steps & 1 : us & 1;
	steps += twice > 1000 || (twice == 1000 && odd);
	return us + (steps >> bits);
}

static void put_list(struct buf *b, const char *before, const int64_t *v, unsigned n)
{
	buf_cstr(b, before);
	for (unsigned i = 0; i < n; i++) {
		buf_cstr(b, i ? ", " : "");
		buf_i64(b, v[i]);
	}
	buf_char(b, ']');
}

/* Newer traces count from a moment that they state; torch's timeline does not. */
static void count_from_the_epoch(const struct profile *p, struct memory_timeline *t)
{
	struct str text;
	int64_t base, last;
	if (!t->n || !profile_meta(p, "baseTimeNanoseconds", &text) || !str_to_i64(text, &base) || base <= 0 ||
	    __builtin_add_overflow(t->change[t->n - 1].time_ns, base, &last))
		return;
	for (uint32_t i = t->n_before; i < t->n; i++)
		t->change[i].time_ns += base;
}

static int64_t first_us(const struct memory_timeline *t)
{
	return t->n_before < t->n ? memory_torch_us(t->change[t->n_before].time_ns) : 0;
}

static int64_t us_of(const struct memory_timeline *t, uint32_t i)
{
	return i < t->n_before ? -1 : memory_torch_us(t->change[i].time_ns);
}

/* [times, sizes]: one entry for each microsecond in which something changes; a size list begins with 0, from where a stacked plot
 * is drawn. */
static void export_memory_timeline_put_json(const struct memory_timeline *t, struct sink *out)
{
	int64_t size[1 + MEMORY_CATEGORIES] = {0};
	buf_cstr(&out->buf, "[[");
	for (uint32_t i = 0; i < t->n && sink_room(out) == 0; i++) {
		if (i && us_of(t, i) == us_of(t, i - 1))
			continue;
		buf_cstr(&out->buf, i ? ", " : "");
		buf_i64(&out->buf, i < t->n_before ? first_us(t) : us_of(t, i));
	}
	buf_cstr(&out->buf, "], [");
	const char *before = "[";
	for (uint32_t i = 0; i < t->n && sink_room(out) == 0; i++) {
		size[1 + t->change[i].category] += t->change[i].bytes;
		if (i + 1 < t->n && us_of(t, i) == us_of(t, i + 1))
			continue;
		put_list(&out->buf, before, size, 1 + MEMORY_CATEGORIES);
		before = ", [";
	}
	buf_cstr(&out->buf, "]]\n");
}

static void export_memory_timeline_put_raw(const struct memory_timeline *t, struct sink *out)
{
	buf_char(&out->buf, '[');
	for (uint32_t i = 0; i < t->n && sink_room(out) == 0; i++) {
		const struct memory_change *c = &t->change[i];
		put_list(&out->buf, i ? ", [" : "[", (const int64_t[]){c->time_ns, c->action, c->bytes, c->category}, 4);
	}
	buf_cstr(&out->buf, "]\n");
}

static int write_timeline(const struct export_run *x, struct err *e)
{
	int device;
	if (!x->p->memory.rows.n)
		return err_set(e, ERR_DATA, "export memory-timeline: the input holds no memory events; to record them: %s",
		               recording_how(x->p, RECORD_MEMORY));
	if (memory_device_choose(x->p, x->args->device, &device, e) < 0)
		return -1;
	struct memory_timeline *t = memory_timeline_new(x->p, device, e);
	if (!t)
		return -1;
	count_from_the_epoch(x->p, t);
	if (strcmp(x->value[0], "raw") == 0)
		export_memory_timeline_put_raw(t, x->out);
	else if (strcmp(x->value[0], "html") == 0)
		memory_timeline_page(x->p, t, &x->out->buf);
	else
		export_memory_timeline_put_json(t, x->out);
	memory_timeline_free(t);
	return 0;
}

static const char *const forms[] = {"json", "raw", "html", NULL};
static const struct export_option options[] = {
	{"form", "FORM",
	 "json (default): [times in us, [0, bytes of each category]]; raw: [time in ns, action, bytes, category] of every change; "
	 "html: a page with the plot, the peak and why blocks are Unknown",
	 forms},
	{0},
};

const struct export_format export_format_memory_timeline = {
	.name = "memory-timeline",
	.title = "memory by what it is used for, over time",
	.help = "What torch's export_memory_timeline writes, of one device (--device; default: the first GPU that has memory events, else the "
	        "CPU). Categories in torch's order: PARAMETER, OPTIMIZER_STATE, INPUT, TEMPORARY, ACTIVATION, GRADIENT, AUTOGRAD_DETAIL, Unknown; "
	        "actions: 1 held before, 2 created, 4 freed. A trace of torch does not say which tensor an allocation is, so a block has a category only "
	        "where its place in the step tells it; one of opscope.profile does. docs/export.md has the rules. Needs profile_memory=True; record_shapes=True tells more.",
	.suffix = "json",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.takes = EXPORT_DEVICE,
	.timeline = true,
	.options = EXPORT_OPTIONS(options),
	.write = write_timeline,
};
