#include "cli/cli.h"

#include "analysis/recording.h"
#include "analysis/steps/steps.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "render/render.h"

#include <ctype.h>

static const char doc[] =
	"What is in a trace: format, sizes, GPUs, rank, steps, events by category, threads and streams, and every "
	"problem met while reading it. Of a directory with several traces, lists them.";

/* The main table: a fact a row; each has its own unit, so a number is given as text and, in full, beside it. */
enum { FACT, VALUE, NUMBER, UNIT };

static void fact_columns(struct table *t)
{
	TABLE_COLUMN(t, .id = "fact", .title = "", .type = CELL_STR, .help = "what");
	TABLE_COLUMN(t, .id = "value", .title = "", .type = CELL_STR, .flags = COLUMN_WIDE, .help = "for reading");
	TABLE_COLUMN(t, .id = "number", .title = "Number", .type = CELL_I64, .flags = COLUMN_DETAIL,
	             .help = "the same in full, where it is a number");
	TABLE_COLUMN(t, .id = "unit", .title = "Unit", .type = CELL_STR, .flags = COLUMN_DETAIL, .help = "of the number");
}

static void cli_info_put_fact(struct table *t, const char *name, struct str value)
{
	table_row(t);
	table_set_str(t, FACT, str_from(name));
	table_set_str_copy(t, VALUE, value);
}

/* A number, shown as any report would show it. */
static void cli_info_put_number(struct table *t, const char *name, int64_t v, enum unit unit, const char *unit_name)
{
	struct table one;
	struct buf shown = {0};
	table_init(&one, "", "");
	TABLE_COLUMN(&one, .id = "", .title = "", .type = CELL_I64, .unit = unit);
	table_row(&one);
	table_set_i64(&one, 0, v);
	format_cell(&one, 0, 0, &shown);
	cli_info_put_fact(t, name, buf_view(&shown));
	table_set_i64(t, NUMBER, v);
	table_set_str(t, UNIT, str_from(unit_name));
	buf_release(&shown);
	table_release(&one);
}

static void cli_info_put_count(struct table *t, const char *name, uint64_t n)
{
	cli_info_put_number(t, name, (int64_t)n, UNIT_COUNT, "count");
}

static void cli_info_put_bytes(struct table *t, const char *name, uint64_t n)
{
	cli_info_put_number(t, name, (int64_t)n, UNIT_BYTES, "bytes");
}

/* Where the input holds durations only, its times are made up. */
static void put_recorded_time(struct table *t, const struct profile *p)
{
	int64_t first, last;
	if (!p->durations_only && recording_extent(p, &first, &last))
		cli_info_put_number(t, "recorded time", last - first, UNIT_NS, "ns");
}

static bool json_field(struct str object, const char *quoted_key, struct str *value)
{
	ptrdiff_t at = str_find(object, str_from(quoted_key));
	if (at < 0)
		return false;
	size_t i = (size_t)at + strlen(quoted_key);
	while (i < object.n && (isspace((unsigned char)object.p[i]) || object.p[i] == ':' || object.p[i] == '"'))
		i++;
	size_t end = i;
	while (end < object.n && !strchr(",}]\" \n", object.p[end]))
		end++;
	*value = (struct str){object.p + i, end - i};
	return end > i;
}

static void put_rank(struct table *t, const struct profile *p)
{
	struct str info, rank, world, backend;
	if (!profile_meta(p, "distributedInfo", &info) || !json_field(info, "\"rank\"", &rank))
		return;
	struct buf b = {0};
	buf_str(&b, rank);
	if (json_field(info, "\"world_size\"", &world))
		buf_printf(&b, " of " STR_FMT, STR_ARG(world));
	if (json_field(info, "\"backend\"", &backend))
		buf_printf(&b, " (" STR_FMT ")", STR_ARG(backend));
	cli_info_put_fact(t, "rank", buf_view(&b));
	int64_t n;
	if (str_to_i64(rank, &n))
		table_set_i64(t, NUMBER, n);
	buf_release(&b);
}

static void cli_info_put_steps(struct table *t, const struct profile *p)
{
	const struct steps *s = p->steps;
	table_row(t);
	table_set_str(t, FACT, STR("steps"));
	table_set_i64(t, NUMBER, s->whole_trace ? 0 : s->n);
	table_set_str(t, UNIT, STR("count"));
	if (s->whole_trace || !s->n)
		table_set_str(t, VALUE, STR("none found"));
	else if (s->n < s->total)
		table_set_fmt(t, VALUE, "%u (" STR_FMT " to " STR_FMT "), %u more at the end without all of their device work", s->n,
		              STR_ARG(s->v[0].name), STR_ARG(s->v[s->n - 1].name), s->total - s->n);
	else
		table_set_fmt(t, VALUE, "%u (" STR_FMT " to " STR_FMT ")", s->n, STR_ARG(s->v[0].name),
		              STR_ARG(s->v[s->n - 1].name));
	table_row(t);
	table_set_str(t, FACT, STR("steps from"));
	table_set_str(t, VALUE, str_from(step_source_name[s->source]));
	if (!s->whole_trace) {
		table_set_fmt(t, VALUE, "%s, `" STR_FMT "`, %.0f %% certain", step_source_name[s->source], STR_ARG(s->key), 100 * s->certainty);
		table_set_i64(t, NUMBER, (int64_t)(100 * s->certainty + 0.5));
		table_set_str(t, UNIT, STR("percent"));
	}
	if (s->source != STEPS_PROFILER && s->how.n)
		table_note(t, STR_FMT, STR_ARG(s->how));
}

static void put_device_summary(struct table *t, const struct profile *p)
{
	struct buf b = {0};
	uint32_t n = p->device.rows.n;
	uint32_t *same = NEW_ARRAY(p->strings.n, uint32_t); /* devices by name */
	for (uint32_t i = 0; i < n; i++)
		same[p->device.name[i]]++;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t name = p->device.name[i];
		if (same[name])
			buf_printf(&b, "%s%u x " STR_FMT, b.n ? ", " : "", same[name], STR_ARG(profile_str(p, name)));
		same[name] = 0;
	}
	mem_free(same);
	cli_info_put_fact(t, "devices", n ? buf_view(&b) : STR("none described"));
	table_set_i64(t, NUMBER, n);
	table_set_str(t, UNIT, STR("count"));
	buf_release(&b);
}

/* The .opscope file; the rows below are of the recording that it was made from. */
static void cli_info_put_opscope(struct table *t, const struct profile *p, const char *path)
{
	cli_info_put_fact(t, ".opscope file", str_from(path));
	cli_info_put_number(t, ".opscope version", p->reopened_version, UNIT_NONE, "");
	cli_info_put_bytes(t, ".opscope size", p->reopened_bytes);
}

static void fill_facts(struct table *t, const struct profile *p)
{
	cli_info_put_fact(t, "input", p->input_path);
	cli_info_put_fact(t, "format", p->format);
	if (p->file_bytes)
		cli_info_put_bytes(t, "file", p->file_bytes);
	cli_info_put_bytes(t, "uncompressed", p->input_bytes);
	cli_info_put_count(t, "events", profile_events(p));
	cli_info_put_count(t, "CPU ranges", p->span.rows.n);
	cli_info_put_count(t, "device operations", p->gpu_op.rows.n);
	cli_info_put_count(t, "memory events", (uint64_t)p->memory.rows.n + p->left_memory);
	put_recorded_time(t, p);
	put_device_summary(t, p);
	put_rank(t, p);
	cli_info_put_steps(t, p);
	cli_info_put_bytes(t, "held in memory", profile_bytes(p) + p->left_bytes); /* by those who ask for all of it */
}

/* How many operations each described device ran, by row. */
static int64_t *operations_by_device(const struct profile *p)
{
	uint32_t n = p->device.rows.n;
	int64_t *count = NEW_ARRAY(n, int64_t);
	struct idmap row;
	idmap_init(&row, INT32_MIN, INT32_MAX, n);
	for (uint32_t i = n; i-- > 0;) /* of several rows with one ordinal the first counts */
		idmap_put(&row, profile_device_ordinal(p, i), i);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t launch = p->gpu_op.launch[g];
		uint32_t i = launch < p->launch.rows.n ? idmap_get(&row, p->launch.device[launch]) : IDMAP_NONE;
		if (i != IDMAP_NONE)
			count[i]++;
	}
	for (uint32_t i = 0; i < n; i++)
		count[i] = count[idmap_get(&row, profile_device_ordinal(p, i))];
	idmap_release(&row);
	return count;
}

static void add_devices(struct table *first, const struct profile *p)
{
	struct table *t = table_section(first, "devices", "Devices");
	TABLE_COLUMN(t, .id = "device", .title = "Device", .type = CELL_I64, .help = "ordinal");
	TABLE_COLUMN(t, .id = "name", .title = "Name", .type = CELL_STR, .help = "product name");
	TABLE_COLUMN(t, .id = "memory_bytes", .title = "Memory", .type = CELL_I64, .unit = UNIT_BYTES, .help = "global memory");
	TABLE_COLUMN(t, .id = "compute_capability", .title = "Compute capability", .type = CELL_STR, .help = "major.minor");
	TABLE_COLUMN(t, .id = "sm_count", .title = "SMs", .type = CELL_I64, .unit = UNIT_COUNT,
	             .help = "streaming multiprocessors or compute units");
	TABLE_COLUMN(t, .id = "operations", .title = "Operations", .type = CELL_I64, .unit = UNIT_COUNT,
	             .help = "kernels, copies and sets on it in this trace");
	int64_t *operations = operations_by_device(p);
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		table_row(t);
		table_set_i64(t, 0, profile_device_ordinal(p, i));
		table_set_str_copy(t, 1, profile_str(p, p->device.name[i]));
		if (p->device.memory_bytes[i])
			table_set_i64(t, 2, p->device.memory_bytes[i]);
		if (p->device.cc_major[i] >= 0)
			table_set_fmt(t, 3, "%d.%d", p->device.cc_major[i], p->device.cc_minor[i]);
		if (p->device.sm_count[i])
			table_set_i64(t, 4, p->device.sm_count[i]);
		table_set_i64(t, 5, operations[i]);
	}
	mem_free(operations);
	if (p->device_joined)
		table_note(t, "device %d is described as device %d: only one is described, and only one works", p->joined_device, p->device.id[0]);
}

static int cli_info_add_events(struct table *first, const struct profile *p, struct err *e)
{
	struct table *t = table_section(first, "events", "Events by category and phase");
	TABLE_COLUMN(t, .id = "category", .title = "Category", .type = CELL_STR, .help = "cat, as written; empty = none");
	TABLE_COLUMN(t, .id = "phase", .title = "Phase", .type = CELL_STR, .help = "ph, as written");
	TABLE_COLUMN(t, .id = "events", .title = "Events", .type = CELL_I64, .unit = UNIT_COUNT, .help = "how many");
	for (uint32_t i = 0; i < p->count.rows.n; i++) {
		char phase = (char)p->count.phase[i];
		table_row(t);
		table_set_str_copy(t, 0, profile_cat(p, p->count.cat[i]));
		table_set_str_copy(t, 1, (struct str){&phase, phase != 0});
		table_set_i64(t, 2, (int64_t)p->count.events[i]);
	}
	return table_sort(t, STR("events"), true, e);
}

static void set_id(struct table *t, unsigned col, const struct profile *p, int64_t id, uint32_t text)
{
	struct str s = profile_str(p, text);
	if (s.n)
		table_set_str_copy(t, col, s);
	else if (id != ID_NONE)
		table_set_fmt(t, col, "%lld", (long long)id);
}

static void add_tracks(struct table *first, const struct profile *p)
{
	struct table *t = table_section(first, "tracks", "Threads and streams");
	TABLE_COLUMN(t, .id = "process", .title = "Process", .type = CELL_STR, .help = "pid, as written");
	TABLE_COLUMN(t, .id = "thread", .title = "Thread", .type = CELL_STR, .help = "tid, as written");
	TABLE_COLUMN(t, .id = "process_name", .title = "Process name", .type = CELL_STR, .help = "from the trace's metadata");
	TABLE_COLUMN(t, .id = "labels", .title = "Labels", .type = CELL_STR, .help = "CPU, GPU 0, ...");
	TABLE_COLUMN(t, .id = "thread_name", .title = "Thread name", .type = CELL_STR, .help = "from the trace's metadata");
	TABLE_COLUMN(t, .id = "cpu_ranges", .title = "CPU ranges", .type = CELL_I64, .unit = UNIT_COUNT, .help = "how many");
	TABLE_COLUMN(t, .id = "device_operations", .title = "Device operations", .type = CELL_I64, .unit = UNIT_COUNT,
	             .help = "kernels, copies and sets");
	uint32_t n = p->track.rows.n;
	int64_t *spans = NEW_ARRAY(n, int64_t), *ops = NEW_ARRAY(n, int64_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.track[i] < n)
			spans[p->span.track[i]]++;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		if (p->gpu_op.track[i] < n)
			ops[p->gpu_op.track[i]]++;
	for (uint32_t i = 0; i < n; i++) {
		table_row(t);
		set_id(t, 0, p, p->track.pid[i], p->track.pid_text[i]);
		set_id(t, 1, p, p->track.tid[i], p->track.tid_text[i]);
		set_id(t, 2, p, ID_NONE, p->track.process_name[i]);
		set_id(t, 3, p, ID_NONE, p->track.process_labels[i]);
		set_id(t, 4, p, ID_NONE, p->track.thread_name[i]);
		table_set_i64(t, 5, spans[i]);
		table_set_i64(t, 6, ops[i]);
	}
	mem_free(spans);
	mem_free(ops);
}

static void add_problems(struct table *first, const struct profile *p)
{
	static const char *const level[] = {[DIAG_NOTE] = "note", [DIAG_REPAIR] = "repaired", [DIAG_LOSS] = "lost"};
	struct table *t = table_section(first, "problems", "Problems met while reading");
	TABLE_COLUMN(t, .id = "kind", .title = "Kind", .type = CELL_STR, .help = "a stable name");
	TABLE_COLUMN(t, .id = "level", .title = "Level", .type = CELL_STR,
	             .help = "note: harmless; repaired: wrong but used; lost: could not be used");
	TABLE_COLUMN(t, .id = "count", .title = "Count", .type = CELL_I64, .unit = UNIT_COUNT, .help = "how often");
	TABLE_COLUMN(t, .id = "first_byte_offset", .title = "First at byte", .type = CELL_I64,
	             .help = "position in the uncompressed input");
	TABLE_COLUMN(t, .id = "message", .title = "First message", .type = CELL_STR, .flags = COLUMN_WIDE, .help = "what it was");
	for (unsigned i = 0; i < p->diags.n; i++) {
		const struct diag_entry *d = &p->diags.entry[i];
		table_row(t);
		table_set_str_copy(t, 0, str_from(d->kind));
		table_set_str(t, 1, str_from(level[d->level]));
		table_set_i64(t, 2, (int64_t)d->count);
		if (d->first_offset >= 0)
			table_set_i64(t, 3, d->first_offset);
		table_set_str_copy(t, 4, d->message);
	}
}

static int print_profile(struct profile *p, const char *path, const char *key_op, const struct output_options *o)
{
	struct err e;
	if (steps_choose(p, key_op, &e) < 0)
		return cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	struct table t;
	table_init(&t, "info", "Trace");
	fact_columns(&t);
	if (p->reopened)
		cli_info_put_opscope(&t, p, path);
	fill_facts(&t, p);
	add_devices(&t, p);
	int failed = cli_info_add_events(&t, p, &e);
	add_tracks(&t, p);
	add_problems(&t, p);
	int status = failed ? cli_fail(&e, EXIT_INPUT) : cli_output(&t, o, p->input_path.p);
	table_release(&t);
	return status;
}

/* The path from the folder on; the whole path of a file that is not in the folder. */
static struct str path_within(struct str path, struct str folder)
{
	while (folder.n && folder.p[folder.n - 1] == '/')
		folder.n--;
	if (!folder.n || !str_starts(path, folder) || path.n <= folder.n + 1 || path.p[folder.n] != '/')
		return path;
	return (struct str){path.p + folder.n + 1, path.n - folder.n - 1};
}

int cli_list_traces(const struct trace_list *l, const char *note, const struct output_options *o, const char *input)
{
	struct table t;
	struct str folder = str_from(input);
	unsigned within = 0, ranks = 0;
	table_init(&t, "traces", "Traces");
	TABLE_COLUMN(&t, .id = "run", .title = "Run", .type = CELL_STR, .help = "the directory; for --run");
	TABLE_COLUMN(&t, .id = "worker", .title = "Worker", .type = CELL_STR, .help = "for --worker");
	TABLE_COLUMN(&t, .id = "span", .title = "Span", .type = CELL_STR, .help = "for --span");
	TABLE_COLUMN(&t, .id = "file", .title = "File", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_PATH, .help = "where it is, from the directory that was given");
	TABLE_COLUMN(&t, .id = "path", .title = "Path", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_DETAIL, .help = "the same with the directory");
	unsigned column = TABLE_COLUMN(&t, .id = "rank", .title = "Rank", .type = CELL_I64, .help = "of the job, as the trace says, else its name; for --rank");
	for (unsigned i = 0; i < l->n; i++) {
		int64_t rank;
		table_row(&t);
		if (discover_rank_for_certain(&l->v[i], &rank)) {
			table_set_i64(&t, column, rank);
			ranks++;
		}
		table_set_str(&t, 0, l->v[i].run);
		table_set_str(&t, 1, l->v[i].worker);
		table_set_str(&t, 2, l->v[i].span);
		struct str file = path_within(l->v[i].path, folder);
		table_set_str(&t, 3, file);
		table_set_str(&t, 4, l->v[i].path);
		within += file.p != l->v[i].path.p;
	}
	if (!ranks) {
		table_leave_out(&t, column);
		table_drop_left_out(&t);
	}
	if (within == l->n)
		t.heading = arena_printf(&t.arena, "Traces in %s", input).p;
	if (l->unreadable)
		table_note(&t, "%u director%s could not be read", l->unreadable, l->unreadable == 1 ? "y" : "ies");
	if (note)
		table_note(&t, "%s", note);
	int status = cli_output(&t, o, input);
	table_release(&t);
	return status;
}

static int cli_info_run(int argc, char **argv)
{
	struct table_command c = {0};
	cli_parse_table("INPUT...", doc, argc, argv, &c);
	if (!c.args.n)
		cli_usage("info: an INPUT was expected: a trace, a directory, or - for standard input");
	if (c.trace.report.has_steps || c.trace.report.device)
		cli_usage("info: --steps and --device are for reports: this is always of the whole trace");
	int status = EXIT_DONE;
	struct trace_list l = {0};
	bool found = cli_discover(&c.args, &c.trace, &l, &status) == 0;
	if (found && l.n > 1) {
		status = cli_list_traces(&l, NULL, &c.output, c.args.v[0]);
	} else if (found) {
		c.trace.input.counts_left = true;
		c.trace.input.ignores = c.trace.report.key_op ? 0 : LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS; /* the search for a key op looks at all */
		struct profile *p = cli_read(l.v[0].path.p, &c.trace, &status);
		if (p)
			status = print_profile(p, l.v[0].path.p, c.trace.report.key_op, &c.output);
		profile_free(p);
	}
	discover_release(&l);
	mem_free(c.args.v);
	trace_options_release(&c.trace);
	return status;
}

const struct command command_info = {
	.name = "info",
	.args = "INPUT...",
	.help = "what is in it: format, GPUs, rank, steps, counts, every problem met",
	.run = cli_info_run,
};
