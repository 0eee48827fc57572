#include "input/kineto/kineto_event.h"

#include "base/mem.h"
#include "store/build_join.h"

/* The track of the whole that is track `t` of a part; ROW_NONE = there is none yet. */
static uint32_t kineto_join_track(const struct kineto *to, const struct profile *part, uint32_t t)
{
	return build_find_track(&to->b, profile_str(part, part->track.pid_text[t]), profile_str(part, part->track.tid_text[t]));
}

bool kineto_event_can_join(const struct kineto *to, const struct kineto *from)
{
	uint64_t ns = to->b.span_ns + from->b.span_ns;
	uint32_t *top = mem_filled(from->p->track.rows.n, ROW_NONE);
	for (uint32_t t = 0; from->n_ends && t < from->p->track.rows.n; t++) {
		const uint32_t at = kineto_join_track(to, from->p, t);
		top[t] = at < to->n_open_top ? to->open_top[at] : ROW_NONE;
	}
	/* Each ends a range, and what they last is below the limit. */
	bool can = true;
	for (uint32_t i = 0; can && i < from->n_ends; i++) {
		uint32_t *open = &top[from->ends[i].track];
		can = *open != ROW_NONE;
		if (!can)
			break;
		const int64_t dur = from->ends[i].ts - to->p->span.start_ns[to->open[*open].span];
		ns += dur > 0 ? (uint64_t)dur : 0;
		can = ns <= 1ull << BUILD_SUM_BITS;
		*open = to->open[*open].below;
	}
	mem_free(top);
	return can;
}

static void kineto_join_open(struct kineto *to, const struct kineto *from, const struct build_map *m)
{
	for (uint32_t i = 0; i < from->n_ends; i++)
		kineto_event_end(to, m->track[from->ends[i].track], from->ends[i].ts);
	/* Those still open, as they were opened: each is inside those of its track that were opened before. */
	for (uint32_t i = 0; i < from->n_open; i++)
		if (from->open[i].span != ROW_NONE)
			kineto_event_open(to, m->track[from->p->span.track[from->open[i].span]], from->open[i].span + m->first[TABLE_span]);
}

void kineto_event_join(struct kineto *to, const struct kineto *from, const struct build_map *m)
{
	kineto_join_open(to, from, m);
	for (unsigned i = 0; i < from->n_names; i++)
		MEM_PUSH(to->names, to->n_names, to->cap_names, (struct process_name){
			.pid_text = m->string[from->names[i].pid_text], .text = m->string[from->names[i].text], .is_label = from->names[i].is_label});
	diags_join(&to->p->diags, &from->p->diags);
	to->p->zero_is_start |= from->p->zero_is_start;
	to->n_events += from->n_events;
	to->n_like += from->n_like;
	to->last_ns = to->last_ns > from->last_ns ? to->last_ns : from->last_ns;
	to->j.repairs = from->j.repairs; /* met behind the last event */
	to->offset = from->offset;
}
