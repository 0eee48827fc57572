/* The bare array that EventList.export_chrome_trace of torch.autograd.profiler writes when it has no Kineto results
 * (torch/autograd/profiler_util.py): an event for each FunctionEvent that has a name in the trace, and the start of an arrow for each
 * kernel it launched. Times are microseconds since the recording began (recording_start). */
#include "analysis/recording.h"
#include "analysis/tree/torch_events.h"
#include "base/json_text.h"
#include "export/chrome.h"

struct lister {
	const struct torch_events *t;
	struct buf *b;
	int64_t zero_ns;     /* when the recording began */
	int64_t next_id;
	const char *device;
	bool any;            /* an event is written already */
};

/* As few decimals as it takes: whole numbers where the input has them. */
static void export_chrome_list_put_us(struct buf *b, int64_t ns)
{
	char *start = buf_room(b, CHROME_NUMBER_MAX), *end = chrome_put_us(start, ns);
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	b->n += (size_t)(end - start);
}

/* What stands behind "thread_id:" of a remote event. */
static struct str thread_of_remote(struct str tid)
{
	static const char mark[] = "thread_id:";
	size_t n = sizeof mark - 1, at = 0, end;
	while (at + n < tid.n && memcmp(tid.p + at, mark, n) != 0)
		at++;
	for (at += n, end = at; end < tid.n && tid.p[end] >= '0' && tid.p[end] <= '9'; end++)
		;
	return end > at ? (struct str){tid.p + at, end - at} : tid;
}

/* torch writes numbers; an event of another process has its node beside the thread, as text, but not where an arrow starts. */
static void export_chrome_list_put_thread(const struct lister *l, uint32_t i, bool arrow)
{
	const struct profile *p = l->t->p;
	uint32_t track = l->t->track[i];
	struct str tid = track < p->track.rows.n ? profile_str(p, p->track.tid_text[track]) : STR("0");
	bool remote = l->t->node_id && l->t->node_id[i] >= 0;
	chrome_put_id(l->b, arrow && remote ? thread_of_remote(tid) : tid);
}

static void export_chrome_list_put_event(struct lister *l, uint32_t i, char phase)
{
	struct buf *b = l->b;
	buf_cstr(b, l->any ? ", {\"name\": " : "{\"name\": ");
	json_put_string(b, torch_event_trace_name(l->t, i));
	buf_cstr(b, phase == 'X' ? ", \"ph\": \"X\", \"ts\": " : ", \"ph\": \"s\", \"ts\": ");
	export_chrome_list_put_us(b, l->t->start_ns[i] - l->zero_ns);
	if (phase == 'X') {
		buf_cstr(b, ", \"dur\": ");
		export_chrome_list_put_us(b, l->t->end_ns[i] - l->t->start_ns[i]);
	}
	buf_cstr(b, ", \"tid\": ");
	export_chrome_list_put_thread(l, i, phase == 's');
	buf_cstr(b, ", \"pid\": \"CPU functions\"");
	if (phase == 's')
		buf_printf(b, ", \"id\": %lld, \"cat\": \"cpu_to_%s\"", (long long)l->next_id++, l->device);
	buf_cstr(b, ", \"args\": {}}");
	l->any = true;
}

static const char *first_device(const struct torch_events *t)
{
	uint32_t i = 0;
	while (i < t->n && t->device_type[i] == TORCH_CPU)
		i++;
	return torch_device_name(i < t->n ? t->device_type[i] : TORCH_CUDA)->field;
}

static int write_list(const struct export_run *x, struct err *e)
{
	struct torch_events *t = torch_events_new(x->p, torch_rules_of(x->value[0]), 0);
	struct lister l = {.t = t, .b = &x->out->buf, .zero_ns = recording_start(x->p), .device = first_device(t)};
	buf_char(l.b, '[');
	for (uint32_t i = 0; i < t->n && sink_room(x->out) == 0; i++) {
		if (!torch_event_trace_name(t, i).n)
			continue;
		export_chrome_list_put_event(&l, i, 'X');
		for (uint32_t k = t->kernel_first[i]; k < t->kernel_first[i + 1]; k++)
			export_chrome_list_put_event(&l, i, 's');
	}
	buf_char(l.b, ']');
	torch_events_free(t);
	return 0;
}

static const struct export_option options[] = {
	{"compat", "VERSION", "the event list of that version: {values} (default: opscope's own rules)", torch_versions, true},
	{0},
};

const struct export_format export_format_chrome_list = {
	.name = "chrome-list",
	.title = "the bare array of torch.autograd.profiler's export_chrome_trace",
	.help = "The list form that torch.autograd.profiler writes without Kineto, and torch 1.x wrote: an event for each op and range, with the start of an "
	        "arrow for each kernel that it launched; no kernels, threads' names or arguments. For tools that expect it; `chrome` holds more.",
	.suffix = "json",
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.timeline = true,
	.options = EXPORT_OPTIONS(options),
	.write = write_list,
};
