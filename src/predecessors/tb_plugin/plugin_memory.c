/* The plugin's memory: by operator, over time, and the life of each block, each for all devices. */
#include "analysis/memory/memory.h"
#include "analysis/tree/optree.h"
#include "base/mem.h"
#include "predecessors/tb_plugin/memory_blocks.h"
#include "predecessors/tb_plugin/plugin.h"
#include "predecessors/tb_plugin/rules.h"
#include "predecessors/tb_plugin/tables.h"
#include "render/number.h"

/* In which units numbers are wanted, and of which time. */
struct memory_asked {
	const char *memory, *time;
	double bytes, ns; /* of one of each */
	struct window window;
};

/* us as the trace counts them; INT64_MIN and INT64_MAX where nothing is said. */
static int read_us(const struct request *r, const char *name, int64_t none, int64_t *ns, struct err *e)
{
	struct str v = request_value(r, name);
	*ns = none;
	if (!v.n || (str_to_i64(v, ns) && !__builtin_mul_overflow(*ns, 1000, ns)))
		return 0;
	return err_set(e, ERR_USAGE, "%s=" STR_FMT ": a number of us was expected, as the trace counts them", name, STR_ARG(v));
}

/* Both ends are in it. */
static int read_window(const struct request *r, struct window *w, struct err *e)
{
	int64_t start, end;
	if (read_us(r, "start_ts", INT64_MIN, &start, e) < 0 || read_us(r, "end_ts", INT64_MAX - 1, &end, e) < 0)
		return -1;
	if (start == INT64_MIN && end == INT64_MAX - 1)
		*w = (struct window){.all = true};
	else
		*w = window_from(&(struct step_window){.start_ns = start, .end_ns = end + 1, .device_start_ns = start, .device_end_ns = end + 1});
	return 0;
}

static int read_asked(const struct request *r, struct memory_asked *u, struct err *e)
{
	static const struct { const char *name; double value; } memories[] = {{"B", 1}, {"KB", 1024}, {"MB", 1 << 20}, {"GB", 1 << 30}},
	                                                        times[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	struct str m = request_value(r, "memory_metric"), t = request_value(r, "time_metric");
	*u = (struct memory_asked){0};
	for (unsigned i = 0; i < 4; i++)
		if (m.p ? str_eqc(m, memories[i].name) : i == 1)
			u->memory = memories[i].name, u->bytes = memories[i].value;
	for (unsigned i = 0; i < 3; i++)
		if (t.p ? str_eqc(t, times[i].name) : i == 1)
			u->time = times[i].name, u->ns = times[i].value;
	if (!u->memory)
		return err_set(e, ERR_USAGE, "memory_metric=" STR_FMT ": B, KB, MB or GB was expected", STR_ARG(m));
	if (!u->time)
		return err_set(e, ERR_USAGE, "time_metric=" STR_FMT ": us, ms or s was expected", STR_ARG(t));
	return read_window(r, &u->window, e);
}

/* "cpu" of "CPU", "3" of "GPU3". */
static const char *plugin_memory_device_arg(const struct request *r, struct str name)
{
	return str_eqc(name, "CPU") ? "cpu" : arena_str(r->arena, (struct str){name.p + 3, name.n - 3}).p;
}

/* The devices of the peaks, "CPU" and "GPU0" and so on, in order of name as the plugin sorted them: the default is the first GPU. */
static struct str default_device(const struct table *peaks)
{
	struct str best = STR("CPU");
	for (size_t i = 0; i < peaks->n_rows; i++) {
		struct str name = table_str(peaks, i, 0);
		if (str_starts(name, STR("GPU")) && (!str_starts(best, STR("GPU")) || str_cmp(name, best) < 0))
			best = name;
	}
	return best;
}

static void put_amount(struct buf *b, const struct table *t, size_t row, unsigned col, double unit)
{
	if (table_is_null(t, row, col)) {
		buf_cstr(b, "null");
		return;
	}
	number_shortest(b, (double)table_i64(t, row, col) / unit);
}

/* The report of a device; of a part of the time the statistics alone. */
static int plugin_memory_table(const struct request *r, const struct report_args *a, const struct memory_asked *u, struct table *t, struct err *e)
{
	if (u->window.all)
		return report_run(report_find(STR("memory")), r->entry->profile, a, t, e);
	table_init(t, "memory", "Memory");
	int rc = tb_memory_statistics(r->entry->profile, a, &u->window, t, e);
	if (rc < 0)
		table_release(t);
	return rc;
}

/* Of each device: its rows of the table that `put` writes. */
static int plugin_memory_put_devices(const struct request *r, const struct table *peaks, const struct memory_asked *u, bool plugin,
                                     int (*put)(struct buf *b, struct table *t, const struct memory_asked *u, struct err *e), struct buf *b, struct err *e)
{
	int rc = 0;
	buf_cstr(b, ",\n\"rows\":{");
	for (size_t i = 0; rc == 0 && i < peaks->n_rows; i++) {
		struct str name = table_str(peaks, i, 0);
		struct report_args a = {.device = plugin_memory_device_arg(r, name), .compat = plugin ? "tb-plugin" : NULL};
		struct table t;
		if (plugin_memory_table(r, &a, u, &t, e) < 0)
			return -1;
		buf_cstr(b, i ? ",\n" : "");
		json_put_string(b, name);
		buf_cstr(b, ":[");
		rc = put(b, &t, u, e);
		buf_char(b, ']');
		table_release(&t);
	}
	buf_cstr(b, "}}\n");
	return rc;
}

/* Columns from their names, which may have a unit behind them. */
static void plugin_memory_put_columns(struct buf *b, const char *const names[][2], unsigned n)
{
	buf_cstr(b, ",\n\"columns\":[");
	for (unsigned i = 0; i < n; i++) {
		buf_printf(b, "%s{\"name\":\"%s", i ? "," : "", names[i][0]);
		if (names[i][1])
			buf_printf(b, " (%s)", names[i][1]);
		buf_printf(b, "\",\"type\":\"%s\"}", str_starts(str_from(names[i][0]), STR("Operator")) ? "string" : "number");
	}
	buf_char(b, ']');
}

/* The report tells it in KB. */
static int plugin_memory_put_statistics(struct buf *b, struct table *t, const struct memory_asked *u, struct err *e)
{
	if (table_sort(t, STR("operator"), false, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n_rows; i++) {
		buf_cstr(b, i ? ",\n[" : "\n[");
		for (unsigned c = 0; c < t->n_columns; c++) {
			buf_cstr(b, c ? "," : "");
			if (str_ends(str_from(t->data[c].col.id), STR("_kb")) && u->bytes != 1024)
				number_shortest(b, memory_shown(table_f64(t, i, c) * 1024 / u->bytes));
			else
				plugin_put_cell(b, t, i, (int)c);
		}
		buf_char(b, ']');
	}
	return 0;
}

static void plugin_memory_put_time(struct buf *b, const struct profile *p, uint32_t from, uint32_t to, const struct memory_asked *u)
{
	buf_char(b, ',');
	if (to == ROW_NONE)
		buf_cstr(b, "null");
	else
		number_shortest(b, memory_shown(memory_span_in(p, from, to, u->ns)));
}

static void put_blocks(struct buf *b, const struct profile *p, const struct optree *t, int device, const struct memory_asked *u)
{
	struct memory_block *block;
	struct buf name = {0};
	uint32_t n = memory_blocks(p, t, &u->window, device, &block);
	for (uint32_t i = 0; i < n; i++) {
		const struct memory_block *x = &block[i];
		buf_clear(&name);
		memory_block_name(p, t, x, &name);
		buf_cstr(b, i ? ",\n[" : "\n[");
		json_put_string(b, buf_view(&name));
		buf_char(b, ',');
		number_shortest(b, memory_shown((double)x->bytes / u->bytes));
		plugin_memory_put_time(b, p, ROW_NONE, x->alloc, u);
		plugin_memory_put_time(b, p, ROW_NONE, x->release, u);
		plugin_memory_put_time(b, p, x->alloc, x->alloc == ROW_NONE ? ROW_NONE : x->release, u);
		buf_char(b, ']');
	}
	buf_release(&name);
	mem_free(block);
}

static int put_points(struct buf *b, struct table *all, const struct memory_asked *u, struct err *e)
{
	const struct table *t = plugin_section(all, "curve");
	for (size_t i = 0; i < t->n_rows; i++) {
		buf_cstr(b, i ? ",[" : "[");
		for (unsigned c = 0; c < t->n_columns; c++) {
			buf_cstr(b, c ? "," : "");
			put_amount(b, t, i, c, c ? u->bytes : u->ns);
		}
		buf_char(b, ']');
	}
	return 0;
}

static void plugin_memory_put_head(struct buf *b, const char *title, struct str device)
{
	buf_printf(b, "{\"metadata\":{\"title\":\"%s\",\"default_device\":", title);
	json_put_string(b, device);
}

static int plugin_memory_put_memory(const struct request *r, const struct table *peaks, const struct memory_asked *u, struct buf *b, struct err *e)
{
	if (u->bytes < 1024)
		return err_set(e, ERR_USAGE, "memory_metric=B: KB, MB or GB was expected: the plugin's numbers are rounded");
	const char *const names[][2] = {{"Operator Name", NULL}, {"Calls", NULL}, {"Size Increase", u->memory}, {"Self Size Increase", u->memory},
	                                {"Allocation Count", NULL}, {"Self Allocation Count", NULL}, {"Allocation Size", u->memory},
	                                {"Self Allocation Size", u->memory}};
	plugin_memory_put_head(b, "Memory View", default_device(peaks));
	buf_printf(b, ",\"search\":\"Operator Name\",\"sort\":\"Self Size Increase (%s)\"}", u->memory);
	plugin_memory_put_columns(b, names, sizeof names / sizeof names[0]);
	return plugin_memory_put_devices(r, peaks, u, true, plugin_memory_put_statistics, b, e);
}

static int plugin_memory_put_events(const struct request *r, const struct table *peaks, const struct memory_asked *u, struct buf *b, struct err *e)
{
	const char *const names[][2] = {{"Operator", NULL}, {"Size", u->memory}, {"Allocation Time", u->time}, {"Release Time", u->time}, {"Duration", u->time}};
	plugin_memory_put_head(b, "Memory Events", default_device(peaks));
	buf_char(b, '}');
	plugin_memory_put_columns(b, names, sizeof names / sizeof names[0]);
	struct optree *t = optree_new(r->entry->profile, &tb_optree);
	buf_cstr(b, ",\n\"rows\":{");
	for (size_t i = 0; i < peaks->n_rows; i++) {
		struct str name = table_str(peaks, i, 0);
		int64_t ordinal = MEMORY_CPU;
		str_to_i64(str_from(plugin_memory_device_arg(r, name)), &ordinal);
		buf_cstr(b, i ? ",\n" : "");
		json_put_string(b, name);
		buf_cstr(b, ":[");
		put_blocks(b, r->entry->profile, t, (int)ordinal, u);
		buf_char(b, ']');
	}
	buf_cstr(b, "}}\n");
	optree_free(t);
	return 0;
}

/* What the GPUs among the devices of the peaks have, where the trace describes them. */
static void plugin_memory_put_totals(const struct request *r, const struct table *peaks, const struct memory_asked *u, struct buf *b)
{
	const struct devices *d = &r->entry->profile->device;
	bool any = false;
	for (size_t i = 0; i < peaks->n_rows; i++) {
		struct str name = table_str(peaks, i, 0);
		int64_t ordinal = MEMORY_CPU;
		str_to_i64(str_from(plugin_memory_device_arg(r, name)), &ordinal);
		for (uint32_t k = 0; ordinal != MEMORY_CPU && k < d->rows.n; k++) {
			if (d->id[k] != ordinal || d->memory_bytes[k] <= 0)
				continue;
			buf_cstr(b, any ? "," : "");
			json_put_string(b, name);
			buf_char(b, ':');
			number_shortest(b, (double)d->memory_bytes[k] / u->bytes);
			any = true;
			break;
		}
	}
}

static int plugin_memory_put_curve(const struct request *r, const struct table *peaks, const struct memory_asked *u, struct buf *b, struct err *e)
{
	const char *const names[][2] = {{"Time", u->time}, {"Allocated", u->memory}, {"Reserved", u->memory}};
	struct memory_asked whole = *u;
	whole.window = (struct window){.all = true};
	buf_cstr(b, "{\"metadata\":{\"default_device\":");
	json_put_string(b, default_device(peaks));
	buf_cstr(b, ",\"devices\":[");
	for (size_t i = 0; i < peaks->n_rows; i++) {
		buf_cstr(b, i ? "," : "");
		json_put_string(b, table_str(peaks, i, 0));
	}
	buf_cstr(b, "],\"peaks\":{");
	bool any = false;
	for (size_t i = 0; i < peaks->n_rows; i++) {
		if (table_is_null(peaks, i, 1))
			continue;
		buf_cstr(b, any ? "," : "");
		any = true;
		json_put_string(b, table_str(peaks, i, 0));
		buf_cstr(b, ":\"Peak Memory Usage: ");
		number_fixed(b, (double)table_i64(peaks, i, 1) / u->bytes, 1, false);
		buf_printf(b, "%s\"", u->memory);
	}
	buf_cstr(b, "},\"totals\":{");
	plugin_memory_put_totals(r, peaks, u, b);
	buf_cstr(b, "},\"first_ts\":");
	number_shortest(b, (double)memory_zero_ns(r->entry->profile) / 1000);
	buf_printf(b, ",\"time_metric\":\"%s\",\"memory_metric\":\"%s\",\"time_factor\":%.0f,\"memory_factor\":%.0f}", u->time, u->memory, u->ns / 1000, u->bytes);
	plugin_memory_put_columns(b, names, sizeof names / sizeof names[0]);
	return plugin_memory_put_devices(r, peaks, &whole, false, put_points, b, e);
}

static int with_peaks(const struct request *r, struct response *out,
                      int (*put)(const struct request *r, const struct table *peaks, const struct memory_asked *u, struct buf *b, struct err *e), struct err *e)
{
	struct table t;
	struct memory_asked u;
	int rc = report_run(report_find(STR("memory")), r->entry->profile, &(struct report_args){0}, &t, e);
	if (rc == 0) {
		rc = read_asked(r, &u, e) < 0 ? -1 : put(r, plugin_section(&t, "peaks"), &u, &out->body, e);
		table_release(&t);
	}
	return rc;
}

static int run_memory(const struct request *r, struct response *out, struct err *e)
{
	return with_peaks(r, out, plugin_memory_put_memory, e);
}

static int run_events(const struct request *r, struct response *out, struct err *e)
{
	return with_peaks(r, out, plugin_memory_put_events, e);
}

static int run_curve(const struct request *r, struct response *out, struct err *e)
{
	return with_peaks(r, out, plugin_memory_put_curve, e);
}

#define METRIC_PARAMS \
	{"memory_metric", "KB (the default), MB, GB; B where numbers are not rounded", NULL, false}, \
	{"time_metric", "us, ms (the default) or s", NULL, false}
static const struct endpoint_param curve_params[] = {METRIC_PARAMS, {0}};
static const struct endpoint_param params[] = {
	METRIC_PARAMS,
	{"start_ts", "only of what happened at this time or later, in us as the trace counts them", NULL, false},
	{"end_ts", "only of what happened at this time or earlier", NULL, false},
	{0},
};

static const struct endpoint events = {
	.path = PLUGIN_PATH "memory_events",
	.help = "allocation and release of each block",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.run = run_events,
};

static const struct endpoint curve = {
	.path = PLUGIN_PATH "memory_curve",
	.help = "allocated and reserved memory over time",
	.flags = PLUGIN_FLAGS,
	.params = curve_params,
	.also = &events,
	.run = run_curve,
};

const struct endpoint endpoint_plugin_memory = {
	.path = PLUGIN_PATH "memory",
	.help = "memory by operator",
	.flags = PLUGIN_FLAGS,
	.params = params,
	.also = &curve,
	.run = run_memory,
};
