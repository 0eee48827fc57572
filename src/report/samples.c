/* Samples of stacks (opscope record --sample=cpu): by function, whole stack or thread. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "query/report.h"

#include <stdlib.h>

enum samples_grouping { SAMPLES_BY_FUNCTION, SAMPLES_BY_STACK, SAMPLES_BY_THREAD };

struct samples_group {
	uint32_t key;              /* string, or track */
	int64_t self, self_ns, total, total_ns;
	uint64_t last;             /* the sample that was counted last: a function that calls itself counts once a sample */
};

struct samples_groups {
	struct samples_group *v;
	uint32_t n, cap;
	struct intern names;       /* name of a function -> place in v + 1 */
	struct idmap at;           /* key of a stack or track -> place in v */
	int64_t samples, ns, bare;
};

static struct samples_group *samples_place(struct samples_groups *g, uint32_t at, uint32_t key)
{
	MEM_GROW(g->v, g->cap, at + 1);
	if (at == g->n)
		g->v[g->n++] = (struct samples_group){.key = key};
	return &g->v[at];
}

static struct samples_group *by_key(struct samples_groups *g, uint32_t key)
{
	uint32_t at = idmap_get(&g->at, key);
	if (at == IDMAP_NONE)
		idmap_put(&g->at, key, at = g->n);
	return samples_place(g, at, key);
}

/* Counts each function of the stack, innermost first. */
static void count_functions(struct samples_groups *g, struct str stack, int64_t ns)
{
	struct str frame;
	for (bool innermost = true; str_split(&stack, ';', &frame); innermost = false) {
		uint32_t id = intern_str(&g->names, frame);
		struct samples_group *to = id ? samples_place(g, id - 1, id) : NULL;
		if (!to || to->last == (uint64_t)g->samples)
			continue;
		to->last = (uint64_t)g->samples;
		to->total++;
		to->total_ns += ns;
		to->self += innermost;
		to->self_ns += innermost ? ns : 0;
	}
}

static void samples_count(struct samples_groups *g, const struct profile *p, enum samples_grouping by)
{
	for (uint32_t i = 0; i < p->mark.rows.n; i++) {
		struct str period;
		int64_t us = 0;
		if (!str_eqc(profile_cat(p, p->mark.cat[i]), "cpu_sample"))
			continue;
		if (profile_arg(p, p->mark.args[i], ARG_SAMPLE_PERIOD, &period))
			str_to_i64(period, &us);
		uint32_t stack = profile_arg_id(p, p->mark.args[i], ARG_CALL_STACK);
		int64_t ns = us > 0 && us < INT32_MAX ? us * 1000 : 0;
		g->samples++;
		g->ns += ns;
		g->bare += !profile_str(p, stack).n;
		if (by == SAMPLES_BY_FUNCTION) {
			count_functions(g, profile_str(p, stack), ns);
		} else {
			struct samples_group *to = by_key(g, by == SAMPLES_BY_STACK ? stack : p->mark.track[i]);
			to->self++;
			to->self_ns += ns;
		}
	}
}

static int samples_compare(const void *x, const void *y)
{
	const struct samples_group *a = x, *b = y;
	return COMPARE(b->self, a->self) ?: COMPARE(b->total, a->total) ?: COMPARE(a->key, b->key);
}

static double samples_share(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

enum {
	SAMPLES_FUNCTION, SAMPLES_SELF, SAMPLES_SELF_SHARE, SAMPLES_SELF_CPU, SAMPLES_TOTAL, SAMPLES_TOTAL_SHARE, SAMPLES_STACK, SAMPLES_PID, SAMPLES_TID,
	SAMPLES_THREAD_NAME, SAMPLES_N, SAMPLES_SHARE, SAMPLES_CPU
};

static const struct section samples_section = {COLUMNS(
	[SAMPLES_FUNCTION] = {COLUMN(TEXT, "function", "Function", "its name, and the file that holds it", .flags = COLUMN_ANSWER), .by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_SELF] = {COLUMN(COUNT, "self_samples", "Self", "samples in which it ran itself"), .by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_SELF_SHARE] = {COLUMN(PERCENT, "self_pct", "Self %", "share of all samples", .flags = COLUMN_ANSWER), .by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_SELF_CPU] = {COLUMN(NS, "self_cpu_ns", "Self CPU", "CPU time that these samples stand for"), .by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_TOTAL] = {COLUMN(COUNT, "total_samples", "Total", "samples in which it, or what it called, ran; once however often it is in the stack"),
	                          .by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_TOTAL_SHARE] = {COLUMN(PERCENT, "total_pct", "Total %", "share of all samples"), .by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_STACK] = {COLUMN(TEXT, "stack", "Stack", "functions, the innermost first", .flags = COLUMN_ANSWER | COLUMN_WIDE), .by = BY(SAMPLES_BY_STACK)},
	[SAMPLES_PID] = {COLUMN(NUMBER, "pid", "Process", "process id", .flags = COLUMN_ANSWER), .by = BY(SAMPLES_BY_THREAD)},
	[SAMPLES_TID] = {COLUMN(NUMBER, "tid", "Thread", "thread id", .flags = COLUMN_ANSWER), .by = BY(SAMPLES_BY_THREAD)},
	[SAMPLES_THREAD_NAME] = {COLUMN(TEXT, "thread_name", "Name", "as the program calls it"), .by = BY(SAMPLES_BY_THREAD)},
	[SAMPLES_N] = {COLUMN(COUNT, "samples", "Samples", "how many"), .not_by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of all samples", .flags = COLUMN_ANSWER), .not_by = BY(SAMPLES_BY_FUNCTION)},
	[SAMPLES_CPU] = {COLUMN(NS, "cpu_ns", "CPU", "CPU time that they stand for"), .not_by = BY(SAMPLES_BY_FUNCTION)},
)};

static void samples_put_key(const struct samples_groups *g, const struct profile *p, enum samples_grouping by, uint32_t key, struct table *t)
{
	switch (by) {
	case SAMPLES_BY_FUNCTION:
		table_set_str_copy(t, SAMPLES_FUNCTION, intern_get(&g->names, key));
		break;
	case SAMPLES_BY_STACK:
		table_set_str(t, SAMPLES_STACK, profile_str(p, key));
		break;
	case SAMPLES_BY_THREAD:
		table_set_i64(t, SAMPLES_PID, p->track.pid[key]);
		table_set_i64(t, SAMPLES_TID, p->track.tid[key]);
		table_set_str(t, SAMPLES_THREAD_NAME, profile_str(p, p->track.thread_name[key]));
	}
}

/* A stack or a thread has only samples of its own; the columns have other names. */
static void samples_put(const struct samples_groups *g, const struct profile *p, const struct report_args *args, struct table *t)
{
	section_start(&samples_section, args, 0, t);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct samples_group *x = &g->v[i];
		table_row(t);
		samples_put_key(g, p, (enum samples_grouping)args->variant->by, x->key, t);
		table_set_i64(t, SAMPLES_SELF, x->self);
		table_set_f64(t, SAMPLES_SELF_SHARE, samples_share(x->self, g->samples));
		table_set_i64(t, SAMPLES_SELF_CPU, x->self_ns);
		table_set_i64(t, SAMPLES_TOTAL, x->total);
		table_set_f64(t, SAMPLES_TOTAL_SHARE, samples_share(x->total, g->samples));
		table_set_i64(t, SAMPLES_N, x->self);
		table_set_f64(t, SAMPLES_SHARE, samples_share(x->self, g->samples));
		table_set_i64(t, SAMPLES_CPU, x->self_ns);
	}
}

static int samples_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct samples_groups g = {0};
	bool lives = diag_count(&p->diags, "still-recording") > 0;
	intern_init(&g.names);
	idmap_init(&g.at, 0, INT64_MAX, 64);
	samples_count(&g, p, (enum samples_grouping)args->variant->by);
	if (g.n)
		qsort(g.v, g.n, sizeof *g.v, samples_compare);
	if (!g.samples)
		err_set(e, ERR_DATA, "the input holds no samples of stacks%s; `opscope record --sample=cpu` takes them%s", lives ? " yet" : "",
		        lives ? ", and writes them once a second" : "");
	else
		samples_put(&g, p, args, out);
	if (g.samples)
		table_note(out, "%lld samples, which stand for %.3f s of CPU time of all threads", (long long)g.samples, (double)g.ns / 1e9);
	if (g.bare)
		table_note(out, "%lld samples have no stack", (long long)g.bare);
	intern_release(&g.names);
	idmap_release(&g.at);
	mem_free(g.v);
	return g.samples ? 0 : -1;
}

static const struct report_variant samples_variants[] = {
	{.group_by = "function", .by = SAMPLES_BY_FUNCTION},
	{.group_by = "stack", .by = SAMPLES_BY_STACK},
	{.group_by = "thread", .by = SAMPLES_BY_THREAD},
	{0},
};

const struct report report_samples = {
	.name = "samples",
	.title = "What the CPU did, by samples",
	.asks = ASKS_WAIT,
	.help = "What `opscope record --sample=cpu` saw: which functions the threads of all recorded processes ran. Self: it ran itself; total: it or what it called. "
	        "A stack reaches as far as frame pointers do: code that was built without them (much of Debian's) shows its innermost function, and may lack callers. "
	        "?? is a function without a name in its file. Python's own functions are there when it was built with frame pointers and runs with `-X perf` (3.12 and later).",
	.variants = samples_variants,
	.sections = (const struct section *const[]){&samples_section, NULL},
	.timeline = true,
	.run = samples_run,
};
