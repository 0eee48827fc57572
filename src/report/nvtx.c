/* Ranges that the program marked (NVTX, record_function and the like): their time on the host, and the device time of the work launched in them. */
#include "analysis/names/names.h"
#include "analysis/steps/steps.h"
#include "analysis/tree/projection.h"
#include "base/buf.h"
#include "base/mem.h"
#include "query/stats.h"
#include "query/window.h"
#include "store/torch_names.h"

enum nvtx_grouping { NVTX_BY_NAME, NVTX_BY_PATH, NVTX_BY_THREAD };
enum { PATH_NAMES = 64 };
enum { ANY_STEP = UINT32_MAX }; /* stands for the name of each step: ProfilerStep#7 and all others */

/* What the grouping does not ask for is 0. */
struct nvtx_key {
	uint32_t name, cat, startend, track, parent; /* track + 1; parent: group of the range around it, + 1 */
};

struct extra {
	int64_t self_ns;
	uint32_t outermost; /* the last span of the group that is not inside another span of the group */
	uint64_t on_gpu, ops, kernels;
	int64_t device_ns, kernel_ns, projected_ns, kernel_projected_ns;
};

struct nvtx_ranges {
	const struct profile *p;
	enum nvtx_grouping by;
	struct stats s;
	struct extra *extra;
	uint32_t cap;
	uint32_t *around;   /* span -> innermost marked range around it; ROW_NONE */
	uint32_t *group;    /* span -> its group; ROW_NONE = the span is not a marked range, or not of the steps */
	uint64_t recursive; /* ranges inside other ranges of their group */
	bool facts;         /* markers that state a fact about the program are left out; nsys' nvtx_sum has a row for each */
	uint8_t *cat_is_op; /* category -> 1: a framework's ops as its own profiler records them, no ranges of the program's */
};

static bool is_marked(const struct nvtx_ranges *r, uint32_t i)
{
	switch (r->p->span.kind[i]) {
	case SPAN_USER:
	case SPAN_RANGE:
		return true;
	case SPAN_MARKER:
		return !r->facts || !profile_arg_id(r->p, r->p->span.args[i], ARG_MODEL_CONFIG);
	case SPAN_OP:
		return !r->cat_is_op[r->p->span.cat[i]];
	}
	return false;
}

static void find_op_cats(struct nvtx_ranges *r)
{
	static const char *const ops[] = {"cpu_op", "Operator", "operator", "cpu_instant_event"};
	r->cat_is_op = NEW_ARRAY(r->p->cat.rows.n, uint8_t);
	for (uint32_t c = 0; c < r->p->cat.rows.n; c++)
		for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
			r->cat_is_op[c] |= str_eqc(profile_cat(r->p, (uint16_t)c), ops[i]);
}

/* All steps have one name, so that they are summed up. NVTX ranges with the text of a step keep it where rows are texts, since the figures there are those
 * of nsys' nvtx_sum. */
static uint32_t nvtx_name_of(const struct nvtx_ranges *r, uint32_t i)
{
	uint32_t name = r->p->span.name[i];
	if (!name_is(r->p, name, NAME_STEP))
		return name;
	return r->by != NVTX_BY_PATH && str_eqc(profile_cat(r->p, r->p->span.cat[i]), "nvtx") ? name : ANY_STEP;
}

static struct str nvtx_text_of(const struct nvtx_ranges *r, uint32_t name)
{
	return name == ANY_STEP ? STR(TORCH_ANY_STEP) : profile_str(r->p, name);
}

static struct nvtx_key nvtx_key_of(const struct nvtx_ranges *r, uint32_t i)
{
	const struct spans *s = &r->p->span;
	struct nvtx_key k = {.name = nvtx_name_of(r, i), .cat = s->cat[i], .startend = s->kind[i] == SPAN_RANGE};
	if (r->by == NVTX_BY_THREAD)
		k.track = s->track[i] + 1;
	if (r->by == NVTX_BY_PATH && r->around[i] != ROW_NONE && r->group[r->around[i]] != ROW_NONE)
		k.parent = r->group[r->around[i]] + 1;
	return k;
}

/* Whether the range is inside another range of its group. Spans come by thread and start: the last outermost range of the group decides. */
static bool is_recursive(const struct nvtx_ranges *r, uint32_t i, struct extra *e)
{
	const struct spans *s = &r->p->span;
	bool inside = e->outermost != ROW_NONE && s->track[e->outermost] == s->track[i] && s->kind[i] != SPAN_RANGE &&
	              span_end(r->p, i) <= span_end(r->p, e->outermost);
	if (!inside)
		e->outermost = i;
	return inside;
}

static void nvtx_add(struct nvtx_ranges *r, struct projection *projection, uint32_t i)
{
	const struct profile *p = r->p;
	struct nvtx_key k = nvtx_key_of(r, i);
	uint32_t before = r->s.n, g = stats_add(&r->s, &k, sizeof k, p->span.dur_ns[i]);
	if (r->s.n > before) {
		MEM_GROW(r->extra, r->cap, r->s.n);
		r->extra[g] = (struct extra){.outermost = ROW_NONE};
	}
	r->group[i] = g;
	r->extra[g].self_ns += p->span.dur_ns[i];
	uint32_t outer = r->around[i];
	if (outer != ROW_NONE && r->group[outer] != ROW_NONE) {
		int64_t inside = span_end(p, i) < span_end(p, outer) ? p->span.dur_ns[i] : span_end(p, outer) - p->span.start_ns[i];
		r->extra[r->group[outer]].self_ns -= inside;
	}
	struct projected x = projection_of(projection, i);
	struct extra *e = &r->extra[g];
	e->on_gpu += x.ops > 0;
	if (is_recursive(r, i, e)) {
		r->recursive++;
		return;
	}
	e->ops += x.ops;
	e->kernels += x.kernels;
	e->device_ns += x.device_ns;
	e->kernel_ns += x.kernel_ns;
	e->projected_ns += x.end_ns - x.start_ns;
	e->kernel_projected_ns += x.kernels ? x.kernel_end_ns - x.kernel_start_ns : 0;
}

/* One pass finds the range around each range, since parents stand before their children. */
static void nvtx_collect(struct nvtx_ranges *r, const struct window *w, struct projection *projection)
{
	const struct spans *s = &r->p->span;
	r->around = NEW_ARRAY_RAW(s->rows.n, uint32_t);
	r->group = NEW_ARRAY_RAW(s->rows.n, uint32_t);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t up = s->parent[i];
		r->around[i] = up == ROW_NONE || is_marked(r, up) ? up : r->around[up];
		r->group[i] = ROW_NONE;
		if (is_marked(r, i) && window_has(w, s->start_ns[i]))
			nvtx_add(r, projection, i);
	}
}

/* Writes a call stack of PyProf or DLProf as "a.py:10 > b.py:20": innermost last, without folders. */
static bool stack_text(struct str s, struct buf *out)
{
	if (!str_starts(s, STR("{'traceMarker': [")))
		return false;
	buf_cstr(out, "stack: ");
	bool inside = false, any = false;
	size_t start = 0;
	for (size_t i = 17; i < s.n && (inside || s.p[i] != ']'); i++) {
		if (s.p[i] == '/' && inside)
			start = i + 1;
		if (s.p[i] != '\'')
			continue;
		if (inside) {
			buf_cstr(out, any ? " > " : "");
			buf_put(out, s.p + start, i - start);
			any = true;
		}
		inside = !inside;
		start = i + 1;
	}
	return any;
}

enum {
	NVTX_RANGE, NVTX_DOMAIN, NVTX_STYLE, NVTX_PROCESS, NVTX_THREAD, NVTX_STATS, NVTX_SELF = NVTX_STATS + STATS_COLUMNS, NVTX_ON_GPU, NVTX_GPU_OPS, NVTX_GPU_NS,
	NVTX_PROJECTED, NVTX_KERNELS, NVTX_KERNEL_NS, NVTX_KERNEL_PROJECTED
};

static const struct section nvtx_section = {COLUMNS(
	[NVTX_RANGE] = {COLUMN(TEXT, "range", "Range", "text of the range; of emit_nvtx and argument markers the op; of PyProf's call stacks the frames, innermost last; "
	                       "ProfilerStep* are all steps", .flags = COLUMN_WIDE)},
	[NVTX_DOMAIN] = {COLUMN(TEXT, "domain", "Domain", "NVTX domain or category; empty = NVTX's default domain")},
	[NVTX_STYLE] = {COLUMN(TEXT, "style", "Style", "PushPop: nests on its thread; StartEnd: may overlap others", .flags = COLUMN_DETAIL)},
	[NVTX_PROCESS] = {COLUMN(TEXT, "process", "Process", "process of the range"), .by = BY(NVTX_BY_THREAD)},
	[NVTX_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread of the range", .flags = COLUMN_GROUP), .by = BY(NVTX_BY_THREAD)},
	STATS_COLUMN_LIST(NVTX_STATS),
	[NVTX_SELF] = {COLUMN(NS, "self_ns", "Self", "total - what marked ranges directly inside take; empty for StartEnd", .flags = COLUMN_ANSWER)},
	[NVTX_ON_GPU] = {COLUMN(COUNT, "gpu_ranges", "On GPU", "ranges that launched device work")},
	[NVTX_GPU_OPS] = {COLUMN(COUNT, "gpu_ops", "Device ops", "kernels, copies and sets launched inside; in ranges inside others of the row once",
	                         .flags = COLUMN_DETAIL)},
	[NVTX_GPU_NS] = {COLUMN(NS, "gpu_ns", "Device time", "sum of their durations", .flags = COLUMN_ANSWER)},
	[NVTX_PROJECTED] = {COLUMN(NS, "projected_ns", "Projected", "sum over the ranges of the time from the first start to the last end of that work")},
	[NVTX_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "kernels launched inside")},
	[NVTX_KERNEL_NS] = {COLUMN(NS, "kernel_ns", "Kernel time", "sum of their durations", .flags = COLUMN_MINOR)},
	[NVTX_KERNEL_PROJECTED] = {COLUMN(NS, "kernel_projected_ns", "Kernels projected", "projected, of kernels alone", .flags = COLUMN_DETAIL)},
)};

static void nvtx_put_name(struct table *out, const struct nvtx_ranges *r, uint32_t name)
{
	struct buf text = {0};
	struct str s = nvtx_text_of(r, name);
	table_set_str_copy(out, NVTX_RANGE, stack_text(s, &text) ? buf_view(&text) : s);
	buf_release(&text);
}

/* "outer > inner", of deeper ones the innermost PATH_NAMES. */
static void nvtx_put_path(struct table *out, const struct nvtx_ranges *r, uint32_t g)
{
	struct buf text = {0};
	uint32_t path[PATH_NAMES], n = 0, up = g + 1;
	while (up && n < PATH_NAMES) {
		struct nvtx_key k;
		stats_key(&r->s, up - 1, &k, sizeof k);
		path[n++] = k.name;
		up = k.parent;
	}
	if (up)
		buf_cstr(&text, "... > ");
	while (n--) {
		buf_str(&text, nvtx_text_of(r, path[n]));
		if (n)
			buf_cstr(&text, " > ");
	}
	table_set_str_copy(out, NVTX_RANGE, buf_view(&text));
	buf_release(&text);
}

static void nvtx_put_figures(struct table *out, const struct extra *x)
{
	table_set_i64(out, NVTX_ON_GPU, (int64_t)x->on_gpu);
	table_set_i64(out, NVTX_GPU_OPS, (int64_t)x->ops);
	table_set_i64(out, NVTX_GPU_NS, x->device_ns);
	table_set_i64(out, NVTX_PROJECTED, x->projected_ns);
	table_set_i64(out, NVTX_KERNELS, (int64_t)x->kernels);
	table_set_i64(out, NVTX_KERNEL_NS, x->kernel_ns);
	table_set_i64(out, NVTX_KERNEL_PROJECTED, x->kernel_projected_ns);
}

static void nvtx_put(struct nvtx_ranges *r, const struct report_args *args, struct table *out)
{
	const struct profile *p = r->p;
	section_start(&nvtx_section, args, 0, out);
	for (uint32_t g = 0; g < r->s.n; g++) {
		struct nvtx_key k;
		stats_key(&r->s, g, &k, sizeof k);
		struct str cat = profile_cat(p, (uint16_t)k.cat);
		table_row(out);
		if (r->by == NVTX_BY_PATH)
			nvtx_put_path(out, r, g);
		else
			nvtx_put_name(out, r, k.name);
		table_set_str(out, NVTX_DOMAIN, str_eqc(cat, "nvtx") ? STR("") : cat);
		table_set_str(out, NVTX_STYLE, k.startend ? STR("StartEnd") : STR("PushPop"));
		if (k.track) {
			table_set_str(out, NVTX_PROCESS, profile_str(p, p->track.pid_text[k.track - 1]));
			table_set_str(out, NVTX_THREAD, profile_str(p, p->track.tid_text[k.track - 1]));
		}
		stats_put(out, NVTX_STATS, &r->s, g);
		if (!k.startend)
			table_set_i64(out, NVTX_SELF, r->extra[g].self_ns);
		nvtx_put_figures(out, &r->extra[g]);
	}
}

/* The step that the host was in at this moment; NULL. Steps are in order of time. */
static const struct step *nvtx_step_at(const struct steps *s, int64_t t)
{
	unsigned a = 0, b = s->total;
	while (a < b) {
		unsigned m = a + (b - a) / 2;
		if (s->v[m].host_end_ns <= t)
			a = m + 1;
		else
			b = m;
	}
	return a < s->total && s->v[a].host_start_ns <= t ? &s->v[a] : NULL;
}

/* The row of a step has the work that the step's own thread launched; the reports of steps have the work that all threads launched meanwhile, the thread of
 * the backward pass included. Where the two differ, a note tells both. */
static void note_steps(const struct nvtx_ranges *r, struct projection *projection, struct table *out)
{
	const struct profile *p = r->p;
	const struct steps *s = p->steps;
	uint64_t own = 0, all = 0;
	int64_t own_ns = 0, all_ns = 0;
	unsigned n = 0;
	for (unsigned i = 0; i < s->total; i++) {
		if (s->v[i].span == ROW_NONE || r->group[s->v[i].span] == ROW_NONE)
			continue;
		struct projected x = projection_of(projection, s->v[i].span);
		own += x.ops;
		own_ns += x.device_ns;
		n++;
	}
	for (uint32_t g = 0; n && g < p->gpu_op.rows.n; g++) {
		uint32_t call = p->gpu_op.call[g];
		const struct step *x = call == ROW_NONE ? NULL : nvtx_step_at(s, p->span.start_ns[call]);
		if (!x || x->span == ROW_NONE || r->group[x->span] == ROW_NONE)
			continue;
		all++;
		all_ns += p->gpu_op.dur_ns[g];
	}
	if (own != all)
		table_note(out, "ranges that are steps (%u): their own threads launched %llu kernels, copies and sets, %lld ns, which is what their row has; all threads "
		           "together, the backward pass included, launched %llu meanwhile, %lld ns, which is what `steps` and `overview` count", n,
		           (unsigned long long)own, (long long)own_ns, (unsigned long long)all, (long long)all_ns);
}

static int nvtx_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct nvtx_ranges r = {.p = p, .by = (enum nvtx_grouping)args->variant->by, .facts = str_eqc(p->format, "capture")};
	find_op_cats(&r);
	struct projection *projection = projection_new(p);
	nvtx_collect(&r, &w, projection);
	int rc = 0;
	if (!r.s.n) {
		rc = w.all ? err_set(e, ERR_DATA, "the input holds no marked ranges: mark them with %s", str_eqc(p->format, "capture")
		                     ? "NVTX (torch.cuda.nvtx.range), ITT, or opscope_push() of opscope/trace.h"
		                     : "torch.profiler.record_function or torch.cuda.nvtx.range (nsys profile --trace=cuda,nvtx)")
		           : err_set(e, ERR_DATA, "no marked range began in those steps");
	} else {
		stats_finish(&r.s);
		nvtx_put(&r, args, out);
		uint64_t lost = 0;
		for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
			lost += p->gpu_op.call[g] == ROW_NONE;
		table_note(out, "ranges nest: their totals add up to more than the time of the run, their self times do not; "
		           "Total %% is of the sum of all totals, as nsys' nvtx_sum has it, and so the less, the deeper ranges nest");
		if (r.recursive)
			table_note(out, "%llu ranges lie inside others of their own row: the work in them counts once there, their host times each",
			           (unsigned long long)r.recursive);
		table_note(out, "device work of the input whose API call was not recorded, so that it belongs to no range: %llu of %u",
		           (unsigned long long)lost, p->gpu_op.rows.n);
		note_steps(&r, projection, out);
		rc = table_sort(out, STR("total_ns"), true, e);
	}
	projection_free(projection);
	stats_release(&r.s);
	mem_free(r.extra);
	mem_free(r.around);
	mem_free(r.group);
	mem_free(r.cat_is_op);
	return rc;
}

static const struct report_variant nvtx_variants[] = {
	{.group_by = "name", .by = NVTX_BY_NAME},
	{.group_by = "path", .by = NVTX_BY_PATH},
	{.group_by = "thread", .by = NVTX_BY_THREAD},
	{0},
};

const struct report report_nvtx = {
	.name = "nvtx",
	.title = "Marked ranges",
	.also = "ranges markers annotations",
	.help = "Ranges that the program or its libraries marked (NVTX, record_function): how often, how long on the host, and the device work "
	        "that was launched inside, summed and projected: from the start of the first to the end of the last. By name and domain; "
	        "--group-by=path tells apart what they are nested in, --group-by=thread the threads. Steps are one row, ProfilerStep*.",
	.variants = nvtx_variants,
	.sections = (const struct section *const[]){&nvtx_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.ignores = LEFT_MEMORY | LEFT_OP_IDS,
	.timeline = true,
	.run = nvtx_run,
};
