#include "analysis/costs/sampled.h"

#include "analysis/costs/counters.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool sampled_fact(const struct profile *p, const char *fact, int32_t device, struct str *value)
{
	char key[96];
	snprintf(key, sizeof key, "%s%d", fact, device);
	return profile_meta(p, key, value);
}

static int64_t sampled_fact_ns(const struct profile *p, const char *fact, int32_t device)
{
	struct str text;
	int64_t ns;
	return sampled_fact(p, fact, device, &text) && str_to_i64(text, &ns) && ns > 0 ? ns : 0;
}

bool sampled_anything(const struct profile *p)
{
	for (uint32_t i = 0; i < p->meta.rows.n; i++)
		if (str_starts(profile_str(p, p->meta.key[i]), STR(SAMPLED_INTERVAL_NS)))
			return true;
	return false;
}

/* ---- kernels ---- */

double sampled_value(const struct profile *p, uint32_t arg)
{
	const double v = counter_number(p, arg);
	return v >= 0 && v < 1e6 ? v : NAN;
}

struct str sampled_unit(struct str metric) { return str_has(metric, STR("Clock Frequency")) ? STR("MHz") : STR("%"); }

bool sampled_of(const struct profile *p, uint32_t gpu_op, struct sampled_values *out)
{
	const uint32_t set = p->gpu_op.args[gpu_op];
	struct str samples, ns, of;
	*out = (struct sampled_values){0};
	for (unsigned m = 0; m < SAMPLED_METRICS; m++)
		out->v[m] = NAN;
	if (!profile_arg(p, set, ARG_SAMPLES, &samples) || !profile_arg(p, set, ARG_SAMPLED_NS, &ns) || !profile_arg(p, set, ARG_SAMPLES_OF, &of))
		return false;
	if (!str_to_i64(samples, &out->samples) || !str_to_i64(ns, &out->ns) || out->samples <= 0 || out->samples > UINT32_MAX || out->ns <= 0)
		return false;
	out->call = str_eqc(of, SAMPLED_CALL);
	/* The means stand behind these three arguments; counters that were measured in another run stand behind the means. */
	out->end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	out->first = p->arg_set.first[set];
	while (out->first < out->end && !profile_is_arg(p, p->arg.key[out->first], ARG_SAMPLES_OF))
		out->first++;
	out->first += out->first < out->end;
	for (uint32_t a = out->first; a < out->end; a++) {
		if (profile_is_arg(p, p->arg.key[a], ARG_COUNTERS)) {
			out->end = a;
			break;
		}
		const enum sampled_metric m = sampled_metric_of(profile_str(p, p->arg.key[a]));
		if (m != SAMPLED_METRICS)
			out->v[m] = sampled_value(p, a);
	}
	return true;
}

void sampled_sums_add(struct sampled_sums *s, const struct profile *p, uint32_t gpu_op, bool one_kernel)
{
	struct sampled_values x;
	if (!sampled_of(p, gpu_op, &x) || !(x.call || one_kernel))
		return;
	s->samples += (uint64_t)x.samples;
	s->calls++;
	s->told += x.call;
	for (unsigned m = 0; m < SAMPLED_METRICS; m++)
		if (!isnan(x.v[m])) {
			s->weighted[m] += x.v[m] * (double)x.ns;
			s->ns[m] += x.ns;
		}
}

void sampled_sums_means(const struct sampled_sums *s, double v[SAMPLED_METRICS])
{
	for (unsigned m = 0; m < SAMPLED_METRICS; m++)
		v[m] = sampled_sums_tell(s) && s->ns[m] ? s->weighted[m] / (double)s->ns[m] : NAN;
}

void sampled_put_why(const struct profile *p, const struct sampled_sums *s, int32_t device, int64_t longest_ns, struct buf *b)
{
	struct str why;
	const int64_t interval = sampled_fact_ns(p, SAMPLED_INTERVAL_NS, device);
	if (!interval)
		buf_cstr(b, "the GPU was not sampled");
	else if (sampled_fact(p, SAMPLED_WHY_NOT, device, &why))
		buf_str(b, why);
	else if (longest_ns / interval <= SAMPLED_CALL_LEAST)
		buf_printf(b, "no call is as long as %d sampling intervals of %.4g us, and only %llu %s in calls of this kernel alone: %d are needed", SAMPLED_CALL_LEAST + 1, (double)interval / 1e3,
		           (unsigned long long)s->samples, s->samples == 1 ? "sample lies" : "samples lie", SAMPLED_NAME_LEAST);
	else
		buf_printf(b, "no call has %d samples during which no other work ran", SAMPLED_CALL_LEAST);
}

/* ---- time ---- */

struct sampled_mark {
	int64_t time_ns;
	double value;
	int32_t device;
	enum sampled_metric metric;
};

static bool sampled_mark_of(const struct profile *p, uint32_t i, struct sampled_mark *out)
{
	const struct marks *m = &p->mark;
	struct str value, device;
	int64_t id;
	char *end;
	out->metric = m->phase[i] == 'C' && str_eqc(profile_cat(p, m->cat[i]), SAMPLED_CATEGORY) ? sampled_metric_of(profile_str(p, m->name[i])) : SAMPLED_METRICS;
	if (out->metric == SAMPLED_METRICS || !profile_arg(p, m->args[i], ARG_COUNTER_VALUE, &value) || !profile_arg(p, m->args[i], ARG_COUNTER_DEVICE, &device) || !str_to_i64(device, &id) || id < 0 ||
	    id > UINT8_MAX || !value.n)
		return false;
	out->time_ns = m->time_ns[i];
	out->device = (int32_t)id;
	out->value = strtod(value.p, &end);
	return end == value.p + value.n && out->value >= 0 && out->value < 1e6;
}

void sampled_curves_find(const struct profile *p, struct sampled_curves *out)
{
	profile_assert_kept(p, LEFT_MARKS);
	enum { METRIC_BITS = 8 };
	struct sampled_mark *mark = NULL;
	uint32_t n = 0, cap = 0;
	*out = (struct sampled_curves){0};
	for (uint32_t i = 0; i < p->mark.rows.n; i++) {
		struct sampled_mark m;
		if (sampled_mark_of(p, i, &m))
			MEM_PUSH(mark, n, cap, m);
	}
	struct sort_item *v = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct sort_item){sort_key_i64(mark[i].time_ns), i, 0};
	sort_items(v, n);
	for (uint32_t i = 0; i < n; i++)
		v[i].key = (uint64_t)mark[v[i].row].device << METRIC_BITS | mark[v[i].row].metric;
	sort_items(v, n);
	out->time_ns = NEW_ARRAY_RAW(n, int64_t);
	out->value = NEW_ARRAY_RAW(n, double);
	for (uint32_t i = 0; i < n; i++) {
		const struct sampled_mark *m = &mark[v[i].row];
		if (!i || v[i].key != v[i - 1].key)
			MEM_PUSH(out->v, out->n, out->cap, ((struct sampled_curve){m->device, m->metric, i, 0, sampled_fact_ns(p, SAMPLED_POINT_NS, m->device)}));
		out->v[out->n - 1].n++;
		out->time_ns[i] = m->time_ns;
		out->value[i] = m->value;
	}
	/* A curve without the fact SAMPLED_POINT_NS, which another program may have written, does not say how long a point holds: such curves are left out. */
	uint32_t kept = 0;
	for (uint32_t i = 0; i < out->n; i++)
		if (out->v[i].point_ns)
			out->v[kept++] = out->v[i];
	out->n = kept;
	mem_free(v);
	mem_free(mark);
}

void sampled_curves_release(struct sampled_curves *c)
{
	mem_free(c->v);
	mem_free(c->time_ns);
	mem_free(c->value);
}

void sampled_time_add(struct sampled_time *t, const struct sampled_curves *c, const struct sampled_curve *of, int64_t from_ns, int64_t to_ns)
{
	const uint32_t end = of->first + of->n, later = FIRST_WHERE(i, of->first, end, c->time_ns[i] > from_ns);
	for (uint32_t i = later > of->first ? later - 1 : later; i < end && c->time_ns[i] < to_ns; i++) {
		const int64_t begin = c->time_ns[i], next = i + 1 < end ? c->time_ns[i + 1] : INT64_MAX;
		int64_t until;
		if (__builtin_add_overflow(begin, of->point_ns, &until) || until > next)
			until = next;
		const int64_t from = begin > from_ns ? begin : from_ns, to = until < to_ns ? until : to_ns;
		if (to <= from)
			continue;
		t->weighted += c->value[i] * (double)(to - from);
		t->ns += to - from;
	}
}
