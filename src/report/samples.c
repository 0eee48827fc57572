/* Samples of stacks (opscope record --sample=cpu): by function, whole stack or thread. */
#include "base/hash.h"
#include "base/mem.h"
#include "query/report.h"

#include <stdlib.h>

enum samples_grouping { BY_FUNCTION, BY_STACK, BY_THREAD };

struct samples_group {
	uint32_t key;              /* string, or track */
	int64_t self, self_ns, total, total_ns;
	uint64_t last;             /* the sample that was counted last: a function that calls itself counts once */
};

struct samples_groups {
	struct samples_group *v;
	uint32_t n, cap;
	struct intern names;       /* of functions -> place in v + 1 */
	struct idmap at;           /* stack or track -> place in v */
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

/* Each function of the stack, innermost first. */
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
		if (by == BY_FUNCTION) {
			count_functions(g, profile_str(p, stack), ns);
		} else {
			struct samples_group *to = by_key(g, by == BY_STACK ? stack : p->mark.track[i]);
			to->self++;
			to->self_ns += ns;
		}
	}
}

static int samples_compare(const void *x, const void *y)
{
	const struct samples_group *a = x, *b = y;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

static double samples_share(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void samples_put_functions(const struct samples_groups *g, struct table *t)
{
	TABLE_COLUMN(t, .id = "function", .title = "Function", .help = "its name, and the file that holds it", .type = CELL_STR, .flags = COLUMN_KEY);
	TABLE_COLUMN(t, .id = "self_samples", .title = "Self", .help = "samples in which it ran itself", .type = CELL_I64, .unit = UNIT_COUNT);
	TABLE_COLUMN(t, .id = "self_pct", .title = "Self %", .help = "share of all samples", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_KEY);
	TABLE_COLUMN(t, .id = "self_cpu_ns", .title = "Self CPU", .help = "CPU time that these samples stand for", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(t, .id = "total_samples", .title = "Total", .help = "samples in which it, or what it called, ran; once however often it is in the stack", .type = CELL_I64, .unit = UNIT_COUNT);
	TABLE_COLUMN(t, .id = "total_pct", .title = "Total %", .help = "share of all samples", .type = CELL_F64, .unit = UNIT_PERCENT);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct samples_group *x = &g->v[i];
		table_row(t);
		table_set_str_copy(t, 0, intern_get(&g->names, x->key));
		table_set_i64(t, 1, x->self);
		table_set_f64(t, 2, samples_share(x->self, g->samples));
		table_set_i64(t, 3, x->self_ns);
		table_set_i64(t, 4, x->total);
		table_set_f64(t, 5, samples_share(x->total, g->samples));
	}
}

static void put_others(const struct samples_groups *g, const struct profile *p, enum samples_grouping by, struct table *t)
{
	if (by == BY_STACK) {
		TABLE_COLUMN(t, .id = "stack", .title = "Stack", .help = "functions, the innermost first", .type = CELL_STR, .flags = COLUMN_KEY | COLUMN_WIDE);
	} else {
		TABLE_COLUMN(t, .id = "pid", .title = "Process", .help = "process id", .type = CELL_I64, .flags = COLUMN_KEY);
		TABLE_COLUMN(t, .id = "tid", .title = "Thread", .help = "thread id", .type = CELL_I64, .flags = COLUMN_KEY);
		TABLE_COLUMN(t, .id = "thread_name", .title = "Name", .help = "as the program calls it", .type = CELL_STR);
	}
	unsigned first = TABLE_COLUMN(t, .id = "samples", .title = "Samples", .help = "how many", .type = CELL_I64, .unit = UNIT_COUNT);
	TABLE_COLUMN(t, .id = "share_pct", .title = "Share", .help = "of all samples", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_KEY);
	TABLE_COLUMN(t, .id = "cpu_ns", .title = "CPU", .help = "CPU time that they stand for", .type = CELL_I64, .unit = UNIT_NS);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct samples_group *x = &g->v[i];
		table_row(t);
		if (by == BY_STACK) {
			table_set_str(t, 0, profile_str(p, x->key));
		} else {
			table_set_i64(t, 0, p->track.pid[x->key]);
			table_set_i64(t, 1, p->track.tid[x->key]);
			table_set_str(t, 2, profile_str(p, p->track.thread_name[x->key]));
		}
		table_set_i64(t, first, x->self);
		table_set_f64(t, first + 1, samples_share(x->self, g->samples));
		table_set_i64(t, first + 2, x->self_ns);
	}
}

static int samples_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct samples_groups g = {0};
	bool lives = diag_count(&p->diags, "still-recording") > 0;
	enum samples_grouping by = (enum samples_grouping)args->variant->by;
	intern_init(&g.names);
	idmap_init(&g.at, 0, INT64_MAX, 64);
	samples_count(&g, p, by);
	if (g.n)
		qsort(g.v, g.n, sizeof *g.v, samples_compare);
	if (!g.samples)
		err_set(e, ERR_DATA, "the input holds no samples of stacks%s; `opscope record --sample=cpu` takes them%s", lives ? " yet" : "",
		        lives ? ", and writes them once a second" : "");
	else if (by == BY_FUNCTION)
		samples_put_functions(&g, out);
	else
		put_others(&g, p, by, out);
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
	{.group_by = "function", .by = BY_FUNCTION},
	{.group_by = "stack", .by = BY_STACK},
	{.group_by = "thread", .by = BY_THREAD},
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
	.timeline = true,
	.run = samples_run,
};
