#include "analysis/steps/serving_steps.h"

#include "analysis/analysis.h"
#include "analysis/steps/iterations_names.h"
#include "analysis/steps/steps.h"
#include "base/mem.h"
#include "base/search.h"

/* Formats, a bit each, whose ranges are around ranges of another format. */
static unsigned formats_around(const struct profile *p, const uint8_t *format)
{
	uint32_t track = ROW_NONE, open = ROW_NONE;
	unsigned around = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) { /* by track, then start */
		uint8_t of = format[p->span.name[i]];
		if (!of || !key_kind(p->span.kind[i]))
			continue;
		if (p->span.track[i] == track && p->span.start_ns[i] < span_end(p, open) && span_end(p, i) <= span_end(p, open) && of != format[p->span.name[open]])
			around |= 1u << format[p->span.name[open]];
		track = p->span.track[i];
		open = i;
	}
	return around;
}

uint8_t *serving_names(const struct profile *p, bool *any)
{
	uint8_t *of = NEW_ARRAY(p->strings.n, uint8_t);
	struct serving x;
	*any = false;
	for (uint32_t s = 0; s < p->strings.n; s++) {
		bool is = serving_parse(profile_str(p, s), &x) && x.phase != SERVING_CAPTURE;
		of[s] = is ? (uint8_t)(1 + x.format) : 0;
		*any |= is;
	}
	unsigned around = *any ? formats_around(p, of) : 0;
	for (uint32_t s = 0; *any && s < p->strings.n; s++)
		of[s] = !of[s] ? SERVING_NO_NAME : around >> of[s] & 1 ? SERVING_AROUND : SERVING_ITERATION;
	return of;
}

/* The thread on which most iterations are marked; of several the first. */
static uint32_t serving_track(const struct profile *p, const uint8_t *is)
{
	uint32_t best = ROW_NONE, most = 0, track = ROW_NONE, n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) { /* by track, then start */
		n = p->span.track[i] == track ? n : 0;
		track = p->span.track[i];
		n += is[p->span.name[i]] == SERVING_ITERATION && key_kind(p->span.kind[i]);
		if (n > most) {
			most = n;
			best = track;
		}
	}
	return best;
}

/* The step in which a time of the host lies; NULL. Steps stand in order of start. */
static struct step *serving_step_at(const struct steps *s, int64_t time)
{
	unsigned i = FIRST_WHERE(k, 0, s->total, s->v[k].host_start_ns > time);
	return i && time < s->v[i - 1].host_end_ns ? &s->v[i - 1] : NULL;
}

static void serving_tell(struct profile *p, struct steps *s, const struct serving *x, int64_t start_ns)
{
	struct step *step = serving_step_at(s, start_ns);
	if (!step || s->whole_trace)
		return;
	if (step->serving) {
		serving_add(step->serving, x);
		return;
	}
	step->serving = ARENA_ARRAY(&p->arena, 1, struct serving);
	*step->serving = *x;
}

struct serving_iteration *serving_iterations(const struct profile *p, uint32_t *n)
{
	struct serving_iteration *list = NULL;
	bool any;
	uint8_t *is = serving_names(p, &any);
	uint32_t track = any ? serving_track(p, is) : ROW_NONE, around = ROW_NONE, cap = 0;
	*n = 0;
	for (uint32_t i = 0; any && i < p->span.rows.n; i++) {
		struct serving x, inner;
		uint32_t name = p->span.name[i];
		if (p->span.track[i] != track || !is[name] || !key_kind(p->span.kind[i]))
			continue;
		if (is[name] == SERVING_AROUND) {
			around = i;
			continue;
		}
		bool inside = around != ROW_NONE && p->span.start_ns[i] < span_end(p, around);
		if (!serving_parse(profile_str(p, inside ? p->span.name[around] : name), &x) || !serving_parse(profile_str(p, name), &inner))
			continue;
		serving_fill(&x, &inner);
		MEM_PUSH(list, *n, cap, (struct serving_iteration){p->span.start_ns[i], span_end(p, i), x});
		around = ROW_NONE; /* of several iterations in it, it tells the first */
	}
	mem_free(is);
	return list;
}

void serving_of_steps(struct profile *p, struct steps *s)
{
	uint32_t n;
	struct serving_iteration *list = serving_iterations(p, &n);
	for (uint32_t i = 0; i < n; i++)
		serving_tell(p, s, &list[i].says, list[i].start_ns);
	mem_free(list);
}
