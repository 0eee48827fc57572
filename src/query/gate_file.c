#include "query/gate_file.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GATE_HEAD "opscope gate "
#define GATE_STEPS "step_ns"

struct gate_block *gate_file_add_block(struct gate_file *f, const struct gate_fact *fact, unsigned n_facts, const struct str *metric, unsigned n_metrics)
{
	MEM_GROW(f->block, f->cap_blocks, f->n_blocks + 1);
	struct gate_block *b = &f->block[f->n_blocks++];
	*b = (struct gate_block){.fact = NEW_ARRAY(GATE_FACTS_MAX, struct gate_fact), .metric = NEW_ARRAY(GATE_METRICS_MAX, struct str)};
	for (unsigned i = 0; i < n_facts && i < GATE_FACTS_MAX; i++)
		b->fact[b->n_facts++] = (struct gate_fact){arena_str(&f->arena, fact[i].name), arena_str(&f->arena, fact[i].value)};
	for (unsigned i = 0; i < n_metrics && i < GATE_METRICS_MAX; i++)
		b->metric[b->n_metrics++] = arena_str(&f->arena, metric[i]);
	return b;
}

struct gate_run *gate_file_add_run(struct gate_file *f, struct gate_block *b, struct str path, bool anchor)
{
	MEM_GROW(b->run, b->cap_runs, b->n_runs + 1);
	struct gate_run *r = &b->run[b->n_runs++];
	*r = (struct gate_run){arena_str(&f->arena, path), anchor, ARENA_ARRAY(&f->arena, b->n_metrics, struct gate_value)};
	for (unsigned i = 0; i < b->n_metrics; i++)
		r->v[i] = (struct gate_value){.value = NAN};
	return r;
}

int gate_file_add_metric(struct gate_file *f, struct gate_block *b, struct str name, struct err *e)
{
	if (b->n_metrics == GATE_METRICS_MAX)
		return err_set(e, ERR_LIMIT, STR_FMT ": a gate has %d metrics of a configuration at most", STR_ARG(name), GATE_METRICS_MAX);
	for (unsigned i = 0; i < b->n_runs; i++) {
		struct gate_value *v = ARENA_ARRAY(&f->arena, b->n_metrics + 1, struct gate_value);
		memcpy(v, b->run[i].v, b->n_metrics * sizeof *v);
		v[b->n_metrics] = (struct gate_value){.value = NAN};
		b->run[i].v = v;
	}
	b->metric[b->n_metrics++] = arena_str(&f->arena, name);
	return 0;
}

unsigned gate_block_metric(const struct gate_block *b, struct str name)
{
	unsigned i = 0;
	while (i < b->n_metrics && !str_eq(b->metric[i], name))
		i++;
	return i;
}

void gate_file_release(struct gate_file *f)
{
	for (unsigned i = 0; i < f->n_blocks; i++) {
		mem_free(f->block[i].fact);
		mem_free(f->block[i].metric);
		mem_free(f->block[i].run);
	}
	mem_free(f->block);
	arena_release(&f->arena);
	*f = (struct gate_file){0};
}

/* ---- reading ---- */

struct gate_reader {
	struct gate_file *f;
	const char *path;
	unsigned line;
	struct gate_block *block; /* NULL = before the first */
	struct gate_run *run;     /* NULL = before the first of the block */
	struct err *e;
};

static int gate_bad(const struct gate_reader *r, const char *expected)
{
	return err_set(r->e, ERR_DATA, "%s, line %u: %s was expected", r->path, r->line, expected);
}

/* The finite number that is all of `s`. */
static bool gate_number(struct str s, double *v)
{
	char text[64], *end;
	if (!s.n || s.n >= sizeof text)
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	*v = strtod(text, &end);
	return *end == 0 && isfinite(*v);
}

/* "NAME 312100000", "NAME 312100000 +- 120000" */
static int gate_read_value(struct gate_reader *r, struct str line)
{
	const ptrdiff_t sign = str_find(line, STR(" +- "));
	struct str error = sign < 0 ? STR("0") : (struct str){line.p + sign + 4, line.n - (size_t)sign - 4};
	struct str head = sign < 0 ? line : (struct str){line.p, (size_t)sign};
	size_t at = head.n;
	while (at && head.p[at - 1] != ' ')
		at--;
	struct gate_value v;
	const unsigned metric = at ? gate_block_metric(r->block, (struct str){head.p, at - 1}) : r->block->n_metrics;
	if (metric == r->block->n_metrics)
		return gate_bad(r, "one of the configuration's metrics, and a number");
	static const double MOST = 1e18; /* thirty years in ns */
	if (!gate_number((struct str){head.p + at, head.n - at}, &v.value) || !gate_number(str_trim(error), &v.error) || v.value < 0 || v.error < 0 || v.value > MOST || v.error > MOST)
		return gate_bad(r, "a number from 0 to 1e18, and perhaps +- another");
	if (metric == gate_block_metric(r->block, STR(GATE_STEPS)) && v.value <= 0)
		return gate_bad(r, "a step time above 0");
	r->run->v[metric] = v;
	return 0;
}

static int gate_read_fact(struct gate_reader *r, struct str line)
{
	const ptrdiff_t colon = str_find(line, STR(": "));
	if (colon <= 0 || r->block->n_metrics)
		return gate_bad(r, "a fact of the configuration, NAME: VALUE, before its metrics");
	if (r->block->n_facts == GATE_FACTS_MAX)
		return gate_bad(r, "at most 32 facts of a configuration");
	const struct str name = {line.p, (size_t)colon}, value = {line.p + colon + 2, line.n - (size_t)colon - 2};
	r->block->fact[r->block->n_facts++] = (struct gate_fact){arena_str(&r->f->arena, name), arena_str(&r->f->arena, value)};
	return 0;
}

static int gate_read_metric(struct gate_reader *r, struct str name)
{
	if (!r->block || r->block->n_runs)
		return gate_bad(r, "a metric behind the facts of a configuration");
	if (!name.n || r->block->n_metrics == GATE_METRICS_MAX || gate_block_metric(r->block, name) < r->block->n_metrics)
		return gate_bad(r, "a metric that was not named before, at most 64 of them,");
	r->block->metric[r->block->n_metrics++] = arena_str(&r->f->arena, name);
	return 0;
}

/* At the end of a run: the metric that all have. */
static int gate_end_run(struct gate_reader *r)
{
	if (r->run && isnan(r->run->v[gate_block_metric(r->block, STR(GATE_STEPS))].value))
		return gate_bad(r, "the " GATE_STEPS " of the run above");
	r->run = NULL;
	return 0;
}

static int gate_read_line(struct gate_reader *r, struct str line)
{
	if (memchr(line.p, 0, line.n))
		return gate_bad(r, "text without zero bytes");
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (r->line == 1) {
		double version = 0;
		if (!str_skip(&line, STR(GATE_HEAD)) || !gate_number(line, &version))
			return gate_bad(r, "\"" GATE_HEAD "1\"");
		if (version != GATE_VERSION)
			return err_set(r->e, ERR_DATA, "%s: it is of version %g, and this opscope reads version %d", r->path, version, GATE_VERSION);
		return 0;
	}
	if (!str_trim(line).n || line.p[0] == '#')
		return 0;
	if (str_skip(&line, STR("  "))) {
		if (r->run)
			return gate_read_value(r, line);
		return r->block ? gate_read_fact(r, line) : gate_bad(r, "configuration");
	}
	if (gate_end_run(r) < 0)
		return -1;
	if (str_eq(line, STR("configuration"))) {
		r->block = gate_file_add_block(r->f, NULL, 0, NULL, 0);
		r->run = NULL;
		return 0;
	}
	if (str_skip(&line, STR("metric ")))
		return gate_read_metric(r, line);
	const bool anchor = str_skip(&line, STR("anchor "));
	if (anchor || str_skip(&line, STR("run "))) {
		if (!r->block || gate_block_metric(r->block, STR(GATE_STEPS)) == r->block->n_metrics)
			return gate_bad(r, "a configuration with the metric step_ns before its first run");
		r->run = gate_file_add_run(r->f, r->block, line, anchor);
		return 0;
	}
	return gate_bad(r, "configuration, metric NAME, anchor PATH or run PATH");
}

int gate_file_read(struct str text, const char *path, struct gate_file *f, struct err *e)
{
	*f = (struct gate_file){0};
	struct gate_reader r = {.f = f, .path = path, .e = e};
	struct str line;
	while (str_split(&text, '\n', &line)) {
		r.line++;
		if (gate_read_line(&r, line) < 0)
			return -1;
	}
	if (gate_end_run(&r) < 0)
		return -1;
	if (!r.line) {
		r.line = 1;
		return gate_bad(&r, "\"" GATE_HEAD "1\"");
	}
	return 0;
}

/* ---- writing ---- */

/* 15 digits: as many as every double keeps. */
static void gate_put_number(struct buf *out, double v)
{
	buf_printf(out, "%.15g", v);
}

void gate_file_put(const struct gate_file *f, struct buf *out)
{
	buf_printf(out, GATE_HEAD "%d\n", GATE_VERSION);
	for (unsigned i = 0; i < f->n_blocks; i++) {
		const struct gate_block *b = &f->block[i];
		buf_cstr(out, "configuration\n");
		for (unsigned k = 0; k < b->n_facts; k++) {
			buf_printf(out, "  " STR_FMT ": ", STR_ARG(b->fact[k].name));
			utf8_put_safe(out, b->fact[k].value);
			buf_char(out, '\n');
		}
		for (unsigned k = 0; k < b->n_metrics; k++)
			buf_printf(out, "metric " STR_FMT "\n", STR_ARG(b->metric[k]));
		for (unsigned k = 0; k < b->n_runs; k++) {
			buf_cstr(out, b->run[k].anchor ? "anchor " : "run ");
			utf8_put_safe(out, b->run[k].path);
			buf_char(out, '\n');
			for (unsigned m = 0; m < b->n_metrics; m++) {
				const struct gate_value *v = &b->run[k].v[m];
				if (isnan(v->value))
					continue;
				buf_printf(out, "  " STR_FMT " ", STR_ARG(b->metric[m]));
				gate_put_number(out, v->value);
				if (v->error > 0) {
					buf_cstr(out, " +- ");
					gate_put_number(out, v->error);
				}
				buf_char(out, '\n');
			}
		}
	}
}
