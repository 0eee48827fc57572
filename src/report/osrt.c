/* Calls of the operating system's libraries, as `nsys stats --report osrt_sum` counts them: all processes and threads. */
#include "analysis/names/names.h"
#include "analysis/names/os_calls.h"
#include "analysis/time/interval.h"
#include "base/mem.h"
#include "query/stats.h"
#include "query/window.h"

enum osrt_grouping { OSRT_BY_NAME, OSRT_BY_KIND, OSRT_BY_THREAD };

/* What the grouping does not ask for is 0. */
struct osrt_key {
	uint32_t name, kind, track; /* kind + 1, track + 1 */
};

struct osrt_calls {
	const struct profile *p;
	struct window window;
	enum osrt_grouping by;
	struct stats s;
	struct name_memo kinds; /* enum os_call_kind */
	bool *launches;         /* by track: its thread launched device work */
	struct intervals busy;  /* any device */
	int64_t *idle_ns;       /* by group */
	uint32_t cap;
	int64_t kind_ns[OS_CALL_KINDS_N], kind_idle_ns[OS_CALL_KINDS_N];
	uint64_t left_out;
};

static void find_device_work(struct osrt_calls *c)
{
	const struct profile *p = c->p;
	c->launches = NEW_ARRAY(p->track.rows.n, bool);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		intervals_add(&c->busy, p->gpu_op.start_ns[g], gpu_end(p, g));
		if (p->gpu_op.call[g] != ROW_NONE)
			c->launches[p->span.track[p->gpu_op.call[g]]] = true;
	}
	intervals_normalise(&c->busy);
}

static uint8_t osrt_kind_of(struct str name)
{
	return (uint8_t)os_call_kind_of(name);
}

static void osrt_add(struct osrt_calls *c, uint32_t i, enum os_call_kind kind)
{
	const struct spans *s = &c->p->span;
	struct osrt_key k = {.name = c->by == OSRT_BY_KIND ? 0 : s->name[i], .kind = kind + 1u, .track = c->by == OSRT_BY_THREAD ? s->track[i] + 1 : 0};
	uint32_t before = c->s.n, g = stats_add(&c->s, &k, sizeof k, s->dur_ns[i]);
	if (c->s.n > before) {
		MEM_GROW(c->idle_ns, c->cap, c->s.n);
		c->idle_ns[g] = 0;
	}
	c->kind_ns[kind] += s->dur_ns[i];
	if (!c->launches[s->track[i]])
		return;
	int64_t idle = s->dur_ns[i] - intervals_length_within(&c->busy, s->start_ns[i], span_end(c->p, i));
	c->idle_ns[g] += idle;
	c->kind_idle_ns[kind] += idle;
}

static void osrt_collect(struct osrt_calls *c)
{
	const struct spans *s = &c->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		enum os_call_kind kind = s->kind[i] == SPAN_OS ? (enum os_call_kind)name_memo_of(&c->kinds, s->name[i]) : OS_CALL_NONE;
		if (kind == OS_CALL_NONE)
			continue;
		if (window_has(&c->window, s->start_ns[i]))
			osrt_add(c, i, kind);
		else
			c->left_out++;
	}
}

enum {
	OSRT_NAME, OSRT_KIND, OSRT_PROCESS, OSRT_THREAD, OSRT_STATS, OSRT_IDLE = OSRT_STATS + STATS_COLUMNS
};

static const struct section osrt_section = {COLUMNS(
	[OSRT_NAME] = {COLUMN(TEXT, "name", "Call", "function of the operating system's libraries"), .not_by = BY(OSRT_BY_KIND)},
	[OSRT_KIND] = {COLUMN(TEXT, "kind", "Kind", "file I/O, network, wait for I/O, lock, sleep, driver, process, memory, thread, other; by the name of the call",
	                      .flags = COLUMN_ANSWER)},
	[OSRT_PROCESS] = {COLUMN(TEXT, "process", "Process", "process that called", .flags = COLUMN_GROUP), .by = BY(OSRT_BY_THREAD)},
	[OSRT_THREAD] = {COLUMN(TEXT, "thread", "Thread", "thread that called", .flags = COLUMN_GROUP), .by = BY(OSRT_BY_THREAD)},
	STATS_COLUMN_LIST(OSRT_STATS),
	[OSRT_IDLE] = {COLUMN(NS, "idle_ns", "GPU idle", "of the total, the time in which no device worked, in threads that launch device work: what a device may have "
	                      "been waiting for", .flags = COLUMN_ANSWER)},
)};

static void osrt_put(struct osrt_calls *c, const struct report_args *args, struct table *out)
{
	const struct profile *p = c->p;
	section_start(&osrt_section, args, 0, out);
	for (uint32_t g = 0; g < c->s.n; g++) {
		struct osrt_key k;
		stats_key(&c->s, g, &k, sizeof k);
		table_row(out);
		table_set_str(out, OSRT_NAME, profile_str(p, k.name));
		table_set_str(out, OSRT_KIND, str_from(os_call_kind_name[k.kind - 1]));
		if (k.track) {
			table_set_str(out, OSRT_PROCESS, profile_str(p, p->track.pid_text[k.track - 1]));
			table_set_str(out, OSRT_THREAD, profile_str(p, p->track.tid_text[k.track - 1]));
		}
		stats_put(out, OSRT_STATS, &c->s, g);
		if (p->gpu_op.rows.n)
			table_set_i64(out, OSRT_IDLE, c->idle_ns[g]);
	}
}

static void osrt_put_notes(const struct osrt_calls *c, struct table *out)
{
	int64_t idle = 0, waiting = 0;
	for (int k = 0; k < OS_CALL_KINDS_N; k++) {
		idle += c->kind_idle_ns[k];
		waiting += os_call_waits[k] ? c->kind_idle_ns[k] : 0;
	}
	if (c->p->gpu_op.rows.n)
		table_note(out, "while no device worked, threads that launch device work spent %lld ns in these calls: file I/O %lld, wait for I/O %lld, lock %lld, sleep %lld, driver "
		           "%lld, others %lld", (long long)idle, (long long)c->kind_idle_ns[OS_CALL_FILE], (long long)c->kind_idle_ns[OS_CALL_POLL],
		           (long long)c->kind_idle_ns[OS_CALL_LOCK], (long long)c->kind_idle_ns[OS_CALL_SLEEP], (long long)c->kind_idle_ns[OS_CALL_DRIVER],
		           (long long)(idle - waiting - c->kind_idle_ns[OS_CALL_FILE] - c->kind_idle_ns[OS_CALL_DRIVER]));
	table_note(out, "%llu call%s, %lld ns, of all threads; a call inside another (open64 inside fopen) counts in both", (unsigned long long)c->s.n_values,
	           c->s.n_values == 1 ? "" : "s", (long long)c->s.total);
	if (!c->window.all && !c->window.in.outside)
		table_note(out, "calls outside the steps asked for: %llu", (unsigned long long)c->left_out);
}

static int osrt_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct osrt_calls c = {.p = p, .by = (enum osrt_grouping)args->variant->by};
	if (window_of(p, args, &c.window, e) < 0)
		return -1;
	c.kinds = name_memo_new(p, osrt_kind_of);
	find_device_work(&c);
	osrt_collect(&c);
	int rc = 0;
	if (!c.s.n) {
		rc = c.left_out ? err_set(e, ERR_DATA, "no call of the operating system's libraries began in those steps") :
		                  err_set(e, ERR_DATA, "the input holds no calls of the operating system's libraries; to record them: nsys profile --trace=cuda,nvtx,osrt");
	} else {
		stats_finish(&c.s);
		osrt_put(&c, args, out);
		osrt_put_notes(&c, out);
		rc = table_sort(out, STR("total_ns"), true, e);
	}
	stats_release(&c.s);
	intervals_release(&c.busy);
	name_memo_release(&c.kinds);
	mem_free(c.launches);
	mem_free(c.idle_ns);
	return rc;
}

static const struct report_variant osrt_variants[] = {
	{.group_by = "name", .by = OSRT_BY_NAME},
	{.group_by = "kind", .by = OSRT_BY_KIND},
	{.group_by = "thread", .by = OSRT_BY_THREAD},
	{0},
};

const struct report report_osrt = {
	.name = "osrt",
	.title = "Calls of the operating system's libraries",
	.help = "Which functions of the C library and of pthreads took the host's time, and of what kind they are: file I/O, waits for I/O, locks, sleep, ...; how "
	        "often, how long, and how much of that passed in threads that launch device work while no device worked, before the first work included. All processes and threads together; "
	        "--group-by=kind adds the calls of a kind, --group-by=thread tells the threads apart.",
	.variants = osrt_variants,
	.sections = (const struct section *const[]){&osrt_section, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = osrt_run,
};
