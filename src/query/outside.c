#include "query/outside.h"

#include "base/mem.h"
#include "query/window.h"
#include "store/reuse.h"

#include <assert.h>

/* Counts of device work (number and time) and of host ranges. */
struct amount {
	uint64_t ops, spans;
	int64_t ns;
};

/* Counts what lies outside the steps, and in *all everything; of one device, unless `device` is NULL. */
static struct amount outside_of(const struct profile *p, const struct window *w, const char *device, struct amount *all)
{
	int64_t only;
	bool has_only = device && str_to_i64(str_from(device), &only);
	struct amount out = {0};
	*all = (struct amount){0};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		bool in = window_has_gpu(w, p, g);
		uint32_t launch = p->gpu_op.launch[g];
		if (has_only && (launch == ROW_NONE || p->launch.device[launch] != only))
			continue;
		all->ops++;
		all->ns += p->gpu_op.dur_ns[g];
		out.ops += !in;
		out.ns += in ? 0 : p->gpu_op.dur_ns[g];
	}
	for (uint32_t i = 0; i < p->span.rows.n && !p->gpu_op.rows.n; i++) {
		if (p->span.kind[i] != SPAN_OP)
			continue;
		all->spans++;
		out.spans += !window_has(w, p->span.start_ns[i]);
	}
	return out;
}

static bool has_host_outside(const struct profile *p, const struct window *w)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if ((p->span.kind[i] == SPAN_OP || p->span.kind[i] == SPAN_CALL) && !window_has(w, p->span.start_ns[i]))
			return true;
	return false;
}

/* Why work of the recording is outside: the first step begins where the GPU had ended work from before its range. "" = not so, or the step was not asked for. */
static const char *outside_why(const struct profile *p, const struct report_args *args, struct table *t)
{
	const struct steps *s = p->steps;
	if (!s->n || s->before.ns <= 0 || s->before.waited_ns || s->v[0].number < args->step_first || s->v[0].number > args->step_last)
		return "";
	return arena_printf(&t->arena, " Step " STR_FMT " begins %.3f ms after its range did, when the GPU had ended work that was launched before the range.", STR_ARG(s->v[0].name),
	                    (double)s->before.ns / 1e6).p;
}

/* What was counted for one window over all devices. */
struct outside_known {
	struct step_window in;
	struct amount out, all;
	bool any;
};

static const char outside_kept[] = "outside";

static bool outside_is_same(const struct step_window *a, const struct step_window *b)
{
	return a->start_ns == b->start_ns && a->end_ns == b->end_ns && a->device_start_ns == b->device_start_ns && a->device_end_ns == b->device_end_ns && a->steps == b->steps &&
	       a->among == b->among && a->n_among == b->n_among && a->first == b->first && a->last == b->last && a->outside == b->outside;
}

static void outside_count(const struct profile *p, const struct report_args *args, const struct window *w, struct outside_known *k)
{
	struct outside_known *kept = args->device ? NULL : reuse_find(p, outside_kept);
	if (kept && outside_is_same(&kept->in, &w->in)) {
		*k = *kept;
		return;
	}
	*k = (struct outside_known){.in = w->in};
	k->out = outside_of(p, w, args->device, &k->all);
	k->any = k->out.ops || has_host_outside(p, w);
	if (kept || args->device)
		return;
	kept = NEW(struct outside_known);
	*kept = *k;
	if (!reuse_keep(p, outside_kept, kept, mem_free, NULL))
		mem_free(kept);
}

bool outside_note(const struct profile *p, const struct report_args *args, struct table *t)
{
	struct window w;
	struct outside_known k;
	struct err e;
	if (window_of(p, args, &w, &e) < 0)
		return false;
	outside_count(p, args, &w, &k);
	const struct amount out = k.out, all = k.all;
	const char *s = w.steps == 1 ? "" : "s", *them = w.steps == 1 ? "it" : "them";
	if (out.ops)
		table_warn(t, "Of the %u step%s. Outside %s: %llu of %llu device operations, %.1f %% of the device time; --steps=all counts everything.%s",
		           w.steps, s, them, (unsigned long long)out.ops, (unsigned long long)all.ops, all.ns ? 100.0 * (double)out.ns / (double)all.ns : 0, outside_why(p, args, t));
	else if (out.spans)
		table_warn(t, "Of the %u step%s. Outside %s: %llu of %llu ops on the host; --steps=all counts everything.", w.steps, s, them,
		           (unsigned long long)out.spans, (unsigned long long)all.spans);
	return k.any;
}

struct outside_sum {
	bool any, fits; /* any: a row has a value; fits: the sum of whole numbers fits 64 bits */
	int64_t i;
	double f;
};

static struct outside_sum outside_sum_of(const struct table *t, unsigned col)
{
	struct outside_sum s = {.fits = true};
	bool whole = t->data[col].col.type == CELL_I64;
	for (size_t r = 0; r < t->n_rows; r++) {
		if (table_is_null(t, r, col))
			continue;
		s.any = true;
		s.f += table_f64(t, r, col);
		s.fits = s.fits && !(whole && __builtin_add_overflow(s.i, table_i64(t, r, col), &s.i));
	}
	return s;
}

/* Adds the section to *main: the columns of *main in which *rest has values. */
static void outside_put_sums(const struct table *rest, const char *ids, struct table *main)
{
	struct str left = str_from(ids), id;
	struct table *section = NULL;
	while (left.n && str_split(&left, ' ', &id)) {
		int from = table_find_column(rest, id), as = table_find_column(main, id);
		struct outside_sum s = from >= 0 && as >= 0 ? outside_sum_of(rest, (unsigned)from) : (struct outside_sum){0};
		if (!s.any || !s.fits)
			continue;
		if (!section) {
			section = table_section(main, "outside", "Outside the steps, in all");
			table_row(section);
		}
		unsigned to = table_column(section, &main->data[as].col);
		if (main->data[as].col.type == CELL_I64)
			table_set_i64(section, to, s.i);
		else
			table_set_f64(section, to, s.f);
	}
}

bool outside_is_summed(const struct report *r, const struct report_args *args)
{
	return section_outside_ids(r) && !report_is_per_event(r, args->group_by);
}

void outside_sums(const struct report *r, const struct profile *p, const struct report_args *args, struct table *t)
{
	assert(args->has_steps);
	struct report_args of_rest = *args;
	struct table rest;
	struct err e;
	if (!outside_is_summed(r, args))
		return;
	of_rest.outside = true;
	table_init(&rest, r->name, r->title);
	if (report_fill(r, p, &of_rest, &rest, &e) == 0)
		outside_put_sums(&rest, section_outside_ids(r), t);
	table_release(&rest);
}
