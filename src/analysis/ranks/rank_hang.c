#include "analysis/ranks/rank_hang.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "io/pyliteral.h"

enum { RANK_HANG_MEMBERS = 1 << 21 }; /* of all groups of a rank together */

struct rank_hang_work {
	const struct profile *p;
	struct arena *a;
	struct rank_hang *h;
	struct intern names;         /* of groups, by index + 1 */
	uint32_t cap_groups, cap_calls;
	uint32_t n_members;
};

static int64_t rank_hang_i64(const struct py *d, const char *key, int64_t absent)
{
	const struct py *v = py_get(d, key);
	return v && v->type == PY_INT ? v->i : absent;
}

static struct str rank_hang_str(const struct py *d, const char *key)
{
	const struct py *v = py_get(d, key);
	return v && v->type == PY_STR ? v->s : STR("");
}

static void rank_hang_read_members(struct rank_hang_work *w, const struct py *ranks, struct rank_hang_group *g)
{
	if (!ranks || ranks->type != PY_LIST || ranks->n > RANK_HANG_MEMBERS - w->n_members)
		return;
	int64_t *v = NEW_ARRAY(ranks->n, int64_t);
	for (const struct py *x = ranks->first; x; x = x->next)
		if (x->type == PY_INT && (!g->n || x->i > v[g->n - 1]))
			v[g->n++] = x->i;
	g->member = v;
	w->n_members += g->n;
}

static void rank_hang_add_group(struct rank_hang_work *w, const struct rank_hang_group *g)
{
	if (intern_find(&w->names, g->name) != INTERN_NONE || !g->name.n) {
		mem_free(g->member);
		return;
	}
	intern_str(&w->names, g->name);
	MEM_PUSH(w->h->group, w->h->n_groups, w->cap_groups, *g);
}

static void rank_hang_read_groups(struct rank_hang_work *w)
{
	struct str text;
	struct arena scratch = {0};
	size_t at;
	const struct py *info = profile_meta(w->p, "distributedInfo", &text) ? py_parse(text, &scratch, &at) : NULL;
	const struct py *list = py_get(info, "pg_config");
	for (const struct py *x = list && list->type == PY_LIST ? list->first : NULL; x; x = x->next) {
		struct rank_hang_group g = {.name = arena_str(w->a, rank_hang_str(x, "pg_name")), .about = arena_str(w->a, rank_hang_str(x, "pg_desc")),
		                            .enqueued = rank_hang_i64(x, "last_enqueued", RANK_HANG_UNKNOWN),
		                            .completed = rank_hang_i64(x, "last_completed", RANK_HANG_UNKNOWN)};
		rank_hang_read_members(w, py_get(x, "ranks"), &g);
		rank_hang_add_group(w, &g);
	}
	arena_release(&scratch);
}

static bool rank_hang_arg_i64(const struct profile *p, uint32_t set, enum arg_key key, int64_t *v)
{
	struct str text;
	return profile_arg(p, set, key, &text) && str_to_i64(text, v);
}

/* Of "send 0->3", "recv 3<-2", which are places in the group: the other one's rank. */
static int64_t rank_hang_peer(const struct rank_hang_group *g, struct str op, bool *sends)
{
	ptrdiff_t arrow = str_find(op, STR("->"));
	int64_t place;
	*sends = arrow >= 0;
	arrow = arrow >= 0 ? arrow : str_find(op, STR("<-"));
	if (arrow < 0 || !str_to_i64((struct str){op.p + arrow + 2, op.n - (size_t)arrow - 2}, &place) || place < 0 || place >= (int64_t)g->n)
		return -1;
	return g->member[place];
}

static struct str rank_hang_arg(const struct rank_hang_work *w, uint32_t set, enum arg_key key)
{
	struct str s;
	return profile_arg(w->p, set, key, &s) ? s : STR("");
}

/* A call that is not completed, in words. */
static void rank_hang_add_pending(struct rank_hang_work *w, uint32_t mark, struct rank_hang_call c, const struct rank_hang_group *g)
{
	uint32_t set = w->p->mark.args[mark];
	struct str op = rank_hang_arg(w, set, ARG_COLLECTIVE), frames = rank_hang_arg(w, set, ARG_CALL_STACK), dims = rank_hang_arg(w, set, ARG_INPUT_DIMS),
	           type = rank_hang_arg(w, set, ARG_MESSAGE_TYPE), innermost = STR("");
	c.created_ns = w->p->mark.time_ns[mark];
	c.started = str_eqc(rank_hang_arg(w, set, ARG_CALL_STATE), "started");
	c.op = arena_str(w->a, op);
	c.peer = c.is_pair ? rank_hang_peer(g, op, &c.sends) : -1;
	c.sizes = arena_printf(w->a, STR_FMT "%s" STR_FMT, STR_ARG(dims), dims.n && type.n ? " " : "", STR_ARG(type));
	if (frames.n)
		str_split(&frames, ';', &innermost);
	c.where = arena_str(w->a, innermost);
	MEM_PUSH(w->h->call, w->h->n_calls, w->cap_calls, c);
}

/* Where the dump does not say how far a group has come, its calls do. */
static void rank_hang_add_call(struct rank_hang_work *w, uint32_t mark)
{
	uint32_t set = w->p->mark.args[mark];
	struct str name, state;
	struct rank_hang_call c = {.record = mark};
	if (!profile_arg(w->p, set, ARG_GROUP_NAME, &name) || !profile_arg(w->p, set, ARG_CALL_STATE, &state) || !rank_hang_arg_i64(w->p, set, ARG_SEQUENCE, &c.seq))
		return;
	struct rank_hang_group unlisted = {.name = arena_str(w->a, name), .about = arena_str(w->a, rank_hang_arg(w, set, ARG_GROUP_DESCRIPTION)),
	                                   .enqueued = RANK_HANG_UNKNOWN, .completed = RANK_HANG_UNKNOWN};
	rank_hang_add_group(w, &unlisted);
	uint32_t at = intern_find(&w->names, name);
	if (at == INTERN_NONE || !at)
		return;
	struct rank_hang_group *g = &w->h->group[at - 1];
	bool completed = str_eqc(state, "completed");
	c.group = at - 1;
	c.is_pair = profile_arg(w->p, set, ARG_CALL_P2P, &state);
	g->has_pairs |= c.is_pair;
	rank_hang_arg_i64(w->p, set, ARG_CALL_RECORD, &c.record);
	if (!completed)
		rank_hang_add_pending(w, mark, c, g);
	if (c.is_pair)
		return;
	g->enqueued = c.seq > g->enqueued ? c.seq : g->enqueued;
	g->completed = completed && c.seq > g->completed ? c.seq : g->completed;
}

static int rank_hang_by_record(const void *a, const void *b)
{
	const struct rank_hang_call *x = a, *y = b;
	return COMPARE(x->record, y->record) ?: COMPARE(x->created_ns, y->created_ns) ?: COMPARE(x->group, y->group) ?: COMPARE(x->seq, y->seq);
}

void rank_hang_read(const struct profile *p, struct arena *a, struct rank_hang *h)
{
	struct str text;
	*h = (struct rank_hang){.is_dump = profile_meta(p, "flight recorder version", &text)};
	struct rank_hang_work w = {.p = p, .a = a, .h = h};
	if (!h->is_dump)
		return;
	intern_init(&w.names);
	rank_hang_read_groups(&w);
	for (uint32_t i = 0; i < p->mark.rows.n; i++)
		if (p->mark.args[i])
			rank_hang_add_call(&w, i);
	if (h->n_calls)
		qsort(h->call, h->n_calls, sizeof *h->call, rank_hang_by_record);
	intern_release(&w.names);
}

void rank_hang_release(struct rank_hang *h)
{
	for (uint32_t g = 0; g < h->n_groups; g++)
		mem_free(h->group[g].member);
	mem_free(h->group);
	mem_free(h->call);
}
