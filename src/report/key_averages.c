/* What torch's prof.key_averages() adds up (torch/autograd/profiler_util.py): events by name, and by what else is asked for. */
#include "analysis/recording.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/report.h"
#include "report/parts/key_groups.h"

#include <math.h>

enum {
	AVERAGES_NAME, AVERAGES_OVERLOAD, AVERAGES_SHAPES, AVERAGES_STACK, AVERAGES_MODULE, AVERAGES_THREAD, AVERAGES_CYCLE, AVERAGES_EVENT, AVERAGES_NODE, AVERAGES_CALLS,
	AVERAGES_HOST_SELF, AVERAGES_HOST_SELF_PCT, AVERAGES_HOST_TOTAL, AVERAGES_HOST_TOTAL_PCT, AVERAGES_HOST_MEAN, AVERAGES_DEV_SELF, AVERAGES_DEV_SELF_PCT,
	AVERAGES_DEV_TOTAL, AVERAGES_DEV_MEAN, AVERAGES_CPU_MEM, AVERAGES_CPU_MEM_SELF, AVERAGES_DEV_MEM, AVERAGES_DEV_MEM_SELF, AVERAGES_FLOPS, AVERAGES_MIN, AVERAGES_MEDIAN,
	AVERAGES_P95, AVERAGES_P99, AVERAGES_MAX
};

static const struct section key_averages_section = {COLUMNS(
	[AVERAGES_NAME] = {COLUMN(TEXT, "name", "Name", "name of the op, annotation or API call as recorded; ProfilerStep* are all steps", .flags = COLUMN_ANSWER)},
	[AVERAGES_OVERLOAD] = {COLUMN(TEXT, "overload_name", "Overload", "which overload of the op; empty = not recorded", .flags = COLUMN_GROUP), .part = "overload"},
	[AVERAGES_SHAPES] = {COLUMN(TEXT, "input_shape", "Input shape", "dimensions of its inputs", .flags = COLUMN_GROUP | COLUMN_WIDE), .part = "shape"},
	[AVERAGES_STACK] = {COLUMN(TEXT, "call_stack", "Call stack", "Python frames, innermost first; of the forward op for ops of the backward pass",
	                           .flags = COLUMN_GROUP | COLUMN_WIDE | COLUMN_STACK), .part = "stack"},
	[AVERAGES_MODULE] = {COLUMN(TEXT, "module", "Module", "innermost nn.Module around it; of the forward op for ops of the backward pass", .flags = COLUMN_GROUP),
	                            .part = "module"},
	[AVERAGES_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread id as recorded; of an API call that of the op that made it", .flags = COLUMN_GROUP), .part =
	                            "thread"},
	[AVERAGES_CYCLE] = {COLUMN(NUMBER, "cycle", "Cycle", "which span of a repeated schedule, from 1: a run of steps whose numbers follow on each other",
	                           .flags = COLUMN_GROUP), .part = "cycle"},
	[AVERAGES_EVENT] = {COLUMN(NUMBER, "event", "Event", "its number in `function-events`, from 0", .flags = COLUMN_GROUP), .part = "event"},
	[AVERAGES_NODE] = {COLUMN(NUMBER, "node_id", "Node", "the process that it ran in, called by RPC; empty = this one"), .when = WHEN_RECORDED},
	[AVERAGES_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran", .flags = COLUMN_ANSWER, .also = "count")},
	[AVERAGES_HOST_SELF] = {COLUMN(NS, "host_self_ns", "Host self", "time on the host less the events inside it", .flags = COLUMN_ANSWER, .also =
	                               "self_cpu_time_total")},
	[AVERAGES_HOST_SELF_PCT] = {COLUMN(PERCENT, "host_self_pct", "Host self %", "host self time / host self time of all rows")},
	[AVERAGES_HOST_TOTAL] = {COLUMN(NS, "host_total_ns", "Host total", "time on the host from its start to its end; of an event inside another of its row only that "
	                                "one's", .flags = COLUMN_ANSWER, .also = "cpu_time_total")},
	[AVERAGES_HOST_TOTAL_PCT] = {COLUMN(PERCENT, "host_total_pct", "Host total %", "host total time / host self time of all rows")},
	[AVERAGES_HOST_MEAN] = {COLUMN(MEAN_NS, "host_mean_ns", "Host mean", "host total time / calls", .also = "cpu_time")},
	[AVERAGES_DEV_SELF] = {COLUMN(NS, "device_self_ns", "Device self", "device time of what it launched itself; overlapping work counts twice", .flags = COLUMN_ANSWER,
	                              .also = "self_cuda_time_total self_device_time_total self_xpu_time_total self_privateuse1_time_total"), .when = WHEN_DEVICE},
	[AVERAGES_DEV_SELF_PCT] = {COLUMN(PERCENT, "device_self_pct", "Device %", "device self time / device time of all rows"), .when = WHEN_DEVICE},
	[AVERAGES_DEV_TOTAL] = {COLUMN(NS, "device_total_ns", "Device total", "device time of what it and the events inside it launched, once", .flags = COLUMN_ANSWER,
	                               .also = "cuda_time_total device_time_total xpu_time_total privateuse1_time_total"), .when = WHEN_DEVICE},
	[AVERAGES_DEV_MEAN] = {COLUMN(MEAN_NS, "device_mean_ns", "Device mean", "device total time / calls", .also = "cuda_time device_time xpu_time privateuse1_time"),
	                              .when = WHEN_DEVICE},
	[AVERAGES_CPU_MEM] = {COLUMN(BYTES, "host_memory_bytes", "Host memory", "allocated less freed in it, on the host", .also = "cpu_memory_usage"),
	                             .when = WHEN_MEMORY},
	[AVERAGES_CPU_MEM_SELF] = {COLUMN(BYTES, "host_self_memory_bytes", "Host self memory", "the same less the events inside it", .also = "self_cpu_memory_usage"),
	                                  .when = WHEN_MEMORY},
	[AVERAGES_DEV_MEM] = {COLUMN(BYTES, "device_memory_bytes", "Device memory", "allocated less freed in it, on the device", .also = "cuda_memory_usage "
	                             "device_memory_usage xpu_memory_usage privateuse1_memory_usage"), .when = WHEN_MEMORY},
	[AVERAGES_DEV_MEM_SELF] = {COLUMN(BYTES, "device_self_memory_bytes", "Device self memory", "the same less the events inside it", .also = "self_cuda_memory_usage "
	                                  "self_device_memory_usage self_xpu_memory_usage self_privateuse1_memory_usage"), .when = WHEN_MEMORY},
	[AVERAGES_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "of all calls, by formula (a multiply-add is 2); an op and the op that it calls both have them; empty = "
	                           "unknown for one of the calls"), .when = WHEN_RECORDED},
	[AVERAGES_MIN] = {COLUMN(NS, "min_ns", "Min", "shortest call on the host", .flags = COLUMN_DETAIL)},
	[AVERAGES_MEDIAN] = {COLUMN(MEAN_NS, "median_ns", "Median", "median duration on the host; of an even number the mean of the two in the middle",
	                            .flags = COLUMN_DETAIL)},
	[AVERAGES_P95] = {COLUMN(NS, "p95_ns", "p95", "95 % of the calls took no longer on the host", .flags = COLUMN_DETAIL)},
	[AVERAGES_P99] = {COLUMN(NS, "p99_ns", "p99", "99 % of the calls took no longer on the host", .flags = COLUMN_DETAIL)},
	[AVERAGES_MAX] = {COLUMN(NS, "max_ns", "Max", "longest call on the host")},
)};

/* The report while it is made. */
struct key_averages_view {
	struct torch_events *t;
	struct key_groups *g;
	struct table *out;
	struct buf text;
	int64_t device_ns;       /* all device work */
	bool device;
};

/* The parts of the key, in the words of the title. */
static const struct {
	unsigned part;
	const char *words;
} parts[] = {
	{KEY_OVERLOAD, "overload"}, {KEY_SHAPE, "input shape"}, {KEY_STACK, "stack"}, {KEY_MODULE, "module"}, {KEY_THREAD, "thread"}, {KEY_CYCLE, "cycle"}, {KEY_EVENT, "event"},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static bool key_averages_any(const int64_t *v, uint32_t n)
{
	for (uint32_t i = 0; v && i < n; i++)
		if (v[i])
			return true;
	return false;
}

static void key_averages_start(const struct key_averages_view *v, const struct report_args *args)
{
	section_start(&key_averages_section, args, (v->device ? WHEN_DEVICE : 0) | (v->t->memory_known ? WHEN_MEMORY : 0) | WHEN_RECORDED, v->out);
	if (!v->t->node_id)
		section_leave_out(&key_averages_section, AVERAGES_NODE, v->out);
	if (!key_averages_any(v->t->dev_mem, v->t->n)) {
		section_leave_out(&key_averages_section, AVERAGES_DEV_MEM, v->out);
		section_leave_out(&key_averages_section, AVERAGES_DEV_MEM_SELF, v->out);
	}
	if (!v->g->all.flops_known)
		section_leave_out(&key_averages_section, AVERAGES_FLOPS, v->out);
}

/* "Events by name, input shape and 3 frames of the stack". */
static void set_title(struct key_averages_view *v)
{
	unsigned all = v->g->choice.parts, frames = v->g->choice.frames;
	buf_clear(&v->text);
	buf_cstr(&v->text, v->out->title);
	for (unsigned i = 0; i < N_PARTS; i++) {
		if (!(all & parts[i].part))
			continue;
		bool more = false;
		for (unsigned k = i + 1; k < N_PARTS; k++)
			more |= all & parts[k].part;
		buf_cstr(&v->text, more ? ", " : " and ");
		if (parts[i].part == KEY_STACK && frames)
			buf_printf(&v->text, "%u frame%s of the ", frames, frames == 1 ? "" : "s");
		buf_cstr(&v->text, parts[i].words);
	}
	v->out->title = arena_str(&v->out->arena, buf_view(&v->text)).p;
}

static void put_durations(struct key_averages_view *v, uint32_t group)
{
	struct stats *s = &v->g->durations;
	table_set_i64(v->out, AVERAGES_MIN, s->v[group].min);
	table_set_f64(v->out, AVERAGES_MEDIAN, stats_median(s, group));
	table_set_i64(v->out, AVERAGES_P95, stats_percentile(s, group, 95));
	table_set_i64(v->out, AVERAGES_P99, stats_percentile(s, group, 99));
	table_set_i64(v->out, AVERAGES_MAX, s->v[group].max);
}

static void key_averages_put_text(struct key_averages_view *v, unsigned c, struct str s)
{
	if (s.n)
		table_set_str_copy(v->out, c, s);
}

/* What the group's key says besides its name. */
static void key_averages_put_key(struct key_averages_view *v, uint32_t group)
{
	const struct key_id *id = &v->g->v[group].id;
	const struct tracks *tracks = &v->t->p->track;
	key_averages_put_text(v, AVERAGES_OVERLOAD, intern_get(&v->g->texts, id->overload));
	key_averages_put_text(v, AVERAGES_SHAPES, intern_get(&v->g->texts, id->shapes));
	key_averages_put_text(v, AVERAGES_MODULE, intern_get(&v->g->texts, id->module));
	if (v->g->choice.parts & KEY_STACK) {
		v->text.n = 0;
		key_stack_text(v->g, group, &v->text);
		key_averages_put_text(v, AVERAGES_STACK, buf_view(&v->text));
	}
	if (id->thread && id->thread - 1 < tracks->rows.n) {
		uint32_t t = id->thread - 1;
		if (tracks->tid[t] != ID_NONE)
			table_set_fmt(v->out, AVERAGES_THREAD, "%lld", (long long)tracks->tid[t]);
		else
			key_averages_put_text(v, AVERAGES_THREAD, profile_str(v->t->p, tracks->tid_text[t]));
	}
	if (id->cycle)
		table_set_i64(v->out, AVERAGES_CYCLE, id->cycle);
	if (id->event)
		table_set_i64(v->out, AVERAGES_EVENT, (int64_t)id->event - 1);
	if (id->node_id >= 0)
		table_set_i64(v->out, AVERAGES_NODE, id->node_id);
}

static void key_averages_put_group(struct key_averages_view *v, uint32_t group)
{
	const struct key_group *x = &v->g->v[group];
	double calls = x->calls;
	table_row(v->out);
	table_set_str_copy(v->out, AVERAGES_NAME, intern_get(&v->t->keys, x->id.name));
	key_averages_put_key(v, group);
	table_set_i64(v->out, AVERAGES_CALLS, x->calls);
	table_set_i64(v->out, AVERAGES_HOST_SELF, x->host_self);
	table_set_f64(v->out, AVERAGES_HOST_SELF_PCT, percent(x->host_self, v->g->all.host_self));
	table_set_i64(v->out, AVERAGES_HOST_TOTAL, x->host_total);
	if (!x->async)
		table_set_f64(v->out, AVERAGES_HOST_TOTAL_PCT, percent(x->host_total, v->g->all.host_self));
	table_set_f64(v->out, AVERAGES_HOST_MEAN, (double)x->host_total / calls);
	table_set_i64(v->out, AVERAGES_DEV_SELF, x->dev_self);
	table_set_f64(v->out, AVERAGES_DEV_SELF_PCT, percent(x->dev_self, v->device_ns));
	table_set_i64(v->out, AVERAGES_DEV_TOTAL, x->dev_total);
	table_set_f64(v->out, AVERAGES_DEV_MEAN, (double)x->dev_total / calls);
	table_set_i64(v->out, AVERAGES_CPU_MEM, x->cpu_mem);
	table_set_i64(v->out, AVERAGES_CPU_MEM_SELF, x->cpu_mem_self);
	table_set_i64(v->out, AVERAGES_DEV_MEM, x->dev_mem);
	table_set_i64(v->out, AVERAGES_DEV_MEM_SELF, x->dev_mem_self);
	if (x->flops_known == x->calls)
		table_set_i64(v->out, AVERAGES_FLOPS, x->flops);
	put_durations(v, group);
}

static void put_unattributed(struct key_averages_view *v)
{
	if (!v->t->unattributed)
		return;
	table_row(v->out);
	table_set_str(v->out, AVERAGES_NAME, STR("(unattributed)"));
	table_set_i64(v->out, AVERAGES_DEV_SELF, v->t->unattributed_ns);
	table_set_f64(v->out, AVERAGES_DEV_SELF_PCT, percent(v->t->unattributed_ns, v->device_ns));
	table_set_i64(v->out, AVERAGES_DEV_TOTAL, v->t->unattributed_ns);
}

static void note_cycles(const struct key_averages_view *v)
{
	const struct cycles *c = &v->g->cycles;
	if (c->n > 1 && !(v->g->choice.parts & KEY_CYCLE))
		table_warn(v->out, "the recording has %u spans of a repeated schedule, added up here: --group-by=name,cycle tells them apart", c->n);
	for (uint32_t i = 0; i < c->n && i < 20 && (v->g->choice.parts & KEY_CYCLE); i++)
		table_note(v->out, "cycle %u: steps %lld to %lld", i + 1, (long long)c->v[i].step_first, (long long)c->v[i].step_last);
}

/* Keeps groups whose first event was called by no other event, and work that no event launched. */
static void key_averages_keep_top_level(struct key_averages_view *v)
{
	size_t n = v->out->n_rows;
	uint8_t *keep = NEW_ARRAY(n, uint8_t);
	for (size_t i = 0; i < n; i++)
		keep[i] = i >= v->g->n || v->t->parent[v->g->v[i].first] == ROW_NONE;
	table_keep(v->out, keep);
	table_note(v->out, "%zu rows are not shown (--top-level): an event lies around their first call", n - v->out->n_rows);
	mem_free(keep);
}

/* The trace has the profiler's own work beside the threads, whichever thread the work interrupted. */
static int64_t profiler_ns(const struct torch_events *t)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->kind[i] == TORCH_SPAN && t->p->span.kind[t->row[i]] == SPAN_OVERHEAD)
			sum += t->cpu_self[i];
	return sum;
}

static void key_averages_notes(const struct key_averages_view *v)
{
	const struct torch_events *t = v->t;
	int64_t overhead = profiler_ns(t);
	if (overhead)
		table_note(v->out, "host self times add up to %lld ns; %lld of them are the profiler's own work, recorded apart from the threads: "
		           "they are also in the time of what it interrupted", (long long)v->g->all.host_self, (long long)overhead);
	else
		table_note(v->out, "host self times add up to %lld ns", (long long)v->g->all.host_self);
	if (v->device)
		table_note(v->out, "device work %lld ns = attributed %lld + unattributed %lld (%llu device events that no event launched)",
		           (long long)v->device_ns, (long long)v->g->all.dev_self, (long long)t->unattributed_ns,
		           (unsigned long long)t->unattributed);
	else
		table_note(v->out, "the trace holds no device work: times are of the host");
	if (t->folded)
		table_note(v->out, "%llu events were folded into a parent of the same name", (unsigned long long)t->folded);
	if ((v->g->choice.parts & KEY_SHAPE) && !t->shapes_known)
		table_note(v->out, "the input holds no shapes; to record them: %s", recording_how(t->p, RECORD_SHAPES));
	if ((v->g->choice.parts & (KEY_STACK | KEY_MODULE)) && !stacks_any(t->stacks))
		table_note(v->out, "the input holds no Python stacks; to record them: %s", recording_how(t->p, RECORD_STACKS));
	note_cycles(v);
	if (v->g->overflows)
		table_note(v->out, "%llu sums do not fit 64 bits and stand at the limit", (unsigned long long)v->g->overflows);
}

static int64_t key_averages_device_work(const struct profile *p)
{
	int64_t all = 0;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		all += p->gpu_op.dur_ns[i];
	return all;
}

static const char *const groupings[] = {"name", "shape", "stack:N", "overload", "module", "thread", "cycle", "event", NULL};

static int key_averages_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct key_choice choice = key_choice_of(args);
	struct key_averages_view v = {.out = out, .device = p->gpu_op.rows.n > 0, .device_ns = key_averages_device_work(p)};
	v.t = torch_events_new(p, &torch_rules[TORCH_OWN], TORCH_FLOPS | key_choice_want(&choice));
	v.g = key_groups_new(v.t, &choice);
	int rc = 0;
	if (!v.g->n) {
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	} else {
		set_title(&v);
		key_averages_start(&v, args);
		for (uint32_t i = 0; i < v.g->n; i++)
			key_averages_put_group(&v, i);
		put_unattributed(&v);
		if (args->top_level)
			key_averages_keep_top_level(&v);
		rc = table_sort(out, v.device ? STR("device_self_ns") : STR("host_self_ns"), true, e);
		out->data[v.device ? AVERAGES_DEV_SELF : AVERAGES_HOST_SELF].col.flags |= COLUMN_ASKED; /* the column that explains the order */
		key_averages_notes(&v);
	}
	buf_release(&v.text);
	key_groups_free(v.g);
	torch_events_free(v.t);
	return rc;
}

static const struct report_variant key_averages_variants[] = {
	{.parts = groupings},
	{.group_by = "event", .takes = REPORT_LIMIT | REPORT_SORTED}, /* a row for each event, by time */
	{0},
};

const struct report report_key_averages = {
	.name = "key-averages",
	.title = "Events by name",
	.help = "What prof.key_averages() of torch answers, without a new run: how often each op, annotation and API call ran, the time it "
	        "took on the host and on the device, its memory and FLOPs, and how much its calls differ. Device time counts once, at what "
	        "launched the work; what nothing launched is in the row (unattributed). "
	        "docs/torch.md tells how to have the table that a version of torch prints.",
	.variants = key_averages_variants,
	.sections = (const struct section *const[]){&key_averages_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_TOP_LEVEL,
	.run = key_averages_run,
};
