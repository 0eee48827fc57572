/* What torch's prof.key_averages() adds up (torch/autograd/profiler_util.py): events by name, and by what else is asked for. */
#include "analysis/recording.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/report.h"
#include "report/parts/key_groups.h"

#include <math.h>

enum { C_NAME, C_OVERLOAD, C_SHAPES, C_STACK, C_MODULE, C_THREAD, C_CYCLE, C_EVENT, C_NODE, C_CALLS, C_HOST_SELF, C_HOST_SELF_PCT,
       C_HOST_TOTAL, C_HOST_TOTAL_PCT, C_HOST_MEAN, C_DEV_SELF, C_DEV_SELF_PCT, C_DEV_TOTAL, C_DEV_MEAN, C_CPU_MEM, C_CPU_MEM_SELF, C_DEV_MEM, C_DEV_MEM_SELF, C_FLOPS, C_MIN, C_MEDIAN, C_P95,
       C_P99, C_MAX, N_COLUMNS };

static const struct column columns[N_COLUMNS] = {
	[C_NAME] = {.id = "name", .title = "Name", .help = "name of the op, annotation or API call as recorded; ProfilerStep* are all steps", .type = CELL_STR, .flags = COLUMN_KEY},
	[C_OVERLOAD] = {.id = "overload_name", .title = "Overload", .help = "which overload of the op; empty = not recorded", .type = CELL_STR},
	[C_SHAPES] = {.id = "input_shape", .title = "Input shape", .help = "dimensions of its inputs", .type = CELL_STR, .flags = COLUMN_WIDE},
	[C_STACK] = {.id = "call_stack", .title = "Call stack", .help = "Python frames, innermost first; of the forward op for ops of the backward pass", .type = CELL_STR,
	             .flags = COLUMN_WIDE | COLUMN_STACK},
	[C_MODULE] = {.id = "module", .title = "Module", .help = "innermost nn.Module around it; of the forward op for ops of the backward pass", .type = CELL_STR},
	[C_THREAD] = {.id = "thread", .title = "Thread", .help = "thread id as recorded; of an API call that of the op that made it", .type = CELL_STR},
	[C_CYCLE] = {.id = "cycle", .title = "Cycle", .help = "which span of a repeated schedule, from 1: a run of steps whose numbers follow on each other", .type = CELL_I64},
	[C_EVENT] = {.id = "event", .title = "Event", .help = "its number in `function-events`, from 0", .type = CELL_I64},
	[C_NODE] = {.id = "node_id", .title = "Node", .help = "the process that it ran in, called by RPC; empty = this one", .type = CELL_I64},
	[C_CALLS] = {.id = "calls", .title = "Calls", .help = "how often it ran", .type = CELL_I64, .unit = UNIT_COUNT, .flags = COLUMN_KEY,
	         .also = "count"},
	[C_HOST_SELF] = {.id = "host_self_ns", .title = "Host self", .help = "time on the host less the events inside it", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY,
	         .also = "self_cpu_time_total"},
	[C_HOST_SELF_PCT] = {.id = "host_self_pct", .title = "Host self %", .help = "host self time / host self time of all rows", .type = CELL_F64, .unit = UNIT_PERCENT},
	[C_HOST_TOTAL] = {.id = "host_total_ns", .title = "Host total", .help = "time on the host from its start to its end; of an event inside another of its row only that one's", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_KEY,
	         .also = "cpu_time_total"},
	[C_HOST_TOTAL_PCT] = {.id = "host_total_pct", .title = "Host total %", .help = "host total time / host self time of all rows", .type = CELL_F64, .unit = UNIT_PERCENT},
	[C_HOST_MEAN] = {.id = "host_mean_ns", .title = "Host mean", .help = "host total time / calls", .type = CELL_F64, .unit = UNIT_NS,
	         .also = "cpu_time"},
	[C_DEV_SELF] = {.id = "device_self_ns", .title = "Device self", .help = "device time of what it launched itself; overlapping work counts twice", .type = CELL_I64,
	                .unit = UNIT_NS, .flags = COLUMN_KEY,
	         .also = "self_cuda_time_total self_device_time_total self_xpu_time_total self_privateuse1_time_total"},
	[C_DEV_SELF_PCT] = {.id = "device_self_pct", .title = "Device %", .help = "device self time / device time of all rows", .type = CELL_F64, .unit = UNIT_PERCENT},
	[C_DEV_TOTAL] = {.id = "device_total_ns", .title = "Device total", .help = "device time of what it and the events inside it launched, once", .type = CELL_I64, .unit = UNIT_NS,
	                 .flags = COLUMN_KEY,
	         .also = "cuda_time_total device_time_total xpu_time_total privateuse1_time_total"},
	[C_DEV_MEAN] = {.id = "device_mean_ns", .title = "Device mean", .help = "device total time / calls", .type = CELL_F64, .unit = UNIT_NS,
	         .also = "cuda_time device_time xpu_time privateuse1_time"},
	[C_CPU_MEM] = {.id = "host_memory_bytes", .title = "Host memory", .help = "allocated less freed in it, on the host", .type = CELL_I64, .unit = UNIT_BYTES,
	         .also = "cpu_memory_usage"},
	[C_CPU_MEM_SELF] = {.id = "host_self_memory_bytes", .title = "Host self memory", .help = "the same less the events inside it", .type = CELL_I64, .unit = UNIT_BYTES,
	         .also = "self_cpu_memory_usage"},
	[C_DEV_MEM] = {.id = "device_memory_bytes", .title = "Device memory", .help = "allocated less freed in it, on the device", .type = CELL_I64, .unit = UNIT_BYTES,
	         .also = "cuda_memory_usage device_memory_usage xpu_memory_usage privateuse1_memory_usage"},
	[C_DEV_MEM_SELF] = {.id = "device_self_memory_bytes", .title = "Device self memory", .help = "the same less the events inside it", .type = CELL_I64, .unit = UNIT_BYTES,
	         .also = "self_cuda_memory_usage self_device_memory_usage self_xpu_memory_usage self_privateuse1_memory_usage"},
	[C_FLOPS] = {.id = "flops", .title = "FLOPs", .help = "of all calls, by formula (a multiply-add is 2); an op and the op that it calls both have them; empty = unknown for one "
	             "of the calls",
	             .type = CELL_I64, .unit = UNIT_FLOPS},
	[C_MIN] = {.id = "min_ns", .title = "Min", .help = "shortest call on the host", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL},
	[C_MEDIAN] = {.id = "median_ns", .title = "Median", .help = "median duration on the host; of an even number the mean of the two in the middle", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_DETAIL},
	[C_P95] = {.id = "p95_ns", .title = "p95", .help = "95 % of the calls took no longer on the host", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL},
	[C_P99] = {.id = "p99_ns", .title = "p99", .help = "99 % of the calls took no longer on the host", .type = CELL_I64, .unit = UNIT_NS, .flags = COLUMN_DETAIL},
	[C_MAX] = {.id = "max_ns", .title = "Max", .help = "longest call on the host", .type = CELL_I64, .unit = UNIT_NS},
};

/* The report while it is made. */
struct key_averages_view {
	struct torch_events *t;
	struct key_groups *g;
	struct table *out;
	struct buf text;
	unsigned at[N_COLUMNS];  /* column in the table; UINT32_MAX = it has none */
	int64_t device_ns;       /* all device work */
	bool device, device_memory;
};

/* The columns that are part of the key. */
static const struct {
	unsigned part, column;
	const char *words;
} parts[] = {
	{KEY_OVERLOAD, C_OVERLOAD, "overload"}, {KEY_SHAPE, C_SHAPES, "input shape"}, {KEY_STACK, C_STACK, "stack"},
	{KEY_MODULE, C_MODULE, "module"},         {KEY_THREAD, C_THREAD, "thread"},    {KEY_CYCLE, C_CYCLE, "cycle"},
	{KEY_EVENT, C_EVENT, "event"},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static bool key_averages_has_column(const struct key_averages_view *v, unsigned c)
{
	for (unsigned i = 0; i < N_PARTS; i++)
		if (parts[i].column == c)
			return v->g->choice.parts & parts[i].part;
	switch (c) {
	case C_NODE:
		return v->t->node_id;
	case C_DEV_SELF:
	case C_DEV_SELF_PCT:
	case C_DEV_TOTAL:
	case C_DEV_MEAN:
		return v->device;
	case C_CPU_MEM:
	case C_CPU_MEM_SELF:
		return v->t->memory_known;
	case C_DEV_MEM:
	case C_DEV_MEM_SELF:
		return v->device_memory;
	case C_FLOPS:
		return v->g->all.flops_known;
	}
	return true;
}

static void key_averages_add_columns(struct key_averages_view *v)
{
	for (unsigned c = 0; c < N_COLUMNS; c++) {
		struct column col = columns[c];
		for (unsigned i = 0; i < N_PARTS; i++)
			if (parts[i].column == c)
				col.flags |= COLUMN_GROUP;
		v->at[c] = key_averages_has_column(v, c) ? table_column(v->out, &col) : UINT32_MAX;
	}
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

static void key_averages_put_i64(struct key_averages_view *v, unsigned c, int64_t x)
{
	if (v->at[c] != UINT32_MAX)
		table_set_i64(v->out, v->at[c], x);
}

static void key_averages_put_f64(struct key_averages_view *v, unsigned c, double x)
{
	if (v->at[c] != UINT32_MAX)
		table_set_f64(v->out, v->at[c], x);
}

static void put_durations(struct key_averages_view *v, uint32_t group)
{
	struct stats *s = &v->g->durations;
	key_averages_put_i64(v, C_MIN, s->v[group].min);
	key_averages_put_f64(v, C_MEDIAN, stats_median(s, group));
	key_averages_put_i64(v, C_P95, stats_percentile(s, group, 95));
	key_averages_put_i64(v, C_P99, stats_percentile(s, group, 99));
	key_averages_put_i64(v, C_MAX, s->v[group].max);
}

static void key_averages_put_text(struct key_averages_view *v, unsigned c, struct str s)
{
	if (v->at[c] != UINT32_MAX && s.n)
		table_set_str_copy(v->out, v->at[c], s);
}

/* What the group's key says besides its name. */
static void key_averages_put_key(struct key_averages_view *v, uint32_t group)
{
	const struct key_id *id = &v->g->v[group].id;
	const struct tracks *tracks = &v->t->p->track;
	key_averages_put_text(v, C_OVERLOAD, intern_get(&v->g->texts, id->overload));
	key_averages_put_text(v, C_SHAPES, intern_get(&v->g->texts, id->shapes));
	key_averages_put_text(v, C_MODULE, intern_get(&v->g->texts, id->module));
	if (v->at[C_STACK] != UINT32_MAX) {
		v->text.n = 0;
		key_stack_text(v->g, group, &v->text);
		key_averages_put_text(v, C_STACK, buf_view(&v->text));
	}
	if (id->thread && id->thread - 1 < tracks->rows.n) {
		uint32_t t = id->thread - 1;
		if (tracks->tid[t] != ID_NONE)
			table_set_fmt(v->out, v->at[C_THREAD], "%lld", (long long)tracks->tid[t]);
		else
			key_averages_put_text(v, C_THREAD, profile_str(v->t->p, tracks->tid_text[t]));
	}
	if (id->cycle)
		key_averages_put_i64(v, C_CYCLE, id->cycle);
	if (id->event)
		key_averages_put_i64(v, C_EVENT, (int64_t)id->event - 1);
	if (id->node_id >= 0)
		key_averages_put_i64(v, C_NODE, id->node_id);
}

static void key_averages_put_group(struct key_averages_view *v, uint32_t group)
{
	const struct key_group *x = &v->g->v[group];
	double calls = x->calls;
	table_row(v->out);
	table_set_str_copy(v->out, v->at[C_NAME], intern_get(&v->t->keys, x->id.name));
	key_averages_put_key(v, group);
	key_averages_put_i64(v, C_CALLS, x->calls);
	key_averages_put_i64(v, C_HOST_SELF, x->host_self);
	key_averages_put_f64(v, C_HOST_SELF_PCT, percent(x->host_self, v->g->all.host_self));
	key_averages_put_i64(v, C_HOST_TOTAL, x->host_total);
	if (!x->async)
		key_averages_put_f64(v, C_HOST_TOTAL_PCT, percent(x->host_total, v->g->all.host_self));
	key_averages_put_f64(v, C_HOST_MEAN, (double)x->host_total / calls);
	key_averages_put_i64(v, C_DEV_SELF, x->dev_self);
	key_averages_put_f64(v, C_DEV_SELF_PCT, percent(x->dev_self, v->device_ns));
	key_averages_put_i64(v, C_DEV_TOTAL, x->dev_total);
	key_averages_put_f64(v, C_DEV_MEAN, (double)x->dev_total / calls);
	key_averages_put_i64(v, C_CPU_MEM, x->cpu_mem);
	key_averages_put_i64(v, C_CPU_MEM_SELF, x->cpu_mem_self);
	key_averages_put_i64(v, C_DEV_MEM, x->dev_mem);
	key_averages_put_i64(v, C_DEV_MEM_SELF, x->dev_mem_self);
	if (x->flops_known == x->calls)
		key_averages_put_i64(v, C_FLOPS, x->flops);
	put_durations(v, group);
}

static void put_unattributed(struct key_averages_view *v)
{
	if (!v->t->unattributed)
		return;
	table_row(v->out);
	table_set_str(v->out, v->at[C_NAME], STR("(unattributed)"));
	key_averages_put_i64(v, C_DEV_SELF, v->t->unattributed_ns);
	key_averages_put_f64(v, C_DEV_SELF_PCT, percent(v->t->unattributed_ns, v->device_ns));
	key_averages_put_i64(v, C_DEV_TOTAL, v->t->unattributed_ns);
}

static void note_cycles(const struct key_averages_view *v)
{
	const struct cycles *c = &v->g->cycles;
	if (c->n > 1 && !(v->g->choice.parts & KEY_CYCLE))
		table_warn(v->out, "the recording has %u spans of a repeated schedule, added up here: --group-by=name,cycle tells them apart", c->n);
	for (uint32_t i = 0; i < c->n && i < 20 && (v->g->choice.parts & KEY_CYCLE); i++)
		table_note(v->out, "cycle %u: steps %lld to %lld", i + 1, (long long)c->v[i].step_first, (long long)c->v[i].step_last);
}

/* Groups whose first event nothing called; what no event launched is kept. */
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

/* The profiler's own work stands in the trace beside the threads, whichever of them it interrupted. */
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

static bool key_averages_any(const int64_t *v, uint32_t n)
{
	for (uint32_t i = 0; v && i < n; i++)
		if (v[i])
			return true;
	return false;
}

static const char *const groupings[] = {"name", "shape", "stack:N", "overload", "module", "thread", "cycle", "event", NULL};

static int key_averages_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct key_choice choice = key_choice_of(args);
	struct key_averages_view v = {.out = out, .device = p->gpu_op.rows.n > 0, .device_ns = key_averages_device_work(p)};
	v.t = torch_events_new(p, &torch_rules[TORCH_OWN], TORCH_FLOPS | key_choice_want(&choice));
	v.g = key_groups_new(v.t, &choice);
	v.device_memory = key_averages_any(v.t->dev_mem, v.t->n);
	int rc = 0;
	if (!v.g->n) {
		rc = err_set(e, ERR_DATA, "the trace holds no framework ops; to record them: %s", recording_how(p, RECORD_OPS));
	} else {
		set_title(&v);
		key_averages_add_columns(&v);
		for (uint32_t i = 0; i < v.g->n; i++)
			key_averages_put_group(&v, i);
		put_unattributed(&v);
		if (args->top_level)
			key_averages_keep_top_level(&v);
		rc = table_sort(out, v.device ? STR("device_self_ns") : STR("host_self_ns"), true, e);
		out->data[v.at[v.device ? C_DEV_SELF : C_HOST_SELF]].col.flags |= COLUMN_ASKED; /* what explains the order */
		key_averages_notes(&v);
	}
	buf_release(&v.text);
	key_groups_free(v.g);
	torch_events_free(v.t);
	return rc;
}

static const struct report_variant key_averages_variants[] = {
	{.parts = groupings},
	{.group_by = "event", .takes = REPORT_LIMIT}, /* of single events all are made: the order is not theirs */
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
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_TOP_LEVEL,
	.run = key_averages_run,
};
