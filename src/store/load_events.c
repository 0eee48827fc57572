/* The order of events, what is around each, and who launched what. The passes that find it (analysis/tree/nest.c and correlate.c, analysis/memory/memory.c)
 * are not run again: here what they found is held against the times and ids that it follows from, in one pass over each table. */
#include "store/load.h"

static int64_t events_end(const struct spans *s, uint32_t i)
{
	return s->start_ns[i] + s->dur_ns[i];
}

static bool events_is_op(const struct spans *s, uint32_t i)
{
	return s->kind[i] == SPAN_OP || s->kind[i] == SPAN_USER;
}

/* Whether an API call or device work with this external id may be of `op` for the id alone. */
static bool events_same_id(const struct spans *s, uint32_t op, int64_t ext_id)
{
	return events_is_op(s, op) && ext_id != ID_NONE && ext_id != 0 && span_ext_id(s, op) == ext_id;
}

/* Moves *open, the innermost range that was not left before `i` begins, up to the stated parent. False when the parent is not around it, or when a
 * range on the way has not ended by then. What is inside a range ends with it; a Python frame may be left before it ends, by an op. */
static bool events_leave(const struct spans *s, uint32_t i, uint32_t *open)
{
	bool left = true;
	while (*open != s->parent[i]) {
		if (*open == ROW_NONE)
			return false;
		left = events_end(s, *open) <= s->start_ns[i] || (left && s->kind[*open] == SPAN_PYTHON && events_is_op(s, i));
		*open = s->parent[*open];
	}
	return left && (*open == ROW_NONE || s->start_ns[i] < events_end(s, *open));
}

static bool events_op_holds(const struct profile *p, uint32_t i)
{
	const struct spans *s = &p->span;
	uint32_t parent = s->parent[i], op = s->op[i];
	if (op == (parent == ROW_NONE ? ROW_NONE : s->kind[parent] == SPAN_OP ? parent : s->op[parent]))
		return true;
	return s->kind[i] == SPAN_CALL && op != ROW_NONE && events_same_id(s, op, span_ext_id(s, i)) &&
	       p->track.pid_text[s->track[op]] == p->track.pid_text[s->track[i]];
}

/* By thread and start; of ranges that start together the longest comes first, since it is around the others. */
static bool events_follows(const struct spans *s, uint32_t i)
{
	if (s->track[i - 1] != s->track[i])
		return s->track[i - 1] < s->track[i];
	return s->start_ns[i - 1] < s->start_ns[i] || (s->start_ns[i - 1] == s->start_ns[i] && s->dur_ns[i - 1] >= s->dur_ns[i]);
}

static int events_check_spans(const struct profile *p, bool nested, struct err *e)
{
	const struct spans *s = &p->span;
	uint32_t open = ROW_NONE;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && !events_follows(s, i))
			return err_set(e, ERR_FORMAT, "row %u of table span is not in order of thread, start and falling duration", i);
		if (!nested)
			continue;
		bool nests = span_nests(s->kind[i]);
		if (i && s->track[i] != s->track[i - 1])
			open = ROW_NONE;
		if (nests ? !events_leave(s, i, &open) : s->parent[i] != ROW_NONE)
			return err_set(e, ERR_FORMAT, "row %u of table span: its parent is not the innermost range around it", i);
		if (nests ? !events_op_holds(p, i) : s->op[i] != ROW_NONE)
			return err_set(e, ERR_FORMAT, "row %u of table span: its op is neither the one around it nor that of its external id", i);
		if (nests && s->kind[i] != SPAN_CALL)
			open = i;
	}
	return 0;
}

static bool events_call_holds(const struct profile *p, uint32_t i)
{
	uint32_t call = p->gpu_op.call[i];
	if (call == ROW_NONE)
		return true;
	int64_t pid = p->launch.pid[p->gpu_op.launch[i]], own = p->track.pid[p->span.track[call]];
	return p->span.kind[call] == SPAN_CALL && p->gpu_op.corr_id[i] != ID_NONE && p->span.link_id[call] == p->gpu_op.corr_id[i] &&
	       (pid == ID_NONE || own == ID_NONE || own == pid);
}

static bool events_launcher_holds(const struct profile *p, uint32_t i)
{
	uint32_t call = p->gpu_op.call[i], op = p->gpu_op.op[i];
	if (call != ROW_NONE && p->span.op[call] != ROW_NONE && !gpu_is_replayed(&p->gpu_op, i))
		return op == p->span.op[call];
	return op == ROW_NONE || events_same_id(&p->span, op, gpu_ext_id(&p->gpu_op, i));
}

static int events_check_device_work(const struct profile *p, struct err *e)
{
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		if (!events_call_holds(p, i))
			return err_set(e, ERR_FORMAT, "row %u of table gpu_op: its call is not an API call of its process with its correlation id", i);
		if (!events_launcher_holds(p, i))
			return err_set(e, ERR_FORMAT, "row %u of table gpu_op: its op is neither that of its call nor that of its external id", i);
	}
	return 0;
}

static int events_check_memory(const struct profile *p, struct err *e)
{
	const struct spans *s = &p->span;
	const struct memories *m = &p->memory;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		uint32_t op = m->span[i];
		if (op != ROW_NONE && (s->kind[op] != SPAN_OP || s->track[op] != m->track[i] || m->time_ns[i] < s->start_ns[op] || m->time_ns[i] >= events_end(s, op)))
			return err_set(e, ERR_FORMAT, "row %u of table memory: its op is not one of its thread around its time", i);
	}
	return 0;
}

int load_check_events(const struct profile *p, struct err *e)
{
	bool nested = p->span.parent && p->span.op;
	if (events_check_spans(p, nested, e) < 0)
		return -1;
	if (nested && p->gpu_op.call && p->gpu_op.op && events_check_device_work(p, e) < 0)
		return -1;
	return p->memory.span ? events_check_memory(p, e) : 0;
}
