/* What an exported report holds: every report in every grouping, and what the pages ask besides. A page that asks something else says that
 * it is not there; web/src/source_static.ts makes answers about parts (a step's kernels, a piece of the timeline) out of these. */
#include "serve/export_asks.h"

#include "analysis/memory/memory.h"
#include "base/mem.h"
#include "query/per.h"
#include "query/report.h"

#include <stdio.h>

enum { PATH_BYTES = 80 };

enum {
	ASK_CHOSEN = 1,      /* of the chosen steps; where none are, again for each aggregation of the input */
	ASK_ELSE = 2,        /* only where there is no answer to the one before */
};

static const struct {
	const char *path;
	struct { const char *name, *value; } arg[2]; /* in order of their names */
	unsigned flags;
} asks[] = {
	{"/api/advise", {{0}}, ASK_CHOSEN},
	{"/api/instances", {{"by", "all"}}, ASK_CHOSEN},
	{"/api/instances", {{"by", "kernel"}}, ASK_CHOSEN},
	{"/api/instances", {{"by", "op"}}, ASK_CHOSEN},
	{"/api/instances", {{"by", "step"}}, ASK_CHOSEN},
	{"/api/report/ops", {{"limit", "10"}, {"sort", "-total_cpu_ns"}}, ASK_CHOSEN},
	{"/api/report/ops", {{"limit", "10"}, {"sort", "-total_gpu_ns"}}, ASK_CHOSEN},
	{"/api/timeline", {{0}}, 0},
	{"/api/timeline/counters", {{"points", "4096"}}, 0},
	{"/api/timeline/select", {{"limit", "1"}}, 0}, /* for its columns */
	{"/api/timeline/events", {{0}}, 0},
	{"/api/timeline/whole", {{0}}, ASK_ELSE},
};

struct serve_export_asks_asking {
	const struct profile *p;
	bool (*see)(void *context, const struct export_ask *a);
	void *context;
	const char *steps;       /* NULL = all */
	char aggregation[24];    /* "" = the whole recording */
	bool stopped;
};

/* Keeps the order of names. */
static void serve_export_asks_add_arg(struct export_ask *a, const char *name, const char *value)
{
	unsigned i = a->n_args++;
	for (; i > 0 && strcmp(a->arg[i - 1].name.p, name) > 0; i--)
		a->arg[i] = a->arg[i - 1];
	a->arg[i] = (struct request_arg){str_from(name), str_from(value)};
}

static void serve_export_asks_ask(struct serve_export_asks_asking *x, struct export_ask a, bool chosen)
{
	if (chosen && x->steps)
		serve_export_asks_add_arg(&a, "steps", x->steps);
	if (x->aggregation[0])
		serve_export_asks_add_arg(&a, "aggregation", x->aggregation);
	if (!x->stopped)
		x->stopped = !x->see(x->context, &a);
}

static void ask_report(struct serve_export_asks_asking *x, const struct report *k)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "/api/report/%s", k->name);
	serve_export_asks_ask(x, (struct export_ask){.path = path}, true);
	for (unsigned i = 0; report_grouping(k, i); i++) {
		struct export_ask a = {.path = path};
		serve_export_asks_add_arg(&a, "group_by", report_grouping(k, i));
		serve_export_asks_ask(x, a, true);
	}
	if (report_sums(k)) { /* whether sums per step are right; the page divides */
		struct export_ask a = {.path = path};
		serve_export_asks_add_arg(&a, "limit", "1");
		serve_export_asks_add_arg(&a, "per", "step");
		serve_export_asks_ask(x, a, true);
	}
}

/* The page of memory has a choice of the device: one with events. */
static void ask_memory(struct serve_export_asks_asking *x, const struct report *k)
{
	char path[PATH_BYTES];
	struct memory_peak *peak;
	size_t n = memory_peaks(x->p, INT64_MIN, INT64_MAX, &peak);
	snprintf(path, sizeof path, "/api/report/%s", k->name);
	for (size_t d = 0; d < n; d++) {
		char device[24];
		struct export_ask a = {.path = path};
		if (!peak[d].events)
			continue;
		snprintf(device, sizeof device, "%d", (int)d + MEMORY_CPU);
		serve_export_asks_add_arg(&a, "device", d ? device : "cpu");
		serve_export_asks_ask(x, a, true);
	}
	mem_free(peak);
}

static void ask_all(struct serve_export_asks_asking *x)
{
	for (unsigned i = 0; i < sizeof asks / sizeof asks[0]; i++) {
		struct export_ask a = {.path = asks[i].path, .otherwise = (asks[i].flags & ASK_ELSE) != 0};
		if (x->aggregation[0] && !(asks[i].flags & ASK_CHOSEN))
			continue;
		for (unsigned k = 0; k < 2 && asks[i].arg[k].name; k++)
			serve_export_asks_add_arg(&a, asks[i].arg[k].name, asks[i].arg[k].value);
		serve_export_asks_ask(x, a, asks[i].flags & ASK_CHOSEN);
	}
	for (const struct report *const *k = report_registry; *k; k++)
		ask_report(x, *k);
	for (const struct report *const *k = report_registry; *k; k++)
		if ((*k)->asks == ASKS_MEMORY && ((*k)->takes & REPORT_DEVICE))
			ask_memory(x, *k);
}

void export_asks(const struct profile *p, const char *steps, bool (*see)(void *context, const struct export_ask *a), void *context)
{
	struct serve_export_asks_asking x = {.p = p, .steps = steps, .see = see, .context = context};
	ask_all(&x);
	for (unsigned i = 0; i < p->n_aggregations && !steps; i++) {
		snprintf(x.aggregation, sizeof x.aggregation, "%lld", (long long)p->aggregation[i].id);
		ask_all(&x);
	}
}

void export_asks_general(bool (*see)(void *context, const struct export_ask *a), void *context)
{
	see(context, &(struct export_ask){.path = "/api/reports"});
}

void export_ask_key(const struct export_ask *a, struct buf *out)
{
	buf_cstr(out, a->path + strlen("/api/"));
	for (unsigned i = 0; i < a->n_args; i++) {
		buf_char(out, i ? '&' : '?');
		buf_str(out, a->arg[i].name);
		buf_char(out, '=');
		buf_str(out, a->arg[i].value);
	}
}
