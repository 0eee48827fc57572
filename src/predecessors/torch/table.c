#include "predecessors/torch/table.h"

#include "base/mem.h"
#include "predecessors/torch/us.h"

#include <math.h>

enum { C_KEY, C_OVERLOAD, C_SELF_PCT, C_SELF, C_TOTAL_PCT, C_TOTAL, C_MEAN, C_DEV_SELF, C_DEV_PCT, C_DEV_TOTAL, C_DEV_MEAN, C_MEM, C_MEM_SELF,
       C_DEV_MEM, C_DEV_MEM_SELF, C_COUNT, C_NODE, C_SHAPES, C_STACK, C_FLOPS, C_ASYNC, C_DEVICE, N_COLUMNS };

#define US(id_, title_, help_, ...) {.id = id_, .title = title_, .help = help_ ", us", .type = CELL_F64, .unit = UNIT_US, __VA_ARGS__}
#define DEVICE(id) .also = "cuda_" id " xpu_" id " privateuse1_" id
#define SELF_DEVICE(id) .also = "self_cuda_" id " self_xpu_" id " self_privateuse1_" id

static const struct column columns[N_COLUMNS] = {
	[C_KEY] = {.id = "key", .title = "Name", .help = "name of the events", .type = CELL_STR, .flags = COLUMN_ANSWER},
	[C_OVERLOAD] = {.id = "overload_name", .title = "Overload Name", .help = "which overload of the op", .type = CELL_STR},
	[C_SELF_PCT] = {.id = "self_cpu_percent", .title = "Self CPU %", .help = "self_cpu_time_total / that of all rows; null: that is 0", .type = CELL_F64, .unit = UNIT_PERCENT},
	[C_SELF] = US("self_cpu_time_total", "Self CPU", "time on the host less that of the events directly inside"),
	[C_TOTAL_PCT] = {.id = "total_cpu_percent", .title = "CPU total %", .help = "cpu_time_total / self_cpu_time_total of all rows", .type = CELL_F64, .unit = UNIT_PERCENT},
	[C_TOTAL] = US("cpu_time_total", "CPU total", "time on the host"),
	[C_MEAN] = US("cpu_time", "CPU time avg", "cpu_time_total / count"),
	[C_DEV_SELF] = US("self_device_time_total", "Self %s", "of device work its duration, of others the work they launched", SELF_DEVICE("time_total")),
	[C_DEV_PCT] = {.id = "total_device_percent", .title = "Self %s %%", .help = "self_device_time_total / that of all device work", .type = CELL_F64, .unit = UNIT_PERCENT},
	[C_DEV_TOTAL] = US("device_time_total", "%s total", "the same with the events inside", DEVICE("time_total")),
	[C_DEV_MEAN] = US("device_time", "%s time avg", "device_time_total / count", DEVICE("time")),
	[C_MEM] = {.id = "cpu_memory_usage", .title = "CPU Mem", .help = "allocated less freed on the host", .type = CELL_I64, .unit = UNIT_BYTES},
	[C_MEM_SELF] = {.id = "self_cpu_memory_usage", .title = "Self CPU Mem", .help = "the same less the events directly inside", .type = CELL_I64, .unit = UNIT_BYTES},
	[C_DEV_MEM] = {.id = "device_memory_usage", .title = "%s Mem", .help = "allocated less freed on the device", .type = CELL_I64, .unit = UNIT_BYTES, DEVICE("memory_usage")},
	[C_DEV_MEM_SELF] = {.id = "self_device_memory_usage", .title = "Self %s Mem", .help = "the same less the events directly inside", .type = CELL_I64, .unit = UNIT_BYTES,
	                    SELF_DEVICE("memory_usage")},
	[C_COUNT] = {.id = "count", .title = "# of Calls", .help = "events", .type = CELL_I64},
	[C_NODE] = {.id = "node_id", .title = "Node ID", .help = "process that it ran in, called by RPC; -1 = this one", .type = CELL_I64},
	[C_SHAPES] = {.id = "input_shapes", .title = "Input Shapes", .help = "of the first event", .type = CELL_STR, .flags = COLUMN_WIDE},
	[C_STACK] = {.id = "stack", .title = "Source Location", .help = "Python frames, innermost first", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_STACK},
	[C_FLOPS] = {.id = "flops", .title = "Total FLOPs", .help = "by torch's formulas; 0 = it has none for the op", .type = CELL_I64, .unit = UNIT_FLOPS},
	[C_ASYNC] = {.id = "is_async", .title = "Async", .help = "begins and ends on different threads: in no other event", .type = CELL_BOOL, .flags = COLUMN_DETAIL},
	[C_DEVICE] = {.id = "device_type", .title = "Device Type", .help = "CPU, or where device work ran", .type = CELL_STR, .flags = COLUMN_DETAIL},
};

/* What decides which columns torch prints. */
struct facts {
	const struct torch_device_name *device; /* the first with work; CUDA when none has */
	bool device_time, device_memory, memory, flops, nodes;
};

static bool meta_is_one(const struct profile *p, const char *key)
{
	struct str value;
	return profile_meta(p, key, &value) && str_eqc(value, "1");
}

static struct facts torch_table_facts_of(const struct key_groups *g)
{
	const struct torch_events *t = g->t;
	struct facts f = {.memory = t->memory_known || meta_is_one(t->p, "profile_memory"), .flops = meta_is_one(t->p, "with_flops")};
	for (uint32_t i = 0; i < g->n; i++) {
		const struct key_group *x = &g->v[i];
		uint32_t device = x->id.device_type;
		f.device_time |= x->dev_self > 0;
		f.device_memory |= x->dev_mem_self > 0;
		f.nodes |= x->id.node_id != -1;
		if (device != TORCH_CPU && !f.device)
			f.device = torch_device_name(device);
	}
	f.device_memory &= f.device != NULL;
	f.device = f.device ? f.device : torch_device_name(TORCH_CUDA);
	return f;
}

static bool torch_table_shown(const struct facts *f, unsigned parts, unsigned c)
{
	switch (c) {
	case C_OVERLOAD:
		return parts & KEY_OVERLOAD;
	case C_SHAPES:
		return parts & KEY_SHAPE;
	case C_STACK:
		return parts & KEY_STACK;
	case C_DEV_SELF: case C_DEV_PCT: case C_DEV_TOTAL: case C_DEV_MEAN:
		return f->device_time;
	case C_MEM: case C_MEM_SELF:
		return f->memory;
	case C_DEV_MEM: case C_DEV_MEM_SELF:
		return f->memory && f->device_memory;
	case C_NODE:
		return f->nodes;
	case C_FLOPS:
		return f->flops;
	case C_ASYNC: case C_DEVICE:
		return false;
	}
	return true;
}

/* "Self %s %%" for CUDA. */
static const char *title_for(struct table *t, const char *title, const char *device)
{
	struct buf b = {0};
	for (const char *c = title; *c; c++) {
		bool mark = *c == '%' && (c[1] == 's' || c[1] == '%');
		if (mark)
			buf_cstr(&b, *++c == 's' ? device : "%");
		else
			buf_char(&b, *c);
	}
	const char *copy = arena_str(&t->arena, buf_view(&b)).p;
	buf_release(&b);
	return copy;
}

static void torch_table_add_columns(struct table *t, const struct facts *f, unsigned parts)
{
	for (unsigned c = 0; c < N_COLUMNS; c++) {
		struct column col = columns[c];
		if (c >= C_DEV_SELF && c <= C_DEV_MEM_SELF)
			col.title = title_for(t, col.title, f->device->text);
		if (!torch_table_shown(f, parts, c))
			col.flags |= COLUMN_DETAIL;
		table_column(t, &col);
	}
}

static void torch_table_put_share(struct table *t, unsigned c, double part, double whole)
{
	table_set_f64(t, c, whole != 0 ? part * 100 / whole : (double)NAN);
}

static void torch_table_put_sums(struct table *t, const struct key_group *x, const struct torch_us_sums *times, bool memory, bool flops)
{
	table_set_f64(t, C_SELF, times->self);
	table_set_f64(t, C_TOTAL, times->total);
	table_set_f64(t, C_MEAN, times->total / x->calls);
	table_set_f64(t, C_DEV_SELF, times->dev_self);
	table_set_f64(t, C_DEV_TOTAL, times->dev_total);
	table_set_f64(t, C_DEV_MEAN, times->dev_total / x->calls);
	table_set_i64(t, C_COUNT, x->calls);
	if (memory) {
		table_set_i64(t, C_MEM, x->cpu_mem);
		table_set_i64(t, C_MEM_SELF, x->cpu_mem_self);
		table_set_i64(t, C_DEV_MEM, x->dev_mem);
		table_set_i64(t, C_DEV_MEM_SELF, x->dev_mem_self);
	}
	if (flops)
		table_set_i64(t, C_FLOPS, x->flops);
}

static void torch_table_put_group(struct table *t, const struct key_groups *g, const struct torch_us *times, uint32_t i, const struct facts *f)
{
	const struct key_group *x = &g->v[i];
	bool async = g->t->flags[x->first] & TORCH_ASYNC;
	struct buf stack = {0};
	table_row(t);
	table_set_str_copy(t, C_KEY, intern_get(&g->t->keys, x->id.name));
	torch_table_put_sums(t, x, &times->v[i], f->memory, g->t->flops != NULL);
	torch_table_put_share(t, C_SELF_PCT, times->v[i].self, times->all.self);
	torch_table_put_share(t, C_TOTAL_PCT, async ? 0 : times->v[i].total, times->all.self);
	torch_table_put_share(t, C_DEV_PCT, times->v[i].dev_self, times->device);
	table_set_i64(t, C_NODE, x->id.node_id);
	table_set_bool(t, C_ASYNC, async);
	table_set_str(t, C_DEVICE, str_from(torch_device_name(x->id.device_type)->text));
	if (x->id.overload)
		table_set_str_copy(t, C_OVERLOAD, intern_get(&g->texts, x->id.overload));
	if (x->id.shapes && g->t->shapes_known)
		table_set_str_copy(t, C_SHAPES, intern_get(&g->texts, x->id.shapes));
	if (g->choice.parts & KEY_STACK) {
		key_stack_text(g, i, &stack);
		if (stack.n)
			table_set_str_copy(t, C_STACK, buf_view(&stack));
	}
	buf_release(&stack);
}

static void torch_table_put_totals(struct table *t, const struct facts *f, const struct torch_us *times)
{
	struct table *s = table_section(t, "totals", "Totals");
	TABLE_COLUMN(s, .id = "what", .title = "What", .help = "the line below torch's table", .type = CELL_STR);
	TABLE_COLUMN(s, .id = "time_us", .title = "Time", .help = "of all rows, those left out too, us", .type = CELL_F64, .unit = UNIT_US);
	table_row(s);
	table_set_str(s, 0, STR("Self CPU time total"));
	table_set_f64(s, 1, times->all.self);
	if (!f->device_time)
		return;
	table_row(s);
	table_set_fmt(s, 0, "Self %s time total", f->device->text);
	table_set_f64(s, 1, times->device);
}

/* torch's list holds calls; a row stands where its first call stands. */
static void torch_table_keep_top_level(struct table *t, const struct key_groups *g)
{
	uint8_t *keep = NEW_ARRAY_RAW(g->n, uint8_t);
	for (uint32_t i = 0; i < g->n; i++)
		keep[i] = g->t->parent[g->v[i].first] == ROW_NONE;
	table_keep(t, keep);
	t->banner = "This report only display top-level ops statistics";
	mem_free(keep);
}

/* Only where torch's own output cannot be had: then it need not be the same byte for byte. */
static void torch_table_note_missing(struct table *t, const struct key_groups *g)
{
	struct str value;
	if (!g->t->memory_known && !g->t->shapes_known && !profile_meta(g->t->p, "schemaVersion", &value))
		table_warn(t, "not known: memory, shapes, stacks and FLOPs, which a trace without Kineto does not hold");
	if (g->overflows)
		table_warn(t, "%llu sums do not fit 64 bits and stand at the limit", (unsigned long long)g->overflows);
}

int torch_table_check(const struct torch_rules *rules, const struct report_args *args, struct err *e)
{
	int64_t frames = 1;
	if (report_groups_by(args, "overload", NULL) && !rules->overload)
		return err_set(e, ERR_USAGE, "--group-by=%s: --compat=%s knows no overloads; torch-2.11 does", args->group_by, rules->name);
	if (report_groups_by(args, "stack", &frames) && !frames)
		return err_set(e, ERR_USAGE, "--group-by=%s: torch needs the number of frames: stack:5", args->group_by);
	return 0;
}

void torch_table_averages(const struct key_groups *g, const struct report_args *args, struct table *out)
{
	struct facts f = torch_table_facts_of(g);
	struct torch_us times;
	torch_us_sum(&times, g);
	out->layout = g->t->rules->name;
	torch_table_add_columns(out, &f, g->choice.parts);
	for (uint32_t i = 0; i < g->n; i++)
		torch_table_put_group(out, g, &times, i, &f);
	if (args->top_level)
		torch_table_keep_top_level(out, g);
	torch_table_put_totals(out, &f, &times);
	torch_table_note_missing(out, g);
	torch_us_release(&times);
}

/* The fields that torch shows of an object come first, in its order; before 2.0 all devices were CUDA. */
static void name_fields(struct table *t, const struct facts *f, bool old)
{
	static const char *const titles[] = {"key", "self_cpu_time", "cpu_time", " self_%s_time", "%s_time", "input_shapes", "cpu_memory_usage",
	                                     "%s_memory_usage"};
	const char *device = old ? torch_device_name(TORCH_CUDA)->field : f->device->field;
	struct err e;
	table_select(t, STR("key,self_cpu_time_total,cpu_time,self_device_time_total,device_time,input_shapes,cpu_memory_usage,device_memory_usage,"
	                    "cpu_time_total,device_time_total,self_cpu_memory_usage,self_device_memory_usage,count,flops"), &e);
	for (unsigned c = 0; c < t->n_columns; c++) {
		struct column *col = &t->data[c].col;
		bool field = c < sizeof titles / sizeof *titles;
		col->flags = field ? 0 : COLUMN_DETAIL;
		col->title = field ? title_for(t, titles[c], device) : col->title;
	}
}

/* Its shapes are those of the event that came last. */
static void put_last_shapes(struct table *t, const struct torch_events *e)
{
	struct buf text = {0};
	torch_shapes_text(e->n ? profile_str(e->p, torch_event_shapes(e, e->n - 1)) : STR(""), &text);
	table_set_str_copy(t, C_SHAPES, buf_view(&text));
	buf_release(&text);
}

void torch_table_total(const struct key_groups *g, struct table *out)
{
	const struct torch_events *t = g->t;
	struct facts f = torch_table_facts_of(g);
	struct torch_us times;
	torch_us_sum(&times, g);
	out->layout = "repr";
	out->title = "FunctionEventAvg";
	torch_table_add_columns(out, &f, 0);
	table_row(out);
	table_set_str(out, C_KEY, STR("Total"));
	torch_table_put_sums(out, &g->all, &times.all, true, t->flops != NULL);
	put_last_shapes(out, t);
	name_fields(out, &f, t->rules->cuda_alone);
	torch_table_note_missing(out, g);
	torch_us_release(&times);
}
