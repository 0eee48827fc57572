/* API calls of the runtime and the driver, as `nsys stats --report cuda_api_sum` counts them: all processes and threads. */
#include "analysis/recording.h"
#include "base/mem.h"
#include "query/stats.h"
#include "query/window.h"

enum api_grouping { API_BY_NAME, API_BY_THREAD, API_BY_OP };

/* What the grouping does not ask for is 0. */
struct api_key {
	uint32_t name, cat, track, op; /* cat + 1, track + 1; op: string id, 0 = none */
};

/* Device work that the calls of a group launched. */
struct launched {
	uint64_t ops;
	int64_t ns;
};

static struct api_key api_key_of(const struct profile *p, enum api_grouping by, uint32_t i)
{
	const struct spans *s = &p->span;
	struct api_key k = {.name = s->name[i], .cat = s->cat[i] + 1u};
	if (by == API_BY_THREAD)
		k.track = s->track[i] + 1;
	if (by == API_BY_OP && s->op[i] != ROW_NONE)
		k.op = s->name[s->op[i]];
	return k;
}

static void add_launched(const struct profile *p, const uint32_t *group_of_call, struct launched *v)
{
	const struct gpu_ops *g = &p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t group = g->call[i] == ROW_NONE ? ROW_NONE : group_of_call[g->call[i]];
		if (group == ROW_NONE)
			continue;
		v[group].ops++;
		v[group].ns += g->dur_ns[i];
	}
}

enum {
	API_NAME, API_CATEGORY, API_PROCESS, API_THREAD, API_OP, API_STATS, API_GPU_OPS = API_STATS + STATS_COLUMNS, API_GPU_NS
};

static const struct section api_section = {COLUMNS(
	[API_NAME] = {COLUMN(TEXT, "name", "Call", "function of the API", .flags = COLUMN_WIDE)},
	[API_CATEGORY] = {COLUMN(TEXT, "category", "API", "category as the input has it: runtime, driver, ...")},
	[API_PROCESS] = {COLUMN(TEXT, "process", "Process", "process that called", .flags = COLUMN_GROUP), .by = BY(API_BY_THREAD)},
	[API_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread that called", .flags = COLUMN_GROUP), .by = BY(API_BY_THREAD)},
	[API_OP] = {COLUMN(TEXT, "operator", "Operator", "op that called; empty = none around it", .flags = COLUMN_GROUP), .by = BY(API_BY_OP)},
	STATS_COLUMN_LIST(API_STATS),
	[API_GPU_OPS] = {COLUMN(COUNT, "gpu_ops", "Device ops", "kernels, copies and sets that these calls launched")},
	[API_GPU_NS] = {COLUMN(NS, "gpu_ns", "Device time", "sum of the durations of this device work", .flags = COLUMN_ANSWER)},
)};

static void api_put(const struct profile *p, const struct report_args *args, struct stats *s, const struct launched *launched, struct table *out)
{
	section_start(&api_section, args, 0, out);
	for (uint32_t g = 0; g < s->n; g++) {
		struct api_key k;
		stats_key(s, g, &k, sizeof k);
		table_row(out);
		table_set_str(out, API_NAME, profile_str(p, k.name));
		table_set_str(out, API_CATEGORY, profile_cat(p, (uint16_t)(k.cat - 1)));
		if (k.track) {
			table_set_str(out, API_PROCESS, profile_str(p, p->track.pid_text[k.track - 1]));
			table_set_str(out, API_THREAD, profile_str(p, p->track.tid_text[k.track - 1]));
		}
		if (k.op)
			table_set_str(out, API_OP, profile_str(p, k.op));
		stats_put(out, API_STATS, s, g);
		table_set_i64(out, API_GPU_OPS, (int64_t)launched[g].ops);
		table_set_i64(out, API_GPU_NS, launched[g].ns);
	}
}

static int api_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	enum api_grouping by = (enum api_grouping)args->variant->by;
	struct stats s = {0};
	uint32_t n = p->span.rows.n, *group_of_call = NEW_ARRAY_RAW(n, uint32_t);
	uint64_t left_out = 0;
	for (uint32_t i = 0; i < n; i++) {
		group_of_call[i] = ROW_NONE;
		if (p->span.kind[i] != SPAN_CALL)
			continue;
		if (!window_has(&w, p->span.start_ns[i])) {
			left_out++;
			continue;
		}
		struct api_key k = api_key_of(p, by, i);
		group_of_call[i] = stats_add(&s, &k, sizeof k, p->span.dur_ns[i]);
	}
	int rc = 0;
	if (!s.n) {
		rc = left_out ? err_set(e, ERR_DATA, "no API call began in those steps")
		              : err_set(e, ERR_DATA, "the input holds no API calls; to record them: %s", recording_how(p, RECORD_DEVICE_WORK));
	} else {
		struct launched *launched = NEW_ARRAY(s.n, struct launched);
		stats_finish(&s);
		add_launched(p, group_of_call, launched);
		api_put(p, args, &s, launched, out);
		table_note(out, "%llu calls, %lld ns; not counted here: %llu call%s %s the steps%s", (unsigned long long)s.n_values, (long long)s.total,
		           (unsigned long long)left_out, left_out == 1 ? "" : "s", args->outside ? "inside" : "outside", args->outside ? "" : " asked for");
		table_note(out, "the time of a call inside another one (a driver call of a runtime call) counts for both");
		rc = table_sort(out, STR("total_ns"), true, e);
		mem_free(launched);
	}
	stats_release(&s);
	mem_free(group_of_call);
	return rc;
}

static const struct report_variant api_variants[] = {
	{.group_by = "name", .by = API_BY_NAME},
	{.group_by = "thread", .by = API_BY_THREAD},
	{.group_by = "op", .by = API_BY_OP},
	{0},
};

const struct report report_api = {
	.name = "api",
	.title = "API calls",
	.asks = ASKS_WAIT,
	.also = "cuda-api runtime calls launches",
	.help = "Which functions of the CUDA, HIP or other runtime and driver took the host's time, how often they were called, and what "
	        "they put on the devices. All processes and threads together; --group-by=thread tells them apart, --group-by=op the ops "
	        "that called.",
	.variants = api_variants,
	.sections = (const struct section *const[]){&api_section, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.ignores = LEFT_MEMORY | LEFT_MARKS | LEFT_FLOWS | LEFT_AUX_IDS | LEFT_OP_IDS,
	.run = api_run,
};
