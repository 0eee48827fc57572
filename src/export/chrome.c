/* The object form of the Chrome trace format with Kineto's names. */
#include "export/chrome.h"

#include "base/json_text.h"
#include "io/json.h"
#include "io/json_valid.h"

static void export_chrome_put_devices(struct buf *b, const struct profile *p)
{
	buf_cstr(b, "\"deviceProperties\":[");
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		buf_cstr(b, i ? ",\n" : "\n");
		chrome_put_device(b, p, i, p->device.id[i]);
	}
	buf_cstr(b, "],\n");
}

enum { CHROME_COUNTERS };

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

static int write_chrome(const struct export_run *x, struct err *e)
{
	struct buf *b = &x->out->buf;
	buf_char(b, '{');
	put_facts(b, x->p);
	buf_cstr(b, "\"traceEvents\":[");
	int rc = chrome_put_events(x, e);
	if (rc == 0 && x->value[CHROME_COUNTERS])
		chrome_put_counters(x);
	buf_cstr(b, "\n]}\n");
	return rc;
}

static const struct export_option chrome_options[] = {
	[CHROME_COUNTERS] = {.name = "counter-tracks", .help = "also counters over time: launches that wait on each stream (Queue Length), GB/s of copies and sets, Utilization and Est. SM Efficiency of GPUs"},
	{0},
};

const struct export_format export_format_chrome = {
	.name = "chrome",
	.title = "Chrome trace JSON as torch.profiler writes it",
	.help = "For Perfetto (ui.perfetto.dev), chrome://tracing, and everything that reads torch.profiler's traces. A Kineto trace comes out event by "
	        "event as it was, in its order, repaired where it was no JSON; of other inputs ops, ranges, calls, kernels, copies, allocations and counters "
	        "get Kineto's categories and arguments, and arrows from launch to kernel and from forward to backward. --counter-tracks adds counters over time. What --execution-trace and --counters tell of ops and kernels is among their arguments. The ranks of a job come in one "
	        "file, on one clock, with arrows between the parts of a collective.",
	.suffix = "json",
	.needs = PASS_NEST | PASS_CORRELATE,
	.as_written = true,
	.timeline = true,
	.options = EXPORT_OPTIONS(chrome_options),
	.write = write_chrome,
	.write_job = chrome_write_job,
};
